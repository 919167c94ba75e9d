/* SPDX-License-Identifier: Apache-2.0
 *
 * The state from a snapshot: at start, or where this member had fallen too far behind for the log. And the end of a
 * member whose state is not that of the others: its files are moved aside at the next start, all but the log (which
 * says what it has promised to others), and it gets theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/journal/journal.h"
#include "spurctld/catchup/catchup.h"
#include "spurctld/ctl_inside.h"
#include "spurctld/member/member.h"

/* ---- a state takes the place of the one that we have ---- */

static void take_state(struct ctl *c, struct state *fresh) {
    state_free(c->room.state);
    c->room.state = fresh;
    state_set_checking(fresh, c->options.check_invariants);
    c->snapshot_asked = state_index(fresh);
    log_info("state restored from the snapshot at %llu", (unsigned long long)state_index(fresh));
    if (!member_is_alone(&c->room))
        catchup_on_state(c->room.catchup);
}

static int load(struct ctl *c, const void *manifest, size_t n, struct err *e) {
    auto_arena a = {0};
    struct snapshot_manifest m;
    int rc = snapshots_manifest(manifest, n, &a, &m, e);
    if (rc)
        return rc;
    struct state *fresh = state_new();
    autofree char *path = snapshots_path(c->snapshots, m.file);
    rc = snapshots_load(path, &m, fresh, e);
    if (rc) {
        state_free(fresh);
        return rc;
    }
    take_state(c, fresh);
    acct_restored(c->room.acct);
    return 0;
}

static void on_caught_up(void *arg, struct state *fresh) {
    struct ctl *c = arg;
    if (!c->journal) { /* stopping */
        state_free(fresh);
        return;
    }
    take_state(c, fresh); /* its history came with it */
    journal_restored(c->journal, 0);
}

/* Newer than what the journal names: fetched, or written just before a crash. What the log holds up to there is passed over. */
static int load_newest(struct ctl *c, uint64_t at_least, struct err *e) {
    const struct buf *newest;
    uint64_t index;
    if (!snapshots_newest(c->snapshots, at_least, &index, &newest))
        return err_set(e, E_NOT_FOUND, "no snapshot in %s/snapshots reaches entry %llu", c->state_dir,
                       (unsigned long long)at_least);
    return load(c, newest->p, newest->n, e);
}

int ctl_restore(struct ctl *c, uint64_t index, const void *manifest, size_t n, struct err *e) {
    bool is_alone = c->at_start.n_peers <= 1;
    bool is_start = !c->journal && !catchup_is_open(c->room.catchup);
    struct err why = {0};
    int rc = is_start ? load(c, manifest, n, &why) : E_NOT_FOUND;
    if (rc && rc != E_VERSION && is_start)
        rc = load_newest(c, index, e);
    if (!rc)
        return 0;
    if (rc == E_VERSION || is_alone) {
        *e = why.code ? why : *e;
        return rc == E_VERSION ? rc : why.code ? why.code : rc;
    }
    if (is_start)
        log_error("%s", why.text);
    catchup_begin(c->room.catchup, index, on_caught_up, c);
    return JOURNAL_PENDING;
}

/* ---- the one thing that a controller on the files of a stopped one does ---- */

static void on_backed_up(void *arg, int code, const struct err *why, const struct backup_end *what, uint64_t size) {
    struct ctl *c = arg;
    struct err e;
    autofree char *part = xasprintf("%s.part", c->options.backup_to);
    if (!code && rename(part, c->options.backup_to) < 0) {
        code = err_sys(&e, "rename %s", part);
        why = &e;
    }
    if (code)
        log_error("%s: %s", c->options.backup_to, why->text);
    else
        printf("%s: cluster %s at entry %llu, %llu scripts and environments, %llu bytes\n", c->options.backup_to,
               room_rconf(&c->room)->cluster_name, (unsigned long long)state_index(c->room.state), (unsigned long long)what->blobs,
               (unsigned long long)size);
    if (!code && what->missing)
        log_warn("%llu scripts or environments are not here and not in it", (unsigned long long)what->missing);
    c->exit_code = code ? 1 : 0;
    loop_stop(c->loop);
}

void ctl_write_backup(struct ctl *c) {
    autofree char *part = xasprintf("%s.part", c->options.backup_to);
    catchup_backup(c->room.catchup, part, on_backed_up, c);
}

/* ---- a state that is not the others' ---- */

static char *differs_path(const struct ctl *c) {
    return xasprintf("%s/state-differs", c->state_dir);
}

void ctl_differs(void *ctx, uint64_t index, const char *text) {
    struct ctl *c = ctx;
    autofree char *path = differs_path(c);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dprintf(fd, "%s\n", text) < 0 || fsync(fd) < 0)
        log_error("%s can't be written: %s", path, strerror(errno));
    log_error("%s; this member stops and keeps its files. At its next start its snapshots and history are moved aside, and it "
              "gets those of the others", text);
    c->exit_code = 1;
    loop_stop(c->loop);
}

int ctl_move_aside(struct ctl *c, struct err *e) {
    static const char *const names[] = {"snapshots", "history"};
    autofree char *mark = differs_path(c);
    autofree char *aside = xasprintf("%s/aside-%lld", c->state_dir, (long long)time(NULL));
    if (access(mark, F_OK) < 0)
        return 0;
    if (mkdir(aside, 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", aside);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        autofree char *from = xasprintf("%s/%s", c->state_dir, names[i]);
        autofree char *to = xasprintf("%s/%s", aside, names[i]);
        if (rename(from, to) < 0 && errno != ENOENT)
            return err_sys(e, "move %s to %s", from, to);
    }
    autofree char *kept = xasprintf("%s/state-differs", aside);
    if (rename(mark, kept) < 0)
        return err_sys(e, "move %s to %s", mark, kept);
    log_warn("this member stopped because its state was not that of the others: its snapshots and its history were moved to "
             "%s, and it gets theirs", aside);
    return 0;
}
