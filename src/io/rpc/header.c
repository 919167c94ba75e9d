/* SPDX-License-Identifier: Apache-2.0 */
#include "io/rpc/header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

const char *header_find(const struct header *list, const char *name) {
    for (; list; list = list->next)
        if (strcmp(list->name, name) == 0)
            return list->value;
    return NULL;
}

void header_percent_encode(struct str *out, const char *text) {
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c >= 0x20 && c <= 0x7e && c != '%')
            str_addc(out, *p);
        else
            str_addf(out, "%%%02X", c);
    }
}

static int hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void header_percent_decode(char *text) {
    char *to = text;
    for (const char *p = text; *p; p++) {
        int high = *p == '%' ? hex(p[1]) : -1;
        int low = high >= 0 ? hex(p[2]) : -1;
        if (low >= 0 && (high || low)) { /* %00 would end the text */
            *to++ = (char)(high << 4 | low);
            p += 2;
        } else {
            *to++ = *p;
        }
    }
    *to = 0;
}

int header_timeout_parse(const char *text, uint64_t *out_ms) {
    size_t n = strlen(text);
    if (n < 2 || n > 9)
        return E_SYNTAX;
    char digits[9];
    memcpy(digits, text, n - 1);
    digits[n - 1] = 0;
    uint64_t v;
    if (str_to_u64(digits, 99999999, &v))
        return E_SYNTAX;
    switch (text[n - 1]) {
    case 'H': *out_ms = v * 3600000; return 0;
    case 'M': *out_ms = v * 60000; return 0;
    case 'S': *out_ms = v * 1000; return 0;
    case 'm': *out_ms = v; return 0;
    case 'u': *out_ms = (v + 999) / 1000; return 0;
    case 'n': *out_ms = (v + 999999) / 1000000; return 0;
    default: return E_SYNTAX;
    }
}

void header_timeout_print(char out[16], uint64_t ms) {
    static const struct {
        uint64_t ms;
        char unit;
    } units[] = {{1, 'm'}, {1000, 'S'}, {60000, 'M'}, {3600000, 'H'}};
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(units) && ms / units[i].ms > 99999999)
        i++;
    snprintf(out, 16, "%" PRIu64 "%c", MIN(ms / units[i].ms, (uint64_t)99999999), units[i].unit);
}

bool header_is_grpc_content(const char *value) {
    static const char plain[] = "application/grpc", proto[] = "application/grpc+proto";
    size_t n = strcspn(value, "; ");
    return (n == sizeof(plain) - 1 && memcmp(value, plain, n) == 0) ||
           (n == sizeof(proto) - 1 && memcmp(value, proto, n) == 0);
}

static bool is_reserved(const char *name) {
    static const char *const names[] = {"te", "content-type", "content-length", "connection", "host", "upgrade",
                                        "keep-alive", "proxy-connection", "transfer-encoding", "user-agent",
                                        "spur-error"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return str_starts(name, "grpc-");
}

int header_check(const char *name, const char *value, struct err *e) {
    if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != strlen(name))
        return err_set(e, E_USAGE, "Invalid name of metadata: '%.64s'", name);
    if (is_reserved(name))
        return err_set(e, E_USAGE, "Metadata may not be called '%s'", name);
    for (const char *p = value; *p; p++)
        if (*p < 0x20 || *p > 0x7e)
            return err_set(e, E_USAGE, "Metadata '%.64s' has a value that is not printable ASCII", name);
    if (strlen(name) + strlen(value) + 32 > HEADER_LIST_MAX / 2)
        return err_set(e, E_TOO_BIG, "Metadata '%.64s' is too long", name);
    return 0;
}

int header_code_of_http(int status) {
    switch (status) {
    case 400: return E_PROTOCOL;
    case 401: return E_BAD_PROOF;
    case 403: return E_DENIED;
    case 404: return E_METHOD;
    case 429:
    case 502:
    case 503:
    case 504: return E_UNREACHABLE;
    default: return E_PROTOCOL;
    }
}

int header_code_of_reset(uint32_t http2_error) {
    switch (http2_error) {
    case NGHTTP2_REFUSED_STREAM: return E_UNREACHABLE;
    case NGHTTP2_CANCEL: return E_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM: return E_BUSY;
    case NGHTTP2_INADEQUATE_SECURITY: return E_DENIED;
    default: return E_PROTOCOL;
    }
}

static nghttp2_nv nv(const char *name, const char *value, uint8_t flags) {
    /* nghttp2 takes pointers to writable bytes and doesn't write to them */
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value), flags};
}

nghttp2_nv header_nv(const char *name, const char *value) {
    return nv(name, value, NGHTTP2_NV_FLAG_NONE);
}

nghttp2_nv header_nv_static(const char *name, const char *value) {
    return nv(name, value, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE);
}

nghttp2_nv header_nv_once(const char *name, const char *value) {
    return nv(name, value, NGHTTP2_NV_FLAG_NO_INDEX);
}
