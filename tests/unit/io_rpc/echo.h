/* SPDX-License-Identifier: Apache-2.0
 *
 * A service for tests, benchmarks and the fuzzer. Metadata of a call says what it does:
 *   sleep-ms: N      answers after N ms           never: 1     doesn't answer until it is cancelled
 *   fail: N          fails with error number N    text: …      and this text
 *                                                bytes: 1      and one that isn't ASCII
 *   trailer: …       comes back as trailer "echoed"
 *   count: N         Numbers: so many messages    size: N      of so many bytes each (default: the request's)
 *   flood: 1         Numbers: doesn't look at what rpc_push returns
 */
#ifndef SPUR_TESTS_ECHO_H
#define SPUR_TESTS_ECHO_H

#include "io/rpc/rpc.h"

struct echo {
    struct loop *l;
    struct rpc_peer last_peer;
    unsigned started, cancelled, ended;
    unsigned never_open;   /* calls that don't answer */
    size_t pending_max;    /* what rpc_push returned at most */
    unsigned drained;      /* times that on_drain came */
    unsigned messages;     /* Chat */
    bool late_on_message;  /* Chat: on_message is set only by echo_listen */
    struct rpc_call *chat; /* Chat: the last one that was started */
    int64_t left_ms;       /* for on_start */
    void (*on_start)(struct echo *e, struct rpc_call *c);
};

const struct rpc_method *echo_methods(size_t *out_n);
void echo_listen(struct echo *e);
void echo_forget(struct echo *e, struct rpc_call *c); /* ends a call that was cancelled without its on_cancel */

#endif
