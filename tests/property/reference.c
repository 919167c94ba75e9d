/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_PARTS 8
#define MAX_JOBS 256

struct ref {
    const struct view *v;
    int64_t now;
    const struct sched_plan *plan;
    struct str *why;
    uint32_t promises; /* a partition gives */
    const struct node *node[REF_NODES];
    int n_nodes;
    const struct part *part[MAX_PARTS];
    int n_parts;
    int64_t used_cpus[REF_NODES][REF_HORIZON], used_mem[REF_NODES][REF_HORIZON];
    uint32_t n_promises[MAX_PARTS];
    bool is_blocked[MAX_PARTS];
    bool is_out_of_sight; /* a promise that the plan doesn't show, or behind the horizon: the rest can't be judged */
    struct {
        int64_t from, to;
    } promised[MAX_JOBS]; /* by job; 0: no promise */
    uint32_t told[MAX_JOBS]; /* by job: the reason so far */
    bool is_started[MAX_JOBS];
};

struct turn { /* a job in the queue of a tier */
    const struct job *job;
    uint64_t priority;
    uint32_t tier;
    int part[MAX_PARTS];
    int n_parts;
};

struct wish { /* what a job asks of one partition */
    const struct job *job;
    const struct part *part;
    uint32_t tasks, cpus, min, max, want;
    int64_t secs;
    bool named; /* -w is a demand */
};

static bool wrong(struct ref *r, const struct job *j, const char *what) {
    str_addf(r->why, "job %u: %s", j->id, what);
    return false;
}

/* ---- the picture, second by second ---- */

static void lay(struct ref *r, int n, int64_t from, int64_t to, int64_t cpus, int64_t mem) {
    for (int64_t t = MAX(from - r->now, 0); t < MIN(to - r->now, REF_HORIZON); t++) {
        r->used_cpus[n][t] += cpus;
        r->used_mem[n][t] += mem;
    }
}

static int node_of(const struct ref *r, uint32_t id) {
    for (int i = 0; i < r->n_nodes; i++) {
        if (r->node[i]->id == id)
            return i;
    }
    return -1;
}

static int64_t end_of(const struct ref *r, const struct job *j) {
    int64_t end =
        j->start_ms / 1000 + (j->time_limit_min == TIME_LIMIT_NONE ? 365 * 86400 : (int64_t)j->time_limit_min * 60);
    return j->completing || end <= r->now ? r->now + 1 : end;
}

static void lay_running(struct ref *r) {
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(r->v, &k)); k++) {
        if (j->state != JOB_RUNNING && !j->completing)
            continue;
        for (uint32_t i = 0; i < j->n_nodes; i++) {
            int n = j->nodes[i].is_done ? -1 : node_of(r, j->nodes[i].node_id);
            if (n >= 0)
                lay(r, n, r->now, end_of(r, j), j->nodes[i].cpus, (int64_t)j->nodes[i].mem_mb);
        }
    }
}

static void lay_nodes(struct ref *r, const struct job_node *jn, uint32_t n, int64_t from, int64_t to, int sign) {
    for (uint32_t i = 0; i < n; i++)
        lay(r, node_of(r, jn[i].node_id), from, to, sign * (int64_t)jn[i].cpus, sign * (int64_t)jn[i].mem_mb);
}

/* ---- one job, one partition, one moment ---- */

static bool listed(const char *const *names, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

/* The partition where it is tried first: the highest tier, and there the first one named. */
static const struct part *first_of(const struct ref *r, const struct job *j) {
    const struct part *first = NULL;
    for (const char *at = j->spec->partition; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        for (int i = 0; i < r->n_parts; i++) {
            if (*at == *r->part[i]->name && (!first || r->part[i]->priority_tier > first->priority_tier))
                first = r->part[i];
        }
    }
    return first;
}

static uint32_t limit_of(const struct ref *r, const struct job *j, const struct part *p) {
    const struct part *first = first_of(r, j);
    const struct rconf *c = r->v->cluster->conf;
    uint32_t most = p->max_time_min ? p->max_time_min : TIME_LIMIT_NONE;
    if (j->spec->time_limit_min)
        return j->spec->time_limit_min;
    if (first->max_time_min)
        most = MIN(most, first->max_time_min);
    if (first->default_time_min)
        return MIN(first->default_time_min, most);
    return c && c->default_time_min ? MIN(c->default_time_min, most) : most;
}

static struct wish wish_of(const struct ref *r, const struct job *j, const struct part *p) {
    const struct job_spec *s = j->spec;
    struct wish w = {.job = j, .part = p, .tasks = s->n_tasks, .cpus = s->cpus_per_task};
    w.min = MAX(s->min_nodes, p->min_nodes);
    w.max = s->max_nodes ? s->max_nodes : 1000;
    if (p->max_nodes && p->max_nodes < w.max)
        w.max = p->max_nodes;
    if (!s->n_tasks_given && s->max_nodes > s->min_nodes && s->n_tasks <= w.min)
        w.want = w.max;
    else if (w.max > w.tasks)
        w.max = w.tasks;
    uint32_t limit = limit_of(r, j, p);
    w.secs = limit == TIME_LIMIT_NONE ? (int64_t)365 * 86400 : (int64_t)limit * 60;
    w.named = s->n_req_nodes && s->n_req_nodes <= w.max;
    return w;
}

static int64_t mem_for(const struct ref *r, const struct wish *w, const struct node *n, uint32_t tasks) {
    if (w->job->spec->mem_all)
        return (int64_t)n->mem_mb;
    if (w->job->spec->mem_node_mb)
        return (int64_t)w->job->spec->mem_node_mb;
    const struct rconf *c = r->v->cluster->conf;
    return c ? (int64_t)c->def_mem_per_cpu_mb * w->cpus * tasks : 0;
}

/* How many tasks fit on a node all through a window; `empty`: if nothing ran there. */
static uint32_t tasks_on(const struct ref *r, const struct wish *w, int n, int64_t from, bool empty) {
    const struct job_spec *s = w->job->spec;
    const struct node *node = r->node[n];
    if (!part_has_node(w->part, node) || listed(s->exc_nodes, s->n_exc_nodes, node->name))
        return 0;
    if (s->n_req_nodes && !w->named && !listed(s->req_nodes, s->n_req_nodes, node->name))
        return 0;
    int64_t cpus = node->cpus, mem = (int64_t)node->mem_mb;
    for (int64_t t = from - r->now; !empty && t < MIN(from - r->now + w->secs, REF_HORIZON); t++) {
        cpus = MIN(cpus, (int64_t)node->cpus - r->used_cpus[n][t]);
        mem = MIN(mem, (int64_t)node->mem_mb - r->used_mem[n][t]);
    }
    uint32_t tasks = 0;
    while ((int64_t)(tasks + 1) * w->cpus <= cpus &&
           (mem_for(r, w, node, tasks + 1) == 0 || mem_for(r, w, node, tasks + 1) <= mem))
        tasks++;
    return tasks;
}

static bool demands_met(const struct ref *r, const struct wish *w, unsigned set) {
    const struct job_spec *s = w->job->spec;
    for (uint32_t i = 0; w->named && i < s->n_req_nodes; i++) {
        bool hit = false;
        for (int n = 0; n < r->n_nodes; n++)
            hit |= (set >> n & 1) && strcmp(r->node[n]->name, s->req_nodes[i]) == 0;
        if (!hit)
            return false;
    }
    return true;
}

/* The size of the smallest set of nodes that holds the job from `from` on (the largest, when it wants many);
 * 0: none. */
static uint32_t best_set(const struct ref *r, const struct wish *w, int64_t from, bool empty, bool any_state) {
    uint32_t room[REF_NODES], best = 0;
    for (int n = 0; n < r->n_nodes; n++)
        room[n] = any_state || node_takes_work(r->node[n]) ? tasks_on(r, w, n, from, empty) : 0;
    for (unsigned set = 1; set < 1u << r->n_nodes; set++) {
        uint32_t size = 0, sum = 0;
        bool ok = demands_met(r, w, set);
        for (int n = 0; n < r->n_nodes; n++) {
            if (!(set >> n & 1))
                continue;
            size++;
            sum += room[n];
            ok &= room[n] > 0;
        }
        if (!ok || size < w->min || size > w->max || sum < w->tasks)
            continue;
        if (!best || (w->want ? size > best : size < best))
            best = size;
    }
    return best;
}

/* ---- what the planner said ---- */

static const struct sched_start *start_of(const struct ref *r, uint32_t id) {
    for (uint32_t i = 0; i < r->plan->n_starts; i++) {
        if (r->plan->starts[i].job_id == id)
            return &r->plan->starts[i];
    }
    return NULL;
}

static const struct sched_note *note_of(const struct ref *r, uint32_t id) {
    for (uint32_t i = 0; i < r->plan->n_notes; i++) {
        if (r->plan->notes[i].job_id == id)
            return &r->plan->notes[i];
    }
    return NULL;
}

/* The nodes of its promise; NULL: it has none. */
static const struct sched_detail *promise_of(const struct ref *r, uint32_t id) {
    for (uint32_t i = 0; i < r->plan->n_details; i++) {
        if (r->plan->details[i].job_id == id && r->plan->details[i].nodes)
            return &r->plan->details[i];
    }
    return NULL;
}

static bool one_weight(const struct ref *r) {
    for (int n = 1; n < r->n_nodes; n++) {
        if (r->node[n]->weight != r->node[0]->weight)
            return false;
    }
    return true;
}

/* Nodes that it was given or promised: enough, allowed, free all the time, and no more of them than needed. */
static bool check_nodes(struct ref *r, const struct wish *w, const struct job_node *jn, uint32_t n, int64_t from) {
    unsigned set = 0;
    uint32_t tasks = 0;
    for (uint32_t i = 0; i < n; i++) {
        int k = node_of(r, jn[i].node_id);
        if (k < 0 || strcmp(jn[i].name, r->node[k]->name) != 0 || (set >> k & 1) || !node_takes_work(r->node[k]))
            return wrong(r, w->job, "on a node that is not there, takes no work, or twice on one");
        set |= 1u << k;
        tasks += jn[i].n_tasks;
        if (!jn[i].n_tasks || jn[i].n_tasks > tasks_on(r, w, k, from, false))
            return wrong(r, w->job, "more tasks on a node than there is room for, or none");
        if (jn[i].cpus != jn[i].n_tasks * w->cpus || (int64_t)jn[i].mem_mb != mem_for(r, w, r->node[k], jn[i].n_tasks))
            return wrong(r, w->job, "CPUs or memory don't go with the tasks");
    }
    uint32_t best = best_set(r, w, from, false, false);
    if (tasks != (w->want ? MAX(w->tasks, n) : w->tasks) || n < w->min || n > w->max || !demands_met(r, w, set))
        return wrong(r, w->job, "not what it asked for");
    if (one_weight(r) && n != best)
        return wrong(r, w->job, "more nodes than needed, or fewer than wanted");
    return true;
}

/* ---- the queue ---- */

static bool gated(const struct ref *r, const struct job *j) {
    return j->completing || j->hold || j->spec->begin_unix > r->now || j->retry_unix > r->now;
}

static uint32_t part_gate(const struct ref *r, const struct job *j, const struct part *p) {
    if (p->state == PART_DOWN)
        return REASON_PARTITION_DOWN;
    if (p->state == PART_INACTIVE)
        return REASON_PARTITION_INACTIVE;
    if (p->max_time_min && limit_of(r, j, p) > p->max_time_min)
        return REASON_PARTITION_TIME;
    struct wish w = wish_of(r, j, p);
    uint32_t there = 0;
    for (int n = 0; n < r->n_nodes; n++)
        there += part_has_node(p, r->node[n]);
    return w.min > w.max || (there && w.min > there) ? REASON_PARTITION_NODES : REASON_NONE;
}

static uint32_t never(const struct ref *r, const struct wish *w) {
    if (best_set(r, w, r->now, true, false))
        return REASON_NONE;
    bool any = false;
    for (int n = 0; n < r->n_nodes; n++)
        any |= part_has_node(w->part, r->node[n]);
    return !any || best_set(r, w, r->now, true, true) ? REASON_NODES_UNAVAIL : REASON_PARTITION_CONFIG;
}

static int by_turn(const void *pa, const void *pb) {
    const struct turn *a = pa, *b = pb;
    if (a->tier != b->tier)
        return a->tier > b->tier ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->job->id < b->job->id ? -1 : 1;
}

/* The partitions of "a,b" by tier: each tier of a job is one turn. */
static int add_turns(struct ref *r, const struct job *j, struct turn *out) {
    int n = 0;
    for (const char *at = j->spec->partition; *at;) {
        size_t len = strcspn(at, ",");
        int p = 0;
        while (p < r->n_parts && (strncmp(r->part[p]->name, at, len) != 0 || r->part[p]->name[len]))
            p++;
        at += len + (at[len] == ',');
        if (p == r->n_parts || part_gate(r, j, r->part[p]))
            continue;
        int i = 0;
        while (i < n && out[i].tier != r->part[p]->priority_tier)
            i++;
        if (i == n)
            out[n++] = (struct turn){j, sched_priority(r->v, j, r->now), r->part[p]->priority_tier, {0}, 0};
        out[i].part[out[i].n_parts++] = p;
    }
    return n;
}

static bool check_start(struct ref *r, const struct turn *t, const struct sched_start *st) {
    for (int i = 0; i < t->n_parts; i++) {
        const struct part *p = r->part[t->part[i]];
        struct wish w = wish_of(r, t->job, p);
        if (strcmp(p->name, st->partition) != 0) {
            if (best_set(r, &w, r->now, false, false))
                return wrong(r, t->job, "started elsewhere than in the first partition that had room");
            continue;
        }
        if (st->time_limit_min != limit_of(r, t->job, p))
            return wrong(r, t->job, "another time limit");
        if (!check_nodes(r, &w, st->nodes, st->n_nodes, r->now))
            return false;
        lay_nodes(r, st->nodes, st->n_nodes, r->now, r->now + w.secs, 1);
        return true;
    }
    return wrong(r, t->job, "started in a partition that it doesn't name or that doesn't take it");
}

/* The earliest second at which it could start in a partition; 0: not within the horizon. */
static int64_t earliest(const struct ref *r, const struct wish *w) {
    for (int64_t t = r->now + 1; t < r->now + REF_HORIZON; t++) {
        if (best_set(r, w, t, false, false))
            return t;
    }
    return 0;
}

/* The earliest moment among the partitions that still give promises, and which. */
static int64_t due(const struct ref *r, const struct turn *t, int *out_part, bool *out_is_due) {
    int64_t best = 0;
    *out_part = -1;
    *out_is_due = false;
    for (int i = 0; i < t->n_parts; i++) {
        int p = t->part[i];
        struct wish w = wish_of(r, t->job, r->part[p]);
        if (never(r, &w) || r->n_promises[p] >= r->promises)
            continue;
        *out_is_due = true;
        int64_t e = earliest(r, &w);
        if (e && (!best || e < best))
            best = e, *out_part = p;
    }
    return best;
}

static bool check_promise(struct ref *r, const struct turn *t, const struct sched_note *note) {
    int where;
    bool is_due;
    int64_t best = due(r, t, &where, &is_due);
    if (is_due && !best && (!note || note->expected_start_unix >= r->now + REF_HORIZON)) {
        r->is_out_of_sight = true;
        return true;
    }
    if (!note) { /* it starts at a later turn: what it was promised here is not told */
        r->is_out_of_sight = where >= 0;
        return true;
    }
    if (where >= 0 && best != note->expected_start_unix) {
        str_addf(r->why, "job %u: promised for +%lld, possible at +%lld", t->job->id,
                 (long long)(note->expected_start_unix - r->now), (long long)(best - r->now));
        return false;
    }
    if (where < 0)
        return true;
    struct wish w = wish_of(r, t->job, r->part[where]);
    const struct sched_detail *d = promise_of(r, t->job->id);
    if (!d || !check_nodes(r, &w, d->nodes, d->n_nodes, best))
        return d || wrong(r, t->job, "no nodes for its promise");
    lay_nodes(r, d->nodes, d->n_nodes, best, best + w.secs, 1);
    r->n_promises[where]++;
    r->promised[t->job->id].from = best;
    r->promised[t->job->id].to = best + w.secs;
    return true;
}

static uint32_t strength(uint32_t reason) {
    return reason == REASON_RESOURCES ? 4 : reason == REASON_PRIORITY ? 3 : reason == REASON_NODES_UNAVAIL ? 2 : 1;
}

static bool starts_here(const struct ref *r, const struct turn *t, const struct sched_start *st) {
    for (int i = 0; st && i < t->n_parts; i++) {
        if (strcmp(r->part[t->part[i]]->name, st->partition) == 0)
            return true;
    }
    return false;
}

static bool check_waiting(struct ref *r, const struct turn *t) {
    for (int i = 0; i < t->n_parts; i++) {
        struct wish w = wish_of(r, t->job, r->part[t->part[i]]);
        if (best_set(r, &w, r->now, false, false))
            return wrong(r, t->job, "passed over though it fits");
        uint32_t reason = never(r, &w), *told = &r->told[t->job->id];
        if (!reason)
            reason = r->is_blocked[t->part[i]] ? REASON_PRIORITY : REASON_RESOURCES;
        if (!*told || strength(reason) > strength(*told))
            *told = reason;
    }
    for (int i = 0; i < t->n_parts; i++) {
        struct wish w = wish_of(r, t->job, r->part[t->part[i]]);
        r->is_blocked[t->part[i]] |= !never(r, &w);
    }
    return true;
}

/* Puts a job's promise down or takes it up again: it must not be in the job's own way at a later turn. */
static void own_promise(struct ref *r, const struct job *j, int sign) {
    const struct sched_detail *d = promise_of(r, j->id);
    if (r->promised[j->id].from)
        lay_nodes(r, d->nodes, d->n_nodes, r->promised[j->id].from, r->promised[j->id].to, sign);
}

static bool check_turn(struct ref *r, const struct turn *t) {
    const struct sched_start *st = start_of(r, t->job->id);
    const struct sched_note *note = note_of(r, t->job->id);
    if (!st == !note)
        return wrong(r, t->job, "neither started nor noted, or both");
    if (r->is_started[t->job->id])
        return true;
    if (starts_here(r, t, st)) {
        r->is_started[t->job->id] = true;
        return check_start(r, t, st);
    }
    own_promise(r, t->job, -1);
    bool ok = check_waiting(r, t);
    own_promise(r, t->job, 1);
    return ok && (r->promised[t->job->id].from || check_promise(r, t, note));
}

static bool check_gated(struct ref *r, const struct job *j) {
    const struct sched_note *note = note_of(r, j->id);
    if (start_of(r, j->id) || !note)
        return wrong(r, j, "held back by a gate, and started or not noted");
    return true;
}

static bool check_reasons(struct ref *r) {
    for (uint32_t i = 0; i < r->plan->n_notes; i++) {
        const struct sched_note *n = &r->plan->notes[i];
        if (!r->told[n->job_id] || n->reason == r->told[n->job_id])
            continue;
        str_addf(r->why, "job %u: reason %s, not %s", n->job_id, job_reason_word(n->reason),
                 job_reason_word(r->told[n->job_id]));
        return false;
    }
    return true;
}

/* Nobody is promised anything out of turn. */
static bool check_no_promise(struct ref *r) {
    for (uint32_t i = 0; i < r->plan->n_details; i++) {
        uint32_t id = r->plan->details[i].job_id;
        if (r->plan->details[i].nodes && !r->promised[id].from) {
            str_addf(r->why, "job %u: a promise that was not due", id);
            return false;
        }
    }
    return true;
}

static bool judge(struct ref *r) {
    static struct turn turn[MAX_JOBS * 2];
    int n = 0;
    const struct job *j;
    for (uint64_t k = 0; (j = view_next_job(r->v, &k)); k++) {
        if (j->state != JOB_PENDING)
            continue;
        must(n < MAX_JOBS && j->id < MAX_JOBS);
        int added = gated(r, j) ? 0 : add_turns(r, j, turn + n);
        if (!added && !check_gated(r, j))
            return false;
        n += added;
    }
    qsort(turn, (size_t)n, sizeof(*turn), by_turn);
    for (int i = 0; i < n && !r->is_out_of_sight; i++) {
        if (!check_turn(r, &turn[i]))
            return false;
    }
    return r->is_out_of_sight || (check_reasons(r) && check_no_promise(r));
}

bool reference_check(const struct view *v, int64_t now, uint32_t promises, const struct sched_plan *p,
                     struct str *why) {
    struct ref *r = xcalloc(1, sizeof(*r));
    r->v = v, r->now = now, r->plan = p, r->promises = promises, r->why = why;
    const struct node *n;
    for (uint64_t k = 0; (n = view_next_node(v, &k)); k++)
        r->node[r->n_nodes++] = n;
    const struct part *part;
    for (uint64_t k = 0; (part = view_next_part(v, &k)); k++)
        r->part[r->n_parts++] = part;
    lay_running(r);
    bool ok = judge(r);
    free(r);
    return ok;
}
