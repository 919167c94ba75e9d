/* SPDX-License-Identifier: Apache-2.0
 *
 * gRPC over HTTP/2 (nghttp2) on a loop: server and client. Messages are bytes here; what is in them is wire/'s.
 *
 * Written to the gRPC over HTTP/2 protocol: 5-byte prefix, `te: trailers`, `grpc-timeout`, trailers with
 * `grpc-status` and percent-encoded `grpc-message`, Trailers-Only answers, unknown compression refused with
 * UNIMPLEMENTED and `grpc-accept-encoding`, GOAWAY with retry of calls that the peer never saw, bounds on streams,
 * header lists, resets, pings and settings of one connection. A failed call also carries trailer `spur-error`: the
 * number of the row of base/err.def, so that both sides speak of the same mistake.
 *
 * Everything runs on the thread of the loop it was made with. Callbacks may make and cancel calls.
 */
#ifndef SPUR_IO_RPC_H
#define SPUR_IO_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct loop;
struct tls;

/* ------------------------------------------------------------------ server */

struct rpc_server;
struct rpc_call;

struct rpc_peer {
    bool is_local;       /* a unix socket, so that uid, gid and pid are the kernel's word (SO_PEERCRED) */
    uid_t uid;
    gid_t gid;
    pid_t pid;
    char address[64];    /* "127.0.0.1:5123", "[::1]:5123" or "unix" */
    uint32_t member_id;  /* of rpc_server_adopt: what was proven before the first byte of gRPC; 0: nothing */
    bool is_tls;
    bool is_refused;     /* in plain, where TLS is required: calls end with E_TLS, and a second protocol's owner says so */
};

/* A method. `start` is called once the first (for a unary method: the one, whole) message is there; for streams_in with
 * NULL when the client half-closed without sending one. It answers now or later, exactly once, with rpc_reply or
 * rpc_fail; the message is borrowed until it returns. */
struct rpc_method {
    const char *path; /* "/spur.v1.Controller/SubmitJob" */
    bool streams_in;  /* the client may send many messages: on_message gets those after the first */
    bool streams_out; /* rpc_push may be used before the end */
    uint32_t max_message; /* bytes; 0: the server's default */
    void (*start)(void *ctx, struct rpc_call *call, const void *message, size_t n);
};

struct rpc_server_conf {
    const struct rpc_method *methods; /* borrowed */
    size_t n_methods;
    void *ctx;                 /* first argument of start */
    uint32_t max_message;      /* default 8 MiB where 0 */
    uint32_t max_streams;      /* a connection; default 256 */
    uint32_t max_connections;  /* default 4096; one more takes the place of the one that is idle longest, if any is */
    uint64_t idle_ms;          /* a connection with no stream is closed after; 0: never */
    uint64_t handshake_ms;     /* a connection that sends no HTTP/2 preface is closed after; default 10,000 */
    /* A serialized FileDescriptorSet for the reflection service (grpc.reflection.v1 and v1alpha), which adds those of the
     * standard services itself; NULL: no reflection. */
    const void *descriptors;
    size_t n_descriptors;
    /* A second protocol on the same port, known by its first bytes; NULL: none. A connection that begins with them is
     * on_other's, as a descriptor that does not block, with what was read behind them (at most RPC_OTHER_REST bytes). */
    void (*on_other)(void *arg, int fd, const struct rpc_peer *peer, const void *rest, size_t n_rest);
    void *other_arg;
    const char *other_magic; /* borrowed */
    size_t n_other_magic;
    struct tls *tls; /* of connections over TCP (io/tls/tls.h); borrowed; NULL: off */
};
#define RPC_OTHER_REST 4096

/* Answers grpc.health.v1.Health (Check, Watch) and reflection itself. */
struct rpc_server *rpc_server_new(struct loop *l, const struct rpc_server_conf *conf);
/* "[::]:6817", "0.0.0.0:6817", "host:port" (port 0: any), "unix:/path" (mode 0666, a stale socket is replaced, a live
 * one is refused). [::] takes IPv4 too, and falls back to 0.0.0.0 where the machine has no IPv6. out_port may be NULL. */
int rpc_server_listen(struct rpc_server *s, const char *address, uint16_t *out_port, struct err *e);
/* Serves a connection that was made elsewhere; takes the descriptor. `member_id`: of rpc_peer. Gone at once where the
 * server takes no more. */
void rpc_server_adopt(struct rpc_server *s, int fd, uint32_t member_id, const char *address);
/* Asks clients that are connected over TCP in plain to connect anew, when their calls are done: TLS is required now. */
void rpc_server_retire_plain(struct rpc_server *s);
void rpc_server_set_serving(struct rpc_server *s, bool serving); /* what Health answers */
/* Stops listening at once, sends GOAWAY, lets calls end for at most grace_ms, then calls done (may be NULL). */
void rpc_server_drain(struct rpc_server *s, uint64_t grace_ms, void (*done)(void *arg), void *arg);
void rpc_server_free(struct rpc_server *s); /* at once; open calls are cancelled */

struct rpc_server_stats {
    uint64_t connections, connections_now, calls, calls_now, failed, refused_floods;
};
struct rpc_server_stats rpc_server_stats(const struct rpc_server *s);

const struct rpc_method *rpc_method_of(const struct rpc_call *c);
const struct rpc_peer *rpc_peer(const struct rpc_call *c);
/* By its name in lower case; NULL: absent. The first of several. "-bin" metadata is the base64 that was sent. */
const char *rpc_metadata(const struct rpc_call *c, const char *name);
int64_t rpc_deadline_ms(const struct rpc_call *c); /* on loop_now_ms's clock; INT64_MAX: none */
void rpc_set_data(struct rpc_call *c, void *data);
void *rpc_data(const struct rpc_call *c);
/* The client went away, reset the stream, or its deadline passed. Afterwards rpc_reply, rpc_fail and rpc_push still may
 * be called and do nothing; the handle stays valid until one of the first two. */
void rpc_on_cancel(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data));
bool rpc_is_cancelled(const struct rpc_call *c);
/* Streaming methods: next messages, then NULL when the client half-closed. Until it is set they wait, and the client's
 * window with them; what waits is delivered before this returns, or after `start` returned. */
void rpc_on_message(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data, const void *message, size_t n));
/* Sends one message of a stream (copied). Returns the bytes that wait to be sent, for back pressure; on_drain is called
 * each time they fall below 64 KiB after having been above. A call that lets more than 64 MiB wait is cut off. */
size_t rpc_push(struct rpc_call *c, const void *message, size_t n);
void rpc_on_drain(struct rpc_call *c, void (*fn)(struct rpc_call *c, void *data));
/* The end, exactly once; the handle is dead afterwards. rpc_reply sends a last message (NULL: none, where the method
 * streams out; a unary method always sends one, so that NULL is the empty one there). */
void rpc_reply(struct rpc_call *c, const void *message, size_t n);
void rpc_fail(struct rpc_call *c, const struct err *why);
/* Adds to the trailers of the answer, e.g. "retry-after-ms". Before reply or fail. At most 16; the name in lower case;
 * bytes of the value that aren't printable ASCII become '?'. */
void rpc_trailer(struct rpc_call *c, const char *name, const char *value);

/* ------------------------------------------------------------------ client */

/* A channel to one of several addresses. It connects at the first call, moves to the next address when one can't be
 * reached, and keeps the connection until it breaks. Calls wait for a connection at most connect_ms over all
 * addresses. A call that certainly was not processed (connection refused, GOAWAY above its id, REFUSED_STREAM) is
 * retried by itself once; any other broken call fails with E_UNREACHABLE and its caller decides.
 *
 * Where there are several addresses, one that hangs is left for the next: a connection that says nothing at all, one
 * that answers no ping, and one whose call ends with E_NOT_LEADER, E_STOPPING or E_DEADLINE gets no new calls. The bounds
 * are short then, and double each time that all addresses were silent in turn: a machine that is slow everywhere is
 * waited for. */
struct rpc_channel;
struct rpc_request;

/* Instead of connecting to an address: fn once, later, with a descriptor, or with -1 and why. */
typedef void (*rpc_connected_fn)(void *arg, int fd, const struct err *why);
struct rpc_connector {
    void *(*begin)(void *impl, uint64_t timeout_ms, rpc_connected_fn fn, void *arg);
    void (*cancel)(void *impl, void *handle); /* before fn was called: it won't be */
    void *impl;
};

struct rpc_channel_conf {
    const struct rpc_connector *connector; /* copied; NULL: the targets are dialled. With one, targets is a name only */
    const char *targets;      /* "host:port,host:port" with or without "http://", or "unix:/path"; copied */
    uint64_t connect_ms;      /* default 10,000 where 0 */
    uint64_t greet_ms;        /* the server's first bytes on a new connection; default connect_ms, with several 500 */
    uint64_t ping_ms;         /* HTTP/2 ping while calls are open; default 10,000, with several addresses 1,000 */
    uint64_t ping_timeout_ms; /* no answer: the connection is closed; default 5,000, with several 1,000 */
    uint32_t max_message;     /* default 64 MiB */
    struct tls *tls;          /* for targets over TCP; borrowed; NULL: off. A connector sees to it itself */
};

int rpc_channel_new(struct loop *l, const struct rpc_channel_conf *conf, struct rpc_channel **out, struct err *e);
void rpc_channel_free(struct rpc_channel *ch); /* open requests end with E_CANCELLED before it returns */

/* One call's outcome: code 0 with the message (borrowed for the call), or a code with its text. For a streaming call
 * `message` is NULL at the end. */
typedef void (*rpc_done_fn)(void *arg, int code, const struct err *why, const void *message, size_t n);

/* Unary. `metadata` is "name: value\n…" or NULL. timeout_ms 0: 30,000. The message is copied. The handle is dead once
 * `done` was called; it may be called before this returns only after rpc_cancel. */
struct rpc_request *rpc_send(struct rpc_channel *ch, const char *method, const char *metadata, const void *message,
                             size_t n, uint64_t timeout_ms, rpc_done_fn done, void *arg);
/* Server stream: on_message for each message, then done. No bound in time; idle_ms without a message (0: none) ends it
 * with E_DEADLINE. on_message may return false to stop reading until rpc_resume, after which the next message comes at
 * the end of the loop's turn at the earliest. */
struct rpc_request *rpc_stream(struct rpc_channel *ch, const char *method, const char *metadata, const void *message,
                               size_t n, uint64_t idle_ms, bool (*on_message)(void *arg, const void *message, size_t n),
                               rpc_done_fn done, void *arg);
void rpc_resume(struct rpc_request *r);
void rpc_cancel(struct rpc_request *r); /* done is called with E_CANCELLED before it returns */

/* Inside `done`: metadata of the answer that is not the protocol's own, such as "retry-after-ms". NULL: absent. */
const char *rpc_request_trailer(const struct rpc_request *r, const char *name);
/* Inside `done`: whether the peer may have got the request. false: no connection was there for it. */
bool rpc_request_was_sent(const struct rpc_request *r);

/* The address that the channel is connected to, or tried last. Borrowed. */
const char *rpc_channel_address(const struct rpc_channel *ch);

#endif
