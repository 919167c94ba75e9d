/* SPDX-License-Identifier: Apache-2.0
 *
 *     STARTING ── channels closed by exec ──► RUNNING ── all tasks gone, or none and terminated ──► ENDING
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
#define STREAM_BYTES_EACH (1u << 20)
#define STREAM_BYTES_ALL (16u << 20) /* of all streams of a step, as long as each has a useful share */

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

/* With many tasks each has less kept, so that a reader who stops costs no more memory. */
static size_t window_for(uint32_t n_tasks) {
    size_t window = STREAM_BYTES_EACH;
    while (window > RING_MIN && window * 2 * n_tasks > STREAM_BYTES_ALL)
        window /= 2;
    return window;
}

static void make_tasks(struct run *r) {
    r->is_step = r->plan.step_id != 0;
    r->n_tasks = r->is_step ? r->plan.n_tasks : r->plan.n_argv ? 1 : 0;
    r->task = arena_calloc(&r->arena, MAX(r->n_tasks, 1u), sizeof(*r->task));
    for (uint32_t i = 0; i < r->n_tasks; i++)
        task_init(&r->task[i], r->is_step ? &r->plan.tasks[i] : NULL);
    r->window = window_for(r->n_tasks);
}

int run_load(struct run *r, struct err *e) {
    *r = (struct run){.log_fd = -1, .state = STEP_STARTING, .kill_at_ms = INT64_MAX, .others_at_ms = INT64_MAX,
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
    make_tasks(r);
    return 0;
}

/* ---- the end ---- */

/* A line for people: in the job's stderr, or on the screen of a step's client. */
static void say(const struct run *r, const char *text) {
    char line[1100];
    if (r->is_step && r->on_text) {
        stamped_line(line, sizeof(line), text);
        r->on_text(r->arg, line);
    } else if (!r->is_step && r->n_tasks && r->task[0].err_fd >= 0) {
        stderr_line(r->task[0].err_fd, "%s", text);
    }
}

static void print_id(const struct run *r, char *out, size_t n) {
    if (r->is_step)
        snprintf(out, n, "%u.%u", r->plan.job_id, r->plan.step_id - 1);
    else
        snprintf(out, n, "%u.batch", r->plan.job_id);
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
    char id[40], text[160];
    if (!n)
        return;
    r->result.out_of_memory = true;
    print_id(r, id, sizeof(id));
    snprintf(text, sizeof(text), "Detected %llu oom_kill event%s in StepId=%s. Some of the step tasks have been OOM Killed.",
             (unsigned long long)n, n == 1 ? "" : "s", id);
    say(r, text);
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
    /* A step ends with its job: one that the machine's end has lost is not asked for again. */
    r->unsaved = log_append(r->log_fd, &entry, !r->is_step, NULL) != 0;
    r->round_at_ms = r->unsaved ? boot_ms() + SAVE_AGAIN_MS : INT64_MAX;
}

static void finish(struct run *r) {
    r->result.wait_status = r->wait_status;
    r->result.start_ms = r->start_ms;
    r->result.end_ms = r->end_ms;
    add_usage(r);
    check_memory(r);
    if (r->n_tasks && r->task[0].err_fd >= 0)
        close(r->task[0].err_fd);
    if (r->n_tasks)
        r->task[0].err_fd = -1;
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
    r->kill_at_ms = r->others_at_ms = INT64_MAX;
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
    const char *groups[] = {r->contain.dir, r->contain.memory, r->contain.devices};
    proc_boot_id(boot_id);
    struct step_entry entry = {.kind = STEP_LOG_DAEMON,
                               .pid = (uint32_t)getpid(),
                               .pid_started = proc_started(getpid()),
                               .boot_id = boot_id,
                               .cgroups = groups,
                               .n_cgroups = r->contain.devices[0] ? 3 : r->contain.memory[0] ? 2 : 1,
                               .at_ms = r->start_ms,
                               .containment = r->contain.kind};
    return log_append(r->log_fd, &entry, false, e);
}

static void log_task(struct run *r, const struct task *t, enum step_entry_kind kind) {
    struct step_entry entry = {.kind = kind,
                               .pid = t->first_pid,
                               .pid_started = kind == STEP_LOG_BATCH ? proc_started(t->pid) : 0,
                               .at_ms = kind == STEP_LOG_BATCH ? r->start_ms : wall_ms(),
                               .wait_status = kind == STEP_LOG_TASK ? t->wait_status : 0,
                               .rank = t->rank};
    (void)log_append(r->log_fd, &entry, false, NULL);
}

/* False: it could not be made, and so the run can't be. */
static bool begin_task(struct run *r, struct task *t) {
    struct err e;
    r->n_begun++;
    if (task_begin(t, &r->plan, &r->contain, r->window, &e)) {
        r->result.never_started = r->n_exited == 0;
        snprintf(r->result_text, sizeof(r->result_text), "%s", e.text);
        r->result.text = r->result_text;
        return false;
    }
    log_task(r, t, STEP_LOG_BATCH);
    (void)!write(t->channel, "", 1);
    return true;
}

/* Tasks that add to a file are begun one by one: the first one empties it. */
static bool goes_alone(const struct task *t) {
    return t->spec && (t->spec->keep_out || t->spec->keep_err);
}

static void begin_tasks(struct run *r) {
    while (r->n_begun < r->n_tasks && r->state < STEP_ENDING) {
        struct task *t = &r->task[r->n_begun];
        if (r->n_begun && goes_alone(t) && r->task[r->n_begun - 1].channel >= 0)
            return;
        if (!begin_task(r, t)) {
            r->n_tasks = r->n_begun; /* the others are not born any more */
            begin_end(r);
        }
    }
}

void run_start(struct run *r) {
    struct err e;
    r->start_ms = wall_ms();
    if (log_daemon(r, &e)) {
        end_unstarted(r, e.text);
        return;
    }
    if (!r->n_tasks)
        r->state = STEP_RUNNING;
    begin_tasks(r);
}

void run_on_channel(struct run *r, struct task *t) {
    if (t->channel < 0)
        return;
    task_on_channel(t, r->copy_dir);
    if (t->channel >= 0)
        return;
    if (t->is_executed && r->on_task)
        r->on_task(r->arg, t);
    begin_tasks(r);
    bool all = r->n_begun == r->n_tasks;
    for (uint32_t i = 0; i < r->n_tasks; i++)
        all = all && r->task[i].channel < 0;
    if (all && r->state == STEP_STARTING)
        r->state = STEP_RUNNING;
}

/* ---- children, time ---- */

static void explain_failure(struct run *r, struct task *t) {
    if (!t->failure.has)
        return;
    if (r->is_step && t->failure.kind != CHILD_BROKEN) { /* its client is told with the task's exit */
        if (t->failure.kind == CHILD_NO_FILE) {
            t->wait_status = STEP_WAIT_OPEN_FAILED;
            say(r, t->failure.text);
        }
        return;
    }
    memcpy(r->result_text, t->failure.text, sizeof(t->failure.text));
    r->result.text = r->result_text;
    if (t->failure.kind == CHILD_NO_FILE)
        t->wait_status = STEP_WAIT_OPEN_FAILED;
    else if (t->failure.kind == CHILD_BROKEN)
        r->result.never_started = true;
}

/* A signal counts more than a code, then the larger number does. */
static uint32_t worse(uint32_t a, uint32_t b) {
    bool killed_a = (a & 0x7f) != 0, killed_b = (b & 0x7f) != 0;
    return killed_a != killed_b ? (killed_a ? a : b) : MAX(a, b);
}

static void end_others(struct run *r, const char *why) {
    struct step_terminate t = {.kill_wait_ms = r->plan.kill_wait_ms, .why = why};
    r->others_at_ms = INT64_MAX;
    (void)run_terminate(r, &t, NULL);
}

static void task_over(struct run *r, struct task *t, uint32_t status) {
    run_on_channel(r, t); /* what it said before it died */
    t->pid = 0;
    t->has_exited = true;
    t->wait_status = status & 0xff7f; /* without the core flag */
    explain_failure(r, t);
    r->n_exited++;
    r->wait_status = r->n_exited == 1 ? t->wait_status : worse(r->wait_status, t->wait_status);
    if (!r->is_step)
        return;
    uint64_t oom = (t->wait_status & 0x7f) == SIGKILL ? contain_oom_kills(&r->contain) : r->oom_seen;
    t->out_of_memory = oom > r->oom_seen;
    r->oom_seen = oom;
    log_task(r, t, STEP_LOG_TASK);
    if (r->on_task)
        r->on_task(r->arg, t);
    if (t->wait_status && r->plan.kill_on_bad_exit)
        r->others_at_ms = 0;
    else if (r->plan.wait_ms && r->others_at_ms == INT64_MAX && !r->is_terminating)
        r->others_at_ms = boot_ms() + r->plan.wait_ms;
}

static struct task *task_of(struct run *r, pid_t pid) {
    for (uint32_t i = 0; i < r->n_tasks; i++) {
        if (r->task[i].pid == pid)
            return &r->task[i];
    }
    return NULL;
}

void run_on_child(struct run *r) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct task *t = task_of(r, pid);
        if (t)
            task_over(r, t, (uint32_t)status);
    }
    if (r->n_tasks && r->n_exited == r->n_tasks && r->state < STEP_ENDING)
        begin_end(r);
    else if (r->state == STEP_ENDING)
        run_on_time(r);
}

static void kill_round(struct run *r, int64_t now) {
    int64_t pause = ROUND_MIN_MS << MIN(r->rounds, 7u);
    contain_kill(&r->contain);
    r->rounds++;
    r->round_at_ms = now + MIN(pause, ROUND_MAX_MS);
}

void run_on_time(struct run *r) {
    int64_t now = boot_ms();
    if (r->state < STEP_ENDING && now >= r->others_at_ms)
        end_others(r, "DUE TO TASK FAILURE");
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
    if (r->n_exited < r->n_tasks)
        r->wait_status = SIGKILL;
    r->end_ms = wall_ms();
    finish(r);
}

int64_t run_next_ms(const struct run *r) {
    return MIN(MIN(r->kill_at_ms, r->others_at_ms), r->round_at_ms);
}

/* ---- requests ---- */

static void say_cancelled(const struct run *r, const char *why) {
    char stamp[40], text[400], id[40];
    struct timespec ts;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &ts);
    localtime_r(&ts.tv_sec, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    print_id(r, id, sizeof(id));
    if (!r->is_step)
        id[strcspn(id, ".")] = 0;
    snprintf(text, sizeof(text), "*** %s %s ON %s CANCELLED AT %s %s ***", r->is_step ? "STEP" : "JOB", id,
             r->plan.node_name, stamp, why && str_starts(why, "DUE ") ? why : "DUE to SIGNAL Terminated");
    say(r, text);
}

int run_signal(struct run *r, const struct step_signal *s, struct err *e) {
    if (s->signal < 1 || s->signal > 64)
        return err_set(e, E_SYNTAX, "no such signal: %u", s->signal);
    if (r->state >= STEP_ENDING)
        return err_set(e, E_JOB_DONE, NULL);
    if (r->is_step && s->signal == SIGKILL)
        say_cancelled(r, "DUE to SIGNAL Killed");
    if (!s->batch_only)
        contain_signal(&r->contain, (int)s->signal);
    else if (r->n_tasks && r->task[0].pid > 0)
        (void)kill(r->task[0].pid, (int)s->signal);
    return 0;
}

int run_terminate(struct run *r, const struct step_terminate *t, struct err *e) {
    if (r->state >= STEP_ENDING)
        return 0;
    int64_t at = boot_ms() + t->kill_wait_ms;
    if (!r->is_terminating) {
        r->is_terminating = true;
        r->n_tasks = MIN(r->n_tasks, r->n_begun); /* no more are born */
        r->kill_at_ms = at;
        for (uint32_t i = 0; i < r->n_tasks; i++)
            run_on_channel(r, &r->task[i]);
        say_cancelled(r, t->why);
        run_suspend(r, true);
        contain_signal(&r->contain, SIGCONT);
        contain_signal(&r->contain, t->kill_wait_ms ? SIGTERM : SIGKILL);
    } else if (r->kill_at_ms != INT64_MAX) {
        r->kill_at_ms = MIN(r->kill_at_ms, at);
    }
    if (!r->n_tasks)
        begin_end(r);
    return 0;
}

void run_suspend(struct run *r, bool resume) {
    if (r->state < STEP_ENDING)
        contain_freeze(&r->contain, !resume);
}

void run_status(const struct run *r, bool count, struct step_status *out) {
    *out = (struct step_status){.job_id = r->plan.job_id,
                                .start_no = r->plan.start_no,
                                .state = r->state,
                                .pid = (uint32_t)getpid(),
                                .batch_pid = r->n_tasks ? (uint32_t)r->task[0].pid : 0,
                                .start_ms = r->start_ms,
                                .min_version = 1,
                                .max_version = STEP_VERSION,
                                .containment = r->contain.text,
                                .program = SPUR_VERSION,
                                .n_processes = count && r->state != STEP_ENDED ? contain_count(&r->contain) : 0};
}
