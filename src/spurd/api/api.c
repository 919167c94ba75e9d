/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/api/api.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/rpc/rpc.h"
#include "spurd/api/check.h"
#include "wire/methods.h"
#include "wire/stream.h"

#define MESSAGE_MAX (64u << 20) /* script and environment; the controller bounds them lower */

struct api {
    struct host *host;
    struct table *table;
    struct rpc_server *server;
    struct api_conf conf;
    struct cred_public key;
    bool has_key;
    struct once *once;
    struct rpc_method methods[4];
};

static void fail(struct rpc_call *call, const struct err *why) {
    if (why->code == E_CREDENTIAL || why->code == E_CRED_EXPIRED || why->code == E_CRED_REPLAY)
        log_warn("%s from %s refused: %s", rpc_method_of(call)->path, rpc_peer(call)->address, why->text);
    rpc_fail(call, why);
}

/* Whether the call is the controller's; answers it when it is not. */
static bool is_controllers(struct api *a, struct rpc_call *call, enum wire_method m, struct check_call *c, struct err *e) {
    c->path = wire_method(m)->path;
    c->header = rpc_metadata(call, "spur-launch");
    int64_t now = a->host->unix_ms(a->host->impl) / 1000;
    if (!check_credential(c, a->conf.node_name, a->has_key ? &a->key : NULL, now, e))
        return true;
    fail(call, e);
    return false;
}

/* Whether the call didn't come before; answers it when it did. */
static bool is_first(struct api *a, struct rpc_call *call, const struct check_call *c, struct err *e) {
    if (!check_once(a->once, c, a->host->unix_ms(a->host->impl) / 1000, e))
        return true;
    fail(call, e);
    return false;
}

static void answer(struct rpc_call *call, int code, const struct err *why) {
    if (code)
        fail(call, why);
    else
        rpc_reply(call, NULL, 0);
}

/* ---- Launch ---- */

static void on_launched(void *arg, int code, const struct err *why, uint32_t pid) {
    struct rpc_call *call = arg;
    struct launch_reply reply = {.pid = pid};
    auto_buf bytes = {0};
    if (code) {
        rpc_fail(call, why);
        return;
    }
    rec_encode(launch_reply_rec(), &reply, &bytes);
    rpc_reply(call, bytes.p, bytes.n);
}

static void on_launch(void *ctx, struct rpc_call *call, const void *message, size_t n) {
    struct api *a = ctx;
    auto_arena arena = {0};
    struct launch_request q;
    struct err e;
    if (rec_decode(launch_request_rec(), message, n, &arena, &q, &e)) {
        fail(call, &e);
        return;
    }
    struct check_call c = {
        .node = q.node_name, .job_id = q.job_id, .start_no = q.start_no, .uid = q.spec ? q.spec->uid : 0,
        .body = message, .n_body = n};
    if (!is_controllers(a, call, WIRE_Agent_Launch, &c, &e))
        return;
    if (!q.spec || !q.job_id || !q.start_no) {
        err_set(&e, E_SYNTAX, "a launch without job");
        fail(call, &e);
        return;
    }
    table_launch(a->table, &q, message, n, on_launched, call);
}

/* ---- Signal, Terminate ---- */

static void on_signal(void *ctx, struct rpc_call *call, const void *message, size_t n) {
    struct api *a = ctx;
    auto_arena arena = {0};
    struct signal_request q;
    struct err e;
    if (rec_decode(signal_request_rec(), message, n, &arena, &q, &e)) {
        fail(call, &e);
        return;
    }
    struct check_call c = {.node = q.node_name, .job_id = q.job_id, .start_no = q.start_no, .uid = q.uid,
                           .body = message, .n_body = n};
    if (is_controllers(a, call, WIRE_Agent_Signal, &c, &e) && is_first(a, call, &c, &e))
        answer(call, table_signal(a->table, &q, &e), &e);
}

static void on_terminate(void *ctx, struct rpc_call *call, const void *message, size_t n) {
    struct api *a = ctx;
    auto_arena arena = {0};
    struct terminate_request q;
    struct err e;
    if (rec_decode(terminate_request_rec(), message, n, &arena, &q, &e)) {
        fail(call, &e);
        return;
    }
    struct check_call c = {.node = q.node_name, .job_id = q.job_id, .start_no = q.start_no, .uid = q.uid,
                           .body = message, .n_body = n};
    if (is_controllers(a, call, WIRE_Agent_Terminate, &c, &e))
        answer(call, table_terminate(a->table, &q, &e), &e);
}

static void on_suspend(void *ctx, struct rpc_call *call, const void *message, size_t n) {
    struct api *a = ctx;
    auto_arena arena = {0};
    struct suspend_run_request q;
    struct err e;
    if (rec_decode(suspend_run_request_rec(), message, n, &arena, &q, &e)) {
        fail(call, &e);
        return;
    }
    struct check_call c = {.node = q.node_name, .job_id = q.job_id, .start_no = q.start_no, .uid = q.uid,
                           .body = message, .n_body = n};
    if (is_controllers(a, call, WIRE_Agent_Suspend, &c, &e) && is_first(a, call, &c, &e))
        answer(call, table_suspend(a->table, &q, &e), &e);
}

/* ---- life ---- */

int api_new(struct loop *l, struct host *h, struct table *t, const struct api_conf *conf, const char *listen,
            struct api **out, uint16_t *out_port, struct err *e) {
    struct api *a = xnew(struct api);
    a->host = h;
    a->table = t;
    a->conf = *conf;
    a->once = once_new();
    a->methods[0] = (struct rpc_method){.path = wire_method(WIRE_Agent_Launch)->path, .max_message = MESSAGE_MAX,
                                        .start = on_launch};
    a->methods[1] = (struct rpc_method){.path = wire_method(WIRE_Agent_Signal)->path, .start = on_signal};
    a->methods[2] = (struct rpc_method){.path = wire_method(WIRE_Agent_Terminate)->path, .start = on_terminate};
    a->methods[3] = (struct rpc_method){.path = wire_method(WIRE_Agent_Suspend)->path, .start = on_suspend};
    struct rpc_server_conf server = {.methods = a->methods,
                                     .n_methods = ARRAY_LEN(a->methods),
                                     .ctx = a,
                                     .descriptors = conf->descriptors,
                                     .n_descriptors = conf->n_descriptors,
                                     .on_other = conf->on_stream,
                                     .other_arg = conf->stream_arg,
                                     .tls = conf->tls,
                                     .other_magic = STREAM_MAGIC,
                                     .n_other_magic = STREAM_MAGIC_SIZE};
    a->server = rpc_server_new(l, &server);
    int code = rpc_server_listen(a->server, listen, out_port, e);
    if (code) {
        api_free(a);
        return code;
    }
    rpc_server_set_serving(a->server, true);
    *out = a;
    return 0;
}

void api_set_key(struct api *a, const struct cred_public *key) {
    a->key = *key;
    a->has_key = true;
}

void api_retire_plain(struct api *a) {
    rpc_server_retire_plain(a->server);
}

void api_free(struct api *a) {
    if (!a)
        return;
    rpc_server_free(a->server);
    once_free(a->once);
    free(a);
}
