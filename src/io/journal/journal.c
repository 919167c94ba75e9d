/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal as its owner sees it: made, proposed to, answered for snapshots, unmade. Its thread is thread.c's.
 *
 * Everything here but journal_begin runs on the owner's thread.
 */
#include "io/journal/journal.h"

#include <string.h>
#include <unistd.h>

#include "io/journal/inside.h"

#define SNAPSHOT_ENTRIES 100000
#define KEEP_ENTRIES 8192
#define BATCH_BYTES (1u << 20)
#define DIR_MAX 512

int journal_conf_check(const struct journal_conf *c, struct err *e) {
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
    if (!c->net)
        return err_set(e, E_CONFIG, "a journal of several members needs a way to reach them");
    return 0;
}

void journal_free(struct journal *j) {
    for (size_t i = 0; i < j->n_peers; i++)
        free((char *)j->peers[i].address);
    for (size_t i = 0; i < j->answers.n; i++)
        buf_fini(&j->answers.p[i].manifest);
    vec_fini(&j->answers);
    vec_fini(&j->asks);
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
    free(j);
}

struct journal *journal_new(struct loop *owner_loop, const struct journal_conf *c, const struct journal_owner *owner) {
    struct journal *j = xnew(struct journal);
    j->dir = xstrdup(c->dir);
    j->net = c->net;
    j->join = c->join;
    j->force_new = c->force_new;
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

/* Journal's thread. */
void journal_begin(void *arg) {
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

/* The journal's thread has stopped: answers what is left. */
void journal_end(struct journal *j) {
    /* What was proposed after the thread had looked for the last time. */
    for (size_t i = 0; i < j->in.n; i++) {
        out_refused(j->out, j->in.p[i].tag, E_STOPPING, NULL);
        buf_fini(&j->in.p[i].entry);
    }
    j->in.n = 0;
    for (size_t i = 0; i < j->asks.n; i++)
        out_changed(j->out, j->asks.p[i].fn, j->asks.p[i].arg, E_STOPPING, NULL);
    j->asks.n = 0;
    outbox_flush(j->out);
    outbox_restored(j->out, E_STOPPING); /* one that is pending; what is behind it is not told any more */
    outbox_deliver(j->out);
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

void journal_restored(struct journal *j, int code) {
    outbox_restored(j->out, code);
}

uint64_t journal_term(const struct journal *j) {
    return atomic_load(&j->term_now);
}

uint64_t journal_commit(const struct journal *j) {
    return atomic_load(&j->commit_now);
}

bool journal_is_fresh(const char *dir) {
    autofree char *path = xasprintf("%s/" OWNER_FILE, dir);
    return access(path, F_OK) != 0;
}
