/* SPDX-License-Identifier: Apache-2.0
 *
 * One controller and scripted agents, for tests that say each step: agents register and heartbeat by themselves, runs end
 * when the test reports it.
 */
#ifndef SPUR_TESTS_ROOMS_RIG_H
#define SPUR_TESTS_ROOMS_RIG_H

#include "script_agent.h"
#include "sim/agent.h"
#include "virtual_log.h"

#define RIG_NODES_MAX 8u

struct rig {
    struct vworld *w;
    struct vlog *log;
    struct vctl *c;
    struct vctl_conf conf;
    char dir[64];
    struct vscript node[RIG_NODES_MAX];
    bool is_silent[RIG_NODES_MAX]; /* no heartbeats */
    uint32_t n_told_to_end;        /* runs that agents were told to end by heartbeats and registrations */
    bool ends_slowly;              /* and have not ended yet */
    uint32_t n_nodes;
    /* of the last request */
    int code;
    char text[ERR_TEXT_MAX];
    uint32_t job_id;
    struct arena arena; /* of the last reply */
    const struct results *results;
    const struct submit_reply *submitted;
    bool is_answered;
};

void rig_make_dir(char *out, size_t n); /* where nothing is written to a disk, if there is such a place */
void rig_remove_dir(const char *path);
void rig_init(struct rig *g, void (*fill)(struct rconf *conf, struct arena *a));
void rig_fini(struct rig *g);
/* Registers and is up. `fn` NULL: takes everything. */
struct vscript *rig_node(struct rig *g, const char *name, vscript_fn fn, void *ctx);
struct vanswer rig_takes_all(void *ctx, struct vscript *s, enum wire_method m, const void *q);

struct rig_job { /* what a test may want to say; zero is the default */
    uint32_t uid;
    uint32_t n_tasks, min_nodes, cpus_per_task, time_limit_min;
    const char *partition, *dependency, *name;
    int64_t nice;
    bool hold, requeue; /* requeue: it may be; else it ends with its node */
    const uint8_t *token;
    const char *script; /* "#!/bin/sh\n" */
    const char *req_node, *exc_node;
};
/* Runs the world until the answer; its id, 0 when it was refused (g->code, g->text). */
uint32_t rig_submit(struct rig *g, const struct rig_job *j);
/* The same of a whole spec. `script` NULL: none. */
uint32_t rig_submit_spec(struct rig *g, uint32_t uid, const struct job_spec *spec, const char *script);

/* A question that is answered later. */
struct rig_ask {
    bool is_answered;
    int code;
    char text[ERR_TEXT_MAX];
    struct arena arena;
    const void *reply; /* of the method's record, in the arena */
    const struct rec_desc *desc;
};
void rig_ask_fini(struct rig_ask *a);
bool rig_answered(struct rig *g, struct rig_ask *a, uint64_t most_ms); /* runs the world until it is */
void rig_step_start(struct rig *g, uint32_t uid, uint32_t job_id, const struct step_spec *s, struct rig_ask *out);
void rig_step_request(struct rig *g, uint32_t uid, const struct step_request *rq, struct rig_ask *out);
void rig_attend(struct rig *g, uint32_t uid, const struct attend_request *rq, struct rig_ask *out);
/* Waits; the step's id, or a code. */
int64_t rig_step(struct rig *g, uint32_t job_id, const struct step_spec *s);
void rig_jobs(struct rig *g, uint32_t uid, const struct jobs_request *rq, struct rig_ask *out);
void rig_wait(struct rig *g, uint32_t uid, uint32_t job_id, struct rig_ask *out);
void rig_try(struct rig *g, uint32_t uid, const struct job_spec *spec, struct rig_ask *out); /* --test-only */
/* These wait; the first result's code, else g->code. */
int rig_hold_all(struct rig *g, uint32_t uid, const struct hold_request *rq);
int rig_requeue(struct rig *g, uint32_t uid, const struct requeue_request *rq);
int rig_suspend(struct rig *g, uint32_t uid, const struct suspend_request *rq);
int rig_update(struct rig *g, uint32_t uid, const struct update_request *rq);
int rig_update_node(struct rig *g, uint32_t uid, const struct node_update_request *rq);
/* The step is over on that node. */
int rig_step_report(struct rig *g, const struct vscript *node, uint32_t job_id, uint32_t start_no, uint32_t step_id,
                    uint32_t wait_status);
const struct step *rig_get_step(const struct rig *g, uint32_t job_id, uint32_t step_id);
int rig_cancel(struct rig *g, uint32_t uid, uint32_t job_id);
void rig_cancel_all(struct rig *g, const struct who *who, const struct cancel_request *rq); /* g->code, g->results */
int rig_hold(struct rig *g, uint32_t uid, uint32_t job_id, enum hold_op op);
/* The run is over on that node. */
int rig_report(struct rig *g, const struct vscript *node, uint32_t job_id, uint32_t start_no, uint32_t wait_status);
void rig_beat(struct rig *g, const struct heartbeat_request *hb);
int rig_report_all(struct rig *g, const struct run_report *r);
const struct job *rig_job(const struct rig *g, uint32_t id);
/* Runs the world until the job is there; fails after `most_ms`. */
void rig_until(struct rig *g, uint32_t id, const char *shown_state, uint64_t most_ms);
void rig_run(struct rig *g, uint64_t ms);
bool rig_is_free(const struct rig *g); /* no node holds anything */
/* Back as another process of the same member: its state from the log. */
void rig_restart(struct rig *g, bool kill);

#endif
