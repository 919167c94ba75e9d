/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of [controller] peers this machine is: design.md section 7.
 */
#ifndef SPUR_SPURCTLD_WHOAMI_H
#define SPUR_SPURCTLD_WHOAMI_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* node_id where it is set (1 to n); else the one peer whose host part is `host`, in any case, with or without a domain and
 * a dot at the end. Where peers holds addresses only, or no names that could be compared, the number at the end of
 * `host`, plus one (a StatefulSet's ordinal). No peers: 1. E_CONFIG says which names were compared. */
int whoami_find(const char *const *peers, size_t n, uint32_t node_id, const char *host, uint32_t *out_id, struct err *e);

#endif
