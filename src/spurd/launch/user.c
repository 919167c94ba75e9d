/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/launch/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "base/mem.h"

#define ENTRY_MAX (1u << 20)
#define GROUPS_MAX 65536

_Static_assert(sizeof(gid_t) == sizeof(uint32_t), "groups are handed over as they are");

static void find_groups(const char *name, uint32_t gid, struct arena *a, struct user_facts *out) {
    int n = 64;
    gid_t *groups = arena_calloc(a, (size_t)n, sizeof(*groups));
    while (getgrouplist(name, gid, groups, &n) < 0 && n <= GROUPS_MAX)
        groups = arena_calloc(a, (size_t)n, sizeof(*groups));
    out->groups = groups;
    out->n_groups = (uint32_t)MIN(n, GROUPS_MAX);
}

int user_find(uint32_t uid, uint32_t gid, struct arena *a, struct user_facts *out, struct err *e) {
    struct passwd entry, *found = NULL;
    int failed = ERANGE;
    for (size_t n = 4096; failed == ERANGE && n <= ENTRY_MAX; n *= 4)
        failed = getpwuid_r(uid, &entry, arena_alloc(a, n), n, &found);
    if (failed && failed != ENOENT && failed != ESRCH)
        return errno = failed, err_sys(e, "look up user id %u", uid);
    *out = (struct user_facts){0};
    if (found) {
        out->home = arena_strdup(a, found->pw_dir);
        out->shell = arena_strdup(a, found->pw_shell);
        find_groups(found->pw_name, gid, a, out);
    } else {
        out->groups = arena_memdup(a, &gid, sizeof(gid));
        out->n_groups = 1;
    }
    return 0;
}
