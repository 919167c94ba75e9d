/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/sacct_more.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

/* "4", "4-16" */
static bool read_range(const char *text, uint32_t out[2]) {
    char *end;
    out[0] = 0;
    out[1] = UINT32_MAX;
    if (!text)
        return true;
    out[0] = out[1] = (uint32_t)strtoul(text, &end, 10);
    if (*end == '-' && end != text) {
        const char *second = end + 1;
        out[1] = (uint32_t)strtoul(second, &end, 10);
        return end != second && !*end;
    }
    return end != text && !*end;
}

static bool read_limit(const char *text, uint32_t *out) {
    return !text || time_limit_parse(text, out) == 0;
}

/* Groups by name or number: numbers are what a job has. */
static bool read_groups(struct cli *c, struct sacct_more *m) {
    uint32_t n = 0;
    const char *const *word = m->groups ? cli_words(c, m->groups, ",", &n) : NULL;
    const char **id = arena_alloc(&c->arena, (n + 1) * sizeof(*id));
    for (uint32_t i = 0; i < n; i++) {
        struct group *gr = getgrnam(word[i]);
        if (!gr && strspn(word[i], "0123456789") != strlen(word[i])) {
            cli_say(c, "fatal: Invalid group id: %s", word[i]);
            return false;
        }
        id[i] = gr ? arena_printf(&c->arena, "%u", gr->gr_gid) : word[i];
    }
    m->group = id;
    m->n_group = n;
    return true;
}

bool sacct_more_read(struct cli *c, struct sacct_more *m) {
    m->limit_at[0] = 0;
    m->limit_at[1] = UINT32_MAX;
    m->reason = m->reasons ? cli_words(c, m->reasons, ",", &m->n_reason) : NULL;
    m->feature = m->features ? cli_words(c, m->features, ",", &m->n_feature) : NULL;
    if (!read_range(m->cpus, m->cpus_at))
        cli_error(c, "Invalid --ncpus: %s", m->cpus);
    else if (!read_range(m->nodes, m->nodes_at))
        cli_error(c, "Invalid --nnodes: %s", m->nodes);
    else if (!read_limit(m->limit_min, &m->limit_at[0]) || !read_limit(m->limit_max, &m->limit_at[1]))
        cli_error(c, "Invalid time limit specification");
    else if (m->limit_max && !m->limit_min)
        cli_error(c, "--timelimit-max without --timelimit-min");
    else
        return read_groups(c, m);
    return false;
}

static bool is_within(uint32_t n, const uint32_t range[2]) {
    return n >= range[0] && n <= range[1];
}

static bool has(const char *const *word, uint32_t n, const char *text) {
    for (uint32_t i = 0; i < n; i++)
        if (strcasecmp(word[i], text) == 0)
            return true;
    return !n;
}

static bool has_feature(const struct sacct_more *m, const char *features) {
    for (uint32_t i = 0; i < m->n_feature; i++)
        if (features && strstr(features, m->feature[i]))
            return true;
    return !m->n_feature;
}

bool sacct_more_wants(const struct sacct_more *m, const struct job_info *ji) {
    const struct job *j = ji->job;
    auto_str reason = {0};
    char gid[16];
    job_reason(ji, &reason);
    snprintf(gid, sizeof(gid), "%u", j->spec->gid);
    /* a limit alone is that limit; with a second one they are bounds */
    uint32_t limit = job_limit_min(ji), to = m->limit_min && !m->limit_max ? m->limit_at[0] : m->limit_at[1];
    return is_within(job_cpus(ji), m->cpus_at) && is_within(job_nodes(ji), m->nodes_at) &&
           is_within(limit, (const uint32_t[2]){m->limit_at[0], to}) && has(m->group, m->n_group, gid) &&
           has(m->reason, m->n_reason, str_text(&reason)) && has_feature(m, job_shown_features(j));
}
