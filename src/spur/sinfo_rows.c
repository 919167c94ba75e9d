/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "spur/node_facts.h"
#include "spur/sinfo.h"

static bool has(const char *const *list, uint32_t n, const char *word) {
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(list[i], word))
            return true;
    return false;
}

static bool is_wanted(const struct sinfo *s, const struct node_info *ni) {
    const struct node *n = ni->node;
    if (s->node_list && !has(s->node, s->n_node, n->name))
        return false;
    if ((s->dead && !n->not_responding) || (s->responding && n->not_responding))
        return false;
    bool known, matches = !s->n_state;
    for (uint32_t i = 0; i < s->n_state && !matches; i++)
        matches = node_state_matches(ni, s->state[i], &known);
    return matches;
}

static bool shows_partition(const struct table *t) {
    for (size_t i = 0; i < t->cols.n; i++)
        if (t->cols.p[i].field && t->cols.p[i].field->flags & FIELD_PART)
            return true;
    return false;
}

struct rows {
    const struct sinfo *s;
    const struct table *t;
    sinfo_rows list;
    struct maps by_key; /* key → index + 1 */
};

static struct node_row *row_of(struct rows *r, const struct part *p, uint32_t order, const struct node_info *ni) {
    struct node_row one = {.part = p, .part_order = order};
    auto_str key = {0};
    vec_push(&one.nodes, ni);
    table_key(r->t, r->s->exact || r->s->by_node || r->s->json ? FIELD_KEY | FIELD_SIZE : FIELD_KEY, &one, NULL, &key);
    if (r->s->by_node)
        str_addf(&key, "%s\x1f%u", ni->node->name, order);
    vec_fini(&one.nodes);
    uintptr_t at = (uintptr_t)maps_get(&r->by_key, str_text(&key));
    if (at)
        return &r->list.p[at - 1];
    one.key = arena_strdup(&r->s->c->arena, str_text(&key));
    vec_push(&r->list, one);
    maps_put(&r->by_key, one.key, (void *)(uintptr_t)r->list.n);
    return &r->list.p[r->list.n - 1];
}

/* Two partitions may have the same node; where rows don't tell them apart it counts once. */
static void add_node(struct node_row *row, const struct node_info *ni) {
    for (size_t i = 0; row->part && i < row->nodes.n; i++)
        if (row->nodes.p[i] == ni)
            return;
    vec_push(&row->nodes, ni);
}

static void add_partition(struct rows *r, const struct part *p, uint32_t order, const struct nodes_reply *reply) {
    bool any = false;
    auto_str reason = {0};
    for (uint32_t i = 0; i < reply->n_nodes; i++) {
        const struct node_info *ni = &reply->nodes[i];
        if (!ni->node || !has(ni->partitions, ni->n_partitions, p->name) || !is_wanted(r->s, ni))
            continue;
        if (r->s->reasons) {
            str_clear(&reason);
            node_reason(ni->node, &reason);
            if (!reason.n)
                continue;
        }
        add_node(row_of(r, p, order, ni), ni);
        any = true;
    }
    if (!any && !r->s->by_node && !r->s->reasons && shows_partition(r->t))
        vec_push(&r->list, (struct node_row){.part = p, .part_order = order});
}

/* ---- order ---- */

struct order {
    const struct table_field *field[16]; /* NULL: the order of partitions in the configuration */
    bool down[16];
    size_t n;
};

static void order_parse(const char *text, struct order *o) {
    for (const char *at = text; *at && o->n < ARRAY_LEN(o->field); at++) {
        bool is_order = *at == '#';
        bool down = *at == '-';
        at += *at == '#' || *at == '-' || *at == '+';
        const struct table_field *f = table_letter(node_fields(), *at);
        if (f && (f->compare || f->number || f->text)) {
            o->field[o->n] = is_order ? NULL : f;
            o->down[o->n++] = down;
        }
        if (!*at)
            break;
    }
}

static int compare(const void *a, const void *b, void *arg) {
    const struct order *o = arg;
    const struct node_row *x = a, *y = b;
    for (size_t i = 0; i < o->n; i++) {
        const struct table_field *f = o->field[i];
        int c = 0;
        if (f)
            c = table_compare(f, a, b, NULL);
        else
            c = (x->part_order > y->part_order) - (x->part_order < y->part_order);
        if (c)
            return o->down[i] ? -c : c;
    }
    if (x->part_order != y->part_order)
        return x->part_order < y->part_order ? -1 : 1;
    return hostname_compare(x->nodes.n ? x->nodes.p[0]->node->name : "", y->nodes.n ? y->nodes.p[0]->node->name : "");
}

static const char *default_order(const struct sinfo *s) {
    return s->by_node ? "N,#P" : s->reasons ? "-t" : s->summarize ? "#P" : "#P,-t";
}

void sinfo_rows_make(const struct sinfo *s, const struct table *t, const struct nodes_reply *reply, sinfo_rows *out) {
    struct rows r = {.s = s, .t = t};
    bool all = s->all || geteuid() == 0;
    for (uint32_t i = 0; i < reply->n_parts; i++)
        if ((!s->part_list && (all || !reply->parts[i].hidden)) || (s->part_list && has(s->part, s->n_part, reply->parts[i].name)))
            add_partition(&r, &reply->parts[i], i, reply);
    struct order o = {0};
    order_parse(s->sort ? s->sort : default_order(s), &o);
    if (r.list.n)
        qsort_r(r.list.p, r.list.n, sizeof(*r.list.p), compare, &o);
    maps_fini(&r.by_key);
    *out = r.list;
}

void sinfo_rows_fini(sinfo_rows *rows) {
    for (size_t i = 0; i < rows->n; i++)
        vec_fini(&rows->p[i].nodes);
    vec_fini(rows);
}
