/* SPDX-License-Identifier: Apache-2.0
 *
 * One call to an agent, with the controller's credential for exactly that node, job, start, user and body.
 */
#ifndef SPUR_SPURCTLD_REACT_CALL_H
#define SPUR_SPURCTLD_REACT_CALL_H

#include "spurctld/room.h"
#include "wire/methods.h"

void react_call(struct room *r, const struct node *node, enum wire_method m, const void *request, uint32_t job_id,
                uint32_t start_no, uint32_t uid, host_reply_fn done, void *arg);

#endif
