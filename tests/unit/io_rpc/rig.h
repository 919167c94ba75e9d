/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of io/rpc share: a loop with an echo server and a channel to it, calls whose outcome is kept, and a
 * raw socket that says what no client says.
 */
#ifndef SPUR_TESTS_RIG_H
#define SPUR_TESTS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "echo.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"

enum { PATIENCE_MS = 20000 };

struct rig {
    struct loop *l;
    struct echo echo;
    struct rpc_server *s;
    struct rpc_channel *ch;
    uint16_t port;
    char address[32]; /* of the server */
};

/* conf may be NULL; its methods are the echo's unless it has some. A server on 127.0.0.1 and a channel to it. */
struct rig *rig_new(const struct rpc_server_conf *conf, const struct rpc_channel_conf *channel);
void rig_free(struct rig *r);
struct rpc_server *rig_server(struct rig *r, const struct rpc_server_conf *conf, uint16_t *port);
struct rpc_channel *rig_channel(struct rig *r, const char *targets);
int rig_setup(void **state); /* for cmocka: rig_new(NULL, NULL) */
int rig_teardown(void **state);

void rig_turn(struct loop *l); /* one turn of at most some milliseconds */

/* Runs the loop until the expression is true; fails the test after PATIENCE_MS. */
#define WAIT(loop, expression)                                                                                         \
    for (int64_t until_ = loop_now_ms(loop) + PATIENCE_MS; !(expression); rig_turn(loop))                              \
        if (loop_now_ms(loop) > until_)                                                                                \
    fail_msg("waited in vain for: %s", #expression)

/* One call and what came of it. */
struct outcome {
    struct rpc_request *request;
    unsigned done; /* how many times */
    int code;
    struct err why;
    struct buf message;
    char trailer[64];     /* "echoed", "" where absent */
    unsigned n_messages;  /* streams */
    size_t n_bytes;
    unsigned pause_after; /* streams: on_message returns false at this one; 0: never */
};
void outcome_fini(struct outcome *o);
void call(struct rpc_channel *ch, const char *method, const char *metadata, const void *message, size_t n,
          uint64_t timeout_ms, struct outcome *o);
void stream(struct rpc_channel *ch, const char *method, const char *metadata, const void *message, size_t n,
            uint64_t idle_ms, struct outcome *o);
/* The call, and the wait for its end. */
void call_wait(struct rig *r, const char *metadata, const void *message, size_t n, struct outcome *o);

/* A raw, non-blocking socket. */
struct raw {
    struct loop *l;
    int fd;
    struct buf in;
    bool closed; /* by the other side */
};
struct raw raw_connect(struct loop *l, uint16_t port);
void raw_close(struct raw *r);
void raw_send(struct raw *r, const void *p, size_t n);  /* all, running the loop while it must */
bool raw_try_send(struct raw *r, const void *p, size_t n); /* false: closed */
void raw_hello(struct raw *r);                          /* magic and empty SETTINGS */
void raw_preface(struct raw *r);                        /* and the acknowledgement of the server's, whose windows count then */
void raw_frame(struct raw *r, uint8_t type, uint8_t flags, uint32_t stream, const void *p, size_t n);
void raw_headers(struct raw *r, uint8_t flags, uint32_t stream, const char *const *pairs); /* NULL-terminated */
void raw_request(struct raw *r, uint32_t stream, const char *path, const void *message, size_t n); /* a good one */
void raw_pump(struct raw *r);                           /* takes what there is */
/* Whether a frame has arrived: of this type, on this stream (UINT32_MAX: any). out may be NULL; the payload, borrowed. */
bool raw_has(struct raw *r, uint8_t type, uint32_t stream, const uint8_t **out, size_t *out_n);
bool raw_has_goaway(struct raw *r, uint32_t error);

#endif
