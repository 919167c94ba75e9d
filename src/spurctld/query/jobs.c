/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/sched/priority.h"
#include "spurctld/plan/plan.h"
#include "spurctld/query/query.h"

struct width {
    const struct part *part;
    uint32_t cpus;
};

struct asking {
    struct room *room;
    struct who who;
    struct view view;
    struct arena arena;
    struct jobs_request req;
    struct plan_notes *notes;
    VEC(struct width) widths;
    int64_t now_unix;
    struct priority_scale scale; /* scale_of() */
    bool has_scale;
    bool hides; /* jobs of hidden partitions are left out */
    int code;
    struct err why;
    struct buf reply;
    query_fn done;
    void *arg;
};

static bool is_whose(const struct who *who, const struct job *j) {
    return who->is_admin || (who->uid == j->spec->uid && (who->is_proven || who->uid != 0));
}

const struct job *query_visible(const struct who *who, const struct job *j, struct arena *a, bool *out_is_yours) {
    *out_is_yours = is_whose(who, j);
    if (*out_is_yours)
        return j;
    struct job *copy = arena_memdup(a, j, sizeof(*j));
    struct job_spec *spec = arena_memdup(a, j->spec, sizeof(*spec));
    spec->script_hash = spec->env_hash = NULL;
    spec->n_script_hash = spec->n_env_hash = 0;
    copy->spec = spec;
    return copy;
}

const char *const *query_words(struct arena *a, const char *const *words, uint32_t n) {
    const char **out = arena_calloc(a, n + 1, sizeof(*out));
    for (uint32_t i = 0; i < n; i++)
        out[i] = arena_strdup(a, words[i]);
    return out;
}

const struct step *query_steps(const struct view *v, const struct job *j, bool with_ended, struct arena *a,
                               uint32_t *out_n) {
    VEC(struct step) list = {0};
    const struct step *st;
    for (uint64_t k = step_key(j->id, 0); (st = view_next_step(v, &k)) && st->job_id == j->id; k++)
        if (str_eq(st->sluid, j->sluid) && (with_ended || !step_is_over(st))) /* else of an earlier life */
            vec_push(&list, *st);
    const struct step *out = arena_memdup(a, list.p, list.n * sizeof(*list.p));
    *out_n = (uint32_t)list.n;
    vec_fini(&list);
    return out;
}

/* CPUs of the largest node of a partition; looked up once for each. */
static uint32_t widest(struct asking *q, const char *names) {
    char name[256];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(names, ","), names);
    for (size_t i = 0; i < q->widths.n; i++)
        if (str_eq(q->widths.p[i].part->name, name))
            return q->widths.p[i].cpus;
    const struct part *part = view_find_part(&q->view, name);
    struct width w = {part, 0};
    const struct node *n;
    for (uint64_t k = 0; part && (n = view_next_node(&q->view, &k)); k++)
        if (n->cpus > w.cpus && part_has_node(part, n))
            w.cpus = n->cpus;
    if (part)
        vec_push(&q->widths, w);
    return w.cpus;
}

static uint32_t least_nodes(struct asking *q, const struct job *j) {
    const struct job_spec *s = j->spec;
    uint64_t cpus = (uint64_t)s->n_tasks * MAX(s->cpus_per_task, 1u);
    uint32_t width = cpus > 1 && s->partition ? widest(q, s->partition) : 0;
    uint64_t by_cpus = width ? (cpus + width - 1) / width : 1;
    return (uint32_t)MAX(MIN(by_cpus, (uint64_t)MAX(s->n_tasks, 1u)), (uint64_t)MAX(s->min_nodes, 1u));
}

/* The names are taken from this view: the plan is of an older one. */
static void add_detail(struct asking *q, uint32_t job_id, struct job_info *info) {
    const struct sched_detail *d = plan_detail(q->notes, job_id);
    if (!d)
        return;
    info->reason_text = d->text;
    const char **names = arena_calloc(&q->arena, d->n_nodes + 1, sizeof(*names));
    for (uint32_t i = 0; d->nodes && i < d->n_nodes; i++) {
        const struct node *n = view_node(&q->view, d->nodes[i].node_id);
        if (n)
            names[info->n_promised_nodes++] = n->name;
    }
    info->promised_nodes = names;
}

/* Looks at every node, so once for all jobs that need it. */
static const struct priority_scale *scale_of(struct asking *q) {
    if (!q->has_scale)
        priority_scale_of(&q->view, &q->scale);
    q->has_scale = true;
    return &q->scale;
}

static void add_parts(struct asking *q, const struct job *j, struct job_info *info) {
    VEC(struct priority_parts) list = {0};
    for (const char *at = j->spec->partition; at && *at;) {
        char *name = arena_strndup(&q->arena, at, strcspn(at, ","));
        const struct part *part = view_find_part(&q->view, name);
        struct priority_points p;
        uint64_t sum = priority_points_of(scale_of(q), j, part ? priority_factor(part) : 0, q->now_unix, &p);
        vec_push(&list, ((struct priority_parts){name, sum, p.age, p.size, p.partition, p.nice, p.is_set}));
        at += strcspn(at, ",");
        at += *at == ',';
    }
    info->parts = arena_memdup(&q->arena, list.p, list.n * sizeof(*list.p));
    info->n_parts = (uint32_t)list.n;
    vec_fini(&list);
}

/* What a list leaves out is a third of a plain job, and no list shows it. */
static const struct job *for_list(struct asking *q, const struct job *j) {
    struct job *copy = arena_memdup(&q->arena, j, sizeof(*j));
    struct job_spec *spec = arena_memdup(&q->arena, j->spec, sizeof(*spec));
    spec->rlimits = NULL;
    spec->n_rlimits = 0;
    spec->script_hash = spec->env_hash = NULL;
    spec->n_script_hash = spec->n_env_hash = 0;
    copy->spec = spec;
    return copy;
}

static struct job_info info_of(struct asking *q, const struct job *j) {
    const struct sched_note *note = j->state == JOB_PENDING ? plan_note(q->notes, j->id) : NULL;
    struct job_info info = {.reason = j->reason};
    info.least_nodes = j->state == JOB_PENDING ? least_nodes(q, j) : 0;
    info.is_yours = is_whose(&q->who, j);
    /* what a list leaves out is more than what others may not see: one copy does for both */
    info.job = q->req.n_job_ids ? query_visible(&q->who, j, &q->arena, &info.is_yours) : for_list(q, j);
    info.job = query_in_parts(&q->view, info.job, &q->arena);
    if (q->req.with_parts && j->state == JOB_PENDING)
        add_parts(q, j, &info);
    info.limit_min = j->time_limit_min ? 0 : sched_time_limit(&q->view, j);
    if (q->req.with_steps && j->start_no)
        info.steps = query_steps(&q->view, j, q->req.with_ended, &q->arena, &info.n_steps);
    if (note) {
        if (!j->hold && note->reason)
            info.reason = note->reason;
        info.expected_start_unix = note->expected_start_unix;
        info.priority = note->priority;
        if (!j->hold)
            add_detail(q, j->id, &info);
    } else if (j->state == JOB_PENDING) {
        info.priority = priority_in(scale_of(q), &q->view, j, q->now_unix);
    } else { /* as it was when it began, as Slurm keeps it */
        info.priority = j->hold ? 0 : priority_in(scale_of(q), &q->view, j, j->start_ms ? j->start_ms / 1000 : q->now_unix);
    }
    return info;
}

static bool any_hidden(const struct view *v) {
    const struct part *p;
    for (uint64_t k = 0; (p = view_next_part(v, &k)); k++)
        if (p->hidden)
            return true;
    return false;
}

/* In hidden partitions only. */
static bool is_hidden(const struct asking *q, const struct job *j) {
    const char *at = j->partition ? j->partition : j->spec->partition;
    if (!at || !*at)
        return false;
    while (*at) {
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
        const struct part *p = view_find_part(&q->view, name);
        if (!p || !p->hidden)
            return false;
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return true;
}

static bool fits(const struct asking *q, const struct job *j) {
    if (q->hides && is_hidden(q, j))
        return false;
    return (q->req.with_ended || !job_is_over(j)) && (!q->req.user || str_eq(q->req.user, j->spec->user));
}

static int compare_ids(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

typedef VEC(struct job_info) infos;

/* Named jobs are shown in whatever state they are; ids that are not there are left out of a longer list. */
static void add_named(struct asking *q, const struct job *j, infos *out) {
    if (j && (!q->req.user || str_eq(q->req.user, j->spec->user)))
        vec_push(out, info_of(q, j));
}

static bool is_array(const struct view *v, uint32_t id) {
    const struct job *j = view_job(v, id);
    return j && j->array && j->array->job_id == id;
}

static bool names_array(const struct asking *q) {
    for (uint32_t i = 0; i < q->req.n_job_ids; i++)
        if (is_array(&q->view, q->req.job_ids[i]))
            return true;
    return false;
}

/* An array's id means all of its tasks, which have ids of their own. */
static void by_search(struct asking *q, const uint32_t *ids, uint32_t n, infos *out) {
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(&q->view, &k)); k++)
        if (bsearch(&j->id, ids, n, sizeof(*ids), compare_ids) ||
            (j->array && bsearch(&j->array->job_id, ids, n, sizeof(*ids), compare_ids)))
            add_named(q, j, out);
}

static void by_ids(struct asking *q, infos *out) {
    uint32_t n = q->req.n_job_ids;
    uint32_t *ids = arena_memdup(&q->arena, q->req.job_ids, n * sizeof(*ids));
    qsort(ids, n, sizeof(*ids), compare_ids);
    if (names_array(q))
        by_search(q, ids, n, out);
    else
        for (uint32_t i = 0; i < n; i++)
            if (!i || ids[i] != ids[i - 1])
                add_named(q, view_job(&q->view, ids[i]), out);
    if (!out->n && n == 1)
        q->code = err_set(&q->why, E_JOB_ID, NULL);
}

static void by_sluids(struct asking *q, infos *out) {
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(&q->view, &k)); k++)
        for (uint32_t i = 0; i < q->req.n_sluids; i++)
            if (str_eq(j->sluid, q->req.sluids[i]))
                add_named(q, j, out);
}

static void work(void *arg) {
    struct asking *q = arg;
    infos list = {0};
    const struct job *j;
    if (q->req.n_job_ids)
        by_ids(q, &list);
    else if (q->req.n_sluids)
        by_sluids(q, &list);
    else
        for (uint64_t k = 0; (j = view_next_job(&q->view, &k)); k++)
            if (fits(q, j))
                vec_push(&list, info_of(q, j));
    const struct rconf *conf = q->view.cluster->conf;
    struct priority_weights weights = {0};
    if (q->req.with_parts && conf)
        weights = (struct priority_weights){conf->weight_age, conf->weight_job_size, conf->weight_partition};
    struct jobs_reply reply = {list.p, (uint32_t)list.n, q->view.index, q->now_unix, conf ? conf->cluster_name : NULL,
                               conf ? conf->interval_secs : 0, q->req.with_parts ? &weights : NULL};
    if (!q->code)
        rec_encode(jobs_reply_rec(), &reply, &q->reply);
    vec_fini(&list);
}

static void done(void *arg) {
    struct asking *q = arg;
    q->done(q->arg, q->code, &q->why, q->reply.p, q->reply.n);
    state_view_end(&q->view);
    vec_fini(&q->widths);
    arena_fini(&q->arena);
    buf_fini(&q->reply);
    plan_notes_drop(q->notes);
    free(q);
}

void query_jobs(struct room *r, const struct who *who, const struct jobs_request *req, query_fn fn, void *arg) {
    struct asking *q = xnew(struct asking);
    *q = (struct asking){.room = r, .who = *who, .done = fn, .arg = arg, .now_unix = room_now_unix(r)};
    q->req = *req;
    q->req.user = arena_strdup(&q->arena, req->user);
    q->req.sluids = query_words(&q->arena, req->sluids, req->n_sluids);
    q->req.job_ids = arena_memdup(&q->arena, req->job_ids, req->n_job_ids * sizeof(*req->job_ids));
    state_view(r->state, &q->view);
    q->hides = !req->show_hidden && !(who->is_admin && who->uid == 0) && any_hidden(&q->view);
    q->notes = plan_notes_take(r->plan);
    if (req->n_job_ids == 1 && !names_array(q)) { /* not worth a thread */
        work(q);
        done(q);
        return;
    }
    r->host->work(r->host->impl, work, done, q);
}
