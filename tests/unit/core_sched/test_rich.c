/* SPDX-License-Identifier: Apache-2.0
 *
 * What is more than CPUs and memory, on the cluster that Slurm was recorded on (reference/slurm-golden-cluster.md): n[1-4]
 * with 8 CPUs and features ib,zen, n5 with 16 and bigmem,zen, n6 with 32, gpu,xeon, and 4 h100 and 2 a100.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/model/text.h"
#include "core/sched/priority.h"
#include "make_view.h"

#define NOW 1000000

static struct world w;
static struct sched *sched;
static struct arena arena;
static struct sched_plan plan;

static void add_node(const char *name, uint32_t cpus, uint64_t mem, uint32_t weight, const char *const *features,
                     const struct gres *gres, uint32_t n_gres) {
    struct node n = {.id = w.next_node++, .name = name, .cpus = cpus, .mem_mb = mem, .weight = weight, .base = NODE_UP,
                     .features = features, .n_features = 2, .gres = gres, .n_gres = n_gres};
    world_put_node(&w, &n);
}

static const char *const files[] = {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia3"};

static int set_up(void **state) {
    static const char *const ib[] = {"ib", "zen"}, *const big[] = {"bigmem", "zen"}, *const gpu[] = {"gpu", "xeon"};
    static const char *const debug[] = {"n1", "n2", "n3", "n4"}, *const six[] = {"n6"};
    static const struct gres cards[] = {{.name = "gpu", .type = "h100", .count = 4, .files = files, .n_files = 4},
                                        {.name = "gpu", .type = "a100", .count = 2, .files = files, .n_files = 2, .first = 4}};
    static const struct license lic[] = {{"ansys", 2}, {"matlab", 4}};
    world_init(&w);
    w.conf.licenses = lic;
    w.conf.n_licenses = 2;
    w.conf.def_mem_per_cpu_mb = 500;
    for (uint32_t i = 0; i < 4; i++)
        add_node(debug[i], 8, 16000, 1, ib, NULL, 0);
    add_node("n5", 16, 256000, 10, big, NULL, 0);
    add_node("n6", 32, 64000, 20, gpu, cards, 2);
    world_part(&w, (struct part){.name = "debug", .nodes = debug, .n_nodes = 4, .is_default = true, .max_time_min = 60,
                                 .default_time_min = 10, .priority_tier = 1});
    world_part(&w, (struct part){.name = "long", .all_nodes = true, .max_time_min = TIME_LIMIT_NONE, .priority_tier = 1});
    world_part(&w, (struct part){.name = "gpu", .nodes = six, .n_nodes = 1, .max_time_min = 1440, .default_time_min = 30,
                                 .priority_tier = 1});
    sched = sched_new(NULL);
    arena = (struct arena){0};
    return 0;
}

static int tear_down(void **state) {
    sched_free(sched);
    arena_fini(&arena);
    world_fini(&w);
    return 0;
}

static void pass_at(int64_t now) {
    struct view v = world_view(&w);
    arena_reset(&arena);
    sched_plan(sched, &v, now, &arena, &plan);
}

static void start_all(int64_t now) {
    for (uint32_t i = 0; i < plan.n_starts; i++)
        world_start(&w, &plan.starts[i], now);
}

/* What a job asks, by the options of sbatch. */
struct wish {
    const char *part, *features, *prefer, *gres, *gpus, *per_task, *licenses;
    uint32_t n, nodes, c, per_node, time, time_min, exclusive;
    uint64_t mem, mem_cpu;
    bool share, hold;
    int64_t deadline;
    uint32_t uid;
    const char *account, *group;
};

static struct job_spec spec_of(const struct wish *x, struct job_more *m) {
    struct gres_ask *g = arena_calloc(&arena, 1, sizeof(*g));
    const struct gres_ask *list = g;
    struct job_spec s = {.partition = x->part, .n_tasks = x->n, .n_tasks_given = x->n, .min_nodes = x->nodes,
                         .max_nodes = x->nodes, .cpus_per_task = x->c, .mem_node_mb = x->mem, .hold = x->hold,
                         .time_limit_min = x->time, .uid = x->uid ? x->uid : 1000, .more = m, .account = x->account,
                         .group = x->group};
    *m = (struct job_more){.features = x->features, .prefer = x->prefer, .tasks_per_node = x->per_node, .exclusive = x->exclusive,
                           .time_min_min = x->time_min, .mem_cpu_mb = x->mem_cpu, .oversubscribe = x->share,
                           .deadline_unix = x->deadline};
    if (!s.n_tasks)
        s.n_tasks = MAX(s.min_nodes, 1) * MAX(x->per_node, 1);
    if (x->gres)
        assert_int_equal(gres_parse(x->gres, NULL, GRES_PER_NODE, &arena, &list, &m->n_gres, NULL), 0);
    if (x->gpus)
        assert_int_equal(gres_parse(x->gpus, "gpu", GRES_PER_JOB, &arena, &list, &m->n_gres, NULL), 0);
    if (x->per_task)
        assert_int_equal(gres_parse(x->per_task, "gpu", GRES_PER_TASK, &arena, &list, &m->n_gres, NULL), 0);
    m->gres = list;
    if (x->licenses)
        assert_int_equal(license_parse(x->licenses, &arena, &m->licenses, &m->n_licenses, NULL), 0);
    return s;
}

static uint32_t submit(struct wish x) {
    struct job_more m;
    return world_submit(&w, spec_of(&x, &m), NOW);
}

/* "n1:8,n6:2(gpu:h100:2:0-1)" of a start, else the reason. */
static const char *shown(uint32_t id) {
    static char out[512];
    auto_str s = {0};
    const struct sched_start *st = start_in(&plan, id);
    for (uint32_t i = 0; st && i < st->n_nodes; i++) {
        const struct job_node *n = &st->nodes[i];
        str_addf(&s, "%s%s:%u", i ? "," : "", n->name, n->cpus);
        for (uint32_t k = 0; k < n->n_gres; k++) {
            str_addf(&s, "(%s:%s:%u", n->gres[k].name, n->gres[k].type ? n->gres[k].type : "-", (unsigned)n->gres[k].count);
            for (uint32_t m = 0; m < n->gres[k].n_indexes; m++)
                str_addf(&s, "%s%u", m ? "," : ":", n->gres[k].indexes[m]);
            str_add(&s, ")");
        }
    }
    if (!st)
        str_add(&s, note_in(&plan, id) ? job_reason_word(note_in(&plan, id)->reason) : "neither");
    strncpy(out, str_text(&s), sizeof(out) - 1);
    return out;
}

static void alone(struct wish x, const char *want) {
    uint32_t id = submit(x);
    pass_at(NOW);
    if (strcmp(shown(id), want) != 0)
        fail_msg("%s, not %s", shown(id), want);
    struct job j = *(const struct job *)cow_get(w.jobs.root, id);
    j.state = JOB_CANCELLED;
    world_put_job(&w, &j);
}

/* -m arbitrary: a node for each task. */
static void dealt(const char *const *names, uint32_t n, uint32_t n_nodes, const char *const *nodes, uint32_t c, const char *want) {
    struct job_more m;
    struct job_spec s = spec_of(&(struct wish){.part = "debug", .n = n, .nodes = n_nodes, .c = c}, &m);
    m.task_nodes = names, m.n_task_nodes = n;
    s.req_nodes = nodes, s.n_req_nodes = n_nodes;
    uint32_t id = world_submit(&w, s, NOW);
    pass_at(NOW);
    if (strcmp(shown(id), want) != 0)
        fail_msg("%s, not %s", shown(id), want);
}

static void tasks_with_nodes(void **state) {
    static const char *const each[] = {"n2", "n1", "n2", "n2"}, *const nodes[] = {"n1", "n2"};
    dealt(each, 4, 2, nodes, 2, "n1:2,n2:6");
    dealt(each, 4, 2, nodes, 1, "Resources"); /* 2 are free on n2 */
    dealt(each + 1, 1, 1, nodes, 1, "n1:1");
}

/* As recorded under "sbatch without -H". */
static void as_recorded(void **state) {
    alone((struct wish){.part = "debug"}, "n1:1");
    alone((struct wish){.part = "long", .features = "[ib|gpu]", .nodes = 2}, "n1:1,n2:1");
    alone((struct wish){.part = "long", .features = "[ib*2&gpu*1]", .nodes = 3}, "n1:1,n2:1,n6:1");
    alone((struct wish){.part = "long", .features = "(ib&zen)|bigmem"}, "n1:1");
    alone((struct wish){.part = "long", .features = "gpu"}, "n6:1");
    alone((struct wish){.part = "long", .features = "zen&bigmem"}, "n5:1");
    alone((struct wish){.part = "long", .gres = "gpu:1"}, "n6:1(gpu:h100:1:0)");
    alone((struct wish){.part = "gpu", .gpus = "6"}, "n6:1(gpu:h100:4:0,1,2,3)(gpu:a100:2:4,5)");
    alone((struct wish){.part = "gpu", .gpus = "a100:1,h100:2"}, "n6:1(gpu:h100:2:0,1)(gpu:a100:1:4)");
    alone((struct wish){.part = "gpu", .per_task = "1", .n = 2}, "n6:2(gpu:h100:2:0,1)");
    alone((struct wish){.exclusive = EXCLUSIVE_NODE}, "n1:8");
    alone((struct wish){.exclusive = EXCLUSIVE_USER}, "n1:1");
    alone((struct wish){.part = "debug,long", .n = 40}, "n1:8,n2:8,n3:8,n4:8,n5:8");
    alone((struct wish){.part = "gpu", .exclusive = EXCLUSIVE_NODE}, "n6:32(gpu:h100:4:0,1,2,3)(gpu:a100:2:4,5)");
    alone((struct wish){.nodes = 2, .per_node = 3}, "n1:3,n2:3");
    alone((struct wish){.n = 8, .per_node = 2}, "n1:2,n2:2,n3:2,n4:2");
    alone((struct wish){.n = 9, .mem_cpu = 2000}, "n1:8,n2:1");
    alone((struct wish){.n = 2, .mem_cpu = 9000}, "n1:1,n2:1");
    alone((struct wish){.exclusive = EXCLUSIVE_NODE, .mem_cpu = 2001, .part = "long"}, "n5:16");
    alone((struct wish){.licenses = "ansys:2,matlab:1"}, "n1:1");
    alone((struct wish){.licenses = "ansys:3"}, "Licenses");
    alone((struct wish){.time_min = 1, .time = 10, .deadline = NOW + 300}, "n1:1");
    alone((struct wish){.time = 10, .deadline = NOW + 300}, "DeadLine");
    alone((struct wish){.part = "gpu", .features = "ib"}, "BadConstraints");
}

static bool is_preferred(uint32_t id) {
    const struct sched_start *st = start_in(&plan, id);
    return st && st->preferred;
}

/* In place of -C where it fits now; else as without it, and what is promised to it is by -C. */
static void preferences(void **state) {
    alone((struct wish){.part = "long", .prefer = "gpu"}, "n6:1");
    alone((struct wish){.part = "long", .features = "ib", .prefer = "gpu"}, "n6:1");
    alone((struct wish){.part = "debug,long", .features = "ib", .prefer = "gpu"}, "n6:1"); /* in all of its partitions, before -C */
    alone((struct wish){.part = "gpu", .features = "ib", .prefer = "gpu"}, "n6:1");
    alone((struct wish){.part = "gpu", .features = "gpu", .prefer = "ib"}, "n6:1");
    uint32_t a = submit((struct wish){.part = "long", .prefer = "gpu", .n = 32});
    uint32_t b = submit((struct wish){.part = "long", .prefer = "gpu", .n = 32});
    uint32_t c = submit((struct wish){.part = "long", .features = "gpu"});
    pass_at(NOW);
    assert_string_equal(shown(a), "n6:32");
    assert_true(is_preferred(a));
    assert_non_null(start_in(&plan, b)); /* with what there is */
    assert_string_not_equal(shown(b), "n6:32");
    assert_false(is_preferred(b));
    assert_string_equal(shown(c), "Resources"); /* the same text, asked for */
}

static int refused(struct wish x, const char **text) {
    static struct err e;
    struct job_more m;
    struct job_spec s = spec_of(&x, &m);
    struct view v = world_view(&w);
    if (!s.partition)
        s.partition = "debug";
    if (!s.min_nodes)
        s.min_nodes = 1;
    s.cpus_per_task = MAX(s.cpus_per_task, 1);
    e = (struct err){0};
    int rc = sched_possible(&v, &(struct job){.spec = &s}, &e);
    *text = e.text;
    return rc;
}

static void refuse(struct wish x, int code, const char *text) {
    const char *have;
    int rc = refused(x, &have);
    if (rc != code || (text && strcmp(have, text) != 0))
        fail_msg("%s (%s), not %s", err_name(rc), have, err_name(code));
}

static void at_submit(void **state) {
    refuse((struct wish){.features = "nofeat", .hold = true}, E_FEATURE, "Invalid feature specification");
    refuse((struct wish){.features = "ib&&zen", .hold = true}, E_FEATURE, NULL);
    refuse((struct wish){.features = "ib*2&gpu*1", .nodes = 3, .part = "long"}, E_FEATURE, NULL);
    refuse((struct wish){.features = "gpu"}, E_NODES_UNAVAIL, "Requested node configuration is not available");
    refuse((struct wish){.features = "gpu", .hold = true}, 0, NULL);
    refuse((struct wish){.features = "ib*9", .part = "long"}, E_NODES_UNAVAIL, NULL);
    refuse((struct wish){.features = "ib*4", .part = "long"}, 0, NULL);
    refuse((struct wish){.prefer = "nofeat", .hold = true}, E_PREFER, "Invalid preferred feature specification");
    refuse((struct wish){.prefer = "ib&&zen", .hold = true}, E_PREFER, NULL);
    refuse((struct wish){.features = "nofeat", .prefer = "gpu", .hold = true}, E_FEATURE, NULL);
    refuse((struct wish){.prefer = "gpu"}, E_NODES_UNAVAIL, "Requested node configuration is not available");
    refuse((struct wish){.features = "gpu", .prefer = "ib"}, 0, NULL); /* what is preferred is measured */
    refuse((struct wish){.gres = "nogres:1", .hold = true}, E_GRES, "Invalid generic resource (gres) specification");
    refuse((struct wish){.gres = "gpu:h100:9", .part = "gpu", .hold = true}, 0, NULL);
    refuse((struct wish){.gres = "gpu:1"}, E_NODES_UNAVAIL, NULL);
    refuse((struct wish){.gres = "gpu:h100:5", .part = "gpu"}, E_NODES_UNAVAIL, NULL);
    refuse((struct wish){.gres = "gpu:a100:3", .part = "gpu"}, E_NODES_UNAVAIL, NULL);
    refuse((struct wish){.gpus = "7", .part = "gpu"}, E_NODES_UNAVAIL, NULL);
    refuse((struct wish){.gpus = "6", .part = "gpu"}, 0, NULL);
    refuse((struct wish){.gpus = "2", .nodes = 2, .part = "long"}, E_NODES_UNAVAIL, NULL);
    refuse((struct wish){.per_task = "1", .n = 7, .part = "gpu"}, E_NODES_UNAVAIL, NULL);
    refuse((struct wish){.per_task = "1", .n = 6, .part = "gpu"}, 0, NULL);
    refuse((struct wish){.per_node = 9}, E_TOO_MANY_CPUS, "CPU count per node can not be satisfied");
    refuse((struct wish){.mem_cpu = 3072, .c = 6}, E_NODES_UNAVAIL, NULL);
    refuse((struct wish){.mem_cpu = 17000}, E_NODES_UNAVAIL, "Memory specification can not be satisfied");
    refuse((struct wish){.licenses = "matlab:5", .hold = true}, E_LICENSE, "Invalid license specification");
    refuse((struct wish){.licenses = "nolic", .hold = true}, E_LICENSE, NULL);
    refuse((struct wish){.licenses = "matlab:5|ansys:1"}, 0, NULL);
    refuse((struct wish){.licenses = "matlab:4"}, 0, NULL);
    refuse((struct wish){.n = 33}, 0, NULL); /* waits */
}

static void devices(void **state) {
    uint32_t a = submit((struct wish){.part = "gpu", .gres = "gpu:h100:3"});
    pass_at(NOW);
    start_all(NOW);
    uint32_t b = submit((struct wish){.part = "gpu", .gres = "gpu:2"}), c = submit((struct wish){.part = "gpu", .gres = "gpu:1"});
    uint32_t d = submit((struct wish){.part = "gpu", .gres = "gpu:h100:1"});
    pass_at(NOW + 60);
    assert_string_equal(shown(b), "n6:1(gpu:h100:1:3)(gpu:a100:1:4)");
    assert_string_equal(shown(c), "n6:1(gpu:a100:1:5)");
    assert_string_equal(shown(d), "Resources");
    assert_int_equal(note_in(&plan, d)->expected_start_unix, NOW + 1800);
    start_all(NOW + 60);
    world_end(&w, a);
    pass_at(NOW + 90);
    assert_string_equal(shown(d), "n6:1(gpu:h100:1:0)");
}

/* A GPU that is promised is not lent beyond its time. */
static void promised_devices(void **state) {
    submit((struct wish){.part = "gpu", .gres = "gpu:h100:2", .time = 60});
    pass_at(NOW);
    start_all(NOW);
    uint32_t big = submit((struct wish){.part = "gpu", .gres = "gpu:h100:4", .time = 60});
    uint32_t slow = submit((struct wish){.part = "gpu", .gres = "gpu:h100:1", .time = 61});
    uint32_t quick = submit((struct wish){.part = "gpu", .gres = "gpu:h100:1", .time = 60});
    uint32_t flexible = submit((struct wish){.part = "gpu", .gres = "gpu:h100:1", .time = 90, .time_min = 10});
    uint32_t other = submit((struct wish){.part = "gpu", .gres = "gpu:a100:1", .time = 600});
    pass_at(NOW);
    assert_string_equal(shown(big), "Resources");
    assert_int_equal(note_in(&plan, big)->expected_start_unix, NOW + 3600);
    assert_string_equal(shown(slow), "Priority");
    assert_string_equal(shown(quick), "n6:1(gpu:h100:1:2)");
    assert_string_equal(shown(flexible), "n6:1(gpu:h100:1:3)");
    assert_int_equal(start_in(&plan, flexible)->time_limit_min, 60);
    assert_string_equal(shown(other), "n6:1(gpu:a100:1:4)");
}

static uint32_t submit_array(uint32_t first, uint32_t last, uint32_t most, uint32_t cpus) {
    struct array_range r = {first, last};
    struct job_more m = {.array = "x", .array_ranges = &r, .n_array_ranges = 1, .array_max_running = most};
    return world_submit(&w, (struct job_spec){.n_tasks = 1, .cpus_per_task = cpus, .uid = 1000, .more = &m}, NOW);
}

static void arrays(void **state) {
    uint32_t a = submit_array(0, 999999, 3, 1), later = submit((struct wish){.part = "debug"});
    pass_at(NOW);
    assert_int_equal(plan.n_starts, 4);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(plan.starts[i].job_id, a);
        assert_int_equal(plan.starts[i].array_task, i + 1);
    }
    assert_string_equal(shown(later), "n1:1");
    assert_int_equal(note_in(&plan, a)->reason, REASON_ARRAY_TASK_LIMIT);
    start_all(NOW);
    pass_at(NOW + 1);
    assert_int_equal(plan.n_starts, 0);
    assert_string_equal(shown(a), "JobArrayTaskLimit");
    world_end(&w, later + 1);
    pass_at(NOW + 2);
    assert_int_equal(plan.n_starts, 1);
    assert_int_equal(plan.starts[0].array_task, 4);
}

static void array_fills(void **state) {
    uint32_t a = submit_array(5, 25, 0, 2);
    pass_at(NOW);
    assert_int_equal(plan.n_starts, 16);
    assert_int_equal(plan.starts[15].array_task, 21);
    assert_int_equal(note_in(&plan, a)->reason, REASON_RESOURCES);
    assert_int_equal(note_in(&plan, a)->expected_start_unix, NOW + 600);
    start_all(NOW);
    for (uint32_t i = 0; i < 16; i++)
        world_end(&w, a + 1 + i);
    pass_at(NOW + 9);
    assert_int_equal(plan.n_starts, 5); /* 21 to 25: the last one keeps the record */
    assert_null(note_in(&plan, a));
    start_all(NOW + 9);
    assert_int_equal(((const struct job *)cow_get(w.jobs.root, a))->state, JOB_RUNNING);
}

static void licences(void **state) {
    submit((struct wish){.licenses = "matlab:3"});
    pass_at(NOW);
    start_all(NOW);
    uint32_t big = submit((struct wish){.licenses = "matlab:2"}), small = submit((struct wish){.licenses = "matlab:1"});
    uint32_t either = submit((struct wish){.licenses = "matlab:2|ansys:2"}), none = submit((struct wish){.part = "debug"});
    pass_at(NOW);
    assert_string_equal(shown(big), "Licenses");
    assert_string_equal(shown(small), "Licenses"); /* kept for the one before it */
    assert_string_equal(shown(either), "n1:1");
    assert_string_equal(start_in(&plan, either)->licenses[0].name, "ansys");
    assert_string_equal(shown(none), "n1:1");
    start_all(NOW);
    uint32_t more = submit((struct wish){.licenses = "ansys:1"});
    pass_at(NOW);
    assert_string_equal(shown(more), "Licenses");
    world_end(&w, 1);
    pass_at(NOW);
    assert_string_equal(shown(big), "n1:1");
    assert_string_equal(shown(small), "n1:1");
}

static void whose_node(void **state) {
    uint32_t a = submit((struct wish){.exclusive = EXCLUSIVE_USER, .uid = 1});
    uint32_t b = submit((struct wish){.uid = 2}), c = submit((struct wish){.uid = 1});
    pass_at(NOW);
    assert_string_equal(shown(a), "n1:1");
    assert_string_equal(shown(b), "n2:1");
    assert_string_equal(shown(c), "n1:1");
    start_all(NOW);
    uint32_t d = submit((struct wish){.uid = 2, .nodes = 4}), e = submit((struct wish){.exclusive = EXCLUSIVE_USER, .uid = 2, .nodes = 3});
    uint32_t f = submit((struct wish){.exclusive = EXCLUSIVE_NODE, .uid = 1, .nodes = 2, .time = 10});
    pass_at(NOW);
    assert_string_equal(shown(d), "Resources");
    assert_string_equal(shown(e), "n2:1,n3:1,n4:1");
    assert_string_equal(shown(f), "Priority");
}

static void shared_cpus(void **state) {
    struct part p = *(const struct part *)cow_get(w.parts.root, 3); /* gpu: n6, 32 CPUs */
    p.over_subscribe = OVER_YES;
    p.over_count = 3;
    cow_put(&w.parts, 3, rec_pack(part_rec(), &p));
    for (int i = 0; i < 3; i++)
        assert_non_null((submit((struct wish){.part = "gpu", .n = 32, .mem = 100, .share = true}), ""));
    uint32_t fourth = submit((struct wish){.part = "gpu", .n = 1, .mem = 100, .share = true});
    uint32_t own = submit((struct wish){.part = "gpu", .n = 1, .mem = 100});
    pass_at(NOW);
    assert_int_equal(plan.n_starts, 3);
    assert_string_equal(shown(fourth), "Resources");
    assert_string_equal(shown(own), "Priority");
    start_all(NOW);
    pass_at(NOW + 1);
    assert_int_equal(plan.n_starts, 0);
    assert_int_equal(note_in(&plan, fourth)->expected_start_unix, NOW + 1800);
}

static void bounds_of_a_partition(void **state) {
    struct part *was = rec_pack(part_rec(), cow_get(w.parts.root, 1)), p = *was;
    static const char *const staff[] = {"staff"}, *const ml[] = {"ml"};
    p.max_cpus_per_node = 3;
    cow_put(&w.parts, 1, rec_pack(part_rec(), &p));
    alone((struct wish){.n = 7}, "n1:3,n2:3,n3:1");
    uint32_t a = submit((struct wish){.n = 2}), b = submit((struct wish){.n = 2}), c = submit((struct wish){.n = 2, .part = "long"});
    pass_at(NOW);
    assert_string_equal(shown(a), "n1:2");
    assert_string_equal(shown(b), "n2:2");
    assert_string_equal(shown(c), "n1:2"); /* the tightest hole */
    refuse((struct wish){.c = 4}, E_NODES_UNAVAIL, NULL);
    p.max_cpus_per_node = 0;
    p.allow_groups = staff, p.n_allow_groups = 1;
    cow_put(&w.parts, 1, rec_pack(part_rec(), &p));
    alone((struct wish){.group = "users"}, "PartitionConfig");
    alone((struct wish){.group = "staff", .nodes = 4}, "n1:1,n2:1,n3:1,n4:1");
    refuse((struct wish){.group = "users"}, E_PART_GROUP, NULL);
    refuse((struct wish){.group = "users", .part = "debug,long"}, 0, NULL);
    refuse((struct wish){.group = "staff"}, 0, NULL);
    p.n_allow_groups = 0;
    p.allow_accounts = ml, p.n_allow_accounts = 1;
    cow_put(&w.parts, 1, rec_pack(part_rec(), &p));
    alone((struct wish){.account = "x"}, "InvalidAccount");
    alone((struct wish){.account = "x", .part = "debug,long", .n = 8}, "n2:8");
    alone((struct wish){.account = "ml", .n = 8}, "n2:8");
    p.n_allow_accounts = 0;
    p.root_only = true;
    cow_put(&w.parts, 1, rec_pack(part_rec(), &p));
    refuse((struct wish){.uid = 7}, E_DENIED, NULL);
    p.root_only = false;
    p.over_subscribe = OVER_EXCLUSIVE;
    cow_put(&w.parts, 1, rec_pack(part_rec(), &p));
    alone((struct wish){.n = 3}, "n4:8"); /* the others have the rest */
    rec_free(was);
}

static void deadlines(void **state) {
    uint32_t a = submit((struct wish){.nodes = 4, .exclusive = EXCLUSIVE_NODE, .time = 10});
    pass_at(NOW);
    start_all(NOW);
    uint32_t b = submit((struct wish){.time = 1, .deadline = NOW + 100});
    pass_at(NOW + 40);
    assert_string_equal(shown(b), "Resources");
    pass_at(NOW + 41);
    assert_string_equal(shown(b), "DeadLine");
    struct view v = world_view(&w);
    assert_int_equal(sched_last_start(&v, cow_get(w.jobs.root, b)), NOW + 40);
    struct job two = *(const struct job *)cow_get(w.jobs.root, b);
    struct job_spec spec = *two.spec;
    spec.partition = "nowhere,debug"; /* the best of its partitions counts */
    two.spec = &spec;
    assert_int_equal(sched_last_start(&v, &two), NOW + 40);
    world_end(&w, a);
}

/* The parts that sprio shows, and their sum, as recorded with PriorityWeightJobSize=500, Age=1000, Partition=100. */
static void factors(void **state) {
    w.conf.weight_age = 1000, w.conf.weight_job_size = 500, w.conf.weight_partition = 100;
    const struct {
        uint32_t nodes;
        int64_t nice, size, sum;
    } rows[] = {{2, 5, 90, 184}, {4, 0, 179, 279}, {1, 0, 45, 144}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t id = world_submit(&w, (struct job_spec){.n_tasks = rows[i].nodes, .min_nodes = rows[i].nodes, .nice = rows[i].nice}, NOW);
        struct view v = world_view(&w);
        struct priority_scale s;
        struct priority_points f;
        priority_scale_of(&v, &s);
        assert_int_equal(priority_points_of(&s, cow_get(w.jobs.root, id), 1, NOW, &f), rows[i].sum);
        assert_int_equal(f.size, rows[i].size);
        assert_int_equal(f.partition, 100);
        assert_int_equal(f.age, 0);
        assert_int_equal(f.nice, rows[i].nice);
        assert_int_equal(sched_priority(&v, cow_get(w.jobs.root, id), NOW), rows[i].sum);
        priority_points_of(&s, cow_get(w.jobs.root, id), 1, NOW + 7 * 86400 / 4, &f);
        assert_int_equal(f.age, 250);
    }
}

static void would(void **state) {
    struct job_more m;
    struct sched_would out;
    struct view v;
    submit((struct wish){.nodes = 3, .exclusive = EXCLUSIVE_NODE, .time = 10});
    pass_at(NOW);
    start_all(NOW);
    submit((struct wish){.nodes = 4, .exclusive = EXCLUSIVE_NODE, .time = 10});
    v = world_view(&w);
    struct job_spec s = spec_of(&(struct wish){.part = "debug", .n = 8}, &m);
    s.min_nodes = s.cpus_per_task = 1;
    struct job j = {.spec = &s};
    assert_int_equal(sched_would_start(&v, &j, NOW + 5, &arena, &out, NULL), 0);
    assert_int_equal(out.start_unix, NOW + 5);
    assert_int_equal(out.n_cpus, 8);
    assert_string_equal(out.nodes[0].name, "n4");
    assert_string_equal(out.partition, "debug");
    s = spec_of(&(struct wish){.part = "debug", .n = 32}, &m);
    s.min_nodes = s.cpus_per_task = 1;
    assert_int_equal(sched_would_start(&v, &j, NOW + 5, &arena, &out, NULL), 0);
    assert_int_equal(out.start_unix, NOW + 600);
    assert_int_equal(out.n_nodes, 4);
    s.partition = "debug,long";
    assert_int_equal(sched_would_start(&v, &j, NOW + 5, &arena, &out, NULL), 0);
    assert_int_equal(out.start_unix, NOW + 5);
    assert_string_equal(out.partition, "long");
    s.partition = "debug";
    s.begin_unix = NOW + 2000;
    assert_int_equal(sched_would_start(&v, &j, NOW + 5, &arena, &out, NULL), 0);
    assert_int_equal(out.start_unix, NOW + 2000);
    s.begin_unix = 0;
    s.min_nodes = s.max_nodes = 5;
    assert_int_equal(sched_would_start(&v, &j, NOW + 5, &arena, &out, NULL), E_NODES_UNAVAIL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(as_recorded), TEST(preferences), TEST(tasks_with_nodes), TEST(at_submit), TEST(devices), TEST(promised_devices), TEST(arrays), TEST(array_fills),
        TEST(licences), TEST(whose_node), TEST(shared_cpus), TEST(bounds_of_a_partition), TEST(deadlines), TEST(would),
        TEST(factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
