/* SPDX-License-Identifier: Apache-2.0
 *
 *     STATE/backup-work/journal       copies: reading a log repairs and extends it
 *                      /history       a copy
 *                      /snapshots     other names of the same files, which are never changed
 *                      /blobs         the very directory
 *
 * What the log has and no majority is known to have agreed on is in the backup too: nobody can be asked.
 */
#include "spurctld/offline.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/journal/journal.h"
#include "io/sql/sql.h"
#include "spurctld/restore.h"
#include "spurctld/restore_dir.h"

#define WORK "backup-work"
#define BLOCK (256u << 10)

static bool is_dot(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int copy_file(const char *from, const char *to, struct err *e) {
    autoclose int in = open(from, O_RDONLY | O_CLOEXEC);
    autofree char *block = xmalloc(BLOCK);
    struct restore_file out;
    if (in < 0)
        return err_sys(e, "open %s", from);
    int rc = restore_file_open(&out, to, e);
    for (ssize_t n = 1; !rc && n > 0;) {
        n = fd_read(in, block, BLOCK);
        rc = n < 0 ? err_sys(e, "read %s", from) : restore_file_add(&out, block, (size_t)n, e);
    }
    return restore_file_close(&out, rc, e);
}

/* All files of a directory that has no others. */
static int take_files(const char *from, const char *to, bool link_them, struct err *e) {
    DIR *d = opendir(from);
    struct dirent *en;
    int rc = mkdir(to, 0700) < 0 ? err_sys(e, "make %s", to) : 0;
    while (d && !rc && (en = readdir(d))) {
        autofree char *a = xasprintf("%s/%s", from, en->d_name);
        autofree char *b = xasprintf("%s/%s", to, en->d_name);
        if (is_dot(en->d_name) || strcmp(en->d_name, "lock") == 0 || (link_them && link(a, b) == 0))
            continue;
        rc = copy_file(a, b, e);
    }
    if (d)
        closedir(d);
    return rc;
}

static void remove_work(const char *work) {
    static const char *const parts[] = {"journal", "history", "snapshots", "blobs", ""};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        autofree char *dir = xasprintf("%s/%s", work, parts[i]);
        struct stat st;
        DIR *d = *parts[i] && lstat(dir, &st) == 0 && S_ISLNK(st.st_mode) ? NULL : opendir(dir);
        struct dirent *en;
        if (!d)
            unlink(dir); /* the link */
        while (d && (en = readdir(d)))
            if (!is_dot(en->d_name))
                unlinkat(dirfd(d), en->d_name, 0);
        if (d)
            closedir(d);
        rmdir(dir);
    }
}

static int make_work(const char *dir, const char *work, struct err *e) {
    autofree char *journal = xasprintf("%s/journal", dir), *journal_to = xasprintf("%s/journal", work);
    autofree char *snaps = xasprintf("%s/snapshots", dir), *snaps_to = xasprintf("%s/snapshots", work);
    autofree char *history = xasprintf("%s/history/history.db", dir), *history_to = xasprintf("%s/history/history.db", work);
    autofree char *history_dir = xasprintf("%s/history", work);
    autofree char *blobs = xasprintf("%s/blobs", dir), *blobs_to = xasprintf("%s/blobs", work);
    int rc = mkdir(work, 0700) < 0 ? err_sys(e, "make %s", work) : 0;
    if (!rc)
        rc = take_files(journal, journal_to, false, e);
    if (!rc)
        rc = take_files(snaps, snaps_to, true, e);
    if (!rc && (mkdir(history_dir, 0700) < 0 || symlink(blobs, blobs_to) < 0))
        rc = err_sys(e, "fill %s", work);
    if (!rc && access(history, F_OK) == 0)
        rc = sql_copy(history, history_to, NULL, NULL, e);
    return rc;
}

static int check(const char *dir, const char *journal, uint64_t *out_id, int *out_lock, struct err *e) {
    autofree char *catching = xasprintf("%s/catching-up", dir);
    int rc = restore_is_whole(dir, e);
    if (!rc && journal_is_fresh(journal))
        rc = err_set(e, E_NOT_FOUND, "%s is not the directory of a controller", dir);
    if (!rc && access(catching, F_OK) == 0)
        rc = err_set(e, E_CORRUPT, "%s: this controller was catching up, its files are not of one moment: take another one's", dir);
    if (!rc)
        rc = journal_lock(journal, out_lock, e);
    if (rc == E_EXISTS)
        err_wrap(e, "the controller runs; ask it (spur backup without --state-dir)");
    return rc ? rc : journal_owner(journal, out_id, e);
}

int offline_backup(const struct ctl_options *o, const char *file, struct err *e) {
    struct restore_place place;
    struct ctl *c = NULL;
    uint64_t id = 0;
    autoclose int lock = -1;
    int rc = restore_place_find(o, &place, e);
    autofree char *dir = !rc ? realpath(place.dir, NULL) : NULL;
    if (!rc && !dir)
        rc = err_sys(e, "%s", place.dir);
    restore_place_fini(&place);
    if (rc)
        return rc;
    autofree char *journal = xasprintf("%s/journal", dir);
    autofree char *work = xasprintf("%s/" WORK, dir);
    rc = check(dir, journal, &id, &lock, e);
    if (rc)
        return rc;
    remove_work(work);
    rc = make_work(dir, work, e);
    struct ctl_options own = *o;
    own.state_dir = work;
    own.backup_to = file;
    own.backup_member = (uint32_t)id;
    own.log_level = o->log_level ? o->log_level : "warn";
    if (!rc)
        rc = ctl_new(&own, &c, e);
    if (!rc && ctl_run(c))
        rc = err_set(e, E_SYS, "no backup was made");
    ctl_free(c);
    remove_work(work);
    return rc;
}
