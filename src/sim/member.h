/* SPDX-License-Identifier: Apache-2.0
 *
 * One of several controllers of a simulated cluster: a vctl, the product's journal core and libraft, a simulated disk.
 *
 * It crashes and starts; what is on its disk stays. Others call it at "ctlID". One that is no founder, or whose disk was emptied, asks the
 * others to take it in, and has no log before; one that was removed ends when it is told.
 */
#ifndef SPUR_SIM_MEMBER_H
#define SPUR_SIM_MEMBER_H

#include "sim/ctl.h"
#include "sim/disk.h"

struct smember;

struct smember_watch {
    void *arg;
    void (*applied)(void *arg, struct smember *m, uint64_t index, uint64_t term, const void *p, size_t n);
    void (*acknowledges)(void *arg, struct smember *m, uint64_t index); /* to its own proposer, right after applied */
    void (*leads)(void *arg, struct smember *m, uint64_t term);         /* libraft says so */
    void (*restored)(void *arg, struct smember *m, uint64_t index);
    void (*stored)(void *arg, uint64_t id, uint64_t index, const struct sdisk_entry *e);
};

struct smember_conf {
    struct vworld *world;
    const char *dir; /* of its history */
    uint32_t id;
    uint32_t n;      /* founders: 1…n */
    void (*fill)(struct rconf *conf, struct arena *a);
    struct smember_watch watch;
};
struct smember *smember_new(const struct smember_conf *conf);
void smember_free(struct smember *m);
void smember_start(struct smember *m);
void smember_crash(struct smember *m); /* kill -9 and a loss of power: what was not synced may be lost */

void smember_empty(struct smember *m); /* another disk, with nothing on it; it is down */

bool smember_is_up(const struct smember *m);
bool smember_has_log(const struct smember *m); /* it is up, and no longer one that asks to be taken in */
uint32_t smember_id(const struct smember *m);
const char *smember_address(const struct smember *m);
struct vctl *smember_ctl(const struct smember *m);   /* NULL: down */
struct sdisk *smember_disk(const struct smember *m);
uint64_t smember_snapshots(const struct smember *m); /* how many were stored */
void smember_print(const struct smember *m); /* a line on its journal */
/* Notices a leadership of libraft; called after each step of the world. */
void smember_look(struct smember *m);

#endif
