/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal as its owner sees it: open, propose, answer for snapshots, close.
 *
 * Everything here but the thread's own function runs on the owner's thread.
 */
#include "io/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "io/journal/inside.h"

#define SNAPSHOT_ENTRIES 100000
#define KEEP_ENTRIES 8192
#define BATCH_BYTES (1u << 20)
#define DIR_MAX 512

static int conf_check(const struct journal_conf *c, struct err *e) {
    if (!c->dir || !*c->dir || strlen(c->dir) > DIR_MAX)
        return err_set(e, E_CONFIG, "the journal's directory has no name, or one of more than %d bytes", DIR_MAX);
    if (c->id == 0 || c->n_peers > JOURNAL_PEERS_MAX)
        return err_set(e, E_CONFIG, "a journal has a member id from 1 on, and at most %d members", JOURNAL_PEERS_MAX);
    if (c->n_peers <= 1)
        return 0;
    bool self = false;
    for (size_t i = 0; i < c->n_peers; i++)
        self |= c->peers[i].id == c->id;
    if (!self)
        return err_set(e, E_CONFIG, "member %llu is not among the members", (unsigned long long)c->id);
    if (!c->listen || !*c->listen)
        return err_set(e, E_CONFIG, "a journal of several members needs an address to listen on");
    return 0;
}

/* Snapshots are put into place by way of files without a name. */
static int can_tmpfile(const char *dir, struct err *e) {
    autoclose int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
        return err_set(e, E_UNSUPPORTED, "%s: this file system has no unnamed files (O_TMPFILE)", dir);
    return fd < 0 && errno != ENOSPC ? err_sys(e, "%s", dir) : 0;
}

static void journal_free(struct journal *j) {
    for (size_t i = 0; i < j->n_peers; i++)
        free((char *)j->peers[i].address);
    for (size_t i = 0; i < j->answers.n; i++)
        buf_fini(&j->answers.p[i].manifest);
    vec_fini(&j->answers);
    vec_fini(&j->in);
    vec_fini(&j->waiting);
    outbox_close(j->out);
    loop_free(j->loop);
    if (j->lock_fd >= 0)
        close(j->lock_fd);
    stats_fini(j);
    pthread_mutex_destroy(&j->in_lock);
    pthread_mutex_destroy(&j->open_lock);
    pthread_cond_destroy(&j->open_done);
    free(j->dir);
    free(j->listen);
    free(j);
}

static struct journal *journal_new(struct loop *owner_loop, const struct journal_conf *c,
                                   const struct journal_owner *owner) {
    struct journal *j = xnew(struct journal);
    j->dir = xstrdup(c->dir);
    j->listen = xstrdup(c->listen);
    j->id = c->id;
    j->n_peers = c->n_peers;
    size_t place = 0;
    for (size_t i = 0; i < c->n_peers; i++) {
        j->peers[i] = (struct journal_peer){c->peers[i].id, xstrdup(c->peers[i].address)};
        place += c->peers[i].id < c->id;
    }
    uint32_t every = c->snapshot_entries ? c->snapshot_entries : SNAPSHOT_ENTRIES;
    j->snapshot_entries = every + (uint32_t)(place * (every / 8)); /* members don't do it at the same moment */
    j->keep_entries = c->keep_entries ? c->keep_entries : KEEP_ENTRIES;
    j->max_batch_bytes = c->max_batch_bytes ? c->max_batch_bytes : BATCH_BYTES;
    j->lock_fd = -1;
    j->out = outbox_new(owner_loop, owner);
    j->loop = loop_new("journal");
    pthread_mutex_init(&j->in_lock, NULL);
    pthread_mutex_init(&j->open_lock, NULL);
    pthread_cond_init(&j->open_done, NULL);
    stats_init(j);
    turn_init(j);
    return j;
}

/* ---- the journal's thread ---- */

static void open_here(void *arg) {
    struct journal *j = arg;
    struct err e = {0};
    trouble_init(j);
    int rc = instance_open(j, true, &e);
    if (rc != 0)
        j->stopping = true; /* no second attempt: the caller hears of it */
    outbox_flush(j->out);
    pthread_mutex_lock(&j->open_lock);
    j->open_code = rc;
    j->open_err = e;
    j->open_is_done = true;
    pthread_cond_signal(&j->open_done);
    pthread_mutex_unlock(&j->open_lock);
    turn_soon(j);
}

static void stop_here(void *arg) {
    turn_stop(arg);
}

static void *thread_main(void *arg) {
    struct journal *j = arg;
    pthread_setname_np(pthread_self(), "journal");
    loop_run(j->loop);
    return NULL;
}

/* ---- open and close ---- */

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
    int rc = conf_check(conf, e), lock_fd = -1;
    if (rc != 0 || (rc = dir_lock(conf->dir, &lock_fd, e)) != 0)
        return rc;
    if ((rc = can_tmpfile(conf->dir, e)) != 0) {
        close(lock_fd);
        return rc;
    }
    struct journal *j = journal_new(owner_loop, conf, owner);
    j->lock_fd = lock_fd;
    loop_post(j->loop, open_here, j);
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
    /* What was proposed after the thread had looked for the last time. */
    for (size_t i = 0; i < j->in.n; i++) {
        out_refused(j->out, j->in.p[i].tag, E_STOPPING, NULL);
        buf_fini(&j->in.p[i].entry);
    }
    j->in.n = 0;
    outbox_flush(j->out);
    outbox_deliver(j->out);
    journal_free(j);
}

/* ---- in between ---- */

void journal_propose(struct journal *j, struct buf entry, void *tag) {
    pthread_mutex_lock(&j->in_lock);
    vec_push(&j->in, (struct proposal){entry, tag});
    bool first = j->in.n == 1;
    j->in_max = MAX(j->in_max, j->in.n);
    pthread_mutex_unlock(&j->in_lock);
    if (first)
        loop_post(j->loop, turn_wake, j);
}

static void answer(struct journal *j, struct snapshot_answer a) {
    pthread_mutex_lock(&j->in_lock);
    vec_push(&j->answers, a);
    pthread_mutex_unlock(&j->in_lock);
    loop_post(j->loop, turn_wake, j);
}

void journal_snapshot_done(struct journal *j, uint64_t index, const void *manifest, size_t n) {
    struct snapshot_answer a = {.index = index};
    buf_add(&a.manifest, manifest, n);
    answer(j, a);
}

void journal_snapshot_failed(struct journal *j, uint64_t index) {
    answer(j, (struct snapshot_answer){.index = index, .failed = true});
}

void journal_snapshot_now(struct journal *j) {
    answer(j, (struct snapshot_answer){.now = true});
}
