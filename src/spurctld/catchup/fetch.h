/* SPDX-License-Identifier: Apache-2.0
 *
 * One file from another member, in pieces, at a bounded rate. What is there of it already is kept where its hashes are
 * right, a piece that comes damaged is asked for again, and nothing has its final name before all of it is on disk.
 */
#ifndef SPUR_SPURCTLD_CATCHUP_FETCH_H
#define SPUR_SPURCTLD_CATCHUP_FETCH_H

#include "spurctld/room.h"
#include "wire/catchup.h"

struct fetch;
typedef void (*fetch_done_fn)(void *arg, int code, const struct err *why);
/* Into `path`; "PATH.part" until it is whole. `rate`: bytes a second, 0: no bound. `done` once, later; the fetch is gone then. E_FULL, E_SYS (our disk), E_CORRUPT (damaged again and again), and what the
 * calls tell. */
struct fetch *fetch_start(struct room *r, uint64_t member, const struct file_info *f, const char *path, uint64_t rate,
                          fetch_done_fn done, void *arg);
void fetch_stop(struct fetch *f); /* it ends with E_STOPPING, perhaps at once */

#endif
