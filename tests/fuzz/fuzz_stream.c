/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of task streams as a client may send them. What the quick reader of DATA takes, the record's own reader takes as
 * well, with the same values; and what the quick writer makes is what the record's encoding is.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "wire/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_data(const uint8_t *p, size_t n, struct arena *a) {
    struct stream_data quick, slow;
    if (stream_data_read(p, n, &quick))
        return;
    must(!rec_decode(stream_data_rec(), p, n, a, &slow, NULL));
    must(quick.task == slow.task && quick.number == slow.number && quick.offset == slow.offset);
    must(quick.n_bytes == slow.n_bytes && (!slow.n_bytes || !memcmp(quick.bytes, slow.bytes, slow.n_bytes)));
    auto_buf by_rec = {0}, by_hand = {0};
    uint8_t head[STREAM_DATA_HEAD_MAX];
    stream_frame_add(&by_rec, STREAM_DATA, stream_data_rec(), &quick);
    buf_add(&by_hand, head, stream_data_head(quick.task, quick.number, quick.offset, quick.n_bytes, head));
    buf_add(&by_hand, quick.bytes, quick.n_bytes);
    must(by_rec.n == by_hand.n && !memcmp(by_rec.p, by_hand.p, by_rec.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct stream_header h;
    for (size_t at = 0; stream_header_read(data + at, n - at, &h) > 0 && n - at >= STREAM_HEADER_SIZE + h.length;
         at += STREAM_HEADER_SIZE + h.length) {
        const uint8_t *p = data + at + STREAM_HEADER_SIZE;
        auto_arena a = {0};
        union {
            struct stream_open open;
            struct stream_ack ack;
            struct stream_file file;
            struct stream_signal signal;
        } r;
        if (h.type == STREAM_DATA)
            check_data(p, h.length, &a);
        (void)rec_decode(stream_open_rec(), p, h.length, &a, &r, NULL);
        (void)rec_decode(stream_ack_rec(), p, h.length, &a, &r, NULL);
        (void)rec_decode(stream_file_rec(), p, h.length, &a, &r, NULL);
        (void)rec_decode(stream_signal_rec(), p, h.length, &a, &r, NULL);
    }
    return 0;
}
