/* SPDX-License-Identifier: Apache-2.0
 *
 * A submission, step by step: check the sizes, who, the script, the partition, the times, the dependencies, whether it
 * could ever run; then put script and environment beside the log, and only when both are on disk propose the entry that
 * names them. A repeat of one that is in the state gets its first answer, whatever the checks would say today.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/model/text.h"
#include "core/sched/sched.h"
#include "spurctld/admit/admit.h"
#include "spurctld/lead/lead.h"

#define DEFAULT_MAX_SCRIPT (4u << 20)
#define DEFAULT_MAX_ENV (1u << 20)
#define NAME_MAX_BYTES 1024u
#define NODES_ASKED_MAX 65536u
#define SPEC_MAX_BYTES (1u << 20) /* of all that is not script or environment: it goes into the log and stays in memory */
#define ID_TRIES 8u

struct submission {
    struct room *room;
    struct arena arena;
    struct job_spec spec;
    size_t n_spec; /* its bytes as it came */
    unsigned n_ids; /* tried */
    uint8_t token[TOKEN_SIZE];
    bool has_token;
    uint32_t uid;
    uint8_t script_hash[32], env_hash[32];
    unsigned waiting; /* blobs not yet durable */
    int failed;
    struct err why;
    const char **warnings;
    uint32_t n_warnings;
    admit_fn done;
    void *arg;
};

/* What the steps share. */
struct check {
    struct submission *sub;
    const struct who *who;
    const struct submit_request *req;
    struct view view;
    struct err *e;
};

static int check_sizes(struct check *st) {
    const struct rconf *conf = room_rconf(st->sub->room);
    uint64_t max_script = conf->max_script_bytes ? conf->max_script_bytes : DEFAULT_MAX_SCRIPT;
    uint64_t max_env = conf->max_env_bytes ? conf->max_env_bytes : DEFAULT_MAX_ENV;
    if (st->req->n_script > max_script)
        return err_set(st->e, E_SCRIPT_SIZE, "Job script of %u bytes exceeds the size limit of %llu bytes",
                       st->req->n_script, (unsigned long long)max_script);
    if (st->req->n_env > max_env)
        return err_set(st->e, E_USER_ENV, "Job environment of %u bytes exceeds the size limit of %llu bytes",
                       st->req->n_env, (unsigned long long)max_env);
    if (st->sub->n_spec > SPEC_MAX_BYTES)
        return err_set(st->e, E_TOO_BIG, "Job description of %zu bytes exceeds the size limit of %u bytes",
                       st->sub->n_spec, SPEC_MAX_BYTES);
    const struct job_spec *s = &st->sub->spec;
    const struct {
        const char *what, *text;
    } texts[] = {{"name", s->name}, {"account", s->account}, {"qos", s->qos}, {"comment", s->comment},
                 {"partition", s->partition}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].text && strlen(texts[i].text) > NAME_MAX_BYTES)
            return err_set(st->e, E_TOO_BIG, "The job's %s is longer than %u bytes", texts[i].what, NAME_MAX_BYTES);
    if (s->n_req_nodes > NODES_ASKED_MAX || s->n_exc_nodes > NODES_ASKED_MAX)
        return err_set(st->e, E_NODE_NAME, "%s", err_sentence(E_NODE_NAME));
    return 0;
}

static int check_caller(struct check *st) {
    struct job_spec *s = &st->sub->spec;
    s->uid = st->who->uid;
    s->gid = st->who->gid;
    s->user = arena_strdup(&st->sub->arena, st->who->user);
    s->group = arena_strdup(&st->sub->arena, st->who->group);
    return 0;
}

static int check_script(struct check *st) {
    if (!st->req->n_script)
        return err_set(st->e, E_SCRIPT, "%s", err_sentence(E_SCRIPT));
    return script_check((const char *)st->req->script, st->req->n_script, st->e);
}

static int fill_defaults(struct check *st) {
    struct job_spec *s = &st->sub->spec;
    if (!s->name || !*s->name)
        s->name = "sbatch";
    if (!s->work_dir || s->work_dir[0] != '/')
        return err_set(st->e, E_SYNTAX, "the working directory must be an absolute path");
    s->cpus_per_task = s->cpus_per_task ? s->cpus_per_task : 1;
    if (s->max_nodes && s->max_nodes < s->min_nodes)
        return err_set(st->e, E_SYNTAX, "Node count specification invalid");
    if (!s->n_tasks)
        s->n_tasks = s->n_tasks_given ? s->n_tasks_given : MAX(s->min_nodes, 1u);
    if (s->min_nodes > s->n_tasks) {
        st->sub->warnings[st->sub->n_warnings++] =
            arena_printf(&st->sub->arena, "can't run %u processes on %u nodes, setting nnodes to %u", s->n_tasks,
                         s->min_nodes, s->n_tasks);
        s->min_nodes = s->n_tasks;
        if (s->max_nodes)
            s->max_nodes = MAX(s->max_nodes > s->n_tasks ? s->n_tasks : s->max_nodes, 1u);
    }
    s->min_nodes = MAX(s->min_nodes, 1u);
    if (s->nice > NICE_MAX || s->nice < -NICE_MAX)
        return err_set(st->e, E_SYNTAX, "Invalid nice value, must be between -%d and %d", NICE_MAX, NICE_MAX);
    if (s->nice < 0 && !st->who->is_admin)
        return err_set(st->e, E_NICE, NULL); /* only an administrator raises a priority */
    return 0;
}

static int check_partition(struct check *st) {
    struct job_spec *s = &st->sub->spec;
    const struct part *p;
    if (!s->partition) {
        for (uint64_t k = 0; (p = view_next_part(&st->view, &k)); k++)
            if (p->is_default)
                s->partition = arena_strdup(&st->sub->arena, p->name);
        if (!s->partition)
            return err_set(st->e, E_PARTITION, "No partition specified or system default partition");
        return 0;
    }
    const char *at = s->partition;
    while (*at) {
        size_t n = strcspn(at, ",");
        const char *name = arena_strndup(&st->sub->arena, at, n);
        if (!view_find_part(&st->view, name))
            return err_set(st->e, E_PARTITION, "invalid partition specified: %s\n%s", name, err_sentence(E_PARTITION));
        at += n + (at[n] == ',');
    }
    return *s->partition ? 0 : err_set(st->e, E_PARTITION, "%s", err_sentence(E_PARTITION));
}

static int check_dependency(struct check *st) {
    struct job_spec *s = &st->sub->spec;
    s->deps = NULL;
    s->n_deps = 0;
    if (!s->dependency || !*s->dependency)
        return 0;
    return deps_parse(s->dependency, 1u << DEP_AFTEROK | 1u << DEP_AFTERANY, &st->sub->arena, &s->deps, &s->n_deps,
                      st->e);
}

static int check_possible(struct check *st) {
    struct job j = {.spec = &st->sub->spec, .nice = st->sub->spec.nice};
    int rc = sched_possible(&st->view, &j, st->e);
    const char *sentence = err_sentence(rc);
    if (rc && strcmp(st->e->text, sentence) != 0) { /* as Slurm: what in particular, then what in general */
        autofree char *both = xasprintf("%s\n%s", st->e->text, sentence);
        err_set(st->e, rc, "%s", both);
    }
    return rc;
}

static int (*const steps[])(struct check *st) = {
    check_sizes, check_caller, check_script, fill_defaults, check_partition, check_dependency, check_possible,
};

static void finish(struct submission *sub, int code, const struct err *why, const struct submit_reply *reply) {
    sub->done(sub->arg, code, why, reply);
    arena_fini(&sub->arena);
    free(sub);
}

static void propose(struct submission *sub);

static void on_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct submission *sub = arg;
    struct answer a = {0};
    struct err e;
    if (code == E_EXISTS && sub->n_ids < ID_TRIES) { /* an earlier leader had given that number away */
        propose(sub);
        return;
    }
    if (!code)
        code = rec_decode(answer_rec(), answer, n, &sub->arena, &a, &e);
    struct submit_reply reply = {a.job_id, a.sluid, sub->warnings, sub->n_warnings};
    finish(sub, code, why, &reply);
}

static void propose(struct submission *sub) {
    char sluid[SLUID_SIZE];
    lead_new_sluid(sub->room, sluid);
    struct err e;
    uint32_t id = lead_take_job_id(sub->room);
    sub->n_ids++;
    if (!id) {
        err_set(&e, E_ID_SPACE, NULL);
        finish(sub, E_ID_SPACE, &e, NULL);
        return;
    }
    sub->spec.script_hash = sub->script_hash;
    sub->spec.env_hash = sub->env_hash;
    sub->spec.n_script_hash = sub->spec.n_env_hash = 32;
    struct cmd_submit cmd = {.job_id = id, .sluid = sluid, .spec = &sub->spec};
    room_propose(sub->room, CMD_SUBMIT, &cmd, sub->uid, sub->has_token ? sub->token : NULL, on_proposed, sub);
}

static void one_stored(struct submission *sub, int code, const struct err *why) {
    if (code && !sub->failed) {
        sub->failed = code;
        sub->why = *why;
    }
    if (--sub->waiting)
        return;
    if (sub->failed) {
        room_complain(sub->room, "a job was refused because its script could not be stored: %s", sub->why.text);
        finish(sub, sub->failed, &sub->why, NULL);
    } else {
        propose(sub);
    }
}

static void on_script_stored(void *arg, int code, const struct err *why, const uint8_t hash[32]) {
    struct submission *sub = arg;
    if (!code)
        memcpy(sub->script_hash, hash, 32);
    one_stored(sub, code, why);
}

static void on_env_stored(void *arg, int code, const struct err *why, const uint8_t hash[32]) {
    struct submission *sub = arg;
    if (!code)
        memcpy(sub->env_hash, hash, 32);
    one_stored(sub, code, why);
}

static void store_blobs(struct submission *sub, const struct submit_request *req) {
    struct host *h = sub->room->host;
    struct buf script = {0}, env = {0};
    buf_add(&script, req->script, req->n_script);
    buf_add(&env, req->env, req->n_env);
    sub->waiting = 3; /* one is ours, so that a store that answers at once does not finish before the other began */
    h->store(h->impl, script, on_script_stored, sub);
    h->store(h->impl, env, on_env_stored, sub);
    one_stored(sub, 0, NULL);
}

/* A copy of the request's spec that outlives it. */
static void copy_spec(struct submission *sub, const struct job_spec *spec) {
    auto_buf bytes = {0};
    rec_encode(job_spec_rec(), spec, &bytes);
    sub->n_spec = bytes.n;
    must(rec_decode(job_spec_rec(), bytes.p, bytes.n, &sub->arena, &sub->spec, NULL) == 0);
}

static int check(struct check *st) {
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int rc = steps[i](st);
        if (rc)
            return st->e->text[0] ? rc : err_set(st->e, rc, NULL);
    }
    return 0;
}

void admit_submit(struct room *r, const struct who *who, const struct submit_request *req, admit_fn done, void *arg) {
    struct submission *sub = xnew(struct submission);
    sub->room = r;
    sub->done = done;
    sub->arg = arg;
    sub->uid = who->uid;
    sub->warnings = arena_calloc(&sub->arena, 4, sizeof(*sub->warnings));
    copy_spec(sub, req->spec ? req->spec : &(struct job_spec){0});
    sub->has_token = req->n_token == TOKEN_SIZE;
    if (sub->has_token)
        memcpy(sub->token, req->token, TOKEN_SIZE);
    struct err e = {0};
    struct check st = {.sub = sub, .who = who, .req = req, .e = &e};
    state_peek(r->state, &st.view);
    int rc = check(&st);
    const void *answer;
    size_t n;
    if (sub->has_token && state_answered(r->state, sub->token, sub->uid, &answer, &n))
        on_proposed(sub, 0, NULL, 0, answer, n);
    else if (rc)
        finish(sub, rc, &e, NULL);
    else
        store_blobs(sub, req);
}
