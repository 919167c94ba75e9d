/* SPDX-License-Identifier: Apache-2.0
 *
 * What is let in, and as what: submissions, cancel and hold, registrations; and repeats of each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "rig.h"

static const uint8_t token_a[TOKEN_SIZE] = "one token of 16", token_b[TOKEN_SIZE] = "another, also 16";

static size_t n_jobs(const struct rig *g) {
    struct view v;
    state_peek(g->c->room.state, &v);
    return cow_count(v.jobs);
}

/* ---- repeats ---- */

static void a_repeat_is_answered_with_the_first_answer(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    struct rig_job job = {.token = token_a, .hold = true};
    uint32_t id = rig_submit(&g, &job);
    char sluid[16];
    snprintf(sluid, sizeof(sluid), "%s", g.submitted->sluid);
    assert_int_equal(id, 1);
    assert_int_equal(rig_submit(&g, &job), id);
    assert_string_equal(g.submitted->sluid, sluid);
    rig_restart(&g, true);
    assert_int_equal(rig_submit(&g, &job), id);
    assert_string_equal(g.submitted->sluid, sluid);
    assert_int_equal(n_jobs(&g), 1);
    assert_int_equal(vlog_count(g.log, CMD_SUBMIT), 1); /* and costs no entry */
    /* another token, or another user's, is another job */
    job.token = token_b;
    assert_int_not_equal(rig_submit(&g, &job), id);
    job.token = token_a;
    job.uid = 1001;
    assert_int_not_equal(rig_submit(&g, &job), id);
    assert_int_equal(n_jobs(&g), 3);
    /* the job is over and gone: still the same answer, for its time */
    assert_int_equal(rig_cancel(&g, 1000, id), 0);
    rig_run(&g, 310000);
    assert_null(rig_job(&g, id));
    job.uid = 1000;
    assert_int_equal(rig_submit(&g, &job), id);
    rig_run(&g, 300000);
    assert_int_not_equal(rig_submit(&g, &(struct rig_job){.token = token_b, .uid = 7, .hold = true}), 0);
    assert_int_not_equal(rig_submit(&g, &job), id); /* ten minutes are its time */
    rig_fini(&g);
}

struct lossy {
    int code;
    uint32_t id, n;
};

static void on_lossy(void *arg, int code, const struct err *why, const void *reply) {
    struct lossy *l = arg;
    l->n++;
    l->code = code;
    l->id = code ? 0 : ((const struct submit_reply *)reply)->job_id;
}

/* Sent while the first is still under way, and after its controller died before it could reply: whatever became of the
 * entry, there is one job, and the last answer names it. */
static void a_repeat_meets_its_first_wherever_that_is(void **state) {
    for (uint64_t ms = 0; ms < 24; ms++) {
        struct rig g;
        struct lossy l = {0};
        struct job_spec spec = {.work_dir = "/", .hold = true};
        struct submit_request rq = {.spec = &spec, .script = (const uint8_t *)"#!/bin/sh\n", .n_script = 10,
                                    .token = token_a, .n_token = TOKEN_SIZE};
        struct who who = vctl_user(1000);
        rig_init(&g, NULL);
        vlog_delay(g.log, 5, 15);
        admit_submit(&g.c->room, &who, &rq, on_lossy, &l);
        rig_run(&g, ms / 2);
        if (ms % 2)
            admit_submit(&g.c->room, &who, &rq, on_lossy, &l);
        rig_run(&g, ms / 2);
        rig_restart(&g, true);
        assert_int_equal(l.n, 1 + ms % 2);
        uint32_t id = rig_submit(&g, &(struct rig_job){.token = token_a, .hold = true});
        assert_int_not_equal(id, 0);
        assert_int_equal(n_jobs(&g), 1);
        assert_non_null(rig_job(&g, id));
        if (!l.code)
            assert_int_equal(l.id, id);
        rig_fini(&g);
    }
}

static void one_part(struct rconf *conf, struct arena *a) {
    struct part *p = arena_calloc(a, 5, sizeof(*p));
    static const char *const few[] = {"n1"};
    p[0] = (struct part){.id = 1, .name = "main", .is_default = true, .all_nodes = true,
                         .max_time_min = TIME_LIMIT_NONE};
    p[1] = (struct part){.id = 2, .name = "drained", .all_nodes = true, .state = PART_DRAIN};
    p[2] = (struct part){.id = 3, .name = "off", .all_nodes = true, .state = PART_INACTIVE};
    p[3] = (struct part){.id = 4, .name = "few", .nodes = few, .n_nodes = 1, .max_time_min = 10};
    p[4] = (struct part){.id = 5, .name = "down", .all_nodes = true, .state = PART_DOWN};
    conf->parts = p;
    conf->n_parts = 5;
    conf->max_script_bytes = 1000;
    conf->max_env_bytes = 2000;
    conf->max_jobs = 20;
}

static void another_part(struct rconf *conf, struct arena *a) {
    struct part *p = arena_calloc(a, 1, sizeof(*p));
    p[0] = (struct part){.id = 1, .name = "other", .is_default = true, .all_nodes = true};
    conf->parts = p;
    conf->n_parts = 1;
}

static void a_repeat_is_not_judged_by_what_has_changed(void **state) {
    struct rig g;
    rig_init(&g, one_part);
    struct rig_job job = {.token = token_a, .hold = true, .partition = "few"};
    uint32_t id = rig_submit(&g, &job);
    assert_int_not_equal(id, 0);
    g.conf.fill = another_part;
    rig_restart(&g, false);
    job.token = token_b;
    assert_int_equal(rig_submit(&g, &job), 0);
    assert_int_equal(g.code, E_PARTITION);
    job.token = token_a;
    assert_int_equal(rig_submit(&g, &job), id);
    rig_fini(&g);
}

/* ---- what a job may be ---- */

static void expect(struct rig *g, const struct rig_job *j, int code, const char *text) {
    size_t before = n_jobs(g);
    assert_int_equal(rig_submit(g, j), 0);
    assert_int_equal(g->code, code);
    if (text)
        assert_string_equal(g->text, text);
    assert_int_equal(n_jobs(g), before);
}

static void partitions_are_checked_in_slurms_words(void **state) {
    struct rig g;
    rig_init(&g, one_part);
    rig_node(&g, "n1", NULL, NULL);
    rig_node(&g, "n2", NULL, NULL);
    expect(&g, &(struct rig_job){.partition = "nope"}, E_PARTITION,
           "invalid partition specified: nope\nInvalid partition name specified");
    expect(&g, &(struct rig_job){.partition = "main,nope"}, E_PARTITION,
           "invalid partition specified: nope\nInvalid partition name specified");
    expect(&g, &(struct rig_job){.partition = "drained"}, E_PARTITION_DOWN,
           "Required partition not available (inactive or drain)");
    expect(&g, &(struct rig_job){.partition = "off"}, E_PARTITION_DOWN, NULL);
    expect(&g, &(struct rig_job){.partition = "off,drained"}, E_PARTITION_DOWN, NULL);
    expect(&g, &(struct rig_job){.partition = ""}, E_PARTITION, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.partition = "off,few"});
    assert_int_not_equal(id, 0);
    rig_until(&g, id, "RUNNING", 3000);
    assert_string_equal(rig_job(&g, id)->partition, "few");
    assert_int_equal(rig_job(&g, id)->time_limit_min, 10);
    id = rig_submit(&g, &(struct rig_job){0});
    assert_string_equal(rig_job(&g, id)->spec->partition, "main");
    /* more than there is is refused; what is only not there now waits */
    expect(&g, &(struct rig_job){.cpus_per_task = 5}, E_TOO_MANY_CPUS,
           "CPU count per node can not be satisfied\nRequested node configuration is not available");
    expect(&g, &(struct rig_job){.req_node = "n9"}, E_NODE_NAME, "Invalid node name specified");
    expect(&g, &(struct rig_job){.partition = "few", .req_node = "n2"}, E_NODES_UNAVAIL, NULL);
    assert_int_not_equal(rig_submit(&g, &(struct rig_job){.partition = "down"}), 0);
    assert_int_not_equal(rig_submit(&g, &(struct rig_job){.partition = "few", .time_limit_min = 11}), 0);
    rig_fini(&g);
}

static void sizes_are_bounded_and_told(void **state) {
    struct rig g;
    char script[1200], env[2100], name[1100];
    rig_init(&g, one_part);
    memset(script, '#', sizeof(script));
    memcpy(script, "#!/bin/sh\n", 10);
    script[1001] = 0;
    expect(&g, &(struct rig_job){.script = script}, E_SCRIPT_SIZE,
           "Job script of 1001 bytes exceeds the size limit of 1000 bytes");
    script[1000] = 0;
    assert_int_not_equal(rig_submit(&g, &(struct rig_job){.script = script, .hold = true}), 0);
    expect(&g, &(struct rig_job){.script = ""}, E_SCRIPT, NULL);
    expect(&g, &(struct rig_job){.script = "no shebang\n"}, E_SCRIPT, NULL);
    memset(name, 'x', sizeof(name));
    name[1025] = 0;
    expect(&g, &(struct rig_job){.name = name}, E_TOO_BIG, NULL);
    name[1024] = 0;
    assert_int_not_equal(rig_submit(&g, &(struct rig_job){.name = name, .hold = true}), 0);
    /* the environment, and all the rest of the description together */
    struct who who = vctl_user(1000);
    struct lossy l = {0};
    struct job_spec spec = {.work_dir = "/"};
    struct submit_request rq = {.spec = &spec, .script = (const uint8_t *)"#!/bin/sh\n", .n_script = 10,
                                .env = (const uint8_t *)env, .n_env = 2001};
    memset(env, 'e', sizeof(env));
    admit_submit(&g.c->room, &who, &rq, on_lossy, &l);
    assert_int_equal(l.code, E_USER_ENV);
    autofree char *long_arg = xmalloc((1u << 20) + 1);
    memset(long_arg, 'y', 1u << 20);
    long_arg[1u << 20] = 0;
    spec.submit_line = long_arg;
    rq.n_env = 4;
    admit_submit(&g.c->room, &who, &rq, on_lossy, &l);
    assert_int_equal(l.code, E_TOO_BIG);
    spec.submit_line = NULL;
    spec.work_dir = "here";
    admit_submit(&g.c->room, &who, &rq, on_lossy, &l);
    assert_int_equal(l.code, E_SYNTAX);
    rq.spec = NULL;
    admit_submit(&g.c->room, &who, &rq, on_lossy, &l);
    assert_int_equal(l.code, E_SYNTAX);
    assert_int_equal(l.n, 4);
    rig_fini(&g);
}

static void a_full_queue_and_a_full_disk_take_nothing(void **state) {
    struct rig g;
    rig_init(&g, one_part);
    for (int i = 0; i < 20; i++)
        assert_int_not_equal(rig_submit(&g, &(struct rig_job){.hold = true}), 0);
    expect(&g, &(struct rig_job){.hold = true}, E_QUEUE_FULL, NULL);
    assert_int_equal(rig_cancel(&g, 0, 1), 0);
    expect(&g, &(struct rig_job){.hold = true}, E_QUEUE_FULL, NULL); /* it is still in the state */
    rig_run(&g, 310000);
    vlog_refuse(g.log, 0, E_FULL, 1);
    expect(&g, &(struct rig_job){.hold = true}, E_FULL,
           "No space left on the controller's disk; nothing was accepted");
    vhost_fail_blobs(g.c->host, 1, E_FULL);
    expect(&g, &(struct rig_job){.hold = true, .script = "#!/bin/sh\nanother\n"}, E_FULL, NULL);
    assert_int_not_equal(rig_submit(&g, &(struct rig_job){.hold = true}), 0);
    rig_fini(&g);
}

static void only_an_administrator_raises_a_priority(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    expect(&g, &(struct rig_job){.nice = -1}, E_NICE, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.nice = 100, .hold = true});
    assert_int_equal(rig_job(&g, id)->nice, 100);
    struct who root = vctl_user(0);
    struct lossy l = {0};
    struct job_spec spec = {.work_dir = "/", .nice = -5, .hold = true, .uid = 4711, .user = "mallory"};
    struct submit_request rq = {.spec = &spec, .script = (const uint8_t *)"#!/bin/sh\n", .n_script = 10};
    admit_submit(&g.c->room, &root, &rq, on_lossy, &l);
    rig_run(&g, 100);
    const struct job *j = rig_job(&g, l.id);
    assert_int_equal(j->nice, -5);
    assert_int_equal(j->spec->uid, 0); /* who asks is who owns it, whatever the request says */
    assert_string_equal(j->spec->user, "root");
    rig_fini(&g);
}

/* ---- cancel and hold ---- */

static void others_jobs_are_out_of_reach(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.uid = 1000});
    uint32_t of_root = rig_submit(&g, &(struct rig_job){.hold = true});
    rig_until(&g, id, "RUNNING", 2000);
    assert_int_equal(rig_cancel(&g, 1001, id), E_DENIED);
    assert_int_not_equal(rig_hold(&g, 1001, of_root, HOLD_OP_RELEASE), 0);
    assert_int_equal(rig_cancel(&g, 1000, 4711), E_JOB_ID);
    assert_int_equal(n->n_terminates, 0);
    /* one request: each job its own outcome */
    struct who who = vctl_user(1000);
    uint32_t mine = rig_submit(&g, &(struct rig_job){.hold = true}), theirs, ids[3];
    theirs = rig_submit(&g, &(struct rig_job){.uid = 1001, .hold = true});
    ids[0] = theirs;
    ids[1] = 4711;
    ids[2] = mine;
    struct cancel_request rq = {.job_ids = ids, .n_job_ids = 3};
    rig_cancel_all(&g, &who, &rq);
    assert_int_equal(g.results->n_results, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct job_result *r = &g.results->results[i];
        int want = r->job_id == theirs ? E_DENIED : r->job_id == mine ? 0 : E_JOB_ID;
        assert_int_equal(-(int)r->error, want);
    }
    assert_int_equal(rig_job(&g, mine)->state, JOB_CANCELLED);
    assert_int_equal(rig_job(&g, theirs)->state, JOB_PENDING);
    assert_int_equal(rig_cancel(&g, 0, id), 0);
    rig_run(&g, 100);
    assert_int_equal(n->n_terminates, 1);
    assert_int_equal(rig_job(&g, id)->end_uid, 1); /* root's */
    rig_fini(&g);
}

static void cancel_by_user_takes_that_users_jobs(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    uint32_t a[3], b;
    for (int i = 0; i < 3; i++)
        a[i] = rig_submit(&g, &(struct rig_job){.hold = true});
    b = rig_submit(&g, &(struct rig_job){.uid = 1001, .hold = true});
    struct who bob = vctl_user(1001), alice = vctl_user(1000);
    rig_cancel_all(&g, &bob, &(struct cancel_request){.user = "u1000"});
    assert_int_equal(g.code, 0);
    assert_int_equal(rig_job(&g, a[0])->state, JOB_PENDING);
    rig_cancel_all(&g, &alice, &(struct cancel_request){.user = "u1000"});
    for (int i = 0; i < 3; i++)
        assert_int_equal(rig_job(&g, a[i])->state, JOB_CANCELLED);
    assert_int_equal(rig_job(&g, b)->state, JOB_PENDING);
    rig_cancel_all(&g, &alice, &(struct cancel_request){0});
    assert_int_equal(g.code, E_USAGE);
    rig_fini(&g);
}

static void signals_go_to_what_runs(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    struct vscript *a = rig_node(&g, "a", NULL, NULL), *b = rig_node(&g, "b", NULL, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.min_nodes = 2, .n_tasks = 2});
    rig_until(&g, id, "RUNNING", 2000);
    uint32_t waiting = rig_submit(&g, &(struct rig_job){.hold = true}), ids[] = {id, waiting};
    struct who who = vctl_user(1000);
    rig_cancel_all(&g, &who, &(struct cancel_request){.job_ids = ids, .n_job_ids = 2, .signal = 10});
    rig_run(&g, 100);
    assert_int_equal(a->n_signals + b->n_signals, 2);
    assert_int_equal(-(int)g.results->results[0].error, 0);
    assert_int_equal(-(int)g.results->results[1].error, E_JOB_STATE);
    rig_cancel_all(&g, &who, &(struct cancel_request){.job_ids = ids, .n_job_ids = 1, .signal = 10, .batch_only = true});
    rig_run(&g, 100);
    assert_int_equal(a->n_signals + b->n_signals, 3);
    rig_cancel_all(&g, &who, &(struct cancel_request){.job_ids = ids, .n_job_ids = 1, .signal = 65});
    assert_int_equal(g.code, E_SYNTAX);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    rig_fini(&g);
}

static void what_an_administrator_holds_its_owner_cannot_release(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.hold = true});
    assert_int_equal(rig_job(&g, id)->reason, REASON_HELD_USER);
    assert_int_equal(rig_hold(&g, 0, id, HOLD_OP_HOLD), 0);
    assert_int_equal(rig_job(&g, id)->reason, REASON_HELD_ADMIN);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_RELEASE), E_DENIED);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_HOLD), 0); /* as Slurm: it is held, and stays held by the administrator */
    assert_int_equal(rig_job(&g, id)->reason, REASON_HELD_ADMIN);
    assert_int_equal(rig_hold(&g, 0, id, HOLD_OP_UHOLD), 0); /* one that the owner may lift */
    assert_int_equal(rig_job(&g, id)->reason, REASON_HELD_USER);
    rig_run(&g, 10000);
    assert_int_equal(n->n_launches, 0);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_RELEASE), 0);
    rig_until(&g, id, "RUNNING", 1000);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_HOLD), 0); /* it runs on */
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    assert_int_equal(rig_job(&g, id)->reason, REASON_HELD_USER);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_RELEASE), 0);
    assert_int_equal(rig_job(&g, id)->reason, REASON_NONE);
    assert_int_equal(rig_hold(&g, 1000, id, 9), E_USAGE);
    assert_int_equal(rig_report(&g, n, id, 1, 0), 0);
    assert_int_equal(rig_hold(&g, 1000, id, HOLD_OP_HOLD), E_JOB_DONE);
    rig_fini(&g);
}

/* ---- dependencies ---- */

static void a_child_waits_for_the_right_end(void **state) {
    struct rig g;
    char dep[32];
    rig_init(&g, NULL);
    struct vscript *n = rig_node(&g, "n1", NULL, NULL);
    uint32_t good = rig_submit(&g, &(struct rig_job){0}), bad = rig_submit(&g, &(struct rig_job){0});
    rig_until(&g, bad, "RUNNING", 2000);
    snprintf(dep, sizeof(dep), "afterok:%u", good);
    uint32_t ok = rig_submit(&g, &(struct rig_job){.dependency = dep});
    snprintf(dep, sizeof(dep), "afterok:%u", bad);
    uint32_t never = rig_submit(&g, &(struct rig_job){.dependency = dep});
    snprintf(dep, sizeof(dep), "afterany:%u", bad);
    uint32_t any = rig_submit(&g, &(struct rig_job){.dependency = dep});
    rig_run(&g, 5000);
    assert_int_equal(n->n_launches, 2);
    assert_int_equal(rig_report(&g, n, good, 1, 0), 0);
    rig_until(&g, ok, "RUNNING", 1000);
    assert_int_equal(rig_report(&g, n, bad, 1, 1 << 8), 0);
    rig_until(&g, any, "RUNNING", 1000);
    rig_run(&g, 400000); /* the parents are history by then; a snapshot and the log agree about the children (rig_fini) */
    assert_int_equal(rig_job(&g, never)->state, JOB_PENDING);
    assert_int_equal(rig_job(&g, never)->deps[0].state, DEP_NEVER);
    uint32_t late = rig_submit(&g, &(struct rig_job){.dependency = dep}); /* history knows */
    assert_int_equal(rig_job(&g, late)->deps[0].state, DEP_DONE);
    assert_true(rig_job(&g, late)->deps[0].is_final);
    snprintf(dep, sizeof(dep), "afterok:%u", bad);
    uint32_t too_late = rig_submit(&g, &(struct rig_job){.dependency = dep});
    assert_int_equal(rig_job(&g, too_late)->deps[0].state, DEP_NEVER);
    expect(&g, &(struct rig_job){.dependency = "afterok:4711"}, E_DEPENDENCY, "Job dependency problem");
    expect(&g, &(struct rig_job){.dependency = "afterok:x"}, E_DEPENDENCY, NULL);
    assert_int_equal(rig_cancel(&g, 1000, never), 0);
    rig_fini(&g);
}

/* ---- nodes ---- */

static void token_needed(struct rconf *conf, struct arena *a) {
    conf->admission_token = true;
}

static void on_code(void *arg, int code, const struct err *why, const void *reply) {
    *(int *)arg = code;
}

static int enroll(struct rig *g, struct node n, const char *token) {
    struct register_request rq = {.node = &n, .join_token = token};
    int code = 1;
    admit_register(&g->c->room, &rq, on_code, &code);
    rig_run(g, 100);
    return code;
}

static struct node a_node(const char *name, const char *key) {
    return (struct node){.name = name, .address = "10.0.0.1", .port = 6818, .cpus = 2, .mem_mb = 10, .boot_id = "b",
                         .public_key = (const uint8_t *)key, .n_public_key = CRED_PUBLIC_SIZE};
}

static void a_name_is_its_keys(void **state) {
    static const char key[] = "the public key of a node, or so.", thief[] = "another public key of a node....";
    struct rig g;
    rig_init(&g, NULL);
    struct node n = a_node("n1", key);
    assert_int_equal(enroll(&g, n, NULL), 0);
    assert_int_equal(enroll(&g, a_node("n1", thief), NULL), E_ADMISSION); /* while it is up */
    uint64_t entries = vlog_index(g.log);
    assert_int_equal(enroll(&g, n, NULL), 0);
    assert_int_equal(vlog_index(g.log), entries); /* nothing changed, nothing written */
    n.cpus = 3;
    assert_int_equal(enroll(&g, n, NULL), 0);
    assert_int_equal(vctl_node(g.c, "n1")->cpus, 3);
    n.n_public_key = 31;
    assert_int_equal(enroll(&g, n, NULL), E_NODE_KEY);
    n = a_node("n 1", key);
    assert_int_equal(enroll(&g, n, NULL), E_NODE_NAME);
    n = a_node("n2", key);
    n.cpus = 0;
    assert_int_equal(enroll(&g, n, NULL), E_SYNTAX);
    n = a_node("n2", key);
    n.port = 65536;
    assert_int_equal(enroll(&g, n, NULL), E_SYNTAX);
    char version[300];
    memset(version, 'v', sizeof(version));
    version[256] = 0;
    n = a_node("n2", key);
    n.version = version;
    assert_int_equal(enroll(&g, n, NULL), E_TOO_BIG);
    version[255] = 0;
    assert_int_equal(enroll(&g, n, NULL), 0);
    rig_fini(&g);
}

static void with_overlay(struct rconf *conf, struct arena *a) {
    static const char *const names[] = {"n1"}, *const features[] = {"ib"};
    struct node_overlay *o = arena_calloc(a, 1, sizeof(*o));
    *o = (struct node_overlay){.names = names, .n_names = 1, .features = features, .n_features = 1, .weight = 9,
                               .address = "10.9.9.9", .cpus = 1, .memory_mb = 5};
    conf->overlays = o;
    conf->n_overlays = 1;
}

/* [[nodes]] adds to what a node says, and takes it back when it goes. */
static void the_configuration_adds_to_nodes_and_takes_back(void **state) {
    static const char key[] = "the public key of a node, or so.";
    struct rig g;
    rig_init(&g, with_overlay);
    struct node n = a_node("n1", key);
    assert_int_equal(enroll(&g, n, NULL), 0);
    uint64_t entries = vlog_index(g.log);
    assert_int_equal(enroll(&g, n, NULL), 0);
    assert_int_equal(vlog_index(g.log), entries); /* as it was */
    const struct node *now = vctl_node(g.c, "n1");
    assert_int_equal(now->cpus + now->mem_mb + now->n_features + now->weight, 1 + 5 + 1 + 9);
    assert_string_equal(now->address, "10.9.9.9");
    g.conf.fill = NULL;
    rig_restart(&g, false);
    now = vctl_node(g.c, "n1");
    assert_int_equal(now->cpus + now->mem_mb + now->n_features + now->weight, 2 + 10 + 0 + 1);
    assert_string_equal(now->address, "10.0.0.1");
    assert_null(now->said);
    g.conf.fill = with_overlay;
    rig_restart(&g, false);
    now = vctl_node(g.c, "n1");
    assert_int_equal(now->cpus, 1);
    n.cpus = 7; /* it grows behind the configuration's back */
    assert_int_equal(enroll(&g, n, NULL), 0);
    assert_int_equal(vctl_node(g.c, "n1")->cpus, 1);
    assert_int_equal(vctl_node(g.c, "n1")->said->cpus, 7);
    rig_fini(&g);
}

static void where_a_token_is_needed_it_is_needed(void **state) {
    static const char key[] = "the public key of a node, or so.";
    struct rig g;
    rig_init(&g, token_needed);
    uint8_t hash[32];
    char hex[65];
    cred_hash("let me in", 9, hash);
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    const char *const hashes[] = {hex};
    struct cmd_cluster_init init = {hash, 32, hashes, 1};
    room_propose_quietly(&g.c->room, CMD_CLUSTER_INIT, &init);
    rig_run(&g, 10);
    assert_int_equal(enroll(&g, a_node("n1", key), NULL), E_ADMISSION);
    assert_int_equal(enroll(&g, a_node("n1", key), "let me out"), E_ADMISSION);
    assert_int_equal(enroll(&g, a_node("n1", key), "let me in"), 0);
    assert_int_equal(enroll(&g, a_node("n1", key), NULL), 0); /* known by its key */
    rig_fini(&g);
}

struct beat_seen {
    bool register_again;
    uint32_t n;
};

static void on_beat(void *arg, int code, const struct err *why, const void *reply) {
    struct beat_seen *b = arg;
    assert_int_equal(code, 0);
    b->register_again = ((const struct heartbeat_reply *)reply)->register_again;
    b->n++;
}

static void a_heartbeat_of_another_life_is_asked_to_register(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    rig_node(&g, "n1", NULL, NULL);
    struct beat_seen b = {0};
    struct heartbeat_request hb = {.name = "n1", .boot_id = "b", .runs_hash = 1};
    admit_heartbeat(&g.c->room, &hb, on_beat, &b);
    assert_false(b.register_again);
    hb.boot_id = "c";
    admit_heartbeat(&g.c->room, &hb, on_beat, &b);
    assert_true(b.register_again);
    hb.boot_id = "b";
    hb.agent_start_unix = 5;
    admit_heartbeat(&g.c->room, &hb, on_beat, &b);
    assert_true(b.register_again);
    hb.name = "n2";
    admit_heartbeat(&g.c->room, &hb, on_beat, &b);
    assert_true(b.register_again);
    assert_int_equal(b.n, 4);
    assert_int_equal(rig_report_all(&g, &(struct run_report){.name = "n2", .job_id = 1, .start_no = 1}), E_NODE_NAME);
    /* of a job that it never had: nothing to do, and it may forget it */
    assert_int_equal(rig_report_all(&g, &(struct run_report){.name = "n1", .job_id = 1, .start_no = 1}), 0);
    rig_fini(&g);
}

/* A report counts only for the node that it comes from, and for the start that it speaks of. */
static void a_report_is_of_one_node_and_one_start(void **state) {
    struct rig g;
    rig_init(&g, NULL);
    struct vscript *a = rig_node(&g, "a", NULL, NULL), *b = rig_node(&g, "b", NULL, NULL);
    uint32_t id = rig_submit(&g, &(struct rig_job){.req_node = "a"});
    rig_until(&g, id, "RUNNING", 2000);
    assert_int_equal(rig_report(&g, b, id, 1, 0), 0);
    assert_int_equal(rig_report(&g, a, id, 2, 0), 0);
    assert_int_equal(rig_report(&g, a, id, 0, 0), 0);
    assert_string_equal(job_shown_state(rig_job(&g, id)), "RUNNING");
    char text[3000];
    memset(text, 't', sizeof(text));
    text[2999] = 0;
    struct run_report r = {.name = "a", .job_id = id, .start_no = 1, .wait_status = 9, .text = text,
                           .end_ms = VWORLD_BEGIN_UNIX_MS + vworld_now_ms(g.w)};
    assert_int_equal(rig_report_all(&g, &r), 0);
    assert_int_equal(rig_job(&g, id)->state, JOB_FAILED);
    assert_int_equal(strlen(rig_job(&g, id)->state_text), 1024);
    rig_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeat_is_answered_with_the_first_answer),
        cmocka_unit_test(a_repeat_meets_its_first_wherever_that_is),
        cmocka_unit_test(a_repeat_is_not_judged_by_what_has_changed),
        cmocka_unit_test(partitions_are_checked_in_slurms_words),
        cmocka_unit_test(sizes_are_bounded_and_told),
        cmocka_unit_test(a_full_queue_and_a_full_disk_take_nothing),
        cmocka_unit_test(only_an_administrator_raises_a_priority),
        cmocka_unit_test(others_jobs_are_out_of_reach),
        cmocka_unit_test(cancel_by_user_takes_that_users_jobs),
        cmocka_unit_test(signals_go_to_what_runs),
        cmocka_unit_test(what_an_administrator_holds_its_owner_cannot_release),
        cmocka_unit_test(a_child_waits_for_the_right_end),
        cmocka_unit_test(a_name_is_its_keys),
        cmocka_unit_test(the_configuration_adds_to_nodes_and_takes_back),
        cmocka_unit_test(where_a_token_is_needed_it_is_needed),
        cmocka_unit_test(a_heartbeat_of_another_life_is_asked_to_register),
        cmocka_unit_test(a_report_is_of_one_node_and_one_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
