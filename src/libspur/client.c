/* SPDX-License-Identifier: Apache-2.0
 *
 * One call at a time over one channel, repeated where that can help.
 *
 * Every request either reads or carries a token, so all of them may be sent again: what failed on the way (broken
 * connection, no answer in time, a controller that stops or isn't the leader) and what the controller asks to send
 * later. Where there are several controllers the channel moves on to another by itself (io/rpc), so that the next
 * attempt is at once, until all of them were asked in turn. What no controller took because none could be reached at
 * all is not waited for: someone who types squeue wants to know.
 */
#include "spur/spur.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"
#include "libspur/bearer.h"
#include "libspur/munge.h"
#include "libspur/secure.h"
#include "libspur/target.h"

#define TIMEOUT_MS 60000
#define REQUEST_ID_BYTES 8
#define CALL_MS 30000
#define CONNECT_MS 10000
#define ANSWER_MAX (1u << 30) /* a list of all jobs there are is one answer */
#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 1000
#define PAUSE_TOLD_MAX_MS 10000

struct spur_client {
    struct loop *loop;
    struct tls *tls;
    struct rpc_channel *ch;
    char *targets;
    uint32_t n_targets;
    char *metadata;
    uint64_t timeout_ms;
    char request_id[2 * REQUEST_ID_BYTES + 1]; /* of the last call */
    bool asks_munge; /* over TCP, where there is no token */
};

/* One attempt. */
struct attempt {
    struct rpc_request *r;
    bool is_done, was_sent, without_proof; /* the last: it went where a proof may be asked for, with none */
    uint64_t retry_after_ms; /* as the controller said; 0: it did not */
    int code;
    struct err err;
    struct buf reply;
};

static void done(void *arg, int code, const struct err *why, const void *message, size_t n) {
    struct attempt *t = arg;
    t->is_done = true;
    t->code = code;
    t->was_sent = !t->r || rpc_request_was_sent(t->r);
    if (!code) {
        buf_add(&t->reply, message, n);
        return;
    }
    t->err = *why;
    const char *later = t->r ? rpc_request_trailer(t->r, "retry-after-ms") : NULL;
    if (later && str_to_u64(later, PAUSE_TOLD_MAX_MS, &t->retry_after_ms))
        t->retry_after_ms = 0;
}

static bool is_done(void *arg) {
    return ((struct attempt *)arg)->is_done;
}

static bool never(void *arg) {
    return false;
}

/* Who we claim to be, where the kernel doesn't say it. */
static void add_claim(struct str *metadata) {
    uid_t uid = geteuid();
    struct passwd *pw = getpwuid(uid);
    if (pw)
        str_addf(metadata, "spur-user: %s\n", pw->pw_name);
    else
        str_addf(metadata, "spur-user: %u\n", uid);
    str_addf(metadata, "spur-uid: %u\nspur-gid: %u\n", uid, getegid());
}

/* Reads are answered from what the asked controller has, without its question to the leader. */
static bool is_stale(const struct spur_options *o) {
    const char *said = getenv("SPUR_STALE");
    return (o && o->stale) || (said && *said && !str_eq(said, "0"));
}

static uint32_t count_targets(const char *targets) {
    uint32_t n = 1;
    for (const char *at = targets; (at = strchr(at, ',')); at++)
        n++;
    return n;
}

int spur_open(const struct spur_options *o, struct spur_client **out, struct err *e) {
    autofree char *targets = NULL;
    int rc = target_find(o ? o->controllers : NULL, &targets, e);
    if (rc)
        return rc;
    auto_str metadata = {0};
    bool has_token;
    str_add(&metadata, "spur-version: " SPUR_VERSION "\n");
    bool has_tcp = target_has_tcp(targets);
    rc = bearer_add(&metadata, has_tcp, &has_token, e);
    if (rc)
        return rc;
    if (is_stale(o))
        str_add(&metadata, "spur-stale: 1\n");
    if (has_tcp)
        add_claim(&metadata);
    struct tls *tls = NULL;
    rc = has_tcp ? secure_client(&tls, e) : 0;
    if (rc)
        return rc;
    struct loop *loop = loop_new("libspur");
    struct rpc_channel_conf conf = {.targets = targets, .connect_ms = CONNECT_MS, .max_message = ANSWER_MAX, .tls = tls};
    struct rpc_channel *ch = NULL;
    rc = rpc_channel_new(loop, &conf, &ch, e);
    if (rc) {
        loop_free(loop);
        tls_free(tls);
        return rc;
    }
    uint32_t n_targets = count_targets(targets);
    struct spur_client *c = xnew(struct spur_client);
    *c = (struct spur_client){.loop = loop, .tls = tls, .ch = ch, .n_targets = n_targets, .targets = take_ptr(&targets), .metadata = str_take(&metadata),
                              .timeout_ms = o && o->timeout_ms ? o->timeout_ms : TIMEOUT_MS,
                              .asks_munge = has_tcp && !has_token};
    *out = c;
    return 0;
}

void spur_close(struct spur_client *c) {
    if (!c)
        return;
    rpc_channel_free(c->ch);
    loop_free(c->loop);
    tls_free(c->tls);
    free(c->targets);
    free(c->metadata);
    free(c);
}

const char *spur_controllers(const struct spur_client *c) {
    return c->targets;
}

void spur_token(uint8_t out[TOKEN_SIZE]) {
    size_t n = 0;
    while (n < TOKEN_SIZE) {
        ssize_t got = getrandom(out + n, TOKEN_SIZE - n, 0);
        must(got > 0 || errno == EINTR);
        n += got > 0 ? (size_t)got : 0;
    }
}

const char *spur_request_id(const struct spur_client *c) {
    return c->request_id;
}

static void name_request(struct spur_client *c) {
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    for (size_t i = 0; i < REQUEST_ID_BYTES; i++)
        snprintf(c->request_id + 2 * i, 3, "%02x", token[i]);
}

static void try_once(struct spur_client *c, const char *path, const struct buf *request, uint64_t left_ms,
                     struct attempt *t) {
    uint64_t call_ms = MIN(left_ms, (uint64_t)CALL_MS);
    auto_str metadata = {0};
    str_add(&metadata, c->metadata);
    str_addf(&metadata, "spur-request: %s\n", c->request_id);
    t->without_proof = c->asks_munge && str_starts(rpc_channel_address(c->ch), "unix:");
    if (c->asks_munge && !t->without_proof) /* the kernel's word is enough, and quicker */
        munge_add(path, &metadata);
    t->r = rpc_send(c->ch, path, metadata.p, request->p, request->n, call_ms, done, t);
    if (!loop_run_until(c->loop, is_done, t, call_ms + CONNECT_MS) && !t->is_done)
        rpc_cancel(t->r);
}

/* The same request may do better a moment later. */
static bool may_retry(int code, bool was_sent) {
    switch (code) {
    case E_UNREACHABLE:
        return was_sent;
    case E_DEADLINE:
    case E_NOT_LEADER:
    case E_STOPPING:
    case E_BUSY:
        return true;
    default:
        return false;
    }
}

/* What another controller may do better at once: this one leads no cluster, goes, or does not answer. */
static bool may_move(int code) {
    return code == E_UNREACHABLE || code == E_NOT_LEADER || code == E_STOPPING || code == E_DEADLINE;
}

/* What went wrong between us and the controller is told in Slurm's words, for which tools look. */
static bool is_about_the_way(int code) {
    return code == E_UNREACHABLE || code == E_DEADLINE;
}

static int decode(const struct wire_method_info *info, struct attempt *t, struct arena *a, void *reply,
                  struct err *e) {
    struct err why = {0};
    if (rec_decode(info->reply(), t->reply.p, t->reply.n, a, reply, &why) == 0)
        return 0;
    return err_set(e, E_PROTOCOL, "The controller's answer can't be read: %s", why.text);
}

int spur_call(struct spur_client *c, enum wire_method m, const void *request, struct arena *a, void *reply,
              struct err *e) {
    const struct wire_method_info *info = wire_method(m);
    auto_buf bytes = {0};
    rec_encode(info->request(), request, &bytes);
    int64_t end_ms = loop_now_ms(c->loop) + (int64_t)c->timeout_ms;
    uint64_t pause_ms = PAUSE_MIN_MS;
    name_request(c); /* one name, however often it is sent */
    bool was_sent = false;
    for (uint32_t n = 1;; n++) {
        struct attempt t = {0};
        int64_t left_ms = end_ms - loop_now_ms(c->loop);
        try_once(c, info->path, &bytes, (uint64_t)MAX(left_ms, (int64_t)1), &t);
        int code = t.code ? t.code : decode(info, &t, a, reply, e);
        buf_fini(&t.reply);
        was_sent |= t.was_sent;
        if (code == E_NO_PROOF && t.without_proof && !str_starts(rpc_channel_address(c->ch), "unix:"))
            continue; /* the local socket was dead, and another controller was asked without a word of who we are */
        bool moves = may_move(t.code) && n % c->n_targets;
        uint64_t wait_ms = t.retry_after_ms ? t.retry_after_ms : moves ? 0 : pause_ms;
        left_ms = end_ms - loop_now_ms(c->loop);
        if (!t.code)
            return code;
        if (left_ms <= (int64_t)wait_ms || !may_retry(code, was_sent))
            return err_set(e, code, "%s", is_about_the_way(code) ? err_sentence(code) : t.err.text);
        loop_run_until(c->loop, never, NULL, wait_ms);
        pause_ms = wait_ms ? MIN(pause_ms * 2, (uint64_t)PAUSE_MAX_MS) : pause_ms;
    }
}
