/* SPDX-License-Identifier: Apache-2.0
 *
 *     api ──► table ──► steps (directories, step daemons)
 *               │
 *               └──► report ──► controllers
 *
 * All on one loop; what blocks is in the pool. There is nothing to save at the end: whatever counts is on disk as it
 * happens, so that SIGTERM and SIGKILL differ by a log line only.
 */
#include "spurd/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/host/host_loop.h"
#include "io/loop/loop.h"
#include "spur_descriptors.h"
#include "spurd/facts.h"
#include "spurd/report/report.h"
#include "spurd/secure.h"
#include "spurd/steps/local.h"
#include "spurd/stream/open.h"

#define POOL_THREADS 8
#define UNKNOWN_MS 1000 /* between two look-ups of the controller's name */
#define STOP_SECS 1 /* whoever still blocks then is left behind */

struct agent {
    const struct options *o;
    struct arena arena;
    struct loop *loop;
    struct pool *pool;
    struct clock clock;
    struct secure *secure;
    struct host_loop *host_loop;
    struct table *table;
    struct steps_local *steps;
    struct api *api;
    struct report *report;
    struct streams *streams;
    struct cred_key key;
    struct cred_public controller_key;
    bool has_controller_key, was_ready, was_unknown;
    char *found_address; /* NULL: not looked for, or not found */
    struct node node;
    char state_dir[4096];
    int lock_fd;
};

/* ---- the state directory ---- */

static int open_state_dir(struct agent *a, struct err *e) {
    if (mkdir(a->o->state_dir, 0755) && errno != EEXIST)
        return err_sys(e, "make state directory %s", a->o->state_dir);
    if (!realpath(a->o->state_dir, a->state_dir))
        return err_sys(e, "state directory %s", a->o->state_dir);
    autofree char *path = xasprintf("%s/lock", a->state_dir);
    a->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (a->lock_fd < 0)
        return err_sys(e, "open %s", path);
    /* Not flock: a child that was just spawned would hold that a moment longer than we live. */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(a->lock_fd, F_SETLK, &lock))
        return err_set(e, E_EXISTS, "another spurd uses state directory %s", a->state_dir);
    return 0;
}

/* Other users can't reach their scripts then, and get copies in /tmp (spurstepd/child.c). */
static void check_passage(const struct agent *a) {
    char path[4096];
    struct stat st;
    snprintf(path, sizeof(path), "%s", a->state_dir);
    for (char *slash = path + strlen(path); geteuid() == 0 && slash; slash = strrchr(path, '/')) {
        *slash = 0;
        if (*path && !stat(path, &st) && !(st.st_mode & S_IXOTH)) {
            log_info("%s is closed to others: jobs of users other than root run copies of their scripts in /tmp", path);
            return;
        }
    }
}

/* ---- the controller's key ---- */

static char *pin_path(const struct agent *a) {
    return xasprintf("%s/controller.pub", a->state_dir);
}

static int read_key(const char *path, struct cred_public *out, struct err *e) {
    char hex[80];
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(hex, sizeof(hex), f);
    int code = f ? 0 : err_sys(e, "open %s", path);
    if (f)
        fclose(f);
    if (ok)
        hex[strcspn(hex, "\n")] = 0;
    if (!code && (!ok || cred_public_parse(hex, out)))
        code = err_set(e, E_CORRUPT, "%s holds no public key", path);
    return code;
}

static int load_controller_key(struct agent *a, struct err *e) {
    autofree char *pinned = pin_path(a);
    const char *path = a->o->controller_key ? a->o->controller_key : pinned;
    if (!a->o->controller_key && access(pinned, F_OK))
        return 0;
    int code = read_key(path, &a->controller_key, e);
    a->has_controller_key = !code;
    return code;
}

static int pin(struct agent *a, struct err *e) {
    autofree char *path = pin_path(a), *made = xasprintf("%s.new", path);
    char hex[66];
    cred_public_print(&a->controller_key, hex);
    hex[64] = '\n';
    autoclose int fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, hex, 65) != 65 || fsync(fd) || rename(made, path))
        return err_sys(e, "keep the controller's key in %s", path);
    return 0;
}

static void use_key(struct agent *a) {
    api_set_key(a->api, &a->controller_key);
    streams_set_key(a->streams, &a->controller_key);
}

static int on_key(void *arg, const uint8_t *key, uint32_t n, struct err *e) {
    struct agent *a = arg;
    if (n != CRED_PUBLIC_SIZE)
        return err_set(e, E_PROTOCOL, "the controller names no key of its own");
    if (a->has_controller_key && !cred_same(key, a->controller_key.b, CRED_PUBLIC_SIZE))
        return err_set(e, E_CREDENTIAL, "it has another key than the one that this node knows; if that is right, remove %s/controller.pub",
                       a->state_dir);
    if (a->has_controller_key)
        return 0;
    memcpy(a->controller_key.b, key, CRED_PUBLIC_SIZE);
    int code = pin(a, e);
    a->has_controller_key = !code;
    if (!code)
        use_key(a);
    return code;
}

/* ---- ready ---- */

static void write_ready(const struct agent *a) {
    auto_str text = {0};
    str_addf(&text, "listen=%u\npid=%d\nnode=%s\n", a->node.port, (int)getpid(), a->node.name);
    if (a->o->ready_fd >= 0) {
        (void)!write(a->o->ready_fd, text.p, text.n);
        close(a->o->ready_fd);
    }
    if (!a->o->ready_file)
        return;
    autofree char *made = xasprintf("%s.tmp", a->o->ready_file);
    autoclose int fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text.p, text.n) != (ssize_t)text.n || rename(made, a->o->ready_file))
        log_error("can't write %s: %s", a->o->ready_file, strerror(errno));
}

static void on_registered(void *arg, const struct register_reply *reply) {
    struct agent *a = arg;
    (void)reply;
    if (!a->was_ready)
        write_ready(a);
    a->was_ready = true;
}

static void on_sample(void *arg, uint32_t *out_load, uint64_t *out_free_mb) {
    (void)arg;
    facts_sample(out_load, out_free_mb);
}

static void on_changed(void *arg) {
    struct agent *a = arg;
    if (a->report)
        report_changed(a->report);
}

/* ---- the address to register ---- */

static void find_address(void *arg);

static void look_up(void *arg) {
    struct agent *a = arg;
    a->found_address = facts_address_towards(a->o->controllers);
}

/* The controller's name may come later than we do, as where both are pods that start together. */
static void looked_up(void *arg) {
    struct agent *a = arg;
    if (!a->found_address) {
        if (!a->was_unknown)
            log_warn("nothing is known of %s yet; trying again", a->o->controllers);
        a->was_unknown = true;
        loop_timer_start(a->loop, UNKNOWN_MS, find_address, a);
        return;
    }
    a->node.address = a->found_address;
    report_start(a->report);
}

static void find_address(void *arg) {
    struct agent *a = arg;
    if (a->node.address)
        report_start(a->report);
    else
        pool_run(a->pool, a->loop, look_up, looked_up, a);
}

/* ---- signals ---- */

static void die_now(int signo) {
    (void)signo;
    _exit(0);
}

static void on_left(void *arg) {
    struct agent *a = arg;
    loop_stop(a->loop);
}

static void on_stop(void *arg, int signo) {
    struct agent *a = arg;
    log_info("stopping on signal %d; %zu runs go on", signo, table_count(a->table));
    signal(SIGALRM, die_now); /* a name service that hangs must not hold us */
    alarm(STOP_SECS);
    if (signo == SIGTERM && a->report && report_leave(a->report, on_left))
        return;
    loop_stop(a->loop);
}

static void on_hangup(void *arg, int signo) {
    struct agent *a = arg;
    (void)signo;
    secure_reread(a->secure, a->api);
}

/* All children are step daemons on their way into the background, or strangers where we are pid 1. */
static void on_child(void *arg, int signo) {
    (void)arg, (void)signo;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

/* ---- life ---- */

/* The second of this start, later than that of the start before it in this directory: the controller tells an agent that
 * was started anew from one that it removed by this alone. Kept as a file's time. */
static int64_t start_second(struct agent *a) {
    autofree char *path = xasprintf("%s/started", a->state_dir);
    int64_t now = clock_unix_ms(&a->clock) / 1000;
    struct stat st;
    if (!stat(path, &st))
        now = MAX(now, (int64_t)st.st_mtime + 1);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = now}};
    if (fd >= 0)
        (void)futimens(fd, times);
    return now;
}

static int make_node(struct agent *a, struct err *e) {
    autofree char *path = xasprintf("%s/node.key", a->state_dir);
    const struct options *o = a->o;
    facts_node(o->hostname, o->cpus, o->memory_mb, o->features, &a->arena, &a->node);
    a->node.address = o->address ? o->address : facts_listen_address(o->listen, &a->arena);
    a->node.agent_start_unix = start_second(a);
    struct gres_list gres;
    int code = options_read_gres(o, a->node.name, &a->arena, &gres, e);
    if (!code)
        code = cred_key_load_or_make(path, &a->key, e);
    if (code)
        return code;
    facts_labels(o->label, o->n_labels, &a->arena, &a->node);
    a->node.gres = gres.p;
    a->node.n_gres = gres.n;
    a->node.public_key = a->key.pub.b;
    a->node.n_public_key = CRED_PUBLIC_SIZE;
    return load_controller_key(a, e);
}

static int make_steps(struct agent *a, struct err *e) {
    const struct options *o = a->o;
    struct steps_events events = table_events(a->table);
    uint64_t place = hash_fixed(a->state_dir, strlen(a->state_dir));
    struct steps_local_conf conf = {
        .state_dir = a->state_dir,
        .cgroup_prefix = arena_printf(&a->arena, "%s-%08x", a->node.name, (unsigned)place),
        .clock = &a->clock,
        .facts = {.node_name = a->node.name,
                  .config_path = o->config,
                  .controllers = o->controllers,
                  .containment = o->containment,
                  .clock_scale = o->clock_scale,
                  .is_root = geteuid() == 0,
                  .own_uid = geteuid(),
                  .gres = a->node.gres,
                  .n_gres = a->node.n_gres},
    };
    return steps_local_new(a->loop, a->pool, &conf, &events, &a->steps, e);
}

static int make_api(struct agent *a, struct err *e) {
    size_t n;
    const void *descriptors = spur_descriptors(&n);
    struct streams_conf streams = {a->node.name, a->loop, host_loop_host(a->host_loop), a->table, a->steps};
    a->streams = streams_new(&streams);
    struct api_conf conf = {a->node.name, descriptors, n, streams_take, a->streams, secure_tls(a->secure)};
    uint16_t port = 0;
    int code = api_new(a->loop, host_loop_host(a->host_loop), a->table, &conf, a->o->listen, &a->api, &port, e);
    a->node.port = port;
    if (!code && a->has_controller_key)
        use_key(a);
    return code;
}

static void make_report(struct agent *a) {
    struct report_conf conf = {.controllers = a->o->controllers,
                               .join_token = a->o->token,
                               .node = &a->node,
                               .key = &a->key,
                               .arg = a,
                               .sample = on_sample,
                               .on_key = on_key,
                               .on_registered = on_registered};
    a->report = report_new(host_loop_host(a->host_loop), a->table, &conf);
}

static int begin(struct agent *a, struct err *e) {
    struct table_conf table = {.clock_scale = a->o->clock_scale, .changed = on_changed, .arg = a};
    clock_init(&a->clock, a->o->clock_scale);
    int code = open_state_dir(a, e);
    if (!code)
        code = make_node(a, e);
    if (code)
        return code;
    table.boot = node_boot(&a->node);
    check_passage(a);
    a->loop = loop_new("spurd");
    a->pool = pool_new("work", POOL_THREADS);
    code = secure_new(a->loop, a->o, &a->secure, e);
    if (code)
        return code;
    a->host_loop = host_loop_new(a->loop, a->pool, &a->clock, secure_tls(a->secure), NULL);
    a->table = table_new(host_loop_host(a->host_loop), &table);
    loop_on_signal(a->loop, SIGCHLD, on_child, a);
    code = make_steps(a, e);
    if (!code)
        code = make_api(a, e);
    if (code)
        return code;
    table_adopt(a->table, steps_local_steps(a->steps));
    make_report(a);
    loop_on_signal(a->loop, SIGTERM, on_stop, a);
    loop_on_signal(a->loop, SIGINT, on_stop, a);
    loop_on_signal(a->loop, SIGHUP, on_hangup, a);
    find_address(a);
    log_info("node %s: %u CPUs, %llu MiB, listening on port %u, %zu runs found", a->node.name, a->node.cpus,
             (unsigned long long)a->node.mem_mb, a->node.port, table_count(a->table));
    return 0;
}

static void end(struct agent *a) {
    if (a->report)
        report_stop(a->report);
    if (a->streams)
        streams_stop(a->streams);
    if (a->table)
        table_stop(a->table);
    api_free(a->api);
    if (a->steps)
        steps_local_stop(a->steps);
    if (a->pool)
        pool_free(a->pool);
    streams_free(a->streams);
    if (a->host_loop && a->table)
        table_free(a->table);
    if (a->host_loop)
        host_loop_free(a->host_loop);
    if (a->report)
        report_free(a->report);
    if (a->loop)
        loop_free(a->loop);
    secure_free(a->secure);
    if (a->steps)
        steps_local_free(a->steps);
    cred_key_fini(&a->key);
    free(a->found_address);
    arena_fini(&a->arena);
    if (a->lock_fd >= 0)
        close(a->lock_fd);
}

int agent_run(const struct options *o, struct err *e) {
    struct agent *a = xnew(struct agent);
    a->o = o;
    a->lock_fd = -1;
    int code = begin(a, e);
    if (!code)
        loop_run(a->loop);
    end(a);
    free(a);
    return code;
}
