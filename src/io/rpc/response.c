/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server sends for a request: headers, messages, trailers, and what they amount to.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/rpc/client.h"

void response_reset(struct rpc_request *r) {
    r->http_status = r->grpc_status = r->spur_error = -1;
    r->header_bytes = 0;
    r->is_grpc = false;
    r->trailers = NULL;
    r->text = NULL;
    r->in.b.n = r->in.at = 0;
    r->unconsumed = 0;
}

/* An interim answer (1xx) says nothing about the one that follows. */
void response_begin(struct rpc_request *r) {
    if (r->http_status >= 100 && r->http_status < 200)
        r->http_status = -1;
}

static int number(const char *text, int otherwise) {
    uint64_t v;
    return str_to_u64(text, 1000000, &v) == 0 ? (int)v : otherwise;
}

static void known_header(struct rpc_request *r, const char *name, char *value) {
    if (strcmp(name, ":status") == 0) {
        r->http_status = number(value, 0);
    } else if (strcmp(name, "content-type") == 0) {
        r->is_grpc = str_starts(value, "application/grpc");
    } else if (strcmp(name, "grpc-status") == 0) {
        r->grpc_status = number(value, 2);
    } else if (strcmp(name, "spur-error") == 0) {
        r->spur_error = number(value, -1);
    } else if (strcmp(name, "grpc-message") == 0) {
        header_percent_decode(value);
        r->text = value;
    } else {
        struct header *h = arena_alloc(&r->arena, sizeof(*h));
        *h = (struct header){r->trailers, name, value};
        r->trailers = h;
    }
}

void response_header(struct rpc_request *r, const uint8_t *name, size_t n_name, const uint8_t *value, size_t n_value) {
    r->header_bytes += n_name + n_value + 32;
    if (r->header_bytes > 2 * HEADER_LIST_MAX) /* headers and trailers */
        return;                                /* response_end says so */
    known_header(r, arena_strndup(&r->arena, (const char *)name, n_name),
                 arena_strndup(&r->arena, (const char *)value, n_value));
}

static int outcome(const struct rpc_request *r, struct err *e) {
    if (r->header_bytes > 2 * HEADER_LIST_MAX)
        return err_set(e, E_TOO_BIG, "The answer's headers are larger than the limit");
    if (r->grpc_status < 0 && r->http_status != 200)
        return err_set(e, header_code_of_http(r->http_status), "The server answered with HTTP status %d",
                       r->http_status);
    if (r->grpc_status < 0)
        return err_set(e, E_PROTOCOL, r->is_grpc ? "The answer has no grpc-status" : "The answer is not gRPC");
    if (r->grpc_status == 0)
        return 0;
    int code = r->spur_error > 0 && err_known(-r->spur_error) ? -r->spur_error : err_from_grpc(r->grpc_status);
    return err_set(e, code, "%s", r->text && *r->text ? r->text : err_sentence(code));
}

static void unary_end(struct rpc_request *r) {
    const uint8_t *message = NULL;
    size_t n = 0;
    struct err e;
    int code = outcome(r, &e);
    if (code == 0) {
        int rc = inq_next(&r->in, &message, &n, &e);
        if (rc < 0)
            code = rc;
        else if (rc == 0 || !inq_is_empty(&r->in))
            code = err_set(&e, E_PROTOCOL, "The answer is not one message");
    }
    request_finish(r, code, code ? &e : NULL, code ? NULL : message, code ? 0 : n);
}

/* Hands messages to the owner while it takes them. */
static void pump(struct rpc_request *r) {
    const uint8_t *message;
    size_t n;
    struct err e;
    int rc = 0;
    while (!r->is_finished && !r->is_paused && (rc = inq_next(&r->in, &message, &n, &e)) == 1) {
        request_idle_restart(r);
        if (!r->on_message(r->arg, message, n) && !r->is_finished) {
            r->is_paused = true;
            loop_timer_stop(r->timer); /* it is the owner who is slow */
            r->timer = NULL;
        }
    }
    if (!r->is_finished && rc < 0)
        request_fail(r, rc, "%s", e.text);
}

static void give_back(struct rpc_request *r) {
    if (r->is_finished || !r->unconsumed || (r->is_paused && inq_has_message(&r->in)))
        return;
    if (r->stream) {
        nghttp2_session_consume_stream(r->conn->c.session, r->stream, r->unconsumed);
        conn_dirty(&r->conn->c);
    }
    r->unconsumed = 0;
}

static void stream_end(struct rpc_request *r) {
    struct err e;
    if (r->is_finished || (r->is_paused && inq_has_message(&r->in)))
        return;
    int code = outcome(r, &e);
    if (code == 0 && !inq_is_empty(&r->in))
        code = err_set(&e, E_PROTOCOL, "A message is cut off");
    request_finish(r, code, code ? &e : NULL, NULL, 0);
}

void response_data(struct rpc_request *r, const uint8_t *data, size_t n) {
    nghttp2_session *session = r->conn->c.session;
    struct err e;
    if (r->http_status != 200 || !r->is_grpc) {
        nghttp2_session_consume(session, r->stream, n);
        return;
    }
    inq_add(&r->in, data, n);
    if (r->on_message) {
        nghttp2_session_consume_connection(session, n);
        r->unconsumed += n;
        r->held++;
        pump(r);
        give_back(r);
        request_unhold(r);
        return;
    }
    nghttp2_session_consume(session, r->stream, n);
    int rc = inq_check(&r->in, &e);
    if (rc == 0 && inq_held(&r->in) > FRAME_PREFIX + (size_t)r->in.max)
        rc = err_set(&e, E_PROTOCOL, "The answer is not one message");
    if (rc)
        request_fail(r, rc, "%s", e.text);
}

void response_end(struct rpc_request *r) {
    r->is_ended = true;
    r->held++;
    if (r->on_message)
        stream_end(r);
    else
        unary_end(r);
    request_unhold(r);
}

void response_resume(struct rpc_request *r) {
    r->held++;
    r->is_paused = false;
    request_idle_restart(r);
    pump(r);
    give_back(r);
    if (r->is_ended)
        stream_end(r);
    request_unhold(r);
}
