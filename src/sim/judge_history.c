/* SPDX-License-Identifier: Apache-2.0
 *
 * At the end of a run: the log is applied once more to a fresh state, and what ended in it is compared with what each member
 * wrote to its history, and with what the agents saw.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sim/judge.h"

struct row {
    uint32_t id, n;
    char sluid[16];
    void *job; /* packed, as it ended */
};

struct rows {
    struct judge *judge;
    const struct smember *member;
    VEC(struct row) v;
    struct map64 by_sluid; /* hash → place + 1 */
};

static uint64_t key_of(uint32_t id, const char *sluid) {
    uint64_t k = id;
    for (const char *p = sluid; *p; p++)
        k = k * 1000003u ^ (uint8_t)*p;
    return k;
}

static void add_row(struct rows *r, const struct job *j) {
    struct row row = {.id = j->id, .job = rec_pack(job_rec(), j)};
    snprintf(row.sluid, sizeof(row.sluid), "%s", j->sluid);
    vec_push(&r->v, row);
    map64_put(&r->judge->roots, j->array ? j->array->job_id : j->id, (void *)1);
    if (map64_put(&r->by_sluid, key_of(j->id, j->sluid), (void *)(uintptr_t)r->v.n))
        judge_fail(r->judge, "job %u (%s) ended twice", j->id, j->sluid);
}

static void replay(struct rows *r) {
    struct judge *j = r->judge;
    struct state *s = state_new();
    struct applied a = {0};
    for (size_t i = 0; i < j->log.n; i++) {
        const struct committed *c = &j->log.p[i];
        struct view v;
        if (state_apply(s, c->index, c->bytes.p, c->bytes.n, &a, NULL))
            judge_fail(j, "entry %llu can't be applied again", (unsigned long long)c->index);
        if (state_digest(s) != c->digest)
            judge_fail(j, "entry %llu applied again: another digest", (unsigned long long)c->index);
        state_peek(s, &v);
        for (size_t k = 0; k < a.lives.n; k++)
            add_row(r, a.lives.p[k]);
        for (size_t k = 0; k < a.events.n; k++) {
            const struct job *job = a.events.p[k].kind == EV_JOB_OVER ? view_job(&v, a.events.p[k].job_id) : NULL;
            if (job) /* tasks that never ran may leave none */
                add_row(r, job);
        }
    }
    applied_fini(&a);
    state_free(s);
}

/* An array's own record counts on when it is over itself. */
static bool is_same(const struct job *a, const struct job *b) {
    if (!a->array || a->id != a->array->job_id)
        return rec_same(job_rec(), a, b);
    return a->state == b->state && a->end_ms == b->end_ms && a->wait_status == b->wait_status && a->start_no == b->start_no;
}

static void match_row(void *arg, const struct job *j) {
    struct rows *r = arg;
    uintptr_t at = (uintptr_t)map64_get(&r->by_sluid, key_of(j->id, j->sluid));
    if (!at)
        judge_fail(r->judge, "member %u: job %u is in the history and never ended", smember_id(r->member), j->id);
    struct row *row = &r->v.p[at - 1];
    if (row->n++)
        judge_fail(r->judge, "member %u: job %u is twice in the history", smember_id(r->member), j->id);
    if (!is_same(row->job, j))
        judge_fail(r->judge, "member %u: job %u is in the history as it never was", smember_id(r->member), j->id);
}

/* What is told of an end is what has happened. */
static void check_truth(const struct judge *judge, const struct job *j) {
    uint32_t n = 0, status = 0;
    if (j->state != JOB_COMPLETED && (j->state != JOB_FAILED || (j->wait_status & 0x7f)))
        return;
    for (size_t k = 0; k < judge->ends.n; k++)
        if (judge->ends.p[k].job_id == j->id && judge->ends.p[k].start_no == j->start_no) {
            n++;
            status = judge->ends.p[k].wait_status;
        }
    if (n != 1 || status != j->wait_status)
        judge_fail(judge, "job %u start %u is said to have ended with %#x; its script ended %u times, with %#x", j->id,
                   j->start_no, j->wait_status, n, status);
}

void judge_history(struct judge *judge) {
    struct rows r = {.judge = judge};
    replay(&r);
    for (size_t i = 0; i < r.v.n; i++)
        check_truth(judge, r.v.p[i].job);
    for (uint32_t m = 0; m < judge->n_members; m++) {
        r.member = judge->members[m];
        if (!smember_ctl(r.member)) /* it is no member any more */
            continue;
        for (size_t i = 0; i < r.v.n; i++)
            r.v.p[i].n = 0;
        vctl_rows(smember_ctl(r.member), match_row, &r, NULL);
        for (size_t i = 0; i < r.v.n; i++)
            if (!r.v.p[i].n)
                judge_fail(judge, "member %u: the end of job %u is not in the history", smember_id(r.member), r.v.p[i].id);
    }
    judge_note(judge, "%zu ends in history", r.v.n);
    for (size_t i = 0; i < r.v.n; i++)
        rec_free(r.v.p[i].job);
    vec_fini(&r.v);
    map64_fini(&r.by_sluid);
}
