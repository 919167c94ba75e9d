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
    bool everywhere; /* where its script ends well it stays, until the controller ends it */
    VEC(struct waiter) waiters;          /* launches that want to know */
    struct step_terminate *term;         /* asked for while it starts */
    char *term_why;
    struct step_result *result;          /* packed; of a run in RUN_ENDING: it waits for its steps */
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

static void terminate_entry(struct table *t, struct entry *en, uint64_t wait_ms, const char *why);

static bool is_step_of(const struct entry *en, uint64_t run) {
    return run_step(en->key) && run_of_step(en->key) == run;
}

/* The steps of a run that are not over. With a function: what it is to be done to each. */
static uint32_t each_step(struct table *t, uint64_t run, void (*fn)(struct table *t, struct entry *en, void *arg),
                          void *arg) {
    size_t cursor = 0;
    void *value;
    uint32_t n = 0;
    while (map64_next(&t->entries, &cursor, NULL, &value)) {
        struct entry *en = value;
        if (!is_step_of(en, run) || en->state == RUN_ENDED)
            continue;
        n++;
        if (fn)
            fn(t, en, arg);
    }
    return n;
}

static void end_step(struct table *t, struct entry *en, void *arg) {
    if (en->state != RUN_ENDING)
        terminate_entry(t, en, *(const uint32_t *)arg, NULL);
}

static void drop_ended(struct table *t, uint64_t key) {
    for (size_t i = 0; i < t->ended.n; i++) {
        if (t->ended.p[i] == key) {
            vec_remove(&t->ended, i);
            break;
        }
    }
}

static void become_ended(struct table *t, struct entry *en) {
    const struct step_result *result = en->result;
    drop_ended(t, en->key); /* as one that stays */
    en->state = RUN_ENDED;
    en->ended = (struct table_ended){.key = en->key, .result = result};
    vec_push(&t->ended, en->key);
    log_info("%s: ended, status %u:%u%s%s", run_name(en->key).text, result->wait_status >> 8, result->wait_status & 0x7f,
             result->text ? ": " : "", result->text ? result->text : "");
}

/* A step is gone: was it the last one that its run's end waits for? */
static void check_run(struct table *t, uint64_t run) {
    struct entry *en = map64_get(&t->entries, run);
    if (en && en->state == RUN_ENDING && en->result && !each_step(t, run, NULL, NULL))
        become_ended(t, en);
}

static void on_ended(void *arg, uint64_t key, const struct step_result *result) {
    struct table *t = arg;
    struct entry *en = map64_get(&t->entries, key);
    if (!en || en->state == RUN_ENDED || en->result)
        return;
    en->result = rec_pack(step_result_rec(), result);
    if (en->everywhere && en->state == RUN_RUNNING && !result->wait_status && !result->never_started && !result->node_failed) {
        en->ended = (struct table_ended){.key = key, .result = en->result, .stays = true};
        vec_push(&t->ended, key);
        log_info("%s: its script is over", run_name(key).text);
    } else if (!run_step(key) && each_step(t, key, end_step, &en->kill_wait_ms)) {
        en->state = RUN_ENDING;
    } else {
        become_ended(t, en);
        check_run(t, run_of_step(key));
    }
    changed(t);
}

struct steps_events table_events(struct table *t) {
    return (struct steps_events){t, on_ended};
}

struct table_ended *table_find_ended(struct table *t, uint64_t key) {
    struct entry *en = map64_get(&t->entries, key);
    return en && (en->state == RUN_ENDED || en->ended.stays) ? &en->ended : NULL;
}

struct table_ended *table_next_ended(struct table *t, size_t *cursor) {
    return *cursor < t->ended.n ? table_find_ended(t, t->ended.p[(*cursor)++]) : NULL;
}

void table_reported(struct table *t, uint64_t key) {
    struct entry *en = map64_get(&t->entries, key);
    if (!en || en->state != RUN_ENDED)
        return;
    drop_ended(t, key);
    map64_del(&t->entries, key);
    entry_free(en);
    t->steps->forget(t->steps->impl, key);
    note_forgotten(t, key, now_unix(t) + FORGOTTEN_SECS);
    changed(t);
}

void table_told_stay(struct table *t, uint64_t key) {
    struct entry *en = map64_get(&t->entries, key);
    if (en && en->ended.stays)
        drop_ended(t, key);
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
    en->everywhere = found->everywhere;
    log_info("%s: found", run_name(found->key).text);
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
        uint64_t run = run_of_step(en->key);
        log_warn("%s: not started: %s", run_name(en->key).text, why->text);
        map64_del(&t->entries, en->key);
        answer_waiters(en, code, why);
        entry_free(en);
        check_run(t, run);
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

/* `en` is one that is on its way already: then its answer is waited for. */
static void start_entry(struct table *t, uint64_t key, struct entry *en, uint32_t uid, const void *bytes, size_t n,
                        struct waiter waiter) {
    bool is_new = !en;
    if (is_new)
        en = entry_new(t, key, uid, RUN_STARTING);
    vec_push(&en->waiters, waiter);
    if (!is_new)
        return;
    struct buf request = {0};
    buf_add(&request, bytes, n);
    log_info("%s: launch for user id %u", run_name(key).text, uid);
    t->steps->start(t->steps->impl, key, request, on_started, en);
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
    if (q->start_no > RUN_START_MAX || q->job_id > JOB_ID_MAX) {
        fn(arg, err_set(&e, E_SYNTAX, "job %u was started too often", q->job_id), &e, 0);
        return;
    }
    start_entry(t, key, en, q->spec->uid, bytes, n, (struct waiter){fn, arg});
    en = map64_get(&t->entries, key);
    if (en)
        en->everywhere = q->everywhere && q->n_nodes > 1;
}

/* ---- steps ---- */

int table_check_run(struct table *t, uint32_t job_id, uint32_t start_no, uint32_t uid, struct err *e) {
    const struct entry *run = start_no <= RUN_START_MAX ? map64_get(&t->entries, run_key(job_id, start_no)) : NULL;
    if (!run)
        return err_set(e, E_JOB_ID, "job %u start %u is not here", job_id, start_no);
    if (run->uid != uid)
        return err_set(e, E_DENIED, "job %u start %u belongs to user id %u", job_id, start_no, run->uid);
    return run->state == RUN_RUNNING ? 0 : err_set(e, run->state == RUN_STARTING ? E_BUSY : E_JOB_DONE, NULL);
}

bool table_is_forgotten(const struct table *t, uint64_t key) {
    return map64_get(&t->forgotten, key) != NULL;
}

void table_step(struct table *t, const struct step_ticket *k, const void *bytes, size_t n, table_launched_fn fn,
                void *arg) {
    struct err e;
    int code = k->start_no > RUN_START_MAX || k->step_id > RUN_STEP_MAX ? err_set(&e, E_STEP_ID, NULL) : 0;
    uint64_t key = code ? 0 : step_run_key(k->job_id, k->start_no, k->step_id);
    struct entry *en = code ? NULL : map64_get(&t->entries, key);
    if (!code && !en && map64_get(&t->forgotten, key))
        code = err_set(&e, E_CRED_REPLAY, NULL);
    if (!code && !en)
        code = table_check_run(t, k->job_id, k->start_no, k->uid, &e);
    if (!code && en && en->uid != k->uid)
        code = err_set(&e, E_DENIED, NULL);
    if (code)
        fn(arg, code, &e, 0);
    else if (en && en->state != RUN_STARTING)
        fn(arg, 0, NULL, en->pid);
    else
        start_entry(t, key, en, k->uid, bytes, n, (struct waiter){fn, arg});
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

static struct entry *find_step(struct table *t, uint32_t job_id, uint32_t start_no, uint32_t step_id_plus_1) {
    if (step_id_plus_1 - 1 > RUN_STEP_MAX)
        return NULL;
    struct entry *en = map64_get(&t->entries, step_run_key(job_id, start_no, step_id_plus_1 - 1));
    return en && en->state != RUN_ENDED ? en : NULL;
}

static void signal_step(struct table *t, struct entry *en, void *arg) {
    struct step_signal s = *(const struct step_signal *)arg;
    s.batch_only = false;
    (void)t->steps->signal(t->steps->impl, en->key, &s);
}

int table_signal(struct table *t, const struct signal_request *q, struct err *e) {
    int code;
    struct entry *en = find_for(t, q->job_id, q->start_no, q->uid, &code, e);
    if (!en)
        return code;
    if (en->state == RUN_STARTING)
        return err_set(e, E_BUSY, "job %u is being started", q->job_id);
    struct step_signal s = {q->signal, q->batch_only || !q->step_id};
    if (q->step_id) {
        en = find_step(t, q->job_id, q->start_no, q->step_id);
        return !en || t->steps->signal(t->steps->impl, en->key, &s) ? err_set(e, E_JOB_DONE, NULL) : 0;
    }
    uint32_t n = q->batch_only ? 0 : each_step(t, en->key, signal_step, &s);
    /* Slurm's way: without --batch and --full a signal is for the steps; a job without any is its script. */
    if (n && !q->full)
        return 0;
    if (en->state == RUN_ENDED)
        return err_set(e, E_JOB_DONE, NULL);
    s.batch_only = q->batch_only;
    return t->steps->signal(t->steps->impl, en->key, &s) ? err_set(e, E_JOB_DONE, NULL) : 0;
}

static void suspend_step(struct table *t, struct entry *en, void *arg) {
    (void)t->steps->suspend(t->steps->impl, en->key, *(const bool *)arg);
}

int table_suspend(struct table *t, const struct suspend_run_request *q, struct err *e) {
    int code;
    bool resume = q->resume;
    struct entry *en = find_for(t, q->job_id, q->start_no, q->uid, &code, e);
    if (!en)
        return code;
    if (en->state == RUN_STARTING)
        return err_set(e, E_BUSY, "job %u is being started", q->job_id);
    each_step(t, en->key, suspend_step, &resume);
    if (en->ended.stays)
        return 0;
    return t->steps->suspend(t->steps->impl, en->key, resume) ? err_set(e, E_JOB_DONE, NULL) : 0;
}

static void terminate_entry(struct table *t, struct entry *en, uint64_t wait_ms, const char *why) {
    struct step_terminate term = {(uint32_t)MIN(wait_ms, INT32_MAX), why};
    if (en->state == RUN_STARTING) {
        free(en->term);
        free(en->term_why);
        en->term = xmemdup(&term, sizeof(term));
        en->term->why = en->term_why = xstrdup(why);
    } else if (en->ended.stays && en->state == RUN_RUNNING) {
        each_step(t, en->key, end_step, &en->kill_wait_ms);
        en->state = RUN_ENDING;
        check_run(t, en->key);
    } else if (en->state != RUN_ENDED) {
        en->state = RUN_ENDING;
        (void)t->steps->terminate(t->steps->impl, en->key, &term); /* ended meanwhile: that is told soon */
    }
}

struct ending {
    uint64_t wait_ms;
    const char *why;
};

static void terminate_each(struct table *t, struct entry *en, void *arg) {
    const struct ending *how = arg;
    terminate_entry(t, en, how->wait_ms, how->why);
}

/* As with runs: of a step that is not here nothing will be. */
static int terminate_step(struct table *t, const struct terminate_request *q, const struct ending *how, struct err *e) {
    if (q->step_id - 1 > RUN_STEP_MAX)
        return err_set(e, E_STEP_ID, NULL);
    uint64_t key = step_run_key(q->job_id, q->start_no, q->step_id - 1);
    struct entry *en = map64_get(&t->entries, key);
    if (!en) {
        if (!map64_get(&t->forgotten, key)) {
            t->steps->forget(t->steps->impl, key);
            note_forgotten(t, key, now_unix(t) + FORGOTTEN_SECS);
        }
        return err_set(e, E_NOT_FOUND, "step %u.%u is not here", q->job_id, q->step_id - 1);
    }
    terminate_entry(t, en, how->wait_ms, how->why);
    changed(t);
    return 0;
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
    struct ending how = {(uint64_t)q->kill_wait_secs * 1000 / scale, q->why};
    if (q->step_id)
        return terminate_step(t, q, &how, e);
    each_step(t, en->key, terminate_each, &how);
    terminate_entry(t, en, how.wait_ms, how.why);
    changed(t);
    return 0;
}

void table_end_strays(struct table *t, const struct run_ref *refs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint64_t key = run_key(refs[i].job_id, refs[i].start_no) | (refs[i].step_id & 0x3fffff);
        struct entry *en = map64_get(&t->entries, key);
        if (!en || en->state == RUN_ENDED || en->state == RUN_ENDING)
            continue;
        log_warn("%s: the controller says that it should not run", run_name(key).text);
        struct ending how = {en->kill_wait_ms, STRAY_WHY};
        each_step(t, key, terminate_each, &how);
        terminate_entry(t, en, how.wait_ms, how.why);
    }
    if (n)
        changed(t);
}

/* ---- what the controller should know ---- */

static int compare_refs(const void *a, const void *b) {
    const struct run_ref *x = a, *y = b;
    uint64_t i = run_key(x->job_id, x->start_no) | x->step_id, j = run_key(y->job_id, y->start_no) | y->step_id;
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
        refs[n++] = (struct run_ref){run_job(key), run_start_no(key), en->state, run_step(key)};
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
