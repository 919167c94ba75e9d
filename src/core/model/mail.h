/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job's user is told of by mail: the words of --mail-type.
 */
#ifndef SPUR_CORE_MODEL_MAIL_H
#define SPUR_CORE_MODEL_MAIL_H

#include "core/model/job.h"

/* "BEGIN,END,TIME_LIMIT_80", ALL, NONE; any case. E_SYNTAX. */
int mail_type_parse(const char *s, uint32_t *out);
void mail_type_print(uint32_t bits, struct str *out); /* in Slurm's order; "NONE" */

#endif
