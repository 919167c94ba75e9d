/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sched/license.h"

#include "base/mem.h"
#include "base/str.h"

void licenses_init(struct licenses *l, const struct rconf *conf, struct arena *scratch) {
    *l = (struct licenses){.n = conf ? conf->n_licenses : 0};
    l->pool = arena_calloc(scratch, l->n + 1, sizeof(*l->pool));
    for (uint32_t i = 0; i < l->n; i++)
        l->pool[i] = (struct pool){conf->licenses[i].name, conf->licenses[i].count, conf->licenses[i].count};
}

static struct pool *find(const struct licenses *l, const char *name) {
    for (uint32_t i = 0; i < l->n; i++) {
        if (str_eq(l->pool[i].name, name))
            return &l->pool[i];
    }
    return NULL;
}

static void add(struct licenses *l, const struct license_ask *a, int64_t sign) {
    struct pool *p = find(l, a->name);
    if (p)
        p->free += sign * (int64_t)a->count;
}

static bool is_choice(const struct license_ask *a, uint32_t n) {
    return n > 1 && a[1].is_or;
}

void licenses_hold(struct licenses *l, const struct job *j) {
    const struct job_more *m = job_spec_more(j->spec);
    const struct job_rare *r = job_rare_of(j);
    if (r->n_licenses) {
        for (uint32_t i = 0; i < r->n_licenses; i++)
            add(l, &r->licenses[i], -1);
        return;
    }
    for (uint32_t i = 0; i < m->n_licenses && !(i && is_choice(m->licenses, m->n_licenses)); i++)
        add(l, &m->licenses[i], -1);
}

static bool has(const struct licenses *l, const struct license_ask *a) {
    const struct pool *p = find(l, a->name);
    return !a->count || (p && p->free >= (int64_t)a->count);
}

bool licenses_fit(const struct licenses *l, const struct job_spec *s, struct license_take *out) {
    const struct job_more *m = job_spec_more(s);
    bool choice = is_choice(m->licenses, m->n_licenses);
    *out = (struct license_take){m->licenses, choice ? 1 : m->n_licenses, choice};
    for (uint32_t i = 0; i < m->n_licenses; i++) {
        bool ok = has(l, &m->licenses[i]);
        if (choice && ok)
            out->ask = &m->licenses[i];
        if (ok == choice)
            return choice;
    }
    return !choice;
}

void licenses_take(struct licenses *l, const struct license_take *t) {
    for (uint32_t i = 0; i < t->n; i++)
        add(l, &t->ask[i], -1);
}

void licenses_give_back(struct licenses *l, const struct license_take *t) {
    for (uint32_t i = 0; i < t->n; i++)
        add(l, &t->ask[i], 1);
}

bool licenses_never(const struct rconf *conf, const struct job_spec *s) {
    auto_arena a = {0};
    struct licenses l;
    struct license_take t;
    licenses_init(&l, conf, &a);
    return !licenses_fit(&l, s, &t);
}
