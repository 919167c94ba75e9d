/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol top: jobs go before the others of the same user, partition, account and QOS. As in Slurm this is done by their
 * nice values: the jobs share out the priorities that they have together anew, so that nobody else's job waits longer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spur/scontrol.h"

static int by_priority(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

void top_order(struct top_job *list, size_t n) {
    uint64_t *had = xcalloc(n + 1, sizeof(*had)), before = 0;
    for (size_t i = 0; i < n; i++)
        had[i] = list[i].priority;
    qsort(had, n, sizeof(*had), by_priority);
    for (size_t i = 0; i < n; i++) {
        uint64_t now = had[i];
        /* equal ones come in the order of their ids, which is not the order wanted of those that go first */
        bool is_behind_first = i && list[i - 1].is_first;
        if (i && now >= before)
            now = is_behind_first && before ? before - 1 : before;
        list[i].nice += (int64_t)(list[i].priority - now);
        before = now;
    }
    free(had);
}

static bool is_named(const struct scontrol_targets *t, uint32_t id, size_t *out_place) {
    for (size_t i = 0; i < t->v.n; i++)
        if (t->v.p[i].job_id == id) {
            *out_place = i;
            return true;
        }
    return false;
}

static const struct job *find(const struct jobs_reply *all, uint32_t id) {
    for (uint32_t i = 0; i < all->n_jobs; i++)
        if (all->jobs[i].job && all->jobs[i].job->spec && all->jobs[i].job->id == id)
            return all->jobs[i].job;
    return NULL;
}

static bool is_of_set(const struct job *j, const struct job *like) {
    return j->state == JOB_PENDING && !j->completing && !job_is_hollow(j) && !j->hold && !job_rare_of(j)->priority_set &&
           j->spec->uid == like->spec->uid && str_eq(j->spec->partition, like->spec->partition) &&
           str_eq(j->spec->account, like->spec->account) && str_eq(j->spec->qos, like->spec->qos);
}

/* As they come now: by priority, then by id. */
static int as_they_come(const void *a, const void *b) {
    const struct top_job *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? 1 : -1;
    return x->job_id < y->job_id ? -1 : x->job_id > y->job_id;
}

/* Those that are named first, in the order of their names, then the others. */
static size_t collect(struct scontrol *s, const struct jobs_reply *all, const struct scontrol_targets *t, const struct job *like,
                      struct top_job **out) {
    struct top_job *list = arena_calloc(&s->c->arena, all->n_jobs + t->v.n + 1, sizeof(*list));
    size_t n = 0, place;
    for (size_t i = 0; i < t->v.n; i++)
        for (uint32_t k = 0; k < all->n_jobs; k++) {
            const struct job *j = all->jobs[k].job;
            if (j && j->spec && j->id == t->v.p[i].job_id && (is_of_set(j, like) || j == like))
                list[n++] = (struct top_job){j->id, all->jobs[k].priority, j->nice, true};
        }
    size_t first = n;
    for (uint32_t k = 0; k < all->n_jobs; k++) {
        const struct job *j = all->jobs[k].job;
        if (j && j->spec && is_of_set(j, like) && !is_named(t, j->id, &place))
            list[n++] = (struct top_job){j->id, all->jobs[k].priority, j->nice, false};
    }
    qsort(list + first, n - first, sizeof(*list), as_they_come);
    *out = list;
    return n;
}

static int by_id(const void *a, const void *b) {
    const struct job_nice *x = a, *y = b;
    return x->job_id < y->job_id ? -1 : x->job_id > y->job_id;
}

static int fail(const char *text, uint32_t job_id) {
    fprintf(stderr, "%s for job %u\n", text, job_id);
    return 1;
}

static int send(struct scontrol *s, const struct top_job *list, size_t n, const struct scontrol_targets *named) {
    struct job_spec spec = {0};
    struct job_more more = {0};
    struct results reply = {0};
    struct err e = {0};
    uint8_t token[TOKEN_SIZE];
    size_t place;
    struct job_nice *nice = arena_calloc(&s->c->arena, n + 1, sizeof(*nice));
    struct job_target *target = arena_calloc(&s->c->arena, n + 1, sizeof(*target));
    for (size_t i = 0; i < n; i++)
        nice[i] = (struct job_nice){list[i].job_id, list[i].nice};
    qsort(nice, n, sizeof(*nice), by_id);
    for (size_t i = 0; i < n; i++)
        target[i].job_id = nice[i].job_id;
    spur_token(token);
    spec.more = &more;
    struct update_request request = {.token = token, .n_token = sizeof(token), .targets = target, .n_targets = (uint32_t)n,
                                     .changes = CHANGE_NICE, .spec = &spec, .nices = nice, .n_nices = (uint32_t)n};
    if (cli_call(s->c, WIRE_Controller_Update, &request, &reply, &e))
        return fail(e.text, named->v.p[0].job_id);
    for (uint32_t i = 0; i < reply.n_results; i++) {
        const struct job_result *r = &reply.results[i];
        if (r->error && is_named(named, r->job_id, &place))
            return fail(r->text && *r->text ? r->text : err_sentence(-(int)r->error), r->job_id);
    }
    return 0;
}

static int top(struct scontrol *s, const struct scontrol_targets *named) {
    struct jobs_request request = {0};
    struct jobs_reply all = {0};
    struct err e = {0};
    struct top_job *list;
    if (cli_call(s->c, WIRE_Controller_Jobs, &request, &all, &e)) {
        fprintf(stderr, "slurm_load_jobs error: %s\n", e.text);
        return 1;
    }
    for (size_t i = 0; i < named->v.n; i++) {
        const struct job *j = find(&all, named->v.p[i].job_id);
        if (!j)
            return fail(err_sentence(E_JOB_ID), named->v.p[i].job_id);
        if (j->state != JOB_PENDING)
            return fail(err_sentence(E_JOB_NOT_PENDING), j->id);
    }
    size_t n = collect(s, &all, named, find(&all, named->v.p[0].job_id), &list);
    top_order(list, n);
    return send(s, list, n, named);
}

int scontrol_top(struct scontrol *s) {
    struct scontrol_targets named = {0};
    if (!s->n) {
        fprintf(stderr, "too few arguments for keyword:top\n");
        return 1;
    }
    int rc = 1;
    if (!scontrol_targets_add(s, s->word[0], &named) || !named.v.n)
        fprintf(stderr, "%s for job %s\n", err_sentence(E_JOB_ID), s->word[0]);
    else
        rc = top(s, &named);
    vec_fini(&named.v);
    return rc;
}
