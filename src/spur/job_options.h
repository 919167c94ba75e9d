/* SPDX-License-Identifier: Apache-2.0
 *
 * The one table of options of sbatch, srun and salloc (job_options.c).
 */
#ifndef SPUR_SPUR_JOB_OPTIONS_H
#define SPUR_SPUR_JOB_OPTIONS_H

#include <stddef.h>

#include "spur/opt.h"

enum job_command { JOB_SBATCH, JOB_SRUN, JOB_SALLOC, JOB_N_COMMANDS };

const struct opt_row *job_option_rows(enum job_command c, size_t *out_n);

#endif
