/* SPDX-License-Identifier: Apache-2.0
 *
 * -M, --clusters: there is one cluster. Its name and "all" are taken, another name is refused in Slurm's words, so that
 * what talks to many clusters gets on with this one.
 */
#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/cli.h"

static void refuse(const struct cli *c, const char *name, bool is_fatal) {
    cli_error(c, "No cluster '%s' known by database.", name);
    cli_error(c, "'%s' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.",
              name);
    if (is_fatal)
        cli_say(c, "fatal: Could not get cluster information");
}

bool cli_clusters(struct cli *c, const struct opt_run *r, bool is_fatal) {
    struct nothing request = {0};
    struct config_reply reply = {0};
    struct err e = {0};
    uint32_t n;
    if (!r->clusters)
        return true;
    if (cli_call(c, WIRE_Controller_Config, &request, &reply, &e)) {
        cli_error(c, "%s", e.text);
        return false;
    }
    const char *own = reply.cluster_name ? reply.cluster_name : "";
    const char *const *name = cli_words(c, r->clusters, ",", &n);
    for (uint32_t i = 0; i < n; i++) {
        if (strcasecmp(name[i], "all") == 0 || strcasecmp(name[i], own) == 0)
            continue;
        refuse(c, name[i], is_fatal);
        return false;
    }
    c->cluster = own;
    return true;
}
