/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to a serialized google.protobuf.FileDescriptorSet, answered by reading through it. Internal to io/rpc.
 */
#ifndef SPUR_IO_RPC_DESCRIPTOR_H
#define SPUR_IO_RPC_DESCRIPTOR_H

#include "base/buf.h"

/* The file of that name, or the one that defines the symbol ("package.Message.field", "package.Service.Method"). Both
 * return an empty reader (p NULL) when there is none. */
struct rd descriptor_file(struct rd set, struct rd name);
struct rd descriptor_of_symbol(struct rd set, struct rd symbol);
/* The file's i-th dependency's name; p NULL when it has no so many. */
struct rd descriptor_dependency(struct rd file, size_t i);

/* One field of a message: advances. false at the end or where the bytes are broken. For wire type 2 `out` is the bytes;
 * for numbers it is empty. */
bool descriptor_field(struct rd *message, uint32_t *out_number, struct rd *out);

#endif
