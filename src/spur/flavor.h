/* SPDX-License-Identifier: Apache-2.0
 *
 * Slurm's way or AMD Spur's, for commands: no file is read for it, the environment says it (SPUR_COMPAT).
 */
#ifndef SPUR_SPUR_FLAVOR_H
#define SPUR_SPUR_FLAVOR_H

#include "base/str.h"
#include "core/model/policy.h"

/* A word that is no flavour ends the command, with a message. */
const struct policy *cli_policy(void);
/* The table of what differs, for docs/compatibility.md. */
void flavor_print(struct str *out);

#endif
