/* SPDX-License-Identifier: Apache-2.0
 *
 * A step's ticket, and the plan that is made of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurd/gres.h"
#include "spurd/launch/step.h"
#include "spurd/stream/ticket.h"
#include "wire/proof.h"

struct fixture {
    struct arena a;
    struct step_ticket k;
    struct step step;
    struct step_spec spec;
    struct step_node nodes[2];
    struct job_node job_nodes[3];
    struct job_spec job;
    struct stream_launch l;
    struct launch_facts f;
    struct step_plan plan;
    const char *argv[2];
};

static const uint32_t first_ranks[] = {0, 1, 2}, second_ranks[] = {3, 4};
static const char env[] = "PATH=/bin\0SLURM_PROCID=9\0SLURM_JOB_ID=1\0SLURM_SUBMIT_DIR=/sub\0SPUR_RUN_ID=outer\0BROKEN\0";

static int set_up(void **state) {
    struct fixture *x = xnew(struct fixture);
    x->argv[0] = "prog";
    x->spec = (struct step_spec){.n_tasks = 5, .cpus_per_task = 2};
    x->nodes[0] = (struct step_node){.node_id = 2, .name = "n2", .cpus = 6, .mem_mb = 500, .ranks = first_ranks, .n_ranks = 3};
    x->nodes[1] = (struct step_node){.node_id = 3, .name = "n3", .cpus = 4, .ranks = second_ranks, .n_ranks = 2};
    x->step = (struct step){.job_id = 12, .start_no = 2, .id = 4, .spec = &x->spec, .nodes = x->nodes, .n_nodes = 2};
    for (unsigned i = 0; i < 3; i++)
        x->job_nodes[i] = (struct job_node){.node_id = i + 1, .name = i == 0 ? "n1" : i == 1 ? "n2" : "n3", .cpus = 8, .n_tasks = 1};
    x->job = (struct job_spec){.name = "train", .user = "alice", .group = "staff", .uid = 1001, .gid = 100};
    x->k = (struct step_ticket){.use = TICKET_LAUNCH, .job_id = 12, .start_no = 2, .step_id = 4, .uid = 1001,
                                .gid = 100, .user = "alice", .step = &x->step, .spec = &x->job, .job_nodes = x->job_nodes,
                                .n_job_nodes = 3, .cluster_name = "test", .kill_wait_secs = 30};
    x->l = (struct stream_launch){.argv = x->argv, .n_argv = 1, .env = (const uint8_t *)env, .n_env = sizeof(env) - 1,
                                  .work_dir = "/work", .launch_address = "10.0.0.1"};
    x->f = (struct launch_facts){.node_name = "n3", .cgroup = "n3-0-12.2", .clock_scale = 1, .is_root = true};
    *state = x;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *x = *state;
    arena_fini(&x->a);
    free(x);
    return 0;
}

static void make(struct fixture *x) {
    struct err e;
    if (launch_step_plan(&x->k, &x->l, &x->f, &x->a, &x->plan, &e))
        fail_msg("%s", e.text);
}

static const char *value(const char *const *list, uint32_t n, const char *name) {
    const char *found = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (str_starts(list[i], name) && list[i][strlen(name)] == '=') {
            assert_null(found); /* once only */
            found = list[i] + strlen(name) + 1;
        }
    }
    return found;
}

static void assert_both(struct fixture *x, const char *name, const char *want) {
    static const char *const prefixes[] = {"SLURM", "SPUR"};
    for (unsigned i = 0; i < 2; i++) {
        const char *got = value(x->plan.env, x->plan.n_env, arena_printf(&x->a, "%s_%s", prefixes[i], name));
        if (!str_eq(got, want))
            fail_msg("%s_%s is %s, not %s", prefixes[i], name, got ? got : "absent", want ? want : "absent");
    }
}

static void environment_of_a_step(void **state) {
    struct fixture *x = *state;
    make(x);
    static const char *const want[][2] = {
        {"JOB_ID", "12"}, {"STEP_ID", "4"}, {"STEPID", "4"}, {"STEP_NODELIST", "n[2-3]"}, {"STEP_NUM_NODES", "2"},
        {"STEP_NUM_TASKS", "5"}, {"STEP_TASKS_PER_NODE", "3,2"}, {"NNODES", "2"}, {"NTASKS", "5"}, {"NPROCS", "5"},
        {"TASKS_PER_NODE", "3,2"}, {"JOB_NODELIST", "n[1-3]"}, {"NODELIST", "n[1-3]"}, {"JOB_NUM_NODES", "3"},
        {"GTIDS", "3,4"}, {"NODEID", "1"}, {"CPUS_ON_NODE", "4"}, {"JOB_CPUS_PER_NODE", "8(x3)"}, {"CPUS_PER_TASK", "2"},
        {"DISTRIBUTION", "block"}, {"SUBMIT_DIR", "/sub"}, {"JOB_GROUP", "staff"}, {"LAUNCH_NODE_IPADDR", "10.0.0.1"},
        {"UMASK", "0022"}, {"PROCID", NULL}, {"LOCALID", NULL}, {"STEP_GPUS", NULL}};
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_both(x, want[i][0], want[i][1]);
    assert_string_equal(value(x->plan.env, x->plan.n_env, "SPUR_RUN_ID"), "12.2.4.n3-0-12.2");
    assert_int_equal(x->plan.n_tasks, 2);
    assert_string_equal(value(x->plan.tasks[1].env, x->plan.tasks[1].n_env, "SLURM_PROCID"), "4");
    assert_string_equal(value(x->plan.tasks[1].env, x->plan.tasks[1].n_env, "SPUR_LOCALID"), "1");
    assert_int_equal(x->plan.step_id, 5);
    assert_int_equal(x->plan.kill_wait_ms, 30000);
    assert_null(x->plan.tasks[0].std_in);
    assert_null(x->plan.tasks[0].std_out);
    assert_null(x->plan.tasks[0].std_err);
}

static void names_of_files(void **state) {
    struct fixture *x = *state;
    x->l.std_out = "%x.%J.%t.%n.%N";
    x->l.std_err = "all";
    make(x);
    assert_string_equal(x->plan.tasks[0].std_out, "/work/train.12.4.3.1.n3");
    assert_string_equal(x->plan.tasks[1].std_out, "/work/train.12.4.4.1.n3");
    assert_false(x->plan.tasks[1].keep_out);
    assert_false(x->plan.tasks[0].keep_err);
    assert_true(x->plan.tasks[1].keep_err);
    x->l.std_err = NULL; /* goes where the output goes */
    make(x);
    assert_true(x->plan.tasks[0].err_to_out);
}

static void one_task_streams(void **state) {
    struct fixture *x = *state;
    x->l.std_out = "4";
    x->l.std_in = "3";
    x->l.std_err = "none";
    make(x);
    assert_string_equal(x->plan.tasks[0].std_out, "/dev/null");
    assert_null(x->plan.tasks[1].std_out);
    assert_null(x->plan.tasks[0].std_in);
    assert_string_equal(x->plan.tasks[1].std_in, "/dev/null");
    assert_string_equal(x->plan.tasks[1].std_err, "/dev/null");
    assert_int_equal(x->plan.input_task, 4);
}

static void devices_of_a_step(void **state) {
    struct fixture *x = *state;
    static const uint32_t two[] = {0, 2}, one[] = {2};
    static const char *const files[] = {"/dev/a", "/dev/b", "/dev/c"};
    struct gres gpu = {.name = "gpu", .count = 3, .files = files, .n_files = 3};
    struct gres_held job = {.name = "gpu", .count = 2, .indexes = two, .n_indexes = 2};
    struct gres_held step = {.name = "gpu", .count = 1, .indexes = one, .n_indexes = 1};
    x->f.gres = &gpu;
    x->f.n_gres = 1;
    x->job_nodes[2].gres = &job;
    x->job_nodes[2].n_gres = 1;
    make(x);
    assert_both(x, "STEP_GPUS", "0,2");
    assert_both(x, "JOB_GPUS", "0,2");
    x->nodes[1].gres = &step;
    x->nodes[1].n_gres = 1;
    make(x);
    assert_both(x, "STEP_GPUS", "2");
    assert_both(x, "GPUS_ON_NODE", "1");
    assert_string_equal(value(x->plan.env, x->plan.n_env, "CUDA_VISIBLE_DEVICES"), "2");
    assert_int_equal(x->plan.n_denied, 2);
    assert_string_equal(x->plan.denied[1], "/dev/b");
}

/* --gpus-per-task: each task sees its own, and the step's list is in no task's environment. */
static void devices_of_a_task(void **state) {
    struct fixture *x = *state;
    static const uint32_t four[] = {0, 2, 5, 7};
    struct gres_held step = {.name = "gpu", .type = "a100", .count = 4, .indexes = four, .n_indexes = 4};
    struct gres_ask ask = {.name = "gpu", .count = 2, .per = GRES_PER_TASK};
    x->nodes[1].gres = &step;
    x->nodes[1].n_gres = 1;
    x->spec.gres = &ask;
    x->spec.n_gres = 1;
    make(x);
    static const char *const want[] = {"0,2", "5,7"}, *const names[] = {"CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SPUR_STEP_GPUS"};
    for (unsigned t = 0; t < 2; t++)
        for (unsigned i = 0; i < ARRAY_LEN(names); i++)
            assert_string_equal(value(x->plan.tasks[t].env, x->plan.tasks[t].n_env, names[i]), want[t]);
    assert_string_equal(value(x->plan.tasks[1].env, x->plan.tasks[1].n_env, "SLURMD_TRES_BIND"), "gres/gpu:per_task:2");
    assert_null(value(x->plan.env, x->plan.n_env, "CUDA_VISIBLE_DEVICES"));
    assert_null(value(x->plan.env, x->plan.n_env, "SLURM_STEP_GPUS"));
    assert_both(x, "GPUS_ON_NODE", "4");
    step.n_indexes = 3; /* not enough to tell them apart */
    make(x);
    assert_string_equal(value(x->plan.env, x->plan.n_env, "CUDA_VISIBLE_DEVICES"), "0,2,5");
}

static void what_is_no_step(void **state) {
    struct fixture *x = *state;
    struct err e;
    x->f.node_name = "n1"; /* of the job, not of the step */
    assert_int_equal(launch_step_plan(&x->k, &x->l, &x->f, &x->a, &x->plan, &e), E_SYNTAX);
    x->f.node_name = "n3";
    x->l.n_argv = 0;
    assert_int_equal(launch_step_plan(&x->k, &x->l, &x->f, &x->a, &x->plan, &e), E_SYNTAX);
    struct stream_words few[4] = {{x->argv, 1}, {x->argv, 1}, {x->argv, 1}, {x->argv, 1}};
    x->l.multi_prog = few;
    x->l.n_multi_prog = 4;
    assert_int_equal(launch_step_plan(&x->k, &x->l, &x->f, &x->a, &x->plan, &e), E_SYNTAX);
    assert_non_null(strstr(e.text, "task 4"));
    x->l.n_multi_prog = 0;
    x->l.n_argv = 1;
    assert_int_equal(launch_step_plan(&x->k, NULL, &x->f, &x->a, &x->plan, &e), E_SYNTAX);
    x->f.is_root = false;
    x->f.own_uid = 7;
    assert_int_equal(launch_step_plan(&x->k, &x->l, &x->f, &x->a, &x->plan, &e), E_DENIED);
}

/* ---- tickets ---- */

/* A ticket for n3. */
static int check_at(struct fixture *x, const struct cred_key *signer, const struct cred_public *key, const char *node,
                    int64_t now) {
    auto_buf bytes = {0};
    auto_str text = {0};
    uint8_t hash[32], sig[CRED_SIGNATURE_SIZE];
    struct step_ticket got;
    struct err e;
    rec_encode(step_ticket_rec(), &x->k, &bytes);
    cred_hash(bytes.p, bytes.n, hash);
    proof_ticket_text("n3", hash, &text);
    cred_sign(signer, text.p, text.n, sig);
    struct stream_open open = {.ticket = bytes.p, .n_ticket = (uint32_t)bytes.n, .signature = sig, .n_signature = sizeof(sig)};
    int code = ticket_check(&open, node, key, now, &x->a, &got, &e);
    if (!code)
        assert_true(got.step_id == 4 && got.step->n_nodes == 2 && str_eq(got.user, "alice"));
    return code;
}

static void tickets(void **state) {
    struct fixture *x = *state;
    struct cred_key key, other;
    assert_int_equal(cred_init(NULL), 0);
    cred_key_new(&key);
    cred_key_new(&other);
    x->k.expires_unix = 1000;
    assert_int_equal(check_at(x, &key, &key.pub, "n3", 1000), 0);
    assert_int_equal(check_at(x, &key, &key.pub, "n3", 1001), E_CRED_EXPIRED);
    assert_int_equal(check_at(x, &key, &key.pub, "n3", 1000 - 2 * PROOF_TICKET_SECS - 1), E_CREDENTIAL);
    assert_int_equal(check_at(x, &key, &key.pub, "n2", 1000), E_CREDENTIAL);
    assert_int_equal(check_at(x, &other, &key.pub, "n3", 1000), E_CREDENTIAL);
    assert_int_equal(check_at(x, &key, NULL, "n3", 1000), E_CREDENTIAL);
    x->k.use = 7;
    assert_int_equal(check_at(x, &key, &key.pub, "n3", 1000), E_CREDENTIAL);
    cred_key_fini(&key);
    cred_key_fini(&other);
}

/* ---- generic resources ---- */

static void resources_of_a_node(void **state) {
    struct fixture *x = *state;
    struct gres_list l;
    struct err e;
    assert_int_equal(gres_read("gpu:a100:2,gpu:h100:1,shards:4", "/dev/nvidia[0-1]", &x->a, &l, &e), 0);
    assert_int_equal(l.n, 3);
    assert_true(l.p[0].count == 2 && l.p[0].n_files == 2 && str_eq(l.p[0].files[1], "/dev/nvidia1") && str_eq(l.p[0].type, "a100"));
    assert_true(l.p[1].first == 2 && l.p[1].count == 1 && !l.p[1].n_files);
    assert_true(l.p[2].first == 0 && l.p[2].count == 4 && !l.p[2].type);
    assert_int_equal(gres_read("gpu:3", "/dev/nvidia[0-1]", &x->a, &l, &e), E_CONFIG);
    assert_int_equal(gres_read("gpu:a:b:c", NULL, &x->a, &l, &e), E_GRES);
    assert_int_equal(gres_read("", NULL, &x->a, &l, &e), E_GRES);
    assert_int_equal(gres_config_read("# mine\nName=gpu Type=a100 File=/dev/nvidia0\nName=gpu type=a100 file=/dev/nvidia1\n"
                                      "NodeName=n[7-9] Name=gpu File=/dev/x\nAutoDetect=off\nName=tmp Count=2k\n",
                                      "n1", &x->a, &l, &e), 0);
    assert_int_equal(l.n, 2);
    assert_true(l.p[0].n_files == 2 && l.p[0].count == 2 && l.p[1].count == 2048);
    assert_int_equal(gres_config_read("NodeName=n[7-9] Name=gpu File=/dev/x", "n8", &x->a, &l, &e), 0);
    assert_int_equal(l.n, 1);
    assert_int_equal(gres_config_read("\nName=gpu Links=1", "n1", &x->a, &l, &e), E_CONFIG);
    assert_non_null(strstr(e.text, "line 2: Links"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(environment_of_a_step), T(names_of_files), T(one_task_streams), T(devices_of_a_step), T(devices_of_a_task),
                                       T(what_is_no_step), T(tickets), T(resources_of_a_node)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
