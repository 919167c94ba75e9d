/* SPDX-License-Identifier: Apache-2.0
 *
 * For the files of this folder.
 */
#ifndef SPUR_SPURCTLD_CATCHUP_INSIDE_H
#define SPUR_SPURCTLD_CATCHUP_INSIDE_H

#include "spurctld/catchup/catchup.h"
#include "spurctld/member/member.h"

struct install;
struct copies;
struct spread;
struct digests;
struct backups;
struct shelf;

struct catchup {
    struct room *room;
    struct catchup_conf conf;
    char *state_dir;
    bool is_stopping;
    struct shelf *shelf;
    struct install *install;
    struct copies *copies;
    struct spread *spread;
    struct digests *digests;
    struct backups *backups;
    struct catchup_stats stats;
};

static inline int64_t catchup_now_ms(const struct catchup *c) {
    return c->room->host->now_ms(c->room->host->impl);
}

/* The others, the leader first. */
struct sources {
    uint32_t id[MEMBERS_MAX];
    size_t n, at;
};
void sources_look(struct sources *s, const struct room *r);
/* Sends a record to a member; takes `arg` as host->member_send does. */
void catchup_send(struct catchup *c, uint32_t member, const char *method, const struct rec_desc *d, const void *record,
                  uint64_t timeout_ms, host_reply_fn fn, void *arg);

/* install.c */
struct install *install_new(struct catchup *c);
void install_stop(struct install *in);
bool install_is_out(const struct install *in);
void install_free(struct install *in);

/* history.c: copies of the history, for others */
struct copies *copies_new(struct catchup *c);
void copies_stop(struct copies *h);
bool copies_are_out(const struct copies *h);
void copies_free(struct copies *h);

/* spread.c, want.c */
struct spread *spread_new(struct catchup *c);
void spread_stop(struct spread *s);
void spread_free(struct spread *s);

/* backup.c */
struct backups *backups_new(struct catchup *c);
void backups_stop(struct backups *b);
bool backups_are_out(const struct backups *b);
void backups_free(struct backups *b);

/* digest.c */
struct digests *digests_new(struct catchup *c);
void digests_stop(struct digests *d);
void digests_free(struct digests *d);

#endif
