/* SPDX-License-Identifier: Apache-2.0
 *
 * gRPC's headers: values that have a form of their own, and what names and values are allowed. Internal to io/rpc.
 */
#ifndef SPUR_IO_RPC_HEADER_H
#define SPUR_IO_RPC_HEADER_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* What both sides bound a list of headers to, counted as HTTP/2 does: names, values and 32 bytes each. */
enum { HEADER_LIST_MAX = 32 << 10 };

struct header {
    struct header *next;
    const char *name, *value;
};
const char *header_find(const struct header *list, const char *name); /* NULL: absent */

/* grpc-message: printable ASCII but for '%' as it is, the rest as %XX. */
void header_percent_encode(struct str *out, const char *text);
void header_percent_decode(char *text); /* in place; a broken escape stays as it is */

/* grpc-timeout: at most 8 digits and a unit of HMSmun. Parsing rounds up to milliseconds. */
int header_timeout_parse(const char *text, uint64_t *out_ms);
void header_timeout_print(char out[16], uint64_t ms);

bool header_is_grpc_content(const char *value); /* application/grpc or application/grpc+proto, parameters allowed */

/* Whether an application may send it as metadata: lower case, printable, and not one of the protocol's own. */
int header_check(const char *name, const char *value, struct err *e);

/* What an answer without grpc-status means, by its HTTP status. */
int header_code_of_http(int status);
/* What the reset of a stream means, by its HTTP/2 error code. */
int header_code_of_reset(uint32_t http2_error);

/* A name/value pair for nghttp2. Static: strings that are there for ever, so that nghttp2 need not copy them. */
nghttp2_nv header_nv(const char *name, const char *value);
nghttp2_nv header_nv_static(const char *name, const char *value);
nghttp2_nv header_nv_once(const char *name, const char *value); /* kept out of the compression table: never the same */

#endif
