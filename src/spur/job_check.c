/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of options that sbatch, srun and salloc don't have yet, and of those that ask for nothing here.
 *
 * A wrong value is told in Slurm's words, so that a script is corrected once and for good; only a right one meets "not
 * supported". And what Slurm takes without any effect on a cluster as this one (no cores set aside, no nodes that are
 * started for a job, no switches) is taken here too.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/job_ask.h"

#define ASK(r) ((struct job_ask *)(r)->ctx)

#define IS_ONE_OF(value, n, list) str_is_one_of(value, n, list, ARRAY_LEN(list))

static bool is_number(const char *text, size_t n) {
    return n && strspn(text, "0123456789") >= n;
}

/* What the controller refuses in Slurm, said here. */
static int refused(struct opt_run *r, const char *text) {
    bool is_batch = strstr(r->prog, "sbatch") || strstr(r->prog, "submit"), is_salloc = strstr(r->prog, "alloc");
    return opt_bad(r, 1, "%s: %s", is_batch ? "Batch job submission failed" : is_salloc ? "Job submit/allocate failed" : "Unable to allocate resources", text);
}

int check_number(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t n;
    if (value && count_parse(value, INT32_MAX, &n))
        return opt_bad(r, 1, "Invalid numeric value \"%s\" for --%s.", value, o->name);
    return 0;
}

/* "0" asks for nothing. */
int check_yes_no(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (value && !str_eq(value, "0") && !str_eq(value, "1"))
        return opt_bad_value(r, o);
    return value && *value == '0' ? OPT_NOTHING : 0;
}

/* "low", "medium-high:performance", "2400000", "800000-highm1:ondemand". */
int check_cpu_freq(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const char *const level[] = {"low", "medium", "high", "highm1"};
    static const char *const governor[] = {"conservative", "ondemand", "performance", "powersave", "userspace", "schedutil"};
    size_t n = strcspn(value, "-:");
    bool ok = is_number(value, n) || IS_ONE_OF(value, n, level) || (!value[n] && IS_ONE_OF(value, n, governor));
    const char *at = value + n;
    if (ok && *at == '-') {
        n = strcspn(++at, ":");
        ok = is_number(at, n) || IS_ONE_OF(at, n, level);
        at += n;
    }
    if (ok && *at == ':')
        ok = IS_ONE_OF(at + 1, strlen(at + 1), governor);
    if (ok)
        return 0;
    opt_bad(r, r->table->usage_exit, "unrecognized --cpu-freq argument \"%s\"", value);
    return opt_bad(r, r->table->usage_exit, "Invalid --cpu-freq argument");
}

/* "medium", "gpu:high,memory=900", "verbose". */
int check_gpu_freq(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const char *const level[] = {"low", "medium", "high", "highm1"};
    uint32_t n;
    const char *const *word = cli_words(ASK(r)->c, value, ",", &n);
    for (uint32_t i = 0; i < n; i++) {
        const char *at = word[i];
        if (strcasecmp(at, "verbose") == 0)
            continue;
        at += strncasecmp(at, "memory=", 7) == 0 ? 7 : strncasecmp(at, "gpu=", 4) == 0 || strncasecmp(at, "gpu:", 4) == 0 ? 4 : 0;
        if (!is_number(at, strlen(at)) && !IS_ONE_OF(at, strlen(at), level))
            return opt_bad(r, r->table->usage_exit, "Invalid --gpu-freq argument: gpu:%s", at);
    }
    return 0;
}

/* "single:2", "verbose,map_gpu:0,1". */
int check_gpu_bind(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const char *const word[] = {"closest", "none"};
    static const char *const counted[] = {"single", "per_task", "map_gpu", "mask_gpu"};
    const char *at = value;
    size_t skip = strncasecmp(at, "verbose,", 8) == 0 ? 8 : strncasecmp(at, "v,", 2) == 0 ? 2 : strncasecmp(at, "quiet,", 6) == 0 ? 6 : 0;
    at += skip;
    size_t n = strcspn(at, ":");
    bool ok = (!at[n] && IS_ONE_OF(at, n, word)) || (at[n] && at[n + 1] && IS_ONE_OF(at, n, counted) && strspn(at + n + 1, "0123456789abcdefABCDEFx,*") == strlen(at + n + 1));
    if (!ok)
        return opt_bad(r, r->table->usage_exit, "Invalid --%s argument: %s", o->name, value);
    return strncasecmp(at, "none", n) == 0 ? OPT_NOTHING : 0;
}

/* "30", "task=30,energy=60". */
int check_acctg_freq(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const char *const kind[] = {"task", "energy", "network", "filesystem"};
    uint32_t n;
    const char *const *word = cli_words(ASK(r)->c, value, ",", &n);
    bool ok = n > 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *equals = strchr(word[i], '=');
        const char *number = equals ? equals + 1 : word[i];
        ok &= is_number(number, strlen(number)) && (!equals || IS_ONE_OF(word[i], (size_t)(equals - word[i]), kind));
    }
    return ok ? 0 : opt_bad(r, r->table->usage_exit, "Invalid --%s specification: %s", o->name, value);
}

static const char memory_help[] =
    "Memory bind options:\n"
    "    --mem-bind=         Bind memory to locality domains (ldom)\n"
    "     q[uiet]         quietly bind before task runs (default)\n"
    "     v[erbose]       verbosely report binding before task runs\n"
    "     no[ne]          don't bind tasks to memory (default)\n"
    "     rank            bind by task rank\n"
    "     local           bind to memory local to processor\n"
    "     map_mem:<list>  specify a memory binding for each task\n"
    "     mask_mem:<list> specify a memory binding mask for each task\n"
    "     sort            sort free cache pages\n"
    "     nosort          don't sort free cache pages (default)\n"
    "     help            show this help message\n";

/* Words that only say how much is told ask for nothing. */
int check_mem_bind(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const char *const there[] = {"q", "quiet", "v", "verbose", "no", "none", "nosort"};
    static const char *const later[] = {"rank", "local", "sort", "p", "prefer"};
    if (strcasecmp(value, "help") == 0) {
        str_add(&r->out, memory_help);
        r->exit_code = r->table->usage_exit;
        return -1;
    }
    int rc = OPT_NOTHING;
    for (const char *at = value; *at; at += *at == ',') {
        size_t n = strcspn(at, ",:");
        bool is_list = at[n] == ':' && (strncasecmp(at, "map_mem", n) == 0 || strncasecmp(at, "mask_mem", n) == 0);
        if (is_list)
            n = strlen(at); /* a list has commas of its own */
        if (!is_list && !IS_ONE_OF(at, n, there) && !IS_ONE_OF(at, n, later))
            return opt_bad(r, r->table->usage_exit, "unrecognized --mem-bind argument \"%s\"", value);
        rc = is_list || IS_ONE_OF(at, n, later) ? 0 : rc;
        at += n;
    }
    return rc;
}

/* No device is nearer to some cores than to others here, so that both ways to bind are how it is. */
int check_gres_flags(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const char *const there[] = {"disable-binding", "enforce-binding"};
    static const char *const later[] = {"allow-task-sharing", "multiple-tasks-per-sharing", "one-task-per-sharing"};
    uint32_t n;
    int rc = OPT_NOTHING;
    const char *const *word = cli_words(ASK(r)->c, value, ",", &n);
    for (uint32_t i = 0; i < n || !n; i++) {
        const char *w = n ? word[i] : "";
        if (!IS_ONE_OF(w, strlen(w), there) && !IS_ONE_OF(w, strlen(w), later))
            return opt_bad(r, r->table->usage_exit, "Invalid --gres-flags specification: %s", value);
        rc = IS_ONE_OF(w, strlen(w), later) ? 0 : rc;
    }
    return rc;
}

/* Features of the batch node have to be among those of all nodes. */
int check_batch(struct opt_run *r, const struct opt_row *o, const char *value) {
    const struct opt_item *all = opt_find(r, "constraint");
    uint32_t n, n_all = 0;
    const char *const *word = cli_words(ASK(r)->c, value, "&,|", &n);
    const char *const *has = all && all->value ? cli_words(ASK(r)->c, all->value, "&,|[]()", &n_all) : NULL;
    for (uint32_t i = 0; i < n || !n; i++) {
        bool is_there = false;
        for (uint32_t k = 0; n && k < n_all; k++)
            is_there |= str_eq(word[i], has[k]);
        if (!is_there)
            return refused(r, "Job --batch option is invalid or not a subset of --constraint");
    }
    return 0;
}

int check_reboot(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (geteuid() == 0)
        return 0;
    opt_bad(r, 1, "rebooting of nodes is only allowed for admins");
    return refused(r, "Access/permission denied");
}

int check_gpus_per_socket(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (opt_find(r, "sockets-per-node") || opt_find(r, "extra-node-info"))
        return 0;
    opt_bad(r, 1, "--gpus-per-socket option requires --sockets-per-node specification");
    return opt_bad(r, 1, "%s", err_sentence(E_GRES));
}

/* There is none of any name. */
int check_reservation(struct opt_run *r, const struct opt_row *o, const char *value) {
    return refused(r, "Requested reservation is invalid");
}

/* ---- taken, and without effect as in a Slurm that is set up so ---- */

/* Slurm's word where AllowSpecResourcesUsage is off, which is its default. */
int ask_spec_cores(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (check_number(r, o, value))
        return -1;
    cli_error(ASK(r)->c, "Ignoring %s since it's not allowed by configuration (AllowSpecResourcesUsage = No)",
              str_eq(o->name, "core-spec") ? "-S" : "--thread-spec");
    return 0;
}

/* A job begins when all of its nodes have confirmed, always. */
int ask_wait_nodes(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (check_number(r, o, value))
        return -1;
    return str_eq(value, "0") || str_eq(value, "1") ? 0 : opt_bad_value(r, o);
}

/* No node is started anew for a job. */
int ask_delay_boot(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint32_t mins;
    if (time_limit_parse(value, &mins))
        return opt_bad_value(r, o);
    ASK(r)->seldom.delay_boot_secs = mins == TIME_LIMIT_NONE ? 0 : (uint32_t)MIN((uint64_t)mins * 60, (uint64_t)INT32_MAX);
    return 0;
}

/* All nodes are one segment, without a topology. */
int ask_segment(struct opt_run *r, const struct opt_row *o, const char *value) {
    return value ? check_number(r, o, value) : 0;
}
