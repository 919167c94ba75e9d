/* SPDX-License-Identifier: Apache-2.0
 *
 *     STARTING ── channel closed by exec ──► RUNNING ── script gone, or no script and terminated ──► ENDING
 *                                                                     rounds of killing until nothing lives
 *                                                                                      └──► ENDED (result on disk)
 *
 * The exit is in the log before the killing begins and the result before anybody is told, so that whoever kills this
 * daemon, and when, the true exit code is known.
 */
#include "spurstepd/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurstepd/child.h"
#include "spurstepd/proc.h"

#define ROUND_MIN_MS 2
#define ROUND_MAX_MS 250
#define SAVE_AGAIN_MS 500

/* ---- files ---- */

int log_append(int log_fd, const struct step_entry *entry, bool sync, struct err *e) {
    auto_buf frame = {0};
    step_log_frame(entry, &frame);
    off_t before = lseek(log_fd, 0, SEEK_END);
    if (write(log_fd, frame.p, frame.n) != (ssize_t)frame.n) {
        int code = err_sys(e, "write to the run's log");
        (void)!ftruncate(log_fd, before); /* half an entry would hide those behind it */
        return code;
    }
    return sync && fdatasync(log_fd) ? err_sys(e, "sync the run's log") : 0;
}

static int read_plan(struct run *r, struct err *e) {
    autoclose int fd = open(STEP_PLAN_FILE, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        return err_sys(e, "open the run's plan");
    if (st.st_size > STEP_PLAN_MAX)
        return err_set(e, E_TOO_BIG, "the run's plan is too big");
    size_t n = (size_t)st.st_size, at = 0;
    uint8_t *bytes = arena_alloc(&r->arena, n + 1);
    for (ssize_t got; at < n && (got = read(fd, bytes + at, n - at)) > 0;)
        at += (size_t)got;
    if (at < n || rec_decode(step_plan_rec(), bytes, n, &r->arena, &r->plan, e))
        return err_set(e, E_CORRUPT, "the run's plan is damaged");
    if (r->plan.version > STEP_PLAN_VERSION || !r->plan.node_name)
        return err_set(e, E_VERSION, "the run's plan is of version %u", r->plan.version);
    return 0;
}

int run_load(struct run *r, struct err *e) {
    *r = (struct run){.log_fd = -1, .channel = -1, .err_fd = -1, .state = STEP_STARTING, .kill_at_ms = INT64_MAX,
                      .round_at_ms = INT64_MAX, .give_up_at_ms = INT64_MAX};
    struct stat st;
    int code = read_plan(r, e);
    if (code)
        return code;
    r->log_fd = open(STEP_LOG_FILE, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (r->log_fd < 0)
        return err_sys(e, "open the run's log");
    if (flock(r->log_fd, LOCK_EX | LOCK_NB) || fstat(r->log_fd, &st) || st.st_size > 0)
        return err_set(e, E_EXISTS, "this run has a step daemon, or had one");
    r->holds = r->plan.n_argv == 0;
    return 0;
}

/* ---- the end ---- */

static void say(const struct run *r, const char *text) {
    if (r->err_fd >= 0)
        stderr_line(r->err_fd, "%s", text);
}

static void add_usage(struct run *r) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    r->result.max_rss_kb = MAX((uint64_t)used.ru_maxrss, contain_peak_kb(&r->contain));
    r->result.user_cpu_us = (uint64_t)used.ru_utime.tv_sec * 1000000 + (uint64_t)used.ru_utime.tv_usec;
    r->result.sys_cpu_us = (uint64_t)used.ru_stime.tv_sec * 1000000 + (uint64_t)used.ru_stime.tv_usec;
}

static void check_memory(struct run *r) {
    uint64_t n = contain_oom_kills(&r->contain);
    if (!n)
        return;
    r->result.out_of_memory = true;
    if (r->err_fd >= 0)
        stderr_line(r->err_fd, "Detected %llu oom_kill event%s in StepId=%u.batch. Some of the step tasks have been OOM Killed.",
                    (unsigned long long)n, n == 1 ? "" : "s", r->plan.job_id);
}

/* What can't be killed is told, with whom it is about. */
static void name_survivors(struct run *r) {
    pid_t pids[8];
    uint32_t n = contain_pids(&r->contain, pids, ARRAY_LEN(pids));
    auto_str text = {0};
    str_add(&text, "Kill task failed: processes");
    for (uint32_t i = 0; i < n; i++)
        str_addf(&text, " %d", (int)pids[i]);
    str_add(&text, " live on");
    snprintf(r->result_text, sizeof(r->result_text), "%s", str_text(&text));
    r->result.drain_node = true;
    r->result.text = r->result_text;
}

static void write_result(struct run *r) {
    struct step_entry entry = {.kind = STEP_LOG_RESULT, .at_ms = wall_ms(), .result = &r->result};
    r->unsaved = log_append(r->log_fd, &entry, true, NULL) != 0;
    r->round_at_ms = r->unsaved ? boot_ms() + SAVE_AGAIN_MS : INT64_MAX;
}

static void finish(struct run *r) {
    r->result.wait_status = r->wait_status;
    r->result.start_ms = r->start_ms;
    r->result.end_ms = r->end_ms;
    add_usage(r);
    check_memory(r);
    if (r->err_fd >= 0)
        close(r->err_fd);
    r->err_fd = -1;
    if (r->copy_dir[0])
        child_remove_copy(r->copy_dir, r->plan.uid);
    (void)contain_remove(&r->contain);
    r->state = STEP_ENDED;
    r->kill_at_ms = INT64_MAX;
    write_result(r);
}

/* The script is gone: so is, shortly, all the rest. */
static void begin_end(struct run *r) {
    r->state = STEP_ENDING;
    r->end_ms = wall_ms();
    r->kill_at_ms = INT64_MAX;
    if (contain_is_empty(&r->contain)) {
        finish(r);
        return;
    }
    struct step_entry entry = {.kind = STEP_LOG_EXIT, .at_ms = r->end_ms, .wait_status = r->wait_status};
    (void)log_append(r->log_fd, &entry, false, NULL);
    r->rounds = 0;
    r->give_up_at_ms = boot_ms() + (r->plan.unkillable_ms ? r->plan.unkillable_ms : 60000);
    r->round_at_ms = boot_ms();
    run_on_time(r);
}

static void end_unstarted(struct run *r, const char *text) {
    r->result.never_started = true;
    snprintf(r->result_text, sizeof(r->result_text), "%s", text);
    r->result.text = r->result_text;
    r->end_ms = wall_ms();
    begin_end(r);
}

/* ---- the beginning ---- */

static int log_daemon(struct run *r, struct err *e) {
    char boot_id[64];
    const char *groups[] = {r->contain.dir, r->contain.memory};
    proc_boot_id(boot_id);
    struct step_entry entry = {.kind = STEP_LOG_DAEMON,
                               .pid = (uint32_t)getpid(),
                               .pid_started = proc_started(getpid()),
                               .boot_id = boot_id,
                               .cgroups = groups,
                               .n_cgroups = r->contain.memory[0] ? 2 : 1,
                               .at_ms = r->start_ms,
                               .containment = r->contain.kind};
    return log_append(r->log_fd, &entry, false, e);
}

static void log_batch(struct run *r) {
    struct step_entry entry = {.kind = STEP_LOG_BATCH,
                               .pid = (uint32_t)r->batch_pid,
                               .pid_started = proc_started(r->batch_pid),
                               .at_ms = r->start_ms};
    (void)log_append(r->log_fd, &entry, false, NULL);
}

void run_start(struct run *r) {
    struct err e;
    int pair[2];
    r->start_ms = wall_ms();
    if (log_daemon(r, &e)) {
        end_unstarted(r, e.text);
        return;
    }
    if (r->holds) {
        r->state = STEP_RUNNING;
        return;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        end_unstarted(r, "no socket pair");
        return;
    }
    pid_t pid = contain_fork_job(&r->contain, &e);
    if (pid == 0) {
        close(pair[0]);
        child_run(&r->plan, pair[1]);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        end_unstarted(r, e.text);
        return;
    }
    r->batch_pid = pid;
    r->channel = pair[0];
    log_batch(r);
    (void)!write(r->channel, "", 1);
}

static void take_note(struct run *r, const struct child_note *note, int fd) {
    if (note->kind == CHILD_STDERR) {
        r->err_fd = fd;
        return;
    }
    if (note->kind == CHILD_COPY) {
        snprintf(r->copy_dir, sizeof(r->copy_dir), "%.*s", (int)sizeof(r->copy_dir) - 1, note->text);
        return;
    }
    r->failure.has = true;
    r->failure.kind = note->kind;
    snprintf(r->failure.text, sizeof(r->failure.text), "%.*s", (int)sizeof(note->text) - 1, note->text);
}

/* One note, or the end of the channel. False when there is nothing more. */
static bool read_note(struct run *r) {
    struct child_note note = {0};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {&note, sizeof(note)};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(r->channel, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    int fd = -1;
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(c), sizeof(int));
    if (n == (ssize_t)sizeof(note)) {
        take_note(r, &note, fd);
        return true;
    }
    close(r->channel);
    r->channel = -1;
    if (r->state == STEP_STARTING)
        r->state = STEP_RUNNING;
    return false;
}

void run_on_channel(struct run *r) {
    while (r->channel >= 0 && read_note(r)) {
    }
}

/* ---- children, time ---- */

static void explain_failure(struct run *r) {
    if (!r->failure.has)
        return;
    memcpy(r->result_text, r->failure.text, sizeof(r->failure.text));
    r->result.text = r->result_text;
    if (r->failure.kind == CHILD_NO_FILE)
        r->wait_status = STEP_WAIT_OPEN_FAILED;
    else if (r->failure.kind == CHILD_BROKEN)
        r->result.never_started = true;
}

void run_on_child(struct run *r) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != r->batch_pid)
            continue;
        r->batch_pid = 0;
        r->has_exited = true;
        r->wait_status = (uint32_t)status & 0xff7f; /* without the core flag */
    }
    if (r->has_exited && r->state < STEP_ENDING) {
        run_on_channel(r); /* what it said before it died */
        explain_failure(r);
        begin_end(r);
    } else if (r->state == STEP_ENDING) {
        run_on_time(r);
    }
}

static void kill_round(struct run *r, int64_t now) {
    int64_t pause = ROUND_MIN_MS << MIN(r->rounds, 7u);
    contain_kill(&r->contain);
    r->rounds++;
    r->round_at_ms = now + MIN(pause, ROUND_MAX_MS);
}

void run_on_time(struct run *r) {
    int64_t now = boot_ms();
    if (r->state < STEP_ENDING && now >= r->kill_at_ms) {
        r->kill_at_ms = INT64_MAX;
        r->rounds = 0;
        r->round_at_ms = now;
        r->give_up_at_ms = now + (r->plan.unkillable_ms ? r->plan.unkillable_ms : 60000);
    }
    if (r->state == STEP_ENDING && contain_is_empty(&r->contain)) {
        finish(r);
        return;
    }
    if (now < r->round_at_ms)
        return;
    if (r->state == STEP_ENDED) {
        write_result(r);
        return;
    }
    if (now < r->give_up_at_ms) {
        kill_round(r, now);
        return;
    }
    name_survivors(r);
    if (!r->has_exited)
        r->wait_status = SIGKILL;
    r->end_ms = wall_ms();
    finish(r);
}

int64_t run_next_ms(const struct run *r) {
    return MIN(r->kill_at_ms, r->round_at_ms);
}

/* ---- requests ---- */

int run_signal(struct run *r, const struct step_signal *s, struct err *e) {
    if (s->signal < 1 || s->signal > 64)
        return err_set(e, E_SYNTAX, "no such signal: %u", s->signal);
    if (r->state >= STEP_ENDING)
        return err_set(e, E_JOB_DONE, NULL);
    if (!s->batch_only)
        contain_signal(&r->contain, (int)s->signal);
    else if (r->batch_pid > 0)
        (void)kill(r->batch_pid, (int)s->signal);
    return 0;
}

static void say_cancelled(const struct run *r, const char *why) {
    char stamp[40], text[400];
    struct timespec ts;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &ts);
    localtime_r(&ts.tv_sec, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof(text), "*** JOB %u ON %s CANCELLED AT %s %s ***", r->plan.job_id, r->plan.node_name, stamp,
             why && str_starts(why, "DUE ") ? why : "DUE to SIGNAL Terminated");
    say(r, text);
}

int run_terminate(struct run *r, const struct step_terminate *t, struct err *e) {
    if (r->state >= STEP_ENDING)
        return 0;
    int64_t at = boot_ms() + t->kill_wait_ms;
    if (!r->is_terminating) {
        r->is_terminating = true;
        r->kill_at_ms = at;
        run_on_channel(r);
        say_cancelled(r, t->why);
        contain_signal(&r->contain, SIGCONT);
        contain_signal(&r->contain, SIGTERM);
    } else if (r->kill_at_ms != INT64_MAX) {
        r->kill_at_ms = MIN(r->kill_at_ms, at);
    }
    if (r->holds)
        begin_end(r);
    return 0;
}

void run_status(const struct run *r, bool count, struct step_status *out) {
    *out = (struct step_status){.job_id = r->plan.job_id,
                                .start_no = r->plan.start_no,
                                .state = r->state,
                                .pid = (uint32_t)getpid(),
                                .batch_pid = (uint32_t)r->batch_pid,
                                .start_ms = r->start_ms,
                                .min_version = 1,
                                .max_version = STEP_VERSION,
                                .containment = r->contain.text,
                                .program = SPUR_VERSION,
                                .n_processes = count && r->state != STEP_ENDED ? contain_count(&r->contain) : 0};
}
