/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipeline of a request: find its row → who asks → may they → is there room → here or at the leader (forward.c) →
 * decode → handler. rpc.def is the table; this file is what every row has in common.
 */
#include "spurctld/api/api.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "spur_descriptors.h"
#include "spurctld/api/request.h"

#define SUBMIT_MAX_BYTES (16u << 20)
#define MESSAGE_MAX_BYTES (4u << 20)
#define FORWARD_MORE_BYTES 65536u /* around another's message */
#define IN_FLIGHT_READ 4096u /* beyond it reads are told to come back; writes at twice, agents at four times that */
#define IN_FLIGHT_USER 2048u
#define USERS_COUNTED 1000u
#define RETRY_AFTER_MS "100"

static const struct rpc_row rows[] = {
#define RPC(service, name, role, leader, class, handler)                                                               \
    {WIRE_##service##_##name, ROLE_##role, RULE_##leader, CLASS_##class, handler},
#include "spurctld/api/rpc.def"
#undef RPC
};

struct api {
    struct loop *loop;
    struct room *room;
    struct api_ctl ctl;
    struct identity *identity;
    struct forwards *forwards;
    struct rpc_server *server;
    struct rpc_method methods[ARRAY_LEN(rows)];
    struct api_method_stats stats[WIRE_N_METHODS];
    VEC(struct api_user_stats) users;
    struct map64 user_place; /* uid + 1 → place + 1 */
    uint64_t in_flight;
    struct map64 by_user; /* uid + 1 → requests in flight, as a pointer */
};

static int64_t now_us(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* ---- ends ---- */

static void count_user(struct api *a, uint32_t uid, int by) {
    uint64_t key = (uint64_t)uid + 1;
    uint64_t n = (uint64_t)(uintptr_t)map64_get(&a->by_user, key) + (uint64_t)by;
    if (n)
        map64_put(&a->by_user, key, (void *)(uintptr_t)n);
    else
        map64_del(&a->by_user, key);
}

static void tally_user(struct api *a, uint32_t uid, uint64_t us) {
    uint64_t key = (uint64_t)uid + 1;
    uintptr_t place = (uintptr_t)map64_get(&a->user_place, key);
    if (!place && a->users.n >= USERS_COUNTED)
        return;
    if (!place) {
        vec_push(&a->users, ((struct api_user_stats){.uid = uid}));
        place = a->users.n;
        map64_put(&a->user_place, key, (void *)place);
    }
    a->users.p[place - 1].calls++;
    a->users.p[place - 1].total_us += us;
}

static void api_end(struct request *rq, bool failed) {
    struct api *a = rq->api;
    struct api_method_stats *st = &a->stats[rq->row->method];
    uint64_t us = (uint64_t)(now_us() - rq->begun_us);
    st->calls++;
    st->failed += failed;
    st->total_us += us;
    st->max_us = MAX(st->max_us, us);
    a->in_flight--;
    struct log_about old = log_about_set(rq->about.id);
    log_debug("%s of %s: %s in %llu us", wire_method(rq->row->method)->name, rq->who.user[0] ? rq->who.user : "a node or nobody",
              failed ? "refused" : "answered", (unsigned long long)us);
    log_about_set(old.id);
    if (rq->who.user[0])
        tally_user(a, rq->who.uid, us);
    if (rq->counts_user)
        count_user(a, rq->who.uid, -1);
    free(rq->held);
    arena_fini(&rq->arena);
    free(rq);
}

void api_reply_bytes(struct request *rq, const void *p, size_t n) {
    auto_buf wrapped = {0};
    if (rq->is_forwarded) {
        struct forward_reply reply = {.message = p, .n_message = (uint32_t)n};
        rec_encode(forward_reply_rec(), &reply, &wrapped);
        p = wrapped.p;
        n = wrapped.n;
    }
    rpc_reply(rq->call, p ? p : "", n);
    api_end(rq, false);
}

void api_reply(struct request *rq, const void *record) {
    auto_buf bytes = {0};
    rec_encode(wire_method(rq->row->method)->reply(), record, &bytes);
    api_reply_bytes(rq, bytes.p, bytes.n);
}

void api_fail(struct request *rq, int code, const struct err *why) {
    struct err e;
    if (forward_again(rq, code))
        return;
    if (!why || !why->text[0] || why->code != code) {
        err_set(&e, code, "%s", why && why->text[0] ? why->text : err_sentence(code));
        why = &e;
    }
    if (code == E_BUSY || code == E_QUEUE_FULL)
        rpc_trailer(rq->call, "retry-after-ms", RETRY_AFTER_MS);
    rpc_fail(rq->call, why);
    api_end(rq, true);
}

void api_on_record(void *arg, int code, const struct err *why, const void *reply) {
    struct request *rq = arg;
    if (code)
        api_fail(rq, code, why);
    else
        api_reply(rq, reply);
}

void api_on_bytes(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct request *rq = arg;
    if (code)
        api_fail(rq, code, why);
    else
        api_reply_bytes(rq, reply, n);
}

const struct api_ctl *api_ctl_of(const struct api *a) {
    return &a->ctl;
}

/* ---- the pipeline ---- */

static bool is_full(const struct api *a, const struct rpc_row *row) {
    static const uint64_t most[] = {
        [CLASS_AGENT] = 4 * IN_FLIGHT_READ, [CLASS_WRITE] = 2 * IN_FLIGHT_READ, [CLASS_READ] = IN_FLIGHT_READ};
    return a->in_flight > most[row->class];
}

static int check_role(const struct request *rq, struct err *e) {
    if (rq->row->role == ROLE_ADMIN && !rq->who.is_admin)
        return err_set(e, E_DENIED, NULL);
    return 0;
}

static int check_bounds(struct request *rq, struct err *e) {
    struct api *a = rq->api;
    if (rq->row->role != ROLE_USER)
        return 0;
    count_user(a, rq->who.uid, 1);
    rq->counts_user = true;
    uint64_t n = (uint64_t)(uintptr_t)map64_get(&a->by_user, (uint64_t)rq->who.uid + 1);
    return n > IN_FLIGHT_USER ? err_set(e, E_BUSY, NULL) : 0;
}

void api_run(struct request *rq) {
    struct err e = {0};
    const struct rec_desc *d = wire_method(rq->row->method)->request();
    int rc = rpc_is_cancelled(rq->call) ? E_CANCELLED : 0;
    if (!rc && !rq->message) {
        void *record = arena_alloc(&rq->arena, d->size);
        rc = rec_decode(d, rq->raw, rq->n_raw, &rq->arena, record, &e);
        rq->message = record;
    }
    if (rc) {
        api_fail(rq, rc == E_CORRUPT ? E_PROTOCOL : rc, &e);
        return;
    }
    rq->ran = true;
    rq->row->handler(rq);
}

/* Who asks is known. */
static void enter(struct request *rq) {
    struct err e = {0};
    int rc = rpc_is_cancelled(rq->call) ? E_CANCELLED : check_role(rq, &e);
    if (!rc)
        rc = check_bounds(rq, &e);
    if (rc)
        api_fail(rq, rc, &e);
    else
        forward_route(rq);
}

static void on_identity(void *arg, int code, const struct err *why, const struct who *who) {
    struct request *rq = arg;
    struct log_about old = log_about_set(rq->about.id);
    if (code) {
        log_info("%s from %s refused: %s", wire_method(rq->row->method)->name, rpc_peer(rq->call)->address,
                 why ? why->text : "");
        api_fail(rq, code, why);
    } else {
        rq->who = *who;
        rq->is_known = true;
        enter(rq);
    }
    log_about_set(old.id);
}

void api_identify(struct request *rq) {
    identity_of(rq->api->identity, rq->call, rq->row->class == CLASS_WRITE || rq->row->role == ROLE_ADMIN, on_identity, rq);
}

/* A node's proof is over the body and with the key of the node that the body names, so it comes after decoding. And where
 * the state is that of the moment: at the leader. */
void api_run_for_node(struct request *rq) {
    struct err e = {0};
    const struct wire_method_info *m = wire_method(rq->row->method);
    void *record = arena_alloc(&rq->arena, m->request()->size);
    const char *name = NULL;
    const uint8_t *key = NULL;
    int rc = rec_decode(m->request(), rq->raw, rq->n_raw, &rq->arena, record, &e);
    if (!rc && rq->row->method == WIRE_Registry_Register) {
        const struct node *n = ((struct register_request *)record)->node;
        name = n ? n->name : NULL;
        key = n && n->n_public_key == CRED_PUBLIC_SIZE ? n->public_key : NULL;
    } else if (!rc) {
        name = rq->row->method == WIRE_Registry_Report       ? ((struct run_report *)record)->name
               : rq->row->method == WIRE_Registry_StepReport ? ((struct step_report *)record)->name
               : rq->row->method == WIRE_Registry_Leave      ? ((struct leave_request *)record)->name
                                                             : ((struct heartbeat_request *)record)->name;
    }
    if (!rc)
        rc = identity_check_node(rq->api->identity, rq->proof, m->path, name, key, rq->raw, rq->n_raw, &e);
    if (rc) {
        log_info("%s of node %s from %s refused: %s", m->name, name ? name : "?", rpc_peer(rq->call)->address, e.text);
        api_fail(rq, rc == E_CORRUPT ? E_PROTOCOL : rc, &e);
        return;
    }
    rq->message = record;
    api_run(rq);
}

void api_enter_forwarded(struct request *rq) {
    struct log_about old = log_about_set(rq->about.id);
    if (is_full(rq->api, rq->row))
        api_fail(rq, E_BUSY, NULL);
    else
        enter(rq);
    log_about_set(old.id);
}

const struct rpc_row *api_row(const char *path) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (str_eq(wire_method(rows[i].method)->path, path))
            return &rows[i];
    return NULL;
}

struct forwards *api_forwards(struct api *a) {
    return a->forwards;
}

/* As its client named it; else a name of our own. */
static struct log_about name_of(const struct api *a, const struct rpc_call *call) {
    struct log_about out = {0};
    const char *said = rpc_metadata(call, "spur-request");
    if (log_about_is_id(said))
        memcpy(out.id, said, strlen(said));
    else
        snprintf(out.id, sizeof(out.id), "%016llx", (unsigned long long)a->room->host->random(a->room->host->impl));
    return out;
}

static void start(void *ctx, struct rpc_call *call, const void *message, size_t n, const struct rpc_row *row) {
    struct api *a = ctx;
    struct request *rq = xnew(struct request);
    *rq = (struct request){.api = a, .room = a->room, .call = call, .row = row, .begun_us = now_us()};
    rq->raw = rq->held = xmemdup(message, n);
    rq->n_raw = n;
    rq->about = name_of(a, call);
    rq->proof = rpc_metadata(call, "spur-node");
    rq->is_known = row->role == ROLE_ANY || row->role == ROLE_MEMBER || row->role == ROLE_NODE;
    struct log_about old = log_about_set(rq->about.id);
    a->in_flight++;
    if (is_full(a, row))
        api_fail(rq, E_BUSY, NULL);
    else if (row->role == ROLE_MEMBER && !rpc_peer(call)->member_id)
        api_fail(rq, E_DENIED, NULL);
    else
        forward_route(rq);
    log_about_set(old.id);
}

/* io/rpc gives a method's start no place for the row: one small function a row carries it. */
#define RPC(service, name, role, leader, class, handler)                                                               \
    static void start_##service##_##name(void *ctx, struct rpc_call *call, const void *message, size_t n) {            \
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)                                                                   \
            if (rows[i].method == WIRE_##service##_##name)                                                             \
                start(ctx, call, message, n, &rows[i]);                                                                \
    }
#include "spurctld/api/rpc.def"
#undef RPC

static void (*const starts[])(void *ctx, struct rpc_call *call, const void *message, size_t n) = {
#define RPC(service, name, role, leader, class, handler) start_##service##_##name,
#include "spurctld/api/rpc.def"
#undef RPC
};

struct api *api_new(struct loop *l, struct room *r, const struct api_ctl *ctl, struct tls *tls) {
    struct api *a = xnew(struct api);
    a->loop = l;
    a->room = r;
    a->ctl = *ctl;
    a->identity = identity_new(r);
    a->forwards = forwards_new(l, r);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        a->methods[i] = (struct rpc_method){
            .path = wire_method(rows[i].method)->path,
            .max_message = rows[i].method == WIRE_Controller_Submit   ? SUBMIT_MAX_BYTES
                           : rows[i].method == WIRE_Member_Forward    ? SUBMIT_MAX_BYTES + FORWARD_MORE_BYTES
                                                                      : MESSAGE_MAX_BYTES,
            .start = starts[i],
        };
    struct rpc_server_conf conf = {
        .methods = a->methods, .n_methods = ARRAY_LEN(rows), .ctx = a, .max_connections = 20000, .tls = tls};
    conf.descriptors = spur_descriptors(&conf.n_descriptors);
    a->server = rpc_server_new(l, &conf);
    return a;
}

void api_free(struct api *a) {
    if (!a)
        return;
    forwards_stop(a->forwards);
    rpc_server_free(a->server);
    forwards_free(a->forwards);
    identity_free(a->identity);
    map64_fini(&a->by_user);
    map64_fini(&a->user_place);
    vec_fini(&a->users);
    free(a);
}

void api_adopt(struct api *a, int fd, uint32_t member_id, const char *address) {
    rpc_server_adopt(a->server, fd, member_id, address);
}

int api_listen(struct api *a, const char *address, uint16_t *out_port, struct err *e) {
    return rpc_server_listen(a->server, address, out_port, e);
}

void api_retire_plain(struct api *a) {
    rpc_server_retire_plain(a->server);
}

void api_set_serving(struct api *a, bool serving) {
    forwards_set_serving(a->forwards, serving);
    rpc_server_set_serving(a->server, serving);
}

void api_leader_changed(struct api *a) {
    forwards_look(a->forwards);
}

void api_drain(struct api *a, uint64_t grace_ms, void (*done)(void *arg), void *arg) {
    forwards_stop(a->forwards);
    rpc_server_drain(a->server, grace_ms, done, arg);
}

struct api_method_stats api_method_stats(const struct api *a, enum wire_method m) {
    return a->stats[m];
}

uint64_t api_in_flight(const struct api *a) {
    return a->in_flight;
}

void api_stats_reset(struct api *a) {
    memset(a->stats, 0, sizeof(a->stats));
    vec_fini(&a->users);
    map64_fini(&a->user_place);
    a->user_place = (struct map64){0};
}

bool api_user_stats(const struct api *a, uint32_t i, struct api_user_stats *out) {
    if (i >= a->users.n)
        return false;
    *out = a->users.p[i];
    return true;
}
