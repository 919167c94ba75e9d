/* SPDX-License-Identifier: Apache-2.0
 *
 * spur controller: who the controllers are, and changes of them, one at a time.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/controllers.h"
#include "spur/json_doc.h"
#include "spur/table_json.h"

#define REMOVE_TIMES 4 /* how often the lead is handed on before one is removed that gets it again */

struct controller {
    struct cli *c;
    bool json, no_header;
    const char *json_version;
};

static int set_json(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct controller *k = r->ctx;
    k->json = true;
    k->json_version = value;
    return 0;
}

#define AT(field) offsetof(struct controller, field)
static const struct opt_row rows[] = {
    OPT_ROW_HELP,
    {"json", 0, "version", OPT_CALL, OPT_MAYBE, 0, set_json, NULL, "list: as JSON (list: which versions there are)"},
    {"noheader", 'n', NULL, OPT_BOOL, 0, AT(no_header), NULL, NULL, "list: no line of headings"},
    OPT_ROW_USAGE,
    OPT_ROW_VERSION,
};

const struct opt_table *cmd_controller_options(void) {
    static const struct opt_table t = {
        .usage = "list [OPTIONS] | transfer [ID] | add ID HOST:PORT | remove ID",
        .brief = "list [-n] [--json] | transfer [id] | add id host:port | remove id",
        .row = rows,
        .n = ARRAY_LEN(rows),
        .usage_exit = 1,
        .note = "ID is a controller's number, its place in [controller] peers. HOST:PORT is its port among controllers.\n"
                "add: the new one begins as a spare, and votes once it has what the others have. remove: the one that leads hands\n"
                "the lead on before. transfer without ID: to whoever has most. list is for everybody, the rest for administrators.\n"};
    return &t;
}

/* ---- list ---- */

#define ROW(p) ((const struct controller_seen *)(p))
#define FIELD(name) static void name(const void *row, const void *env, struct str *out)
FIELD(id) {
    if (ROW(row)->id)
        str_addf(out, "%u", ROW(row)->id);
    else
        str_add(out, "?");
}
FIELD(address) {
    str_add(out, ROW(row)->address);
}
FIELD(role) {
    str_add(out, *ROW(row)->role ? ROW(row)->role : "-");
}
FIELD(state) {
    str_add(out, ROW(row)->is_up ? "UP" : "DOWN");
}
FIELD(term) {
    str_addf(out, "%llu", (unsigned long long)ROW(row)->term);
}
FIELD(reached) {
    str_addf(out, "%llu", (unsigned long long)ROW(row)->index);
}
FIELD(version) {
    str_add(out, ROW(row)->version);
}
#define NUMBER(name, member)                                                                                           \
    static int64_t name(const void *row, const void *env) {                                                            \
        return (int64_t)ROW(row)->member;                                                                              \
    }
NUMBER(id_number, id)
NUMBER(term_number, term)
NUMBER(index_number, index)

static const struct table_field field_rows[] = {
    {'i', "id", "ID", id, .number = id_number, .json = "id", .as = JSON_NUMBER},
    {'a', "address", "ADDRESS", address, .json = "address", .whole = true},
    {'r', "role", "ROLE", role, .json = "role"},
    {'t', "state", "STATE", state, .json = "state"},
    {'e', "term", "TERM", term, .number = term_number, .json = "term", .as = JSON_NUMBER},
    {'x', "index", "INDEX", reached, .number = index_number, .json = "index", .as = JSON_NUMBER},
    {'v', "version", "VERSION", version, .json = "version"},
};
static const struct table_fields fields = {field_rows, ARRAY_LEN(field_rows)};

static void print_table(const struct controller *k, const struct controllers_seen *seen) {
    struct table t;
    auto_str out = {0}, format = {0};
    size_t width = strlen("ADDRESS");
    for (size_t i = 0; i < seen->n; i++)
        width = MAX(width, strlen(seen->at[i].address));
    str_addf(&format, "%%2i %%%zua %%9r %%5t %%.6e %%.10x %%v", MIN(width, (size_t)200));
    table_init(&t, &fields);
    table_parse_percent(&t, str_text(&format));
    if (!k->no_header)
        table_head(&t, &out);
    for (size_t i = 0; i < seen->n; i++)
        table_line(&t, &seen->at[i], NULL, &out);
    cli_out(&out);
    table_fini(&t);
}

static void print_json(const struct controller *k, const struct controllers_seen *seen) {
    auto_str out = {0};
    struct json w = {.out = &out};
    struct table_json shape;
    table_json_init(&shape, &fields, 2);
    json_doc_begin(&w);
    json_open(&w, "controllers", '[');
    for (size_t i = 0; i < seen->n; i++)
        table_json_row(&shape, &w, &seen->at[i], NULL);
    json_close(&w, ']');
    json_number(&w, "leader", seen->leader_id);
    table_json_fini(&shape);
    json_doc_end(&w, k->c, seen->cluster);
}

static int list(const struct controller *k) {
    struct controllers_seen seen;
    struct err e = {0};
    if (controllers_see(k->c, &seen, &e)) {
        cli_error(k->c, "%s", e.text);
        return 1;
    }
    (k->json ? print_json : print_table)(k, &seen);
    if (!seen.is_answered)
        cli_error(k->c, "%s", seen.why.text);
    else if (!seen.leader_id)
        cli_error(k->c, "no controller leads");
    return seen.leader_id ? 0 : 1;
}

/* ---- changes ---- */

static int change(struct controller *k, enum controller_verb verb, uint32_t number, const char *at) {
    struct controller_change request = {.verb = verb, .id = number, .address = at};
    struct nothing reply = {0};
    struct err e = {0};
    int rc = cli_call(k->c, WIRE_Controller_ChangeController, &request, &reply, &e);
    if (rc)
        cli_error(k->c, "%s", e.text);
    return rc ? 1 : 0;
}

static bool leads(const struct controller *k, uint32_t number) {
    struct controllers_seen seen;
    struct err e = {0};
    return !controllers_see(k->c, &seen, &e) && seen.leader_id == number && seen.n > 1;
}

/* The one that leads hands the lead on, and is removed by whoever leads then; which may be itself again. */
static int remove_one(struct controller *k, uint32_t number) {
    struct controller_change request = {.verb = CONTROLLER_REMOVE, .id = number};
    struct nothing reply = {0};
    struct err e = {0};
    int rc = 0;
    for (int i = 0; i < REMOVE_TIMES; i++) {
        if (leads(k, number) && change(k, CONTROLLER_TRANSFER, 0, NULL))
            return 1;
        rc = cli_call(k->c, WIRE_Controller_ChangeController, &request, &reply, &e);
        if (rc != E_DENIED || !leads(k, number))
            break;
    }
    if (rc)
        cli_error(k->c, "%s", e.text);
    return rc ? 1 : 0;
}

static int wrong(const struct controller *k, const char *text) {
    cli_error(k->c, "%s", text);
    return 1;
}

static int run(struct controller *k, const char *const *word, size_t n) {
    const char *verb = n ? word[0] : "";
    bool is_list = str_eq(verb, "list");
    uint64_t number = 0;
    if (is_list && n == 1)
        return list(k);
    if (k->json || k->no_header)
        return wrong(k, "--json and --noheader are for `list`");
    if (n > 1 && !is_list && (str_to_u64(word[1], UINT32_MAX, &number) || !number)) {
        cli_error(k->c, "%s is no controller's number; spur controller list shows them", word[1]);
        return 1;
    }
    if (str_eq(verb, "transfer") && n <= 2)
        return change(k, CONTROLLER_TRANSFER, (uint32_t)number, NULL);
    if (str_eq(verb, "remove") && n == 2)
        return remove_one(k, (uint32_t)number);
    if (str_eq(verb, "add") && n == 3)
        return change(k, CONTROLLER_ADD, (uint32_t)number, word[2]);
    return wrong(k, "say what to do: list, transfer [ID], add ID HOST:PORT, or remove ID");
}

int cmd_controller(struct cli *c) {
    struct controller k = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_controller_options(), &k, &r, true, &exit_code) &&
        (!k.json || json_doc_version(c, k.json_version, &exit_code)))
        exit_code = run(&k, r.words.p, r.words.n);
    opt_fini(&r);
    return exit_code;
}
