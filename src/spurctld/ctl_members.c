/* SPDX-License-Identifier: Apache-2.0
 *
 * Several controllers: the port among them, what the journal says of them, and how one with an empty directory begins.
 *
 * An empty directory must not make a second cluster beside one that exists. So whoever has one asks all the others first:
 *
 *     all are as empty, or have just begun, with the same peers   →  the cluster begins: each writes the same first entry
 *     one has a log                                               →  the leader is asked to take us in (member_join)
 *     somebody is not heard of, and nobody has a log              →  wait, and say for whom
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/journal/journal.h"
#include "io/peer/peer.h"
#include "spurctld/ctl_inside.h"
#include "spurctld/ctl_links.h"
#include "spurctld/member/member.h"
#include "spurctld/whoami.h"
#include "wire/methods.h"

#define ASK_EVERY_MS 250u
#define ASK_MS 2000u
#define SAY_MS 10000
#define BEGUN_INDEX 1 /* the last index of a log that nobody has led yet */

/* ---- who is who ---- */

int ctl_members_whoami(struct ctl *c, struct err *e) {
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    return whoami_find(c->conf.peers, c->conf.n_peers, c->conf.node_id, host, &c->room.member_id, e);
}

static uint64_t peers_hash(const struct ctl *c) {
    auto_str all = {0};
    for (uint32_t i = 0; i < c->at_start.n_peers; i++)
        str_addf(&all, "%s\n", conf_peer_address(c->at_start.peers[i]));
    return hash_fixed(str_text(&all), all.n);
}

/* ---- the port among controllers ---- */

static void on_peer_notice(void *arg, bool is_problem, const char *text) {
    log_line(is_problem ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "controllers: %s", text);
}

static void on_caller(void *arg, int fd, uint32_t id, const char *address) {
    struct ctl *c = arg;
    api_adopt(c->api, fd, id, address);
}

static size_t keys_of(const struct ctl *c, struct secret out[PEER_KEYS_MAX]) {
    size_t n = 0;
    if (c->room.jwt.n)
        out[n++] = c->room.jwt;
    if (c->room.jwt_old.n)
        out[n++] = c->room.jwt_old;
    return n;
}

void ctl_members_keys(struct ctl *c) {
    struct secret keys[PEER_KEYS_MAX];
    if (c->peer)
        peer_set_keys(c->peer, keys, keys_of(c, keys));
}

static void member_send(void *impl, uint64_t id, const char *method, struct buf message, uint64_t timeout_ms,
                        host_reply_fn fn, void *arg) {
    ctl_links_send(ctl_host_links(impl), id, method, message, timeout_ms, fn, arg);
}

int ctl_members_listen(struct ctl *c, struct err *e) {
    struct secret keys[PEER_KEYS_MAX];
    const char *listen = c->options.raft_listen ? c->options.raft_listen : c->conf.raft_listen_addr;
    struct peer_conf conf = {.cluster = c->conf.rep.cluster_name, .id = c->room.member_id, .listen = listen, .keys = keys,
                             .n_keys = keys_of(c, keys), .on_notice = on_peer_notice, .tls = c->tls};
    if (c->conf.n_peers <= 1)
        return 0;
    int rc = peer_new(&conf, &c->peer, e);
    if (rc)
        return rc;
    if (conf.n_keys == 0)
        log_warn("controllers do not prove to each other who they are: set [auth] jwt_key or jwt_key_file on all of them");
    c->links = ctl_links_new(c->loop, c->peer);
    ctl_host_set_links(c->host, c->links);
    c->room.host->member_send = member_send;
    for (uint32_t i = 0; i < c->conf.n_peers; i++)
        ctl_links_set(c->links, i + 1, conf_peer_address(c->conf.peers[i]));
    peer_on_accept(c->peer, PEER_CALLS, c->loop, on_caller, c);
    log_info("controller %u of %u, others connect to port %u", c->room.member_id, c->conf.n_peers, peer_port(c->peer));
    return 0;
}

void ctl_members_close(struct ctl *c) {
    if (c->peer)
        peer_on_accept(c->peer, PEER_CALLS, c->loop, NULL, NULL);
    ctl_host_set_links(c->host, NULL);
    ctl_links_free(c->links);
    c->links = NULL;
    peer_free(c->peer);
    c->peer = NULL;
}

/* ---- the journal, as the room of members sees it ---- */

static uint64_t log_term(void *impl) {
    return journal_term(((struct ctl *)impl)->journal);
}

static uint64_t log_commit(void *impl) {
    return journal_commit(((struct ctl *)impl)->journal);
}

static void log_change(void *impl, enum controller_verb verb, uint32_t id, const char *address, member_fn done, void *arg) {
    struct journal *j = ((struct ctl *)impl)->journal;
    if (verb == CONTROLLER_ADD)
        journal_add(j, id, address, done, arg);
    else if (verb == CONTROLLER_REMOVE)
        journal_remove(j, id, done, arg);
    else if (verb == CONTROLLER_TRANSFER)
        journal_transfer(j, id, done, arg);
    else
        journal_promote(j, id, done, arg);
}

static void log_removed(void *impl) {
    struct ctl *c = impl;
    log_error("this is controller %u no more: it was removed, and ends. To have it again: spur controller add, and begin with an empty "
              "state directory", c->room.member_id);
    loop_stop(c->loop);
}

void ctl_members_opened(struct ctl *c) {
    struct member_log log = {.impl = c, .term = log_term, .commit_index = log_commit, .time_scale = c->options.clock_scale,
                             .change = log_change, .removed = log_removed};
    member_set_log(c->room.member, &log);
}

void ctl_members_status(struct ctl *c, const struct journal_status *s) {
    struct member_status out = {.is_leader = s->role == JOURNAL_LEADER, .term = s->term, .leader_id = (uint32_t)s->leader_id,
                                .n = MIN(s->n_members, (size_t)MEMBERS_MAX)};
    for (size_t i = 0; i < out.n; i++) {
        out.members[i].id = (uint32_t)s->members[i].id;
        out.members[i].is_voter = s->members[i].is_voter;
        snprintf(out.members[i].address, sizeof(out.members[i].address), "%s", s->members[i].address);
        if (c->links)
            ctl_links_set(c->links, out.members[i].id, out.members[i].address);
    }
    member_on_status(c->room.member, &out);
}

/* ---- an empty directory ---- */

struct founding {
    struct ctl *c;
    struct host_timer *again;
    struct hello_reply heard[MEMBERS_MAX + 1];
    bool is_heard[MEMBERS_MAX + 1], is_asked[MEMBERS_MAX + 1], is_joining;
    int64_t said_ms;
};
struct asking {
    struct founding *f; /* NULL: it is over */
    struct asking *next;
    uint32_t id;
};

static void look(struct founding *f);

static void open_now(struct founding *f, bool join) {
    struct ctl *c = f->c;
    struct err e = {0};
    ctl_founding_end(c);
    if (ctl_open_journal(c, join, &e) == 0)
        return;
    log_error("%s", e.text);
    c->exit_code = 1;
    loop_stop(c->loop);
}

static void on_joined(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct founding *f = arg;
    if (!f->c->founding) {
        free(f); /* it was kept for this */
        return;
    }
    f->is_joining = false;
    if (!code) {
        log_info("taken in as a controller of the cluster that exists; what it has is fetched");
        open_now(f, true);
        return;
    }
    int64_t now = f->c->room.host->now_ms(f->c->room.host->impl);
    if (!f->said_ms || now - f->said_ms > SAY_MS) {
        f->said_ms = now;
        log_warn("not taken in yet: %s", why->text);
    }
}

static void join(struct founding *f, uint32_t leader) {
    struct ctl *c = f->c;
    struct join_request req = {.address = conf_peer_address(c->at_start.peers[c->room.member_id - 1])};
    struct buf bytes = {0};
    f->is_joining = true;
    rec_encode(join_request_rec(), &req, &bytes);
    ctl_links_send(c->links, leader, wire_method(WIRE_Member_Join)->path, bytes, 4 * ASK_MS, on_joined, f);
}

static void say_whom(struct founding *f, const char *missing, uint32_t differs) {
    int64_t now = f->c->room.host->now_ms(f->c->room.host->impl);
    if (f->said_ms && now - f->said_ms < SAY_MS)
        return;
    f->said_ms = now;
    if (differs)
        log_warn("this directory is empty, and controller %u has other [controller] peers than this one: nothing is begun", differs);
    else
        log_info("this directory is empty: whether a cluster exists is asked of controller %s", missing);
}

static void look(struct founding *f) {
    struct ctl *c = f->c;
    auto_str missing = {0};
    uint32_t differs = 0;
    if (f->is_joining)
        return;
    for (uint32_t id = 1; id <= c->at_start.n_peers; id++) {
        const struct hello_reply *h = &f->heard[id];
        if (id == c->room.member_id)
            continue;
        if (!f->is_heard[id]) {
            str_addf(&missing, "%s%u", missing.n ? ", " : "", id);
        } else if (!h->is_fresh && (h->index > BEGUN_INDEX || h->leader_id)) {
            if (h->leader_id && h->leader_id != c->room.member_id)
                join(f, h->leader_id);
            return;
        } else if (h->peers_hash != peers_hash(c)) {
            differs = id;
        }
    }
    if (!missing.n && !differs) {
        log_info("all %u controllers are empty: a new cluster begins", c->at_start.n_peers);
        open_now(f, false);
    } else {
        say_whom(f, str_text(&missing), differs);
    }
}

static void on_hello(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct asking *k = arg;
    struct founding *f = k->f;
    auto_arena a = {0};
    struct hello_reply r = {0};
    if (f) {
        struct asking **at = &f->c->asking;
        while (*at != k)
            at = &(*at)->next;
        *at = k->next;
        f->is_asked[k->id] = false;
        f->is_heard[k->id] = !code && !rec_decode(hello_reply_rec(), reply, n, &a, &r, NULL);
        f->heard[k->id] = r;
        look(f);
    }
    free(k);
}

static void ask_all(void *arg) {
    struct founding *f = arg;
    struct ctl *c = f->c;
    struct hello_request req = {.peers_hash = peers_hash(c)};
    f->again = c->room.host->timer_start(c->room.host->impl, (uint64_t)ASK_EVERY_MS * MAX(c->options.clock_scale, 1u), ask_all, f);
    for (uint32_t id = 1; id <= c->at_start.n_peers; id++) {
        if (id == c->room.member_id || f->is_asked[id])
            continue;
        struct asking *k = xnew(struct asking);
        struct buf bytes = {0};
        *k = (struct asking){f, c->asking, id};
        c->asking = k;
        f->is_asked[id] = true;
        rec_encode(hello_request_rec(), &req, &bytes);
        ctl_links_send(c->links, id, wire_method(WIRE_Member_Hello)->path, bytes, ASK_MS, on_hello, k);
    }
}

void ctl_founding_begin(struct ctl *c) {
    struct founding *f = xnew(struct founding);
    f->c = c;
    c->founding = f;
    f->again = c->room.host->timer_start(c->room.host->impl, 0, ask_all, f);
}

void ctl_founding_end(struct ctl *c) {
    struct founding *f = c->founding;
    if (!f)
        return;
    c->founding = NULL;
    c->room.host->timer_stop(c->room.host->impl, f->again);
    for (struct asking *k = c->asking; k; k = k->next)
        k->f = NULL;
    c->asking = NULL;
    if (!f->is_joining)
        free(f);
}

void ctl_hello(void *ctx, const struct hello_request *req, struct hello_reply *out) {
    struct ctl *c = ctx;
    struct journal_stats js = c->journal ? journal_stats(c->journal) : (struct journal_stats){0};
    *out = (struct hello_reply){.is_fresh = c->founding != NULL, .index = js.last_index, .term = js.term,
                                .peers_hash = peers_hash(c), .leader_id = member_leader(&c->room)};
}
