/* SPDX-License-Identifier: Apache-2.0
 *
 * Records, log frames and socket frames of a run. See step.h.
 */
#include "spurstepd/step.h"

#include <string.h>

#include "base/err.h"
#include "base/hash.h"

#define REC_SELF step_rlimit
REC_DEFINE(step_rlimit, STEP_RLIMIT_FIELDS)
#undef REC_SELF
#define REC_SELF step_task
REC_DEFINE(step_task, STEP_TASK_FIELDS)
#undef REC_SELF
#define REC_SELF step_plan
REC_DEFINE(step_plan, STEP_PLAN_FIELDS)
#undef REC_SELF
#define REC_SELF step_result
REC_DEFINE(step_result, STEP_RESULT_FIELDS)
#undef REC_SELF
#define REC_SELF step_status
REC_DEFINE(step_status, STEP_STATUS_FIELDS)
#undef REC_SELF
#define REC_SELF step_signal
REC_DEFINE(step_signal, STEP_SIGNAL_FIELDS)
#undef REC_SELF
#define REC_SELF step_terminate
REC_DEFINE(step_terminate, STEP_TERMINATE_FIELDS)
#undef REC_SELF
#define REC_SELF step_error
REC_DEFINE(step_error, STEP_ERROR_FIELDS)
#undef REC_SELF
#define REC_SELF step_stream
REC_DEFINE(step_stream, STEP_STREAM_FIELDS)
#undef REC_SELF
#define REC_SELF step_copy
REC_DEFINE(step_copy, STEP_COPY_FIELDS)
#undef REC_SELF
#define REC_SELF step_suspend
REC_DEFINE(step_suspend, STEP_SUSPEND_FIELDS)
#undef REC_SELF
#define REC_SELF step_empty
REC_DEFINE(step_empty, STEP_EMPTY_FIELDS)
#undef REC_SELF
#define REC_SELF step_entry
REC_DEFINE(step_entry, STEP_ENTRY_FIELDS)
#undef REC_SELF

void step_log_frame(const struct step_entry *entry, struct buf *out) {
    auto_buf body = {0};
    rec_encode(step_entry_rec(), entry, &body);
    buf_u32le(out, (uint32_t)body.n);
    buf_u32le(out, hash_crc32c(0, body.p, body.n));
    buf_add(out, body.p, body.n);
}

static void fold(const struct step_entry *entry, struct step_history *h) {
    switch (entry->kind) {
    case STEP_LOG_DAEMON:
        h->has_daemon = true;
        h->daemon = *entry;
        break;
    case STEP_LOG_BATCH:
        h->has_batch = true;
        h->batch = *entry;
        break;
    case STEP_LOG_EXIT:
        h->has_exit = true;
        h->exit = *entry;
        break;
    case STEP_LOG_RESULT:
        if (entry->result && !h->has_result) {
            h->has_result = true;
            h->result = *entry->result;
        }
        break;
    }
}

size_t step_log_read(const void *p, size_t n, struct arena *a, struct step_history *out) {
    struct rd r = rd_of(p, n);
    size_t sound = 0;
    *out = (struct step_history){0};
    while (rd_left(&r) >= 8) {
        uint32_t length = rd_u32le(&r), crc = rd_u32le(&r);
        const uint8_t *body = rd_take(&r, length);
        struct step_entry entry;
        if (!body || hash_crc32c(0, body, length) != crc ||
            rec_decode(step_entry_rec(), body, length, a, &entry, NULL))
            break;
        fold(&entry, out);
        sound = n - rd_left(&r);
    }
    return sound;
}

void step_frame_add(struct buf *out, enum step_frame type, const struct rec_desc *d, const void *rec) {
    size_t at = out->n;
    buf_u32le(out, 0);
    buf_u8(out, STEP_VERSION);
    buf_u8(out, (uint8_t)type);
    buf_u8(out, 0);
    buf_u8(out, 0);
    rec_encode(d, rec, out);
    uint32_t length = (uint32_t)(out->n - at - STEP_HEADER_SIZE);
    for (unsigned i = 0; i < 4; i++)
        out->p[at + i] = (uint8_t)(length >> (8 * i));
}

int step_header_read(const void *p, size_t n, struct step_header *out) {
    if (n < STEP_HEADER_SIZE)
        return 0;
    struct rd r = rd_of(p, n);
    out->length = rd_u32le(&r);
    out->version = rd_u8(&r);
    out->type = rd_u8(&r);
    return out->length > (out->type == STEP_STREAM ? STEP_STREAM_MAX : STEP_FRAME_MAX) ? E_TOO_BIG : out->version == 0 ? E_PROTOCOL : 1;
}
