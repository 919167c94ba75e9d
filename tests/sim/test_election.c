/* SPDX-License-Identifier: Apache-2.0
 *
 * Elections from disks as lives with many crashes leave them: terms and logs of members that differ. Whatever they are, three that
 * reach each other have a leader soon.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "sim/disk_inside.h"
#include "sim/member.h"

#define MEMBERS 3u

struct three {
    struct vworld *w;
    char dir[32];
    struct smember *m[MEMBERS];
};

static void on_applied(void *arg, struct smember *m, uint64_t index, uint64_t term, const void *p, size_t n) {
}

static void on_index(void *arg, struct smember *m, uint64_t index) {
}

static void on_stored(void *arg, uint64_t id, uint64_t index, const struct sdisk_entry *e) {
}

static void begin(struct three *t, uint64_t seed) {
    t->w = vworld_new(seed);
    snprintf(t->dir, sizeof(t->dir), "/tmp/sim-election-XXXXXX");
    assert_non_null(mkdtemp(t->dir));
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct smember_conf conf = {t->w, t->dir, i + 1, MEMBERS, NULL, {t, on_applied, on_index, on_index, on_index, on_stored}};
        t->m[i] = smember_new(&conf);
        smember_start(t->m[i]);
    }
}

static void end(struct three *t) {
    for (uint32_t i = 0; i < MEMBERS; i++)
        smember_free(t->m[i]);
    vworld_free(t->w);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        char path[80];
        snprintf(path, sizeof(path), "%s/history-%u.db", t->dir, i + 1);
        unlink(path);
        snprintf(path, sizeof(path), "%s/history-%u.db-wal", t->dir, i + 1);
        unlink(path);
    }
    rmdir(t->dir);
}

static bool somebody_leads(void *arg) {
    struct three *t = arg;
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (smember_is_up(t->m[i]) && smember_ctl(t->m[i])->room.is_leader)
            return true;
    return false;
}

/* All crash; each is left with a term, and without its last `short_by` entries. */
static void crash_all(struct three *t, const uint64_t term[MEMBERS], const size_t short_by[MEMBERS]) {
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct sdisk *d = smember_disk(t->m[i]);
        smember_crash(t->m[i]);
        for (size_t k = 0; k < short_by[i] && d->entries.n > 1; k++)
            buf_fini(&d->entries.p[--d->entries.n].bytes);
        d->term = MAX(d->term, term[i]);
        d->vote = 0;
    }
}

/* The one with the longest log is in the lowest term: refused by the others for its term, while it refuses them for their logs. Whoever
 * refuses must say its own term, or nobody is ever elected. */
static void test_longest_log_in_the_lowest_term(void **state) {
    static const uint64_t terms[][MEMBERS] = {{22, 11, 31}, {51, 37, 90}, {11, 12, 13}, {40, 20, 40}, {9, 9, 30}};
    static const size_t short_by[MEMBERS] = {1, 0, 3};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct three t;
        begin(&t, seed);
        assert_true(vworld_run_until(t.w, somebody_leads, &t, 10000));
        vworld_run(t.w, 2000);
        crash_all(&t, terms[seed % 5], short_by);
        for (uint32_t i = 0; i < MEMBERS; i++)
            smember_start(t.m[i]);
        assert_true(vworld_run_until(t.w, somebody_leads, &t, 10000));
        end(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_longest_log_in_the_lowest_term)};
    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
