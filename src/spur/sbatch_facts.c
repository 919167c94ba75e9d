/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/sbatch.h"

#define LINE_MAX_BYTES 65536

static const struct {
    const char *name;
    int which;
} limits[] = {
    {"AS", RLIMIT_AS},           {"CORE", RLIMIT_CORE},     {"CPU", RLIMIT_CPU},     {"DATA", RLIMIT_DATA},
    {"FSIZE", RLIMIT_FSIZE},     {"MEMLOCK", RLIMIT_MEMLOCK}, {"NOFILE", RLIMIT_NOFILE}, {"NPROC", RLIMIT_NPROC},
    {"RSS", RLIMIT_RSS},         {"STACK", RLIMIT_STACK},
};

/* propagate: a list of names with or without RLIMIT_, ALL or NONE; checked when it was set. */
static bool is_wanted(struct sbatch *s, const char *name) {
    uint32_t n;
    if (!s->propagate)
        return true;
    const char *const *word = cli_words(s->c, s->propagate, ", ", &n);
    for (uint32_t i = 0; i < n; i++) {
        const char *bare = strncasecmp(word[i], "RLIMIT_", 7) == 0 ? word[i] + 7 : word[i];
        if (strcasecmp(bare, "ALL") == 0 || strcasecmp(bare, name) == 0)
            return true;
    }
    return false;
}

static void read_limits(struct sbatch *s) {
    struct job_rlimit *out = arena_calloc(&s->c->arena, ARRAY_LEN(limits), sizeof(*out));
    uint32_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit r;
        if (!is_wanted(s, limits[i].name) || getrlimit(limits[i].which, &r))
            continue;
        out[n++] = (struct job_rlimit){limits[i].name, r.rlim_cur == RLIM_INFINITY ? UINT64_MAX : r.rlim_cur};
    }
    s->spec.rlimits = out;
    s->spec.n_rlimits = n;
}

static int read_directory(struct sbatch *s, struct err *e) {
    const char *asked = s->spec.work_dir;
    bool is_whole = asked && *asked == '/';
    autofree char *cwd = getcwd(NULL, 0);
    if (!cwd)
        return is_whole ? 0 : err_sys(e, "Can't tell the working directory");
    struct arena *a = &s->c->arena;
    s->cwd = arena_strdup(a, cwd);
    if (!is_whole)
        s->spec.work_dir = asked && *asked ? arena_printf(a, "%s/%s", cwd, asked) : s->cwd;
    return 0;
}

static void read_command_line(struct sbatch *s) {
    auto_str line = {0};
    for (int i = 0; i < s->c->n_typed && line.n < LINE_MAX_BYTES; i++) {
        if (i)
            str_addc(&line, ' ');
        const char *slash = i ? NULL : strrchr(s->c->typed[i], '/');
        str_add(&line, slash ? slash + 1 : s->c->typed[i]);
    }
    s->spec.submit_line = arena_strndup(&s->c->arena, str_text(&line), MIN(line.n, (size_t)LINE_MAX_BYTES));
}

/* SLURM_UMASK (octal) goes before the process's own. */
static mode_t read_umask(void) {
    mode_t mask = umask(0);
    umask(mask);
    const char *text = getenv("SLURM_UMASK");
    char *end = NULL;
    unsigned long asked = text ? strtoul(text, &end, 8) : 0;
    return text && *text && !*end && asked <= 0777 ? (mode_t)asked : mask;
}

int sbatch_facts(struct sbatch *s, struct err *e) {
    int rc = read_directory(s, e);
    if (rc)
        return rc;
    s->spec.umask = read_umask() + 1;
    char host[256] = "";
    if (gethostname(host, sizeof(host) - 1) == 0 && *host)
        s->spec.submit_host = arena_strdup(&s->c->arena, host);
    s->spec.session_id = (uint32_t)getsid(0);
    read_limits(s);
    read_command_line(s);
    return 0;
}
