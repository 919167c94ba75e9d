/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent tells its controllers: that it is there (registration, repeated until it is answered), how it is
 * (heartbeats), and how runs ended (each report repeated until it is answered). Every call is signed with the node's
 * key (wire/proof.h). A room: the world is `host`.
 */
#ifndef SPUR_SPURD_REPORT_H
#define SPUR_SPURD_REPORT_H

#include "base/host.h"
#include "io/cred/cred.h"
#include "spurd/table/table.h"
#include "wire/messages.h"

struct report;

struct report_conf {
    const char *controllers; /* list for host->send; all borrowed */
    const char *join_token;  /* NULL: none */
    const struct node *node; /* as it registers */
    const struct cred_key *key;
    void *arg; /* of the functions below */
    /* Load in hundredths + 1 and free memory in MiB + 1; 0: not known. */
    void (*sample)(void *arg, uint32_t *out_load, uint64_t *out_free_mb);
    /* The controller's public key came with a registration. Not 0: it isn't the one that we know; registration is tried
     * again later. */
    int (*on_key)(void *arg, const uint8_t *key, uint32_t n, struct err *e);
    void (*on_registered)(void *arg, const struct register_reply *reply); /* each time */
};

struct report *report_new(struct host *h, struct table *t, const struct report_conf *conf);
void report_start(struct report *r);
void report_changed(struct report *r); /* table_conf.changed */
/* Where controllers want to know that we stop: tells them; `done` once, when they have answered or can't be reached. False:
 * they don't. */
bool report_leave(struct report *r, void (*done)(void *arg));
/* Says nothing any more. */
void report_stop(struct report *r);
void report_free(struct report *r); /* after calls under way were answered or dropped by the host */

#endif
