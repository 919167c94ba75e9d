/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent and the step daemon read of each other: frames of the socket, the plan, and the log. The first byte says how the
 * rest is taken: as they come, or as records which are put into log entries with right checksums, one of them cut or damaged.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "spurstepd/step.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void record(const struct rec_desc *d, const uint8_t *p, size_t n) {
    auto_arena a = {0};
    struct err e = {0};
    void *rec = arena_calloc(&a, 1, d->size), *again = arena_calloc(&a, 1, d->size);
    if (rec_decode(d, p, n, &a, rec, &e))
        return;
    auto_buf once = {0}, twice = {0};
    rec_encode(d, rec, &once);
    must(rec_decode(d, once.p, once.n, &a, again, &e) == 0);
    rec_encode(d, again, &twice);
    must(once.n == twice.n && (!once.n || !memcmp(once.p, twice.p, once.n)));
}

static void frames(const uint8_t *p, size_t n) {
    const struct rec_desc *of[256] = {
        [STEP_GET_STATUS] = step_empty_rec(), [STEP_SIGNAL] = step_signal_rec(), [STEP_TERMINATE] = step_terminate_rec(),
        [STEP_SUBSCRIBE] = step_empty_rec(),  [STEP_ACK] = step_empty_rec(),     [STEP_STREAM] = step_stream_rec(),
        [STEP_SUSPEND] = step_suspend_rec(),  [STEP_OK] = step_empty_rec(),      [STEP_STATUS] = step_status_rec(),
        [STEP_END] = step_result_rec(),       [STEP_ERROR] = step_error_rec()};
    struct step_header h;
    for (size_t at = 0; step_header_read(p + at, n - at, &h) > 0; at += STEP_HEADER_SIZE + h.length) {
        must(h.length <= STEP_STREAM_MAX);
        if (n - at - STEP_HEADER_SIZE < h.length)
            return;
        if (of[h.type])
            record(of[h.type], p + at + STEP_HEADER_SIZE, h.length);
    }
}

static void log_of(const uint8_t *p, size_t n) {
    auto_arena a = {0};
    struct step_history h, again;
    size_t sound = step_log_read(p, n, &a, &h);
    must(sound <= n);
    must(step_log_read(p, sound, &a, &again) == sound && again.has_result == h.has_result && again.has_exit == h.has_exit);
}

/* Pieces: u8 length, so many bytes of a record. Then where to damage the whole. */
static void cooked(const uint8_t *p, size_t n) {
    struct rd in = rd_of(p, n);
    auto_buf b = {0};
    buf_reserve(&b, 1);
    unsigned pieces = rd_u8(&in) % 8;
    uint16_t at = (uint16_t)(rd_u8(&in) | rd_u8(&in) << 8);
    uint8_t change = rd_u8(&in);
    for (unsigned i = 0; i < pieces && rd_left(&in); i++) {
        size_t length = MIN((size_t)rd_u8(&in), rd_left(&in));
        const uint8_t *body = rd_take(&in, length);
        if (!body)
            break;
        buf_u32le(&b, (uint32_t)length);
        buf_u32le(&b, hash_crc32c(0, body, length));
        buf_add(&b, body, length);
    }
    log_of(b.p, b.n);
    if (b.n && change)
        b.p[at % b.n] ^= change;
    log_of(b.p, b.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1)
        return 0;
    switch (data[0] % 5) {
    case 0:
        frames(data + 1, n - 1);
        break;
    case 1:
        record(step_plan_rec(), data + 1, n - 1);
        break;
    case 2:
        record(step_copy_rec(), data + 1, n - 1);
        break;
    case 3:
        log_of(data + 1, n - 1);
        break;
    default:
        cooked(data + 1, n - 1);
    }
    return 0;
}
