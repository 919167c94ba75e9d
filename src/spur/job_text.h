/* SPDX-License-Identifier: Apache-2.0
 *
 * What squeue's columns say of a job: rows are struct job_info, the env is struct job_env.
 */
#ifndef SPUR_SPUR_JOB_TEXT_H
#define SPUR_SPUR_JOB_TEXT_H

#include "base/str.h"

#define JOB_TEXTS(F) \
    F(id) F(raw_id) F(array_job_id) F(array_task_id) F(tres_per_node) F(tres_per_job) F(tres_per_task) \
    F(batch_flag) F(exclusive) F(contiguous) F(over_subscribe) F(features) F(prefer) F(licenses) F(licenses_alloc) F(deadline) \
    F(time_min) F(tasks_per_node) F(account) F(qos) F(admin_comment) F(comment) F(command) F(name) F(batch_host) F(cpus) \
    F(min_cpus) F(cpus_per_task) F(n_nodes) F(max_nodes) F(n_tasks) F(dependency) F(end_time) F(start_time) \
    F(submit_time) F(eligible_time) F(gid) F(group) F(uid) F(user) F(time_left) F(time_limit) F(time_used) \
    F(pending_time) F(min_memory) F(node_list) F(req_nodes) F(exc_nodes) F(partition) F(priority_long) \
    F(priority) F(sched_nodes) F(reason) F(reason_list) F(state) F(state_compact) F(sluid) F(nice) F(work_dir) \
    F(exit_code) F(std_out) F(std_err) F(std_in) F(tres) F(requeue) F(restarts) F(cluster) F(alloc_node) F(array_task_string) F(submit_line) \
    F(cores) F(sockets) F(threads) F(sct) F(tasks_per_core) F(tasks_per_socket) F(tmp_disk) F(wckey) F(extra) F(mail_user) \
    F(cpus_per_tres) F(mem_per_tres) F(delay_boot) F(switches) F(switches_wait)

#define JOB_TEXT(name) void job_text_##name(const void *row, const void *env, struct str *out);
JOB_TEXTS(JOB_TEXT)
#undef JOB_TEXT

#endif
