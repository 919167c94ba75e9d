/* SPDX-License-Identifier: Apache-2.0
 *
 * Collection: what nobody names goes out of the index at once; the room on the disk comes back pack by pack.
 *
 *     mark                     ask about each blob, a slice of the index a turn (the first within blob_collect); the index
 *                              forgets those that are neither named nor fresh
 *     finish the active pack   when it is mostly dead itself
 *     choose                   packs with nothing alive are removed; mostly dead ones are victims
 *     gather                   the victims' live blobs, a slice of the index a turn
 *     copy                     piece by piece, with a pause after each, to the pack that puts go to; a piece is on disk
 *                              before the index points to it
 *     remove                   the victims that have nothing left
 *
 * A crash at any point leaves a blob in its old pack, its new one, or both. What was dropped may come back at the next
 * open; the next collection drops it again. A pack with damage is never removed: what can't be read can't be copied,
 * and somebody may want to look at it.
 */
#include <string.h>

#include "base/fault.h"
#include "io/blob/store.h"

enum {
    SLICE_ENTRIES = 4096, /* some 3 ms: each is looked for in a million names, past the processor's cache */
    MARK_PAUSE_MS = 2,
    PIECE_ITEMS = 256,
    ACTIVE_MIN_SHARE = 16, /* an active pack below this part of its full size is left alone */
};

struct request {
    struct request *next;
    bool (*is_named)(void *arg, const struct blob_hash *h);
    void *named_arg;
    void (*done)(void *arg, uint64_t n_dropped, uint64_t bytes_freed);
    void *arg;
    uint32_t cursor; /* of the index: those before it are marked */
    uint64_t n_dropped;
};

/* A live blob of a victim, as it stood when it was gathered. */
struct gathered {
    struct blob_entry *entry;
    uint32_t pack, offset;
};

struct collect {
    struct request *marking;        /* in their order; the first one is at work */
    struct request *served, *asked; /* by this run; by the next one */
    struct loop_timer *mark_timer;
    bool is_running, has_failed;
    uint32_t cursor;
    VEC(struct gathered) list;
    size_t at;
    uint64_t freed, copied;
    struct loop_timer *timer;
};

struct copy_job {
    struct job job;
    size_t n;
    struct gathered from[PIECE_ITEMS];
    struct pack_record record[PIECE_ITEMS];
    struct files_item item[PIECE_ITEMS];
    struct buf bytes[PIECE_ITEMS];
    struct err why;
};

struct remove_job {
    struct job job;
    VEC(uint32_t) packs; /* those that could not be removed are 0 afterwards */
    bool is_last;
};

static void run(struct blob_store *s);
static void choose(struct blob_store *s);
static void gather(void *arg);
static void copy_piece(void *arg);

static bool is_mostly_dead(const struct pack_info *p) {
    return !p->damaged && p->live_bytes * 2 < p->bytes - PACK_HEADER_SIZE;
}

/* One slice. True: the whole index was asked about. A blob that is put between two slices is fresh. */
static bool mark_slice(struct blob_store *s, struct request *r) {
    uint32_t now = store_tick(s);
    for (uint32_t n = 0; n < SLICE_ENTRIES; n++) {
        struct blob_entry *e = index_next(&s->index, &r->cursor);
        if (!e)
            return true;
        if (r->is_named(r->named_arg, &e->hash)) {
            e->fresh = 0;
        } else if (!e->fresh || (uint64_t)(now - e->fresh) * 100 >= s->tuning.grace_ms) {
            store_point(s, e, 0, 0, 0);
            index_remove(&s->index, e);
            r->n_dropped++;
        }
    }
    return false;
}

static void append(struct request **last, struct request *r) {
    while (*last)
        last = &(*last)->next;
    r->next = NULL;
    *last = r;
}

static void mark(void *arg) {
    struct blob_store *s = arg;
    struct collect *c = s->collect;
    struct request *r = c->marking;
    c->mark_timer = NULL;
    if (mark_slice(s, r)) {
        c->marking = r->next;
        append(&c->asked, r);
        if (!c->is_running)
            run(s);
    }
    if (s->collect && c->marking && !c->mark_timer)
        c->mark_timer = loop_timer_start(s->loop, MARK_PAUSE_MS, mark, s);
}

static void answer(struct request *first, uint64_t freed) {
    for (struct request *r = first, *next; r; r = next) {
        next = r->next;
        r->done(r->arg, r->n_dropped, freed);
        free(r);
        freed = 0; /* told once */
    }
}

static void end_run(struct blob_store *s) {
    struct collect *c = s->collect;
    size_t at = 0;
    uint64_t key;
    void *p;
    while (map64_next(&s->packs, &at, &key, &p))
        ((struct pack_info *)p)->victim = false;
    vec_fini(&c->list);
    c->is_running = false;
    struct request *served = c->served;
    c->served = NULL;
    answer(served, c->freed > c->copied ? c->freed - c->copied : 0);
    if (c->asked && !c->is_running)
        run(s);
}

/* ---- removing ---- */

static void remove_work(struct job *j) {
    struct remove_job *r = (struct remove_job *)j;
    for (size_t i = 0; i < r->packs.n; i++)
        if (files_unlink(&j->store->files, r->packs.p[i], NULL))
            r->packs.p[i] = 0;
}

static void remove_done(struct job *j) {
    struct remove_job *r = (struct remove_job *)j;
    struct blob_store *s = j->store;
    for (size_t i = 0; i < r->packs.n; i++) {
        struct pack_info *p = r->packs.p[i] ? map64_del(&s->packs, r->packs.p[i]) : NULL;
        s->collect->freed += p ? p->bytes : 0;
        free(p);
    }
    bool is_last = r->is_last;
    vec_fini(&r->packs);
    free(r);
    if (s->closing)
        return;
    if (is_last)
        end_run(s);
    else
        gather(s);
}

/* Removes what has nothing alive; before the copying and, with what was emptied by it, behind. */
static void remove_dead(struct blob_store *s, bool is_last) {
    struct remove_job *r = xnew(struct remove_job);
    size_t at = 0;
    uint64_t key;
    void *value;
    while (map64_next(&s->packs, &at, &key, &value)) {
        struct pack_info *p = value;
        if (!p->n_live && !p->damaged && p->number != s->active)
            vec_push(&r->packs, p->number);
    }
    r->is_last = is_last;
    r->job.work = remove_work;
    r->job.done = remove_done;
    store_run(s, &r->job);
}

/* ---- copying ---- */

static void copy_work(struct job *j) {
    struct copy_job *c = (struct copy_job *)j;
    struct files *f = &j->store->files;
    for (size_t i = 0; i < c->n; i++) {
        struct files_item *it = &c->item[i];
        it->code = files_read(f, c->from[i].pack, &c->record[i], &c->bytes[i], &c->why);
        it->hash = c->record[i].hash;
        it->p = c->bytes[i].p;
        it->n = c->record[i].length;
    }
    files_write(f, c->item, c->n, &c->why);
    (void)FAULT("blob.copied"); /* to die here */
}

/* The entry may be gone, stand elsewhere, or be another's by now. */
static bool is_still_there(const struct gathered *g, const struct blob_hash *h) {
    return g->entry->pack == g->pack && g->entry->offset == g->offset && memcmp(&g->entry->hash, h, sizeof(*h)) == 0;
}

static void note_copy(struct blob_store *s, const struct gathered *g, const struct files_item *it) {
    bool is_there = is_still_there(g, &it->hash);
    if (!it->code) {
        store_pack(s, it->pack)->bytes += pack_room(it->n);
        s->collect->copied += pack_room(it->n);
        if (is_there) {
            store_point(s, g->entry, it->pack, it->offset, it->n);
            g->entry->bad = 0;
        }
    } else if (it->code == E_CORRUPT) {
        store_pack(s, g->pack)->damaged = true;
        if (is_there)
            g->entry->bad = 1;
    } else {
        s->collect->has_failed = true; /* no room, most likely: what is copied is copied */
    }
}

static void copy_done(struct job *j) {
    struct copy_job *c = (struct copy_job *)j;
    struct blob_store *s = j->store;
    for (size_t i = 0; i < c->n; i++) {
        note_copy(s, &c->from[i], &c->item[i]);
        buf_fini(&c->bytes[i]);
    }
    free(c);
    if (s->closing)
        return;
    struct collect *k = s->collect;
    if (k->has_failed || k->at == k->list.n)
        remove_dead(s, true);
    else
        k->timer = loop_timer_start(s->loop, s->tuning.collect_pause_ms, copy_piece, s);
}

static void copy_piece(void *arg) {
    struct blob_store *s = arg;
    struct collect *k = s->collect;
    k->timer = NULL;
    struct copy_job *c = xnew(struct copy_job);
    size_t bytes = 0;
    while (k->at < k->list.n && c->n < PIECE_ITEMS && bytes < s->tuning.piece_bytes) {
        const struct gathered *g = &k->list.p[k->at++];
        if (g->entry->pack != g->pack || g->entry->offset != g->offset)
            continue;
        c->from[c->n] = *g;
        c->record[c->n].hash = g->entry->hash;
        c->record[c->n].offset = g->offset;
        c->record[c->n].length = g->entry->length;
        c->n++;
        bytes += g->entry->length;
    }
    c->job.work = copy_work;
    c->job.done = copy_done;
    store_run(s, &c->job);
}

static void gather(void *arg) {
    struct blob_store *s = arg;
    struct collect *k = s->collect;
    k->timer = NULL;
    for (int i = 0; i < SLICE_ENTRIES; i++) {
        struct blob_entry *e = index_next(&s->index, &k->cursor);
        if (!e) {
            copy_piece(s);
            return;
        }
        if (store_pack(s, e->pack)->victim)
            vec_push(&k->list, (struct gathered){e, e->pack, e->offset});
    }
    k->timer = loop_timer_start(s->loop, 0, gather, s);
}

/* ---- a run ---- */

static void choose(struct blob_store *s) {
    size_t at = 0;
    uint64_t key;
    void *value;
    while (map64_next(&s->packs, &at, &key, &value)) {
        struct pack_info *p = value;
        p->victim = p->n_live && is_mostly_dead(p) && p->number != s->active;
    }
    remove_dead(s, false);
}

static void finish_work(struct job *j) {
    files_finish(&j->store->files, NULL);
}

static void finish_done(struct job *j) {
    struct blob_store *s = j->store;
    free(j);
    if (!s->closing)
        choose(s);
}

static void run(struct blob_store *s) {
    struct collect *c = s->collect;
    c->served = c->asked;
    c->asked = NULL;
    c->is_running = true;
    c->has_failed = false;
    c->cursor = 0;
    c->at = 0;
    c->freed = c->copied = 0;
    const struct pack_info *active = s->active ? map64_get(&s->packs, s->active) : NULL;
    if (!active || !is_mostly_dead(active) || active->bytes * ACTIVE_MIN_SHARE < s->tuning.pack_bytes) {
        choose(s);
        return;
    }
    struct job *j = xnew(struct job);
    j->work = finish_work;
    j->done = finish_done;
    store_run(s, j);
}

void blob_collect(struct blob_store *s, bool (*is_named)(void *arg, const struct blob_hash *h), void *arg,
                  void (*done)(void *arg, uint64_t n_dropped, uint64_t bytes_freed), void *done_arg) {
    if (s->closing) {
        done(done_arg, 0, 0);
        return;
    }
    if (!s->collect)
        s->collect = xnew(struct collect);
    struct request *r = xnew(struct request);
    *r = (struct request){.is_named = is_named, .named_arg = arg, .done = done, .arg = done_arg};
    append(&s->collect->marking, r);
    if (!s->collect->mark_timer)
        mark(s);
}

void collect_close(struct blob_store *s) {
    struct collect *c = s->collect;
    if (!c)
        return;
    loop_timer_stop(c->timer);
    loop_timer_stop(c->mark_timer);
    answer(c->marking, 0);
    answer(c->served, c->freed > c->copied ? c->freed - c->copied : 0);
    answer(c->asked, 0);
    vec_fini(&c->list);
    free(c);
    s->collect = NULL;
}
