/* SPDX-License-Identifier: Apache-2.0
 *
 * A backup: made by the controller that answers, then fetched from it piece by piece. One piece is in memory at a time.
 */
#include "spur/backup.h"

#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define PIECE_BYTES (512u << 10)
#define TIMES 3u /* that one is begun */
#define POLL_NS 50000000l

/* Begins one and waits until it is made. */
static int make(struct spur_client *c, struct arena *a, struct backup_reply *out, struct err *e) {
    struct backup_request rq = {0};
    *out = (struct backup_reply){0};
    int rc = spur_call(c, WIRE_Controller_Backup, &rq, a, out, e);
    rq.name = out->name;
    while (!rc && !out->is_done) {
        auto_arena once = {0};
        struct timespec ts = {0, POLL_NS};
        struct backup_reply now = {0};
        nanosleep(&ts, NULL);
        rc = spur_call(c, WIRE_Controller_Backup, &rq, &once, &now, e);
        out->is_done = now.is_done;
        out->bytes = now.bytes;
    }
    return rc;
}

static int fetch(struct spur_client *c, int fd, const struct backup_reply *b, struct err *e) {
    int rc = lseek(fd, 0, SEEK_SET) < 0 || ftruncate(fd, 0) < 0 ? err_sys(e, "empty the backup") : 0;
    for (uint64_t at = 0; !rc && at < b->bytes;) {
        auto_arena once = {0};
        struct piece_request rq = {b->name, at, (uint32_t)MIN(b->bytes - at, (uint64_t)PIECE_BYTES)};
        struct piece_reply piece = {0};
        rc = spur_call(c, WIRE_Controller_BackupPiece, &rq, &once, &piece, e);
        if (!rc && piece.n_data != rq.length)
            rc = err_set(e, E_CORRUPT, "a piece of the backup is shorter than it must be");
        if (!rc && fd_write(fd, piece.data, piece.n_data) < 0)
            rc = err_sys(e, "write the backup");
        at += piece.n_data;
    }
    return rc;
}

static int64_t read_fd(void *arg, void *p, size_t n, struct err *e) {
    ssize_t got = fd_read(*(int *)arg, p, n);
    return got < 0 ? err_sys(e, "read the backup") : got;
}

static int check(int fd, struct arena *a, struct spur_backup *out, struct err *e) {
    struct backup_reader r = {.read = read_fd, .arg = &fd};
    int rc = lseek(fd, 0, SEEK_SET) < 0 ? err_sys(e, "read the backup") : 1;
    while (rc > 0 && (rc = backup_next(&r, e)) > 0) {
        int bad = 0;
        if (r.kind == BACKUP_HEAD)
            bad = rec_decode(backup_head_rec(), r.payload.p, r.payload.n, a, &out->head, e);
        else if (r.kind == BACKUP_END)
            bad = rec_decode(backup_end_rec(), r.payload.p, r.payload.n, a, &out->end, e);
        rc = bad ? bad : rc;
    }
    out->bytes = r.at;
    backup_reader_fini(&r);
    return rc;
}

int spur_backup(struct spur_client *c, int fd, struct arena *a, struct spur_backup *out, struct err *e) {
    int rc = E_NOT_FOUND;
    for (unsigned i = 0; i < TIMES && rc == E_NOT_FOUND; i++) { /* not found: another controller answers now, or it started anew */
        struct backup_reply b;
        rc = make(c, a, &b, e);
        if (!rc)
            rc = fetch(c, fd, &b, e);
    }
    return rc ? rc : check(fd, a, out, e);
}
