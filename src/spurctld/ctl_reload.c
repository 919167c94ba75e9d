/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration file, read again: `scontrol reconfigure`, or SIGHUP, which on a member that doesn't lead takes over
 * what is this member's own (keys, TLS, the level of the log). With scontrol reconfigure the leader has every other member
 * do so as well; its answer names those whose file is another one, or that were not reached.
 */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "spurctld/config_file.h"
#include "spurctld/ctl_inside.h"
#include "spurctld/member/member.h"
#include "wire/methods.h"

#define REREAD_MS 5000

struct reconfiguring {
    struct ctl *c;
    struct arena arena, notes_arena;
    struct conf conf;
    struct secret jwt, jwt_old;
    VEC(const char *) notes;
    bool changed, is_reread; /* reread: of a member that doesn't lead */
    uint8_t hash[32];        /* of the file's replicated part */
    unsigned open;           /* members that were asked and have not answered */
    void (*done)(void *arg, int code, const struct err *why, const void *reply);
    void *arg;
};

static void finish(struct reconfiguring *rc, int code, const struct err *why) {
    struct reconfigure_reply reply = {rc->changed, rc->notes.p, (uint32_t)rc->notes.n};
    struct reread_reply reread = {rc->hash, sizeof(rc->hash), rc->notes.p, (uint32_t)rc->notes.n};
    rc->done(rc->arg, code, why, rc->is_reread ? (const void *)&reread : &reply);
    vec_fini(&rc->notes);
    secret_fini(&rc->jwt);
    secret_fini(&rc->jwt_old);
    arena_fini(&rc->notes_arena);
    arena_fini(&rc->arena); /* empty where the configuration was taken over */
    free(rc);
}

/* What is read at start only: a change is told, and takes effect with the next start. */
static void note_restart_keys(struct reconfiguring *rc, const struct conf *running) {
    const char *const *key;
    uint32_t n = conf_restart_keys(&rc->notes_arena, running, &rc->conf, &key);
    for (uint32_t i = 0; i < n; i++)
        vec_push(&rc->notes, arena_printf(&rc->notes_arena, "%s changes with the next start", key[i]));
}

static void swap_secret(struct secret *a, struct secret *b) {
    struct secret was = *a;
    *a = *b;
    *b = was;
}

/* The rest of the new file becomes this member's; what needs a restart stays as it was. */
static void take_over(struct ctl *c, struct reconfiguring *rc) {
    struct conf next = rc->conf;
    enum log_level level;
    next.auth_mode = c->at_start.auth_mode;
    if (!c->options.log_level && next.log_level && !log_level_parse(next.log_level, &level))
        log_set_level(level);
    swap_secret(&c->room.jwt, &rc->jwt);
    swap_secret(&c->room.jwt_old, &rc->jwt_old);
    ctl_members_keys(c);
    arena_fini(&c->conf_arena);
    c->conf_arena = rc->arena;
    rc->arena = (struct arena){0};
    c->conf = next;
}

/* ---- the other members, each with its own file ---- */

struct asked {
    struct reconfiguring *rc;
    uint32_t id;
};

static void note_answer(struct reconfiguring *rc, uint32_t id, const struct reread_reply *r) {
    struct arena *a = &rc->notes_arena;
    if (r->n_hash != sizeof(rc->hash) || memcmp(r->hash, rc->hash, sizeof(rc->hash)) != 0)
        vec_push(&rc->notes, arena_printf(a, "controller %u: its file differs from the leader's, which counts", id));
    for (uint32_t i = 0; i < r->n_notes; i++)
        vec_push(&rc->notes, arena_printf(a, "controller %u: %s", id, r->notes[i]));
}

static void on_member(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct asked k = *(struct asked *)arg;
    auto_arena a = {0};
    struct reread_reply r = {0};
    struct err e;
    free(arg);
    if (!code && (code = rec_decode(reread_reply_rec(), reply, n, &a, &r, &e)) != 0)
        why = &e;
    if (code)
        vec_push(&k.rc->notes, arena_printf(&k.rc->notes_arena, "controller %u did not read its file: %s", k.id, why->text));
    else
        note_answer(k.rc, k.id, &r);
    if (--k.rc->open == 0)
        finish(k.rc, 0, NULL);
}

static void ask_others(struct reconfiguring *rc) {
    struct room *r = &rc->c->room;
    struct member_info all[MEMBERS_MAX];
    size_t n = member_list(r, all);
    rc->open = 1;
    for (size_t i = 0; i < n && r->host->member_send; i++) {
        if (all[i].is_self)
            continue;
        struct asked *k = xnew(struct asked);
        struct nothing nothing = {0};
        struct buf bytes = {0};
        *k = (struct asked){rc, all[i].id};
        rc->open++;
        rec_encode(nothing_rec(), &nothing, &bytes);
        r->host->member_send(r->host->impl, all[i].id, wire_method(WIRE_Member_Reread)->path, bytes, REREAD_MS, on_member, k);
    }
    if (--rc->open == 0)
        finish(rc, 0, NULL);
}

static void on_taken(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct reconfiguring *rc = arg;
    if (code) {
        finish(rc, code, why);
        return;
    }
    log_info("reconfigured");
    ask_others(rc);
}

/* ---- this member's ---- */

/* The file and what it names. On failure nothing was changed. */
static int reread(struct ctl *c, struct reconfiguring *rc, struct err *e) {
    auto_str problems = {0};
    int code = config_file_load(c->options.config_path, &rc->arena, &rc->conf, &problems, e);
    if (code && problems.n)
        return err_set(e, code, "the configuration has problems; nothing was changed:\n%.*s", (int)problems.n - 1, problems.p);
    if (!code)
        code = config_file_jwt(&rc->conf, &rc->jwt, &rc->jwt_old, e);
    if (!code)
        code = ctl_tls_set(c, &rc->conf, e);
    if (!code)
        memcpy(rc->hash, rc->conf.rep.hash, sizeof(rc->hash));
    return code;
}

void ctl_reconfigure(void *ctx, void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg) {
    struct ctl *c = ctx;
    struct reconfiguring *rc = xnew(struct reconfiguring);
    struct err e = {0};
    *rc = (struct reconfiguring){.c = c, .done = done, .arg = arg};
    int code = reread(c, rc, &e);
    if (code) {
        finish(rc, code, &e);
        return;
    }
    const struct rconf *in_force = room_rconf(&c->room);
    rc->changed = in_force->n_hash != sizeof(rc->hash) || memcmp(in_force->hash, rc->hash, sizeof(rc->hash)) != 0;
    note_restart_keys(rc, &c->at_start);
    const char *const *dropped;
    uint32_t n_dropped = ctl_dropped(c, &rc->notes_arena, &dropped);
    for (uint32_t i = 0; i < n_dropped; i++)
        vec_push(&rc->notes, dropped[i]);
    take_over(c, rc);
    lead_offer_config(c->room.lead, true, on_taken, rc);
}

void ctl_reread(void *ctx, void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg) {
    struct ctl *c = ctx;
    struct err e = {0};
    struct reconfiguring *rc = xnew(struct reconfiguring);
    *rc = (struct reconfiguring){.c = c, .is_reread = true, .done = done, .arg = arg};
    int code = reread(c, rc, &e);
    if (!code) {
        note_restart_keys(rc, &c->at_start);
        take_over(c, rc);
    }
    finish(rc, code, &e);
}

/* ---- SIGHUP ---- */

static void on_reread(void *arg, int code, const struct err *why, const void *reply) {
    (void)reply;
    if (code)
        log_error("SIGHUP: %s", why->text);
    else if (arg)
        log_info("SIGHUP: this controller's own part of the configuration was read again");
}

void ctl_on_hangup(void *arg, int signo) {
    struct ctl *c = arg;
    if (c->is_stopping)
        return;
    if (c->room.is_leader)
        ctl_reconfigure(c, on_reread, NULL);
    else
        ctl_reread(c, on_reread, c);
}
