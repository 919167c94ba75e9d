/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses as they are written in options and files, and the headers of gRPC that are a language of their own. The first
 * byte says which.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "io/loop/address.h"
#include "io/rpc/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void addresses(const char *text, uint16_t port) {
    struct address *list = NULL, again;
    size_t n = 0;
    struct err e = {0};
    if (address_parse_list(text, port, &list, &n, &e)) {
        must(e.code < 0 && *e.text && !list);
        return;
    }
    must(n > 0);
    for (size_t i = 0; i < n; i++) {
        must(list[i].port || list[i].is_unix);
        must(!address_parse(list[i].text, strlen(list[i].text), 0, false, &again, &e));
        must(again.port == list[i].port && !strcmp(again.host, list[i].host));
    }
    free(list);
}

static void percent(const char *text) {
    auto_str coded = {0};
    header_percent_encode(&coded, text);
    for (size_t i = 0; i < coded.n; i++)
        must(coded.p[i] >= 0x20 && coded.p[i] < 0x7f);
    if (coded.n) {
        header_percent_decode(coded.p);
        must(!strcmp(coded.p, text));
    }
    autofree char *raw = xstrdup(text);
    header_percent_decode(raw);
    must(strlen(raw) <= strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1 || n > 4096)
        return 0;
    auto_arena a = {0};
    const char *text = arena_strndup(&a, (const char *)data + 1, n - 1);
    uint64_t ms;
    struct err e = {0};
    switch (data[0] % 4) {
    case 0:
        addresses(text, data[0] & 4 ? 6817 : 0);
        break;
    case 1:
        percent(text);
        break;
    case 2:
        if (!header_timeout_parse(text, &ms))
            must(ms <= 100000000ull * 3600 * 1000);
        break;
    default:
        (void)header_is_grpc_content(text);
        must(!header_check(text, "x", &e) || e.code < 0);
    }
    return 0;
}
