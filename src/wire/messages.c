/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptions of all messages. One line each; see messages.h.
 */
#include "wire/messages.h"

#define REC_SELF controller_info
REC_DEFINE(controller_info, CONTROLLER_INFO_FIELDS)
#undef REC_SELF

#define REC_SELF confirm_request
REC_DEFINE(confirm_request, CONFIRM_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF confirm_reply
REC_DEFINE(confirm_reply, CONFIRM_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF read_index_reply
REC_DEFINE(read_index_reply, READ_INDEX_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF hello_request
REC_DEFINE(hello_request, HELLO_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF hello_reply
REC_DEFINE(hello_reply, HELLO_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF join_request
REC_DEFINE(join_request, JOIN_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF offer_request
REC_DEFINE(offer_request, OFFER_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF forward_request
REC_DEFINE(forward_request, FORWARD_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF forward_reply
REC_DEFINE(forward_reply, FORWARD_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF reread_reply
REC_DEFINE(reread_reply, REREAD_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF controller_change
REC_DEFINE(controller_change, CONTROLLER_CHANGE_FIELDS)
#undef REC_SELF

#define REC_SELF node_place
REC_DEFINE(node_place, NODE_PLACE_FIELDS)
#undef REC_SELF

#define REC_SELF step_ticket
REC_DEFINE(step_ticket, STEP_TICKET_FIELDS)
#undef REC_SELF

#define REC_SELF step_ticket_signed
REC_DEFINE(step_ticket_signed, STEP_TICKET_SIGNED_FIELDS)
#undef REC_SELF

#define REC_SELF step_ref
REC_DEFINE(step_ref, STEP_REF_FIELDS)
#undef REC_SELF

#define REC_SELF requeue_request
REC_DEFINE(requeue_request, REQUEUE_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF suspend_request
REC_DEFINE(suspend_request, SUSPEND_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF update_request
REC_DEFINE(update_request, UPDATE_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF node_update_request
REC_DEFINE(node_update_request, NODE_UPDATE_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF part_update_request
REC_DEFINE(part_update_request, PART_UPDATE_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF script_request
REC_DEFINE(script_request, SCRIPT_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF script_reply
REC_DEFINE(script_reply, SCRIPT_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF why_request
REC_DEFINE(why_request, WHY_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF why_reply
REC_DEFINE(why_reply, WHY_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF config_reply
REC_DEFINE(config_reply, CONFIG_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF log_level_request
REC_DEFINE(log_level_request, LOG_LEVEL_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF step_request
REC_DEFINE(step_request, STEP_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF step_reply
REC_DEFINE(step_reply, STEP_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF attend_request
REC_DEFINE(attend_request, ATTEND_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF attend_reply
REC_DEFINE(attend_reply, ATTEND_REPLY_FIELDS)
#undef REC_SELF

#define REC_SELF attach_request
REC_DEFINE(attach_request, ATTACH_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF step_report
REC_DEFINE(step_report, STEP_REPORT_FIELDS)
#undef REC_SELF

#define REC_SELF suspend_run_request
REC_DEFINE(suspend_run_request, SUSPEND_RUN_REQUEST_FIELDS)
#undef REC_SELF

#define REC_SELF nothing
REC_DEFINE(nothing, NOTHING_FIELDS)
#undef REC_SELF
#define REC_SELF submit_request
REC_DEFINE(submit_request, SUBMIT_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF submit_reply
REC_DEFINE(submit_reply, SUBMIT_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF job_result
REC_DEFINE(job_result, JOB_RESULT_FIELDS)
#undef REC_SELF
#define REC_SELF cancel_request
REC_DEFINE(cancel_request, CANCEL_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF results
REC_DEFINE(results, RESULTS_FIELDS)
#undef REC_SELF
#define REC_SELF hold_request
REC_DEFINE(hold_request, HOLD_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF jobs_request
REC_DEFINE(jobs_request, JOBS_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF priority_parts
REC_DEFINE(priority_parts, PRIORITY_PARTS_FIELDS)
#undef REC_SELF
#define REC_SELF priority_weights
REC_DEFINE(priority_weights, PRIORITY_WEIGHTS_FIELDS)
#undef REC_SELF
#define REC_SELF job_info
REC_DEFINE(job_info, JOB_INFO_FIELDS)
#undef REC_SELF
#define REC_SELF jobs_reply
REC_DEFINE(jobs_reply, JOBS_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF wait_request
REC_DEFINE(wait_request, WAIT_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF wait_reply
REC_DEFINE(wait_reply, WAIT_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF node_info
REC_DEFINE(node_info, NODE_INFO_FIELDS)
#undef REC_SELF
#define REC_SELF nodes_reply
REC_DEFINE(nodes_reply, NODES_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF history_request
REC_DEFINE(history_request, HISTORY_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF history_reply
REC_DEFINE(history_reply, HISTORY_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF ping_reply
REC_DEFINE(ping_reply, PING_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF counter
REC_DEFINE(counter, COUNTER_FIELDS)
#undef REC_SELF
#define REC_SELF diag_request
REC_DEFINE(diag_request, DIAG_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF diag_reply
REC_DEFINE(diag_reply, DIAG_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF token_request
REC_DEFINE(token_request, TOKEN_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF token_reply
REC_DEFINE(token_reply, TOKEN_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF join_token_request
REC_DEFINE(join_token_request, JOIN_TOKEN_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF join_token_reply
REC_DEFINE(join_token_reply, JOIN_TOKEN_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF reconfigure_reply
REC_DEFINE(reconfigure_reply, RECONFIGURE_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF run_ref
REC_DEFINE(run_ref, RUN_REF_FIELDS)
#undef REC_SELF
#define REC_SELF register_request
REC_DEFINE(register_request, REGISTER_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF register_reply
REC_DEFINE(register_reply, REGISTER_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF leave_request
REC_DEFINE(leave_request, LEAVE_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF heartbeat_request
REC_DEFINE(heartbeat_request, HEARTBEAT_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF heartbeat_reply
REC_DEFINE(heartbeat_reply, HEARTBEAT_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF run_report
REC_DEFINE(run_report, RUN_REPORT_FIELDS)
#undef REC_SELF
#define REC_SELF launch_request
REC_DEFINE(launch_request, LAUNCH_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF launch_reply
REC_DEFINE(launch_reply, LAUNCH_REPLY_FIELDS)
#undef REC_SELF
#define REC_SELF signal_request
REC_DEFINE(signal_request, SIGNAL_REQUEST_FIELDS)
#undef REC_SELF
#define REC_SELF terminate_request
REC_DEFINE(terminate_request, TERMINATE_REQUEST_FIELDS)
#undef REC_SELF
