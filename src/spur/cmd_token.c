/* SPDX-License-Identifier: Apache-2.0
 *
 * spur token: the tokens with which nodes join where [admission] asks for one. The text of a new one goes to stdout
 * alone, for `$(spur token create)`; the controller keeps its hash and can't show it again.
 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"

struct token {
    struct cli *c;
    uint32_t ttl_secs;
    const char *description;
};

/* "90" and "90s", "30m", "2h", "7d". */
static int set_ttl(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const struct {
        char letter;
        uint32_t secs;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    struct token *t = r->ctx;
    char digits[12];
    size_t n = strspn(value, "0123456789");
    uint32_t unit = value[n] ? 0 : 1;
    uint64_t v = 0;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (value[n] == units[i].letter && !value[n + 1])
            unit = units[i].secs;
    snprintf(digits, sizeof(digits), "%.*s", (int)MIN(n, sizeof(digits) - 1), value);
    if (!unit || n >= sizeof(digits) || str_to_u64(digits, UINT32_MAX / unit, &v) || !v)
        return opt_bad_value(r, o);
    t->ttl_secs = (uint32_t)v * unit;
    return 0;
}

#define AT(field) offsetof(struct token, field)
static const struct opt_row rows[] = {
    {"description", 'd', "text", OPT_TEXT, 0, AT(description), NULL, NULL, "create: what it is for"},
    OPT_ROW_HELP,
    {"ttl", 't', "time", OPT_CALL, 0, 0, set_ttl, NULL, "create: how long it is good, as 90s, 30m, 2h, 7d; else for ever"},
    OPT_ROW_USAGE,
    OPT_ROW_VERSION,
};

const struct opt_table *cmd_token_options(void) {
    static const struct opt_table t = {
        .usage = "create [OPTIONS] | list | revoke ID…",
        .brief = "create [-d text] [-t time] | list | revoke id…",
        .row = rows,
        .n = ARRAY_LEN(rows),
        .usage_exit = 1,
        .note = "Tokens admit nodes where spur.conf has [admission] mode = \"token\" (spurd --token). For administrators.\n"
                "A token of a user's own, for use over TCP, comes from `scontrol token`.\n"};
    return &t;
}

static int ask(struct token *t, struct join_token_request *request, struct join_token_reply *reply) {
    uint8_t token[TOKEN_SIZE];
    struct err e = {0};
    spur_token(token);
    request->token = token;
    request->n_token = sizeof(token);
    if (cli_call(t->c, WIRE_Controller_JoinToken, request, reply, &e)) {
        cli_error(t->c, "%s", e.text);
        return 1;
    }
    return 0;
}

static int create(struct token *t) {
    struct join_token wanted = {.text = t->description};
    struct join_token_request request = {.create = &wanted, .ttl_secs = t->ttl_secs};
    struct join_token_reply reply = {0};
    int rc = ask(t, &request, &reply);
    if (!rc)
        puts(reply.text ? reply.text : "");
    return rc;
}

static void add_user(uint32_t uid, struct str *out) {
    char number[16];
    const struct passwd *pw = getpwuid(uid);
    snprintf(number, sizeof(number), "%u", uid);
    str_addf(out, "%-12s ", pw ? pw->pw_name : number);
}

static int list(struct token *t) {
    struct join_token_request request = {0};
    struct join_token_reply reply = {0};
    auto_str out = {0};
    int rc = ask(t, &request, &reply);
    if (rc)
        return rc;
    str_addf(&out, "%-8s %-20s %-20s %-12s %s\n", "ID", "CREATED", "EXPIRES", "BY", "DESCRIPTION");
    for (uint32_t i = 0; i < reply.n_tokens; i++) {
        const struct join_token *k = &reply.tokens[i];
        auto_str created = {0}, until = {0};
        cli_time(k->created_unix, "N/A", &created);
        cli_time(k->until_unix, "never", &until);
        str_addf(&out, "%-8s %-20s %-20s ", k->id ? k->id : "", created.p, until.p);
        add_user(k->uid, &out);
        str_addf(&out, "%s\n", k->text ? k->text : "");
    }
    cli_out(&out);
    return 0;
}

static int revoke(struct token *t, const char *id) {
    struct join_token_request request = {.revoke = id};
    struct join_token_reply reply = {0};
    return ask(t, &request, &reply);
}

static int run(struct token *t, const char *const *word, size_t n) {
    const char *verb = n ? word[0] : "";
    bool has_options = t->description || t->ttl_secs;
    int exit_code = 0;
    if (str_eq(verb, "create") && n == 1)
        return create(t);
    if (has_options)
        cli_error(t->c, "--ttl and --description are for `create`");
    else if (str_eq(verb, "list") && n == 1)
        return list(t);
    else if (str_eq(verb, "revoke") && n > 1) {
        for (size_t i = 1; i < n; i++)
            exit_code |= revoke(t, word[i]);
        return exit_code;
    } else if (str_eq(verb, "user"))
        cli_error(t->c, "a token of a user's own comes from `scontrol token username=NAME lifespan=SECS`");
    else
        cli_error(t->c, "say what to do: create, list, or revoke with the ids of tokens");
    return 1;
}

int cmd_token(struct cli *c) {
    struct token t = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_token_options(), &t, &r, true, &exit_code))
        exit_code = run(&t, r.words.p, r.words.n);
    opt_fini(&r);
    return exit_code;
}
