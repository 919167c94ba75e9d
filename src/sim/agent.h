/* SPDX-License-Identifier: Apache-2.0
 *
 * Agents in a virtual world: a *vagent* is spurd's own rooms (table, report) on a virtual host, with runs that are only
 * numbers: what a script says on its line "# run MS exit CODE" is how long it runs and how it ends.
 */
#ifndef SPUR_SIM_AGENT_H
#define SPUR_SIM_AGENT_H

#include "core/model/job.h"
#include "sim/world.h"
#include "wire/messages.h"
#include "wire/methods.h"

struct vagent;
struct vagent *vagent_new(struct vworld *w, const char *name, uint32_t cpus, uint64_t mem_mb);
void vagent_free(struct vagent *a);
void vagent_start(struct vagent *a);
void vagent_stop(struct vagent *a);            /* the agent alone: its runs go on */
void vagent_reboot(struct vagent *a, bool forget); /* stopped, all runs die; forget: nothing of them is on its disk */
void vagent_cut(struct vagent *a, bool is_cut);
bool vagent_is_up(const struct vagent *a);
const char *vagent_name(const struct vagent *a);
uint32_t vagent_live(const struct vagent *a);  /* runs with processes */
uint32_t vagent_known(const struct vagent *a); /* runs that its table has, ended ones too */
/* The most CPUs that live runs ever held at once. */
uint32_t vagent_most_cpus(const struct vagent *a);
/* Each time a run comes to life, and when its script comes to its own end. */
enum vran { VRAN_BEGAN, VRAN_FINISHED };
typedef void (*vagent_ran_fn)(void *arg, const struct vagent *a, enum vran what, uint32_t job_id, uint32_t start_no,
                              bool is_batch, uint32_t wait_status);
void vagent_watch(struct vagent *a, vagent_ran_fn fn, void *arg);
/* Whether a live run of the job's script is here. */
bool vagent_runs_batch(const struct vagent *a, uint32_t job_id, uint32_t *out_start_no);

#endif
