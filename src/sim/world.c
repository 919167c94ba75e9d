/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "io/cred/cred.h"

struct vevent {
    int64_t at_ms;
    uint64_t number;
    void (*fn)(void *arg);
    void *arg;
    bool is_off;   /* a stopped timer */
    bool is_plain; /* of vworld_at */
    void (*drop)(void *arg);
};

struct endpoint {
    char *address;
    vserve_fn fn;
    void *ctx;
    bool is_cut;
};

struct blob {
    uint8_t hash[32];
    struct buf bytes;
};

struct cut { /* one way */
    char *from, *to;
};

struct vworld {
    int64_t now_ms;
    uint64_t next_number, seed;
    VEC(struct vevent *) heap;
    struct maps endpoints;
    struct vfaults faults;
    VEC(struct blob) blobs;
    VEC(struct cut) cuts;
};

/* ---- the queue ---- */

static bool is_before(const struct vevent *a, const struct vevent *b) {
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

static void swap(struct vworld *w, size_t i, size_t k) {
    struct vevent *e = w->heap.p[i];
    w->heap.p[i] = w->heap.p[k];
    w->heap.p[k] = e;
}

static struct vevent *add_event(struct vworld *w, uint64_t delay_ms, void (*fn)(void *arg), void *arg) {
    struct vevent *e = xnew(struct vevent);
    *e = (struct vevent){.at_ms = w->now_ms + (int64_t)delay_ms, .number = w->next_number++, .fn = fn, .arg = arg};
    vec_push(&w->heap, e);
    for (size_t i = w->heap.n - 1; i && is_before(w->heap.p[i], w->heap.p[(i - 1) / 2]); i = (i - 1) / 2)
        swap(w, i, (i - 1) / 2);
    return e;
}

static struct vevent *take_event(struct vworld *w) {
    struct vevent *first = w->heap.p[0];
    w->heap.p[0] = w->heap.p[--w->heap.n];
    for (size_t i = 0;;) {
        size_t least = i;
        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < w->heap.n; k++)
            if (is_before(w->heap.p[k], w->heap.p[least]))
                least = k;
        if (least == i)
            return first;
        swap(w, i, least);
        i = least;
    }
}

/* One event, if there is one until then. */
static bool step(struct vworld *w, int64_t until_ms) {
    if (!w->heap.n || w->heap.p[0]->at_ms > until_ms)
        return false;
    struct vevent *e = take_event(w);
    w->now_ms = MAX(w->now_ms, e->at_ms);
    struct vevent copy = *e;
    free(e);
    if (!copy.is_off)
        copy.fn(copy.arg);
    return true;
}

void vworld_at(struct vworld *w, uint64_t delay_ms, void (*fn)(void *arg), void *arg) {
    add_event(w, delay_ms, fn, arg)->is_plain = true;
}

void vworld_run(struct vworld *w, uint64_t ms) {
    int64_t until_ms = w->now_ms + (int64_t)ms;
    while (step(w, until_ms)) {
    }
    w->now_ms = MAX(w->now_ms, until_ms);
}

bool vworld_run_until(struct vworld *w, bool (*is_so)(void *arg), void *arg, uint64_t most_ms) {
    int64_t until_ms = w->now_ms + (int64_t)most_ms;
    while (!is_so(arg))
        if (!step(w, until_ms))
            return false;
    return true;
}

struct vevent *vworld_set(struct vworld *w, uint64_t delay_ms, void (*fn)(void *arg), void *arg) {
    struct vevent *e = add_event(w, delay_ms, fn, arg);
    e->is_plain = true;
    return e;
}

void vworld_unset(struct vevent *e) {
    if (e)
        e->is_off = true;
}

void vworld_later(struct vworld *w, uint64_t delay_ms, void (*fn)(void *arg), void (*drop)(void *arg), void *arg) {
    add_event(w, delay_ms, fn, arg)->drop = drop;
}

struct vworld *vworld_new(uint64_t seed) {
    struct vworld *w = xnew(struct vworld);
    w->seed = seed * 0x9e3779b97f4a7c15u + 1;
    w->now_ms = 1000;
    w->faults = (struct vfaults){.delay_min_ms = 1, .delay_max_ms = 3};
    return w;
}

void vworld_free(struct vworld *w) {
    size_t cursor = 0;
    void *v;
    for (size_t i = 0; i < w->heap.n; i++) {
        struct vevent *e = w->heap.p[i];
        e->is_off |= e->is_plain;
        e->fn = e->drop ? e->drop : e->fn;
    }
    while (step(w, INT64_MAX)) { /* what is still on its way holds memory of its own */
    }
    vec_fini(&w->heap);
    while (maps_next(&w->endpoints, &cursor, NULL, &v)) {
        struct endpoint *ep = v;
        free(ep->address);
        free(ep);
    }
    maps_fini(&w->endpoints);
    for (size_t i = 0; i < w->blobs.n; i++)
        buf_fini(&w->blobs.p[i].bytes);
    vec_fini(&w->blobs);
    vnet_mend(w);
    vec_fini(&w->cuts);
    free(w);
}

int64_t vworld_now_ms(const struct vworld *w) {
    return w->now_ms;
}

uint64_t vworld_random(struct vworld *w) { /* splitmix64 */
    uint64_t z = w->seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t vworld_below(struct vworld *w, uint64_t n) {
    return n ? vworld_random(w) % n : 0;
}

bool vworld_chance(struct vworld *w, unsigned per_thousand) {
    return vworld_below(w, 1000) < per_thousand;
}

/* ---- processes ---- */

enum op_kind { OP_TIMER, OP_WORK, OP_LOAD, OP_CALL };

/* Something that a process waits for. */
struct op {
    struct vhost *host;
    struct op *prev, *next;
    enum op_kind kind;
    struct vevent *event;
    void (*fn)(void *arg);
    void (*work)(void *arg);
    host_reply_fn reply;
    void *arg;
    struct vcall *call;
    uint8_t hash[32];
    int code;
};

struct vhost {
    struct host host;
    struct vworld *world;
    struct vhost_conf conf;
    struct op *first;
    bool is_dead;
    unsigned fail_blobs;
    int fail_code;
    int64_t clock_off_ms;
};

static struct op *op_new(struct vhost *h, enum op_kind kind, void *arg) {
    struct op *op = xnew(struct op);
    *op = (struct op){.host = h, .kind = kind, .arg = arg, .next = h->first};
    if (h->first)
        h->first->prev = op;
    h->first = op;
    return op;
}

static struct op op_take(struct op *op) {
    struct op copy = *op;
    if (op->prev)
        op->prev->next = op->next;
    else
        op->host->first = op->next;
    if (op->next)
        op->next->prev = op->prev;
    free(op);
    return copy;
}

static int64_t now_ms(void *impl) {
    return ((struct vhost *)impl)->world->now_ms;
}

static int64_t unix_ms(void *impl) {
    struct vhost *h = impl;
    return VWORLD_BEGIN_UNIX_MS + h->world->now_ms + h->clock_off_ms;
}

static uint64_t random_number(void *impl) {
    return vworld_random(((struct vhost *)impl)->world);
}

static void on_timer(void *arg) {
    struct op op = op_take(arg);
    op.fn(op.arg);
}

static struct host_timer *timer_start(void *impl, uint64_t delay_ms, void (*fn)(void *arg), void *arg) {
    struct vhost *h = impl;
    struct op *op = op_new(h, OP_TIMER, arg);
    op->fn = fn;
    op->event = add_event(h->world, delay_ms, on_timer, op);
    return (struct host_timer *)op;
}

static void timer_stop(void *impl, struct host_timer *t) {
    (void)impl;
    if (!t)
        return;
    struct op *op = (struct op *)t;
    must(op->kind == OP_TIMER);
    op->event->is_off = true;
    op_take(op);
}

/* Two moments: what changes between the work and its return must not matter. */
static void on_work(void *arg) {
    struct op *op = arg;
    if (op->work) {
        op->work(op->arg);
        op->work = NULL;
        op->event = add_event(op->host->world, vworld_below(op->host->world, op->host->conf.work_max_ms + 1u), on_work, op);
        return;
    }
    struct op was = op_take(op);
    was.fn(was.arg);
}

static void work(void *impl, void (*fn)(void *arg), void (*done)(void *arg), void *arg) {
    struct vhost *h = impl;
    struct op *op = op_new(h, OP_WORK, arg);
    op->work = fn;
    op->fn = done;
    op->event = add_event(h->world, vworld_below(h->world, h->conf.work_max_ms + 1u), on_work, op);
}

static void propose(void *impl, struct buf command, host_proposed_fn fn, void *arg) {
    struct vhost *h = impl;
    must(!h->is_dead);
    h->conf.propose(h->conf.ctx, command, fn, arg);
}

/* ---- blobs ---- */

size_t vworld_blobs(const struct vworld *w) {
    return w->blobs.n;
}

void vhost_fail_blobs(struct vhost *h, unsigned n, int code) {
    h->fail_blobs = n;
    h->fail_code = code;
}

static const struct blob *find_blob(const struct vworld *w, const uint8_t hash[32]) {
    for (size_t i = 0; i < w->blobs.n; i++)
        if (memcmp(w->blobs.p[i].hash, hash, 32) == 0)
            return &w->blobs.p[i];
    return NULL;
}

static bool blob_fails(struct vhost *h) {
    if (!h->fail_blobs)
        return false;
    h->fail_blobs--;
    return true;
}

static void store(void *impl, struct buf bytes, host_stored_fn fn, void *arg) {
    struct vhost *h = impl;
    struct blob b = {.bytes = bytes};
    struct err e;
    if (blob_fails(h)) {
        buf_fini(&bytes);
        err_set(&e, h->fail_code, NULL);
        fn(arg, h->fail_code, &e, NULL);
        return;
    }
    cred_hash(bytes.p, bytes.n, b.hash);
    if (find_blob(h->world, b.hash))
        buf_fini(&bytes);
    else
        vec_push(&h->world->blobs, b);
    fn(arg, 0, NULL, b.hash);
}

static void answer_load(const struct op *op, const struct vworld *w) {
    struct err e;
    const struct blob *b = find_blob(w, op->hash);
    int code = op->code ? op->code : b ? 0 : E_NOT_FOUND;
    if (code)
        err_set(&e, code, NULL);
    op->reply(op->arg, code, code ? &e : NULL, code ? NULL : b->bytes.p, code ? 0 : b->bytes.n);
}

static void on_load(void *arg) {
    struct vworld *w = ((struct op *)arg)->host->world;
    struct op op = op_take(arg);
    answer_load(&op, w);
}

static void load(void *impl, const uint8_t hash[32], host_reply_fn fn, void *arg) {
    struct vhost *h = impl;
    struct op *op = op_new(h, OP_LOAD, arg);
    memcpy(op->hash, hash, 32);
    op->reply = fn;
    op->code = blob_fails(h) ? h->fail_code : 0;
    op->event = add_event(h->world, 1, on_load, op);
}

/* ---- the network ---- */

/* A call outlives its caller and its server; it goes with the last event of it. */
struct vcall {
    struct vworld *world;
    struct op *op; /* NULL: answered, or the caller is gone */
    char *to, *from;
    unsigned users;
};

struct delivery {
    struct vcall *call;
    struct vrequest *rq;
    int code;
    char *text;
    struct buf reply;
};

static void call_drop(struct vcall *c) {
    if (--c->users)
        return;
    free(c->to);
    free(c->from);
    free(c);
}

static struct endpoint *endpoint_of(struct vworld *w, const char *address) {
    struct endpoint *ep = maps_get(&w->endpoints, address);
    if (!ep) {
        ep = xnew(struct endpoint);
        ep->address = xstrdup(address);
        maps_put(&w->endpoints, ep->address, ep);
    }
    return ep;
}

void vnet_listen(struct vworld *w, const char *address, vserve_fn fn, void *ctx) {
    struct endpoint *ep = endpoint_of(w, address);
    ep->fn = fn;
    ep->ctx = ctx;
}

void vnet_cut(struct vworld *w, const char *address, bool is_cut) {
    endpoint_of(w, address)->is_cut = is_cut;
}

void vnet_faults(struct vworld *w, const struct vfaults *f) {
    w->faults = *f;
}

/* One draw a statement: a compiler may evaluate an initializer's parts in any order. */
struct vfaults vnet_faults_some(struct vworld *w) {
    struct vfaults f = {.late_ms = 2500};
    f.lose_request = (unsigned)vworld_below(w, 100);
    f.lose_reply = (unsigned)vworld_below(w, 100);
    f.twice = (unsigned)vworld_below(w, 200);
    f.late = (unsigned)vworld_below(w, 200);
    f.delay_max_ms = 1 + (unsigned)vworld_below(w, 40);
    return f;
}

const struct vfaults *vnet_faults_now(const struct vworld *w) {
    return &w->faults;
}

static bool is_cut(struct vworld *w, const char *address) {
    return address && endpoint_of(w, address)->is_cut;
}

void vnet_cut_way(struct vworld *w, const char *from, const char *to) {
    struct cut c = {xstrdup(from), xstrdup(to)};
    vec_push(&w->cuts, c);
}

void vnet_mend(struct vworld *w) {
    for (size_t i = 0; i < w->cuts.n; i++) {
        free(w->cuts.p[i].from);
        free(w->cuts.p[i].to);
    }
    w->cuts.n = 0;
}

bool vnet_passes(struct vworld *w, const char *from, const char *to) {
    if (is_cut(w, from) || is_cut(w, to))
        return false;
    for (size_t i = 0; from && to && i < w->cuts.n; i++)
        if (str_eq(w->cuts.p[i].from, from) && str_eq(w->cuts.p[i].to, to))
            return false;
    return true;
}

uint64_t vnet_delay(struct vworld *w) {
    const struct vfaults *f = &w->faults;
    uint64_t ms = f->delay_min_ms + vworld_below(w, f->delay_max_ms - f->delay_min_ms + 1);
    return vworld_chance(w, f->late) ? ms + vworld_below(w, f->late_ms + 1) : ms;
}

static void call_answer(struct vcall *c, int code, const char *text, const struct buf *reply) {
    struct err e;
    if (!c->op)
        return;
    c->op->event->is_off = true; /* the deadline */
    struct op op = op_take(c->op);
    c->op = NULL;
    call_drop(c);
    if (code)
        err_set(&e, code, text ? "%s" : NULL, text);
    op.reply(op.arg, code, code ? &e : NULL, reply ? reply->p : NULL, reply ? reply->n : 0);
}

static void on_deadline(void *arg) {
    struct op op = op_take(arg);
    struct err e;
    op.call->op = NULL;
    call_drop(op.call);
    err_set(&e, E_DEADLINE, NULL);
    op.reply(op.arg, E_DEADLINE, &e, NULL, 0);
}

static void on_reply_arrives(void *arg) {
    struct delivery *d = arg;
    if (vnet_passes(d->call->world, d->call->to, d->call->from))
        call_answer(d->call, d->code, d->text, &d->reply);
    call_drop(d->call);
    buf_fini(&d->reply);
    free(d->text);
    free(d);
}

void vrequest_drop(struct vrequest *rq) {
    call_drop(rq->call);
    buf_fini(&rq->message);
    free((char *)rq->address);
    free((char *)rq->method);
    free((char *)rq->metadata);
    free(rq);
}

void vrequest_reply(struct vrequest *rq, int code, const char *text, const void *reply, size_t n) {
    struct vworld *w = rq->world;
    if (!vworld_chance(w, w->faults.lose_reply)) {
        struct delivery *d = xnew(struct delivery);
        *d = (struct delivery){.call = rq->call, .code = code, .text = xstrdup(text)};
        buf_add(&d->reply, reply, n);
        rq->call->users++;
        add_event(w, vnet_delay(w), on_reply_arrives, d);
    }
    vrequest_drop(rq);
}

const char *vrequest_header(const struct vrequest *rq, const char *name, char *out, size_t n_out) {
    size_t n = strlen(name);
    for (const char *line = rq->metadata; *line; line = strchr(line, '\n') + 1)
        if (strncmp(line, name, n) == 0 && line[n] == ':') {
            size_t len = strcspn(line + n + 2, "\n");
            must(len < n_out);
            memcpy(out, line + n + 2, len);
            out[len] = 0;
            return out;
        }
    return NULL;
}

const char *vrequest_from(const struct vrequest *rq) {
    return rq->call->from;
}

static void on_request_arrives(void *arg) {
    struct vrequest *rq = arg;
    struct endpoint *ep = endpoint_of(rq->world, rq->address);
    if (!vnet_passes(rq->world, rq->call->from, rq->address))
        vrequest_drop(rq);
    else if (!ep->fn)
        vrequest_reply(rq, E_UNREACHABLE, NULL, NULL, 0);
    else
        ep->fn(ep->ctx, rq);
}

static void put_on_the_way(struct vcall *c, const char *method, const char *metadata, const struct buf *message) {
    struct vrequest *rq = xnew(struct vrequest);
    *rq = (struct vrequest){.world = c->world,
                            .address = xstrdup(c->to),
                            .method = xstrdup(method),
                            .metadata = xstrdup(metadata ? metadata : ""),
                            .call = c};
    buf_add(&rq->message, message->p, message->n);
    c->users++;
    add_event(c->world, vnet_delay(c->world), on_request_arrives, rq);
}

static void send_call(void *impl, const char *address, const char *method, const char *metadata, struct buf message,
                      uint64_t timeout_ms, host_reply_fn fn, void *arg) {
    struct vhost *h = impl;
    struct vworld *w = h->world;
    struct op *op = op_new(h, OP_CALL, arg);
    struct vcall *c = xnew(struct vcall);
    *c = (struct vcall){w, op, xstrdup(address), xstrdup(h->conf.address), 1};
    op->reply = fn;
    op->call = c;
    op->event = add_event(w, timeout_ms, on_deadline, op);
    if (!vworld_chance(w, w->faults.lose_request))
        put_on_the_way(c, method, metadata, &message);
    if (vworld_chance(w, w->faults.twice))
        put_on_the_way(c, method, metadata, &message);
    buf_fini(&message);
}

/* ---- life and death ---- */

struct vhost *vhost_new(struct vworld *w, const struct vhost_conf *conf) {
    struct vhost *h = xnew(struct vhost);
    *h = (struct vhost){.world = w, .conf = *conf};
    h->host = (struct host){h,    now_ms,  unix_ms, random_number, timer_start, timer_stop,
                            work, propose, store,   load,          send_call};
    return h;
}

struct host *vhost_host(struct vhost *h) {
    return &h->host;
}

static void finish(struct vhost *h, struct op *op) {
    struct vworld *w = h->world;
    struct err e;
    op->event->is_off = true;
    struct op was = op_take(op);
    switch (was.kind) {
    case OP_TIMER: must(false); break;
    case OP_WORK:
        if (was.work)
            was.work(was.arg);
        was.fn(was.arg);
        break;
    case OP_LOAD:
        was.code = E_STOPPING;
        answer_load(&was, w);
        break;
    case OP_CALL:
        was.call->op = NULL;
        call_drop(was.call);
        err_set(&e, E_STOPPING, NULL);
        was.reply(was.arg, E_STOPPING, &e, NULL, 0);
        break;
    }
}

void vhost_clock(struct vhost *h, int64_t off_ms) {
    h->clock_off_ms = off_ms;
}

void vhost_finish_work(struct vhost *h) {
    for (struct op *op = h->first; op;) {
        struct op *next = op->next;
        if (op->kind == OP_WORK) {
            finish(h, op);
            next = h->first; /* its return may have begun more */
        }
        op = next;
    }
}

void vhost_free(struct vhost *h) {
    h->is_dead = true;
    while (h->first) {
        must(h->first->kind != OP_TIMER); /* it would find its owner gone */
        finish(h, h->first);
    }
    free(h);
}
