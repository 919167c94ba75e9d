/* SPDX-License-Identifier: Apache-2.0 */
#include "spurstepd/task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurstepd/child.h"

#define PIPE_SIZE (256 << 10)

void task_init(struct task *t, const struct step_task *spec) {
    *t = (struct task){.spec = spec, .rank = spec ? spec->rank : 0, .channel = -1, .err_fd = -1, .tty = -1, .in_fd = -1};
    t->out[0].fd = t->out[1].fd = -1;
}

static void close_if(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void task_fini(struct task *t) {
    close_if(&t->channel);
    close_if(&t->err_fd);
    if (t->in_fd != t->tty)
        close_if(&t->in_fd);
    t->tty = t->in_fd = -1; /* the terminal's is out[0]'s to close */
    outflow_fini(&t->out[0]);
    outflow_fini(&t->out[1]);
}

/* ---- ends ---- */

/* A pipe of which `ours` is not to block. */
static int make_pipe(bool reads, int *ours, int *childs) {
    int fd[2];
    if (pipe2(fd, O_CLOEXEC))
        return -1;
    *ours = fd[reads ? 0 : 1];
    *childs = fd[reads ? 1 : 0];
    (void)fcntl(*ours, F_SETFL, O_NONBLOCK);
    (void)fcntl(*ours, F_SETPIPE_SZ, PIPE_SIZE); /* fewer and larger reads; not everybody may */
    return 0;
}

static int make_streams(struct task *t, size_t window, struct child_ends *ends) {
    int ours;
    if (!t->spec->std_in && make_pipe(false, &t->in_fd, &ends->in))
        return -1;
    if (!t->spec->std_out) {
        if (make_pipe(true, &ours, &ends->out))
            return -1;
        outflow_open(&t->out[0], ours, t->rank, 1, window);
    }
    if (!t->spec->std_err && !t->spec->err_to_out) {
        if (make_pipe(true, &ours, &ends->err))
            return -1;
        outflow_open(&t->out[1], ours, t->rank, 2, window);
    }
    return 0;
}

void task_window_size(struct task *t, uint32_t rows, uint32_t columns) {
    struct winsize w = {.ws_row = (unsigned short)MIN(rows, 65535u), .ws_col = (unsigned short)MIN(columns, 65535u)};
    if (t->tty >= 0 && rows && columns)
        (void)ioctl(t->tty, TIOCSWINSZ, &w);
}

static int make_terminal(struct task *t, const struct step_plan *plan, size_t window, struct child_ends *ends) {
    char name[64];
    t->tty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (t->tty < 0)
        return -1;
    outflow_open(&t->out[0], t->tty, t->rank, 1, window);
    t->in_fd = t->tty;
    if (unlockpt(t->tty) || ptsname_r(t->tty, name, sizeof(name)))
        return -1;
    task_window_size(t, plan->rows, plan->columns);
    ends->tty = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends->tty >= 0 && geteuid() == 0 && fchown(ends->tty, plan->uid, plan->gid))
        return -1;
    return ends->tty < 0 ? -1 : 0;
}

static int make_ends(struct task *t, const struct step_plan *plan, size_t window, struct child_ends *ends) {
    if (!t->spec)
        return 0;
    if (plan->pty && t->rank == 0)
        return make_terminal(t, plan, window, ends);
    return make_streams(t, window, ends);
}

static void close_ends(struct child_ends *ends) {
    close_if(&ends->in);
    close_if(&ends->out);
    close_if(&ends->err);
    close_if(&ends->tty);
}

/* ---- birth ---- */

int task_begin(struct task *t, const struct step_plan *plan, const struct contain *c, size_t window, struct err *e) {
    struct child_ends ends = {-1, -1, -1, -1};
    int pair[2] = {-1, -1};
    t->is_begun = true;
    if (make_ends(t, plan, window, &ends) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        int code = err_sys(e, "make a task's pipes");
        close_ends(&ends);
        return code;
    }
    pid_t pid = contain_fork_job(c, e);
    if (pid == 0) {
        close(pair[0]);
        child_run(plan, t->spec, &ends, pair[1]);
    }
    close(pair[1]);
    close_ends(&ends);
    if (pid < 0) {
        close(pair[0]);
        return e->code;
    }
    t->pid = pid;
    t->first_pid = (uint32_t)pid;
    t->channel = pair[0];
    return 0;
}

/* ---- notes ---- */

static void take_note(struct task *t, const struct child_note *note, int fd, char *copy_dir) {
    if (note->kind == CHILD_STDERR) {
        t->err_fd = fd;
        return;
    }
    if (fd >= 0)
        close(fd);
    if (note->kind == CHILD_COPY) {
        snprintf(copy_dir, 64, "%.*s", 63, note->text);
        return;
    }
    t->failure.has = true;
    t->failure.kind = note->kind;
    snprintf(t->failure.text, sizeof(t->failure.text), "%.*s", (int)sizeof(note->text) - 1, note->text);
}

/* One note, or the end of the channel. False when there is nothing more. */
static bool read_note(struct task *t, char *copy_dir) {
    struct child_note note = {0};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {&note, sizeof(note)};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(t->channel, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    int fd = -1;
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(c), sizeof(int));
    if (n == (ssize_t)sizeof(note)) {
        take_note(t, &note, fd, copy_dir);
        return true;
    }
    close_if(&t->channel);
    t->is_executed = !t->failure.has;
    return false;
}

void task_on_channel(struct task *t, char *copy_dir) {
    while (t->channel >= 0 && read_note(t, copy_dir)) {
    }
}
