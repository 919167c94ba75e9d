/* SPDX-License-Identifier: Apache-2.0
 *
 * A request: its sending, its end, its retry. It is in one of two lists: its channel's, waiting for a connection, or
 * a connection's.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "io/rpc/client.h"

static void on_late(struct loop_late *late) {
    struct rpc_request *r = (struct rpc_request *)((char *)late - offsetof(struct rpc_request, late));
    if (r->early)
        request_finish(r, r->early->code, r->early, NULL, 0);
    else
        response_resume(r);
}

static struct rpc_request *request_new(struct rpc_channel *ch) {
    struct rpc_request *r = ch->free_requests;
    if (r) {
        ch->free_requests = r->next;
        ch->n_free_requests--;
        r->next = NULL;
    } else {
        r = xnew(struct rpc_request);
    }
    r->ch = ch;
    r->late.fn = on_late;
    r->in.max = ch->conf.max_message;
    response_reset(r);
    return r;
}

void request_destroy(struct rpc_request *r) {
    buf_fini(&r->out.b);
    buf_fini(&r->in.b);
    arena_fini(&r->arena);
    free(r);
}

static void request_free(struct rpc_request *r) {
    struct rpc_channel *ch = r->ch;
    if (ch->freed || ch->n_free_requests >= CLIENT_FREE_REQUESTS || r->out.b.cap > CLIENT_KEEP_BYTES ||
        r->in.b.cap > CLIENT_KEEP_BYTES) {
        request_destroy(r);
    } else {
        arena_reset(&r->arena);
        buf_clear(&r->out.b);
        buf_clear(&r->in.b);
        struct buf out = r->out.b, in = r->in.b;
        struct arena arena = r->arena;
        *r = (struct rpc_request){.out.b = out, .in.b = in, .arena = arena, .next = ch->free_requests};
        ch->free_requests = r;
        ch->n_free_requests++;
    }
    channel_unref(ch);
}

void request_unhold(struct rpc_request *r) {
    if (--r->held == 0 && r->is_finished)
        request_free(r);
}

/* Off its connection. The stream is cut off unless both sides have said all. */
static void leave_conn(struct rpc_request *r) {
    struct client_conn *cc = r->conn;
    if (r->stream && !cc->c.dead) {
        nghttp2_session_set_stream_user_data(cc->c.session, r->stream, NULL);
        if (!r->is_ended || outq_pending(&r->out))
            nghttp2_submit_rst_stream(cc->c.session, 0, r->stream, NGHTTP2_CANCEL);
        conn_dirty(&cc->c);
    }
    cc->c.out_bytes -= outq_pending(&r->out);
    client_conn_remove(cc, r);
    r->stream = 0;
    if (cc->is_left && !cc->requests && !cc->c.dead)
        conn_close(&cc->c, E_CANCELLED, "left for another address");
}

void request_finish(struct rpc_request *r, int code, const struct err *why, const void *message, size_t n) {
    must(!r->is_finished);
    r->is_finished = true;
    loop_timer_stop(r->timer);
    loop_late_cancel(&r->late);
    if (r->conn)
        channel_ended(r->ch, r->conn, code);
    if (r->conn)
        leave_conn(r);
    else
        channel_dequeue(r->ch, r);
    r->held++;
    r->done(r->arg, code, why, code || r->on_message ? NULL : message ? message : "", n);
    request_unhold(r);
}

void request_fail(struct rpc_request *r, int code, const char *fmt, ...) {
    struct err e;
    va_list ap;
    va_start(ap, fmt);
    err_vset(&e, code, fmt, ap);
    va_end(ap);
    request_finish(r, code, &e, NULL, 0);
}

void request_unprocessed(struct rpc_request *r, const char *why) {
    struct rpc_channel *ch = r->ch;
    if (r->is_retried || ch->freed) {
        request_fail(r, E_UNREACHABLE, "%s: %s", rpc_channel_address(ch), why);
        return;
    }
    leave_conn(r);
    r->is_retried = true;
    r->is_sent = false;
    outq_rewind(&r->out);
    response_reset(r);
    channel_enqueue(ch, r);
    channel_kick(ch);
}

static ssize_t on_source(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *user_data) {
    struct rpc_request *r = nghttp2_session_get_stream_user_data(session, stream);
    if (!r)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t pending = outq_pending(&r->out), n = MIN(pending, room);
    *flags = NGHTTP2_DATA_FLAG_NO_COPY;
    if (n == pending)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

void request_submit(struct rpc_request *r, struct client_conn *cc) {
    const struct address *a = &r->ch->addresses[cc->which];
    nghttp2_nv nv[8 + CLIENT_METADATA_MAX];
    size_t n = 0;
    char timeout[16];
    nv[n++] = header_nv_static(":method", "POST");
    nv[n++] = header_nv_static(":scheme", "http");
    nv[n++] = header_nv(":authority", a->is_unix ? "localhost" : a->text);
    nv[n++] = header_nv(":path", r->method);
    nv[n++] = header_nv_static("te", "trailers");
    nv[n++] = header_nv_static("content-type", "application/grpc");
    nv[n++] = header_nv_static("user-agent", "grpc-spur/" SPUR_VERSION);
    if (!r->on_message) {
        header_timeout_print(timeout, (uint64_t)MAX(r->deadline - loop_now_ms(r->ch->l), (int64_t)1));
        nv[n++] = header_nv_once("grpc-timeout", timeout);
    }
    for (const struct header *h = r->metadata; h; h = h->next)
        nv[n++] = header_nv(h->name, h->value);
    nghttp2_data_provider source = {.read_callback = on_source};
    channel_dequeue(r->ch, r);
    client_conn_add(cc, r);
    cc->c.out_bytes += outq_pending(&r->out);
    int32_t stream = nghttp2_submit_request(cc->c.session, NULL, nv, n, &source, r);
    r->stream = stream > 0 ? stream : 0;
    conn_dirty(&cc->c);
    if (stream > 0)
        return;
    channel_conn_lost(r->ch, cc); /* its two thousand million streams are used up */
    request_unprocessed(r, nghttp2_strerror(stream));
}

/* One "name: value" line; it is cut up. */
static int metadata_line(struct rpc_request *r, char *line, struct header ***last, struct err *e) {
    char *colon = strchr(line, ':');
    if (!colon)
        return err_set(e, E_USAGE, "Metadata without a colon");
    *colon = 0;
    for (char *p = line; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p | 0x20) : *p;
    const char *value = colon + 1 + strspn(colon + 1, " ");
    int rc = header_check(line, value, e);
    if (rc)
        return rc;
    struct header *h = arena_alloc(&r->arena, sizeof(*h));
    *h = (struct header){NULL, line, value};
    **last = h;
    *last = &h->next;
    return 0;
}

static int metadata_parse(struct rpc_request *r, const char *text, struct err *e) {
    struct header **last = &r->metadata;
    size_t n = 0, bytes = strlen(text);
    char *end, *line = arena_strdup(&r->arena, text);
    for (; *line; line = end) {
        end = strchrnul(line, '\n');
        if (*end)
            *end++ = 0;
        bytes += 32;
        if (++n > CLIENT_METADATA_MAX || bytes > HEADER_LIST_MAX - 2048)
            return err_set(e, E_TOO_BIG, "Too much metadata");
        int rc = *line ? metadata_line(r, line, &last, e) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

static struct rpc_request *request_make(struct rpc_channel *ch, const char *method, const char *metadata,
                                        const void *message, size_t n) {
    must(!ch->freed);
    struct rpc_request *r = request_new(ch);
    struct err e;
    ch->refs++;
    r->method = arena_strdup(&r->arena, method);
    if (metadata && metadata_parse(r, metadata, &e)) {
        r->early = arena_memdup(&r->arena, &e, sizeof(e));
        loop_late(ch->l, &r->late);
    }
    outq_message(&r->out, message, n);
    channel_enqueue(ch, r);
    return r;
}

static void on_deadline(void *arg) {
    struct rpc_request *r = arg;
    r->timer = NULL;
    request_fail(r, E_DEADLINE, "%s", err_sentence(E_DEADLINE));
}

void request_idle_restart(struct rpc_request *r) {
    if (!r->on_message || !r->idle_ms)
        return;
    loop_timer_stop(r->timer);
    r->timer = loop_timer_start(r->ch->l, r->idle_ms, on_deadline, r);
}

struct rpc_request *rpc_send(struct rpc_channel *ch, const char *method, const char *metadata, const void *message,
                             size_t n, uint64_t timeout_ms, rpc_done_fn done, void *arg) {
    struct rpc_request *r = request_make(ch, method, metadata, message, n);
    uint64_t ms = timeout_ms ? timeout_ms : 30000;
    r->done = done;
    r->arg = arg;
    r->deadline = loop_now_ms(ch->l) + (int64_t)MIN(ms, (uint64_t)INT64_MAX / 2);
    r->timer = loop_timer_start(ch->l, ms, on_deadline, r);
    channel_kick(ch);
    return r;
}

struct rpc_request *rpc_stream(struct rpc_channel *ch, const char *method, const char *metadata, const void *message,
                               size_t n, uint64_t idle_ms, bool (*on_message)(void *arg, const void *message, size_t n),
                               rpc_done_fn done, void *arg) {
    struct rpc_request *r = request_make(ch, method, metadata, message, n);
    r->done = done;
    r->arg = arg;
    r->on_message = on_message;
    r->idle_ms = idle_ms;
    request_idle_restart(r);
    channel_kick(ch);
    return r;
}

void rpc_resume(struct rpc_request *r) {
    if (!r->early)
        loop_late(r->ch->l, &r->late);
}

void rpc_cancel(struct rpc_request *r) {
    request_fail(r, E_CANCELLED, "%s", err_sentence(E_CANCELLED));
}

const char *rpc_request_trailer(const struct rpc_request *r, const char *name) {
    return header_find(r->trailers, name);
}

bool rpc_request_was_sent(const struct rpc_request *r) {
    return r->is_sent;
}
