/* SPDX-License-Identifier: Apache-2.0
 *
 * The run of a daemon that is gone: killed, or never begun, or of an earlier life of this machine. Whoever holds the
 * log's lock may speak for the run; so no daemon can start behind a sweep's back, or a sweep behind a daemon's.
 */
#include "spurstepd/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "spurstepd/proc.h"

#define LOG_MAX (1u << 20)
#define SWEEP_MS 10000

static int read_log(int fd, struct arena *a, struct step_history *out, struct err *e) {
    struct stat st;
    if (fstat(fd, &st))
        return err_sys(e, "stat the run's log");
    size_t n = MIN((size_t)st.st_size, (size_t)LOG_MAX);
    uint8_t *bytes = arena_alloc(a, n + 1);
    if (pread(fd, bytes, n, 0) != (ssize_t)n)
        return err_sys(e, "read the run's log");
    return ftruncate(fd, (off_t)step_log_read(bytes, n, a, out)) ? err_sys(e, "mend the run's log") : 0;
}

/* False: something would not die. */
static bool kill_rest(const struct step_entry *daemon, const char *run_id) {
    struct contain c;
    contain_reopen(&c, daemon);
    int64_t until = boot_ms() + SWEEP_MS;
    for (int64_t pause = 1; boot_ms() < until; pause = MIN(pause * 2, 100)) {
        uint32_t marked = run_id && *run_id ? contain_kill_marked(run_id) : 0;
        if (contain_count(&c))
            contain_kill(&c);
        else if (!marked) {
            (void)contain_remove(&c);
            return true;
        }
        poll(NULL, 0, (int)pause);
    }
    return false;
}

static void judge(const struct step_history *h, const struct step_plan *plan, struct step_result *out) {
    char boot_id[64];
    proc_boot_id(boot_id);
    out->end_ms = wall_ms();
    if (!h->has_daemon) {
        out->never_started = true;
        out->text = "the node agent stopped before the job was started";
        if (plan->node_name)
            contain_remove_planned(plan);
        return;
    }
    out->start_ms = h->daemon.at_ms;
    if (h->daemon.boot_id && !str_eq(h->daemon.boot_id, boot_id)) {
        out->node_failed = true;
        out->text = "node rebooted";
        return;
    }
    if (!kill_rest(&h->daemon, plan->run_id)) {
        out->drain_node = true;
        out->text = "Kill task failed: processes of a run without step daemon live on";
    } else if (!h->has_exit) {
        out->text = "the step daemon was killed";
    }
    out->wait_status = h->has_exit ? h->exit.wait_status : SIGKILL;
    if (h->has_exit)
        out->end_ms = h->exit.at_ms;
}

static int read_plan_for_sweep(struct arena *a, struct step_plan *out) {
    autoclose int fd = open(STEP_PLAN_FILE, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || st.st_size > STEP_PLAN_MAX)
        return E_CORRUPT;
    uint8_t *bytes = arena_alloc(a, (size_t)st.st_size + 1);
    if (read(fd, bytes, (size_t)st.st_size) != st.st_size)
        return E_CORRUPT;
    return rec_decode(step_plan_rec(), bytes, (size_t)st.st_size, a, out, NULL);
}

int sweep(struct err *e) {
    auto_arena a = {0};
    struct step_plan plan = {0};
    struct step_history h;
    autoclose int fd = open(STEP_LOG_FILE, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "open the run's log");
    if (flock(fd, LOCK_EX | LOCK_NB))
        return err_set(e, E_BUSY, "the run's step daemon lives");
    int code = read_log(fd, &a, &h, e);
    if (code || h.has_result)
        return code;
    if (read_plan_for_sweep(&a, &plan))
        plan = (struct step_plan){0}; /* torn by a crash: then nothing was started from it */
    struct step_result result = {0};
    judge(&h, &plan, &result);
    struct step_entry entry = {.kind = STEP_LOG_RESULT, .at_ms = result.end_ms, .result = &result};
    return log_append(fd, &entry, true, e);
}
