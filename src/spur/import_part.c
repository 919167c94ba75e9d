/* SPDX-License-Identifier: Apache-2.0
 *
 * PartitionName and NodeSet lines. PartitionName=DEFAULT gives those behind it what they don't say themselves.
 */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "core/model/text.h"
#include "spur/import.h"

enum kind { KIND_TEXT, KIND_NODES, KIND_YES, KIND_TIME, KIND_NUMBER, KIND_NAMES, KIND_OVER, KIND_STATE, KIND_EXCLUSIVE };

/* key NULL: not carried over, unless it has the value `same` (a beginning, where it ends in `*`). */
static const struct row {
    const char *slurm, *key;
    enum kind kind;
    const char *same;
} rows[] = {
    {"Nodes", "nodes", KIND_NODES, NULL},
    {"Default", "default", KIND_YES, NULL},
    {"State", "state", KIND_STATE, NULL},
    {"MaxTime", "max_time", KIND_TIME, NULL},
    {"DefaultTime", "default_time", KIND_TIME, NULL},
    {"MaxNodes", "max_nodes", KIND_NUMBER, NULL},
    {"MinNodes", "min_nodes", KIND_NUMBER, NULL},
    {"Priority", "priority_tier", KIND_NUMBER, NULL},
    {"PriorityTier", "priority_tier", KIND_NUMBER, NULL},
    {"PriorityJobFactor", "priority_job_factor", KIND_NUMBER, NULL},
    {"Shared", "over_subscribe", KIND_OVER, NULL},
    {"OverSubscribe", "over_subscribe", KIND_OVER, NULL},
    {"Exclusive", "exclusive_user", KIND_EXCLUSIVE, NULL},
    {"ExclusiveUser", "exclusive_user", KIND_YES, NULL},
    {"MaxCPUsPerNode", "max_cpus_per_node", KIND_NUMBER, NULL},
    {"AllowGroups", "allow_groups", KIND_NAMES, NULL},
    {"AllowAccounts", "allow_accounts", KIND_NAMES, NULL},
    {"RootOnly", "root_only", KIND_YES, NULL},
    {"Hidden", "hidden", KIND_YES, NULL},
    {"AllocNodes", NULL, KIND_TEXT, "ALL"},
    {"AllowQos", NULL, KIND_TEXT, "ALL"},
    {"DisableRootJobs", NULL, KIND_TEXT, "NO"},
    {"GraceTime", NULL, KIND_TEXT, "0"},
    {"LLN", NULL, KIND_TEXT, "NO"},
    {"PreemptMode", NULL, KIND_TEXT, "OFF"},
    {"ReqResv", NULL, KIND_TEXT, "NO"},
    {"OverTimeLimit", NULL, KIND_TEXT, "0"},
};

struct partition {
    const char *name;
    const struct import_line *line;
    const char *value[ARRAY_LEN(rows)];
};

static const char *node_set(struct import *im, const char *name) {
    for (size_t i = 0; i < im->lines.n; i++) {
        const struct import_line *l = &im->lines.p[i];
        if (import_is(l->word[0].key, "NodeSet") && l->word[0].value && str_eq(l->word[0].value, name))
            return import_value(l, "Nodes") ? import_value(l, "Nodes") : "";
    }
    return NULL;
}

/* Commas in brackets don't end a word. */
static size_t word_len(const char *s) {
    size_t n = 0;
    for (int depth = 0; s[n] && (depth > 0 || s[n] != ','); n++)
        depth += s[n] == '[' ? 1 : s[n] == ']' ? -1 : 0;
    return n;
}

const char *import_node_list(struct import *im, const struct import_line *l, const char *list) {
    auto_str out = {0};
    for (const char *at = list; *at;) {
        size_t n = word_len(at);
        const char *word = arena_strndup(im->arena, at, n), *set = node_set(im, word);
        if (set && !*set)
            import_note(im, l, "Nodes=%s: a NodeSet by Feature is not supported; left out", word);
        else
            str_addf(&out, "%s%s", out.n ? "," : "", set ? set : word);
        at += n + (at[n] == ',');
    }
    return arena_strdup(im->arena, str_text(&out));
}

static void no_value(struct import *im, const struct partition *p, const char *key, const char *value, const char *why) {
    import_note(im, p->line, "PartitionName=%s: %s=%s: %s; left out", p->name, key, value, why);
}

static bool nodes(struct import *im, const struct partition *p, const char *value, struct str *out) {
    const char *list = import_node_list(im, p->line, value);
    const char *const *name;
    uint32_t n;
    struct err e = {0};
    if (import_is(list, "ALL"))
        return false; /* as when nothing is said */
    if (hostlist_expand(list, im->arena, &name, &n, &e)) {
        no_value(im, p, "Nodes", value, "no node list");
        return false;
    }
    import_quoted(list, out);
    return true;
}

static bool names(const char *value, struct str *out) {
    if (!*value || import_is(value, "ALL"))
        return false;
    str_addc(out, '[');
    for (const char *at = value; *at; at += strcspn(at, ","), at += *at == ',') {
        autofree char *word = xstrndup(at, strcspn(at, ","));
        str_add(out, at > value ? ", " : "");
        import_quoted(word, out);
    }
    str_addc(out, ']');
    return true;
}

static bool number(struct import *im, const struct partition *p, const char *key, const char *value, struct str *out) {
    uint64_t n;
    if (import_is(value, "UNLIMITED") || import_is(value, "INFINITE"))
        return false; /* as when nothing is said */
    if (str_to_u64(value, 65533, &n)) {
        no_value(im, p, key, value, "no number");
        return false;
    }
    str_addf(out, "%llu", (unsigned long long)n);
    return n > 0;
}

static bool print(struct import *im, const struct partition *p, const struct row *r, const char *value, struct str *out) {
    static const char *const over[] = {"NO", "EXCLUSIVE", "YES", "FORCE"}, *const states[] = {"UP", "DOWN", "DRAIN", "INACTIVE"};
    uint32_t minutes;
    uint64_t count = 1;
    size_t n = strcspn(value, ":");
    switch (r->kind) {
    case KIND_NODES: return nodes(im, p, value, out);
    case KIND_YES:
        str_add(out, import_is(value, "YES") || str_eq(value, "1") ? "true" : "false");
        return str_eq(str_text(out), "true");
    case KIND_EXCLUSIVE:
        str_add(out, "true");
        if (!import_is(value, "USER") && !import_is(value, "NO"))
            no_value(im, p, r->slurm, value, import_is(value, "TOPO") ? "topology is not supported yet" : "must be NO, USER or NODE");
        return import_is(value, "USER");
    case KIND_TIME:
        if (import_is(value, "NONE"))
            return false;
        if (time_limit_parse(value, &minutes)) {
            no_value(im, p, r->slurm, value, "no time");
            return false;
        }
        import_quoted(value, out);
        return true;
    case KIND_NUMBER: return number(im, p, r->slurm, value, out);
    case KIND_NAMES: return names(value, out);
    case KIND_STATE:
        for (size_t i = 0; i < ARRAY_LEN(states); i++)
            if (import_is(value, states[i])) {
                import_quoted(states[i], out);
                return i > 0;
            }
        no_value(im, p, r->slurm, value, "no state");
        return false;
    case KIND_OVER:
        for (size_t i = 0; i < ARRAY_LEN(over); i++) {
            if (strlen(over[i]) != n || strncasecmp(value, over[i], n) != 0)
                continue;
            if (value[n] && (i < 2 || str_to_u64(value + n + 1, 65533, &count) || !count))
                break;
            autofree char *text = value[n] ? xasprintf("%s:%llu", over[i], (unsigned long long)count) : xstrdup(over[i]);
            import_quoted(text, out);
            return i > 0;
        }
        no_value(im, p, r->slurm, value, "must be NO, EXCLUSIVE, YES:COUNT or FORCE:COUNT");
        return false;
    default: return false;
    }
}

static bool is_later_given(const struct partition *p, size_t i) {
    for (size_t k = i + 1; k < ARRAY_LEN(rows); k++)
        if (rows[k].key && str_eq(rows[k].key, rows[i].key) && p->value[k])
            return true;
    return false;
}

static void write_part(struct import *im, const struct partition *p) {
    str_add(&im->conf, "\n[[partitions]]\nname = ");
    import_quoted(p->name, &im->conf);
    str_addc(&im->conf, '\n');
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_str text = {0};
        if (!p->value[i])
            continue;
        if (!rows[i].key && !import_is(p->value[i], rows[i].same))
            no_value(im, p, rows[i].slurm, p->value[i], "not supported yet");
        if (rows[i].key && !is_later_given(p, i) && print(im, p, &rows[i], p->value[i], &text))
            str_addf(&im->conf, "%s = %s\n", rows[i].key, str_text(&text));
    }
}

static size_t row_of(const char *slurm) {
    size_t i = 0;
    while (i < ARRAY_LEN(rows) && !import_is(slurm, rows[i].slurm))
        i++;
    return i;
}

/* Exclusive=NODE is the later name of OverSubscribe=EXCLUSIVE. */
static void take_exclusive(struct partition *p) {
    size_t i = row_of("Exclusive");
    if (!p->value[i] || !import_is(p->value[i], "NODE"))
        return;
    p->value[i] = NULL;
    p->value[row_of("OverSubscribe")] = "EXCLUSIVE";
}

static void read_part(struct import *im, const struct import_line *l, struct partition *p) {
    for (uint32_t k = 1; k < l->n_words; k++) {
        size_t i = row_of(l->word[k].key);
        if (i < ARRAY_LEN(rows))
            p->value[i] = l->word[k].value ? l->word[k].value : "";
        else
            import_note(im, l, "PartitionName=%s: %s%s%s: not carried over: not supported yet", p->name, l->word[k].key,
                        l->word[k].value ? "=" : "", l->word[k].value ? l->word[k].value : "");
    }
    take_exclusive(p);
}

/* A name that spur.conf takes. */
static bool is_name(const char *s) {
    return *s && strlen(s) <= 64 && s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] == '\0' &&
           !strchr("-_.", *s);
}

void import_parts(struct import *im) {
    struct partition defaults = {.name = "DEFAULT"};
    VEC(struct partition) list = {0};
    size_t given = ARRAY_LEN(rows);
    for (size_t i = 0; i < im->lines.n; i++) {
        const struct import_line *l = &im->lines.p[i];
        const char *name = l->word[0].value;
        if (!import_is(l->word[0].key, "PartitionName"))
            continue;
        if (import_is(name, "DEFAULT")) {
            read_part(im, l, &defaults);
            continue;
        }
        struct partition p = defaults;
        p.name = name ? name : "";
        p.line = l;
        if (!is_name(p.name)) {
            import_note(im, l, "PartitionName=%s: not a name that is allowed; left out", p.name);
            continue;
        }
        read_part(im, l, &p);
        for (size_t k = 0; k < list.n; k++)
            if (str_eq(list.p[k].name, p.name)) {
                import_note(im, l, "PartitionName=%s: is there already; this one is left out", p.name);
                p.name = NULL;
                break;
            }
        if (!p.name)
            continue;
        if (p.value[1] && import_is(p.value[1], "YES")) { /* the last Default=YES counts */
            if (given < list.n)
                list.p[given].value[1] = NULL;
            given = list.n;
        }
        vec_push(&list, p);
    }
    for (size_t k = 0; k < list.n; k++)
        write_part(im, &list.p[k]);
    vec_fini(&list);
}
