/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptions of the records of commands.
 */
#include "core/state/command.h"

#define REC_SELF cmd_cluster_init
REC_DEFINE(cmd_cluster_init, CMD_CLUSTER_INIT_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_config_set
REC_DEFINE(cmd_config_set, CMD_CONFIG_SET_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_submit
REC_DEFINE(cmd_submit, CMD_SUBMIT_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_hold
REC_DEFINE(cmd_hold, CMD_HOLD_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_cancel
REC_DEFINE(cmd_cancel, CMD_CANCEL_FIELDS)
#undef REC_SELF

#define REC_SELF job_start
REC_DEFINE(job_start, JOB_START_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_start
REC_DEFINE(cmd_start, CMD_START_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_running
REC_DEFINE(cmd_running, CMD_RUNNING_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_undo
REC_DEFINE(cmd_undo, CMD_UNDO_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_node_done
REC_DEFINE(cmd_node_done, CMD_NODE_DONE_FIELDS)
#undef REC_SELF

#define REC_SELF run_id
REC_DEFINE(run_id, RUN_ID_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_timeout
REC_DEFINE(cmd_timeout, CMD_TIMEOUT_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_requeue
REC_DEFINE(cmd_requeue, CMD_REQUEUE_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_suspend
REC_DEFINE(cmd_suspend, CMD_SUSPEND_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_update
REC_DEFINE(cmd_update, CMD_UPDATE_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_step_start
REC_DEFINE(cmd_step_start, CMD_STEP_START_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_step_cancel
REC_DEFINE(cmd_step_cancel, CMD_STEP_CANCEL_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_step_done
REC_DEFINE(cmd_step_done, CMD_STEP_DONE_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_warned
REC_DEFINE(cmd_warned, CMD_WARNED_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_deadline
REC_DEFINE(cmd_deadline, CMD_DEADLINE_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_join_token
REC_DEFINE(cmd_join_token, CMD_JOIN_TOKEN_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_node_update
REC_DEFINE(cmd_node_update, CMD_NODE_UPDATE_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_partition
REC_DEFINE(cmd_partition, CMD_PARTITION_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_purge
REC_DEFINE(cmd_purge, CMD_PURGE_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_node_register
REC_DEFINE(cmd_node_register, CMD_NODE_REGISTER_FIELDS)
#undef REC_SELF

#define REC_SELF cmd_node_state
REC_DEFINE(cmd_node_state, CMD_NODE_STATE_FIELDS)
#undef REC_SELF

#define REC_SELF answer_item
REC_DEFINE(answer_item, ANSWER_ITEM_FIELDS)
#undef REC_SELF

#define REC_SELF answer
REC_DEFINE(answer, ANSWER_FIELDS)
#undef REC_SELF
