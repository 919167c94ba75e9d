/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node said lately, so that a repeat of the same bytes is known for a replay. Bounded by time, not by a number of
 * messages: what is forgotten is too old to be taken.
 */
#ifndef SPUR_SPURCTLD_API_IDENTITY_REPLAY_H
#define SPUR_SPURCTLD_API_IDENTITY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#define REPLAY_KEEP_MS 30000    /* messages of one node may overtake each other by so much */
#define REPLAY_MOST 65536u      /* of one node; more in that time make the bound in time tighter */

struct replay;
struct replay *replay_new(void);
void replay_free(struct replay *r);
/* Whether a message with this nonce and time was taken before, or is too old to know. If not it is remembered. `now_ms`:
 * a clock that never goes back; `unix_ms`: what the machine believes. */
bool replay_seen(struct replay *r, uint64_t nonce, int64_t sent_ms, int64_t now_ms, int64_t unix_ms);

#endif
