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

void admit_submit(struct room *r, const struct who *who, const struct submit_request *req, admit_fn done, void *arg);
void admit_cancel(struct room *r, const struct who *who, const struct cancel_request *req, admit_fn done, void *arg);
void admit_hold(struct room *r, const struct who *who, const struct hold_request *req, admit_fn done, void *arg);

/* From agents; the caller has checked the signature against `key` (registration: the key in the request itself). */
void admit_register(struct room *r, const struct register_request *req, admit_fn done, void *arg);
void admit_heartbeat(struct room *r, const struct heartbeat_request *req, admit_fn done, void *arg);
void admit_report(struct room *r, const struct run_report *req, admit_fn done, void *arg);

#endif
