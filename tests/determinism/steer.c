/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts as a planner would make them, and a good many that it would not; and everything that may be done to arrays, steps
 * and nodes. Half of it makes sense, so that states are reached from which the other half may do harm.
 */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "replay.h"

void some_more(struct replay *x, struct arena *a, struct job_more *out) {
    *out = (struct job_more){0};
    if (draw(x, 2)) {
        struct array_range *r = arena_calloc(a, 3, sizeof(*r));
        uint32_t at = (uint32_t)draw(x, 3);
        out->array = "0-9";
        out->n_array_ranges = 1 + (uint32_t)draw(x, 3);
        for (uint32_t i = 0; i < out->n_array_ranges; i++) {
            r[i].first = at + (uint32_t)draw(x, 3);
            r[i].last = r[i].first + (uint32_t)draw(x, 4);
            at = r[i].last + 2;
        }
        out->array_ranges = r;
        out->array_max_running = (uint32_t)draw(x, 4);
    }
    if (!draw(x, 4)) {
        struct license_ask *l = arena_calloc(a, 2, sizeof(*l));
        l[0] = (struct license_ask){.name = "matlab"};
        l[0].count = 1 + (uint32_t)draw(x, 2);
        l[1] = (struct license_ask){.name = "ansys", .count = 1};
        l[1].is_or = draw(x, 2);
        out->licenses = l;
        out->n_licenses = 1 + (uint32_t)draw(x, 2);
    }
    out->requeue = !draw(x, 3);
    out->interactive = !draw(x, 10);
    out->no_kill = !draw(x, 3);
    out->deadline_unix = draw(x, 4) ? 0 : x->now_ms / 1000 + 100;
}

/* ---- starts ---- */

const struct job *some_run(struct replay *x) {
    struct view v;
    const struct job *j, *found = NULL;
    uint64_t seen = 0;
    if (!draw(x, 8))
        return some_job(x);
    state_peek(x->s, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        if (job_holds_nodes(j) && !draw(x, ++seen))
            found = j;
    return found;
}

static const struct job *some_waiting(struct replay *x) {
    const struct job *j = some_job(x);
    for (int i = 0; i < 10 && j && (j->state != JOB_PENDING || j->hold || j->completing); i++)
        j = some_job(x);
    return j;
}

static void some_gres(struct replay *x, struct arena *a, const struct node *n, struct job_node *jn) {
    if (!n || !n->n_gres || draw(x, 2))
        return;
    const struct gres *g = &n->gres[draw(x, n->n_gres)];
    struct gres_held *h = arena_calloc(a, 1, sizeof(*h));
    *h = (struct gres_held){.name = g->name, .type = g->type};
    h->count = 1 + draw(x, 2);
    if (g->n_files) {
        uint32_t *list = arena_calloc(a, 2, sizeof(*list));
        list[0] = g->first + (uint32_t)draw(x, 2);
        list[1] = list[0] + 1;
        h->indexes = list;
        h->n_indexes = (uint32_t)h->count;
    }
    jn->gres = h;
    jn->n_gres = 1;
}

void start(struct replay *x, struct arena *a) {
    const struct job *j = some_waiting(x);
    if (!j)
        return;
    struct view v;
    struct job_node nodes[2];
    uint32_t n = 1 + (uint32_t)draw(x, 2);
    state_peek(x->s, &v);
    uint32_t n_ids = v.counters.next_node_id - 1, first = (uint32_t)draw(x, n_ids - 1);
    uint32_t share = draw(x, 4) ? SHARE_CORES : (uint32_t)draw(x, 4);
    for (int i = 0; i < 20; i++) {
        const struct node *one = view_node(&v, first + 1);
        if (one && node_takes_work(one) && one->alloc_cpus < one->cpus)
            break;
        first = (uint32_t)draw(x, n_ids - 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = (struct job_node){.node_id = first + i + 1, .n_tasks = 1, .share = share};
        nodes[i].cpus = 1 + (uint32_t)draw(x, 2);
        nodes[i].mem_mb = draw(x, 300);
        some_gres(x, a, view_node(&v, first + i + 1), &nodes[i]);
    }
    struct job_start st = {.job_id = j->id, .start_no = j->start_no + 1, .nodes = nodes, .n_nodes = n};
    st.partition = draw(x, 2) ? "main" : "short";
    st.time_limit_min = 1 + (uint32_t)draw(x, 100);
    st.everywhere = !draw(x, 4);
    st.preferred = !draw(x, 4);
    if (job_is_group(j)) {
        const struct array_range *r = &j->array->pending[draw(x, j->array->n_pending)];
        st.array_task = 1 + r->first + (uint32_t)draw(x, r->last - r->first + 2);
        st.new_job_id = v.counters.next_job_id + (uint32_t)draw(x, 2);
        st.new_sluid = word(x, a);
    }
    act(x, CMD_START, &(struct cmd_start){.starts = &st, .n_starts = 1});
}

/* ---- jobs ---- */

static struct job_target some_target(struct replay *x, struct arena *a) {
    const struct job *j = draw(x, 2) ? some_job(x) : some_run(x);
    struct job_target t = {.job_id = j ? j->id : 1};
    if (j && j->array && draw(x, 2))
        t.job_id = j->array->job_id;
    if (draw(x, 3) == 0) {
        struct array_range *r = arena_calloc(a, 2, sizeof(*r));
        r[0].first = (uint32_t)draw(x, 6);
        r[0].last = r[0].first + (uint32_t)draw(x, 3);
        r[1].first = r[1].last = r[0].last + (uint32_t)draw(x, 4);
        t.tasks = r;
        t.n_tasks = 1 + (uint32_t)draw(x, 2);
    }
    return t;
}

static void update(struct replay *x, struct arena *a) {
    struct job_target t = some_target(x, a);
    struct dep dep = {.kind = DEP_AFTEROK};
    struct job_more more;
    struct job_spec spec = {.time_limit_min = 7, .nice = 3, .cpus_per_task = 2, .n_tasks = 2};
    const struct job *parent = some_job(x);
    dep.job_id = parent ? parent->id : 1;
    dep.kind = DEP_AFTER + (uint32_t)draw(x, 6);
    some_more(x, a, &more);
    spec.name = word(x, a);
    spec.more = &more;
    spec.deps = &dep;
    spec.n_deps = (uint32_t)draw(x, 2);
    struct cmd_update cmd = {.targets = &t, .n_targets = 1, .spec = &spec};
    cmd.changes = 1u << draw(x, 25);
    cmd.changes |= draw(x, 2) ? 1u << draw(x, 24) : 0;
    cmd.priority_set = draw(x, 5);
    cmd.as_admin = draw(x, 2);
    cmd.shrinks = draw(x, 2);
    act(x, CMD_UPDATE, &cmd);
}

/* A run gives nodes back: by number, or all but one by name. */
static void shrink(struct replay *x) {
    const struct job *j = some_run(x);
    for (int i = 0; i < 10 && j && j->n_nodes < 2; i++)
        j = some_run(x);
    if (!j || !j->n_nodes)
        return;
    struct job_target t = {.job_id = j->id};
    const char *names[2] = {j->nodes[0].name, j->nodes[j->n_nodes - 1].name};
    struct job_spec spec = {.min_nodes = 1 + (uint32_t)draw(x, 2), .req_nodes = names};
    bool by_name = draw(x, 2);
    spec.n_req_nodes = by_name ? 1 + (uint32_t)draw(x, 2) : 0;
    act(x, CMD_UPDATE, &(struct cmd_update){.targets = &t, .n_targets = 1, .spec = &spec, .shrinks = true,
                                            .changes = by_name ? CHANGE_NODE_LISTS : CHANGE_NODES});
}

static void suspend(struct replay *x, struct job_target *t) {
    const struct job *j = some_run(x);
    if (j && draw(x, 3))
        *t = (struct job_target){.job_id = j->id};
    bool resume = j && j->state == JOB_SUSPENDED ? draw(x, 3) : !draw(x, 5);
    act(x, CMD_SUSPEND, &(struct cmd_suspend){.targets = t, .n_targets = 1, .resume = resume,
                                            .by_signal = j && j->state != JOB_SUSPENDED && !draw(x, 4)});
}

static void job_verbs(struct replay *x, struct arena *a) {
    struct job_target t[2];
    t[0] = some_target(x, a);
    t[1] = some_target(x, a);
    const char *sluids[1] = {word(x, a)};
    uint32_t hold = (uint32_t)draw(x, 3);
    bool flag = draw(x, 2);
    uint32_t id = t[0].job_id;
    switch (draw(x, 12)) {
    case 0:
    case 1:
        act(x, CMD_REQUEUE, &(struct cmd_requeue){.targets = t, .n_targets = 2, .hold = hold / 2, .sluids = sluids, .n_sluids = flag});
        break;
    case 2:
    case 8:
        suspend(x, &t[0]);
        break;
    case 3:
        act(x, CMD_CANCEL, &(struct cmd_cancel){.targets = t, .n_targets = 1, .no_trace = draw(x, 3)});
        break;
    case 4:
        act(x, CMD_HOLD, &(struct cmd_hold){.targets = t, .n_targets = 2, .hold = hold, .as_admin = flag, .runs_too = !hold || flag});
        break;
    case 5:
        act(x, CMD_DEADLINE, &(struct cmd_deadline){.job_ids = &id, .n_job_ids = 1, .invalid_dep = flag});
        break;
    case 9:
    case 10:
    case 11:
        shrink(x);
        break;
    default:
        update(x, a);
    }
}

/* ---- steps ---- */

static void step_start(struct replay *x) {
    const struct job *j = some_run(x);
    if (!j || !j->n_nodes)
        return;
    struct step_node nodes[2] = {0};
    struct step_spec spec = {.name = "step", .n_tasks = 1};
    uint32_t n = 1 + (uint32_t)draw(x, MIN(j->n_nodes, 2u));
    spec.overlap = !draw(x, 4);
    spec.no_kill = !draw(x, 2);
    for (uint32_t i = 0; i < n; i++) {
        const struct job_node *jn = &j->nodes[i];
        nodes[i] = (struct step_node){.node_id = jn->node_id, .n_tasks = 1, .gres = jn->gres};
        nodes[i].cpus = (uint32_t)draw(x, jn->cpus + 1);
        nodes[i].mem_mb = draw(x, jn->mem_mb + 1);
        nodes[i].n_gres = (uint32_t)draw(x, jn->n_gres + 1);
    }
    act(x, CMD_STEP_START, &(struct cmd_step_start){.job_id = j->id, .start_no = j->start_no, .spec = &spec, .nodes = nodes, .n_nodes = n});
}

static void step_end(struct replay *x, struct arena *a) {
    const struct job *j = some_run(x);
    const struct step *st = NULL;
    struct view v;
    state_peek(x->s, &v);
    uint64_t k = j ? step_key(j->id, 0) : 0;
    for (uint64_t skip = draw(x, 4); j && (st = view_next_step(&v, &k)) && st->job_id == j->id && skip; k++)
        skip--;
    if (!st)
        return;
    if (!draw(x, 4)) {
        bool late = draw(x, 2);
        act(x, CMD_STEP_CANCEL, &(struct cmd_step_cancel){.job_id = st->job_id, .step_id = st->id, .is_timeout = late});
        return;
    }
    struct cmd_step_done cmd = {.job_id = st->job_id, .start_no = st->start_no, .step_id = st->id, .end_ms = x->now_ms};
    cmd.node_id = st->nodes[draw(x, st->n_nodes)].node_id;
    cmd.wait_status = (uint32_t)draw(x, 2) << 8;
    cmd.out_of_memory = !draw(x, 20);
    cmd.never_started = !draw(x, 20);
    cmd.text = draw(x, 5) ? NULL : word(x, a);
    cmd.max_rss_kb = draw(x, 1000);
    act(x, CMD_STEP_DONE, &cmd);
}

/* ---- nodes and tokens ---- */

static void node_update(struct replay *x, struct arena *a) {
    static const char *const features[] = {"ib", "big"};
    struct view v;
    state_peek(x->s, &v);
    uint32_t n_ids = v.counters.next_node_id - 1, ids[2] = {1 + (uint32_t)draw(x, n_ids)};
    ids[1] = 1 + ids[0] % n_ids;
    struct cmd_node_update cmd = {.node_ids = ids, .n_node_ids = 2, .op = NODE_OP_RESUME, .user = "root", .features = features};
    struct selector labels[2] = {{.key = draw(x, 2) ? "rack" : "gpu", .value = draw(x, 3) ? "r1" : NULL},
                                 {.key = "zone", .value = ""}};
    if (!draw(x, 2))
        cmd.op = 1 + (uint32_t)draw(x, NODE_OP_LAST + 1);
    if (cmd.op == NODE_OP_DELETE && draw(x, 16)) /* rarely: the others want to run something */
        cmd.op = NODE_OP_LABEL;
    if (cmd.op == NODE_OP_DELETE)
        cmd.n_node_ids = 1;
    cmd.labels = labels;
    cmd.n_labels = 1 + (uint32_t)draw(x, 2);
    cmd.force = !draw(x, 3);
    cmd.bar = draw(x, 2);
    cmd.comment = draw(x, 3) ? NULL : word(x, a);
    cmd.reason = word(x, a);
    cmd.n_features = (uint32_t)draw(x, 3);
    cmd.has_features = draw(x, 2);
    cmd.weight = (uint32_t)draw(x, 3);
    act(x, CMD_NODE_UPDATE, &cmd);
}

static void partition(struct replay *x, struct arena *a) {
    struct part p = {.name = word(x, a), .is_default = draw(x, 2), .state = (uint32_t)draw(x, 4), .all_nodes = true};
    struct cmd_partition cmd = {.op = 1 + (uint32_t)draw(x, 4), .part = &p, .changes = (uint32_t)draw(x, PART_CHANGES + 1)};
    p.max_nodes = (uint32_t)draw(x, 3);
    act(x, CMD_PARTITION, &cmd);
}

static void join_token(struct replay *x, struct arena *a) {
    struct join_token t = {.id = word(x, a), .hash = "abcd", .text = "test"};
    struct cmd_join_token cmd = {0};
    t.until_unix = draw(x, 2) ? 0 : x->now_ms / 1000 + (int64_t)draw(x, 50);
    if (draw(x, 2))
        cmd.add = &t;
    else
        cmd.revoke = t.id;
    act(x, CMD_JOIN_TOKEN, &cmd);
}

void steer(struct replay *x, struct arena *a) {
    uint64_t what = draw(x, 20);
    if (what < 9)
        job_verbs(x, a);
    else if (what < 13)
        step_start(x);
    else if (what < 17)
        step_end(x, a);
    else if (what < 19)
        node_update(x, a);
    else if (draw(x, 2))
        join_token(x, a);
    else if (!draw(x, 4))
        partition(x, a);
    else {
        const struct job *j = some_run(x);
        struct run_id run = {.job_id = j ? j->id : 1, .start_no = j ? j->start_no : 1};
        act(x, CMD_WARNED, &(struct cmd_warned){.runs = &run, .n_runs = 1});
    }
}
