/* SPDX-License-Identifier: Apache-2.0
 *
 * A process gets into a version 2 group by being born there (clone3): moving one costs an RCU grace period and a
 * system-wide lock, tens of milliseconds on some kernels. Version 1 knows no other way than moving.
 */
#include "spurstepd/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurstepd/hierarchy.h"
#include "spurstepd/proc.h"

static int join(char *out, const char *a, const char *b) {
    return (size_t)snprintf(out, CONTAIN_PATH, "%s/%s", a, b) < CONTAIN_PATH ? 0 : -1;
}

static int group_set(const char *dir, const char *file, const char *value) {
    char path[CONTAIN_PATH];
    return join(path, dir, file) ? -1 : file_write(path, value);
}

/* MOUNT/spur/NAME; a name is no path. */
static int group_path(const struct hierarchy *h, const char *name, char out[CONTAIN_PATH]) {
    if ((size_t)snprintf(out, CONTAIN_PATH, "%s/spur/%s", h->mount, name) >= CONTAIN_PATH)
        return -1;
    for (char *c = out + strlen(h->mount) + 6; (c = strchr(c, '/'));)
        *c = '_';
    return 0;
}

/* The job's group, and in it the one of this run or step. */
static int job_path(const struct hierarchy *h, const struct step_plan *plan, char out[CONTAIN_PATH]) {
    char name[CONTAIN_PATH];
    if (plan->cgroup)
        return group_path(h, plan->cgroup, out);
    snprintf(name, sizeof(name), "%s-%u.%u", plan->node_name, plan->job_id, plan->start_no);
    return group_path(h, name, out);
}

static int run_path(const struct hierarchy *h, const struct step_plan *plan, char out[CONTAIN_PATH]) {
    char job[CONTAIN_PATH], own[32] = "batch";
    if (plan->step_id)
        snprintf(own, sizeof(own), "step_%u", plan->step_id - 1);
    return job_path(h, plan, job) ? -1 : join(out, job, own);
}

/* Where the limit goes: a batch run's is the whole job's on this node. */
static int limit_path(const struct hierarchy *h, const struct step_plan *plan, char out[CONTAIN_PATH]) {
    return plan->step_id ? run_path(h, plan, out) : job_path(h, plan, out);
}

/* Memory has to be handed down from the root, level by level. Fails where the root is not ours to change. */
static bool v2_memory(const struct hierarchy *h, const struct step_plan *plan) {
    char path[CONTAIN_PATH], job[CONTAIN_PATH];
    return !group_set(h->mount, "cgroup.subtree_control", "+memory") && !join(path, h->mount, "spur") &&
           !group_set(path, "cgroup.subtree_control", "+memory") && !job_path(h, plan, job) &&
           !group_set(job, "cgroup.subtree_control", "+memory");
}

static bool set_memory_v2(const char *dir, uint64_t mb) {
    char bytes[32];
    snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)mb << 20);
    if (group_set(dir, "memory.max", bytes))
        return false;
    (void)group_set(dir, "memory.swap.max", "0"); /* absent where the machine has no swap accounting */
    return true;
}

static bool set_memory_v1(const char *dir, uint64_t mb) {
    char bytes[32];
    snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)mb << 20);
    if (group_set(dir, "memory.limit_in_bytes", bytes))
        return false;
    (void)group_set(dir, "memory.memsw.limit_in_bytes", bytes);
    return true;
}

static int open_v2(struct contain *c, const struct hierarchies *hs, const struct step_plan *plan) {
    char daemons[CONTAIN_PATH], kill_file[CONTAIN_PATH];
    const struct hierarchy *h = hierarchies_with(hs, HIER_V2);
    if (!h || run_path(h, plan, c->dir) || group_make(c->dir))
        return -1;
    if (!join(kill_file, c->dir, "cgroup.kill") && access(kill_file, W_OK)) {
        (void)group_remove(c->dir); /* before Linux 5.14: version 1 or the process tree do it as well */
        return -1;
    }
    c->kind = STEP_CONTAIN_V2;
    c->dir_fd = open(c->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!group_path(h, "daemons", daemons) && !group_make(daemons))
        c->daemons_fd = open(daemons, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char limit[CONTAIN_PATH];
    if (plan->mem_limit_mb && v2_memory(h, plan) && !limit_path(h, plan, limit) && set_memory_v2(limit, plan->mem_limit_mb)) {
        memcpy(c->memory, c->dir, sizeof(c->memory));
        c->memory_is_v2 = true;
    }
    (void)limit_path(h, plan, c->whole);
    return c->dir_fd >= 0 ? 0 : -1;
}

static int open_v1(struct contain *c, const struct hierarchies *hs, const struct step_plan *plan) {
    static const unsigned order[] = {HIER_FREEZER, HIER_PIDS, HIER_SYSTEMD, HIER_MEMORY};
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const struct hierarchy *h = hierarchies_with(hs, order[i]);
        if (!h || run_path(h, plan, c->dir) || group_make(c->dir))
            continue;
        c->kind = STEP_CONTAIN_V1;
        c->dir_is_freezer = order[i] == HIER_FREEZER;
        (void)limit_path(h, plan, c->whole);
        return 0;
    }
    c->dir[0] = 0;
    return -1;
}

/* A limit by version 1 goes with either kind of holding on: a machine may have memory there and the rest elsewhere. */
static void add_memory_v1(struct contain *c, const struct hierarchies *hs, const struct step_plan *plan) {
    const struct hierarchy *h = hierarchies_with(hs, HIER_MEMORY);
    char job[CONTAIN_PATH], limit[CONTAIN_PATH];
    if (!h || c->memory_is_v2 || job_path(h, plan, job) || (!plan->mem_limit_mb && access(job, F_OK)))
        return; /* a step without a limit of its own counts for its job's */
    if (group_make(job))
        return;
    (void)group_set(job, "memory.use_hierarchy", "1"); /* where that is not so anyway */
    if (run_path(h, plan, c->memory) || limit_path(h, plan, limit) || group_make(c->memory) ||
        (plan->mem_limit_mb && !set_memory_v1(limit, plan->mem_limit_mb)))
        c->memory[0] = 0;
}

/* Numbers of the devices that the run may not open. */
static void deny_devices(struct contain *c, const struct hierarchies *hs, const struct step_plan *plan) {
    const struct hierarchy *h = hierarchies_with(hs, HIER_DEVICES);
    if (!plan->n_denied || !h || run_path(h, plan, c->devices) || group_make(c->devices)) {
        c->devices[0] = 0;
        return;
    }
    for (uint32_t i = 0; i < plan->n_denied; i++) {
        char rule[64];
        struct stat st;
        if (stat(plan->denied[i], &st) || (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode)))
            continue;
        snprintf(rule, sizeof(rule), "%c %u:%u rwm", S_ISCHR(st.st_mode) ? 'c' : 'b', major(st.st_rdev), minor(st.st_rdev));
        (void)group_set(c->devices, "devices.deny", rule);
    }
}

static void describe(struct contain *c) {
    const char *kind = c->kind == STEP_CONTAIN_V2   ? "cgroup v2"
                       : c->dir_is_freezer          ? "cgroup v1 freezer"
                       : c->kind == STEP_CONTAIN_V1 ? "cgroup v1"
                                                    : "process tree";
    snprintf(c->text, sizeof(c->text), "%s%s", kind, c->memory[0] ? " with memory" : "");
}

int contain_open(struct contain *c, const struct step_plan *plan, struct err *e) {
    struct hierarchies hs;
    enum step_containment want = (enum step_containment)plan->containment;
    *c = (struct contain){.dir_fd = -1, .daemons_fd = -1, .kind = STEP_CONTAIN_PROCESS};
    hierarchies_find(&hs);
    int code = 0;
    if (want == STEP_CONTAIN_V2)
        code = open_v2(c, &hs, plan);
    else if (want == STEP_CONTAIN_V1)
        code = open_v1(c, &hs, plan);
    else if (want == STEP_CONTAIN_AUTO && open_v2(c, &hs, plan) && open_v1(c, &hs, plan))
        c->kind = STEP_CONTAIN_PROCESS;
    if (code) {
        contain_fini(c);
        return err_set(e, E_LAUNCH, "no cgroup of version %d can be made on this node", want == STEP_CONTAIN_V2 ? 2 : 1);
    }
    if (c->kind == STEP_CONTAIN_PROCESS) {
        c->dir[0] = c->whole[0] = 0;
    } else {
        add_memory_v1(c, &hs, plan);
        deny_devices(c, &hs, plan);
    }
    describe(c);
    return 0;
}

void contain_reopen(struct contain *c, const struct step_entry *daemon) {
    *c = (struct contain){.dir_fd = -1, .daemons_fd = -1, .kind = (enum step_containment)daemon->containment};
    if (daemon->n_cgroups > 0)
        snprintf(c->dir, sizeof(c->dir), "%s", daemon->cgroups[0]);
    if (daemon->n_cgroups > 1)
        snprintf(c->memory, sizeof(c->memory), "%s", daemon->cgroups[1]);
    if (daemon->n_cgroups > 2)
        snprintf(c->devices, sizeof(c->devices), "%s", daemon->cgroups[2]);
    memcpy(c->whole, c->dir, sizeof(c->whole));
    if (!c->dir[0])
        c->kind = STEP_CONTAIN_PROCESS;
    c->dir_is_freezer = strstr(c->dir, "/freezer/") != NULL;
}

void contain_fini(struct contain *c) {
    if (c->dir_fd >= 0)
        close(c->dir_fd);
    if (c->daemons_fd >= 0)
        close(c->daemons_fd);
    c->dir_fd = c->daemons_fd = -1;
}

/* ---- birth ---- */

static pid_t fork_into(int group_fd) {
    if (group_fd >= 0) {
        struct clone_args args = {
            .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)group_fd};
        pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
        if (pid >= 0 || (errno != ENOSYS && errno != EINVAL && errno != EPERM && errno != EACCES))
            return pid;
    }
    return fork();
}

pid_t contain_fork_daemon(const struct contain *c) {
    return fork_into(c->daemons_fd);
}

void contain_move_daemon(const struct contain *c) {
    struct hierarchies hs;
    hierarchies_find(&hs);
    for (unsigned i = 0; i < hs.n; i++) {
        char dir[CONTAIN_PATH];
        bool is_there = (hs.h[i].is & HIER_V2) && c->daemons_fd >= 0; /* born there */
        if (hs.h[i].at_root || is_there || c->kind == STEP_CONTAIN_PROCESS)
            continue;
        if (!group_path(&hs.h[i], "daemons", dir) && !group_make(dir))
            (void)group_set(dir, "cgroup.procs", "0");
    }
}

static int place(const struct contain *c, pid_t pid, struct err *e) {
    char text[32];
    snprintf(text, sizeof(text), "%d", (int)pid);
    if (c->kind == STEP_CONTAIN_V1 && group_set(c->dir, "cgroup.procs", text))
        return err_sys(e, "cannot put the job into %s", c->dir);
    if (c->memory[0] && !c->memory_is_v2 && strcmp(c->memory, c->dir) != 0 &&
        group_set(c->memory, "cgroup.procs", text))
        return err_sys(e, "cannot put the job into %s", c->memory);
    if (c->devices[0] && group_set(c->devices, "cgroup.procs", text))
        return err_sys(e, "cannot put the job into %s", c->devices);
    return 0;
}

pid_t contain_fork_job(const struct contain *c, struct err *e) {
    pid_t pid = fork_into(c->dir_fd);
    if (pid < 0)
        err_sys(e, "fork");
    if (pid > 0 && place(c, pid, e)) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -1;
    }
    return pid;
}

/* ---- the processes ---- */

static void add_pids_of(const char *dir, void *arg) {
    char path[CONTAIN_PATH];
    FILE *f = join(path, dir, "cgroup.procs") ? NULL : fopen(path, "re");
    int pid;
    while (f && fscanf(f, "%d", &pid) == 1) {
        if (pid > 0)
            pids_add(arg, pid);
    }
    if (f)
        fclose(f);
}

/* A job of root can leave its cgroup, but not the tree below this daemon. */
static void find_pids(const struct contain *c, struct pids *out) {
    struct pids tree = {0};
    if (c->dir[0])
        group_each(c->dir, add_pids_of, out);
    proc_descendants(getpid(), &tree);
    for (size_t i = 0; i < tree.n; i++) {
        if (!pids_has(out, tree.p[i]))
            pids_add(out, tree.p[i]);
    }
    pids_fini(&tree);
}

static void send_all(const struct contain *c, int signo) {
    struct pids all = {0};
    find_pids(c, &all);
    for (size_t i = 0; i < all.n; i++)
        (void)kill(all.p[i], signo);
    pids_fini(&all);
}

void contain_signal(const struct contain *c, int signo) {
    send_all(c, signo);
}

void contain_freeze(const struct contain *c, bool freeze) {
    bool done = false;
    if (c->kind == STEP_CONTAIN_V2)
        done = !group_set(c->whole, "cgroup.freeze", freeze ? "1" : "0");
    else if (c->dir_is_freezer)
        done = !group_set(c->whole, "freezer.state", freeze ? "FROZEN" : "THAWED");
    if (!done)
        send_all(c, freeze ? SIGSTOP : SIGCONT);
}

void contain_kill(const struct contain *c) {
    if (c->kind == STEP_CONTAIN_V2)
        (void)group_set(c->dir, "cgroup.kill", "1");
    if (c->dir_is_freezer)
        (void)group_set(c->dir, "freezer.state", "FROZEN"); /* so that nobody forks between reading and killing */
    send_all(c, SIGKILL);
    if (c->dir_is_freezer)
        (void)group_set(c->dir, "freezer.state", "THAWED");
}

static void add_busy(const char *dir, void *arg) {
    struct pids some = {0};
    add_pids_of(dir, &some);
    *(size_t *)arg += some.n;
    pids_fini(&some);
}

bool contain_is_empty(const struct contain *c) {
    siginfo_t info = {0};
    if (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || errno != ECHILD)
        return false; /* children there, dead or alive */
    size_t busy = 0;
    if (c->dir[0])
        group_each(c->dir, add_busy, &busy);
    return !busy;
}

uint32_t contain_count(const struct contain *c) {
    struct pids all = {0};
    find_pids(c, &all);
    uint32_t n = (uint32_t)all.n;
    pids_fini(&all);
    return n;
}

uint32_t contain_pids(const struct contain *c, pid_t *out, uint32_t n) {
    struct pids all = {0};
    find_pids(c, &all);
    uint32_t n_out = 0;
    for (size_t i = 0; i < all.n && n_out < n; i++)
        out[n_out++] = all.p[i];
    pids_fini(&all);
    return n_out;
}

/* ---- memory, end ---- */

uint64_t contain_oom_kills(const struct contain *c) {
    char path[CONTAIN_PATH], text[1024];
    if (!c->memory[0] || join(path, c->memory, c->memory_is_v2 ? "memory.events" : "memory.oom_control") ||
        file_read(path, text, sizeof(text)) <= 0)
        return 0;
    const char *at = strstr(text, "oom_kill ");
    return at ? strtoull(at + 9, NULL, 10) : 0;
}

uint64_t contain_peak_kb(const struct contain *c) {
    char path[CONTAIN_PATH], text[64];
    if (!c->memory[0] || join(path, c->memory, c->memory_is_v2 ? "memory.peak" : "memory.max_usage_in_bytes") ||
        file_read(path, text, sizeof(text)) <= 0)
        return 0;
    return strtoull(text, NULL, 10) / 1024;
}

/* The group, and the job's above it when this was the last one there. */
static bool remove_group(const char *dir) {
    char job[CONTAIN_PATH];
    if (!group_remove(dir))
        return false;
    memcpy(job, dir, CONTAIN_PATH);
    char *slash = strrchr(job, '/');
    if (slash) {
        *slash = 0;
        (void)rmdir(job);
    }
    return true;
}

bool contain_remove(const struct contain *c) {
    bool all = true;
    if (c->dir[0])
        all = remove_group(c->dir);
    if (c->memory[0] && strcmp(c->memory, c->dir) != 0)
        all = remove_group(c->memory) && all;
    if (c->devices[0])
        all = remove_group(c->devices) && all;
    return all;
}

void contain_remove_planned(const struct step_plan *plan) {
    struct hierarchies hs;
    char dir[CONTAIN_PATH];
    hierarchies_find(&hs);
    for (unsigned i = 0; i < hs.n; i++) {
        if (!run_path(&hs.h[i], plan, dir))
            (void)remove_group(dir);
    }
}

uint32_t contain_kill_marked(const char *run_id) {
    char line[512];
    struct pids found = {0};
    snprintf(line, sizeof(line), "SPUR_RUN_ID=%s", run_id);
    proc_marked(line, &found);
    for (size_t i = 0; i < found.n; i++)
        (void)kill(found.p[i], SIGKILL);
    uint32_t n = (uint32_t)found.n;
    pids_fini(&found);
    return n;
}
