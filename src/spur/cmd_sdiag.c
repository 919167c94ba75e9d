/* SPDX-License-Identifier: Apache-2.0
 *
 * sdiag: Slurm's lines, each of a counter of the group "Slurm" that the controller has under the name of --json; then
 * the controller's own counters, group by group. What has no counter here never happens here: it is 0.
 */
#include "spur/sdiag.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "spur/command.h"

struct sdiag {
    bool all, reset, by_id, by_time, by_mean, json;
    const char *json_version;
};

static int set_json(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sdiag *s = r->ctx;
    s->json = true;
    s->json_version = value;
    return 0;
}

#define AT(field) offsetof(struct sdiag, field)
static const struct opt_row rows[] = {
    {"all", 'a', NULL, OPT_BOOL, 0, AT(all), NULL, NULL, "all of it (as without it)"},
    {"cluster", 'M', "name", OPT_CLUSTERS, 0, 0, NULL, NULL, "this cluster by its name, or all"},
    OPT_ROW_HELP,
    {"json", 0, "version", OPT_CALL, OPT_MAYBE, 0, set_json, NULL, "as JSON (list: which versions there are)"},
    {"reset", 'r', NULL, OPT_BOOL, 0, AT(reset), NULL, NULL, "start counting anew"},
    {"sort-by-id", 'i', NULL, OPT_BOOL, 0, AT(by_id), NULL, NULL, "requests in the order of their numbers, users of their ids"},
    {"sort-by-time", 't', NULL, OPT_BOOL, 0, AT(by_time), NULL, NULL, "requests by the time that they took in all"},
    {"sort-by-time2", 'T', NULL, OPT_BOOL, 0, AT(by_mean), NULL, NULL, "requests by the time that one took"},
    OPT_ROW_USAGE,
    OPT_ROW_VERSION,
    {"yaml", 0, "version", OPT_NOT_YET, OPT_MAYBE},
};

const struct opt_table *cmd_sdiag_options(void) {
    static const struct opt_table t = {.usage = "[OPTIONS]", .brief = "[-aiTrt]", .row = rows, .n = ARRAY_LEN(rows),
                                       .usage_exit = 1};
    return &t;
}

/* ---- the lines ---- */

/* A key is a counter; "@KEY" one that is a moment, "@" the moment of the answer; NULL: the label alone. */
static const struct {
    const char *label, *key;
} lines[] = {
    {"Server thread count:  ", "server_thread_count"},
    {"RPC queue enabled:    ", ""},
    {"Agent queue size:     ", "agent_queue_size"},
    {"Agent count:          ", "agent_count"},
    {"Agent thread count:   ", "agent_thread_count"},
    {"DBD Agent queue size: ", "dbd_agent_queue_size"},
    {"", NULL},
    {"Jobs submitted: ", "jobs_submitted"},
    {"Jobs started:   ", "jobs_started"},
    {"Jobs completed: ", "jobs_completed"},
    {"Jobs canceled:  ", "jobs_canceled"},
    {"Jobs failed:    ", "jobs_failed"},
    {"", NULL},
    {"Job states ts:  ", "@"},
    {"Jobs pending:   ", "jobs_pending"},
    {"Jobs running:   ", "jobs_running"},
    {"", NULL},
    {"Main schedule statistics (microseconds):", NULL},
    {"\tLast cycle:   ", "schedule_cycle_last"},
    {"\tMax cycle:    ", "schedule_cycle_max"},
    {"\tTotal cycles: ", "schedule_cycle_total"},
    {"\tMean cycle:   ", "schedule_cycle_mean"},
    {"\tMean depth cycle:  ", "schedule_cycle_mean_depth"},
    {"\tCycles per minute: ", "schedule_cycle_per_minute"},
    {"\tLast queue length: ", "schedule_queue_length"},
    {"", NULL},
    {"Main scheduler exit:", NULL},
    {"\tEnd of job queue:", "schedule_exit.end_job_queue"},
    {"\tHit default_queue_depth: ", "schedule_exit.default_queue_depth"},
    {"\tHit sched_max_job_start: ", "schedule_exit.max_job_start"},
    {"\tBlocked on licenses: ", "schedule_exit.licenses"},
    {"\tHit max_rpc_cnt: ", "schedule_exit.max_rpc_cnt"},
    {"\tTimeout (max_sched_time): ", "schedule_exit.max_sched_time"},
    {"", NULL},
    {"Backfilling stats", NULL},
    {"\tTotal backfilled jobs (since last slurm start): ", "bf_backfilled_jobs"},
    {"\tTotal backfilled jobs (since last stats cycle start): ", "bf_last_backfilled_jobs"},
    {"\tTotal backfilled heterogeneous job components: ", "bf_backfilled_het_jobs"},
    {"\tTotal cycles: ", "bf_cycle_counter"},
    {"\tLast cycle when: ", "@bf_when_last_cycle"},
    {"\tLast cycle: ", "bf_cycle_last"},
    {"\tMax cycle:  ", "bf_cycle_max"},
    {"\tMean cycle: ", "bf_cycle_mean"},
    {"\tLast depth cycle: ", "bf_last_depth"},
    {"\tLast depth cycle (try sched): ", "bf_last_depth_try"},
    {"\tDepth Mean: ", "bf_depth_mean"},
    {"\tDepth Mean (try depth): ", "bf_depth_mean_try"},
    {"\tLast queue length: ", "bf_queue_len"},
    {"\tQueue length mean: ", "bf_queue_len_mean"},
    {"\tLast table size: ", "bf_table_size"},
    {"\tMean table size: ", "bf_table_size_mean"},
    {"", NULL},
    {"Backfill exit", NULL},
    {"\tEnd of job queue:", "bf_exit.end_job_queue"},
    {"\tHit bf_max_job_start: ", "bf_exit.bf_max_job_start"},
    {"\tHit bf_max_job_test: ", "bf_exit.bf_max_job_test"},
    {"\tSystem state changed: ", "bf_exit.state_changed"},
    {"\tHit table size limit (bf_node_space_size): ", "bf_exit.bf_node_space_size"},
    {"\tTimeout (bf_max_time): ", "bf_exit.bf_max_time"},
    {"", NULL},
};

uint64_t sdiag_counter(const struct diag_reply *reply, const char *key) {
    for (uint32_t i = 0; i < reply->n_counters; i++)
        if (str_eq(reply->counters[i].group, "Slurm") && str_eq(reply->counters[i].name, key))
            return reply->counters[i].value;
    return 0;
}

static void moment(const char *what, int64_t unix_secs, struct str *out) {
    str_add(out, what);
    cli_date(unix_secs, out);
    str_addf(out, " (%lld)\n", (long long)unix_secs);
}

static void add_lines(const struct diag_reply *reply, struct str *out) {
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        if (!lines[i].key)
            str_addf(out, "%s\n", lines[i].label);
        else if (*lines[i].key == '@')
            moment(lines[i].label, lines[i].key[1] ? (int64_t)sdiag_counter(reply, lines[i].key + 1) : reply->now_unix, out);
        else
            str_addf(out, "%s%llu\n", lines[i].label, (unsigned long long)sdiag_counter(reply, lines[i].key));
    }
}

/* ---- requests ---- */

size_t sdiag_requests(const struct diag_reply *reply, const char *kind, struct sdiag_request *out, size_t most) {
    size_t n = 0, width = strlen(kind);
    for (uint32_t i = 0; i < reply->n_counters; i++) {
        const struct counter *c = &reply->counters[i];
        unsigned id;
        int read = 0;
        if (!str_eq(c->group, "Slurm") || !c->name || strncmp(c->name, kind, width) || c->name[width] != ' ')
            continue;
        if (sscanf(c->name + width, " %u count%n", &id, &read) == 1 && read && n < most)
            out[n++] = (struct sdiag_request){id, c->name + width + read + (c->name[width + read] == ' '), c->value, 0};
        else if (n && sscanf(c->name + width, " %u total_time%n", &id, &read) == 1 && read && out[n - 1].id == id)
            out[n - 1].total_us = c->value;
    }
    return n;
}

static uint64_t mean(const struct sdiag_request *r) {
    return r->count ? r->total_us / r->count : 0;
}

static int by_wish(const void *pa, const void *pb, void *arg) {
    const struct sdiag *s = arg;
    const struct sdiag_request *a = pa, *b = pb;
    uint64_t x = s->by_time ? b->total_us : s->by_mean ? mean(b) : s->by_id ? a->id : b->count;
    uint64_t y = s->by_time ? a->total_us : s->by_mean ? mean(a) : s->by_id ? b->id : a->count;
    return (x > y) - (x < y);
}

static void add_requests(const struct sdiag *s, const struct diag_reply *reply, const char *kind, struct str *out) {
    struct sdiag_request *list = xcalloc(SDIAG_REQUESTS, sizeof(*list));
    size_t n = sdiag_requests(reply, kind, list, SDIAG_REQUESTS);
    bool users = str_eq(kind, "user");
    qsort_r(list, n, sizeof(*list), by_wish, (void *)s);
    for (size_t i = 0; i < n; i++) {
        char name[40];
        sdiag_request_name(&list[i], users, name);
        str_addf(out, users ? "\t%-15s (%8u) " : "\t%-40s(%5u) ", name, list[i].id);
        str_addf(out, "count:%-6llu ave_time:%-6llu total_time:%llu\n", (unsigned long long)list[i].count,
                 (unsigned long long)mean(&list[i]), (unsigned long long)list[i].total_us);
    }
    free(list);
}

void sdiag_request_name(const struct sdiag_request *r, bool is_user, char out[40]) {
    struct passwd *pw = is_user ? getpwuid(r->id) : NULL;
    snprintf(out, 40, "%s", is_user ? pw ? pw->pw_name : "Unknown" : r->name);
}

/* ---- all of it ---- */

static void add_own(const struct diag_reply *reply, struct str *out) {
    const char *group = NULL;
    for (uint32_t i = 0; i < reply->n_counters; i++) {
        const struct counter *c = &reply->counters[i];
        if (str_eq(c->group, "Slurm"))
            continue;
        if (!str_eq(group, c->group))
            str_addf(out, "\n%s\n", c->group ? c->group : "");
        group = c->group;
        const char *unit = c->unit ? c->unit : "";
        str_addf(out, "\t%s: %llu%s%s\n", c->name ? c->name : "", (unsigned long long)c->value, *unit ? " " : "", unit);
    }
}

static void print(const struct sdiag *s, const struct diag_reply *reply) {
    static const char line[] = "*******************************************************\n";
    auto_str out = {0};
    str_add(&out, line);
    moment("sdiag output at ", reply->now_unix, &out);
    moment("Data since      ", reply->since_unix, &out);
    str_add(&out, line);
    add_lines(reply, &out);
    str_add(&out, "Remote Procedure Call statistics by message type\n");
    add_requests(s, reply, "rpc", &out);
    str_add(&out, "\nRemote Procedure Call statistics by user\n");
    add_requests(s, reply, "user", &out);
    str_add(&out, "\nPending RPC statistics\n\tNo pending RPCs\n");
    add_own(reply, &out);
    cli_out(&out);
}

static int ask(struct cli *c, const struct sdiag *s) {
    struct diag_request request = {.reset = s->reset};
    struct diag_reply reply = {0};
    struct err e = {0};
    if (cli_call(c, WIRE_Controller_Diag, &request, &reply, &e)) {
        fprintf(stderr, s->reset ? "slurm_reset_statistics: %s\n" : "slurm_get_statistics: %s\n", e.text);
        return 255; /* as Slurm's */
    }
    if (s->reset)
        puts("Reset scheduling statistics");
    else if (s->json)
        sdiag_json(c, &reply);
    else
        print(s, &reply);
    return 0;
}

int cmd_sdiag(struct cli *c) {
    struct sdiag s = {0};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_sdiag_options(), &s, &r, false, &exit_code) &&
        (!s.json || json_doc_version(c, s.json_version, &exit_code)))
        exit_code = ask(c, &s);
    opt_fini(&r);
    return exit_code;
}
