/* SPDX-License-Identifier: Apache-2.0
 *
 * What clients of task streams say. Internal to viewer.c and heard.c, with what they have of each other.
 */
#ifndef SPUR_SPURSTEPD_HEARD_H
#define SPUR_SPURSTEPD_HEARD_H

#include "spurstepd/viewer.h"

/* heard.c */
void heard_read(struct viewers *vs, struct viewer *v);           /* readable */
void heard(struct viewers *vs, struct viewer *v);                /* the frames that are in v->in */

/* viewer.c */
void viewer_drop(struct viewers *vs, struct viewer *v);
void viewer_push(struct viewers *vs, struct viewer *v); /* sends what the client takes; may drop it */
void viewers_feed(struct viewers *vs);                  /* input to the tasks */

#endif
