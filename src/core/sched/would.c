/* SPDX-License-Identifier: Apache-2.0
 *
 * When a job would start beside what runs, of the partitions that it names in the earliest. Jobs that wait are not
 * looked at, as with Slurm's --test-only.
 */
#include <string.h>

#include "base/mem.h"
#include "core/sched/explain.h"
#include "core/sched/pass.h"

struct would {
    struct sched *s;
    const struct job *job;
    struct board board;
    struct select select;
    struct asks asks;
    int64_t now;
    struct arena *out;
};

static void write_one(struct would *w, const struct ask *a, int64_t when, struct sched_would *out) {
    const struct grid *g = &w->s->grid;
    const struct select *s = &w->select;
    struct job_node *nodes = arena_calloc(w->out, s->n_pick, sizeof(*nodes));
    *out = (struct sched_would){.start_unix = when, .nodes = nodes, .n_nodes = s->n_pick};
    out->partition = arena_strdup(w->out, g->part[a->size.part].rec->name);
    for (uint32_t i = 0; i < s->n_pick; i++) {
        const struct grid_node *n = &g->node[s->pick[i].rank];
        nodes[i] = (struct job_node){.node_id = n->id, .name = arena_strdup(w->out, n->name),
                                     .cpus = (uint32_t)s->claim[i].cpus, .mem_mb = (uint64_t)s->claim[i].mem_mb,
                                     .n_tasks = s->pick[i].tasks, .share = s->claim[i].share};
        out->n_cpus += nodes[i].cpus;
    }
}

/* 0: not in this partition. */
static int64_t when_in(struct would *w, struct ask *a, int64_t from) {
    if (a->gate && a->gate != REASON_PARTITION_DOWN)
        return 0;
    if (explain_never(&w->select, a))
        return 0;
    if (from <= w->now && backfill_now(&w->board, &w->select, a))
        return w->now;
    return backfill_earliest(&w->board, &w->select, a, &w->s->scratch);
}

/* By what it prefers it starts now or not at all. */
static bool preferred_now(struct would *w, const struct part_names *names, struct sched_would *out) {
    for (uint32_t i = 0; i < names->n; i++) {
        struct ask *a = ask_preferred(&w->asks, w->job, names->part[i], names->first);
        if (!a || gate_access(w->s->grid.part[names->part[i]].rec, w->job) || when_in(w, a, w->now) != w->now)
            continue;
        write_one(w, a, w->now, out);
        return true;
    }
    return false;
}

static int best_of(struct would *w, const struct part_names *names, int64_t from, struct sched_would *out, struct err *e) {
    for (uint32_t i = 0; i < names->n; i++) {
        struct ask *a = ask_of(&w->asks, w->job, names->part[i], names->first);
        int64_t when = gate_access(w->s->grid.part[names->part[i]].rec, w->job) ? 0 : when_in(w, a, from);
        if (when && (!out->start_unix || MAX(when, from) < out->start_unix))
            write_one(w, a, MAX(when, from), out);
    }
    return out->start_unix ? 0 : err_set(e, E_NODES_UNAVAIL, NULL);
}

int sched_would_start(const struct view *v, const struct job *j, int64_t now_unix, struct arena *a, struct sched_would *out,
                      struct err *e) {
    struct sched *s = sched_new(NULL);
    struct would w = {.s = s, .job = j, .now = now_unix, .out = a};
    struct part_names names;
    *out = (struct sched_would){0};
    grid_sync(&s->grid, v);
    timeline_reset(&s->timeline, s->grid.n_nodes);
    timeline_sync(&s->timeline, &s->grid, v);
    board_init(&w.board, &s->grid, &s->timeline, now_unix, &s->scratch);
    select_init(&w.select, &s->grid, &s->scratch);
    asks_init(&w.asks, &s->grid, v->cluster->conf, now_unix, &s->scratch);
    w.asks.mind_users = true;
    pass_part_names(&s->grid, j->spec->partition ? j->spec->partition : "", &s->scratch, &names);
    int64_t from = MAX(now_unix, j->spec->begin_unix);
    int rc = from == now_unix && preferred_now(&w, &names, out) ? 0 : best_of(&w, &names, from, out, e);
    asks_fini(&w.asks);
    sched_free(s);
    return rc;
}
