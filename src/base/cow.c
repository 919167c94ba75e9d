/* SPDX-License-Identifier: Apache-2.0
 *
 * Epochs. `now` grows by one with each pin, and the pin's number is the value before. A thing born at epoch b may be
 * changed in place while no live pin is >= b. A thing replaced at epoch r was reachable by pins < r only, so it goes
 * when the oldest live pin is >= r.
 */
#include "base/cow.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rec.h"
#include "base/vec.h"

#define SLOTS 256u

struct cow_chunk {
    uint64_t base; /* key / SLOTS */
    uint64_t born;
    uint32_t n;
    void *rec[SLOTS];
};

struct cow_root {
    uint64_t born;
    size_t n, cap;
    size_t n_records;
    struct cow_chunk *chunk[];
};

struct waiting {
    uint64_t retired;
    void *p;
    bool is_record;
};

struct cow_epochs {
    uint64_t now;
    VEC(uint64_t) pins; /* ascending */
    VEC(struct waiting) waiting; /* ascending by retired, from `first` on */
    size_t first;
    bool deferring;
};

struct cow_epochs *cow_epochs_new(void) {
    struct cow_epochs *ep = xnew(struct cow_epochs);
    ep->now = 1;
    return ep;
}

static void release(struct waiting w) {
    if (w.is_record)
        rec_free(w.p);
    else
        free(w.p);
}

static void reap(struct cow_epochs *ep) {
    if (ep->deferring)
        return;
    while (ep->first < ep->waiting.n && (!ep->pins.n || ep->waiting.p[ep->first].retired <= ep->pins.p[0]))
        release(ep->waiting.p[ep->first++]);
    if (ep->first == ep->waiting.n) {
        ep->first = ep->waiting.n = 0;
    } else if (ep->first > 1024 && ep->first * 2 > ep->waiting.n) {
        ep->waiting.n -= ep->first;
        memmove(ep->waiting.p, ep->waiting.p + ep->first, ep->waiting.n * sizeof(*ep->waiting.p));
        ep->first = 0;
    }
}

void cow_epochs_free(struct cow_epochs *ep) {
    if (!ep)
        return;
    must(ep->pins.n == 0);
    reap(ep);
    vec_fini(&ep->pins);
    vec_fini(&ep->waiting);
    free(ep);
}

uint64_t cow_pin(struct cow_epochs *ep) {
    vec_push(&ep->pins, ep->now);
    return ep->now++;
}

void cow_unpin(struct cow_epochs *ep, uint64_t pin) {
    size_t i = 0;
    while (i < ep->pins.n && ep->pins.p[i] != pin)
        i++;
    must(i < ep->pins.n);
    vec_remove(&ep->pins, i);
    reap(ep);
}

size_t cow_waiting(const struct cow_epochs *ep) {
    return ep->waiting.n - ep->first;
}

static void retire(struct cow_epochs *ep, void *p, bool is_record) {
    struct waiting w = {ep->now, p, is_record};
    if (ep->pins.n || ep->deferring)
        vec_push(&ep->waiting, w);
    else
        release(w);
}

void cow_defer_begin(struct cow_epochs *ep) {
    ep->deferring = true;
}

void cow_defer_end(struct cow_epochs *ep) {
    ep->deferring = false;
    reap(ep);
}

void cow_retire_record(struct cow_epochs *ep, void *packed) {
    retire(ep, packed, true);
}

static bool is_seen(const struct cow_epochs *ep, uint64_t born) {
    return ep->pins.n && ep->pins.p[ep->pins.n - 1] >= born;
}

static struct cow_root *root_new(size_t cap) {
    struct cow_root *r = xmalloc(sizeof(*r) + cap * sizeof(r->chunk[0]));
    *r = (struct cow_root){.cap = cap};
    return r;
}

void cow_init(struct cow_table *t, struct cow_epochs *ep) {
    *t = (struct cow_table){.root = root_new(4), .epochs = ep};
    t->root->born = ep->now;
}

void cow_fini(struct cow_table *t) {
    if (!t->root)
        return;
    for (size_t i = 0; i < t->root->n; i++) {
        for (unsigned k = 0; k < SLOTS; k++)
            if (t->root->chunk[i]->rec[k])
                retire(t->epochs, t->root->chunk[i]->rec[k], true);
        retire(t->epochs, t->root->chunk[i], false);
    }
    retire(t->epochs, t->root, false);
    *t = (struct cow_table){0};
}

/* The first chunk whose base is >= base. Keys mostly come in ascending order, so look at the end first. */
static size_t chunk_at(const struct cow_root *r, uint64_t base) {
    if (!r->n || r->chunk[r->n - 1]->base < base)
        return r->n;
    size_t low = 0, high = r->n - 1;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (r->chunk[mid]->base < base)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct cow_root *own_root(struct cow_table *t, size_t room) {
    struct cow_root *r = t->root;
    bool seen = is_seen(t->epochs, r->born);
    if (!seen && r->n + room <= r->cap)
        return r;
    size_t cap = r->n + room <= r->cap ? r->cap : r->cap * 2;
    struct cow_root *copy = root_new(cap);
    copy->born = t->epochs->now;
    copy->n = r->n;
    copy->n_records = r->n_records;
    memcpy(copy->chunk, r->chunk, r->n * sizeof(r->chunk[0]));
    if (seen)
        retire(t->epochs, r, false);
    else
        free(r);
    return t->root = copy;
}

static struct cow_chunk *own_chunk(struct cow_table *t, size_t i) {
    struct cow_chunk *c = t->root->chunk[i];
    if (!is_seen(t->epochs, c->born))
        return c;
    struct cow_root *r = own_root(t, 0);
    struct cow_chunk *copy = xmemdup(c, sizeof(*c));
    copy->born = t->epochs->now;
    r->chunk[i] = copy;
    retire(t->epochs, c, false);
    return copy;
}

static struct cow_chunk *add_chunk(struct cow_table *t, size_t i, uint64_t base) {
    struct cow_root *r = own_root(t, 1);
    struct cow_chunk *c = xnew(struct cow_chunk);
    c->base = base;
    c->born = t->epochs->now;
    memmove(&r->chunk[i + 1], &r->chunk[i], (r->n - i) * sizeof(r->chunk[0]));
    r->chunk[i] = c;
    r->n++;
    return c;
}

static uint64_t mixed(uint64_t key, const void *rec) {
    return hash_u64(rec_hash(rec) ^ hash_u64(key));
}

void cow_put(struct cow_table *t, uint64_t key, void *packed) {
    size_t i = chunk_at(t->root, key / SLOTS);
    bool there = i < t->root->n && t->root->chunk[i]->base == key / SLOTS;
    struct cow_chunk *c = there ? own_chunk(t, i) : add_chunk(t, i, key / SLOTS);
    struct cow_root *r = own_root(t, 0);
    void *old = c->rec[key % SLOTS];
    c->rec[key % SLOTS] = packed;
    t->digest += mixed(key, packed);
    t->bytes += rec_size(packed);
    if (old) {
        t->digest -= mixed(key, old);
        t->bytes -= rec_size(old);
        retire(t->epochs, old, true);
    } else {
        c->n++;
        r->n_records++;
        t->n++;
    }
}

bool cow_del(struct cow_table *t, uint64_t key) {
    size_t i = chunk_at(t->root, key / SLOTS);
    if (!cow_get(t->root, key))
        return false;
    struct cow_root *r = own_root(t, 0);
    struct cow_chunk *c = own_chunk(t, i);
    void *old = c->rec[key % SLOTS];
    c->rec[key % SLOTS] = NULL;
    t->digest -= mixed(key, old);
    t->bytes -= rec_size(old);
    t->n--;
    r->n_records--;
    retire(t->epochs, old, true);
    if (--c->n == 0) {
        memmove(&r->chunk[i], &r->chunk[i + 1], (r->n - i - 1) * sizeof(r->chunk[0]));
        r->n--;
        free(c);
    }
    return true;
}

const void *cow_get(const struct cow_root *r, uint64_t key) {
    size_t i = chunk_at(r, key / SLOTS);
    return i < r->n && r->chunk[i]->base == key / SLOTS ? r->chunk[i]->rec[key % SLOTS] : NULL;
}

const void *cow_next(const struct cow_root *r, uint64_t *key) {
    for (size_t i = chunk_at(r, *key / SLOTS); i < r->n; i++) {
        const struct cow_chunk *c = r->chunk[i];
        unsigned k = c->base == *key / SLOTS ? (unsigned)(*key % SLOTS) : 0;
        for (; k < SLOTS; k++) {
            if (c->rec[k]) {
                *key = c->base * SLOTS + k;
                return c->rec[k];
            }
        }
    }
    return NULL;
}

size_t cow_count(const struct cow_root *r) {
    return r->n_records;
}
