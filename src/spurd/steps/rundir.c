/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/steps/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "spurd/steps/steps.h"

#define LOG_MAX (1u << 20)

static char *path_in(const char *state_dir, const char *folder, uint64_t key) {
    if (run_step(key))
        return xasprintf("%s/%s/%u.%u.%u", state_dir, folder, run_job(key), run_start_no(key), run_step(key) - 1);
    return xasprintf("%s/%s/%u.%u", state_dir, folder, run_job(key), run_start_no(key));
}

struct run_name run_name(uint64_t key) {
    struct run_name out;
    int n = snprintf(out.text, sizeof(out.text), "job %u start %u", run_job(key), run_start_no(key));
    if (run_step(key))
        snprintf(out.text + n, sizeof(out.text) - (size_t)n, " step %u", run_step(key) - 1);
    return out;
}

char *rundir_path(const char *state_dir, uint64_t key) {
    return path_in(state_dir, "runs", key);
}

static int make_dir(const char *path, mode_t mode, struct err *e) {
    if (mkdir(path, mode) && errno != EEXIST)
        return err_sys(e, "make %s", path);
    return chmod(path, mode) ? err_sys(e, "chmod %s", path) : 0; /* whatever our umask is */
}

int rundir_init(const char *state_dir, struct err *e) {
    autofree char *runs = xasprintf("%s/runs", state_dir);
    autofree char *ended = xasprintf("%s/ended", state_dir);
    int code = make_dir(runs, 0711, e); /* users pass through to their scripts, and list nothing */
    return code ? code : make_dir(ended, 0700, e);
}

/* ---- writing ---- */

static int write_file(int dir, const char *name, const void *p, size_t n, bool sync, struct err *e) {
    autoclose int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write(fd, p, n) || (sync && fdatasync(fd)))
        return err_sys(e, "write %s of the run", name);
    return 0;
}

/* The script is the user's to read and execute, and nobody else's. */
static int write_script(int dir, const struct step_plan *plan, const void *script, size_t n, struct err *e) {
    autoclose int fd = openat(dir, STEP_SCRIPT_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd < 0 || fd_write(fd, script, n) || fchmod(fd, 0500))
        return err_sys(e, "write the batch script");
    if (geteuid() == 0 && fchown(fd, plan->uid, plan->gid))
        return err_sys(e, "give the batch script to user id %u", plan->uid);
    return 0;
}

static int fill(int dir, const struct step_plan *plan, const void *script, size_t n_script, struct err *e) {
    auto_buf bytes = {0};
    rec_encode(step_plan_rec(), plan, &bytes);
    if (bytes.n > STEP_PLAN_MAX)
        return err_set(e, E_TOO_BIG, "the job's environment is too big");
    int code = script ? write_script(dir, plan, script, n_script, e) : 0;
    if (!code)
        code = write_file(dir, STEP_LOG_FILE, "", 0, false, e);
    return code ? code : write_file(dir, STEP_PLAN_FILE, bytes.p, bytes.n, !plan->step_id, e);
}

int rundir_create(const char *state_dir, uint64_t key, const struct step_plan *plan, const void *script,
                  size_t n_script, struct err *e) {
    autofree char *path = rundir_path(state_dir, key);
    autofree char *runs = xasprintf("%s/runs", state_dir);
    if (mkdir(path, 0711) && errno != EEXIST)
        return err_sys(e, "make %s", path);
    autoclose int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fchmod(dir, 0711))
        return err_sys(e, "open %s", path);
    int code = fill(dir, plan, script, n_script, e);
    if (!code && !plan->step_id)
        code = dir_sync(path, e);
    if (!code && !plan->step_id)
        code = dir_sync(runs, e);
    if (code)
        rundir_remove(state_dir, key);
    return code;
}

/* ---- reading ---- */

static int read_file(const char *path, size_t max, struct arena *a, uint8_t **out, size_t *out_n, struct err *e) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        return err_sys(e, "open %s", path);
    if ((uint64_t)st.st_size > max)
        return err_set(e, E_TOO_BIG, "%s is too big", path);
    size_t n = (size_t)st.st_size, at = 0;
    *out = arena_alloc(a, n + 1);
    for (ssize_t got; at < n && (got = read(fd, *out + at, n - at)) > 0;)
        at += (size_t)got;
    *out_n = at;
    return 0;
}

int rundir_read_plan(const char *state_dir, uint64_t key, struct arena *a, struct step_plan *out, struct err *e) {
    autofree char *dir = rundir_path(state_dir, key);
    autofree char *path = xasprintf("%s/" STEP_PLAN_FILE, dir);
    uint8_t *bytes;
    size_t n;
    int code = read_file(path, STEP_PLAN_MAX, a, &bytes, &n, e);
    return code ? code : rec_decode(step_plan_rec(), bytes, n, a, out, e);
}

int rundir_read_log(const char *state_dir, uint64_t key, struct arena *a, struct step_history *out, struct err *e) {
    autofree char *dir = rundir_path(state_dir, key);
    autofree char *path = xasprintf("%s/" STEP_LOG_FILE, dir);
    uint8_t *bytes;
    size_t n;
    int code = read_file(path, LOG_MAX, a, &bytes, &n, e);
    if (!code)
        step_log_read(bytes, n, a, out);
    return code;
}

bool rundir_is_held(const char *state_dir, uint64_t key) {
    autofree char *dir = rundir_path(state_dir, key);
    autofree char *path = xasprintf("%s/" STEP_LOG_FILE, dir);
    autoclose int fd = open(path, O_RDWR | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
}

/* ---- removing ---- */

void rundir_remove(const char *state_dir, uint64_t key) {
    static const char *const names[] = {STEP_SOCKET_FILE, STEP_SCRIPT_FILE, STEP_PLAN_FILE, STEP_LOG_FILE};
    autofree char *path = rundir_path(state_dir, key);
    autoclose int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; dir >= 0 && i < ARRAY_LEN(names); i++)
        (void)unlinkat(dir, names[i], 0);
    (void)rmdir(path);
}

void rundir_forget(const char *state_dir, uint64_t key) {
    autofree char *mark = path_in(state_dir, "ended", key);
    int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    rundir_remove(state_dir, key);
}

void rundir_purge(const char *state_dir, uint64_t key) {
    autofree char *mark = path_in(state_dir, "ended", key);
    (void)unlink(mark);
}

static bool parse_name(const char *name, uint64_t *out) {
    unsigned job, start, step;
    char rest;
    int n = sscanf(name, "%u.%u.%u%c", &job, &start, &step, &rest);
    if (n == 3 && start <= RUN_START_MAX && step <= RUN_STEP_MAX) {
        *out = step_run_key(job, start, step);
        return true;
    }
    if (sscanf(name, "%u.%u%c", &job, &start, &rest) != 2 || start > RUN_START_MAX)
        return false;
    *out = run_key(job, start);
    return true;
}

void rundir_each(const char *state_dir, void (*fn)(void *arg, uint64_t key, int64_t forgotten_unix), void *arg) {
    static const char *const folders[] = {"runs", "ended"};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        autofree char *path = xasprintf("%s/%s", state_dir, folders[i]);
        DIR *d = opendir(path);
        struct stat st;
        uint64_t key;
        for (struct dirent *entry; d && (entry = readdir(d));) {
            if (parse_name(entry->d_name, &key) && !fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
                fn(arg, key, i == 0 ? 0 : st.st_mtime);
        }
        if (d)
            closedir(d);
    }
}
