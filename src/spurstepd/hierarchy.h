/* SPDX-License-Identifier: Apache-2.0
 *
 * The cgroup hierarchies that are mounted here, and where in them this process is.
 */
#ifndef SPUR_SPURSTEPD_HIERARCHY_H
#define SPUR_SPURSTEPD_HIERARCHY_H

#include <stdbool.h>
#include <stddef.h>

enum hierarchy_is { HIER_V2 = 1, HIER_FREEZER = 2, HIER_MEMORY = 4, HIER_PIDS = 8, HIER_SYSTEMD = 16, HIER_DEVICES = 32 };
struct hierarchy {
    unsigned is; /* bits of enum hierarchy_is */
    char mount[256];
    bool at_root; /* this process is in its root group: nobody can mean spurd by it */
};
struct hierarchies {
    struct hierarchy h[10];
    unsigned n;
};

void hierarchies_find(struct hierarchies *out);
const struct hierarchy *hierarchies_with(const struct hierarchies *hs, unsigned is); /* NULL: not mounted */

/* Makes DIR and what is missing above it, below an existing root. 0 or -1 with errno. */
int group_make(const char *dir);
/* Removes DIR with all groups in it; false with errno when something is busy. No DIR is fine. */
bool group_remove(const char *dir);
/* Calls fn with the path of DIR and of each group in it. */
void group_each(const char *dir, void (*fn)(const char *dir, void *arg), void *arg);

#endif
