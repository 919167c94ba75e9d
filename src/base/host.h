/* SPDX-License-Identifier: Apache-2.0
 *
 * The world as a room of a daemon sees it: time, timers, work that may block, sending, proposing. Nothing else.
 *
 * The rooms of spurctld (admit, query, react, plan, lead, acct) and of spurd (table, launch) reach the outside only
 * through this struct, so that the simulator runs the very same code in virtual time. All functions are called on the
 * room's loop thread and all callbacks come back on it. Whoever builds a host fills every function.
 */
#ifndef SPUR_BASE_HOST_H
#define SPUR_BASE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct host_timer;

/* What came of a proposal: on success 0 with the log index and apply's answer (borrowed for the call). */
typedef void (*host_proposed_fn)(void *arg, int code, const struct err *why, uint64_t index, const void *answer,
                                 size_t n_answer);
/* What came of a call: 0 with the reply's bytes (borrowed for the call), or a code with its text. */
typedef void (*host_reply_fn)(void *arg, int code, const struct err *why, const void *reply, size_t n_reply);

typedef void (*host_stored_fn)(void *arg, int code, const struct err *why, const uint8_t hash[32]);

struct host {
    void *impl;
    /* Milliseconds of a clock that never goes back; its zero means nothing. */
    int64_t (*now_ms)(void *impl);
    /* Milliseconds since 1970, as the machine believes. */
    int64_t (*unix_ms)(void *impl);
    uint64_t (*random)(void *impl);

    /* One shot. The handle is dead once fn was called or timer_stop returned; timer_stop takes NULL. */
    struct host_timer *(*timer_start)(void *impl, uint64_t delay_ms, void (*fn)(void *arg), void *arg);
    void (*timer_stop)(void *impl, struct host_timer *t);

    /* `work` on a worker thread, then `done` on the loop thread. */
    void (*work)(void *impl, void (*work)(void *arg), void (*done)(void *arg), void *arg);

    /* Puts one command into the log. Takes the bytes. `fn` is called exactly once. */
    void (*propose)(void *impl, struct buf command, host_proposed_fn fn, void *arg);

    /* Bulk beside the log: stores bytes durably under their hash (32 bytes), and brings them back. Both call `fn` exactly
     * once, store perhaps before it returns. Takes the bytes. Controllers only: NULL in agents. */
    void (*store)(void *impl, struct buf bytes, host_stored_fn fn, void *arg);
    void (*load)(void *impl, const uint8_t hash[32], host_reply_fn fn, void *arg);

    /* Calls `method` ("/package.Service/Method") at `address` ("host:port"). Takes the bytes. `metadata` is
     * "name: value" lines ending in \n, or NULL. `fn` is called exactly once. */
    void (*send)(void *impl, const char *address, const char *method, const char *metadata, struct buf message,
                 uint64_t timeout_ms, host_reply_fn fn, void *arg);

    /* Calls `method` on another controller, by its member id, over the port among members: it knows that we are one, and
     * we that it is. The same promises as send. Controllers only: NULL in agents, and where a controller is alone. */
    void (*member_send)(void *impl, uint64_t member_id, const char *method, struct buf message, uint64_t timeout_ms,
                        host_reply_fn fn, void *arg);
};

#endif
