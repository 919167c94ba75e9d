/* SPDX-License-Identifier: Apache-2.0
 *
 * A job of sacct --json with its steps, in the shape of Slurm's data_parser v0.0.45.
 */
#ifndef SPUR_SPUR_SACCT_JSON_H
#define SPUR_SPUR_SACCT_JSON_H

#include "spur/job_facts.h"
#include "spur/json.h"

/* As an element of the array that is open. */
void sacct_json_job(struct json *w, const struct job_info *ji, const struct job_env *env, bool with_steps);

#endif
