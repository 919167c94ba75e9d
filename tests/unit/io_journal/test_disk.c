/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that is full, breaks, or is read-only. Needs root: small file systems are mounted, in a mount namespace that
 * is this process's own and goes with it.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/journal/inside.h"

struct disk {
    struct rig r;
    char *top;     /* temporary directory with all of it */
    char *mounted; /* the small file system */
    char *under;   /* file system that the image of `mounted` lies in; NULL: none */
};

static void mount_tmpfs(const char *at, const char *size) {
    char opts[64];
    snprintf(opts, sizeof(opts), "size=%s", size);
    if (mount("tmpfs", at, "tmpfs", 0, opts) != 0)
        fail_msg("mount tmpfs: %s", strerror(errno));
}

static int setup(void **state) {
    struct disk *d = xnew(struct disk);
    d->top = temp_dir();
    d->mounted = xasprintf("%s/disk", d->top);
    mkdir(d->mounted, 0700);
    *state = d;
    return 0;
}

static int teardown(void **state) {
    struct disk *d = *state;
    rig_fini(&d->r);
    umount2(d->mounted, MNT_DETACH);
    if (d->under)
        umount2(d->under, MNT_DETACH);
    temp_remove(d->top);
    free(d->under);
    free(d->mounted);
    free(d->top);
    free(d);
    return 0;
}

static void start(struct disk *d) {
    char *dir = xasprintf("%s/journal", d->mounted);
    mkdir(dir, 0700);
    rig_init(&d->r, dir, NULL);
    free(dir);
    d->r.conf.keep_entries = 10;
    rig_open(&d->r);
    rig_lead(&d->r);
}

static void fill(const char *dir) {
    char *path = xasprintf("%s/ballast", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    static char block[65536] = {1};
    for (size_t n = sizeof(block); n >= 512; n /= 2)
        while (write(fd, block, n) == (ssize_t)n)
            continue;
    close(fd);
    free(path);
}

static void empty(const char *dir) {
    char *path = xasprintf("%s/ballast", dir);
    unlink(path);
    free(path);
}

static void leave_room(const char *dir, off_t bytes) {
    char *path = xasprintf("%s/ballast", dir);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - bytes), 0);
    free(path);
}

static bool refuses(struct rig *r) {
    return journal_stats(r->j).disk_refuses;
}

static bool takes(struct rig *r) {
    return !journal_stats(r->j).disk_refuses;
}

/* What the statistics show at once is told on the rig's loop a moment later. */
static bool refuses_and_told(struct rig *r) {
    return refuses(r) && r->problems == r->relieved + 1;
}

static bool takes_and_told(struct rig *r) {
    return takes(r) && r->problems == r->relieved;
}

static bool refuses_or_settled(struct rig *r) {
    return r->refused > 0 || r->applied == r->proposed;
}

static void propose_until_refused(struct rig *r, size_t bytes) {
    for (int i = 0; i < 5000 && r->refused == 0; i++) {
        rig_propose(r, bytes);
        rig_until(r, refuses_or_settled, 20000);
    }
    rig_settle(r);
    assert_true(r->refused > 0);
}

static void expect_all_acknowledged(struct rig *r) {
    uint64_t applied = r->applied_ever;
    rig_reopen(r);
    rig_lead(r);
    assert_true(r->log.n >= applied);
    for (size_t i = 1; i < r->log.n; i++)
        assert_true(r->log.p[i].value > r->log.p[i - 1].value);
}

static void wait_reserve(struct rig *r) {
    for (int i = 0; i < 500 && dir_count(r->dir, RESERVE_FILE) == 0; i++)
        usleep(10000);
    assert_int_equal(dir_count(r->dir, RESERVE_FILE), 1);
}

static void test_full_and_not_full(void **state) {
    struct disk *d = *state;
    struct rig *r = &d->r;
    mount_tmpfs(d->mounted, "128m");
    start(d);
    for (int round = 0; round < 3; round++) {
        fill(d->mounted);
        propose_until_refused(r, 100000); /* after what was allocated ahead */
        assert_int_equal(r->refused_code, E_FULL);
        assert_non_null(strstr(r->refused_why, "No space left"));
        rig_until(r, refuses_and_told, 5000);
        assert_true(r->leader);
        uint64_t refused = r->refused;
        for (int i = 0; i < 20; i++)
            rig_propose(r, 1000);
        rig_settle(r); /* refused at once, not held */
        assert_int_equal(r->refused, refused + 20);
        assert_int_equal(r->problems, round + 1);
        empty(d->mounted);
        rig_until(r, takes_and_told, 5000);
        assert_int_equal(r->relieved, round + 1);
        refused = r->refused;
        for (int i = 0; i < 20; i++)
            rig_propose(r, 1000);
        rig_settle(r);
        assert_int_equal(r->refused, refused);
        rig_count_anew(r); /* the next round counts anew */
        journal_snapshot_now(r->j); /* makes room */
        rig_propose(r, 8);
        rig_settle(r);
    }
    expect_all_acknowledged(r);
}

/* A start on a full disk: the reserve is given up for it. */
static void test_start_when_full(void **state) {
    struct disk *d = *state;
    struct rig *r = &d->r;
    mount_tmpfs(d->mounted, "64m");
    start(d);
    wait_reserve(r);
    for (int i = 0; i < 50; i++)
        rig_propose(r, 1000);
    rig_settle(r);
    rig_close(r);
    rig_forget(r);
    fill(d->mounted);
    rig_open(r);
    assert_int_equal(r->log.n, 50);
    rig_lead(r);
    assert_int_equal(dir_count(r->dir, RESERVE_FILE), 0);
    empty(d->mounted);
    rig_until(r, takes, 10000);
    expect_all_acknowledged(r);
}

/* The same without one: it waits, says why, and leads once there is room. */
static void test_start_when_full_without_reserve(void **state) {
    struct disk *d = *state;
    struct rig *r = &d->r;
    mount_tmpfs(d->mounted, "64m");
    start(d);
    wait_reserve(r);
    for (int i = 0; i < 50; i++)
        rig_propose(r, 1000);
    rig_settle(r);
    rig_close(r);
    rig_forget(r);
    char *path = xasprintf("%s/" RESERVE_FILE, r->dir);
    unlink(path);
    free(path);
    fill(d->mounted);
    struct err e = {0};
    assert_int_equal(rig_try_open(r, &e), E_FULL); /* not a byte: libraft can't even look at what the disk can do */
    leave_room(d->mounted, 256 << 10);
    rig_open(r);
    assert_int_equal(r->log.n, 50);
    rig_until(r, refuses, 10000);
    assert_false(r->leader);
    rig_propose(r, 8);
    rig_settle(r);
    assert_int_equal(r->refused_code, E_FULL);
    empty(d->mounted);
    rig_lead(r);
    rig_until(r, takes, 10000);
    rig_propose(r, 8);
    rig_settle(r);
    assert_int_equal(r->refused, 1);
    expect_all_acknowledged(r);
}

static void test_bootstrap_on_a_full_disk(void **state) {
    struct disk *d = *state;
    struct rig *r = &d->r;
    mount_tmpfs(d->mounted, "1m");
    char *dir = xasprintf("%s/journal", d->mounted);
    mkdir(dir, 0700);
    rig_init(r, dir, NULL);
    free(dir);
    fill(d->mounted);
    struct err e = {0};
    assert_int_equal(rig_try_open(r, &e), E_FULL);
    assert_non_null(strstr(e.text, "space"));
    empty(d->mounted);
    /* Room for bootstrapping, none for a segment: it starts, and says so. */
    rig_open(r);
    rig_until(r, refuses, 10000);
    assert_false(r->leader);
    char opts[] = "size=64m";
    assert_int_equal(mount("tmpfs", d->mounted, "tmpfs", MS_REMOUNT, opts), 0);
    rig_lead(r);
    rig_propose(r, 8);
    rig_settle(r);
    assert_int_equal(r->refused, 0);
}

static void test_read_only(void **state) {
    struct disk *d = *state;
    struct rig *r = &d->r;
    mount_tmpfs(d->mounted, "64m");
    start(d);
    rig_propose(r, 8);
    rig_settle(r);
    rig_close(r);
    rig_forget(r);
    assert_int_equal(mount("tmpfs", d->mounted, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
    struct err e = {0};
    assert_int_equal(rig_try_open(r, &e), E_SYS);
    assert_non_null(strstr(e.text, "ead-only"));
    assert_int_equal(mount("tmpfs", d->mounted, "tmpfs", MS_REMOUNT, NULL), 0);
    rig_open(r);
    rig_lead(r);
    rig_expect_values(r, 1, 1);
}

/* ---- a disk that breaks: ext4 in a file that its own file system has no room for ----
 *
 * Writes fail, then the file system makes itself read-only. An operator mounts it again once there is room.
 *
 * The disk must not lie. Linux's loop device takes a short write of its file for a whole one: of a request of six pages, of
 * which the file system below had room for one, five are lost, and write and fsync both say that all went well (6.18). So
 * requests are a page each and blocks are pages: such a write happens or fails.
 */

static int run(const char *const argv[]) {
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execvp(argv[0], (char *const *)argv);
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool page_by_page(int number) {
    char path[64];
    snprintf(path, sizeof(path), "/sys/block/loop%d/queue/max_sectors_kb", number);
    int fd = open(path, O_WRONLY);
    bool ok = fd >= 0 && write(fd, "4\n", 2) == 2;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Returns "" or why not. The loop device goes with its last user (autoclear). Another process may be given the same number:
 * then another one is asked for. */
static const char *mount_image(struct disk *d) {
    char *image = xasprintf("%s/image", d->under);
    int fd = open(image, O_RDWR), control = open("/dev/loop-control", O_RDWR), loop = -1, number = -1;
    free(image);
    char device[32];
    struct loop_config c = {.fd = (uint32_t)fd, .info.lo_flags = LO_FLAGS_AUTOCLEAR};
    bool there = false;
    for (int i = 0; i < 100 && control >= 0 && !there; i++) {
        number = ioctl(control, LOOP_CTL_GET_FREE);
        snprintf(device, sizeof(device), "/dev/loop%d", number);
        loop = number < 0 ? -1 : open(device, O_RDWR);
        there = loop >= 0 && ioctl(loop, LOOP_CONFIGURE, &c) == 0;
        if (!there && loop >= 0)
            close(loop);
        if (!there && (loop < 0 || errno != EBUSY))
            break;
    }
    const char *why = "";
    if (!there)
        why = "no loop device";
    else if (!page_by_page(number))
        why = "the loop device's requests can't be made small";
    else if (mount(device, d->mounted, "ext4", 0, NULL) != 0)
        why = strerror(errno);
    if (there)
        close(loop);
    if (control >= 0)
        close(control);
    close(fd);
    return why;
}

static const char *make_image(struct disk *d) {
    d->under = xasprintf("%s/under", d->top);
    mkdir(d->under, 0700);
    mount_tmpfs(d->under, "96m");
    char *image = xasprintf("%s/image", d->under);
    int fd = open(image, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0 && ftruncate(fd, 400 << 20) == 0);
    close(fd);
    const char *const mkfs[] = {"mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=1,nodiscard", image, NULL};
    const char *why = run(mkfs) == 0 ? mount_image(d) : "no mkfs.ext4";
    free(image);
    return why;
}

static bool lost_leadership(struct rig *r) {
    return !r->leader && r->refused > 0;
}

static void test_writes_that_fail(void **state) {
    struct disk *d = *state;
    struct rig *r = &d->r;
    const char *why = make_image(d);
    if (*why) {
        print_message("skipped: %s\n", why);
        rig_init(r, d->top, NULL);
        skip();
    }
    start(d);
    for (int i = 0; i < 50; i++)
        rig_propose(r, 1000);
    rig_settle(r);
    assert_int_equal(r->refused, 0);
    fill(d->under);
    for (int i = 0; i < 4000 && r->refused == 0; i++) {
        rig_propose(r, 20000);
        rig_until(r, refuses_or_settled, 20000);
    }
    rig_settle(r);
    print_message("refused with %d: %s\n", r->refused_code, r->refused_why);
    assert_true(r->refused_code == E_SYS || r->refused_code == E_FULL);
    rig_until(r, lost_leadership, 20000);
    rig_propose(r, 8);
    rig_settle(r);
    assert_true(r->refused_code == E_SYS || r->refused_code == E_FULL);
    uint64_t refused = r->refused;
    umount2(d->mounted, MNT_DETACH); /* before there is room: what is written through the old mount, the new one does not have */
    empty(d->under);
    assert_string_equal(mount_image(d), "");
    rig_lead(r); /* by itself */
    rig_until(r, takes, 20000);
    for (int i = 0; i < 50; i++)
        rig_propose(r, 1000);
    rig_settle(r);
    assert_int_equal(r->refused, refused);
    expect_all_acknowledged(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_full_and_not_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_start_when_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_start_when_full_without_reserve, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bootstrap_on_a_full_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_writes_that_fail, setup, teardown),
    };
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0) {
        printf("skipped: can't mount: %s\n", strerror(errno));
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
