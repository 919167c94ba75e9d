/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory that a restore fills, for restore.c.
 */
#ifndef SPUR_SPURCTLD_RESTORE_DIR_H
#define SPUR_SPURCTLD_RESTORE_DIR_H

#include "base/arena.h"
#include "base/buf.h"
#include "spurctld/ctl.h"

/* Which controller this is, by its configuration, and where its files are. */
struct restore_place {
    char *dir;
    uint32_t id;
    const char *address; /* on the port among controllers; NULL: it is alone */
    struct arena arena;
};
int restore_place_find(const struct ctl_options *o, struct restore_place *out, struct err *e);
void restore_place_fini(struct restore_place *p);

int restore_dir_check(const char *dir, struct err *e); /* missing, empty, or of a restore that did not end */
int restore_dir_begin(const char *dir, struct err *e); /* empty and marked */
int restore_dir_end(const char *dir, struct err *e);   /* synced; the mark is gone */

struct restore_file {
    int fd;
    char *path;
};
int restore_file_open(struct restore_file *f, const char *path, struct err *e);
int restore_file_add(struct restore_file *f, const void *p, size_t n, struct err *e);
int restore_file_close(struct restore_file *f, int rc, struct err *e); /* synced; rc if that is not 0 */

struct restore_blobs;
int restore_blobs_open(const char *dir, struct restore_blobs **out, struct err *e);
/* A blob begins (its record), or bytes of it; `left`: of it behind these. */
int restore_blobs_add(struct restore_blobs *b, bool is_new, const struct buf *p, uint64_t left, struct err *e);
int restore_blobs_close(struct restore_blobs *b, int rc, struct err *e); /* NULL too */

#endif
