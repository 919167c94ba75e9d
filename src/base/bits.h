/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of small numbers as an array of 64-bit words. The caller owns the words (bits_words(n) of them, zeroed).
 */
#ifndef SPUR_BASE_BITS_H
#define SPUR_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t bits_words(size_t n_bits) {
    return (n_bits + 63) / 64;
}
static inline bool bits_has(const uint64_t *w, size_t i) {
    return w[i / 64] >> (i % 64) & 1;
}
static inline void bits_set(uint64_t *w, size_t i) {
    w[i / 64] |= (uint64_t)1 << (i % 64);
}
static inline void bits_clear(uint64_t *w, size_t i) {
    w[i / 64] &= ~((uint64_t)1 << (i % 64));
}
static inline size_t bits_count(const uint64_t *w, size_t n_words) {
    size_t n = 0;
    for (size_t i = 0; i < n_words; i++)
        n += (size_t)__builtin_popcountll(w[i]);
    return n;
}
/* The first member at or behind `from`, or n_bits. */
static inline size_t bits_next(const uint64_t *w, size_t n_bits, size_t from) {
    for (size_t i = from / 64; i < bits_words(n_bits); i++) {
        uint64_t word = w[i];
        if (i == from / 64)
            word &= ~(uint64_t)0 << (from % 64);
        if (word) {
            size_t at = i * 64 + (size_t)__builtin_ctzll(word);
            return at < n_bits ? at : n_bits;
        }
    }
    return n_bits;
}

#endif
