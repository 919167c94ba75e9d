/* SPDX-License-Identifier: Apache-2.0
 *
 * A path of a unix socket has 107 bytes at most, a state directory may have more: the connection goes through
 * /proc/self/fd/N/sock, with N the directory.
 *
 * Calls on a socket that has a time limit are interrupted when this process is stopped and goes on (signal(7)), with no
 * handler of anything: that says nothing of the daemon.
 */
#include "spurd/steps/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "io/loop/loop.h"

#define PASS_SECS 10

struct conn {
    uv_pipe_t pipe;
    const struct conn_events *events;
    void *arg;
    struct buf in;
    bool stays;
    bool is_over; /* an event was told, or nobody listens any more */
};

struct write {
    uv_write_t req;
    struct buf bytes;
};

static void over(struct conn *c, const char *why) {
    if (c->is_over)
        return;
    c->is_over = true;
    uv_read_stop((uv_stream_t *)&c->pipe);
    c->events->lost(c->arg, why);
}

static void on_written(uv_write_t *req, int status) {
    struct write *w = (struct write *)req;
    (void)status; /* a broken connection shows when reading */
    buf_fini(&w->bytes);
    free(w);
}

void conn_send(struct conn *c, enum step_frame type, const struct rec_desc *d, const void *rec) {
    struct write *w = xnew(struct write);
    step_frame_add(&w->bytes, type, d, rec);
    uv_buf_t b = uv_buf_init((char *)w->bytes.p, (unsigned)w->bytes.n);
    if (uv_write(&w->req, (uv_stream_t *)&c->pipe, &b, 1, on_written)) {
        buf_fini(&w->bytes);
        free(w);
    }
}

static void take_end(struct conn *c, const uint8_t *body, size_t n) {
    auto_arena a = {0};
    struct step_result result;
    struct step_empty none = {0};
    if (rec_decode(step_result_rec(), body, n, &a, &result, NULL)) {
        over(c, "the step daemon's result can't be read");
        return;
    }
    if (!c->stays) {
        c->is_over = true;
        uv_read_stop((uv_stream_t *)&c->pipe);
        conn_send(c, STEP_ACK, step_empty_rec(), &none);
    }
    c->events->ended(c->arg, &result);
}

static void take_frames(struct conn *c) {
    size_t at = 0;
    struct step_header h;
    int got = 0;
    while (!c->is_over && (got = step_header_read(c->in.p + at, c->in.n - at, &h)) > 0 &&
           c->in.n - at >= STEP_HEADER_SIZE + h.length) {
        if (h.type == STEP_END)
            take_end(c, c->in.p + at + STEP_HEADER_SIZE, h.length);
        at += STEP_HEADER_SIZE + h.length; /* status and answers: nobody waits for them */
    }
    memmove(c->in.p, c->in.p + at, c->in.n - at);
    c->in.n -= at;
    if (got < 0)
        over(c, "the step daemon speaks another protocol");
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *out) {
    struct conn *c = h->data;
    (void)suggested;
    *out = uv_buf_init((char *)buf_reserve(&c->in, 4096), 4096);
}

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b) {
    struct conn *c = s->data;
    (void)b;
    if (n == 0)
        return;
    if (n < 0) {
        over(c, n == UV_EOF ? "the step daemon closed the connection" : uv_strerror((int)n));
        return;
    }
    c->in.n += (size_t)n;
    take_frames(c);
}

static int connect_to(const char *dir, bool blocks, struct err *e) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    autoclose int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK), 0);
    snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" STEP_SOCKET_FILE, dir_fd);
    int rc = dir_fd < 0 || fd < 0 ? -1 : 0;
    while (!rc && (rc = connect(fd, (struct sockaddr *)&a, sizeof(a))) && errno == EINTR)
        rc = 0;
    if (rc)
        return err_sys(e, "connect to the step daemon in %s", dir);
    return take_fd(&fd);
}

static void on_closed(uv_handle_t *h) {
    struct conn *c = h->data;
    buf_fini(&c->in);
    free(c);
}

/* ---- handing over a descriptor ---- */

static int send_with(int to, const struct buf *frame, int fd) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {frame->p, frame->n};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(int));
    ssize_t n;
    while ((n = sendmsg(to, &msg, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    for (size_t at = n > 0 ? (size_t)n : frame->n + 1; at < frame->n; at += n > 0 ? (size_t)n : 0) {
        n = send(to, frame->p + at, frame->n - at, MSG_NOSIGNAL);
        if (n <= 0 && errno != EINTR)
            break;
    }
    return n <= 0 ? -1 : 0;
}

/* A daemon that hangs is another thing than one that is gone: its client comes again. */
static int no_answer(struct err *e, const char *gone) {
    return errno == EAGAIN || errno == EWOULDBLOCK ? err_set(e, E_BUSY, "the step daemon does not answer")
                                                   : err_set(e, E_NOT_FOUND, "%s", gone);
}

static int take_answer(int from, struct err *e) {
    auto_arena a = {0};
    uint8_t bytes[1024];
    struct step_header h;
    struct step_error bad;
    size_t n = 0;
    for (ssize_t got; n < sizeof(bytes); n += got > 0 ? (size_t)got : 0) {
        if (step_header_read(bytes, n, &h) > 0 && n >= STEP_HEADER_SIZE + h.length)
            break;
        got = recv(from, bytes + n, sizeof(bytes) - n, 0);
        if (got == 0)
            return err_set(e, E_NOT_FOUND, "the step daemon left without an answer");
        if (got < 0 && errno != EINTR)
            return no_answer(e, "the step daemon is gone");
    }
    if (h.type == STEP_OK)
        return 0;
    if (h.type != STEP_ERROR || rec_decode(step_error_rec(), bytes + STEP_HEADER_SIZE, h.length, &a, &bad, e))
        return err_set(e, E_PROTOCOL, "the step daemon speaks another protocol");
    return err_set(e, -(int)bad.error, "%s", bad.text ? bad.text : "refused");
}

int conn_pass(const char *dir, int fd, const struct step_stream *s, struct err *e) {
    auto_buf frame = {0};
    const struct timeval patience = {.tv_sec = PASS_SECS};
    autoclose int to = connect_to(dir, true, e);
    if (to < 0)
        return to;
    (void)setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(to, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    step_frame_add(&frame, STEP_STREAM, step_stream_rec(), s);
    if (send_with(to, &frame, fd))
        return no_answer(e, "the step daemon takes no connection");
    return take_answer(to, e);
}

/* ---- life ---- */

int conn_new(struct loop *l, const char *dir, bool stays, const struct conn_events *events, void *arg,
             struct conn **out, struct err *e) {
    struct step_empty none = {0};
    int fd = connect_to(dir, false, e);
    if (fd < 0)
        return fd;
    struct conn *c = xnew(struct conn);
    c->events = events;
    c->stays = stays;
    c->arg = arg;
    uv_pipe_init(loop_uv(l), &c->pipe, 0);
    c->pipe.data = c;
    if (uv_pipe_open(&c->pipe, fd) || uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read)) {
        close(fd);
        uv_close((uv_handle_t *)&c->pipe, on_closed);
        return err_set(e, E_SYS, "the loop does not take the step daemon's connection");
    }
    conn_send(c, STEP_SUBSCRIBE, step_empty_rec(), &none);
    *out = c;
    return 0;
}

void conn_free(struct conn *c) {
    if (!c)
        return;
    c->is_over = true;
    uv_close((uv_handle_t *)&c->pipe, on_closed);
}
