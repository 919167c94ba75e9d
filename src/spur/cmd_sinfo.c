/* SPDX-License-Identifier: Apache-2.0
 *
 * sinfo: nodes of partitions, put together in rows of those that look alike in what is shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "base/mem.h"
#include "spur/command.h"
#include "spur/node_facts.h"
#include "spur/node_fields.h"

struct sinfo {
    struct cli *c;
    const char *format, *long_format, *sort, *part_list, *node_list, *state_list;
    bool all, by_node, long_list, summarize, no_header, reasons, exact, dead, responding;
    const char *const *part, *const *node, *const *state;
    uint32_t n_part, n_node, n_state;
};

static int set_format(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sinfo *s = r->ctx;
    bool is_long = str_eq(o->name, "Format");
    s->format = is_long ? NULL : value;
    s->long_format = is_long ? value : NULL;
    return 0;
}

#define AT(field) offsetof(struct sinfo, field)
static const struct opt_row rows[] = {
    {"Format", 'O', "format", OPT_CALL, 0, 0, set_format, NULL, "columns by name: NAME[:[.][WIDTH][SUFFIX]],…"},
    {"Node", 'N', NULL, OPT_BOOL, 0, AT(by_node), NULL, NULL, "a line for each node and partition"},
    {"all", 'a', NULL, OPT_BOOL, 0, AT(all), NULL, "ALL", "all partitions (none is hidden)"},
    {"clusters", 'M', "names", OPT_NOT_YET},
    {"dead", 'd', NULL, OPT_BOOL, 0, AT(dead), NULL, NULL, "only nodes that don't respond"},
    {"exact", 'e', NULL, OPT_BOOL, 0, AT(exact), NULL, NULL, "put only nodes of equal sizes together"},
    {"federation", 0, NULL, OPT_NOT_YET},
    {"format", 'o', "format", OPT_CALL, 0, 0, set_format, "FORMAT", "columns by letter: %[.][WIDTH]LETTER…"},
    {"future", 'F', NULL, OPT_NOT_YET},
    {"help", 0, NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help"},
    {"hide", 0, NULL, OPT_NOT_YET},
    {"iterate", 'i', "seconds", OPT_NOT_YET},
    {"json", 0, "version", OPT_NOT_YET, OPT_MAYBE},
    {"list-reasons", 'R', NULL, OPT_BOOL, 0, AT(reasons), NULL, NULL, "why nodes are down or drained"},
    {"local", 0, NULL, OPT_NOT_YET},
    {"long", 'l', NULL, OPT_BOOL, 0, AT(long_list), NULL, NULL, "more columns"},
    {"noconvert", 0, NULL, OPT_NOT_YET},
    {"nodes", 'n', "nodes", OPT_TEXT, 0, AT(node_list), NULL, NULL, "only these nodes"},
    {"noheader", 'h', NULL, OPT_BOOL, 0, AT(no_header), NULL, NULL, "no headings"},
    {"partition", 'p', "partition", OPT_TEXT, 0, AT(part_list), NULL, "PARTITION", "only these partitions"},
    {"reservation", 'T', NULL, OPT_NOT_YET},
    {"responding", 'r', NULL, OPT_BOOL, 0, AT(responding), NULL, NULL, "only nodes that respond"},
    {"sort", 'S', "fields", OPT_TEXT, 0, AT(sort), NULL, "SORT", "order by letters of -o, - in front: descending"},
    {"states", 't', "states", OPT_TEXT, 0, AT(state_list), NULL, NULL, "only nodes in these states"},
    {"summarize", 's', NULL, OPT_BOOL, 0, AT(summarize), NULL, NULL, "a line for each partition"},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "show a short usage"},
    {"verbose", 'v', NULL, OPT_NOT_YET},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "show the version"},
    {"yaml", 0, "version", OPT_NOT_YET, OPT_MAYBE},
};

const struct opt_table *cmd_sinfo_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS]", .brief = "[-adehlNRrs] [-n nodes] [-o format] [-O fields] [-p partitions]\n"
        "     [-S fields] [-t states]",
        .row = rows, .n = ARRAY_LEN(rows), .usage_exit = 1, .env_prefix = {"SINFO_"}};
    return &t;
}

/* ---- which ---- */

static bool has(const char *const *list, uint32_t n, const char *word) {
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(list[i], word))
            return true;
    return false;
}

static bool is_wanted(const struct sinfo *s, const struct node *n) {
    if (s->node_list && !has(s->node, s->n_node, n->name))
        return false;
    if ((s->dead && !n->not_responding) || (s->responding && n->not_responding))
        return false;
    bool known, matches = !s->n_state;
    for (uint32_t i = 0; i < s->n_state && !matches; i++)
        matches = node_state_matches(n, s->state[i], &known);
    return matches;
}

static bool read_lists(struct sinfo *s) {
    struct err e = {0};
    if (s->part_list)
        s->part = cli_words(s->c, s->part_list, ",", &s->n_part);
    if (s->node_list && hostlist_expand(s->node_list, &s->c->arena, &s->node, &s->n_node, &e)) {
        cli_error(s->c, "%s", e.text);
        return false;
    }
    if (s->state_list)
        s->state = cli_words(s->c, s->state_list, ",", &s->n_state);
    for (uint32_t i = 0; i < s->n_state; i++) {
        bool known;
        node_state_matches(NULL, s->state[i], &known);
        if (!known) {
            cli_error(s->c, "Bad state string: \"%s\"", s->state[i]);
            cli_error(s->c, "valid states: %s", node_valid_states());
            return false;
        }
    }
    return true;
}

/* ---- what is shown ---- */

static const char *default_format(const struct sinfo *s) {
    if (s->summarize)
        return "%9P %.5a %.10l %.16F %N";
    if (s->by_node)
        return s->long_list ? "%9N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E" : "%9N %.6D %.9P %6t";
    if (s->reasons)
        return s->long_list ? "%20E %12U %19H %6t %N" : "%20E %9u %19H %N";
    return s->long_list ? "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N" : "%9P %.5a %.10l %.6D %.6t %N";
}

static void make_table(const struct sinfo *s, struct table *t) {
    table_init(t, node_fields());
    if (s->long_format)
        table_parse_long(t, s->long_format);
    else
        table_parse_percent(t, s->format ? s->format : default_format(s));
    for (size_t i = 0; i < t->bad.n; i++) {
        if (s->long_format)
            cli_error(s->c, "Invalid job format specification: %s", t->bad.p[i]);
        else
            fprintf(stderr, "Invalid node format specification: %s\n", t->bad.p[i]);
    }
}

typedef VEC(struct node_row) row_list;

/* In the default formats names of nodes and partitions get the room they need. */
static void widen(struct table *t, const row_list *list) {
    int part = 9, node = 9;
    for (size_t i = 0; i < list->n; i++) {
        part = MAX(part, (int)strlen(list->p[i].part->name) + list->p[i].part->is_default);
        if (list->p[i].nodes.n)
            node = MAX(node, (int)strlen(list->p[i].nodes.p[0]->node->name));
    }
    for (size_t i = 0; i < t->cols.n; i++) {
        const struct table_field *f = t->cols.p[i].field;
        if (f && t->cols.p[i].width == 9 && (f->letter == 'P' || f->letter == 'N'))
            t->cols.p[i].width = f->letter == 'P' ? part : node;
    }
}

static bool shows_partition(const struct table *t) {
    for (size_t i = 0; i < t->cols.n; i++)
        if (t->cols.p[i].field && t->cols.p[i].field->flags & FIELD_PART)
            return true;
    return false;
}

/* ---- rows ---- */

struct rows {
    const struct sinfo *s;
    const struct table *t;
    row_list list;
    struct maps by_key; /* key → index + 1 */
};

static struct node_row *row_of(struct rows *r, const struct part *p, uint32_t order, const struct node_info *ni) {
    struct node_row one = {.part = p, .part_order = order};
    auto_str key = {0};
    vec_push(&one.nodes, ni);
    table_key(r->t, r->s->exact || r->s->by_node ? FIELD_KEY | FIELD_SIZE : FIELD_KEY, &one, NULL, &key);
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
        if (!ni->node || !has(ni->partitions, ni->n_partitions, p->name) || !is_wanted(r->s, ni->node))
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

/* ---- all of it ---- */

static void print(const struct sinfo *s, const struct nodes_reply *reply) {
    struct table t;
    auto_str out = {0};
    make_table(s, &t);
    struct rows r = {.s = s, .t = &t};
    for (uint32_t i = 0; i < reply->n_parts; i++)
        if (!s->part_list || has(s->part, s->n_part, reply->parts[i].name))
            add_partition(&r, &reply->parts[i], i, reply);
    struct order o = {0};
    order_parse(s->sort ? s->sort : default_order(s), &o);
    if (r.list.n)
        qsort_r(r.list.p, r.list.n, sizeof(*r.list.p), compare, &o);
    if (!s->format && !s->long_format)
        widen(&t, &r.list);
    if (s->long_list && !s->no_header) {
        cli_date(time(NULL), &out);
        str_addc(&out, '\n');
    }
    if (!s->no_header)
        table_head(&t, &out);
    for (size_t i = 0; i < r.list.n; i++) {
        table_line(&t, &r.list.p[i], NULL, &out);
        vec_fini(&r.list.p[i].nodes);
    }
    cli_out(&out);
    vec_fini(&r.list);
    maps_fini(&r.by_key);
    table_fini(&t);
}

int cmd_sinfo(struct cli *c) {
    struct sinfo s = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_sinfo_options(), &s, &r, false, &exit_code) && read_lists(&s)) {
        struct nothing request = {0};
        struct nodes_reply reply = {0};
        struct err e = {0};
        if (cli_call(c, WIRE_Controller_Nodes, &request, &reply, &e)) {
            fprintf(stderr, "slurm_load_partitions: %s\n", e.text);
        } else {
            print(&s, &reply);
            exit_code = 0;
        }
    }
    opt_fini(&r);
    return exit_code;
}
