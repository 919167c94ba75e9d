/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps: where they go, that they wait for room, who may have them, how they end; and who attends to what.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/sql/sql.h"
#include "rig.h"
#include "spurctld/acct/schema.h"
#include "spurctld/admit/step.h"
#include "wire/proof.h"

static void short_times(struct rconf *conf, struct arena *a) {
    conf->attend_secs = 30;
    conf->kill_wait_secs = 7;
    conf->min_job_age_secs = 60;
}

/* A job of user 1000 on nodes of 4 CPUs, as an allocation that nobody needs to attend to. */
static uint32_t allocate(struct rig *g, uint32_t nodes, uint32_t tasks) {
    struct job_more more = {.interactive = true, .no_shell = true};
    struct job_spec spec = {.work_dir = "/", .min_nodes = nodes, .max_nodes = nodes, .n_tasks = tasks,
                            .n_tasks_given = tasks, .more = &more, .time_limit_min = 60};
    uint32_t id = rig_submit_spec(g, 1000, &spec, NULL);
    assert_int_not_equal(id, 0);
    rig_until(g, id, "RUNNING", 3000);
    return id;
}

static void begin(struct rig *g, uint32_t nodes) {
    rig_init(g, short_times);
    for (uint32_t i = 0; i < nodes; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%u", i + 1);
        rig_node(g, name, NULL, NULL);
    }
}

static bool is_on(const struct step *st, const char *name) {
    for (uint32_t i = 0; i < st->n_nodes; i++)
        if (str_eq(st->nodes[i].name, name))
            return true;
    return false;
}

static void end_step(struct rig *g, uint32_t job, uint32_t step) {
    for (uint32_t k = 0; k < g->n_nodes; k++)
        if (is_on(rig_get_step(g, job, step), g->node[k].name))
            assert_int_equal(rig_step_report(g, &g->node[k], job, 1, step, 0), 0);
}

/* "n1:0,1 n2:2" */
static void assert_layout(struct rig *g, uint32_t job, int64_t step, const char *want) {
    auto_str got = {0};
    assert_true(step >= 0);
    const struct step *st = rig_get_step(g, job, (uint32_t)step);
    for (uint32_t i = 0; i < st->n_nodes; i++) {
        str_addf(&got, "%s%s:", i ? " " : "", st->nodes[i].name);
        assert_int_equal(st->nodes[i].n_tasks, st->nodes[i].n_ranks);
        for (uint32_t k = 0; k < st->nodes[i].n_ranks; k++)
            str_addf(&got, "%s%u", k ? "," : "", st->nodes[i].ranks[k]);
    }
    assert_string_equal(str_text(&got), want);
}

static void tasks_are_laid_out_as_slurms(void **state) {
    struct rig g;
    begin(&g, 2);
    uint32_t id = allocate(&g, 2, 7); /* 4 CPUs and 3 */
    const struct {
        struct step_spec s;
        const char *want;
    } rows[] = {
        {{.n_tasks = 1}, "n1:0"},
        {{.n_tasks = 4}, "n1:0,1,2,3"},
        {{.n_tasks = 5}, "n1:0,1,2,3 n2:4"},
        {{.n_tasks = 5, .min_nodes = 2}, "n1:0,1,2,3 n2:4"},
        {{.n_tasks = 2, .min_nodes = 2}, "n1:0 n2:1"},
        {{.n_tasks = 1, .min_nodes = 2}, "n1:0"},
        {{.n_tasks = 5, .min_nodes = 2, .cyclic = true}, "n1:0,2,4 n2:1,3"},
        {{.n_tasks = 7, .min_nodes = 2, .cyclic = true}, "n1:0,2,4,6 n2:1,3,5"},
        {{.n_tasks = 7, .min_nodes = 2, .plane = 2}, "n1:0,1,4,5 n2:2,3,6"},
        {{.n_tasks = 6, .min_nodes = 2, .plane = 3}, "n1:0,1,2 n2:3,4,5"},
        {{.n_tasks = 5, .min_nodes = 2, .plane = 1}, "n1:0,2,4 n2:1,3"},
        {{.n_tasks = 5, .min_nodes = 2, .plane = 9}, "n1:0,1,2,3 n2:4"},
        {{.n_tasks = 5, .task_nodes = (const char *const[]){"n2", "n1", "n1", "n2", "n2"}, .n_task_nodes = 5}, "n1:1,2 n2:0,3,4"},
        {{.n_tasks = 1, .task_nodes = (const char *const[]){"n2"}, .n_task_nodes = 1}, "n2:0"},
        {{.n_tasks = 4, .tasks_per_node = 2}, "n1:0,1 n2:2,3"},
        {{.n_tasks = 1, .req_nodes = (const char *const[]){"n2"}, .n_req_nodes = 1}, "n2:0"},
        {{.n_tasks = 2, .exc_nodes = (const char *const[]){"n1"}, .n_exc_nodes = 1}, "n2:0,1"},
        {{.n_tasks = 3, .cpus_per_task = 2}, "n1:0,1 n2:2"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t step = rig_step(&g, id, &rows[i].s);
        assert_layout(&g, id, step, rows[i].want);
        end_step(&g, id, (uint32_t)step);
    }
    rig_fini(&g);
}

static void what_can_never_be_is_refused(void **state) {
    struct rig g;
    begin(&g, 2);
    uint32_t id = allocate(&g, 2, 4); /* 3 CPUs and 1 */
    const char *const other[] = {"n9"};
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 5}), E_STEP_TOO_BIG);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 3, .min_nodes = 3}), E_STEP_TOO_BIG);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1, .cpus_per_task = 9}), E_STEP_TOO_BIG);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 3, .cpus_per_task = 2}), E_STEP_TOO_BIG);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1, .req_nodes = other, .n_req_nodes = 1}),
                     E_NODES_UNAVAIL);
    static const char *const twice[] = {"n2", "n2"}, *const strange[] = {"n1", "n9"};
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 2, .task_nodes = twice, .n_task_nodes = 2}), E_STEP_TOO_BIG);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 2, .task_nodes = strange, .n_task_nodes = 2}), E_NODES_UNAVAIL);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 3, .task_nodes = twice, .n_task_nodes = 2}), E_TASK_COUNT);
    struct gres_ask gpu = {.name = "gpu", .count = 1};
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1, .gres = &gpu, .n_gres = 1}), E_GRES);
    assert_int_equal(rig_step(&g, id + 1, &(struct step_spec){.n_tasks = 1}), E_JOB_ID);
    struct rig_ask a;
    static const uint32_t others[] = {1001, 0};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        rig_step_start(&g, others[i], id, &(struct step_spec){.n_tasks = 1}, &a);
        assert_true(rig_answered(&g, &a, 1000));
        assert_int_equal(a.code, E_DENIED);
        rig_ask_fini(&a);
    }
    uint32_t held = rig_submit(&g, &(struct rig_job){.hold = true});
    assert_int_equal(rig_step(&g, held, &(struct step_spec){.n_tasks = 1}), E_JOB_PENDING);
    assert_int_equal(rig_cancel(&g, 1000, held), 0);
    assert_int_equal(rig_step(&g, held, &(struct step_spec){.n_tasks = 1}), E_JOB_DONE);
    rig_fini(&g);
}

/* All CPUs are taken by a step that does not say otherwise; what does not fit waits, and comes in its turn. */
static void a_step_waits_for_room(void **state) {
    struct rig g;
    struct rig_ask second, third;
    begin(&g, 1);
    uint32_t id = allocate(&g, 1, 4);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1}), 0);
    assert_int_equal(rig_get_step(&g, id, 0)->n_cpus, 4);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1, .immediate = true}), E_STEP_BUSY);
    rig_step_start(&g, 1000, id, &(struct step_spec){.n_tasks = 2, .exact = true}, &second);
    rig_step_start(&g, 1000, id, &(struct step_spec){.n_tasks = 2, .exact = true}, &third);
    rig_run(&g, 5000);
    assert_false(second.is_answered || third.is_answered);
    end_step(&g, id, 0);
    assert_true(rig_answered(&g, &second, 100) && rig_answered(&g, &third, 100));
    assert_int_equal(second.code, 0);
    assert_int_equal(third.code, 0);
    assert_int_equal(((const struct step_reply *)second.reply)->step->id, 1);
    assert_int_equal(((const struct step_reply *)third.reply)->step->id, 2);
    rig_ask_fini(&second);
    rig_ask_fini(&third);
    int64_t over = rig_step(&g, id, &(struct step_spec){.n_tasks = 4, .overlap = true});
    assert_layout(&g, id, over, "n1:0,1,2,3");
    rig_step_start(&g, 1000, id, &(struct step_spec){.n_tasks = 1}, &second); /* nobody makes room */
    assert_true(rig_answered(&g, &second, 25000));
    assert_int_equal(second.code, E_STEP_BUSY);
    rig_ask_fini(&second);
    rig_fini(&g);
}

static void the_end_of_a_job_answers_who_waits(void **state) {
    struct rig g;
    struct rig_ask a;
    begin(&g, 1);
    uint32_t id = allocate(&g, 1, 4);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1}), 0);
    rig_step_start(&g, 1000, id, &(struct step_spec){.n_tasks = 1}, &a);
    rig_run(&g, 100);
    assert_int_equal(rig_cancel(&g, 1000, id), 0);
    assert_true(rig_answered(&g, &a, 1000));
    assert_int_equal(a.code, E_JOB_DONE);
    rig_ask_fini(&a);
    rig_report(&g, &g.node[0], id, 1, 15);
    rig_until(&g, id, "CANCELLED", 1000);
    assert_true(step_is_over(rig_get_step(&g, id, 0)));
    assert_int_equal(rig_get_step(&g, id, 0)->state, JOB_CANCELLED);
    rig_run(&g, 50);
    uint32_t n_steps = 0;
    assert_int_equal(vctl_rows(g.c, NULL, NULL, &n_steps), 1);
    assert_int_equal(n_steps, 1);
    rig_run(&g, 100000); /* leaves the state, with its steps */
    assert_null(rig_job(&g, id));
    assert_null(rig_get_step(&g, id, 0));
    rig_fini(&g);
}

static void a_repeat_is_the_same_step(void **state) {
    struct rig g;
    struct rig_ask a[2];
    static const uint8_t token[TOKEN_SIZE] = "sixteen bytes ..";
    begin(&g, 1);
    uint32_t id = allocate(&g, 1, 4);
    struct step_spec s = {.n_tasks = 1};
    struct step_request rq = {.token = token, .n_token = TOKEN_SIZE, .job_id = id, .spec = &s};
    for (int i = 0; i < 2; i++) {
        rig_step_request(&g, 1000, &rq, &a[i]);
        assert_true(rig_answered(&g, &a[i], 1000));
        assert_int_equal(a[i].code, 0);
        assert_int_equal(((const struct step_reply *)a[i].reply)->step->id, 0);
        rig_ask_fini(&a[i]);
    }
    assert_null(rig_get_step(&g, id, 1));
    rig_fini(&g);
}

static void tickets_are_signed_for_their_node(void **state) {
    struct rig g;
    struct rig_ask a;
    begin(&g, 2);
    uint32_t id = allocate(&g, 2, 8);
    rig_step_start(&g, 1000, id, &(struct step_spec){.n_tasks = 8}, &a);
    assert_true(rig_answered(&g, &a, 1000));
    const struct step_reply *r = a.reply;
    assert_int_equal(r->n_tickets, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct step_ticket_signed *ts = &r->tickets[i];
        auto_arena arena = {0};
        auto_str text = {0};
        struct step_ticket t;
        uint8_t hash[32];
        cred_hash(r->ticket, r->n_ticket, hash);
        proof_ticket_text(g.node[i].name, hash, &text);
        assert_int_equal(ts->n_signature, CRED_SIGNATURE_SIZE);
        assert_true(cred_verify(&g.c->room.launch_key.pub, text.p, text.n, ts->signature));
        assert_int_equal(rec_decode(step_ticket_rec(), r->ticket, r->n_ticket, &arena, &t, NULL), 0);
        assert_string_equal(ts->place->name, g.node[i].name);
        assert_int_equal(ts->place->port, 6818);
        assert_int_equal(t.use, TICKET_LAUNCH);
        assert_int_equal(t.uid, 1000);
        assert_int_equal(t.start_no, 1);
        assert_int_equal(t.step->nodes[i].n_tasks, 4);
    }
    rig_ask_fini(&a);
    rig_fini(&g);
}

/* The answer to a step of `n` nodes with 8 tasks each, in bytes. */
static size_t answer_size(struct rig *g, uint32_t n) {
    auto_arena a = {0};
    auto_buf out = {0};
    struct step_reply reply = {0};
    struct job_spec spec = {.name = "wide", .user = "alice", .uid = 1000, .work_dir = "/home/alice"};
    struct step_spec step_spec = {.n_tasks = n * 8};
    struct job_node *of_job = arena_calloc(&a, n, sizeof(*of_job));
    struct step_node *of_step = arena_calloc(&a, n, sizeof(*of_step));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *ranks = arena_calloc(&a, 8, sizeof(*ranks));
        for (uint32_t k = 0; k < 8; k++)
            ranks[k] = i * 8 + k;
        const char *name = arena_printf(&a, "node-%05u", i);
        of_job[i] = (struct job_node){.node_id = 1, .name = name, .cpus = 8, .n_tasks = 8};
        of_step[i] = (struct step_node){.node_id = 1, .name = name, .cpus = 8, .n_tasks = 8, .ranks = ranks, .n_ranks = 8};
    }
    const struct job j = {.id = 7, .start_no = 1, .spec = &spec, .nodes = of_job, .n_nodes = n, .time_limit_min = 60};
    const struct step st = {.job_id = 7, .start_no = 1, .spec = &step_spec, .nodes = of_step, .n_nodes = n};
    tickets_make(&g->c->room, TICKET_LAUNCH, &j, &st, &a, &reply);
    assert_int_equal(reply.n_tickets, n);
    rec_encode(step_reply_rec(), &reply, &out);
    return out.n;
}

static void an_answer_grows_as_its_nodes(void **state) {
    struct rig g;
    begin(&g, 1);
    size_t some = answer_size(&g, 500), many = answer_size(&g, 1000);
    print_message("the answer to a step of 500 nodes has %zu bytes, of 1000 %zu\n", some, many);
    assert_true(many < 2 * some + some / 10);
    assert_true(many < 512 * 1000);
    rig_fini(&g);
}

/* A cancelled step is ended on its nodes, and said again until they report; one that never came there is over at once. */
struct ending {
    bool is_unknown;
};

static struct vanswer may_not_know(void *ctx, struct vscript *s, enum wire_method m, const void *q) {
    const struct ending *e = ctx;
    return (struct vanswer){.code = m == WIRE_Agent_Terminate && e->is_unknown ? E_NOT_FOUND : 0};
}

static void cancel_step(struct rig *g, uint32_t uid, uint32_t job, uint32_t step) {
    struct step_ref ref = {.job_id = job, .step_id = step};
    struct who who = vctl_user(uid);
    rig_cancel_all(g, &who, &(struct cancel_request){.steps = &ref, .n_steps = 1});
}

static void a_cancelled_step_ends(void **state) {
    struct rig g;
    struct ending e = {0};
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", may_not_know, &e);
    uint32_t id = allocate(&g, 1, 4);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1}), 0);
    cancel_step(&g, 1001, id, 0);
    assert_int_equal(-(int)g.results->results[0].error, E_DENIED);
    cancel_step(&g, 1000, id, 0);
    assert_int_equal(g.results->results[0].error, 0);
    rig_run(&g, 40000);
    assert_true(n->n_step_ends >= 3);
    assert_int_equal(n->ended_step, 0);
    assert_string_equal(n->why, "DUE to SIGNAL Killed");
    assert_false(step_is_over(rig_get_step(&g, id, 0)));
    end_step(&g, id, 0);
    assert_int_equal(rig_get_step(&g, id, 0)->state, JOB_CANCELLED);
    assert_int_equal(rig_get_step(&g, id, 0)->end_uid, 1001);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    e.is_unknown = true;
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1}), 1);
    cancel_step(&g, 1000, id, 1);
    rig_run(&g, 500);
    assert_true(step_is_over(rig_get_step(&g, id, 1)));
    cancel_step(&g, 1000, id, 1);
    assert_int_equal(-(int)g.results->results[0].error, E_JOB_DONE);
    cancel_step(&g, 1000, id, 7);
    assert_int_equal(-(int)g.results->results[0].error, E_STEP_ID);
    assert_int_equal(react_stats(g.c->room.react).in_flight, 0);
    rig_fini(&g);
}

static void a_step_has_its_limit(void **state) {
    struct rig g;
    struct ending e = {.is_unknown = true};
    rig_init(&g, short_times);
    rig_node(&g, "n1", may_not_know, &e);
    uint32_t id = allocate(&g, 1, 4);
    struct rig_ask a;
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1, .time_limit_min = 2}), 0);
    for (int i = 0; i < 12 && !step_is_over(rig_get_step(&g, id, 0)); i++) {
        rig_attend(&g, 1000, &(struct attend_request){.job_id = id, .step_id = 1}, &a);
        rig_ask_fini(&a);
        assert_int_equal(i * 10 < 120, rig_get_step(&g, id, 0)->state == JOB_RUNNING);
        rig_run(&g, 10000);
    }
    rig_run(&g, 5000);
    assert_int_equal(rig_get_step(&g, id, 0)->state, JOB_TIMEOUT);
    rig_fini(&g);
}

static void who_is_not_attended_to_is_ended(void **state) {
    struct rig g;
    struct ending e = {.is_unknown = true};
    struct rig_ask a;
    rig_init(&g, short_times);
    rig_node(&g, "n1", may_not_know, &e);
    uint32_t id = allocate(&g, 1, 4);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1, .overlap = true}), 0);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1, .overlap = true}), 1);
    for (int i = 0; i < 10; i++) { /* the first one's client lives */
        rig_attend(&g, 1000, &(struct attend_request){.job_id = id, .step_id = 1}, &a);
        assert_true(a.is_answered);
        assert_int_equal(((const struct attend_reply *)a.reply)->n_places, 1);
        rig_ask_fini(&a);
        rig_run(&g, 10000);
    }
    assert_false(step_is_over(rig_get_step(&g, id, 0)));
    assert_true(step_is_over(rig_get_step(&g, id, 1)));
    assert_int_equal(rig_get_step(&g, id, 1)->state, JOB_CANCELLED);
    assert_int_equal(rig_get_step(&g, id, 1)->end_uid, 1001); /* in its owner's name */
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING"); /* --no-shell */

    struct job_more more = {.interactive = true};
    struct job_spec spec = {.work_dir = "/", .more = &more, .n_tasks = 1};
    uint32_t lonely = rig_submit_spec(&g, 1000, &spec, NULL);
    assert_true(lonely);
    rig_run(&g, 25000);
    assert_int_equal(rig_job(&g, lonely)->state, JOB_PENDING);
    rig_run(&g, 10000);
    assert_int_equal(rig_job(&g, lonely)->state, JOB_CANCELLED);
    rig_fini(&g);
}

/* Answered when the state changes, not before; not to others. */
static void attend_tells_what_changes(void **state) {
    struct rig g;
    struct rig_ask a;
    begin(&g, 1);
    struct job_more more = {.interactive = true};
    struct job_spec spec = {.work_dir = "/", .more = &more, .n_tasks = 1, .hold = true};
    uint32_t id = rig_submit_spec(&g, 1000, &spec, NULL);
    rig_attend(&g, 1000, &(struct attend_request){.job_id = id}, &a);
    assert_true(a.is_answered);
    assert_int_equal(((const struct attend_reply *)a.reply)->n_places, 0);
    rig_ask_fini(&a);
    rig_attend(&g, 1001, &(struct attend_request){.job_id = id}, &a);
    assert_int_equal(a.code, E_DENIED);
    rig_ask_fini(&a);
    rig_attend(&g, 1000, &(struct attend_request){.job_id = id, .seen_state = "PENDING"}, &a);
    rig_run(&g, 5000);
    assert_false(a.is_answered);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_RELEASE), 0);
    assert_true(rig_answered(&g, &a, 2000));
    const struct attend_reply *r = a.reply;
    assert_string_equal(r->places[0].name, "n1");
    assert_int_equal(r->places[0].port, 6818);
    rig_ask_fini(&a);
    rig_until(&g, id, "RUNNING", 1000);
    assert_int_equal(g.node[0].launch.n_script, 0); /* an allocation has no script */
    rig_attend(&g, 1000, &(struct attend_request){.job_id = id, .seen_state = "RUNNING"}, &a);
    assert_true(rig_answered(&g, &a, 11000)); /* and says so after a while */
    rig_ask_fini(&a);
    rig_attend(&g, 1000, &(struct attend_request){.job_id = id, .leaving = true}, &a);
    rig_ask_fini(&a);
    rig_run(&g, 100000);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    struct who who = vctl_user(1000);
    rig_cancel_all(&g, &who, &(struct cancel_request){.job_ids = &id, .n_job_ids = 1, .complete = 1});
    rig_run(&g, 50);
    rig_report(&g, &g.node[0], id, 1, 0);
    rig_until(&g, id, "COMPLETED", 1000);
    rig_fini(&g);
}

/* Steps that the agent has and the state has not must go; those that it has lost are over. */
static void lists_of_steps_are_compared(void **state) {
    struct rig g;
    struct rig_ask a;
    begin(&g, 1);
    uint32_t id = allocate(&g, 1, 4);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1, .overlap = true}), 0);
    struct run_ref runs[] = {{id, 1, RUN_RUNNING, 0}, {id, 1, RUN_RUNNING, 1}, {id, 1, RUN_RUNNING, 6}};
    struct heartbeat_request hb = {.name = "n1", .boot_id = g.node[0].boot, .has_runs = true, .runs = runs, .n_runs = 3,
                                   .runs_hash = 99};
    rig_beat(&g, &hb);
    hb.n_runs = 1; /* the step is not on the list: its client may still be bringing it */
    for (int i = 0; i < 5; i++) {
        rig_attend(&g, 1000, &(struct attend_request){.job_id = id, .step_id = 1}, &a);
        rig_ask_fini(&a);
        rig_beat(&g, &hb);
        rig_run(&g, 10000);
    }
    assert_false(step_is_over(rig_get_step(&g, id, 0)));
    for (int i = 0; i < 4; i++) {
        rig_attend(&g, 1000, &(struct attend_request){.job_id = id, .step_id = 1}, &a);
        rig_ask_fini(&a);
        rig_run(&g, 10000);
        rig_beat(&g, &hb);
    }
    rig_run(&g, 100);
    assert_true(step_is_over(rig_get_step(&g, id, 0)));
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    rig_fini(&g);
}

static void another_leader_goes_on(void **state) {
    struct rig g;
    struct ending e = {0};
    struct rig_ask a;
    rig_init(&g, short_times);
    struct vscript *n = rig_node(&g, "n1", may_not_know, &e);
    uint32_t id = allocate(&g, 1, 4);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1}), 0);
    cancel_step(&g, 1000, id, 0);
    rig_run(&g, 100);
    uint32_t before = n->n_step_ends;
    rig_step_start(&g, 1000, id, &(struct step_spec){.n_tasks = 1}, &a);
    rig_restart(&g, true);
    assert_true(a.is_answered);
    assert_int_not_equal(a.code, 0); /* asked again by its client */
    rig_ask_fini(&a);
    rig_run(&g, 100);
    assert_int_equal(n->n_step_ends, before + 1);
    end_step(&g, id, 0);
    assert_int_equal(rig_step(&g, id, &(struct step_spec){.n_tasks = 1}), 1);
    rig_fini(&g);
}

/* A history of version 1 is brought up to date and keeps its rows; one of a later program is left alone. */
static const char *const version_1 =
    "CREATE TABLE meta (version INTEGER NOT NULL, applied_index INTEGER NOT NULL);"
    "INSERT INTO meta VALUES (1, 77);"
    "CREATE TABLE job (id INTEGER NOT NULL, sluid TEXT NOT NULL, uid INTEGER NOT NULL, user TEXT, account TEXT,"
    " partition TEXT, name TEXT, state INTEGER NOT NULL, submit_ms INTEGER NOT NULL, start_ms INTEGER NOT NULL,"
    " end_ms INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (id, sluid));"
    "CREATE INDEX job_by_end ON job (end_ms);"
    "CREATE INDEX job_by_user ON job (user, end_ms);";

static void insert_old_row(struct sql *db) {
    struct job_spec spec = {.user = "u1000", .uid = 1000};
    struct job j = {.id = 5, .sluid = "s1", .spec = &spec, .state = JOB_COMPLETED};
    auto_buf record = {0};
    struct sql_stmt *st;
    rec_encode(job_rec(), &j, &record);
    assert_int_equal(sql_prepare(db, "INSERT INTO job VALUES (5,'s1',1000,'u1000',NULL,'p','n',3,1,2,3,?)", &st, NULL), 0);
    sql_bind_blob(st, 1, record.p, record.n);
    assert_int_equal(sql_step(st, NULL), 0);
    sql_stmt_free(st);
}

static bool count_rows(void *arg, const struct job *j, const struct step *steps, uint32_t n_steps) {
    uint32_t *n = arg;
    assert_int_equal(j->id, 5);
    assert_int_equal(n_steps, 0);
    (*n)++;
    return true;
}

static void an_old_history_is_brought_up_to_date(void **state) {
    char dir[64];
    struct sql *db;
    struct err e = {0};
    uint32_t n = 0, id = 5;
    rig_make_dir(dir, sizeof(dir));
    autofree char *path = xasprintf("%s/history.db", dir);
    assert_int_equal(sql_open(path, SQL_WRITE, &db, &e), 0);
    assert_int_equal(sql_exec(db, version_1, &e), 0);
    insert_old_row(db);
    assert_int_equal(schema_prepare(db, &e), 0);
    assert_int_equal(schema_prepare(db, &e), 0); /* and is so the next time */
    struct acct_filter f = {.job_ids = &id, .n_job_ids = 1, .limit = 10};
    assert_int_equal(acct_read(path, &f, count_rows, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_int_equal(sql_exec(db, "UPDATE meta SET version = 3", &e), 0);
    assert_int_equal(schema_prepare(db, &e), E_VERSION);
    sql_close(db);
    rig_remove_dir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_laid_out_as_slurms),
        cmocka_unit_test(what_can_never_be_is_refused),
        cmocka_unit_test(a_step_waits_for_room),
        cmocka_unit_test(the_end_of_a_job_answers_who_waits),
        cmocka_unit_test(a_repeat_is_the_same_step),
        cmocka_unit_test(tickets_are_signed_for_their_node),
        cmocka_unit_test(an_answer_grows_as_its_nodes),
        cmocka_unit_test(a_cancelled_step_ends),
        cmocka_unit_test(a_step_has_its_limit),
        cmocka_unit_test(who_is_not_attended_to_is_ended),
        cmocka_unit_test(attend_tells_what_changes),
        cmocka_unit_test(lists_of_steps_are_compared),
        cmocka_unit_test(another_leader_goes_on),
        cmocka_unit_test(an_old_history_is_brought_up_to_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
