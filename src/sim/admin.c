/* SPDX-License-Identifier: Apache-2.0
 *
 * An administrator who takes controllers in and out, hands the lead on, and puts other disks into them: one command at a time,
 * repeated until it is answered, as spur controller does it.
 *
 * A member's disk is lost only while all others are whole: what was acknowledged is then on one of them.
 */
#include <stdio.h>

#include "sim/cluster_inside.h"
#include "spurctld/member/member.h"
#include "wire/methods.h"

#define CALL_MS 4000u
#define AGAIN_MS 1000u
#define HEARD_MS 4000 /* so long the others take a member for one that is there */

struct admin {
    struct vhost *host;
    uint32_t verb, i; /* the command that is not answered yet: verb 0: none */
    uint32_t n_done;
    int64_t lost_ms; /* when the last disk was lost */
};

/* ---- one command ---- */

static void send_command(void *arg);

static bool is_unanswered(int code) {
    return code == E_DEADLINE || code == E_UNREACHABLE || code == E_NOT_LEADER || code == E_STOPPING || code == E_FULL ||
           code == E_BUSY || code == E_SYS;
}

static void on_answer(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct life *c = arg;
    struct admin *a = c->admin;
    bool is_gone = a->verb == CONTROLLER_REMOVE && code == E_NOT_FOUND; /* an earlier try did it */
    if (is_unanswered(code)) {
        vworld_at(c->w, 50 + vworld_below(c->w, AGAIN_MS), send_command, c);
        return;
    }
    judge_note(&c->judge, "administrator: %s", !code ? "done" : why ? why->text : err_sentence(code));
    if (a->verb == CONTROLLER_REMOVE && (!code || is_gone))
        c->in &= ~(1u << a->i);
    if (a->verb == CONTROLLER_ADD && code) {
        c->in &= ~(1u << a->i);
        smember_crash(c->m[a->i]);
    }
    a->n_done += !code || is_gone;
    a->verb = 0;
}

static void send_command(void *arg) {
    struct life *c = arg;
    struct admin *a = c->admin;
    struct host *h = vhost_host(a->host);
    struct buf body = {0};
    char address[16];
    snprintf(address, sizeof(address), "ctl%u:6821", a->i + 1);
    struct controller_change rq = {.verb = a->verb, .id = a->i + 1, .address = a->verb == CONTROLLER_ADD ? address : NULL};
    rec_encode(controller_change_rec(), &rq, &body);
    h->send(h->impl, "ctl", wire_method(WIRE_Controller_ChangeController)->path, "uid: 0\n", body, CALL_MS, on_answer, c);
}

static void command(struct life *c, enum controller_verb verb, uint32_t i) {
    static const char *const names[] = {"", "add", "remove", "transfer to"};
    judge_note(&c->judge, "administrator: %s member %u", names[verb], i + 1);
    c->admin->verb = verb;
    c->admin->i = i;
    send_command(c);
}

/* ---- what is wanted ---- */

/* Members are those that are in, each votes and has its log. */
static bool are_members_whole(const struct life *c) {
    struct member_info list[MEMBERS_MAX];
    struct vctl *l = life_leader(c);
    size_t n = l ? member_list(&l->room, list) : 0;
    uint32_t voters = 0;
    for (size_t i = 0; i < n; i++)
        voters |= list[i].is_voter ? 1u << (list[i].id - 1) : 0;
    for (uint32_t i = 0; i < c->n_members; i++)
        if (life_is_in(c, i) && !smember_has_log(c->m[i]))
            return false;
    return l && voters == c->in && n == (size_t)__builtin_popcount(voters);
}

bool admin_is_quiet(const struct life *c) {
    return !c->admin || (!c->admin->verb && are_members_whole(c));
}

void admin_watch(struct life *c) {
    struct member_info list[MEMBERS_MAX];
    struct vctl *l = life_leader(c);
    size_t n = l ? member_list(&l->room, list) : 0;
    uint32_t there = 0;
    if (!c->admin || c->admin->verb || !l)
        return;
    for (size_t i = 0; i < n; i++)
        there |= 1u << (list[i].id - 1);
    for (uint32_t i = c->n_founders; i < c->n_members; i++)
        if (life_is_in(c, i) && !(there >> i & 1) && !smember_has_log(c->m[i])) {
            command(c, CONTROLLER_ADD, i);
            return;
        }
}

/* Of two, the one that is left is no majority: nobody could take the other in. */
static void act_empty(struct life *c, uint32_t i) {
    if (!life_is_in(c, i) || !admin_is_quiet(c) || __builtin_popcount(c->in) < 3)
        return;
    judge_note(&c->judge, "member %u loses its disk", i + 1);
    c->judge.n_crashes++;
    c->admin->n_done++;
    c->admin->lost_ms = vworld_now_ms(c->w);
    smember_crash(c->m[i]);
    smember_empty(c->m[i]);
    cluster_start_member(c, i);
}

static void act_add(struct life *c, uint32_t i) {
    if (life_is_in(c, i) || c->admin->verb)
        return;
    smember_crash(c->m[i]);
    smember_empty(c->m[i]);
    c->in |= 1u << i;
    cluster_start_member(c, i);
    command(c, CONTROLLER_ADD, i);
}

void admin_act(struct life *c) {
    uint32_t i = (uint32_t)vworld_below(c->w, c->n_members);
    uint64_t x = vworld_below(c->w, 1000);
    if (x < 300)
        act_empty(c, i);
    else if (x < 650)
        act_add(c, i);
    else if (c->admin->lost_ms && vworld_now_ms(c->w) - c->admin->lost_ms < HEARD_MS)
        return;
    else if (life_is_in(c, i) && sdisk_last(smember_disk(c->m[i])) && !c->admin->verb) /* without a log it would ask to be taken in again */
        command(c, x < 850 ? CONTROLLER_REMOVE : CONTROLLER_TRANSFER, i);
}

/* ---- life ---- */

void admin_begin(struct life *c) {
    c->admin = xnew(struct admin);
    c->admin->host = vhost_new(c->w, &(struct vhost_conf){.address = "admin"});
}

void admin_end(struct life *c) {
    if (!c->admin)
        return;
    vhost_free(c->admin->host);
    free(c->admin);
    c->admin = NULL;
}

uint32_t admin_done(const struct life *c) {
    return c->admin ? c->admin->n_done : 0;
}
