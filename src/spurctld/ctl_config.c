/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration in force, and what was changed by hand beside it.
 */
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "spurctld/config_file.h"
#include "spurctld/ctl_inside.h"

void ctl_config(void *ctx, struct config_reply *out, struct arena *a) {
    struct ctl *c = ctx;
    auto_str text = {0};
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    const struct rconf *in_force = room_rconf(&c->room);
    struct conf shown = c->conf;
    shown.log_level = log_level_name(); /* what --log-level or setdebug made it */
    unsigned port = 0;
    if (c->listen_text && sscanf(c->listen_text, "listen=%u", &port) == 1)
        shown.listen_addr = arena_printf(a, "[::]:%u", port); /* where it really listens */
    conf_show(&shown, in_force, &text);
    const struct passwd *pw = getpwuid(geteuid());
    str_addf(&text, "%-23s = %s(%u)\n%-23s = root(0)\n", "SlurmUser", pw ? pw->pw_name : "", geteuid(), "SlurmdUser");
    str_addf(&text, "%-23s = %s\n%-23s = 6818\n", "SLURM_CONF", c->options.config_path ? c->options.config_path : CONFIG_DEFAULT_PATH,
             "SlurmdPort");
    /* Not to be set, and looked at by what people use: */
    str_addf(&text, "%-23s = accounting_storage/spur\n%-23s = (null)\n%-23s = 2\n%-23s = topology/flat\n", "AccountingStorageType",
             "HealthCheckProgram", "ReturnToService", "TopologyPlugin");
    *out = (struct config_reply){
        .text = arena_strdup(a, str_text(&text)),
        .now_unix = room_now_unix(&c->room),
        .boot_unix = c->started_unix,
        .hostname = arena_strdup(a, host),
        .port = port,
        .licenses = in_force->licenses,
        .n_licenses = in_force->n_licenses,
        .cluster_name = in_force->cluster_name,
    };
}

/* ---- what a configuration drops ---- */

static const struct part *find(const struct rconf *conf, const char *name) {
    for (uint32_t i = 0; i < conf->n_parts; i++)
        if (str_eq(conf->parts[i].name, name))
            return &conf->parts[i];
    return NULL;
}

static bool same(const struct part *a, const struct part *b) {
    struct part x = *a;
    x.id = b->id;
    return rec_same(part_rec(), &x, b);
}

uint32_t ctl_dropped(const struct ctl *c, struct arena *a, const char *const **out) {
    struct view v;
    VEC(const char *) lines = {0};
    state_peek(c->room.state, &v);
    const struct rconf *conf = room_rconf(&c->room);
    const struct part *p;
    const struct node *n;
    for (uint64_t k = 0; (p = view_next_part(&v, &k)); k++) {
        const struct part *was = find(conf, p->name);
        if (!was)
            vec_push(&lines, arena_printf(a, "partition %s is dropped: it was made by hand", p->name));
        else if (!same(was, p))
            vec_push(&lines, arena_printf(a, "partition %s: what was changed by hand is dropped", p->name));
    }
    for (uint32_t i = 0; i < conf->n_parts; i++)
        if (!view_find_part(&v, conf->parts[i].name))
            vec_push(&lines, arena_printf(a, "partition %s: that it was deleted by hand is dropped", conf->parts[i].name));
    for (uint64_t k = 0; (n = view_next_node(&v, &k)); k++)
        if (n->set)
            vec_push(&lines, arena_printf(a, "node %s: what was changed by hand is dropped", n->name));
    *out = arena_memdup(a, lines.p, lines.n * sizeof(*lines.p));
    uint32_t count = (uint32_t)lines.n;
    vec_fini(&lines);
    return count;
}
