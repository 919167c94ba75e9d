/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole lives of random small clusters, from the first job to the last, in virtual time.
 *
 *   promises   first come first served in one partition: the promise to the first job that waits is never delayed, it
 *              starts then or before, and everybody's turn comes
 *   soup       everything changes all the time: nothing is sold twice, and what the planner has kept from pass to pass
 *              gives the same plan, to the last byte, as one that starts from nothing
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "random_world.h"
#include "reference.h"

#define START 1000000
#define MAX_JOBS 400

struct sim {
    struct dice d;
    struct kind k;
    struct world w;
    struct sched *kept;
    struct arena arena;
    struct sched_plan plan;
    int64_t now;
    int64_t end[MAX_JOBS]; /* by job: when it really ends; 0: not running */
    uint64_t seed;
};

static void sim_init(struct sim *s, uint64_t seed, struct kind k) {
    memset(s, 0, sizeof(*s));
    s->seed = seed;
    s->d.state = seed;
    s->k = k;
    s->now = START;
    random_cluster(&s->d, &s->k, &s->w);
    s->kept = sched_new(NULL);
}

static void sim_fini(struct sim *s) {
    sched_free(s->kept);
    arena_fini(&s->arena);
    world_fini(&s->w);
}

static void print_nodes(const struct job_node *n, uint32_t count, struct str *out) {
    for (uint32_t i = 0; i < count; i++)
        str_addf(out, " %u/%s/%u/%llu/%u", n[i].node_id, n[i].name, n[i].cpus, (unsigned long long)n[i].mem_mb,
                 n[i].n_tasks);
}

static void print_plan(const struct sched_plan *p, struct str *out) {
    str_addf(out, "%u %u %u %u %d %llu\n", p->n_starts, p->n_notes, p->n_considered, p->n_backfilled, p->is_cut,
             (unsigned long long)p->index);
    for (uint32_t i = 0; i < p->n_starts; i++) {
        str_addf(out, "start %u %s %u", p->starts[i].job_id, p->starts[i].partition, p->starts[i].time_limit_min);
        print_nodes(p->starts[i].nodes, p->starts[i].n_nodes, out);
        str_addc(out, '\n');
    }
    for (uint32_t i = 0; i < p->n_notes; i++) {
        const struct sched_note *n = &p->notes[i];
        str_addf(out, "note %u %u %lld %llu\n", n->job_id, n->reason, (long long)n->expected_start_unix,
                 (unsigned long long)n->priority);
    }
    for (uint32_t i = 0; i < p->n_details; i++) {
        str_addf(out, "detail %u %s", p->details[i].job_id, p->details[i].text ? p->details[i].text : "");
        print_nodes(p->details[i].nodes, p->details[i].n_nodes, out);
        str_addc(out, '\n');
    }
}

/* Kept, kept again, and from nothing. */
static void plan_three_times(struct sim *s) {
    struct view v = world_view(&s->w);
    auto_str first = {0}, second = {0}, fresh = {0};
    sched_plan(s->kept, &v, s->now, &s->arena, &s->plan);
    print_plan(&s->plan, &first);
    auto_arena a = {0};
    struct sched_plan again;
    sched_plan(s->kept, &v, s->now, &a, &again);
    print_plan(&again, &second);
    struct sched *other = sched_new(NULL);
    sched_plan(other, &v, s->now, &a, &again);
    print_plan(&again, &fresh);
    sched_free(other);
    if (strcmp(str_text(&first), str_text(&second)) != 0 || strcmp(str_text(&first), str_text(&fresh)) != 0)
        fail_msg("seed %llu: plans differ:\n%s---\n%s---\n%s", (unsigned long long)s->seed, str_text(&first),
                 str_text(&second), str_text(&fresh));
}

static void nothing_sold_twice(const struct sim *s) {
    const struct node *n;
    for (uint64_t k = 0; (n = cow_next(s->w.nodes.root, &k)); k++) {
        uint64_t cpus = 0, mem = 0;
        const struct job *j;
        for (uint64_t i = 0; (j = cow_next(s->w.jobs.root, &i)); i++) {
            for (uint32_t m = 0; job_holds_nodes(j) && m < j->n_nodes; m++) {
                if (j->nodes[m].node_id == n->id && !j->nodes[m].is_done) {
                    cpus += j->nodes[m].cpus;
                    mem += j->nodes[m].mem_mb;
                }
            }
        }
        if (cpus > n->cpus || mem > n->mem_mb)
            fail_msg("seed %llu: node %s is sold twice: %llu of %u CPUs, %llu of %llu MB", (unsigned long long)s->seed,
                     n->name, (unsigned long long)cpus, n->cpus, (unsigned long long)mem,
                     (unsigned long long)n->mem_mb);
    }
}

/* A job runs to its limit, or ends earlier. */
static void start_all(struct sim *s) {
    for (uint32_t i = 0; i < s->plan.n_starts; i++) {
        const struct sched_start *st = &s->plan.starts[i];
        int64_t limit = st->time_limit_min == TIME_LIMIT_NONE ? 500 : (int64_t)st->time_limit_min * 60;
        world_start(&s->w, st, s->now);
        s->end[st->job_id] = s->now + (chance(&s->d, 50) ? limit : 1 + roll(&s->d, (uint32_t)limit));
    }
    nothing_sold_twice(s);
}

static void end_due(struct sim *s) {
    for (uint32_t id = 1; id < s->w.next_job; id++) {
        if (s->end[id] && s->end[id] <= s->now) {
            world_end(&s->w, id);
            s->end[id] = 0;
        }
    }
}

static int64_t next_end(const struct sim *s) {
    int64_t t = 0;
    for (uint32_t id = 1; id < s->w.next_job; id++) {
        if (s->end[id] && (!t || s->end[id] < t))
            t = s->end[id];
    }
    return t;
}

/* ---- promises ---- */

struct promise {
    uint32_t job_id;
    int64_t when;
};

static void check_promise(const struct sim *s, struct promise *p) {
    if (p->job_id) {
        const struct sched_note *n = note_in(&s->plan, p->job_id);
        const struct sched_detail *d = detail_in(&s->plan, p->job_id);
        if (n && (n->expected_start_unix > p->when || !d || !d->nodes || s->now > p->when))
            fail_msg("seed %llu: job %u was promised +%lld, at +%lld it is +%lld", (unsigned long long)s->seed,
                     p->job_id, (long long)(p->when - START), (long long)(s->now - START),
                     (long long)(n->expected_start_unix - START));
    }
    *p = (struct promise){0};
    for (uint32_t i = 0; i < s->plan.n_details; i++) {
        uint32_t id = s->plan.details[i].job_id;
        if (!s->plan.details[i].nodes)
            continue;
        assert_int_equal(p->job_id, 0); /* one promise in one partition */
        *p = (struct promise){id, note_in(&s->plan, id)->expected_start_unix};
    }
}

/* First come first served: no weights, nobody held, no --begin. */
static void make_fair(struct world *w, uint32_t id) {
    struct job j = *(const struct job *)cow_get(w->jobs.root, id);
    struct job_spec spec = *j.spec;
    spec.hold = false;
    spec.begin_unix = 0;
    if (!spec.time_limit_min || spec.time_limit_min == TIME_LIMIT_NONE)
        spec.time_limit_min = 2;
    j.spec = &spec;
    j.hold = HOLD_NONE;
    j.nice = 0;
    world_put_job(w, &j);
}

static uint32_t count_possible(const struct sim *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->plan.n_notes; i++)
        n += s->plan.notes[i].reason == REASON_RESOURCES || s->plan.notes[i].reason == REASON_PRIORITY;
    return n;
}

static void promises_kept(uint64_t seed) {
    struct sim s;
    sim_init(&s, seed, (struct kind){.max_nodes = 5, .max_cpus = 4, .max_mem = 8, .max_parts = 1, .max_minutes = 6});
    s.w.conf.weight_age = s.w.conf.weight_job_size = s.w.conf.weight_partition = 0;
    struct promise p = {0};
    uint32_t n_jobs = 20 + roll(&s.d, 40);
    int64_t work = 0, arrival = START;
    while (s.w.next_job <= n_jobs || count_possible(&s) || next_end(&s)) {
        end_due(&s);
        while (s.w.next_job <= n_jobs && arrival <= s.now) {
            make_fair(&s.w, random_job(&s.d, &s.k, &s.w, s.now));
            work += 360;
            arrival += roll(&s.d, 60);
        }
        plan_three_times(&s);
        check_promise(&s, &p);
        auto_str why = {0};
        struct view v = world_view(&s.w);
        if (chance(&s.d, 10) && !reference_check(&v, s.now, 1, &s.plan, &why))
            fail_msg("seed %llu: %s", (unsigned long long)seed, str_text(&why));
        start_all(&s);
        arena_reset(&s.arena);
        int64_t end = next_end(&s), next = s.w.next_job <= n_jobs ? arrival : end;
        if (end && end < next)
            next = end;
        s.now = MAX(next, s.now + 1);
        assert_true(s.now <= arrival + work + 1); /* nobody waits for ever */
    }
    sim_fini(&s);
}

static void promises(void **state) {
    for (uint32_t i = 0; i < property_cases(150); i++)
        promises_kept(property_seed() * 7919 + i);
}

/* ---- soup ---- */

static void change_node(struct sim *s) {
    uint32_t id = 1 + roll(&s->d, s->w.next_node - 1);
    const struct node *old = cow_get(s->w.nodes.root, id);
    struct node n = *old;
    struct drain drain = {.owner = "admin", .text = "x"};
    n.base = chance(&s->d, 80) ? NODE_UP : NODE_DOWN;
    n.not_responding = chance(&s->d, 10);
    n.n_drains = chance(&s->d, 20);
    n.drains = &drain;
    if (chance(&s->d, 10))
        n.weight = 1 + roll(&s->d, 3);
    uint32_t cpus = 1 + roll(&s->d, s->k.max_cpus);
    if (chance(&s->d, 10))
        n.cpus = MAX(n.alloc_cpus, cpus);
    world_put_node(&s->w, &n);
}

static void change_part(struct sim *s) {
    uint32_t id = 1 + roll(&s->d, s->w.next_part - 1);
    const struct part *old = cow_get(s->w.parts.root, id);
    struct part p = *old;
    p.state = chance(&s->d, 80) ? PART_UP : roll(&s->d, 4);
    p.all_nodes = chance(&s->d, 50);
    p.priority_tier = roll(&s->d, 3);
    cow_put(&s->w.parts, id, rec_pack(part_rec(), &p));
}

/* Waiting ones are held, released, cancelled; running ones begin to complete, are clean here and there, are
 * requeued. */
static void change_job(struct sim *s) {
    if (s->w.next_job == 1)
        return;
    uint32_t id = 1 + roll(&s->d, s->w.next_job - 1);
    struct job *copy =
        rec_pack(job_rec(), cow_get(s->w.jobs.root, id)); /* the record itself may go while we change it */
    struct job j = *copy;
    struct job_node nodes[16];
    if (j.state == JOB_PENDING && !j.completing) {
        j.hold = roll(&s->d, 3);
        if (chance(&s->d, 20))
            j.state = JOB_CANCELLED;
        world_put_job(&s->w, &j);
    } else if (job_holds_nodes(&j) && chance(&s->d, 50)) {
        if (chance(&s->d, 70)) {
            j.completing = true;
            j.state = chance(&s->d, 30) ? JOB_PENDING : JOB_FAILED;
        }
        memcpy(nodes, j.nodes, j.n_nodes * sizeof(*nodes));
        if (j.completing)
            nodes[roll(&s->d, j.n_nodes)].is_done = true;
        j.nodes = nodes;
        world_put_job(&s->w, &j);
    } else if (job_holds_nodes(&j)) {
        bool again = j.state == JOB_PENDING;
        world_end(&s->w, id);
        s->end[id] = 0;
        if (again) {
            j.nodes = NULL;
            j.n_nodes = 0;
            j.completing = false;
            j.retry_unix = s->now + roll(&s->d, 30);
            world_put_job(&s->w, &j);
        }
    } else if (job_is_over(&j) && chance(&s->d, 30)) {
        cow_del(&s->w.jobs, id);
        world_put_job(&s->w, &j); /* the same values in another place */
    }
    rec_free(copy);
}

static void soup_once(uint64_t seed) {
    struct sim s;
    sim_init(&s, seed, (struct kind){.max_nodes = 6, .max_cpus = 6, .max_mem = 16, .max_parts = 3, .max_minutes = 6,
                                     .ill_nodes = true, .odd_parts = true});
    static const char *const more[] = {"x1", "x2", "n0"};
    uint32_t n_more = 0;
    for (int step = 0; step < 60; step++) {
        end_due(&s);
        for (uint32_t n = roll(&s.d, 4); n && s.w.next_job < MAX_JOBS - 1; n--)
            random_job(&s.d, &s.k, &s.w, s.now);
        for (uint32_t n = roll(&s.d, 4); n; n--)
            change_job(&s);
        if (chance(&s.d, 30))
            change_node(&s);
        if (chance(&s.d, 5))
            change_part(&s);
        if (chance(&s.d, 5) && n_more < ARRAY_LEN(more))
            world_node(&s.w, more[n_more++], 1 + roll(&s.d, 6), roll(&s.d, 16));
        s.w.conf.max_jobs_per_cycle = chance(&s.d, 10) ? 1 + roll(&s.d, 5) : 0;
        plan_three_times(&s);
        start_all(&s);
        arena_reset(&s.arena);
        s.now += roll(&s.d, 60);
    }
    sim_fini(&s);
}

static void soup(void **state) {
    for (uint32_t i = 0; i < property_cases(150); i++)
        soup_once(property_seed() * 6101 + i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises),
        cmocka_unit_test(soup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
