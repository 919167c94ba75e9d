/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/client.h"

#include <stdio.h>

#include "base/mem.h"
#include "sim/ask.h"

#define CALL_MS 4000u

struct sclient {
    struct vclient v;
    struct judge *judge;
    char address[16];
    uint32_t n_reads;
};

/* Reads go to any member. */
static const char *whither(void *arg, struct vask *a) {
    struct sclient *c = arg;
    a->mark = judge_committed(c->judge);
    snprintf(c->address, sizeof(c->address), "ctl");
    if (a->method == WIRE_Controller_Jobs)
        snprintf(c->address, sizeof(c->address), "ctl%u", 1 + (unsigned)vworld_below(c->v.conf.world, c->judge->n_members));
    return c->address;
}

static void on_jobs(struct sclient *c, const struct vask *a, const struct jobs_reply *r) {
    c->n_reads++;
    judge_note(c->judge, "read at %llu, asked at %llu: %u jobs", (unsigned long long)r->index, (unsigned long long)a->mark, r->n_jobs);
    if (r->index < a->mark)
        judge_fail(c->judge, "a read shows entry %llu, but %llu was committed when it was asked", (unsigned long long)r->index,
                   (unsigned long long)a->mark);
}

static void answered(void *arg, struct vask *a, const void *reply, size_t n) {
    struct sclient *c = arg;
    auto_arena arena = {0};
    struct jobs_reply r;
    if (a->is_refused)
        return;
    if (a->method == WIRE_Controller_Submit)
        judge_note(c->judge, "submit answered: job %u after %u tries", a->job_id, a->tries);
    if (a->method != WIRE_Controller_Jobs)
        return;
    must(rec_decode(jobs_reply_rec(), reply, n, &arena, &r, NULL) == 0);
    on_jobs(c, a, &r);
}

void sclient_act(struct sclient *c) {
    static void (*const steers[])(struct vclient *) = {vclient_cancel, vclient_cancel, vclient_hold, vclient_requeue, vclient_suspend};
    if (vworld_chance(c->v.conf.world, 600))
        vclient_submit(&c->v);
    else
        steers[vworld_below(c->v.conf.world, ARRAY_LEN(steers))](&c->v);
}

void sclient_read(struct sclient *c) {
    vclient_ask(&c->v, WIRE_Controller_Jobs, &(struct jobs_request){.with_ended = true}, 0);
}

/* ---- life and the end ---- */

struct sclient *sclient_new(struct vworld *w, struct judge *j) {
    struct sclient *c = xnew(struct sclient);
    c->judge = j;
    vclient_init(&c->v, &(struct vclient_conf){.world = w, .call_ms = CALL_MS, .chance_long = 60, .long_ms = 60000, .short_ms = 4000,
                                               .chance_dependency = 100, .chance_hold = 30, .arg = c, .whither = whither,
                                               .answered = answered});
    return c;
}

void sclient_free(struct sclient *c) {
    vclient_fini(&c->v);
    free(c);
}

bool sclient_is_quiet(const struct sclient *c) {
    return c->v.n_open == 0;
}

uint32_t sclient_jobs(const struct sclient *c) {
    return (uint32_t)c->v.jobs.n;
}

uint32_t sclient_reads(const struct sclient *c) {
    return c->n_reads;
}

static bool ended_in_log(const struct judge *j, uint32_t job_id) {
    return map64_get(&j->roots, job_id);
}

void sclient_check(struct sclient *c, const struct vctl *ctl) {
    struct map64 roots = {0};
    struct view v;
    const struct job *j;
    state_peek(ctl->room.state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        map64_put(&roots, j->array ? j->array->job_id : j->id, (void *)1);
    size_t cursor = 0;
    uint64_t id;
    void *value;
    while (map64_next(&c->judge->roots, &cursor, &id, &value))
        map64_put(&roots, id, (void *)1);
    for (size_t i = 0; i < c->v.jobs.n; i++) {
        if (!map64_get(&roots, c->v.jobs.p[i]) && !ended_in_log(c->judge, c->v.jobs.p[i]))
            judge_fail(c->judge, "job %u was acknowledged and is nowhere", c->v.jobs.p[i]);
        for (size_t k = 0; k < i; k++)
            if (c->v.jobs.p[k] == c->v.jobs.p[i])
                judge_fail(c->judge, "two submits were answered with job %u", c->v.jobs.p[i]);
    }
    if (roots.n != c->v.jobs.n)
        judge_fail(c->judge, "%zu jobs and arrays of %zu submits: one token made two", roots.n, c->v.jobs.n);
    map64_fini(&roots);
}
