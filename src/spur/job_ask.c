/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/job_ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/flavor.h"

#define ASK(r) ((struct job_ask *)(r)->ctx)
#define SPEC(r) (&ASK(r)->spec)
#define MORE(r) (&ASK(r)->more)

/* ---- one option ---- */

/* "Invalid numeric value": the checks of numbers come later than the parsers' in Slurm, and exit with 1. */
int ask_count(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t n;
    if (count_parse(value, INT32_MAX, &n) || !n)
        return opt_bad(r, 1, "Invalid numeric value \"%s\" for --%s.", value, o->name);
    *(uint32_t *)((char *)r->ctx + o->off) = (uint32_t)n;
    return 0;
}

int ask_nodes(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct err e = {0};
    uint32_t min, max;
    if (node_count_parse(value, &min, &max, &e))
        return opt_bad(r, r->table->usage_exit, "%s", e.text);
    SPEC(r)->min_nodes = min;
    SPEC(r)->max_nodes = max;
    SPEC(r)->min_nodes_given = min > 0; /* -N 0 is no wish */
    MORE(r)->nodes_given = min;
    return 0;
}

/* Of a limit of at most a minute, which Slurm rounds up: its seconds, behind the last colon; 0: a whole minute. */
static uint32_t seconds_of_minute(const char *value) {
    const char *colon = strrchr(value, ':');
    uint64_t secs;
    return colon && !str_to_u64(colon + 1, 59, &secs) ? (uint32_t)secs : 0;
}

int ask_time(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint32_t *to = &SPEC(r)->time_limit_min;
    if (time_limit_parse(value, to))
        return opt_bad_value(r, o);
    MORE(r)->limit_secs = cli_policy()->limits_in_seconds && *to == 1 ? seconds_of_minute(value) : 0;
    return 0;
}

int ask_limit(struct opt_run *r, const struct opt_row *o, const char *value) {
    return time_limit_parse(value, (uint32_t *)((char *)r->ctx + o->off)) ? opt_bad_value(r, o) : 0;
}

int ask_mem(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct ask_size *to = (struct ask_size *)((char *)r->ctx + o->off);
    if (size_mb_parse(value, &to->mb))
        return opt_bad_value(r, o);
    to->level = ASK(r)->level + 1;
    return 0;
}

int ask_moment(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct text_clock clock = cli_clock();
    struct err e = {0};
    if (moment_parse(value, &clock, (int64_t *)((char *)r->ctx + o->off), &e)) {
        str_addf(&r->err, "%s\n", e.text); /* as Slurm: the date parser has no prefix */
        return opt_bad_value(r, o);
    }
    return 0;
}

int ask_nice(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (!value) {
        SPEC(r)->nice = 100;
        return 0;
    }
    errno = 0;
    char *end;
    long long n = strtoll(value, &end, 10); /* what is no number is 0, as with Slurm */
    if (errno == ERANGE || n > NICE_MAX || n < -NICE_MAX)
        return opt_bad(r, r->table->usage_exit, "Invalid --nice value, out of range (+/- %d)", NICE_MAX);
    SPEC(r)->nice = n;
    return 0;
}

int ask_open_mode(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (*value == 'a' || *value == 'A')
        SPEC(r)->open_mode = OPEN_APPEND;
    else if (*value == 't' || *value == 'T')
        SPEC(r)->open_mode = OPEN_TRUNCATE;
    else
        return opt_bad_value(r, o);
    return 0;
}

int ask_requeue(struct opt_run *r, const struct opt_row *o, const char *value) {
    SPEC(r)->no_requeue = str_eq(o->name, "no-requeue");
    MORE(r)->requeue = !SPEC(r)->no_requeue;
    return 0;
}

int ask_kill_invalid_dep(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (strcasecmp(value, "yes") != 0 && strcasecmp(value, "no") != 0)
        return opt_bad_value(r, o);
    MORE(r)->kill_invalid_dep = strcasecmp(value, "yes") == 0 ? 2 : 1;
    return 0;
}

int ask_priority(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint64_t n;
    if (str_to_u64(value, UINT32_MAX - 2, &n))
        return opt_bad_value(r, o);
    SPEC(r)->hold |= !n;
    MORE(r)->priority = n ? n + 1 : 0;
    return 0;
}

int ask_exclusive(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (!value || strcasecmp(value, "node") == 0 || strcasecmp(value, "exclusive") == 0)
        MORE(r)->exclusive = EXCLUSIVE_NODE;
    else if (strcasecmp(value, "user") == 0)
        MORE(r)->exclusive = EXCLUSIVE_USER;
    else if (strcasecmp(value, "mcs") == 0)
        MORE(r)->exclusive = EXCLUSIVE_MCS;
    else if (strcasecmp(value, "topo") == 0)
        MORE(r)->exclusive = EXCLUSIVE_TOPO;
    else if (strcasecmp(value, "oversubscribe") == 0)
        MORE(r)->oversubscribe = true;
    else
        return opt_bad(r, r->table->usage_exit, "Invalid --exclusive specification");
    return 0;
}

/* "[timeout][mode]", S or L, as earlier versions had it: a login is what it is, and has half a minute. */
int ask_user_env(struct opt_run *r, const struct opt_row *o, const char *value) {
    size_t n = value ? strspn(value, "0123456789") : 0;
    if (value && value[n] && (!strchr("SsLl", value[n]) || value[n + 1]))
        return opt_bad_value(r, o);
    MORE(r)->login_env = true;
    return 0;
}

int ask_no_kill(struct opt_run *r, const struct opt_row *o, const char *value) {
    bool is_off = value && (strcasecmp(value, "off") == 0 || strcasecmp(value, "no") == 0);
    if (value && !is_off && strcasecmp(value, "set") != 0)
        return opt_bad_value(r, o);
    MORE(r)->no_kill = !is_off;
    return 0;
}

int ask_signal(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct signal_ask s;
    if (signal_ask_parse(value, &s))
        return opt_bad(r, r->table->usage_exit, "Invalid --signal specification");
    MORE(r)->signal = s.signal;
    MORE(r)->signal_secs = s.secs;
    MORE(r)->signal_batch = s.batch;
    ASK(r)->any_signal_reservation = s.reservation;
    return 0;
}

static const char *const limit_names[] = {"ALL", "NONE", "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE",
                                          "NPROC", "RSS", "STACK"};

int ask_propagate(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct job_ask *a = ASK(r);
    a->propagate = value ? value : "ALL";
    uint32_t n;
    const char *const *word = cli_words(a->c, a->propagate, ", ", &n);
    for (uint32_t i = 0; i < n; i++) {
        bool is_known = false;
        for (size_t k = 0; k < ARRAY_LEN(limit_names); k++)
            is_known |= strcasecmp(str_starts(word[i], "RLIMIT_") ? word[i] + 7 : word[i], limit_names[k]) == 0;
        if (!is_known) {
            opt_bad(r, 1, "Bad rlimit name: %s", word[i]);
            return opt_bad(r, 1, "--propagate=%s is not valid.", a->propagate);
        }
    }
    return 0;
}

/* For root alone, and not there yet for root. */
int ask_uid(struct opt_run *r, const struct opt_row *o, const char *value) {
    return opt_bad(r, r->table->usage_exit, "--%s only permitted by root user, and not supported yet", o->name);
}

/* ---- all together ---- */

static bool fatal(const struct job_ask *a, const char *text) {
    cli_say(a->c, "fatal: %s", text);
    return false;
}

/* What the controller would refuse too. */
static bool refuse(const struct job_ask *a, const char *text) {
    cli_error(a->c, "%s: %s", a->refused ? a->refused : "Batch job submission failed", text);
    return false;
}

static bool expand(struct job_ask *a, const char *list, const char *const **out, uint32_t *out_n) {
    struct err e = {0};
    if (!list || !hostlist_expand(list, &a->c->arena, out, out_n, &e))
        return true;
    return fatal(a, "Invalid node list specified");
}

/* --mem and --mem-per-cpu: that of the later level counts, both of one level are a mistake. */
static bool settle_memory(struct job_ask *a) {
    const struct ask_size *last = NULL;
    for (size_t i = 0; i < ASK_N_MEM; i++) {
        const struct ask_size *m = &a->mem[i];
        if (m->level && last && m->level == last->level)
            return fatal(a, "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.");
        last = m->level && (!last || m->level > last->level) ? m : last;
    }
    if (!last)
        return true;
    *(last == &a->mem[ASK_MEM_NODE] ? &a->spec.mem_node_mb
      : last == &a->mem[ASK_MEM_CPU] ? &a->more.mem_cpu_mb
                                     : &a->seldom.mem_gpu_mb) = last->mb;
    a->spec.mem_all = !last->mb; /* 0 is all of the node, for each of them */
    return true;
}

static bool read_gres(struct job_ask *a, const char *text, const char *name, enum gres_per per) {
    struct err e = {0};
    if (!text || !gres_parse(text, name, per, &a->c->arena, &a->more.gres, &a->more.n_gres, &e))
        return true;
    cli_error(a->c, "%s", e.text[0] ? e.text : err_sentence(E_GRES));
    return false;
}

/* What --gres and --gpus-per-node say, as one text. */
static const char *node_gres_text(struct job_ask *a) {
    auto_str text = {0};
    str_add(&text, a->gres && strcasecmp(a->gres, "none") != 0 ? a->gres : "");
    if (a->gpus_per_node && *a->gpus_per_node) {
        if (text.n)
            str_addc(&text, ',');
        gres_text_print(a->gpus_per_node, "gpu:", &text);
    }
    return text.n ? arena_strdup(&a->c->arena, text.p) : NULL;
}

static uint64_t gres_count(const struct job_more *m, enum gres_per per) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->n_gres; i++)
        n += m->gres[i].per == per ? m->gres[i].count : 0;
    return n;
}

/* --ntasks-per-gpu: the tasks follow from the GPUs, or the GPUs from the tasks. */
static bool settle_tasks_per_gpu(struct job_ask *a) {
    uint64_t each = a->tasks_per_gpu, tasks = a->spec.n_tasks_given;
    uint64_t gpus = gres_count(&a->more, GRES_PER_JOB);
    if (!each)
        return true;
    if (!gpus)
        gpus = gres_count(&a->more, GRES_PER_NODE) * MAX(a->spec.min_nodes, 1u);
    if (!gpus && !tasks)
        return fatal(a, "--ntasks-per-tres needs either a GRES GPU specification or a node/ntask specification");
    if (!gpus) {
        a->gpus = arena_printf(&a->c->arena, "%llu", (unsigned long long)((tasks + each - 1) / each));
        return read_gres(a, a->gpus, "gpu", GRES_PER_JOB);
    }
    if (!tasks)
        a->spec.n_tasks = a->spec.n_tasks_given = (uint32_t)MIN(gpus * each, (uint64_t)INT32_MAX);
    return true;
}

/* --gpus-per-task needs to know how many tasks; --gpus tells it where -n doesn't. */
static bool settle_gpu_tasks(struct job_ask *a) {
    uint64_t all = gres_count(&a->more, GRES_PER_JOB), each = gres_count(&a->more, GRES_PER_TASK);
    const char *wrong = NULL;
    if (!each)
        return true;
    uint32_t tasks = a->spec.n_tasks_given;
    if (!all && !tasks)
        wrong = "--gpus-per-task or --tres-per-task used without either --gpus or -n/--ntasks is not allowed.";
    else if (all && tasks && all != each * tasks)
        wrong = "Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks.";
    else if (all && !tasks && all % each)
        wrong = "--gpus is not a multiple of --gpus-per-task.";
    if (wrong) {
        cli_error(a->c, "Failed to validate job spec. %s", wrong);
        cli_error(a->c, "%s", err_sentence(E_GRES));
        return false;
    }
    if (!tasks)
        a->spec.n_tasks = a->spec.n_tasks_given = (uint32_t)MIN(all / each, (uint64_t)INT32_MAX);
    return true;
}

static bool settle_gres(struct job_ask *a) {
    if (!read_gres(a, a->gres, NULL, GRES_PER_NODE) || !read_gres(a, a->gpus_per_node, "gpu", GRES_PER_NODE) ||
        !read_gres(a, a->gpus, "gpu", GRES_PER_JOB) || !read_gres(a, a->gpus_per_task, "gpu", GRES_PER_TASK))
        return false;
    if (!settle_tasks_per_gpu(a))
        return false;
    a->seldom.tasks_per_gpu = a->tasks_per_gpu;
    a->seldom.gpus_per_node = a->gpus_per_node && *a->gpus_per_node ? a->gpus_per_node : NULL;
    a->more.gres_text = node_gres_text(a);
    a->more.gpus_text = a->gpus && *a->gpus ? a->gpus : NULL;
    return settle_gpu_tasks(a);
}

static bool settle_licenses(struct job_ask *a) {
    struct err e = {0};
    if (!a->licenses || !*a->licenses)
        return true;
    a->more.licenses_text = a->licenses;
    if (!license_parse(a->licenses, &a->c->arena, &a->more.licenses, &a->more.n_licenses, &e))
        return true;
    return refuse(a, err_sentence(E_LICENSE));
}

/* Brackets around the list are allowed; the limit is kept beside it. */
static bool settle_array(struct job_ask *a) {
    struct err e = {0};
    struct job_more *m = &a->more;
    if (!a->array || !*a->array)
        return true;
    auto_str bare = {0};
    for (const char *p = a->array; *p; p++)
        if (*p != '[' && *p != ']')
            str_addc(&bare, *p);
    if (array_parse(str_text(&bare), ARRAY_ID_MAX, &a->c->arena, &m->array_ranges, &m->n_array_ranges,
                    &m->array_max_running, &e))
        return refuse(a, err_sentence(E_ARRAY));
    m->array = arena_strndup(&a->c->arena, str_text(&bare), strcspn(str_text(&bare), "%"));
    return true;
}

/* A comma is an "and" too. */
static const char *features_text(struct job_ask *a, const char *given) {
    if (!given || !*given)
        return NULL;
    char *text = arena_strdup(&a->c->arena, given);
    for (char *p = text; *p; p++)
        *p = *p == ',' ? '&' : *p;
    return text;
}

static bool settle_sharing(struct job_ask *a) {
    if (a->more.exclusive && a->more.oversubscribe)
        return fatal(a, "--exclusive and --oversubscribe options are mutually exclusive");
    if (a->any_signal_reservation)
        return refuse(a, "Preemption is required but is disabled on this system");
    return true;
}

/* As many nodes as tasks at most. A list of nodes asks for that many. */
static void fit_nodes(struct job_ask *a) {
    struct job_spec *j = &a->spec;
    uint32_t min = MAX(j->min_nodes, j->n_req_nodes);
    if (a->more.tasks_per_node && !j->n_tasks_given) { /* tasks of nodes: as many as they hold */
        uint64_t tasks = (uint64_t)MAX(min, 1u) * a->more.tasks_per_node;
        j->n_tasks = j->n_tasks_given = (uint32_t)MIN(tasks, (uint64_t)INT32_MAX);
    }
    if (!j->n_tasks_given || j->n_tasks_given >= min)
        return;
    if (!a->quiet)
        cli_say(a->c, "warning: can't run %u processes on %u nodes, setting nnodes to %u", j->n_tasks_given, min,
                j->n_tasks_given);
    j->min_nodes = j->max_nodes = j->n_tasks_given;
    j->min_nodes_given = true;
}

void job_ask_all_named(struct job_ask *a) {
    struct job_spec *j = &a->spec;
    if (j->min_nodes || !j->n_req_nodes)
        return;
    j->min_nodes = j->n_tasks_given ? MIN(j->n_req_nodes, j->n_tasks_given) : j->n_req_nodes;
    j->min_nodes_given = true;
}

static bool is_set(const struct job_more *m) {
    static const struct job_more nothing;
    return memcmp(m, &nothing, sizeof(nothing)) != 0;
}

bool job_ask_settle(struct job_ask *a) {
    struct job_spec *j = &a->spec;
    j->n_tasks = j->n_tasks_given;
    j->cpus_per_task = j->cpus_per_task_given;
    if (!job_ask_hostfile(a) || !expand(a, a->node_list, &j->req_nodes, &j->n_req_nodes) || !job_ask_dealt(a) ||
        !expand(a, a->exclude, &j->exc_nodes, &j->n_exc_nodes) || !settle_memory(a) || !job_shape_before(a) || !settle_gres(a) ||
        !job_shape_after(a) || !settle_licenses(a) || !settle_array(a) || !settle_sharing(a))
        return false;
    a->more.features = features_text(a, a->features);
    a->more.prefer = features_text(a, a->prefer);
    j->dependency = cli_sluids(a->c, j->dependency);
    fit_nodes(a);
    if (j->partition && !*j->partition) /* -p "" is no partition */
        j->partition = NULL;
    j->more = is_set(&a->more) ? &a->more : NULL;
    return true;
}
