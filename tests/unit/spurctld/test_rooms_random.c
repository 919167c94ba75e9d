/* SPDX-License-Identifier: Apache-2.0
 *
 * A long life: two controllers, agents that are spurd's own rooms, clients that repeat what was not answered, a network
 * that loses, doubles and delays, machines that die, a disk that is full now and then; jobs, arrays, dependencies, which are
 * cancelled, held, requeued, suspended. Everything comes from the seed.
 *
 * After each entry the state keeps its invariants. After a quiet time: every job is over or has a reason to wait; every
 * submit that was answered made exactly one job; nothing runs that should not; the history of each controller has exactly
 * one row of each job that ended, with its last record; the log gives the same state again, also by way of snapshots.
 *
 *     test_rooms_random [SEED [STEPS]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "rig.h"
#include "sim/ask.h"

#define AGENTS 5u
#define CALM 2u /* of them: only the network is bad to these */
#define MEMBERS 2u
#define CALL_MS 2000u
#define QUIET_EACH 300u /* steps: so that nothing can hide until a new leader makes up for it */

struct row {
    char sluid[16];
    uint32_t id, n_rows;
    bool is_life; /* queued again then */
    void *job; /* packed, as it ended */
};

/* A script that came to its own end. */
struct finish {
    uint32_t job_id, start_no, wait_status;
};

struct random_world {
    struct vworld *w;
    struct vlog *log;
    char dir[64];
    struct vctl_conf conf[MEMBERS];
    struct vctl *c[MEMBERS];
    struct buf snap[MEMBERS];
    struct vclient client;
    struct vagent *agent[AGENTS];
    bool is_cut[AGENTS];
    int64_t trouble_ms[AGENTS]; /* when something was last done to it */
    VEC(struct row) rows;
    VEC(struct finish) finishes;
    struct map64 begun; /* job id and start number of each script that was begun */
    uint32_t n_two_at_once, n_lost;
};

/* ---- trouble ---- */

static struct vctl *leader(const struct random_world *rw) {
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (rw->c[i] && rw->c[i]->is_elected)
            return rw->c[i];
    return NULL;
}

static void start_member(struct random_world *rw, uint32_t i) {
    rw->conf[i].snapshot = rw->snap[i].n && vworld_chance(rw->w, 700) ? &rw->snap[i] : NULL;
    rw->c[i] = vctl_start(rw->w, rw->log, &rw->conf[i]);
}

static void elect_somebody(void *arg) {
    struct random_world *rw = arg;
    if (leader(rw))
        return;
    uint32_t i = (uint32_t)vworld_below(rw->w, MEMBERS);
    if (!rw->c[i])
        start_member(rw, i);
    vctl_elect(rw->c[i]);
}

static void act_controller(struct random_world *rw) {
    uint32_t i = (uint32_t)vworld_below(rw->w, MEMBERS);
    struct vctl *c = rw->c[i];
    if (!c) {
        start_member(rw, i);
    } else if (vworld_chance(rw->w, 300)) {
        vctl_depose(c);
    } else {
        if (vworld_chance(rw->w, 700))
            vctl_kill(c);
        else
            vctl_stop(c);
        rw->c[i] = NULL;
    }
    vworld_at(rw->w, vworld_below(rw->w, 4000), elect_somebody, rw);
}

static void act_snapshot(struct random_world *rw) {
    uint32_t i = (uint32_t)vworld_below(rw->w, MEMBERS);
    if (rw->c[i])
        vctl_snapshot(rw->c[i], &rw->snap[i]);
}

static void act_agent(struct random_world *rw) {
    uint32_t i = CALM + (uint32_t)vworld_below(rw->w, AGENTS - CALM);
    struct vagent *a = rw->agent[i];
    rw->trouble_ms[i] = vworld_now_ms(rw->w);
    switch (vworld_below(rw->w, 8)) {
    case 0:
    case 1: vagent_stop(a); break;
    case 2: vagent_reboot(a, vworld_chance(rw->w, 400)); break;
    case 3:
        rw->is_cut[i] = !rw->is_cut[i];
        vagent_cut(a, rw->is_cut[i]);
        break;
    default:
        if (!vagent_is_up(a))
            vagent_start(a);
        rw->is_cut[i] = false;
        vagent_cut(a, false);
    }
}

static void act_full_disk(struct random_world *rw) {
    static const enum command some[] = {0, CMD_RUNNING, CMD_UNDO, CMD_NODE_DONE, CMD_START, CMD_PURGE, CMD_NODE_STATE};
    vlog_refuse(rw->log, some[vworld_below(rw->w, ARRAY_LEN(some))], E_FULL, 1 + (uint32_t)vworld_below(rw->w, 12));
}

static void act_network(struct random_world *rw) {
    struct vworld *w = rw->w;
    struct vfaults f = {.delay_min_ms = 1, .delay_max_ms = 5};
    if (vworld_chance(w, 600))
        f = vnet_faults_some(w);
    vnet_faults(w, &f);
    vlog_delay(rw->log, 1, 1 + (unsigned)vworld_below(w, 40));
}

static void act(struct random_world *rw) {
    uint64_t x = vworld_below(rw->w, 1000);
    if (x < 420)
        vclient_submit(&rw->client);
    else if (x < 460)
        vclient_requeue(&rw->client);
    else if (x < 500)
        vclient_suspend(&rw->client);
    else if (x < 600)
        vclient_cancel(&rw->client);
    else if (x < 650)
        vclient_hold(&rw->client);
    else if (x < 750)
        act_agent(rw);
    else if (x < 790)
        act_controller(rw);
    else if (x < 840)
        act_full_disk(rw);
    else if (x < 880)
        act_network(rw);
    else if (x < 910)
        act_snapshot(rw);
}

/* ---- what is watched ---- */

/* A script must not run twice at a time: at worst where a node was given up as dead and lives on. */
static void on_ran(void *arg, const struct vagent *a, enum vran what, uint32_t job_id, uint32_t start_no,
                   bool is_batch, uint32_t wait_status) {
    struct random_world *rw = arg;
    uint32_t other;
    if (what == VRAN_FINISHED) {
        struct finish f = {job_id, start_no, wait_status};
        vec_push(&rw->finishes, f);
        return;
    }
    if (is_batch) /* whatever is repeated, and whatever a machine forgets */
        must(!map64_put(&rw->begun, (uint64_t)job_id << 32 | start_no, (void *)1));
    for (uint32_t i = 0; is_batch && i < AGENTS; i++)
        if (rw->agent[i] != a && vagent_runs_batch(rw->agent[i], job_id, &other) &&
            vworld_now_ms(rw->w) - rw->trouble_ms[i] > 300000)
            rw->n_two_at_once++;
}

static void on_entry(void *arg, const struct vctl *c, uint64_t index, const struct applied *what) {
    struct view v;
    const struct node *n;
    state_peek(c->room.state, &v);
    for (uint64_t k = 0; (n = view_next_node(&v, &k)); k++)
        must(n->alloc_cpus <= n->cpus && n->alloc_mem_mb <= n->mem_mb);
}

/* ---- the end ---- */

static void collect_row(struct random_world *rw, const struct job *j, bool is_life) {
    struct row row = {.id = j->id, .job = rec_pack(job_rec(), j), .is_life = is_life};
    snprintf(row.sluid, sizeof(row.sluid), "%s", j->sluid);
    for (size_t k = 0; k < rw->rows.n; k++)
        must(rw->rows.p[k].id != row.id || !str_eq(rw->rows.p[k].sluid, row.sluid)); /* each is over once */
    vec_push(&rw->rows, row);
}

static void collect_ends(void *arg, const struct state *s, const struct applied *what) {
    struct random_world *rw = arg;
    struct view v;
    state_peek(s, &v);
    for (size_t i = 0; i < what->lives.n; i++)
        collect_row(rw, what->lives.p[i], true);
    for (size_t i = 0; i < what->events.n; i++)
        if (what->events.p[i].kind == EV_JOB_OVER && view_job(&v, what->events.p[i].job_id)) /* else tasks that left nothing */
            collect_row(rw, view_job(&v, what->events.p[i].job_id), false);
}

/* An array's own record counts on when it is over itself. */
static bool is_same(const struct job *a, const struct job *b) {
    if (!a->array || a->id != a->array->job_id)
        return rec_same(job_rec(), a, b);
    return a->state == b->state && a->end_ms == b->end_ms && a->wait_status == b->wait_status && a->start_no == b->start_no;
}

static void match_row(void *arg, const struct job *j) {
    struct random_world *rw = arg;
    for (size_t k = 0; k < rw->rows.n; k++) {
        struct row *row = &rw->rows.p[k];
        if (row->id != j->id || !str_eq(row->sluid, j->sluid))
            continue;
        row->n_rows++;
        assert_true(is_same(row->job, j));
        return;
    }
    fail_msg("job %u is in the history and never ended", j->id);
}

static bool has_ended(const struct random_world *rw, uint32_t id) {
    for (size_t k = 0; k < rw->rows.n; k++)
        if (rw->rows.p[k].id == id && !rw->rows.p[k].is_life)
            return true;
    return false;
}

static bool was_troubled(const struct random_world *rw, const struct job *j) {
    for (uint32_t i = 0; i < j->n_nodes; i++)
        for (uint32_t k = 0; k < AGENTS; k++)
            if (str_eq(vagent_name(rw->agent[k]), j->nodes[i].name) && rw->trouble_ms[k])
                return true;
    return false;
}

/* What is told of an end is what has happened. */
static void check_truth(struct random_world *rw) {
    for (size_t i = 0; i < rw->rows.n; i++) {
        const struct job *j = rw->rows.p[i].job;
        uint32_t n = 0, status = 0;
        for (size_t k = 0; k < rw->finishes.n; k++)
            if (rw->finishes.p[k].job_id == j->id && rw->finishes.p[k].start_no == j->start_no) {
                n++;
                status = rw->finishes.p[k].wait_status;
            }
        assert_true(n <= 1);
        if (j->state == JOB_COMPLETED || (j->state == JOB_FAILED && (j->wait_status & 0x7f) == 0)) {
            assert_int_equal(n, 1);
            assert_int_equal(status, j->wait_status);
        }
        if (j->state == JOB_FAILED && (j->wait_status & 0x7f) && !was_troubled(rw, j))
            fail_msg("job %u was killed by nobody", j->id);
        rw->n_lost += j->state == JOB_NODE_FAIL;
        if (j->state == JOB_NODE_FAIL && !was_troubled(rw, j))
            fail_msg("job %u: %s, and nothing ever happened to its nodes", j->id, j->state_text);
    }
}

static void check_jobs(const struct random_world *rw, const struct vctl *c) {
    struct view v;
    const struct job *j;
    const struct node *n;
    state_peek(c->room.state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        if (!job_is_over(j) && !vctl_may_wait(c, j))
            fail_msg("job %u is %s, reason %s, after a long quiet time", j->id, job_shown_state(j),
                     job_reason_word(j->reason));
    for (uint64_t k = 0; (n = view_next_node(&v, &k)); k++)
        if (!node_takes_work(n) || n->alloc_cpus || n->n_jobs || n->n_completing)
            fail_msg("node %s: base %u, not responding %u, %u CPUs of %u jobs", n->name, n->base, n->not_responding,
                     n->alloc_cpus, n->n_jobs);
    for (size_t i = 0; i < rw->client.jobs.n; i++)
        if (!vctl_job(c, rw->client.jobs.p[i]) && !has_ended(rw, rw->client.jobs.p[i]))
            fail_msg("job %u was acknowledged and is nowhere", rw->client.jobs.p[i]);
}

static void check_submits(const struct random_world *rw) {
    uint32_t n_answered = 0;
    for (size_t i = 0; i < rw->client.asks.n; i++) {
        const struct vask *a = rw->client.asks.p[i];
        assert_true(a->is_over);
        n_answered += a->job_id != 0;
        for (size_t k = 0; a->job_id && k < i; k++)
            assert_int_not_equal(rw->client.asks.p[k]->job_id, a->job_id);
    }
    assert_int_equal(n_answered, rw->client.jobs.n);
}

static void drop_rows(struct random_world *rw) {
    for (size_t i = 0; i < rw->rows.n; i++)
        rec_free(rw->rows.p[i].job);
    rw->rows.n = 0;
    rw->n_lost = 0;
}

static void note_root(struct map64 *roots, const struct job *j) {
    map64_put(roots, j->array ? j->array->job_id : j->id, (void *)1);
}

/* As many jobs and arrays as answered submits: no submit made two. */
static void check_roots(struct random_world *rw, const struct vctl *c) {
    struct map64 roots = {0};
    struct view v;
    const struct job *j;
    state_peek(c->room.state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        note_root(&roots, j);
    for (size_t k = 0; k < rw->rows.n; k++)
        note_root(&roots, rw->rows.p[k].job);
    assert_int_equal(roots.n, rw->client.jobs.n);
    for (size_t i = 0; i < rw->client.jobs.n; i++)
        assert_non_null(map64_get(&roots, rw->client.jobs.p[i]));
    map64_fini(&roots);
}

static void check_end(struct random_world *rw) {
    struct vctl *c = leader(rw);
    drop_rows(rw);
    vlog_replay(rw->log, collect_ends, rw);
    check_submits(rw);
    check_truth(rw);
    check_jobs(rw, c);
    check_roots(rw, c);
    for (uint32_t i = 0; i < AGENTS; i++) {
        assert_int_equal(vagent_live(rw->agent[i]), 0);
        assert_int_equal(vagent_known(rw->agent[i]), 0);
    }
    assert_int_equal(react_stats(c->room.react).in_flight, 0);
    for (uint32_t m = 0; m < MEMBERS; m++) {
        for (size_t k = 0; k < rw->rows.n; k++)
            rw->rows.p[k].n_rows = 0;
        assert_int_equal(vctl_rows(rw->c[m], match_row, rw, NULL), rw->rows.n);
        for (size_t k = 0; k < rw->rows.n; k++)
            assert_int_equal(rw->rows.p[k].n_rows, 1);
        assert_int_equal(state_digest(rw->c[m]->room.state), state_digest(c->room.state));
    }
    vlog_check_replay(rw->log, c);
    assert_int_equal(rw->n_two_at_once, 0);
}

/* ---- a life ---- */

static void fill(struct rconf *conf, struct arena *a) {
    conf->heartbeat_timeout_secs = 90;
    conf->launch_timeout_secs = 10;
    conf->min_job_age_secs = 30;
    conf->kill_wait_secs = 3;
    conf->max_launch_failures = 1000;
    conf->max_launch_backoff_secs = 5;
}

static void begin(struct random_world *rw, uint64_t seed) {
    *rw = (struct random_world){.w = vworld_new(seed)};
    log_set_level(LOG_LEVEL_ERROR);
    rig_make_dir(rw->dir, sizeof(rw->dir));
    rw->log = vlog_new(rw->w);
    vlog_watch(rw->log, on_entry, rw);
    vclient_init(&rw->client, &(struct vclient_conf){.world = rw->w, .call_ms = CALL_MS, .chance_long = 100, .long_ms = 90000,
                                                      .short_ms = 6000, .chance_dependency = 120, .chance_hold = 40});
    for (uint32_t i = 0; i < MEMBERS; i++) {
        rw->conf[i] = (struct vctl_conf){.dir = rw->dir, .member_id = i + 1, .fill = fill, .work_max_ms = 8};
        start_member(rw, i);
    }
    vctl_elect(rw->c[0]);
    for (uint32_t i = 0; i < AGENTS; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%u", i + 1);
        rw->agent[i] = vagent_new(rw->w, name, 2 + i % 3, 1000);
        vagent_watch(rw->agent[i], on_ran, rw);
        vagent_start(rw->agent[i]);
    }
    vworld_run(rw->w, 1000);
}

static bool is_quiet(void *arg) {
    return ((struct random_world *)arg)->client.n_open == 0;
}

static void heal(struct random_world *rw) {
    vnet_faults(rw->w, &(struct vfaults){.delay_min_ms = 1, .delay_max_ms = 3});
    vlog_refuse(rw->log, 0, 0, 0);
    for (uint32_t i = 0; i < AGENTS; i++) {
        vagent_cut(rw->agent[i], false);
        if (!vagent_is_up(rw->agent[i]))
            vagent_start(rw->agent[i]);
    }
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (!rw->c[i])
            start_member(rw, i);
    elect_somebody(rw);
    assert_true(vworld_run_until(rw->w, is_quiet, rw, 60000));
    vworld_run(rw->w, 900000);
}

static void end(struct random_world *rw) {
    for (uint32_t i = 0; i < MEMBERS; i++) {
        vctl_stop(rw->c[i]);
        buf_fini(&rw->snap[i]);
    }
    for (uint32_t i = 0; i < AGENTS; i++)
        vagent_free(rw->agent[i]);
    vclient_fini(&rw->client);
    vlog_free(rw->log);
    vworld_free(rw->w);
    drop_rows(rw);
    vec_fini(&rw->rows);
    vec_fini(&rw->finishes);
    map64_fini(&rw->begun);
    rig_remove_dir(rw->dir);
}

static void live(uint64_t seed, uint32_t steps) {
    struct random_world rw;
    begin(&rw, seed);
    for (uint32_t i = 1; i <= steps; i++) {
        act(&rw);
        vworld_run(rw.w, vworld_below(rw.w, 700));
        if (i % QUIET_EACH != 0 && i != steps)
            continue;
        heal(&rw);
        check_end(&rw);
    }
    print_message("seed %llu: %u steps, %llu entries, %zu jobs, %zu ended, %u of them lost nodes\n",
                  (unsigned long long)seed, steps, (unsigned long long)vlog_index(rw.log), rw.client.jobs.n, rw.rows.n,
                  rw.n_lost);
    end(&rw);
}

static uint64_t first_seed = 1;
static uint32_t n_seeds = 4, n_steps = 900;

static void a_long_life(void **state) {
    for (uint64_t seed = first_seed; seed < first_seed + n_seeds; seed++)
        live(seed, n_steps);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        n_seeds = 1;
    }
    if (argc > 2)
        n_steps = (uint32_t)strtoul(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_long_life)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
