/* SPDX-License-Identifier: Apache-2.0
 *
 * What the server sends for a call: headers, the messages of its queue, trailers; or all in one, when it fails before
 * the first message.
 */
#include <stdio.h>

#include "base/mem.h"
#include "io/rpc/server.h"

enum { TRAILERS_MAX = 24 };

static const char *status_text(int code) {
    static const char *const text[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                       "9", "10", "11", "12", "13", "14", "15", "16"};
    int status = code ? err_grpc(code) : 0;
    return text[status > 0 && status < (int)ARRAY_LEN(text) ? status : code ? 2 : 0];
}

/* nghttp2 copies what isn't static before its submit function returns, so the texts may be the caller's locals. */
struct fields {
    nghttp2_nv nv[TRAILERS_MAX];
    size_t n;
    char number[16];
    struct str message;
};

static void add_trailers(struct fields *f, const struct rpc_call *c) {
    f->nv[f->n++] = header_nv_static("grpc-status", status_text(c->code));
    if (c->code) {
        header_percent_encode(&f->message, c->text ? c->text : "");
        snprintf(f->number, sizeof(f->number), "%d", -c->code);
        f->nv[f->n++] = header_nv_once("grpc-message", str_text(&f->message));
        f->nv[f->n++] = header_nv("spur-error", f->number);
    }
    if (c->code == E_UNSUPPORTED && !c->is_started)
        f->nv[f->n++] = header_nv_static("grpc-accept-encoding", "identity");
    for (const struct header *h = c->trailers; h && f->n < TRAILERS_MAX; h = h->next)
        f->nv[f->n++] = header_nv(h->name, h->value);
}

static int submit_trailers(nghttp2_session *session, const struct rpc_call *c) {
    struct fields f = {0};
    add_trailers(&f, c);
    int rc = nghttp2_submit_trailer(session, c->stream, f.nv, f.n);
    str_fini(&f.message);
    return rc;
}

/* nghttp2 asks how much to put into the next frame; conn_send_data copies it. */
static ssize_t on_source(nghttp2_session *session, int32_t stream, uint8_t *buf, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *user_data) {
    struct rpc_call *c = nghttp2_session_get_stream_user_data(session, stream);
    if (!c)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t pending = outq_pending(&c->out), n = MIN(pending, room);
    if (!pending && !c->is_finished)
        return NGHTTP2_ERR_DEFERRED;
    *flags = NGHTTP2_DATA_FLAG_NO_COPY;
    if (n == pending && c->is_finished) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (submit_trailers(session, c))
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

void answer_more(struct rpc_call *c) {
    nghttp2_session *session = c->conn->c.session;
    conn_dirty(&c->conn->c);
    if (c->headers_sent) {
        nghttp2_session_resume_data(session, c->stream);
        return;
    }
    c->headers_sent = true;
    nghttp2_nv nv[] = {
        header_nv_static(":status", "200"),
        header_nv_static("content-type", "application/grpc"),
    };
    nghttp2_data_provider source = {.read_callback = on_source};
    nghttp2_submit_response(session, c->stream, nv, ARRAY_LEN(nv), &source);
}

static void submit_trailers_only(struct rpc_call *c) {
    struct fields f = {0};
    f.nv[f.n++] = header_nv_static(":status", "200");
    f.nv[f.n++] = header_nv_static("content-type", "application/grpc");
    add_trailers(&f, c);
    c->headers_sent = true;
    nghttp2_submit_response(c->conn->c.session, c->stream, f.nv, f.n, NULL);
    conn_dirty(&c->conn->c);
    str_fini(&f.message);
}

void answer_end(struct rpc_call *c, int code, const char *text) {
    if (c->is_finished || !c->conn || c->conn->c.dead)
        return;
    c->is_finished = true;
    c->code = code;
    c->text = xstrdup(text);
    if (code && !c->headers_sent)
        submit_trailers_only(c);
    else
        answer_more(c);
}

void answer_http(struct rpc_call *c, const char *status) {
    nghttp2_nv nv = header_nv_static(":status", status);
    c->is_finished = c->headers_sent = true;
    nghttp2_submit_response(c->conn->c.session, c->stream, &nv, 1, NULL);
    conn_dirty(&c->conn->c);
}

/* The client may still be sending. It is told that nobody listens, without calling it an error. */
void answer_trailers_sent(struct rpc_call *c) {
    c->trailers_sent = true;
    if (!c->half_closed)
        nghttp2_submit_rst_stream(c->conn->c.session, 0, c->stream, NGHTTP2_NO_ERROR);
}
