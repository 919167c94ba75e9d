/* SPDX-License-Identifier: Apache-2.0
 *
 * One shared log of entries behind controllers of a virtual world (sim/ctl.h); their state is made from it.
 *
 * The log keeps the order of proposals, commits each after a while, and may refuse. Who proposed and led no longer hears
 * E_NOT_LEADER, whether or not the entry is committed later: its fate is unknown.
 */
#ifndef SPUR_TESTS_VIRTUAL_LOG_H
#define SPUR_TESTS_VIRTUAL_LOG_H

#include "sim/ctl.h"

/* ---- the log ---- */

struct vlog;

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

/* The state from the log, or from the snapshot and the rest of it. At "ctl" agents and clients find whoever leads. */
struct vctl *vctl_start(struct vworld *w, struct vlog *l, const struct vctl_conf *conf);
void vctl_elect(struct vctl *c);
void vctl_depose(struct vctl *c);
/* As SIGTERM, or as kill -9: then the history's file is as it was at that moment. Frees it. */
void vctl_stop(struct vctl *c);
void vctl_kill(struct vctl *c);
/* False, and nothing, while history lacks rows. */
bool vctl_snapshot(struct vctl *c, struct buf *out);

#endif
