/* SPDX-License-Identifier: Apache-2.0
 *
 *     the whole file is read once        every sum, the hash, the state itself, the versions
 *     the mark "restoring" is made       a start refuses a directory that has it
 *     snapshots/, history/, blobs/       written and synced
 *     journal/                           begins with that snapshot
 *     the mark goes
 */
#include "spurctld/restore.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "core/state/state.h"
#include "io/journal/journal.h"
#include "spurctld/acct/schema.h"
#include "spurctld/catchup/pieces.h"
#include "spurctld/restore_dir.h"
#include "spurctld/snapshot.h"
#include "wire/backup.h"

struct restore {
    int fd;
    struct backup_reader reader;
    struct cred_hasher *hash;
    struct arena arena;
    struct backup_head head;
    struct backup_end end;
    struct buf state; /* its bytes */
};

static int64_t read_fd(void *arg, void *p, size_t n, struct err *e) {
    ssize_t got = fd_read(((struct restore *)arg)->fd, p, n);
    return got < 0 ? err_sys(e, "read the backup") : got;
}

static int open_file(struct restore *r, const char *file, struct err *e) {
    *r = (struct restore){.fd = open(file, O_RDONLY | O_CLOEXEC)};
    r->reader = (struct backup_reader){.read = read_fd, .arg = r};
    return r->fd < 0 ? err_sys(e, "open %s", file) : 0;
}

static void close_file(struct restore *r) {
    uint8_t unused[32];
    if (r->hash)
        cred_hasher_end(r->hash, unused);
    if (r->fd >= 0)
        close(r->fd);
    backup_reader_fini(&r->reader);
    buf_fini(&r->state);
    arena_fini(&r->arena);
}

/* ---- the first reading: is it whole, and of our time? ---- */

static int too_new(const char *what, uint32_t theirs, uint32_t ours, struct err *e) {
    return err_set(e, E_VERSION, "this backup was made by a newer program: its %s has version %u, and this one knows %u", what, theirs,
                   ours);
}

static int check_head(const struct backup_head *h, struct err *e) {
    if (h->state_version > STATE_SNAPSHOT_VERSION)
        return too_new("state", h->state_version, STATE_SNAPSHOT_VERSION, e);
    if (h->history_version > SCHEMA_VERSION)
        return too_new("history", h->history_version, SCHEMA_VERSION, e);
    return h->index ? 0 : err_set(e, E_CORRUPT, "the backup is of no entry of a log");
}

static int check_state(struct restore *r, struct state *s, struct err *e) {
    int rc = state_restore(s, r->state.p, r->state.n, e);
    if (rc)
        return err_wrap(e, "the state in the backup");
    if (state_index(s) != r->head.index || state_digest(s) != r->head.digest)
        return err_set(e, E_CORRUPT, "the state in the backup is not the one that its head speaks of");
    return 0;
}

static int check_chunk(struct restore *r, struct err *e) {
    const struct buf *p = &r->reader.payload;
    switch (r->reader.kind) {
    case BACKUP_HEAD: {
        int rc = rec_decode(backup_head_rec(), p->p, p->n, &r->arena, &r->head, e);
        return rc ? rc : check_head(&r->head, e);
    }
    case BACKUP_STATE:
        buf_add(&r->state, p->p, p->n);
        return 0;
    case BACKUP_END:
        return rec_decode(backup_end_rec(), p->p, p->n, &r->arena, &r->end, e);
    default:
        return 0;
    }
}

static int read_all(struct restore *r, struct err *e) {
    uint8_t hash[32];
    int rc;
    r->hash = cred_hasher_new();
    while ((rc = backup_next(&r->reader, e)) > 0) {
        if (r->reader.kind == BACKUP_HEAD) {
            auto_buf begin = {0};
            backup_begin(&begin);
            cred_hasher_add(r->hash, begin.p, begin.n);
        }
        if (r->reader.kind != BACKUP_END) {
            cred_hasher_add(r->hash, r->reader.head, r->reader.n_head);
            cred_hasher_add(r->hash, r->reader.payload.p, r->reader.payload.n);
        }
        rc = check_chunk(r, e);
        if (rc)
            return rc;
    }
    cred_hasher_end(r->hash, hash);
    r->hash = NULL;
    if (!rc && memcmp(hash, r->end.hash, sizeof(hash)) != 0)
        rc = err_set(e, E_CORRUPT, "the backup is damaged: its hash is not the one that its end says");
    return rc;
}

static int first_reading(struct restore *r, const char *file, struct state *s, struct err *e) {
    int rc = open_file(r, file, e);
    if (!rc)
        rc = read_all(r, e);
    return rc ? rc : check_state(r, s, e);
}

static void say(const struct restore *r, const struct state *s) {
    struct state_stats st = state_stats(s);
    char when[64] = "";
    time_t made = (time_t)r->head.made_unix;
    struct tm tm;
    if (localtime_r(&made, &tm))
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
    printf("cluster %s at entry %llu, backed up %s by spur %s\n"
           "%zu jobs (%zu wait, %zu run, %zu are over), %zu nodes, %llu scripts and environments, %llu bytes of history\n",
           r->head.cluster_name ? r->head.cluster_name : "", (unsigned long long)r->head.index, when,
           r->head.program ? r->head.program : "?", st.jobs, st.pending, st.running, st.over, st.nodes,
           (unsigned long long)r->end.blobs, (unsigned long long)r->end.history_bytes);
    if (r->end.missing)
        printf("%llu scripts or environments were on no controller when it was made\n", (unsigned long long)r->end.missing);
}

int restore_check(const char *file, struct err *e) {
    struct restore r;
    struct state *s = state_new();
    int rc = first_reading(&r, file, s, e);
    if (!rc)
        say(&r, s);
    close_file(&r);
    state_free(s);
    return rc;
}

/* ---- the second: into the directory ---- */

static int write_snapshot(const struct restore *r, const char *dir, struct buf *manifest, struct err *e) {
    char name[SNAPSHOT_NAME_MOST];
    struct pieces p;
    struct restore_file f;
    snapshots_name(r->head.index, name);
    autofree char *snapshots = xasprintf("%s/snapshots", dir);
    autofree char *path = xasprintf("%s/%s", snapshots, name);
    int rc = restore_file_open(&f, path, e);
    if (!rc)
        rc = restore_file_add(&f, r->state.p, r->state.n, e);
    rc = restore_file_close(&f, rc, e);
    pieces_begin(&p);
    pieces_add(&p, r->state.p, r->state.n);
    pieces_end(&p);
    snapshots_describe(&p, r->head.index, r->head.digest, manifest);
    pieces_fini(&p);
    return rc ? rc : snapshots_write_manifest(snapshots, r->head.index, manifest, e);
}

static int write_rest(struct restore *r, const char *dir, struct err *e) {
    struct restore_file history;
    struct restore_blobs *blobs = NULL;
    autofree char *path = xasprintf("%s/history/history.db", dir);
    autofree char *blob_dir = xasprintf("%s/blobs", dir);
    int rc = restore_file_open(&history, path, e), closed;
    if (!rc)
        rc = restore_blobs_open(blob_dir, &blobs, e);
    while (!rc && (rc = backup_next(&r->reader, e)) > 0) {
        const struct buf *p = &r->reader.payload;
        rc = 0;
        if (r->reader.kind == BACKUP_HISTORY)
            rc = restore_file_add(&history, p->p, p->n, e);
        else if (r->reader.kind == BACKUP_BLOB || r->reader.kind == BACKUP_BLOB_DATA)
            rc = restore_blobs_add(blobs, r->reader.kind == BACKUP_BLOB, p, r->reader.blob_left, e);
        else if (r->reader.kind == BACKUP_END)
            break;
    }
    closed = restore_blobs_close(blobs, rc, e);
    rc = rc ? rc : closed;
    return restore_file_close(&history, rc, e);
}

static int check_history(const char *dir, struct err *e) {
    autofree char *path = xasprintf("%s/history/history.db", dir);
    struct sql *db = NULL;
    int rc = sql_open(path, SQL_WRITE, &db, e);
    if (!rc)
        rc = schema_prepare(db, e);
    sql_close(db);
    return rc;
}

static int second_reading(struct restore *r, const struct restore_place *to, struct err *e) {
    auto_buf manifest = {0};
    autofree char *journal = xasprintf("%s/journal", to->dir);
    if (lseek(r->fd, 0, SEEK_SET) < 0)
        return err_sys(e, "read the backup again");
    backup_reader_fini(&r->reader);
    r->reader = (struct backup_reader){.read = read_fd, .arg = r};
    int rc = restore_dir_begin(to->dir, e);
    if (!rc)
        rc = write_snapshot(r, to->dir, &manifest, e);
    if (!rc)
        rc = write_rest(r, to->dir, e);
    if (!rc)
        rc = check_history(to->dir, e);
    if (!rc)
        rc = journal_seed(journal, to->id, to->address, r->head.index, manifest.p, manifest.n, e);
    return rc ? rc : restore_dir_end(to->dir, e);
}

int restore_run(const struct ctl_options *o, const char *file, struct err *e) {
    struct restore_place to;
    struct restore r = {.fd = -1};
    struct state *s = state_new();
    int rc = restore_place_find(o, &to, e);
    if (!rc)
        rc = restore_dir_check(to.dir, e);
    if (!rc)
        rc = first_reading(&r, file, s, e);
    if (!rc)
        rc = second_reading(&r, &to, e);
    if (!rc) {
        say(&r, s);
        printf("%s is ready: start controller %u on it%s\n", to.dir, to.id,
               to.address ? ", then the others, each with an empty directory" : "");
    }
    close_file(&r);
    restore_place_fini(&to);
    state_free(s);
    return rc;
}
