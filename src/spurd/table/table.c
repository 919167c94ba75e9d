/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/table/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

/* A forgotten run is remembered for longer than any launch credential is good for. */
#define FORGOTTEN_SECS 900
#define STRAY_WHY "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"

struct waiter {
    table_launched_fn fn;
    void *arg;
};

struct entry {
    struct table *table;
    uint64_t key;
    uint32_t uid, pid, kill_wait_ms;
    uint32_t state; /* enum run_state */
    VEC(struct waiter) waiters;          /* launches that want to know */
    struct step_terminate *term;         /* asked for while it starts */
    char *term_why;
    struct step_result *result;          /* packed */
    struct table_ended ended;
};

struct forgotten {
    uint64_t key;
    int64_t until_unix;
};

struct table {
    struct host *host;
    struct steps *steps;
    struct table_conf conf;
    struct map64 entries;   /* struct entry */
    struct map64 forgotten; /* (void *)1 */
    VEC(uint64_t) ended;    /* in the order of their ends */
    VEC(struct forgotten) queue; /* by time */
    size_t queue_at;             /* those before are gone */
    struct host_timer *timer;
};

static void schedule_purge(struct table *t);

static int64_t now_unix(const struct table *t) {
    return t->host->unix_ms(t->host->impl) / 1000;
}

static void changed(struct table *t) {
    if (t->conf.changed)
        t->conf.changed(t->conf.arg);
}

struct table *table_new(struct host *h, const struct table_conf *conf) {
    struct table *t = xnew(struct table);
    t->host = h;
    t->conf = *conf;
    return t;
}

static void answer_waiters(struct entry *en, int code, const struct err *why) {
    for (size_t i = 0; i < en->waiters.n; i++)
        en->waiters.p[i].fn(en->waiters.p[i].arg, code, why, en->pid);
    vec_fini(&en->waiters);
}

void table_stop(struct table *t) {
    size_t cursor = 0;
    void *en;
    struct err e;
    err_set(&e, E_STOPPING, NULL);
    while (map64_next(&t->entries, &cursor, NULL, &en))
        answer_waiters(en, E_STOPPING, &e);
}

static void entry_free(struct entry *en) {
    vec_fini(&en->waiters);
    free(en->term);
    free(en->term_why);
    rec_free(en->result);
    free(en);
}

void table_free(struct table *t) {
    size_t cursor = 0;
    void *en;
    t->host->timer_stop(t->host->impl, t->timer);
    while (map64_next(&t->entries, &cursor, NULL, &en))
        entry_free(en);
    map64_fini(&t->entries);
    map64_fini(&t->forgotten);
    vec_fini(&t->ended);
    vec_fini(&t->queue);
    free(t);
}

static struct entry *entry_new(struct table *t, uint64_t key, uint32_t uid, uint32_t state) {
    struct entry *en = xnew(struct entry);
    en->table = t;
    en->key = key;
    en->uid = uid;
    en->state = state;
    map64_put(&t->entries, key, en);
    return en;
}

/* ---- what is forgotten ---- */

static void note_forgotten(struct table *t, uint64_t key, int64_t until_unix) {
    map64_put(&t->forgotten, key, (void *)1);
    vec_push(&t->queue, (struct forgotten){key, until_unix});
    schedule_purge(t);
}

static void purge(void *arg) {
    struct table *t = arg;
    int64_t now = now_unix(t);
    t->timer = NULL;
    while (t->queue_at < t->queue.n && t->queue.p[t->queue_at].until_unix <= now) {
        uint64_t key = t->queue.p[t->queue_at++].key;
        map64_del(&t->forgotten, key);
        t->steps->purge(t->steps->impl, key);
    }
    if (t->queue_at > t->queue.n / 2) {
        size_t left = t->queue.n - t->queue_at;
        memmove(t->queue.p, t->queue.p + t->queue_at, left * sizeof(*t->queue.p));
        t->queue.n = left;
        t->queue_at = 0;
    }
    schedule_purge(t);
}

static void schedule_purge(struct table *t) {
    if (t->timer || t->queue_at == t->queue.n)
        return;
    int64_t wait = t->queue.p[t->queue_at].until_unix - now_unix(t) + 1;
    t->timer = t->host->timer_start(t->host->impl, (uint64_t)MAX(wait, 1) * 1000, purge, t);
}

/* ---- ends ---- */

static void on_ended(void *arg, uint64_t key, const struct step_result *result) {
    struct table *t = arg;
    struct entry *en = map64_get(&t->entries, key);
    if (!en || en->state == RUN_ENDED)
        return;
    en->state = RUN_ENDED;
    en->result = rec_pack(step_result_rec(), result);
    en->ended = (struct table_ended){.key = key, .result = en->result};
    vec_push(&t->ended, key);
    log_info("job %u start %u: ended, status %u:%u%s%s", run_job(key), run_start_no(key), result->wait_status >> 8,
             result->wait_status & 0x7f, result->text ? ": " : "", result->text ? result->text : "");
    changed(t);
}

struct steps_events table_events(struct table *t) {
    return (struct steps_events){t, on_ended};
}

struct table_ended *table_find_ended(struct table *t, uint64_t key) {
    struct entry *en = map64_get(&t->entries, key);
    return en && en->state == RUN_ENDED ? &en->ended : NULL;
}

struct table_ended *table_next_ended(struct table *t, size_t *cursor) {
    return *cursor < t->ended.n ? table_find_ended(t, t->ended.p[(*cursor)++]) : NULL;
}

void table_reported(struct table *t, uint64_t key) {
    struct entry *en = map64_get(&t->entries, key);
    if (!en || en->state != RUN_ENDED)
        return;
    for (size_t i = 0; i < t->ended.n; i++) {
        if (t->ended.p[i] == key) {
            vec_remove(&t->ended, i);
            break;
        }
    }
    map64_del(&t->entries, key);
    entry_free(en);
    t->steps->forget(t->steps->impl, key);
    note_forgotten(t, key, now_unix(t) + FORGOTTEN_SECS);
    changed(t);
}

/* ---- adoption ---- */

static void adopt_one(void *arg, const struct steps_found *found) {
    struct table *t = arg;
    if (found->forgotten_unix) {
        note_forgotten(t, found->key, found->forgotten_unix + FORGOTTEN_SECS);
        return;
    }
    struct entry *en = entry_new(t, found->key, found->uid, RUN_RUNNING);
    en->pid = found->pid;
    en->kill_wait_ms = found->kill_wait_ms;
    log_info("job %u start %u: found", run_job(found->key), run_start_no(found->key));
}

void table_adopt(struct table *t, struct steps *steps) {
    t->steps = steps;
    steps->find(steps->impl, adopt_one, t);
}

/* ---- launch ---- */

static void on_started(void *arg, int code, const struct err *why, uint32_t pid, uint32_t kill_wait_ms) {
    struct entry *en = arg; /* one that starts stays in the table until this */
    struct table *t = en->table;
    must(en->state == RUN_STARTING);
    if (code) {
        log_warn("job %u start %u: not started: %s", run_job(en->key), run_start_no(en->key), why->text);
        map64_del(&t->entries, en->key);
        answer_waiters(en, code, why);
        entry_free(en);
        changed(t);
        return;
    }
    en->state = RUN_RUNNING;
    en->pid = pid;
    en->kill_wait_ms = kill_wait_ms;
    if (en->term) {
        en->state = RUN_ENDING;
        (void)t->steps->terminate(t->steps->impl, en->key, en->term);
    }
    answer_waiters(en, 0, NULL);
    changed(t);
}

/* Whether the start was made before the machine was started anew: it may have run then. */
static bool is_of_an_earlier_boot(const struct table *t, const struct launch_request *q) {
    uint32_t boot = q->node_index < q->n_nodes ? q->nodes[q->node_index].boot : 0;
    return boot && t->conf.boot && boot != t->conf.boot;
}

void table_launch(struct table *t, const struct launch_request *q, const void *bytes, size_t n, table_launched_fn fn,
                  void *arg) {
    uint64_t key = run_key(q->job_id, q->start_no);
    struct entry *en = map64_get(&t->entries, key);
    struct err e;
    if (!en && map64_get(&t->forgotten, key)) {
        fn(arg, err_set(&e, E_CRED_REPLAY, NULL), &e, 0);
        return;
    }
    if (en && en->state != RUN_STARTING) {
        fn(arg, 0, NULL, en->pid);
        return;
    }
    if (!en && is_of_an_earlier_boot(t, q)) {
        fn(arg, err_set(&e, E_STALE, "job %u start %u was for this machine before it was started anew", q->job_id,
                        q->start_no), &e, 0);
        return;
    }
    bool is_new = !en;
    if (is_new)
        en = entry_new(t, key, q->spec->uid, RUN_STARTING);
    vec_push(&en->waiters, (struct waiter){fn, arg});
    if (!is_new)
        return;
    struct buf request = {0};
    buf_add(&request, bytes, n);
    log_info("job %u start %u: launch for user id %u", q->job_id, q->start_no, q->spec->uid);
    t->steps->start(t->steps->impl, key, request, on_started, en);
    changed(t);
}

/* ---- signal, terminate ---- */

static struct entry *find_for(struct table *t, uint32_t job_id, uint32_t start_no, uint32_t uid, int *out_code,
                              struct err *e) {
    struct entry *en = map64_get(&t->entries, run_key(job_id, start_no));
    *out_code = !en ? err_set(e, E_NOT_FOUND, "job %u start %u is not here", job_id, start_no)
                : en->uid != uid
                    ? err_set(e, E_DENIED, "job %u start %u belongs to user id %u", job_id, start_no, en->uid)
                    : 0;
    return *out_code ? NULL : en;
}

int table_signal(struct table *t, const struct signal_request *q, struct err *e) {
    int code;
    struct entry *en = find_for(t, q->job_id, q->start_no, q->uid, &code, e);
    if (!en)
        return code;
    if (en->state == RUN_STARTING)
        return err_set(e, E_BUSY, "job %u is being started", q->job_id);
    if (en->state == RUN_ENDED)
        return err_set(e, E_JOB_DONE, NULL);
    struct step_signal s = {q->signal, q->batch_only};
    return t->steps->signal(t->steps->impl, en->key, &s) ? err_set(e, E_JOB_DONE, NULL) : 0;
}

static void terminate_entry(struct table *t, struct entry *en, uint64_t wait_ms, const char *why) {
    struct step_terminate term = {(uint32_t)MIN(wait_ms, INT32_MAX), why};
    if (en->state == RUN_STARTING) {
        free(en->term);
        free(en->term_why);
        en->term = xmemdup(&term, sizeof(term));
        en->term->why = en->term_why = xstrdup(why);
    } else if (en->state != RUN_ENDED) {
        en->state = RUN_ENDING;
        (void)t->steps->terminate(t->steps->impl, en->key, &term); /* ended meanwhile: that is told soon */
    }
}

int table_terminate(struct table *t, const struct terminate_request *q, struct err *e) {
    int code;
    uint32_t scale = t->conf.clock_scale ? t->conf.clock_scale : 1;
    struct entry *en = find_for(t, q->job_id, q->start_no, q->uid, &code, e);
    uint64_t key = run_key(q->job_id, q->start_no);
    /* Its launch may still be on the way: "nothing of it lives here" must stay true once it was said. */
    if (code == E_NOT_FOUND && !map64_get(&t->forgotten, key)) {
        t->steps->forget(t->steps->impl, key);
        note_forgotten(t, key, now_unix(t) + FORGOTTEN_SECS);
    }
    if (!en)
        return code;
    terminate_entry(t, en, (uint64_t)q->kill_wait_secs * 1000 / scale, q->why);
    changed(t);
    return 0;
}

void table_end_strays(struct table *t, const struct run_ref *refs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        struct entry *en = map64_get(&t->entries, run_key(refs[i].job_id, refs[i].start_no));
        if (!en || en->state == RUN_ENDED || en->state == RUN_ENDING)
            continue;
        log_warn("job %u start %u: the controller says that it should not run", refs[i].job_id, refs[i].start_no);
        terminate_entry(t, en, en->kill_wait_ms, STRAY_WHY);
    }
    if (n)
        changed(t);
}

/* ---- what the controller should know ---- */

static int compare_refs(const void *a, const void *b) {
    const struct run_ref *x = a, *y = b;
    uint64_t i = run_key(x->job_id, x->start_no), j = run_key(y->job_id, y->start_no);
    return i < j ? -1 : i > j;
}

uint32_t table_refs(const struct table *t, struct arena *a, const struct run_ref **out) {
    struct run_ref *refs = arena_calloc(a, t->entries.n, sizeof(*refs));
    uint32_t n = 0;
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (map64_next(&t->entries, &cursor, &key, &value)) {
        const struct entry *en = value;
        refs[n++] = (struct run_ref){run_job(key), run_start_no(key), en->state};
    }
    qsort(refs, n, sizeof(*refs), compare_refs);
    *out = refs;
    return n;
}

uint64_t table_refs_hash(const struct table *t) {
    uint64_t sum = t->entries.n;
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (map64_next(&t->entries, &cursor, &key, &value)) /* a sum: the order of the map must not count */
        sum += hash_u64(key ^ hash_u64(((const struct entry *)value)->state));
    return sum ? sum : 1;
}

size_t table_count(const struct table *t) {
    return t->entries.n;
}
