/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t value_of(const void *p, size_t n) {
    uint64_t v = 0;
    memcpy(&v, p, n < 8 ? n : 8);
    return v;
}

static void answer(struct rig *r, void *tag) {
    uint64_t v = (uint64_t)(uintptr_t)tag;
    assert_true(v > 0 && v < TAGS_MAX);
    assert_int_equal(r->answered[v], 1);
    r->answered[v] = 2;
}

static void on_entry(void *ctx, uint64_t index, uint64_t term, const void *p, size_t n, void *tag) {
    struct rig *r = ctx;
    assert_true(index > r->last_index);
    assert_true(term >= r->last_term);
    r->last_index = index;
    r->last_term = term;
    uint64_t v = value_of(p, n);
    if (tag) {
        answer(r, tag);
        r->applied++;
        r->applied_ever++;
        assert_int_equal(v, (uint64_t)(uintptr_t)tag);
    }
    for (size_t i = 8; i < n; i++)
        assert_int_equal(((const uint8_t *)p)[i], (uint8_t)(v + i));
    vec_push(&r->log, (struct seen){index, term, v, n, tag != NULL});
    if (r->on_entry)
        r->on_entry(r);
}

static void on_refused(void *ctx, void *tag, int code, const struct err *why) {
    struct rig *r = ctx;
    answer(r, tag);
    r->refused++;
    r->refused_code = code;
    assert_int_equal(why->code, code);
    snprintf(r->refused_why, sizeof(r->refused_why), "%s", why->text);
}

static void on_leader(void *ctx, bool is_leader, uint64_t term) {
    struct rig *r = ctx;
    assert_true(r->leader != is_leader);
    r->leader = is_leader;
    r->leader_times += is_leader;
}

static void on_snapshot(void *ctx, uint64_t index) {
    struct rig *r = ctx;
    assert_int_equal(index, r->last_index);
    assert_int_equal(r->snapshot_index, 0);
    r->snapshots++;
    r->snapshot_index = index;
    r->snapshot_values = r->log.n;
    if (r->answer_snapshots)
        rig_answer_snapshot(r);
}

/* The manifest of this owner is its whole state. */
void rig_answer_snapshot(struct rig *r) {
    size_t n = r->snapshot_values * sizeof(struct seen);
    uint64_t index = r->snapshot_index;
    r->snapshot_index = 0;
    journal_snapshot_done(r->j, index, r->log.p, n);
}

static int on_restore(void *ctx, uint64_t index, const void *manifest, size_t n, struct err *e) {
    struct rig *r = ctx;
    if (r->fail_restore)
        return err_set(e, E_CORRUPT, "the state's file is gone");
    assert_int_equal(n % sizeof(struct seen), 0);
    r->restores++;
    r->restored_index = index;
    r->log.n = 0;
    for (size_t i = 0; i < n / sizeof(struct seen); i++) {
        struct seen s;
        memcpy(&s, (const char *)manifest + i * sizeof(s), sizeof(s));
        vec_push(&r->log, s);
    }
    assert_true(r->log.n > 0);
    assert_int_equal(r->log.p[r->log.n - 1].index, index);
    assert_true(index >= r->last_index);
    r->last_index = index;
    r->last_term = r->log.p[r->log.n - 1].term;
    return 0;
}

static void on_notice(void *ctx, bool is_problem, const char *text) {
    struct rig *r = ctx;
    *(is_problem ? &r->problems : &r->relieved) += 1;
    snprintf(r->notice, sizeof(r->notice), "%s", text);
}

void rig_init(struct rig *r, const char *dir, struct loop *loop) {
    memset(r, 0, sizeof(*r));
    r->loop = loop ? loop : loop_new("owner");
    r->own_loop = !loop;
    snprintf(r->dir, sizeof(r->dir), "%s", dir);
    r->answered = xcalloc(TAGS_MAX, 1);
    r->conf = (struct journal_conf){.dir = r->dir, .id = 1};
    r->answer_snapshots = true;
}

static void stop(void *arg) {
    loop_stop(arg);
}

/* Not before what was posted to it has run. */
void rig_loop_free(struct loop *l) {
    loop_post(l, stop, l);
    loop_run(l);
    loop_free(l);
}

void rig_fini(struct rig *r) {
    rig_close(r);
    vec_fini(&r->log);
    free(r->answered);
    if (r->own_loop)
        rig_loop_free(r->loop);
}

int rig_try_open(struct rig *r, struct err *e) {
    struct journal_owner owner = {r, on_entry, on_refused, on_leader, on_snapshot, on_restore, on_notice};
    return journal_open(r->loop, &r->conf, &owner, &r->j, e);
}

void rig_open(struct rig *r) {
    struct err e = {0};
    if (rig_try_open(r, &e) != 0)
        fail_msg("open: %s", e.text);
}

void rig_close(struct rig *r) {
    journal_close(r->j);
    r->j = NULL;
    r->leader = false;
    r->snapshot_index = 0;
    assert_int_equal(r->applied + r->refused, r->proposed);
}

void rig_forget(struct rig *r) {
    r->log.n = 0;
    r->last_index = r->last_term = 0;
}

void rig_reopen(struct rig *r) {
    rig_close(r);
    rig_forget(r);
    rig_open(r);
}

struct waiting {
    struct rig *r;
    bool (*done)(struct rig *r);
    struct loop_timer *look;
};

static bool is_done(void *arg) {
    struct waiting *w = arg;
    return w->done(w->r);
}

/* Some conditions change without a word to the owner. */
static void look_again(void *arg) {
    struct waiting *w = arg;
    w->look = loop_timer_start(w->r->loop, 2, look_again, w);
}

void rig_until(struct rig *r, bool (*done)(struct rig *r), uint64_t timeout_ms) {
    struct waiting w = {r, done, NULL};
    look_again(&w);
    bool ok = loop_run_until(r->loop, is_done, &w, timeout_ms);
    loop_timer_stop(w.look);
    if (!ok)
        fail_msg("waited %d ms in vain: %d proposed, %d applied, %d refused (%s), last notice: %s", (int)timeout_ms,
                 (int)r->proposed, (int)r->applied, (int)r->refused, r->refused_why, r->notice);
}

static bool leads(struct rig *r) {
    return r->leader;
}

void rig_lead(struct rig *r) {
    rig_until(r, leads, 20000);
}

uint64_t rig_propose(struct rig *r, size_t bytes) {
    uint64_t v = ++r->values;
    r->proposed++;
    assert_true(v < TAGS_MAX);
    r->answered[v] = 1;
    struct buf b = {0};
    buf_u64le(&b, v);
    for (size_t i = 8; i < bytes; i++)
        buf_u8(&b, (uint8_t)(v + i));
    journal_propose(r->j, b, (void *)(uintptr_t)v);
    return v;
}

static bool settled(struct rig *r) {
    return r->applied + r->refused == r->proposed;
}

void rig_settle(struct rig *r) {
    rig_until(r, settled, 60000);
}

void rig_count_anew(struct rig *r) {
    assert_true(settled(r));
    r->proposed = r->applied = r->refused = 0;
}

void rig_expect_values(struct rig *r, uint64_t first, uint64_t last) {
    assert_int_equal(r->log.n, last - first + 1);
    for (size_t i = 0; i < r->log.n; i++)
        assert_int_equal(r->log.p[i].value, first + i);
}

char *temp_dir(void) {
    const char *base = getenv("TMPDIR");
    char *p = xasprintf("%s/spur-journal-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(p));
    return p;
}

void temp_remove(const char *dir) {
    DIR *d = opendir(dir);
    struct dirent *de;
    while (d && (de = readdir(d))) {
        if (de->d_name[0] == '.' && (!de->d_name[1] || de->d_name[1] == '.'))
            continue;
        char *p = xasprintf("%s/%s", dir, de->d_name);
        if (de->d_type == DT_DIR)
            temp_remove(p);
        else
            unlink(p);
        free(p);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

uint64_t dir_bytes(const char *dir) {
    uint64_t sum = 0;
    DIR *d = opendir(dir);
    struct dirent *de;
    struct stat st;
    while (d && (de = readdir(d)))
        if (fstatat(dirfd(d), de->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_size;
    closedir(d);
    return sum;
}

int dir_count(const char *dir, const char *prefix) {
    int n = 0;
    DIR *d = opendir(dir);
    struct dirent *de;
    while (d && (de = readdir(d)))
        n += strncmp(de->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return n;
}
