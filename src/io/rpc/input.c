/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client sends for a call: headers, checked once they are complete, and messages, handed to the owner.
 *
 * A unary method is started at the end of the client's half, with the one message. A streaming one is started with its
 * first message; while the owner has no on_message yet, whole messages wait and their bytes are not given back to the
 * stream's window, so that the client stops.
 */
#include <string.h>

#include "base/mem.h"
#include "io/rpc/server.h"

static const char *keep(struct rpc_call *c, const uint8_t *value, size_t n) {
    return arena_strndup(&c->arena, (const char *)value, n);
}

static void pseudo_header(struct rpc_call *c, const uint8_t *name, size_t n_name, const uint8_t *value, size_t n_value) {
    if (n_name == 5 && memcmp(name, ":path", 5) == 0) {
        c->path = keep(c, value, n_value);
        c->method = maps_get(&c->s->methods, c->path);
    } else if (n_name == 7 && memcmp(name, ":method", 7) == 0) {
        c->is_post = n_value == 4 && memcmp(value, "POST", 4) == 0;
    }
}

void call_header(struct rpc_call *c, const uint8_t *name, size_t n_name, const uint8_t *value, size_t n_value) {
    c->header_bytes += n_name + n_value + 32;
    if (c->header_bytes > HEADER_LIST_MAX)
        return; /* refused when they are complete */
    if (name[0] == ':') {
        pseudo_header(c, name, n_name, value, n_value);
        return;
    }
    const char *key = keep(c, name, n_name), *text = keep(c, value, n_value);
    if (strcmp(key, "te") == 0)
        return;
    if (strcmp(key, "content-type") == 0) {
        c->is_grpc = header_is_grpc_content(text);
    } else if (strcmp(key, "grpc-timeout") == 0) {
        c->timeout = text;
    } else if (strcmp(key, "grpc-encoding") == 0) {
        c->encoding = text;
    } else {
        struct header *h = arena_alloc(&c->arena, sizeof(*h));
        *h = (struct header){NULL, key, text};
        *c->metadata_last = h;
        c->metadata_last = &h->next;
    }
}

static void on_deadline(void *arg) {
    struct rpc_call *c = arg;
    c->timer = NULL;
    if (c->is_finished || outq_pending(&c->out)) { /* its answer is stuck: trailers could not overtake it */
        c->code = E_DEADLINE;
        nghttp2_submit_rst_stream(c->conn->c.session, 0, c->stream, NGHTTP2_CANCEL);
        conn_dirty(&c->conn->c);
        call_cancel(c);
    } else {
        call_give_up(c, E_DEADLINE, "Deadline exceeded");
    }
}

static void set_deadline(struct rpc_call *c) {
    uint64_t ms;
    if (!c->timeout)
        return;
    if (header_timeout_parse(c->timeout, &ms)) {
        call_give_up(c, E_PROTOCOL, "Invalid grpc-timeout '%.32s'", c->timeout);
        return;
    }
    c->deadline = loop_now_ms(c->s->l) + (int64_t)ms;
    c->timer = loop_timer_start(c->s->l, ms, on_deadline, c);
}

void call_headers_done(struct rpc_call *c) {
    /* What isn't gRPC is told so at the end of its request, as a web server would: what else is wrong in it goes first. */
    if (c->header_bytes <= HEADER_LIST_MAX && (!c->is_grpc || !c->is_post)) {
        c->http_refusal = c->is_grpc ? "405" : "415";
        return;
    }
    c->is_open = true;
    c->s->stats.calls++;
    c->s->stats.calls_now++;
    if (c->header_bytes > HEADER_LIST_MAX)
        call_give_up(c, E_TOO_BIG, "Metadata is larger than the limit of %d bytes", HEADER_LIST_MAX);
    else if (!c->method)
        call_give_up(c, E_METHOD, "Unknown method %.200s", c->path ? c->path : "");
    else if (c->peer.is_refused)
        call_give_up(c, E_TLS, "%s", err_sentence(E_TLS));
    else if (c->encoding && strcmp(c->encoding, "identity") != 0)
        call_give_up(c, E_UNSUPPORTED, "Compression '%.32s' is not supported", c->encoding);
    else
        set_deadline(c);
    if (c->method && c->method->m->max_message)
        c->in.max = c->method->m->max_message;
}

/* Keeps the sums of unfinished input: what a peer can make us hold without ever ending a message. */
static void recount(struct rpc_call *c) {
    size_t now = inq_held(&c->in);
    c->conn->in_bytes = c->conn->in_bytes + now - c->counted;
    c->s->in_bytes = c->s->in_bytes + now - c->counted;
    c->counted = now;
}

/* The bytes themselves stay: somebody on the stack may still look at a message. */
void call_input_forget(struct rpc_call *c) {
    c->in.b.n = c->in.at = 0;
    recount(c);
}

/* Of a call that was given up. A peer that doesn't read the refusal keeps the call open, but no more than that. */
static void drop_input(struct rpc_call *c) {
    if (c->conn)
        call_input_forget(c);
    buf_fini(&c->in.b);
}

static bool is_over_bounds(const struct rpc_call *c) {
    size_t connection = MAX((size_t)SERVER_CONN_IN, 4 * (size_t)c->in.max);
    return c->conn->in_bytes > connection || c->s->in_bytes > MAX((size_t)SERVER_IN, connection);
}

static void start(struct rpc_call *c, const void *message, size_t n) {
    c->is_started = true;
    c->is_ended = false;
    c->method->m->start(c->method->ctx, c, message, n);
}

static bool takes_input(const struct rpc_call *c) {
    return c->conn && !c->conn->c.dead && c->method && !c->http_refusal && !c->is_finished && !c->is_cancelled &&
           !(c->is_started && c->is_ended);
}

static void unary_end(struct rpc_call *c) {
    const uint8_t *message;
    size_t n;
    struct err e;
    int rc = inq_next(&c->in, &message, &n, &e);
    if (rc < 0)
        call_give_up(c, rc, "%s", e.text);
    else if (rc == 0)
        call_give_up(c, E_PROTOCOL, inq_is_empty(&c->in) ? "A message is missing" : "A message is cut off");
    else if (!inq_is_empty(&c->in))
        call_give_up(c, E_PROTOCOL, "More than one message for a unary method");
    else
        start(c, message, n);
    if (c->conn)
        call_input_forget(c);
    if (c->in.b.cap > SERVER_KEEP_BYTES)
        buf_fini(&c->in.b);
}

static void unary_data(struct rpc_call *c) {
    struct err e;
    int rc = inq_check(&c->in, &e);
    if (rc)
        call_give_up(c, rc, "%s", e.text);
    else if (inq_held(&c->in) > FRAME_PREFIX + (size_t)c->in.max)
        call_give_up(c, E_PROTOCOL, "More than one message for a unary method");
}

static bool may_deliver(const struct rpc_call *c) {
    return takes_input(c) && (!c->is_started || c->on_message);
}

static void deliver_end(struct rpc_call *c) {
    if (may_deliver(c) && !inq_is_empty(&c->in))
        call_give_up(c, E_PROTOCOL, "A message is cut off");
    if (may_deliver(c) && !c->is_started)
        start(c, NULL, 0);
    if (may_deliver(c) && c->is_started && !c->told_half_closed) {
        c->told_half_closed = true;
        c->on_message(c, c->data, NULL, 0);
    }
}

static void give_back(struct rpc_call *c) {
    if (!c->conn || c->conn->c.dead)
        return;
    recount(c);
    if (!c->unconsumed || (takes_input(c) && inq_has_message(&c->in)))
        return;
    nghttp2_session_consume_stream(c->conn->c.session, c->stream, c->unconsumed);
    c->unconsumed = 0;
    conn_dirty(&c->conn->c);
}

void call_deliver(struct rpc_call *c) {
    const uint8_t *message;
    size_t n;
    struct err e;
    int rc = 1;
    c->held++;
    while (may_deliver(c) && (rc = inq_next(&c->in, &message, &n, &e)) == 1) {
        if (c->is_started)
            c->on_message(c, c->data, message, n);
        else
            start(c, message, n);
    }
    if (rc < 0)
        call_give_up(c, rc, "%s", e.text);
    if (c->half_closed)
        deliver_end(c);
    give_back(c);
    call_unhold(c);
}

void call_data(struct rpc_call *c, const uint8_t *data, size_t n) {
    nghttp2_session *session = c->conn->c.session;
    if (!takes_input(c)) {
        nghttp2_session_consume(session, c->stream, n);
        return;
    }
    c->progress_ms = conn_now(&c->conn->c);
    inq_add(&c->in, data, n);
    recount(c);
    if (is_over_bounds(c)) {
        nghttp2_session_consume(session, c->stream, n);
        call_give_up(c, E_BUSY, "Too much unfinished input");
        drop_input(c);
    } else if (c->method->m->streams_in) {
        nghttp2_session_consume_connection(session, n);
        c->unconsumed += n;
        call_deliver(c);
    } else {
        nghttp2_session_consume(session, c->stream, n);
        unary_data(c);
        if (c->is_finished)
            drop_input(c);
    }
}

void call_half_closed(struct rpc_call *c) {
    c->half_closed = true;
    if (c->http_refusal)
        answer_http(c, c->http_refusal);
    else if (!takes_input(c))
        return;
    else if (c->method->m->streams_in)
        call_deliver(c);
    else
        unary_end(c);
}
