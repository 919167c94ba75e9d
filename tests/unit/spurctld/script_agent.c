/* SPDX-License-Identifier: Apache-2.0 */
#include "script_agent.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static void note(struct vscript *s, enum wire_method m, const void *q) {
    const struct terminate_request *t = q;
    const struct launch_request *l = q;
    s->n_launches += m == WIRE_Agent_Launch;
    s->n_terminates += m == WIRE_Agent_Terminate;
    s->n_signals += m == WIRE_Agent_Signal;
    if (m == WIRE_Agent_Signal) {
        s->signal = *(const struct signal_request *)q;
        s->signal.node_name = NULL;
    }
    if (m == WIRE_Agent_Suspend) {
        const struct suspend_run_request *sr = q;
        s->n_suspends += !sr->resume;
        s->n_resumes += sr->resume;
    }
    if (m == WIRE_Agent_Launch)
        s->launch = (struct launch_request){.job_id = l->job_id, .start_no = l->start_no,
                                            .node_index = l->node_index, .n_nodes = l->n_nodes,
                                            .n_script = l->n_script, .n_env = l->n_env,
                                            .time_limit_min = l->time_limit_min};
    if (m == WIRE_Agent_Launch)
        s->launch_task = l->array ? l->array->task : 0;
    if (m == WIRE_Agent_Terminate) {
        s->n_step_ends += t->step_id != 0;
        s->ended_step = t->step_id ? t->step_id - 1 : s->ended_step;
        snprintf(s->why, sizeof(s->why), "%s", t->why ? t->why : "");
        s->kill_wait_secs = t->kill_wait_secs;
    }
}

void vscript_forget(struct vscript *s, uint32_t job_id, uint32_t start_no) {
    for (uint32_t i = 0; i < s->n_runs; i++)
        if (s->runs[i].job_id == job_id && s->runs[i].start_no == start_no)
            s->runs[i--] = s->runs[--s->n_runs];
}

static void keep_run(struct vscript *s, const struct launch_request *q) {
    vscript_forget(s, q->job_id, q->start_no);
    must(s->n_runs < ARRAY_LEN(s->runs));
    s->runs[s->n_runs++] = (struct run_ref){q->job_id, q->start_no, RUN_RUNNING};
}

static void serve_script(void *ctx, struct vrequest *rq) {
    struct vscript *s = ctx;
    auto_arena a = {0};
    static const enum wire_method methods[] = {WIRE_Agent_Launch, WIRE_Agent_Terminate, WIRE_Agent_Signal,
                                               WIRE_Agent_Suspend};
    enum wire_method m = WIRE_N_METHODS;
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(rq->method, wire_method(methods[i])->path) == 0)
            m = methods[i];
    void *q = arena_alloc(&a, wire_method(m)->request()->size);
    must(rec_decode(wire_method(m)->request(), rq->message.p, rq->message.n, &a, q, NULL) == 0);
    note(s, m, q);
    struct vanswer an = s->fn(s->ctx, s, m, q);
    if (m == WIRE_Agent_Launch && (an.is_taken || (!an.never && !an.code)))
        keep_run(s, q);
    if (an.never)
        vrequest_drop(rq);
    else
        vrequest_reply(rq, an.code, an.text, NULL, 0);
}

void vscript_init(struct vscript *s, struct vworld *w, const char *name, vscript_fn fn, void *ctx) {
    *s = (struct vscript){.world = w, .fn = fn, .ctx = ctx, .cpus = 4, .mem_mb = 1000};
    snprintf(s->name, sizeof(s->name), "%s", name);
    snprintf(s->boot, sizeof(s->boot), "b");
    snprintf(s->address, sizeof(s->address), "%s:6818", name);
    vnet_listen(w, s->address, serve_script, s);
}

void vscript_fini(struct vscript *s) {
    vnet_listen(s->world, s->address, NULL, NULL);
}
