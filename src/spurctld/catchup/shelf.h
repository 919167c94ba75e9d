/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that other members may read, piece by piece, by a name. A name is looked up here and nowhere else: it is never made
 * part of a path. Each is held by a descriptor, so that it may be removed meanwhile: who reads it comes to its end.
 */
#ifndef SPUR_SPURCTLD_CATCHUP_SHELF_H
#define SPUR_SPURCTLD_CATCHUP_SHELF_H

#include "spurctld/room.h"
#include "wire/catchup.h"

#define SHELF_FILES 6u       /* at once; one more takes the place of the one that was read longest ago */
#define SHELF_READS 8u       /* under way; more are told E_BUSY */
#define SHELF_KEEP_MS 60000u /* after its last reading, of one that shelf_let_go was told of */

struct shelf;
struct shelf *shelf_new(struct room *r);
void shelf_stop(struct shelf *s); /* while the host is there */
void shelf_free(struct shelf *s); /* takes NULL; stopped, and none under way */
int shelf_put(struct shelf *s, const char *name, const char *path, struct err *e);
void shelf_let_go(struct shelf *s, const char *name);
bool shelf_has(const struct shelf *s, const char *name);
/* fn: 0 with a piece_reply (encoded), E_NOT_FOUND, E_BUSY, E_USAGE, E_SYS. */
void shelf_read(struct shelf *s, const struct piece_request *what, host_reply_fn fn, void *arg);
bool shelf_is_out(const struct shelf *s);

#endif
