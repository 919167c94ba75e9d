/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

/* ---- words ---- */

void judge_fail(const struct judge *j, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    autofree char *text = xvasprintf(fmt, ap);
    va_end(ap);
    printf("FAILED at %lld ms: %s\n", (long long)vworld_now_ms(j->world), text);
    fflush(stdout);
    _Exit(3);
}

void judge_note(struct judge *j, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    autofree char *text = xvasprintf(fmt, ap);
    va_end(ap);
    j->hash = hash_u64(j->hash ^ hash_fixed(text, strlen(text)) ^ (uint64_t)vworld_now_ms(j->world));
    if (j->is_loud)
        printf("%8lld %s\n", (long long)vworld_now_ms(j->world), text);
}

/* ---- the log ---- */

static uint64_t hash_of(const void *p, size_t n) {
    return hash_fixed(p, n) | 1; /* a map keeps no NULL */
}

static void on_stored(void *arg, uint64_t id, uint64_t index, const struct sdisk_entry *e) {
    struct judge *j = arg;
    must(e->term < 1u << 24 && index < 1ull << 40);
    uint64_t key = index << 24 | e->term, hash = hash_of(e->bytes.p, e->bytes.n);
    void *was = map64_get(&j->entries, key);
    if (was && (uint64_t)(uintptr_t)was != hash)
        judge_fail(j, "log matching: member %u stored another entry %llu of term %llu than is known", (unsigned)id,
                   (unsigned long long)index, (unsigned long long)e->term);
    map64_put(&j->entries, key, (void *)(uintptr_t)hash);
}

static bool has_majority(const struct judge *j, uint32_t voters, uint64_t index, uint64_t term) {
    uint32_t n = 0, all = 0;
    for (uint32_t i = 0; i < j->n_members; i++)
        if (voters >> smember_id(j->members[i]) & 1) {
            all++;
            n += sdisk_has(smember_disk(j->members[i]), index, term);
        }
    return n > all / 2;
}

/* Those who vote may have changed since the entry was written: its leader counts by the last change that it has. */
static bool is_durable(const struct judge *j, uint64_t index, uint64_t term) {
    uint64_t at;
    uint32_t voters;
    for (uint32_t i = 0; i < j->n_members; i++) { /* what is before the entry is the same wherever it is */
        const struct sdisk *d = smember_disk(j->members[i]);
        if (sdisk_last(d) >= index && sdisk_has(d, index, term) && has_majority(j, sdisk_voters(d, index), index, term))
            return true;
    }
    for (uint32_t i = 0; i < j->n_members; i++)
        for (size_t k = 0; sdisk_next_change(smember_disk(j->members[i]), &k, &at, &voters);)
            if (at > index && has_majority(j, voters, index, term))
                return true;
    return false;
}

static void who_has(const struct judge *j, uint64_t index, uint64_t term, struct str *out) {
    for (uint32_t i = 0; i < j->n_members; i++) {
        const struct sdisk *d = smember_disk(j->members[i]);
        str_addf(out, "; %u %s, its last is %llu, by it voters are %#x", i + 1, sdisk_has(d, index, term) ? "has it" : "has it not",
                 (unsigned long long)sdisk_last(d), sdisk_voters(d, index));
    }
}

static void on_leads(void *arg, struct smember *m, uint64_t term) {
    struct judge *j = arg;
    void *was = map64_put(&j->leaders, term, (void *)(uintptr_t)smember_id(m));
    if (was && (uintptr_t)was != smember_id(m))
        judge_fail(j, "term %llu has two leaders: %u and %u", (unsigned long long)term, (unsigned)(uintptr_t)was, smember_id(m));
    j->n_terms++;
    judge_note(j, "member %u leads in term %llu", smember_id(m), (unsigned long long)term);
}

static void check_nodes(const struct judge *j, const struct smember *m) {
    struct view v;
    const struct node *n;
    state_peek(smember_ctl(m)->room.state, &v);
    for (uint64_t k = 0; (n = view_next_node(&v, &k)); k++)
        if (n->alloc_cpus > n->cpus || n->alloc_mem_mb > n->mem_mb)
            judge_fail(j, "node %s has %u of %u CPUs and %llu of %llu MiB given away", n->name, n->alloc_cpus, n->cpus,
                       (unsigned long long)n->alloc_mem_mb, (unsigned long long)n->mem_mb);
}

static void is_first(struct judge *j, struct smember *m, struct committed *c, const void *p, size_t n) {
    buf_add(&c->bytes, p, n);
    if (j->log.n && j->log.p[j->log.n - 1].index >= c->index)
        judge_fail(j, "member %u applies entry %llu behind the last one, %llu", smember_id(m), (unsigned long long)c->index,
                   (unsigned long long)j->log.p[j->log.n - 1].index);
    auto_str who = {0};
    if (!is_durable(j, c->index, c->term)) {
        who_has(j, c->index, c->term, &who);
        judge_fail(j, "entry %llu of term %llu is applied by member %u, but no majority has it on disk%s", (unsigned long long)c->index,
                   (unsigned long long)c->term, smember_id(m), str_text(&who));
    }
    vec_push(&j->log, *c);
    check_nodes(j, m);
    judge_note(j, "entry %llu term %llu digest %016llx first by %u", (unsigned long long)c->index,
               (unsigned long long)c->term, (unsigned long long)c->digest, smember_id(m));
}

static void on_applied(void *arg, struct smember *m, uint64_t index, uint64_t term, const void *p, size_t n) {
    struct judge *j = arg;
    size_t *place = &j->place[smember_id(m)];
    struct committed c = {index, term, hash_of(p, n), state_digest(smember_ctl(m)->room.state), {0}};
    if (*place == j->log.n) {
        is_first(j, m, &c, p, n);
        ++*place;
        return;
    }
    const struct committed *is = &j->log.p[(*place)++];
    if (is->index != index || is->term != term || is->hash != c.hash)
        judge_fail(j, "member %u applies entry %llu of term %llu where others applied %llu of term %llu%s", smember_id(m),
                   (unsigned long long)index, (unsigned long long)term, (unsigned long long)is->index,
                   (unsigned long long)is->term, is->hash != c.hash ? ", with other bytes" : "");
    if (is->digest != c.digest)
        judge_fail(j, "member %u has digest %016llx at entry %llu, others had %016llx", smember_id(m),
                   (unsigned long long)c.digest, (unsigned long long)index, (unsigned long long)is->digest);
}

static void on_acknowledges(void *arg, struct smember *m, uint64_t index) {
    struct judge *j = arg;
    j->acked = MAX(j->acked, index);
}

static void on_restored(void *arg, struct smember *m, uint64_t index) {
    struct judge *j = arg;
    size_t *place = &j->place[smember_id(m)];
    for (*place = 0; *place < j->log.n && j->log.p[*place].index <= index; ++*place) {
    }
    if (!*place || state_digest(smember_ctl(m)->room.state) != j->log.p[*place - 1].digest)
        judge_fail(j, "member %u restored another state at entry %llu than others had", smember_id(m), (unsigned long long)index);
    j->n_restores++;
    judge_note(j, "member %u restored %llu", smember_id(m), (unsigned long long)index);
}

struct smember_watch judge_watch(struct judge *j) {
    return (struct smember_watch){j, on_applied, on_acknowledges, on_leads, on_restored, on_stored};
}

void judge_started(struct judge *j, const struct smember *m) {
    j->place[smember_id(m)] = 0;
}

uint64_t judge_committed(const struct judge *j) {
    return j->log.n ? j->log.p[j->log.n - 1].index : 0;
}

/* ---- runs ---- */

void judge_ran(void *arg, const struct vagent *a, enum vran what, uint32_t job_id, uint32_t start_no, bool is_batch,
               uint32_t wait_status) {
    struct judge *j = arg;
    struct run_end e = {job_id, start_no, wait_status};
    judge_note(j, "%s: job %u start %u %s", vagent_name(a), job_id, start_no, what == VRAN_BEGAN ? "begins" : "ends");
    if (what == VRAN_FINISHED)
        vec_push(&j->ends, e);
    else if (is_batch && map64_put(&j->begun, (uint64_t)job_id << 32 | start_no, (void *)1))
        judge_fail(j, "job %u was started twice as its start number %u", job_id, start_no);
}

void judge_fini(struct judge *j) {
    for (size_t i = 0; i < j->log.n; i++)
        buf_fini(&j->log.p[i].bytes);
    vec_fini(&j->log);
    vec_fini(&j->ends);
    map64_fini(&j->entries);
    map64_fini(&j->leaders);
    map64_fini(&j->begun);
    map64_fini(&j->roots);
}
