/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's clock. Every second: nodes that fell silent, runs past their limit, clients that went away, jobs old
 * enough to leave the state.
 * Silence is measured from when this leader could hear (HA-01).
 */
#include "spurctld/lead/lead.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "spurctld/lead/inside.h"

#define TICK_MS 1000u
#define SUSPECT_MS 1000 /* between the two lists that condemn a run */
#define SUSPECTS_MOST 100000u
#define SHUN_MS 30000
#define DEFAULT_HEARTBEAT_SECS 90

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
    limits_end(l);
    attend_end(l);
    purge_end(l);
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
    }
    purge_begin(l, &v);
    limits_begin(l, &v);
    attend_begin(l, &v);
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
        purge_note(l, j);
    limits_on_event(l, &v, ev);
    attend_on_event(l, &v, ev);
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
    if (v.counters.next_job_id <= last) /* tasks of arrays take ids too; until the numbers came round once */
        l->next_job_id = MAX(l->next_job_id, v.counters.next_job_id);
    for (size_t tried = 0; tried < most; tried++) {
        if (l->next_job_id < first || l->next_job_id > last)
            l->next_job_id = first;
        uint32_t id = l->next_job_id++;
        if (id <= last && !view_job(&v, id))
            return id;
    }
    return 0;
}

uint32_t lead_take_ids_behind(struct room *r, uint32_t n) {
    struct lead *l = r->lead;
    const struct rconf *conf = room_rconf(r);
    uint32_t last = conf->max_job_id ? MIN(conf->max_job_id, JOB_ID_MAX) : JOB_ID_MAX, first = l->next_job_id;
    if (!n || first > last || n - 1 > last - first)
        return 0;
    l->next_job_id += n;
    return first;
}

uint32_t lead_next_job_id(struct room *r) {
    struct view v;
    state_peek(r->state, &v);
    return MAX(r->lead->next_job_id, v.counters.next_job_id);
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

static uint64_t run_at(uint32_t job_id, uint32_t start_no, uint32_t step_plus_1, uint32_t node_id) {
    return hash_u64((uint64_t)job_id << 32 | start_no) ^ hash_u64((uint64_t)step_plus_1 << 32 | node_id);
}

bool lead_suspect(struct lead *l, uint32_t job_id, uint32_t start_no, uint32_t step_plus_1, uint32_t node_id) {
    uint64_t key = run_at(job_id, start_no, step_plus_1, node_id);
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

void lead_listed(struct lead *l, uint32_t job_id, uint32_t start_no, uint32_t step_plus_1, uint32_t node_id) {
    if (l->suspects.n)
        map64_del(&l->suspects, run_at(job_id, start_no, step_plus_1, node_id));
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
        if (j && job_holds_nodes(j) && job_held_on(j, n->id)) {
            char sluid[SLUID_SIZE];
            lead_new_sluid(l->room, sluid);
            struct cmd_node_done done = {
                .job_id = j->id,
                .new_sluid = sluid,
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
    if (n->base == NODE_UP || !n->not_responding) { /* also one that was set down by hand */
        struct cmd_node_state cmd = {
            .node_id = n->id, .not_responding = true, .down = true, .reason = "Not responding"};
        log_warn("node %s does not respond: down", n->name);
        room_propose_quietly(l->room, CMD_NODE_STATE, &cmd);
    }
    if (n->n_jobs && (n->base == NODE_UP || n->not_responding))
        end_runs_of(l, v, n);
}

/* As Slurm's ResumeAfter: causes that were to go by themselves. */
static void resume_due(struct lead *l, const struct node *n, int64_t now_unix) {
    bool is_due = n->down_set && n->down_until_unix && n->down_until_unix <= now_unix;
    for (uint32_t i = 0; i < n->n_drains; i++)
        is_due |= n->drains[i].until_unix && n->drains[i].until_unix <= now_unix;
    if (!is_due)
        return;
    struct cmd_node_update cmd = {.node_ids = &n->id, .n_node_ids = 1, .op = NODE_OP_RESUME, .only_due = true};
    room_propose_quietly(l->room, CMD_NODE_UPDATE, &cmd);
}

static void watch_nodes(struct lead *l, const struct view *v, const struct rconf *conf) {
    int64_t now_ms = l->room->host->now_ms(l->room->host->impl);
    int64_t limit_ms = 1000 * (int64_t)(conf->heartbeat_timeout_secs ? conf->heartbeat_timeout_secs
                                                                     : DEFAULT_HEARTBEAT_SECS);
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++) {
        if (now_ms - soft(l, n->id)->heard_ms > limit_ms)
            node_is_silent(l, v, n);
        resume_due(l, n, room_now_unix(l->room));
    }
}

bool lead_next_holding(const struct lead *l, size_t *cursor, uint32_t *out_job_id) {
    uint64_t id;
    void *value;
    if (!map64_next(&l->holding, cursor, &id, &value))
        return false;
    *out_job_id = (uint32_t)id;
    return true;
}

static void on_tick(void *arg) {
    struct lead *l = arg;
    struct view v;
    state_peek(l->room->state, &v);
    watch_nodes(l, &v, room_rconf(l->room));
    limits_tick(l, &v);
    attend_tick(l, &v);
    purge_tick(l);
    schedule(l);
}
