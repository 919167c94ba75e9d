/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol update NodeName=…: drain, resume, down; reason, features, weight.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/hint.h"
#include "spur/scontrol.h"

/* Numbers of core/state/command.h's enum node_op, as the contract of node_update_request gives them. */
enum { OP_DRAIN = 1, OP_RESUME = 2, OP_DOWN = 3, OP_SET = 5 };

struct node_change {
    struct scontrol *s;
    const char *list, *state, *reason, *features, *weight, *comment, *extra, *ids, *types, *gres, *active, *resume_after;
    bool silent;
};

static const struct {
    const char *word;
    uint32_t op; /* 0: Slurm's, and not there yet */
    bool if_needed; /* only where the node isn't as wished already */
    enum drain_kind kind;
    bool silent;
} states[] = {
    {"DRAIN", OP_DRAIN, false}, {"DOWN", OP_DOWN, false},    {"RESUME", OP_RESUME, false}, {"IDLE", OP_RESUME, true},
    {"UNDRAIN", OP_RESUME, true}, {"FAIL", OP_DRAIN, false, DRAIN_FAIL}, {"FUTURE", OP_DRAIN, false, DRAIN_FUTURE},
    {"NORESP", OP_SET, false, .silent = true},
    {"POWER_DOWN", 0, false},   {"POWER_DOWN_ASAP", 0, false}, {"POWER_DOWN_FORCE", 0, false}, {"POWER_UP", 0, false},
    {"CLOUD", 0, false},        {"CANCEL_REBOOT", 0, false},
};

static bool read_word(struct node_change *n, const char *word) {
    const struct {
        const char *key;
        size_t least;
        const char **to;
    } keys[] = {{"NodeName", 1, &n->list},        {"State", 1, &n->state},    {"Reason", 1, &n->reason},
                {"AvailableFeatures", 2, &n->features}, {"Features", 1, &n->features}, {"Weight", 1, &n->weight},
                {"ActiveFeatures", 2, &n->active},  {"Comment", 3, &n->comment}, {"Extra", 2, &n->extra},
                {"InstanceId", 9, &n->ids},         {"InstanceType", 9, &n->types}, {"Gres", 1, &n->gres},
                {"ResumeAfter", 7, &n->resume_after}};
    const char *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : 0;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (len >= keys[i].least && len <= strlen(keys[i].key) && strncasecmp(word, keys[i].key, len) == 0) {
            *keys[i].to = equals + 1;
            return true;
        }
    fprintf(stderr, "Update of this parameter is not supported: %s\nRequest aborted\n", word);
    autofree char *typed = xstrndup(word, len);
    struct near near = near_to(typed);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        near_try(&near, keys[i].key);
    hint_near(n->s->c, &near);
    return false;
}

static int fail(const char *text) {
    fprintf(stderr, "slurm_update error: %s\n", text);
    return 1;
}

/* The nodes of the list that are not as wished already: UNDRAIN and IDLE of others do nothing. */
static uint32_t those_in_need(const struct nodes_reply *all, const char **name, uint32_t n, bool is_undrain) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < all->n_nodes; k++) {
            const struct node *node = all->nodes[k].node;
            bool is_marked = is_undrain ? node_is_marked(node, DRAIN_PLAIN) : node->n_drains > 0;
            bool needs = is_marked || (!is_undrain && node->base == NODE_DOWN);
            if (str_eq(node->name, name[i]) && needs && !(is_undrain && node->base == NODE_DOWN))
                name[left++] = name[i];
        }
    return left;
}

/* "ALL" is all of them. */
static int find_names(struct node_change *n, const struct nodes_reply *all, const char *const **out, uint32_t *out_n) {
    struct err e = {0};
    if (strcasecmp(n->list, "all") != 0) {
        if (hostlist_expand(n->list, &n->s->c->arena, out, out_n, &e) || !*out_n)
            return fail(err_sentence(E_NODE_NAME));
        return 0;
    }
    const char **name = arena_calloc(&n->s->c->arena, all->n_nodes + 1, sizeof(*name));
    for (uint32_t i = 0; i < all->n_nodes; i++)
        name[i] = all->nodes[i].node->name;
    *out = name;
    *out_n = all->n_nodes;
    return 0;
}

/* "a,b": one for each node; "": none any more. */
static const char *const *each(struct cli *c, const char *list, uint32_t *out_n) {
    static const char *const nothing[] = {""};
    if (!list || *list)
        return list ? cli_words(c, list, ",", out_n) : NULL;
    *out_n = 1;
    return nothing;
}

/* "3600", "INFINITE": + 1, as the request has it. */
static int read_resume_after(struct node_change *n, uint64_t *out) {
    if (!n->resume_after)
        return 0;
    bool is_never = strcasecmp(n->resume_after, "infinite") == 0 || strcasecmp(n->resume_after, "unlimited") == 0 ||
                    str_eq(n->resume_after, "-1");
    *out = UINT32_MAX;
    if (!is_never && str_to_u64(n->resume_after, UINT32_MAX - 1, out)) {
        cli_error(n->s->c, "Invalid ResumeAfter value: %s", n->resume_after);
        return 1;
    }
    ++*out;
    return 0;
}

static int send(struct node_change *n, const char *const *name, uint32_t n_names, uint32_t op, enum drain_kind kind) {
    struct cli *c = n->s->c;
    struct node_update_request request = {.names = name, .n_names = n_names, .op = op, .reason = n->reason, .kind = kind};
    struct nothing reply = {0};
    struct err e = {0};
    uint8_t token[TOKEN_SIZE];
    uint64_t weight;
    if ((op == OP_DRAIN || op == OP_DOWN) && read_resume_after(n, &request.resume_after_secs))
        return 1;
    spur_token(token);
    request.token = token;
    request.n_token = sizeof(token);
    if (op == OP_SET && n->features) {
        request.has_features = true;
        request.features = cli_words(c, n->features, ",", &request.n_features);
    }
    if (op == OP_SET && n->active) {
        request.has_active = true;
        request.active = cli_words(c, n->active, ",", &request.n_active);
    }
    if (op == OP_SET && n->gres) {
        request.has_gres = true;
        request.gres = cli_words(c, n->gres, ",", &request.n_gres);
    }
    if (op == OP_SET) {
        request.silent = n->silent;
        request.comment = n->comment;
        request.extra = n->extra;
        request.instance_ids = each(c, n->ids, &request.n_instance_ids);
        request.instance_types = each(c, n->types, &request.n_instance_types);
    }
    if (op == OP_SET && n->weight) {
        if (str_to_u64(n->weight, UINT32_MAX - 1, &weight)) {
            cli_error(c, "Invalid Weight value: %s", n->weight);
            return 1;
        }
        request.weight = (uint32_t)weight + 1;
    }
    int rc = cli_call(c, WIRE_Controller_UpdateNode, &request, &reply, &e);
    return rc ? fail(rc == E_DENIED ? err_sentence(E_USER) : e.text) : 0;
}

/* The state's row; -1: none, told. */
static int find_state(const struct node_change *n) {
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        if (strcasecmp(states[i].word, n->state) != 0)
            continue;
        if (states[i].op)
            return (int)i;
        cli_error(n->s->c, "state=%s is not supported yet (see docs/compatibility.md)", n->state);
        return -1;
    }
    fprintf(stderr, "Invalid input: state=%s\nRequest aborted\n"
            "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN\n"
            "Not all states are valid given a node's prior state\n", n->state);
    return -1;
}

static int set_state(struct node_change *n, const struct nodes_reply *all, const char *const *name, uint32_t n_names) {
    int row = find_state(n);
    if (row < 0)
        return 1;
    bool needs_reason = (states[row].op == OP_DRAIN && states[row].kind != DRAIN_FUTURE) || states[row].op == OP_DOWN;
    if (needs_reason && !n->reason) {
        fprintf(stderr, "You must specify a reason when DOWNING or DRAINING a node. Request denied\n");
        return 1;
    }
    if (states[row].if_needed) {
        const char **left = arena_memdup(&n->s->c->arena, name, n_names * sizeof(*name));
        n_names = those_in_need(all, left, n_names, strcasecmp(states[row].word, "UNDRAIN") == 0);
        name = left;
    }
    n->silent = states[row].silent;
    return n_names ? send(n, name, n_names, states[row].op, states[row].kind) : 0;
}

/* A reason alone replaces that of nodes that have one: those that are drained, and those that are down. */
static int set_reason(struct node_change *n, const struct nodes_reply *all, const char *const *name, uint32_t n_names) {
    const char **drained = arena_calloc(&n->s->c->arena, n_names + 1, sizeof(*drained));
    const char **down = arena_calloc(&n->s->c->arena, n_names + 1, sizeof(*down));
    const char **failed = arena_calloc(&n->s->c->arena, n_names + 1, sizeof(*failed));
    uint32_t n_drained = 0, n_down = 0, n_failed = 0;
    for (uint32_t i = 0; i < n_names; i++)
        for (uint32_t k = 0; k < all->n_nodes; k++) {
            const struct node *node = all->nodes[k].node;
            if (!str_eq(node->name, name[i]))
                continue;
            if (node_is_marked(node, DRAIN_PLAIN))
                drained[n_drained++] = name[i];
            else if (node_is_marked(node, DRAIN_FAIL))
                failed[n_failed++] = name[i];
            else if (node->base == NODE_DOWN)
                down[n_down++] = name[i];
        }
    int rc = n_drained ? send(n, drained, n_drained, OP_DRAIN, DRAIN_PLAIN) : 0;
    rc = rc || !n_failed ? rc : send(n, failed, n_failed, OP_DRAIN, DRAIN_FAIL);
    return rc || !n_down ? rc : send(n, down, n_down, OP_DOWN, DRAIN_PLAIN);
}

int scontrol_update_node(struct scontrol *s) {
    struct node_change n = {.s = s};
    for (size_t i = 0; i < s->n; i++)
        if (!read_word(&n, s->word[i]))
            return 1;
    bool sets = n.features || n.active || n.weight || n.comment || n.extra || n.ids || n.types || n.gres;
    if (!n.list) {
        fprintf(stderr, "NodeName must be given\n");
        return 1;
    }
    if (!n.state && !n.reason && !sets) {
        fprintf(stderr, "No changes specified\n");
        return 1;
    }
    struct nothing request = {0};
    struct nodes_reply all = {0};
    struct err e = {0};
    const char *const *name;
    uint32_t n_names;
    if (cli_call(s->c, WIRE_Controller_Nodes, &request, &all, &e))
        return fail(e.text);
    if (find_names(&n, &all, &name, &n_names))
        return 1;
    int rc = n.state ? set_state(&n, &all, name, n_names) : n.reason ? set_reason(&n, &all, name, n_names) : 0;
    if (!rc && sets)
        rc = send(&n, name, n_names, OP_SET, DRAIN_PLAIN);
    return rc;
}
