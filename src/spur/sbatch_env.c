/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment that goes with the job.
 *
 * A job that is submitted from inside a job must not inherit the outer one's shape: what a running job's environment
 * says of it (SLURM_…, SPUR_…, its GPUs) stays behind, what a user sets for the commands (SBATCH_…, SQUEUE_…,
 * SLURM_CONF and the like) goes along. Outside of a job all of it is the user's; the node that starts the job sets its
 * own variables anyway.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/sbatch.h"

/* Users' settings, behind SLURM_ and SPUR_; the options that sbatch reads as SPUR_… are users' settings too. */
static const char *const settings[] = {
    "CONF",      "JWT",        "CONTROLLER",    "CONTROLLER_ADDR", "COMPAT",      "AUTH_TOKEN",    "TIME_FORMAT",
    "CLUSTERS",  "EXIT_ERROR", "EXIT_IMMEDIATE", "MPI_TYPE",       "KILL_BAD_EXIT", "LABELIO",     "UNBUFFEREDIO",
    "WAIT",      "COMPRESS",   "DEBUG_FLAGS",
};
static const char *const gpu_names[] = {
    "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
};

#define EXPORT_FILE_MAX (16u << 20) /* more than any controller takes */
#define SUBMIT_DIR "SLURM_SUBMIT_DIR"

static bool is(const char *name, size_t n, const char *text) {
    return strlen(text) == n && memcmp(name, text, n) == 0;
}

static bool is_setting(const char *name, size_t n, bool is_spur) {
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (is(name, n, settings[i]))
            return true;
    const struct opt_table *t = cmd_sbatch_options();
    for (size_t i = 0; is_spur && i < t->n; i++)
        if (t->row[i].env && t->row[i].flags & OPT_ENV_ALL && is(name, n, t->row[i].env))
            return true;
    return false;
}

bool sbatch_env_is_outer(const char *name, size_t n) {
    if (n > 6 && memcmp(name, "SLURM_", 6) == 0)
        return !is_setting(name + 6, n - 6, false);
    if (n > 5 && memcmp(name, "SPUR_", 5) == 0)
        return !is_setting(name + 5, n - 5, true);
    if (n > 7 && memcmp(name, "SLURMD_", 7) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(gpu_names); i++)
        if (is(name, n, gpu_names[i]))
            return true;
    return false;
}

static const char *find(const char *const *environ_, const char *name, size_t n) {
    for (; *environ_; environ_++)
        if (strncmp(*environ_, name, n) == 0 && (*environ_)[n] == '=')
            return *environ_;
    return NULL;
}

static void add(struct buf *out, const char *text) {
    buf_add(out, text, strlen(text) + 1);
}

/* Everything that is the user's, but for the names of the list (they come later, with other values). */
static void add_all(const char *const *environ_, const char *const *item, uint32_t n_items, struct buf *out) {
    bool in_job = find(environ_, "SLURM_JOB_ID", 12) || find(environ_, "SPUR_JOB_ID", 11);
    for (; *environ_; environ_++) {
        const char *equals = strchr(*environ_, '=');
        size_t n = equals ? (size_t)(equals - *environ_) : 0;
        if (!n || is(*environ_, n, SUBMIT_DIR) || (in_job && sbatch_env_is_outer(*environ_, n)))
            continue;
        bool is_later = false;
        for (uint32_t i = 0; i < n_items && !is_later; i++)
            is_later = strncmp(item[i], *environ_, n + 1) == 0;
        if (!is_later)
            add(out, *environ_);
    }
}

/* "A,B=x y,C='x,y'": commas separate, quotes of either kind keep them. In the arena. */
static const char *const *split(struct sbatch *s, const char *list, uint32_t *out_n) {
    VEC(const char *) items = {0};
    auto_str item = {0};
    char quote = 0;
    for (const char *at = list;; at++) {
        if (*at && (quote ? *at == quote : *at == '\'' || *at == '"')) {
            quote = quote ? 0 : *at;
        } else if (*at && (*at != ',' || quote)) {
            str_addc(&item, *at);
        } else {
            if (item.n)
                vec_push(&items, arena_strdup(&s->c->arena, item.p));
            str_clear(&item);
        }
        if (!*at)
            break;
    }
    *out_n = (uint32_t)items.n;
    const char *const *out = arena_memdup(&s->c->arena, items.p, items.n * sizeof(*items.p));
    vec_fini(&items);
    return out;
}

/* The last one of a name counts. */
static bool is_repeated(const char *const *item, uint32_t n, uint32_t i) {
    size_t len = strcspn(item[i], "=");
    for (uint32_t k = i + 1; k < n; k++)
        if (strcspn(item[k], "=") == len && memcmp(item[k], item[i], len) == 0)
            return true;
    return false;
}

/* The node takes the job's directory for it, unless it is told another one here. */
static void add_submit_dir(const struct sbatch *s, struct buf *out) {
    if (s->cwd && !str_eq(s->cwd, s->spec.work_dir))
        add(out, arena_printf(&s->c->arena, SUBMIT_DIR "=%s", s->cwd));
}

static bool read_file(const struct sbatch *s, struct buf *out) {
    uint64_t number;
    char chunk[4096];
    bool is_number = !str_to_u64(s->export_file, 1u << 20, &number) && number > 2;
    int fd = is_number ? dup((int)number) : open(s->export_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        cli_error(s->c, "Could not open user environment file %s", s->export_file);
        return false;
    }
    ssize_t got;
    while ((got = read(fd, chunk, sizeof(chunk))) > 0 && out->n <= EXPORT_FILE_MAX)
        buf_add(out, chunk, (size_t)got);
    close(fd);
    if (got || out->n > EXPORT_FILE_MAX) {
        cli_error(s->c, "Could not read user environment file %s", s->export_file);
        return false;
    }
    if (out->n && out->p[out->n - 1])
        buf_add(out, "", 1);
    return true;
}

/* Whether an entry of that name is in a block of them. */
static bool names(const struct buf *block, const char *entry, size_t n_name) {
    for (const char *at = (const char *)block->p, *end = at + block->n; at < end; at += strlen(at) + 1)
        if (strncmp(at, entry, n_name) == 0 && at[n_name] == '=')
            return true;
    return false;
}

bool sbatch_env_file(struct sbatch *s, struct buf *env) {
    auto_buf file = {0}, all = {0};
    if (!s->export_file)
        return true;
    if (!read_file(s, &file))
        return false;
    for (const char *at = (const char *)env->p, *end = at + env->n; at < end; at += strlen(at) + 1)
        if (!names(&file, at, strcspn(at, "=")))
            add(&all, at);
    buf_add(&all, file.p, file.n);
    struct buf old = *env;
    *env = all;
    all = old;
    return true;
}

void sbatch_env(struct sbatch *s, const char *const *environ_, struct buf *out) {
    const char *export = s->export ? s->export : "ALL";
    add_submit_dir(s, out);
    if (strcasecmp(export, "ALL") == 0) {
        add_all(environ_, NULL, 0, out);
        if (s->more.login_env)
            add(out, "SLURM_GET_USER_ENV=1");
        return;
    }
    uint32_t n = 0;
    bool is_nil = strcasecmp(export, "NIL") == 0, is_none = strcasecmp(export, "NONE") == 0;
    const char *const *item = is_nil || is_none ? NULL : split(s, export, &n);
    bool all = false;
    for (uint32_t i = 0; i < n; i++)
        all |= strcasecmp(item[i], "ALL") == 0;
    if (all)
        add_all(environ_, item, n, out);
    for (uint32_t i = 0; i < n; i++) {
        if (strcasecmp(item[i], "ALL") == 0 || is_repeated(item, n, i))
            continue;
        const char *have = strchr(item[i], '=') ? item[i] : find(environ_, item[i], strlen(item[i]));
        if (have)
            add(out, have);
    }
    s->spec.env_minimal = !all;
    add(out, arena_printf(&s->c->arena, "SLURM_EXPORT_ENV=%s", export));
    if ((!all && !is_nil) || s->more.login_env) /* the node adds what a login would set */
        add(out, "SLURM_GET_USER_ENV=1");
}
