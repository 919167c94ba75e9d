/* SPDX-License-Identifier: Apache-2.0
 *
 * spurstepd: owns one run of a job on this node, from before its script is executed until nothing of it lives.
 *
 *   spurstepd run DIR     the daemon. Writes "ok PID\n" or "error TEXT\n" to descriptor 3 and goes into the background.
 *   spurstepd sweep DIR   for a run whose daemon is gone: ends what is left and writes the result.
 *                         Says "ok", "busy" (a daemon lives) or what went wrong, there too.
 *
 * Static, libc alone, so that it runs in any image and from memory. It outlives spurd; what it knows is in the run's
 * directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurstepd/proc.h"
#include "spurstepd/run.h"
#include "spurstepd/serve.h"

#define READY_FD 3

static int ready_fail(const char *text) {
    dprintf(READY_FD, "error %s\n", text);
    return 1;
}

/* Nothing of what spurd had open may come along, and 0, 1, 2 must be something. */
static void settle_descriptors(void) {
    (void)syscall(SYS_close_range, READY_FD + 1, ~0u, 0);
    for (int fd = open("/dev/null", O_RDWR); fd >= 0 && fd <= 2;)
        fd = dup(fd);
    for (int fd = 0; fd <= 2; fd++) {
        autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0)
            (void)dup2(null, fd);
    }
    (void)syscall(SYS_close_range, READY_FD + 1, ~0u, 0);
    (void)fcntl(READY_FD, F_SETFD, FD_CLOEXEC);
}

/* Terminal and service managers mean spurd when they send these; a run ends by request alone. */
static int block_signals(void) {
    static const int all[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        sigaddset(&set, all[i]);
    sigprocmask(SIG_SETMASK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int poll_ms(const struct run *r) {
    int64_t next = run_next_ms(r);
    if (next == INT64_MAX)
        return -1;
    int64_t left = next - boot_ms();
    return left < 0 ? 0 : (int)MIN(left, 60000);
}

static void loop(struct run *r, struct server *s, int signals) {
    while (r->state != STEP_ENDED || !serve_is_done(s) || (r->unsaved && !s->acknowledged)) {
        struct pollfd fds[SERVE_POLLS + 2];
        serve_poll(s, fds);
        fds[SERVE_POLLS] = (struct pollfd){.fd = signals, .events = POLLIN};
        fds[SERVE_POLLS + 1] = (struct pollfd){.fd = r->channel, .events = POLLIN};
        if (poll(fds, ARRAY_LEN(fds), poll_ms(r)) < 0 && errno != EINTR)
            return;
        struct signalfd_siginfo info[8];
        while (read(signals, info, sizeof(info)) > 0) {
        }
        if (fds[SERVE_POLLS + 1].revents)
            run_on_channel(r);
        run_on_child(r);
        run_on_time(r);
        serve_handle(s, r, fds);
        if (r->state == STEP_ENDED)
            serve_tell_end(s, r);
    }
}

static int be_daemon(struct run *r, int signals) {
    struct server s;
    struct err e;
    contain_move_daemon(&r->contain);
    (void)file_write("/proc/self/oom_score_adj", "-900");
    if (serve_open(&s, &e))
        return ready_fail(e.text);
    dprintf(READY_FD, "ok %d\n", (int)getpid());
    close(READY_FD);
    run_start(r);
    loop(r, &s, signals);
    serve_close(&s);
    contain_fini(&r->contain);
    arena_fini(&r->arena);
    close(r->log_fd);
    return 0;
}

static int run_in(const char *dir) {
    struct run r;
    struct err e;
    settle_descriptors();
    if (chdir(dir))
        return ready_fail("cannot enter the run's directory");
    if (run_load(&r, &e) || contain_open(&r.contain, &r.plan, &e))
        return ready_fail(e.text);
    setsid();
    prctl(PR_SET_NAME, "spurstepd");
    int signals = block_signals();
    pid_t pid = contain_fork_daemon(&r.contain);
    if (pid < 0)
        return ready_fail(strerror(errno));
    if (pid > 0)
        _exit(0);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1))
        return ready_fail("cannot become a subreaper");
    return be_daemon(&r, signals);
}

/* "ok", "busy" or what went wrong, on descriptor 3 where there is one. */
static int sweep_in(const char *dir) {
    struct err e = {0};
    int code = chdir(dir) ? err_sys(&e, "%s", dir) : sweep(&e);
    int fd = fcntl(READY_FD, F_GETFD) >= 0 ? READY_FD : 1;
    dprintf(fd, "%s\n", !code ? "ok" : code == E_BUSY ? "busy" : e.text);
    return code == E_BUSY ? 3 : code ? 1 : 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && str_eq(argv[1], "run"))
        return run_in(argv[2]);
    if (argc == 3 && str_eq(argv[1], "sweep"))
        return sweep_in(argv[2]);
    if (argc == 2 && (str_eq(argv[1], "--version") || str_eq(argv[1], "-V"))) {
        puts("spurstepd " SPUR_VERSION);
        return 0;
    }
    fputs("usage: spurstepd run|sweep DIR\nStarted by spurd for each run of a job; not meant to be run by hand.\n", stderr);
    return 2;
}
