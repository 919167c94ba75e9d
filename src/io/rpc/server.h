/* SPDX-License-Identifier: Apache-2.0
 *
 * What the server's files share: the server, its connections, their calls. Internal to io/rpc.
 *
 *   server.c   life, drain, the tick          session.c   nghttp2's callbacks: frames to calls
 *   greet.c    which protocol a connection speaks
 *   listen.c   sockets that accept            call.c      rpc.h's functions on a call
 *   health.c, reflection.c: services of its   answer.c    headers, trailers, bytes out
 *   own, written to rpc.h                     input.c     headers and bytes in
 */
#ifndef SPUR_IO_RPC_SERVER_H
#define SPUR_IO_RPC_SERVER_H

#include "base/arena.h"
#include "base/map.h"
#include "io/rpc/conn.h"
#include "io/rpc/guard.h"
#include "io/rpc/header.h"
#include "io/rpc/rpc.h"

enum {
    SERVER_REQUEST_MS = 30000,     /* a call whose first message makes no progress for so long is given up */
    SERVER_LAST_MS = 1000,         /* how long after the grace of a drain the last bytes may take */
    SERVER_CALL_OUT = 64 << 20,    /* bytes that one call may leave unsent before it is cut off */
    SERVER_CONN_OUT = 64 << 20,    /* bytes that wait on one connection before it gets no new calls */
    SERVER_CONN_IN = 32 << 20,     /* bytes of unfinished messages on one connection, at least; see input.c */
    SERVER_IN = 1 << 30,           /* and on all */
    SERVER_FREE_CALLS = 1024,      /* kept for the next ones */
    SERVER_KEEP_BYTES = 64 << 10,  /* a buffer larger than this isn't kept */
    SERVER_STREAM_WINDOW = 1 << 20, SERVER_CONN_WINDOW = 8 << 20,
};

/* A row of the method table: the owner's, or one of ours. */
struct method {
    const struct rpc_method *m;
    void *ctx;
};

struct listener;
struct server_conn;
struct greeting;

/* Freed when its owner, its connections and its calls are gone. */
struct rpc_server {
    size_t refs;
    bool freed; /* by its owner */
    struct loop *l;
    struct rpc_server_conf conf;
    struct method *table;
    size_t n_table;
    struct maps methods; /* path → struct method */
    struct buf descriptors; /* a FileDescriptorSet: the owner's, and that of the standard services */
    struct listener *listeners;
    struct server_conn *conns;
    struct greeting *greetings; /* connections that have not said which protocol they speak */
    size_t n_greetings;
    struct rpc_server_stats stats;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    struct loop_timer *tick, *grace, *drained_timer;
    struct rpc_call *free_calls;
    size_t n_free_calls, in_bytes;
    struct watch *watches; /* health.c's */
    bool serving, draining, grace_over;
    void (*drained)(void *arg);
    void *drained_arg;
};

enum drain_state { DRAIN_NOT, DRAIN_NOTICE, DRAIN_LAST };

struct server_conn {
    struct conn c; /* first */
    struct rpc_server *s;
    struct server_conn *next, *prev;
    struct rpc_peer peer;
    struct guard guard;
    struct rpc_call *calls;   /* whose stream is open */
    struct rpc_call *orphans; /* whose stream is closed and that their owner has not ended */
    size_t n_calls, n_orphans, in_bytes;
    uint64_t idle_ms, notice_ms; /* on uv_now's clock: without calls since; first GOAWAY sent */
    bool is_up;                  /* the peer's preface and settings came */
    bool is_flooding;            /* was sent away */
    bool given_up;               /* its calls were ended at the end of a drain's grace */
    enum drain_state drain;
};

struct rpc_call {
    struct outq out; /* first: conn_send_data takes it from there */
    struct inq in;
    struct rpc_server *s;
    struct server_conn *conn; /* NULL once the stream is closed */
    struct server_conn *home; /* of an orphan; NULL once the connection is down */
    struct rpc_call *next, *prev;
    int32_t stream;
    const struct method *method; /* NULL: unknown path */
    struct rpc_peer peer;
    struct arena arena; /* metadata, trailers */
    struct header *metadata, **metadata_last, *trailers;
    size_t header_bytes;
    const char *path, *encoding, *timeout; /* :path, grpc-encoding, grpc-timeout; NULL: absent */
    bool is_post, is_grpc;
    const char *http_refusal; /* the status of what is not gRPC at all; NULL: it is */
    int64_t deadline;
    struct loop_timer *timer;
    uint64_t progress_ms; /* the last byte of the first message, on uv_now's clock */
    size_t unconsumed;    /* bytes that the stream's window was not given back */
    size_t counted;       /* bytes of `in` that are in its connection's in_bytes */
    unsigned held;        /* functions on the stack that look at it after they called its owner */
    bool is_open;         /* its headers are complete and in order; counted in calls_now */
    bool is_started;      /* the owner has the handle */
    bool is_ended;        /* the owner has no handle: it ended the call, or never got it */
    bool is_cancelled;
    bool half_closed;     /* the client has sent all */
    bool told_half_closed;
    bool headers_sent, trailers_sent;
    bool is_finished;     /* nothing more comes behind `out` but the trailers */
    int code;             /* how it ended: 0, or an error's */
    char *text;           /* its text; NULL: none */
    void *data;
    void (*on_cancel)(struct rpc_call *c, void *data);
    void (*on_message)(struct rpc_call *c, void *data, const void *message, size_t n);
    void (*on_drain)(struct rpc_call *c, void *data);
};

/* server.c */
void server_unref(struct rpc_server *s);
struct server_conn *server_conn_add(struct rpc_server *s, struct sock *sock, const struct rpc_peer *peer);
void server_tick_start(struct rpc_server *s);
bool server_make_room(struct rpc_server *s);   /* for one more connection; false: all are busy */
void server_conn_pong(struct server_conn *sc); /* the answer to the ping that went with the first GOAWAY */
void server_conn_idle(struct server_conn *sc); /* its last call ended */

/* greet.c: waits for the first bytes of a connection, where two protocols share a port. Takes the socket. */
void greet(struct rpc_server *s, struct sock *sock, const struct rpc_peer *peer);
void greetings_close(struct rpc_server *s);
void greetings_tick(struct rpc_server *s, uint64_t now);

/* listen.c */
void listeners_close(struct rpc_server *s);

/* session.c */
void session_callbacks_set(nghttp2_session_callbacks *cb);
void session_flooded(struct server_conn *sc);

/* call.c */
struct rpc_call *call_new(struct server_conn *sc, int32_t stream);
void call_destroy(struct rpc_call *c); /* of those that are kept for later */
void call_closed(struct rpc_call *c);                       /* the stream is gone */
void call_cancel(struct rpc_call *c);                       /* tells the owner, once */
void call_give_up(struct rpc_call *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void calls_forget_home(struct server_conn *sc);             /* the connection is down */
void call_unhold(struct rpc_call *c);                       /* may free it */

/* input.c */
void call_header(struct rpc_call *c, const uint8_t *name, size_t n_name, const uint8_t *value, size_t n_value);
void call_headers_done(struct rpc_call *c);
void call_data(struct rpc_call *c, const uint8_t *data, size_t n);
void call_half_closed(struct rpc_call *c);
void call_deliver(struct rpc_call *c); /* messages that wait for on_message */
void call_input_forget(struct rpc_call *c);

/* answer.c */
void answer_http(struct rpc_call *c, const char *status); /* not gRPC at all: "415" */
void answer_end(struct rpc_call *c, int code, const char *text); /* after what is in `out` */
void answer_more(struct rpc_call *c);                            /* something was put into `out` */
void answer_trailers_sent(struct rpc_call *c);

/* health.c, reflection.c: rows of the table; ctx is the server */
const struct rpc_method *health_methods(size_t *out_n);
const struct rpc_method *reflection_methods(size_t *out_n);
void health_changed(struct rpc_server *s);
void health_stop(struct rpc_server *s); /* ends the watches, which would hold up a drain */

#endif
