/* SPDX-License-Identifier: Apache-2.0
 *
 * spurstepd: owns one run of a job on this node, from before its script is executed until nothing of it lives.
 *
 *   spurstepd run DIR     the daemon. Writes "ok PID\n" or "error TEXT\n" to descriptor 3 and goes into the background.
 *   spurstepd sweep DIR   for a run whose daemon is gone: ends what is left and writes the result.
 *                         Says "ok", "busy" (a daemon lives) or what went wrong, there too.
 *
 *   spurstepd copy        takes a file of sbcast (copy.c)
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
#include "spurstepd/copy.h"
#include "spurstepd/proc.h"
#include "spurstepd/run.h"
#include "spurstepd/serve.h"
#include "spurstepd/viewer.h"

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

static int poll_ms(int64_t next) {
    if (next == INT64_MAX)
        return -1;
    int64_t left = next - boot_ms();
    return left < 0 ? 0 : (int)MIN(left, 60000);
}

struct daemon {
    struct run *run;
    struct server server;
    struct viewers *viewers; /* of a step; else NULL */
    struct pollfd *fds;      /* of the socket, signals, children before their exec, streams */
    int signals;
};

static bool is_done(const struct daemon *d) {
    if (d->run->state != STEP_ENDED || (d->run->unsaved && !d->server.acknowledged))
        return false;
    return d->viewers ? viewers_are_done(d->viewers) : serve_is_done(&d->server);
}

/* Descriptors of one turn: [server | signals | channels | streams]. */
static size_t fill(struct daemon *d) {
    struct pollfd *p = d->fds;
    serve_poll(&d->server, p);
    p += SERVE_POLLS;
    *p++ = (struct pollfd){.fd = d->signals, .events = POLLIN};
    for (uint32_t i = 0; i < d->run->n_tasks; i++)
        *p++ = (struct pollfd){.fd = d->run->task[i].channel, .events = POLLIN};
    if (d->viewers) {
        viewers_poll(d->viewers, p);
        p += viewers_count(d->viewers);
    }
    return (size_t)(p - d->fds);
}

static void turn(struct daemon *d) {
    struct run *r = d->run;
    struct signalfd_siginfo info[8];
    uint32_t n_tasks = r->n_tasks; /* fewer from now on where some are not born any more */
    const struct pollfd *channels = d->fds + SERVE_POLLS + 1;
    if (d->fds[SERVE_POLLS].revents) {
        while (read(d->signals, info, sizeof(info)) > 0) {
        }
    }
    for (uint32_t i = 0; i < n_tasks && i < r->n_tasks; i++) {
        if (channels[i].revents)
            run_on_channel(r, &r->task[i]);
    }
    run_on_child(r);
    run_on_time(r);
    serve_handle(&d->server, r, d->fds); /* first: that a report was taken is told to clients in the same turn */
    if (d->viewers && n_tasks == r->n_tasks)
        viewers_handle(d->viewers, channels + n_tasks);
    if (r->state == STEP_ENDED)
        serve_tell_end(&d->server, r);
}

static void loop(struct daemon *d) {
    while (!is_done(d)) {
        size_t n = fill(d);
        int64_t next = run_next_ms(d->run);
        if (d->viewers)
            next = MIN(next, viewers_next_ms(d->viewers));
        if (poll(d->fds, n, poll_ms(next)) < 0 && errno != EINTR)
            return;
        turn(d);
    }
}

static int be_daemon(struct run *r, int signals) {
    struct viewers viewers;
    struct daemon d = {.run = r, .signals = signals, .viewers = r->is_step ? &viewers : NULL};
    struct err e;
    contain_move_daemon(&r->contain);
    (void)file_write("/proc/self/oom_score_adj", "-900");
    if (serve_open(&d.server, &e))
        return ready_fail(e.text);
    size_t n_fds = SERVE_POLLS + 1 + (size_t)r->n_tasks;
    if (r->is_step) {
        viewers_init(&viewers, r);
        d.server.viewers = &viewers;
        n_fds += viewers_count(&viewers);
    }
    d.fds = xcalloc(n_fds, sizeof(*d.fds));
    dprintf(READY_FD, "ok %d\n", (int)getpid());
    close(READY_FD);
    uint32_t n_tasks = r->n_tasks;
    run_start(r);
    loop(&d);
    if (d.viewers)
        viewers_fini(&viewers);
    serve_close(&d.server);
    for (uint32_t i = 0; i < n_tasks; i++)
        task_fini(&r->task[i]);
    free(d.fds);
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
    if (argc == 2 && str_eq(argv[1], "copy")) {
        (void)syscall(SYS_close_range, READY_FD + 2, ~0u, 0);
        return copy_run(READY_FD, READY_FD + 1);
    }
    if (argc == 2 && (str_eq(argv[1], "--version") || str_eq(argv[1], "-V"))) {
        puts("spurstepd " SPUR_VERSION);
        return 0;
    }
    fputs("usage: spurstepd run|sweep DIR, or copy\nStarted by spurd for each run of a job; not meant to be run by hand.\n", stderr);
    return 2;
}
