/* SPDX-License-Identifier: Apache-2.0
 *
 * What is shown to whom: jobs, nodes, history merged with the state, waiting for an end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "rig.h"

static void quick_history(struct rconf *conf, struct arena *a) {
    conf->min_job_age_secs = 20;
    conf->heartbeat_timeout_secs = 30;
}

/* ---- asking ---- */

struct asked {
    bool is_there;
    int code;
    struct arena arena;
    const struct rec_desc *desc;
    void *reply;
};

static void on_reply(void *arg, int code, const struct err *why, const void *p, size_t n) {
    struct asked *q = arg;
    q->is_there = true;
    q->code = code;
    if (code)
        return;
    q->reply = arena_alloc(&q->arena, q->desc->size);
    assert_int_equal(rec_decode(q->desc, p, n, &q->arena, q->reply, NULL), 0);
}

static bool is_there(void *arg) {
    return ((struct asked *)arg)->is_there;
}

static const struct jobs_reply *ask_jobs(struct rig *g, struct asked *q, const struct who *who,
                                         const struct jobs_request *rq) {
    arena_fini(&q->arena);
    *q = (struct asked){.desc = jobs_reply_rec()};
    query_jobs(&g->c->room, who, rq, on_reply, q);
    assert_true(vworld_run_until(g->w, is_there, q, 1000));
    return q->reply;
}

static const struct history_reply *ask_history(struct rig *g, struct asked *q, const struct who *who,
                                               const struct history_request *rq) {
    arena_fini(&q->arena);
    *q = (struct asked){.desc = history_reply_rec()};
    query_history(&g->c->room, who, rq, on_reply, q);
    assert_true(vworld_run_until(g->w, is_there, q, 1000));
    return q->reply;
}

static uint32_t ended(struct rig *g, struct vscript *n, uint32_t uid, const char *dep) {
    uint32_t id = rig_submit(g, &(struct rig_job){.uid = uid, .dependency = dep});
    rig_until(g, id, "RUNNING", 3000);
    assert_int_equal(rig_report(g, n, id, 1, 0), 0);
    rig_run(g, 20);
    return id;
}

/* ---- jobs ---- */

static void scripts_are_their_owners(void **state) {
    struct rig g;
    struct asked q = {0};
    rig_init(&g, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.hold = true, .name = "mine"});
    struct who who[] = {vctl_user(1000), vctl_user(1001), vctl_user(0), vctl_user(1000)};
    bool yours[] = {true, false, true, true};
    who[3].is_proven = false; /* permissive: claims it, and is believed as an ordinary user */
    for (size_t i = 0; i < ARRAY_LEN(who); i++) {
        const struct jobs_reply *r = ask_jobs(&g, &q, &who[i], &(struct jobs_request){.job_ids = &id, .n_job_ids = 1});
        assert_int_equal(r->n_jobs, 1);
        assert_int_equal(r->jobs[0].is_yours, yours[i]);
        assert_int_equal(r->jobs[0].job->spec->n_script_hash, yours[i] ? 32 : 0);
        assert_int_equal(r->jobs[0].job->spec->n_env_hash, yours[i] ? 32 : 0);
        assert_string_equal(r->jobs[0].job->spec->name, "mine");
        const struct history_reply *h = ask_history(&g, &q, &who[i], &(struct history_request){.all_users = true});
        assert_int_equal(h->n_jobs, 1);
        assert_int_equal(h->jobs[0].job->spec->n_script_hash, yours[i] ? 32 : 0);
    }
    arena_fini(&q.arena);
    /* root's own, claimed without a proof: not shown */
    struct who nobody = vctl_user(0);
    nobody.is_proven = nobody.is_admin = false;
    struct job_spec spec = {.uid = 0, .script_hash = (const uint8_t *)"x", .n_script_hash = 1};
    struct job j = {.id = 1, .spec = &spec};
    auto_arena a = {0};
    bool is_yours;
    assert_int_equal(query_visible(&nobody, &j, &a, &is_yours)->spec->n_script_hash, 0);
    assert_false(is_yours);
    rig_fini(&g);
}

static void jobs_are_chosen_by_id_user_and_end(void **state) {
    struct rig g;
    struct asked q = {0};
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t over = ended(&g, n, 1000, NULL);
    uint32_t mine = rig_submit(&g, &(struct rig_job){.hold = true});
    uint32_t theirs = rig_submit(&g, &(struct rig_job){.uid = 1001, .hold = true});
    struct who who = vctl_user(1002);
    const struct jobs_reply *r = ask_jobs(&g, &q, &who, &(struct jobs_request){0});
    assert_int_equal(r->n_jobs, 2);
    assert_int_equal(r->jobs[0].job->id, mine);
    assert_int_equal(r->jobs[1].job->id, theirs);
    assert_int_equal(r->jobs[0].reason, REASON_HELD_USER);
    r = ask_jobs(&g, &q, &who, &(struct jobs_request){.with_ended = true});
    assert_int_equal(r->n_jobs, 3);
    r = ask_jobs(&g, &q, &who, &(struct jobs_request){.user = "u1001"});
    assert_int_equal(r->n_jobs, 1);
    /* named ones in whatever state, once each; one alone that is not there is an error, in a list it is left out */
    uint32_t ids[] = {theirs, 4711, over, theirs};
    r = ask_jobs(&g, &q, &who, &(struct jobs_request){.job_ids = ids, .n_job_ids = 4});
    assert_int_equal(r->n_jobs, 2);
    assert_int_equal(r->jobs[0].job->id, over);
    assert_int_equal(r->jobs[1].job->id, theirs);
    ask_jobs(&g, &q, &who, &(struct jobs_request){.job_ids = &ids[1], .n_job_ids = 1});
    assert_int_equal(q.code, E_JOB_ID);
    arena_fini(&q.arena);
    rig_fini(&g);
}

static void the_reason_is_the_last_passes_word(void **state) {
    struct rig g;
    struct asked q = {0};
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t first = rig_submit(&g, &(struct rig_job){.cpus_per_task = 4, .time_limit_min = 10});
    rig_until(&g, first, "RUNNING", 2000);
    uint32_t second = rig_submit(&g, &(struct rig_job){.cpus_per_task = 4, .time_limit_min = 10});
    uint32_t third = rig_submit(&g, &(struct rig_job){.cpus_per_task = 4, .time_limit_min = 10});
    rig_run(&g, 5000);
    struct who who = vctl_user(1000);
    const struct jobs_reply *r = ask_jobs(&g, &q, &who, &(struct jobs_request){0});
    assert_int_equal(r->n_jobs, 3);
    assert_int_equal(r->jobs[1].reason, REASON_RESOURCES);
    assert_int_equal(r->jobs[2].reason, REASON_PRIORITY);
    int64_t start = rig_job(&g, first)->start_ms / 1000;
    assert_in_range(r->jobs[1].expected_start_unix - start, 595, 605);
    /* asked while the planner's next word is on its way: an answer of one moment, of a pinned state */
    struct asked during = {.desc = jobs_reply_rec()};
    query_jobs(&g.c->room, &who, &(struct jobs_request){.with_ended = true}, on_reply, &during);
    assert_int_equal(rig_report(&g, n, first, 1, 0), 0);
    rig_run(&g, 3000);
    const struct jobs_reply *then = during.reply;
    assert_int_equal(then->n_jobs, 3);
    assert_string_equal(job_shown_state(then->jobs[0].job), "RUNNING");
    assert_string_equal(job_shown_state(rig_job(&g, second)), "RUNNING");
    assert_int_equal(rig_job(&g, third)->state, JOB_PENDING);
    arena_fini(&q.arena);
    arena_fini(&during.arena);
    rig_fini(&g);
}

/* ---- nodes ---- */

static void nodes_come_in_slurms_order_without_their_keys(void **state) {
    struct rig g;
    struct asked q = {.desc = nodes_reply_rec()};
    rig_init(&g, NULL);
    rig_node(&g, "n10", NULL, NULL);
    rig_node(&g, "n2", NULL, NULL);
    rig_node(&g, "n1", NULL, NULL);
    struct heartbeat_request hb = {.name = "n2", .boot_id = "b", .runs_hash = 1, .cpu_load_hundredths = 151,
                                   .free_mem_mb = 77};
    rig_beat(&g, &hb);
    query_nodes(&g.c->room, on_reply, &q);
    assert_true(vworld_run_until(g.w, is_there, &q, 1000));
    const struct nodes_reply *r = q.reply;
    assert_int_equal(r->n_nodes, 3);
    assert_string_equal(r->nodes[0].node->name, "n1");
    assert_string_equal(r->nodes[1].node->name, "n2");
    assert_string_equal(r->nodes[2].node->name, "n10");
    assert_int_equal(r->nodes[1].cpu_load_hundredths, 151);
    assert_int_equal(r->nodes[1].free_mem_mb, 77);
    assert_int_equal(r->nodes[0].node->n_public_key, 0);
    assert_int_equal(r->n_parts, 1);
    assert_int_equal(r->nodes[0].n_partitions, 1);
    arena_fini(&q.arena);
    rig_fini(&g);
}

/* ---- history ---- */

static void history_and_state_are_one(void **state) {
    struct rig g;
    struct asked q = {0};
    rig_init(&g, quick_history);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    struct who alice = vctl_user(1000), bob = vctl_user(1001);
    uint32_t gone[3];
    for (int i = 0; i < 3; i++)
        gone[i] = ended(&g, n, 1000, NULL);
    rig_run(&g, 25000);
    assert_null(rig_job(&g, gone[2]));
    uint32_t over = ended(&g, n, 1000, NULL), waiting = rig_submit(&g, &(struct rig_job){.hold = true});
    uint32_t bobs = ended(&g, n, 1001, NULL);
    const struct history_reply *r = ask_history(&g, &q, &alice, &(struct history_request){0});
    uint32_t want[] = {gone[0], gone[1], gone[2], over, waiting};
    assert_int_equal(r->n_jobs, ARRAY_LEN(want));
    for (uint32_t i = 0; i < r->n_jobs; i++)
        assert_int_equal(r->jobs[i].job->id, want[i]);
    r = ask_history(&g, &q, &bob, &(struct history_request){0});
    assert_int_equal(r->n_jobs, 1);
    assert_int_equal(r->jobs[0].job->id, bobs);
    r = ask_history(&g, &q, &bob, &(struct history_request){.all_users = true});
    assert_int_equal(r->n_jobs, 6);
    uint32_t ids[] = {waiting, gone[1], 4711};
    r = ask_history(&g, &q, &bob, &(struct history_request){.job_ids = ids, .n_job_ids = 3});
    assert_int_equal(r->n_jobs, 2);
    assert_int_equal(r->jobs[0].job->id, gone[1]);
    /* pages of every size give all, once each */
    for (uint32_t limit = 1; limit < 8; limit++) {
        uint32_t n_seen = 0, after = 0;
        do {
            r = ask_history(&g, &q, &bob, &(struct history_request){.all_users = true, .limit = limit, .after_id = after});
            assert_true(r->n_jobs <= limit);
            for (uint32_t i = 0; i < r->n_jobs; i++) {
                assert_true(r->jobs[i].job->id > after);
                after = r->jobs[i].job->id;
                n_seen++;
            }
        } while (r->is_cut);
        assert_int_equal(n_seen, 6);
    }
    arena_fini(&q.arena);
    rig_fini(&g);
}

static void times_bound_history_and_state_alike(void **state) {
    struct rig g;
    struct asked q = {0};
    rig_init(&g, quick_history);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    struct who who = vctl_user(1000);
    rig_run(&g, 500); /* not at the beginning of a second */
    uint32_t id = ended(&g, n, 1000, NULL);
    int64_t submit = rig_job(&g, id)->submit_ms / 1000, end = rig_job(&g, id)->end_ms / 1000;
    assert_true(rig_job(&g, id)->submit_ms % 1000 != 0);
    for (int round = 0; round < 2; round++) {
        uint32_t found[4];
        struct history_request rq[4] = {
            {.until_unix = submit}, {.until_unix = submit - 1}, {.since_unix = end}, {.since_unix = end + 1}};
        for (int i = 0; i < 4; i++)
            found[i] = ask_history(&g, &q, &who, &rq[i])->n_jobs;
        assert_int_equal(found[0], 1);
        assert_int_equal(found[1], 0);
        assert_int_equal(found[2], 1);
        assert_int_equal(found[3], 0);
        rig_run(&g, 30000); /* and again when it is history only */
        assert_null(rig_job(&g, id));
    }
    arena_fini(&q.arena);
    rig_fini(&g);
}

static void two_ids(struct rconf *conf, struct arena *a) {
    conf->max_job_id = 2;
    conf->min_job_age_secs = 10;
}

/* Each life of a job that was queued again is a row, with its steps; asked for or not. */
static void each_life_is_a_row(void **state) {
    struct rig g;
    struct asked q = {0};
    rig_init(&g, quick_history);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    struct who who = vctl_user(1000);
    uint32_t id = rig_submit(&g, &(struct rig_job){.requeue = true});
    rig_until(&g, id, "RUNNING", 2000);
    struct job_target t = {.job_id = id};
    assert_int_equal(rig_requeue(&g, 1000, &(struct requeue_request){.targets = &t, .n_targets = 1}), 0);
    rig_run(&g, 3000);
    if (rig_job(&g, id)->start_no == 1) /* its node says that it is over */
        assert_int_equal(rig_report(&g, n, id, 1, 15), 0);
    rig_until(&g, id, "RUNNING", 20000);
    assert_int_equal(rig_job(&g, id)->start_no, 2);
    const struct history_reply *r = ask_history(&g, &q, &who, &(struct history_request){.duplicates = true});
    assert_int_equal(r->n_jobs, 2);
    assert_int_equal(r->jobs[0].job->state, JOB_REQUEUED);
    assert_int_equal(r->jobs[0].job->start_no, 1);
    assert_true(r->jobs[0].job->start_ms && r->jobs[0].job->end_ms >= r->jobs[0].job->start_ms);
    assert_int_equal(r->jobs[1].job->state, JOB_RUNNING);
    assert_string_not_equal(r->jobs[0].job->sluid, r->jobs[1].job->sluid);
    r = ask_history(&g, &q, &who, &(struct history_request){0});
    assert_int_equal(r->n_jobs, 1);
    assert_int_equal(r->jobs[0].job->state, JOB_RUNNING);
    assert_int_equal(rig_report(&g, n, id, 2, 0), 0);
    rig_run(&g, 30000);
    assert_null(rig_job(&g, id));
    assert_int_equal(ask_history(&g, &q, &who, &(struct history_request){.duplicates = true})->n_jobs, 2);
    r = ask_history(&g, &q, &who, &(struct history_request){0});
    assert_int_equal(r->n_jobs, 1);
    assert_int_equal(r->jobs[0].job->state, JOB_COMPLETED);
    arena_fini(&q.arena);
    rig_fini(&g);
}

/* Ids come round: jobs of one id are told apart, in their order, and never torn apart by a page. */
static void ids_that_come_round_are_all_shown(void **state) {
    struct rig g;
    struct asked q = {0};
    rig_init(&g, two_ids);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    struct who who = vctl_user(1000);
    for (int i = 0; i < 6; i++) {
        ended(&g, n, 1000, NULL);
        if (i % 2)
            rig_run(&g, 12000);
    }
    assert_int_not_equal(rig_submit(&g, &(struct rig_job){.hold = true}), 0);
    const struct history_reply *r = ask_history(&g, &q, &who, &(struct history_request){.duplicates = true});
    assert_int_equal(r->n_jobs, 7);
    for (uint32_t i = 1; i < 7; i++) {
        const struct job *a = r->jobs[i - 1].job, *b = r->jobs[i].job;
        assert_true(a->id < b->id || (a->id == b->id && a->submit_ms < b->submit_ms));
        assert_string_not_equal(a->sluid, b->sluid);
    }
    r = ask_history(&g, &q, &who, &(struct history_request){0}); /* the last one of each id */
    assert_int_equal(r->n_jobs, 2);
    assert_int_equal(r->jobs[0].job->state, JOB_PENDING);
    assert_int_equal(r->jobs[1].job->id, 2);
    for (uint32_t limit = 4; limit < 8; limit++) {
        uint32_t n_seen = 0, after = 0;
        do {
            r = ask_history(&g, &q, &who, &(struct history_request){.limit = limit, .after_id = after, .duplicates = true});
            n_seen += r->n_jobs;
            after = r->jobs[r->n_jobs - 1].job->id;
        } while (r->is_cut);
        assert_int_equal(n_seen, 7);
    }
    arena_fini(&q.arena);
    rig_fini(&g);
}

/* ---- waiting ---- */

static void who_waits_hears_of_the_end(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    struct who who = vctl_user(1000), other = vctl_user(1001);
    uint32_t id = rig_submit(&g, &(struct rig_job){0});
    struct asked a = {.desc = wait_reply_rec()}, b = a, c = a, d = a, e = a;
    query_wait(g.c->room.query, &who, id, on_reply, &a);
    query_wait(g.c->room.query, &other, id, on_reply, &b);
    query_wait(g.c->room.query, &who, 4711, on_reply, &c);
    assert_int_equal(c.code, E_JOB_ID);
    rig_run(&g, 19000);
    assert_false(a.is_there);
    rig_run(&g, 2000); /* told that it is not over, to ask again */
    assert_true(a.is_there && b.is_there);
    assert_false(((struct wait_reply *)a.reply)->is_over);
    arena_fini(&a.arena);
    a = (struct asked){.desc = wait_reply_rec()};
    query_wait(g.c->room.query, &who, id, on_reply, &a);
    query_wait(g.c->room.query, &other, id, on_reply, &d);
    assert_int_equal(rig_report(&g, n, id, 1, 5 << 8), 0);
    assert_true(a.is_there && d.is_there);
    const struct wait_reply *r = a.reply;
    assert_true(r->is_over);
    assert_int_equal(r->job->wait_status, 5 << 8);
    assert_int_equal(r->job->spec->n_script_hash, 32);
    assert_int_equal(((struct wait_reply *)d.reply)->job->spec->n_script_hash, 0);
    query_wait(g.c->room.query, &who, id, on_reply, &e); /* over already: at once */
    assert_true(e.is_there && ((struct wait_reply *)e.reply)->is_over);
    /* who waits when the controller ends is told so */
    uint32_t next = rig_submit(&g, &(struct rig_job){.hold = true});
    struct asked f = {.desc = wait_reply_rec()};
    query_wait(g.c->room.query, &who, next, on_reply, &f);
    rig_restart(&g, false);
    assert_int_equal(f.code, E_STOPPING);
    arena_fini(&a.arena);
    arena_fini(&b.arena);
    arena_fini(&d.arena);
    arena_fini(&e.arena);
    rig_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts_are_their_owners),
        cmocka_unit_test(jobs_are_chosen_by_id_user_and_end),
        cmocka_unit_test(the_reason_is_the_last_passes_word),
        cmocka_unit_test(nodes_come_in_slurms_order_without_their_keys),
        cmocka_unit_test(history_and_state_are_one),
        cmocka_unit_test(times_bound_history_and_state_alike),
        cmocka_unit_test(each_life_is_a_row),
        cmocka_unit_test(ids_that_come_round_are_all_shown),
        cmocka_unit_test(who_waits_hears_of_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
