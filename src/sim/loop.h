/* SPDX-License-Identifier: Apache-2.0
 *
 * io/loop/loop.h in virtual time: what of it the journal uses, so that its sources run unchanged in the simulator. A loop here
 * is a thread that runs whenever something is due for it, one thing at a time.
 */
#ifndef SPUR_SIM_LOOP_H
#define SPUR_SIM_LOOP_H

#include "io/loop/loop.h"
#include "sim/world.h"

void simloop_world(struct vworld *w); /* where loop_new makes loops from now on */
/* Called before and after the late functions of each turn. */
void simloop_each_turn(struct loop *l, void (*fn)(void *arg), void *arg);
/* fn(arg), and what a turn does after it. */
void simloop_enter(struct loop *l, void (*fn)(void *arg), void *arg);
/* How late a posted function may run: the thread has other things to do. */
void simloop_lag(struct loop *l, unsigned most_ms);
/* Runs what is posted or timed, at once and in its order, until loop_stop. False: nothing is left and nobody stopped it. */
bool simloop_drain(struct loop *l);

#endif
