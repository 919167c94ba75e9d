/* SPDX-License-Identifier: Apache-2.0
 *
 * squeue's columns: rows are struct job_info, the env is struct job_env.
 */
#ifndef SPUR_SPUR_JOB_FIELDS_H
#define SPUR_SPUR_JOB_FIELDS_H

#include "spur/table.h"

const struct table_fields *job_fields(void);

#endif
