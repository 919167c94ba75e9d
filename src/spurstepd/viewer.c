/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of connections: what is under way to each, and when all was said. What is read from them is in heard.c.
 */
#include "spurstepd/viewer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurstepd/heard.h"
#include "spurstepd/proc.h"

#define PUSH_MOST (1u << 20)   /* bytes to one client before others have their turn */
#define OUT_MAX (1u << 20)     /* of what is not data: a client that lets more wait is dropped */
#define TEXTS_MAX (64u << 10)
#define REPORT_WAIT_MS 1000    /* for the controller, before a client is told that all is over */
#define ALONE_MS 30000         /* after the end, for a client that may come back */
#define EOF_WAIT_MS 2000       /* after the end, for output that no process of ours can write any more */

static struct outflow *flow_of(const struct viewers *vs, uint32_t i) {
    return &vs->run->task[i / 2].out[i % 2];
}

static uint32_t n_flows(const struct viewers *vs) {
    return 2 * vs->run->n_tasks;
}

static struct viewer *owner_of(struct viewers *vs) {
    for (unsigned i = 0; i < VIEWERS_MAX; i++) {
        if (vs->v[i].fd >= 0 && vs->v[i].is_owner)
            return &vs->v[i];
    }
    return NULL;
}

void viewer_drop(struct viewers *vs, struct viewer *v) {
    if (v->fd < 0)
        return;
    if (v->is_owner)
        vs->alone_ms = boot_ms();
    close(v->fd);
    buf_fini(&v->in);
    buf_fini(&v->out);
    free(v->cursor);
    *v = (struct viewer){.fd = -1};
}

/* ---- what is told ---- */

static void add_exit(struct buf *out, const struct task *t) {
    struct stream_exit x = {.task = t->rank,
                            .wait_status = t->wait_status,
                            .text = t->failure.has ? t->failure.text : NULL,
                            .out_of_memory = t->out_of_memory};
    stream_frame_add(out, STREAM_EXIT, stream_exit_rec(), &x);
}

static void add_started(struct buf *out, const struct task *t) {
    struct stream_started s = {t->rank, t->first_pid};
    stream_frame_add(out, STREAM_STARTED, stream_started_rec(), &s);
}

static void on_task(void *arg, const struct task *t) {
    struct viewers *vs = arg;
    for (unsigned i = 0; i < VIEWERS_MAX; i++) {
        if (vs->v[i].fd >= 0)
            (t->has_exited ? add_exit : add_started)(&vs->v[i].out, t);
    }
}

static void on_text(void *arg, const char *text) {
    struct viewers *vs = arg;
    struct stream_text line = {text};
    for (unsigned i = 0; i < VIEWERS_MAX; i++) {
        if (vs->v[i].fd >= 0)
            stream_frame_add(&vs->v[i].out, STREAM_TEXT, stream_text_rec(), &line);
    }
    if (!owner_of(vs) && vs->texts.n < TEXTS_MAX)
        stream_frame_add(&vs->texts, STREAM_TEXT, stream_text_rec(), &line);
}

void viewers_init(struct viewers *vs, struct run *r) {
    /* A client that comes back may count its window from what we have, not from what our tasks have; and there may be
     * more than one client. */
    *vs = (struct viewers){.run = r, .in.max = 4 * r->window};
    for (unsigned i = 0; i < VIEWERS_MAX; i++)
        vs->v[i].fd = -1;
    vs->alone_ms = boot_ms();
    vs->in_name = r->plan.input_task ? r->plan.input_task - 1 : STREAM_ALL_TASKS;
    r->on_task = on_task;
    r->on_text = on_text;
    r->arg = vs;
}

void viewers_fini(struct viewers *vs) {
    for (unsigned i = 0; i < VIEWERS_MAX; i++)
        viewer_drop(vs, &vs->v[i]);
    buf_fini(&vs->texts);
    ring_fini(&vs->in);
    free(vs->foreign);
}

/* ---- a new one ---- */

static void add_welcome(struct viewers *vs, struct viewer *v) {
    const struct run *r = vs->run;
    uint32_t *ranks = xcalloc(MAX(r->n_tasks, 1u), sizeof(*ranks)), *pids = xcalloc(MAX(r->n_tasks, 1u), sizeof(*pids));
    for (uint32_t i = 0; i < r->n_tasks; i++) {
        ranks[i] = r->task[i].rank;
        pids[i] = r->task[i].is_executed ? r->task[i].first_pid : 0;
    }
    struct stream_mark have = {vs->in_name, STREAM_IN, viewers_owners_in(vs, vs->in.end)};
    struct stream_welcome w = {.ranks = ranks, .n_ranks = r->n_tasks, .pids = pids, .n_pids = r->n_tasks,
                               .have = &have, .n_have = v->is_owner, .window = (uint32_t)r->window};
    stream_frame_add(&v->out, STREAM_WELCOME, stream_welcome_rec(), &w);
    for (uint32_t i = 0; i < r->n_tasks; i++) {
        if (r->task[i].is_executed)
            add_started(&v->out, &r->task[i]);
        if (r->task[i].has_exited)
            add_exit(&v->out, &r->task[i]);
    }
    free(ranks);
    free(pids);
}

/* Where it goes on: an owner behind what it has, others with what comes now. */
static void set_cursors(struct viewers *vs, struct viewer *v, const struct stream_open *open) {
    v->cursor = xcalloc(MAX(n_flows(vs), 1u), sizeof(*v->cursor));
    for (uint32_t i = 0; i < n_flows(vs); i++) {
        struct outflow *f = flow_of(vs, i);
        for (uint32_t k = 0; v->is_owner && k < open->n_have; k++) {
            const struct stream_mark *m = &open->have[k];
            if (f->is_used && m->task == f->rank && m->number == f->number && m->offset <= f->ring.end)
                ring_drop(&f->ring, m->offset);
        }
        v->cursor[i].sent = v->is_owner ? f->ring.base : f->ring.end;
    }
}

static void refuse(int fd, const char *why) {
    auto_buf out = {0};
    struct stream_refused no = {(uint32_t)-E_BUSY, why};
    stream_frame_add(&out, STREAM_REFUSED, stream_refused_rec(), &no);
    (void)send(fd, out.p, out.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

void viewers_add(struct viewers *vs, int fd, const struct step_stream *s) {
    auto_arena a = {0};
    struct stream_open open;
    int one = 1;
    if (rec_decode(stream_open_rec(), s->open, s->n_open, &a, &open, NULL)) {
        close(fd);
        return;
    }
    struct viewer *v = s->is_owner ? owner_of(vs) : NULL;
    if (v)
        viewer_drop(vs, v); /* whoever has the ticket says that its old connection is no more */
    for (unsigned i = 0; i < VIEWERS_MAX && (!v || v->fd >= 0); i++)
        v = &vs->v[i];
    if (v->fd >= 0) {
        refuse(fd, "too many are attached to this step");
        return;
    }
    *v = (struct viewer){.fd = fd, .is_owner = s->is_owner};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    if (v->is_owner)
        vs->alone_ms = 0;
    set_cursors(vs, v, &open);
    add_welcome(vs, v);
    if (v->is_owner) {
        buf_add(&v->out, vs->texts.p, vs->texts.n);
        buf_clear(&vs->texts);
    }
    buf_add(&v->in, s->rest, s->n_rest);
    heard(vs, v);
    if (v->fd >= 0)
        viewer_push(vs, v);
}

/* ---- sending ---- */

/* 1: all is sent; 0: the client takes no more now; -1: it is gone. */
static int send_some(struct viewer *v, struct iovec *iov, int n, size_t *out_sent) {
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    size_t all = 0;
    for (int i = 0; i < n; i++)
        all += iov[i].iov_len;
    ssize_t sent = sendmsg(v->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
        sent = 0;
    if (sent < 0 && errno != EAGAIN)
        return -1;
    *out_sent = sent > 0 ? (size_t)sent : 0;
    v->is_blocked = *out_sent < all;
    return v->is_blocked ? 0 : 1;
}

static int send_data(struct viewer *v) {
    struct iovec iov[3];
    size_t sent = 0;
    int n = 0;
    if (v->head_at < v->n_head)
        iov[n++] = (struct iovec){v->head + v->head_at, v->n_head - v->head_at};
    if (v->left)
        n += ring_view(&v->flow->ring, v->at, v->left, iov + n);
    int rc = send_some(v, iov, n, &sent);
    size_t of_head = MIN(sent, v->n_head - v->head_at);
    v->head_at += of_head;
    sent -= of_head;
    v->at += sent;
    v->left -= (uint32_t)sent;
    if (rc == 1)
        v->flow = NULL;
    return rc;
}

static int send_out(struct viewer *v) {
    struct iovec iov = {v->out.p + v->out_at, v->out.n - v->out_at};
    size_t sent = 0;
    int rc = send_some(v, &iov, 1, &sent);
    v->out_at += sent;
    if (rc == 1) {
        v->out_at = 0;
        buf_clear(&v->out);
    }
    return rc;
}

/* A frame of an outflow's bytes, or of its end. Those of others than the owner are copied: nobody keeps them. */
static bool next_of(struct viewer *v, struct outflow *f, struct cursor *c) {
    if (c->sent < f->ring.base)
        c->sent = f->ring.base;
    uint32_t n = (uint32_t)MIN(f->ring.end - c->sent, (uint64_t)STREAM_DATA_MAX);
    if (!f->is_used || (!n && (!f->eof || c->eof_sent)))
        return false;
    c->eof_sent = !n;
    v->n_head = stream_data_head(f->rank, f->number, c->sent, n, v->head);
    v->head_at = 0;
    v->flow = f;
    v->at = c->sent;
    v->left = n;
    c->sent += n;
    if (v->is_owner)
        return true;
    struct iovec from[2];
    buf_add(&v->out, v->head, v->n_head);
    int k = n ? ring_view(&f->ring, v->at, n, from) : 0;
    for (int i = 0; i < k; i++)
        buf_add(&v->out, from[i].iov_base, from[i].iov_len);
    v->flow = NULL;
    return true;
}

static bool next_data(struct viewers *vs, struct viewer *v) {
    uint32_t n = n_flows(vs);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (v->turn + i) % n;
        if (next_of(v, flow_of(vs, at), &v->cursor[at])) {
            v->turn = at + 1;
            return true;
        }
    }
    return false;
}

static bool has_all(const struct viewers *vs, const struct viewer *v) {
    if (vs->run->state != STEP_ENDED)
        return false;
    for (uint32_t i = 0; i < n_flows(vs); i++) {
        if (flow_of(vs, i)->is_used && !v->cursor[i].eof_sent)
            return false;
    }
    return vs->is_reported || boot_ms() >= vs->ended_ms + REPORT_WAIT_MS;
}

static void add_done(const struct viewers *vs, struct viewer *v) {
    struct stream_done done = {vs->run->wait_status, vs->run->result.text};
    stream_frame_add(&v->out, STREAM_DONE, stream_done_rec(), &done);
    v->done_sent = true;
}

void viewer_push(struct viewers *vs, struct viewer *v) {
    int rc = 1;
    for (size_t budget = PUSH_MOST; rc == 1 && budget > STREAM_DATA_MAX; budget -= STREAM_DATA_MAX) {
        if (v->flow)
            rc = send_data(v);
        else if (v->out.n > v->out_at)
            rc = send_out(v);
        else if (next_data(vs, v))
            continue;
        else if (!v->done_sent && has_all(vs, v))
            add_done(vs, v);
        else
            return;
    }
    v->is_blocked = true; /* more another time: as soon as it takes more */
    if (rc < 0 || v->out.n > OUT_MAX)
        viewer_drop(vs, v);
}

/* ---- input to the tasks ---- */

uint64_t viewers_owners_in(const struct viewers *vs, uint64_t at) {
    uint64_t others = vs->foreign_before;
    for (size_t i = 0; i < vs->n_foreign && vs->foreign[i].at < at; i++)
        others += MIN(vs->foreign[i].n, at - vs->foreign[i].at);
    return at - others;
}

void viewers_foreign_in(struct viewers *vs, size_t n) {
    uint64_t at = vs->in.end - n;
    struct in_foreign *last = vs->n_foreign ? &vs->foreign[vs->n_foreign - 1] : NULL;
    if (!n)
        return;
    if (last && last->at + last->n == at) {
        last->n += n;
        return;
    }
    vs->foreign = xrealloc(vs->foreign, (vs->n_foreign + 1) * sizeof(*vs->foreign));
    vs->foreign[vs->n_foreign++] = (struct in_foreign){at, n};
}

/* What the ring doesn't hold any more is a sum. */
static void forget_foreign(struct viewers *vs) {
    size_t n = 0;
    while (n < vs->n_foreign && vs->foreign[n].at + vs->foreign[n].n <= vs->in.base)
        vs->foreign_before += vs->foreign[n++].n;
    vs->n_foreign -= n;
    if (n)
        memmove(vs->foreign, vs->foreign + n, vs->n_foreign * sizeof(*vs->foreign));
}

/* Those that look on are told when all of theirs is with the tasks. */
static void acknowledge_others(struct viewers *vs) {
    for (unsigned i = 0; i < VIEWERS_MAX; i++) {
        struct viewer *v = &vs->v[i];
        if (v->fd < 0 || v->is_owner || v->in_acked == v->in_end || vs->in.base < v->in_mark)
            continue;
        struct stream_ack ack = {vs->in_name, STREAM_IN, v->in_end};
        stream_frame_add(&v->out, STREAM_ACK, stream_ack_rec(), &ack);
        v->in_acked = v->in_end;
    }
}

static bool takes_input(const struct viewers *vs, const struct task *t) {
    return t->in_fd >= 0 && (!vs->run->plan.input_task || vs->run->plan.input_task - 1 == t->rank);
}

static void close_input(struct task *t) {
    static const char end_of_file = 4;
    if (t->in_fd >= 0 && t->in_fd == t->tty)
        (void)!write(t->tty, &end_of_file, 1);
    else if (t->in_fd >= 0)
        close(t->in_fd);
    t->in_fd = -1;
}

static void feed_task(struct viewers *vs, struct task *t) {
    struct iovec from[2];
    if (t->in_at < vs->in.end) {
        int k = ring_view(&vs->in, t->in_at, (size_t)(vs->in.end - t->in_at), from);
        ssize_t n = writev(t->in_fd, from, k);
        if (n > 0)
            t->in_at += (uint64_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            close_input(t); /* it reads no more: that is not an error */
    }
    if (t->in_at == vs->in.end && vs->in_ended)
        close_input(t);
}

void viewers_feed(struct viewers *vs) {
    uint64_t least = vs->in.end;
    for (uint32_t i = 0; i < vs->run->n_tasks; i++) {
        struct task *t = &vs->run->task[i];
        if (!t->is_begun) {
            least = vs->in.base; /* it is not there yet, and wants all of it */
            continue;
        }
        if (takes_input(vs, t))
            feed_task(vs, t);
        if (takes_input(vs, t))
            least = MIN(least, t->in_at);
    }
    ring_drop(&vs->in, least);
    bool all = vs->in.base == vs->in.end;
    struct viewer *v = owner_of(vs);
    acknowledge_others(vs);
    forget_foreign(vs);
    uint64_t mine = viewers_owners_in(vs, vs->in.base);
    if (!v || vs->in_acked == mine || (!all && mine - vs->in_acked < vs->run->window / 4))
        return;
    struct stream_ack ack = {vs->in_name, STREAM_IN, mine};
    stream_frame_add(&v->out, STREAM_ACK, stream_ack_rec(), &ack);
    vs->in_acked = mine;
}

/* ---- the loop's side ---- */

size_t viewers_count(const struct viewers *vs) {
    return VIEWERS_MAX + 3 * (size_t)vs->run->n_tasks;
}

void viewers_poll(const struct viewers *vs, struct pollfd *out) {
    for (unsigned i = 0; i < VIEWERS_MAX; i++) {
        const struct viewer *v = &vs->v[i];
        out[i] = (struct pollfd){.fd = v->fd, .events = (short)(POLLIN | (v->is_blocked ? POLLOUT : 0))};
    }
    struct pollfd *p = out + VIEWERS_MAX;
    for (uint32_t i = 0; i < vs->run->n_tasks; i++, p += 3) {
        const struct task *t = &vs->run->task[i];
        bool feeds = takes_input(vs, t) && t->is_begun && t->in_at < vs->in.end;
        p[0] = (struct pollfd){.fd = outflow_wants(&t->out[0]) ? t->out[0].fd : -1, .events = POLLIN};
        p[1] = (struct pollfd){.fd = outflow_wants(&t->out[1]) ? t->out[1].fd : -1, .events = POLLIN};
        p[2] = (struct pollfd){.fd = feeds ? t->in_fd : -1, .events = POLLOUT};
    }
}

/* What is still open after the end is held by a process that is not ours to wait for. */
static void give_up_output(struct viewers *vs, int64_t now) {
    for (uint32_t i = 0; i < n_flows(vs) && now >= vs->ended_ms + EOF_WAIT_MS; i++) {
        struct outflow *f = flow_of(vs, i);
        struct pollfd p = {.fd = f->fd, .events = POLLIN};
        if (f->fd >= 0 && ring_room(&f->ring) && poll(&p, 1, 0) == 0)
            outflow_close(f);
    }
}

void viewers_handle(struct viewers *vs, const struct pollfd *polled) {
    const struct pollfd *p = polled + VIEWERS_MAX;
    for (uint32_t i = 0; i < vs->run->n_tasks; i++, p += 3) {
        struct task *t = &vs->run->task[i];
        for (unsigned k = 0; k < 2; k++) {
            if (p[k].revents && p[k].fd == t->out[k].fd)
                outflow_read(&t->out[k]);
        }
        if (t->tty >= 0 && t->out[0].fd < 0)
            t->tty = t->in_fd = -1;
    }
    for (unsigned i = 0; i < VIEWERS_MAX; i++) {
        struct viewer *v = &vs->v[i];
        if (v->fd < 0 || polled[i].fd != v->fd || !polled[i].revents)
            continue;
        v->is_blocked = v->is_blocked && !(polled[i].revents & (POLLOUT | POLLERR));
        if (polled[i].revents & (POLLIN | POLLHUP | POLLERR))
            heard_read(vs, v);
    }
    if (vs->run->state == STEP_ENDED) {
        vs->ended_ms = vs->ended_ms ? vs->ended_ms : boot_ms();
        give_up_output(vs, boot_ms());
    }
    viewers_feed(vs);
    for (unsigned i = 0; i < VIEWERS_MAX; i++) {
        if (vs->v[i].fd >= 0 && !vs->v[i].is_blocked)
            viewer_push(vs, &vs->v[i]);
    }
}

int64_t viewers_next_ms(const struct viewers *vs) {
    if (vs->run->state != STEP_ENDED)
        return INT64_MAX;
    if (!vs->ended_ms)
        return 0;
    int64_t now = boot_ms(), next = vs->alone_ms ? MAX(vs->alone_ms, vs->ended_ms) + ALONE_MS : INT64_MAX;
    if (now < vs->ended_ms + EOF_WAIT_MS)
        next = MIN(next, vs->ended_ms + EOF_WAIT_MS);
    if (now < vs->ended_ms + REPORT_WAIT_MS)
        next = MIN(next, vs->ended_ms + REPORT_WAIT_MS);
    return next;
}

bool viewers_are_done(const struct viewers *vs) {
    if (vs->run->state != STEP_ENDED)
        return false;
    if (vs->is_left)
        return true;
    int64_t since = MAX(vs->alone_ms, vs->ended_ms);
    return vs->alone_ms && vs->ended_ms && boot_ms() >= since + ALONE_MS;
}
