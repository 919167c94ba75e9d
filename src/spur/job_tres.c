/* SPDX-License-Identifier: Apache-2.0
 *
 * Trackable resources as scontrol and sacct write them: CPUs, memory, generic resources, licences.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/text.h"
#include "spur/job_facts.h"

static void tres_gres_add(struct tres_gres *t, const char *name, const char *type, uint64_t count) {
    for (uint32_t i = 0; i < t->n; i++)
        if (str_eq(t->item[i].name, name) && str_eq(t->item[i].type, type)) {
            t->item[i].count += count;
            return;
        }
    t->item = xrealloc(t->item, (t->n + 1) * sizeof(*t->item));
    t->item[t->n++] = (struct gres_ask){.name = name, .type = type, .count = count};
}

/* Each kind counts for its name, and where it has a type for that too. */
static void tres_gres_both(struct tres_gres *t, const char *name, const char *type, uint64_t count) {
    tres_gres_add(t, name, NULL, count);
    if (type)
        tres_gres_add(t, name, type, count);
}

void tres_gres_hold(struct tres_gres *t, const struct gres_held *g, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        tres_gres_both(t, g[i].name, g[i].type, g[i].count);
}

/* By name; the sum before its types, or behind them where all is sorted as text (':' comes before '='). */
static int compare_gres(const void *a, const void *b, void *sorted) {
    const struct gres_ask *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    if (c)
        return c;
    if (!x->type != !y->type)
        return (*(bool *)sorted ? 1 : -1) * (x->type ? -1 : 1);
    return x->type ? strcmp(x->type, y->type) : 0;
}

void tres_gres_print(const struct tres_gres *t, bool sorted, struct str *out) {
    if (t->n)
        qsort_r(t->item, t->n, sizeof(*t->item), compare_gres, &sorted);
    for (uint32_t i = 0; i < t->n; i++)
        str_addf(out, ",gres/%s%s%s=%llu", t->item[i].name, t->item[i].type ? ":" : "",
                 t->item[i].type ? t->item[i].type : "", (unsigned long long)t->item[i].count);
}

void tres_gres_fini(struct tres_gres *t) {
    free(t->item);
}

static void collect_gres(const struct job_info *ji, bool allocated, struct tres_gres *out) {
    const struct job *j = ji->job;
    const struct job_more *m = job_spec_more(j->spec);
    for (uint32_t i = 0; allocated && i < j->n_nodes; i++)
        tres_gres_hold(out, j->nodes[i].gres, j->nodes[i].n_gres);
    for (uint32_t i = 0; !allocated && i < m->n_gres; i++) {
        const struct gres_ask *g = &m->gres[i];
        uint64_t times = g->per == GRES_PER_NODE ? job_nodes(ji) : g->per == GRES_PER_TASK ? job_tasks(ji) : 1;
        tres_gres_both(out, g->name, g->type, g->count * times);
    }
}

static void add_licenses(const struct job *j, struct str *out) {
    const struct job_more *m = job_spec_more(j->spec);
    for (uint32_t i = 0; i < m->n_licenses; i++)
        if (m->licenses[i].count && !m->licenses[i].is_or)
            str_addf(out, ",license/%s=%u", m->licenses[i].name, m->licenses[i].count);
}

void job_tres(const struct job_info *ji, bool allocated, bool sorted, char unit, struct str *out) {
    const struct job *j = ji->job;
    uint32_t cpus = job_cpus(ji), nodes = job_nodes(ji);
    uint64_t mem = job_alloc_mem_mb(j);
    struct tres_gres gres = {0};
    if (allocated && !j->n_nodes)
        return;
    if (!allocated && !mem)
        mem = job_mem_mb(ji);
    collect_gres(ji, allocated, &gres);
    if (sorted)
        str_addf(out, "billing=%u,", cpus);
    str_addf(out, "cpu=%u", cpus);
    if (sorted) {
        tres_gres_print(&gres, true, out);
        add_licenses(j, out);
    }
    if (mem) {
        str_add(out, ",mem=");
        amount_print(mem, 'M', unit, out);
    }
    str_addf(out, ",node=%u", nodes);
    if (!sorted) {
        str_addf(out, ",billing=%u", cpus);
        tres_gres_print(&gres, false, out);
        add_licenses(j, out);
    }
    tres_gres_fini(&gres);
}

void job_exclusive(const struct job_spec *s, struct str *out) {
    str_add(out, exclusive_word(s));
}

void job_licenses(const struct job *j, bool allocated, struct str *out) {
    const struct job_more *m = job_spec_more(j->spec);
    if (!m->n_licenses || (allocated && !job_holds_nodes(j))) {
        str_add(out, "(null)");
        return;
    }
    for (uint32_t i = 0; allocated && i < m->n_licenses; i++)
        str_addf(out, "%s%s:%u", i ? ";" : "", m->licenses[i].name, m->licenses[i].count);
    if (!allocated)
        str_add(out, m->licenses_text ? m->licenses_text : "");
}

void job_tres_per_node(const struct job_spec *s, struct str *out) {
    if (job_spec_more(s)->gres_text)
        gres_text_print(job_spec_more(s)->gres_text, "gres/", out);
}

void job_tres_per_job(const struct job_spec *s, struct str *out) {
    if (job_spec_more(s)->gpus_text)
        gres_text_print(job_spec_more(s)->gpus_text, "gres/gpu:", out);
}

void job_tres_per_task(const struct job_spec *s, struct str *out) {
    const struct job_more *m = job_spec_more(s);
    size_t from = out->n;
    if (job_spec_seldom(s)->tres_per_task) {
        str_add(out, job_spec_seldom(s)->tres_per_task);
        return;
    }
    if (s->cpus_per_task_given)
        str_addf(out, "cpu=%u", s->cpus_per_task_given);
    for (uint32_t i = 0; i < m->n_gres; i++) {
        const struct gres_ask *g = &m->gres[i];
        if (g->per == GRES_PER_TASK)
            str_addf(out, "%sgres/%s%s%s=%llu", out->n > from ? "," : "", g->name, g->type ? ":" : "",
                     g->type ? g->type : "", (unsigned long long)g->count);
    }
}
