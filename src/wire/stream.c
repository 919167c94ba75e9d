/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/stream.h"

#include <string.h>

#define REC_SELF stream_rlimit
REC_DEFINE(stream_rlimit, STREAM_RLIMIT_FIELDS)
#undef REC_SELF

#define REC_SELF stream_words
REC_DEFINE(stream_words, STREAM_WORDS_FIELDS)
#undef REC_SELF

#define REC_SELF stream_launch
REC_DEFINE(stream_launch, STREAM_LAUNCH_FIELDS)
#undef REC_SELF

#define REC_SELF stream_mark
REC_DEFINE(stream_mark, STREAM_MARK_FIELDS)
#undef REC_SELF

#define REC_SELF stream_open
REC_DEFINE(stream_open, STREAM_OPEN_FIELDS)
#undef REC_SELF

#define REC_SELF stream_welcome
REC_DEFINE(stream_welcome, STREAM_WELCOME_FIELDS)
#undef REC_SELF

#define REC_SELF stream_refused
REC_DEFINE(stream_refused, STREAM_REFUSED_FIELDS)
#undef REC_SELF

#define REC_SELF stream_data
REC_DEFINE(stream_data, STREAM_DATA_FIELDS)
#undef REC_SELF

#define REC_SELF stream_ack
REC_DEFINE(stream_ack, STREAM_ACK_FIELDS)
#undef REC_SELF

#define REC_SELF stream_started
REC_DEFINE(stream_started, STREAM_STARTED_FIELDS)
#undef REC_SELF

#define REC_SELF stream_exit
REC_DEFINE(stream_exit, STREAM_EXIT_FIELDS)
#undef REC_SELF

#define REC_SELF stream_done
REC_DEFINE(stream_done, STREAM_DONE_FIELDS)
#undef REC_SELF

#define REC_SELF stream_signal
REC_DEFINE(stream_signal, STREAM_SIGNAL_FIELDS)
#undef REC_SELF

#define REC_SELF stream_winsize
REC_DEFINE(stream_winsize, STREAM_WINSIZE_FIELDS)
#undef REC_SELF

#define REC_SELF stream_text
REC_DEFINE(stream_text, STREAM_TEXT_FIELDS)
#undef REC_SELF

#define REC_SELF stream_file
REC_DEFINE(stream_file, STREAM_FILE_FIELDS)
#undef REC_SELF

void stream_frame_add(struct buf *out, enum stream_frame type, const struct rec_desc *d, const void *rec) {
    size_t head = out->n;
    const uint8_t rest[4] = {STREAM_VERSION, (uint8_t)type, 0, 0};
    buf_u32le(out, 0);
    buf_add(out, rest, sizeof(rest));
    rec_encode(d, rec, out);
    uint32_t length = (uint32_t)(out->n - head - STREAM_HEADER_SIZE);
    for (unsigned i = 0; i < 4; i++)
        out->p[head + i] = (uint8_t)(length >> 8 * i);
}

enum { KEY_TASK = 1 << 3, KEY_NUMBER = 2 << 3, KEY_OFFSET = 3 << 3, KEY_BYTES = 4 << 3 | 2 };

/* As rec_encode does it: what is zero is left out. */
static void add_number(uint8_t key, uint64_t v, uint8_t *out, size_t *n) {
    if (!v)
        return;
    out[(*n)++] = key;
    for (; v >= 0x80; v >>= 7)
        out[(*n)++] = (uint8_t)(v | 0x80);
    out[(*n)++] = (uint8_t)v;
}

size_t stream_data_head(uint32_t task, uint32_t number, uint64_t offset, uint32_t n_bytes,
                        uint8_t out[STREAM_DATA_HEAD_MAX]) {
    size_t n = STREAM_HEADER_SIZE;
    add_number(KEY_TASK, task, out, &n);
    add_number(KEY_NUMBER, number, out, &n);
    add_number(KEY_OFFSET, offset, out, &n);
    add_number(KEY_BYTES, n_bytes, out, &n);
    uint32_t length = (uint32_t)(n - STREAM_HEADER_SIZE) + n_bytes;
    const uint8_t head[STREAM_HEADER_SIZE] = {(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16),
                                              (uint8_t)(length >> 24), STREAM_VERSION, STREAM_DATA, 0, 0};
    memcpy(out, head, sizeof(head));
    return n;
}

int stream_data_read(const void *p, size_t n, struct stream_data *out) {
    struct rd r = rd_of(p, n), bytes;
    *out = (struct stream_data){0};
    while (rd_left(&r) && !r.bad) {
        uint64_t key = rd_varint(&r), v;
        if (key == KEY_BYTES) {
            bytes = rd_bytes(&r);
            out->bytes = bytes.p;
            out->n_bytes = (uint32_t)rd_left(&bytes);
            continue;
        }
        v = rd_varint(&r);
        if (key == KEY_OFFSET)
            out->offset = v;
        else if ((key != KEY_TASK && key != KEY_NUMBER) || v > UINT32_MAX)
            return E_PROTOCOL;
        else if (key == KEY_TASK)
            out->task = (uint32_t)v;
        else
            out->number = (uint32_t)v;
    }
    return r.bad ? E_PROTOCOL : 0;
}

int stream_header_read(const void *p, size_t n, struct stream_header *out) {
    const uint8_t *b = p;
    if (n < STREAM_HEADER_SIZE)
        return 0;
    struct stream_header h = {(uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24, b[4], b[5]};
    if (h.version != STREAM_VERSION)
        return E_VERSION;
    if (b[6] || b[7])
        return E_PROTOCOL;
    if (h.length > STREAM_FRAME_MAX || (h.type != STREAM_OPEN && h.length > STREAM_DATA_MAX + 64))
        return E_TOO_BIG;
    *out = h;
    return 1;
}
