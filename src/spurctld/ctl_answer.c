/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of the controller as a whole: ping, diag.
 */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "io/journal/journal.h"
#include "spurctld/ctl_diag.h"
#include "spurctld/member/member.h"

#define HEARD_MS 3000

static const char *role_name(enum journal_role role) {
    switch (role) {
    case JOURNAL_LEADER: return "leader";
    case JOURNAL_FOLLOWER: return "follower";
    case JOURNAL_CANDIDATE: return "candidate";
    default: return "starting";
    }
}

/* All zero at the very end, when it is closed and the last requests are being refused. */
static struct journal_stats stats_of(const struct ctl *c) {
    return c->journal ? journal_stats(c->journal) : (struct journal_stats){0};
}

static const char *member_role(const struct member_info *m) {
    switch (m->role) {
    case MEMBER_LEADER: return "leader";
    case MEMBER_FOLLOWER: return "follower";
    case MEMBER_SPARE: return "spare";
    default: return "unknown";
    }
}

static void add_members(const struct ctl *c, struct ping_reply *out, struct arena *a) {
    struct member_info known[MEMBERS_MAX];
    size_t n = member_list(&c->room, known);
    struct controller_info *list = arena_alloc(a, n * sizeof(*list));
    int64_t now = c->room.host->now_ms(c->room.host->impl);
    for (size_t i = 0; i < n; i++) {
        const struct member_info *m = &known[i];
        bool is_reached = m->heard_ms && now - m->heard_ms < (int64_t)HEARD_MS * MAX(c->options.clock_scale, 1u);
        list[i] = (struct controller_info){.id = m->id, .address = arena_strdup(a, m->address), .role = member_role(m),
                                           .term = m->term, .index = m->index, .is_reached = m->is_self || is_reached,
                                           .version = arena_strdup(a, m->version)};
    }
    out->members = list;
    out->n_members = (uint32_t)n;
    out->leader_id = member_leader(&c->room);
}

void ctl_ping(void *ctx, struct ping_reply *out, struct arena *a) {
    struct ctl *c = ctx;
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    struct journal_stats js = stats_of(c);
    const struct rconf *conf = room_rconf(&c->room);
    *out = (struct ping_reply){
        .hostname = arena_strdup(a, host),
        .role = c->room.is_leader ? "leader" : js.role == JOURNAL_LEADER ? "starting" : role_name(js.role),
        .version = SPUR_VERSION,
        .index = state_index(c->room.state),
        .term = js.term,
        .cluster_name = arena_strdup(a, conf->cluster_name ? conf->cluster_name : c->conf.rep.cluster_name),
        .digest = state_digest(c->room.state),
        .member_id = c->room.member_id,
        .pid = (uint32_t)getpid(),
    };
    add_members(c, out, a);
}

#define add ctl_diag_add /* here: a counter of any group */

static void add_loops(struct ctl *c, counters_list *l) {
    struct loop_stats ls = loop_stats(c->loop);
    struct journal_stats js = stats_of(c);
    add(l, "Loops", "State loop longest gap", ls.gap_max_us, "us");
    add(l, "Loops", "State loop gap p99", ls.gap_p99_us, "us");
    add(l, "Loops", "State loop turns", ls.turns, "");
    add(l, "Loops", "Journal loop longest gap", js.gap_max_us, "us");
    add(l, "Loops", "Work queue length", pool_waiting(c->pool), "");
    add(l, "Loops", "Requests in flight", api_in_flight(c->api), "");
}

static void add_journal(struct ctl *c, counters_list *l) {
    struct journal_stats js = stats_of(c);
    struct snapshots_stats ss = snapshots_stats(c->snapshots);
    add(l, "Journal", "Last index", js.last_index, "");
    add(l, "Journal", "Commit index", js.commit_index, "");
    add(l, "Journal", "Applied index", state_index(c->room.state), "");
    add(l, "Journal", "Entries in the log", js.log_entries, "");
    add(l, "Journal", "Appends", js.appends, "");
    add(l, "Journal", "Append and fsync longest", js.append_max_us, "us");
    add(l, "Journal", "Append and fsync p99", js.append_p99_us, "us");
    add(l, "Journal", "Proposals waiting", js.waiting, "");
    add(l, "Journal", "Proposals waiting, most", js.waiting_max, "");
    add(l, "Journal", "Applies", c->applies, "");
    add(l, "Journal", "Apply mean", c->applies ? c->apply_total_us / c->applies : 0, "us");
    add(l, "Journal", "Apply longest", c->apply_max_us, "us");
    add(l, "Journal", "Snapshots taken", ss.taken, "");
    add(l, "Journal", "Snapshots failed", ss.failed, "");
    add(l, "Journal", "Last snapshot size", ss.last_bytes, "bytes");
    add(l, "Journal", "Last snapshot took", ss.last_ms, "ms");
}

static void add_work(struct ctl *c, counters_list *l) {
    struct plan_stats ps = plan_stats(c->room.plan);
    struct react_stats rs = react_stats(c->room.react);
    struct state_stats st = state_stats(c->room.state);
    add(l, "Scheduler", "Passes", ps.passes, "");
    add(l, "Scheduler", "Last pass", ps.last_us, "us");
    add(l, "Scheduler", "Mean pass", ps.passes ? ps.total_us / ps.passes : 0, "us");
    add(l, "Scheduler", "Longest pass", ps.max_us, "us");
    add(l, "Scheduler", "Jobs considered in the last pass", ps.last_considered, "");
    add(l, "Scheduler", "Jobs left waiting by the last pass", ps.last_pending, "");
    add(l, "Scheduler", "Jobs started", ps.started, "");
    add(l, "Scheduler", "Starts refused by the state", ps.refused, "");
    add(l, "Scheduler", "Jobs backfilled", ps.backfilled, "");
    add(l, "Launch", "Launches sent", rs.launches, "");
    add(l, "Launch", "Launches failed", rs.launch_failures, "");
    add(l, "Launch", "Endings sent", rs.terminates, "");
    add(l, "Launch", "Runs being launched or ended", rs.in_flight, "");
    add(l, "State", "Jobs", st.jobs, "");
    add(l, "State", "Jobs pending", st.pending, "");
    add(l, "State", "Jobs running", st.running, "");
    add(l, "State", "Nodes", st.nodes, "");
    add(l, "State", "Tokens remembered", st.tokens, "");
    add(l, "State", "Record bytes", st.bytes, "bytes");
    add(l, "State", "Old versions kept for views", st.waiting, "");
}

static void add_stores(struct ctl *c, counters_list *l) {
    struct blob_stats bs = blob_stats(c->blobs);
    struct acct_stats as = acct_stats(c->room.acct);
    add(l, "Stores", "Blobs", bs.n, "");
    add(l, "Stores", "Blob bytes", bs.bytes, "bytes");
    add(l, "Stores", "Blob syncs", bs.syncs, "");
    add(l, "Stores", "Blobs stored already", bs.dedup_hits, "");
    add(l, "Stores", "History rows", as.rows, "");
    add(l, "Stores", "History rows waiting", as.waiting, "");
    add(l, "Stores", "History batch longest", as.max_us, "us");
    add(l, "Stores", "History failures", as.failures, "");
}

static void add_methods(struct ctl *c, counters_list *l, struct arena *a) {
    for (unsigned m = 0; m < WIRE_N_METHODS; m++) {
        struct api_method_stats st = api_method_stats(c->api, m);
        if (!st.calls)
            continue;
        const char *name = wire_method(m)->name;
        add(l, "Requests", arena_printf(a, "%s", name), st.calls, "");
        add(l, "Requests", arena_printf(a, "%s mean", name), st.total_us / st.calls, "us");
        add(l, "Requests", arena_printf(a, "%s longest", name), st.max_us, "us");
        if (st.failed)
            add(l, "Requests", arena_printf(a, "%s refused", name), st.failed, "");
    }
}

void ctl_diag(void *ctx, bool reset, struct diag_reply *out, struct arena *a) {
    struct ctl *c = ctx;
    counters_list l = {0};
    ctl_diag_slurm(c, &l, a);
    add_loops(c, &l);
    add_journal(c, &l);
    add_work(c, &l);
    add_stores(c, &l);
    add_methods(c, &l, a);
    out->counters = arena_memdup(a, l.p, l.n * sizeof(*l.p));
    out->n_counters = (uint32_t)l.n;
    out->now_unix = room_now_unix(&c->room);
    out->since_unix = c->started_unix;
    vec_fini(&l);
    if (!reset)
        return;
    loop_stats_reset(c->loop);
    journal_stats_reset(c->journal);
    plan_stats_reset(c->room.plan);
    api_stats_reset(c->api);
    c->room.tally = (struct tally){0};
    c->applies = c->apply_total_us = c->apply_max_us = 0;
    c->started_unix = out->now_unix;
}
