/* SPDX-License-Identifier: Apache-2.0
 *
 * One HTTP/2 connection: a socket of libuv's, a session of nghttp2's, and the bytes between them. The server's and the
 * client's connections begin with it. Internal to io/rpc.
 *
 * What calls submit during a turn of the loop is gathered and written once, at the end of the turn. While the socket
 * takes no more, at most CONN_GATHER bytes wait here; the rest waits in the queues of the calls.
 *
 * Life: conn_open, then `down` once, when the connection is lost or closed by us, then `release` once, when the memory
 * may go. Nothing but release comes after `down`. Both functions may be called from inside nghttp2's callbacks:
 * conn_close only marks the connection then (`dead`), and the rest happens when nghttp2 returned. So every callback
 * begins with CONN_ALIVE.
 */
#ifndef SPUR_IO_RPC_CONN_H
#define SPUR_IO_RPC_CONN_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "io/loop/loop.h"
#include "io/rpc/frame.h"

enum { CONN_GATHER = 256 << 10, CONN_READ = 64 << 10, CONN_LINGER_MS = 1000 };

/* A socket of its own life: it is freed a turn after it was closed. */
struct sock {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    };
};
struct sock *sock_new(struct loop *l, bool is_unix);
void sock_close(struct sock *s); /* takes NULL */
int sock_fd(const struct sock *s);

struct conn;
struct conn_ops {
    void (*down)(struct conn *c, const struct err *why);
    void (*release)(struct conn *c);
    void (*broken)(struct conn *c, int nghttp2_error); /* before the `down` that follows from it; may be NULL */
    void (*drained)(struct conn *c);                   /* some queue of a call fell below FRAME_HIGH; may be NULL */
    bool lingers; /* when all is said: waits for the peer to close first */
};

struct conn {
    struct sock *sock;
    struct loop *loop;
    nghttp2_session *session;
    const struct conn_ops *ops;
    struct loop_late late;
    uv_write_t write;
    struct buf inflight; /* what uv_write was given */
    struct buf *gather;  /* while flushing: where frames go */
    bool writing, busy, dead, freed, drained;
    bool lingering; /* all is said: wait for the peer to close, and read nothing any more */
    uint64_t opened_ms, received_ms, lingering_ms; /* on uv_now's clock */
    uint64_t flushed_turn; /* loop_turn + 1 of the last flush */
    size_t out_bytes; /* pending in the queues of the calls */
};

#define CONN_ALIVE(c)                                                                                                  \
    do {                                                                                                               \
        if ((c)->dead)                                                                                                 \
            return NGHTTP2_ERR_CALLBACK_FAILURE;                                                                       \
    } while (0)

/* Takes the socket, and the session; starts reading. */
void conn_open(struct conn *c, struct loop *l, struct sock *sock, nghttp2_session *session, const struct conn_ops *ops);
void conn_dirty(struct conn *c); /* something was submitted: write at the end of the turn */
void conn_close(struct conn *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
uint64_t conn_now(const struct conn *c); /* uv_now */
/* For reading bytes in: what the socket's callback does with them. Returns false when the connection is dead. */
bool conn_received(struct conn *c, const void *data, size_t n);

/* For nghttp2: sends what is in a call's outq, which must be the first member of the stream's user data. */
int conn_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t length,
                   nghttp2_data_source *source, void *user_data);

#endif
