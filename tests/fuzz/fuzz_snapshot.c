/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshot files of strangers: refused, never followed. The checksums are made right first, so that the fuzzer gets
 * behind them.
 */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/state/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto_buf file = {0};
    buf_add(&file, "SPURSNAP\1\0\0\0", 12);
    buf_u32le(&file, (uint32_t)size);
    buf_u32le(&file, hash_crc32c(0, data, size));
    buf_add(&file, data, size);
    buf_u64le(&file, 0);
    struct state *s = state_new();
    state_restore(s, file.p, file.n, NULL);
    state_free(s);
    s = state_new();
    state_restore(s, data, size, NULL);
    state_free(s);
    return 0;
}
