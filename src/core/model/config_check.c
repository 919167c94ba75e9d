/* SPDX-License-Identifier: Apache-2.0
 *
 * What several values of spur.conf have to do with each other, and what becomes of values that are not kept as they
 * are written: node lists, authentication, partitions' numbers.
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "base/mem.h"
#include "core/model/config_table.h"
#include "core/model/gres.h"
#include "core/model/policy.h"
#include "core/model/text.h"

/* The line of a key, else that of its table. */
static uint32_t line_of(const struct tree *t, const char *key) {
    const struct tree *v = conf_child(t, key);
    return v ? v->line : t ? t->line : 1;
}

static bool is_name(const char *s, const char *more) {
    if (!*s || strchr(more, *s))
        return false;
    for (; *s; s++) {
        bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9');
        if (!plain && !strchr(more, *s))
            return false;
    }
    return true;
}

/* Node names of a list, or a problem at the key's line. */
static void expand(struct conf_reading *r, const struct tree *t, const char *section, const char *key,
                   const char *list, const char *const **out, uint32_t *out_n) {
    struct err e = {0};
    if (hostlist_expand(list, r->arena, out, out_n, &e) == 0)
        return;
    const char *why = str_starts(e.text, "_parse_single_range: ") ? strchr(e.text, ' ') + 1 : e.text;
    conf_problem(r, line_of(t, key), "%s.%s: %s", section, key, why);
}

/* ---- [[partitions]] ---- */

static void check_part(struct conf_reading *r, const struct part *p, const struct tree *t) {
    if (p->default_time_min > p->max_time_min)
        conf_problem(r, line_of(t, "default_time"), "partitions.default_time: is more than max_time");
    if (p->max_nodes && p->min_nodes > p->max_nodes)
        conf_problem(r, line_of(t, "min_nodes"), "partitions.min_nodes: is more than max_nodes");
}

/* Borrowed texts in the map: names are in the arena. */
static void check_part_name(struct conf_reading *r, struct maps *seen, struct conf_part_at *at) {
    const char *name = at->v.p.name;
    uint32_t line = line_of(at->t, "name");
    if (!name) {
        if (!conf_child(at->t, "name"))
            conf_problem(r, at->t->line, "partitions.name: is missing");
        return;
    }
    if (!is_name(name, "-_.")) {
        conf_problem(r, line, "partitions.name: \"%s\" is not allowed; must be letters, digits, `-`, `_` and `.`", name);
        return;
    }
    struct conf_part_at *first = maps_get(seen, name);
    if (first)
        conf_problem(r, line, "partitions.name: \"%s\" is there already, in line %" PRIu32, name, line_of(first->t, "name"));
    else
        maps_put(seen, name, at);
}

static void set_part_nodes(struct conf_reading *r, struct conf_part_at *at) {
    struct part *p = &at->v.p;
    p->all_nodes = at->v.nodes ? strcasecmp(at->v.nodes, "ALL") == 0 : !p->n_selectors;
    p->nodes_text = at->v.nodes ? at->v.nodes : p->all_nodes ? "ALL" : "";
    if (!at->v.nodes)
        return;
    if (!p->all_nodes)
        expand(r, at->t, "partitions", "nodes", at->v.nodes, &p->nodes, &p->n_nodes);
}

/* "NO", "EXCLUSIVE", "YES[:COUNT]", "FORCE[:COUNT]" */
static bool parse_over(const char *s, struct part *p) {
    static const char *const word[] = {"NO", "EXCLUSIVE", "YES", "FORCE"}; /* enum over_subscribe */
    size_t n = strcspn(s, ":");
    uint64_t count = 4;
    uint32_t i = 0;
    while (i < ARRAY_LEN(word) && (strlen(word[i]) != n || strncasecmp(word[i], s, n) != 0))
        i++;
    if (i == ARRAY_LEN(word) || (s[n] && (i < OVER_YES || str_to_u64(s + n + 1, 65533, &count) || !count)))
        return false;
    p->over_subscribe = i;
    p->over_count = i < OVER_YES ? 0 : (uint32_t)count;
    return true;
}

static void set_over_subscribe(struct conf_reading *r, struct conf_part_at *at) {
    if (at->v.over_subscribe && !parse_over(at->v.over_subscribe, &at->v.p))
        conf_problem(r, line_of(at->t, "over_subscribe"),
                     "partitions.over_subscribe: \"%s\" is not allowed; must be \"NO\", \"EXCLUSIVE\", \"YES:COUNT\" or "
                     "\"FORCE:COUNT\"", at->v.over_subscribe);
}

static void one_default_part(struct conf_reading *r) {
    struct conf_part built_in = {0};
    conf_set_defaults(r->arena, "partitions", &built_in);
    built_in.p.id = 1;
    built_in.p.name = "default";
    built_in.p.is_default = built_in.p.all_nodes = true;
    built_in.p.nodes_text = "ALL";
    r->all->c.rep.parts = arena_memdup(r->arena, &built_in.p, sizeof(built_in.p));
    r->all->c.rep.n_parts = 1;
}

void conf_finish_parts(struct conf_reading *r, struct conf_part_at *part, uint32_t n) {
    auto_call(maps_fini) struct maps seen = {0};
    const struct tree *first_default = NULL;
    if (n == 0) {
        one_default_part(r);
        return;
    }
    struct part *list = arena_calloc(r->arena, n, sizeof(*list));
    for (uint32_t i = 0; i < n; i++) {
        struct conf_part_at *at = &part[i];
        check_part_name(r, &seen, at);
        check_part(r, &at->v.p, at->t);
        set_part_nodes(r, at);
        set_over_subscribe(r, at);
        if (at->v.p.is_default && first_default)
            conf_problem(r, line_of(at->t, "default"),
                         "partitions.default: only one may be, and line %" PRIu32 " has one already",
                         line_of(first_default, "default"));
        if (at->v.p.is_default && !first_default)
            first_default = at->t;
        at->v.p.id = i + 1;
        list[i] = at->v.p;
    }
    r->all->c.rep.parts = list;
    r->all->c.rep.n_parts = n;
}

/* ---- [[nodes]] ---- */

static void set_gres(struct conf_reading *r, struct conf_node *v, const struct tree *t) {
    struct gres *list = arena_calloc(r->arena, v->n_gres + 1, sizeof(*list));
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_gres; i++) {
        struct err e = {0};
        if (node_gres_parse(v->gres[i], r->arena, &list[n], &e) || !node_gres_add(list, &n))
            conf_problem(r, line_of(t, "gres"), "nodes.gres: \"%s\" is not allowed; must be \"NAME:TYPE:COUNT\" or "
                         "\"NAME:COUNT\", each kind once", v->gres[i]);
    }
    v->o.gres = list;
    v->o.n_gres = n;
}

void conf_finish_nodes(struct conf_reading *r, struct conf_node_at *node, uint32_t n) {
    struct node_overlay *list = arena_calloc(r->arena, n, sizeof(*list));
    for (uint32_t i = 0; i < n; i++) {
        struct node_overlay *o = &node[i].v.o;
        const struct tree *t = node[i].t;
        if (node[i].v.names)
            expand(r, t, "nodes", "names", node[i].v.names, &o->names, &o->n_names);
        else if (!conf_child(t, "names") && !o->n_selectors)
            conf_problem(r, t->line, "nodes.names: is missing, and so is nodes.selector");
        set_gres(r, &node[i].v, t);
        if (o->address && o->n_selectors)
            conf_problem(r, line_of(t, "address"), "nodes.address: is for one node, not for those of a selector");
        if (o->address && o->n_names > 1)
            conf_problem(r, line_of(t, "address"), "nodes.address: is for one node, and `names` has %" PRIu32, o->n_names);
        list[i] = *o;
    }
    r->all->c.rep.overlays = list;
    r->all->c.rep.n_overlays = n;
}

/* ---- the rest ---- */

static bool is_peer(const char *s) {
    const char *colon = strrchr(s, ':');
    uint64_t port;
    return colon && colon != s && !str_to_u64(colon + 1, 65535, &port) && port && !strpbrk(s, " \t\n/");
}

static void check_peers(struct conf_reading *r, const struct tree *controller) {
    const struct conf *c = &r->all->c;
    uint32_t line = line_of(controller, "peers"), members = MAX(c->n_peers, 1);
    for (uint32_t i = 0; i < c->n_peers; i++) {
        if (!is_peer(c->peers[i]))
            conf_problem(r, line, "controller.peers: \"%s\" is not allowed; must be \"host:port\"", c->peers[i]);
        for (uint32_t k = 0; k < i; k++) {
            if (str_eq(c->peers[i], c->peers[k])) {
                conf_problem(r, line, "controller.peers: \"%s\" is there twice", c->peers[i]);
                break;
            }
        }
    }
    if (c->node_id > members)
        conf_problem(r, line_of(controller, "node_id"),
                     "controller.node_id: %" PRIu32 " is not from 1 to %" PRIu32 ", the number of peers", c->node_id,
                     members);
}

static void check_job_ids(struct conf_reading *r, const struct tree *controller) {
    struct rconf *rep = &r->all->c.rep;
    rep->max_job_id = MIN(rep->max_job_id, JOB_ID_MAX);
    if (rep->first_job_id > rep->max_job_id)
        conf_problem(r, line_of(controller, "first_job_id"), "controller.first_job_id: is more than max_job_id");
}

static void check_auth(struct conf_reading *r, const struct tree *auth) {
    struct conf_all *all = r->all;
    bool none = str_eq(all->c.auth_plugin, "none"), munge = str_eq(all->c.auth_plugin, "munge");
    if (none && conf_child(auth, "mode") && all->c.auth_mode_asked != AUTH_DISABLED)
        conf_problem(r, line_of(auth, "mode"), "auth.mode: contradicts plugin = \"none\", which believes everyone");
    if (all->c.jwt_key && all->c.jwt_key_file)
        conf_problem(r, line_of(auth, "jwt_key_file"), "auth.jwt_key_file: only one of it and jwt_key may be set");
    if (munge && conf_child(auth, "mode") && all->c.auth_mode_asked != AUTH_REQUIRED)
        conf_problem(r, line_of(auth, "mode"), "auth.mode: contradicts plugin = \"munge\", which requires a proof");
    if (all->c.jwt_key_old && all->c.jwt_key_old_file)
        conf_problem(r, line_of(auth, "jwt_key_old_file"),
                     "auth.jwt_key_old_file: only one of it and jwt_key_old may be set");
    all->c.auth_mode = none ? AUTH_DISABLED : munge ? AUTH_REQUIRED : (enum auth_mode)all->c.auth_mode_asked;
}

static void check_tls(struct conf_reading *r, const struct tree *tls) {
    const struct conf *c = &r->all->c;
    if (!c->tls_cert != !c->tls_key)
        conf_problem(r, line_of(tls, c->tls_cert ? "cert_file" : "key_file"), "tls.%s: cert_file and key_file go together",
                     c->tls_cert ? "cert_file" : "key_file");
    if (c->tls_mode && !c->tls_cert)
        conf_problem(r, line_of(tls, "mode"), "tls.mode: needs cert_file and key_file");
    if (c->tls_mode && !c->tls_ca && c->n_peers > 1)
        conf_problem(r, line_of(tls, "mode"), "tls.mode: needs ca_file where there are several controllers, who ask each other "
                     "for certificates");
}

void conf_finish_rest(struct conf_reading *r, const struct tree *root) {
    struct conf_all *all = r->all;
    const struct tree *controller = conf_child(root, "controller");
    check_peers(r, controller);
    check_job_ids(r, controller);
    check_auth(r, conf_child(root, "auth"));
    check_tls(r, conf_child(root, "tls"));
    all->c.rep.admission_token = all->admission_mode == 1;
    all->c.rep.no_requeue = !all->job_requeue;
    if (!conf_child(conf_child(root, "scheduler"), "kill_wait_secs"))
        all->c.rep.kill_wait_secs = policy_of(all->c.rep.flavor)->kill_wait_secs;
    if (all->c.rep.cluster_name && !is_name(all->c.rep.cluster_name, "-_."))
        conf_problem(r, line_of(root, "cluster_name"),
                     "cluster_name: \"%s\" is not allowed; must be letters, digits, `-`, `_` and `.`",
                     all->c.rep.cluster_name);
}
