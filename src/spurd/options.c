/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/options.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/config.h"
#include "io/toml/toml.h"
#include "libspur/secure.h"
#include "spurstepd/step.h"

#define STATE_DIR "/var/spool/spurd"
#define CONFIG_PATH "/etc/spur/spur.conf"
#define CONFIG_MAX (1u << 20)

static const char help_text[] =
    "Usage: spurd [OPTIONS]\n"
    "The node agent: takes jobs from the controller and runs them on this machine.\n"
    "\n"
    "  --controller ADDR[,ADDR…]  controllers, host:port with or without http:// (SPUR_CONTROLLER_ADDR;\n"
    "                             default http://localhost:6817)\n"
    "  --listen ADDR              where the controller reaches this agent (default [::]:6818, or agent_port; port 0: any)\n"
    "  -N, --hostname NAME        name of the node (default: the short host name)\n"
    "  --address IP               address to register (SPUR_NODE_ADDRESS; default: the one towards the controller)\n"
    "  --state-dir DIR            runs and keys (default " STATE_DIR "; of an agent that isn't root's: a folder\n"
    "                             of that cluster below $XDG_STATE_HOME/spurd or ~/.local/state/spurd)\n"
    "  --token TOKEN              join token (SPUR_JOIN_TOKEN)\n"
    "  --controller-key FILE      the controller's public key; without it the first one seen is kept\n"
    "  -f, --config FILE          spur.conf, read for [logging] and [tls] (default " CONFIG_PATH " where it exists)\n"
    "  --cpus N, --memory-mb N    sizes to register (default: the machine's)\n"
    "  --features A,B             features to register\n"
    "  --label KEY=VALUE          a label to register; may be repeated (SPUR_NODE_LABELS: KEY=VALUE,…)\n"
    "  --gres NAME[:TYPE]:N,…     generic resources to register, such as gpu:a100:2\n"
    "  --gres-files FILES         device files of the first of them, such as /dev/nvidia[0-1]\n"
    "  --gres-config FILE         the same from lines as Slurm's gres.conf has them\n"
    "  --containment KIND         how runs are held together: auto, cgroup-v2, cgroup-v1, process (default auto)\n"
    "  --log-level LEVEL          error, warn, info, debug\n"
    "  --log-format FORMAT        text, json\n"
    "  --log-file FILE            default: stderr\n"
    "  --ready-file FILE          written once the node is registered: listen=PORT, pid=PID, node=NAME\n"
    "  --ready-fd N               the same is written there, and the descriptor closed\n"
    "  -D, --foreground           accepted; spurd never goes into the background\n"
    "  --test-clock-scale N       time runs N times faster; for tests, refused with the default state directory\n"
    "  --test-faults              SPUR_FAULT is obeyed; for tests\n"
    "  -V, --version\n"
    "  -h, --help\n";

enum { OPT_CONTROLLER = 256, OPT_LISTEN, OPT_ADDRESS, OPT_STATE_DIR, OPT_TOKEN, OPT_KEY, OPT_CPUS, OPT_MEMORY,
       OPT_FEATURES, OPT_LABEL, OPT_GRES, OPT_GRES_FILES, OPT_GRES_CONFIG, OPT_CONTAINMENT, OPT_LEVEL, OPT_FORMAT, OPT_FILE, OPT_READY, OPT_READY_FD, OPT_SCALE, OPT_FAULTS };

static const struct option table[] = {
    {"controller", required_argument, NULL, OPT_CONTROLLER},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"hostname", required_argument, NULL, 'N'},
    {"address", required_argument, NULL, OPT_ADDRESS},
    {"state-dir", required_argument, NULL, OPT_STATE_DIR},
    {"token", required_argument, NULL, OPT_TOKEN},
    {"controller-key", required_argument, NULL, OPT_KEY},
    {"config", required_argument, NULL, 'f'},
    {"cpus", required_argument, NULL, OPT_CPUS},
    {"memory-mb", required_argument, NULL, OPT_MEMORY},
    {"features", required_argument, NULL, OPT_FEATURES},
    {"label", required_argument, NULL, OPT_LABEL},
    {"gres", required_argument, NULL, OPT_GRES},
    {"gres-files", required_argument, NULL, OPT_GRES_FILES},
    {"gres-config", required_argument, NULL, OPT_GRES_CONFIG},
    {"containment", required_argument, NULL, OPT_CONTAINMENT},
    {"log-level", required_argument, NULL, OPT_LEVEL},
    {"log-format", required_argument, NULL, OPT_FORMAT},
    {"log-file", required_argument, NULL, OPT_FILE},
    {"ready-file", required_argument, NULL, OPT_READY},
    {"ready-fd", required_argument, NULL, OPT_READY_FD},
    {"foreground", no_argument, NULL, 'D'},
    {"test-clock-scale", required_argument, NULL, OPT_SCALE},
    {"test-faults", no_argument, NULL, OPT_FAULTS},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static bool number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out) {
    if (!str_to_u64(text, max, out) && *out >= min)
        return true;
    fprintf(stderr, "spurd: error: --%s takes a number from %llu to %llu, not '%s'\n", name, (unsigned long long)min,
            (unsigned long long)max, text);
    return false;
}

static bool take_number(int c, const char *text, struct options *o) {
    uint64_t v = 0;
    bool ok = false;
    switch (c) {
    case OPT_CPUS:
        ok = number("cpus", text, 1, 65536, &v);
        o->cpus = (uint32_t)v;
        break;
    case OPT_MEMORY:
        ok = number("memory-mb", text, 1, 1ull << 40, &v);
        o->memory_mb = v;
        break;
    case OPT_READY_FD:
        ok = number("ready-fd", text, 1, 65535, &v);
        o->ready_fd = (int)v;
        break;
    case OPT_SCALE:
        ok = number("test-clock-scale", text, 1, 100000, &v);
        o->clock_scale = (uint32_t)v;
        break;
    }
    return ok;
}

static bool take_containment(const char *text, struct options *o) {
    static const char *const kinds[] = {"auto", "cgroup-v2", "cgroup-v1", "process"};
    for (uint32_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_eq(text, kinds[i])) {
            o->containment = i;
            return true;
        }
    }
    fprintf(stderr, "spurd: error: --containment takes auto, cgroup-v2, cgroup-v1 or process, not '%s'\n", text);
    return false;
}

static bool take_text(int c, const char *text, struct options *o) {
    const char **to = c == OPT_CONTROLLER ? &o->controllers
                      : c == OPT_LISTEN   ? &o->listen
                      : c == 'N'          ? &o->hostname
                      : c == OPT_ADDRESS  ? &o->address
                      : c == OPT_STATE_DIR ? &o->state_dir
                      : c == OPT_TOKEN    ? &o->token
                      : c == OPT_KEY      ? &o->controller_key
                      : c == 'f'          ? &o->config
                      : c == OPT_FEATURES ? &o->features
                      : c == OPT_GRES     ? &o->gres
                      : c == OPT_GRES_FILES ? &o->gres_files
                      : c == OPT_GRES_CONFIG ? &o->gres_config
                      : c == OPT_LEVEL    ? &o->log_level
                      : c == OPT_FORMAT   ? &o->log_format
                      : c == OPT_FILE     ? &o->log_file
                      : c == OPT_READY    ? &o->ready_file
                                          : NULL;
    if (!to)
        return false;
    *to = text;
    return true;
}

static const char *env(const char *name) {
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static bool take_label(const char *text, struct options *o) {
    const char *equals = strchr(text, '=');
    auto_str key = {0};
    str_addn(&key, text, equals ? (size_t)(equals - text) : 0);
    if (!equals || !label_key_ok(str_text(&key)) || !label_value_ok(equals + 1)) {
        fprintf(stderr, "spurd: error: --label takes KEY=VALUE, not '%s'\n", text);
        return false;
    }
    if (o->n_labels == LABELS_MAX) {
        fprintf(stderr, "spurd: error: more than %u labels\n", LABELS_MAX);
        return false;
    }
    o->label[o->n_labels++] = text;
    return true;
}

/* SPUR_NODE_LABELS counts where no flag says a label. */
static bool take_env_labels(struct options *o) {
    static char copy[65536];
    const char *text = env("SPUR_NODE_LABELS");
    char *save = NULL;
    if (o->n_labels || !text)
        return true;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save))
        if (!take_label(word, o))
            return false;
    return true;
}

static bool check_logging(const struct options *o) {
    enum log_level level;
    if (o->log_level && log_level_parse(o->log_level, &level)) {
        fprintf(stderr, "spurd: error: --log-level takes error, warn, info or debug, not '%s'\n", o->log_level);
        return false;
    }
    if (o->log_format && !str_eq(o->log_format, "text") && !str_eq(o->log_format, "json")) {
        fprintf(stderr, "spurd: error: --log-format takes text or json, not '%s'\n", o->log_format);
        return false;
    }
    return true;
}

static bool check(const struct options *o, int argc, char **argv) {
    if (optind < argc) {
        fprintf(stderr, "spurd: error: unexpected argument '%s'\n", argv[optind]);
        return false;
    }
    if (o->clock_scale > 1 && !o->own_state_dir) {
        fputs("spurd: error: --test-clock-scale needs a --state-dir of its own\n", stderr);
        return false;
    }
    if (o->hostname && (!*o->hostname || strpbrk(o->hostname, "/ \t\n,[]") || strlen(o->hostname) > 255)) {
        fprintf(stderr, "spurd: error: '%s' is no name for a node\n", o->hostname);
        return false;
    }
    if ((o->gres && o->gres_config) || (o->gres_files && !o->gres)) {
        fputs("spurd: error: --gres-files goes with --gres, and --gres-config stands for both\n", stderr);
        return false;
    }
    return check_logging(o);
}

static void make_parents(char *path) {
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        (void)mkdir(path, 0755); /* what fails here fails again, and is told, where the folder itself is made */
        *at = '/';
    }
}

/* An ordinary user can't write STATE_DIR, and may try several clusters, each with a key of its own: the folder is told from the
 * controllers and the configuration's place. */
static const char *default_state_dir(const struct options *o) {
    static char path[2048];
    const char *state = env("XDG_STATE_HOME"), *home = env("HOME");
    if (geteuid() == 0)
        return STATE_DIR;
    autofree char *key = xasprintf("%s %s", o->controllers, o->config ? o->config : "");
    uint64_t place = hash_fixed(key, strlen(key));
    if (state)
        snprintf(path, sizeof(path), "%s/spurd/%016" PRIx64, state, place);
    else if (home)
        snprintf(path, sizeof(path), "%s/.local/state/spurd/%016" PRIx64, home, place);
    else
        return STATE_DIR; /* what fails there is told; a place that others can write is none for keys */
    make_parents(path);
    return path;
}

static void fill_defaults(struct options *o) {
    if (!o->controllers)
        o->controllers = env("SPUR_CONTROLLER_ADDR") ? env("SPUR_CONTROLLER_ADDR") : "http://localhost:6817";
    if (!o->address)
        o->address = env("SPUR_NODE_ADDRESS");
    if (!o->token)
        o->token = env("SPUR_JOIN_TOKEN");
    o->has_own_listen = o->listen != NULL;
    if (!o->listen)
        o->listen = "[::]:6818";
    o->own_state_dir = o->state_dir != NULL;
    if (!o->state_dir)
        o->state_dir = default_state_dir(o);
}

enum options_do options_read(int argc, char **argv, struct options *out) {
    int c;
    *out = (struct options){.ready_fd = -1, .clock_scale = 1};
    while ((c = getopt_long(argc, argv, "f:N:DVh", table, NULL)) != -1) {
        switch (c) {
        case 'h': fputs(help_text, stdout); return OPTIONS_DONE;
        case 'V': puts("spur " SPUR_VERSION); return OPTIONS_DONE;
        case 'D': break;
        case OPT_FAULTS: out->test_faults = true; break;
        case OPT_LABEL:
            if (!take_label(optarg, out))
                return OPTIONS_WRONG;
            break;
        case '?': fputs("Try \"spurd --help\" for more information\n", stderr); return OPTIONS_WRONG;
        case OPT_CONTAINMENT:
            if (!take_containment(optarg, out))
                return OPTIONS_WRONG;
            break;
        default:
            if (!take_text(c, optarg, out) && !take_number(c, optarg, out))
                return OPTIONS_WRONG;
        }
    }
    if (!take_env_labels(out))
        return OPTIONS_WRONG;
    fill_defaults(out);
    return check(out, argc, argv) ? OPTIONS_RUN : OPTIONS_WRONG;
}

/* ---- spur.conf ---- */

static int read_text(const char *path, struct buf *out, struct err *e) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open %s", path);
    for (ssize_t n; (n = read(fd, buf_reserve(out, 65536), 65536)) != 0; out->n += (size_t)n) {
        if (n < 0)
            return err_sys(e, "read %s", path);
        if (out->n > CONFIG_MAX)
            return err_set(e, E_TOO_BIG, "%s is larger than %u bytes", path, CONFIG_MAX);
    }
    return 0;
}

int options_read_gres(const struct options *o, const char *node_name, struct arena *a, struct gres_list *out, struct err *e) {
    auto_buf text = {0};
    *out = (struct gres_list){0};
    if (o->gres)
        return gres_read(o->gres, o->gres_files, a, out, e);
    if (!o->gres_config)
        return 0;
    int code = read_text(o->gres_config, &text, e);
    if (code)
        return code;
    buf_u8(&text, 0);
    code = gres_config_read((const char *)text.p, node_name, a, out, e);
    return code ? err_wrap(e, "%s", o->gres_config) : 0;
}

/* All that is wrong, one a line, as spurctld --check-config tells it; the error is the first of it. */
static void print_problems(const char *path, char *problems) {
    char *save = NULL;
    (void)strtok_r(problems, "\n", &save);
    for (char *line; (line = strtok_r(NULL, "\n", &save));)
        fprintf(stderr, "spurd: error: %s: %s\n", path, line);
}

int options_reread(const struct options *o, struct arena *a, struct conf *out, struct err *e) {
    auto_buf text = {0};
    auto_str problems = {0};
    struct tree *root;
    if (!o->config) {
        conf_defaults(a, out);
        return 0;
    }
    int code = read_text(o->config, &text, e);
    if (!code)
        code = toml_parse((const char *)text.p, text.n, a, &root, e);
    if (!code)
        code = conf_read(root, a, out, &problems, e);
    if (code && problems.p)
        print_problems(o->config, problems.p);
    return code ? err_wrap(e, "%s", o->config) : 0;
}

int options_read_config(struct options *o, struct arena *a, struct err *e) {
    struct conf conf;
    if (!o->config && access(CONFIG_PATH, R_OK))
        return 0;
    if (!o->config)
        o->config = CONFIG_PATH;
    int code = options_reread(o, a, &conf, e);
    if (code)
        return code;
    o->has_own_level = o->log_level != NULL;
    o->log_level = o->log_level ? o->log_level : conf.log_level;
    o->log_format = o->log_format ? o->log_format : conf.log_format;
    o->log_file = o->log_file ? o->log_file : conf.log_file;
    o->tls = secure_conf(&conf);
    if (!o->has_own_listen)
        o->listen = arena_printf(a, "[::]:%u", conf.agent_port);
    return 0;
}
