/* SPDX-License-Identifier: Apache-2.0
 *
 * grpc.health.v1.Health. Request: field 1, the service's name. Answer: field 1, an enum.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "io/rpc/server.h"

enum { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

struct watch {
    struct watch *next, *prev;
    struct rpc_call *call;
    struct rpc_server *s;
    bool is_known; /* the service that it asked for */
};

/* The last field 1, NUL-terminated; the caller frees. NULL: broken. */
static char *request_parse(const void *message, size_t n) {
    struct rd r = rd_of(message, n), name = {0};
    while (rd_left(&r) && !r.bad) {
        uint64_t tag = rd_varint(&r);
        if (tag == (1 << 3 | 2))
            name = rd_bytes(&r);
        else if ((tag & 7) == 2)
            rd_bytes(&r);
        else if ((tag & 7) == 0)
            rd_varint(&r);
        else
            r.bad = true;
    }
    return r.bad ? NULL : xstrndup(name.p ? (const char *)name.p : "", rd_left(&name));
}

/* "": the server. Else one of its services. */
static bool is_service(const struct rpc_server *s, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; n && i < s->n_table; i++) {
        const char *path = s->table[i].m->path + 1;
        if (strncmp(path, name, n) == 0 && path[n] == '/')
            return true;
    }
    return n == 0;
}

static size_t encode(uint8_t out[2], const struct rpc_server *s, bool is_known) {
    out[0] = 1 << 3;
    out[1] = !is_known ? SERVICE_UNKNOWN : s->serving ? SERVING : NOT_SERVING;
    return 2;
}

static void fail(struct rpc_call *c, int code, const char *text) {
    struct err e;
    err_set(&e, code, "%s", text);
    rpc_fail(c, &e);
}

static void on_check(void *ctx, struct rpc_call *c, const void *message, size_t n) {
    struct rpc_server *s = ctx;
    autofree char *name = request_parse(message, n);
    uint8_t out[2];
    if (!name)
        fail(c, E_PROTOCOL, "Broken health request");
    else if (!is_service(s, name))
        fail(c, E_NOT_FOUND, "Unknown service");
    else
        rpc_reply(c, out, encode(out, s, true));
}

static void watch_end(struct watch *w) {
    if (w->prev)
        w->prev->next = w->next;
    else
        w->s->watches = w->next;
    if (w->next)
        w->next->prev = w->prev;
    fail(w->call, E_STOPPING, "The server stops");
    free(w);
}

static void on_watch_cancel(struct rpc_call *c, void *data) {
    watch_end(data);
}

static void watch_tell(struct watch *w) {
    uint8_t out[2];
    rpc_push(w->call, out, encode(out, w->s, w->is_known));
}

static void on_watch(void *ctx, struct rpc_call *c, const void *message, size_t n) {
    struct rpc_server *s = ctx;
    autofree char *name = request_parse(message, n);
    if (!name) {
        fail(c, E_PROTOCOL, "Broken health request");
        return;
    }
    if (s->draining) {
        fail(c, E_STOPPING, "The server stops");
        return;
    }
    struct watch *w = xnew(struct watch);
    *w = (struct watch){s->watches, NULL, c, s, is_service(s, name)};
    if (w->next)
        w->next->prev = w;
    s->watches = w;
    rpc_set_data(c, w);
    rpc_on_cancel(c, on_watch_cancel);
    watch_tell(w);
}

void health_changed(struct rpc_server *s) {
    for (struct watch *w = s->watches; w; w = w->next)
        if (w->is_known)
            watch_tell(w);
}

void health_stop(struct rpc_server *s) {
    while (s->watches)
        watch_end(s->watches);
}

const struct rpc_method *health_methods(size_t *out_n) {
    static const struct rpc_method methods[] = {
        {.path = "/grpc.health.v1.Health/Check", .max_message = 4096, .start = on_check},
        {.path = "/grpc.health.v1.Health/Watch", .max_message = 4096, .streams_out = true, .start = on_watch},
    };
    *out_n = ARRAY_LEN(methods);
    return methods;
}
