/* SPDX-License-Identifier: Apache-2.0
 *
 * How many jobs began and ended since the controller was started or its counters set back: for sdiag.
 */
#ifndef SPUR_SPURCTLD_TALLY_H
#define SPUR_SPURCTLD_TALLY_H

#include "core/state/state.h"

struct tally {
    uint64_t started, completed, cancelled, failed;
};

void tally_event(struct tally *t, const struct state *s, const struct event *ev);

#endif
