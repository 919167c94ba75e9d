/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts. They gather while a write runs and go out together when it is done: one fdatasync for many. Of two puts with the
 * same bytes the second waits for the first.
 */
#include <string.h>

#include "io/blob/store.h"

enum {
    HASH_HERE_MAX = 128 * 1024,      /* larger ones are hashed on the thread: about 0.1 ms */
    BATCH_BYTES_MAX = 16 * 1024 * 1024,
    BATCH_ITEMS_MAX = 4096,
};

struct waiter {
    struct waiter *next;
    blob_done_fn done;
    void *arg;
};

struct put {
    struct put *next;        /* in the queue */
    struct put *next_alike;  /* of those in flight with the same first 8 bytes */
    struct blob_hash hash;
    struct buf bytes;
    struct waiter *first, **last;
};

struct write_job {
    struct job job;
    size_t n;
    struct put **puts;
    struct files_item *items;
    struct err why;
};

struct hash_job {
    struct job job;
    struct blob_hash hash;
    struct buf bytes;
    blob_done_fn done;
    void *arg;
};

static uint64_t key_of(const struct blob_hash *h) {
    uint64_t k;
    memcpy(&k, h->b, sizeof(k));
    return k;
}

static struct put *in_flight_find(struct blob_store *s, const struct blob_hash *h) {
    struct put *p = map64_get(&s->in_flight, key_of(h));
    while (p && memcmp(&p->hash, h, sizeof(*h)) != 0)
        p = p->next_alike;
    return p;
}

static void in_flight_remove(struct blob_store *s, struct put *p) {
    struct put *first = map64_get(&s->in_flight, key_of(&p->hash)), **at = &first;
    while (*at != p)
        at = &(*at)->next_alike;
    *at = p->next_alike;
    if (first)
        map64_put(&s->in_flight, key_of(&p->hash), first);
    else
        map64_del(&s->in_flight, key_of(&p->hash));
}

static void put_wait(struct blob_store *s, struct put *p, blob_done_fn done, void *arg) {
    struct waiter *w = xnew(struct waiter);
    w->done = done;
    w->arg = arg;
    *p->last = w;
    p->last = &w->next;
    s->stats.waiting++;
}

/* Answers all who wait for it, and frees it. `why` may be another code's text. */
static void put_end(struct blob_store *s, struct put *p, int code, const struct err *why) {
    struct err own = {0};
    if (code && why->code != code) {
        err_set(&own, code, NULL);
        why = &own;
    }
    for (struct waiter *w = p->first, *next; w; w = next) {
        next = w->next;
        s->stats.waiting--;
        w->done(w->arg, code, code ? why : NULL, &p->hash);
        free(w);
    }
    buf_fini(&p->bytes);
    free(p);
}

static void write_work(struct job *j) {
    struct write_job *w = (struct write_job *)j;
    files_write(&j->store->files, w->items, w->n, &w->why);
}

static void note_written(struct blob_store *s, const struct files_item *it) {
    if (it->code)
        return;
    store_pack(s, it->pack)->bytes += pack_room(it->n);
    struct blob_entry *e = index_find(&s->index, &it->hash);
    if (!e)
        e = index_add(&s->index, &it->hash);
    store_point(s, e, it->pack, it->offset, it->n);
    e->bad = 0;
    e->fresh = store_tick(s);
}

static void write_done(struct job *j) {
    struct write_job *w = (struct write_job *)j;
    struct blob_store *s = j->store;
    s->is_writing = false;
    for (size_t i = 0; i < w->n; i++) {
        note_written(s, &w->items[i]);
        in_flight_remove(s, w->puts[i]);
    }
    if (s->first && !s->closing)
        loop_late(s->loop, &s->kick);
    if (s->closing)
        err_set(&w->why, E_STOPPING, "the store is closing");
    for (size_t i = 0; i < w->n; i++)
        put_end(s, w->puts[i], s->closing ? E_STOPPING : w->items[i].code, &w->why);
    free(w->puts);
    free(w->items);
    free(w);
}

static struct put *queue_take(struct blob_store *s) {
    struct put *p = s->first;
    s->first = p->next;
    if (!s->first)
        s->last = &s->first;
    return p;
}

static void on_kick(struct loop_late *n) {
    struct blob_store *s = (struct blob_store *)((char *)n - offsetof(struct blob_store, kick));
    if (s->is_writing || !s->first)
        return;
    struct write_job *w = xnew(struct write_job);
    VEC(struct put *) puts = {0};
    VEC(struct files_item) items = {0};
    for (size_t bytes = 0; s->first && puts.n < BATCH_ITEMS_MAX && bytes < BATCH_BYTES_MAX;) {
        struct put *p = queue_take(s);
        vec_push(&puts, p);
        vec_push(&items, (struct files_item){.hash = p->hash, .p = p->bytes.p, .n = (uint32_t)p->bytes.n});
        bytes += p->bytes.n;
    }
    w->n = puts.n;
    w->puts = puts.p;
    w->items = items.p;
    w->job.work = write_work;
    w->job.done = write_done;
    s->is_writing = true;
    store_run(s, &w->job);
}

static void put_refused(struct buf *bytes, blob_done_fn done, void *arg, int code, const struct blob_hash *h) {
    struct err why;
    err_set(&why, code, code == E_STOPPING ? "the store is closing" : "a blob of %zu bytes is too large", bytes->n);
    buf_fini(bytes);
    done(arg, code, &why, h);
}

static void put_hashed(struct blob_store *s, const struct blob_hash *h, struct buf bytes, blob_done_fn done,
                       void *arg) {
    struct blob_entry *e = index_find(&s->index, h);
    if (e && !e->bad) {
        e->fresh = store_tick(s);
        s->stats.dedup_hits++;
        buf_fini(&bytes);
        done(arg, 0, NULL, h);
        return;
    }
    struct put *p = in_flight_find(s, h);
    if (p) {
        s->stats.dedup_hits++;
        buf_fini(&bytes);
        put_wait(s, p, done, arg);
        return;
    }
    p = xnew(struct put);
    p->hash = *h;
    p->bytes = bytes;
    p->last = &p->first;
    p->next_alike = map64_put(&s->in_flight, key_of(h), p);
    put_wait(s, p, done, arg);
    *s->last = p;
    s->last = &p->next;
    if (!s->is_writing)
        loop_late(s->loop, &s->kick);
}

static void hash_work(struct job *j) {
    struct hash_job *h = (struct hash_job *)j;
    blob_hash_of(h->bytes.p, h->bytes.n, &h->hash);
}

static void hash_done(struct job *j) {
    struct hash_job *h = (struct hash_job *)j;
    j->store->stats.waiting--;
    if (j->store->closing)
        put_refused(&h->bytes, h->done, h->arg, E_STOPPING, &h->hash);
    else
        put_hashed(j->store, &h->hash, h->bytes, h->done, h->arg);
    free(h);
}

void blob_put(struct blob_store *s, struct buf bytes, blob_done_fn done, void *arg) {
    struct blob_hash h = {0};
    s->stats.puts++;
    if (s->closing || bytes.n > BLOB_MAX_SIZE) {
        put_refused(&bytes, done, arg, s->closing ? E_STOPPING : E_TOO_BIG, &h);
        return;
    }
    if (bytes.n <= HASH_HERE_MAX) {
        blob_hash_of(bytes.p, bytes.n, &h);
        put_hashed(s, &h, bytes, done, arg);
        return;
    }
    struct hash_job *j = xnew(struct hash_job);
    j->job.work = hash_work;
    j->job.done = hash_done;
    j->bytes = bytes;
    j->done = done;
    j->arg = arg;
    s->stats.waiting++;
    store_run(s, &j->job);
}

void put_open(struct blob_store *s) {
    s->last = &s->first;
    s->kick.fn = on_kick;
}

void put_close(struct blob_store *s) {
    struct err why;
    err_set(&why, E_STOPPING, "the store is closing");
    while (s->first) {
        struct put *p = queue_take(s);
        in_flight_remove(s, p);
        put_end(s, p, E_STOPPING, &why);
    }
}
