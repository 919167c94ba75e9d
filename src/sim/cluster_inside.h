/* SPDX-License-Identifier: Apache-2.0
 *
 * What cluster.c, trouble.c and settle.c share.
 */
#ifndef SPUR_SIM_CLUSTER_INSIDE_H
#define SPUR_SIM_CLUSTER_INSIDE_H

#include "sim/client.h"
#include "sim/cluster.h"

#define MEMBERS_MOST 5u
#define AGENTS 4u
#define CALM 1u /* of them: only the network is bad to these */

struct admin;

struct life {
    struct vworld *w;
    struct judge judge;
    uint32_t n_founders;
    uint32_t n_members; /* of whom not all need be in the cluster */
    uint32_t in;        /* who is in it, as far as the administrator knows: a bit of each */
    struct admin *admin; /* NULL: members neither come nor go */
    struct smember *m[MEMBERS_MOST];
    struct vagent *a[AGENTS];
    struct sclient *client;
    bool is_cut[AGENTS];
    bool is_healing;
};

/* trouble.c */
void trouble_act(struct life *c);
void trouble_end(struct life *c); /* all is mended, everybody is up */
void cluster_start_member(struct life *c, uint32_t i);

static inline bool life_is_in(const struct life *c, uint32_t i) {
    return c->in >> i & 1;
}

/* admin.c */
void admin_begin(struct life *c);
void admin_end(struct life *c);
void admin_act(struct life *c);
/* One that isn't in the file, and was taken out for its empty disk by a leader that is gone, says that it must be added: it is. */
void admin_watch(struct life *c);
bool admin_is_quiet(const struct life *c); /* its command is answered, and members are as it wants them */
uint32_t admin_done(const struct life *c); /* commands that came about, and disks that were emptied */
struct vctl *life_leader(const struct life *c); /* NULL: none */

/* settle.c */
bool settle_is_done(void *cluster);
void settle_check(struct life *c);

#endif
