/* SPDX-License-Identifier: Apache-2.0
 *
 * kill -9 at any moment: what was acknowledged is there afterwards, in order, and nothing twice.
 *
 * The killed process has mapped a page of ours, in which it counts what it was told. kill -9 keeps the page cache, so
 * this is about the files' states, not about the disk's; docs/format/journal.md names the system calls that are.
 */
#include "rig.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 25

struct page {
    _Atomic uint64_t proposed, applied; /* in all rounds */
};
static struct page *page;

static void count(struct rig *r) {
    if (r->log.p[r->log.n - 1].mine)
        page->applied = r->log.p[r->log.n - 1].value;
}

static void victim(const char *dir) {
    struct rig r;
    rig_init(&r, dir, NULL);
    r.conf.snapshot_entries = 700;
    r.conf.keep_entries = 100;
    rig_open(&r);
    rig_lead(&r);
    r.on_entry = count;
    r.values = page->proposed;
    for (;;) {
        int n = 1 + (int)(r.values % 40);
        for (int i = 0; i < n; i++) {
            page->proposed = r.values + 1;
            rig_propose(&r, 50 + r.values % 3000);
        }
        rig_settle(&r);
    }
}

static void test_kill_at_any_moment(void **state) {
    char *dir = temp_dir();
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    unsigned seed = 12345;
    uint64_t before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            victim(dir);
        seed = seed * 1103515245 + 12345;
        usleep(20000 + seed % 400000);
        kill(child, SIGKILL);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* it had not failed by itself */
        uint64_t applied = page->applied;
        struct rig r;
        rig_init(&r, dir, NULL);
        rig_open(&r);
        rig_lead(&r);
        assert_true(r.log.n >= applied);
        assert_true(r.log.n <= page->proposed);
        assert_true(applied >= before);
        before = applied;
        for (size_t i = 0; i < r.log.n; i++)
            assert_int_equal(r.log.p[i].value, i + 1);
        page->proposed = r.log.n; /* the next values follow what has survived */
        page->applied = r.log.n;
        before = r.log.n;
        rig_fini(&r);
    }
    print_message("%d kills, %d entries\n", ROUNDS, (int)before);
    assert_true(before > 1000);
    temp_remove(dir);
    free(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kill_at_any_moment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
