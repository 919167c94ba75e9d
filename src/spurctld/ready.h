/* SPDX-License-Identifier: Apache-2.0
 *
 * The ready file: tells a starter that requests are served and on which ports. Written whole or not at all.
 */
#ifndef SPUR_SPURCTLD_READY_H
#define SPUR_SPURCTLD_READY_H

#include "base/err.h"

int ready_write(const char *path, const char *text, struct err *e);

#endif
