/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

void rig_init(struct rig *g) {
    *g = (struct rig){.s = state_new(), .now_ms = 1000000, .uid = 1000};
    state_set_checking(g->s, true);
}

static int add(void *arg, const void *p, size_t n, struct err *e) {
    buf_add(arg, p, n);
    return 0;
}

void rig_fini(struct rig *g) {
    auto_buf bytes = {0};
    struct view v;
    struct state *twin = state_new();
    state_view(g->s, &v);
    assert_int_equal(state_snapshot_write(&v, add, &bytes, NULL), 0);
    state_view_end(&v);
    assert_int_equal(state_restore(twin, bytes.p, bytes.n, NULL), 0);
    assert_true(state_digest(twin) == state_digest(g->s));
    state_free(twin);
    applied_fini(&g->r);
    arena_fini(&g->arena);
    state_free(g->s);
}

int act(struct rig *g, enum command c, const void *cmd) {
    struct command_head h = {.command = c, .uid = g->uid, .now_ms = g->now_ms += 10};
    auto_buf b = {0};
    command_encode(&h, cmd, &b);
    arena_reset(&g->arena);
    assert_int_equal(state_apply(g->s, ++g->index, b.p, b.n, &g->r, NULL), 0);
    g->answer = (struct answer){0};
    assert_int_equal(rec_decode(answer_rec(), g->r.answer.p, g->r.answer.n, &g->arena, &g->answer, NULL), 0);
    return g->r.code;
}

int act1(struct rig *g, enum command c, const void *cmd) {
    int rc = act(g, c, cmd);
    return rc || !g->answer.n_items ? rc : -(int)g->answer.items[0].error;
}

const struct job *job_of(struct rig *g, uint32_t id) {
    struct view v;
    state_peek(g->s, &v);
    return view_job(&v, id);
}

const struct node *node_of(struct rig *g, uint32_t id) {
    struct view v;
    state_peek(g->s, &v);
    return view_node(&v, id);
}

const struct step *step_of(struct rig *g, uint32_t job_id, uint32_t id) {
    struct view v;
    state_peek(g->s, &v);
    return view_step(&v, job_id, id);
}

uint32_t next_id(struct rig *g) {
    struct view v;
    state_peek(g->s, &v);
    return v.counters.next_job_id;
}

bool saw(const struct rig *g, enum event_kind kind, uint32_t job_id) {
    for (size_t i = 0; i < g->r.events.n; i++)
        if (g->r.events.p[i].kind == kind && g->r.events.p[i].job_id == job_id)
            return true;
    return false;
}

void config(struct rig *g, struct rconf conf) {
    static const struct part p = {.id = 1, .name = "p", .all_nodes = true, .over_subscribe = OVER_FORCE, .over_count = 2};
    conf.cluster_name = "c";
    conf.parts = &p;
    conf.n_parts = 1;
    assert_int_equal(act(g, CMD_CONFIG_SET, &(struct cmd_config_set){.conf = &conf, .member_id = 1}), 0);
}

uint32_t add_node(struct rig *g, const char *name, uint32_t cpus, const struct gres *gres, uint32_t n_gres) {
    struct node n = {.name = name, .cpus = cpus, .mem_mb = 1000, .gres = gres, .n_gres = n_gres};
    assert_int_equal(act(g, CMD_NODE_REGISTER, &(struct cmd_node_register){.node = &n}), 0);
    return g->answer.node_id;
}

int submit_spec(struct rig *g, uint32_t id, struct job_spec spec) {
    spec.name = spec.name ? spec.name : "j";
    spec.uid = spec.uid ? spec.uid : 1000;
    spec.n_tasks = 1;
    return act(g, CMD_SUBMIT, &(struct cmd_submit){.job_id = id, .sluid = "s1", .spec = &spec});
}

int submit(struct rig *g, uint32_t id) {
    return submit_spec(g, id, (struct job_spec){0});
}

int submit_dep(struct rig *g, uint32_t id, struct dep dep, const struct job_more *more) {
    return submit_spec(g, id, (struct job_spec){.deps = &dep, .n_deps = 1, .more = more});
}

int submit_array(struct rig *g, uint32_t id, uint32_t first, uint32_t last, uint32_t max_running) {
    struct array_range r = {first, last};
    struct job_more more = {.array = "x", .array_ranges = &r, .n_array_ranges = 1, .array_max_running = max_running};
    return submit_spec(g, id, (struct job_spec){.more = &more});
}

int start(struct rig *g, uint32_t id, struct job_node node) {
    const struct job *j = job_of(g, id);
    node.n_tasks = 1;
    struct job_start st = {.job_id = id, .start_no = j ? j->start_no + 1 : 1, .partition = "p", .nodes = &node,
                           .n_nodes = 1, .time_limit_min = 60};
    return act1(g, CMD_START, &(struct cmd_start){&st, 1});
}

uint32_t start_task(struct rig *g, uint32_t id, uint32_t task, uint32_t node) {
    struct job_node n = {.node_id = node, .cpus = 1, .n_tasks = 1};
    uint32_t new_id = next_id(g);
    struct job_start st = {.job_id = id, .start_no = 1, .partition = "p", .nodes = &n, .n_nodes = 1,
                           .array_task = task + 1, .new_job_id = new_id, .new_sluid = "s2"};
    if (act1(g, CMD_START, &(struct cmd_start){&st, 1}))
        return 0;
    return job_of(g, new_id) ? new_id : id;
}

int running(struct rig *g, uint32_t id) {
    return act(g, CMD_RUNNING, &(struct cmd_running){id, job_of(g, id)->start_no});
}

int done(struct rig *g, uint32_t id, uint32_t node, uint32_t status) {
    struct cmd_node_done cmd = {.job_id = id, .start_no = job_of(g, id)->start_no, .node_id = node,
                                .wait_status = status};
    return act(g, CMD_NODE_DONE, &cmd);
}

void finish(struct rig *g, uint32_t id, uint32_t node, uint32_t status) {
    assert_int_equal(start(g, id, (struct job_node){.node_id = node, .cpus = 1}), 0);
    assert_int_equal(running(g, id), 0);
    assert_int_equal(done(g, id, node, status), 0);
    assert_true(job_is_over(job_of(g, id)));
}

int cancel(struct rig *g, uint32_t id) {
    return act1(g, CMD_CANCEL, &(struct cmd_cancel){.job_ids = &id, .n_job_ids = 1});
}

int cancel_tasks(struct rig *g, uint32_t id, uint32_t first, uint32_t last) {
    struct array_range r = {first, last};
    struct job_target t = {id, &r, 1};
    return act1(g, CMD_CANCEL, &(struct cmd_cancel){.targets = &t, .n_targets = 1});
}
