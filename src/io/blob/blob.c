/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop's side of a store: jobs for its thread and what comes back, books, reads, opening and closing.
 *
 * The thread's results come in through `door`, a handle of our own: what is posted to a loop that never turns again is
 * lost, and with it the memory.
 */
#include "io/blob/blob.h"

#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <uv.h>

#include "base/mem.h"
#include "io/blob/store.h"

struct door {
    uv_async_t async; /* first, so that libuv's pointer is ours */
    struct blob_store *store;
    pthread_mutex_t lock; /* guards the list */
    struct job *first, **last;
};

struct read_job {
    struct job job;
    uint32_t pack; /* 0: not there */
    struct pack_record record;
    struct buf bytes;
    int code;
    struct err why;
    blob_read_fn done;
    void *arg;
};

void blob_hash_of(const void *p, size_t n, struct blob_hash *out) {
    crypto_generichash(out->b, sizeof(out->b), p, n, NULL, 0);
}

/* ---- jobs ---- */

static void work(void *arg) {
    struct job *j = arg;
    struct door *d = j->store->door;
    j->work(j);
    j->active = j->store->files.active;
    j->n_syncs = j->store->files.n_syncs;
    pthread_mutex_lock(&d->lock);
    *d->last = j;
    d->last = &j->next;
    uv_async_send(&d->async);
    pthread_mutex_unlock(&d->lock);
}

void store_run(struct blob_store *s, struct job *j) {
    j->next = NULL;
    j->store = s;
    pool_run(s->pool, s->loop, work, NULL, j);
}

static void finish_jobs(struct door *d) {
    pthread_mutex_lock(&d->lock);
    struct job *j = d->first;
    d->first = NULL;
    d->last = &d->first;
    pthread_mutex_unlock(&d->lock);
    for (struct job *next; j; j = next) {
        next = j->next;
        d->store->active = j->active;
        d->store->stats.syncs = j->n_syncs;
        j->done(j);
    }
}

static void on_door(uv_async_t *h) {
    finish_jobs((struct door *)h);
}

static struct door *door_new(struct blob_store *s) {
    struct door *d = xnew(struct door);
    d->store = s;
    d->last = &d->first;
    pthread_mutex_init(&d->lock, NULL);
    must(uv_async_init(loop_uv(s->loop), &d->async, on_door) == 0);
    return d;
}

static void door_closed(uv_handle_t *h) {
    struct door *d = (struct door *)h;
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* ---- books ---- */

uint32_t store_tick(struct blob_store *s) {
    return (uint32_t)((loop_now_ms(s->loop) - s->opened_ms) / 100) + 1;
}

struct pack_info *store_pack(struct blob_store *s, uint32_t number) {
    struct pack_info *p = map64_get(&s->packs, number);
    if (!p) {
        p = xnew(struct pack_info);
        p->number = number;
        p->bytes = PACK_HEADER_SIZE;
        map64_put(&s->packs, number, p);
    }
    return p;
}

void store_point(struct blob_store *s, struct blob_entry *e, uint32_t pack, uint32_t offset, uint32_t length) {
    if (e->pack) {
        struct pack_info *was = store_pack(s, e->pack);
        was->n_live--;
        was->live_bytes -= pack_room(e->length);
        s->stats.bytes -= e->length;
    }
    e->pack = pack;
    e->offset = offset;
    e->length = length & 0x7fffffff;
    if (pack) {
        struct pack_info *is = store_pack(s, pack);
        is->n_live++;
        is->live_bytes += pack_room(length);
        s->stats.bytes += length;
    }
}

/* ---- reads ---- */

bool blob_has(const struct blob_store *s, const struct blob_hash *h) {
    const struct blob_entry *e = index_find(&s->index, h);
    return e && !e->bad;
}

static void read_work(struct job *j) {
    struct read_job *r = (struct read_job *)j;
    r->code = r->pack ? files_read(&j->store->files, r->pack, &r->record, &r->bytes, &r->why)
                      : err_set(&r->why, E_NOT_FOUND, "there is no such blob");
}

/* A damaged blob does not count as there any more, so that the next put of its bytes stores them again. */
static void note_damage(struct blob_store *s, const struct read_job *r) {
    struct blob_entry *e = index_find(&s->index, &r->record.hash);
    if (e && e->pack == r->pack && e->offset == r->record.offset && (!r->code || r->code == E_CORRUPT))
        e->bad = r->code == E_CORRUPT;
}

static void read_done(struct job *j) {
    struct read_job *r = (struct read_job *)j;
    if (r->pack)
        note_damage(j->store, r);
    if (j->store->closing)
        r->code = err_set(&r->why, E_STOPPING, "the store is closing");
    r->done(r->arg, r->code, r->code ? &r->why : NULL, r->code ? NULL : r->bytes.p, r->code ? 0 : r->bytes.n);
    buf_fini(&r->bytes);
    free(r);
}

void blob_get(struct blob_store *s, const struct blob_hash *h, blob_read_fn done, void *arg) {
    if (s->closing) {
        struct err why;
        done(arg, err_set(&why, E_STOPPING, "the store is closing"), &why, NULL, 0);
        return;
    }
    const struct blob_entry *e = index_find(&s->index, h);
    struct read_job *r = xnew(struct read_job);
    r->job.work = read_work;
    r->job.done = read_done;
    r->record.hash = *h;
    if (e) {
        r->pack = e->pack;
        r->record.offset = e->offset;
        r->record.length = e->length;
    }
    r->done = done;
    r->arg = arg;
    store_run(s, &r->job);
}

/* ---- the whole ---- */

struct blob_stats blob_stats(const struct blob_store *s) {
    struct blob_stats st = s->stats;
    st.n = s->index.n;
    st.packs = s->packs.n;
    return st;
}

struct blob_tuning blob_tuning_default(void) {
    return (struct blob_tuning){.pack_bytes = 64 << 20, .grace_ms = BLOB_GRACE_MS, .piece_bytes = 512 << 10,
                                .collect_pause_ms = 25};
}

static void store_free(struct blob_store *s) {
    files_fini(&s->files);
    index_fini(&s->index);
    size_t at = 0;
    uint64_t key;
    void *p;
    while (map64_next(&s->packs, &at, &key, &p))
        free(p);
    map64_fini(&s->packs);
    map64_fini(&s->in_flight);
    free(s);
}

int blob_open_tuned(struct loop *l, const char *dir, const struct blob_tuning *t, struct blob_store **out,
                    struct err *e) {
    must(t->pack_bytes <= UINT32_MAX - BLOB_MAX_SIZE - 4096);
    must(sodium_init() >= 0); /* chooses the fast code of its hash; harmless when repeated */
    struct blob_store *s = xnew(struct blob_store);
    s->loop = l;
    s->tuning = *t;
    s->files = files_none();
    s->files.pack_bytes = t->pack_bytes;
    put_open(s);
    s->opened_ms = loop_now_ms(l);
    int r = store_load(s, dir, e);
    if (r) {
        store_free(s);
        return r;
    }
    s->door = door_new(s);
    s->pool = pool_new("blob", 1);
    *out = s;
    return 0;
}

int blob_open(struct loop *l, const char *dir, struct blob_store **out, struct err *e) {
    struct blob_tuning t = blob_tuning_default();
    return blob_open_tuned(l, dir, &t, out, e);
}

void blob_close(struct blob_store *s) {
    if (!s)
        return;
    s->closing = true;
    loop_late_cancel(&s->kick);
    pool_free(s->pool);
    finish_jobs(s->door);
    put_close(s);
    collect_close(s); /* last: its `done` may ask for the statistics */
    uv_close((uv_handle_t *)&s->door->async, door_closed);
    store_free(s);
}
