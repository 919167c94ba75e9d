/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spur/sdiag.h"

/* Plain numbers in the order of the schema; "A.B" stands in an object. */
static const char *const keys[] = {
    "server_thread_count", "agent_queue_size", "agent_count", "agent_thread_count", "dbd_agent_queue_size",
    "gettimeofday_latency", "schedule_cycle_max", "schedule_cycle_last", "schedule_cycle_sum", "schedule_cycle_total",
    "schedule_cycle_mean", "schedule_cycle_mean_depth", "schedule_cycle_per_minute", "schedule_cycle_depth",
    "schedule_exit.end_job_queue", "schedule_exit.default_queue_depth", "schedule_exit.max_job_start",
    "schedule_exit.max_rpc_cnt", "schedule_exit.max_sched_time", "schedule_exit.licenses", "schedule_queue_length",
    "jobs_submitted", "jobs_started", "jobs_completed", "jobs_canceled", "jobs_failed", "jobs_pending", "jobs_running",
    "bf_backfilled_jobs", "bf_last_backfilled_jobs", "bf_backfilled_het_jobs", "bf_cycle_counter", "bf_cycle_mean",
    "bf_depth_mean", "bf_depth_mean_try", "bf_cycle_sum", "bf_cycle_last", "bf_cycle_max", "bf_exit.end_job_queue",
    "bf_exit.bf_max_job_start", "bf_exit.bf_max_job_test", "bf_exit.bf_max_time", "bf_exit.bf_node_space_size",
    "bf_exit.state_changed", "bf_last_depth", "bf_last_depth_try", "bf_depth_sum", "bf_depth_try_sum", "bf_queue_len",
    "bf_queue_len_mean", "bf_queue_len_sum", "bf_table_size", "bf_table_size_sum", "bf_table_size_mean",
};

static void numbers(struct json *w, const struct diag_reply *reply) {
    char group[40] = "";
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *dot = strchr(keys[i], '.');
        size_t n = dot ? (size_t)(dot - keys[i]) : 0;
        if (*group && (n != strlen(group) || strncmp(group, keys[i], n))) {
            json_close(w, '}');
            *group = '\0';
        }
        if (dot && !*group) {
            snprintf(group, sizeof(group), "%.*s", (int)n, keys[i]);
            json_open(w, group, '{');
        }
        json_number(w, dot ? dot + 1 : keys[i], (int64_t)sdiag_counter(reply, keys[i]));
    }
}

static void requests(struct json *w, const char *key, const char *kind, const struct diag_reply *reply) {
    struct sdiag_request *list = xcalloc(SDIAG_REQUESTS, sizeof(*list));
    size_t n = sdiag_requests(reply, kind, list, SDIAG_REQUESTS);
    bool users = str_eq(kind, "user");
    json_open(w, key, '[');
    for (size_t i = 0; i < n; i++) {
        char name[40];
        sdiag_request_name(&list[i], users, name);
        json_open(w, NULL, '{');
        json_number(w, users ? "user_id" : "type_id", list[i].id);
        json_text(w, users ? "user" : "message_type", name);
        json_number(w, "count", (int64_t)list[i].count);
        if (!users) {
            json_number(w, "queued", 0);
            json_number(w, "dropped", 0);
            json_number(w, "cycle_last", 0);
            json_number(w, "cycle_max", 0);
        }
        json_number(w, "total_time", (int64_t)list[i].total_us);
        json_no_val(w, "average_time", list[i].count ? (int64_t)(list[i].total_us / list[i].count) : 0);
        json_close(w, '}');
    }
    json_close(w, ']');
    free(list);
}

void sdiag_json(const struct cli *c, const struct diag_reply *reply) {
    auto_str out = {0};
    struct json w = {.out = &out};
    json_doc_begin(&w);
    json_open(&w, "statistics", '{');
    json_no_val(&w, "req_time", reply->now_unix);
    json_no_val(&w, "req_time_start", reply->since_unix);
    json_no_val(&w, "job_states_ts", reply->now_unix);
    json_no_val(&w, "bf_when_last_cycle", (int64_t)sdiag_counter(reply, "bf_when_last_cycle"));
    numbers(&w, reply);
    json_flag(&w, "bf_active", sdiag_counter(reply, "bf_active") != 0);
    requests(&w, "rpcs_by_message_type", "rpc", reply);
    requests(&w, "rpcs_by_user", "user", reply);
    json_empty(&w, "pending_rpcs", "[]");
    json_empty(&w, "pending_rpcs_by_hostlist", "[]");
    json_close(&w, '}');
    json_doc_end(&w, c, NULL);
}
