/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's user as this node's name service knows them. Blocks.
 */
#ifndef SPUR_SPURD_LAUNCH_USER_H
#define SPUR_SPURD_LAUNCH_USER_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct user_facts {
    const char *home, *shell; /* NULL: the user is not known here */
    const uint32_t *groups;   /* all of the user's, `gid` among them */
    uint32_t n_groups;
};

/* A user whom this node doesn't know has the one group. */
int user_find(uint32_t uid, uint32_t gid, struct arena *a, struct user_facts *out, struct err *e);

#endif
