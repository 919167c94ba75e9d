/* SPDX-License-Identifier: Apache-2.0
 *
 * Over rich_world.h:
 *
 *   order      ids of nodes and partitions, that is the order of the tables, decide nothing: the plan is the same by names
 *   promises   first come first served, in virtual time: the promise to the first job that waits, whatever it asks for, is
 *              never delayed, and it starts then or before; and the judge agrees with each pass on the way
 *   whys       what is said of why a job waits goes with its reason, and names what the reason is about
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
#include "judge.h"

#define START 1000000
#define MAX_JOBS 200

/* ---- order ---- */

static void print_by_name(const struct sched_plan *p, struct str *out) {
    for (uint32_t i = 0; i < p->n_starts; i++) {
        const struct sched_start *s = &p->starts[i];
        str_addf(out, "start %u.%u %s %u:", s->job_id, s->array_task, s->partition, s->time_limit_min);
        for (uint32_t k = 0; k < s->n_nodes; k++) {
            str_addf(out, " %s %u/%llu/%u", s->nodes[k].name, s->nodes[k].cpus, (unsigned long long)s->nodes[k].mem_mb,
                     s->nodes[k].n_tasks);
            for (uint32_t m = 0; m < s->nodes[k].n_gres; m++)
                str_addf(out, " %s:%llu@%u", s->nodes[k].gres[m].name, (unsigned long long)s->nodes[k].gres[m].count,
                         s->nodes[k].gres[m].n_indexes ? s->nodes[k].gres[m].indexes[0] : 99);
        }
        str_addc(out, '\n');
    }
    for (uint32_t i = 0; i < p->n_notes; i++)
        str_addf(out, "note %u %u %lld\n", p->notes[i].job_id, p->notes[i].reason, (long long)p->notes[i].expected_start_unix);
    for (uint32_t i = 0; i < p->n_details; i++) {
        str_addf(out, "detail %u %s", p->details[i].job_id, p->details[i].text ? p->details[i].text : "");
        for (uint32_t k = 0; k < p->details[i].n_nodes; k++)
            str_addf(out, " %s %u", p->details[i].nodes[k].name, p->details[i].nodes[k].cpus);
        str_addc(out, '\n');
    }
}

/* The same with ids turned round. */
static void turn_round(struct world *from, struct world *to) {
    struct view v = world_view(from);
    const struct node *n;
    const struct part *p;
    const struct job *j;
    world_init(to);
    to->conf = from->conf;
    for (uint64_t k = 0; (n = view_next_node(&v, &k)); k++) {
        struct node m = *n;
        m.id = from->next_node - n->id;
        world_put_node(to, &m);
    }
    for (uint64_t k = 0; (p = view_next_part(&v, &k)); k++) {
        struct part q = *p;
        q.id = from->next_part - p->id;
        cow_put(&to->parts, q.id, rec_pack(part_rec(), &q));
    }
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++) {
        struct job o = *j;
        struct job_node nodes[RICH_NODES];
        for (uint32_t i = 0; i < j->n_nodes; i++)
            nodes[i] = j->nodes[i], nodes[i].node_id = from->next_node - j->nodes[i].node_id;
        o.nodes = nodes;
        world_put_job(to, &o);
    }
}

static void start_all(struct world *w, const struct sched_plan *p, int64_t now) {
    for (uint32_t i = 0; i < p->n_starts; i++)
        world_start(w, &p->starts[i], now);
}

static void order_once(uint64_t seed) {
    struct dice d = {seed};
    struct world w, other;
    rich_cluster(&d, T_ALL, &w);
    for (int64_t now = START; now < START + 200; now += 40) {
        for (uint32_t n = 1 + roll(&d, 4); n; n--)
            rich_job(&d, T_ALL, &w, now);
        turn_round(&w, &other);
        auto_arena a = {0};
        auto_str first = {0}, second = {0};
        struct world *both[2] = {&w, &other};
        struct sched_plan p[2];
        for (int i = 0; i < 2; i++) {
            struct view v = world_view(both[i]);
            struct sched *s = sched_new(NULL);
            sched_plan(s, &v, now, &a, &p[i]);
            print_by_name(&p[i], i ? &second : &first);
            sched_free(s);
        }
        if (strcmp(str_text(&first), str_text(&second)) != 0)
            fail_msg("seed %llu: ids decide:\n%s---\n%s", (unsigned long long)seed, str_text(&first), str_text(&second));
        world_fini(&other);
        start_all(&w, &p[0], now);
    }
    world_fini(&w);
}

static void order(void **state) {
    for (uint32_t i = 0; i < property_cases(2000); i++)
        order_once(property_seed() * 7907 + i);
}

/* ---- promises ---- */

#define T_FAIR (T_ALL & ~(T_PARTS | T_LICENCES | T_DEPS)) /* others may come to be eligible before it, rightly */

struct life {
    struct dice d;
    struct world w;
    uint64_t seed;
    int64_t now, when; /* when the first one was promised to start */
    uint32_t promised; /* its id; 0: none was */
    unsigned themes;
    uint32_t n_kept;
};

/* Nobody overtakes by right. */
static void make_fair(struct world *w, uint32_t id) {
    struct job j = *(const struct job *)cow_get(w->jobs.root, id);
    struct job_spec spec = *j.spec;
    struct job_more more = *spec.more;
    struct job_array array;
    spec.begin_unix = 0;
    spec.time_limit_min = spec.time_limit_min ? spec.time_limit_min : 2;
    more.deadline_unix = 0;
    more.array_max_running = 0;
    if (more.features) /* it may wait without a promise, since nobody has what it asks for, and start as it prefers */
        more.prefer = NULL;
    spec.more = &more;
    j.spec = &spec;
    j.hold = HOLD_NONE;
    j.nice = 0;
    if (j.array) {
        array = *j.array;
        array.max_running = 0;
        j.array = &array;
    }
    world_put_job(w, &j);
}

static void check_promise(struct life *l, const struct sched_plan *p) {
    if (l->promised && start_in(p, l->promised))
        l->n_kept++;
    else if (l->promised) {
        const struct sched_note *n = note_in(p, l->promised);
        const struct sched_detail *d = detail_in(p, l->promised);
        if (!n || !d || !d->nodes || n->expected_start_unix > l->when || l->now >= l->when) {
            auto_str out = {0};
            rich_print(&l->w, l->now, &out);
            fail_msg("seed %llu, themes %u: job %u was promised %+lld, now it is %+lld\n%s", (unsigned long long)l->seed, l->themes,
                     l->promised, (long long)(l->when - l->now), n ? (long long)(n->expected_start_unix - l->now) : 0, str_text(&out));
        }
    }
    l->promised = 0;
    for (uint32_t i = 0; i < p->n_details; i++) {
        if (!p->details[i].nodes)
            continue;
        assert_int_equal(l->promised, 0); /* one partition, one promise */
        l->promised = p->details[i].job_id;
        l->when = note_in(p, l->promised)->expected_start_unix;
    }
}

/* Some end before their time, all in it. */
static void end_some(struct life *l, int64_t *next) {
    const struct job *j;
    uint32_t over[MAX_JOBS], n = 0;
    *next = 0;
    for (uint64_t k = 0; (j = cow_next(l->w.jobs.root, &k)); k++) {
        if (!job_holds_nodes(j))
            continue;
        int64_t end = j->start_ms / 1000 + (int64_t)j->time_limit_min * 60;
        if (end <= l->now || chance(&l->d, 10))
            over[n++] = j->id;
        else if (!*next || end < *next)
            *next = end;
    }
    while (n)
        world_end(&l->w, over[--n]);
}

static uint32_t live(uint64_t seed, unsigned themes) {
    struct life l = {.d = {seed}, .seed = seed, .now = START, .themes = themes};
    struct sched *s = sched_new(NULL);
    rich_cluster(&l.d, themes, &l.w);
    for (int step = 0; step < 40; step++) {
        int64_t next;
        end_some(&l, &next);
        for (uint32_t n = roll(&l.d, 3); n && l.w.next_job < MAX_JOBS - 20; n--)
            make_fair(&l.w, rich_job(&l.d, themes, &l.w, l.now));
        struct view v = world_view(&l.w);
        auto_arena a = {0};
        auto_str why = {0};
        struct sched_plan p;
        uint32_t seen = 0;
        sched_plan(s, &v, l.now, &a, &p);
        if (!judge_plan(&v, l.now, 1, &p, &why, &seen))
            fail_msg("seed %llu, themes %u, step %d: %s", (unsigned long long)seed, themes, step, str_text(&why));
        check_promise(&l, &p);
        start_all(&l.w, &p, l.now);
        int64_t soon = l.now + 1 + roll(&l.d, 60);
        l.now = l.promised ? MIN(soon, l.when) : soon;
    }
    sched_free(s);
    world_fini(&l.w);
    return l.n_kept;
}

static void promises(void **state) {
    uint32_t kept = 0, n = property_cases(1500);
    for (uint32_t i = 0; i < n; i++)
        kept += live(property_seed() * 15013 + i, i % 3 ? T_FAIR & (1u << i % 12 | 1u << i / 12 % 12) : T_FAIR);
    assert_true(n < 100 || kept > n); /* that many promises were seen through */
}

/* ---- whys ---- */

static bool has_kind(const struct why *y, const char *kind) {
    for (uint32_t i = 0; i < y->n_facts; i++) {
        if (strcmp(y->facts[i].kind, kind) == 0)
            return true;
    }
    return false;
}

static bool names_reason(const struct why *y) {
    switch (y->reason) {
    case REASON_HELD_USER:
        return has_kind(y, "hold");
    case REASON_DEPENDENCY:
    case REASON_DEP_NEVER:
        return has_kind(y, "dependency");
    case REASON_BEGIN_TIME:
        return has_kind(y, "begin");
    case REASON_LICENSES:
        return has_kind(y, "licence");
    case REASON_ARRAY_TASK_LIMIT:
        return has_kind(y, "array");
    case REASON_PARTITION_TIME:
    case REASON_PARTITION_NODES:
        return has_kind(y, "limit");
    case REASON_PARTITION_DOWN:
    case REASON_PARTITION_INACTIVE:
        return has_kind(y, "partition");
    case REASON_DEADLINE:
        return has_kind(y, "deadline");
    case REASON_PRIORITY:
        return y->n_before_all > 0;
    default:
        return has_kind(y, "nodes") && y->n_nodes > 0;
    }
}

static void whys_once(uint64_t seed) {
    struct dice d = {seed};
    struct world w;
    rich_cluster(&d, T_ALL, &w);
    for (int64_t now = START; now < START + 120; now += 40) {
        for (uint32_t n = 1 + roll(&d, 5); n; n--)
            rich_job(&d, T_ALL, &w, now);
        auto_arena a = {0};
        struct view v = world_view(&w);
        struct sched *s = sched_new(NULL);
        struct sched_plan p;
        sched_plan(s, &v, now, &a, &p);
        for (uint32_t i = 0; i < p.n_notes; i++) {
            struct why y;
            assert_int_equal(sched_explain(&v, p.notes[i].job_id, now, &a, &y, NULL), 0);
            if (!y.starts && (y.reason != p.notes[i].reason || y.expected_unix != p.notes[i].expected_start_unix || !names_reason(&y)))
                fail_msg("seed %llu: job %u waits for %s, and that is not said", (unsigned long long)seed, p.notes[i].job_id,
                         job_reason_word(p.notes[i].reason));
        }
        sched_free(s);
        start_all(&w, &p, now);
    }
    world_fini(&w);
}

static void whys(void **state) {
    for (uint32_t i = 0; i < property_cases(1500); i++)
        whys_once(property_seed() * 12007 + i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(promises),
        cmocka_unit_test(whys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
