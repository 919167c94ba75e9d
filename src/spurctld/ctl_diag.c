/* SPDX-License-Identifier: Apache-2.0
 *
 * Slurm counts its main scheduler and its backfill apart; here one pass is both, and says how much of each it did.
 */
#include "spurctld/ctl_diag.h"

#include "base/mem.h"
#include "io/journal/journal.h"

#define GROUP "Slurm"

void ctl_diag_add(counters_list *l, const char *group, const char *name, uint64_t value, const char *unit) {
    struct counter k = {group, name, value, unit};
    vec_push(l, k);
}

static void add(counters_list *l, const char *name, uint64_t value) {
    ctl_diag_add(l, GROUP, name, value, NULL);
}

static void add_jobs(struct ctl *c, counters_list *l) {
    struct state_stats st = state_stats(c->room.state);
    struct api_method_stats submits = api_method_stats(c->api, WIRE_Controller_Submit);
    const struct tally *t = &c->room.tally;
    add(l, "jobs_submitted", submits.calls - submits.failed);
    add(l, "jobs_started", t->started);
    add(l, "jobs_completed", t->completed);
    add(l, "jobs_canceled", t->cancelled);
    add(l, "jobs_failed", t->failed);
    add(l, "jobs_pending", st.pending);
    add(l, "jobs_running", st.running);
}

static void add_passes(struct ctl *c, counters_list *l) {
    struct plan_stats ps = plan_stats(c->room.plan);
    uint64_t mean = ps.passes ? ps.total_us / ps.passes : 0;
    int64_t age_secs = MAX(room_now_unix(&c->room) - c->started_unix, (int64_t)1);
    add(l, "schedule_cycle_last", ps.last_us);
    add(l, "schedule_cycle_max", ps.max_us);
    add(l, "schedule_cycle_total", ps.passes);
    add(l, "schedule_cycle_sum", ps.total_us);
    add(l, "schedule_cycle_mean", mean);
    add(l, "schedule_cycle_depth", ps.considered);
    add(l, "schedule_cycle_mean_depth", ps.passes ? ps.considered / ps.passes : 0);
    add(l, "schedule_cycle_per_minute", ps.passes * 60 / (uint64_t)MAX(age_secs, (int64_t)60));
    add(l, "schedule_queue_length", ps.last_pending);
    add(l, "schedule_exit.end_job_queue", ps.passes);
    add(l, "bf_backfilled_jobs", ps.backfilled);
    add(l, "bf_last_backfilled_jobs", ps.backfilled);
    add(l, "bf_cycle_counter", ps.passes);
    add(l, "bf_cycle_last", ps.last_us);
    add(l, "bf_cycle_max", ps.max_us);
    add(l, "bf_cycle_sum", ps.total_us);
    add(l, "bf_cycle_mean", mean);
    add(l, "bf_last_depth", ps.last_considered);
    add(l, "bf_last_depth_try", ps.last_considered);
    add(l, "bf_queue_len", ps.last_pending);
    add(l, "bf_exit.end_job_queue", ps.passes);
    add(l, "bf_active", ps.running);
    add(l, "bf_depth_sum", ps.considered);
    add(l, "bf_depth_try_sum", ps.considered);
    add(l, "bf_depth_mean", ps.passes ? ps.considered / ps.passes : 0);
    add(l, "bf_depth_mean_try", ps.passes ? ps.considered / ps.passes : 0);
    add(l, "bf_queue_len_sum", ps.pending);
    add(l, "bf_queue_len_mean", ps.passes ? ps.pending / ps.passes : 0);
    add(l, "bf_when_last_cycle", (uint64_t)ps.last_unix);
}

static void add_queues(struct ctl *c, counters_list *l) {
    struct react_stats rs = react_stats(c->room.react);
    struct acct_stats as = acct_stats(c->room.acct);
    add(l, "server_thread_count", api_in_flight(c->api));
    add(l, "agent_queue_size", rs.in_flight);
    add(l, "dbd_agent_queue_size", as.waiting);
}

static void add_users(struct ctl *c, counters_list *l, struct arena *a) {
    struct api_user_stats st;
    for (uint32_t i = 0; api_user_stats(c->api, i, &st); i++) {
        add(l, arena_printf(a, "user %u count", st.uid), st.calls);
        add(l, arena_printf(a, "user %u total_time", st.uid), st.total_us);
    }
}

void ctl_diag_slurm(struct ctl *c, counters_list *l, struct arena *a) {
    add_queues(c, l);
    add_jobs(c, l);
    add_passes(c, l);
    for (unsigned m = 0; m < WIRE_N_METHODS; m++) {
        struct api_method_stats st = api_method_stats(c->api, m);
        if (!st.calls)
            continue;
        add(l, arena_printf(a, "rpc %u count %s", m, wire_method(m)->name), st.calls);
        add(l, arena_printf(a, "rpc %u total_time", m), st.total_us);
    }
    add_users(c, l, a);
}
