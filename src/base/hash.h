/* SPDX-License-Identifier: Apache-2.0
 *
 * SipHash-2-4 (Aumasson and Bernstein, 2012), 64 bits. hash_fixed is the same on every machine and in every build:
 * digests of the state are made of it. hash_seeded is for hash tables fed by strangers: its key differs from process
 * to process, so nothing may depend on its order.
 */
#ifndef SPUR_BASE_HASH_H
#define SPUR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_sip(uint64_t k0, uint64_t k1, const void *p, size_t n);
uint64_t hash_fixed(const void *p, size_t n);
uint64_t hash_seeded(const void *p, size_t n);
/* Sets the seed of hash_seeded; main() does it once from the system's random source, tests with chosen values. */
void hash_seed(uint64_t k0, uint64_t k1);

/* A good mix of one number (the finalizer of SplitMix64). */
static inline uint64_t hash_u64(uint64_t v) {
    v += 0x9e3779b97f4a7c15u;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
    return v ^ (v >> 31);
}

uint32_t hash_crc32c(uint32_t crc, const void *p, size_t n); /* Castagnoli, for files; start with 0 */

#endif
