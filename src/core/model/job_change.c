/* SPDX-License-Identifier: Apache-2.0
 *
 * New values of a job's description: those whose bit of enum job_change is set.
 */
#include "core/model/job.h"

/* Fields of the spec; a list goes with its count. */
static void set_spec(struct job_spec *to, const struct job_spec *from, uint32_t bits) {
#define SET(bit, ...)                                                                                                  \
    if (bits & (bit)) {                                                                                                \
        __VA_ARGS__                                                                                                    \
    }
#define COPY(x) to->x = from->x;
    SET(CHANGE_NAME, COPY(name))
    SET(CHANGE_COMMENT, COPY(comment))
    SET(CHANGE_TIME_LIMIT, COPY(time_limit_min))
    SET(CHANGE_BEGIN, COPY(begin_unix))
    SET(CHANGE_PARTITION, COPY(partition))
    SET(CHANGE_ACCOUNT, COPY(account))
    SET(CHANGE_QOS, COPY(qos))
    SET(CHANGE_NICE, COPY(nice))
    SET(CHANGE_NODES, COPY(min_nodes) COPY(max_nodes) COPY(min_nodes_given))
    SET(CHANGE_TASKS, COPY(n_tasks) COPY(n_tasks_given) COPY(cpus_per_task) COPY(cpus_per_task_given))
    SET(CHANGE_MEMORY, COPY(mem_node_mb) COPY(mem_all))
    SET(CHANGE_NODE_LISTS, COPY(req_nodes) COPY(n_req_nodes) COPY(exc_nodes) COPY(n_exc_nodes))
    SET(CHANGE_DEPENDENCY, COPY(dependency))
    SET(CHANGE_REQUEUE, COPY(no_requeue))
    SET(CHANGE_OUTPUT, COPY(std_out) COPY(std_err) COPY(std_in))
#undef COPY
}

static void set_more(struct job_more *to, const struct job_more *from, uint32_t bits) {
#define COPY(x) to->x = from->x;
    SET(CHANGE_TIME_MIN, COPY(time_min_min))
    SET(CHANGE_DEADLINE, COPY(deadline_unix))
    SET(CHANGE_NODES, COPY(nodes_given))
    SET(CHANGE_TASKS, COPY(tasks_per_node))
    SET(CHANGE_MEMORY, COPY(mem_cpu_mb))
    SET(CHANGE_NODE_LISTS, COPY(task_nodes) COPY(n_task_nodes))
    SET(CHANGE_FEATURES, COPY(features))
    SET(CHANGE_PREFER, COPY(prefer))
    SET(CHANGE_ADMIN_COMMENT, COPY(admin_comment))
    SET(CHANGE_GRES, COPY(gres_text) COPY(gpus_text) COPY(gres) COPY(n_gres))
    SET(CHANGE_LICENSES, COPY(licenses_text) COPY(licenses) COPY(n_licenses))
    SET(CHANGE_REQUEUE, COPY(requeue))
    SET(CHANGE_CONTIGUOUS, COPY(contiguous))
    SET(CHANGE_SHARE, COPY(exclusive) COPY(oversubscribe))
#undef COPY
}

void job_spec_change(struct job_spec *to, struct job_more *to_more, const struct job_spec *from, uint32_t changes) {
    set_spec(to, from, changes);
    set_more(to_more, job_spec_more(from), changes);
}
