/* SPDX-License-Identifier: Apache-2.0
 *
 * Which task runs where: -m, and lists of nodes in files (-F, SLURM_HOSTFILE).
 *
 * In `-m arbitrary` the list of nodes has a name for each task, in their order; it may name a node several times. SLURM_HOSTFILE
 * without -w or -F means that too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/text.h"
#include "spur/cli.h"
#include "spur/job_ask.h"

#define HOSTS_MAX 65536u

/* ---- files ---- */

/* "n1", or "n1*4" for four times n1; of all no more than `most`. */
static void add_word(const char *word, uint32_t most, uint32_t *n, struct str *out) {
    size_t len = strcspn(word, "*");
    uint64_t times = 1;
    if (word[len] && (str_to_u64(word + len + 1, HOSTS_MAX, &times) || !times))
        times = 1;
    for (; times && *n < most; times--, ++*n)
        str_addf(out, "%s%.*s", out->n ? "," : "", (int)len, word);
}

/* Names with blanks, commas or new lines between them, comments behind #; as a list of -w. false: it can't be opened. */
static bool read_hosts(const struct cli *c, const char *path, uint32_t most, struct str *out, uint32_t *out_n) {
    char line[4096];
    uint32_t n;
    FILE *f = fopen(path, "re");
    *out_n = 0;
    if (!f)
        return false;
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "#")] = '\0';
        const char *const *word = cli_words((struct cli *)c, line, ", \t\r\n", &n);
        for (uint32_t i = 0; i < n; i++)
            add_word(word[i], most, out_n, out);
    }
    fclose(f);
    return true;
}

int ask_nodefile(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct job_ask *a = r->ctx;
    auto_str list = {0};
    uint32_t n;
    if (!read_hosts(a->c, value, HOSTS_MAX, &list, &n))
        opt_bad(r, r->table->usage_exit, "slurm_allocate_resources error opening file %s, %s", value, strerror(errno));
    if (!list.n)
        return opt_bad(r, r->table->usage_exit, "Invalid --%s node file", o->name);
    a->node_list = arena_strdup(&a->c->arena, list.p);
    return 0;
}

/* ---- -m ---- */

/* "plane=2", or "plane" with SLURM_DIST_PLANESIZE. */
static int ask_plane(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct job_ask *a = r->ctx;
    const char *equals = strchr(value, '='), *text = equals ? equals + 1 : getenv("SLURM_DIST_PLANESIZE");
    uint64_t size;
    if (!text || count_parse(text, INT32_MAX, &size) || !size) {
        opt_bad(r, r->table->usage_exit, "Invalid plane size or size not specified");
        return opt_bad_value(r, o);
    }
    auto_str whole = {0};
    str_addf(&whole, "plane=%u", (uint32_t)size);
    a->more.distribution = arena_strdup(&a->c->arena, whole.p);
    return 0;
}

static bool is_word(const char *value, size_t n, const char *word) {
    return strlen(word) == n && strncasecmp(value, word, n) == 0;
}

int ask_distribution(struct opt_run *r, const struct opt_row *o, const char *value) {
    static const char *const there[] = {"block", "cyclic", "arbitrary"};
    static const char *const later[] = {"fcyclic", "pack", "nopack", "*"};
    static const char *const second[] = {"block", "cyclic", "fcyclic", "*"}; /* over sockets: of no effect where tasks aren't bound to them */
    struct job_ask *a = r->ctx;
    size_t n = strcspn(value, ":=,");
    bool is_second = false;
    if (strncasecmp(value, "plane", 5) == 0)
        return ask_plane(r, o, value);
    if (strcasecmp(value, "hostfile") == 0)
        value = "arbitrary", n = strlen(value);
    for (size_t i = 0; value[n] == ':' && i < ARRAY_LEN(second); i++)
        is_second |= strcasecmp(value + n + 1, second[i]) == 0;
    for (size_t i = 0; i < ARRAY_LEN(there); i++)
        if (is_word(value, n, there[i]) && (!value[n] || (is_second && !str_eq(there[i], "arbitrary")))) {
            a->more.distribution = is_second ? value : there[i];
            return 0;
        }
    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        if (is_word(value, n, later[i]) || value[n])
            return opt_bad(r, 1, "option --%s=%s is not supported yet (see docs/compatibility.md)", o->name, value);
    return opt_bad_value(r, o);
}

uint32_t job_plane_size(const struct job_more *m) {
    uint64_t n = 0;
    if (m->distribution && str_starts(m->distribution, "plane="))
        (void)str_to_u64(m->distribution + strlen("plane="), INT32_MAX, &n);
    return (uint32_t)n;
}

/* ---- all together ---- */

static bool is_arbitrary(const struct job_ask *a) {
    return str_eq(a->more.distribution, "arbitrary");
}

bool job_ask_hostfile(struct job_ask *a) {
    const char *path = a->node_list ? NULL : getenv("SLURM_HOSTFILE");
    auto_str list = {0};
    uint32_t n, most = a->spec.n_tasks_given ? a->spec.n_tasks_given : HOSTS_MAX;
    if (!path)
        return true;
    a->more.distribution = "arbitrary";
    bool is_read = read_hosts(a->c, path, most, &list, &n);
    if (!is_read)
        cli_error(a->c, "slurm_allocate_resources error opening file %s, %s", path, strerror(errno));
    else if (!n)
        cli_error(a->c, "Hostlist is empty!");
    else if (n < a->spec.n_tasks_given)
        cli_error(a->c, "Too few NodeNames in Slurm Hostfile");
    if (!is_read || !n || n < a->spec.n_tasks_given) {
        cli_error(a->c, "Failure getting NodeNames from hostfile");
        return false;
    }
    a->node_list = arena_strdup(&a->c->arena, list.p);
    return true;
}

/* The list's names, each once, are the nodes; as many tasks as names. */
static bool deal_out(struct job_ask *a) {
    struct job_spec *j = &a->spec;
    const char **once = arena_alloc(&a->c->arena, j->n_req_nodes * sizeof(*once));
    struct maps seen = {0};
    uint32_t n = 0;
    a->more.task_nodes = j->req_nodes;
    a->more.n_task_nodes = j->n_req_nodes;
    for (uint32_t i = 0; i < j->n_req_nodes; i++) {
        if (maps_get(&seen, j->req_nodes[i]))
            continue;
        maps_put(&seen, j->req_nodes[i], a);
        once[n++] = j->req_nodes[i];
    }
    maps_fini(&seen);
    j->req_nodes = once;
    j->n_req_nodes = j->min_nodes = j->max_nodes = n;
    j->min_nodes_given = true;
    if (!j->n_tasks_given)
        j->n_tasks_given = a->more.n_task_nodes;
    j->n_tasks = j->n_tasks_given;
    return true;
}

bool job_ask_dealt(struct job_ask *a) {
    const struct job_spec *j = &a->spec;
    if (!is_arbitrary(a))
        return true;
    if (a->more.nodes_given) {
        cli_error(a->c, "--nodes is incompatible with --distribution=arbitrary");
        return false;
    }
    if (!j->n_req_nodes) {
        cli_error(a->c, "With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option");
        return false;
    }
    return deal_out(a);
}

bool job_ask_planes(struct job_ask *a) {
    const struct job_spec *j = &a->spec;
    uint64_t plane = job_plane_size(&a->more), n_tasks = MAX(j->n_tasks_given, 1u), nodes = MAX(j->min_nodes, 1u);
    if (!plane || n_tasks / plane >= nodes || (nodes - 1) * plane < n_tasks)
        return true;
    cli_error(a->c, "Too few processes for the requested {plane,node} distribution");
    return false;
}
