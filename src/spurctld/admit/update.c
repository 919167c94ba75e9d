/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol update: what may be changed of which job by whom, as Slurm has it. An owner may make his job smaller or later,
 * never more important: no higher priority, no nice below 0, no longer limit of a job that runs, none beyond its
 * partition's. Most of what a job asks for is settled once it has started; it may give nodes back.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/model/constraint.h"
#include "core/model/gres.h"
#include "core/model/text.h"
#include "core/sched/sched.h"
#include "spurctld/admit/steering.h"
#include "spurctld/admit/submission.h"

#define UNSUPPORTED_TEXT "Requested operation not supported on this system"
#define HELD_TEXT "Job is in held state, pending scheduler release"
#define TRANSITION_TEXT "Invalid node state transition"
#define NAMES_MAX 65536u
#define CHANGES_OF_NAMES (CHANGE_FEATURES | CHANGE_PREFER | CHANGE_GRES | CHANGE_LICENSES | CHANGE_NODE_LISTS)

static const uint32_t of_pending_jobs = CHANGE_TIME_MIN | CHANGE_BEGIN | CHANGE_PARTITION | CHANGE_ACCOUNT | CHANGE_QOS |
                                        CHANGE_TASKS | CHANGE_MEMORY | CHANGE_NODE_LISTS | CHANGE_FEATURES |
                                        CHANGE_GRES | CHANGE_LICENSES | CHANGE_DEPENDENCY | CHANGE_SHARE |
                                        CHANGE_OUTPUT | CHANGE_DEADLINE | CHANGE_CONTIGUOUS | CHANGE_PREFER;

struct updating {
    const struct update_request *req;
    struct job_spec spec;  /* the new values, as they go into the command */
    const struct who *who;
    struct view view;
    int64_t now_unix;
    struct arena *arena;
};

/* The longest limit of the partitions that it may run in. */
static uint32_t longest(const struct updating *u, const struct job *j) {
    uint32_t most = 0;
    char name[256];
    for (const char *at = j->spec->partition ? j->spec->partition : ""; *at;) {
        size_t n = strcspn(at, ",");
        const struct part *p = NULL;
        if (n < sizeof(name)) {
            memcpy(name, at, n);
            name[n] = 0;
            p = view_find_part(&u->view, name);
        }
        if (p)
            most = MAX(most, p->max_time_min ? p->max_time_min : TIME_LIMIT_NONE);
        at += n + (at[n] == ',');
    }
    return most;
}

static int check_limit(const struct updating *u, const struct job *j, struct err *e) {
    uint32_t limit = u->spec.time_limit_min;
    if (!limit)
        return err_set(e, E_TIME_LIMIT, NULL);
    if (limit < job_spec_more(j->spec)->time_min_min && !(u->req->changes & CHANGE_TIME_MIN))
        return err_set(e, E_TIME_MIN, NULL);
    if (u->who->is_admin)
        return 0;
    uint32_t most = j->state == JOB_PENDING ? longest(u, j) : j->time_limit_min;
    return limit > most ? err_set(e, E_DENIED, NULL) : 0;
}

static int check_time_min(const struct updating *u, const struct job *j, struct err *e) {
    uint32_t least = job_spec_more(&u->spec)->time_min_min;
    uint32_t limit = u->req->changes & CHANGE_TIME_LIMIT ? u->spec.time_limit_min : j->spec->time_limit_min;
    return limit && limit != TIME_LIMIT_NONE && least > limit ? err_set(e, E_TIME_MIN, NULL) : 0;
}

static int check_priority(const struct updating *u, const struct job *j, struct err *e) {
    if (!u->req->priority_set)
        return err_set(e, E_SYNTAX, "no priority is given");
    if (j->hold)
        return err_set(e, E_JOB_HELD, HELD_TEXT);
    if (!u->who->is_admin && u->req->priority_set - 1 > sched_priority(&u->view, j, u->now_unix))
        return err_set(e, E_DENIED, NULL);
    return 0;
}

/* What a user may not say at all. */
static int check_privileged(const struct updating *u, struct err *e) {
    uint32_t c = u->req->changes;
    if (u->who->is_admin)
        return 0;
    if ((c & CHANGE_NICE && u->spec.nice < 0) || c & CHANGE_DEADLINE || c & CHANGE_ADMIN_COMMENT || u->req->n_nices ||
        (c & CHANGE_CONTIGUOUS && job_spec_more(&u->spec)->contiguous) ||
        (c & CHANGE_SHARE && job_spec_more(&u->spec)->oversubscribe))
        return err_set(e, E_DENIED, NULL);
    return 0;
}

static int check_dependency(const struct updating *u, const struct job *j, struct err *e) {
    for (uint32_t i = 0; i < u->spec.n_deps; i++)
        if (u->spec.deps[i].job_id == j->id)
            return err_set(e, E_DEPENDENCY, NULL);
    return 0;
}

static bool has_node(const struct job *j, const char *name) {
    for (uint32_t i = 0; i < j->n_nodes; i++)
        if (str_eq(j->nodes[i].name, name))
            return true;
    return false;
}

/* A run may get smaller, never larger; its script stays where it is. */
static int check_size(const struct updating *u, const struct job *j, bool by_names, struct err *e) {
    if (j->configuring || j->completing)
        return err_set(e, E_JOB_STATE, NULL);
    if (!by_names)
        return u->spec.min_nodes > j->n_nodes ? err_set(e, E_UNSUPPORTED, UNSUPPORTED_TEXT) : 0;
    bool keeps_script = job_spec_more(j->spec)->interactive;
    for (uint32_t i = 0; i < u->spec.n_req_nodes; i++) {
        if (!has_node(j, u->spec.req_nodes[i]))
            return err_set(e, E_NODE_NAME, NULL);
        keeps_script |= str_eq(u->spec.req_nodes[i], j->nodes[0].name);
    }
    return keeps_script ? 0 : err_set(e, E_NODE_NAME, "Invalid node name specified: the job's script runs on %s",
                                      j->nodes[0].name);
}

static int check_state(const struct updating *u, const struct job *j, struct err *e) {
    uint32_t c = u->req->changes;
    bool is_array = j->array && j->array->job_id == j->id;
    bool by_names = c & CHANGE_NODE_LISTS && u->spec.n_req_nodes && !u->spec.n_exc_nodes;
    if (job_is_over(j))
        return err_set(e, E_JOB_DONE, NULL);
    if (j->state != JOB_PENDING && c & of_pending_jobs & ~(by_names ? (uint32_t)CHANGE_NODE_LISTS : 0))
        return err_set(e, E_JOB_NOT_PENDING, NULL);
    if (c & CHANGE_ARRAY_LIMIT && !is_array)
        return err_set(e, E_UNSUPPORTED, UNSUPPORTED_TEXT);
    if (j->state != JOB_PENDING && (by_names || c & CHANGE_NODES))
        return check_size(u, j, by_names, e);
    return 0;
}

/* What it names is there: features, kinds of generic resources, licences, nodes. As recorded, a size that no node of the
 * cluster has is taken; the job then waits and says so. */
static int check_names(const struct updating *u, const struct job *j, struct err *e) {
    struct job_spec spec = *j->spec;
    struct job_more more = *job_spec_more(j->spec);
    job_spec_change(&spec, &more, &u->spec, u->req->changes);
    spec.more = &more;
    spec.hold = true; /* then nothing but names is looked at */
    struct job next = {.spec = &spec, .nice = spec.nice};
    int rc = sched_possible(&u->view, &next, e);
    return rc ? err_set(e, rc, NULL) : 0; /* the short sentence */
}

static int check_job(const struct updating *u, const struct job *j, struct err *e) {
    uint32_t c = u->req->changes;
    int rc = check_privileged(u, e);
    if (!rc)
        rc = check_state(u, j, e);
    if (!rc && u->req->n_nices && strchr(j->spec->partition ? j->spec->partition : "", ','))
        rc = err_set(e, E_JOB_STATE, "Requested partition configuration not available now");
    if (!rc && c & CHANGE_TIME_LIMIT)
        rc = check_limit(u, j, e);
    if (!rc && c & CHANGE_TIME_MIN)
        rc = check_time_min(u, j, e);
    if (!rc && c & CHANGE_PRIORITY)
        rc = check_priority(u, j, e);
    if (!rc && c & CHANGE_DEPENDENCY)
        rc = check_dependency(u, j, e);
    if (!rc && j->state == JOB_PENDING && c & CHANGES_OF_NAMES)
        rc = check_names(u, j, e);
    return rc;
}

/* What is wrong with the values, whatever job it is; and what the controller makes of them. */
static int check_values(struct updating *u, struct err *e) {
    const uint32_t c = u->req->changes;
    struct job_spec *s = &u->spec;
    int rc = 0;
    if (!c)
        return err_set(e, E_USAGE, "No changes specified");
    if (c & CHANGE_NICE && (s->nice > NICE_MAX || s->nice < -NICE_MAX))
        return err_set(e, E_SYNTAX, "Invalid nice value, must be between -%d and %d", NICE_MAX, NICE_MAX);
    if (u->req->n_nices && (c != CHANGE_NICE || u->req->n_nices != u->req->n_targets))
        return err_set(e, E_USAGE, "values of one nice for each job, and nothing else");
    for (uint32_t i = 0; i < u->req->n_nices; i++)
        if (u->req->nices[i].nice > NICE_MAX || u->req->nices[i].nice < -NICE_MAX ||
            (i && u->req->nices[i].job_id <= u->req->nices[i - 1].job_id))
            return err_set(e, E_USAGE, "values of nice in the order of ids, between -%d and %d", NICE_MAX, NICE_MAX);
    if (u->req->step_plus_1 && (c != CHANGE_TIME_LIMIT || !s->time_limit_min))
        return err_set(e, E_USAGE, "of a step the time limit can be changed, and nothing else");
    if (c & CHANGE_PARTITION)
        rc = check_partitions(&u->view, s->partition ? s->partition : "", u->arena, e);
    s->deps = NULL;
    s->n_deps = 0;
    if (!rc && c & CHANGE_DEPENDENCY && s->dependency && *s->dependency)
        rc = check_dependencies(&u->view, s->dependency, u->arena, &s->deps, &s->n_deps, e);
    if (!rc && c & CHANGE_NODES && (!s->min_nodes || (s->max_nodes && s->max_nodes < s->min_nodes)))
        rc = err_set(e, E_SYNTAX, "Node count specification invalid");
    if (!rc && c & CHANGE_TASKS && !s->n_tasks)
        rc = err_set(e, E_SYNTAX, "Invalid task count");
    return rc;
}

static void refuse(struct steering *st, const struct job_target *t, int code, const struct err *why) {
    steering_result(st, t, code);
    st->results.p[st->results.n - 1].text = arena_strdup(&st->arena, why->text[0] ? why->text : err_sentence(code));
}

static void take(struct steering *st, struct updating *u, const struct job_target *t) {
    struct err e = {0};
    const struct job *j = view_job(&u->view, t->job_id);
    bool is_job = j && !u->req->step_plus_1; /* of a step apply says whether it runs */
    int rc = is_job && admit_may_steer(u->who, j) ? check_job(u, j, &e) : 0;
    if (rc)
        refuse(st, t, rc, &e);
    else
        steering_take(st, j, t, E_USER);
}

static void propose_update(struct room *r, const struct who *who, const struct update_request *req, const struct dep *deps,
                           uint32_t n_deps, admit_fn done, void *arg) {
    auto_arena a = {0};
    struct updating u = {.req = req, .who = who, .arena = &a, .now_unix = room_now_unix(r)};
    state_peek(r->state, &u.view);
    if (req->spec)
        u.spec = *req->spec;
    u.spec.deps = deps;
    u.spec.n_deps = n_deps;
    struct steering *st = steering_new(r, who, done, arg);
    for (uint32_t i = 0; i < req->n_targets; i++)
        take(st, &u, &req->targets[i]);
    for (size_t i = 0; i < st->ids.n; i++) { /* the command knows targets alone */
        struct job_target t = {.job_id = st->ids.p[i]};
        vec_push(&st->targets, t);
    }
    st->ids.n = 0;
    struct cmd_update cmd = {.targets = st->targets.p,
                             .n_targets = (uint32_t)st->targets.n,
                             .changes = req->changes,
                             .spec = &u.spec,
                             .priority_set = req->priority_set,
                             .as_admin = who->is_admin,
                             .shrinks = true,
                             .changes_known = CHANGE_ALL,
                             .lifts_delay = true,
                             .step_plus_1 = req->step_plus_1,
                             .nices = req->nices,
                             .n_nices = req->n_nices};
    steering_propose(st, CMD_UPDATE, &cmd, req->token, req->n_token);
}

/* A change that waits for what history says about jobs of long ago. */
struct late_update {
    struct room *room;
    struct who who;
    struct update_request req; /* a copy that outlives the request */
    struct dep *deps;
    uint32_t n_deps;
    admit_fn done;
    void *arg;
    struct arena arena;
};

static void end_late(struct late_update *l) {
    arena_fini(&l->arena);
    free(l);
}

static void past_known(void *arg) {
    struct late_update *l = arg;
    propose_update(l->room, &l->who, &l->req, l->deps, l->n_deps, l->done, l->arg);
    end_late(l);
}

/* False: history is not needed. */
static bool look_back(struct room *r, const struct who *who, const struct update_request *req, const struct updating *u,
                      admit_fn done, void *arg) {
    if (!u->spec.n_deps)
        return false;
    struct late_update *l = xnew(struct late_update);
    auto_buf bytes = {0};
    *l = (struct late_update){.room = r, .who = *who, .n_deps = u->spec.n_deps, .done = done, .arg = arg};
    rec_encode(update_request_rec(), req, &bytes);
    must(rec_decode(update_request_rec(), bytes.p, bytes.n, &l->arena, &l->req, NULL) == 0);
    l->deps = arena_memdup(&l->arena, u->spec.deps, l->n_deps * sizeof(*l->deps));
    if (deps_past(r, l->deps, l->n_deps, past_known, l))
        return true;
    end_late(l);
    return false;
}

void admit_update(struct room *r, const struct who *who, const struct update_request *req, admit_fn done, void *arg) {
    struct err e = {0};
    auto_arena a = {0};
    struct updating u = {.req = req, .who = who, .arena = &a, .now_unix = room_now_unix(r)};
    state_peek(r->state, &u.view);
    if (req->spec)
        u.spec = *req->spec;
    int rc = steering_check(0, req->targets, req->n_targets, &e);
    if (!rc)
        rc = check_values(&u, &e);
    if (rc)
        done(arg, rc, &e, NULL);
    else if (!look_back(r, who, req, &u, done, arg))
        propose_update(r, who, req, u.spec.deps, u.spec.n_deps, done, arg);
}

/* ---- nodes ---- */

struct node_change {
    admit_fn done;
    void *arg;
    bool was_partly; /* some of the nodes named had nothing to be resumed from: said at the end, as Slurm does */
};

static void on_node_changed(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct node_change *nc = arg;
    struct nothing reply = {0};
    struct err e = {0};
    if (!code && nc->was_partly) {
        code = err_set(&e, E_JOB_STATE, TRANSITION_TEXT);
        why = &e;
    }
    nc->done(nc->arg, code, why, &reply);
    free(nc);
}

static bool is_well(const struct node *n) {
    return n->base == NODE_UP && !n->n_drains && !n->not_responding;
}

/* What is to be active, or is already, must be among what is to be there: so of Slurm without a plugin for features. */
static int check_active(const struct node_update_request *req, const struct node *n, struct err *e) {
    uint32_t n_active, n_have = req->has_features ? req->n_features : n->n_features;
    const char *const *active = node_active(n, &n_active), *const *have = req->has_features ? req->features : n->features;
    if (req->has_active)
        active = req->active, n_active = req->n_active;
    for (uint32_t i = 0; i < n_active; i++)
        if (!features_list(active[i], have, n_have))
            return err_set(e, E_ACTIVE_FEATURE, NULL);
    return 0;
}

static int check_node_op(const struct node_update_request *req, const struct node *n, struct err *e) {
    if (req->op == NODE_OP_DELETE && n->n_jobs && !req->force)
        return err_set(e, E_NODES_BUSY, NULL);
    if (req->op == NODE_OP_DRAIN && req->kind == DRAIN_FUTURE && (n->n_jobs || n->n_completing))
        return err_set(e, E_JOB_STATE, TRANSITION_TEXT);
    return req->op == NODE_OP_SET && (req->has_features || req->has_active) ? check_active(req, n, e) : 0;
}

static int check_each(uint32_t n, uint32_t n_nodes, struct err *e) {
    return n > 1 && n != n_nodes ? err_set(e, E_SYNTAX, "one value is for all nodes, several are one for each") : 0;
}

static int check_labels(const struct node_update_request *req, struct err *e) {
    if (!req->n_labels || req->n_labels > NAMES_MAX)
        return err_set(e, E_USAGE, "No changes specified");
    for (uint32_t i = 0; i < req->n_labels; i++) {
        const struct selector *l = &req->labels[i];
        if (!label_key_ok(l->key))
            return err_set(e, E_SYNTAX, "\"%s\" is no key of a label", l->key ? l->key : "");
        if (l->value && !label_value_ok(l->value))
            return err_set(e, E_SYNTAX, "\"%s\" is no value of a label", l->value);
    }
    return 0;
}

/* The values of NODE_OP_SET; *out_gres gets the kinds, in the arena. */
static int check_node_set(const struct node_update_request *req, struct arena *a, const struct gres **out_gres, struct err *e) {
    if (req->op == NODE_OP_LABEL)
        return check_labels(req, e);
    if (req->op != NODE_OP_SET)
        return 0;
    if (!req->has_features && !req->has_active && !req->weight && !req->comment && !req->extra && !req->n_instance_ids &&
        !req->n_instance_types && !req->has_gres)
        return err_set(e, E_USAGE, "No changes specified");
    struct gres *gres = arena_calloc(a, req->n_gres + 1, sizeof(*gres));
    uint32_t n = 0;
    for (uint32_t i = 0; i < req->n_gres; i++)
        if (node_gres_parse(req->gres[i], a, &gres[n], e) || !node_gres_add(gres, &n))
            return err_set(e, E_GRES, NULL);
    *out_gres = gres;
    int rc = check_each(req->n_instance_ids, req->n_names, e);
    return rc ? rc : check_each(req->n_instance_types, req->n_names, e);
}

/* 0: nothing is said of it. */
static int64_t until_unix(struct room *r, const struct node_update_request *req) {
    if (!req->resume_after_secs || (req->op != NODE_OP_DRAIN && req->op != NODE_OP_DOWN))
        return 0;
    return req->resume_after_secs > UINT32_MAX ? -1 : room_now_unix(r) + (int64_t)req->resume_after_secs - 1;
}

void admit_update_node(struct room *r, const struct who *who, const struct node_update_request *req, admit_fn done,
                       void *arg) {
    struct err e = {0};
    auto_arena a = {0};
    uint32_t *ids = arena_calloc(&a, req->n_names + 1, sizeof(*ids));
    const struct gres *gres = NULL;
    uint32_t n_ids = 0; /* what a resume finds well is left out, and the others are resumed */
    int rc = !who->is_admin                                               ? err_set(&e, E_USER, NULL)
             : req->op < NODE_OP_DRAIN || req->op > NODE_OP_LAST || req->kind > DRAIN_KIND_LAST ? err_set(&e, E_USAGE, "no such change")
             : !req->n_names || req->n_names > NAMES_MAX                  ? err_set(&e, E_NODE_NAME, NULL)
                                                                          : check_node_set(req, &a, &gres, &e);
    for (uint32_t i = 0; !rc && i < req->n_names; i++) {
        const struct node *n = state_find_node(r->state, req->names[i]);
        rc = n ? check_node_op(req, n, &e) : err_set(&e, E_NODE_NAME, NULL);
        if (!rc && (req->op != NODE_OP_RESUME || !is_well(n)))
            ids[n_ids++] = n->id;
    }
    if (!rc && !n_ids)
        rc = err_set(&e, E_JOB_STATE, TRANSITION_TEXT);
    if (rc) {
        done(arg, rc, &e, NULL);
        return;
    }
    struct cmd_node_update cmd = {.node_ids = ids,
                                  .n_node_ids = n_ids,
                                  .op = req->op,
                                  .reason = req->reason,
                                  .user = who->user,
                                  .features = req->features,
                                  .n_features = req->n_features,
                                  .has_features = req->has_features,
                                  .active = req->active,
                                  .n_active = req->n_active,
                                  .has_active = req->has_active,
                                  .weight = req->weight,
                                  .comment = req->comment,
                                  .extra = req->extra,
                                  .instance_ids = req->instance_ids,
                                  .n_instance_ids = req->n_instance_ids,
                                  .instance_types = req->instance_types,
                                  .n_instance_types = req->n_instance_types,
                                  .has_gres = req->has_gres,
                                  .gres = gres,
                                  .n_gres = req->n_gres,
                                  .labels = req->labels,
                                  .n_labels = req->n_labels,
                                  .force = req->force,
                                  .bar = req->op == NODE_OP_DELETE,
                                  .silent = req->silent && req->op == NODE_OP_SET,
                                  .kind = req->op == NODE_OP_DRAIN ? req->kind : 0,
                                  .until_unix = until_unix(r, req)};
    struct node_change *nc = xnew(struct node_change);
    *nc = (struct node_change){done, arg, n_ids < req->n_names};
    room_propose(r, CMD_NODE_UPDATE, &cmd, who->uid, req->n_token == TOKEN_SIZE ? req->token : NULL, on_node_changed,
                 nc);
}
