/* SPDX-License-Identifier: Apache-2.0
 *
 * The launch plan: the environment against what Slurm's batch scripts were seen to get, and the rest of the plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurd/launch/plan.h"

struct fixture {
    struct arena arena;
    struct job_spec spec;
    struct job_node nodes[3];
    struct launch_request q;
    struct launch_facts f;
    struct step_plan plan;
};

static int set_up(void **state) {
    static const uint8_t script[] = "#!/bin/sh\n";
    struct fixture *x = xnew(struct fixture);
    x->spec = (struct job_spec){.name = "golden", .uid = 1001, .gid = 1001, .user = "alice", .group = "alice",
                                .n_tasks = 2, .n_tasks_given = 2, .min_nodes = 1, .work_dir = "/home/alice",
                                .submit_host = "login"};
    x->nodes[0] = (struct job_node){.node_id = 1, .name = "n1", .cpus = 2, .n_tasks = 2};
    x->nodes[1] = (struct job_node){.node_id = 2, .name = "n2", .cpus = 2, .n_tasks = 2};
    x->nodes[2] = (struct job_node){.node_id = 3, .name = "n3", .cpus = 1, .n_tasks = 1};
    x->q = (struct launch_request){.job_id = 13505, .start_no = 1, .spec = &x->spec, .nodes = x->nodes, .n_nodes = 1,
                                   .script = script, .n_script = sizeof(script) - 1, .time_limit_min = 5,
                                   .start_unix = 1796171505, .cluster_name = "peer", .sluid = "s0123456789abc",
                                   .partition = "debug", .kill_wait_secs = 30, .batch_host = "n1", .node_name = "n1"};
    x->f = (struct launch_facts){.node_name = "n1", .run_dir = "/state/runs/13505.1", .cgroup = "n1-0-13505.1",
                                 .config_path = "/etc/spur/spur.conf", .clock_scale = 1, .is_root = true,
                                 .home = "/home/alice", .shell = "/bin/bash"};
    *state = x;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *x = *state;
    arena_fini(&x->arena);
    free(x);
    return 0;
}

static void make(struct fixture *x) {
    struct err e = {0};
    assert_int_equal(launch_plan(&x->q, &x->f, &x->arena, &x->plan, &e), 0);
}

/* NULL: not set. Fails when it is set twice. */
static const char *get(const struct fixture *x, const char *name) {
    const char *found = NULL;
    size_t n = strlen(name);
    for (uint32_t i = 0; i < x->plan.n_env; i++) {
        if (!strncmp(x->plan.env[i], name, n) && x->plan.env[i][n] == '=') {
            assert_null(found);
            found = x->plan.env[i] + n + 1;
        }
    }
    return found;
}

static void assert_env(const struct fixture *x, const char *name, const char *value) {
    const char *got = get(x, name);
    if (!str_eq(got, value))
        fail_msg("%s is %s, not %s", name, got ? got : "not set", value ? value : "not set");
}

static void assert_both(const struct fixture *x, const char *name, const char *value) {
    auto_str slurm = {0}, spur = {0};
    str_addf(&slurm, "SLURM_%s", name);
    str_addf(&spur, "SPUR_%s", name);
    assert_env(x, slurm.p, value);
    assert_env(x, spur.p, value);
}

static void set_env(struct fixture *x, const char *blob, size_t n) {
    x->q.env = (const uint8_t *)blob;
    x->q.n_env = (uint32_t)n;
}
#define SET_ENV(x, text) set_env(x, text, sizeof(text)) /* the last NUL is the literal's own */

/* ---- the environment ---- */

/* The recorded list, by name and value; what is only there for the node or the moment is checked for its form. */
static void environment_is_slurms(void **state) {
    struct fixture *x = *state;
    static const char *const recorded[][2] = {
        {"CLUSTER_NAME", "peer"}, {"CONF", "/etc/spur/spur.conf"}, {"CPUS_ON_NODE", "2"}, {"GTIDS", "0"},
        {"JOBID", "13505"}, {"JOB_CPUS_PER_NODE", "2"}, {"JOB_END_TIME", "1796171805"}, {"JOB_EXCLUSIVE", "NO"},
        {"JOB_GID", "1001"}, {"JOB_ID", "13505"}, {"JOB_NAME", "golden"}, {"JOB_NODELIST", "n1"},
        {"JOB_NUM_NODES", "1"}, {"JOB_OVERSUBSCRIBE", "NO"}, {"JOB_PARTITION", "debug"},
        {"JOB_SLUID", "s0123456789abc"}, {"JOB_START_TIME", "1796171505"}, {"JOB_UID", "1001"}, {"JOB_USER", "alice"},
        {"LOCALID", "0"}, {"NNODES", "1"}, {"NODEID", "0"}, {"NODELIST", "n1"}, {"NPROCS", "2"}, {"NTASKS", "2"},
        {"OOM_KILL_STEP", "0"}, {"PRIO_PROCESS", "0"}, {"PROCID", "0"}, {"STEPID", "-5"}, {"STEP_ID", "-5"},
        {"SUBMIT_DIR", "/home/alice"}, {"SUBMIT_HOST", "login"}, {"TASKS_PER_NODE", "2"}, {"TASK_PID", ""},
        {"TOPOLOGY_ADDR", "n1"}, {"TOPOLOGY_ADDR_PATTERN", "node"},
    };
    make(x);
    for (size_t i = 0; i < ARRAY_LEN(recorded); i++)
        assert_both(x, recorded[i][0], recorded[i][1]);
    assert_env(x, "SLURMD_NODENAME", "n1");
    assert_env(x, "HOSTNAME", "n1");
    assert_env(x, "ENVIRONMENT", "BATCH");
    assert_env(x, "HYDRA_BOOTSTRAP", "slurm");
    assert_env(x, "TMPDIR", "/tmp");
    /* and no SLURM_ variable that the recording doesn't have */
    for (uint32_t i = 0; i < x->plan.n_env; i++) {
        bool known = !str_starts(x->plan.env[i], "SLURM_");
        for (size_t j = 0; j < ARRAY_LEN(recorded) && !known; j++) {
            size_t n = strlen(recorded[j][0]);
            known = !strncmp(x->plan.env[i] + 6, recorded[j][0], n) && x->plan.env[i][6 + n] == '=';
        }
        if (!known)
            fail_msg("%s is not in the recording", x->plan.env[i]);
    }
}

static void each_slurm_variable_has_a_twin(void **state) {
    struct fixture *x = *state;
    x->spec.cpus_per_task = x->spec.cpus_per_task_given = 1;
    x->spec.mem_node_mb = 2048;
    x->spec.account = "ml";
    x->spec.qos = "normal";
    x->q.restarts = 2;
    make(x);
    unsigned n = 0;
    for (uint32_t i = 0; i < x->plan.n_env; i++) {
        if (!str_starts(x->plan.env[i], "SLURM_"))
            continue;
        auto_str twin = {0};
        str_addf(&twin, "SPUR_%.*s", (int)strcspn(x->plan.env[i] + 6, "="), x->plan.env[i] + 6);
        assert_env(x, twin.p, strchr(x->plan.env[i], '=') + 1);
        n++;
    }
    assert_true(n > 40);
}

static void task_count_only_when_given(void **state) {
    struct fixture *x = *state;
    x->spec.n_tasks_given = 0;
    x->q.n_nodes = 2;
    x->nodes[0].cpus = x->nodes[1].cpus = 8;
    make(x);
    assert_both(x, "NTASKS", NULL);
    assert_both(x, "NPROCS", NULL);
    assert_both(x, "TASKS_PER_NODE", "8(x2)");
    assert_both(x, "JOB_CPUS_PER_NODE", "8(x2)");
    assert_both(x, "JOB_NODELIST", "n[1-2]");
    assert_both(x, "CPUS_PER_TASK", NULL);
    assert_both(x, "TRES_PER_TASK", NULL);
    assert_both(x, "MEM_PER_NODE", NULL);
    assert_both(x, "RESTART_COUNT", NULL);
    assert_both(x, "JOB_QOS", NULL);
}

static void shape_of_uneven_nodes(void **state) {
    struct fixture *x = *state;
    x->q.n_nodes = 3;
    x->nodes[0].n_tasks = x->nodes[0].cpus = 3;
    x->nodes[1].n_tasks = x->nodes[1].cpus = 1;
    x->spec.n_tasks_given = 5;
    make(x);
    assert_both(x, "TASKS_PER_NODE", "3,1(x2)");
    assert_both(x, "JOB_CPUS_PER_NODE", "3,1(x2)");
    assert_both(x, "NTASKS", "5");
    assert_both(x, "CPUS_ON_NODE", "3");
    assert_both(x, "NNODES", "3");
}

static void memory_and_cpus_per_task(void **state) {
    struct fixture *x = *state;
    x->spec.cpus_per_task = x->spec.cpus_per_task_given = 2;
    x->spec.mem_node_mb = 2048;
    x->nodes[0].cpus = 4;
    x->nodes[0].mem_mb = 2048;
    make(x);
    assert_both(x, "CPUS_PER_TASK", "2");
    assert_both(x, "TRES_PER_TASK", "cpu=2");
    assert_both(x, "MEM_PER_NODE", "2048");
    assert_both(x, "TASKS_PER_NODE", "2");
    assert_int_equal(x->plan.mem_limit_mb, 2048);
}

static void no_time_limit_ends_in_a_year(void **state) {
    struct fixture *x = *state;
    x->q.time_limit_min = TIME_LIMIT_NONE;
    make(x);
    assert_both(x, "JOB_END_TIME", "1827707505");
}

static void requeued_and_appending(void **state) {
    struct fixture *x = *state;
    x->q.restarts = 1;
    x->spec.open_mode = OPEN_APPEND;
    make(x);
    assert_both(x, "RESTART_COUNT", "1");
    assert_both(x, "OPEN_MODE", "a");
    assert_true(x->plan.append);
}

/* ---- what the submitter brings ---- */

static void users_own_variables_stay(void **state) {
    struct fixture *x = *state;
    SET_ENV(x, "FOO=bar\0EMPTY=\0PATH=/opt/bin\0HOME=/elsewhere\0SLURM_HINT=nomultithread\0SLURM_EXPORT_ENV=NONE\0"
               "SPUR_CONTROLLER_ADDR=http://c:1\0CUDA_VISIBLE_DEVICES=3\0TMPDIR=/scratch\0SLURM_SUBMIT_DIR=/sub");
    make(x);
    assert_env(x, "FOO", "bar");
    assert_env(x, "EMPTY", "");
    assert_env(x, "PATH", "/opt/bin");
    assert_env(x, "HOME", "/elsewhere");
    assert_env(x, "USER", "alice");
    assert_env(x, "TMPDIR", "/scratch");
    assert_env(x, "SLURM_HINT", "nomultithread");
    assert_env(x, "SLURM_EXPORT_ENV", "NONE");
    assert_env(x, "SPUR_CONTROLLER_ADDR", "http://c:1");
    assert_env(x, "CUDA_VISIBLE_DEVICES", "3");
    assert_both(x, "SUBMIT_DIR", "/sub");
}

static void outer_job_leaves_nothing(void **state) {
    struct fixture *x = *state;
    SET_ENV(x, "SLURM_JOB_ID=7\0SLURM_JOBID=7\0SLURM_MEM_PER_CPU=100\0SPUR_MEM_PER_CPU=100\0SLURM_JOB_GPUS=0\0"
               "CUDA_VISIBLE_DEVICES=0\0SLURM_NTASKS=64\0SLURM_RESTART_COUNT=4\0SLURM_ARRAY_TASK_ID=3\0"
               "SLURMD_NODENAME=n9\0SLURM_SUBMIT_DIR=/outer\0SLURM_WHATEVER=1\0SPUR_RUN_ID=7.1.n9\0KEEP=1\0"
               "SPUR_CONTROLLER_ADDR=http://c:1\0SLURM_CONF=/x");
    x->spec.n_tasks_given = 0;
    x->spec.mem_node_mb = 200;
    make(x);
    assert_both(x, "MEM_PER_CPU", NULL);
    assert_both(x, "MEM_PER_NODE", "200");
    assert_both(x, "JOB_GPUS", NULL);
    assert_env(x, "CUDA_VISIBLE_DEVICES", NULL);
    assert_both(x, "NTASKS", NULL);
    assert_both(x, "RESTART_COUNT", NULL);
    assert_both(x, "ARRAY_TASK_ID", NULL);
    assert_both(x, "WHATEVER", NULL);
    assert_both(x, "JOB_ID", "13505");
    assert_both(x, "SUBMIT_DIR", "/home/alice");
    assert_env(x, "SLURMD_NODENAME", "n1");
    assert_env(x, "SPUR_RUN_ID", "13505.1.n1-0-13505.1");
    assert_env(x, "KEEP", "1");
    assert_env(x, "SPUR_CONTROLLER_ADDR", "http://c:1");
}

/* Some tools unset SLURM_JOB_ID and believe that to be enough. */
static void shape_goes_without_an_outer_id(void **state) {
    struct fixture *x = *state;
    SET_ENV(x, "SLURM_MEM_PER_CPU=100\0SLURM_NTASKS_PER_NODE=4\0SLURM_GPUS_ON_NODE=2\0SLURM_TRES_PER_TASK=cpu=9");
    make(x);
    assert_both(x, "MEM_PER_CPU", NULL);
    assert_both(x, "NTASKS_PER_NODE", NULL);
    assert_both(x, "GPUS_ON_NODE", NULL);
    assert_both(x, "TRES_PER_TASK", NULL);
}

static void nothing_brought_is_a_login(void **state) {
    struct fixture *x = *state;
    x->f.controllers = "http://ctl:6817";
    make(x);
    assert_env(x, "HOME", "/home/alice");
    assert_env(x, "USER", "alice");
    assert_env(x, "LOGNAME", "alice");
    assert_env(x, "SHELL", "/bin/bash");
    assert_env(x, "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games");
    assert_env(x, "SPUR_CONTROLLER_ADDR", "http://ctl:6817");
}

/* --export=NIL is bare, --export=NONE a login. */
static void nil_is_no_login(void **state) {
    struct fixture *x = *state;
    static const char *const of_login[] = {"HOME", "USER", "LOGNAME", "SHELL", "PATH"};
    x->spec.env_minimal = true;
    SET_ENV(x, "SLURM_EXPORT_ENV=NIL");
    make(x);
    for (size_t i = 0; i < ARRAY_LEN(of_login); i++)
        assert_env(x, of_login[i], NULL);
    assert_env(x, "TMPDIR", "/tmp");
    assert_both(x, "EXPORT_ENV", "NIL");
    assert_both(x, "GET_USER_ENV", NULL);
    SET_ENV(x, "SLURM_EXPORT_ENV=NONE\0SLURM_GET_USER_ENV=1");
    make(x);
    assert_env(x, "HOME", "/home/alice");
    assert_both(x, "EXPORT_ENV", "NONE");
    assert_both(x, "GET_USER_ENV", "1");
    x->spec.env_minimal = false; /* submitted with ALL from within a bare job */
    SET_ENV(x, "SLURM_EXPORT_ENV=NIL");
    make(x);
    assert_env(x, "HOME", "/home/alice");
}

static void odd_blobs_do_no_harm(void **state) {
    struct fixture *x = *state;
    SET_ENV(x, "\0\0=nameless\0NOVALUE\0A=1\0A=2\0TAIL");
    x->q.n_env--; /* the last one has no NUL */
    make(x);
    assert_null(get(x, ""));
    assert_null(get(x, "NOVALUE"));
    assert_null(get(x, "TAIL"));
}

/* ---- the rest of the plan ---- */

static void files_and_patterns(void **state) {
    struct fixture *x = *state;
    static const char *const args[] = {"one", "two words"};
    x->spec.args = args;
    x->spec.n_args = 2;
    make(x);
    assert_string_equal(x->plan.std_out, "/home/alice/slurm-13505.out");
    assert_null(x->plan.std_err);
    assert_null(x->plan.std_in);
    assert_int_equal(x->plan.n_argv, 3);
    assert_string_equal(x->plan.argv[0], "/state/runs/13505.1/slurm_script");
    assert_string_equal(x->plan.argv[2], "two words");
    x->spec.std_out = "o/%x-%u-%N.txt";
    x->spec.std_err = "/var/%5j.err";
    x->spec.std_in = "in";
    make(x);
    assert_string_equal(x->plan.std_out, "/home/alice/o/golden-alice-n1.txt");
    assert_string_equal(x->plan.std_err, "/var/13505.err");
    assert_string_equal(x->plan.std_in, "/home/alice/in");
}

static void limits_and_umask(void **state) {
    struct fixture *x = *state;
    static const struct job_rlimit limits[] = {{"NOFILE", 1024}, {"CORE", UINT64_MAX}};
    x->spec.rlimits = limits;
    x->spec.n_rlimits = 2;
    make(x);
    assert_int_equal(x->plan.umask, 022);
    assert_int_equal(x->plan.n_rlimits, 2);
    assert_string_equal(x->plan.rlimits[0].name, "NOFILE");
    assert_int_equal(x->plan.rlimits[0].soft, 1024);
    x->spec.umask = 0077 + 1;
    make(x);
    assert_int_equal(x->plan.umask, 077);
}

static void other_nodes_hold(void **state) {
    struct fixture *x = *state;
    x->q.n_nodes = 2;
    x->q.node_index = 1;
    x->f.node_name = "n2";
    x->q.script = NULL;
    x->q.n_script = 0;
    make(x);
    assert_int_equal(x->plan.n_argv, 0);
    assert_int_equal(x->plan.n_env, 0);
    assert_string_equal(x->plan.node_name, "n2");
}

static void test_time_is_shorter(void **state) {
    struct fixture *x = *state;
    x->f.clock_scale = 60;
    make(x);
    assert_int_equal(x->plan.kill_wait_ms, 500);
    assert_int_equal(x->plan.unkillable_ms, 1000);
    x->q.complete_wait_secs = 120;
    make(x);
    assert_int_equal(x->plan.unkillable_ms, 2000);
}

static void refusals(void **state) {
    struct fixture *x = *state;
    struct err e;
    x->f.is_root = false;
    x->f.own_uid = 1002;
    assert_int_equal(launch_plan(&x->q, &x->f, &x->arena, &x->plan, &e), E_DENIED);
    x->f.own_uid = 1001;
    make(x);
    x->f.node_name = "n7";
    assert_int_equal(launch_plan(&x->q, &x->f, &x->arena, &x->plan, &e), E_SYNTAX);
    x->f.node_name = "n1";
    x->q.node_index = 5;
    assert_int_equal(launch_plan(&x->q, &x->f, &x->arena, &x->plan, &e), E_SYNTAX);
    x->q.node_index = 0;
    x->q.n_script = 0;
    assert_int_equal(launch_plan(&x->q, &x->f, &x->arena, &x->plan, &e), E_SCRIPT);
    x->q.spec = NULL;
    assert_int_equal(launch_plan(&x->q, &x->f, &x->arena, &x->plan, &e), E_SYNTAX);
}

int main(void) {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(environment_is_slurms), TEST(each_slurm_variable_has_a_twin), TEST(task_count_only_when_given),
        TEST(shape_of_uneven_nodes), TEST(memory_and_cpus_per_task), TEST(no_time_limit_ends_in_a_year),
        TEST(requeued_and_appending), TEST(users_own_variables_stay), TEST(outer_job_leaves_nothing),
        TEST(shape_goes_without_an_outer_id), TEST(nothing_brought_is_a_login), TEST(nil_is_no_login),
        TEST(odd_blobs_do_no_harm),
        TEST(files_and_patterns), TEST(limits_and_umask), TEST(other_nodes_hold), TEST(test_time_is_shorter),
        TEST(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
