/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of the state, and the views of them. Whoever changes a record goes through here, so that what is derived
 * from the records never differs from them.
 */
#include "core/state/state.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/state/inside.h"

#define REC_SELF token_rec
REC_DEFINE(token_rec, TOKEN_REC_FIELDS)
#undef REC_SELF

struct state *state_new(void) {
    struct state *s = xnew(struct state);
    s->epochs = cow_epochs_new();
    cow_init(&s->jobs, s->epochs);
    cow_init(&s->nodes, s->epochs);
    cow_init(&s->parts, s->epochs);
    cow_init(&s->tokens, s->epochs);
    cow_init(&s->steps, s->epochs);
    s->cluster = rec_pack(cluster_rec(), &(struct cluster){0});
    s->counters = (struct counters){.next_job_id = 1, .next_node_id = 1, .next_token_no = 1};
    return s;
}

static void destroy(struct state *s) {
    cow_fini(&s->jobs);
    cow_fini(&s->nodes);
    cow_fini(&s->parts);
    cow_fini(&s->tokens);
    cow_fini(&s->steps);
    rec_free(s->cluster);
    map64_fini(&s->token_at);
    maps_fini(&s->node_names);
    idset_fini(&s->children);
    idset_fini(&s->arrays);
    idset_fini(&s->node_jobs);
    licenses_free(s);
    cow_epochs_free(s->epochs);
    free(s);
}

void state_free(struct state *s) {
    if (s && s->n_views)
        s->is_left = true;
    else if (s)
        destroy(s);
}

static void count_job(struct state *s, const struct job *j, int by) {
    if (j && j->state < JOB_N_STATES)
        s->n_state[j->state] += (size_t)by;
}

void state_put_job(struct state *s, const struct job *j) {
    const struct job *old = state_job(s, j->id);
    count_job(s, old, -1);
    count_job(s, j, 1);
    if (j->array)
        arrays_put(s, old, j);
    else
        cow_put(&s->jobs, j->id, rec_pack(job_rec(), j));
    if (!old)
        deps_index(s, j);
}

void state_del_job(struct state *s, uint32_t id) {
    const struct job *j = state_job(s, id);
    if (!j)
        return;
    count_job(s, j, -1);
    deps_unindex(s, j);
    if (j->array)
        arrays_del(s, j);
    if (job_rare_of(j)->next_step_id)
        state_del_steps(s, id);
    cow_del(&s->jobs, id);
}

void state_put_step(struct state *s, const struct step *st) {
    cow_put(&s->steps, step_key(st->job_id, st->id), rec_pack(step_rec(), st));
}

void state_del_step(struct state *s, uint32_t job_id, uint32_t id) {
    cow_del(&s->steps, step_key(job_id, id));
}

void state_del_steps(struct state *s, uint32_t job_id) {
    const struct step *st;
    for (uint64_t k = step_key(job_id, 0); (st = cow_next(s->steps.root, &k)) && st->job_id == job_id; k++)
        cow_del(&s->steps, k);
}

void state_del_node(struct state *s, uint32_t id) {
    const struct node *n = state_node(s, id);
    if (!n)
        return;
    maps_del(&s->node_names, n->name);
    cow_del(&s->nodes, id);
}

void state_put_node(struct state *s, const struct node *n) {
    struct node *packed = rec_pack(node_rec(), n);
    const struct node *old = state_node(s, n->id);
    if (old)
        maps_del(&s->node_names, old->name);
    maps_put(&s->node_names, packed->name, (void *)(uintptr_t)n->id);
    cow_put(&s->nodes, n->id, packed);
}

const struct node *state_find_node(const struct state *s, const char *name) {
    void *id = name ? maps_get(&s->node_names, name) : NULL;
    return id ? state_node(s, (uint32_t)(uintptr_t)id) : NULL;
}

/* Views hold the cluster record by pointer: an old one lives in a table slot of its own until no view needs it. */
void state_set_cluster(struct state *s, const struct cluster *c) {
    struct cluster *next = rec_pack(cluster_rec(), c);
    cow_retire_record(s->epochs, s->cluster);
    s->cluster = next;
}

void state_set_parts(struct state *s, const struct part *parts, uint32_t n) {
    uint64_t k = 0;
    while (cow_next(s->parts.root, &k))
        cow_del(&s->parts, k);
    for (uint32_t i = 0; i < n; i++)
        cow_put(&s->parts, parts[i].id, rec_pack(part_rec(), &parts[i]));
}

void state_put_part(struct state *s, const struct part *p) {
    cow_put(&s->parts, p->id, rec_pack(part_rec(), p));
}

void state_del_part(struct state *s, uint32_t id) {
    cow_del(&s->parts, id);
}

void state_derive(struct state *s) {
    uint64_t k = 0;
    const struct job *j;
    const struct node *n;
    const struct token_rec *t;
    for (; (j = cow_next(s->jobs.root, &k)); k++) {
        count_job(s, j, 1);
        deps_index(s, j);
        if (j->array)
            arrays_derive(s, j);
        if (!job_holds_nodes(j))
            continue;
        licenses_count(s, j, true);
        for (uint32_t i = 0; i < job_n_held(j); i++)
            if (!job_held(j, i)->is_done)
                idset_add(&s->node_jobs, job_held(j, i)->node_id, j->id);
    }
    for (k = 0; (n = cow_next(s->nodes.root, &k)); k++)
        maps_put(&s->node_names, n->name, (void *)(uintptr_t)n->id);
    for (k = 0; (t = cow_next(s->tokens.root, &k)); k++)
        map64_put(&s->token_at, token_scope(t->token, t->uid), (void *)(uintptr_t)(k + 1));
}

uint64_t state_index(const struct state *s) {
    return s->index;
}

uint64_t state_digest(const struct state *s) {
    auto_buf small = {0};
    rec_encode(counters_rec(), &s->counters, &small);
    uint64_t parts[] = {s->jobs.digest, s->nodes.digest, s->parts.digest, s->tokens.digest, rec_hash(s->cluster),
                        hash_fixed(small.p, small.n)};
    auto_buf all = {0};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        buf_u64le(&all, parts[i]);
    if (s->steps.n) /* without any the digest is that of the first format */
        buf_u64le(&all, s->steps.digest);
    return hash_fixed(all.p, all.n);
}

void state_peek(const struct state *s, struct view *out) {
    *out = (struct view){
        .index = s->index,
        .digest = 0,
        .jobs = s->jobs.root,
        .nodes = s->nodes.root,
        .parts = s->parts.root,
        .tokens = s->tokens.root,
        .steps = s->steps.root,
        .cluster = s->cluster,
        .counters = s->counters,
    };
}

void state_view(struct state *s, struct view *out) {
    state_peek(s, out);
    out->digest = state_digest(s);
    out->pin = cow_pin(s->epochs);
    out->owner = s;
    s->n_views++;
}

void state_view_end(struct view *v) {
    struct state *s = v->owner;
    cow_unpin(s->epochs, v->pin);
    *v = (struct view){0};
    if (!--s->n_views && s->is_left)
        destroy(s);
}

struct state_stats state_stats(const struct state *s) {
    struct state_stats st = {
        .jobs = s->jobs.n,
        .nodes = s->nodes.n,
        .tokens = s->tokens.n,
        .steps = s->steps.n,
        .bytes = s->jobs.bytes + s->nodes.bytes + s->parts.bytes + s->tokens.bytes + s->steps.bytes,
        .waiting = cow_waiting(s->epochs),
        .pending = s->n_state[JOB_PENDING],
        .running = s->n_state[JOB_RUNNING] + s->n_state[JOB_SUSPENDED],
    };
    st.over = st.jobs - st.pending - st.running;
    return st;
}

void state_set_checking(struct state *s, bool on) {
    s->checking = on;
}
