/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/plan/plan.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "core/model/policy.h"
#include "base/vec.h"
#include "spurctld/lead/lead.h"

#define DEFAULT_BATCH_STARTS 500u
#define DEFAULT_INTERVAL_SECS 2
#define REST_LEAST_MS 2
#define AGAIN_LEAST_MS 20 /* after a start that was refused; doubled each time in a row, up to */
#define AGAIN_MOST_MS 1000
#define FRESH_SECS 30 /* expected starts are worked out anew at least so often */

/* One pass, handed to a worker and back. */
struct pass {
    struct plan *plan;
    struct view view;
    int64_t now_unix;
    struct arena arena;
    struct sched_plan out;
    uint64_t took_us;
};

struct plan_notes {
    unsigned users;
    struct arena arena; /* of the pass that made them */
    const struct sched_note *p;
    const struct sched_detail *details;
    uint32_t n, n_details;
};

struct plan {
    struct room *room;
    struct sched *sched;
    struct host_timer *timer;
    struct pass *pass;    /* the one on the worker */
    bool wanted;          /* something happened since the pass began */
    bool is_active;
    unsigned proposals;   /* of starts, not yet answered: a new pass would plan them again */
    unsigned refusals;    /* passes in a row with one */
    bool is_refused;      /* one of this pass's starts was */
    uint64_t seen_index;  /* of the view of the last pass; 0: there was none */
    int64_t seen_unix, next_unix; /* when that was, and when the same view may give more; 0: never */
    int64_t begun_ms, ended_ms; /* host's now_ms, of the last pass */
    struct plan_notes *notes; /* of the newest pass; NULL: none yet */
    struct plan_stats stats;
};

struct plan *plan_new(struct room *r) {
    struct plan *p = xnew(struct plan);
    p->room = r;
    p->sched = sched_new(NULL);
    return p;
}

void plan_free(struct plan *p) {
    if (!p)
        return;
    must(!p->pass);
    sched_free(p->sched);
    plan_notes_drop(p->notes);
    free(p);
}

/* On the worker: everything it needs is in the pass. What the machine's clock measures here is shown and decides nothing,
 * so that a simulated cluster does the same again. */
static void run_pass(void *arg) {
    struct pass *pass = arg;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    sched_plan(pass->plan->sched, &pass->view, pass->now_unix, &pass->arena, &pass->out);
    clock_gettime(CLOCK_MONOTONIC, &b);
    pass->took_us = (uint64_t)((b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000);
}

static void maybe_pass(struct plan *p);
static void set_timer(struct plan *p, uint64_t delay_ms);

/* What was refused is tried again: soon at first, since something has changed meanwhile; not at full speed for ever. */
static void after_refusal(struct plan *p) {
    uint64_t delay_ms = MIN((uint64_t)AGAIN_LEAST_MS << MIN(p->refusals, 10u), AGAIN_MOST_MS);
    p->is_refused = false;
    p->refusals++;
    if (p->is_active)
        set_timer(p, delay_ms);
}

static void on_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct plan *p = arg;
    auto_arena a = {0};
    struct answer an = {0};
    p->proposals--;
    if (!code && !rec_decode(answer_rec(), answer, n, &a, &an, NULL)) {
        for (uint32_t i = 0; i < an.n_items; i++) {
            p->stats.started += an.items[i].error == 0;
            p->stats.refused += an.items[i].error != 0;
            p->is_refused |= an.items[i].error != 0;
        }
    }
    if (p->proposals)
        return;
    if (p->is_refused)
        after_refusal(p);
    else
        p->refusals = 0;
    maybe_pass(p);
}

struct batch {
    struct plan *plan;
    VEC(struct job_start) start;
    struct arena arena;
};

static void flush(struct batch *b) {
    struct cmd_start cmd = {b->start.p, (uint32_t)b->start.n};
    if (!cmd.n_starts)
        return;
    b->plan->proposals++;
    room_propose(b->plan->room, CMD_START, &cmd, 0, NULL, on_proposed, b->plan);
    b->start.n = 0;
    arena_reset(&b->arena);
}

/* The task gets an id of its own, even if it should be the last: whether it is, is apply's to say. */
static bool name_task(struct batch *b, const struct view *v, const struct job *j, struct job_start *st) {
    char sluid[SLUID_SIZE];
    const struct job *head = j->array ? view_job(v, j->array->job_id) : NULL;
    bool has_ids = head && head->array->first_id; /* its tasks have them from the beginning */
    st->new_job_id = has_ids ? 0 : lead_take_job_id(b->plan->room);
    lead_new_sluid(b->plan->room, sluid);
    st->new_sluid = arena_strdup(&b->arena, sluid);
    return has_ids || st->new_job_id != 0;
}

/* The start's number is that of the view: a job that was started since, and perhaps undone, is not what was planned. */
static void propose_starts(struct plan *p, const struct view *seen, const struct sched_plan *out) {
    const struct rconf *conf = room_rconf(p->room);
    uint32_t most = conf->batch_starts ? conf->batch_starts : DEFAULT_BATCH_STARTS;
    struct batch b = {.plan = p};
    struct view v;
    state_peek(p->room->state, &v);
    for (uint32_t i = 0; i < out->n_starts; i++) {
        const struct sched_start *s = &out->starts[i];
        const struct job *j = view_job(&v, s->job_id);
        if (!j || j->state != JOB_PENDING)
            continue;
        struct job_start st = {.job_id = s->job_id, .start_no = view_job(seen, s->job_id)->start_no + 1,
                               .partition = s->partition, .nodes = s->nodes, .n_nodes = s->n_nodes,
                               .time_limit_min = s->time_limit_min, .array_task = s->array_task,
                               .licenses = s->licenses, .n_licenses = s->n_licenses, .preferred = s->preferred,
                               .everywhere = policy_of(conf->flavor)->script_everywhere &&
                                             !job_spec_more(j->spec)->interactive};
        if (st.array_task && !name_task(&b, &v, j, &st))
            break; /* no id is free: the rest waits */
        vec_push(&b.start, st);
        if (b.start.n >= most)
            flush(&b);
    }
    flush(&b);
    vec_fini(&b.start);
    arena_fini(&b.arena);
}

static void keep_notes(struct plan *p, struct pass *pass) {
    plan_notes_drop(p->notes);
    p->notes = xnew(struct plan_notes);
    *p->notes = (struct plan_notes){1, pass->arena, pass->out.notes, pass->out.details, pass->out.n_notes,
                                    pass->out.n_details};
    pass->arena = (struct arena){0};
}

static void on_pass(void *arg) {
    struct pass *pass = arg;
    struct plan *p = pass->plan;
    struct plan_stats *st = &p->stats;
    p->pass = NULL;
    p->next_unix = pass->out.next_unix;
    p->ended_ms = p->room->host->now_ms(p->room->host->impl);
    st->passes++;
    st->last_us = pass->took_us;
    st->total_us += pass->took_us;
    st->max_us = MAX(st->max_us, pass->took_us);
    st->backfilled += pass->out.n_backfilled;
    st->last_considered = pass->out.n_considered;
    st->last_pending = pass->out.n_notes;
    st->considered += pass->out.n_considered;
    st->pending += pass->out.n_notes;
    st->last_unix = room_now_unix(p->room);
    if (p->is_active) {
        propose_starts(p, &pass->view, &pass->out);
        keep_notes(p, pass);
    }
    state_view_end(&pass->view);
    arena_fini(&pass->arena);
    free(pass);
    maybe_pass(p);
}

static void on_timer(void *arg) {
    struct plan *p = arg;
    p->timer = NULL;
    p->wanted = true;
    maybe_pass(p);
}

static void set_timer(struct plan *p, uint64_t delay_ms) {
    struct host *h = p->room->host;
    h->timer_stop(h->impl, p->timer);
    p->timer = h->timer_start(h->impl, delay_ms, on_timer, p);
}

static uint64_t interval_ms(const struct plan *p) {
    const struct rconf *conf = room_rconf(p->room);
    return 1000u * (uint64_t)(conf->interval_secs ? conf->interval_secs : DEFAULT_INTERVAL_SECS);
}

/* The same view gives the same plan until a time that the plan has told. */
static bool is_known(const struct plan *p, int64_t now_unix) {
    struct view v;
    state_peek(p->room->state, &v);
    return p->notes && v.index == p->seen_index && (!p->next_unix || now_unix < p->next_unix) &&
           now_unix < p->seen_unix + FRESH_SECS && now_unix >= p->seen_unix;
}

static void begin_pass(struct plan *p) {
    struct host *h = p->room->host;
    int64_t now_unix = h->unix_ms(h->impl) / 1000;
    if (is_known(p, now_unix)) {
        p->wanted = false;
        p->stats.skipped++;
        set_timer(p, interval_ms(p));
        return;
    }
    struct pass *pass = xnew(struct pass);
    pass->plan = p;
    pass->now_unix = now_unix;
    state_view(p->room->state, &pass->view);
    p->seen_index = pass->view.index;
    p->seen_unix = now_unix;
    p->pass = pass;
    p->wanted = false;
    p->begun_ms = h->now_ms(h->impl);
    set_timer(p, interval_ms(p));
    h->work(h->impl, run_pass, on_pass, pass);
}

static void maybe_pass(struct plan *p) {
    if (!p->is_active || p->pass || p->proposals || !p->wanted)
        return;
    /* A long queue must not eat the machine: a quarter of one core, no more; and what comes in a burst is one pass. */
    int64_t rest_ms = MAX((p->ended_ms - p->begun_ms) * 3, (int64_t)REST_LEAST_MS);
    int64_t since_ms = p->room->host->now_ms(p->room->host->impl) - p->ended_ms;
    if (p->ended_ms && since_ms < rest_ms)
        set_timer(p, (uint64_t)(rest_ms - since_ms));
    else
        begin_pass(p);
}

void plan_begin(struct plan *p) {
    p->is_active = true;
    p->wanted = true;
    maybe_pass(p);
}

void plan_end(struct plan *p) {
    struct host *h = p->room->host;
    h->timer_stop(h->impl, p->timer);
    p->timer = NULL;
    p->is_active = false;
    plan_notes_drop(p->notes); /* who leads next knows better */
    p->notes = NULL;
}

/* A held job changes nothing for the planner until it is released. */
static bool is_held(const struct plan *p, uint32_t job_id) {
    struct view v;
    state_peek(p->room->state, &v);
    const struct job *j = view_job(&v, job_id);
    return j && j->hold;
}

void plan_on_event(struct plan *p, const struct event *ev) {
    if (ev->kind == EV_JOB_PENDING && is_held(p, ev->job_id))
        return;
    switch (ev->kind) {
    case EV_JOB_PENDING:
    case EV_JOB_CHANGED:
    case EV_JOB_OVER:
    case EV_NODE_CHANGED:
    case EV_CONFIG_CHANGED:
        p->wanted = true;
        maybe_pass(p);
        break;
    default: break;
    }
}

struct plan_notes *plan_notes_take(struct plan *p) {
    if (p->notes)
        p->notes->users++;
    return p->notes;
}

void plan_notes_drop(struct plan_notes *n) {
    if (!n || --n->users)
        return;
    arena_fini(&n->arena);
    free(n);
}

const struct sched_note *plan_note(const struct plan_notes *n, uint32_t job_id) {
    uint32_t low = 0, high = n ? n->n : 0;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (n->p[mid].job_id < job_id)
            low = mid + 1;
        else
            high = mid;
    }
    return n && low < n->n && n->p[low].job_id == job_id ? &n->p[low] : NULL;
}

const struct sched_detail *plan_detail(const struct plan_notes *n, uint32_t job_id) {
    uint32_t low = 0, high = n ? n->n_details : 0;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (n->details[mid].job_id < job_id)
            low = mid + 1;
        else
            high = mid;
    }
    return n && low < n->n_details && n->details[low].job_id == job_id ? &n->details[low] : NULL;
}

bool plan_is_promised(const struct plan_notes *n, uint32_t node_id) {
    for (uint32_t i = 0; n && i < n->n_details; i++)
        for (uint32_t k = 0; n->details[i].nodes && k < n->details[i].n_nodes; k++)
            if (n->details[i].nodes[k].node_id == node_id)
                return true;
    return false;
}

struct plan_stats plan_stats(const struct plan *p) {
    struct plan_stats st = p->stats;
    st.running = p->pass != NULL;
    return st;
}

void plan_stats_reset(struct plan *p) {
    p->stats = (struct plan_stats){.last_us = p->stats.last_us};
}
