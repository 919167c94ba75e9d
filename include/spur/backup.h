/* SPDX-License-Identifier: Apache-2.0
 *
 * libspur: a backup of the cluster into a file (docs/format/backup.md).
 */
#ifndef SPUR_BACKUP_H
#define SPUR_BACKUP_H

#include "spur/spur.h"

struct spur_backup {
    struct backup_head head; /* in the arena */
    struct backup_end end;
    uint64_t bytes;
};
/* Asks the controllers for one, and writes it to the descriptor (readable too, at its beginning, empty): all of it, checked part by part.
 * For administrators. Where the controller that makes it goes away, another one makes a new one, a few times. */
int spur_backup(struct spur_client *c, int fd, struct arena *a, struct spur_backup *out, struct err *e);

#endif
