/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries of the log: their envelope.
 */
#include "core/state/command.h"

#include "base/mem.h"

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

void command_encode(const struct command_head *h, const void *record, struct buf *out) {
    const struct rec_desc *d = command_record(h->command);
    must(d);
    buf_u8(out, COMMAND_VERSION);
    buf_varint(out, h->command);
    buf_varint(out, h->uid);
    buf_zigzag(out, h->now_ms);
    buf_bytes(out, h->token, h->token ? COMMAND_TOKEN_SIZE : 0);
    auto_buf inner = {0};
    rec_encode(d, record, &inner);
    buf_bytes(out, inner.p, inner.n);
}

int command_decode(const void *p, size_t n, struct arena *a, struct command_head *out, void **out_record,
                   struct err *e) {
    struct rd r = rd_of(p, n);
    uint8_t version = rd_u8(&r);
    if (n && version != COMMAND_VERSION)
        return err_set(e, E_VERSION, "log entry of version %u; this program reads version %u", version,
                       COMMAND_VERSION);
    uint64_t number = rd_varint(&r);
    uint64_t uid = rd_varint(&r);
    int64_t now_ms = rd_zigzag(&r);
    struct rd token = rd_bytes(&r);
    struct rd body = rd_bytes(&r);
    if (r.bad || token.bad || body.bad || rd_left(&r) || uid > UINT32_MAX)
        return err_set(e, E_CORRUPT, "log entry of %zu bytes is damaged", n);
    const struct rec_desc *d = number < 65536 ? command_record((enum command)number) : NULL;
    if (!d)
        return err_set(e, E_VERSION, "log entry with command %llu, which this program does not know",
                       (unsigned long long)number);
    if (rd_left(&token) && rd_left(&token) != COMMAND_TOKEN_SIZE)
        return err_set(e, E_CORRUPT, "log entry with a token of %zu bytes", rd_left(&token));
    void *record = arena_alloc(a, d->size);
    int rc = rec_decode(d, body.p, rd_left(&body), a, record, e);
    if (rc)
        return rc;
    *out = (struct command_head){(enum command)number, (uint32_t)uid, now_ms, rd_left(&token) ? token.p : NULL};
    *out_record = record;
    return 0;
}
