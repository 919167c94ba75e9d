/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a loop was deaf: for each turn, the time that it did not spend waiting for events. One thread marks, any
 * thread reads. Internal to io/loop.
 */
#ifndef SPUR_IO_GAP_H
#define SPUR_IO_GAP_H

#include <stdatomic.h>
#include <stdint.h>

enum { GAP_RING = 4096 };

struct gap {
    uint64_t last_ns, last_idle_ns;   /* the marking thread's */
    atomic_uint_fast64_t turns, from; /* turns before `from` were reset away */
    atomic_uint_fast64_t max_us;
    _Atomic uint32_t ring[GAP_RING];
};

void gap_begin(struct gap *g, uint64_t now_ns, uint64_t idle_ns); /* what was before doesn't count */
void gap_mark(struct gap *g, uint64_t now_ns, uint64_t idle_ns);  /* the end of a turn; idle_ns: waited so far, in all */
uint64_t gap_turns(const struct gap *g);
uint64_t gap_max_us(const struct gap *g);
uint64_t gap_p99_us(const struct gap *g);
void gap_reset(struct gap *g);

#endif
