/* SPDX-License-Identifier: Apache-2.0
 *
 * salloc's command: a child that has the terminal, if there is one, while salloc looks after the allocation.
 *
 * On a terminal the command is a process group of its own in the foreground, so that ^C is the command's and not
 * salloc's. Without one it stays in ours, and a signal to salloc is meant for the allocation.
 */
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/salloc.h"

#define LEAVE_MS 5000 /* for a command that was sent the signal that ended us */

struct child {
    struct salloc *s;
    struct srun_alloc *a;
    pid_t pid;
    int pidfd, status;
    bool has_terminal, is_over, is_revoked, is_told;
    int ended_by; /* the signal that we got; 0: none */
};

/* ---- starting ---- */

static const char *shell(void) {
    const char *name = getenv("SHELL");
    struct passwd *pw = name && *name ? NULL : getpwuid(getuid());
    return name && *name ? name : pw && pw->pw_shell && *pw->pw_shell ? pw->pw_shell : "/bin/sh";
}

static bool can_run(const char *path) {
    return access(path, X_OK) == 0;
}

/* By PATH, as a shell would; NULL: none. In the arena. */
static const char *find(struct arena *a, const char *name) {
    if (strchr(name, '/'))
        return can_run(name) ? name : NULL;
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/bin:/bin"; at; at = strchr(at, ':')) {
        at += *at == ':';
        size_t n = strcspn(at, ":");
        const char *whole = arena_printf(a, "%.*s/%s", (int)n, n ? at : ".", name);
        if (n ? can_run(whole) : can_run(name))
            return whole;
        at += n;
        if (!*at)
            break;
    }
    return NULL;
}

static void become(struct child *c, const char *path, const char *const *argv, char *const *env) {
    sigset_t none;
    sigemptyset(&none);
    if (c->has_terminal) {
        setpgid(0, 0);
        signal(SIGTTOU, SIG_IGN);
        tcsetpgrp(STDIN_FILENO, getpid());
        signal(SIGTTOU, SIG_DFL);
    }
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (c->s->run.job.spec.work_dir && chdir(c->s->run.job.spec.work_dir))
        fprintf(stderr, "salloc: error: chdir(%s): %s\n", c->s->run.job.spec.work_dir, strerror(errno));
    execve(path, (char *const *)argv, env);
    fprintf(stderr, "salloc: error: Unable to exec command \"%s\": %s\n", argv[0], strerror(errno));
    _exit(1);
}

static bool start(struct child *c, char *const *env) {
    const struct srun *s = &c->s->run;
    struct cli *cli = s->job.c;
    const char **argv = arena_calloc(&cli->arena, s->n_argv + 2, sizeof(*argv));
    argv[0] = shell();
    for (uint32_t i = 0; i < s->n_argv; i++)
        argv[i] = s->argv[i];
    const char *path = find(&cli->arena, argv[0]);
    if (!path) {
        cli_error(cli, "_fork_command: Unable to find command \"%s\"", argv[0]);
        return false;
    }
    c->has_terminal = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    fflush(NULL);
    c->pid = fork();
    if (c->pid < 0) {
        cli_error(cli, "fork: %s", strerror(errno));
        return false;
    }
    if (!c->pid)
        become(c, path, argv, env);
    if (c->has_terminal)
        setpgid(c->pid, c->pid);
    c->pidfd = pidfd_open(c->pid, 0);
    must(c->pidfd >= 0);
    return true;
}

/* ---- watching ---- */

static void take_terminal(const struct child *c) {
    if (!c->has_terminal)
        return;
    void (*before)(int) = signal(SIGTTOU, SIG_IGN);
    tcsetpgrp(STDIN_FILENO, getpgrp());
    signal(SIGTTOU, before);
}

static void say_revoked(struct child *c) {
    if (!c->is_told && !c->s->run.job.quiet)
        cli_say(c->s->run.job.c, "Job allocation %u has been revoked.", c->a->job_id);
    c->is_told = true;
}

/* The allocation ended before its command. That is left alone unless --kill-command says otherwise; a shell has nothing
 * to do any more. */
static void revoked(struct child *c) {
    const struct job *j = srun_alloc_job(c->a);
    c->is_revoked = true;
    if (j && j->reason == REASON_TIME_LIMIT && !c->is_told) {
        if (!c->s->run.job.quiet)
            cli_say(c->s->run.job.c, "Job %u has exceeded its time limit and its allocation has been revoked.", c->a->job_id);
        c->is_told = true;
    }
    say_revoked(c);
    bool is_shell = !c->s->run.n_argv;
    int signo = c->s->kill_signal > 1 ? (int)c->s->kill_signal - 1 : is_shell ? SIGHUP : SIGTERM;
    if (c->s->kill_signal || (is_shell && c->has_terminal))
        kill(c->has_terminal ? -c->pid : c->pid, signo);
}

static void on_signal(struct child *c, int signo) {
    if (signo == SIGCONT || signo == SIGWINCH || signo == SIGALRM)
        return;
    if (signo == SIGUSR1 || signo == SIGUSR2) {
        kill(c->pid, signo);
        return;
    }
    if (c->ended_by)
        return;
    c->ended_by = signo;
    srun_alloc_end(c->a, signo == SIGHUP ? 0 : (uint32_t)signo);
    if (signo != SIGHUP)
        say_revoked(c);
    kill(c->has_terminal ? -c->pid : c->pid, signo);
}

static void reap(struct child *c) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == c->pid)
        c->is_over = waitpid(c->pid, &c->status, 0) == c->pid;
}

static void watch(struct child *c) {
    int left_ms = -1;
    while (!c->is_over) {
        struct pollfd fds[3] = {{.fd = c->pidfd, .events = POLLIN},
                                {.fd = c->a->signal_fd, .events = POLLIN},
                                {.fd = spur_attend_fd(c->a->attend), .events = POLLIN}};
        int n = poll(fds, 3, left_ms);
        if (n == 0 && c->ended_by)
            return; /* it does not heed the signal: it is on its own now */
        for (int signo; (signo = srun_signal_next(c->a->signal_fd));)
            on_signal(c, signo);
        left_ms = c->ended_by ? LEAVE_MS : -1;
        struct spur_news news;
        while (spur_attend_take(c->a->attend, &news))
            if (!srun_alloc_hear(c->a, &news) && !c->is_revoked && !c->ended_by)
                revoked(c);
        reap(c);
    }
}

/* Those signals are no failure of the command. */
static int exit_of(const struct child *c) {
    if (c->ended_by)
        return 0;
    if (WIFEXITED(c->status))
        return WEXITSTATUS(c->status);
    int signo = WTERMSIG(c->status);
    return signo == SIGHUP || signo == SIGINT || signo == SIGQUIT || signo == SIGKILL ? 0 : 1;
}

int salloc_command(struct salloc *s, struct srun_alloc *a, char *const *env) {
    struct child c = {.s = s, .a = a, .pidfd = -1};
    int rc = 1;
    uint32_t status = 1 << 8;
    if (start(&c, env)) {
        watch(&c);
        take_terminal(&c);
        close(c.pidfd);
        rc = exit_of(&c);
        status = (uint32_t)c.status;
    }
    if (!c.is_told && !s->run.job.quiet)
        cli_say(s->run.job.c, "Relinquishing job allocation %u", a->job_id);
    if (!c.is_revoked && !c.ended_by)
        srun_alloc_end(a, status);
    return rc;
}
