/* SPDX-License-Identifier: Apache-2.0
 *
 * struct raft_io on a simulated disk: what libraft's own (uv) does, as far as its core can see it.
 */
#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "sim/disk_inside.h"

struct sget { /* a snapshot is asked for */
    struct sio *s;
    struct raft_io_snapshot_get *req;
    raft_io_snapshot_get_cb cb;
    struct vevent *event;
};

static struct sio *sio_of(struct raft_io *io) {
    return io->impl;
}

static void trace(struct sio *s, int type, const void *info) {
    if (s->tracer)
        s->tracer->emit(s->tracer, type, info);
}

/* ---- writes ---- */

static void write_begin(struct sio *s);

/* A write begins: true when the member crashes in it. */
static bool crashes(struct sdisk *d) {
    if (d->is_frozen)
        return true;
    if (!d->crash_in || --d->crash_in)
        return false;
    d->is_frozen = true;
    d->conf.crashes(d->conf.arg, d->conf.id);
    return true;
}

static void answer(struct sop *op, int status) {
    struct sop was = *op;
    sop_free(op);
    if (was.append_cb)
        was.append_cb(was.append, status);
    else if (was.put_cb)
        was.put_cb(was.put, status);
}

void sio_abandon(struct sio *s) {
    vworld_unset(s->write_event);
    s->write_event = NULL;
    if (s->is_writing && s->ops.p[0]->kind == SOP_APPEND)
        trace(s, RAFT_UV_TRACER_WRITE_COMPLETE, NULL);
}

static void fail_write(struct sio *s) {
    s->has_failed = true;
    static const struct raft_tracer_info info = {
        .version = 1, .diagnostic = {.level = 1, .message = "retry failed write: write failed: -28"}};
    trace(s, RAFT_UV_TRACER_WRITE_COMPLETE, NULL);
    trace(s, RAFT_TRACER_DIAGNOSTIC, &info);
}

static void on_written(void *arg) {
    struct sio *s = arg;
    struct sdisk *d = s->disk;
    s->write_event = NULL;
    s->is_writing = false;
    if (d->is_frozen)
        return;
    struct sop *op = s->ops.p[0];
    if (d->faults.fails_writes && op->kind == SOP_APPEND) { /* the instance breaks, and closes */
        fail_write(s);
        return;
    }
    vec_remove(&s->ops, 0);
    if (FAULT("disk.no_sync")) {
        sdisk_cache(d, op);
        if (vworld_chance(d->conf.world, 50))
            sdisk_sync(d, d->cache.n);
    } else {
        sdisk_apply(d, op);
    }
    if (op->kind == SOP_APPEND)
        trace(s, RAFT_UV_TRACER_WRITE_COMPLETE, NULL);
    write_begin(s);
    answer(op, 0);
}

static void written(void *arg) {
    struct sio *s = arg;
    simloop_enter(s->loop, on_written, s);
}

static void write_begin(struct sio *s) {
    struct sdisk *d = s->disk;
    const struct sdisk_faults *f = &d->faults;
    if (s->is_writing || !s->ops.n || s->is_closing || s->has_failed)
        return;
    s->is_writing = true;
    if (s->ops.p[0]->kind == SOP_APPEND)
        trace(s, RAFT_UV_TRACER_WRITE_SUBMIT, NULL);
    if (crashes(d))
        return;
    uint64_t ms = f->latency_min_ms + vworld_below(d->conf.world, f->latency_max_ms - f->latency_min_ms + 1u);
    s->write_event = vworld_set(d->conf.world, ms, written, s);
}

static void add_op(struct sio *s, struct sop *op) {
    vec_push(&s->ops, op);
    write_begin(s);
}

static int sio_append(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[], unsigned n,
                      raft_io_append_cb cb) {
    struct sop *op = xnew(struct sop);
    *op = (struct sop){.kind = SOP_APPEND, .append = req, .append_cb = cb};
    sdisk_note_changes(sio_of(io)->disk, entries, n, raft_last_index(io->data) - n + 1);
    for (unsigned i = 0; i < n; i++) {
        struct sdisk_entry e;
        sdisk_entry_copy(&e, &entries[i]);
        vec_push(&op->entries, e);
    }
    add_op(sio_of(io), op);
    return 0;
}

static int sio_truncate(struct raft_io *io, raft_index index) {
    struct sop *op = xnew(struct sop);
    *op = (struct sop){.kind = SOP_TRUNCATE, .index = index};
    add_op(sio_of(io), op);
    return 0;
}

static int sio_snapshot_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                            const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb) {
    struct sop *op = xnew(struct sop);
    struct raft_buffer conf;
    *op = (struct sop){.kind = SOP_SNAPSHOT, .put = req, .put_cb = cb, .trailing = trailing,
                       .snapshot = {snapshot->index, snapshot->term, snapshot->configuration_index}};
    must(raft_configuration_encode(&snapshot->configuration, &conf) == 0);
    buf_add(&op->snapshot.conf, conf.base, conf.len);
    raft_free(conf.base);
    for (unsigned i = 0; i < snapshot->n_bufs; i++)
        buf_add(&op->snapshot.data, snapshot->bufs[i].base, snapshot->bufs[i].len);
    add_op(sio_of(io), op);
    return 0;
}

static int sio_set_term(struct raft_io *io, raft_term term) {
    struct sdisk *d = sio_of(io)->disk;
    if (crashes(d) && vworld_chance(d->conf.world, 500))
        return 0;
    d->term = term;
    d->vote = 0;
    return 0;
}

static int sio_set_vote(struct raft_io *io, raft_id id) {
    struct sdisk *d = sio_of(io)->disk;
    if (crashes(d) && vworld_chance(d->conf.world, 500))
        return 0;
    d->vote = id;
    return 0;
}

/* ---- reads ---- */

static struct raft_snapshot *snapshot_out(const struct ssnapshot *s) {
    struct raft_snapshot *out = raft_calloc(1, sizeof(*out));
    out->index = s->index;
    out->term = s->term;
    out->configuration_index = s->conf_index;
    raft_configuration_init(&out->configuration);
    must(raft_configuration_decode(&(struct raft_buffer){s->conf.p, s->conf.n}, &out->configuration) == 0);
    out->bufs = raft_malloc(sizeof(*out->bufs));
    out->n_bufs = 1;
    out->bufs[0] = (struct raft_buffer){raft_malloc(s->data.n), s->data.n};
    memcpy(out->bufs[0].base, s->data.p, s->data.n);
    return out;
}

static int sio_load(struct raft_io *io, raft_term *term, raft_id *vote, struct raft_snapshot **snapshot,
                    raft_index *start_index, struct raft_entry *entries[], size_t *n_entries) {
    struct sdisk *d = sio_of(io)->disk;
    *term = d->term;
    *vote = d->vote;
    *snapshot = d->snapshot.index ? snapshot_out(&d->snapshot) : NULL;
    *start_index = d->entries.n ? d->first : d->snapshot.index + 1;
    *n_entries = d->entries.n;
    *entries = d->entries.n ? sdisk_entries_out(d->entries.p, d->entries.n) : NULL;
    return 0;
}

static void on_get(void *arg) {
    struct sget *g = arg;
    struct sio *s = g->s;
    for (size_t i = 0; i < s->gets.n; i++)
        if (s->gets.p[i] == g) {
            vec_remove(&s->gets, i);
            break;
        }
    struct sget was = *g;
    free(g);
    if (!s->disk->is_frozen)
        was.cb(was.req, snapshot_out(&s->disk->snapshot), 0);
}

static void got(void *arg) {
    struct sget *g = arg;
    simloop_enter(g->s->loop, on_get, g);
}

static int sio_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *req, raft_io_snapshot_get_cb cb) {
    struct sio *s = sio_of(io);
    struct sget *g = xnew(struct sget);
    *g = (struct sget){s, req, cb, vworld_set(s->disk->conf.world, vworld_below(s->disk->conf.world, 5), got, g)};
    vec_push(&s->gets, g);
    return 0;
}

/* ---- life ---- */

static int sio_init(struct raft_io *io, raft_id id, const char *address) {
    return 0;
}

static int sio_bootstrap(struct raft_io *io, const struct raft_configuration *conf) {
    struct sdisk *d = sio_of(io)->disk;
    struct raft_buffer b;
    must(!d->entries.n && raft_configuration_encode(conf, &b) == 0);
    struct sdisk_entry e = {.term = 1, .type = RAFT_CHANGE};
    buf_add(&e.bytes, b.base, b.len);
    raft_free(b.base);
    d->term = 1;
    vec_push(&d->entries, e);
    d->conf.stored(d->conf.arg, d->conf.id, 1, &e);
    return 0;
}

static int sio_recover(struct raft_io *io, const struct raft_configuration *conf) {
    return RAFT_IOERR;
}

static void on_tick(void *arg);

static void tick(void *arg) {
    struct sio *s = arg;
    s->io->capacity = s->disk->faults.is_full ? 0 : 4 * CAPACITY_KIB_MIN;
    s->tick(s->io);
}

static void on_tick(void *arg) {
    struct sio *s = arg;
    s->tick_event = vworld_set(s->disk->conf.world, s->tick_ms, on_tick, s);
    if (!s->disk->is_frozen)
        simloop_enter(s->loop, tick, s);
}

static int sio_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb on, raft_io_recv_cb recv) {
    struct sio *s = sio_of(io);
    s->tick_ms = msecs;
    s->tick = on;
    s->recv = recv;
    s->tick_event = vworld_set(s->disk->conf.world, msecs, on_tick, s);
    return 0;
}

static void closed(void *arg) {
    struct sio *s = arg;
    while (s->gets.n) {
        struct sget *g = s->gets.p[--s->gets.n];
        vworld_unset(g->event);
        struct raft_snapshot *none = NULL;
        g->cb(g->req, none, RAFT_CANCELED);
        free(g);
    }
    while (s->ops.n) {
        struct sop *op = s->ops.p[0];
        vec_remove(&s->ops, 0);
        answer(op, RAFT_CANCELED);
    }
    s->close_cb(s->io);
}

static void sio_close(struct raft_io *io, raft_io_close_cb cb) {
    struct sio *s = sio_of(io);
    s->is_closing = true;
    s->close_cb = cb;
    vworld_unset(s->tick_event);
    vworld_unset(s->write_event);
    s->tick_event = s->write_event = NULL;
    s->recv = NULL;
    loop_post(s->loop, closed, s);
}

static raft_time sio_time(struct raft_io *io) {
    return (raft_time)vworld_now_ms(sio_of(io)->disk->conf.world);
}

static int sio_random(struct raft_io *io, int min, int max) {
    return min + (int)vworld_below(sio_of(io)->disk->conf.world, (uint64_t)(max - min));
}

/* The core puts what is done into a queue and leaves it to its disk side to call back, once a turn: a list of raft.h's
 * public fields, whose links lie within each request. */
struct link {
    struct link *next, *prev;
};

static void fire(void *arg) {
    struct sio *s = arg;
    struct raft *r = s->io->data;
    if (!r || s->is_closing || !s->tick)
        return;
    struct link *head = (struct link *)r->legacy.requests;
    while (head->next != head) {
        struct link *l = head->next;
        l->prev->next = l->next;
        l->next->prev = l->prev;
        struct raft_apply *a = (struct raft_apply *)((char *)l - offsetof(struct raft_apply, queue));
        switch (a->type) { /* what all requests begin with is the same */
        case RAFT_COMMAND: a->cb(a, a->status, a->result); break;
        case RAFT_BARRIER: ((struct raft_barrier *)a)->cb((struct raft_barrier *)a, a->status); break;
        case RAFT_CHANGE: ((struct raft_change *)a)->cb((struct raft_change *)a, a->status); break;
        default: ((struct raft_transfer *)a)->cb((struct raft_transfer *)a); break;
        }
    }
}

/* ---- in the place of libraft's raft/uv.h ---- */

int raft_uv_init(struct raft_io *io, struct uv_loop_s *loop, const char *dir, struct raft_uv_transport *transport) {
    struct sio *s = xnew(struct sio);
    s->disk = sdisk_find(dir);
    must(!s->disk->io);
    s->disk->io = s;
    s->io = io;
    s->loop = (struct loop *)loop;
    *io = (struct raft_io){
        .version = 2,
        .capacity = 4 * CAPACITY_KIB_MIN,
        .impl = s,
        .init = sio_init,
        .close = sio_close,
        .load = sio_load,
        .start = sio_start,
        .bootstrap = sio_bootstrap,
        .recover = sio_recover,
        .set_term = sio_set_term,
        .set_vote = sio_set_vote,
        .send = snet_send,
        .append = sio_append,
        .truncate = sio_truncate,
        .snapshot_put = sio_snapshot_put,
        .snapshot_get = sio_snapshot_get,
        .time = sio_time,
        .random = sio_random,
    };
    simloop_each_turn(s->loop, fire, s);
    return 0;
}

void raft_uv_close(struct raft_io *io) {
    struct sio *s = sio_of(io);
    simloop_each_turn(s->loop, NULL, NULL);
    vworld_unset(s->tick_event);
    vworld_unset(s->write_event);
    for (size_t i = 0; i < s->ops.n; i++)
        sop_free(s->ops.p[i]);
    vec_fini(&s->ops);
    vec_fini(&s->gets);
    sdisk_sync(s->disk, s->disk->cache.n);
    s->disk->io = NULL;
    free(s);
}

void raft_uv_set_tracer(struct raft_io *io, struct raft_tracer *tracer) {
    sio_of(io)->tracer = tracer;
}

void raft_uv_set_segment_size(struct raft_io *io, size_t size) {
}

void raft_uv_set_disk_retry(struct raft_io *io, unsigned msecs) {
}

void raft_uv_set_connect_retry_delay(struct raft_io *io, unsigned msecs) {
}

void raft_uv_set_auto_recovery(struct raft_io *io, bool flag) {
}
