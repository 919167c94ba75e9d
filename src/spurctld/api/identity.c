/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks. On the local socket the kernel says the uid; over TCP a token says the user, or munge the uid; without a
 * proof the mode decides (docs/admin/identity.md has the table). Names are looked up on a worker and kept for a minute:
 * name services block, and so does munged.
 */
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/model/policy.h"
#include "spurctld/api/identity_replay.h"
#include "spurctld/api/request.h"
#include "wire/proof.h"

#define KEEP_MS 60000
#define KEEP_MOST 4096u
#define NOBODY 65534u

struct known { /* a user as the system's name service knows it */
    char user[64], group[64];
    uint32_t uid, gid;
    bool found;
    int64_t until_ms;
};

struct identity {
    struct room *room;
    struct map64 by_uid;   /* uid + 1 → struct known */
    struct maps by_name;   /* name → struct known */
    struct map64 senders;  /* node id → struct replay */
};

struct identity *identity_new(struct room *r) {
    struct identity *id = xnew(struct identity);
    id->room = r;
    return id;
}

static void forget_known(struct identity *id) {
    size_t cursor = 0;
    void *k;
    while (map64_next(&id->by_uid, &cursor, NULL, &k))
        free(k);
    for (cursor = 0; maps_next(&id->by_name, &cursor, NULL, &k);)
        free(k);
    map64_fini(&id->by_uid);
    maps_fini(&id->by_name);
}

void identity_free(struct identity *id) {
    size_t cursor = 0;
    void *s;
    if (!id)
        return;
    forget_known(id);
    while (map64_next(&id->senders, &cursor, NULL, &s))
        replay_free(s);
    map64_fini(&id->senders);
    free(id);
}

/* ---- looking up names ---- */

typedef void (*found_fn)(void *arg, const struct known *k);

struct lookup {
    struct identity *id;
    bool by_name;
    struct known k;
    found_fn done;
    void *arg;
};

static void look_up(void *arg) {
    struct lookup *l = arg;
    struct passwd pw, *p = NULL;
    struct group gr, *g = NULL;
    char space[16384];
    if (l->by_name)
        getpwnam_r(l->k.user, &pw, space, sizeof(space), &p);
    else
        getpwuid_r(l->k.uid, &pw, space, sizeof(space), &p);
    l->k.found = p != NULL;
    if (!p) {
        if (!l->by_name)
            snprintf(l->k.user, sizeof(l->k.user), "%u", l->k.uid);
        return;
    }
    l->k.uid = p->pw_uid;
    l->k.gid = p->pw_gid;
    snprintf(l->k.user, sizeof(l->k.user), "%s", p->pw_name);
    getgrgid_r(l->k.gid, &gr, space, sizeof(space), &g);
    if (g)
        snprintf(l->k.group, sizeof(l->k.group), "%s", g->gr_name);
    else
        snprintf(l->k.group, sizeof(l->k.group), "%u", l->k.gid);
}

static void on_looked_up(void *arg) {
    struct lookup *l = arg;
    struct identity *id = l->id;
    l->k.until_ms = id->room->host->now_ms(id->room->host->impl) + KEEP_MS;
    if (id->by_uid.n + id->by_name.n >= KEEP_MOST)
        forget_known(id);
    struct known *kept = xmemdup(&l->k, sizeof(l->k));
    void *old = l->by_name ? maps_del(&id->by_name, kept->user) : map64_del(&id->by_uid, (uint64_t)kept->uid + 1);
    free(old);
    if (l->by_name)
        maps_put(&id->by_name, kept->user, kept);
    else
        map64_put(&id->by_uid, (uint64_t)kept->uid + 1, kept);
    l->done(l->arg, &l->k);
    free(l);
}

static void find_user(struct identity *id, const char *name, uint32_t uid, found_fn done, void *arg) {
    struct host *h = id->room->host;
    const struct known *k = name ? maps_get(&id->by_name, name) : map64_get(&id->by_uid, (uint64_t)uid + 1);
    if (k && k->until_ms > h->now_ms(h->impl)) {
        struct known copy = *k;
        done(arg, &copy);
        return;
    }
    struct lookup *l = xnew(struct lookup);
    *l = (struct lookup){.id = id, .by_name = name != NULL, .done = done, .arg = arg};
    l->k.uid = uid;
    snprintf(l->k.user, sizeof(l->k.user), "%s", name ? name : "");
    h->work(h->impl, look_up, on_looked_up, l);
}

/* ---- who ---- */

struct asking {
    struct identity *id;
    bool is_proven, is_write;
    int64_t claimed_uid; /* of a token, where its user is not known here; -1: none */
    bool from_token, token_admin;
    gid_t peer_gid;
    bool from_peer;
    void (*done)(void *arg, int code, const struct err *why, const struct who *who);
    void *arg;
};

static bool is_admin_name(struct identity *id, uint32_t uid, const char *user) {
    const struct rconf *conf = room_rconf(id->room);
    if (uid == 0 || uid == (uint32_t)geteuid()) /* whoever runs the controller owns the cluster, as SlurmUser does */
        return true;
    for (uint32_t i = 0; i < conf->n_admins; i++)
        if (str_eq(conf->admins[i], user))
            return true;
    return false;
}

static void fail(struct asking *q, int code, const char *text) {
    struct err e;
    err_set(&e, code, "%s", text);
    q->done(q->arg, code, &e, NULL);
    free(q);
}

static void on_found(void *arg, const struct known *k) {
    struct asking *q = arg;
    struct who who = {.uid = k->uid, .gid = k->gid, .is_proven = q->is_proven};
    snprintf(who.user, sizeof(who.user), "%s", k->user);
    snprintf(who.group, sizeof(who.group), "%s", k->group);
    if (!k->found && q->from_peer) {
        who.gid = q->peer_gid;
        snprintf(who.group, sizeof(who.group), "%u", (unsigned)q->peer_gid);
    } else if (!k->found) {
        if (q->claimed_uid < 0 || q->claimed_uid > UINT32_MAX) {
            fail(q, E_USER, err_sentence(E_USER));
            return;
        }
        who.uid = who.gid = (uint32_t)q->claimed_uid;
        snprintf(who.group, sizeof(who.group), "%u", who.gid);
    }
    if (k->found && q->from_token && q->claimed_uid >= 0 && q->claimed_uid != (int64_t)k->uid) {
        fail(q, E_BAD_PROOF, "the token's uid is not that of its user here");
        return;
    }
    bool privileged = is_admin_name(q->id, who.uid, who.user) || q->token_admin;
    const struct conf *conf = q->id->room->conf;
    bool believed = conf->auth_mode == AUTH_DISABLED && policy_of(room_rconf(q->id->room)->flavor)->believed_is_operator;
    who.is_admin = (privileged && q->is_proven) || believed;
    if (privileged && !q->is_proven && q->is_write) {
        fail(q, E_DENIED, "root and administrators must prove who they are: use the controller's local socket or a "
                          "token (scontrol token)");
        return;
    }
    if (privileged && !q->is_proven) { /* may look, as nobody */
        who.uid = who.gid = NOBODY;
        snprintf(who.user, sizeof(who.user), "nobody");
        snprintf(who.group, sizeof(who.group), "nogroup");
    }
    q->done(q->arg, 0, NULL, &who);
    free(q);
}

static void by_token(struct asking *q, const char *token) {
    struct room *r = q->id->room;
    const struct secret *const keys[] = {&r->jwt, &r->jwt_old};
    struct cred_claims claims;
    struct err e;
    if (!r->jwt.n) {
        fail(q, E_BAD_PROOF, "this controller has no [auth] jwt_key to check the token with");
        return;
    }
    int rc = cred_jwt_check_any(token, keys, ARRAY_LEN(keys), room_now_unix(r), &claims, &e);
    if (rc) {
        fail(q, rc, e.text);
        return;
    }
    q->is_proven = q->from_token = true;
    q->claimed_uid = claims.uid;
    q->token_admin = claims.admin;
    find_user(q->id, claims.user, 0, on_found, q);
}

static void by_claim(struct asking *q, const struct rpc_call *call) {
    enum auth_mode mode = q->id->room->conf->auth_mode;
    const char *user = rpc_metadata(call, "spur-user");
    const char *uid_text = rpc_metadata(call, "spur-uid");
    uint64_t uid;
    if (mode == AUTH_REQUIRED) {
        fail(q, E_NO_PROOF, "Protocol authentication error: no proof of who you are (use the controller's local "
                            "socket, or a token in SPUR_JWT)");
        return;
    }
    q->is_proven = mode == AUTH_DISABLED;
    if (!str_to_u64(uid_text ? uid_text : "", UINT32_MAX, &uid))
        q->claimed_uid = (int64_t)uid;
    if (!user && q->claimed_uid < 0) {
        fail(q, E_NO_PROOF, "the request says neither who asks nor proves it");
        return;
    }
    if (mode == AUTH_PERMISSIVE)
        log_info("%s claims to be %s without a proof", rpc_peer(call)->address, user ? user : uid_text);
    if (user && strlen(user) < sizeof(((struct known *)0)->user))
        find_user(q->id, user, 0, on_found, q);
    else
        find_user(q->id, NULL, (uint32_t)q->claimed_uid, on_found, q);
}

/* ---- munge ---- */

struct munge_ask {
    struct asking *q;
    const struct rpc_call *call; /* lives until the request is answered */
    char *credential, *payload, *socket;
    int code;
    struct err e;
    uint32_t uid, gid;
};

static void ask_munge(void *arg) {
    struct munge_ask *m = arg;
    m->code = cred_munge_check(m->socket, m->credential, m->payload, strlen(m->payload), &m->uid, &m->gid, &m->e);
}

/* A credential that nobody here can check proves nothing, and disproves nothing. */
static void on_munge(void *arg) {
    struct munge_ask *m = arg;
    struct asking *q = m->q;
    if (m->code == E_UNSUPPORTED) {
        room_complain(q->id->room, "a munge credential can't be checked: %s", m->e.text);
        by_claim(q, m->call);
    } else if (m->code) {
        fail(q, m->code, m->e.text);
    } else {
        q->is_proven = q->from_peer = true;
        q->peer_gid = m->gid;
        find_user(q->id, NULL, m->uid, on_found, q);
    }
    free(m->credential);
    free(m->payload);
    free(m->socket);
    free(m);
}

/* What it was made for is in it: a credential made for another program, or another method, is none for us. */
static void by_munge(struct asking *q, const struct rpc_call *call, const char *credential) {
    struct room *r = q->id->room;
    struct munge_ask *m = xnew(struct munge_ask);
    *m = (struct munge_ask){.q = q, .call = call, .credential = xstrdup(credential),
                            .payload = xasprintf(PROOF_MUNGE_PAYLOAD, rpc_method_of(call)->path),
                            .socket = r->conf->munge_socket ? xstrdup(r->conf->munge_socket) : NULL};
    r->host->work(r->host->impl, ask_munge, on_munge, m);
}

void identity_of(struct identity *id, const struct rpc_call *call, bool is_write,
                 void (*done)(void *arg, int code, const struct err *why, const struct who *who), void *arg) {
    struct asking *q = xnew(struct asking);
    *q = (struct asking){.id = id, .is_write = is_write, .claimed_uid = -1, .done = done, .arg = arg};
    const struct rpc_peer *peer = rpc_peer(call);
    const char *bearer = rpc_metadata(call, "authorization");
    const char *munge = rpc_metadata(call, PROOF_MUNGE_HEADER);
    if (peer->is_local) {
        q->is_proven = q->from_peer = true;
        q->peer_gid = peer->gid;
        find_user(id, NULL, peer->uid, on_found, q);
    } else if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0) {
        by_token(q, bearer + 7);
    } else if (bearer) {
        fail(q, E_BAD_PROOF, "an authorization header must be a Bearer token");
    } else if (munge && id->room->conf->auth_mode != AUTH_DISABLED) {
        by_munge(q, call, munge);
    } else {
        by_claim(q, call);
    }
}

/* ---- nodes ---- */

/* A body of one node is taken once. */
static bool is_replay(struct identity *id, uint32_t node_id, const struct proof_node *p) {
    struct host *h = id->room->host;
    struct replay *s = map64_get(&id->senders, node_id);
    uint64_t nonce;
    memcpy(&nonce, p->nonce, sizeof(nonce));
    if (!s) {
        s = replay_new();
        map64_put(&id->senders, node_id, s);
    }
    return replay_seen(s, nonce, p->sent_ms, h->now_ms(h->impl), h->unix_ms(h->impl));
}

int identity_check_node(struct identity *id, const char *header, const char *path, const char *name, const uint8_t *key,
                        const void *body, size_t n, struct err *e) {
    struct proof_node proof;
    struct cred_public pub;
    if (!header)
        return err_set(e, E_NO_PROOF, "the report is not signed");
    if (!name || proof_node_parse(header, &proof) || strcmp(proof.name, name) != 0)
        return err_set(e, E_BAD_PROOF, "the report's signature is for another node");
    const struct node *node = state_find_node(id->room->state, name);
    if (!key && (!node || node->n_public_key != CRED_PUBLIC_SIZE))
        return err_set(e, E_NODE_KEY, "node %s is not registered", name);
    memcpy(pub.b, key ? key : node->public_key, CRED_PUBLIC_SIZE);
    uint8_t hash[32];
    auto_str text = {0};
    cred_hash(body, n, hash);
    proof_node_text(path, name, proof.sent_ms, proof.nonce, hash, &text);
    if (!cred_verify(&pub, text.p, text.n, proof.sig))
        return err_set(e, E_NODE_KEY, NULL);
    int64_t skew_ms = id->room->host->unix_ms(id->room->host->impl) - proof.sent_ms;
    if (skew_ms > PROOF_NODE_SKEW_MS || skew_ms < -PROOF_NODE_SKEW_MS)
        return err_set(e, E_BAD_PROOF, "the clocks of node %s and of the controller differ by %lld s", name,
                       (long long)(skew_ms / 1000));
    if (node && is_replay(id, node->id, &proof))
        return err_set(e, E_BAD_PROOF, "the report of node %s was sent before: a replay", name);
    return 0;
}
