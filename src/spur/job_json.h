/* SPDX-License-Identifier: Apache-2.0
 *
 * What squeue --json says of a job that its columns don't say in the same way: numbers (by which -S sorts, too) and
 * what has parts of its own. Rows are struct job_info, the env is struct job_env.
 */
#ifndef SPUR_SPUR_JOB_JSON_H
#define SPUR_SPUR_JOB_JSON_H

#include <stdint.h>

#include "spur/json.h"

#define JOB_NUMBERS(F)                                                                                                \
    F(id) F(array_job_id) F(array_task_id) F(array_max_tasks) F(batch_flag) F(billable) F(contiguous) F(cpus) F(cpus_per_task) \
    F(deadline) F(eligible) F(end) F(gid) F(hold) F(limit) F(max_nodes) F(mem_cpu) F(mem_node) F(memory) F(min_cpus)  \
    F(nice) F(nodes) F(pre_suspend) F(priority) F(requeue) F(restarts) F(start) F(submit) F(suspend) F(tasks)         \
    F(tasks_per_node) F(time_min) F(uid) F(zero) F(cores) F(sockets) F(threads) F(tasks_per_core)       \
    F(tasks_per_socket) F(tmp_disk) F(delay_boot) F(switches) F(switches_wait)
#define JOB_OWN(F)                                                                                                    \
    F(billable) F(derived_exit) F(exit_code) F(gres_detail) F(resources) F(shared) F(state) F(state_text) F(step_id)  \
    F(tres_req) F(tres_alloc) F(profile) F(mail_type) F(std_out) F(std_err) F(std_in)

#define JOB_NUMBER(name) int64_t job_number_##name(const void *row, const void *env);
JOB_NUMBERS(JOB_NUMBER)
#undef JOB_NUMBER
#define JOB_WRITE(name) void job_json_##name(struct json *w, const char *key, const void *row, const void *env);
JOB_OWN(JOB_WRITE)
#undef JOB_WRITE

#endif
