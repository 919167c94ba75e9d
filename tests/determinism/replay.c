/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes one log of commands from a seed, applies it, and prints what came of it: answers, digests, the snapshot's hash.
 * The same seed must print the same text in every build, time zone, locale, hash seed and environment: test_determinism.py
 * runs it in many.
 *
 *     replay SEED COUNT [HASH_SEED [check [LOG]]]       LOG: the entries go there, as tests/golden/state keeps them
 *
 * In the middle a second state is made from a snapshot of the first; from then on both get the same entries and must
 * agree, and their snapshots must be the same bytes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "replay.h"

/* splitmix64. One draw an expression: the order in which arguments and initializers are evaluated is the compiler's. */
uint64_t draw(struct replay *x, uint64_t below) {
    uint64_t z = x->rng += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

static void fail(const char *what, const struct err *e) {
    fprintf(stderr, "replay: %s: %s\n", what, e ? e->text : "");
    exit(1);
}

void act(struct replay *x, enum command c, const void *record) {
    struct command_head head = {.command = c, .uid = 1000 + (uint32_t)draw(x, 3), .now_ms = x->now_ms};
    x->now_ms += (int64_t)draw(x, 400) - 50; /* a proposer's clock may be behind */
    if (draw(x, 3) == 0) {
        if (draw(x, 5)) /* else a client says its last one again */
            for (size_t i = 0; i < sizeof(x->token); i++)
                x->token[i] = (uint8_t)draw(x, 256);
        head.token = x->token;
    }
    auto_buf entry = {0};
    struct err e;
    command_encode(&head, record, &entry);
    if (x->log) {
        auto_buf size = {0};
        buf_u32le(&size, (uint32_t)entry.n);
        fwrite(size.p, 1, size.n, x->log);
        fwrite(entry.p, 1, entry.n, x->log);
    }
    if (state_apply(x->s, ++x->index, entry.p, entry.n, &x->r, &e))
        fail("apply", &e);
    if (x->checking && state_check(x->s, &e)) {
        fprintf(stderr, "replay: entry %" PRIu64 ", %s\n", x->index, command_name(c));
        fail("an invariant is broken", &e);
    }
    x->n_refused += x->r.code != 0;
    x->answers = x->answers * 31 + hash_fixed(x->r.answer.p, x->r.answer.n) + (uint64_t)(int64_t)x->r.code;
    for (size_t i = 0; i < x->r.events.n; i++) {
        const struct event *ev = &x->r.events.p[i];
        x->answers = x->answers * 31 + (uint64_t)ev->kind * 7 + ev->job_id + ev->step_id;
        x->seen[ev->kind]++;
    }
    if (!x->twin)
        return;
    if (state_apply(x->twin, x->index, entry.p, entry.n, &x->r_twin, &e))
        fail("apply to the twin", &e);
    if (state_digest(x->s) != state_digest(x->twin))
        fail("the digests of a state and of one from its snapshot differ", NULL);
}

const char *word(struct replay *x, struct arena *a) {
    static const char *const words[] = {"alpha", "beta", "gamma \xc3\xa4", "Zeta", "n[1-3]", ""};
    char text[64];
    uint64_t which = draw(x, 6), number = draw(x, 100);
    snprintf(text, sizeof(text), "%s%u", words[which], (unsigned)number);
    return arena_strdup(a, text);
}

static void config(struct replay *x, struct arena *a) {
    const char *third = word(x, a);
    struct part parts[3] = {{.id = 1, .name = "main", .is_default = true, .all_nodes = true, .nodes_text = "ALL", .max_time_min = TIME_LIMIT_NONE},
                            {.id = 2, .name = "short", .all_nodes = true, .nodes_text = "ALL", .max_time_min = 60},
                            {.id = 3, .name = third, .all_nodes = true, .nodes_text = "ALL", .max_time_min = 10}};
    uint8_t hash[32];
    for (size_t i = 0; i < sizeof(hash); i++)
        hash[i] = (uint8_t)draw(x, 256);
    struct rconf conf = {.hash = hash, .n_hash = sizeof(hash), .cluster_name = "c", .parts = parts, .n_parts = 1 + (uint32_t)draw(x, 3),
                         .interval_secs = 1, .min_job_age_secs = 300, .kill_wait_secs = 30, .heartbeat_timeout_secs = 90, .max_jobs = 100000,
                         .first_job_id = 1, .max_job_id = JOB_ID_MAX, .max_launch_failures = 3, .max_launch_backoff_secs = 60,
                         .max_requeues = 2, .max_steps = 20};
    struct license lic[] = {{"matlab", 3}, {"ansys", 1}};
    struct gres gres[] = {{.name = "gpu", .type = "a100", .count = 3, .first = 0}};
    static const char *const overlaid[] = {"n3", "n4"};
    struct node_overlay overlay = {.names = overlaid, .n_names = 2, .gres = gres, .n_gres = 1};
    parts[1].over_subscribe = OVER_FORCE;
    parts[1].over_count = 2;
    conf.licenses = lic;
    conf.n_licenses = 2;
    conf.overlays = &overlay;
    conf.n_overlays = (uint32_t)draw(x, 2);
    conf.no_requeue = !draw(x, 4);
    act(x, CMD_CONFIG_SET, &(struct cmd_config_set){.conf = &conf, .member_id = 1});
}

static void join(struct replay *x, uint32_t i) {
    char name[16];
    uint8_t key[32] = {(uint8_t)i};
    snprintf(name, sizeof(name), "n%u", i);
    struct node n = {.name = name, .address = "127.0.0.1", .port = 6818, .cpus = 4 + i % 3, .mem_mb = 1000 * (1 + i % 4), .public_key = key,
                     .n_public_key = sizeof(key), .boot_id = draw(x, 10) ? "boot" : "other boot"};
    static const char *const files[] = {"/dev/nvidia0", "/dev/nvidia1"};
    struct gres gres[] = {{.name = "gpu", .type = "a100", .count = 2, .files = files, .n_files = 2},
                          {.name = "gpu", .count = 1, .files = files, .n_files = 1, .first = 2},
                          {.name = "shard", .count = 10}};
    n.gres = gres + draw(x, 2);
    n.n_gres = 1 + (uint32_t)draw(x, 2);
    act(x, CMD_NODE_REGISTER, &(struct cmd_node_register){.node = &n});
}

static void submit(struct replay *x, struct arena *a) {
    struct dep deps[3];
    uint32_t n_deps = draw(x, 4) ? 0 : 1 + (uint32_t)draw(x, 3);
    for (uint32_t i = 0; i < n_deps; i++) {
        deps[i] = (struct dep){.kind = DEP_AFTER + (uint32_t)draw(x, 6)};
        const struct job *parent = some_job(x);
        deps[i].job_id = deps[i].kind == DEP_SINGLETON ? 0 : parent ? parent->id : 1;
        if (parent && parent->array && deps[i].job_id && draw(x, 2)) {
            deps[i].job_id = parent->array->job_id;
            deps[i].task = draw(x, 3) ? DEP_ALL_TASKS : 1 + (uint32_t)draw(x, 10);
        }
        deps[i].minutes = draw(x, 3) ? 0 : 5;
        deps[i].is_or = draw(x, 2);
    }
    uint8_t hash[32] = {(uint8_t)draw(x, 20)};
    struct job_spec spec = {.n_tasks = 1, .min_nodes = 1, .user = "u", .deps = deps, .n_deps = n_deps, .script_hash = hash,
                            .n_script_hash = sizeof(hash)};
    spec.name = word(x, a);
    spec.uid = 1000 + (uint32_t)draw(x, 3);
    spec.partition = draw(x, 2) ? "main" : "short";
    spec.hold = !draw(x, 8);
    spec.comment = word(x, a);
    spec.nice = (int64_t)draw(x, 200) - 100;
    struct job_more more;
    if (!draw(x, 3)) {
        some_more(x, a, &more);
        spec.more = &more;
    }
    spec.no_requeue = !draw(x, 6);
    struct view v;
    state_peek(x->s, &v);
    struct cmd_submit cmd = {.job_id = v.counters.next_job_id, .sluid = word(x, a), .spec = &spec};
    cmd.first_task_id = spec.more && spec.more->n_array_ranges && draw(x, 2) ? cmd.job_id + 1 : 0;
    act(x, CMD_SUBMIT, &cmd);
}

const struct job *some_job(struct replay *x) {
    struct view v;
    state_peek(x->s, &v);
    uint32_t last = v.counters.next_job_id - 1; /* one in two among the newest, where things happen */
    uint32_t window = draw(x, 2) ? MIN(last, 60u) : last;
    return last ? view_job(&v, last - (uint32_t)draw(x, window)) : NULL;
}

static void end_on_a_node(struct replay *x, struct arena *a) {
    const struct job *j = some_run(x);
    if (!j)
        return;
    struct cmd_node_done cmd = {.job_id = j->id, .start_no = j->start_no, .node_id = 1, .end_ms = x->now_ms};
    cmd.start_no += !draw(x, 10);
    if (j->n_nodes)
        cmd.node_id = job_held(j, (uint32_t)draw(x, job_n_held(j)))->node_id;
    cmd.wait_status = (uint32_t)draw(x, 4) << 8;
    cmd.never_started = !draw(x, 20);
    cmd.node_failed = !draw(x, 10);
    cmd.new_sluid = draw(x, 2) ? word(x, a) : NULL;
    cmd.out_of_memory = !draw(x, 30);
    cmd.drain_node = !draw(x, 50);
    cmd.stays = job_rare_of(j)->everywhere && draw(x, 2);
    cmd.text = word(x, a);
    cmd.max_rss_kb = draw(x, 100000);
    cmd.user_cpu_us = draw(x, 1000000);
    act(x, CMD_NODE_DONE, &cmd);
}

static void other(struct replay *x, struct arena *a) {
    const struct job *j = some_job(x);
    if (!j)
        return;
    uint32_t ids[2] = {j->id, j->id + (uint32_t)draw(x, 3)};
    struct run_id run = {.job_id = j->id, .start_no = j->start_no};
    struct cmd_hold hold = {.job_ids = ids, .n_job_ids = 2};
    struct cmd_node_state node = {.reason = word(x, a)};
    hold.hold = (uint32_t)draw(x, 3);
    hold.as_admin = draw(x, 2);
    node.node_id = 1 + (uint32_t)draw(x, NODES);
    node.not_responding = !draw(x, 4);
    node.down = !draw(x, 6);
    switch (draw(x, 8)) {
    case 0:
        act(x, CMD_CANCEL, &(struct cmd_cancel){.job_ids = ids, .n_job_ids = 2, .complete = draw(x, 2) ? 0 : 1 + (j->id % 2) * 256});
        break;
    case 1:
        act(x, CMD_HOLD, &hold);
        break;
    case 2:
        act(x, CMD_TIMEOUT, &(struct cmd_timeout){.runs = &run, .n_runs = 1});
        break;
    case 3:
        act(x, CMD_UNDO, &(struct cmd_undo){.job_id = j->id, .start_no = j->start_no, .text = word(x, a)});
        break;
    case 4:
        act(x, CMD_PURGE, &(struct cmd_purge){.job_ids = ids, .n_job_ids = 2});
        break;
    case 5:
        act(x, CMD_NODE_STATE, &node);
        break;
    case 6:
        join(x, (uint32_t)draw(x, NODES));
        break;
    default:
        if (!draw(x, 20))
            config(x, a);
    }
}

static int add(void *arg, const void *p, size_t n, struct err *e) {
    buf_add(arg, p, n);
    return 0;
}

static void snapshot(struct state *s, struct buf *out) {
    struct view v;
    struct err e;
    state_view(s, &v);
    if (state_snapshot_write(&v, add, out, &e))
        fail("snapshot", &e);
    state_view_end(&v);
}

static void make_twin(struct replay *x) {
    auto_buf bytes = {0};
    struct err e;
    snapshot(x->s, &bytes);
    state_free(x->twin);
    x->twin = state_new();
    if (state_restore(x->twin, bytes.p, bytes.n, &e))
        fail("restore", &e);
}

static void one_command(struct replay *x, struct arena *a) {
    uint64_t what = draw(x, 100);
    if (what < 14)
        submit(x, a);
    else if (what < 38)
        start(x, a);
    else if (what < 64)
        steer(x, a);
    else if (what < 77) {
        const struct job *j = some_run(x);
        if (j)
            act(x, CMD_RUNNING, &(struct cmd_running){.job_id = j->id, .start_no = j->start_no});
    } else if (what < 90)
        end_on_a_node(x, a);
    else
        other(x, a);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "Usage: replay SEED COUNT [HASH_SEED [check [LOG]]]\n");
        return 2;
    }
    uint64_t count = strtoull(argv[2], NULL, 10), hash = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    hash_seed(hash, ~hash);
    bool checking = argc > 4; /* all invariants after each; a second state from the first entry on */
    struct replay x = {.s = state_new(), .rng = strtoull(argv[1], NULL, 10), .now_ms = 1700000000000};
    x.log = argc > 5 ? fopen(argv[5], "wb") : NULL;
    struct arena a = {0};
    uint8_t key[32] = {7};
    act(&x, CMD_CLUSTER_INIT, &(struct cmd_cluster_init){.key_seed = key, .n_key_seed = sizeof(key)});
    config(&x, &a);
    for (uint32_t i = 0; i < NODES; i++)
        join(&x, i);
    x.checking = checking;
    for (uint64_t i = 0; i < count; i++) {
        if (i == count / 2 || (checking && i % 97 == 96))
            make_twin(&x);
        one_command(&x, &a);
        arena_reset(&a);
        if (i % 500 == 0)
            printf("%" PRIu64 " %016" PRIx64 " %016" PRIx64 "\n", x.index, state_digest(x.s), x.answers);
    }
    auto_buf one = {0}, two = {0};
    struct err e;
    snapshot(x.s, &one);
    snapshot(x.twin, &two);
    if (one.n != two.n || memcmp(one.p, two.p, one.n) != 0)
        fail("the snapshots of a state and of one from its snapshot differ", NULL);
    if (state_check(x.s, &e))
        fail("an invariant is broken", &e);
    for (int kind = EV_JOB_PENDING; kind <= EV_JOB_REQUEUED && count >= 20000; kind++) {
        if (x.seen[kind])
            continue;
        fprintf(stderr, "replay: no event of kind %d ever came: the commands lead nowhere\n", kind);
        return 1;
    }
    struct state_stats st = state_stats(x.s);
    printf("entries %" PRIu64 " refused %" PRIu64 " jobs %zu pending %zu running %zu over %zu\n", x.index, x.n_refused, st.jobs, st.pending, st.running, st.over);
    printf("started %" PRIu64 " suspended %" PRIu64 " requeued %" PRIu64 " steps %" PRIu64 " of them over %" PRIu64 "\n", x.seen[EV_JOB_STARTED], x.seen[EV_JOB_SUSPENDED],
           x.seen[EV_JOB_REQUEUED], x.seen[EV_STEP_STARTED], x.seen[EV_STEP_OVER]);
    printf("digest %016" PRIx64 " snapshot %zu bytes %016" PRIx64 "\n", state_digest(x.s), one.n, hash_fixed(one.p, one.n));
    if (x.log)
        fclose(x.log);
    applied_fini(&x.r);
    applied_fini(&x.r_twin);
    state_free(x.s);
    state_free(x.twin);
    arena_fini(&a);
    return 0;
}
