/* SPDX-License-Identifier: Apache-2.0
 *
 * NodeName lines. NodeName=DEFAULT gives those behind it what they don't say themselves. What the controller must know goes
 * into [[nodes]]; where an agent listens and what it is called becomes its command line.
 */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "core/model/gres.h"
#include "core/model/text.h"
#include "spur/import.h"

enum column { COL_FEATURES, COL_GRES, COL_WEIGHT, COL_CPUS, COL_MEMORY, COL_ADDR, COL_PORT, COL_SOCKETS, COL_BOARDS,
              COL_SOCKETS_PER_BOARD, COL_CORES, COL_THREADS, COL_STATE, COL_REASON, COL_N };

static const struct {
    const char *slurm;
    enum column at;
} keys[] = {{"Feature", COL_FEATURES},   {"Features", COL_FEATURES},       {"Gres", COL_GRES},
            {"Weight", COL_WEIGHT},      {"CPUs", COL_CPUS},               {"Procs", COL_CPUS},
            {"RealMemory", COL_MEMORY},  {"NodeAddr", COL_ADDR},           {"Port", COL_PORT},
            {"Sockets", COL_SOCKETS},    {"Boards", COL_BOARDS},           {"SocketsPerBoard", COL_SOCKETS_PER_BOARD},
            {"CoresPerSocket", COL_CORES}, {"ThreadsPerCore", COL_THREADS}, {"State", COL_STATE},
            {"Reason", COL_REASON}};

/* Said to Slurm's daemons alone, and of no meaning here. */
static const char *const silent[] = {"NodeHostName", "TmpDisk", "BcastAddr"};

struct node_line {
    const struct import_line *line;
    const char *name;
    const char *value[COL_N];
};

static void note(struct import *im, const struct node_line *n, const char *key, const char *value, const char *why) {
    import_note(im, n->line, "NodeName=%s: %s=%s: %s", n->name, key, value, why);
}

static void read_line(struct import *im, const struct import_line *l, struct node_line *n) {
    for (uint32_t k = 1; k < l->n_words; k++) {
        const char *key = l->word[k].key, *value = l->word[k].value ? l->word[k].value : "";
        bool known = false;
        for (size_t i = 0; i < ARRAY_LEN(keys) && !known; i++)
            if ((known = import_is(key, keys[i].slurm)))
                n->value[keys[i].at] = value;
        for (size_t i = 0; i < ARRAY_LEN(silent) && !known; i++)
            known = import_is(key, silent[i]);
        if (!known)
            note(im, n, key, value, "not carried over: not supported yet");
    }
}

static uint64_t count_of(struct import *im, const struct node_line *n, enum column c, uint64_t most) {
    uint64_t v = 0;
    if (!n->value[c])
        return 0;
    if (!str_to_u64(n->value[c], most, &v))
        return v;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (keys[i].at == c) {
            note(im, n, keys[i].slurm, n->value[c], "no number in bounds; left out");
            break;
        }
    return 0;
}

/* As Slurm counts them where CPUs= doesn't say: one, where nothing does. */
static uint64_t cpus_of(struct import *im, const struct node_line *n) {
    uint64_t cpus = count_of(im, n, COL_CPUS, 65536), boards = count_of(im, n, COL_BOARDS, 1024);
    uint64_t sockets = count_of(im, n, COL_SOCKETS, 1024), per_board = count_of(im, n, COL_SOCKETS_PER_BOARD, 1024);
    uint64_t cores = count_of(im, n, COL_CORES, 4096), threads = count_of(im, n, COL_THREADS, 64);
    if (cpus)
        return cpus;
    if (!sockets)
        sockets = MAX(boards, 1u) * MAX(per_board, 1u);
    return MIN(sockets * MAX(cores, 1u) * MAX(threads, 1u), 65536u);
}

static void list(struct import *im, const char *key, const char *const *word, uint32_t n) {
    if (!n)
        return;
    str_addf(&im->conf, "%s = [", key);
    for (uint32_t i = 0; i < n; i++) {
        str_add(&im->conf, i ? ", " : "");
        import_quoted(word[i], &im->conf);
    }
    str_add(&im->conf, "]\n");
}

/* Words between commas that stand in no parentheses. */
static const char **words(struct import *im, const char *text, uint32_t *out_n) {
    const char **word = arena_calloc(im->arena, strlen(text) + 1, sizeof(*word));
    *out_n = 0;
    for (const char *at = text; *at;) {
        size_t n = 0;
        for (int depth = 0; at[n] && (depth > 0 || at[n] != ','); n++)
            depth += at[n] == '(' ? 1 : at[n] == ')' ? -1 : 0;
        if (n)
            word[(*out_n)++] = arena_strndup(im->arena, at, n);
        at += n + (at[n] == ',');
    }
    return word;
}

static void write_gres(struct import *im, const struct node_line *n) {
    uint32_t n_words, n_kinds = 0;
    if (!n->value[COL_GRES] || import_is(n->value[COL_GRES], "(null)"))
        return;
    const char **word = words(im, n->value[COL_GRES], &n_words);
    struct gres *kind = arena_calloc(im->arena, n_words + 1, sizeof(*kind));
    for (uint32_t i = 0; i < n_words; i++) {
        struct err e = {0};
        const char *bare = arena_strndup(im->arena, word[i], strcspn(word[i], "("));
        if (strlen(bare) < strlen(word[i]))
            note(im, n, "Gres", word[i], "sockets of generic resources are not supported yet; taken without them");
        if (node_gres_parse(bare, im->arena, &kind[n_kinds], &e) || !node_gres_add(kind, &n_kinds))
            note(im, n, "Gres", word[i], "no NAME:TYPE:COUNT of a new kind; left out");
        else
            word[n_kinds - 1] = bare;
    }
    list(im, "gres", word, n_kinds);
}

/* ---- agents ---- */

/* "7101", "7101-7104", "[7101-7104]": of the place-th node. */
static uint64_t port_at(const char *text, uint32_t place) {
    uint64_t first = 0, last = 0;
    autofree char *bare = xstrdup(*text == '[' ? text + 1 : text);
    bare[strcspn(bare, "]")] = '\0';
    char *dash = strchr(bare, '-');
    if (dash)
        *dash++ = '\0';
    if (str_to_u64(bare, 65535, &first) || (dash && str_to_u64(dash, 65535, &last)))
        return 0;
    return dash ? first + place <= last ? first + place : 0 : first;
}

/* Names in a sequence as addresses; one for all. */
static const char *address_at(struct import *im, const struct node_line *n, uint32_t place) {
    const char *const *all;
    uint32_t count;
    struct err e = {0};
    if (!n->value[COL_ADDR] || hostlist_expand(n->value[COL_ADDR], im->arena, &all, &count, &e) || !count)
        return NULL;
    return count == 1 ? all[0] : place < count ? all[place] : NULL;
}

static void write_agents(struct import *im, const struct node_line *n, const char *const *name, uint32_t n_names) {
    for (uint32_t i = 0; i < n_names; i++) {
        const char *address = address_at(im, n, i);
        uint64_t port = n->value[COL_PORT] ? port_at(n->value[COL_PORT], i) : 0;
        str_addf(&im->agents, "spurd -N %s", name[i]);
        if (port)
            str_addf(&im->agents, " --listen [::]:%llu", (unsigned long long)port);
        if (address && !str_eq(address, name[i]))
            str_addf(&im->agents, " --address %s", address);
        if (im->gres.n && n->value[COL_GRES])
            str_add(&im->agents, " --gres-config gres.conf");
        str_addc(&im->agents, '\n');
    }
}

/* ---- a line ---- */

static void note_state(struct import *im, const struct node_line *n) {
    const char *state = n->value[COL_STATE];
    if (!state || import_is(state, "UNKNOWN") || import_is(state, "IDLE"))
        return;
    if (import_is(state, "DOWN") || import_is(state, "DRAIN") || import_is(state, "FAIL"))
        import_note(im, n->line, "NodeName=%s: State=%s: once they have joined: scontrol update nodename=%s state=%s reason=\"%s\"", n->name,
                    state, n->name, state, n->value[COL_REASON] ? n->value[COL_REASON] : "set in slurm.conf");
    else
        note(im, n, "State", state, "nodes are there once they have joined");
}

static void write_node(struct import *im, const struct node_line *n) {
    const char *const *name;
    uint32_t n_names, n_features = 0;
    struct err e = {0};
    if (hostlist_expand(n->name, im->arena, &name, &n_names, &e) || !n_names) {
        import_note(im, n->line, "NodeName=%s: no node list; left out", n->name);
        return;
    }
    uint64_t cpus = cpus_of(im, n), memory = count_of(im, n, COL_MEMORY, 1ull << 40), weight = count_of(im, n, COL_WEIGHT, 1000000);
    const char **feature = n->value[COL_FEATURES] ? words(im, n->value[COL_FEATURES], &n_features) : NULL;
    note_state(im, n);
    write_agents(im, n, name, n_names);
    str_add(&im->conf, "\n[[nodes]]\nnames = ");
    import_quoted(n->name, &im->conf);
    str_addc(&im->conf, '\n');
    if (cpus)
        str_addf(&im->conf, "cpus = %llu\n", (unsigned long long)cpus);
    if (memory)
        str_addf(&im->conf, "memory_mb = %llu\n", (unsigned long long)memory);
    if (weight > 1)
        str_addf(&im->conf, "weight = %llu\n", (unsigned long long)weight);
    list(im, "features", feature, MIN(n_features, 256u));
    write_gres(im, n);
}

static void note_gres_files(struct import *im) {
    for (size_t i = 0; i < im->gres.n; i++)
        for (uint32_t k = 0; k < im->gres.p[i].n_words; k++)
            if (import_is(im->gres.p[i].word[k].key, "AutoDetect") && !import_is(im->gres.p[i].word[k].value, "off"))
                import_note(im, &im->gres.p[i], "AutoDetect: devices are not detected yet: File= and Count= say what there is");
}

void import_nodes(struct import *im) {
    struct node_line defaults = {.name = "DEFAULT"};
    for (size_t i = 0; i < im->lines.n; i++) {
        const struct import_line *l = &im->lines.p[i];
        if (!import_is(l->word[0].key, "NodeName"))
            continue;
        if (import_is(l->word[0].value, "DEFAULT")) {
            defaults.line = l;
            read_line(im, l, &defaults);
            continue;
        }
        struct node_line n = defaults;
        n.line = l;
        n.name = l->word[0].value ? l->word[0].value : "";
        read_line(im, l, &n);
        write_node(im, &n);
    }
    note_gres_files(im);
}
