/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of the controller as a whole: ping, diag, reconfigure.
 */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "io/journal/journal.h"
#include "spurctld/config_file.h"
#include "spurctld/ctl_diag.h"

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

/* ---- reconfigure ---- */

struct reconfiguring {
    struct ctl *c;
    struct arena arena, notes_arena;
    struct conf conf;
    struct secret jwt, jwt_old;
    VEC(const char *) notes;
    bool changed;
    void (*done)(void *arg, int code, const struct err *why, const void *reply);
    void *arg;
};

static void finish(struct reconfiguring *rc, int code, const struct err *why) {
    struct reconfigure_reply reply = {rc->changed, rc->notes.p, (uint32_t)rc->notes.n};
    rc->done(rc->arg, code, why, &reply);
    vec_fini(&rc->notes);
    secret_fini(&rc->jwt);
    secret_fini(&rc->jwt_old);
    arena_fini(&rc->notes_arena);
    arena_fini(&rc->arena); /* empty where the configuration was taken over */
    free(rc);
}

/* What is read at start only: a change is told, and takes effect with the next start. */
static void note_restart_keys(struct reconfiguring *rc, const struct conf *running) {
    const char *const *key;
    uint32_t n = conf_restart_keys(&rc->notes_arena, running, &rc->conf, &key);
    for (uint32_t i = 0; i < n; i++)
        vec_push(&rc->notes, arena_printf(&rc->notes_arena, "%s changes with the next start", key[i]));
}

static void swap_secret(struct secret *a, struct secret *b) {
    struct secret was = *a;
    *a = *b;
    *b = was;
}

/* The rest of the new file becomes this member's; what needs a restart stays as it was. */
static void take_over(struct ctl *c, struct reconfiguring *rc) {
    struct conf next = rc->conf;
    enum log_level level;
    next.auth_mode = c->at_start.auth_mode;
    if (!c->options.log_level && next.log_level && !log_level_parse(next.log_level, &level))
        log_set_level(level);
    swap_secret(&c->room.jwt, &rc->jwt);
    swap_secret(&c->room.jwt_old, &rc->jwt_old);
    arena_fini(&c->conf_arena);
    c->conf_arena = rc->arena;
    rc->arena = (struct arena){0};
    c->conf = next;
}

static void on_taken(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct reconfiguring *rc = arg;
    if (!code)
        log_info("reconfigured");
    finish(rc, code, why);
}

void ctl_reconfigure(void *ctx, void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg) {
    struct ctl *c = ctx;
    struct reconfiguring *rc = xnew(struct reconfiguring);
    *rc = (struct reconfiguring){.c = c, .done = done, .arg = arg};
    auto_str problems = {0};
    struct err e = {0};
    int code = config_file_load(c->options.config_path, &rc->arena, &rc->conf, &problems, &e);
    if (code) {
        if (problems.n)
            err_set(&e, code, "the configuration has problems; nothing was changed:\n%.*s", (int)problems.n - 1,
                    problems.p);
        finish(rc, code, &e);
        return;
    }
    code = config_file_jwt(&rc->conf, &rc->jwt, &rc->jwt_old, &e);
    if (code) {
        finish(rc, code, &e);
        return;
    }
    const struct rconf *in_force = room_rconf(&c->room);
    rc->changed = in_force->n_hash != 32 || memcmp(in_force->hash, rc->conf.rep.hash, 32) != 0;
    note_restart_keys(rc, &c->at_start);
    const char *const *dropped;
    uint32_t n_dropped = ctl_dropped(c, &rc->notes_arena, &dropped);
    for (uint32_t i = 0; i < n_dropped; i++)
        vec_push(&rc->notes, dropped[i]);
    take_over(c, rc);
    lead_offer_config(c->room.lead, true, on_taken, rc);
}
