/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the controller, for ctl*.c only.
 */
#ifndef SPUR_SPURCTLD_CTL_INSIDE_H
#define SPUR_SPURCTLD_CTL_INSIDE_H

#include <time.h>

#include "base/fault.h"
#include "io/blob/blob.h"
#include "io/loop/loop.h"
#include "spurctld/acct/acct.h"
#include "spurctld/api/api.h"
#include "spurctld/ctl.h"
#include "spurctld/ctl_host.h"
#include "spurctld/lead/lead.h"
#include "spurctld/plan/plan.h"
#include "spurctld/query/query.h"
#include "spurctld/react/react.h"
#include "spurctld/snapshot.h"

struct ctl {
    struct ctl_options options;
    char *state_dir;
    struct arena start_arena, conf_arena;
    struct conf at_start; /* as it was read at the start */
    struct conf conf;     /* as it was read last, with what needs a restart as it was at the start */
    struct loop *loop;
    struct pool *pool;
    struct blob_store *blobs;
    struct ctl_host *host;
    struct journal *journal;
    struct snapshots *snapshots;
    struct api *api;
    struct room room;
    struct applied applied;
    char *listen_text;
    time_t started_unix;
    bool is_ready, is_stopping;
    bool is_elected;          /* by the journal; room.is_leader when it can serve as well */
    struct host_timer *again; /* of the steps from the one to the other */
    int exit_code;
    uint64_t snapshot_asked; /* index at which the last snapshot was asked for, or restored */

    uint64_t applies, apply_total_us, apply_max_us;
    uint64_t *names; /* first words of the hashes that jobs name, ascending: for blob_collect */
    size_t n_names;
    bool is_naming; /* from the view to the end of the collection */
};

int64_t ctl_now_us(void);
void ctl_count_apply(struct ctl *c, uint64_t us);

/* ctl_keys.c */
void ctl_propose_init(struct ctl *c, host_proposed_fn done); /* keys, once in a cluster's life */
void ctl_take_launch_key(struct ctl *c, const struct cluster *cl);
/* What jobs name, on a worker; then done, which ends with ctl_forget_names. Nothing where one is under way. */
void ctl_collect_names(struct ctl *c, void (*done)(struct ctl *c));
void ctl_forget_names(struct ctl *c);
bool ctl_blob_is_named(const struct ctl *c, const uint8_t hash[32]);
void ctl_finish_work(struct ctl *c);

/* ctl_answer.c: what the api asks the controller as a whole */
void ctl_ping(void *ctx, struct ping_reply *out, struct arena *a);
/* ctl_config.c */
void ctl_config(void *ctx, struct config_reply *out, struct arena *a);
/* What administrators changed by hand, which the next configuration drops: a line each, in the arena. */
uint32_t ctl_dropped(const struct ctl *c, struct arena *a, const char *const **out);

void ctl_diag(void *ctx, bool reset, struct diag_reply *out, struct arena *a);
void ctl_reconfigure(void *ctx, void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg);

#endif
