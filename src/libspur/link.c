/* SPDX-License-Identifier: Apache-2.0 */
#include "libspur/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "libspur/link_dial.h"
#include "libspur/link_frame.h"
#include "libspur/link_tls.h"

#define READ_SIZE (256u << 10)     /* more than the largest frame of a node: one is always whole at last */
#define OUT_ENOUGH (128u << 10)    /* no more input is put behind so much */
#define KEEP_SMALL (8u << 10)      /* so little of a frame is kept in a buffer of its size */
#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 1000
#define HELLO_MS 30000             /* connecting, and waiting for WELCOME */
#define OVER_MS 10000              /* so long a node is tried whose step is over */

_Static_assert(READ_SIZE > STREAM_DATA_MAX + 64 + STREAM_HEADER_SIZE, "a frame fits");

int64_t link_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void link_init(struct spur_streams *s, uint32_t index) {
    s->link[index] = (struct link){.s = s, .index = index, .fd = -1, .window = STREAM_WINDOW};
    s->link[index].first_ms = s->link[index].at_ms = link_now_ms();
}

/* ---- the buffer that is read into ---- */

/* A link holds a large one only while it has something in it: hundreds of nodes may be silent. */
static void in_take(struct link *l) {
    if (l->in_cap == READ_SIZE)
        return;
    uint8_t *big = l->s->spare ? take_ptr(&l->s->spare) : xmalloc(READ_SIZE);
    size_t n = l->in_n - l->in_at;
    if (n)
        memcpy(big, l->in + l->in_at, n);
    free(l->in);
    l->in = big;
    l->in_cap = READ_SIZE;
    l->in_at = 0;
    l->in_n = n;
}

static void in_drop(struct link *l) {
    if (l->in_cap == READ_SIZE && !l->s->spare)
        l->s->spare = take_ptr(&l->in);
    free(l->in);
    l->in = NULL;
    l->in_cap = l->in_at = l->in_n = 0;
}

static void in_shrink(struct link *l) {
    size_t n = l->in_n - l->in_at;
    if (l->in_cap != READ_SIZE || n > KEEP_SMALL)
        return;
    uint8_t *small = n ? xmemdup(l->in + l->in_at, n) : NULL;
    in_drop(l);
    l->in = small;
    l->in_cap = l->in_n = n;
}

/* ---- states ---- */

static void disconnect(struct link *l) {
    if (l->shake)
        link_tls_drop(l->shake);
    else if (l->fd >= 0)
        close(l->fd);
    l->shake = NULL;
    l->fd = -1;
    if (l->state == LINK_CONNECTING || l->state == LINK_SHAKING || l->state == LINK_OPENING)
        l->s->n_dialing--;
    buf_fini(&l->out);
    l->out_at = 0;
    in_drop(l);
}

static void end(struct link *l) {
    disconnect(l);
    l->state = LINK_OVER;
    l->s->n_left--;
}

void link_fini(struct link *l) {
    if (l->state != LINK_OVER)
        disconnect(l);
}

void link_fail(struct link *l, int code, const char *fmt, ...) {
    struct err e = {0};
    va_list ap;
    va_start(ap, fmt);
    err_vset(&e, code, fmt, ap);
    va_end(ap);
    end(l);
    l->s->on.failed(l->s->on.arg, l->index, &e);
}

/* The connection is of no use any more. Whoever has said DONE is not asked again. */
static void broken(struct link *l, const char *why) {
    struct spur_streams *s = l->s;
    if (l->state == LINK_LEAVING) {
        end(l);
        return;
    }
    disconnect(l);
    l->state = LINK_WAITING;
    int64_t now = link_now_ms();
    if (s->file && l->was_welcome) { /* half a file is on its way: begun anew by who asked for it */
        link_fail(l, E_UNREACHABLE, "%s", why);
        return;
    }
    if ((s->over_ms && now > s->over_ms + OVER_MS) ||
        (!l->was_welcome && now > l->first_ms + (int64_t)s->give_up_ms)) {
        link_fail(l, E_UNREACHABLE, "%s", why);
        return;
    }
    l->at_ms = now + (int64_t)l->pause_ms;
    l->pause_ms = MIN(MAX(l->pause_ms * 2, (uint64_t)PAUSE_MIN_MS), (uint64_t)PAUSE_MAX_MS);
}

static void connect_now(struct link *l) {
    struct err e = {0};
    if (l->s->tls_why.code) {
        link_fail(l, l->s->tls_why.code, "%s", l->s->tls_why.text);
        return;
    }
    l->state = LINK_CONNECTING;
    l->at_ms = link_now_ms();
    l->s->n_dialing++;
    if (link_dial(l->s->ticket[l->index].place, &l->fd, &e))
        broken(l, e.text);
    else if (l->s->over_ms)
        link_hurry(l->fd);
}

/* A connection that stands is the step daemon's, whatever became of the agent. */
void link_moved(struct link *l) {
    if (l->state == LINK_CONNECTING || l->state == LINK_SHAKING || l->state == LINK_OPENING) {
        disconnect(l);
        l->state = LINK_WAITING;
    }
    if (l->state == LINK_WAITING)
        l->at_ms = link_now_ms();
    l->pause_ms = 0;
}

static void open_now(struct link *l) {
    link_frame_open(l);
    l->state = LINK_OPENING;
    l->at_ms = link_now_ms();
}

/* The hand-shake is over. Whoever isn't believed is not asked again, nor in plain. */
static void shaken(struct link *l) {
    struct err e = {0};
    l->fd = link_tls_end(take_ptr(&l->shake), &e);
    if (l->fd >= 0) {
        open_now(l);
        return;
    }
    bool knows_none = e.code == E_TLS || e.code == E_UNREACHABLE, may_be_plain = link_tls_may_be_plain(l->s->tls);
    l->is_plain = knows_none && may_be_plain;
    if (e.code == E_NO_PROOF || (e.code == E_TLS && !may_be_plain))
        link_fail(l, e.code, "%s", e.text);
    else
        broken(l, e.text);
}

/* The connection stands, or does not. */
static void connected(struct link *l) {
    int error = 0;
    socklen_t n = sizeof(error);
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &n) || error) {
        broken(l, strerror(error ? error : errno));
        return;
    }
    if (!l->s->tls || l->is_plain) {
        l->is_plain = false;
        open_now(l);
        return;
    }
    l->state = LINK_SHAKING;
    l->shake = link_tls_begin(l->s->tls, l->fd, l->s->ticket[l->index].place->address, &l->fd);
}

short link_events(const struct link *l) {
    switch (l->state) {
    case LINK_CONNECTING:
        return POLLOUT;
    case LINK_SHAKING:
        return POLLIN;
    case LINK_OPENING:
    case LINK_OPEN:
    case LINK_LEAVING:
        return (short)((l->s->is_stalled ? 0 : POLLIN) | (l->out.n > l->out_at ? POLLOUT : 0));
    default:
        return 0;
    }
}

/* Until when a node may let us wait for its hello. */
static int64_t hello_ends_ms(const struct link *l) {
    int64_t over = l->s->over_ms ? MAX(l->s->over_ms + OVER_MS, l->at_ms) : INT64_MAX;
    return MIN(l->at_ms + HELLO_MS, over);
}

int64_t link_deadline_ms(const struct link *l) {
    switch (l->state) {
    case LINK_WAITING:
        return l->at_ms;
    case LINK_CONNECTING:
    case LINK_SHAKING:
    case LINK_OPENING:
        return hello_ends_ms(l);
    case LINK_LEAVING:
        return l->at_ms + HELLO_MS;
    default:
        return INT64_MAX;
    }
}

void link_time(struct link *l, int64_t now_ms) {
    if (now_ms < link_deadline_ms(l))
        return;
    if (l->state == LINK_WAITING) {
        if (l->s->n_dialing < 64) /* each holds its copy of the environment until it is sent */
            connect_now(l);
        return;
    }
    broken(l, err_sentence(E_DEADLINE));
}

/* ---- bytes ---- */

static void write_out(struct link *l) {
    while (l->out_at < l->out.n) {
        ssize_t n = send(l->fd, l->out.p + l->out_at, l->out.n - l->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (l->out_at > OUT_ENOUGH) { /* what was sent goes */
                memmove(l->out.p, l->out.p + l->out_at, l->out.n - l->out_at);
                l->out.n -= l->out_at;
                l->out_at = 0;
            }
            return;
        }
        if (n < 0) {
            broken(l, strerror(errno));
            return;
        }
        l->out_at += (size_t)n;
    }
    l->out_at = 0;
    if (l->out.cap > 2 * OUT_ENOUGH)
        buf_fini(&l->out);
    buf_clear(&l->out);
    if (l->state == LINK_LEAVING)
        end(l);
}

void link_deal(struct link *l) {
    while (l->state == LINK_OPENING || l->state == LINK_OPEN) {
        struct stream_header h;
        int got = stream_header_read(l->in + l->in_at, l->in_n - l->in_at, &h);
        if (got < 0) {
            broken(l, err_sentence(got));
            return;
        }
        if (got && h.length > READ_SIZE - STREAM_HEADER_SIZE) {
            broken(l, err_sentence(E_TOO_BIG));
            return;
        }
        if (!got || l->in_n - l->in_at < STREAM_HEADER_SIZE + h.length)
            break;
        const uint8_t *p = l->in + l->in_at + STREAM_HEADER_SIZE;
        switch (link_frame_deal(l, &h, p)) {
        case LINK_NOT_TAKEN:
            l->s->is_stalled = true;
            return;
        case LINK_BROKEN:
            broken(l, err_sentence(E_PROTOCOL));
            return;
        case LINK_LATER:
            broken(l, err_sentence(E_BUSY));
            return;
        case LINK_GONE:
            return;
        case LINK_TAKEN:
            break;
        }
        l->in_at += STREAM_HEADER_SIZE + h.length;
        l->pause_ms = 0;
    }
    if (l->state == LINK_LEAVING)
        l->at_ms = link_now_ms();
    in_shrink(l);
}

static void read_in(struct link *l) {
    in_take(l);
    if (l->in_at && l->in_cap - l->in_n < STREAM_DATA_MAX) {
        memmove(l->in, l->in + l->in_at, l->in_n - l->in_at);
        l->in_n -= l->in_at;
        l->in_at = 0;
    }
    ssize_t n = recv(l->fd, l->in + l->in_n, l->in_cap - l->in_n, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) {
        in_shrink(l);
        return;
    }
    if (n <= 0) {
        broken(l, n ? strerror(errno) : "the connection was closed");
        return;
    }
    l->in_n += (size_t)n;
    if (l->state == LINK_LEAVING) /* nothing of it counts */
        in_drop(l);
    else
        link_deal(l);
}

void link_ready(struct link *l, short revents) {
    if (l->state == LINK_CONNECTING) {
        if (revents & (POLLOUT | POLLERR | POLLHUP))
            connected(l);
        if (l->state == LINK_OPENING)
            write_out(l);
        return;
    }
    if (l->state == LINK_SHAKING) {
        shaken(l);
        if (l->state == LINK_OPENING)
            write_out(l);
        return;
    }
    if (revents & POLLOUT)
        write_out(l);
    if (l->fd >= 0 && !l->s->is_stalled && revents & (POLLIN | POLLERR | POLLHUP))
        read_in(l);
    else if (l->fd >= 0 && l->s->is_stalled && revents & POLLERR)
        broken(l, "the connection broke");
}

void link_push(struct link *l) {
    if (l->state == LINK_OPEN) {
        link_frame_wishes(l);
        while (l->out.n - l->out_at < OUT_ENOUGH && link_frame_input(l))
            ;
    }
    if ((l->state == LINK_OPENING || l->state == LINK_OPEN || l->state == LINK_LEAVING) && l->out.n > l->out_at)
        write_out(l);
}
