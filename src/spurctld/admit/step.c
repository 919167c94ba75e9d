/* SPDX-License-Identifier: Apache-2.0
 *
 * A step is asked for: lay it out beside the job's other steps, propose it, answer with its tickets. What does not fit now
 * waits here (soft: whoever leads next is asked again by the clients), is tried again whenever a step of its job ends,
 * and is sent back after STEP_WAIT_MS to ask again, so that a lost client is not waited for.
 *
 * One proposal a job is under way at a time: each is laid out on what the one before it left.
 */
#include "spurctld/admit/step.h"

#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "spurctld/admit/layout.h"

#define STEP_WAIT_MS 20000u
#define WAITING_MOST 10000u /* of one job */
#define TASKS_MOST 1000000u
#define TEXT_MAX 4096u

struct asking;

struct step_queue {
    struct admit *admit;
    uint32_t job_id;
    VEC(struct asking *) waiting; /* in their order */
    struct asking *proposed;      /* one of them */
};

struct asking {
    struct step_queue *q; /* NULL: it is not in a queue */
    struct room *room;
    struct arena arena;
    struct step_request req;
    uint32_t uid;
    struct host_timer *timer;
    admit_fn done;
    void *arg;
};

static void finish(struct asking *as, int code, const struct err *why, const struct step_reply *reply) {
    struct err e;
    if (code && !why) {
        err_set(&e, code, NULL);
        why = &e;
    }
    as->room->host->timer_stop(as->room->host->impl, as->timer);
    as->done(as->arg, code, why, reply);
    arena_fini(&as->arena);
    free(as);
}

static struct step_queue *queue_of(struct admit *ad, uint32_t job_id) {
    struct step_queue *q = map64_get(&ad->queues, job_id);
    if (!q) {
        q = xnew(struct step_queue);
        q->admit = ad;
        q->job_id = job_id;
        map64_put(&ad->queues, job_id, q);
    }
    return q;
}

static void drop_if_empty(struct step_queue *q) {
    if (q->waiting.n || q->proposed)
        return;
    map64_del(&q->admit->queues, q->job_id);
    vec_fini(&q->waiting);
    free(q);
}

static void unqueue(struct step_queue *q, struct asking *as) {
    for (size_t i = 0; i < q->waiting.n; i++) {
        if (q->waiting.p[i] == as) {
            vec_remove(&q->waiting, i);
            return;
        }
    }
}

/* Its end, as one of a queue that may go with it. */
static void settle(struct step_queue *q, struct asking *as, int code, const struct err *why,
                   const struct step_reply *reply) {
    unqueue(q, as);
    finish(as, code, why, reply);
}

static void answer_with(struct asking *as, uint32_t step_id, int *out_code, struct step_reply *out) {
    struct view v;
    state_peek(as->room->state, &v);
    const struct job *j = view_job(&v, as->req.job_id);
    const struct step *st = view_step(&v, as->req.job_id, step_id);
    *out_code = j && st ? 0 : E_JOB_DONE;
    if (!*out_code)
        tickets_make(as->room, TICKET_LAUNCH, j, st, &as->arena, out);
}

static void run_queue(struct step_queue *q);

static void on_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct asking *as = arg;
    struct step_queue *q = as->q;
    struct answer a = {0};
    struct step_reply reply = {0};
    struct err e;
    q->proposed = NULL;
    if (code == E_STEP_BUSY && !as->req.spec->immediate && as->timer && as->room->is_leader) {
        /* what it saw was gone: it waits on */
        run_queue(q);
        return;
    }
    if (!code)
        code = rec_decode(answer_rec(), answer, n, &as->arena, &a, &e);
    if (!code)
        answer_with(as, a.step_id, &code, &reply);
    settle(q, as, code, why && why->code ? why : NULL, &reply);
    run_queue(q);
}

/* 0: it was proposed. */
static int try(struct step_queue *q, struct asking *as, struct err *e) {
    struct view v;
    struct room *r = as->room;
    state_peek(r->state, &v);
    const struct job *j = view_job(&v, q->job_id);
    if (!j)
        return err_set(e, E_JOB_ID, NULL);
    if (j->state >= JOB_COMPLETED || job_rare_of(j)->requeue_wanted)
        return err_set(e, E_JOB_DONE, NULL);
    if (j->state == JOB_PENDING)
        return err_set(e, E_JOB_PENDING, NULL);
    if (j->configuring || j->state == JOB_SUSPENDED)
        return err_set(e, E_STEP_BUSY, NULL);
    struct cmd_step_start cmd = {.job_id = j->id, .start_no = j->start_no, .spec = as->req.spec};
    auto_arena a = {0};
    int rc = step_layout(&v, j, as->req.spec, &a, &cmd.nodes, &cmd.n_nodes, e);
    if (rc)
        return rc;
    q->proposed = as;
    room_propose(r, CMD_STEP_START, &cmd, as->uid, as->req.n_token == TOKEN_SIZE ? as->req.token : NULL, on_proposed,
                 as);
    return 0;
}

/* The first that fits; those that can't be are told. The queue may be gone afterwards. */
static void run_queue(struct step_queue *q) {
    for (size_t i = 0; i < q->waiting.n && !q->proposed;) {
        struct asking *as = q->waiting.p[i];
        struct err e = {0};
        int rc = try(q, as, &e);
        if (!rc)
            return;
        if (rc == E_STEP_BUSY && !as->req.spec->immediate)
            i++;
        else
            settle(q, as, rc, &e, NULL);
    }
    drop_if_empty(q);
}

static void on_time(void *arg) {
    struct asking *as = arg;
    struct step_queue *q = as->q;
    as->timer = NULL;
    if (q->proposed == as) /* its answer is on its way */
        return;
    settle(q, as, E_STEP_BUSY, NULL, NULL);
    drop_if_empty(q);
}

static int check_request(const struct who *who, const struct job *j, const struct step_request *req, struct err *e) {
    const struct step_spec *s = req->spec;
    if (!j)
        return err_set(e, E_JOB_ID, NULL);
    if (who->uid != j->spec->uid || (who->uid == 0 && !who->is_proven))
        return err_set(e, E_DENIED, NULL); /* as Slurm: root neither, what runs is the owner's */
    if (!s)
        return err_set(e, E_USAGE, NULL);
    if (s->n_tasks > TASKS_MOST || s->cpus_per_task > TASKS_MOST || s->min_nodes > TASKS_MOST)
        return err_set(e, E_STEP_TOO_BIG, NULL);
    const char *const texts[] = {s->name, s->submit_line, s->submit_host, s->work_dir};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i] && strlen(texts[i]) > TEXT_MAX)
            return err_set(e, E_TOO_BIG, NULL);
    if (s->n_req_nodes > TASKS_MOST || s->n_exc_nodes > TASKS_MOST || s->n_gres > 64)
        return err_set(e, E_TOO_BIG, NULL);
    return 0;
}

static struct asking *asking_new(struct room *r, const struct who *who, const struct step_request *req, admit_fn done,
                                 void *arg) {
    struct asking *as = xnew(struct asking);
    auto_buf bytes = {0};
    *as = (struct asking){.room = r, .uid = who->uid, .done = done, .arg = arg};
    rec_encode(step_request_rec(), req, &bytes);
    must(rec_decode(step_request_rec(), bytes.p, bytes.n, &as->arena, &as->req, NULL) == 0);
    return as;
}

/* A repeat: the step is there, whatever became of it since. */
static bool answer_repeat(struct asking *as) {
    const void *p;
    size_t n;
    struct answer a = {0};
    struct step_reply reply = {0};
    if (as->req.n_token != TOKEN_SIZE || !state_answered(as->room->state, as->req.token, as->uid, &p, &n) ||
        rec_decode(answer_rec(), p, n, &as->arena, &a, NULL))
        return false;
    int code;
    answer_with(as, a.step_id, &code, &reply);
    finish(as, code, NULL, &reply);
    return true;
}

void admit_step_start(struct room *r, const struct who *who, const struct step_request *req, admit_fn done, void *arg) {
    struct view v;
    struct err e = {0};
    state_peek(r->state, &v);
    const struct job *j = view_job(&v, req->job_id);
    int rc = check_request(who, j, req, &e);
    if (rc) {
        done(arg, rc, &e, NULL);
        return;
    }
    struct asking *as = asking_new(r, who, req, done, arg);
    if (answer_repeat(as))
        return;
    struct step_queue *q = queue_of(r->admit, req->job_id);
    if (q->waiting.n >= WAITING_MOST) {
        finish(as, E_BUSY, NULL, NULL);
        return;
    }
    as->q = q;
    as->timer = r->host->timer_start(r->host->impl, STEP_WAIT_MS, on_time, as);
    vec_push(&q->waiting, as);
    run_queue(q);
}

/* ---- the room ---- */

struct admit *admit_new(struct room *r) {
    struct admit *ad = xnew(struct admit);
    ad->room = r;
    return ad;
}

/* Those that are proposed are answered by the journal, the others here. */
static void end_queue(struct step_queue *q, int code) {
    for (size_t i = 0; i < q->waiting.n;) {
        if (q->waiting.p[i] == q->proposed)
            i++;
        else
            settle(q, q->waiting.p[i], code, NULL, NULL);
    }
    drop_if_empty(q);
}

void admit_end(struct admit *ad, int code) {
    VEC(struct step_queue *) all = {0};
    size_t cursor = 0;
    void *q;
    while (map64_next(&ad->queues, &cursor, NULL, &q))
        vec_push(&all, q);
    for (size_t i = 0; i < all.n; i++)
        end_queue(all.p[i], code);
    vec_fini(&all);
}

void admit_free(struct admit *ad) {
    if (!ad)
        return;
    must(ad->queues.n == 0);
    map64_fini(&ad->queues);
    free(ad);
}

void admit_on_event(struct admit *ad, const struct event *ev) {
    if (!ev->job_id || !ad->queues.n)
        return;
    struct step_queue *q = map64_get(&ad->queues, ev->job_id);
    if (q && !q->proposed)
        run_queue(q);
}
