/* SPDX-License-Identifier: Apache-2.0
 *
 * TOML to base/tree, by toml++ (C++ behind this one C function; libstdc++ is linked statically).
 */
#ifndef SPUR_IO_TOML_H
#define SPUR_IO_TOML_H

#include "base/arena.h"
#include "base/err.h"
#include "base/tree.h"

#ifdef __cplusplus
extern "C" {
#endif

/* E_CONFIG with "line N: what is wrong". `text` is n bytes, at most 1 MiB (E_TOO_BIG). */
int toml_parse(const char *text, size_t n, struct arena *a, struct tree **out, struct err *e);

#ifdef __cplusplus
}
#endif
#endif
