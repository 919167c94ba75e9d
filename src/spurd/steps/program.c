/* SPDX-License-Identifier: Apache-2.0
 *
 * posix_spawn shares our memory until exec, so starting costs the same however big this daemon is, and is safe with
 * threads. The children are reaped by whoever handles SIGCHLD (agent.c): spurd may be pid 1 of a container and has to
 * reap strangers anyway; so an exit code is not to be had here, and what a child has to say comes through a pipe.
 */
#include "spurd/steps/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define READY_FD 3
#define RUN_WAIT_MS 15000
#define SWEEP_WAIT_MS 30000
#define LOOK_MS 100 /* between looks at the stop flag */

/* From spurstepd_blob.S. */
extern const unsigned char spurstepd_blob[], spurstepd_blob_end[];

struct program {
    char path[4096];
    int fd; /* of the memory; -1: a file */
    atomic_bool stop;
};

static int into_memory(struct program *p) {
    autoclose int fd = memfd_create("spurstepd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || fd_write(fd, spurstepd_blob, (size_t)(spurstepd_blob_end - spurstepd_blob)) || fchmod(fd, 0500))
        return -1;
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    p->fd = fcntl(fd, F_DUPFD_CLOEXEC, READY_FD + 10); /* out of the way of what the child puts at 3 */
    snprintf(p->path, sizeof(p->path), "/proc/self/fd/%d", p->fd);
    return p->fd < 0 || access(p->path, X_OK) ? -1 : 0;
}

static int into_file(struct program *p, const char *state_dir, struct err *e) {
    autofree char *made = xasprintf("%s/spurstepd.new", state_dir);
    snprintf(p->path, sizeof(p->path), "%s/spurstepd", state_dir);
    (void)unlink(made);
    autoclose int fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd < 0 || fd_write(fd, spurstepd_blob, (size_t)(spurstepd_blob_end - spurstepd_blob)) ||
        rename(made, p->path))
        return err_sys(e, "write %s", p->path);
    return 0;
}

/* Whether it runs at all: noexec mounts and forbidden memfds show only then. */
static bool runs(const struct program *p) {
    char *argv[] = {(char *)"spurstepd", (char *)"--version", NULL}, *envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawn(&pid, p->path, &actions, NULL, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    return !failed; /* glibc tells a failed exec */
}

int program_new(const char *state_dir, struct program **out, struct err *e) {
    struct program *p = xnew(struct program);
    p->fd = -1;
    if (into_memory(p) || !runs(p)) {
        if (p->fd >= 0)
            close(p->fd);
        p->fd = -1;
        int code = into_file(p, state_dir, e);
        if (!code && !runs(p))
            code = err_set(e, E_SYS, "neither memory nor %s can be executed", state_dir);
        if (code) {
            free(p);
            return code;
        }
    }
    *out = p;
    return 0;
}

void program_free(struct program *p) {
    if (p->fd >= 0)
        close(p->fd);
    free(p);
}

void program_stop(struct program *p) {
    atomic_store(&p->stop, true);
}

static int move_up(int fd) {
    int high = fd >= 0 && fd <= READY_FD + 1 ? fcntl(fd, F_DUPFD_CLOEXEC, READY_FD + 10) : -1;
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* Starts it with one end of a socket pair as descriptor 3, and perhaps another descriptor as 4; the other end is
 * returned. */
static int start(const struct program *p, const char *what, const char *dir, int more, int *out_fd, struct err *e) {
    char *argv[] = {(char *)"spurstepd", (char *)what, (char *)dir, NULL};
    autofree char *zone = getenv("TZ") ? xasprintf("TZ=%s", getenv("TZ")) : NULL; /* for the times it writes */
    char *envp[] = {zone, NULL};
    int ends[2];
    sigset_t none, all;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    pid_t pid;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return err_sys(e, "socket pair");
    for (int i = 0; i < 2; i++) /* out of the way of what the child puts at 3 and 4 */
        ends[i] = move_up(ends[i]);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], READY_FD);
    if (more >= 0)
        posix_spawn_file_actions_adddup2(&actions, more, READY_FD + 1);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    errno = posix_spawn(&pid, p->path, &actions, &attr, argv, envp);
    int code = errno ? err_sys(e, "start spurstepd") : 0;
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (code)
        close(ends[0]);
    else
        *out_fd = ends[0];
    return code;
}

/* A line, or the end of the pipe, or time. False: time. */
static bool listen_for(const struct program *p, int fd, int wait_ms, char *text, size_t n) {
    size_t at = 0;
    for (int waited = 0; waited < wait_ms && !atomic_load(&p->stop);) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        if (poll(&poll_fd, 1, LOOK_MS) <= 0) {
            waited += LOOK_MS;
            continue;
        }
        ssize_t got = read(fd, text + at, n - 1 - at);
        if (got > 0)
            at += (size_t)got;
        text[at] = 0;
        if (got <= 0 || at == n - 1 || strchr(text, '\n')) {
            text[strcspn(text, "\n")] = 0;
            return true;
        }
    }
    return false;
}

int program_copy(const struct program *p, int client, const void *request, size_t n, struct err *e) {
    char said[ERR_TEXT_MAX] = "";
    autoclose int fd = -1, high = fcntl(client, F_DUPFD_CLOEXEC, READY_FD + 10);
    if (high < 0)
        return err_sys(e, "pass a connection on");
    int code = start(p, "copy", NULL, high, &fd, e);
    if (code)
        return code;
    if (fd_write(fd, request, n) || shutdown(fd, SHUT_WR) || !listen_for(p, fd, RUN_WAIT_MS, said, sizeof(said)) ||
        !str_eq(said, "ok"))
        return err_set(e, E_LAUNCH, "%s", *said ? said : "the file's taker died");
    return 0;
}

int program_run(const struct program *p, const char *dir, uint32_t *out_pid, struct err *e) {
    char said[ERR_TEXT_MAX] = "";
    autoclose int fd = -1;
    int code = start(p, "run", dir, -1, &fd, e);
    if (code)
        return code;
    if (!listen_for(p, fd, RUN_WAIT_MS, said, sizeof(said)))
        return err_set(e, E_DEADLINE, "the step daemon does not answer");
    uint64_t pid;
    if (!str_starts(said, "ok ") || str_to_u64(said + 3, INT32_MAX, &pid))
        return err_set(e, E_LAUNCH, "%s",
                       str_starts(said, "error ") ? said + 6 : "the step daemon died while it started");
    *out_pid = (uint32_t)pid;
    return 0;
}

int program_sweep(const struct program *p, const char *dir, struct err *e) {
    char said[ERR_TEXT_MAX] = "";
    autoclose int fd = -1;
    int code = start(p, "sweep", dir, -1, &fd, e);
    if (code)
        return code;
    if (!listen_for(p, fd, SWEEP_WAIT_MS, said, sizeof(said)))
        return err_set(e, E_DEADLINE, "the sweep of a run does not end");
    if (str_eq(said, "ok"))
        return 0;
    return err_set(e, str_eq(said, "busy") ? E_BUSY : E_LAUNCH, "%s", *said ? said : "the sweep of a run died");
}
