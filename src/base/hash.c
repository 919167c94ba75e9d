/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <string.h>

static uint64_t seed_k0 = 0x0706050403020100u, seed_k1 = 0x0f0e0d0c0b0a0908u;

static inline uint64_t rotl(uint64_t x, int b) {
    return (x << b) | (x >> (64 - b));
}

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline void sip_round(struct sip *s) {
    s->v0 += s->v1;
    s->v1 = rotl(s->v1, 13) ^ s->v0;
    s->v0 = rotl(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotl(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotl(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotl(s->v1, 17) ^ s->v2;
    s->v2 = rotl(s->v2, 32);
}

static inline uint64_t load_le(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint64_t hash_sip(uint64_t k0, uint64_t k1, const void *data, size_t n) {
    const uint8_t *p = data;
    struct sip s = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                    k1 ^ 0x7465646279746573u};
    size_t left = n;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t m = load_le(p, 8);
        s.v3 ^= m;
        sip_round(&s);
        sip_round(&s);
        s.v0 ^= m;
    }
    uint64_t last = load_le(p, left) | (uint64_t)n << 56;
    s.v3 ^= last;
    sip_round(&s);
    sip_round(&s);
    s.v0 ^= last;
    s.v2 ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t hash_fixed(const void *p, size_t n) {
    return hash_sip(0x5350555220646967u, 0x6573742076310000u, p, n);
}

uint64_t hash_seeded(const void *p, size_t n) {
    return hash_sip(seed_k0, seed_k1, p, n);
}

void hash_seed(uint64_t k0, uint64_t k1) {
    seed_k0 = k0;
    seed_k1 = k1;
}

uint32_t hash_crc32c(uint32_t crc, const void *data, size_t n) {
    const uint8_t *p = data;
    crc = ~crc;
    while (n--) {
        crc ^= *p++;
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}
