/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge_inside.h"

bool judge_wrong(struct judge *g, const struct job *j, const char *what) {
    str_addf(g->why, "job %u: %s", j->id, what);
    return false;
}

int judge_node(const struct judge *g, uint32_t id) {
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->node[i]->id == id)
            return i;
    }
    return -1;
}

void put_holds(struct judge *g, const struct job *j, const struct job_node *jn, uint32_t n, int part, int64_t from, int64_t to,
               uint32_t promised) {
    for (uint32_t i = 0; i < n; i++) {
        if (jn[i].is_done || judge_node(g, jn[i].node_id) < 0)
            continue;
        must(g->n_holds < J_HOLDS);
        struct held *h = &g->hold[g->n_holds++];
        *h = (struct held){judge_node(g, jn[i].node_id), j->id, promised, false, from, to, jn[i].cpus, (int64_t)jn[i].mem_mb,
                           {0}, jn[i].share, j->spec->uid, part};
        for (uint32_t k = 0; k < jn[i].n_gres; k++)
            h->gres[rich_kind(jn[i].gres[k].name, jn[i].gres[k].type)] += (int64_t)jn[i].gres[k].count;
        for (uint32_t k = 0; k < jn[i].n_gres && !promised; k++) {
            for (uint32_t m = 0; m < jn[i].gres[k].n_indexes; m++)
                g->devices[h->node] |= 1u << jn[i].gres[k].indexes[m];
        }
    }
}

/* ---- what is asked ---- */

/* That of the partition where it is tried first: the highest tier, and there the first one named. */
uint32_t limit_of(const struct judge *g, const struct job *j, int part) {
    const struct part *first = NULL;
    if (j->spec->time_limit_min)
        return j->spec->time_limit_min;
    for (const char *at = j->spec->partition; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        for (int i = 0; i < g->n_parts; i++) {
            if (*at == *g->part[i]->name && (!first || g->part[i]->priority_tier > first->priority_tier))
                first = g->part[i];
        }
    }
    return MIN(MIN(first->default_time_min, first->max_time_min), g->part[part]->max_time_min);
}

int64_t secs_of(uint32_t limit) {
    return (int64_t)limit * 60;
}

static uint32_t share_of(const struct job_more *m, const struct part *p) {
    if (p->over_subscribe == OVER_FORCE && p->over_count > 1)
        return SHARE_OVER;
    if (p->over_subscribe == OVER_EXCLUSIVE || p->exclusive_topo || m->exclusive == EXCLUSIVE_NODE || m->exclusive == EXCLUSIVE_TOPO)
        return SHARE_NONE;
    if (p->exclusive_user || m->exclusive == EXCLUSIVE_USER)
        return SHARE_USER;
    return p->over_subscribe == OVER_YES && p->over_count > 1 && m->oversubscribe ? SHARE_OVER : SHARE_CORES;
}

static void count_nodes(struct wish *w, const struct part *p) {
    const struct job_spec *s = w->job->spec;
    const struct rich_wish *f = rich_wish(w->features);
    w->min = MAX(s->min_nodes, p->min_nodes);
    w->max = s->max_nodes ? s->max_nodes : 1000;
    if (p->max_nodes)
        w->max = MIN(w->max, p->max_nodes);
    if (!s->n_tasks_given && s->max_nodes > s->min_nodes && s->n_tasks <= w->min)
        w->want = w->max;
    else
        w->max = MIN(w->max, w->tasks);
    uint32_t grouped = f ? f->count[0] + f->count[1] + f->count[2] : 0;
    w->min = MAX(w->min, grouped);
    if (!s->max_nodes)
        w->max = MAX(w->max, grouped);
}

struct wish wish_of(const struct judge *g, const struct job *j, int part, const char *features) {
    const struct job_spec *s = j->spec;
    const struct job_more *m = job_spec_more(s);
    struct wish w = {.job = j, .part = part, .tasks = s->n_tasks, .cpus = s->cpus_per_task, .features = features};
    w.limit = limit_of(g, j, part);
    w.time_min = m->time_min_min < w.limit ? m->time_min_min : 0;
    if (w.time_min && m->deadline_unix > g->now) /* it ends before its deadline, where it may be shorter */
        w.limit = MIN(w.limit, MAX((uint32_t)((m->deadline_unix - g->now) / 60), w.time_min));
    w.share = share_of(m, g->part[part]);
    w.all_mem = s->mem_all;
    w.node_mem = s->mem_all ? 0 : s->mem_node_mb;
    if (!s->mem_all && (m->mem_cpu_mb || !s->mem_node_mb))
        w.task_mem = (m->mem_cpu_mb ? m->mem_cpu_mb : g->v->cluster->conf->def_mem_per_cpu_mb) * w.cpus;
    count_nodes(&w, g->part[part]);
    w.named = s->n_req_nodes && s->n_req_nodes <= w.max;
    return w;
}

/* ---- what is left ---- */

struct left {
    int64_t cpus, mem, gres[RICH_KINDS], part_cpus;
    bool is_barred;
};

static bool may_be_together(const struct wish *w, const struct held *h) {
    if (w->share == SHARE_NONE || h->share == SHARE_NONE || (w->share == SHARE_OVER) != (h->share == SHARE_OVER))
        return false;
    bool private = w->share == SHARE_USER || h->share == SHARE_USER;
    return !private || w->job->spec->uid == h->uid;
}

static struct left left_empty(const struct judge *g, const struct wish *w, int node) {
    const struct node *n = g->node[node];
    struct left l = {.cpus = n->cpus, .mem = (int64_t)n->mem_mb};
    if (w->share == SHARE_OVER)
        l.cpus *= g->part[w->part]->over_count;
    for (uint32_t i = 0; i < n->n_gres; i++)
        l.gres[rich_kind(n->gres[i].name, n->gres[i].type)] += (int64_t)n->gres[i].count;
    return l;
}

static struct left left_at(const struct judge *g, const struct wish *w, int node, int64_t x) {
    struct left l = left_empty(g, w, node);
    for (int i = 0; i < g->n_holds; i++) {
        const struct held *h = &g->hold[i];
        if (h->node != node || h->is_lifted || x < h->from || x >= h->to)
            continue;
        if (w->share != SHARE_OVER || h->share != SHARE_OVER || h->part == w->part)
            l.cpus -= h->cpus; /* each partition counts its own who share CPUs */
        l.mem -= h->mem;
        l.part_cpus += h->part == w->part ? h->cpus : 0;
        l.is_barred |= !may_be_together(w, h);
        for (int k = 0; k < RICH_KINDS; k++)
            l.gres[k] -= h->gres[k];
    }
    return l;
}

/* The least all through a window: it may fall only where somebody begins. */
static struct left left_in(const struct judge *g, const struct wish *w, int node, int64_t from, int64_t to) {
    struct left l = left_at(g, w, node, from);
    for (int i = 0; i < g->n_holds; i++) {
        int64_t x = g->hold[i].from;
        if (x <= from || x >= to || g->hold[i].node != node)
            continue;
        struct left m = left_at(g, w, node, x);
        l.cpus = MIN(l.cpus, m.cpus);
        l.mem = MIN(l.mem, m.mem);
        l.part_cpus = MAX(l.part_cpus, m.part_cpus);
        l.is_barred |= m.is_barred;
        for (int k = 0; k < RICH_KINDS; k++)
            l.gres[k] = MIN(l.gres[k], m.gres[k]);
    }
    return l;
}

static bool listed(const char *const *names, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static bool has_bits(unsigned have, unsigned want) {
    return (have & want) == want;
}

/* By itself; which nodes go together is looked at later. */
static bool may_serve(const struct judge *g, const struct wish *w, int node) {
    const struct job_spec *s = w->job->spec;
    const struct node *n = g->node[node];
    const struct rich_wish *f = rich_wish(w->features);
    unsigned have = rich_features(n);
    if (!part_has_node(g->part[w->part], n) || listed(s->exc_nodes, s->n_exc_nodes, n->name))
        return false;
    if (s->n_req_nodes && !w->named && !listed(s->req_nodes, s->n_req_nodes, n->name))
        return false;
    if (f && f->each[0] && !has_bits(have, f->each[0]) && (!f->each[1] || !has_bits(have, f->each[1])))
        return false;
    return !f || !f->alt[0] || has_bits(have, f->alt[0]) || has_bits(have, f->alt[1]);
}

static bool is_of(const struct gres_ask *a, int kind) {
    static const struct gres_ask kinds[RICH_KINDS] = {{"gpu", "a", 0, 0}, {"gpu", "b", 0, 0}, {"fpga", NULL, 0, 0}};
    return strcmp(a->name, kinds[kind].name) == 0 && (!a->type || str_eq(a->type, kinds[kind].type));
}

static int64_t spare(const struct left *l, const struct gres_ask *a) {
    int64_t sum = 0;
    for (int k = 0; k < RICH_KINDS; k++)
        sum += is_of(a, k) ? MAX(l->gres[k], 0) : 0;
    return sum;
}

static int64_t mem_for(const struct wish *w, const struct node *n, int64_t tasks) {
    if (w->all_mem)
        return (int64_t)n->mem_mb;
    if (w->node_mem)
        return (int64_t)w->node_mem;
    return (int64_t)w->task_mem / w->cpus * (w->share == SHARE_NONE ? n->cpus : tasks * w->cpus);
}

static bool tasks_fit(const struct judge *g, const struct wish *w, int node, const struct left *l, int64_t tasks) {
    const struct node *n = g->node[node];
    const struct job_more *m = job_spec_more(w->job->spec);
    int64_t cpus = w->share == SHARE_NONE ? (int64_t)n->cpus : tasks * w->cpus, most = g->part[w->part]->max_cpus_per_node;
    if (l->is_barred || tasks * w->cpus > n->cpus || cpus > l->cpus || (most && l->part_cpus + cpus > most))
        return false;
    if (mem_for(w, n, tasks) > 0 && mem_for(w, n, tasks) > l->mem)
        return false;
    if (m->tasks_per_node && tasks > m->tasks_per_node)
        return false;
    for (uint32_t i = 0; i < m->n_gres; i++) {
        int64_t count = (int64_t)m->gres[i].count, have = spare(l, &m->gres[i]);
        int64_t need = m->gres[i].per == GRES_PER_JOB ? 1 : m->gres[i].per == GRES_PER_TASK ? count * tasks : count;
        if (have < need)
            return false;
    }
    return true;
}

static uint32_t tasks_on(const struct judge *g, const struct wish *w, int node, const struct left *l) {
    uint32_t tasks = 0;
    const struct job_more *m = job_spec_more(w->job->spec);
    uint32_t said = 0;
    while (may_serve(g, w, node) && tasks_fit(g, w, node, l, tasks + 1))
        tasks++;
    for (uint32_t i = 0; i < m->n_task_nodes; i++)
        said += strcmp(m->task_nodes[i], g->node[node]->name) == 0;
    return !m->n_task_nodes ? tasks : said <= tasks ? said : 0; /* as many as are to run there */
}

/* ---- sets of nodes ---- */

/* So many nodes of each group, no node for two of them: enough in each union of groups (Hall). */
static bool groups_filled(const struct judge *g, const struct rich_wish *f, unsigned set) {
    for (unsigned some = 1; some < 8; some++) {
        uint32_t need = 0, have = 0;
        for (int i = 0; i < 3; i++)
            need += some >> i & 1 ? f->count[i] : 0;
        for (int n = 0; n < g->n_nodes; n++) {
            bool hit = false;
            for (int i = 0; i < 3; i++)
                hit |= (some >> i & 1) && f->count[i] && has_bits(rich_features(g->node[n]), f->group[i]);
            have += (set >> n & 1) && hit;
        }
        if (have < need)
            return false;
    }
    return true;
}

static bool all_have(const struct judge *g, unsigned set, unsigned want) {
    for (int n = 0; n < g->n_nodes; n++) {
        if ((set >> n & 1) && !has_bits(rich_features(g->node[n]), want))
            return false;
    }
    return true;
}

/* Which nodes go together, beside numbers. */
static bool together(const struct judge *g, const struct wish *w, unsigned set, unsigned alt) {
    const struct job_spec *s = w->job->spec;
    const struct rich_wish *f = rich_wish(w->features);
    for (uint32_t i = 0; w->named && i < s->n_req_nodes; i++) {
        bool hit = false;
        for (int n = 0; n < g->n_nodes; n++)
            hit |= (set >> n & 1) && strcmp(g->node[n]->name, s->req_nodes[i]) == 0;
        if (!hit)
            return false;
    }
    return !f || (all_have(g, set, alt) && (!f->count[0] || groups_filled(g, f, set)));
}

static bool totals_met(const struct wish *w, const struct left *l, int n_nodes, unsigned set, uint32_t size) {
    const struct job_more *m = job_spec_more(w->job->spec);
    for (uint32_t i = 0; i < m->n_gres; i++) {
        int64_t sum = 0;
        for (int n = 0; n < n_nodes; n++)
            sum += set >> n & 1 ? spare(&l[n], &m->gres[i]) : 0;
        if (m->gres[i].per == GRES_PER_JOB && (sum < (int64_t)m->gres[i].count || size > m->gres[i].count))
            return false;
    }
    return true;
}

static uint32_t best_of(const struct judge *g, const struct wish *w, const struct left *l, const uint32_t *room, unsigned alt) {
    uint32_t best = 0;
    for (unsigned set = 1; set < 1u << g->n_nodes; set++) {
        uint32_t size = 0, sum = 0;
        bool ok = together(g, w, set, alt);
        for (int n = 0; n < g->n_nodes; n++) {
            if (!(set >> n & 1))
                continue;
            size++;
            sum += room[n];
            ok &= room[n] > 0;
        }
        if (!ok || size < w->min || size > w->max || sum < w->tasks || !totals_met(w, l, g->n_nodes, set, size))
            continue;
        if (!best || (w->want ? size > best : size < best))
            best = size;
    }
    return best;
}

uint32_t best_set(const struct judge *g, const struct wish *w, int64_t from, int64_t secs, bool empty, bool ill) {
    const struct rich_wish *f = rich_wish(w->features);
    struct left left[RICH_NODES];
    uint32_t room[RICH_NODES];
    for (int n = 0; n < g->n_nodes; n++) {
        left[n] = empty ? left_empty(g, w, n) : left_in(g, w, n, from, from + secs);
        room[n] = ill || node_takes_work(g->node[n]) ? tasks_on(g, w, n, &left[n]) : 0;
    }
    uint32_t best = best_of(g, w, left, room, f ? f->alt[0] : 0);
    return best || !f || !f->alt[1] ? best : best_of(g, w, left, room, f->alt[1]);
}

/* ---- what a plan gives ---- */

static bool gres_right(struct judge *g, const struct wish *w, const struct job_node *jn, int node, const struct left *l) {
    const struct job_more *m = job_spec_more(w->job->spec);
    int64_t have[RICH_KINDS] = {0};
    for (uint32_t i = 0; i < jn->n_gres; i++) {
        int kind = rich_kind(jn->gres[i].name, jn->gres[i].type);
        have[kind] += (int64_t)jn->gres[i].count;
        if (have[kind] > l->gres[kind])
            return judge_wrong(g, w->job, "more of a resource than is left");
        for (uint32_t k = 0; k < jn->gres[i].n_indexes; k++) {
            if (jn->gres[i].indexes[k] > 2 || g->devices[node] >> jn->gres[i].indexes[k] & 1)
                return judge_wrong(g, w->job, "a device that somebody has, or that is not there");
        }
    }
    for (uint32_t i = 0; i < m->n_gres && w->share != SHARE_NONE; i++) {
        int64_t sum = 0, count = (int64_t)m->gres[i].count;
        for (int k = 0; k < RICH_KINDS; k++)
            sum += is_of(&m->gres[i], k) ? have[k] : 0;
        if ((m->gres[i].per == GRES_PER_NODE && sum != count) || (m->gres[i].per == GRES_PER_JOB && !sum) ||
            (m->gres[i].per == GRES_PER_TASK && sum != count * jn->n_tasks))
            return judge_wrong(g, w->job, "not the resources that it asked for");
    }
    return true;
}

static bool sums_right(struct judge *g, const struct wish *w, const struct job_node *jn, uint32_t n) {
    const struct job_more *m = job_spec_more(w->job->spec);
    for (uint32_t i = 0; i < m->n_gres && w->share != SHARE_NONE; i++) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < n; k++) {
            for (uint32_t x = 0; x < jn[k].n_gres; x++)
                sum += is_of(&m->gres[i], rich_kind(jn[k].gres[x].name, jn[k].gres[x].type)) ? jn[k].gres[x].count : 0;
        }
        if (m->gres[i].per == GRES_PER_JOB && sum != m->gres[i].count)
            return judge_wrong(g, w->job, "not the resources in all that it asked for");
    }
    return true;
}

static bool node_right(struct judge *g, const struct wish *w, const struct job_node *jn, int k, int64_t from, int64_t secs) {
    struct left l = left_in(g, w, k, from, from + secs);
    if (!node_takes_work(g->node[k]))
        return judge_wrong(g, w->job, "on a node that takes no work");
    if (!jn->n_tasks || jn->n_tasks > tasks_on(g, w, k, &l))
        return judge_wrong(g, w->job, "more tasks on a node than there is room for, or none");
    if (job_spec_more(w->job->spec)->n_task_nodes && jn->n_tasks != tasks_on(g, w, k, &l))
        return judge_wrong(g, w->job, "not the tasks that are to run there");
    if (jn->share != w->share || jn->cpus != (w->share == SHARE_NONE ? g->node[k]->cpus : jn->n_tasks * w->cpus) ||
        (int64_t)jn->mem_mb != mem_for(w, g->node[k], jn->n_tasks))
        return judge_wrong(g, w->job, "CPUs, memory or share don't go with the tasks");
    return gres_right(g, w, jn, k, &l);
}

static bool numbers_matter(const struct judge *g, const struct wish *w) {
    const struct rich_wish *f = rich_wish(w->features);
    for (int n = 1; n < g->n_nodes; n++) {
        if (g->node[n]->weight != g->node[0]->weight)
            return false;
    }
    return !f || !f->count[0];
}

bool nodes_right(struct judge *g, const struct wish *w, const struct job_node *jn, uint32_t n, int64_t from, int64_t secs) {
    const struct rich_wish *f = rich_wish(w->features);
    unsigned set = 0;
    uint32_t tasks = 0;
    for (uint32_t i = 0; i < n; i++) {
        int k = judge_node(g, jn[i].node_id);
        if (k < 0 || (set >> k & 1) || strcmp(jn[i].name, g->node[k]->name) != 0)
            return judge_wrong(g, w->job, "on a node that is not there, or twice on one");
        set |= 1u << k;
        tasks += jn[i].n_tasks;
        if (!node_right(g, w, &jn[i], k, from, secs))
            return false;
    }
    if (tasks != MAX(w->tasks, n) || n < w->min || n > w->max)
        return judge_wrong(g, w->job, "not as many tasks or nodes as it asked for");
    if (!together(g, w, set, f ? f->alt[0] : 0) && (!f || !f->alt[1] || !together(g, w, set, f->alt[1])))
        return judge_wrong(g, w->job, "nodes that don't go together");
    if (numbers_matter(g, w) && n != best_set(g, w, from, secs, false, false))
        return judge_wrong(g, w->job, "more nodes than needed, or fewer than wanted");
    return sums_right(g, w, jn, n);
}
