/* SPDX-License-Identifier: Apache-2.0 */
#include "spurstepd/heard.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"

#define READ_AT_ONCE (STREAM_DATA_MAX + 4096u)

/* Of one that looks on. Where its connection broke it goes on behind what it sent: that may be lost, and comes not twice. */
static int on_foreign_data(struct viewers *vs, struct viewer *v, const struct stream_data *d) {
    if (!v->has_sent)
        v->in_end = v->in_acked = d->offset;
    v->has_sent = true;
    if (d->offset != v->in_end || d->n_bytes > ring_room(&vs->in))
        return E_PROTOCOL;
    if (!d->n_bytes)
        vs->in_ended = true;
    ring_copy_in(&vs->in, d->bytes, d->n_bytes);
    viewers_foreign_in(vs, d->n_bytes);
    v->in_end += d->n_bytes;
    v->in_mark = vs->in.end;
    return 0;
}

static int on_data(struct viewers *vs, struct viewer *v, const uint8_t *p, size_t n) {
    struct stream_data d;
    if (stream_data_read(p, n, &d) || d.number != STREAM_IN)
        return E_PROTOCOL;
    if (vs->in_ended)
        return 0; /* nobody reads any more */
    if (!v->is_owner)
        return on_foreign_data(vs, v, &d);
    uint64_t have = viewers_owners_in(vs, vs->in.end);
    if (d.offset > have)
        return E_PROTOCOL;
    vs->in_name = d.task;
    uint64_t known = have - d.offset;
    if (!d.n_bytes)
        vs->in_ended = true;
    if (vs->in_ended || known >= d.n_bytes)
        return 0; /* sent again */
    d.bytes += known;
    d.n_bytes -= (uint32_t)known;
    if (d.n_bytes > ring_room(&vs->in))
        return E_PROTOCOL; /* more than the window that it was told */
    ring_copy_in(&vs->in, d.bytes, d.n_bytes);
    return 0;
}

static int on_ack(struct viewers *vs, struct viewer *v, const struct stream_ack *a) {
    for (uint32_t i = 0; v->is_owner && i < 2 * vs->run->n_tasks; i++) {
        struct outflow *f = &vs->run->task[i / 2].out[i % 2];
        if (!f->is_used || f->rank != a->task || f->number != a->number)
            continue;
        if (a->offset > v->cursor[i].sent || (v->flow == f && a->offset > v->at))
            return E_PROTOCOL;
        ring_drop(&f->ring, a->offset);
    }
    return 0;
}

static void on_terminate(struct viewers *vs) {
    struct step_terminate t = {.kill_wait_ms = vs->run->plan.kill_wait_ms};
    (void)run_terminate(vs->run, &t, NULL);
}

static int on_small(struct viewers *vs, struct viewer *v, unsigned type, const uint8_t *p, size_t n, struct arena *a) {
    struct stream_ack ack;
    struct stream_signal sig;
    struct stream_winsize size;
    switch (type) {
    case STREAM_ACK:
        return rec_decode(stream_ack_rec(), p, n, a, &ack, NULL) ? E_PROTOCOL : on_ack(vs, v, &ack);
    case STREAM_SIGNAL:
        if (rec_decode(stream_signal_rec(), p, n, a, &sig, NULL))
            return E_PROTOCOL;
        if (v->is_owner)
            (void)run_signal(vs->run, &(struct step_signal){.signal = sig.signal}, NULL);
        return 0;
    case STREAM_WINDOW_SIZE:
        if (rec_decode(stream_winsize_rec(), p, n, a, &size, NULL))
            return E_PROTOCOL;
        if (v->is_owner && vs->run->n_tasks)
            task_window_size(&vs->run->task[0], size.rows, size.columns);
        return 0;
    case STREAM_TERMINATE:
        if (v->is_owner)
            on_terminate(vs);
        return 0;
    default: return 0; /* of a later version */
    }
}

void heard(struct viewers *vs, struct viewer *v) {
    auto_arena a = {0};
    struct stream_header h;
    size_t at = 0;
    int got = 0;
    while ((got = stream_header_read(v->in.p + at, v->in.n - at, &h)) > 0 &&
           v->in.n - at >= STREAM_HEADER_SIZE + h.length) {
        const uint8_t *p = v->in.p + at + STREAM_HEADER_SIZE;
        at += STREAM_HEADER_SIZE + h.length;
        if (h.type == STREAM_BYE) {
            vs->is_left = vs->is_left || (v->is_owner && vs->run->state == STEP_ENDED);
            viewer_drop(vs, v);
            return;
        }
        int code = h.type == STREAM_DATA ? on_data(vs, v, p, h.length) : on_small(vs, v, h.type, p, h.length, &a);
        if (code || h.type == STREAM_OPEN) {
            viewer_drop(vs, v);
            return;
        }
        if (h.type == STREAM_DATA && ring_room(&vs->in) < STREAM_DATA_MAX)
            viewers_feed(vs);
    }
    if (got < 0) {
        viewer_drop(vs, v);
        return;
    }
    memmove(v->in.p, v->in.p + at, v->in.n - at);
    v->in.n -= at;
}

void heard_read(struct viewers *vs, struct viewer *v) {
    for (unsigned i = 0; i < 4 && v->fd >= 0; i++) {
        ssize_t n = recv(v->fd, buf_reserve(&v->in, READ_AT_ONCE), READ_AT_ONCE, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            viewer_drop(vs, v);
            return;
        }
        v->in.n += (size_t)n;
        heard(vs, v);
    }
}
