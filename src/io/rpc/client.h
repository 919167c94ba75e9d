/* SPDX-License-Identifier: Apache-2.0
 *
 * What the client's files share: the channel, its connections, their requests. Internal to io/rpc.
 *
 *   channel.c         life, dialling, which connection a request goes to
 *   client_session.c  one connection: nghttp2's callbacks, pings, GOAWAY
 *   request.c         rpc.h's functions on a request, its sending and its end
 *   response.c        what comes back for it
 */
#ifndef SPUR_IO_RPC_CLIENT_H
#define SPUR_IO_RPC_CLIENT_H

#include "base/arena.h"
#include "io/loop/address.h"
#include "io/rpc/conn.h"
#include "io/rpc/dial.h"
#include "io/rpc/header.h"
#include "io/rpc/rpc.h"

enum {
    CLIENT_METADATA_MAX = 48,    /* entries of one request */
    CLIENT_FREE_REQUESTS = 64,   /* kept for the next ones */
    CLIENT_KEEP_BYTES = 64 << 10,
    CLIENT_STREAM_WINDOW = 1 << 20, CLIENT_CONN_WINDOW = 8 << 20,
};

struct client_conn;

/* Freed when its owner and its connections are gone. */
struct rpc_channel {
    size_t refs;
    bool freed; /* by its owner */
    struct loop *l;
    struct rpc_channel_conf conf;
    struct address *addresses;
    size_t n, at, next;          /* `at`: connected to, or tried last; `next`: where to begin */
    struct dial *dial;
    struct rpc_connector connector; /* begin NULL: none */
    struct tls *tls;
    void *connecting;
    struct client_conn *current; /* takes new requests; NULL: none does */
    struct client_conn *conns;   /* all, also those that the server is winding down */
    struct rpc_request *waiting, *waiting_last; /* for a connection, or for their owners */
    uint64_t dials;                             /* that have ended */
    uint64_t silences;                          /* connections in a row that were given up because nothing came */
    struct rpc_request *free_requests;
    size_t n_free_requests;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
};

struct client_conn {
    struct conn c; /* first */
    struct rpc_channel *ch;
    struct client_conn *next, *prev;
    struct rpc_request *requests;
    size_t which;    /* its address */
    bool is_up;      /* the server's settings came */
    bool is_plain;   /* over TCP, without TLS */
    unsigned generation; /* of the TLS that it was dialled with */
    bool is_left;    /* gets no new requests, and is closed behind the last one */
    bool is_pinging;
    uint64_t pinged_ms;
    struct loop_timer *watch; /* runs while there are requests */
};

struct rpc_request {
    struct outq out; /* first: conn_send_data takes it from there */
    struct inq in;
    struct rpc_channel *ch;
    struct client_conn *conn; /* NULL: waiting, or finished */
    struct rpc_request *next, *prev;
    int32_t stream; /* 0: none */
    struct arena arena;
    const char *method;
    struct header *metadata, *trailers;
    struct loop_timer *timer;
    uint64_t idle_ms; /* streams */
    int64_t deadline; /* unary calls, on loop_now_ms's clock */
    rpc_done_fn done;
    bool (*on_message)(void *arg, const void *message, size_t n); /* NULL: unary */
    void *arg;
    struct loop_late late; /* to be done at the end of the turn: fail early, go on after a pause */
    struct err *early;     /* why it can't even be sent; in the arena */
    uint64_t dials;        /* its channel's, when it began to wait */
    unsigned held;         /* functions on the stack that look at it after they called its owner */
    bool is_retried, is_sent, is_paused, is_ended, is_finished;
    size_t unconsumed; /* bytes that the stream's window was not given back */
    /* the response */
    size_t header_bytes;
    int http_status, grpc_status, spur_error; /* -1: none came */
    bool is_grpc;
    char *text; /* grpc-message, decoded; in the arena */
};

/* channel.c */
void channel_enqueue(struct rpc_channel *ch, struct rpc_request *r); /* behind the others */
void channel_dequeue(struct rpc_channel *ch, struct rpc_request *r);
void channel_kick(struct rpc_channel *ch); /* sends what waits, or sees to a connection */
void channel_unref(struct rpc_channel *ch);
void channel_conn_lost(struct rpc_channel *ch, struct client_conn *cc); /* takes no new requests any more */
/* How a request ended, before it leaves its connection: another address may do better. */
void channel_ended(struct rpc_channel *ch, struct client_conn *cc, int code);

/* client_session.c */
struct client_conn *client_conn_new(struct rpc_channel *ch, struct sock *sock, size_t which);
bool client_conn_is_stale(const struct client_conn *cc); /* idle, and the server has closed it in the meantime */
void client_conn_add(struct client_conn *cc, struct rpc_request *r);
void client_conn_remove(struct client_conn *cc, struct rpc_request *r);
void client_callbacks_set(nghttp2_session_callbacks *cb);

/* request.c */
void request_submit(struct rpc_request *r, struct client_conn *cc);
void request_finish(struct rpc_request *r, int code, const struct err *why, const void *message, size_t n);
void request_fail(struct rpc_request *r, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void request_unprocessed(struct rpc_request *r, const char *why); /* certainly not: once more, or fail */
void request_unhold(struct rpc_request *r);                       /* may free it */
void request_destroy(struct rpc_request *r);                      /* of those that are kept for later */
void request_idle_restart(struct rpc_request *r);

/* response.c */
void response_reset(struct rpc_request *r);
void response_begin(struct rpc_request *r); /* of a block of headers */
void response_header(struct rpc_request *r, const uint8_t *name, size_t n_name, const uint8_t *value, size_t n_value);
void response_data(struct rpc_request *r, const uint8_t *data, size_t n);
void response_end(struct rpc_request *r);   /* END_STREAM */
void response_resume(struct rpc_request *r);

#endif
