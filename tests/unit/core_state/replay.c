/* SPDX-License-Identifier: Apache-2.0
 *
 * One log, the same state everywhere:  replay LOG EXPECTED
 *
 * LOG is a file of entries (u32 little endian length, bytes). It is applied to an empty state; the digest and the
 * snapshot's bytes must be those of EXPECTED ("digest hex16, snapshot hex16, size"), which was written once and is
 * kept: so every build, compiler, time zone and hash seed that runs this test is held to the same bytes, and every
 * later version must still read the entries of this one.
 *
 * replay --make SEED LOG EXPECTED writes both files (once for each new version of the formats).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/state/state.h"

static int to_buf(void *arg, const void *p, size_t n, struct err *e) {
    buf_add(arg, p, n);
    return 0;
}

static void print_state(struct state *s, char out[128]) {
    struct view v;
    auto_buf snap = {0};
    state_view(s, &v);
    must(state_snapshot_write(&v, to_buf, &snap, NULL) == 0);
    state_view_end(&v);
    snprintf(out, 128, "%016" PRIx64 " %016" PRIx64 " %zu\n", state_digest(s), hash_fixed(snap.p, snap.n), snap.n);
    struct state *again = state_new();
    struct err e;
    if (state_restore(again, snap.p, snap.n, &e)) {
        fprintf(stderr, "replay: %s\n", e.text);
        exit(1);
    }
    must(state_digest(again) == state_digest(s));
    state_free(again);
}

static int check(const char *log_path, const char *expected_path) {
    char got[128], want[128] = "";
    FILE *log = fopen(log_path, "rb"), *expected = fopen(expected_path, "r");
    if (!log || !expected || !fgets(want, sizeof(want), expected)) {
        fprintf(stderr, "replay: %s or %s can't be read\n", log_path, expected_path);
        return 1;
    }
    struct state *s = state_new();
    struct applied r = {0};
    struct err e;
    uint8_t head[4];
    uint64_t index = 0;
    auto_buf entry = {0};
    state_set_checking(s, true);
    while (fread(head, 1, 4, log) == 4) {
        size_t n = head[0] | head[1] << 8 | head[2] << 16 | (size_t)head[3] << 24;
        buf_clear(&entry);
        if (fread(buf_reserve(&entry, n), 1, n, log) != n || state_apply(s, ++index, entry.p, n, &r, &e)) {
            fprintf(stderr, "replay: entry %" PRIu64 ": %s\n", index, e.text);
            return 1;
        }
    }
    print_state(s, got);
    fclose(log);
    fclose(expected);
    applied_fini(&r);
    state_free(s);
    if (strcmp(got, want) != 0) {
        fprintf(stderr, "replay: %" PRIu64 " entries give\n  %swhere\n  %sis expected\n", index, got, want);
        return 1;
    }
    return index ? 0 : 1;
}

/* ---- making ---- */

struct maker {
    FILE *log;
    struct state *s;
    struct applied r;
    uint64_t index, seed;
    int64_t now_ms;
};

static uint64_t roll(struct maker *m) {
    m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
    return m->seed >> 24;
}

static void put(struct maker *m, enum command c, const uint8_t *token, const void *cmd) {
    struct command_head h = {.command = c, .uid = 1000 + (uint32_t)(roll(m) % 3), .now_ms = m->now_ms, .token = token};
    auto_buf b = {0};
    m->now_ms += (int64_t)(roll(m) % 5000);
    command_encode(&h, cmd, &b);
    uint8_t head[4] = {(uint8_t)b.n, (uint8_t)(b.n >> 8), (uint8_t)(b.n >> 16), (uint8_t)(b.n >> 24)};
    fwrite(head, 1, 4, m->log);
    fwrite(b.p, 1, b.n, m->log);
    must(state_apply(m->s, ++m->index, b.p, b.n, &m->r, NULL) == 0);
}

static void make_nodes(struct maker *m) {
    static const char *const names[] = {"n1", "n2", "gpu-a", "n10"};
    static const char *const features[] = {"ib", "zen"};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        struct node n = {.name = names[i], .address = "10.0.0.1", .port = 6818 + i, .cpus = 4 + i, .mem_mb = 1000,
                         .features = features, .n_features = i % 3, .public_key = (const uint8_t *)names[i],
                         .n_public_key = 2, .boot_id = "b"};
        put(m, CMD_NODE_REGISTER, NULL, &(struct cmd_node_register){&n});
    }
}

static void make_config(struct maker *m) {
    static const char *const overlaid[] = {"n2", "n10"};
    struct part parts[] = {{.id = 1, .name = "main", .is_default = true, .all_nodes = true, .max_time_min = UINT32_MAX},
                           {.id = 2, .name = "short", .nodes = overlaid, .n_nodes = 2, .max_time_min = 60}};
    struct node_overlay overlay = {.names = overlaid, .n_names = 2, .weight = 7};
    struct rconf conf = {.hash = (const uint8_t *)"0123456789abcdef0123456789abcdef", .n_hash = 32,
                         .cluster_name = "golden", .parts = parts, .n_parts = 2, .overlays = &overlay,
                         .n_overlays = 1, .interval_secs = 2, .kill_wait_secs = 30};
    put(m, CMD_CLUSTER_INIT, NULL, &(struct cmd_cluster_init){(const uint8_t *)"seedseedseedseed", 16, overlaid, 1});
    put(m, CMD_CONFIG_SET, NULL, &(struct cmd_config_set){&conf, 1});
}

static void make_step(struct maker *m) {
    struct view v;
    state_peek(m->s, &v);
    uint64_t x = roll(m);
    uint32_t next = v.counters.next_job_id, id = 1 + (uint32_t)(x % next);
    const struct job *j = view_job(&v, id);
    uint32_t no = j ? j->start_no : 0, node = 1 + (uint32_t)(x >> 8) % 4;
    struct dep dep = {.kind = 1 + (uint32_t)(x >> 12) % 4, .job_id = id};
    static const char *const args[] = {"-x", "two words", ""};
    struct job_spec spec = {.name = "golden", .uid = 1000, .user = "alice", .partition = "main", .n_tasks = 2,
                            .work_dir = "/home/alice", .args = args, .n_args = (uint32_t)(x >> 5) % 4,
                            .comment = x & 64 ? "caf\xc3\xa9, = ok" : NULL, .nice = (int64_t)(x >> 40) % 100 - 50,
                            .deps = &dep, .n_deps = (x >> 16) % 3 == 0};
    struct job_node nodes[2] = {{.node_id = node, .cpus = 1, .mem_mb = 50, .n_tasks = 1},
                                {.node_id = 1 + node % 4, .cpus = 2, .mem_mb = 50, .n_tasks = 1}};
    struct job_start st = {id, no + 1, "main", nodes, 1 + (uint32_t)(x >> 20) % 2, 60};
    struct run_id run = {id, no};
    uint8_t token[16] = {(uint8_t)(x >> 30), 7};
    switch (x % 11) {
    case 0:
    case 1: put(m, CMD_SUBMIT, x & 512 ? token : NULL, &(struct cmd_submit){next, "s0123456789ABC", &spec}); break;
    case 2:
    case 3: put(m, CMD_START, NULL, &(struct cmd_start){&st, 1}); break;
    case 4: put(m, CMD_RUNNING, NULL, &(struct cmd_running){id, no}); break;
    case 5:
    case 6:
        put(m, CMD_NODE_DONE, NULL,
            &(struct cmd_node_done){.job_id = id, .start_no = no, .node_id = node, .wait_status = (x >> 9) % 3 << 8,
                                    .end_ms = m->now_ms, .max_rss_kb = 1234, .never_started = (x >> 50) % 8 == 0,
                                    .out_of_memory = (x >> 54) % 8 == 0, .drain_node = (x >> 58) % 32 == 0});
        break;
    case 7: put(m, CMD_UNDO, NULL, &(struct cmd_undo){id, no, "no room"}); break;
    case 8: put(m, CMD_HOLD, NULL, &(struct cmd_hold){&id, 1, (uint32_t)(x >> 33) % 3, x & 1}); break;
    case 9:
        if (x & 2048)
            put(m, CMD_CANCEL, token, &(struct cmd_cancel){&id, 1});
        else
            put(m, CMD_TIMEOUT, NULL, &(struct cmd_timeout){&run, 1});
        break;
    case 10:
        if (x & 4096)
            put(m, CMD_PURGE, NULL, &(struct cmd_purge){&id, 1});
        else
            put(m, CMD_NODE_STATE, NULL, &(struct cmd_node_state){node, x & 8192, (x & 24576) == 24576, "why"});
        break;
    }
}

static int make(const char *seed, const char *log_path, const char *expected_path) {
    struct maker m = {.log = fopen(log_path, "wb"), .s = state_new(), .seed = strtoull(seed, NULL, 10),
                      .now_ms = 1796083200000};
    FILE *expected = fopen(expected_path, "w");
    char line[128];
    if (!m.log || !expected)
        return 1;
    make_nodes(&m);
    make_config(&m);
    for (int i = 0; i < 1500; i++)
        make_step(&m);
    print_state(m.s, line);
    fputs(line, expected);
    fclose(expected);
    fclose(m.log);
    applied_fini(&m.r);
    state_free(m.s);
    return 0;
}

int main(int argc, char **argv) {
    const char *seed = getenv("REPLAY_HASH_SEED");
    if (seed)
        hash_seed(strtoull(seed, NULL, 10), 99);
    if (argc == 5 && strcmp(argv[1], "--make") == 0)
        return make(argv[2], argv[3], argv[4]);
    return argc == 3 ? check(argv[1], argv[2]) : 2;
}
