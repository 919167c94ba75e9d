/* SPDX-License-Identifier: Apache-2.0
 *
 * Lives of random small clusters with generic resources, features, licences, arrays and nodes of one's own, in virtual
 * time. At each pass a slow judge, which shares nothing with the planner but the model:
 *
 *   nothing is sold twice: CPUs, memory, devices by index, licences, nodes that are somebody's alone, an array's bound
 *   who starts has what it asked for
 *   nobody who waits could start on nodes that nobody was promised: all sets of nodes are tried
 *   a planner that starts from nothing says the same
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

#define START 1000000
#define N_NODES 4u
#define N_JOBS 60u

static const char *const names[N_NODES] = {"n1", "n2", "n3", "n4"};
static const char *const kinds[] = {"red", "blue"};
static const char *const files[] = {"/dev/a0", "/dev/a1", "/dev/a2"};

struct life {
    struct dice d;
    struct world w;
    struct sched *kept;
    struct arena arena;
    struct sched_plan plan;
    int64_t now;
    uint64_t seed;
};

static void wrong(const struct life *l, uint32_t job, const char *what) {
    fail_msg("seed %llu, second %lld: job %u: %s", (unsigned long long)l->seed, (long long)(l->now - START), job, what);
}

static void make_cluster(struct life *l) {
    static const struct license lic[] = {{"l1", 2}, {"l2", 3}};
    world_init(&l->w);
    l->w.conf.licenses = lic;
    l->w.conf.n_licenses = 2;
    for (uint32_t i = 0; i < N_NODES; i++) {
        const char *feature = kinds[roll(&l->d, 2)];
        struct gres g[2] = {{.name = "gpu", .type = "a", .count = 1 + roll(&l->d, 3), .files = files, .n_files = 1},
                            {.name = "gpu", .type = "b", .count = 1 + roll(&l->d, 2)}};
        g[0].n_files = (uint32_t)g[0].count;
        g[1].first = (uint32_t)g[0].count;
        struct node n = {.id = l->w.next_node++, .name = names[i], .cpus = 2 + roll(&l->d, 5), .mem_mb = 8 + roll(&l->d, 8),
                         .weight = 1, .base = NODE_UP, .features = &feature, .n_features = 1, .gres = g,
                         .n_gres = chance(&l->d, 70) ? 1 + roll(&l->d, 2) : 0};
        world_put_node(&l->w, &n);
    }
    struct part p = {.name = "debug", .all_nodes = true, .max_time_min = TIME_LIMIT_NONE, .default_time_min = 2, .is_default = true};
    if (chance(&l->d, 25)) {
        p.over_subscribe = OVER_YES;
        p.over_count = 2 + roll(&l->d, 2);
    }
    p.exclusive_user = chance(&l->d, 10);
    p.max_cpus_per_node = chance(&l->d, 15) ? 2 + roll(&l->d, 2) : 0;
    world_part(&l->w, p);
}

static void add_job(struct life *l) {
    static const char *const wishes[] = {"red", "blue", "red|blue", "red&blue", "[red|blue]"};
    struct gres_ask g = {.name = "gpu", .type = chance(&l->d, 50) ? "a" : NULL, .count = 1 + roll(&l->d, 2), .per = roll(&l->d, 3)};
    struct license_ask lic[2] = {{"l1", 1 + roll(&l->d, 2), false}, {"l2", 1 + roll(&l->d, 2), chance(&l->d, 50)}};
    struct array_range r = {roll(&l->d, 3), 3 + roll(&l->d, 6)};
    struct job_more m = {0};
    struct job_spec s = {.n_tasks = 1 + roll(&l->d, 6), .time_limit_min = 1 + roll(&l->d, 4), .uid = 1 + roll(&l->d, 3), .more = &m};
    s.n_tasks_given = s.n_tasks;
    s.mem_node_mb = chance(&l->d, 30) ? 1 + roll(&l->d, 8) : 0;
    if (chance(&l->d, 30))
        s.min_nodes = s.max_nodes = 1 + roll(&l->d, MIN(s.n_tasks, 3u));
    if (chance(&l->d, 40))
        m.gres = &g, m.n_gres = 1;
    if (chance(&l->d, 25))
        m.features = wishes[roll(&l->d, ARRAY_LEN(wishes))];
    if (chance(&l->d, 20))
        m.licenses = lic, m.n_licenses = 1 + roll(&l->d, 2);
    if (chance(&l->d, 20))
        m.array_ranges = &r, m.n_array_ranges = 1, m.array_max_running = roll(&l->d, 4);
    if (chance(&l->d, 20))
        m.exclusive = 1 + roll(&l->d, 2);
    m.oversubscribe = !m.exclusive && chance(&l->d, 40);
    m.tasks_per_node = chance(&l->d, 15) ? 1 + roll(&l->d, 3) : 0;
    world_submit(&l->w, s, l->now);
}

/* ---- the judge ---- */

struct stock { /* of one node: what is left */
    const struct node *n;
    int64_t cpus, mem, over, part, gres[2];
    uint32_t devices; /* taken, bits */
    uint32_t n_jobs, n_none, n_over, user; /* user + 1: it is his alone */
    uint32_t users;                        /* bits of those who are there */
    bool is_promised;
};

static const struct part *part_of(const struct life *l) {
    return cow_get(l->w.parts.root, 1);
}

static uint32_t share_wanted(const struct life *l, const struct job *j) {
    const struct part *p = part_of(l);
    uint32_t x = job_spec_more(j->spec)->exclusive;
    if (x == EXCLUSIVE_NODE)
        return SHARE_NONE;
    if (x == EXCLUSIVE_USER || p->exclusive_user)
        return SHARE_USER;
    return p->over_subscribe == OVER_YES && job_spec_more(j->spec)->oversubscribe ? SHARE_OVER : SHARE_CORES;
}

static void take(const struct life *l, struct stock *s, const struct job *j, const struct job_node *jn) {
    s->n_jobs++;
    s->users |= 1u << j->spec->uid;
    s->n_none += jn->share == SHARE_NONE;
    s->n_over += jn->share == SHARE_OVER;
    if (jn->share == SHARE_USER) {
        if (s->user && s->user != j->spec->uid + 1)
            wrong(l, j->id, "two users have a node for themselves");
        s->user = j->spec->uid + 1;
    }
    s->part += jn->cpus;
    s->mem -= (int64_t)jn->mem_mb;
    if (jn->share == SHARE_OVER)
        s->over += jn->cpus;
    else
        s->cpus -= jn->cpus;
    for (uint32_t i = 0; i < jn->n_gres; i++) {
        bool is_a = strcmp(jn->gres[i].type, "a") == 0;
        s->gres[!is_a] -= (int64_t)jn->gres[i].count;
        if (is_a != (jn->gres[i].n_indexes == jn->gres[i].count))
            wrong(l, j->id, "devices don't go with the count");
        for (uint32_t k = 0; k < jn->gres[i].n_indexes; k++) {
            if (s->devices >> jn->gres[i].indexes[k] & 1 || jn->gres[i].indexes[k] >= s->n->gres[0].count)
                wrong(l, j->id, "a device is not there or given twice");
            s->devices |= 1u << jn->gres[i].indexes[k];
        }
    }
}

static void check_stock(const struct life *l, const struct stock *s, uint32_t job) {
    const struct part *p = part_of(l);
    bool mixed = s->n_over && s->n_over < s->n_jobs;
    if (s->cpus < 0 || s->mem < 0 || s->gres[0] < 0 || s->gres[1] < 0 || s->over > (int64_t)s->n->cpus * p->over_count)
        wrong(l, job, "a node is sold twice");
    if (mixed || (s->n_none && s->n_jobs > 1) || (s->user && s->users != 1u << (s->user - 1)))
        wrong(l, job, "a node is shared by those who may not");
    if (p->max_cpus_per_node && s->part > p->max_cpus_per_node)
        wrong(l, job, "more CPUs of a node than the partition may have");
}

static void take_stock(const struct life *l, struct stock *s) {
    const struct job *j;
    memset(s, 0, N_NODES * sizeof(*s));
    for (uint32_t i = 0; i < N_NODES; i++) {
        const struct node *n = cow_get(l->w.nodes.root, i + 1);
        s[i] = (struct stock){.n = n, .cpus = n->cpus, .mem = (int64_t)n->mem_mb};
        for (uint32_t k = 0; k < n->n_gres; k++)
            s[i].gres[k] = (int64_t)n->gres[k].count;
    }
    for (uint64_t k = 0; (j = cow_next(l->w.jobs.root, &k)); k++) {
        for (uint32_t i = 0; job_holds_nodes(j) && i < j->n_nodes; i++) {
            take(l, &s[j->nodes[i].node_id - 1], j, &j->nodes[i]);
            check_stock(l, &s[j->nodes[i].node_id - 1], j->id);
        }
    }
}

/* Licences in use, without those that a choice left open. */
static void licences_left(const struct life *l, int64_t left[2]) {
    const struct job *j;
    left[0] = 2, left[1] = 3;
    for (uint64_t k = 0; (j = cow_next(l->w.jobs.root, &k)); k++) {
        const struct job_rare *r = job_rare_of(j);
        const struct job_more *m = job_spec_more(j->spec);
        const struct license_ask *a = r->n_licenses ? r->licenses : m->licenses;
        uint32_t n = r->n_licenses ? r->n_licenses : m->n_licenses;
        for (uint32_t i = 0; job_holds_nodes(j) && i < n; i++)
            left[a[i].name[1] - '1'] -= a[i].count;
    }
    if (left[0] < 0 || left[1] < 0)
        wrong(l, 0, "a licence is given twice");
}

static uint32_t running_of(const struct life *l, uint32_t array_id) {
    uint32_t n = 0;
    const struct job *j;
    for (uint64_t k = 0; (j = cow_next(l->w.jobs.root, &k)); k++)
        n += job_holds_nodes(j) && j->array && j->array->job_id == array_id;
    return n;
}

static bool is_featured(const struct stock *s, const char *wish, const char *all) {
    const char *have = s->n->features[0];
    if (!wish || strcmp(wish, "red|blue") == 0)
        return true;
    if (*wish == '[')
        return strcmp(have, all) == 0; /* all nodes have this one */
    return strcmp(have, wish) == 0; /* none has two */
}

/* Tasks of a job on a node; per job: what it could give in all. */
static uint32_t room(const struct life *l, const struct stock *s, const struct job *j, int64_t *out_spare) {
    const struct job_spec *x = j->spec;
    const struct job_more *m = job_spec_more(x);
    const struct part *p = part_of(l);
    uint32_t share = share_wanted(l, j);
    int64_t cpus = s->cpus;
    *out_spare = 0;
    if (s->n_none || (share == SHARE_NONE && s->n_jobs) || (s->user && s->user != x->uid + 1) ||
        (share == SHARE_USER && (s->users & ~(1u << x->uid))))
        return 0;
    if (share == SHARE_OVER ? s->n_over < s->n_jobs : s->n_over > 0)
        return 0;
    if (share == SHARE_OVER)
        cpus = MIN((int64_t)s->n->cpus * p->over_count - s->over, (int64_t)s->n->cpus);
    if (p->max_cpus_per_node) {
        cpus = MIN(cpus, (int64_t)p->max_cpus_per_node - s->part);
        if (share == SHARE_NONE && p->max_cpus_per_node < s->n->cpus)
            return 0;
    }
    if ((int64_t)x->mem_node_mb > s->mem || cpus <= 0)
        return 0;
    int64_t tasks = m->tasks_per_node ? MIN(cpus, (int64_t)m->tasks_per_node) : cpus;
    if (!m->n_gres)
        return (uint32_t)tasks;
    int64_t have = s->gres[0] + (m->gres->type ? 0 : s->gres[1]), count = (int64_t)m->gres->count;
    *out_spare = have;
    if (m->gres->per == GRES_PER_TASK)
        return (uint32_t)MIN(tasks, have / count);
    return have < (m->gres->per == GRES_PER_NODE ? count : 1) ? 0 : (uint32_t)tasks;
}

static bool could_start(const struct life *l, const struct stock *s, const struct job *j) {
    const struct job_spec *x = j->spec;
    const struct job_more *m = job_spec_more(x);
    for (unsigned set = 1; set < 1u << N_NODES; set++) {
        uint32_t n = 0, tasks = 0;
        int64_t spare, sum = 0;
        bool ok = true;
        const char *all = NULL;
        for (uint32_t i = 0; i < N_NODES; i++) {
            if (!(set >> i & 1))
                continue;
            all = all ? all : s[i].n->features[0];
            uint32_t here = room(l, &s[i], j, &spare);
            ok &= here > 0 && !s[i].is_promised && is_featured(&s[i], m->features, all);
            n++;
            tasks += here;
            sum += spare;
        }
        bool is_total = m->n_gres && m->gres->per == GRES_PER_JOB;
        ok &= n >= MAX(x->min_nodes, 1) && n <= (x->max_nodes ? x->max_nodes : x->n_tasks) && tasks >= x->n_tasks;
        if (ok && (!is_total || (sum >= (int64_t)m->gres->count && n <= m->gres->count)))
            return true;
    }
    return false;
}

static void check_start(const struct life *l, const struct sched_start *st) {
    const struct job *j = cow_get(l->w.jobs.root, st->job_id);
    const struct job_more *m = job_spec_more(j->spec);
    uint64_t tasks = 0, gres = 0;
    for (uint32_t i = 0; i < st->n_nodes; i++) {
        const struct node *n = cow_get(l->w.nodes.root, st->nodes[i].node_id);
        const struct job_node *jn = &st->nodes[i];
        uint64_t here = 0;
        tasks += jn->n_tasks;
        for (uint32_t k = 0; k < jn->n_gres; k++)
            here += jn->gres[k].count;
        gres += here;
        if (jn->share != share_wanted(l, j) || jn->cpus != (jn->share == SHARE_NONE ? n->cpus : jn->n_tasks))
            wrong(l, j->id, "CPUs or share");
        if (jn->share != SHARE_NONE && m->n_gres &&
            ((m->gres->per == GRES_PER_NODE && here != m->gres->count) ||
             (m->gres->per == GRES_PER_TASK && here != m->gres->count * jn->n_tasks)))
            wrong(l, j->id, "not the resources that it asked for");
        struct stock one = {.n = n};
        if (!is_featured(&one, m->features, ((const struct node *)cow_get(l->w.nodes.root, st->nodes[0].node_id))->features[0]))
            wrong(l, j->id, "a node without its features");
    }
    bool is_total = m->n_gres && m->gres->per == GRES_PER_JOB && st->nodes[0].share != SHARE_NONE;
    if (tasks != j->spec->n_tasks || (is_total && gres != m->gres->count))
        wrong(l, j->id, "not what it asked for");
}

/* After the starts: who was left although it could have started on nodes that nobody was promised. */
static void check_left(const struct life *l) {
    struct stock s[N_NODES];
    int64_t left[2];
    take_stock(l, s);
    licences_left(l, left);
    for (uint32_t i = 0; i < l->plan.n_details; i++)
        for (uint32_t k = 0; k < l->plan.details[i].n_nodes; k++)
            s[l->plan.details[i].nodes[k].node_id - 1].is_promised = true;
    for (uint32_t i = 0; i < l->plan.n_notes; i++) {
        const struct sched_note *n = &l->plan.notes[i];
        const struct job *j = cow_get(l->w.jobs.root, n->job_id);
        uint32_t most = j->array ? j->array->max_running : 0;
        bool is_free = n->reason != REASON_LICENSES && n->reason != REASON_ARRAY_TASK_LIMIT;
        if (n->reason == REASON_ARRAY_TASK_LIMIT && (!most || running_of(l, j->id) < most))
            wrong(l, j->id, "its array may run more");
        if (is_free && could_start(l, s, j))
            wrong(l, j->id, "passed over though it fits");
    }
    const struct job *j;
    for (uint64_t k = 0; (j = cow_next(l->w.jobs.root, &k)); k++) {
        if (j->array && j->array->job_id == j->id && j->array->max_running && running_of(l, j->id) > j->array->max_running)
            wrong(l, j->id, "more tasks than its array may run");
    }
}

static bool is_same_node(const struct job_node *x, const struct job_node *y) {
    struct job_node *a = rec_pack(job_node_rec(), x), *b = rec_pack(job_node_rec(), y);
    bool same = rec_hash(a) == rec_hash(b);
    rec_free(a);
    rec_free(b);
    return same;
}

static void check_same(struct life *l, const struct view *v) {
    auto_arena a = {0};
    struct sched_plan p;
    struct sched *fresh = sched_new(NULL);
    sched_plan(fresh, v, l->now, &a, &p);
    bool same = p.n_starts == l->plan.n_starts && p.n_notes == l->plan.n_notes;
    for (uint32_t i = 0; same && i < p.n_notes; i++)
        same = memcmp(&p.notes[i], &l->plan.notes[i], sizeof(p.notes[i])) == 0;
    for (uint32_t i = 0; same && i < p.n_starts; i++) {
        const struct sched_start *x = &p.starts[i], *y = &l->plan.starts[i];
        same = x->job_id == y->job_id && x->array_task == y->array_task && x->n_nodes == y->n_nodes;
        for (uint32_t k = 0; same && k < x->n_nodes; k++)
            same = is_same_node(&x->nodes[k], &y->nodes[k]);
    }
    sched_free(fresh);
    if (!same)
        wrong(l, 0, "another plan from the same input");
}

/* ---- a life ---- */

static void end_some(struct life *l) {
    for (uint32_t id = 1; id < l->w.next_job; id++) {
        const struct job *j = cow_get(l->w.jobs.root, id);
        if (job_holds_nodes(j) && (chance(&l->d, 25) || j->start_ms / 1000 + j->time_limit_min * 60 <= l->now))
            world_end(&l->w, id);
    }
}

static void live(uint64_t seed) {
    struct life l = {.d = {seed}, .seed = seed, .now = START};
    make_cluster(&l);
    l.kept = sched_new(NULL);
    for (int step = 0; step < 25; step++) {
        for (uint32_t n = roll(&l.d, 4); n && l.w.next_job < N_JOBS; n--)
            add_job(&l);
        struct view v = world_view(&l.w);
        sched_plan(l.kept, &v, l.now, &l.arena, &l.plan);
        check_same(&l, &v);
        for (uint32_t i = 0; i < l.plan.n_starts; i++)
            check_start(&l, &l.plan.starts[i]);
        for (uint32_t i = 0; i < l.plan.n_starts; i++)
            world_start(&l.w, &l.plan.starts[i], l.now);
        check_left(&l);
        arena_reset(&l.arena);
        l.now += 20 + roll(&l.d, 40);
        end_some(&l);
    }
    sched_free(l.kept);
    arena_fini(&l.arena);
    world_fini(&l.w);
}

static void lives(void **state) {
    for (uint32_t i = 0; i < property_cases(1500); i++)
        live(property_seed() * 9973 + i);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
