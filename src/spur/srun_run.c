/* SPDX-License-Identifier: Apache-2.0
 *
 * A step that runs: one loop over signals, news of the controller, stdin, the nodes' streams and the places where output
 * goes. It ends when every node has said its last word (or is lost) and all output is written.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/srun.h"

#define TOGETHER_MS 80        /* exits that come within are told in one line */
#define TERMINAL_AGAIN_MS 500 /* a background process looks so often whether the terminal is its own */
#define INTERRUPT_MS 1000
#define STOPPED_MS 1000 /* so soon after SIGCONT it is heard what became of the step before */

struct run {
    struct srun_step *st;
    struct srun *s;
    const struct cli *c;
    struct spur_streams *streams;
    struct srun_output *output;
    struct srun_tasks tasks;
    struct spur_attend *attend;
    int signal_fd;
    bool input_ended, input_waits; /* waits: the terminal belongs to another process group */
    bool any_text;   /* a node had something to say */
    bool is_leaving; /* sattach: by a signal */
    bool is_aborted, abort_told, is_terminated, wait_told, lost_node, stdout_gone, start_failed;
    int64_t interrupt_ms; /* of the last ^C; 0: none */
    int64_t continued_ms; /* of the last SIGCONT; 0: none */
    uint32_t kill_wait_secs;
    int failure; /* exit code of what went wrong on our side */
};

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static const char *step_name(const struct run *r, struct str *out) {
    str_clear(out);
    srun_step_name(r->st->reply.step, out);
    return str_text(out);
}

/* ---- ending it ---- */

static void tell_abort(struct run *r) {
    if (r->abort_told || r->tasks.n_over == r->tasks.n_tasks)
        return;
    r->abort_told = true;
    cli_say(r->c, "Job step aborted: Waiting up to %u seconds for job step to finish.", r->kill_wait_secs + 2);
}

/* Nobody may have asked for it: a client that is stopped is not heard of, and counts as gone after a while. */
static void tell_ended_by_others(struct run *r) {
    auto_str name = {0};
    if (r->continued_ms && now_ms() - r->continued_ms < STOPPED_MS && !r->abort_told)
        cli_error(r->c, "%s was ended while srun was stopped: a client that is not heard of for attend_secs counts as gone",
                  step_name(r, &name));
    tell_abort(r);
}

static void force(struct run *r) {
    cli_say(r->c, "forcing job termination");
    r->is_aborted = true;
    spur_streams_signal(r->streams, SIGKILL);
    tell_abort(r);
}

static void terminate(struct run *r) {
    auto_str name = {0};
    if (r->is_terminated)
        return;
    r->is_terminated = true;
    cli_say(r->c, "Terminating %s", step_name(r, &name));
    spur_streams_terminate(r->streams);
}

/* ---- events of the streams ---- */

static void on_welcome(void *arg, uint32_t node, const struct stream_welcome *w) {
    struct run *r = arg;
    for (uint32_t i = 0; i < w->n_ranks && i < w->n_pids; i++)
        if (w->pids[i])
            srun_tasks_started(&r->tasks, w->ranks[i]);
    if (r->s->job.verbose) {
        auto_str name = {0};
        cli_say(r->c, "%s: connected to node %s, %u tasks", step_name(r, &name), r->st->reply.step->nodes[node].name,
                w->n_ranks);
    }
}

static void on_started(void *arg, uint32_t node, const struct stream_started *x) {
    struct run *r = arg;
    srun_tasks_started(&r->tasks, x->task);
    if (r->s->job.verbose > 1)
        cli_say(r->c, "Node %s, task %u started, pid %u", r->st->reply.step->nodes[node].name, x->task, x->pid);
}

static bool on_data(void *arg, uint32_t node, uint32_t task, uint32_t number, const uint8_t *p, size_t n) {
    struct run *r = arg;
    srun_tasks_started(&r->tasks, task);
    return srun_output_data(r->output, task, number, p, n);
}

static void on_text(void *arg, uint32_t node, const char *text) {
    struct run *r = arg;
    const struct step_node *n = &r->st->reply.step->nodes[node];
    bool is_end = strstr(text, "*** STEP ");
    r->any_text = true;
    if (!is_end || node == 0) /* every node says so: one of them is enough */
        srun_output_text(r->output, n->n_ranks ? n->ranks[0] : 0, text);
    if (is_end && !r->is_terminated && !r->s->job.more.no_kill) { /* somebody else ends it; of one node it may be */
        if (r->st->err.fd >= 0)
            sink_flush(&r->st->err);
        tell_ended_by_others(r);
    }
}

static void on_exited(void *arg, uint32_t node, const struct stream_exit *x) {
    struct run *r = arg;
    srun_tasks_exited(&r->tasks, x);
    if (r->s->bad_exit == BAD_EXIT_KILLS && r->tasks.any_bad && r->tasks.n_over < r->tasks.n_tasks && !r->is_aborted) {
        srun_tasks_tell(&r->tasks, UINT32_MAX);
        terminate(r);
    }
}

static void on_done(void *arg, uint32_t node, const struct stream_done *d) {
    struct run *r = arg;
    if (d->text && !r->any_text) /* most often it was a line of its own before */
        on_text(r, node, d->text);
    srun_tasks_tell(&r->tasks, node);
}

/* A node that never took its tasks, or is gone: the others end too, as a step is all or nothing. With --no-kill they go on
 * without one that is gone. */
static void on_failed(void *arg, uint32_t node, const struct err *why) {
    struct run *r = arg;
    const char *name = r->st->reply.step->nodes[node].name;
    auto_str step = {0};
    if (why->code == E_UNREACHABLE || why->code == E_STEP_ID || why->code == E_NOT_FOUND || why->code == E_JOB_DONE) {
        cli_error(r->c, "Node failure on %s: %s", name, why->text);
        r->lost_node = true;
    } else {
        cli_error(r->c, "Task launch for %s failed on node %s: %s", step_name(r, &step), name, why->text);
        if (!r->start_failed)
            cli_error(r->c, "Application launch failed: %s", why->text);
        if (!r->start_failed)
            cli_say(r->c, "Job step aborted");
        r->start_failed = true;
    }
    srun_tasks_lost(&r->tasks, node);
    if (r->s->job.more.no_kill && !r->start_failed) {
        r->lost_node = false;
        return;
    }
    r->failure = r->s->exit_error;
    if (!r->is_aborted && !r->st->is_attach && spur_streams_left(r->streams))
        spur_streams_terminate(r->streams);
    r->is_aborted = true;
}

/* ---- signals ---- */

static void send_signal(struct run *r, int signo) {
    spur_streams_signal(r->streams, signo);
}

static void ctrl_c(struct run *r) {
    auto_str name = {0};
    cli_say(r->c, "sending Ctrl-C to %s", step_name(r, &name));
    send_signal(r, SIGINT);
}

static void interrupt(struct run *r) {
    int64_t now = now_ms();
    bool is_second = r->interrupt_ms && now - r->interrupt_ms <= INTERRUPT_MS;
    r->interrupt_ms = now;
    if (r->s->quit_on_interrupt || is_second) {
        r->tasks.is_silent = true;
        ctrl_c(r);
        force(r);
    } else if (r->s->disable_status) {
        ctrl_c(r);
    } else if (r->is_aborted) {
        cli_say(r->c, "interrupt (abort already in progress)");
        srun_tasks_status(&r->tasks);
    } else {
        cli_say(r->c, "interrupt (one more within 1 sec to abort)");
        srun_tasks_status(&r->tasks);
    }
}

static void on_signal(struct run *r, int signo) {
    uint32_t rows, columns;
    if (r->st->is_attach) { /* the step is not ours to end */
        if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT) {
            r->is_leaving = true;
            r->failure = 128 + signo;
        }
        return;
    }
    switch (signo) {
    case SIGINT:
        interrupt(r);
        break;
    case SIGQUIT:
        cli_say(r->c, "Quit");
        force(r);
        break;
    case SIGTERM:
    case SIGHUP:
        force(r);
        break;
    case SIGCONT:
        r->continued_ms = now_ms();
        cli_say(r->c, "got SIGCONT");
        break;
    case SIGWINCH:
        if (r->s->pty && srun_terminal_size(r->s->pty_fd, &rows, &columns))
            spur_streams_window_size(r->streams, rows, columns);
        break;
    default:
        send_signal(r, signo);
    }
}

/* ---- news of the controller ---- */

static void on_job(struct run *r, struct spur_news *n) {
    if (r->st->alloc && !srun_alloc_hear(r->st->alloc, n))
        spur_streams_step_over(r->streams);
    else if (n->code == E_JOB_ID)
        spur_streams_step_over(r->streams);
}

static void on_step(struct run *r, struct spur_news *n) {
    if (n->code == E_STEP_ID || n->code == E_JOB_ID || n->code == E_NOT_FOUND || n->code == E_JOB_DONE)
        spur_streams_step_over(r->streams);
    const struct step *s = n->reply ? n->reply->step : NULL;
    if (s && s->state != JOB_RUNNING && s->state != JOB_SUSPENDED)
        spur_streams_step_over(r->streams);
    if (s && (s->kill_ms || s->state >= JOB_COMPLETED) && s->state != JOB_COMPLETED && !r->is_terminated)
        tell_ended_by_others(r);
}

static void on_news(struct run *r) {
    struct spur_news n;
    while (r->attend && spur_attend_take(r->attend, &n)) {
        for (uint32_t i = 0; n.reply && i < n.reply->n_places; i++)
            spur_streams_place(r->streams, &n.reply->places[i]);
        if (n.of_step)
            on_step(r, &n);
        else
            on_job(r, &n);
        rec_free(n.reply);
    }
}

/* ---- input ---- */

/* A process in the background that reads from its terminal would be stopped. */
static bool may_read(const struct run *r) {
    pid_t owner = tcgetpgrp(r->st->in_fd);
    return owner < 0 || owner == getpgrp();
}

static void end_input(struct run *r) {
    r->input_ended = true;
    spur_streams_input_end(r->streams);
}

static void read_input(struct run *r) {
    size_t room;
    uint8_t *to = spur_streams_input_room(r->streams, &room);
    if (!room)
        return;
    ssize_t n = read(r->st->in_fd, to, room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0)
        end_input(r);
    else
        spur_streams_input_add(r->streams, (size_t)n);
}

static bool wants_input(struct run *r) {
    size_t room = 0;
    r->input_waits = false;
    if (r->input_ended)
        return false;
    spur_streams_input_room(r->streams, &room);
    if (!room)
        return false;
    r->input_waits = !may_read(r);
    return !r->input_waits;
}

/* ---- output ---- */

/* Where it went is gone: a program that writes there itself would end, and so does the step. */
static void check_sink(struct run *r, struct sink *k, const char *what) {
    if (!k->is_broken || k->fd < 0 || !k->error)
        return;
    int error = k->error;
    k->error = 0;
    if (error != EPIPE)
        cli_error(r->c, "Can't write to %s: %s", what, strerror(error));
    if (k == &r->st->out && !r->stdout_gone) {
        r->stdout_gone = true;
        r->failure = error == EPIPE ? 128 + SIGPIPE : r->s->exit_error;
        r->is_aborted = r->tasks.is_silent = true;
        if (r->st->is_attach)
            r->is_leaving = true;
        else
            spur_streams_terminate(r->streams);
    }
}

static void flush(struct run *r) {
    struct srun_step *st = r->st;
    if (st->out.fd >= 0)
        sink_flush(&st->out);
    if (st->err.fd >= 0)
        sink_flush(&st->err);
    check_sink(r, &st->out, "stdout");
    check_sink(r, &st->err, "stderr");
    if (spur_streams_is_stalled(r->streams) && !sink_is_full(&st->out) && !sink_is_full(&st->err))
        spur_streams_retry(r->streams);
}

/* ---- time ---- */

static void at_least(int *timeout, int64_t ms) {
    if (*timeout < 0 || ms < *timeout)
        *timeout = (int)MAX(ms, (int64_t)0);
}

static void wait_is_over(struct run *r) {
    auto_str name = {0};
    r->wait_told = true;
    cli_say(r->c, "First task exited %us ago", r->s->wait_secs);
    srun_tasks_status(&r->tasks);
    cli_say(r->c, "Terminating %s", step_name(r, &name));
    r->is_terminated = true;
    send_signal(r, SIGKILL);
    tell_abort(r);
}

/* What is due now; lowers the time until the next look. */
static void on_time(struct run *r, int *timeout) {
    int64_t now = now_ms();
    struct srun_tasks *t = &r->tasks;
    if (t->untold_ms && now >= t->untold_ms + TOGETHER_MS)
        srun_tasks_tell(t, UINT32_MAX);
    if (t->untold_ms)
        at_least(timeout, t->untold_ms + TOGETHER_MS - now);
    bool waits = r->s->wait_secs && t->first_over_ms && t->n_over < t->n_tasks && !r->wait_told && !r->is_aborted;
    int64_t end = t->first_over_ms + (int64_t)r->s->wait_secs * 1000;
    if (waits && now >= end)
        wait_is_over(r);
    else if (waits)
        at_least(timeout, end - now);
    if (r->input_waits)
        at_least(timeout, TERMINAL_AGAIN_MS);
}

/* ---- the loop ---- */

enum { FD_SIGNALS, FD_NEWS, FD_INPUT, FD_OUT, FD_ERR, FD_STREAMS };

static bool is_over(struct run *r) {
    if (r->is_leaving)
        return true;
    return !spur_streams_left(r->streams) && !sink_waiting(&r->st->out) && !sink_waiting(&r->st->err);
}

static void turn(struct run *r, struct pollfd *fds) {
    struct srun_step *st = r->st;
    int timeout = -1;
    bool input = wants_input(r);
    on_time(r, &timeout);
    size_t n = spur_streams_poll(r->streams, fds + FD_STREAMS, &timeout);
    if (is_over(r))
        return;
    fds[FD_SIGNALS] = (struct pollfd){.fd = r->signal_fd, .events = POLLIN};
    fds[FD_NEWS] = (struct pollfd){.fd = r->attend ? spur_attend_fd(r->attend) : -1, .events = POLLIN};
    fds[FD_INPUT] = (struct pollfd){.fd = input ? st->in_fd : -1, .events = POLLIN};
    fds[FD_OUT] = (struct pollfd){.fd = sink_waiting(&st->out) ? sink_fd(&st->out) : -1, .events = POLLOUT};
    fds[FD_ERR] = (struct pollfd){.fd = sink_waiting(&st->err) ? sink_fd(&st->err) : -1, .events = POLLOUT};
    if (poll(fds, FD_STREAMS + n, timeout) < 0)
        return;
    for (int signo; fds[FD_SIGNALS].revents && (signo = srun_signal_next(r->signal_fd));)
        on_signal(r, signo);
    if (fds[FD_NEWS].revents)
        on_news(r);
    if (fds[FD_INPUT].revents)
        read_input(r);
    spur_streams_turn(r->streams, fds + FD_STREAMS, n);
    flush(r);
}

static struct sink *sink_of(struct sink *k) {
    return k->fd >= 0 ? k : NULL;
}

static void open_streams(struct run *r) {
    struct srun_step *st = r->st;
    struct srun_output_conf output = {
        .n_tasks = r->tasks.n_tasks, .label = r->s->label, .unbuffered = r->s->unbuffered || r->s->pty,
        .only_task = {st->only_task[0], st->only_task[1]},
        .sink = {st->is_out_dropped ? NULL : sink_of(&st->out), st->is_err_with_out ? &st->out : sink_of(&st->err)}};
    r->output = srun_output_new(&output);
    struct spur_streams_conf conf = {
        .ticket = st->reply.ticket, .n_ticket = st->reply.n_ticket, .tickets = st->reply.tickets, .n_tickets = st->reply.n_tickets, .step = st->reply.step,
        .launch = st->is_attach ? NULL : &st->launch, .no_input = st->is_attach && st->in_fd < 0,
        .takes_input = !st->is_attach || st->in_fd >= 0, .input_task = st->in_task,
        .on = {r, on_welcome, on_started, on_data, on_exited, on_text, on_done, on_failed}};
    r->streams = spur_streams_new(&conf);
    if (st->in_fd < 0 && conf.takes_input)
        end_input(r);
    r->input_ended |= !conf.takes_input;
}

/* How long the nodes wait between SIGTERM and SIGKILL: the ticket says it. */
static uint32_t kill_wait(const struct srun_step *st) {
    auto_arena a = {0};
    struct step_ticket t;
    if (rec_decode(step_ticket_rec(), st->reply.ticket, st->reply.n_ticket, &a, &t, NULL) || !t.kill_wait_secs)
        return 30;
    return t.kill_wait_secs;
}

static int exit_code(struct run *r) {
    auto_str name = {0};
    srun_tasks_tell(&r->tasks, UINT32_MAX);
    if (r->tasks.any_killed && !r->abort_told && !r->is_aborted)
        cli_say(r->c, "Force Terminated %s", step_name(r, &name));
    if (r->failure && (r->is_leaving || r->lost_node || r->start_failed || r->stdout_gone))
        return r->failure;
    return r->tasks.exit_code;
}

int srun_run(struct srun_step *st, struct spur_attend *attend, int signal_fd, uint32_t *out_status) {
    struct run r = {.st = st, .s = st->s, .c = st->s->job.c, .attend = attend, .signal_fd = signal_fd,
                    .kill_wait_secs = kill_wait(st)};
    srun_tasks_init(&r.tasks, r.c, st->reply.step);
    open_streams(&r);
    struct pollfd *fds = xcalloc(FD_STREAMS + st->reply.n_tickets, sizeof(*fds));
    if (st->launch.pty)
        srun_terminal_raw(st->s->pty_fd);
    while (!is_over(&r))
        turn(&r, fds);
    srun_terminal_restore();
    int code = exit_code(&r);
    if (out_status)
        *out_status = r.failure && !r.tasks.worst_status ? (uint32_t)r.failure << 8 : r.tasks.worst_status;
    free(fds);
    spur_streams_free(r.streams);
    srun_output_free(r.output);
    srun_tasks_fini(&r.tasks);
    sink_fini(&st->out);
    sink_fini(&st->err);
    return code;
}
