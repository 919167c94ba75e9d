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
    struct peer *peer;           /* the port among controllers; NULL: alone */
    struct ctl_links *links;
    struct founding *founding;   /* while an empty directory asks what to be */
    struct asking *asking;
    bool is_catching_up;         /* a follower, for the first time */
    bool has_offered;            /* its file, or found that there is nothing to offer: a follower does so once */
    struct tls *tls;
    struct loop_timer *tls_timer;
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
    struct {
        bool is_due;     /* a snapshot, once this member has the turn */
        uint64_t latest; /* index at which it is taken whoever has it */
        struct host_timer *again;
    } turn;

    uint64_t applies, apply_total_us, apply_max_us;
    uint64_t *names; /* first words of the hashes that jobs name, ascending: for blob_collect */
    size_t n_names;
    bool is_naming; /* from the view to the end of the collection */
};

int64_t ctl_now_us(void);
void ctl_count_apply(struct ctl *c, uint64_t us);

/* ctl_tls.c */
int ctl_tls_open(struct ctl *c, struct err *e);
int ctl_tls_set(struct ctl *c, const struct conf *next, struct err *e); /* on failure nothing was changed */

/* ctl_keys.c */
void ctl_propose_init(struct ctl *c, host_proposed_fn done); /* keys, once in a cluster's life */
void ctl_take_launch_key(struct ctl *c, const struct cluster *cl);
/* What jobs name, on a worker; then done, which ends with ctl_forget_names. Nothing where one is under way. */
void ctl_collect_names(struct ctl *c, void (*done)(struct ctl *c));
void ctl_forget_names(struct ctl *c);
bool ctl_blob_is_named(const struct ctl *c, const uint8_t hash[32]);
void ctl_finish_work(struct ctl *c);

/* ctl_members.c: several controllers */
struct journal_status;
int ctl_members_whoami(struct ctl *c, struct err *e);
int ctl_members_listen(struct ctl *c, struct err *e); /* nothing where it is alone */
void ctl_members_close(struct ctl *c);
void ctl_members_keys(struct ctl *c); /* they were read again */
void ctl_members_opened(struct ctl *c); /* the journal is there */
void ctl_members_status(struct ctl *c, const struct journal_status *s);
void ctl_founding_begin(struct ctl *c);
void ctl_founding_end(struct ctl *c);
void ctl_hello(void *ctx, const struct hello_request *req, struct hello_reply *out);
int ctl_open_journal(struct ctl *c, bool join, struct err *e);
/* ctl_offer.c: the file of a member that doesn't lead */
void ctl_offer_as_follower(struct ctl *c);
void ctl_offer(void *ctx, uint32_t member_id, const struct offer_request *req,
               void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg);

/* ctl_restore.c: the state from a snapshot, for the journal's on_restore */
int ctl_restore(struct ctl *c, uint64_t index, const void *manifest, size_t n, struct err *e);
void ctl_write_backup(struct ctl *c); /* of options.backup_to, and the end */
void ctl_differs(void *ctx, uint64_t index, const char *text); /* marks that our state is not the others', and stops */
int ctl_move_aside(struct ctl *c, struct err *e);              /* at the start after that */

/* ctl_answer.c: what the api asks the controller as a whole */
void ctl_ping(void *ctx, struct ping_reply *out, struct arena *a);
/* ctl_config.c */
void ctl_config(void *ctx, struct config_reply *out, struct arena *a);
/* What administrators changed by hand, which the next configuration drops: a line each, in the arena. */
uint32_t ctl_dropped(const struct ctl *c, struct arena *a, const char *const **out);

void ctl_diag(void *ctx, bool reset, struct diag_reply *out, struct arena *a);
/* ctl_reload.c */
void ctl_on_hangup(void *ctl, int signo);
void ctl_reread(void *ctx, void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg);
void ctl_reconfigure(void *ctx, void (*done)(void *arg, int code, const struct err *why, const void *reply), void *arg);

#endif
