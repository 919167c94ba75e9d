/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries of the log: the input is cut into entries (u16 length, bytes) that are applied to a state with all invariants
 * checked. What can't be read must be refused and change nothing.
 */
#include "base/mem.h"
#include "core/state/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rd r = rd_of(data, size);
    struct state *s = state_new();
    struct applied out = {0};
    uint64_t index = 0;
    state_set_checking(s, true);
    while (rd_left(&r) >= 2 && index < 200) {
        size_t n = rd_u8(&r);
        n |= (size_t)rd_u8(&r) << 8;
        n = MIN(n, rd_left(&r));
        uint64_t before = state_digest(s);
        if (state_apply(s, index + 1, rd_take(&r, n), n, &out, NULL))
            must(state_digest(s) == before && state_index(s) == index);
        else
            index++;
    }
    applied_fini(&out);
    state_free(s);
    return 0;
}
