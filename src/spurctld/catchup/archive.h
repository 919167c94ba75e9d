/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the bytes of a backup (wire/backup.h) to a descriptor, at a bounded rate. One worker at a time.
 */
#ifndef SPUR_SPURCTLD_CATCHUP_ARCHIVE_H
#define SPUR_SPURCTLD_CATCHUP_ARCHIVE_H

#include <stdbool.h>
#include <time.h>

#include "io/cred/cred.h"
#include "wire/backup.h"

struct archive {
    int fd;
    uint64_t rate;                  /* bytes a second; 0: no bound */
    const _Atomic bool *is_stopping; /* then writing ends with E_STOPPING */
    struct cred_hasher *hash;
    struct timespec begun;
    _Atomic uint64_t size;
    struct backup_end end;
    struct buf bytes;
};
void archive_pace(const struct archive *a, uint64_t bytes); /* waits until so many since `begun` are no faster than the rate */
int archive_begin(struct archive *a, const struct backup_head *head, struct err *e);
int archive_add(struct archive *a, enum backup_kind kind, const void *p, size_t n, struct err *e); /* however long */
int archive_add_file(struct archive *a, enum backup_kind kind, const char *path, struct err *e);
int archive_add_blob(struct archive *a, const uint8_t hash[32], const void *p, size_t n, struct err *e);
int archive_end(struct archive *a, struct err *e); /* and synced */
void archive_fini(struct archive *a); /* leaves the descriptor */

#endif
