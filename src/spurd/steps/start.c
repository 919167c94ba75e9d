/* SPDX-License-Identifier: Apache-2.0
 *
 *   pool: look up the user, plan, write the directory, start the daemon      loop: connect, answer
 */
#include "spurd/steps/inside.h"

#include <stdlib.h>

#include "base/mem.h"
#include "spurd/launch/step.h"
#include "spurd/launch/user.h"

struct starting {
    struct task task;
    uint64_t key;
    struct buf request;
    steps_started_fn fn;
    void *arg;
    int code;
    struct err why;
    uint32_t pid, kill_wait_ms;
};

/* A step: from the ticket and what the client wants executed. */
static int plan_step(struct starting *t, const char *dir, struct arena *a) {
    struct stream_open open;
    struct step_ticket k;
    struct step_plan plan;
    struct user_facts user;
    struct launch_facts facts = t->task.s->conf.facts;
    int code = rec_decode(stream_open_rec(), t->request.p, t->request.n, a, &open, &t->why);
    if (!code)
        code = rec_decode(step_ticket_rec(), open.ticket, open.n_ticket, a, &k, &t->why);
    if (!code)
        code = user_find(k.uid, k.gid, a, &user, &t->why);
    if (code)
        return code;
    facts.run_dir = dir;
    facts.cgroup = arena_printf(a, "%s-%u.%u", t->task.s->conf.cgroup_prefix, k.job_id, k.start_no);
    facts.home = user.home;
    facts.shell = user.shell;
    facts.groups = user.groups;
    facts.n_groups = user.n_groups;
    code = launch_step_plan(&k, open.launch, &facts, a, &plan, &t->why);
    t->kill_wait_ms = code ? 0 : plan.kill_wait_ms;
    return code ? code : rundir_create(t->task.s->conf.state_dir, t->key, &plan, NULL, 0, &t->why);
}

static int plan_and_write(struct starting *t, const struct launch_request *q, const char *dir, struct arena *a) {
    struct launch_facts facts = t->task.s->conf.facts;
    struct step_plan plan;
    struct user_facts user;
    int code = user_find(q->spec ? q->spec->uid : 0, q->spec ? q->spec->gid : 0, a, &user, &t->why);
    if (code)
        return code;
    facts.run_dir = dir;
    facts.cgroup = arena_printf(a, "%s-%u.%u", t->task.s->conf.cgroup_prefix, q->job_id, q->start_no);
    facts.home = user.home;
    facts.shell = user.shell;
    facts.groups = user.groups;
    facts.n_groups = user.n_groups;
    code = launch_plan(q, &facts, a, &plan, &t->why);
    t->kill_wait_ms = code ? 0 : plan.kill_wait_ms;
    return code ? code
                : rundir_create(t->task.s->conf.state_dir, t->key, &plan, plan.n_argv ? q->script : NULL, q->n_script,
                                &t->why);
}

/* The daemon did not say that it is ready. Either it can be kept from ever starting (the sweep writes a result, and
 * then the directory goes), or it runs after all. */
static void undo_or_accept(struct starting *t, const char *dir) {
    struct err e;
    auto_arena a = {0};
    struct step_history h;
    int code = program_sweep(t->task.s->program, dir, &e);
    if (code == 0) {
        rundir_remove(t->task.s->conf.state_dir, t->key);
        return;
    }
    if (!rundir_read_log(t->task.s->conf.state_dir, t->key, &a, &h, NULL) && h.has_daemon) {
        t->code = 0;
        t->pid = h.daemon.pid;
    }
}

static void start_work(void *arg) {
    struct starting *t = arg;
    auto_arena a = {0};
    struct launch_request q;
    autofree char *dir = rundir_path(t->task.s->conf.state_dir, t->key);
    if (run_step(t->key))
        t->code = plan_step(t, dir, &a);
    else
        t->code = rec_decode(launch_request_rec(), t->request.p, t->request.n, &a, &q, &t->why);
    if (!t->code && !run_step(t->key))
        t->code = plan_and_write(t, &q, dir, &a);
    if (t->code == E_SYS || t->code == E_FULL) /* of this node; to the controller it is a launch that failed */
        t->code = t->why.code = E_LAUNCH;
    if (t->code)
        return;
    t->code = program_run(t->task.s->program, dir, &t->pid, &t->why);
    if (t->code)
        undo_or_accept(t, dir);
}

static void start_done(void *arg) {
    struct starting *t = arg;
    struct steps_local *s = t->task.s;
    if (!s->stopped) {
        if (!t->code)
            steps_attach(steps_one_new(s, t->key));
        t->fn(t->arg, t->code, &t->why, t->pid, t->kill_wait_ms);
    }
    steps_task_free(&t->task);
}

static void starting_free(struct task *task) {
    struct starting *t = (struct starting *)task;
    buf_fini(&t->request);
    free(t);
}

void steps_start(void *impl, uint64_t key, struct buf request, steps_started_fn fn, void *arg) {
    struct steps_local *s = impl;
    struct starting *t = xnew(struct starting);
    *t = (struct starting){.task.free = starting_free, .key = key, .request = request, .fn = fn, .arg = arg};
    steps_task_run(s, &t->task, start_work, start_done);
}
