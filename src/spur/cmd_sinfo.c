/* SPDX-License-Identifier: Apache-2.0
 *
 * sinfo: nodes of partitions, put together in rows of those that look alike in what is shown.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/hint.h"
#include "spur/json_doc.h"
#include "spur/table_json.h"
#include "spur/node_facts.h"
#include "spur/sinfo.h"

static int set_format(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sinfo *s = r->ctx;
    bool is_long = str_eq(o->name, "Format");
    s->format = is_long ? NULL : value;
    s->long_format = is_long ? value : NULL;
    return 0;
}

static int set_json(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct sinfo *s = r->ctx;
    s->json = true;
    s->json_version = value;
    return 0;
}

#define AT(field) offsetof(struct sinfo, field)
static const struct opt_row rows[] = {
    {"Format", 'O', "format", OPT_CALL, 0, 0, set_format, NULL, "columns by name: NAME[:[.][WIDTH][SUFFIX]],…"},
    {"Node", 'N', NULL, OPT_BOOL, 0, AT(by_node), NULL, NULL, "a line for each node and partition"},
    {"all", 'a', NULL, OPT_BOOL, 0, AT(all), NULL, "ALL", "hidden partitions too"},
    {"clusters", 'M', "names", OPT_CLUSTERS, 0, 0, NULL, "CLUSTERS", "this cluster by its name, or all"},
    {"dead", 'd', NULL, OPT_BOOL, 0, AT(dead), NULL, NULL, "only nodes that don't respond"},
    {"exact", 'e', NULL, OPT_BOOL, 0, AT(exact), NULL, NULL, "put only nodes of equal sizes together"},
    {"federation", 0, NULL, OPT_NOT_YET},
    {"format", 'o', "format", OPT_CALL, 0, 0, set_format, "FORMAT", "columns by letter: %[.][WIDTH]LETTER…"},
    {"future", 'F', NULL, OPT_BOOL, 0, AT(future), NULL, "FUTURE", "nodes in state FUTURE too"},
    OPT_ROW_HELP_LONG,
    {"helpformat", 0, NULL, OPT_BOOL, 0, AT(help_format), NULL, NULL, "list the names for -O"},
    {"hide", 0, NULL, OPT_NOT_YET},
    {"iterate", 'i', "seconds", OPT_TEXT, 0, AT(iterate), NULL, NULL, "again and again, with so long a pause"},
    {"json", 0, "version", OPT_CALL, OPT_MAYBE, 0, set_json, NULL, "all of it, as JSON (list: which versions there are)"},
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
    OPT_ROW_STALE,
    {"states", 't', "states", OPT_TEXT, 0, AT(state_list), NULL, NULL, "only nodes in these states: a,b either; a&b both; ~a not"},
    {"summarize", 's', NULL, OPT_BOOL, 0, AT(summarize), NULL, NULL, "a line for each partition"},
    OPT_ROW_USAGE,
    {"verbose", 'v', NULL, OPT_NOT_YET},
    OPT_ROW_VERSION,
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
        hint_field(s->c, t->fields, t->bad.p[i], strlen(t->bad.p[i]));
    }
}

/* In the default formats names of nodes and partitions get the room they need. */
static void widen(struct table *t, const sinfo_rows *list) {
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

/* ---- all of it ---- */

static void print(const struct sinfo *s, const struct nodes_reply *reply) {
    struct table t;
    sinfo_rows list = {0};
    auto_str out = {0};
    make_table(s, &t);
    sinfo_rows_make(s, &t, reply, &list);
    if (!s->format && !s->long_format)
        widen(&t, &list);
    if ((s->long_list || s->interval_secs) && !s->no_header) {
        cli_date(time(NULL), &out);
        str_addc(&out, '\n');
    }
    if (!s->no_header)
        table_head(&t, &out);
    for (size_t i = 0; i < list.n; i++)
        table_line(&t, &list.p[i], NULL, &out);
    cli_out(&out);
    sinfo_rows_fini(&list);
    table_fini(&t);
}

/* Nodes that differ in anything that is told of them all are rows of their own. */
static void print_json(const struct sinfo *s, const struct nodes_reply *reply) {
    struct table t;
    sinfo_rows list = {0};
    auto_str out = {0};
    struct json w = {.out = &out};
    struct table_json shape;
    table_init(&t, node_fields());
    table_parse_percent(&t, "%P %T %f %G %E %u %H %c %m %d %w %z");
    sinfo_rows_make(s, &t, reply, &list);
    table_json_init(&shape, node_fields(), 3);
    json_doc_begin(&w);
    json_open(&w, "sinfo", '[');
    for (size_t i = 0; i < list.n; i++) {
        table_json_row(&shape, &w, &list.p[i], reply->cluster_name);
        json_doc_flush(&w);
    }
    json_close(&w, ']');
    table_json_fini(&shape);
    json_doc_end(&w, s->c, reply->cluster_name);
    sinfo_rows_fini(&list);
    table_fini(&t);
}

static int show_once(const struct sinfo *s) {
    struct nothing request = {0};
    struct nodes_reply reply = {0};
    struct err e = {0};
    int rc = cli_call(s->c, WIRE_Controller_Nodes, &request, &reply, &e);
    if (!s->future)
        node_drop_future(&reply);
    if (rc) {
        fprintf(stderr, "slurm_load_partitions: %s\n", e.text);
        return 1;
    }
    if (s->c->cluster && !s->json)
        printf("CLUSTER: %s\n", s->c->cluster);
    (s->json ? print_json : print)(s, &reply);
    return 0;
}

static int show(struct sinfo *s) {
    if (s->iterate && !cli_interval(s->c, s->iterate, &s->interval_secs))
        return 1;
    int exit_code = show_once(s);
    while (s->interval_secs) {
        putchar('\n');
        fflush(stdout);
        sleep(s->interval_secs);
        exit_code = show_once(s);
    }
    return exit_code;
}

int cmd_sinfo(struct cli *c) {
    struct sinfo s = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_sinfo_options(), &s, &r, false, &exit_code)) {
        if (s.help_format) {
            auto_str out = {0};
            table_names(node_fields(), &out);
            cli_out(&out);
            exit_code = 0;
        } else if ((!s.json || json_doc_version(c, s.json_version, &exit_code)) && read_lists(&s)) {
            exit_code = show(&s);
        }
    }
    opt_fini(&r);
    return exit_code;
}
