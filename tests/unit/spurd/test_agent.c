/* SPDX-License-Identifier: Apache-2.0
 *
 * The real spurd, its real step daemons and real jobs, against a controller of the test's own.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "controller.h"
#include "spurstepd/step.h"

static const char *program;

static int set_up(void **state) {
    struct controller *c = xnew(struct controller);
    controller_begin(c, program);
    agent_start(c, NULL);
    agent_wait_registered(c, 1);
    *state = c;
    return 0;
}

static int tear_down(void **state) {
    controller_end(*state);
    free(*state);
    return 0;
}

/* Or a zombie, which waits for whoever is pid 1 here. */
static bool is_dead(void *arg) {
    char path[64], state = 'X';
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)(uintptr_t)arg);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 'X';
    if (f)
        fclose(f);
    return state == 'X' || state == 'Z';
}

static void wait_dead(struct controller *c, uint32_t pid) {
    wait_until(c, is_dead, (void *)(uintptr_t)pid, "a process to be gone");
}

static char *run_dir(struct controller *c, uint32_t job_id) {
    return arena_printf(&c->arena, "%s/state/runs/%u.1", c->root, job_id);
}

static bool is_no_file(void *path) {
    return access(path, F_OK) != 0;
}

static void launch(struct controller *c, uint32_t job_id, const char *script, uint32_t *out_pid) {
    struct launch l;
    struct err e;
    launch_fill(c, &l, job_id, script);
    if (launch_send(c, &l, TRUE_CALL, out_pid, &e))
        fail_msg("launch: %s", e.text);
}

/* ---- registration ---- */

static void registers_what_it_is(void **state) {
    struct controller *c = *state;
    const struct node *n = c->registered.node;
    assert_string_equal(n->name, "n1");
    assert_string_equal(n->address, "127.0.0.1");
    assert_int_not_equal(n->port, 0);
    assert_int_equal(n->cpus, 4);
    assert_int_equal(n->mem_mb, 4000);
    assert_int_equal(n->n_features, 2);
    assert_int_equal(strlen(n->boot_id), 36);
    assert_true(n->boot_unix > 0 && n->agent_start_unix > n->boot_unix - 5);
    assert_string_equal(n->version, SPUR_VERSION);
    assert_int_equal(c->registered.n_runs, 0);
}

static bool beats_twice(void *arg) {
    return ((struct controller *)arg)->n_heartbeats >= 2;
}

static void registers_again_when_asked(void **state) {
    struct controller *c = *state;
    wait_until(c, beats_twice, c, "heartbeats");
    c->register_again = true;
    agent_wait_registered(c, 2);
    controller_close(c); /* and when the controller was away */
    controller_listen(c);
    c->register_again = true;
    agent_wait_registered(c, 3);
}

static void keeps_asking_while_refused(void **state) {
    struct controller *c = *state;
    agent_kill(c, SIGKILL);
    c->refuse_register = E_ADMISSION;
    agent_start(c, NULL);
    loop_run_until(c->loop, is_dead, (void *)(uintptr_t)getpid(), 300);
    assert_int_equal(c->n_registered, 1);
    c->refuse_register = 0;
    agent_wait_registered(c, 2);
}

static void another_controllers_key_is_not_taken(void **state) {
    struct controller *c = *state;
    struct cred_key first = c->key;
    struct launch l;
    cred_key_new(&c->key);
    c->register_again = true;
    agent_wait_registered(c, 3); /* asked again and again, as nothing came of it */
    launch_fill(c, &l, 5, "#!/bin/sh\n");
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), E_CREDENTIAL);
    cred_key_fini(&c->key);
    c->key = first;
    unsigned n = c->n_registered;
    agent_wait_registered(c, n + 1);
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), 0);
    wait_report(c, 5);
}

/* ---- runs ---- */

static void job_runs_and_is_reported(void **state) {
    struct controller *c = *state;
    launch(c, 12, "#!/bin/sh\necho hello $SLURM_JOB_ID $SPUR_JOB_ID $0; exit 3\n", NULL);
    const struct run_report *r = wait_report(c, 12);
    assert_int_equal(r->wait_status, 3 << 8);
    assert_string_equal(r->name, "n1");
    assert_int_equal(r->start_no, 1);
    assert_true(r->end_ms >= r->start_ms && r->start_ms > 0);
    assert_true(r->max_rss_kb > 0);
    assert_false(r->never_started || r->out_of_memory || r->drain_node || r->node_failed);
    assert_non_null(strstr(output_of(c, 12), "hello 12 12 "));
    assert_non_null(strstr(output_of(c, 12), "/slurm_script"));
    wait_until(c, is_no_file, run_dir(c, 12), "the run's directory to go");
}

static void signals_kill_and_are_reported(void **state) {
    struct controller *c = *state;
    launch(c, 13, "#!/bin/bash\ntrap 'echo got it; exit 7' USR1\necho there\nwhile :; do sleep 0.05; done\n", NULL);
    wait_output(c, 13, "there");
    struct signal_request q = {.job_id = 13, .start_no = 1, .signal = SIGUSR1, .batch_only = true, .node_name = "n1",
                               .uid = geteuid()};
    assert_int_equal(agent_call(c, WIRE_Agent_Signal, &q, 13, 1, q.uid, TRUE_CALL, NULL, NULL), 0);
    assert_int_equal(wait_report(c, 13)->wait_status, 7 << 8);
    assert_non_null(strstr(output_of(c, 13), "got it"));
    launch(c, 14, "#!/bin/bash\necho there\nsleep 1000\n", NULL);
    wait_output(c, 14, "there");
    q = (struct signal_request){.job_id = 14, .start_no = 1, .signal = SIGKILL, .node_name = "n1", .uid = geteuid()};
    assert_int_equal(agent_call(c, WIRE_Agent_Signal, &q, 14, 1, q.uid, TRUE_CALL, NULL, NULL), 0);
    assert_int_equal(wait_report(c, 14)->wait_status, SIGKILL);
}

static void terminate_waits_then_kills(void **state) {
    struct controller *c = *state;
    launch(c, 15, "#!/bin/bash\ntrap '' TERM\necho there\nwhile :; do sleep 0.05; done\n", NULL);
    wait_output(c, 15, "there");
    assert_int_equal(terminate_send(c, 15, geteuid(), 1, "DUE TO TIME LIMIT"), 0);
    assert_int_equal(terminate_send(c, 15, geteuid(), 3600, "DUE TO TIME LIMIT"), 0); /* no longer for it */
    const struct run_report *r = wait_report(c, 15);
    assert_int_equal(r->wait_status, SIGKILL);
    assert_in_range(r->end_ms - r->start_ms, 1000, 20000);
    char *out = output_of(c, 15);
    assert_non_null(strstr(out, "error: *** JOB 15 ON n1 CANCELLED AT "));
    assert_non_null(strstr(out, " DUE TO TIME LIMIT ***\n"));
    assert_null(strstr(strstr(out, "CANCELLED") + 1, "CANCELLED")); /* told once */
}

static void terminate_of_strangers(void **state) {
    struct controller *c = *state;
    assert_int_equal(terminate_send(c, 999, geteuid(), 1, NULL), E_NOT_FOUND);
    launch(c, 16, "#!/bin/sh\nsleep 1000\n", NULL);
    assert_int_equal(terminate_send(c, 16, geteuid() + 1, 1, NULL), E_DENIED);
    assert_int_equal(terminate_send(c, 16, geteuid(), 1, NULL), 0);
    assert_int_equal(wait_report(c, 16)->wait_status, SIGTERM);
}

static void failed_launch_leaves_nothing(void **state) {
    struct controller *c = *state;
    struct launch l;
    struct err e;
    launch_fill(c, &l, 17, "#!/bin/sh\n");
    l.node.name = "n9";
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, &e), E_SYNTAX);
    assert_int_equal(access(run_dir(c, 17), F_OK), -1);
    launch_fill(c, &l, 17, "#!/bin/sh\nexit 4\n"); /* and the same run may be tried again */
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), 0);
    assert_int_equal(wait_report(c, 17)->wait_status, 4 << 8);
}

static void output_that_cant_be_opened_is_the_jobs_fault(void **state) {
    struct controller *c = *state;
    struct launch l;
    launch_fill(c, &l, 18, "#!/bin/sh\n");
    l.spec.std_out = "/proc/nowhere/x.out";
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), 0);
    const struct run_report *r = wait_report(c, 18);
    assert_int_equal(r->wait_status, 53);
    assert_false(r->never_started);
    assert_non_null(strstr(r->text, "/proc/nowhere/x.out"));
}

static void other_nodes_hold_until_told(void **state) {
    struct controller *c = *state;
    struct launch l;
    struct job_node nodes[2] = {{.node_id = 2, .name = "n0", .cpus = 1}, {.node_id = 1, .name = "n1", .cpus = 1}};
    struct launch_reply reply;
    launch_fill(c, &l, 19, "");
    l.q.nodes = nodes;
    l.q.n_nodes = 2;
    l.q.node_index = 1;
    l.q.spec = &l.spec;
    assert_int_equal(agent_call(c, WIRE_Agent_Launch, &l.q, 19, 1, l.spec.uid, TRUE_CALL, &reply, NULL), 0);
    assert_int_equal(kill((pid_t)reply.pid, 0), 0);
    assert_int_equal(terminate_send(c, 19, geteuid(), 0, NULL), 0);
    assert_int_equal(wait_report(c, 19)->wait_status, 0);
    wait_dead(c, reply.pid);
}

static void nothing_of_a_job_lives_on(void **state) {
    struct controller *c = *state;
    launch(c, 20,
           "#!/bin/bash\nsleep 1000 & echo $!\nsetsid sleep 1001 & echo $!\n"
           "(setsid bash -c 'echo $$; exec sleep 1002' &)\nsleep 0.2\necho over\n",
           NULL);
    wait_report(c, 20);
    char *out = output_of(c, 20), *save = NULL;
    unsigned n = 0;
    for (char *line = strtok_r(out, "\n", &save); line && strcmp(line, "over"); line = strtok_r(NULL, "\n", &save)) {
        assert_true(atol(line) > 1 && is_dead((void *)(uintptr_t)atol(line)));
        n++;
    }
    assert_int_equal(n, 3);
}

/* ---- credentials ---- */

static void forged_launches_are_refused(void **state) {
    struct controller *c = *state;
    static const struct {
        enum forgery forgery;
        int code;
    } rows[] = {
        {NO_HEADER, E_CREDENTIAL},  {OTHER_KEY, E_CREDENTIAL},   {OTHER_NODE, E_CREDENTIAL}, {OTHER_BODY, E_CREDENTIAL},
        {OTHER_JOB, E_CREDENTIAL},  {OTHER_START, E_CREDENTIAL}, {OTHER_UID, E_CREDENTIAL},  {EXPIRED, E_CRED_EXPIRED},
        {OTHER_METHOD, E_CREDENTIAL},
    };
    struct launch l;
    launch_fill(c, &l, 30, "#!/bin/sh\necho ran\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(launch_send(c, &l, rows[i].forgery, NULL, NULL), rows[i].code);
    l.q.node_name = "n2"; /* truly signed, but for another node */
    assert_int_equal(launch_send(c, &l, OTHER_NODE, NULL, NULL), E_CREDENTIAL);
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), E_CREDENTIAL);
    l.q.node_name = "n1";
    assert_string_equal(output_of(c, 30), "");
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), 0);
    wait_report(c, 30);
    assert_string_equal(output_of(c, 30), "ran\n");
}

static void forged_cancels_are_refused(void **state) {
    struct controller *c = *state;
    struct terminate_request t = {.job_id = 31, .start_no = 1, .node_name = "n1", .uid = geteuid()};
    struct signal_request s = {.job_id = 31, .start_no = 1, .signal = 9, .node_name = "n1", .uid = geteuid()};
    launch(c, 31, "#!/bin/sh\necho there; sleep 1000\n", NULL);
    wait_output(c, 31, "there");
    for (enum forgery f = NO_HEADER; f <= OTHER_METHOD; f++) {
        int code = f == EXPIRED ? E_CRED_EXPIRED : E_CREDENTIAL;
        assert_int_equal(agent_call(c, WIRE_Agent_Terminate, &t, 31, 1, t.uid, f, NULL, NULL), code);
        assert_int_equal(agent_call(c, WIRE_Agent_Signal, &s, 31, 1, s.uid, f, NULL, NULL), code);
    }
    assert_null(report_of(c, 31));
    assert_int_equal(agent_call(c, WIRE_Agent_Signal, &s, 31, 1, s.uid, TRUE_CALL, NULL, NULL), 0);
    assert_int_equal(wait_report(c, 31)->wait_status, SIGKILL);
}

static void repeated_launch_runs_once(void **state) {
    struct controller *c = *state;
    struct launch l;
    uint32_t pid, again;
    launch_fill(c, &l, 32, "#!/bin/sh\necho ran; sleep 1000\n");
    assert_int_equal(launch_send(c, &l, TRUE_CALL, &pid, NULL), 0);
    assert_int_equal(launch_send(c, &l, TRUE_CALL, &again, NULL), 0);
    assert_int_equal(pid, again);
    wait_output(c, 32, "ran");
    agent_kill(c, SIGKILL);
    agent_start(c, NULL);
    agent_wait_registered(c, 2);
    assert_int_equal(launch_send(c, &l, TRUE_CALL, &again, NULL), 0);
    assert_int_equal(pid, again);
    terminate_send(c, 32, geteuid(), 1, NULL);
    wait_report(c, 32);
    wait_until(c, is_no_file, run_dir(c, 32), "the run to be forgotten");
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), E_CRED_REPLAY);
    agent_kill(c, SIGKILL);
    agent_start(c, NULL);
    agent_wait_registered(c, 3);
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), E_CRED_REPLAY);
    assert_int_equal(c->n_reports, 1);
    assert_null(strstr(strstr(output_of(c, 32), "ran") + 1, "ran"));
}

/* A start that was taken back while its launch was still on the way must not begin behind that. */
static void a_late_launch_is_none(void **state) {
    struct controller *c = *state;
    struct launch l;
    launch_fill(c, &l, 33, "#!/bin/sh\necho ran\n");
    struct terminate_request t = {.job_id = 33, .start_no = 1, .node_name = "n1", .uid = geteuid()};
    assert_int_equal(agent_call(c, WIRE_Agent_Terminate, &t, 33, 1, t.uid, TRUE_CALL, NULL, NULL), E_NOT_FOUND);
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), E_CRED_REPLAY);
    l.q.start_no = 2; /* the next start is another run */
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), 0);
    wait_report(c, 33);
    assert_string_equal(output_of(c, 33), "ran\n");
}

/* ---- restarts ---- */

static void runs_survive_the_agent(void **state) {
    struct controller *c = *state;
    uint32_t pid;
    launch(c, 40, "#!/bin/bash\necho there\nuntil [ -e go ]; do sleep 0.02; done\nexit 5\n", &pid);
    launch(c, 41, "#!/bin/bash\necho there\nuntil [ -e stop ]; do sleep 0.02; done\nexit 6\n", NULL);
    wait_output(c, 40, "there");
    wait_output(c, 41, "there");
    agent_kill(c, SIGKILL);
    /* one ends while nobody looks */
    char path[300];
    snprintf(path, sizeof(path), "%s/go", c->root);
    fclose(fopen(path, "w"));
    wait_dead(c, pid);
    assert_null(report_of(c, 40));
    agent_start(c, NULL);
    agent_wait_registered(c, 2);
    assert_int_equal(c->registered.n_runs, 2);
    assert_int_equal(c->registered.runs[0].job_id, 40);
    assert_int_equal(wait_report(c, 40)->wait_status, 5 << 8);
    snprintf(path, sizeof(path), "%s/stop", c->root);
    fclose(fopen(path, "w"));
    assert_int_equal(wait_report(c, 41)->wait_status, 6 << 8);
}

static void stops_fast_without_a_controller(void **state) {
    struct controller *c = *state;
    uint32_t pid;
    launch(c, 42, "#!/bin/bash\necho there\nsleep 1000\n", &pid);
    wait_output(c, 42, "there");
    controller_close(c);
    int64_t began = loop_now_ms(c->loop);
    agent_kill(c, SIGTERM);
    assert_in_range(loop_now_ms(c->loop) - began, 0, 2000);
    assert_int_equal(kill((pid_t)pid, 0), 0);
    controller_listen(c);
    agent_start(c, NULL);
    agent_wait_registered(c, 2);
    terminate_send(c, 42, geteuid(), 1, NULL);
    assert_int_equal(wait_report(c, 42)->wait_status, SIGTERM);
}

static bool was_refused_thrice(void *arg) {
    return ((struct controller *)arg)->n_reports_refused >= 3;
}

static void reports_are_repeated_until_taken(void **state) {
    struct controller *c = *state;
    c->refuse_reports = E_FULL;
    launch(c, 43, "#!/bin/sh\nexit 9\n", NULL);
    wait_until(c, was_refused_thrice, c, "refused reports");
    agent_kill(c, SIGKILL); /* what was not taken is not lost with the agent */
    c->refuse_reports = 0;
    agent_start(c, NULL);
    agent_wait_registered(c, 2);
    assert_int_equal(wait_report(c, 43)->wait_status, 9 << 8);
    wait_until(c, is_no_file, run_dir(c, 43), "the run to be forgotten");
    assert_int_equal(c->n_reports, 1);
}

static void reports_of_no_use_are_dropped(void **state) {
    struct controller *c = *state;
    c->refuse_reports = E_STALE;
    launch(c, 44, "#!/bin/sh\nexit 9\n", NULL);
    wait_until(c, is_no_file, run_dir(c, 44), "the run to be forgotten");
    assert_int_equal(c->n_reports_refused, 1);
}

static void killed_step_daemon_is_cleaned_up(void **state) {
    struct controller *c = *state;
    uint32_t pid;
    launch(c, 45, "#!/bin/bash\n(setsid bash -c 'echo $$; exec sleep 1000' &)\nsleep 0.1; echo there\nsleep 1001\n",
           &pid);
    wait_output(c, 45, "there");
    kill((pid_t)pid, SIGKILL);
    const struct run_report *r = wait_report(c, 45);
    assert_int_equal(r->wait_status, SIGKILL);
    assert_non_null(strstr(r->text, "step daemon"));
    wait_dead(c, (uint32_t)atol(output_of(c, 45)));
}

/* A step daemon of an earlier life of the machine: what it wrote in its log is all there is. */
static void reboot_is_a_node_failure(void **state) {
    struct controller *c = *state;
    struct step_plan plan = {.version = 1, .job_id = 46, .start_no = 1, .node_name = "n1", .uid = geteuid()};
    struct step_entry entry = {.kind = STEP_LOG_DAEMON, .pid = 1, .boot_id = "00000000-0000-0000-0000-000000000000",
                               .at_ms = 1796171505000};
    auto_buf bytes = {0}, log = {0};
    rec_encode(step_plan_rec(), &plan, &bytes);
    step_log_frame(&entry, &log);
    agent_kill(c, SIGKILL);
    char *dir = run_dir(c, 46);
    mkdir(dir, 0711);
    FILE *f = fopen(arena_printf(&c->arena, "%s/plan", dir), "we");
    fwrite(bytes.p, bytes.n, 1, f);
    fclose(f);
    f = fopen(arena_printf(&c->arena, "%s/log", dir), "we");
    fwrite(log.p, log.n, 1, f);
    fwrite("torn", 4, 1, f);
    fclose(f);
    agent_start(c, NULL);
    const struct run_report *r = wait_report(c, 46);
    assert_true(r->node_failed);
    assert_false(r->never_started);
    assert_string_equal(r->text, "node rebooted");
    assert_int_equal(kill(1, 0), 0); /* whoever has the pid now */
}

/* The agent died after the plan was written and before the daemon was started. */
static void unstarted_run_never_starts(void **state) {
    struct controller *c = *state;
    struct step_plan plan = {.version = 1, .job_id = 47, .start_no = 1, .node_name = "n1", .uid = geteuid()};
    auto_buf bytes = {0};
    rec_encode(step_plan_rec(), &plan, &bytes);
    agent_kill(c, SIGKILL);
    mkdir(run_dir(c, 47), 0711);
    FILE *f = fopen(arena_printf(&c->arena, "%s/plan", run_dir(c, 47)), "we");
    fwrite(bytes.p, bytes.n, 1, f);
    fclose(f);
    mkdir(run_dir(c, 48), 0711); /* and before the plan was whole */
    agent_start(c, NULL);
    assert_true(wait_report(c, 47)->never_started);
    assert_int_equal(access(run_dir(c, 48), F_OK), -1);
}

static bool never(void *arg) {
    return false;
}

static unsigned count_lines(struct controller *c, uint32_t job_id) {
    unsigned n = 0;
    for (const char *at = output_of(c, job_id); (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

/* The agent dies at any moment of a launch; the controller, which had no answer, sends it again. */
static void killed_at_any_moment_no_run_is_lost_or_doubled(void **state) {
    struct controller *c = *state;
    enum { ROUNDS = 12, EACH = 5 };
    struct launch l[EACH];
    unsigned ran = 0;
    uint32_t id = 1000;
    srand((unsigned)getpid());
    for (unsigned round = 0; round < ROUNDS; round++) {
        c->n_reports = 0;
        for (unsigned i = 0; i < EACH; i++) {
            launch_fill(c, &l[i], id + i, "#!/bin/sh\necho ran\n");
            l[i].spec.open_mode = OPEN_APPEND;
            launch_send_unanswered(c, &l[i]);
        }
        loop_run_until(c->loop, never, NULL, (uint64_t)(rand() % 30));
        agent_kill(c, rand() % 2 ? SIGKILL : SIGTERM);
        unsigned n = c->n_registered;
        agent_start(c, NULL);
        agent_wait_registered(c, n + 1);
        for (unsigned i = 0; i < EACH; i++)
            launch_send_unanswered(c, &l[i]);
        for (unsigned i = 0; i < EACH; i++) {
            const struct run_report *r = wait_report(c, id + i);
            assert_int_equal(r->wait_status, 0);
            assert_int_equal(count_lines(c, id + i), r->never_started ? 0 : 1);
            ran += !r->never_started;
        }
        for (unsigned i = 0; i < c->n_reports; i++) { /* a report may be repeated, but says the same */
            const struct run_report *first = report_of(c, c->reports[i].job_id);
            assert_int_equal(c->reports[i].never_started, first->never_started);
        }
        id += EACH;
    }
    assert_true(ran > 0);
}

static void what_the_controller_ends_is_ended(void **state) {
    struct controller *c = *state;
    struct launch l;
    launch_fill(c, &l, 49, "#!/bin/bash\necho there\nsleep 1000\n");
    l.q.kill_wait_secs = 1;
    assert_int_equal(launch_send(c, &l, TRUE_CALL, NULL, NULL), 0);
    wait_output(c, 49, "there");
    c->end = (struct run_ref){.job_id = 49, .start_no = 2}; /* another start: not this one */
    c->register_again = true;
    agent_wait_registered(c, 2);
    c->end.start_no = 1;
    c->register_again = true;
    assert_int_equal(wait_report(c, 49)->wait_status, SIGTERM);
    assert_non_null(strstr(output_of(c, 49), "DUE TO NODE FAILURE"));
}

int main(int argc, char **argv) {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(registers_what_it_is),
        TEST(registers_again_when_asked),
        TEST(keeps_asking_while_refused),
        TEST(another_controllers_key_is_not_taken),
        TEST(job_runs_and_is_reported),
        TEST(signals_kill_and_are_reported),
        TEST(terminate_waits_then_kills),
        TEST(terminate_of_strangers),
        TEST(failed_launch_leaves_nothing),
        TEST(output_that_cant_be_opened_is_the_jobs_fault),
        TEST(other_nodes_hold_until_told),
        TEST(nothing_of_a_job_lives_on),
        TEST(forged_launches_are_refused),
        TEST(forged_cancels_are_refused),
        TEST(repeated_launch_runs_once),
        TEST(a_late_launch_is_none),
        TEST(runs_survive_the_agent),
        TEST(stops_fast_without_a_controller),
        TEST(reports_are_repeated_until_taken),
        TEST(reports_of_no_use_are_dropped),
        TEST(killed_step_daemon_is_cleaned_up),
        TEST(reboot_is_a_node_failure),
        TEST(unstarted_run_never_starts),
        TEST(what_the_controller_ends_is_ended),
        TEST(killed_at_any_moment_no_run_is_lost_or_doubled),
    };
    struct err e;
    if (argc < 2 || cred_init(&e))
        return 1;
    program = argv[1];
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
