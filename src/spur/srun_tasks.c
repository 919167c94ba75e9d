/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of the tasks, and how it is told: those of one node that end alike within a moment in one line.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/mem.h"
#include "spur/srun.h"

enum { TASK_NOT_YET, TASK_RUNS, TASK_OVER };

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void srun_tasks_init(struct srun_tasks *t, const struct cli *c, const struct step *step) {
    *t = (struct srun_tasks){.c = c, .step = step};
    for (uint32_t i = 0; i < step->n_nodes; i++)
        for (uint32_t k = 0; k < step->nodes[i].n_ranks; k++)
            t->n_tasks = MAX(t->n_tasks, step->nodes[i].ranks[k] + 1);
    t->state = xcalloc(MAX(t->n_tasks, 1u), 1);
    t->node = xcalloc(MAX(t->n_tasks, 1u), sizeof(*t->node));
    for (uint32_t i = 0; i < step->n_nodes; i++)
        for (uint32_t k = 0; k < step->nodes[i].n_ranks; k++)
            t->node[step->nodes[i].ranks[k]] = i;
}

void srun_tasks_fini(struct srun_tasks *t) {
    for (size_t i = 0; i < t->exits.n; i++)
        vec_fini(&t->exits.p[i].ranks);
    vec_fini(&t->exits);
    free(t->state);
    free(t->node);
}

void srun_tasks_started(struct srun_tasks *t, uint32_t rank) {
    if (rank < t->n_tasks && t->state[rank] == TASK_NOT_YET)
        t->state[rank] = TASK_RUNS;
}

/* "0-2,5" */
static void print_ranks(const uint32_t *r, size_t n, struct str *out) {
    for (size_t i = 0; i < n;) {
        size_t k = i;
        while (k + 1 < n && r[k + 1] == r[k] + 1)
            k++;
        str_addf(out, k > i ? "%s%u-%u" : "%s%u", i ? "," : "", r[i], r[k]);
        i = k + 1;
    }
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void keep_worst(struct srun_tasks *t, uint32_t status) {
    int w = (int)status, code = WIFSIGNALED(w) ? 128 + WTERMSIG(w) : WEXITSTATUS(w);
    if (code > t->exit_code) {
        t->exit_code = code;
        t->worst_status = status;
    }
    t->any_killed |= WIFSIGNALED(w) && (WTERMSIG(w) == SIGKILL || WTERMSIG(w) == SIGTERM);
    t->any_bad |= code != 0;
}

static void add_exit(struct srun_tasks *t, uint32_t rank, uint32_t status, bool oom) {
    uint32_t node = t->node[rank];
    size_t i = 0;
    while (i < t->exits.n && (t->exits.p[i].node != node || t->exits.p[i].status != status || t->exits.p[i].out_of_memory != oom))
        i++;
    if (i == t->exits.n)
        vec_push(&t->exits, (struct srun_exits){.node = node, .status = status, .out_of_memory = oom});
    vec_push(&t->exits.p[i].ranks, rank);
    if (!t->untold_ms)
        t->untold_ms = now_ms();
}

void srun_tasks_exited(struct srun_tasks *t, const struct stream_exit *x) {
    if (x->task >= t->n_tasks || t->state[x->task] == TASK_OVER)
        return;
    t->state[x->task] = TASK_OVER;
    t->n_over++;
    if (!t->first_over_ms)
        t->first_over_ms = now_ms();
    keep_worst(t, x->wait_status);
    if (x->wait_status || x->out_of_memory)
        add_exit(t, x->task, x->wait_status, x->out_of_memory);
}

void srun_tasks_lost(struct srun_tasks *t, uint32_t node) {
    for (uint32_t r = 0; r < t->n_tasks; r++) {
        if (t->node[r] != node || t->state[r] == TASK_OVER)
            continue;
        t->state[r] = TASK_OVER;
        t->n_over++;
        keep_worst(t, SIGKILL);
        t->any_killed = false; /* nobody killed it by a signal: the node is gone */
    }
}

static void tell(const struct srun_tasks *t, struct srun_exits *x) {
    auto_str line = {0};
    int w = (int)x->status;
    qsort(x->ranks.p, x->ranks.n, sizeof(*x->ranks.p), compare);
    str_addf(&line, "%s: task%s ", t->step->nodes[x->node].name, x->ranks.n > 1 ? "s" : "");
    print_ranks(x->ranks.p, x->ranks.n, &line);
    if (x->out_of_memory)
        str_add(&line, ": Out Of Memory");
    else if (WIFSIGNALED(w))
        str_addf(&line, ": %s%s", strsignal(WTERMSIG(w)), WCOREDUMP(w) ? " (core dumped)" : "");
    else
        str_addf(&line, ": Exited with exit code %d", WEXITSTATUS(w));
    cli_error(t->c, "%s", str_text(&line));
}

void srun_tasks_tell(struct srun_tasks *t, uint32_t node) {
    for (size_t i = 0; i < t->exits.n;) {
        if (node != UINT32_MAX && t->exits.p[i].node != node) {
            i++;
            continue;
        }
        if (!t->is_silent)
            tell(t, &t->exits.p[i]);
        vec_fini(&t->exits.p[i].ranks);
        vec_remove(&t->exits, i);
    }
    if (!t->exits.n)
        t->untold_ms = 0;
}

void srun_step_name(const struct step *st, struct str *out) {
    str_addf(out, "StepId=%u.", st->job_id);
    step_print_id(st->id, out);
}

void srun_tasks_status(const struct srun_tasks *t) {
    static const char *const word[] = {"not started", "running", "exited"};
    static const uint8_t order[] = {TASK_NOT_YET, TASK_RUNS, TASK_OVER};
    uint32_t *ranks = xcalloc(MAX(t->n_tasks, 1u), sizeof(*ranks));
    for (size_t k = 0; k < ARRAY_LEN(order); k++) {
        size_t n = 0;
        for (uint32_t r = 0; r < t->n_tasks; r++)
            if (t->state[r] == order[k])
                ranks[n++] = r;
        if (!n)
            continue;
        auto_str line = {0};
        srun_step_name(t->step, &line);
        str_addf(&line, " task%s ", n > 1 ? "s" : "");
        print_ranks(ranks, n, &line);
        cli_say(t->c, "%s: %s", str_text(&line), word[order[k]]);
    }
    free(ranks);
}
