/* SPDX-License-Identifier: Apache-2.0
 *
 * What an array's own record counts, and the index of its other records. Both follow from the records that are put, so
 * that no command can forget them: a record's part in the counters is a function of the record, and what changes of it is
 * added to the array's own record. A record that leaves the state leaves its part behind.
 */
#include "base/mem.h"
#include "core/state/inside.h"

struct tally {
    int64_t begun, over, bad;
};

uint32_t job_n_tasks(const struct job *j) {
    return job_is_group(j) ? array_count(j->array->pending, j->array->n_pending) : 1;
}

bool job_has_begun(const struct job *j) {
    return j->state != JOB_PENDING && !(j->state == JOB_RUNNING && j->configuring);
}

static struct tally tally_of(const struct job *j) {
    if (!j)
        return (struct tally){0};
    int64_t n = job_n_tasks(j);
    bool over = job_is_over(j);
    return (struct tally){.begun = job_has_begun(j) ? n : 0,
                         .over = over ? n : 0,
                         .bad = over && j->state != JOB_COMPLETED ? n : 0};
}

static void count_running(struct state *s, const struct job *j, int by) {
    if (j && job_holds_nodes(j))
        idset_make(&s->arrays, j->array->job_id)->count += by > 0 ? 1u : -1u;
}

static void put(struct state *s, const struct job *j) {
    cow_put(&s->jobs, j->id, rec_pack(job_rec(), j));
}

/* The counters are of this function alone: those in `head`, a copy that may be old, are not looked at. */
static void put_head(struct state *s, const struct job *head, const struct job *old, struct tally d) {
    struct job j = *head;
    struct job_array a = *j.array;
    if (old) {
        a.n = old->array->n;
        a.begun = old->array->begun;
        a.over = old->array->over;
        a.bad = old->array->bad;
    }
    a.begun += (uint32_t)d.begun;
    a.over += (uint32_t)d.over;
    a.bad += (uint32_t)d.bad;
    j.array = &a;
    put(s, &j);
}

void arrays_put(struct state *s, const struct job *old, const struct job *j) {
    struct tally was = tally_of(old), is = tally_of(j);
    struct tally d = {is.begun - was.begun, is.over - was.over, is.bad - was.bad};
    uint32_t head_id = j->array->job_id;
    if (!old || job_holds_nodes(old) != job_holds_nodes(j)) {
        count_running(s, old, -1);
        count_running(s, j, 1);
    }
    if (j->id == head_id) {
        put_head(s, j, old, d);
        return;
    }
    put(s, j);
    if (!old)
        idset_add(&s->arrays, head_id, j->id);
    if (d.begun || d.over || d.bad) {
        const struct job *head = state_job(s, head_id);
        must(head);
        put_head(s, head, head, d);
    }
}

void arrays_derive(struct state *s, const struct job *j) {
    if (j->id != j->array->job_id)
        idset_add(&s->arrays, j->array->job_id, j->id);
    count_running(s, j, 1);
}

void arrays_del(struct state *s, const struct job *j) {
    if (j->id == j->array->job_id)
        idset_drop(&s->arrays, j->id);
    else
        idset_del(&s->arrays, j->array->job_id, j->id);
}
