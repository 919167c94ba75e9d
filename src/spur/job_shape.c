/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that few jobs have, as sbatch, srun and salloc share them: what each node must have, what goes with a GPU or a
 * task, and what is kept to be shown.
 */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "core/model/mail.h"
#include "spur/job_ask.h"

#define ASK(r) ((struct job_ask *)(r)->ctx)
#define SELDOM(r) (&ASK(r)->seldom)
#define SWITCHES_WAIT_SECS 300u /* Slurm's max_switch_wait */

int ask_tmp(struct opt_run *r, const struct opt_row *o, const char *value) {
    return size_mb_parse(value, &SELDOM(r)->tmp_mb) ? opt_bad_value(r, o) : 0;
}

/* A number, or the lower end of a range; "*" is any. */
static bool least(const char *text, size_t n, uint32_t *out) {
    char word[32];
    uint64_t min, max;
    if (!n || n >= sizeof(word))
        return false;
    memcpy(word, text, n);
    word[n] = 0;
    char *dash = strchr(word, '-');
    if (dash)
        *dash = 0;
    if (str_eq(word, "*") && !dash) {
        *out = 0;
        return true;
    }
    if (count_parse(word, INT32_MAX, &min) || !min || (dash && (count_parse(dash + 1, INT32_MAX, &max) || max < min)))
        return false;
    *out = (uint32_t)min;
    return true;
}

int ask_at_least(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (least(value, strlen(value), (uint32_t *)((char *)r->ctx + o->off)))
        return 0;
    return opt_bad(r, 1, "Invalid numeric value \"%s\" for --%s.", value, o->name);
}

/* One thread of each core is not only a least number: the others stay idle. */
int ask_threads(struct opt_run *r, const struct opt_row *o, const char *value) {
    if (!least(value, strlen(value), &SELDOM(r)->threads))
        return opt_bad(r, 1, "Invalid numeric value \"%s\" for --%s.", value, o->name);
    SELDOM(r)->one_thread = SELDOM(r)->threads == 1;
    return 0;
}

int ask_extra_info(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct job_seldom *s = SELDOM(r);
    uint32_t *const to[] = {&s->sockets, &s->cores, &s->threads};
    const char *at = value;
    for (size_t i = 0; i < ARRAY_LEN(to); i++) {
        size_t n = strcspn(at, ":");
        if (!least(at, n, to[i]) || (at[n] && i + 1 == ARRAY_LEN(to)))
            return opt_bad(r, r->table->usage_exit, "invalid resource allocation -B `%s'", value);
        if (!at[n])
            break;
        at += n + 1;
    }
    s->one_thread = s->threads == 1;
    ASK(r)->is_shaped = true;
    return 0;
}

static const char hint_help[] =
    "Application hint options:\n"
    "    --hint=             Bind tasks according to application hints\n"
    "        compute_bound   use all cores in each socket\n"
    "        memory_bound    use only one core in each socket\n"
    "        [no]multithread [don't] use extra threads with in-core multi-threading\n"
    "        help            show this help message\n";

/* Three of them are for codes that one thread of a core is enough for. */
int ask_hint(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const char *const one[] = {"compute_bound", "memory_bound", "nomultithread"};
    if (strcasecmp(value, "help") == 0) {
        str_add(&r->out, hint_help);
        r->exit_code = 0;
        return -1;
    }
    bool is_known = strcasecmp(value, "multithread") == 0;
    SELDOM(r)->one_thread = str_is_one_of(value, strlen(value), one, ARRAY_LEN(one));
    if (is_known || SELDOM(r)->one_thread)
        return 0;
    return opt_bad(r, 1, "unrecognized --hint argument \"%s\", see --hint=help", value);
}

int ask_mail_type(struct opt_run *r, const struct opt_row *o, const char *value) {
    return mail_type_parse(value, &SELDOM(r)->mail_type) ? opt_bad_value(r, o) : 0;
}

/* "1", "1@10:00" */
int ask_switches(struct opt_run *r, const struct opt_row *o, const char *value) {
    size_t n = strcspn(value, "@");
    int64_t secs = SWITCHES_WAIT_SECS;
    uint64_t count;
    autofree char *number = xstrndup(value, n);
    if (count_parse(number, INT32_MAX, &count) || !count)
        return opt_bad(r, 1, "Invalid numeric value \"%s\" for --%s.", value, o->name);
    uint32_t mins;
    if (value[n] && time_limit_parse(value + n + 1, &mins))
        return opt_bad_value(r, o);
    if (value[n]) {
        const char *colon = strrchr(value + n, ':');
        uint64_t rest = 0;
        bool has_secs = colon && !str_to_u64(colon + 1, 59, &rest);
        secs = mins == TIME_LIMIT_NONE ? secs : (int64_t)mins * 60 - (has_secs && rest ? 60 - (int64_t)rest : 0);
    }
    SELDOM(r)->switches = (uint32_t)count;
    SELDOM(r)->switches_secs = (uint32_t)MIN(secs, (int64_t)SWITCHES_WAIT_SECS);
    return 0;
}

/* ---- all together ---- */

static bool refuse_tres(const struct job_ask *a) {
    cli_error(a->c, "%s: Invalid Trackable RESource (TRES) specification", a->refused ? a->refused : "Batch job submission failed");
    return false;
}

static bool add_task_gpus(struct job_ask *a, const char *text) {
    if (a->gpus_per_task)
        return false;
    a->gpus_per_task = text;
    return true;
}

/* "cpu=2,gres/gpu=1": CPUs as -c, GPUs as --gpus-per-task. */
bool job_shape_before(struct job_ask *a) {
    uint32_t n;
    uint64_t count;
    if (!a->tres_per_task || !*a->tres_per_task)
        return true;
    const char *const *word = cli_words(a->c, a->tres_per_task, ",", &n);
    for (uint32_t i = 0; i < n; i++) {
        const char *equals = strrchr(word[i], '=');
        equals = equals ? equals : strrchr(word[i], ':');
        if (!equals || count_parse(equals + 1, INT32_MAX, &count) || !count)
            return refuse_tres(a);
        if (str_starts(word[i], "cpu") && equals == word[i] + 3) {
            if (a->spec.cpus_per_task_given) {
                cli_say(a->c, "fatal: --cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive");
                return false;
            }
            a->spec.cpus_per_task_given = a->spec.cpus_per_task = (uint32_t)count;
        } else if (str_starts(word[i], "gres/gpu") && (word[i][8] == ':' || word[i] + 8 == equals)) {
            const char *type = word[i] + 8 < equals ? word[i] + 9 : NULL;
            if (!add_task_gpus(a, type ? arena_printf(&a->c->arena, "%.*s:%llu", (int)(equals - type), type, (unsigned long long)count)
                                       : arena_printf(&a->c->arena, "%llu", (unsigned long long)count)))
                return refuse_tres(a);
        } else {
            return refuse_tres(a);
        }
    }
    a->seldom.tres_per_task = a->tres_per_task;
    return true;
}

static bool has_gpus(const struct job_more *m) {
    for (uint32_t i = 0; i < m->n_gres; i++)
        if (str_eq(m->gres[i].name, "gpu") && m->gres[i].count)
            return true;
    return false;
}

static bool without_gpus(const struct job_ask *a, const char *what, uint64_t n) {
    cli_error(a->c, "Requested %s=gres/gpu:%llu but did not request any GPU.", what, (unsigned long long)n);
    cli_error(a->c, "%s", err_sentence(E_GRES));
    return false;
}

/* -B says how many tasks there are, where nothing else does. */
static void tasks_of_shape(struct job_ask *a) {
    const struct job_seldom *s = &a->seldom;
    if (!a->is_shaped || !s->sockets || a->spec.n_tasks_given || (a->spec.max_nodes && a->spec.max_nodes != a->spec.min_nodes))
        return;
    uint64_t tasks = (uint64_t)MAX(a->spec.min_nodes, 1u) * s->sockets * MAX(s->cores, 1u) * (s->cores ? MAX(s->threads, 1u) : 1u);
    a->spec.n_tasks = a->spec.n_tasks_given = (uint32_t)MIN(tasks, (uint64_t)INT32_MAX);
}

bool job_shape_after(struct job_ask *a) {
    struct job_seldom *s = &a->seldom;
    static const struct job_seldom nothing;
    if (s->cpus_per_gpu && a->spec.cpus_per_task_given) {
        cli_say(a->c, "fatal: --cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive");
        return false;
    }
    if (s->cpus_per_gpu && !has_gpus(&a->more))
        return without_gpus(a, "cpus_per_tres", s->cpus_per_gpu);
    if (s->mem_gpu_mb && !has_gpus(&a->more))
        return without_gpus(a, "mem_per_tres", s->mem_gpu_mb);
    tasks_of_shape(a);
    a->more.seldom = memcmp(s, &nothing, sizeof(nothing)) ? s : NULL;
    return true;
}
