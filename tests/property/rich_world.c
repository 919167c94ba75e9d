/* SPDX-License-Identifier: Apache-2.0 */
#include "rich_world.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const char *const node_names[RICH_NODES] = {"n1", "n2", "n3", "n4", "n10"};
static const char *const feature_names[] = {"red", "blue", "big"};
static const char *const device_files[] = {"/dev/a0", "/dev/a1", "/dev/a2"};
static const char *const kind_names[RICH_KINDS] = {"gpu", "gpu", "fpga"};
static const char *const kind_types[RICH_KINDS] = {"a", "b", NULL};

#define RED 1u
#define BLUE 2u
#define BIG 4u
static const struct rich_wish wishes[] = {
    {"red", {RED}, {0}, {0}, {0}},
    {"red&big", {RED | BIG}, {0}, {0}, {0}},
    {"red|blue", {RED, BLUE}, {0}, {0}, {0}},
    {"[red|blue]", {0}, {RED, BLUE}, {0}, {0}},
    {"big&[red|blue]", {BIG}, {RED, BLUE}, {0}, {0}},
    {"red*2", {0}, {0}, {RED}, {2}},
    {"[red*1&blue*1]", {0}, {0}, {RED, BLUE}, {1, 1}},
    {"[red*2&big*1]", {0}, {0}, {RED, BIG}, {2, 1}},
    {"[red*1&blue*1&big*1]", {0}, {0}, {RED, BLUE, BIG}, {1, 1, 1}},
};

const struct rich_wish *rich_wish(const char *text) {
    for (size_t i = 0; text && i < ARRAY_LEN(wishes); i++) {
        if (strcmp(wishes[i].text, text) == 0)
            return &wishes[i];
    }
    return NULL;
}

unsigned rich_features(const struct node *n) {
    unsigned bits = 0;
    for (uint32_t i = 0; i < n->n_features; i++) {
        for (unsigned k = 0; k < ARRAY_LEN(feature_names); k++)
            bits |= (unsigned)(strcmp(n->features[i], feature_names[k]) == 0) << k;
    }
    return bits;
}

int rich_kind(const char *name, const char *type) {
    for (int i = 0; i < RICH_KINDS; i++) {
        if (str_eq(name, kind_names[i]) && str_eq(type, kind_types[i]))
            return i;
    }
    return -1;
}

static uint32_t roll_gres(struct dice *d, struct gres *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < RICH_KINDS; i++) {
        if (!chance(d, 60))
            continue;
        g[n] = (struct gres){.name = kind_names[i], .type = kind_types[i], .count = 1 + roll(d, 3)};
        if (i == 0)
            g[n].files = device_files, g[n].n_files = (uint32_t)g[n].count;
        if (i == 1 && n)
            g[n].first = (uint32_t)g[n - 1].count;
        n++;
    }
    return n;
}

static void add_node(struct dice *d, unsigned themes, struct world *w, const char *name) {
    struct gres g[RICH_KINDS];
    const char *features[3];
    struct drain drain = {.owner = "admin", .text = "x"};
    struct node n = {.id = w->next_node++, .name = name, .weight = 1, .base = NODE_UP, .features = features, .gres = g};
    n.cpus = 1 + roll(d, 5);
    n.mem_mb = themes & T_MEMORY ? roll(d, 12) : 16;
    n.n_gres = themes & T_GRES ? roll_gres(d, g) : 0;
    for (uint32_t i = 0; i < 3 && themes & T_FEATURES; i++) {
        if (chance(d, 50))
            features[n.n_features++] = feature_names[i];
    }
    n.weight = themes & T_WEIGHTS ? 1 + roll(d, 3) : 1;
    if (themes & T_ILL && chance(d, 15))
        n.base = NODE_DOWN;
    n.not_responding = themes & T_ILL && chance(d, 5);
    n.drains = &drain;
    n.n_drains = themes & T_ILL && chance(d, 15);
    world_put_node(w, &n);
}

static void add_part(struct dice *d, unsigned themes, struct world *w, const char *name, uint32_t n_nodes) {
    const char *names[RICH_NODES];
    struct part p = {.name = name, .nodes = names, .priority_tier = 1, .max_time_min = TIME_LIMIT_NONE, .default_time_min = 2};
    bool odd = themes & T_PARTS;
    p.all_nodes = !odd || chance(d, 40);
    for (uint32_t i = 0; i < n_nodes && !p.all_nodes; i++) {
        if (chance(d, 70) || (i + 1 == n_nodes && !p.n_nodes))
            names[p.n_nodes++] = node_names[i];
    }
    if (odd && chance(d, 50))
        p.priority_tier = roll(d, 3);
    if (odd)
        p.default_time_min = 1 + roll(d, 4);
    if (odd && chance(d, 30))
        p.max_time_min = 2 + roll(d, 3);
    if (odd && chance(d, 15))
        p.max_nodes = 1 + roll(d, 3);
    if (odd && chance(d, 10))
        p.min_nodes = 1 + roll(d, 2);
    if (odd && chance(d, 10))
        p.state = roll(d, 4);
    if (themes & T_SHARE && chance(d, 50)) {
        p.over_subscribe = 1 + roll(d, 3);
        p.over_count = 1 + roll(d, 3);
    }
    p.exclusive_user = themes & T_SHARE && chance(d, 20);
    p.max_cpus_per_node = themes & T_SHARE && chance(d, 20) ? 1 + roll(d, 4) : 0;
    world_part(w, p);
}

void rich_cluster(struct dice *d, unsigned themes, struct world *w) {
    static const struct license lic[] = {{"l1", 2}, {"l2", 3}};
    uint32_t n_nodes = 1 + roll(d, RICH_NODES), n_parts = themes & T_PARTS ? 1 + roll(d, 3) : 1;
    static const char *const part_names[] = {"a", "b", "c"};
    world_init(w);
    w->conf.licenses = lic, w->conf.n_licenses = 2;
    w->conf.def_mem_per_cpu_mb = themes & T_MEMORY && chance(d, 30) ? 1 + roll(d, 3) : 0;
    for (uint32_t i = 0; i < n_nodes; i++)
        add_node(d, themes, w, node_names[i]);
    for (uint32_t i = 0; i < n_parts; i++)
        add_part(d, themes, w, part_names[i], n_nodes);
}

/* ---- jobs ---- */

static void roll_counts(struct dice *d, struct job_spec *s, struct job_more *m) {
    s->n_tasks = s->n_tasks_given = 1 + roll(d, chance(d, 70) ? 4 : 12);
    s->cpus_per_task = chance(d, 80) ? 1 : 1 + roll(d, 3);
    s->min_nodes = 1;
    m->tasks_per_node = chance(d, 8) ? 1 + roll(d, 3) : 0;
    switch (roll(d, 8)) {
    case 0:
        s->min_nodes = s->max_nodes = 1 + roll(d, MIN(3u, s->n_tasks));
        break;
    case 1:
        s->min_nodes = 1 + roll(d, MIN(3u, s->n_tasks));
        s->max_nodes = s->min_nodes + roll(d, 3);
        break;
    case 2: /* -N without -n */
        s->min_nodes = 1 + roll(d, 3);
        s->max_nodes = s->min_nodes + roll(d, 3);
        s->n_tasks = s->min_nodes;
        s->n_tasks_given = 0;
        break;
    default:
        break;
    }
}

static uint32_t roll_wants(struct dice *d, struct gres_ask *g) {
    uint32_t n = 0;
    if (chance(d, 60))
        g[n++] = (struct gres_ask){.name = "gpu", .type = chance(d, 50) ? kind_types[roll(d, 2)] : NULL,
                                   .count = 1 + roll(d, 3), .per = roll(d, 3)};
    if (chance(d, n ? 20 : 60))
        g[n++] = (struct gres_ask){.name = "fpga", .count = 1 + roll(d, 2), .per = roll(d, 3)};
    return n;
}

static uint32_t roll_deps(struct dice *d, const struct world *w, int64_t now, struct dep *dep) {
    uint32_t n = 0, most = 1 + roll(d, 2);
    for (uint32_t i = 0; i < most; i++) {
        bool single = chance(d, 30);
        dep[n++] = (struct dep){.kind = single ? DEP_SINGLETON : DEP_AFTER, .job_id = single ? 0 : 1 + roll(d, w->next_job),
                                .state = single ? DEP_WAITING : roll(d, 3), .is_or = i && chance(d, 50)};
        if (!single && dep[n - 1].state == DEP_DONE && chance(d, 30))
            dep[n - 1].from_unix = now - 30 + roll(d, 60);
    }
    return n;
}

static uint32_t roll_names(struct dice *d, const struct world *w, const char **out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->next_node - 1; i++) {
        if (chance(d, 30))
            out[n++] = node_names[i];
    }
    return n;
}

/* -m arbitrary: a node for each task. */
static void roll_dealt(struct dice *d, const struct world *w, struct job_spec *s, struct job_more *m, const char **req,
                       const char **each) {
    uint32_t n = 0, seen = 0;
    s->n_tasks = s->n_tasks_given = m->n_task_nodes = 1 + roll(d, 4);
    for (uint32_t i = 0; i < m->n_task_nodes; i++) {
        uint32_t k = roll(d, w->next_node - 1);
        each[i] = node_names[k];
        if (!(seen >> k & 1))
            req[n++] = node_names[k];
        seen |= 1u << k;
    }
    m->task_nodes = each;
    s->req_nodes = req;
    s->n_req_nodes = s->min_nodes = s->max_nodes = n;
}

static void roll_times(struct dice *d, int64_t now, struct job_spec *s, struct job_more *m) {
    if (chance(d, 30))
        m->time_min_min = 1 + roll(d, 3);
    if (chance(d, 25))
        m->deadline_unix = now + 30 + roll(d, 600);
    if (chance(d, 15))
        s->begin_unix = now - 30 + roll(d, 90);
    s->time_limit_min = chance(d, 10) ? 0 : 1 + roll(d, 6);
}

static const char *roll_list(struct dice *d, const struct world *w) {
    static const char *const one[] = {"a"}, *const two[] = {"a", "b", "a,b", "b,a"},
                      *const three[] = {"a", "b", "c", "a,b", "b,a", "c,a", "a,b,c", "c,b"};
    uint32_t n = w->next_part - 1;
    return n == 1 ? one[0] : n == 2 ? two[roll(d, 4)] : three[roll(d, 8)];
}

/* What the planner finds out of a job it knows of those that ask the same: so there have to be some. */
static uint32_t twin_of(struct dice *d, struct world *w, uint32_t id, int64_t now) {
    const struct job *j = cow_get(w->jobs.root, id);
    struct job_spec s = *j->spec;
    s.partition = roll_list(d, w);
    return world_submit(w, s, now - roll(d, 100));
}

uint32_t rich_job(struct dice *d, unsigned themes, struct world *w, int64_t now) {
    if (chance(d, 25) && w->next_job > 1 && cow_get(w->jobs.root, w->next_job - 1))
        return twin_of(d, w, w->next_job - 1, now);
    struct job_more m = {0};
    struct job_spec s = {.more = &m, .partition = roll_list(d, w), .uid = 1, .time_limit_min = 1 + roll(d, 4)};
    struct gres_ask g[2];
    struct license_ask lic[2] = {{"l1", 1 + roll(d, 2), false}, {"l2", 1 + roll(d, 3), chance(d, 50)}};
    struct array_range r = {roll(d, 3), 3 + roll(d, 3)};
    struct dep dep[2];
    const char *req[RICH_NODES], *exc[RICH_NODES];
    roll_counts(d, &s, &m);
    if (themes & T_GRES && chance(d, 60))
        m.gres = g, m.n_gres = roll_wants(d, g);
    if (themes & T_FEATURES && chance(d, 60))
        m.features = wishes[roll(d, ARRAY_LEN(wishes))].text;
    if (themes & T_FEATURES && chance(d, 30))
        m.prefer = wishes[roll(d, ARRAY_LEN(wishes))].text;
    if (themes & T_SHARE) {
        s.uid = 1 + roll(d, 3);
        m.exclusive = chance(d, 30) ? 1 + roll(d, 2) : 0;
        m.oversubscribe = !m.exclusive && chance(d, 40);
    }
    if (themes & T_LICENCES && chance(d, 50))
        m.licenses = lic, m.n_licenses = 1 + roll(d, 2);
    if (themes & T_ARRAYS && chance(d, 40))
        m.array_ranges = &r, m.n_array_ranges = 1, m.array_max_running = roll(d, 4);
    if (themes & T_DEPS && chance(d, 40))
        s.deps = dep, s.n_deps = roll_deps(d, w, now, dep), s.name = chance(d, 50) ? "x" : "y";
    if (themes & T_MEMORY && chance(d, 60)) {
        s.mem_node_mb = chance(d, 50) ? 1 + roll(d, 8) : 0;
        s.mem_all = !s.mem_node_mb && chance(d, 20);
        m.mem_cpu_mb = s.mem_node_mb || s.mem_all ? 0 : 1 + roll(d, 3);
    }
    if (themes & T_TIMES)
        roll_times(d, now, &s, &m);
    if (themes & T_LISTS && chance(d, 25))
        s.req_nodes = req, s.n_req_nodes = roll_names(d, w, req);
    if (themes & T_LISTS && chance(d, 25))
        s.exc_nodes = exc, s.n_exc_nodes = roll_names(d, w, exc);
    const char *each[4];
    if (themes & T_LISTS && chance(d, 15))
        roll_dealt(d, w, &s, &m, req, each);
    s.hold = chance(d, 4);
    s.nice = chance(d, 20) ? (int64_t)roll(d, 40) - 20 : 0;
    return world_submit(w, s, now - roll(d, 100));
}

/* ---- in lines ---- */

static void print_node(const struct node *n, struct str *out) {
    str_addf(out, "  node %s: %u CPUs, %llu MB, weight %u, %s, features %u", n->name, n->cpus, (unsigned long long)n->mem_mb,
             n->weight, node_takes_work(n) ? "up" : "ill", rich_features(n));
    for (uint32_t i = 0; i < n->n_gres; i++)
        str_addf(out, ", %s:%s:%llu", n->gres[i].name, n->gres[i].type ? n->gres[i].type : "-", (unsigned long long)n->gres[i].count);
    str_addc(out, '\n');
}

static void print_part(const struct part *p, struct str *out) {
    str_addf(out, "  part %s: tier %u, state %u, max %u min, %u-%u nodes, over %u:%u, user %d, cpus %u, nodes", p->name,
             p->priority_tier, p->state, p->max_time_min, p->min_nodes, p->max_nodes, p->over_subscribe, p->over_count,
             p->exclusive_user, p->max_cpus_per_node);
    for (uint32_t i = 0; i < p->n_nodes; i++)
        str_addf(out, " %s", p->nodes[i]);
    str_add(out, p->all_nodes ? " all\n" : "\n");
}

static void print_ask(const struct job *j, int64_t now, struct str *out) {
    const struct job_spec *s = j->spec;
    const struct job_more *m = job_spec_more(s);
    str_addf(out, " -p %s -n%u(%u) -c%u -N%u-%u uid %u mem %llu/%llu/%d limit %u min %u share %u/%d per node %u", s->partition,
             s->n_tasks, s->n_tasks_given, s->cpus_per_task, s->min_nodes, s->max_nodes, s->uid, (unsigned long long)s->mem_node_mb,
             (unsigned long long)m->mem_cpu_mb, s->mem_all, s->time_limit_min, m->time_min_min, m->exclusive, m->oversubscribe,
             m->tasks_per_node);
    if (m->deadline_unix)
        str_addf(out, " deadline %+lld", (long long)(m->deadline_unix - now));
    if (s->begin_unix)
        str_addf(out, " begin %+lld", (long long)(s->begin_unix - now));
    for (uint32_t i = 0; i < m->n_gres; i++)
        str_addf(out, " %s:%s:%llu/%u", m->gres[i].name, m->gres[i].type ? m->gres[i].type : "-",
                 (unsigned long long)m->gres[i].count, m->gres[i].per);
    if (m->features)
        str_addf(out, " -C %s", m->features);
    if (m->prefer)
        str_addf(out, " --prefer=%s", m->prefer);
    for (uint32_t i = 0; i < m->n_task_nodes; i++)
        str_addf(out, "%s%s", i ? "," : " -m arbitrary -w ", m->task_nodes[i]);
    for (uint32_t i = 0; i < m->n_licenses; i++)
        str_addf(out, " lic %s%s:%u", m->licenses[i].is_or ? "|" : "", m->licenses[i].name, m->licenses[i].count);
    for (uint32_t i = 0; i < s->n_req_nodes; i++)
        str_addf(out, " -w %s", s->req_nodes[i]);
    for (uint32_t i = 0; i < s->n_exc_nodes; i++)
        str_addf(out, " -x %s", s->exc_nodes[i]);
    for (uint32_t i = 0; i < j->n_deps; i++)
        str_addf(out, " dep %s%u:%u/%u/%+lld", j->deps[i].is_or ? "?" : "", j->deps[i].kind, j->deps[i].job_id, j->deps[i].state,
                 j->deps[i].from_unix ? (long long)(j->deps[i].from_unix - now) : 0);
}

void rich_print(struct world *w, int64_t now, struct str *out) {
    struct view v = world_view(w);
    const struct node *n;
    const struct part *p;
    const struct job *j;
    for (uint64_t k = 0; (n = view_next_node(&v, &k)); k++)
        print_node(n, out);
    for (uint64_t k = 0; (p = view_next_part(&v, &k)); k++)
        print_part(p, out);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++) {
        if (job_is_over(j))
            continue;
        str_addf(out, "  job %u %s%s, priority %llu", j->id, job_state_name(j->state), j->completing ? " completing" : "",
                 (unsigned long long)sched_priority(&v, j, now));
        if (j->array)
            str_addf(out, ", array %u task %d of %u, %%%u", j->array->job_id, (int)j->array->task - 1,
                     array_count(j->array->pending, j->array->n_pending), j->array->max_running);
        for (uint32_t i = 0; i < j->n_nodes; i++)
            str_addf(out, " on %s %u CPUs %llu MB share %u", j->nodes[i].name, j->nodes[i].cpus,
                     (unsigned long long)j->nodes[i].mem_mb, j->nodes[i].share);
        if (j->n_nodes)
            str_addf(out, " since %+lld limit %u", (long long)(j->start_ms / 1000 - now), j->time_limit_min);
        print_ask(j, now, out);
        str_addc(out, '\n');
    }
}
