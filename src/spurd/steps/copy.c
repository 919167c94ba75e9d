/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of sbcast: `spurstepd copy` takes it from the connection, as the user.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "spurd/launch/user.h"
#include "spurd/steps/inside.h"

struct copying {
    struct task task;
    struct steps_copy what;
    struct buf rest;
    steps_copied_fn fn;
    void *arg;
    int code;
    struct err why;
};

static void copy_work(void *arg) {
    struct copying *c = arg;
    auto_arena a = {0};
    auto_buf bytes = {0};
    struct user_facts user;
    c->code = user_find(c->what.uid, c->what.gid, &a, &user, &c->why);
    if (c->code)
        return;
    struct step_copy q = {.uid = c->what.uid, .gid = c->what.gid, .groups = user.groups, .n_groups = user.n_groups,
                          .rest = c->rest.p, .n_rest = (uint32_t)c->rest.n};
    rec_encode(step_copy_rec(), &q, &bytes);
    c->code = program_copy(c->task.s->program, c->what.fd, bytes.p, bytes.n, &c->why);
}

static void copy_done(void *arg) {
    struct copying *c = arg;
    if (!c->task.s->stopped)
        c->fn(c->arg, c->code, &c->why);
    steps_task_free(&c->task);
}

static void copying_free(struct task *task) {
    struct copying *c = (struct copying *)task;
    close(c->what.fd);
    buf_fini(&c->rest);
    free(c);
}

void steps_local_copy(struct steps_local *s, const struct steps_copy *what, steps_copied_fn fn, void *arg) {
    struct copying *c = xnew(struct copying);
    *c = (struct copying){.task.free = copying_free, .what = *what, .fn = fn, .arg = arg};
    c->what.fd = fcntl(what->fd, F_DUPFD_CLOEXEC, 0);
    buf_add(&c->rest, what->rest, what->n_rest);
    steps_task_run(s, &c->task, copy_work, copy_done);
}
