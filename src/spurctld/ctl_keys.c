/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster's keys, and which blobs are in use.
 *
 * The launch key derives from a seed that is made at the cluster's first start and kept in the state, where every
 * controller has it. It has nothing to do with the token key: that one may change under way while agents hold the public
 * half of this one, and whoever got hold of an old one must not have the nodes with it. A join token is made with it and written beside the state, for
 * `[admission] mode = "token"`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "spurctld/catchup/catchup.h"
#include "spurctld/ctl_inside.h"

#define JOIN_TOKEN_BYTES 24
#define LAUNCH_PURPOSE "spur launch credential 1"

int64_t ctl_now_us(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void ctl_count_apply(struct ctl *c, uint64_t us) {
    c->applies++;
    c->apply_total_us += us;
    c->apply_max_us = MAX(c->apply_max_us, us);
}

static void to_hex(const uint8_t *p, size_t n, char *out) {
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", p[i]);
}

/* The token in the file, made where there is none: so that it can be read before the first start, and given. */
static int join_token(struct ctl *c, char out[2 * JOIN_TOKEN_BYTES + 1], struct err *e) {
    autofree char *path = xasprintf("%s/join.token", c->state_dir);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = read(fd, out, 2 * JOIN_TOKEN_BYTES);
        if (n != 2 * JOIN_TOKEN_BYTES)
            return err_set(e, E_CORRUPT, "%s does not hold a join token of %d digits", path, 2 * JOIN_TOKEN_BYTES);
        out[n] = 0;
        return 0;
    }
    uint8_t bytes[JOIN_TOKEN_BYTES];
    cred_random(bytes, sizeof(bytes));
    to_hex(bytes, sizeof(bytes), out);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, out, 2 * JOIN_TOKEN_BYTES) != 2 * JOIN_TOKEN_BYTES || write(fd, "\n", 1) != 1 ||
        fsync(fd) < 0)
        return err_sys(e, "make %s", path);
    return 0;
}

void ctl_propose_init(struct ctl *c, host_proposed_fn done) {
    struct view v;
    struct err e;
    state_peek(c->room.state, &v);
    if (v.cluster->n_key_seed) {
        done(c, 0, NULL, 0, NULL, 0);
        return;
    }
    uint8_t seed[32], hash[32];
    char token[2 * JOIN_TOKEN_BYTES + 1], hex[65];
    if (join_token(c, token, &e)) {
        done(c, e.code, &e, 0, NULL, 0);
        return;
    }
    cred_random(seed, sizeof(seed));
    cred_hash(token, strlen(token), hash);
    to_hex(hash, sizeof(hash), hex);
    const char *const hashes[] = {hex};
    struct cmd_cluster_init cmd = {seed, sizeof(seed), hashes, 1};
    room_propose(&c->room, CMD_CLUSTER_INIT, &cmd, 0, NULL, done, c);
    explicit_bzero(seed, sizeof(seed));
}

void ctl_take_launch_key(struct ctl *c, const struct cluster *cl) {
    struct secret seed = {0};
    secret_set(&seed, cl->key_seed, cl->n_key_seed);
    cred_key_fini(&c->room.launch_key);
    cred_key_derive(&seed, LAUNCH_PURPOSE, &c->room.launch_key);
    secret_fini(&seed);
    autofree char *path = xasprintf("%s/controller.pub", c->state_dir);
    char hex[65];
    cred_public_print(&c->room.launch_key.pub, hex);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || dprintf(fd, "%s\n", hex) < 0)
        log_warn("%s can't be written: %s", path, strerror(errno));
}

/* ---- blobs in use ---- */

static uint64_t word_of(const uint8_t hash[32]) {
    uint64_t w;
    memcpy(&w, hash, sizeof(w));
    return w;
}

static int by_word(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

struct naming {
    struct ctl *c;
    struct view view;
    uint64_t *names;
    size_t n_names;
    void (*done)(struct ctl *c);
};

static void collect_names(void *arg) {
    struct naming *na = arg;
    const struct job *j;
    na->names = xcalloc(2 * cow_count(na->view.jobs) + 1, sizeof(*na->names));
    for (uint64_t k = 0; (j = view_next_job(&na->view, &k)); k++) {
        if (j->spec->n_script_hash == 32)
            na->names[na->n_names++] = word_of(j->spec->script_hash);
        if (j->spec->n_env_hash == 32)
            na->names[na->n_names++] = word_of(j->spec->env_hash);
    }
    qsort(na->names, na->n_names, sizeof(*na->names), by_word);
}

static void names_collected(void *arg) {
    struct naming *na = arg;
    struct ctl *c = na->c;
    c->names = na->names;
    c->n_names = na->n_names;
    state_view_end(&na->view);
    na->done(c);
    free(na);
}

void ctl_collect_names(struct ctl *c, void (*done)(struct ctl *c)) {
    if (c->is_naming)
        return;
    struct naming *na = xnew(struct naming);
    *na = (struct naming){.c = c, .done = done};
    c->is_naming = true;
    state_view(c->room.state, &na->view);
    c->room.host->work(c->room.host->impl, collect_names, names_collected, na);
}

void ctl_forget_names(struct ctl *c) {
    free(c->names);
    c->names = NULL;
    c->n_names = 0;
    c->is_naming = false;
}

/* The first word of a hash decides: two that share it keep each other alive, which harms nothing. */
bool ctl_blob_is_named(const struct ctl *c, const uint8_t hash[32]) {
    uint64_t w = word_of(hash);
    return bsearch(&w, c->names, c->n_names, sizeof(w), by_word) != NULL;
}

/* ---- the end ---- */

static bool nothing_out(void *arg) {
    const struct ctl *c = arg;
    return !plan_stats(c->room.plan).running && (!c->is_naming || c->names) && !acct_is_out(c->room.acct) && !snapshots_are_out(c->snapshots) &&
           !catchup_is_out(c->room.catchup) &&
           !pool_waiting(c->pool);
}

static void set_true(void *arg) {
    *(bool *)arg = true;
}

static bool is_true(void *arg) {
    return *(bool *)arg;
}

/* Turns the loop until no worker has anything of ours, and what was posted to us has run: these callbacks speak of rooms
 * that are about to go. */
void ctl_finish_work(struct ctl *c) {
    bool has_run = false;
    if (c->room.plan && c->room.acct && c->snapshots && c->room.catchup)
        loop_run_until(c->loop, nothing_out, c, 10000);
    loop_post(c->loop, set_true, &has_run);
    loop_run_until(c->loop, is_true, &has_run, 10000);
}
