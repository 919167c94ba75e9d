/* SPDX-License-Identifier: Apache-2.0
 *
 * Field numbers are those of google/protobuf/descriptor.proto.
 */
#include "io/rpc/descriptor.h"

#include <string.h>

enum { SET_FILE = 1 };
enum { FILE_NAME = 1, FILE_PACKAGE = 2, FILE_DEPENDENCY = 3, FILE_MESSAGE = 4, FILE_ENUM = 5, FILE_SERVICE = 6,
       FILE_EXTENSION = 7 };
enum { MESSAGE_NAME = 1, MESSAGE_FIELD = 2, MESSAGE_NESTED = 3, MESSAGE_ENUM = 4, MESSAGE_EXTENSION = 6,
       MESSAGE_ONEOF = 8 };
enum { ENUM_NAME = 1, ENUM_VALUE = 2, SERVICE_NAME = 1, SERVICE_METHOD = 2, ANY_NAME = 1 };
enum { MAX_DEPTH = 32 };

bool descriptor_field(struct rd *message, uint32_t *out_number, struct rd *out) {
    if (message->bad || !message->p || rd_left(message) == 0)
        return false;
    uint64_t tag = rd_varint(message);
    *out_number = (uint32_t)(tag >> 3);
    *out = (struct rd){0};
    switch (tag & 7) {
    case 0: rd_varint(message); break;
    case 1: rd_take(message, 8); break;
    case 2: *out = rd_bytes(message); break;
    case 5: rd_take(message, 4); break;
    default: message->bad = true; break;
    }
    return !message->bad;
}

static struct rd field_nth(struct rd message, uint32_t wanted, size_t i) {
    uint32_t number;
    struct rd value;
    while (descriptor_field(&message, &number, &value))
        if (number == wanted && i-- == 0)
            return value;
    return (struct rd){0};
}

static bool is_same(struct rd a, struct rd b) {
    return rd_left(&a) == rd_left(&b) && (rd_left(&a) == 0 || memcmp(a.p, b.p, rd_left(&a)) == 0);
}

/* "a.b" of "a.b.c": cuts it and the dot off. false when the rest doesn't begin with it. */
static bool cut_name(struct rd *symbol, struct rd name) {
    size_t n = rd_left(&name);
    if (n == 0 || rd_left(symbol) < n || memcmp(symbol->p, name.p, n) != 0)
        return false;
    if (rd_left(symbol) == n) {
        symbol->p += n;
        return true;
    }
    if (symbol->p[n] != '.')
        return false;
    symbol->p += n + 1;
    return true;
}

/* Whether one of the message's fields `number` is a message with that name. */
static bool has_named(struct rd message, uint32_t wanted, struct rd name) {
    uint32_t number;
    struct rd value;
    while (descriptor_field(&message, &number, &value))
        if (number == wanted && is_same(field_nth(value, ANY_NAME, 0), name))
            return true;
    return false;
}

static bool message_defines(struct rd message, struct rd symbol, int depth);

/* An enum's values are named beside it, not below it. */
static bool enum_defines(struct rd e, struct rd symbol) {
    return is_same(field_nth(e, ENUM_NAME, 0), symbol) || has_named(e, ENUM_VALUE, symbol);
}

static bool message_member(struct rd message, struct rd symbol, int depth) {
    uint32_t number;
    struct rd value;
    if (has_named(message, MESSAGE_FIELD, symbol) || has_named(message, MESSAGE_ONEOF, symbol) ||
        has_named(message, MESSAGE_EXTENSION, symbol))
        return true;
    while (descriptor_field(&message, &number, &value))
        if ((number == MESSAGE_NESTED && message_defines(value, symbol, depth + 1)) ||
            (number == MESSAGE_ENUM && enum_defines(value, symbol)))
            return true;
    return false;
}

static bool message_defines(struct rd message, struct rd symbol, int depth) {
    return depth < MAX_DEPTH && cut_name(&symbol, field_nth(message, MESSAGE_NAME, 0)) &&
           (rd_left(&symbol) == 0 || message_member(message, symbol, depth));
}

static bool service_defines(struct rd service, struct rd symbol) {
    return cut_name(&symbol, field_nth(service, SERVICE_NAME, 0)) &&
           (rd_left(&symbol) == 0 || has_named(service, SERVICE_METHOD, symbol));
}

static bool file_defines(struct rd file, struct rd symbol) {
    uint32_t number;
    struct rd value, package = field_nth(file, FILE_PACKAGE, 0);
    if (rd_left(&package) && (!cut_name(&symbol, package) || rd_left(&symbol) == 0))
        return false;
    if (has_named(file, FILE_EXTENSION, symbol))
        return true;
    while (descriptor_field(&file, &number, &value))
        if ((number == FILE_MESSAGE && message_defines(value, symbol, 0)) ||
            (number == FILE_ENUM && enum_defines(value, symbol)) ||
            (number == FILE_SERVICE && service_defines(value, symbol)))
            return true;
    return false;
}

struct rd descriptor_file(struct rd set, struct rd name) {
    uint32_t number;
    struct rd file;
    while (descriptor_field(&set, &number, &file))
        if (number == SET_FILE && is_same(field_nth(file, FILE_NAME, 0), name))
            return file;
    return (struct rd){0};
}

struct rd descriptor_of_symbol(struct rd set, struct rd symbol) {
    uint32_t number;
    struct rd file;
    while (rd_left(&symbol) && descriptor_field(&set, &number, &file))
        if (number == SET_FILE && file_defines(file, symbol))
            return file;
    return (struct rd){0};
}

struct rd descriptor_dependency(struct rd file, size_t i) {
    return field_nth(file, FILE_DEPENDENCY, i);
}
