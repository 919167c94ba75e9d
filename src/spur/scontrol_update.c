/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol update JobId=… KEY=VALUE …: a table of keys, each with what it sets in the request.
 *
 * Fields that go together (tasks and CPUs of a task, the two node lists …) are one change of the contract: what is not
 * given of them is taken from the job as it is. So each job gets a request of its own where such a key is used.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/hint.h"
#include "spur/scontrol.h"

struct update {
    struct scontrol *s;
    const char *job_list, *job_name;
    uint32_t changes;
    struct job_spec spec;
    struct job_more more;
    uint64_t priority_set;
    int time_sign; /* -1, 1: the limit changes by so many minutes */
    uint32_t time_min;
    bool has_tasks, has_cpus, has_req, has_exc, has_out, has_err, has_in, is_stopped;
    uint32_t uid; /* UserID=: with a name, whose */
    bool has_uid;
};

struct key {
    const char *name;
    size_t least; /* letters */
    uint32_t change;
    int (*set)(struct update *u, const struct key *k, const char *value); /* not 0: said so */
    size_t off;   /* of a text in the spec; without `set` */
};

static int bad(struct update *u, const char *what, const char *value) {
    if (value)
        cli_error(u->s->c, "Invalid %s value: %s", what, value);
    else
        cli_error(u->s->c, "Invalid %s value", what);
    return 1;
}

static int set_time_limit(struct update *u, const struct key *k, const char *value) {
    bool is_relative = *value == '+' || *value == '-';
    if (time_limit_parse(value + is_relative, &u->time_min))
        return bad(u, "TimeLimit", NULL);
    u->time_sign = *value == '+' ? 1 : *value == '-' ? -1 : 0;
    u->spec.time_limit_min = u->time_min;
    return 0;
}

static int set_time_min(struct update *u, const struct key *k, const char *value) {
    return time_limit_parse(value, &u->more.time_min_min) ? bad(u, "TimeMin", NULL) : 0;
}

/* What is wrong is told, and changes nothing, as Slurm does. */
static int set_moment(struct update *u, const struct key *k, const char *value) {
    struct text_clock clock = cli_clock();
    struct err e = {0};
    int64_t *to = k->change == CHANGE_BEGIN ? &u->spec.begin_unix : &u->more.deadline_unix;
    if (moment_parse(value, &clock, to, &e)) {
        fprintf(stderr, "%s\n", e.text);
        u->changes &= ~k->change;
    }
    return 0;
}

static int set_nice(struct update *u, const struct key *k, const char *value) {
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (errno || *end || n > NICE_MAX || n < -NICE_MAX) {
        cli_error(u->s->c, "Invalid nice value, must be between -%d and %d", NICE_MAX, NICE_MAX);
        return 1;
    }
    u->spec.nice = n;
    return 0;
}

/* 0 holds. */
static int set_priority(struct update *u, const struct key *k, const char *value) {
    uint64_t n;
    if (str_to_u64(value, UINT32_MAX - 1, &n))
        return bad(u, "Priority", value);
    if (!n)
        u->changes = (u->changes & ~(uint32_t)CHANGE_PRIORITY) | CHANGE_HOLD;
    u->priority_set = n + 1;
    return 0;
}

static int set_nodes(struct update *u, const struct key *k, const char *value) {
    struct err e = {0};
    if (node_count_parse(value, &u->spec.min_nodes, &u->spec.max_nodes, &e)) {
        cli_error(u->s->c, "%s", e.text);
        return 1;
    }
    if (!strchr(value, '-'))
        u->spec.max_nodes = u->spec.min_nodes;
    u->spec.min_nodes_given = true;
    u->more.nodes_given = u->spec.min_nodes;
    return 0;
}

static int set_count(struct update *u, const struct key *k, const char *value) {
    uint64_t n;
    bool is_tasks = str_eq(k->name, "NumTasks");
    if (str_to_u64(value, INT32_MAX, &n) || !n)
        return bad(u, k->name, value);
    if (is_tasks)
        u->spec.n_tasks = u->spec.n_tasks_given = (uint32_t)n;
    else
        u->spec.cpus_per_task = u->spec.cpus_per_task_given = (uint32_t)n;
    *(is_tasks ? &u->has_tasks : &u->has_cpus) = true;
    return 0;
}

/* Plain MiB only. */
static int set_memory(struct update *u, const struct key *k, const char *value) {
    uint64_t mb;
    if (str_to_u64(value, INT64_MAX, &mb))
        return bad(u, k->name, value);
    if (str_eq(k->name, "MinMemoryCPU"))
        u->more.mem_cpu_mb = mb;
    else
        u->spec.mem_node_mb = mb;
    u->spec.mem_all = !mb;
    return 0;
}

static int set_node_list(struct update *u, const struct key *k, const char *value) {
    struct err e = {0};
    bool is_req = str_eq(k->name, "ReqNodeList") || str_eq(k->name, "NodeList");
    *(is_req ? &u->has_req : &u->has_exc) = true;
    if (!hostlist_expand(value, &u->s->c->arena, is_req ? &u->spec.req_nodes : &u->spec.exc_nodes,
                         is_req ? &u->spec.n_req_nodes : &u->spec.n_exc_nodes, &e))
        return 0;
    cli_error(u->s->c, "%s", e.text);
    return 1;
}

static int set_features(struct update *u, const struct key *k, const char *value) {
    char *text = arena_strdup(&u->s->c->arena, value);
    for (char *p = text; *p; p++)
        *p = *p == ',' ? '&' : *p;
    *(str_eq(k->name, "Prefer") ? &u->more.prefer : &u->more.features) = *text ? text : NULL;
    return 0;
}

static int set_admin_comment(struct update *u, const struct key *k, const char *value) {
    u->more.admin_comment = *value ? value : NULL;
    return 0;
}

static int set_gres(struct update *u, const struct key *k, const char *value) {
    struct err e = {0};
    if (gres_parse(value, NULL, GRES_PER_NODE, &u->s->c->arena, &u->more.gres, &u->more.n_gres, &e)) {
        cli_error(u->s->c, "%s", e.text[0] ? e.text : err_sentence(E_GRES));
        return 1;
    }
    u->more.gres_text = *value ? value : NULL;
    return 0;
}

static int set_licenses(struct update *u, const struct key *k, const char *value) {
    if (license_parse(value, &u->s->c->arena, &u->more.licenses, &u->more.n_licenses, NULL)) {
        cli_error(u->s->c, "%s", err_sentence(E_LICENSE));
        return 1;
    }
    u->more.licenses_text = *value ? value : NULL;
    return 0;
}

static int set_requeue(struct update *u, const struct key *k, const char *value) {
    if (!str_eq(value, "0") && !str_eq(value, "1"))
        return bad(u, "Requeue", value);
    u->spec.no_requeue = *value == '0';
    u->more.requeue = *value == '1';
    return 0;
}

static int set_share(struct update *u, const struct key *k, const char *value) {
    bool yes = strcasecmp(value, "yes") == 0 || str_eq(value, "1");
    if (!yes && strcasecmp(value, "no") != 0 && !str_eq(value, "0"))
        return bad(u, k->name, value);
    u->more.oversubscribe = yes;
    return 0;
}

static int set_throttle(struct update *u, const struct key *k, const char *value) {
    uint64_t n;
    if (str_to_u64(value, ARRAY_ID_MAX, &n))
        return bad(u, "ArrayTaskThrottle", value);
    u->more.array_max_running = (uint32_t)n;
    return 0;
}

static int set_file(struct update *u, const struct key *k, const char *value) {
    if (str_eq(k->name, "StdOut")) {
        u->spec.std_out = value;
        u->has_out = true;
    } else if (str_eq(k->name, "StdErr")) {
        u->spec.std_err = value;
        u->has_err = true;
    } else {
        u->spec.std_in = value;
        u->has_in = true;
    }
    return 0;
}

static int set_job_list(struct update *u, const struct key *k, const char *value) {
    u->job_list = value;
    return 0;
}
/* Without JobId it says which jobs. */
static int set_name(struct update *u, const struct key *k, const char *value) {
    u->job_name = value;
    u->spec.name = value;
    return 0;
}

static int set_user(struct update *u, const struct key *k, const char *value) {
    u->has_uid = cli_user(value, &u->uid);
    if (!u->has_uid)
        fprintf(stderr, "Invalid UserID value: %s\n", value);
    return u->has_uid ? 0 : -1;
}

static int set_contiguous(struct update *u, const struct key *k, const char *value) {
    bool is_yes = strcasecmp(value, "yes") == 0 || str_eq(value, "1");
    if (!is_yes && strcasecmp(value, "no") != 0 && !str_eq(value, "0"))
        return bad(u, "Contiguous", value);
    u->more.contiguous = is_yes;
    return 0;
}

#define TEXT(name, least, change, field) {name, least, change, NULL, offsetof(struct job_spec, field)}
/* In the order in which shortened keys are tried. */
static const struct key keys[] = {
    {"JobId", 3, 0, set_job_list},
    {"AdminComment", 6, CHANGE_ADMIN_COMMENT, set_admin_comment},
    TEXT("Account", 1, CHANGE_ACCOUNT, account),
    {"ArrayTaskThrottle", 10, CHANGE_ARRAY_LIMIT, set_throttle},
    TEXT("Comment", 3, CHANGE_COMMENT, comment),
    {"Contiguous", 10, CHANGE_CONTIGUOUS, set_contiguous},
    {"CPUsPerTask", 9, CHANGE_TASKS, set_count},
    {"Deadline", 3, CHANGE_DEADLINE, set_moment},
    TEXT("Dependency", 1, CHANGE_DEPENDENCY, dependency),
    {"EligibleTime", 2, CHANGE_BEGIN, set_moment},
    {"ExcNodeList", 3, CHANGE_NODE_LISTS, set_node_list},
    {"Features", 1, CHANGE_FEATURES, set_features},
    {"Gres", 2, CHANGE_GRES, set_gres},
    {"JobName", 4, CHANGE_NAME, set_name},
    {"Licenses", 1, CHANGE_LICENSES, set_licenses},
    {"MinMemoryCPU", 10, CHANGE_MEMORY, set_memory},
    {"MinMemoryNode", 10, CHANGE_MEMORY, set_memory},
    {"Name", 2, CHANGE_NAME, set_name},
    {"Nice", 2, CHANGE_NICE, set_nice},
    {"NodeList", 8, CHANGE_NODE_LISTS, set_node_list},
    {"NumNodes", 4, CHANGE_NODES, set_nodes},
    {"NumTasks", 8, CHANGE_TASKS, set_count},
    {"OverSubscribe", 2, CHANGE_SHARE, set_share},
    TEXT("Partition", 2, CHANGE_PARTITION, partition),
    {"Prefer", 3, CHANGE_PREFER, set_features},
    {"Priority", 2, CHANGE_PRIORITY, set_priority},
    TEXT("QOS", 3, CHANGE_QOS, qos),
    {"ReqNodeList", 8, CHANGE_NODE_LISTS, set_node_list},
    {"ReqNodes", 8, CHANGE_NODES, set_nodes},
    {"Requeue", 4, CHANGE_REQUEUE, set_requeue},
    {"Shared", 2, CHANGE_SHARE, set_share},
    {"StartTime", 2, CHANGE_BEGIN, set_moment},
    {"StdErr", 4, CHANGE_OUTPUT, set_file},
    {"StdIn", 4, CHANGE_OUTPUT, set_file},
    {"StdOut", 4, CHANGE_OUTPUT, set_file},
    {"TimeLimit", 5, CHANGE_TIME_LIMIT, set_time_limit},
    {"UserID", 3, 0, set_user},
    {"TimeMin", 5, CHANGE_TIME_MIN, set_time_min},
};

static const struct key *find_key(const char *word, size_t n) {
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (n >= keys[i].least && n <= strlen(keys[i].name) && strncasecmp(word, keys[i].name, n) == 0)
            return &keys[i];
    return NULL;
}

static void hint_key(const struct cli *c, const char *word, size_t n) {
    autofree char *typed = xstrndup(word, n);
    struct near near = near_to(typed);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        near_try(&near, keys[i].name);
    hint_near(c, &near);
}

static bool read_word(struct update *u, const char *word) {
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    const struct key *k = n && strncasecmp(word, "job", n) == 0 ? &keys[0] : find_key(word, n);
    if (!equals || !k) {
        fprintf(stderr, equals ? "Update of this parameter is not supported: %s\nRequest aborted\n"
                               : "invalid option: %s for update command\n",
                word);
        hint_key(u->s->c, word, n);
        return false;
    }
    u->changes |= k->change;
    if (k->set)
        return k->set(u, k, equals + 1) == 0;
    *(const char **)((char *)&u->spec + k->off) = equals + 1;
    return true;
}

/* ---- one job ---- */

#define CHANGES_OF_SEVERAL (CHANGE_TASKS | CHANGE_NODE_LISTS | CHANGE_OUTPUT | CHANGE_ARRAY_LIMIT | CHANGE_SHARE)

static bool needs_job(const struct update *u) {
    return u->time_sign || u->changes & CHANGES_OF_SEVERAL;
}

static bool complete_limit(struct update *u, const struct job_info *ji) {
    uint32_t now = ji->job->time_limit_min ? ji->job->time_limit_min : ji->job->spec->time_limit_min;
    now = now ? now : ji->limit_min;
    if (!u->time_sign)
        return true;
    if (!now || now == TIME_LIMIT_NONE || (u->time_sign < 0 && u->time_min >= now)) {
        bad(u, "TimeLimit", NULL);
        return false;
    }
    u->spec.time_limit_min = u->time_sign > 0 ? now + u->time_min : now - u->time_min;
    return true;
}

/* What is not given of the fields that go together stays as it is. */
static void complete_fields(struct update *u, const struct job_spec *j, bool waits) {
    if (!u->has_tasks) {
        u->spec.n_tasks = j->n_tasks;
        u->spec.n_tasks_given = j->n_tasks_given;
    }
    if (!u->has_cpus) {
        u->spec.cpus_per_task = j->cpus_per_task;
        u->spec.cpus_per_task_given = j->cpus_per_task_given;
    }
    u->more.tasks_per_node = job_spec_more(j)->tasks_per_node;
    u->more.exclusive = job_spec_more(j)->exclusive;
    if (!u->has_req && waits) { /* of a run the list says which of its nodes it keeps */
        u->spec.req_nodes = j->req_nodes;
        u->spec.n_req_nodes = j->n_req_nodes;
    }
    if (!u->has_exc && waits) {
        u->spec.exc_nodes = j->exc_nodes;
        u->spec.n_exc_nodes = j->n_exc_nodes;
    }
    u->spec.std_out = u->has_out ? u->spec.std_out : j->std_out;
    u->spec.std_err = u->has_err ? u->spec.std_err : j->std_err;
    u->spec.std_in = u->has_in ? u->spec.std_in : j->std_in;
}

static void say_target(const char *text, const struct job_target *t) {
    auto_str tasks = {0};
    array_print(t->tasks, t->n_tasks, &tasks);
    fprintf(stderr, "%s for job %u%s%s\n", text, t->job_id, t->n_tasks ? "_" : "", str_text(&tasks));
}

static bool complete(struct update *u, const struct job_target *t) {
    struct jobs_request request = {.job_ids = &t->job_id, .n_job_ids = 1, .with_ended = true};
    struct jobs_reply reply = {0};
    struct err e = {0};
    if (cli_call(u->s->c, WIRE_Controller_Jobs, &request, &reply, &e) || !reply.n_jobs || !reply.jobs[0].job ||
        !reply.jobs[0].job->spec) {
        say_target(e.text[0] ? e.text : err_sentence(E_JOB_ID), t);
        return false;
    }
    const struct job_info *ji = &reply.jobs[0];
    for (uint32_t i = 0; i < reply.n_jobs; i++)
        if (reply.jobs[i].job && reply.jobs[i].job->id == t->job_id && reply.jobs[i].job->spec)
            ji = &reply.jobs[i];
    if (u->changes & CHANGE_ARRAY_LIMIT && (t->n_tasks || !ji->job->array || ji->job->array->job_id != t->job_id)) {
        cli_error(u->s->c, "Update of ArrayTaskThrottle is only allowed on ArrayJobId");
        say_target("Requested operation not supported on this system", t);
        return false;
    }
    complete_fields(u, ji->job->spec, ji->job->state == JOB_PENDING);
    return complete_limit(u, ji);
}

static bool send(struct update *u, const struct job_target *t, uint32_t n) {
    uint8_t token[TOKEN_SIZE];
    struct results reply = {0};
    struct err e = {0};
    spur_token(token);
    u->spec.more = &u->more;
    u->spec.dependency = cli_sluids(u->s->c, u->spec.dependency);
    struct update_request request = {.token = token, .n_token = sizeof(token), .targets = t, .n_targets = n,
                                     .changes = u->changes, .spec = &u->spec, .priority_set = u->priority_set};
    if (cli_call(u->s->c, WIRE_Controller_Update, &request, &reply, &e)) {
        say_target(e.text, t);
        return false;
    }
    bool ok = !scontrol_tell(&reply);
    for (uint32_t i = 0; i < n && ok && (u->changes & CHANGE_NODES || u->has_req); i++)
        ok = scontrol_resized(u->s, t[i].job_id);
    return ok;
}

static bool find_targets(struct update *u, struct scontrol_targets *out) {
    if (!u->job_list && u->job_name) {
        u->changes &= ~(uint32_t)CHANGE_NAME;
        if (!scontrol_jobs_named(u->s, u->job_name, u->has_uid ? &u->uid : NULL, out))
            return false;
        if (!out->v.n)
            cli_error(u->s->c, "No jobs with name '%s'", u->job_name);
        return out->v.n > 0;
    }
    if (scontrol_targets_add(u->s, u->job_list ? u->job_list : "", out))
        return true;
    fprintf(stderr, "%s for job %s\n", err_sentence(E_JOB_ID), out->bad);
    return false;
}

int scontrol_update_job(struct scontrol *s) {
    struct update u = {.s = s};
    struct scontrol_targets targets = {0};
    for (size_t i = 0; i < s->n; i++)
        if (!read_word(&u, s->word[i]))
            return 1;
    if (!(u.changes & (u.job_list ? ~0u : ~(uint32_t)CHANGE_NAME))) {
        fprintf(stderr, "No changes specified\n");
        return 1;
    }
    bool ok = find_targets(&u, &targets);
    if (ok && !needs_job(&u)) {
        ok = !targets.v.n || send(&u, targets.v.p, (uint32_t)targets.v.n);
    } else {
        for (size_t i = 0; ok && i < targets.v.n; i++) {
            struct update one = u;
            ok = complete(&one, &targets.v.p[i]) && send(&one, &targets.v.p[i], 1) && ok;
        }
    }
    vec_fini(&targets.v);
    return ok ? 0 : 1;
}
