/* SPDX-License-Identifier: Apache-2.0
 *
 * May they, and what exactly: checked requests become one command each. Leader only.
 *
 * Every function answers exactly once, by `done`, after the command was committed and applied (or refused).
 */
#ifndef SPUR_SPURCTLD_ADMIT_H
#define SPUR_SPURCTLD_ADMIT_H

#include "spurctld/room.h"
#include "wire/messages.h"

/* code 0: `reply` is the method's reply record (borrowed for the call). */
typedef void (*admit_fn)(void *arg, int code, const struct err *why, const void *reply);

/* The steps that wait for room; what comes at them while this member leads. */
struct admit *admit_new(struct room *r);
void admit_free(struct admit *ad);
void admit_end(struct admit *ad, int code); /* what waits is answered */
void admit_on_event(struct admit *ad, const struct event *ev);

void admit_submit(struct room *r, const struct who *who, const struct submit_request *req, admit_fn done, void *arg);
void admit_cancel(struct room *r, const struct who *who, const struct cancel_request *req, admit_fn done, void *arg);
void admit_hold(struct room *r, const struct who *who, const struct hold_request *req, admit_fn done, void *arg);
void admit_requeue(struct room *r, const struct who *who, const struct requeue_request *req, admit_fn done, void *arg);
void admit_suspend(struct room *r, const struct who *who, const struct suspend_request *req, admit_fn done, void *arg);
void admit_update(struct room *r, const struct who *who, const struct update_request *req, admit_fn done, void *arg);
void admit_update_node(struct room *r, const struct who *who, const struct node_update_request *req, admit_fn done,
                       void *arg);
void admit_partition(struct room *r, const struct who *who, const struct part_update_request *req, admit_fn done, void *arg);
void admit_step_start(struct room *r, const struct who *who, const struct step_request *req, admit_fn done, void *arg);
void admit_attach(struct room *r, const struct who *who, const struct attach_request *req, admit_fn done, void *arg);

/* An administrator, or the job's owner; root only with proof. */
bool admit_may_steer(const struct who *who, const struct job *j);

/* From agents; the caller has checked the signature against `key` (registration: the key in the request itself). */
void admit_register(struct room *r, const struct register_request *req, admit_fn done, void *arg);
void admit_leave(struct room *r, const struct leave_request *req, admit_fn done, void *arg);
void admit_heartbeat(struct room *r, const struct heartbeat_request *req, admit_fn done, void *arg);
void admit_report(struct room *r, const struct run_report *req, admit_fn done, void *arg);
void admit_step_report(struct room *r, const struct step_report *req, admit_fn done, void *arg);

#endif
