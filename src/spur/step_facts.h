/* SPDX-License-Identifier: Apache-2.0
 *
 * What squeue -s, scontrol show step and sacct say of a step. A batch script is no step of the state's; here it is made
 * one, so that all of them are rows of one kind.
 */
#ifndef SPUR_SPUR_STEP_FACTS_H
#define SPUR_SPUR_STEP_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "spur/job_facts.h"
#include "spur/table.h"

struct step_batch {
    struct step step;
    struct step_spec spec;
    struct step_node node;
};
/* false: the job has none (it never began, or has no script). Borrows from the job. */
bool step_of_batch(const struct job *j, struct step_batch *out);

struct step_row {
    const struct job_info *ji;
    const struct step *step;
};
const struct table_fields *step_fields(void); /* rows: struct step_row; env: struct job_env */

/* A step that a signal ended is CANCELLED, as Slurm shows it. */
uint32_t step_shown_state(const struct step *s);
void step_id_text(const struct job *j, const struct step *s, struct str *out); /* "12.0", "12_3.batch" */
const char *step_layout_word(const struct step_spec *s); /* as Slurm calls it; NULL: block */
void step_node_list(const struct step *s, struct str *out);
void step_nodes_json(struct json *w, const struct step *s); /* "nodes" of --json: count, range, list */
int64_t step_run_secs(const struct job *j, const struct step *s, int64_t now_unix);
/* "cpu=4,gres/gpu=2,mem=3G,node=1", sorted by name. */
void step_tres(const struct step *s, char unit, struct str *out);

#endif
