/* SPDX-License-Identifier: Apache-2.0 */
#include "echo.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/loop/loop.h"

struct doing {
    struct echo *e;
    struct rpc_call *c;
    struct loop_timer *timer;
    struct buf message;
    uint64_t left, size; /* Numbers */
    bool ignores_pressure;
};

static uint64_t number_of(const struct rpc_call *c, const char *name, uint64_t otherwise) {
    uint64_t v;
    return str_to_u64(rpc_metadata(c, name), UINT32_MAX, &v) == 0 ? v : otherwise;
}

static void doing_free(struct doing *d) {
    loop_timer_stop(d->timer);
    buf_fini(&d->message);
    d->e->ended++;
    free(d);
}

static void on_cancel(struct rpc_call *c, void *data) {
    struct doing *d = data;
    d->e->cancelled++;
    d->e->never_open -= rpc_metadata(c, "never") != NULL;
    doing_free(d);
    rpc_reply(c, NULL, 0); /* does nothing but end the handle */
}

static struct doing *begin(struct echo *e, struct rpc_call *c, const void *message, size_t n) {
    struct doing *d = xnew(struct doing);
    d->e = e;
    d->c = c;
    buf_add(&d->message, message, n);
    e->started++;
    e->last_peer = *rpc_peer(c);
    rpc_set_data(c, d);
    rpc_on_cancel(c, on_cancel);
    const char *trailer = rpc_metadata(c, "trailer");
    if (trailer)
        rpc_trailer(c, "echoed", trailer);
    return d;
}

static void answer(void *arg) {
    struct doing *d = arg;
    struct rpc_call *c = d->c;
    uint64_t fail = number_of(c, "fail", 0);
    d->timer = NULL;
    if (fail) {
        struct err e;
        const char *text = rpc_metadata(c, "bytes") ? "1\n2\t100% \xc3\xa9" : rpc_metadata(c, "text");
        err_set(&e, -(int)fail, text ? "%s" : NULL, text);
        rpc_fail(c, &e);
    } else {
        rpc_reply(c, d->message.p, d->message.n);
    }
    doing_free(d);
}

static void on_unary(void *ctx, struct rpc_call *c, const void *message, size_t n) {
    struct echo *e = ctx;
    struct doing *d = begin(e, c, message, n);
    uint64_t sleep_ms = number_of(c, "sleep-ms", 0);
    if (e->on_start)
        e->on_start(e, c);
    if (rpc_is_cancelled(c))
        return;
    if (rpc_metadata(c, "never"))
        e->never_open++;
    else if (sleep_ms)
        d->timer = loop_timer_start(e->l, sleep_ms, answer, d);
    else
        answer(d);
}

static void numbers_go(struct rpc_call *c, void *data) {
    struct doing *d = data;
    autofree uint8_t *bytes = xcalloc(1, d->size + 1);
    size_t pending = 0;
    while (d->left && (d->ignores_pressure || pending < 256 << 10)) {
        memset(bytes, (int)(d->left & 0xff), d->size);
        pending = rpc_push(c, bytes, d->size);
        d->e->pending_max = MAX(d->e->pending_max, pending);
        d->left--;
    }
    if (d->left)
        return;
    if (number_of(c, "fail", 0)) {
        answer(d);
        return;
    }
    if (rpc_metadata(c, "never"))
        return;
    rpc_reply(c, NULL, 0);
    doing_free(d);
}

static void on_drain(struct rpc_call *c, void *data) {
    ((struct doing *)data)->e->drained++;
    numbers_go(c, data);
}

static void on_numbers(void *ctx, struct rpc_call *c, const void *message, size_t n) {
    struct echo *e = ctx;
    struct doing *d = begin(e, c, message, n);
    d->left = MIN(number_of(c, "count", 1), (uint64_t)100000); /* fuzzers ask for more */
    d->size = MIN(number_of(c, "size", n), (uint64_t)16 << 20);
    d->ignores_pressure = rpc_metadata(c, "flood") != NULL;
    e->never_open += rpc_metadata(c, "never") != NULL;
    rpc_on_drain(c, on_drain);
    numbers_go(c, d);
}

static void on_chat_message(struct rpc_call *c, void *data, const void *message, size_t n) {
    struct doing *d = data;
    if (message) {
        d->e->messages++;
        rpc_push(c, message, n);
        return;
    }
    rpc_reply(c, NULL, 0);
    if (d->e->chat == c)
        d->e->chat = NULL;
    doing_free(d);
}

static void on_chat(void *ctx, struct rpc_call *c, const void *message, size_t n) {
    struct echo *e = ctx;
    begin(e, c, message, n);
    e->chat = c;
    if (message) {
        e->messages++;
        rpc_push(c, message, n);
    }
    if (!e->late_on_message)
        rpc_on_message(c, on_chat_message);
}

void echo_forget(struct echo *e, struct rpc_call *c) {
    doing_free(rpc_data(c));
    rpc_reply(c, NULL, 0);
}

void echo_listen(struct echo *e) {
    rpc_on_message(e->chat, on_chat_message);
}

const struct rpc_method *echo_methods(size_t *out_n) {
    static const struct rpc_method methods[] = {
        {.path = "/spur.test.Echo/Unary", .start = on_unary},
        {.path = "/spur.test.Echo/Numbers", .streams_out = true, .start = on_numbers},
        {.path = "/spur.test.Echo/Chat", .streams_in = true, .streams_out = true, .start = on_chat},
        {.path = "/spur.test.Echo/Small", .max_message = 100, .start = on_unary},
    };
    *out_n = ARRAY_LEN(methods);
    return methods;
}
