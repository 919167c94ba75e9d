/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/model/text.h"
#include "spurctld/lead/lead.h"
#include "spurctld/plan/plan.h"
#include "spurctld/query/query.h"

struct asking {
    struct room *room;
    struct view view;
    struct arena arena;
    struct lead_node *soft; /* by place in the view */
    struct plan_notes *notes;
    int64_t now_unix;
    struct buf reply;
    query_fn done;
    void *arg;
};

static int by_name(const void *a, const void *b) {
    const struct node_info *x = a, *y = b;
    return hostname_compare(x->node->name, y->node->name);
}

static void add_partitions(struct asking *q, struct node_info *info) {
    const struct part *p;
    VEC(const char *) names = {0};
    for (uint64_t k = 0; (p = view_next_part(&q->view, &k)); k++)
        if (part_has_node(p, info->node))
            vec_push(&names, p->name);
    info->partitions = arena_memdup(&q->arena, names.p, names.n * sizeof(*names.p));
    info->n_partitions = (uint32_t)names.n;
    vec_fini(&names);
}

static void work(void *arg) {
    struct asking *q = arg;
    VEC(struct node_info) nodes = {0};
    VEC(struct part) parts = {0};
    const struct node *n;
    const struct part *p;
    for (uint64_t k = 0; (n = view_next_node(&q->view, &k)); k++) {
        const struct lead_node *soft = &q->soft[nodes.n];
        struct node *shown = arena_memdup(&q->arena, n, sizeof(*n));
        shown->public_key = NULL;
        shown->n_public_key = 0;
        struct node_info info = {.node = shown,
                                 .cpu_load_hundredths = soft->cpu_load_hundredths,
                                 .free_mem_mb = soft->free_mem_mb,
                                 .last_seen_unix = soft->last_unix,
                                 .planned = node_takes_work(n) && n->alloc_cpus < n->cpus &&
                                            plan_is_promised(q->notes, n->id)};
        add_partitions(q, &info);
        vec_push(&nodes, info);
    }
    for (uint64_t k = 0; (p = view_next_part(&q->view, &k)); k++)
        vec_push(&parts, *p);
    if (nodes.n)
        qsort(nodes.p, nodes.n, sizeof(*nodes.p), by_name);
    const struct rconf *conf = q->view.cluster->conf;
    struct nodes_reply reply = {nodes.p,       (uint32_t)nodes.n, parts.p,
                                (uint32_t)parts.n, q->view.index, q->now_unix, conf ? conf->cluster_name : NULL};
    rec_encode(nodes_reply_rec(), &reply, &q->reply);
    vec_fini(&nodes);
    vec_fini(&parts);
}

static void done(void *arg) {
    struct asking *q = arg;
    q->done(q->arg, 0, NULL, q->reply.p, q->reply.n);
    state_view_end(&q->view);
    plan_notes_drop(q->notes);
    arena_fini(&q->arena);
    buf_fini(&q->reply);
    free(q);
}

void query_nodes(struct room *r, query_fn fn, void *arg) {
    struct asking *q = xnew(struct asking);
    *q = (struct asking){.room = r, .done = fn, .arg = arg, .now_unix = room_now_unix(r)};
    state_view(r->state, &q->view);
    q->notes = plan_notes_take(r->plan);
    q->soft = arena_calloc(&q->arena, cow_count(q->view.nodes) + 1, sizeof(*q->soft));
    const struct node *n;
    size_t i = 0;
    for (uint64_t k = 0; (n = view_next_node(&q->view, &k)); k++)
        q->soft[i++] = lead_node(r->lead, n->id);
    r->host->work(r->host->impl, work, done, q);
}
