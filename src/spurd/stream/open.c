/* SPDX-License-Identifier: Apache-2.0
 *
 *     READING ── OPEN is there, the ticket is good ──► WAITING for the step's daemon ──► PASSING ──► gone
 *
 * Whoever connects may be anybody: how long, how much and how many are bounded before the ticket was seen.
 */
#include "spurd/stream/open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"
#include "spurd/stream/ticket.h"

#define OPEN_MS 15000            /* to say OPEN */
#define OPENINGS_MAX 512         /* at a time */
#define BYTES_MAX (64u << 20)    /* of all that are being read, beyond the least */
#define BYTES_EACH (64u << 10)   /* the least */

struct opening {
    struct streams *s;
    struct opening *next, *prev;
    uv_poll_t *poll; /* NULL: not read any more */
    bool waits;      /* the table or a pool has it, and answers */
    struct loop_timer *timer;
    int fd;
    struct buf in;
    char peer[64];
    struct arena arena;
    struct stream_open open; /* once it was read */
    size_t n_frame;          /* bytes of `in` that were the frame */
    struct step_ticket ticket;
    uint64_t key;
};

struct streams {
    struct streams_conf conf;
    struct cred_public key;
    bool has_key, stopped;
    struct opening *openings;
    size_t n_openings, n_bytes;
};

static void free_opening(struct opening *o) {
    if (o->fd >= 0)
        close(o->fd);
    buf_fini(&o->in);
    arena_fini(&o->arena);
    free(o);
}

static void on_poll_closed(uv_handle_t *h) {
    free(h);
}

/* While the descriptor is still ours: its number may be another's in a moment. */
static void stop_reading(struct opening *o) {
    loop_timer_stop(o->timer);
    o->timer = NULL;
    if (o->poll)
        uv_close((uv_handle_t *)o->poll, on_poll_closed);
    o->poll = NULL;
}

static void unlink_opening(struct opening *o) {
    if (o->prev)
        o->prev->next = o->next;
    else
        o->s->openings = o->next;
    if (o->next)
        o->next->prev = o->prev;
    o->s->n_openings--;
    o->s->n_bytes -= o->in.cap;
}

static void leave(struct opening *o) {
    unlink_opening(o);
    stop_reading(o);
    free_opening(o);
}

static void refuse(struct opening *o, const struct err *why) {
    auto_buf out = {0};
    struct stream_refused no = {(uint32_t)-why->code, why->text};
    if (why->code == E_CREDENTIAL || why->code == E_CRED_EXPIRED || why->code == E_CRED_REPLAY)
        log_warn("task stream from %s refused: %s", o->peer, why->text);
    stream_frame_add(&out, STREAM_REFUSED, stream_refused_rec(), &no);
    (void)send(o->fd, out.p, out.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(o->fd, SHUT_WR);
    leave(o);
}

/* ---- to the step's daemon ---- */

static void on_passed(void *arg, int code, const struct err *why, int fd) {
    struct opening *o = arg;
    o->fd = fd;
    o->waits = false;
    if (!code) {
        leave(o);
        return;
    }
    struct err e = *why;
    if (code == E_SYS || code == E_NOT_FOUND) /* most often: it has just gone */
        err_set(&e, E_JOB_DONE, "step %u.%u is over", o->ticket.job_id, o->ticket.step_id);
    refuse(o, &e);
}

static void pass(struct opening *o) {
    auto_buf open = {0};
    struct stream_open said = o->open;
    said.ticket = said.signature = NULL;
    said.n_ticket = said.n_signature = 0;
    said.launch = NULL;
    rec_encode(stream_open_rec(), &said, &open);
    struct step_stream what = {.open = open.p,
                               .n_open = (uint32_t)open.n,
                               .rest = o->in.p + o->n_frame,
                               .n_rest = (uint32_t)(o->in.n - o->n_frame),
                               .is_owner = o->ticket.use == TICKET_LAUNCH};
    o->waits = true;
    steps_local_pass(o->s->conf.steps, o->key, take_fd(&o->fd), &what, on_passed, o);
}

static void on_started(void *arg, int code, const struct err *why, uint32_t pid) {
    struct opening *o = arg;
    (void)pid;
    o->waits = false;
    if (o->s->stopped) /* streams_free has it */
        return;
    if (code)
        refuse(o, why);
    else
        pass(o);
}

static void launch(struct opening *o) {
    o->waits = true;
    table_step(o->s->conf.table, &o->ticket, o->in.p + STREAM_HEADER_SIZE, o->n_frame - STREAM_HEADER_SIZE, on_started,
               o);
}

/* ---- the ticket ---- */

static void on_copy_started(void *arg, int code, const struct err *why) {
    struct opening *o = arg;
    o->waits = false;
    if (code)
        refuse(o, why);
    else
        leave(o);
}

static void copy(struct opening *o) {
    struct steps_copy c = {.uid = o->ticket.uid, .gid = o->ticket.gid, .fd = o->fd,
                           .rest = o->in.p + o->n_frame, .n_rest = (uint32_t)(o->in.n - o->n_frame)};
    struct err e;
    if (table_check_run(o->s->conf.table, o->ticket.job_id, o->ticket.start_no, o->ticket.uid, &e)) {
        refuse(o, &e);
        return;
    }
    o->waits = true;
    steps_local_copy(o->s->conf.steps, &c, on_copy_started, o);
}

static void act(struct opening *o, int code, struct err *e) {
    const struct step_ticket *k = &o->ticket;
    struct streams *s = o->s;
    bool is_here = false, has_key = k->start_no <= RUN_START_MAX && k->step_id <= RUN_STEP_MAX && k->job_id <= JOB_ID_MAX;
    if (has_key && (!code || code == E_CRED_EXPIRED)) {
        o->key = step_run_key(k->job_id, k->start_no, k->step_id);
        is_here = steps_local_has(s->conf.steps, o->key);
    }
    if (code == E_CRED_EXPIRED && k->use == TICKET_LAUNCH && o->open.resume && is_here)
        code = 0; /* it is the one that this step was started with */
    if (!code && !has_key)
        code = err_set(e, E_STEP_ID, NULL);
    if (!code && k->use != TICKET_COPY && !is_here && (k->use == TICKET_ATTACH || o->open.resume))
        code = err_set(e, table_is_forgotten(s->conf.table, o->key) ? E_JOB_DONE : E_STEP_ID, "step %u.%u is not here",
                       k->job_id, k->step_id);
    if (code)
        refuse(o, e);
    else if (k->use == TICKET_COPY)
        copy(o);
    else if (is_here)
        pass(o);
    else
        launch(o);
}

/* ---- reading ---- */

/* 0: more must come; 1: the OPEN is there. */
static int read_frame(struct opening *o, struct err *e) {
    struct stream_header h;
    int got = stream_header_read(o->in.p, o->in.n, &h);
    if (got < 0)
        return err_set(e, got, NULL);
    if (got && h.type != STREAM_OPEN)
        return err_set(e, E_PROTOCOL, "a stream begins with OPEN");
    if (!got || o->in.n < STREAM_HEADER_SIZE + h.length)
        return 0;
    o->n_frame = STREAM_HEADER_SIZE + h.length;
    int code = rec_decode(stream_open_rec(), o->in.p + STREAM_HEADER_SIZE, h.length, &o->arena, &o->open, e);
    return code ? err_set(e, E_PROTOCOL, "an OPEN that can't be read") : 1;
}

static void look(struct opening *o) {
    struct err e = {0};
    int got = read_frame(o, &e);
    if (got == 0)
        return;
    stop_reading(o);
    if (got < 0) {
        refuse(o, &e);
        return;
    }
    struct streams *s = o->s;
    int code = ticket_check(&o->open, s->conf.node_name, s->has_key ? &s->key : NULL,
                            s->conf.host->unix_ms(s->conf.host->impl) / 1000, &o->arena, &o->ticket, &e);
    act(o, code, &e);
}

/* Reads no further than the frame: what is behind it is the step daemon's. */
static size_t wanted(const struct opening *o) {
    struct stream_header h;
    if (stream_header_read(o->in.p, o->in.n, &h) <= 0)
        return STREAM_HEADER_SIZE - MIN(o->in.n, (size_t)STREAM_HEADER_SIZE);
    return STREAM_HEADER_SIZE + h.length - o->in.n;
}

static void on_readable(uv_poll_t *p, int status, int events) {
    struct opening *o = p->data;
    struct streams *s = o->s;
    struct err e;
    (void)events;
    size_t n = status < 0 ? 0 : MIN(wanted(o), (size_t)BYTES_EACH), before = o->in.cap;
    if (status < 0 || !n) {
        leave(o);
        return;
    }
    uint8_t *to = buf_reserve(&o->in, n);
    s->n_bytes += o->in.cap - before;
    if (s->n_bytes > BYTES_MAX + BYTES_EACH * s->n_openings && o->in.n > BYTES_EACH) {
        err_set(&e, E_BUSY, NULL);
        refuse(o, &e);
        return;
    }
    ssize_t got = recv(o->fd, to, n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        leave(o);
        return;
    }
    o->in.n += (size_t)got;
    look(o);
}

static void on_late(void *arg) {
    struct opening *o = arg;
    o->timer = NULL;
    leave(o);
}

void streams_take(void *streams, int fd, const struct rpc_peer *peer, const void *rest, size_t n_rest) {
    struct streams *s = streams;
    if (s->stopped || s->n_openings >= OPENINGS_MAX) {
        close(fd);
        return;
    }
    struct opening *o = xnew(struct opening);
    o->s = s;
    o->fd = fd;
    memcpy(o->peer, peer->address, sizeof(o->peer));
    _Static_assert(sizeof(o->peer) == sizeof(peer->address), "a copy of it");
    o->next = s->openings;
    if (o->next)
        o->next->prev = o;
    s->openings = o;
    s->n_openings++;
    buf_add(&o->in, rest, n_rest);
    s->n_bytes += o->in.cap;
    uv_poll_t *poll = xnew(uv_poll_t);
    if (uv_poll_init(loop_uv(s->conf.loop), poll, fd)) {
        free(poll);
        leave(o);
        return;
    }
    poll->data = o;
    o->poll = poll;
    o->timer = loop_timer_start(s->conf.loop, OPEN_MS, on_late, o);
    uv_poll_start(poll, UV_READABLE, on_readable);
    if (peer->is_refused) {
        struct err e;
        err_set(&e, E_TLS, NULL);
        stop_reading(o);
        refuse(o, &e);
    } else {
        look(o);
    }
}

/* ---- life ---- */

struct streams *streams_new(const struct streams_conf *conf) {
    struct streams *s = xnew(struct streams);
    s->conf = *conf;
    return s;
}

void streams_set_key(struct streams *s, const struct cred_public *key) {
    s->key = *key;
    s->has_key = true;
}

void streams_stop(struct streams *s) {
    s->stopped = true;
}

void streams_free(struct streams *s) {
    while (s && s->openings)
        leave(s->openings);
    free(s);
}
