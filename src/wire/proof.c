/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/proof.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static void add_hex(struct str *out, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        str_addf(out, "%02x", p[i]);
}

static int nibble(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Exactly 2n lower-case digits and then `end`. */
static int read_hex(const char *s, uint8_t *out, size_t n, char end) {
    for (size_t i = 0; i < n; i++) {
        int high = nibble(s[2 * i]);
        int low = high < 0 ? -1 : nibble(s[2 * i + 1]);
        if (low < 0)
            return E_BAD_PROOF;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return s[2 * n] == end ? 0 : E_BAD_PROOF;
}

static int read_number(const char *s, const char *end, int64_t *out) {
    char digits[24];
    uint64_t v;
    if (end <= s || (size_t)(end - s) >= sizeof(digits))
        return E_BAD_PROOF;
    memcpy(digits, s, (size_t)(end - s));
    digits[end - s] = 0;
    if (str_to_u64(digits, INT64_MAX, &v))
        return E_BAD_PROOF;
    *out = (int64_t)v;
    return 0;
}

void proof_launch_text(const char *path, const char *node, uint32_t job_id, uint32_t start_no, uint32_t uid,
                       int64_t expires_unix, const uint8_t body_hash[32], struct str *out) {
    str_addf(out, "spur-launch-v1\n%s\n%s\n%u\n%u\n%u\n%" PRId64 "\n", path, node, job_id, start_no, uid, expires_unix);
    add_hex(out, body_hash, 32);
    str_addc(out, '\n');
}

void proof_launch_print(int64_t expires_unix, const uint8_t sig[PROOF_SIGNATURE_SIZE], struct str *out) {
    str_addf(out, "%" PRId64 ".", expires_unix);
    add_hex(out, sig, PROOF_SIGNATURE_SIZE);
}

int proof_launch_parse(const char *header, int64_t *out_expires_unix, uint8_t out_sig[PROOF_SIGNATURE_SIZE]) {
    const char *dot = strchr(header, '.');
    if (!dot || strlen(dot + 1) != 2 * PROOF_SIGNATURE_SIZE || read_number(header, dot, out_expires_unix))
        return E_CREDENTIAL;
    return read_hex(dot + 1, out_sig, PROOF_SIGNATURE_SIZE, 0) ? E_CREDENTIAL : 0;
}

void proof_ticket_text(const char *node, const uint8_t ticket_hash[32], struct str *out) {
    str_addf(out, "spur-ticket-v2\n%s\n", node);
    add_hex(out, ticket_hash, 32);
    str_addc(out, '\n');
}

void proof_node_text(const char *path, const char *node, int64_t sent_ms, const uint8_t nonce[PROOF_NONCE_SIZE],
                     const uint8_t body_hash[32], struct str *out) {
    str_addf(out, "spur-node-v1\n%s\n%s\n%" PRId64 "\n", path, node, sent_ms);
    add_hex(out, nonce, PROOF_NONCE_SIZE);
    str_addc(out, '\n');
    add_hex(out, body_hash, 32);
    str_addc(out, '\n');
}

void proof_node_print(const char *node, int64_t sent_ms, const uint8_t nonce[PROOF_NONCE_SIZE],
                      const uint8_t sig[PROOF_SIGNATURE_SIZE], struct str *out) {
    str_addf(out, "%s.%" PRId64 ".", node, sent_ms);
    add_hex(out, nonce, PROOF_NONCE_SIZE);
    str_addc(out, '.');
    add_hex(out, sig, PROOF_SIGNATURE_SIZE);
}

int proof_node_parse(const char *header, struct proof_node *out) {
    const size_t tail = 2 * PROOF_NONCE_SIZE + 1 + 2 * PROOF_SIGNATURE_SIZE;
    size_t n = strlen(header);
    if (n < tail + 4)
        return E_BAD_PROOF;
    const char *nonce = header + n - tail;
    const char *dot = nonce - 2; /* the last digit of the time */
    if (nonce[-1] != '.')
        return E_BAD_PROOF;
    while (dot > header && *dot != '.')
        dot--;
    size_t n_name = (size_t)(dot - header);
    if (*dot != '.' || !n_name || n_name >= sizeof(out->name) || read_number(dot + 1, nonce - 1, &out->sent_ms))
        return E_BAD_PROOF;
    memcpy(out->name, header, n_name);
    out->name[n_name] = 0;
    if (read_hex(nonce, out->nonce, PROOF_NONCE_SIZE, '.'))
        return E_BAD_PROOF;
    return read_hex(nonce + 2 * PROOF_NONCE_SIZE + 1, out->sig, PROOF_SIGNATURE_SIZE, 0);
}
