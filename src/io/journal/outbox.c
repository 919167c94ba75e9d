/* SPDX-License-Identifier: Apache-2.0
 *
 * The way back to the owner: batches in log order, one post to the owner's loop however many entries it carries.
 *
 * The journal's thread fills a batch during a turn and hands it over at the turn's end. The owner's thread takes them
 * in order. Posts may still be on their way when the journal is gone; each holds a reference.
 */
#include "io/journal/outbox.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "io/loop/loop.h"

#define KEEP_BYTES (1u << 20) /* memory of a delivered batch that is kept for the next */

struct out_item {
    enum out_kind kind;
    bool flag;
    int code;
    uint64_t index, term;
    size_t at, n; /* in the batch's bytes */
    void *tag;
    journal_changed_fn changed;
};

struct batch {
    struct batch *next;
    VEC(struct out_item) items;
    struct buf bytes;
};

struct outbox {
    struct loop *owner_loop;
    struct journal_owner owner;
    struct batch *filling; /* the journal's thread */

    pthread_mutex_t lock; /* guards these */
    struct batch *first, *last, *spare;
    bool posted;
    unsigned refs;

    /* the owner's thread */
    struct batch *now;
    size_t at;
    bool closed, opened, held; /* held: on_restore said JOURNAL_PENDING */
    int restore_code;
    struct err restore_err;
};

static void batch_free(struct batch *b) {
    if (!b)
        return;
    vec_fini(&b->items);
    buf_fini(&b->bytes);
    free(b);
}

struct outbox *outbox_new(struct loop *owner_loop, const struct journal_owner *owner) {
    struct outbox *o = xnew(struct outbox);
    o->owner_loop = owner_loop;
    o->owner = *owner;
    o->filling = xnew(struct batch);
    pthread_mutex_init(&o->lock, NULL);
    o->refs = 1;
    return o;
}

static void outbox_unref(struct outbox *o) {
    pthread_mutex_lock(&o->lock);
    bool last = --o->refs == 0;
    pthread_mutex_unlock(&o->lock);
    if (!last)
        return;
    while (o->first) {
        struct batch *b = o->first;
        o->first = b->next;
        batch_free(b);
    }
    batch_free(o->spare);
    batch_free(o->filling);
    batch_free(o->now);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

static struct out_item *add(struct outbox *o, enum out_kind kind, const void *p, size_t n) {
    struct batch *b = o->filling;
    vec_push(&b->items, (struct out_item){.kind = kind, .at = b->bytes.n, .n = n});
    buf_add(&b->bytes, p, n);
    return &b->items.p[b->items.n - 1];
}

void out_entry(struct outbox *o, uint64_t index, uint64_t term, const void *p, size_t n, void *tag) {
    struct out_item *it = add(o, OUT_ENTRY, p, n);
    it->index = index;
    it->term = term;
    it->tag = tag;
}

void out_refused(struct outbox *o, void *tag, int code, const char *why) {
    why = why ? why : err_sentence(code);
    struct out_item *it = add(o, OUT_REFUSED, why, strlen(why) + 1);
    it->tag = tag;
    it->code = code;
}

void out_leader(struct outbox *o, bool is_leader, uint64_t term) {
    struct out_item *it = add(o, OUT_LEADER, NULL, 0);
    it->flag = is_leader;
    it->term = term;
}

void out_snapshot(struct outbox *o, uint64_t index) {
    add(o, OUT_SNAPSHOT, NULL, 0)->index = index;
}

void out_restore(struct outbox *o, uint64_t index, const void *manifest, size_t n) {
    add(o, OUT_RESTORE, manifest, n)->index = index;
}

void out_notice(struct outbox *o, bool is_problem, const char *fmt, ...) {
    auto_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vaddf(&text, fmt, ap);
    va_end(ap);
    add(o, OUT_NOTICE, str_text(&text), text.n + 1)->flag = is_problem;
}

void out_status(struct outbox *o, const struct journal_status *s) {
    add(o, OUT_STATUS, s, sizeof(*s));
}

void out_reached(struct outbox *o, uint64_t index) {
    add(o, OUT_REACHED, NULL, 0)->index = index;
}

void out_changed(struct outbox *o, journal_changed_fn fn, void *arg, int code, const char *why) {
    why = why ? why : err_sentence(code);
    struct out_item *it = add(o, OUT_CHANGED, why, strlen(why) + 1);
    it->changed = fn;
    it->tag = arg;
    it->code = code;
}

static void on_posted(void *arg) {
    struct outbox *o = arg;
    outbox_deliver(o);
    outbox_unref(o);
}

void outbox_flush(struct outbox *o) {
    struct batch *b = o->filling;
    if (b->items.n == 0)
        return;
    pthread_mutex_lock(&o->lock);
    if (o->last)
        o->last->next = b;
    else
        o->first = b;
    o->last = b;
    o->filling = o->spare;
    o->spare = NULL;
    bool post = !o->posted;
    o->posted = true;
    o->refs += post;
    pthread_mutex_unlock(&o->lock);
    if (!o->filling)
        o->filling = xnew(struct batch);
    if (post)
        loop_post(o->owner_loop, on_posted, o);
}

static void deliver_restore(struct outbox *o, const struct out_item *it, const uint8_t *p) {
    const struct journal_owner *w = &o->owner;
    if (o->restore_code == 0)
        o->restore_code = w->on_restore(w->ctx, it->index, p, it->n, &o->restore_err);
    if (o->restore_code == JOURNAL_PENDING) {
        o->restore_code = 0;
        o->held = true;
    }
    must(o->restore_code == 0 || !o->opened);
}

static void deliver_status(struct outbox *o, const uint8_t *p) {
    struct journal_status s;
    memcpy(&s, p, sizeof(s));
    if (o->owner.on_status)
        o->owner.on_status(o->owner.ctx, &s);
}

static void deliver_one(struct outbox *o, const struct out_item *it, const uint8_t *p) {
    const struct journal_owner *w = &o->owner;
    struct err why;
    switch (it->kind) {
    case OUT_ENTRY:
        w->on_entry(w->ctx, it->index, it->term, p, it->n, it->tag);
        break;
    case OUT_REFUSED:
        err_set(&why, it->code, "%s", (const char *)p);
        w->on_refused(w->ctx, it->tag, it->code, &why);
        break;
    case OUT_LEADER:
        w->on_leader(w->ctx, it->flag, it->term);
        break;
    case OUT_SNAPSHOT:
        w->on_snapshot(w->ctx, it->index);
        break;
    case OUT_RESTORE:
        deliver_restore(o, it, p);
        break;
    case OUT_STATUS:
        deliver_status(o, p);
        break;
    case OUT_REACHED:
        if (w->on_reached)
            w->on_reached(w->ctx, it->index);
        break;
    case OUT_CHANGED:
        err_set(&why, it->code, "%s", (const char *)p);
        it->changed(it->tag, it->code, it->code ? &why : NULL);
        break;
    case OUT_NOTICE:
        if (w->on_notice)
            w->on_notice(w->ctx, it->flag, (const char *)p);
        break;
    }
}

/* Whose answer is owed whatever became of the state. */
static bool is_answer(const struct out_item *it) {
    return it->kind == OUT_REFUSED || it->kind == OUT_CHANGED;
}

static bool next_batch(struct outbox *o) {
    struct batch *done = o->now;
    o->at = 0;
    if (done) {
        done->next = NULL;
        done->items.n = 0;
        buf_clear(&done->bytes);
        if (done->bytes.cap > KEEP_BYTES)
            buf_fini(&done->bytes);
    }
    pthread_mutex_lock(&o->lock);
    o->now = o->first;
    if (o->now && !(o->first = o->now->next))
        o->last = NULL;
    if (!o->now)
        o->posted = false;
    if (done && !o->spare) {
        o->spare = done;
        done = NULL;
    }
    pthread_mutex_unlock(&o->lock);
    batch_free(done);
    return o->now;
}

/* An owner may close the journal from within one of these calls; the rest is then delivered from there. */
static void deliver(struct outbox *o, bool state_only) {
    if (o->closed)
        return;
    for (;;) {
        if (o->held)
            return;
        if (!o->now || o->at >= o->now->items.n) {
            if (!next_batch(o))
                return;
            continue;
        }
        const struct out_item *it = &o->now->items.p[o->at];
        if (state_only && it->kind != OUT_ENTRY && it->kind != OUT_RESTORE && it->kind != OUT_REACHED)
            return;
        o->at++;
        /* After a failed on_restore the owner has no state that entries could be applied to. */
        if (o->restore_code == 0 || is_answer(it))
            deliver_one(o, it, o->now->bytes.p + it->at);
    }
}

void outbox_deliver(struct outbox *o) {
    deliver(o, false);
}

/* Within journal_open the owner has no journal yet that it could answer to. The rest is on its way as a post. */
void outbox_deliver_state(struct outbox *o) {
    deliver(o, true);
}

void outbox_restored(struct outbox *o, int code) {
    if (!o->held)
        return;
    o->held = false;
    o->restore_code = code;
    outbox_deliver(o);
}

int outbox_restore_error(struct outbox *o, struct err *e) {
    if (o->restore_code != 0 && e)
        *e = o->restore_err;
    return o->restore_code;
}

void outbox_opened(struct outbox *o) {
    o->opened = true;
}

void outbox_close(struct outbox *o) {
    if (!o)
        return;
    o->closed = true;
    outbox_unref(o);
}
