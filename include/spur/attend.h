/* SPDX-License-Identifier: Apache-2.0
 *
 * libspur: attending. The client of an interactive job or a step tells the controller that it is there, for as long as
 * it lives, and hears what becomes of them. The calls wait at the controller, so they are made by a thread with a
 * connection of its own; its news come through a descriptor that can be polled.
 */
#ifndef SPUR_ATTEND_H
#define SPUR_ATTEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/messages.h"

struct spur_attend;

/* What the controller last said. */
struct spur_news {
    int code;                   /* 0, or why there is no answer: E_JOB_ID, E_STEP_ID, E_UNREACHABLE … */
    char text[ERR_TEXT_MAX];
    bool of_step;               /* the answer (or the error) is about the step */
    struct attend_reply *reply; /* packed: rec_free it; NULL with a code */
};

/* Attends the job (0: not) or step; the first call is made first_ms from now. Signals are to be blocked before. The
 * handle is never freed: the thread ends with the process. */
struct spur_attend *spur_attend_start(uint32_t job_id, bool job, uint32_t step_id_plus_1, uint64_t first_ms);
void spur_attend_step(struct spur_attend *a, uint32_t step_id); /* from now on this step as well */
int spur_attend_fd(const struct spur_attend *a);                /* readable: there are news */
bool spur_attend_take(struct spur_attend *a, struct spur_news *out); /* the oldest news; false: none */

#endif
