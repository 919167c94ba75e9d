/* SPDX-License-Identifier: Apache-2.0
 *
 * What is refused at submit, and in which words: the cases that were recorded on Slurm, on the same cluster.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "make_view.h"

#define NAMES(...)                                                                                                     \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)
#define PLAIN "Requested node configuration is not available"
#define MEMORY "Memory specification can not be satisfied"
#define CPUS "CPU count per node can not be satisfied"

static void six_nodes(struct world *w) {
    world_init(w);
    for (int i = 1; i <= 6; i++) {
        char name[] = {'n', (char)('0' + i), '\0'};
        world_node(w, name, i == 5 ? 16 : i == 6 ? 32 : 8, i == 5 ? 256000 : i == 6 ? 64000 : 16000);
    }
    static const char *const four[] = {"n1", "n2", "n3", "n4"}, *const six[] = {"n6"}, *const soon[] = {"n6", "n77"};
    world_part(w, (struct part){.name = "debug", .is_default = true, .nodes = four, .n_nodes = 4, .max_time_min = 60});
    world_part(w, (struct part){.name = "long", .all_nodes = true, .max_time_min = TIME_LIMIT_NONE});
    world_part(w, (struct part){.name = "gpu", .nodes = six, .n_nodes = 1});
    world_part(w, (struct part){.name = "drain", .all_nodes = true, .state = PART_DRAIN});
    world_part(w, (struct part){.name = "inactive", .all_nodes = true, .state = PART_INACTIVE});
    world_part(w, (struct part){.name = "down", .all_nodes = true, .state = PART_DOWN});
    world_part(w, (struct part){.name = "soon", .nodes = soon, .n_nodes = 2});
    world_part(w, (struct part){.name = "empty", .n_nodes = 0});
}

struct try {
    const char *what;
    struct job_spec spec;
    int code;
    const char *text;
};

static int try_one(struct world *w, struct job_spec spec, struct err *e) {
    spec.partition = spec.partition ? spec.partition : "debug";
    spec.min_nodes = spec.min_nodes ? spec.min_nodes : 1;
    spec.n_tasks = spec.n_tasks ? spec.n_tasks : spec.min_nodes;
    struct job j = {.spec = &spec, .hold = spec.hold ? HOLD_USER : HOLD_NONE};
    struct view v = world_view(w);
    return sched_possible(&v, &j, e);
}

static void as_recorded(void **state) {
    const struct try t[] = {
        {"-n1", {.n_tasks = 1}},
        {"-N 5", {.min_nodes = 5, .max_nodes = 5}},
        {"-N 7 -p long", {.min_nodes = 7, .max_nodes = 7, .partition = "long"}},
        {"-N 2-9", {.min_nodes = 2, .max_nodes = 9}},
        {"-n 33", {.n_tasks = 33}},
        {"-n 9999", {.n_tasks = 9999}},
        {"-n 999 -p long", {.n_tasks = 999, .partition = "long"}},
        {"-t 61", {.time_limit_min = 61}},
        {"-c 17 -p long", {.cpus_per_task = 17, .partition = "long"}},
        {"-c 9", {.cpus_per_task = 9}, E_TOO_MANY_CPUS, CPUS},
        {"-n2 -c9", {.n_tasks = 2, .cpus_per_task = 9}, E_TOO_MANY_CPUS, CPUS},
        {"-c 33 -p long", {.cpus_per_task = 33, .partition = "long"}, E_TOO_MANY_CPUS, CPUS},
        {"--mem=16001", {.mem_node_mb = 16001}, E_NODES_UNAVAIL, MEMORY},
        {"--mem=999G", {.mem_node_mb = 999 * 1024}, E_NODES_UNAVAIL, MEMORY},
        {"--mem=300G -p long", {.mem_node_mb = 300 * 1024, .partition = "long"}, E_NODES_UNAVAIL, MEMORY},
        {"--mem=20000 -p long", {.mem_node_mb = 20000, .partition = "long"}},
        {"--mem=0", {.mem_all = true}},
        {"-c 17 --mem=100000 -p long", {.cpus_per_task = 17, .mem_node_mb = 100000, .partition = "long"},
         E_NODES_UNAVAIL, PLAIN},
        {"-N1 -n 9", {.min_nodes = 1, .max_nodes = 1, .n_tasks = 9}, E_NODES_UNAVAIL, PLAIN},
        {"-N 2 -n 17", {.min_nodes = 2, .max_nodes = 2, .n_tasks = 17}, E_NODES_UNAVAIL, PLAIN},
        {"-N1 -n2 -c5", {.min_nodes = 1, .max_nodes = 1, .n_tasks = 2, .cpus_per_task = 5}, E_NODES_UNAVAIL, PLAIN},
        {"-w n5", {.req_nodes = NAMES("n5")}, E_NODES_UNAVAIL, PLAIN},
        {"-w n1,n5", {.req_nodes = NAMES("n1", "n5"), .n_tasks = 2}, E_NODES_UNAVAIL, PLAIN},
        {"-x n[1-4]", {.exc_nodes = NAMES("n1", "n2", "n3", "n4")}, E_NODES_UNAVAIL, PLAIN},
        {"-x n1 -N4", {.exc_nodes = NAMES("n1"), .min_nodes = 4, .max_nodes = 4}, E_NODES_UNAVAIL, PLAIN},
        {"-w n99", {.req_nodes = NAMES("n99")}, E_NODE_NAME, "Invalid node name specified"},
        {"-w n1,n99", {.req_nodes = NAMES("n1", "n99")}, E_NODE_NAME, "Invalid node name specified"},
        {"-x n99", {.exc_nodes = NAMES("n99")}, E_NODE_NAME, "Invalid node name specified"},
        {"-w n1 -x n1", {.req_nodes = NAMES("n1"), .exc_nodes = NAMES("n1")}, E_NODE_NAME, NULL},
        {"-w n[1-2] -N1", {.req_nodes = NAMES("n1", "n2"), .min_nodes = 1, .max_nodes = 1}},
        {"-w n1 -N2", {.req_nodes = NAMES("n1"), .min_nodes = 2, .max_nodes = 2}},
        {"-p debug,long -n 40", {.partition = "debug,long", .n_tasks = 40}},
        {"-p gpu,debug -w n1", {.partition = "gpu,debug", .req_nodes = NAMES("n1")}},
        {"-p gpu -w n1", {.partition = "gpu", .req_nodes = NAMES("n1")}, E_NODES_UNAVAIL, PLAIN},
        {"-p nopart", {.partition = "nopart"}, E_PARTITION, "invalid partition specified: nopart"},
        {"-p debug,nopart", {.partition = "debug,nopart"}, E_PARTITION, "invalid partition specified: debug,nopart"},
        {"-p drain", {.partition = "drain"}, E_PARTITION_DOWN,
         "Required partition not available (inactive or drain)"},
        {"-p inactive", {.partition = "inactive"}, E_PARTITION_DOWN, NULL},
        {"-p down", {.partition = "down"}},
        {"-p drain,debug", {.partition = "drain,debug"}},
        {"-H --mem=16001", {.hold = true, .mem_node_mb = 16001}},
        {"-H -c 9", {.hold = true, .cpus_per_task = 9}},
        {"-H -w n99", {.hold = true, .req_nodes = NAMES("n99")}, E_NODE_NAME, NULL},
        {"-H -p nopart", {.hold = true, .partition = "nopart"}, E_PARTITION, NULL},
        /* nodes that are named and not there yet may be anything; a partition without nodes may get some */
        {"-p soon -c 99", {.partition = "soon", .cpus_per_task = 99}},
        {"-p soon -w n77", {.partition = "soon", .req_nodes = NAMES("n77")}},
        {"-p debug -w n77", {.req_nodes = NAMES("n77")}, E_NODES_UNAVAIL, PLAIN},
        {"-p empty -N 4", {.partition = "empty", .min_nodes = 4}},
    };
    struct world w;
    six_nodes(&w);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        struct err e = {0};
        int rc = try_one(&w, t[i].spec, &e);
        if (rc != t[i].code || (t[i].text && strcmp(t[i].text, e.text) != 0))
            fail_msg("%s: %s: %s", t[i].what, err_name(rc), e.text);
        if (rc == E_TOO_MANY_CPUS || rc == E_NODES_UNAVAIL) /* what sbatch says on its second line */
            assert_string_equal(err_sentence(rc), PLAIN);
    }
    world_fini(&w);
}

/* Memory that comes with the CPUs counts as well. */
static void default_memory(void **state) {
    struct world w;
    six_nodes(&w);
    w.conf.def_mem_per_cpu_mb = 3 * 1024;
    struct err e = {0};
    assert_int_equal(try_one(&w, (struct job_spec){.cpus_per_task = 5}, &e), 0);
    assert_int_equal(try_one(&w, (struct job_spec){.cpus_per_task = 6}, &e), E_NODES_UNAVAIL);
    world_fini(&w);
}

/* Many nodes, and a partition of the last few by name. */
static void large_cluster(void **state) {
    struct world w;
    world_init(&w);
    static char name[200][8];
    for (uint32_t i = 0; i < ARRAY_LEN(name); i++) {
        snprintf(name[i], sizeof(name[i]), "n%u", i + 1);
        world_node(&w, name[i], i < 150 ? 4 : 8, 1000);
    }
    const char *last[] = {"n199", "n40", "n200", "n198"};
    world_part(&w, (struct part){.name = "debug", .nodes = last, .n_nodes = 4});
    struct err e = {0};
    assert_int_equal(try_one(&w, (struct job_spec){.cpus_per_task = 8, .n_tasks = 3}, &e), 0);
    assert_int_equal(try_one(&w, (struct job_spec){.min_nodes = 3, .max_nodes = 3, .n_tasks = 24}, &e), 0);
    assert_int_equal(try_one(&w, (struct job_spec){.min_nodes = 3, .max_nodes = 3, .n_tasks = 25}, &e),
                     E_NODES_UNAVAIL);
    assert_int_equal(try_one(&w, (struct job_spec){.min_nodes = 4, .max_nodes = 4, .n_tasks = 28}, &e), 0);
    assert_int_equal(try_one(&w, (struct job_spec){.min_nodes = 4, .max_nodes = 4, .n_tasks = 29}, &e),
                     E_NODES_UNAVAIL);
    assert_int_equal(
        try_one(&w, (struct job_spec){.min_nodes = 4, .max_nodes = 4, .n_tasks = 4, .cpus_per_task = 5}, &e),
        E_NODES_UNAVAIL);
    assert_int_equal(try_one(&w, (struct job_spec){.cpus_per_task = 9}, &e), E_TOO_MANY_CPUS);
    world_fini(&w);
}

/* A cluster whose nodes have yet to come takes jobs. */
static void no_nodes_yet(void **state) {
    struct world w;
    world_init(&w);
    w.cluster.conf = NULL;
    world_part(&w, (struct part){.name = "debug", .all_nodes = true});
    struct err e = {0};
    assert_int_equal(try_one(&w, (struct job_spec){.n_tasks = 4, .mem_node_mb = 1000}, &e), 0);
    assert_int_equal(try_one(&w, (struct job_spec){.req_nodes = NAMES("n1")}, &e), E_NODE_NAME);
    world_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_recorded),
        cmocka_unit_test(default_memory),
        cmocka_unit_test(large_cluster),
        cmocka_unit_test(no_nodes_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
