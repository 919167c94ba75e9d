/* SPDX-License-Identifier: Apache-2.0
 *
 * docs/compatibility.md, from the tables: `spur compat` prints it, a test compares.
 */
#ifndef SPUR_SPUR_COMPAT_H
#define SPUR_SPUR_COMPAT_H

#include "base/str.h"

void compat_page(struct str *out);
/* AMD Spur's flags and variables: compat_amd.c. */
void compat_amd(struct str *out);
/* Slurm's own tests that don't pass: compat_suite.c. */
void compat_suite(struct str *out);

#endif
