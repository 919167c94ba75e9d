/* SPDX-License-Identifier: Apache-2.0
 *
 * A controller in a virtual world: the very rooms of spurctld (rooms_lib) on a virtual host, with history in a real file.
 * The log behind it is somebody else's: who makes a vctl hands it committed entries and leadership, and takes its proposals.
 */
#ifndef SPUR_SIM_CTL_H
#define SPUR_SIM_CTL_H

#include "base/map.h"
#include "sim/world.h"
#include "spurctld/acct/acct.h"
#include "spurctld/admit/admit.h"
#include "spurctld/lead/lead.h"
#include "spurctld/plan/plan.h"
#include "spurctld/query/query.h"
#include "spurctld/react/react.h"

struct vctl {
    struct room room;
    struct conf conf;
    struct arena conf_arena;
    struct vhost *host;
    void *log; /* of whoever made it */
    struct vworld *world;
    char *history;
    uint64_t applied_index; /* entries of the log */
    struct applied applied;
    bool is_elected;
    struct host_timer *again; /* of the step from the election to the lead */
    struct map64 proofs; /* of nodes' calls: each counts once, as api/identity has it */
};

/* With its configuration made by `fill`; the state from `snapshot`, or empty. The history's file is DIR/history-ID.db and
 * outlives its controller. */
struct vctl_conf {
    const char *dir;
    uint32_t member_id;
    void (*fill)(struct rconf *conf, struct arena *a); /* on top of the defaults; NULL: none */
    const struct buf *snapshot;                        /* NULL: from the first entry */
    unsigned work_max_ms;
};
struct vctl *vctl_new(const struct vctl_conf *conf, struct vworld *w, const struct vhost_conf *host, void *log);
/* The next entry, as ctl.c does it; `fn` NULL: not a proposal of this controller's. */
void vctl_apply(struct vctl *c, uint64_t index, const void *p, size_t n, host_proposed_fn fn, void *arg);
/* Another state, from a snapshot, in the place of the one that it has. */
int vctl_restore(struct vctl *c, const struct buf *snapshot, struct err *e);
/* Leads, and the state is current: offers its configuration, then all rooms begin. */
void vctl_lead(struct vctl *c);
void vctl_follow(struct vctl *c);
/* A request that came over the network, as api/ hands it on, without its proofs: Registry's methods; Submit, Cancel, Hold and
 * their like of the user that the header "uid" names (0: an administrator); with several controllers also what they ask each other,
 * and Jobs, which any of them answers after the question of a read. c NULL: there is nobody. */
void vctl_serve(struct vctl *c, struct vrequest *rq);
/* In the order of ctl_free: rooms fall silent; then (the log has refused what is open) all goes. */
void vctl_silence(struct vctl *c);
void vctl_free(struct vctl *c);

/* The history's file as it is now, for kill -9: what is written to it on the way down is undone. */
struct vhistory {
    char *path;
    struct buf db, wal;
    bool has_db, has_wal;
};
void vhistory_keep(struct vhistory *h, const struct vctl *c);
void vhistory_put_back(struct vhistory *h); /* once the controller is gone */
void vhistory_remove(const char *dir, uint32_t member_id); /* its controller is gone */

void vctl_snapshot_write(struct state *s, struct buf *out);

struct who vctl_user(uint32_t uid); /* proven; user "u1000"; 0: root */

/* What is read through the rooms' own state. Good until the next step of the world. */
const struct job *vctl_job(const struct vctl *c, uint32_t id);
const struct node *vctl_node(const struct vctl *c, const char *name);
const struct rconf *vctl_conf_in_force(const struct vctl *c);

/* Rows of the history, counted and compared by the caller. */
uint32_t vctl_rows(const struct vctl *c, void (*row)(void *arg, const struct job *j), void *arg, uint32_t *out_steps);

/* Whether it waits for what nobody will do unasked: it is held, or depends on what never comes. */
bool vctl_may_wait(const struct vctl *c, const struct job *j);

#endif
