/* SPDX-License-Identifier: Apache-2.0
 *
 * All bytes to or from a blocking descriptor: neither a signal nor a short count is an end. errno tells why it failed.
 */
#ifndef SPUR_BASE_FD_H
#define SPUR_BASE_FD_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

int fd_write(int fd, const void *p, size_t n);  /* 0, -1 */
ssize_t fd_read(int fd, void *p, size_t n);     /* how many: fewer than n at the end alone; -1 */
int dir_sync(const char *dir, struct err *e);   /* names that were made, changed or removed in it are durable */

#endif
