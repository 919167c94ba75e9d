/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal's own thread and loop: open and close.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "io/journal/inside.h"

/* Snapshots are put into place by way of files without a name. */
static int can_tmpfile(const char *dir, struct err *e) {
    autoclose int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
        return err_set(e, E_UNSUPPORTED, "%s: this file system has no unnamed files (O_TMPFILE)", dir);
    return fd < 0 && errno != ENOSPC ? err_sys(e, "%s", dir) : 0;
}

static void stop_here(void *arg) {
    turn_stop(arg);
}

static void *thread_main(void *arg) {
    struct journal *j = arg;
    pthread_setname_np(pthread_self(), "journal");
    aio_destroy_elsewhere();
    loop_run(j->loop);
    while (heap_turn()) {
    }
    return NULL;
}

static void stop_thread(struct journal *j) {
    loop_post(j->loop, stop_here, j);
    pthread_join(j->thread, NULL);
}

static int wait_for_open(struct journal *j, struct err *e) {
    pthread_mutex_lock(&j->open_lock);
    while (!j->open_is_done)
        pthread_cond_wait(&j->open_done, &j->open_lock);
    int rc = j->open_code;
    if (rc != 0 && e)
        *e = j->open_err;
    pthread_mutex_unlock(&j->open_lock);
    if (rc != 0)
        return rc;
    outbox_deliver_state(j->out); /* on_restore has been called when we return */
    outbox_opened(j->out);
    return outbox_restore_error(j->out, e);
}

int journal_open(struct loop *owner_loop, const struct journal_conf *conf, const struct journal_owner *owner,
                 struct journal **out, struct err *e) {
    int rc = journal_conf_check(conf, e), lock_fd = -1;
    if (rc != 0 || (rc = dir_lock(conf->dir, &lock_fd, e)) != 0)
        return rc;
    if ((rc = can_tmpfile(conf->dir, e)) != 0) {
        close(lock_fd);
        return rc;
    }
    struct journal *j = journal_new(owner_loop, conf, owner);
    j->lock_fd = lock_fd;
    loop_post(j->loop, journal_begin, j);
    must(pthread_create(&j->thread, NULL, thread_main, j) == 0);
    rc = wait_for_open(j, e);
    if (rc != 0) {
        stop_thread(j);
        journal_free(j);
        return rc;
    }
    *out = j;
    return 0;
}

void journal_close(struct journal *j) {
    if (!j)
        return;
    stop_thread(j);
    journal_end(j);
    journal_free(j);
}
