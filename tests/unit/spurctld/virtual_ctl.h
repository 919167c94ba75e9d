/* SPDX-License-Identifier: Apache-2.0
 *
 * Controllers in a virtual world: the very rooms of spurctld (rooms_lib) on a virtual host, one shared log of entries
 * behind them, their state made from it, their history in real files.
 *
 * The log keeps the order of proposals, commits each after a while, and may refuse. Who proposed and led no longer hears
 * E_NOT_LEADER, whether or not the entry is committed later: its fate is unknown.
 */
#ifndef SPUR_TESTS_VIRTUAL_CTL_H
#define SPUR_TESTS_VIRTUAL_CTL_H

#include "spurctld/acct/acct.h"
#include "spurctld/admit/admit.h"
#include "spurctld/lead/lead.h"
#include "spurctld/plan/plan.h"
#include "spurctld/query/query.h"
#include "spurctld/react/react.h"
#include "virtual_host.h"

/* ---- the log ---- */

struct vlog;
struct vctl;

struct vlog *vlog_new(struct vworld *w);
void vlog_free(struct vlog *l); /* controllers are gone */
uint64_t vlog_index(const struct vlog *l);
void vlog_delay(struct vlog *l, unsigned min_ms, unsigned max_ms);
/* Proposals of `command` (0: any) are refused with `code`, the next `n` of them (UINT32_MAX: all until 0 is set). */
void vlog_refuse(struct vlog *l, enum command command, int code, uint32_t n);
/* Called with each applied entry of the leader, or of any controller where none leads. */
typedef void (*vlog_seen_fn)(void *arg, const struct vctl *c, uint64_t index, const struct applied *what);
void vlog_watch(struct vlog *l, vlog_seen_fn fn, void *arg);
/* How many entries there are of one command. */
uint64_t vlog_count(const struct vlog *l, enum command c);
/* All from the first on, each applied to a fresh state. */
void vlog_replay(const struct vlog *l, void (*fn)(void *arg, const struct state *s, const struct applied *what), void *arg);
/* Applies all to a fresh state and must come to the same digest, also by way of a snapshot in the middle. */
void vlog_check_replay(struct vlog *l, const struct vctl *c);

/* ---- controllers ---- */

struct vctl {
    struct room room;
    struct conf conf;
    struct arena conf_arena;
    struct vhost *host;
    struct vlog *log;
    struct vworld *world;
    char *history;
    uint64_t applied_index; /* entries of the log */
    struct applied applied;
    bool is_elected;
    struct host_timer *again; /* of the step from the election to the lead */
    uint64_t term; /* grows with each election of anybody */
};

/* With `conf_text` as its replicated part made by `fill`; the state from the log, or from `snap` and the rest of it. The history's
 * file is DIR/history-ID.db and outlives its controller. */
struct vctl_conf {
    const char *dir;
    uint32_t member_id;
    void (*fill)(struct rconf *conf, struct arena *a); /* on top of the defaults; NULL: none */
    const struct buf *snapshot;                        /* NULL: from the first entry */
    unsigned work_max_ms;
};
struct vctl *vctl_start(struct vworld *w, struct vlog *l, const struct vctl_conf *conf);
/* At "ctl" agents and clients find whoever leads: Registry's methods, and Submit, Cancel and Hold of the user that the
 * header "uid" names (0: an administrator). */
void vctl_elect(struct vctl *c);
void vctl_depose(struct vctl *c);
/* As SIGTERM, or as kill -9: then the history's file is as it was at that moment. Frees it. */
void vctl_stop(struct vctl *c);
void vctl_kill(struct vctl *c);
/* False, and nothing, while history lacks rows. */
bool vctl_snapshot(struct vctl *c, struct buf *out);

struct who vctl_user(uint32_t uid); /* proven; user "u1000"; 0: root */

/* What is read through the rooms' own state. Good until the next step of the world. */
const struct job *vctl_job(const struct vctl *c, uint32_t id);
const struct node *vctl_node(const struct vctl *c, const char *name);
const struct rconf *vctl_conf_in_force(const struct vctl *c);

/* Rows of the history, counted and compared by the caller. */
uint32_t vctl_rows(const struct vctl *c, void (*row)(void *arg, const struct job *j), void *arg, uint32_t *out_steps);

#endif
