/* SPDX-License-Identifier: Apache-2.0
 *
 * Order matters. Limits may need privilege, so they come before it goes; directory and files are the user's, so they
 * come behind. Nothing here may leave a descriptor, a capability or a signal disposition to the script.
 */
#include "spurstepd/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurstepd/login.h"
#include "spurstepd/proc.h"

static const struct {
    const char *name;
    int resource;
} limits[] = {
    {"CPU", RLIMIT_CPU},       {"FSIZE", RLIMIT_FSIZE},     {"DATA", RLIMIT_DATA},   {"STACK", RLIMIT_STACK},
    {"CORE", RLIMIT_CORE},     {"RSS", RLIMIT_RSS},         {"NPROC", RLIMIT_NPROC}, {"NOFILE", RLIMIT_NOFILE},
    {"MEMLOCK", RLIMIT_MEMLOCK}, {"AS", RLIMIT_AS},
};

void stamped_line(char *out, size_t n, const char *text) {
    char stamp[48];
    struct timespec ts;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &ts);
    localtime_r(&ts.tv_sec, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, n, "[%s.%03ld] error: %s", stamp, ts.tv_nsec / 1000000, text);
}

void stderr_line(int fd, const char *fmt, ...) {
    char text[1024], line[1100];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    stamped_line(line, sizeof(line), text);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
        dprintf(fd, "%s\n", line);
}

static void tell(int channel, enum child_note_kind kind, int fd, const char *text) {
    struct child_note note = {.kind = kind};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    snprintf(note.text, sizeof(note.text), "%s", text);
    struct iovec iov = {&note, sizeof(note)};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd >= 0) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
    }
    (void)sendmsg(channel, &msg, MSG_NOSIGNAL);
}

static void give_up(int channel, enum child_note_kind kind, int code, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

static void give_up(int channel, enum child_note_kind kind, int code, const char *fmt, ...) {
    char text[480];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    tell(channel, kind, -1, text);
    _exit(code);
}

/* ---- signals, limits, identity ---- */

/* By the kernel's own call: libc keeps two signals for itself, which posix_spawn leaves ignored. */
static void reset_signals(void) {
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } dfl = {0};
    sigset_t none;
    for (int signo = 1; signo <= 64; signo++)
        (void)syscall(SYS_rt_sigaction, signo, &dfl, NULL, sizeof(dfl.mask));
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The submitter's soft limit, below what is allowed here. Returns the errno of one that could not be had. */
static int set_limit(const struct step_rlimit *want) {
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit now;
        if (!str_eq(limits[i].name, want->name) || getrlimit((__rlimit_resource_t)limits[i].resource, &now))
            continue;
        rlim_t soft = want->soft == UINT64_MAX ? RLIM_INFINITY : (rlim_t)want->soft;
        struct rlimit new = {soft, soft > now.rlim_max ? soft : now.rlim_max};
        if (!setrlimit((__rlimit_resource_t)limits[i].resource, &new))
            return 0;
        int why = errno;
        new = (struct rlimit){soft < now.rlim_max ? soft : now.rlim_max, now.rlim_max};
        (void)setrlimit((__rlimit_resource_t)limits[i].resource, &new);
        return why;
    }
    return 0;
}

static void drop_capabilities(void) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    (void)syscall(SYS_capset, &head, none);
}

static void become_user(const struct step_plan *plan, int channel) {
    if (geteuid() != 0) {
        if (plan->uid != geteuid())
            give_up(channel, CHILD_BROKEN, 1, "the node agent is not root: it can run jobs of its own user alone");
        drop_capabilities();
        return;
    }
    _Static_assert(sizeof(gid_t) == sizeof(uint32_t), "groups are handed over as they are");
    prctl(PR_SET_KEEPCAPS, 0);
    if (setgroups(plan->n_groups, plan->groups))
        give_up(channel, CHILD_BROKEN, 1, "setgroups: %m");
    if (setresgid(plan->gid, plan->gid, plan->gid))
        give_up(channel, CHILD_BROKEN, 1, "setgid %u: %m", plan->gid);
    if (setresuid(plan->uid, plan->uid, plan->uid))
        give_up(channel, CHILD_BROKEN, 1, "setuid %u: %m", plan->uid);
    if (plan->uid != 0)
        drop_capabilities();
}

/* ---- directory and files ---- */

/* Makes the directories that lead to a file, as far as the user can. */
static void make_parents(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        (void)mkdir(path, 0777);
        *slash = '/';
    }
}

/* Where the work directory can't be entered, what was to be in it goes where the job goes. */
static const char *moved(const struct step_plan *plan, const char *path, bool has_dir) {
    size_t n = plan->work_dir ? strlen(plan->work_dir) : 0;
    return !has_dir && n && str_starts(path, plan->work_dir) && path[n] == '/' ? path + n + 1 : path;
}

/* Tasks of a step may share a file: each adds to it, and the first one has emptied it. */
static int open_output(const struct step_plan *plan, const char *path, bool keep, bool has_dir) {
    int flags = O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC | (plan->append || keep ? 0 : O_TRUNC) |
                (plan->append || plan->step_id ? O_APPEND : 0);
    path = moved(plan, path, has_dir);
    int fd = open(path, flags, 0666);
    if (fd < 0 && errno == ENOENT) {
        autofree char *copy = xstrdup(path);
        make_parents(copy);
        fd = open(path, flags, 0666);
    }
    return fd;
}

struct files {
    const char *in, *out, *err;
    bool keep_out, keep_err;
};

static struct files files_of(const struct step_plan *plan, const struct step_task *t) {
    if (t)
        return (struct files){t->std_in, t->std_out, t->err_to_out ? NULL : t->std_err, t->keep_out, t->keep_err};
    struct files f = {plan->std_in, plan->std_out, plan->std_err, false, false};
    if (f.err && str_eq(f.err, f.out ? f.out : "/dev/null"))
        f.err = NULL;
    return f;
}

/* Descriptors 0, 1, 2 are taken since the daemon's start, so what is opened here is above them. */
static void open_files(const struct step_plan *plan, const struct step_task *task, const struct child_ends *ends,
                       int channel, bool has_dir) {
    struct files f = files_of(plan, task);
    const char *in = f.in ? moved(plan, f.in, has_dir) : "/dev/null", *out = f.out ? f.out : "/dev/null";
    int fd = ends->in >= 0 ? ends->in : open(in, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        give_up(channel, CHILD_NO_FILE, 1, "could not open input file %s: %m", in);
    dup2(fd, 0);
    fd = ends->out >= 0 ? ends->out : open_output(plan, out, f.keep_out, has_dir);
    if (fd < 0)
        give_up(channel, CHILD_NO_FILE, 1, "could not open output file %s: %m", out);
    dup2(fd, 1);
    if (ends->err >= 0)
        fd = ends->err;
    else if (f.err && (fd = open_output(plan, f.err, f.keep_err, has_dir)) < 0)
        give_up(channel, CHILD_NO_FILE, 1, "could not open error file %s: %m", f.err);
    dup2(fd, 2);
    if (!task) /* what there is to say of a step goes to its client */
        tell(channel, CHILD_STDERR, 2, "");
}

/* The terminal becomes this session's. */
static void open_terminal(int tty, int channel) {
    if (ioctl(tty, TIOCSCTTY, 0))
        give_up(channel, CHILD_BROKEN, 1, "the terminal can't be taken: %m");
    for (int fd = 0; fd <= 2; fd++)
        dup2(tty, fd);
}

/* Returns errno of the directory that could not be entered. */
static int enter_dir(const struct step_plan *plan) {
    int why = plan->work_dir && chdir(plan->work_dir) ? errno : 0;
    if ((why || !plan->work_dir) && chdir("/tmp"))
        (void)!chdir("/");
    return why;
}

/* ---- exec ---- */

static bool is_task_pid(const char *entry) {
    return str_starts(entry, "SLURM_TASK_PID=") || str_starts(entry, "SPUR_TASK_PID=");
}

static void add_words(char **out, const char *const *list, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        out[i] = is_task_pid(list[i]) ? xasprintf("%.*s%d", (int)(strchr(list[i], '=') + 1 - list[i]), list[i],
                                                  (int)getpid())
                                      : xstrdup(list[i]);
}

static char **environment(const struct step_plan *plan, const struct step_task *task) {
    uint32_t more = task ? task->n_env : 0;
    char **out = xcalloc((size_t)plan->n_env + more + 1, sizeof(*out));
    add_words(out, plan->env, plan->n_env);
    if (more)
        add_words(out + plan->n_env, task->env, more);
    return out;
}

static char **arguments(const struct step_plan *plan, const struct step_task *task) {
    bool own = task && task->n_argv;
    uint32_t n = own ? task->n_argv : plan->n_argv;
    char **out = xcalloc((size_t)n + 1, sizeof(*out));
    add_words(out, own ? task->argv : plan->argv, n);
    return out;
}

/* Where the state directory is below one that is closed to the user (a home, a test's own), the script can't be reached
 * by its path: then the user gets a copy. `script_fd` was opened before privileges went. NULL: that failed too. */
static char *reachable_script(const char *path, int script_fd, int channel) {
    char dir[] = "/tmp/spur-script-XXXXXX", bytes[65536];
    if (!access(path, R_OK | X_OK) || errno != EACCES || script_fd < 0)
        return xstrdup(path);
    if (!mkdtemp(dir))
        return NULL;
    tell(channel, CHILD_COPY, -1, dir);
    char *copy = xasprintf("%s/" STEP_SCRIPT_FILE, dir);
    int fd = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    ssize_t n;
    while (fd >= 0 && (n = read(script_fd, bytes, sizeof(bytes))) > 0) {
        if (write(fd, bytes, (size_t)n) != n)
            return NULL;
    }
    if (fd < 0 || fchmod(fd, 0700))
        return NULL;
    close(fd);
    return copy;
}

void child_remove_copy(const char *dir, uint32_t uid) {
    struct stat st;
    autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) || st.st_uid != uid)
        return;
    (void)unlinkat(fd, STEP_SCRIPT_FILE, 0);
    (void)rmdir(dir);
}

/* What a person needs to know of a failed exec: a script that is there, but whose interpreter is not. */
static void explain_exec(const char *path, int why, char *out, size_t n) {
    char line[256] = "";
    ssize_t got = why == ENOENT ? file_read(path, line, sizeof(line)) : 0;
    line[strcspn(line, "\n")] = 0;
    if (got > 2 && str_starts(line, "#!"))
        snprintf(out, n, "execve(): bad interpreter(%s): %s", line + 2 + strspn(line + 2, " \t"), strerror(why));
    else
        snprintf(out, n, "execve(): %s: %s", path, strerror(why));
}

/* The script was just written, by a daemon that starts others beside this one: between its fork and its exec each of
 * those holds the descriptor that it was written through, and the kernel says ETXTBSY. That passes in a moment. */
static void exec_when_free(char **argv, char **envp) {
    const struct timespec pause = {.tv_nsec = 5000000};
    for (int tries = 0; tries < 2000; tries++) {
        execve(argv[0], argv, envp);
        if (errno != ETXTBSY)
            return;
        (void)nanosleep(&pause, NULL);
    }
}

/* A command without a slash is looked for where the task's PATH says. EACCES is remembered, as the shell does. */
static void exec_by_path(char **argv, char **envp) {
    const char *path = NULL;
    int why = ENOENT;
    for (char **entry = envp; *entry && !path; entry++)
        path = str_starts(*entry, "PATH=") ? *entry + 5 : NULL;
    for (const char *at = path; at && *at; at += strspn(at, ":")) {
        size_t n = strcspn(at, ":");
        autofree char *full = xasprintf("%.*s/%s", (int)n, at, argv[0]);
        at += n;
        if (access(full, X_OK) && errno != EACCES)
            continue;
        char *word = argv[0];
        argv[0] = full;
        exec_when_free(argv, envp);
        argv[0] = word;
        if (errno != ENOENT && errno != ENOTDIR)
            why = errno;
    }
    errno = why;
}

static void exec_task(const struct step_plan *plan, const struct step_task *task, int script_fd, int channel)
    __attribute__((noreturn));

static void exec_task(const struct step_plan *plan, const struct step_task *task, int script_fd, int channel) {
    char **argv = arguments(plan, task), **envp = environment(plan, task), text[400];
    bool found = true;
    if (!task && plan->login_shell)
        envp = login_environment(plan->login_shell, envp, &found);
    if (!found)
        stderr_line(2, "Unable to get user's local environment, running only with passed environment");
    if (!task)
        argv[0] = reachable_script(argv[0], script_fd, channel);
    if (!argv[0])
        give_up(channel, CHILD_BROKEN, 1, "the user can't reach the script, and there is no room for a copy in /tmp: %m");
    int kept = dup3(channel, 3, O_CLOEXEC) == 3 || channel == 3 ? 3 : channel;
    (void)syscall(SYS_close_range, kept + 1, ~0u, 0);
    if (strchr(argv[0], '/'))
        exec_when_free(argv, envp);
    else
        exec_by_path(argv, envp);
    int why = errno;
    explain_exec(argv[0], why, text, sizeof(text));
    stderr_line(2, "%s", text);
    give_up(kept, CHILD_NO_EXEC, why & 0x7f, "%s", text);
}

/* The CPU with that number among those that it has now. */
static int nth_cpu(const cpu_set_t *has, uint32_t n) {
    int count = CPU_COUNT(has);
    int left = count ? (int)(n % (uint32_t)count) : 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, has) && left-- == 0)
            return cpu;
    return 0;
}

static void tell_cpus(const struct step_plan *plan, const struct step_task *task, const cpu_set_t *set) {
    char mask[CPU_SETSIZE / 4 + 1];
    int top = CPU_SETSIZE / 4 - 1, n = 0;
    for (; top > 0 && !(CPU_ISSET(top * 4, set) || CPU_ISSET(top * 4 + 1, set) || CPU_ISSET(top * 4 + 2, set) || CPU_ISSET(top * 4 + 3, set)); top--) {
    }
    for (; top >= 0; top--) {
        int digit = 0;
        for (int bit = 0; bit < 4; bit++)
            digit |= CPU_ISSET(top * 4 + bit, set) ? 1 << bit : 0;
        mask[n++] = "0123456789ABCDEF"[digit];
    }
    mask[n] = 0;
    uint32_t local = (uint32_t)(task - plan->tasks);
    char line[CPU_SETSIZE / 4 + 256];
    int len = snprintf(line, sizeof(line), "cpu-bind=MASK - %s, task %2u %2u [%d]: mask 0x%s%s\n", plan->node_name ? plan->node_name : "", task->rank,
                       local, getpid(), mask, task->n_cpus ? " set" : "");
    if (len > 0 && write(2, line, (size_t)len) < 0)
        return;
}

/* --cpu-bind. Where it can't be, the task runs as it would have without, and says so. */
static void bind_cpus(const struct step_plan *plan, const struct step_task *task) {
    cpu_set_t has, want;
    CPU_ZERO(&want);
    if ((!task->n_cpus && !task->tell_cpus) || sched_getaffinity(0, sizeof(has), &has))
        return;
    for (uint32_t i = 0; i < task->n_cpus; i++) {
        int cpu = task->cpu_by_rank ? nth_cpu(&has, task->cpus[i]) : (int)MIN(task->cpus[i], (uint32_t)CPU_SETSIZE);
        if (cpu < CPU_SETSIZE)
            CPU_SET(cpu, &want);
    }
    if (task->n_cpus && sched_setaffinity(0, sizeof(want), &want))
        stderr_line(2, "--cpu-bind: can't bind task %u: %s", task->rank, strerror(errno));
    if (task->tell_cpus && !sched_getaffinity(0, sizeof(has), &has))
        tell_cpus(plan, task, &has);
}

void child_run(const struct step_plan *plan, const struct step_task *task, const struct child_ends *ends, int channel) {
    char go;
    pid_t daemon = getppid();
    if (read(channel, &go, 1) != 1)
        _exit(1);
    setsid();
    reset_signals();
    (void)file_write("/proc/self/oom_score_adj", "0");
    int limit_errno[32] = {0};
    uint32_t n_limits = MIN(plan->n_rlimits, (uint32_t)ARRAY_LEN(limit_errno));
    for (uint32_t i = 0; i < n_limits; i++)
        limit_errno[i] = set_limit(&plan->rlimits[i]);
    int script_fd = task ? -1 : open(plan->argv[0], O_RDONLY | O_CLOEXEC);
    become_user(plan, channel);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* with its daemon goes the script; a change of user would have cleared this */
    if (getppid() != daemon)
        _exit(1);
    umask((mode_t)plan->umask & 0777);
    int dir_errno = enter_dir(plan);
    if (ends->tty >= 0)
        open_terminal(ends->tty, channel);
    else
        open_files(plan, task, ends, channel, !dir_errno);
    if (dir_errno)
        stderr_line(2, "couldn't chdir to `%s': %s: going to /tmp instead", plan->work_dir, strerror(dir_errno));
    for (uint32_t i = 0; i < n_limits; i++) {
        if (limit_errno[i])
            stderr_line(2, "Can't propagate RLIMIT_%s of %llu from submit host: %s", plan->rlimits[i].name,
                        (unsigned long long)plan->rlimits[i].soft, strerror(limit_errno[i]));
    }
    if (task)
        bind_cpus(plan, task);
    exec_task(plan, task, script_fd, channel);
}
