/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/job_select.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/job_facts.h"

#define STATE_COMPLETING (1u << JOB_N_STATES)
#define STATE_CONFIGURING (1u << (JOB_N_STATES + 1))
#define STATE_STOPPED (1u << (JOB_N_STATES + 2))
#define STATE_SPECIAL (1u << (JOB_N_STATES + 3))
#define STATES_LIVE                                                                                                    \
    (1u << JOB_PENDING | 1u << JOB_RUNNING | 1u << JOB_SUSPENDED | STATE_COMPLETING | STATE_CONFIGURING | STATE_STOPPED | \
     STATE_SPECIAL)
#define STATE_NONE (1u << 31) /* a state of Slurm's that no job of ours is in */

/* What Slurm lists, and so takes. */
static const char valid_states[] =
    "pending,running,suspended,completed,cancelled,failed,timeout,node_fail,preempted,boot_fail,deadline,"
    "out_of_memory,completing,configuring,expediting,resizing,resv_del_hold,requeued,requeue_fed,requeue_hold,revoked,"
    "signaling,special_exit,stage_out,stopped";
static const char short_states[] = "EX,RS,RD,RQ,RF,RH,RV,SI,SO";

static bool is_listed(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncasecmp(at, word, n) == 0)
            return true;
    return false;
}

uint32_t job_states_parse(const char *list, const char **out_bad, struct cli *c) {
    uint32_t states = 0, n;
    const char *const *word = cli_words(c, list, ",", &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t state;
        if (strcasecmp(word[i], "all") == 0)
            states = ~0u;
        else if (job_state_parse(word[i], &state) == 0)
            states |= 1u << state;
        else if (is_listed(valid_states, word[i]) || is_listed(short_states, word[i]))
            states |= STATE_NONE;
        else {
            *out_bad = word[i];
            return 0;
        }
    }
    return states;
}

void job_select_init(struct job_select *s, struct cli *c) {
    *s = (struct job_select){.c = c};
}

bool job_select_states(struct job_select *s, const char *list) {
    s->states = STATES_LIVE;
    if (!list)
        return true;
    const char *bad = NULL;
    s->states = job_states_parse(list, &bad, s->c);
    if (!s->states && bad) {
        cli_error(s->c, "Invalid job state specified: %s", bad);
        cli_error(s->c, "Valid job states include: %s", valid_states);
        return false;
    }
    if (!s->states)
        s->states = STATES_LIVE;
    s->with_ended |= (s->states & ~STATES_LIVE) != 0;
    return true;
}

void job_select_names(struct job_select *s, const struct job_name *names, uint32_t n) {
    uint32_t *ids = arena_alloc(&s->c->arena, (n + 1) * sizeof(*ids));
    for (uint32_t i = 0; i < n; i++)
        ids[i] = names[i].target.job_id;
    s->names = names;
    s->n_names = s->n_ids = n;
    s->ids = ids;
}

bool job_select_ids(struct job_select *s, const char *list) {
    if (!list)
        return true;
    uint32_t n;
    const char *const *word = cli_job_words(s->c, list, &n);
    struct job_name *names = arena_alloc(&s->c->arena, (n + 1) * sizeof(*names));
    for (uint32_t i = 0; i < n; i++) {
        if (!cli_job_name(s->c, word[i], 0, &names[i])) {
            cli_error(s->c, "Invalid job id: %s", word[i]);
            return false;
        }
    }
    job_select_names(s, names, n);
    s->with_ended = true; /* so that one that is over is known */
    s->is_nothing |= !n;
    return true;
}

static void one_user(struct job_select *s, uint32_t uid) {
    struct passwd *pw = getpwuid(uid);
    s->one_user = pw ? arena_strdup(&s->c->arena, pw->pw_name) : NULL;
}

bool job_select_users(struct job_select *s, const char *list, bool me) {
    uint32_t n = 0, found = 0;
    if (!list && !me)
        return true;
    const char *const *word = list ? cli_words(s->c, list, ", ", &n) : NULL;
    uint32_t *uids = arena_alloc(&s->c->arena, (n + 1) * sizeof(*uids));
    for (uint32_t i = 0; i < n; i++) {
        if (cli_user(word[i], &uids[found]))
            found++;
        else
            cli_error(s->c, "Invalid user: %s", word[i]);
    }
    if (me)
        uids[found++] = geteuid();
    s->uids = uids;
    s->n_uids = found;
    s->is_nothing |= !found;
    if (found == 1)
        one_user(s, uids[0]);
    return true;
}

bool job_select_texts(struct job_select *s, enum job_select_text what, const char *list) {
    if (!list)
        return true;
    s->text[what].is_given = true;
    s->text[what].word = cli_words(s->c, list, ",", &s->text[what].n);
    return true;
}

bool job_select_nodes(struct job_select *s, const char *list) {
    struct err e = {0};
    if (!list)
        return true;
    if (hostlist_expand(list, &s->c->arena, &s->nodes, &s->n_nodes, &e)) {
        cli_error(s->c, "%s", e.text);
        return false;
    }
    s->is_nothing |= !s->n_nodes;
    return true;
}

static bool has_number(const uint32_t *list, uint32_t n, uint32_t x) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

static bool has_text(const struct job_select *s, enum job_select_text what, const char *text) {
    for (uint32_t i = 0; i < s->text[what].n; i++)
        if (text && str_eq(s->text[what].word[i], text))
            return true;
    return !s->text[what].is_given;
}

/* A job that waits may name several. */
static bool has_partition(const struct job_select *s, const struct job *j) {
    if (!s->text[JOB_SELECT_PARTITION].is_given)
        return true;
    auto_str names = {0};
    job_partition(j, &names);
    for (uint32_t i = 0; i < s->text[JOB_SELECT_PARTITION].n; i++)
        for (const char *at = str_text(&names); *at; at += strcspn(at, ","), at += *at == ',')
            if (strncmp(at, s->text[JOB_SELECT_PARTITION].word[i], strcspn(at, ",")) == 0 &&
                !s->text[JOB_SELECT_PARTITION].word[i][strcspn(at, ",")])
                return true;
    return false;
}

static bool has_node(const struct job_select *s, const struct job *j) {
    for (uint32_t i = 0; i < j->n_nodes; i++)
        for (uint32_t k = 0; k < s->n_nodes; k++)
            if (str_eq(j->nodes[i].name, s->nodes[k]))
                return true;
    return !s->n_nodes;
}

static uint32_t state_bits(const struct job *j) {
    if (j->completing)
        return STATE_COMPLETING;
    if (job_is_stopped(j))
        return STATE_STOPPED | 1u << JOB_RUNNING;
    if (j->state == JOB_PENDING && job_rare_of(j)->special_exit)
        return STATE_SPECIAL | 1u << JOB_PENDING; /* a mark of one that waits */
    return j->state == JOB_RUNNING && j->configuring ? STATE_CONFIGURING : 1u << j->state;
}

/* A record that stands for waiting tasks is meant where any of them is. */
static bool is_named(const struct job_select *s, const struct job *j) {
    for (uint32_t i = 0; i < s->n_names; i++) {
        const struct job_target *t = &s->names[i].target;
        if (!t->n_tasks && (t->job_id == j->id || (j->array && t->job_id == j->array->job_id)))
            return true;
        if (!t->n_tasks || !j->array || t->job_id != j->array->job_id)
            continue;
        if (j->array->task && array_has(t->tasks, t->n_tasks, j->array->task - 1))
            return true;
        for (uint32_t k = 0; k < t->n_tasks && !j->array->task; k++)
            for (uint32_t p = 0; p < j->array->n_pending; p++)
                if (t->tasks[k].first <= j->array->pending[p].last && t->tasks[k].last >= j->array->pending[p].first)
                    return true;
    }
    return s->n_names == 0;
}

static bool has_license(const struct job_select *s, const struct job *j) {
    const struct job_more *m = job_spec_more(j->spec);
    for (uint32_t i = 0; i < m->n_licenses; i++)
        if (has_text(s, JOB_SELECT_LICENSE, m->licenses[i].name))
            return true;
    return !s->text[JOB_SELECT_LICENSE].is_given;
}

bool job_selected(const struct job_select *s, const struct job_info *ji) {
    const struct job *j = ji->job;
    if (!j || !j->spec)
        return false;
    return (state_bits(j) & s->states) && (!s->only_pending || job_is_pending(j)) &&
           is_named(s, j) &&
           (!s->n_uids || has_number(s->uids, s->n_uids, j->spec->uid)) && has_partition(s, j) && has_node(s, j) &&
           has_text(s, JOB_SELECT_NAME, j->spec->name) && has_text(s, JOB_SELECT_ACCOUNT, j->spec->account) &&
           has_text(s, JOB_SELECT_QOS, j->spec->qos) && has_license(s, j) &&
           has_text(s, JOB_SELECT_RESERVATION, NULL) && /* no job is in one: there are none yet */
           (!s->not_me || j->spec->uid != geteuid());
}

/* Whether the whole of an array is meant, and not tasks of it. */
static bool is_whole(const struct job_select *s, const struct job_array *a) {
    for (uint32_t i = 0; i < s->n_names; i++)
        if (s->names[i].target.job_id == a->job_id && !s->names[i].target.n_tasks)
            return true;
    return s->n_names == 0;
}

static bool is_task_named(const struct job_select *s, const struct job_array *a, uint32_t task) {
    for (uint32_t i = 0; i < s->n_names; i++) {
        const struct job_target *t = &s->names[i].target;
        if (t->job_id == a->job_id && array_has(t->tasks, t->n_tasks, task))
            return true;
    }
    return false;
}

/* As if that task were a job of its own already. */
static void add_task(const struct job_select *s, const struct job_info *ji, uint32_t task, struct job_rows *out) {
    struct job_info row = *ji;
    struct job *j = arena_memdup(&s->c->arena, ji->job, sizeof(*j));
    struct job_array *a = arena_memdup(&s->c->arena, j->array, sizeof(*a));
    a->task = task + 1;
    a->pending = NULL;
    a->n_pending = 0;
    j->array = a;
    const struct job_more *more = job_spec_more(j->spec);
    if (a->first_id)
        j->id = a->first_id + array_rank(more->array_ranges, more->n_array_ranges, task);
    row.job = j;
    vec_push(&out->v, row);
}

void job_select_rows(const struct job_select *s, const struct job_info *ji, bool each_task, struct job_rows *out) {
    if (!job_selected(s, ji))
        return;
    const struct job_array *a = ji->job->array;
    bool is_whole_array = !a || a->task || is_whole(s, a);
    each_task |= a && a->first_id;
    if (!a || a->task || (!each_task && is_whole_array)) {
        vec_push(&out->v, *ji);
        return;
    }
    for (uint32_t i = 0; i < a->n_pending; i++)
        for (uint64_t task = a->pending[i].first; task <= a->pending[i].last; task++)
            if (is_whole_array || is_task_named(s, a, (uint32_t)task))
                add_task(s, ji, (uint32_t)task, out);
}

/* Merges runs of 1, 2, 4 … rows. */
void job_rows_sort(struct job_rows *rows, int (*compare)(const void *a, const void *b)) {
    size_t n = rows->v.n;
    struct job_info *from = rows->v.p, *to = n ? xcalloc(n, sizeof(*to)) : NULL;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = MIN(lo + width, n), hi = MIN(lo + 2 * width, n), i = lo, k = mid;
            for (size_t out = lo; out < hi; out++)
                to[out] = i < mid && (k >= hi || compare(&from[i], &from[k]) <= 0) ? from[i++] : from[k++];
        }
        struct job_info *swap = from;
        from = to;
        to = swap;
    }
    rows->v.p = from;
    if (n)
        rows->v.cap = n;
    free(to);
}
