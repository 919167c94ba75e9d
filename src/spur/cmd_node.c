/* SPDX-License-Identifier: Apache-2.0
 *
 * spur node: AMD Spur's verbs about nodes. `scontrol update nodename=…` says the same of drain and resume in Slurm's words.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/command.h"

/* Numbers of core/state/command.h's enum node_op, as the contract of node_update_request gives them. */
enum { OP_DRAIN = 1, OP_RESUME = 2, OP_DELETE = 4, OP_LABEL = 6 };

struct node_verb {
    struct cli *c;
    const char *reason;
    bool force;
};

#define AT(field) offsetof(struct node_verb, field)
static const struct opt_row rows[] = {
    {"force", 'f', NULL, OPT_BOOL, 0, AT(force), NULL, NULL, "remove: jobs that run there are ended, as of a node that failed"},
    OPT_ROW_HELP,
    {"reason", 'r', "text", OPT_TEXT, 0, AT(reason), NULL, NULL, "drain, remove: why"},
    OPT_ROW_USAGE,
    OPT_ROW_VERSION,
};

const struct opt_table *cmd_node_options(void) {
    static const struct opt_table t = {
        .usage = "drain NODES [-r TEXT] | resume NODES | label NODES KEY=VALUE… KEY-… | remove NODES [-f] [-r TEXT]",
        .brief = "drain nodes [-r text] | resume nodes | label nodes key=value… key-… | remove nodes [-f] [-r text]",
        .row = rows,
        .n = ARRAY_LEN(rows),
        .usage_exit = 1,
        .note = "NODES is a list such as n[1-4],x7, or ALL. For administrators.\n"
                "Labels select nodes for partitions ([[partitions]] selector). They last over restarts of the agent, and go before what\n"
                "it says itself (spurd --label). A node that was removed joins again when its agent is started anew.\n"};
    return &t;
}

static int find_names(struct node_verb *v, const char *list, struct node_update_request *request) {
    struct nothing nothing = {0};
    struct nodes_reply all = {0};
    struct err e = {0};
    if (strcasecmp(list, "all") != 0) {
        if (hostlist_expand(list, &v->c->arena, &request->names, &request->n_names, &e) || !request->n_names) {
            cli_error(v->c, "%s", e.code ? e.text : err_sentence(E_NODE_NAME));
            return 1;
        }
        return 0;
    }
    if (cli_call(v->c, WIRE_Controller_Nodes, &nothing, &all, &e)) {
        cli_error(v->c, "%s", e.text);
        return 1;
    }
    const char **name = arena_calloc(&v->c->arena, all.n_nodes + 1, sizeof(*name));
    for (uint32_t i = 0; i < all.n_nodes; i++)
        name[i] = all.nodes[i].node->name;
    request->names = name;
    request->n_names = all.n_nodes;
    return 0;
}

static int send(struct node_verb *v, const char *list, struct node_update_request *request) {
    struct nothing reply = {0};
    struct err e = {0};
    uint8_t token[TOKEN_SIZE];
    if (find_names(v, list, request))
        return 1;
    spur_token(token);
    request->token = token;
    request->n_token = sizeof(token);
    int rc = cli_call(v->c, WIRE_Controller_UpdateNode, request, &reply, &e);
    if (rc == E_NODES_BUSY)
        cli_error(v->c, "%s has running jobs: drain it and wait, or end them with --force", list);
    else if (rc)
        cli_error(v->c, "%s", rc == E_DENIED ? err_sentence(E_USER) : e.text);
    return rc ? 1 : 0;
}

/* "key=value" puts one, "key-" takes one away. */
static int label(struct node_verb *v, const char *const *word, size_t n) {
    struct selector *labels = arena_calloc(&v->c->arena, n, sizeof(*labels));
    for (size_t i = 1; i < n; i++) {
        const char *equals = strchr(word[i], '='), *end = word[i] + strlen(word[i]) - 1;
        bool goes = !equals && *word[i] && *end == '-';
        if (!equals && !goes) {
            cli_error(v->c, "%s is neither KEY=VALUE nor KEY-", word[i]);
            return 1;
        }
        labels[i - 1] = (struct selector){arena_strndup(&v->c->arena, word[i], (size_t)((equals ? equals : end) - word[i])),
                                          equals ? equals + 1 : NULL};
    }
    struct node_update_request request = {.op = OP_LABEL, .labels = labels, .n_labels = (uint32_t)n - 1};
    return send(v, word[0], &request);
}

static int wrong(struct node_verb *v, const char *text) {
    cli_error(v->c, "%s", text);
    return 1;
}

static int run(struct node_verb *v, const char *const *word, size_t n) {
    const char *verb = n ? word[0] : "";
    struct node_update_request request = {.reason = v->reason, .force = v->force};
    bool is_remove = str_eq(verb, "remove"), is_drain = str_eq(verb, "drain");
    request.op = is_remove ? OP_DELETE : is_drain ? OP_DRAIN : str_eq(verb, "resume") ? OP_RESUME : OP_LABEL;
    if (request.op == OP_LABEL && !str_eq(verb, "label"))
        return wrong(v, "say what to do: drain, resume, label or remove");
    if (n < 2 || (n > 2 && request.op != OP_LABEL))
        return wrong(v, "say which nodes, as one list");
    if ((v->force && !is_remove) || (v->reason && !is_remove && !is_drain))
        return wrong(v, "--force is for remove, and --reason for drain and remove");
    if (request.op == OP_LABEL)
        return n > 2 ? label(v, word + 1, n - 1) : wrong(v, "say labels, as KEY=VALUE or KEY-");
    if (is_drain && !v->reason)
        request.reason = "drained by spur node";
    return send(v, word[1], &request);
}

int cmd_node(struct cli *c) {
    struct node_verb v = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_node_options(), &v, &r, true, &exit_code))
        exit_code = run(&v, r.words.p, r.words.n);
    opt_fini(&r);
    return exit_code;
}
