/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol create, update and delete partition. One table says what may be given.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/scontrol.h"

/* Numbers of core/state/command.h's enum part_op, as the contract of part_update_request gives them. */
enum { OP_CREATE = 1, OP_UPDATE = 2, OP_DELETE = 3 };

struct part_words {
    struct scontrol *s;
    struct part part;
    uint32_t changes;
};

/* false: said what is wrong. */
typedef bool (*set_fn)(struct part_words *w, const char *key, const char *value);

static bool bad(struct part_words *w, const char *key, const char *value) {
    cli_error(w->s->c, "Invalid input: %s=%s", key, value);
    return false;
}

static bool set_name(struct part_words *w, const char *key, const char *value) {
    w->part.name = value;
    return true;
}

static bool set_state(struct part_words *w, const char *key, const char *value) {
    for (uint32_t i = PART_UP; i <= PART_INACTIVE; i++)
        if (strcasecmp(value, part_state_name(i)) == 0) {
            w->part.state = i;
            return true;
        }
    cli_error(w->s->c, "Invalid input: state=%s", value);
    cli_error(w->s->c, "Acceptable State values are UP, DOWN, DRAIN and INACTIVE");
    return false;
}

static bool yes_no(struct part_words *w, const char *key, const char *value, bool *out) {
    if (strcasecmp(value, "yes") != 0 && strcasecmp(value, "no") != 0) {
        cli_error(w->s->c, "Invalid input: %s=%s", key, value);
        cli_error(w->s->c, "Acceptable %s values are \"YES\" and \"NO\"", key);
        return false;
    }
    *out = strcasecmp(value, "yes") == 0;
    return true;
}
static bool set_default(struct part_words *w, const char *key, const char *value) {
    return yes_no(w, key, value, &w->part.is_default);
}
static bool set_hidden(struct part_words *w, const char *key, const char *value) {
    return yes_no(w, key, value, &w->part.hidden);
}
static bool set_root_only(struct part_words *w, const char *key, const char *value) {
    return yes_no(w, key, value, &w->part.root_only);
}
static bool set_exclusive_user(struct part_words *w, const char *key, const char *value) {
    return yes_no(w, key, value, &w->part.exclusive_user);
}
static bool set_exclusive(struct part_words *w, const char *key, const char *value) {
    bool is_node = strcasecmp(value, "node") == 0;
    w->part.exclusive_user = strcasecmp(value, "user") == 0;
    w->part.exclusive_topo = strcasecmp(value, "topo") == 0;
    if (is_node)
        w->part.over_subscribe = OVER_EXCLUSIVE, w->part.over_count = 0;
    return is_node || w->part.exclusive_user || w->part.exclusive_topo || strcasecmp(value, "no") == 0 || bad(w, key, value);
}

/* "+n1,-n2" changes the list that is there: that takes the partition's record, and isn't done. */
static bool set_nodes(struct part_words *w, const char *key, const char *value) {
    struct err e = {0};
    w->part.nodes_text = value;
    w->part.all_nodes = strcasecmp(value, "all") == 0;
    if (*value == '+' || *value == '-') {
        cli_error(w->s->c, "Nodes=%s: adding to a list is not supported yet (see docs/compatibility.md)", value);
        return false;
    }
    if (w->part.all_nodes)
        return true;
    if (hostlist_expand(value, &w->s->c->arena, &w->part.nodes, &w->part.n_nodes, &e) == 0)
        return true;
    cli_error(w->s->c, "%s", e.text);
    return false;
}

static bool limit(struct part_words *w, const char *key, const char *value, uint32_t *out) {
    return time_limit_parse(value, out) == 0 || bad(w, key, value);
}
static bool set_max_time(struct part_words *w, const char *key, const char *value) {
    return limit(w, key, value, &w->part.max_time_min);
}
static bool set_default_time(struct part_words *w, const char *key, const char *value) {
    if (strcasecmp(value, "none") == 0) {
        w->part.default_time_min = 0;
        return true;
    }
    return limit(w, key, value, &w->part.default_time_min);
}

static bool number(struct part_words *w, const char *key, const char *value, uint64_t most, uint32_t *out) {
    uint64_t n = 0;
    bool is_none = strcasecmp(value, "unlimited") == 0 || strcasecmp(value, "infinite") == 0;
    if (!is_none && str_to_u64(value, most, &n))
        return bad(w, key, value);
    *out = (uint32_t)n;
    return true;
}
static bool set_max_nodes(struct part_words *w, const char *key, const char *value) {
    return number(w, key, value, 65536, &w->part.max_nodes);
}
static bool set_min_nodes(struct part_words *w, const char *key, const char *value) {
    return number(w, key, value, 65536, &w->part.min_nodes);
}
static bool set_max_cpus(struct part_words *w, const char *key, const char *value) {
    return number(w, key, value, 65535, &w->part.max_cpus_per_node);
}
static bool set_tier(struct part_words *w, const char *key, const char *value) {
    return number(w, key, value, 65533, &w->part.priority_tier);
}
static bool set_factor(struct part_words *w, const char *key, const char *value) {
    return number(w, key, value, 65533, &w->part.priority_job_factor);
}
static bool set_priority(struct part_words *w, const char *key, const char *value) {
    return set_tier(w, key, value) && set_factor(w, key, value);
}

static bool names(struct part_words *w, const char *value, const char *const **out, uint32_t *n) {
    *out = NULL;
    *n = 0;
    if (*value && strcasecmp(value, "all") != 0)
        *out = cli_words(w->s->c, value, ",", n);
    return true;
}
static bool set_groups(struct part_words *w, const char *key, const char *value) {
    return names(w, value, &w->part.allow_groups, &w->part.n_allow_groups);
}
static bool set_accounts(struct part_words *w, const char *key, const char *value) {
    return names(w, value, &w->part.allow_accounts, &w->part.n_allow_accounts);
}

static bool set_over(struct part_words *w, const char *key, const char *value) {
    static const char *const word[] = {"NO", "EXCLUSIVE", "YES", "FORCE"}; /* enum over_subscribe */
    size_t n = strcspn(value, ":");
    uint64_t count = 4;
    for (uint32_t i = 0; i < ARRAY_LEN(word); i++) {
        if (n != strlen(word[i]) || strncasecmp(value, word[i], n) != 0)
            continue;
        if (value[n] && (i < OVER_YES || str_to_u64(value + n + 1, 65533, &count) || !count))
            break;
        w->part.over_subscribe = i;
        w->part.over_count = i < OVER_YES ? 0 : (uint32_t)count;
        return true;
    }
    cli_error(w->s->c, "Invalid input: %s=%s", key, value);
    cli_error(w->s->c, "Acceptable OverSubscribe values are \"NO\", \"EXCLUSIVE\", \"YES:#\", and \"FORCE:#\"");
    return false;
}

/* set NULL: Slurm's, and passes only with the value that asks for what is done anyway. */
static const struct {
    const char *key;
    size_t least;
    uint32_t change;
    set_fn set;
    const char *passes;
} keys[] = {
    {"PartitionName", 4, 0, set_name, NULL},
    {"State", 2, PART_CHANGE_STATE, set_state, NULL},
    {"DefaultTime", 8, PART_CHANGE_DEFAULT_TIME, set_default_time, NULL},
    {"Default", 2, PART_CHANGE_DEFAULT, set_default, NULL},
    {"Hidden", 1, PART_CHANGE_HIDDEN, set_hidden, NULL},
    {"RootOnly", 3, PART_CHANGE_ROOT_ONLY, set_root_only, NULL},
    {"ExclusiveUser", 10, PART_CHANGE_EXCLUSIVE_USER, set_exclusive_user, NULL},
    {"Exclusive", 4, PART_CHANGE_EXCLUSIVE, set_exclusive, NULL},
    {"Nodes", 1, PART_CHANGE_NODES, set_nodes, NULL},
    {"MaxTime", 4, PART_CHANGE_MAX_TIME, set_max_time, NULL},
    {"MaxNodes", 4, PART_CHANGE_MAX_NODES, set_max_nodes, NULL},
    {"MinNodes", 2, PART_CHANGE_MIN_NODES, set_min_nodes, NULL},
    {"MaxCPUsPerNode", 11, PART_CHANGE_MAX_CPUS, set_max_cpus, NULL},
    {"PriorityTier", 9, PART_CHANGE_TIER, set_tier, NULL},
    {"PriorityJobFactor", 9, PART_CHANGE_JOB_FACTOR, set_factor, NULL},
    {"Priority", 3, PART_CHANGE_TIER | PART_CHANGE_JOB_FACTOR, set_priority, NULL},
    {"AllowGroups", 7, PART_CHANGE_GROUPS, set_groups, NULL},
    {"AllowAccounts", 7, PART_CHANGE_ACCOUNTS, set_accounts, NULL},
    {"OverSubscribe", 5, PART_CHANGE_OVER, set_over, NULL},
    {"Shared", 2, PART_CHANGE_OVER, set_over, NULL},
    {"AllocNodes", 7, 0, NULL, "ALL"},
    {"AllowQos", 6, 0, NULL, "ALL"},
    {"Alternate", 3, 0, NULL, ""},
    {"DefMemPerCPU", 9, 0, NULL, "UNLIMITED"},
    {"DefMemPerNode", 9, 0, NULL, "UNLIMITED"},
    {"DenyAccounts", 5, 0, NULL, ""},
    {"DenyQos", 5, 0, NULL, ""},
    {"DisableRootJobs", 2, 0, NULL, "NO"},
    {"GraceTime", 5, 0, NULL, "0"},
    {"JobDefaults", 3, 0, NULL, ""},
    {"LLN", 3, 0, NULL, "NO"},
    {"MaxCPUsPerSocket", 11, 0, NULL, "UNLIMITED"},
    {"MaxMemPerCPU", 9, 0, NULL, "UNLIMITED"},
    {"MaxMemPerNode", 9, 0, NULL, "UNLIMITED"},
    {"OverTimeLimit", 5, 0, NULL, "0"},
    {"PowerDownOnIdle", 5, 0, NULL, "NO"},
    {"PreemptMode", 3, 0, NULL, "OFF"},
    {"QoS", 3, 0, NULL, ""},
    {"ReqResv", 3, 0, NULL, "NO"},
    {"ResumeTimeout", 7, 0, NULL, ""},
    {"SuspendTime", 7, 0, NULL, ""},
    {"SuspendTimeout", 12, 0, NULL, ""},
    {"TRESBillingWeights", 1, 0, NULL, ""},
};

static bool read_word(struct part_words *w, const char *word) {
    const char *value;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (!scontrol_key(word, keys[i].key, keys[i].least, &value))
            continue;
        if (keys[i].set) {
            w->changes |= keys[i].change;
            return keys[i].set(w, keys[i].key, value);
        }
        if (strcasecmp(value, keys[i].passes) == 0)
            return true;
        cli_error(w->s->c, "%s is not supported yet (see docs/compatibility.md)", keys[i].key);
        return false;
    }
    cli_error(w->s->c, "Update of this parameter is not supported: %s", word);
    fprintf(stderr, "Request aborted\n");
    return false;
}

/* `failed`: in front of the reason, behind it nothing. */
static int send(struct part_words *w, uint32_t op, const char *failed) {
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    struct part_update_request request = {
        .token = token, .n_token = sizeof(token), .op = op, .part = &w->part, .changes = w->changes};
    struct nothing reply = {0};
    struct err e = {0};
    int rc = cli_call(w->s->c, WIRE_Controller_UpdatePartition, &request, &reply, &e);
    if (rc)
        fprintf(stderr, "%s: %s\n", failed, scontrol_denied(rc, &e));
    return rc ? 1 : 0;
}

static int change(struct scontrol *s, uint32_t op, const char *failed) {
    struct part_words w = {.s = s};
    for (size_t i = 0; i < s->n; i++)
        if (!read_word(&w, s->word[i]))
            return 1;
    if (!w.part.name) {
        cli_error(s->c, "PartitionName must be given.");
        return 1;
    }
    if (op == OP_UPDATE && !w.changes) {
        cli_error(s->c, "No changes specified");
        return 1;
    }
    return send(&w, op, failed);
}

int scontrol_update_part(struct scontrol *s) {
    return change(s, OP_UPDATE, "slurm_update error");
}

static bool may_be_created(const struct scontrol *s) {
    const char *value;
    for (size_t i = 0; i < s->n; i++)
        if (scontrol_key(s->word[i], "State", 2, &value))
            return strcasecmp(value, "future") == 0 || strcasecmp(value, "cloud") == 0 || strcasecmp(value, "external") == 0;
    return false;
}

/* "create partition name=x …", "create partitionname=x …"; also of what isn't there yet. */
int scontrol_create(struct scontrol *s) {
    const char *value;
    if (!s->n) {
        fprintf(stderr, "too few arguments for create keyword\n");
        return 1;
    }
    if (scontrol_is(s->word[0], "partition", 4) || scontrol_key(s->word[0], "PartitionName", 4, &value)) {
        if (!strchr(s->word[0], '=')) {
            s->word++;
            s->n--;
        }
        return change(s, OP_CREATE, "Error creating the partition");
    }
    bool is_node = strncasecmp(s->word[0], "node", 4) == 0, is_reservation = strncasecmp(s->word[0], "res", 3) == 0;
    if (is_node && !may_be_created(s)) {
        cli_error(s->c, "Only State=FUTURE, CLOUD, or EXTERNAL allowed for nodes created by scontrol");
        fprintf(stderr, "Error creating node(s): Invalid node state specified\n");
    } else if (is_node || is_reservation)
        cli_error(s->c, "create %s is not supported yet (see docs/compatibility.md)", is_node ? "node" : "reservation");
    else
        fprintf(stderr, "Invalid creation entity: %s\n", s->word[0]);
    return 1;
}

int scontrol_delete(struct scontrol *s) {
    struct part_words w = {.s = s};
    const char *value;
    if (!s->n) {
        fprintf(stderr, "too few arguments for delete keyword\n");
        return 1;
    }
    if (scontrol_key(s->word[0], "PartitionName", 4, &value)) {
        w.part.name = value;
        autofree char *failed = xasprintf("delete_partition %s", s->word[0]);
        return send(&w, OP_DELETE, failed);
    }
    bool is_node = strncasecmp(s->word[0], "node", 4) == 0, is_reservation = strncasecmp(s->word[0], "res", 3) == 0;
    if (scontrol_key(s->word[0], "NodeName", 4, &value)) { /* as Slurm's of nodes that are part of the cluster, and all of ours are */
        cli_error(s->c, "failed to delete nodes %s", value);
        fprintf(stderr, "delete_node %s: Invalid node state specified\n", s->word[0]);
    } else if (is_node || is_reservation)
        cli_error(s->c, "delete %s is not supported yet (see docs/compatibility.md)", is_node ? "node" : "reservation");
    else
        fprintf(stderr, "Invalid deletion entity: %s\n", s->word[0]);
    return 1;
}
