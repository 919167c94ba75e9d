/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's clock. Every second: nodes that fell silent, runs past their limit, jobs old enough to leave the state.
 * Silence is measured from when this leader could hear (HA-01).
 */
#include "spurctld/lead/lead.h"

#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "spurctld/acct/acct.h"

#define TICK_MS 1000u
#define PURGE_BATCH 1000u
#define SUSPECT_MS 1000 /* between the two lists that condemn a run */
#define SUSPECTS_MOST 100000u
#define SHUN_MS 30000
#define DEFAULT_HEARTBEAT_SECS 90
#define DEFAULT_MIN_JOB_AGE_SECS 300

struct soft_node {
    int64_t heard_ms; /* host's now_ms */
    int64_t heard_unix;
    uint32_t cpu_load_hundredths;
    uint64_t free_mem_mb;
    uint64_t runs_hash;
    bool knows_runs;
    int64_t shunned_ms; /* until then */
};

struct over {
    uint32_t job_id;
    int64_t end_ms;
};

struct lead {
    struct room *room;
    struct host_timer *timer;
    uint32_t next_job_id;
    struct map64 nodes;   /* node id → struct soft_node */
    struct map64 holding;  /* job id → itself: jobs that hold nodes */
    struct map64 suspects; /* hash of a run and its node → when it was first missed, as a pointer */
    VEC(struct over) over; /* in the order in which they ended, from `first` on */
    size_t first;
    bool is_purging; /* the outcome of one is still to come */
};

static void on_tick(void *arg);

static void schedule(struct lead *l) {
    struct host *h = l->room->host;
    l->timer = h->timer_start(h->impl, TICK_MS, on_tick, l);
}

struct lead *lead_new(struct room *r) {
    struct lead *l = xnew(struct lead);
    l->room = r;
    return l;
}

static void forget_all(struct lead *l) {
    size_t cursor = 0;
    void *n;
    while (map64_next(&l->nodes, &cursor, NULL, &n))
        free(n);
    map64_fini(&l->nodes);
    map64_fini(&l->holding);
    map64_fini(&l->suspects);
    vec_fini(&l->over);
    l->first = 0;
}

void lead_free(struct lead *l) {
    if (!l)
        return;
    lead_end(l);
    free(l);
}

void lead_end(struct lead *l) {
    struct host *h = l->room->host;
    h->timer_stop(h->impl, l->timer);
    l->timer = NULL;
    forget_all(l);
}

static struct soft_node *soft(struct lead *l, uint32_t node_id) {
    struct soft_node *n = map64_get(&l->nodes, node_id);
    if (!n) {
        n = xnew(struct soft_node);
        n->heard_ms = l->room->host->now_ms(l->room->host->impl);
        map64_put(&l->nodes, node_id, n);
    }
    return n;
}

static void note_holding(struct lead *l, uint32_t job_id) {
    map64_put(&l->holding, job_id, (void *)(uintptr_t)job_id);
}

static void note_over(struct lead *l, const struct job *j) {
    struct over o = {j->id, j->end_ms};
    vec_push(&l->over, o);
}

static int by_end(const void *x, const void *y) {
    const struct over *a = x, *b = y;
    return a->end_ms < b->end_ms ? -1 : a->end_ms > b->end_ms;
}

/* What an earlier time as leader, or a late call between the two, has left behind is worth nothing: silence above all. */
void lead_begin(struct lead *l) {
    struct view v;
    const struct job *j;
    lead_end(l);
    state_peek(l->room->state, &v);
    l->next_job_id = v.counters.next_job_id;
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++) {
        if (job_holds_nodes(j))
            note_holding(l, j->id);
        else if (job_is_over(j))
            note_over(l, j);
    }
    if (l->over.n)
        qsort(l->over.p, l->over.n, sizeof(*l->over.p), by_end);
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(&v, &k)); k++)
        soft(l, n->id);
    schedule(l);
}

void lead_on_event(struct lead *l, const struct event *ev) {
    struct view v;
    state_peek(l->room->state, &v);
    const struct job *j = ev->job_id ? view_job(&v, ev->job_id) : NULL;
    if (ev->kind == EV_JOB_STARTED)
        note_holding(l, ev->job_id);
    if (j && !job_holds_nodes(j))
        map64_del(&l->holding, ev->job_id);
    if (ev->kind == EV_JOB_OVER && j)
        note_over(l, j);
    if (ev->kind == EV_CONFIG_CHANGED)
        l->next_job_id = MAX(l->next_job_id, v.counters.next_job_id);
}

/* ---- ids ---- */

uint32_t lead_take_job_id(struct room *r) {
    struct lead *l = r->lead;
    struct view v;
    state_peek(r->state, &v);
    const struct rconf *conf = room_rconf(r);
    uint32_t last = conf->max_job_id ? MIN(conf->max_job_id, JOB_ID_MAX) : JOB_ID_MAX;
    uint32_t first = MAX(conf->first_job_id, 1u);
    size_t most = cow_count(v.jobs) + 1; /* ids that are used, and one that is not */
    for (size_t tried = 0; tried < most; tried++) {
        if (l->next_job_id < first || l->next_job_id > last)
            l->next_job_id = first;
        uint32_t id = l->next_job_id++;
        if (id <= last && !view_job(&v, id))
            return id;
    }
    return 0;
}

void lead_new_sluid(struct room *r, char out[SLUID_SIZE]) {
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; /* Crockford's base 32 */
    uint64_t x = r->host->random(r->host->impl);
    out[0] = 's';
    for (int i = 1; i <= 13; i++, x >>= 5)
        out[i] = digits[x & 31];
    out[14] = 0;
}

/* ---- nodes ---- */

void lead_heard(struct lead *l, uint32_t node_id, uint32_t cpu_load_hundredths, uint64_t free_mem_mb) {
    struct soft_node *n = soft(l, node_id);
    n->heard_ms = l->room->host->now_ms(l->room->host->impl);
    n->heard_unix = room_now_unix(l->room);
    if (cpu_load_hundredths)
        n->cpu_load_hundredths = cpu_load_hundredths;
    if (free_mem_mb)
        n->free_mem_mb = free_mem_mb;
}

void lead_ask_runs(struct lead *l, uint32_t node_id) {
    soft(l, node_id)->knows_runs = false;
}

void lead_shun(struct lead *l, uint32_t node_id) {
    soft(l, node_id)->shunned_ms = l->room->host->now_ms(l->room->host->impl) + SHUN_MS;
}

bool lead_is_shunned(const struct lead *l, uint32_t node_id) {
    const struct soft_node *n = map64_get(&l->nodes, node_id);
    return n && n->shunned_ms > l->room->host->now_ms(l->room->host->impl);
}

bool lead_runs_changed(struct lead *l, uint32_t node_id, uint64_t runs_hash, bool has_list) {
    struct soft_node *n = soft(l, node_id);
    bool changed = !n->knows_runs || n->runs_hash != runs_hash;
    if (has_list || !changed) {
        n->knows_runs = true;
        n->runs_hash = runs_hash;
        return false;
    }
    return true;
}

static uint64_t run_at(uint32_t job_id, uint32_t start_no, uint32_t node_id) {
    return hash_u64((uint64_t)job_id << 32 | start_no) ^ hash_u64(node_id);
}

bool lead_suspect(struct lead *l, uint32_t job_id, uint32_t start_no, uint32_t node_id) {
    uint64_t key = run_at(job_id, start_no, node_id);
    int64_t now_ms = l->room->host->now_ms(l->room->host->impl);
    int64_t since_ms = (int64_t)(intptr_t)map64_get(&l->suspects, key);
    if (since_ms && now_ms - since_ms >= SUSPECT_MS) {
        map64_del(&l->suspects, key);
        return true;
    }
    if (l->suspects.n > SUSPECTS_MOST)
        map64_fini(&l->suspects);
    if (!since_ms)
        map64_put(&l->suspects, key, (void *)(intptr_t)now_ms);
    lead_ask_runs(l, node_id);
    return false;
}

void lead_listed(struct lead *l, uint32_t job_id, uint32_t start_no, uint32_t node_id) {
    if (l->suspects.n)
        map64_del(&l->suspects, run_at(job_id, start_no, node_id));
}

struct lead_node lead_node(const struct lead *l, uint32_t node_id) {
    const struct soft_node *n = map64_get(&l->nodes, node_id);
    return n ? (struct lead_node){n->cpu_load_hundredths, n->free_mem_mb, n->heard_unix} : (struct lead_node){0};
}

/* Until none is left: whoever led before may have said that the node is down and nothing more. */
static void end_runs_of(struct lead *l, const struct view *v, const struct node *n) {
    size_t cursor = 0;
    uint32_t id;
    while (lead_next_holding(l, &cursor, &id)) {
        const struct job *j = view_job(v, id);
        for (uint32_t i = 0; j && job_holds_nodes(j) && i < j->n_nodes; i++) {
            if (j->nodes[i].node_id != n->id || j->nodes[i].is_done)
                continue;
            struct cmd_node_done done = {
                .job_id = j->id,
                .start_no = j->start_no,
                .node_id = n->id,
                .node_failed = true,
                .never_started = j->configuring,
                .text = "node does not respond",
                .end_ms = l->room->host->unix_ms(l->room->host->impl),
            };
            room_propose_quietly(l->room, CMD_NODE_DONE, &done);
        }
    }
}

static void node_is_silent(struct lead *l, const struct view *v, const struct node *n) {
    if (n->base == NODE_UP) {
        struct cmd_node_state cmd = {
            .node_id = n->id, .not_responding = true, .down = true, .reason = "Not responding"};
        log_warn("node %s does not respond: down", n->name);
        room_propose_quietly(l->room, CMD_NODE_STATE, &cmd);
    }
    if (n->n_jobs && (n->base == NODE_UP || n->not_responding))
        end_runs_of(l, v, n);
}

static void watch_nodes(struct lead *l, const struct view *v, const struct rconf *conf) {
    int64_t now_ms = l->room->host->now_ms(l->room->host->impl);
    int64_t limit_ms = 1000 * (int64_t)(conf->heartbeat_timeout_secs ? conf->heartbeat_timeout_secs
                                                                     : DEFAULT_HEARTBEAT_SECS);
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++)
        if (now_ms - soft(l, n->id)->heard_ms > limit_ms)
            node_is_silent(l, v, n);
}

/* ---- limits and ages ---- */

bool lead_next_holding(const struct lead *l, size_t *cursor, uint32_t *out_job_id) {
    uint64_t id;
    void *value;
    if (!map64_next(&l->holding, cursor, &id, &value))
        return false;
    *out_job_id = (uint32_t)id;
    return true;
}

static void watch_limits(struct lead *l, const struct view *v, int64_t now_ms) {
    VEC(struct run_id) late = {0};
    size_t cursor = 0;
    uint32_t id;
    while (lead_next_holding(l, &cursor, &id)) {
        const struct job *j = view_job(v, id);
        if (!j || j->state != JOB_RUNNING || j->configuring || j->time_limit_min == TIME_LIMIT_NONE)
            continue;
        if (now_ms >= j->start_ms + (int64_t)j->time_limit_min * 60000) {
            struct run_id run = {j->id, j->start_no};
            vec_push(&late, run);
        }
    }
    if (late.n) {
        struct cmd_timeout cmd = {late.p, (uint32_t)late.n};
        room_propose_quietly(l->room, CMD_TIMEOUT, &cmd);
    }
    vec_fini(&late);
}

static void purge(struct lead *l);

static void on_purged(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct lead *l = arg;
    l->is_purging = false;
    if (!code && l->timer) /* there may be more; refused, the next tick tries again */
        purge(l);
}

/* A job leaves the state when it is old enough and its row is in the history for good. */
static bool may_go(const struct lead *l, const struct job *j, int64_t end_ms) {
    const struct rconf *conf = room_rconf(l->room);
    struct host *h = l->room->host;
    int64_t age_ms = 1000 * (int64_t)(conf->min_job_age_secs ? conf->min_job_age_secs : DEFAULT_MIN_JOB_AGE_SECS);
    return h->unix_ms(h->impl) >= end_ms + age_ms && j->ended_index <= acct_flushed_index(l->room->acct);
}

static void purge(struct lead *l) {
    struct view v;
    VEC(uint32_t) ids = {0};
    if (l->is_purging)
        return;
    state_peek(l->room->state, &v);
    for (size_t i = l->first; i < l->over.n && ids.n < PURGE_BATCH; i++) {
        const struct job *j = view_job(&v, l->over.p[i].job_id);
        if (j && job_is_over(j) && !may_go(l, j, l->over.p[i].end_ms))
            break;
        if (j && job_is_over(j))
            vec_push(&ids, j->id);
        else if (i == l->first)
            l->first++; /* gone */
    }
    if (l->first > 4096 && l->first * 2 > l->over.n) {
        l->over.n -= l->first;
        memmove(l->over.p, l->over.p + l->first, l->over.n * sizeof(*l->over.p));
        l->first = 0;
    }
    if (ids.n) {
        struct cmd_purge cmd = {ids.p, (uint32_t)ids.n};
        l->is_purging = true;
        room_propose(l->room, CMD_PURGE, &cmd, 0, NULL, on_purged, l);
    }
    vec_fini(&ids);
}

static void on_tick(void *arg) {
    struct lead *l = arg;
    struct view v;
    state_peek(l->room->state, &v);
    const struct rconf *conf = room_rconf(l->room);
    int64_t now_ms = l->room->host->unix_ms(l->room->host->impl);
    watch_nodes(l, &v, conf);
    watch_limits(l, &v, now_ms);
    purge(l);
    schedule(l);
}

/* ---- configuration ---- */

static const struct member *member_of(const struct cluster *c, uint32_t id) {
    for (uint32_t i = 0; i < c->n_members; i++)
        if (c->members[i].id == id)
            return &c->members[i];
    return NULL;
}

static bool same_hash(const uint8_t *a, uint32_t n_a, const uint8_t *b, uint32_t n_b) {
    return n_a == n_b && (!n_a || memcmp(a, b, n_a) == 0);
}

/* The rule of the design: a member offers its file at its start only when that differs from the one it started with
 * last, and from what is in force; so a rolling restart onto a new file, or back, doesn't flap. With which one it started
 * is noted in any case: else it would offer an old file at some later fail-over. */
enum offer { OFFER_NOTHING, OFFER_NOTE, OFFER_FILE };

static enum offer what_to_offer(const struct lead *l) {
    struct view v;
    state_peek(l->room->state, &v);
    const struct rconf *mine = &l->room->conf->rep;
    const struct member *last = member_of(v.cluster, l->room->member_id);
    if (!v.cluster->conf)
        return OFFER_FILE;
    if (last && same_hash(last->hash, last->n_hash, mine->hash, mine->n_hash))
        return OFFER_NOTHING;
    bool is_in_force = same_hash(v.cluster->conf->hash, v.cluster->conf->n_hash, mine->hash, mine->n_hash);
    return is_in_force ? OFFER_NOTE : OFFER_FILE;
}

void lead_offer_config(struct lead *l, bool force, host_proposed_fn done, void *arg) {
    enum offer offer = force ? OFFER_FILE : what_to_offer(l);
    if (offer == OFFER_NOTHING) {
        done(arg, 0, NULL, 0, NULL, 0);
        return;
    }
    const struct rconf *mine = &l->room->conf->rep;
    struct cmd_config_set cmd = {.conf = offer == OFFER_FILE ? mine : NULL,
                                 .member_id = l->room->member_id,
                                 .hash = mine->hash,
                                 .n_hash = mine->n_hash};
    room_propose(l->room, CMD_CONFIG_SET, &cmd, 0, NULL, done, arg);
}
