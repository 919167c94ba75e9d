/* SPDX-License-Identifier: Apache-2.0
 *
 * A munge credential for one request, where munged runs on this machine: its word on who we are.
 */
#ifndef SPUR_LIBSPUR_MUNGE_H
#define SPUR_LIBSPUR_MUNGE_H

#include "base/str.h"

/* Adds the header line to the metadata; nothing where there is no munge. Each request and each repeat needs its own: one
 * is good for once. MUNGE_SOCKET names another socket than the library's own. */
void munge_add(const char *path, struct str *metadata);

#endif
