/* SPDX-License-Identifier: Apache-2.0
 *
 * Members come and go: one change at a time, each committed before the next.
 *
 * A member whose disk was emptied must not vote before it has caught up: it has forgotten what it had acknowledged. So
 * it asks to join; the leader takes it out of the members, then in again as a spare, and it becomes a voter once it has
 * everything.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "spurctld/member/inside.h"

struct change {
    struct members *m;
    struct controller_change what;
    char address[256];
    bool is_join, was_removed;
    member_fn fn;
    void *arg;
};

static void change_end(struct change *c, int code, const struct err *why) {
    if (c->m->room->member == c->m)
        c->m->is_changing = false;
    if (c->fn)
        c->fn(c->arg, code, why);
    free(c);
}

static void on_changed(void *arg, int code, const struct err *why);

static void change_go(struct change *c, enum controller_verb verb) {
    struct members *m = c->m;
    struct err e;
    if (!m->log) {
        err_set(&e, E_STOPPING, NULL);
        change_end(c, E_STOPPING, &e);
        return;
    }
    m->log->change(m->log->impl, verb, c->what.id, c->address, on_changed, c);
}

static void on_changed(void *arg, int code, const struct err *why) {
    struct change *c = arg;
    if (!code && c->is_join && !c->was_removed) {
        c->was_removed = true;
        change_go(c, CONTROLLER_ADD);
        return;
    }
    change_end(c, code, why);
}

static struct change *change_new(struct room *r, enum controller_verb verb, uint32_t id, const char *address,
                                 member_fn fn, void *arg) {
    struct change *c = xnew(struct change);
    *c = (struct change){.m = r->member, .what = {.verb = verb, .id = id}, .fn = fn, .arg = arg};
    snprintf(c->address, sizeof(c->address), "%s", address ? address : "");
    r->member->is_changing = true;
    return c;
}

static int may_change(struct room *r, struct err *e) {
    struct members *m = r->member;
    if (!m || !m->log || !m->st.is_leader)
        return err_set(e, E_NOT_LEADER, NULL);
    if (m->is_changing)
        return err_set(e, E_BUSY, "another change of controllers is under way; try again later");
    return 0;
}

/* A majority must be there with the members of after the change: one that is not heard of counts as missing, and so does one that has no
 * log (term 0): it waits to be taken in, which can't be while this change waits for its vote. */
static int check_remove(struct members *m, uint32_t id, struct err *e) {
    int64_t now = m->room->host->now_ms(m->room->host->impl);
    uint32_t scale = m->log_copy.time_scale ? m->log_copy.time_scale : 1;
    size_t voters = 0, there = 0;
    const struct member_info *gone = member_find(m, id);
    if (!gone)
        return err_set(e, E_NOT_FOUND, "there is no controller %u", id);
    for (size_t i = 0; i < m->st.n; i++) {
        const struct member_info *k = &m->st.members[i];
        if (!k->is_voter || k->id == id)
            continue;
        voters++;
        there += k->is_self || (k->term && k->heard_ms && now - k->heard_ms < (int64_t)HEARD_MS * scale);
    }
    if (voters == 0)
        return err_set(e, E_DENIED, "controller %u is the only one that votes", id);
    if (gone->is_self)
        return err_set(e, E_DENIED, "controller %u leads; hand the lead to another one before: spur controller transfer", id);
    if (there < voters / 2 + 1)
        return err_set(e, E_DENIED, "without controller %u only %zu of %zu would be there, which is no majority", id, there,
                       voters);
    return 0;
}

static int check_verb(struct members *m, const struct controller_change *what, struct err *e) {
    switch ((enum controller_verb)what->verb) {
    case CONTROLLER_ADD:
        if (what->id == 0 || what->id > MEMBERS_MAX)
            return err_set(e, E_USAGE, "a controller's number is from 1 to %d", MEMBERS_MAX);
        if (!what->address || !strchr(what->address, ':') || strlen(what->address) > 255)
            return err_set(e, E_USAGE, "a controller's address is HOST:PORT");
        return member_find(m, what->id) ? err_set(e, E_EXISTS, "there is a controller %u already", what->id) : 0;
    case CONTROLLER_REMOVE:
        return check_remove(m, what->id, e);
    case CONTROLLER_TRANSFER:
        if (what->id && !member_find(m, what->id))
            return err_set(e, E_NOT_FOUND, "there is no controller %u", what->id);
        if (what->id && !member_find(m, what->id)->is_voter)
            return err_set(e, E_DENIED, "controller %u is still catching up", what->id);
        return 0;
    default:
        return err_set(e, E_USAGE, NULL);
    }
}

/* A request that is sent again, because its answer was lost with the old leader, finds that it is done. */
static bool is_done(struct members *m, const struct controller_change *what) {
    const struct member_info *there = member_find(m, what->id);
    if (what->verb == CONTROLLER_TRANSFER)
        return there && there->is_self;
    return what->verb == CONTROLLER_ADD && there && what->address && str_eq(there->address, what->address);
}

void member_change(struct room *r, const struct controller_change *what, member_fn fn, void *arg) {
    struct err e;
    int rc = may_change(r, &e);
    if (!rc && is_done(r->member, what)) {
        fn(arg, 0, NULL);
        return;
    }
    if (!rc)
        rc = check_verb(r->member, what, &e);
    if (rc) {
        fn(arg, rc, &e);
        return;
    }
    if (what->verb == CONTROLLER_TRANSFER && what->id == r->member_id) {
        fn(arg, 0, NULL); /* it has it: whoever asks again was not told */
        return;
    }
    log_info("controllers: %s %u %s", what->verb == CONTROLLER_ADD ? "add" : what->verb == CONTROLLER_REMOVE ? "remove" : "transfer to",
             what->id, what->address ? what->address : "");
    change_go(change_new(r, what->verb, what->id, what->address, fn, arg), what->verb);
}

static bool is_named_in_file(const struct room *r, uint32_t id) {
    return id >= 1 && id <= r->conf->n_peers;
}

void member_join(struct room *r, uint32_t from, const char *address, member_fn fn, void *arg) {
    struct members *m = r->member;
    struct err e;
    int rc = may_change(r, &e);
    const struct member_info *there = rc ? NULL : member_find(m, from);
    if (!rc && !there && !is_named_in_file(r, from))
        rc = err_set(&e, E_DENIED, "controller %u is no member of this cluster: spur controller add %u %s", from, from,
                     address ? address : "HOST:PORT");
    if (!rc && there && there->index > 0 && there->is_voter &&
        r->host->now_ms(r->host->impl) - there->heard_ms < (int64_t)BEAT_MS * 2 * MAX(m->log_copy.time_scale, 1u))
        rc = err_set(&e, E_EXISTS, "controller %u is there already, with a log", from);
    if (!rc && (!address || !strchr(address, ':')))
        rc = err_set(&e, E_USAGE, "a controller's address is HOST:PORT");
    if (rc || (there && !there->is_voter)) { /* a spare has nothing, and is waited for */
        fn(arg, rc, rc ? &e : NULL);
        return;
    }
    log_warn("controller %u has an empty directory and asks to be taken in: %s", from,
             there ? "it is taken out, and in again once it has caught up" : "it is added");
    struct change *c = change_new(r, CONTROLLER_ADD, from, address, fn, arg);
    c->is_join = true;
    c->was_removed = !there;
    change_go(c, there ? CONTROLLER_REMOVE : CONTROLLER_ADD);
}

void change_beat(struct members *m) {
    struct room *r = m->room;
    int64_t now = r->host->now_ms(r->host->impl);
    if (may_change(r, NULL))
        return;
    for (size_t i = 0; i < m->st.n; i++) {
        const struct member_info *k = &m->st.members[i];
        if (k->is_voter || k->is_self || !k->heard_ms || now - k->heard_ms > (int64_t)HEARD_MS * MAX(m->log_copy.time_scale, 1u))
            continue;
        change_go(change_new(r, CONTROLLER_PROMOTE, k->id, k->address, NULL, NULL), CONTROLLER_PROMOTE);
        return;
    }
}
