/* SPDX-License-Identifier: Apache-2.0
 *
 * A controller of a few lines for tests of the real agent: it takes registrations, heartbeats and reports, checks their
 * proofs, and signs what it sends. And the agent's process itself.
 */
#ifndef SPUR_TESTS_SPURD_CONTROLLER_H
#define SPUR_TESTS_SPURD_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "io/cred/cred.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"
#include "wire/messages.h"
#include "wire/methods.h"

#define REPORTS_MAX 64

struct controller {
    struct loop *loop;
    struct rpc_server *server;
    struct rpc_channel *channel; /* to the agent; NULL until it registered */
    struct cred_key key;
    char root[256], address[64];
    uint16_t port;
    pid_t agent;
    int agent_status; /* as waitpid gave it last */
    struct arena arena; /* what was received lives here */
    char *program;

    /* how it answers */
    int refuse_register, refuse_reports; /* codes; 0: takes them */
    struct run_ref end;                  /* told with the next registration; job_id 0: none */
    bool register_again;                 /* told with the next heartbeat */
    uint32_t heartbeat_ms;

    /* what it saw */
    unsigned n_registered, n_heartbeats, n_reports_refused;
    struct register_request registered; /* the last one */
    struct run_report reports[REPORTS_MAX];
    unsigned n_reports;
    struct cred_public agent_key;
    bool has_agent_key, saw_bad_proof;
};

/* A temporary directory and a listening server. */
void controller_begin(struct controller *c, const char *program);
void controller_end(struct controller *c);
void controller_listen(struct controller *c);
void controller_close(struct controller *c); /* as if it were away; the port stays ours to take again */

/* `more`: further arguments, NULL-terminated. */
void agent_start(struct controller *c, const char *const *more);
void agent_kill(struct controller *c, int signo); /* and waits; fails the test after 10 s */
void agent_wait_registered(struct controller *c, unsigned n);

/* Fails the test, with `what`, when `done` isn't true in time. */
void wait_until(struct controller *c, bool (*done)(void *arg), void *arg, const char *what);

/* What is wrong with the credential of a call. */
enum forgery { TRUE_CALL, NO_HEADER, OTHER_KEY, OTHER_NODE, OTHER_BODY, OTHER_JOB, OTHER_START, OTHER_UID, EXPIRED,
               OTHER_METHOD };
/* Calls the agent; the code it answers with, and its text. */
int agent_call(struct controller *c, enum wire_method m, const void *request, uint32_t job_id, uint32_t start_no,
               uint32_t uid, enum forgery forgery, void *reply, struct err *e);

/* A job of the calling user that runs `script`, output in ROOT/out.JOB. */
struct launch {
    struct launch_request q;
    struct job_spec spec;
    struct job_node node;
    char out[300], work_dir[256];
};
void launch_fill(struct controller *c, struct launch *l, uint32_t job_id, const char *script);
int launch_send(struct controller *c, struct launch *l, enum forgery forgery, uint32_t *out_pid, struct err *e);
void launch_send_unanswered(struct controller *c, struct launch *l); /* whatever comes of it */
/* NULL: not reported yet. */
const struct run_report *report_of(struct controller *c, uint32_t job_id);
const struct run_report *wait_report(struct controller *c, uint32_t job_id);
char *output_of(struct controller *c, uint32_t job_id); /* arena */
void wait_output(struct controller *c, uint32_t job_id, const char *text);
int terminate_send(struct controller *c, uint32_t job_id, uint32_t uid, uint32_t kill_wait_secs, const char *why);

#endif
