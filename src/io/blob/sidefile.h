/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of a finished pack (`pack-NNNNNN.list`): hash, offset and length of each record. Only there to open fast;
 * one that is missing or damaged is no loss, the pack is scanned instead.
 */
#ifndef SPUR_IO_BLOB_SIDEFILE_H
#define SPUR_IO_BLOB_SIDEFILE_H

#include "io/blob/pack.h"

/* Not synced: a torn one is known by its checksum. Replaces an older one. */
int sidefile_write(int dir_fd, uint32_t number, uint64_t pack_id, uint32_t pack_end, const struct pack_record *records,
                   size_t n, struct err *e);

/* Reads the list into `out` as a scan of the pack would: 0, E_NOT_FOUND, E_CORRUPT (for another pack, too), E_SYS.
 * `pack_id` 0: any. `out` is to be given to pack_scan_fini in any case. */
int sidefile_read(int dir_fd, uint32_t number, uint64_t pack_id, uint64_t pack_size, struct pack_scan *out);

#endif
