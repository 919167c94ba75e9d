/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol hold, uhold, release, suspend, resume, requeue, requeuehold, wait_job: which jobs, one request, and what came of
 * each.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/flavor.h"
#include "spur/job_facts.h"
#include "spur/job_select.h"
#include "spur/scontrol.h"

#define WAIT_US 200000

/* ---- which ---- */

bool scontrol_jobs_named(struct scontrol *s, const char *name, const uint32_t *uid, struct scontrol_targets *out) {
    struct err e = {0};
    struct jobs_reply reply = {0};
    struct jobs_request request = {0};
    if (cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, &e)) {
        fprintf(stderr, "slurm_load_jobs error: %s\n", e.text);
        return false;
    }
    for (uint32_t i = 0; i < reply.n_jobs; i++) {
        const struct job *j = reply.jobs[i].job;
        if (!j || !j->spec || !str_eq(j->spec->name, name) || (uid && j->spec->uid != *uid))
            continue;
        struct job_target t = {.job_id = j->id};
        if (j->array && !j->array->task) {
            t.tasks = j->array->pending;
            t.n_tasks = j->array->n_pending;
        }
        vec_push(&out->v, t);
    }
    return true;
}

bool scontrol_targets_add(struct scontrol *s, const char *list, struct scontrol_targets *out) {
    uint32_t n;
    const char *const *one = cli_job_words(s->c, list, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct job_name name;
        if (job_name_parse(cli_sluids(s->c, one[i]), JOB_NAME_TASKS, &s->c->arena, &name, NULL)) {
            out->bad = one[i];
            return false;
        }
        vec_push(&out->v, name.target);
    }
    return true;
}

/* Where `word` begins with one of the keys: what stands behind it. */
static const char *behind(const char *word, const char *key) {
    size_t n = strlen(key);
    return strncasecmp(word, key, n) == 0 ? word + n : NULL;
}

static bool read_words(struct scontrol *s, struct scontrol_targets *out) {
    for (size_t i = 0; i < s->n; i++) {
        const char *list = behind(s->word[i], "jobid="), *name = behind(s->word[i], "jobname=");
        if (!name)
            name = behind(s->word[i], "name=");
        if (name ? !scontrol_jobs_named(s, name, NULL, out) : !scontrol_targets_add(s, list ? list : s->word[i], out)) {
            if (out->bad)
                fprintf(stderr, "Invalid job id %s\n", out->bad);
            return false;
        }
    }
    return true;
}

/* ---- what came of it ---- */

static const char *plain_reason(uint32_t error) {
    if (!cli_policy()->plain_reasons)
        return "";
    return error == (uint32_t)-E_JOB_ID ? " (not found)" : error == (uint32_t)-E_JOB_PENDING ? " (already pending)" : "";
}

const char *scontrol_tell(const struct results *reply) {
    const char *last = NULL;
    for (uint32_t i = 0; i < reply->n_results; i++) {
        const struct job_result *r = &reply->results[i];
        if (!r->error)
            continue;
        last = r->text && *r->text ? r->text : err_sentence(-(int)r->error);
        if (r->id_text && *r->id_text)
            fprintf(stderr, "%s for job %s%s\n", last, r->id_text, plain_reason(r->error));
        else
            fprintf(stderr, "%s for job %u%s\n", last, r->job_id, plain_reason(r->error));
    }
    return last;
}

/* ---- the verbs ---- */

enum steer { STEER_HOLD, STEER_UHOLD, STEER_RELEASE, STEER_SUSPEND, STEER_RESUME, STEER_REQUEUE, STEER_REQUEUE_HOLD, STEER_REQUEUE_SPECIAL };

static int send(struct scontrol *s, enum steer what, const struct scontrol_targets *t, struct results *reply,
                struct err *e) {
    static const uint32_t ops[] = {HOLD_OP_HOLD, HOLD_OP_UHOLD, HOLD_OP_RELEASE};
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    uint32_t n = (uint32_t)t->v.n;
    struct hold_request hold = {.token = token, .n_token = sizeof(token), .targets = t->v.p, .n_targets = n};
    struct suspend_request suspend = {.token = token, .n_token = sizeof(token), .targets = t->v.p, .n_targets = n,
                                      .resume = what == STEER_RESUME};
    struct requeue_request requeue = {.token = token, .n_token = sizeof(token), .targets = t->v.p, .n_targets = n,
                                      .hold = what >= STEER_REQUEUE_HOLD, .special_exit = what == STEER_REQUEUE_SPECIAL};
    switch (what) {
    case STEER_SUSPEND:
    case STEER_RESUME: return cli_call(s->c, WIRE_Controller_Suspend, &suspend, reply, e);
    case STEER_REQUEUE:
    case STEER_REQUEUE_HOLD:
    case STEER_REQUEUE_SPECIAL: return cli_call(s->c, WIRE_Controller_Requeue, &requeue, reply, e);
    default: hold.op = ops[what]; return cli_call(s->c, WIRE_Controller_Hold, &hold, reply, e);
    }
}

static int steer(struct scontrol *s, const char *keyword, enum steer what) {
    struct err e = {0};
    struct results reply = {0};
    struct scontrol_targets targets = {0};
    bool is_hold = what <= STEER_RELEASE;
    int rc = 0;
    if (!s->n) {
        fprintf(stderr, "too few arguments for keyword:%s\n", keyword);
        return 1;
    }
    bool ok = read_words(s, &targets);
    if (ok && targets.v.n)
        rc = send(s, what, &targets, &reply, &e);
    vec_fini(&targets.v);
    if (!ok)
        return 1;
    const char *last = rc ? e.text : scontrol_tell(&reply);
    if (last && (is_hold || rc)) /* Slurm's own lines, and all of these say "suspend" */
        fprintf(stderr, "slurm_suspend error:%s\n", last);
    return last ? 1 : 0;
}

int scontrol_hold(struct scontrol *s) {
    return steer(s, "hold", STEER_HOLD);
}
int scontrol_uhold(struct scontrol *s) {
    return steer(s, "uhold", STEER_UHOLD);
}
int scontrol_release(struct scontrol *s) {
    return steer(s, "release", STEER_RELEASE);
}
int scontrol_suspend(struct scontrol *s) {
    return steer(s, "suspend", STEER_SUSPEND);
}
int scontrol_resume(struct scontrol *s) {
    return steer(s, "resume", STEER_RESUME);
}
int scontrol_requeue(struct scontrol *s) {
    return steer(s, "requeue", STEER_REQUEUE);
}

int scontrol_requeuehold(struct scontrol *s) {
    const char *state = s->n ? behind(s->word[0], "state=") : NULL;
    if (!state)
        return steer(s, "requeuehold", STEER_REQUEUE_HOLD);
    if (!scontrol_is(state, "SpecialExit", 8)) {
        cli_error(s->c, "Invalid state name: %s", state);
        return 1;
    }
    s->word++;
    s->n--;
    return steer(s, "requeuehold", STEER_REQUEUE_SPECIAL);
}

int scontrol_wait_job(struct scontrol *s) {
    struct job_name name;
    const char *word = s->n ? s->word[0] : "";
    const char *list = behind(word, "jobid=");
    if (!s->n) {
        fprintf(stderr, "too few arguments for keyword:wait_job\n");
        return 1;
    }
    if (job_name_parse(cli_sluids(s->c, list ? list : word), 0, &s->c->arena, &name, NULL)) {
        fprintf(stderr, "Invalid job_id %s", word);
        return 1;
    }
    for (;; usleep(WAIT_US)) {
        struct job_select pick;
        struct job_rows rows = {0};
        struct err e = {0};
        struct jobs_reply reply = {0};
        job_select_init(&pick, s->c);
        pick.states = ~0u;
        job_select_names(&pick, &name, 1);
        struct jobs_request request = {.job_ids = pick.ids, .n_job_ids = 1, .with_ended = true};
        if (cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, &e)) {
            cli_error(s->c, "Job %s: %s", word, e.text);
            return 1;
        }
        for (uint32_t i = 0; i < reply.n_jobs; i++)
            job_select_rows(&pick, &reply.jobs[i], false, &rows);
        const struct job *j = rows.v.n ? rows.v.p[0].job : NULL;
        bool is_running = j && (j->state == JOB_RUNNING || j->state == JOB_SUSPENDED) && !j->completing;
        bool is_ready = is_running && !j->configuring;
        vec_fini(&rows.v);
        if (is_running && !is_ready)
            continue;
        if (!s->quiet)
            cli_say(s->c, is_ready ? "Nodes are ready for job %s" : "Job %s no longer running", word);
        return is_ready ? 0 : 1;
    }
}
