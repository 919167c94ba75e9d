/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients of a simulated cluster: each request is repeated, with its token, until it has an answer. Reads go to any member, and
 * must show at least what was committed when they were asked.
 */
#ifndef SPUR_SIM_CLIENT_H
#define SPUR_SIM_CLIENT_H

#include "sim/judge.h"

struct sclient;
struct sclient *sclient_new(struct vworld *w, struct judge *j);
void sclient_free(struct sclient *c);
void sclient_act(struct sclient *c);        /* something: a submit, a cancel, … */
void sclient_read(struct sclient *c);       /* of any member */
bool sclient_is_quiet(const struct sclient *c); /* all is answered */
uint32_t sclient_jobs(const struct sclient *c);
uint32_t sclient_reads(const struct sclient *c);
/* At the end: each answered submit has one job, and no two the same; in the state, or in the judge's log's ends. */
void sclient_check(struct sclient *c, const struct vctl *ctl);

#endif
