/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

static int64_t read_ms(clockid_t id) {
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void clock_init(struct clock *c, uint32_t scale) {
    uint64_t base;
    c->scale = scale ? scale : 1;
    c->base_unix_ms = read_ms(CLOCK_REALTIME);
    c->base_mono_ms = read_ms(CLOCK_MONOTONIC);
    if (c->scale > 1 && !str_to_u64(getenv("SPUR_TEST_CLOCK_BASE"), INT64_MAX, &base))
        c->base_unix_ms = (int64_t)base;
}

static int64_t stretched(const struct clock *c, int64_t now, int64_t base) {
    return c->scale == 1 ? now : base + (now - base) * c->scale;
}

int64_t clock_unix_ms(const struct clock *c) {
    return stretched(c, read_ms(CLOCK_REALTIME), c->base_unix_ms);
}

int64_t clock_mono_ms(const struct clock *c) {
    return stretched(c, read_ms(CLOCK_MONOTONIC), c->base_mono_ms);
}

uint64_t clock_real_ms(const struct clock *c, uint64_t ms) {
    uint64_t real = ms / c->scale;
    return ms && !real ? 1 : real;
}
