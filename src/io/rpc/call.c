/* SPDX-License-Identifier: Apache-2.0
 *
 * A call on the server: its memory, and rpc.h's functions on it. Two have a hold on it, the stream (until it is closed)
 * and the owner (from `start` until it ends the call); whoever goes last frees it.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "io/rpc/server.h"

static void call_reset(struct rpc_call *c) {
    buf_clear(&c->out.b);
    buf_clear(&c->in.b);
    arena_reset(&c->arena);
    struct buf out = c->out.b, in = c->in.b;
    struct arena arena = c->arena;
    *c = (struct rpc_call){.out.b = out, .in.b = in, .arena = arena};
}

void call_destroy(struct rpc_call *c) {
    buf_fini(&c->out.b);
    buf_fini(&c->in.b);
    arena_fini(&c->arena);
    free(c);
}

/* Puts it at the head of one of its connection's two lists. */
static void link_into(struct rpc_call **list, struct rpc_call *c) {
    c->prev = NULL;
    c->next = *list;
    if (c->next)
        c->next->prev = c;
    *list = c;
}

static void unlink_from(struct rpc_call **list, struct rpc_call *c) {
    if (c->prev)
        c->prev->next = c->next;
    else
        *list = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->next = c->prev = NULL;
}

struct rpc_call *call_new(struct server_conn *sc, int32_t stream) {
    struct rpc_server *s = sc->s;
    struct rpc_call *c = s->free_calls;
    if (c) {
        s->free_calls = c->next;
        s->n_free_calls--;
        c->next = NULL;
    } else {
        c = xnew(struct rpc_call);
    }
    s->refs++;
    c->s = s;
    c->conn = sc;
    c->stream = stream;
    c->peer = sc->peer;
    c->metadata_last = &c->metadata;
    c->deadline = INT64_MAX;
    c->in.max = s->conf.max_message;
    c->is_ended = true; /* nobody has the handle yet */
    c->progress_ms = conn_now(&sc->c);
    link_into(&sc->calls, c);
    sc->n_calls++;
    return c;
}

static void keep_or_free(struct rpc_call *c) {
    struct rpc_server *s = c->s;
    if (!s->freed && s->n_free_calls < SERVER_FREE_CALLS && c->out.b.cap <= SERVER_KEEP_BYTES &&
        c->in.b.cap <= SERVER_KEEP_BYTES) {
        call_reset(c);
        c->next = s->free_calls;
        s->free_calls = c;
        s->n_free_calls++;
        return;
    }
    call_destroy(c);
}

static void call_free(struct rpc_call *c) {
    struct rpc_server *s = c->s;
    if (c->is_open) {
        s->stats.calls_now--;
        s->stats.failed += c->code != 0;
    }
    if (c->home) {
        unlink_from(&c->home->orphans, c);
        c->home->n_orphans--;
    }
    free(c->text);
    keep_or_free(c);
    server_unref(s);
}

static void maybe_free(struct rpc_call *c) {
    if (!c->held && !c->conn && c->is_ended)
        call_free(c);
}

void call_unhold(struct rpc_call *c) {
    c->held--;
    maybe_free(c);
}

void call_cancel(struct rpc_call *c) {
    if (c->is_cancelled)
        return;
    c->is_cancelled = true;
    loop_timer_stop(c->timer);
    c->timer = NULL;
    if (c->is_ended || !c->on_cancel)
        return;
    c->held++;
    c->on_cancel(c, c->data);
    call_unhold(c);
}

void call_give_up(struct rpc_call *c, int code, const char *fmt, ...) {
    struct err e;
    va_list ap;
    va_start(ap, fmt);
    err_vset(&e, code, fmt, ap);
    va_end(ap);
    c->held++;
    answer_end(c, code, e.text);
    call_cancel(c);
    call_unhold(c);
}

void call_closed(struct rpc_call *c) {
    struct server_conn *sc = c->conn;
    call_input_forget(c);
    sc->c.out_bytes -= outq_pending(&c->out);
    outq_drop(&c->out);
    loop_timer_stop(c->timer);
    c->timer = NULL;
    if (!c->code && !c->trailers_sent)
        c->code = E_CANCELLED;
    unlink_from(&sc->calls, c);
    sc->n_calls--;
    c->conn = NULL;
    c->held++;
    if (!c->is_ended) {
        c->home = sc;
        link_into(&sc->orphans, c);
        sc->n_orphans++;
        call_cancel(c);
    }
    call_unhold(c);
    if (!sc->c.dead && sc->n_calls == 0)
        server_conn_idle(sc);
}

void calls_forget_home(struct server_conn *sc) {
    while (sc->orphans) {
        struct rpc_call *c = sc->orphans;
        unlink_from(&sc->orphans, c);
        c->home = NULL;
    }
}

const struct rpc_peer *rpc_peer(const struct rpc_call *c) {
    return &c->peer;
}

const struct rpc_method *rpc_method_of(const struct rpc_call *c) {
    return c->method->m;
}

const char *rpc_metadata(const struct rpc_call *c, const char *name) {
    return header_find(c->metadata, name);
}

int64_t rpc_deadline_ms(const struct rpc_call *c) {
    return c->deadline;
}

void rpc_set_data(struct rpc_call *c, void *data) {
    c->data = data;
}

void *rpc_data(const struct rpc_call *c) {
    return c->data;
}

void rpc_on_cancel(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data)) {
    c->on_cancel = fn;
}

bool rpc_is_cancelled(const struct rpc_call *c) {
    return c->is_cancelled;
}

void rpc_on_message(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data, const void *message, size_t n)) {
    c->on_message = fn;
    if (!c->held) /* else whoever called the owner delivers */
        call_deliver(c);
}

void rpc_on_drain(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data)) {
    c->on_drain = fn;
}

void rpc_trailer(struct rpc_call *c, const char *name, const char *value) {
    must(header_check(name, "", NULL) == 0);
    char *text = arena_strdup(&c->arena, value);
    for (char *p = text; *p; p++)
        if (*p < 0x20 || *p > 0x7e)
            *p = '?';
    struct header *h = arena_alloc(&c->arena, sizeof(*h));
    *h = (struct header){c->trailers, arena_strdup(&c->arena, name), text};
    c->trailers = h;
}

static void queue(struct rpc_call *c, const void *message, size_t n) {
    size_t before = outq_pending(&c->out);
    outq_message(&c->out, message, n);
    c->conn->c.out_bytes += outq_pending(&c->out) - before;
}

static bool is_gone(const struct rpc_call *c) {
    return !c->conn || c->is_cancelled;
}

size_t rpc_push(struct rpc_call *c, const void *message, size_t n) {
    must(!c->is_ended && c->method->m->streams_out);
    if (is_gone(c))
        return 0;
    if (outq_pending(&c->out) + n > SERVER_CALL_OUT) { /* the owner doesn't look at what this function returns */
        nghttp2_submit_rst_stream(c->conn->c.session, 0, c->stream, NGHTTP2_ENHANCE_YOUR_CALM);
        conn_dirty(&c->conn->c);
        c->code = E_TOO_BIG;
        return outq_pending(&c->out);
    }
    queue(c, message, n);
    answer_more(c);
    return outq_pending(&c->out);
}

void rpc_reply(struct rpc_call *c, const void *message, size_t n) {
    must(!c->is_ended);
    c->held++;
    c->is_ended = true;
    if (!is_gone(c)) {
        if (message || !c->method->m->streams_out) /* an empty message may well have no address */
            queue(c, message, n);
        answer_end(c, 0, NULL);
    }
    call_unhold(c);
}

void rpc_fail(struct rpc_call *c, const struct err *why) {
    must(!c->is_ended);
    int code = why && why->code ? why->code : E_INTERNAL;
    c->held++;
    c->is_ended = true;
    if (!is_gone(c))
        answer_end(c, code, why && why->code ? why->text : err_sentence(code));
    call_unhold(c);
}
