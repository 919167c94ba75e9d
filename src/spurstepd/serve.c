/* SPDX-License-Identifier: Apache-2.0 */
#include "spurstepd/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "spurstepd/viewer.h"

#define READ_AT_ONCE 16384
#define OUT_MAX (1u << 20) /* a client that doesn't read is dropped */

int serve_open(struct server *s, struct err *e) {
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = STEP_SOCKET_FILE};
    *s = (struct server){.listen_fd = -1};
    for (unsigned i = 0; i < SERVE_CLIENTS; i++)
        s->clients[i].fd = s->clients[i].passed = -1;
    s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(STEP_SOCKET_FILE);
    mode_t before = umask(0177);
    bool failed = s->listen_fd < 0 || bind(s->listen_fd, (struct sockaddr *)&a, sizeof(a)) || listen(s->listen_fd, 8);
    umask(before);
    return failed ? err_sys(e, "listen on the run's socket") : 0;
}

static void drop(struct client *c) {
    close(c->fd);
    if (c->passed >= 0)
        close(c->passed);
    buf_fini(&c->in);
    buf_fini(&c->out);
    *c = (struct client){.fd = -1, .passed = -1};
}

void serve_close(struct server *s) {
    for (unsigned i = 0; i < SERVE_CLIENTS; i++) {
        if (s->clients[i].fd >= 0)
            drop(&s->clients[i]);
    }
    close(s->listen_fd);
    (void)unlink(STEP_SOCKET_FILE);
}

static void flush(struct client *c) {
    while (c->out.n) {
        ssize_t n = send(c->fd, c->out.p, c->out.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN && c->out.n <= OUT_MAX)
            return;
        if (n < 0) {
            drop(c);
            return;
        }
        memmove(c->out.p, c->out.p + n, c->out.n - (size_t)n);
        c->out.n -= (size_t)n;
    }
}

static void take_client(struct server *s) {
    struct ucred who;
    socklen_t n = sizeof(who);
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    bool may = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) && (who.uid == 0 || who.uid == geteuid());
    for (unsigned i = 0; may && i < SERVE_CLIENTS; i++) {
        if (s->clients[i].fd < 0) {
            s->clients[i].fd = fd;
            return;
        }
    }
    close(fd);
}

/* ---- requests ---- */

static void answer_status(struct client *c, const struct run *r, bool count) {
    struct step_status status;
    run_status(r, count, &status);
    step_frame_add(&c->out, STEP_STATUS, step_status_rec(), &status);
}

static void answer(struct client *c, int code, const struct err *why) {
    struct step_empty ok = {0};
    struct step_error bad = {.error = (uint32_t)-code, .text = why->text};
    if (code)
        step_frame_add(&c->out, STEP_ERROR, step_error_rec(), &bad);
    else
        step_frame_add(&c->out, STEP_OK, step_empty_rec(), &ok);
}

static void tell(struct client *c, const struct run *r) {
    if (c->fd < 0 || !c->subscribed || c->was_told || r->state != STEP_ENDED)
        return;
    step_frame_add(&c->out, STEP_END, step_result_rec(), &r->result);
    c->was_told = true;
    flush(c);
}

static int on_signal(struct run *r, struct rd body, struct arena *a, struct err *e) {
    struct step_signal s;
    int code = rec_decode(step_signal_rec(), body.p, rd_left(&body), a, &s, e);
    return code ? code : run_signal(r, &s, e);
}

static int on_terminate(struct run *r, struct rd body, struct arena *a, struct err *e) {
    struct step_terminate t;
    int code = rec_decode(step_terminate_rec(), body.p, rd_left(&body), a, &t, e);
    return code ? code : run_terminate(r, &t, e);
}

static int on_stream(struct server *s, struct client *c, struct rd body, struct arena *a, struct err *e) {
    struct step_stream q;
    int code = rec_decode(step_stream_rec(), body.p, rd_left(&body), a, &q, e);
    if (!code && (!s->viewers || c->passed < 0))
        code = err_set(e, E_SYNTAX, "no step, or no descriptor");
    if (!code)
        viewers_add(s->viewers, take_fd(&c->passed), &q);
    return code;
}

static int on_suspend(struct run *r, struct rd body, struct arena *a, struct err *e) {
    struct step_suspend q;
    int code = rec_decode(step_suspend_rec(), body.p, rd_left(&body), a, &q, e);
    if (!code)
        run_suspend(r, q.resume);
    return code;
}

static void handle(struct server *s, struct client *c, struct run *r, const struct step_header *h, struct rd body) {
    auto_arena a = {0};
    struct err e = {0};
    if (h->version > STEP_VERSION) {
        answer(c, err_set(&e, E_VERSION, "this step daemon speaks versions 1 to %d", STEP_VERSION), &e);
        return;
    }
    switch (h->type) {
    case STEP_GET_STATUS:
        answer_status(c, r, true);
        break;
    case STEP_SUBSCRIBE:
        c->subscribed = true;
        answer_status(c, r, false);
        tell(c, r);
        break;
    case STEP_SIGNAL:
        answer(c, on_signal(r, body, &a, &e), &e);
        break;
    case STEP_TERMINATE:
        answer(c, on_terminate(r, body, &a, &e), &e);
        break;
    case STEP_ACK:
        s->acknowledged = s->acknowledged || r->state == STEP_ENDED;
        if (s->viewers)
            s->viewers->is_reported = s->acknowledged;
        break;
    case STEP_STREAM:
        answer(c, on_stream(s, c, body, &a, &e), &e);
        break;
    case STEP_SUSPEND:
        answer(c, on_suspend(r, body, &a, &e), &e);
        break;
    default:
        answer(c, err_set(&e, E_METHOD, "unknown request %u", h->type), &e);
    }
}

static void take_frames(struct server *s, struct client *c, struct run *r) {
    size_t at = 0;
    struct step_header h;
    int got = 0;
    while (c->fd >= 0 && (got = step_header_read(c->in.p + at, c->in.n - at, &h)) > 0 &&
           c->in.n - at >= STEP_HEADER_SIZE + h.length) {
        handle(s, c, r, &h, rd_of(c->in.p + at + STEP_HEADER_SIZE, h.length));
        at += STEP_HEADER_SIZE + h.length;
    }
    if (c->fd < 0)
        return;
    if (got < 0) {
        drop(c);
        return;
    }
    memmove(c->in.p, c->in.p + at, c->in.n - at);
    c->in.n -= at;
    flush(c);
}

/* One descriptor may come along, for the request that it came with. */
static ssize_t receive(struct client *c) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {buf_reserve(&c->in, READ_AT_ONCE), READ_AT_ONCE};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
        if (c->passed >= 0)
            close(c->passed);
        memcpy(&c->passed, CMSG_DATA(h), sizeof(int));
        (void)fcntl(c->passed, F_SETFL, O_NONBLOCK);
    }
    return n;
}

static void read_client(struct server *s, struct client *c, struct run *r) {
    ssize_t n = receive(c);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(c);
        return;
    }
    c->in.n += (size_t)n;
    take_frames(s, c, r);
}

/* ---- the loop's side ---- */

void serve_poll(const struct server *s, struct pollfd out[SERVE_POLLS]) {
    out[0] = (struct pollfd){.fd = s->listen_fd, .events = POLLIN};
    for (unsigned i = 0; i < SERVE_CLIENTS; i++)
        out[i + 1] = (struct pollfd){.fd = s->clients[i].fd,
                                     .events = (short)(POLLIN | (s->clients[i].out.n ? POLLOUT : 0))};
}

void serve_handle(struct server *s, struct run *r, const struct pollfd polled[SERVE_POLLS]) {
    for (unsigned i = 0; i < SERVE_CLIENTS; i++) {
        struct client *c = &s->clients[i];
        if (c->fd >= 0 && (polled[i + 1].revents & POLLOUT))
            flush(c);
        if (c->fd >= 0 && (polled[i + 1].revents & (POLLIN | POLLHUP | POLLERR)))
            read_client(s, c, r);
    }
    if (polled[0].revents & POLLIN)
        take_client(s);
}

void serve_tell_end(struct server *s, const struct run *r) {
    for (unsigned i = 0; i < SERVE_CLIENTS; i++)
        tell(&s->clients[i], r);
}

bool serve_is_done(const struct server *s) {
    if (s->acknowledged)
        return true;
    for (unsigned i = 0; i < SERVE_CLIENTS; i++) {
        if (s->clients[i].fd >= 0 && s->clients[i].was_told)
            return false;
    }
    return true;
}
