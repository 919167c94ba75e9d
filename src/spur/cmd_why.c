/* SPDX-License-Identifier: Apache-2.0
 *
 * spur why: what a job waits for, in plain words. Everything that is said comes from the controller's planner; here it is
 * only put into sentences.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/text.h"
#include "spur/command.h"
#include "spur/json.h"

struct asked {
    bool json;
};

#define AT(field) offsetof(struct asked, field)
static const struct opt_row rows[] = {
    OPT_ROW_HELP,
    {"json", 0, NULL, OPT_BOOL, 0, AT(json), NULL, NULL, "print JSON"},
    OPT_ROW_STALE,
    OPT_ROW_USAGE,
    OPT_ROW_VERSION,
};

const struct opt_table *cmd_why_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS] JOB…",
        .brief = "[--json] job…",
        .row = rows,
        .n = ARRAY_LEN(rows),
        .usage_exit = 1,
        .note = "JOB is the id of a job, an array, or a task of one (123_4). What is said of nodes is of this moment: times are\n"
                "those at which jobs end that take all of their time.\n"};
    return &t;
}

/* ---- words ---- */

static void add_jobs(const uint32_t *jobs, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n; i++)
        str_addf(out, i ? ", %u" : "%u", jobs[i]);
}

static void add_when(const char *before, int64_t when, struct str *out) {
    if (!when)
        return;
    str_add(out, before);
    cli_time(when, "", out);
}

static void print_fact(const struct why_fact *f, struct str *out) {
    str_addf(out, "  - %s", f->text);
    add_when(", until ", f->when_unix, out);
    if (f->n_jobs && strcmp(f->kind, "licence") == 0) {
        str_add(out, f->n_jobs == 1 ? "; job " : "; jobs ");
        add_jobs(f->jobs, f->n_jobs, out);
        str_add(out, f->n_jobs == 1 ? " has it" : " have it");
    }
    str_addc(out, '\n');
}

static void print_node(const struct why_node *n, bool with_partition, struct str *out) {
    str_add(out, "  - ");
    hostlist_compact(n->names, n->n_names, out);
    if (with_partition)
        str_addf(out, " (%s)", n->partition);
    str_addf(out, ": %s%s", strcmp(n->kind, "busy") == 0 ? "busy: " : "", n->text);
    if (n->n_jobs && strcmp(n->kind, "busy") == 0) {
        str_add(out, n->n_jobs == 1 ? "; job " : "; jobs ");
        add_jobs(n->jobs, n->n_jobs, out);
        str_add(out, n->n_jobs == 1 ? " is there" : " are there");
    }
    add_when(strcmp(n->kind, "kept") == 0 ? " from " : ", until ", n->until_unix, out);
    str_addc(out, '\n');
}

static void print_before(const struct why *w, struct str *out) {
    if (!w->n_before_all)
        return;
    str_addf(out, "Before it in the queue: %u job%s: ", w->n_before_all, w->n_before_all == 1 ? "" : "s");
    add_jobs(w->before, w->n_before, out);
    str_add(out, w->n_before_all > w->n_before ? ", …\n" : "\n");
}

static bool many_partitions(const struct why *w) {
    for (uint32_t i = 1; i < w->n_nodes; i++)
        if (!str_eq(w->nodes[i].partition, w->nodes[0].partition))
            return true;
    return false;
}

static void print_expected(const struct why *w, struct str *out) {
    if (w->starts)
        str_add(out, "Nothing stands in its way: it starts now");
    else if (w->expected_unix)
        add_when("It is expected to start at ", w->expected_unix, out);
    else
        str_add(out, "When it will start is not known");
    if (w->n_expected_nodes) {
        str_add(out, " on ");
        hostlist_compact(w->expected_nodes, w->n_expected_nodes, out);
    }
    str_add(out, ".\n");
}

static void print_words(const struct why_reply *r, struct str *out) {
    const struct why *w = r->why;
    str_addf(out, "Job %s", r->id);
    if (r->name)
        str_addf(out, " (%s)", r->name);
    if (!w) {
        str_addf(out, " doesn't wait: it is %s.\n", r->state_text);
        return;
    }
    str_addf(out, " waits in partition %s: %s.\n", r->partition ? r->partition : "(none)",
             w->starts ? "its turn is now" : w->reason_text ? w->reason_text : job_reason_word(w->reason));
    print_expected(w, out);
    if (w->n_facts && !w->starts)
        str_add(out, "What it waits for:\n");
    for (uint32_t i = 0; i < w->n_facts && !w->starts; i++)
        print_fact(&w->facts[i], out);
    if (w->n_nodes && !w->starts)
        str_add(out, "Nodes:\n");
    for (uint32_t i = 0; i < w->n_nodes && !w->starts; i++)
        print_node(&w->nodes[i], many_partitions(w), out);
    if (w->n_rows_more && !w->starts)
        str_addf(out, "  - and %u more\n", w->n_rows_more);
    print_before(w, out);
}

/* ---- JSON ---- */

static void json_jobs(struct json *w, const char *key, const uint32_t *jobs, uint32_t n) {
    json_open(w, key, '[');
    for (uint32_t i = 0; i < n; i++)
        json_number(w, NULL, jobs[i]);
    json_close(w, ']');
}

static void json_names(struct json *w, const char *key, const char *const *names, uint32_t n) {
    json_open(w, key, '[');
    for (uint32_t i = 0; i < n; i++)
        json_text(w, NULL, names[i]);
    json_close(w, ']');
}

static void json_why(struct json *w, const struct why *y) {
    json_text(w, "reason", y->reason_text ? y->reason_text : job_reason_word(y->reason));
    json_flag(w, "starts", y->starts);
    json_number(w, "priority", (int64_t)y->priority);
    json_number(w, "expected_start", y->expected_unix);
    json_names(w, "expected_nodes", y->expected_nodes, y->n_expected_nodes);
    json_open(w, "facts", '[');
    for (uint32_t i = 0; i < y->n_facts; i++) {
        json_open(w, NULL, '{');
        json_text(w, "kind", y->facts[i].kind);
        json_text(w, "text", y->facts[i].text);
        json_number(w, "until", y->facts[i].when_unix);
        json_jobs(w, "jobs", y->facts[i].jobs, y->facts[i].n_jobs);
        json_close(w, '}');
    }
    json_close(w, ']');
    json_open(w, "nodes", '[');
    for (uint32_t i = 0; i < y->n_nodes; i++) {
        json_open(w, NULL, '{');
        json_names(w, "names", y->nodes[i].names, y->nodes[i].n_names);
        json_text(w, "partition", y->nodes[i].partition);
        json_text(w, "kind", y->nodes[i].kind);
        json_text(w, "text", y->nodes[i].text);
        json_number(w, "until", y->nodes[i].until_unix);
        json_jobs(w, "jobs", y->nodes[i].jobs, y->nodes[i].n_jobs);
        json_close(w, '}');
    }
    json_close(w, ']');
    json_jobs(w, "before", y->before, y->n_before);
    json_number(w, "before_count", y->n_before_all);
}

static void print_json(struct json *w, const struct why_reply *r) {
    json_open(w, NULL, '{');
    json_text(w, "job", r->id);
    json_text(w, "name", r->name);
    json_text(w, "partition", r->partition);
    json_text(w, "state", r->state_text);
    if (r->why)
        json_why(w, r->why);
    json_close(w, '}');
}

/* ---- the command ---- */

static int ask(struct cli *c, const char *word, struct why_reply *reply) {
    struct job_name name;
    struct err e = {0};
    if (!cli_job_name(c, word, 0, &name) || name.has_step || name.target.n_tasks > 1 ||
        (name.target.n_tasks && name.target.tasks[0].first != name.target.tasks[0].last)) {
        cli_error(c, "%s is not the id of a job, or of one task of an array", word);
        return 1;
    }
    struct why_request request = {.job_id = name.target.job_id, .task = name.target.n_tasks ? name.target.tasks[0].first + 1 : 0};
    if (!cli_call(c, WIRE_Controller_Why, &request, reply, &e))
        return 0;
    cli_error(c, "%s: %s", word, e.text);
    return 1;
}

static int run(struct cli *c, const struct asked *a, const char *const *word, size_t n) {
    auto_str out = {0};
    struct json w = {.out = &out};
    int exit_code = n ? 0 : 1;
    if (!n)
        cli_error(c, "say which job");
    if (n && a->json)
        json_open(&w, NULL, '[');
    for (size_t i = 0; i < n; i++) {
        struct why_reply reply = {0};
        if (ask(c, word[i], &reply)) {
            exit_code = 1;
            continue;
        }
        if (a->json)
            print_json(&w, &reply);
        else
            print_words(&reply, &out);
    }
    if (n && a->json)
        json_close(&w, ']'), str_addc(&out, '\n');
    cli_out(&out);
    return exit_code;
}

int cmd_why(struct cli *c) {
    struct asked a = {0};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_why_options(), &a, &r, true, &exit_code))
        exit_code = run(c, &a, r.words.p, r.words.n);
    opt_fini(&r);
    return exit_code;
}
