/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks of a daemon: the machine's, or in tests one that runs `scale` times faster, so that a minute's limit costs
 * no minute. Daemons of one test that are given the same base (SPUR_TEST_CLOCK_BASE, milliseconds since 1970) agree on
 * the time of day.
 */
#ifndef SPUR_BASE_CLOCK_H
#define SPUR_BASE_CLOCK_H

#include <stdint.h>

struct clock {
    uint32_t scale; /* 1: the machine's own time */
    int64_t base_unix_ms, base_mono_ms;
};

void clock_init(struct clock *c, uint32_t scale);
int64_t clock_unix_ms(const struct clock *c);
int64_t clock_mono_ms(const struct clock *c); /* never goes back */
/* How long the machine must wait for `ms` of this clock to pass; at least 1 where ms > 0. */
uint64_t clock_real_ms(const struct clock *c, uint64_t ms);

#endif
