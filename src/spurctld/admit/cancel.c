/* SPDX-License-Identifier: Apache-2.0
 *
 * scancel: which jobs, arrays, tasks and steps; ended, or signalled. With conditions all of the state is looked at, on a
 * worker; what it chose is looked at again before anything is done.
 *
 * As Slurm: a signal goes to a job's steps and not to its batch shell, with batch_only to that alone, with full to both.
 */
#include <signal.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "spurctld/admit/steering.h"
#include "spurctld/react/react.h"

struct cancelling {
    struct steering *st;
    struct arena arena;
    struct cancel_request req; /* a copy, in the arena */
    struct view view;          /* while it is chosen */
    struct map64 wished;       /* job id → its struct job_target in `wishes` */
    VEC(struct job_target) wishes;
    VEC(struct job_target) chosen;
    VEC(struct step_ref) steps; /* of whole records: the job's own id */
    unsigned waiting;           /* commands on their way, and one that is ours */
};

static void drop(struct cancelling *c) {
    map64_fini(&c->wished);
    vec_fini(&c->wishes);
    vec_fini(&c->chosen);
    vec_fini(&c->steps);
    arena_fini(&c->arena);
    free(c);
}

/* ---- which ---- */

static bool has_state(const struct cancel_request *q, uint32_t state) {
    for (uint32_t i = 0; i < q->n_states; i++)
        if (q->states[i] == state)
            return true;
    return q->n_states == 0;
}

static bool is_on(const struct cancel_request *q, const struct job *j) {
    for (uint32_t i = 0; i < q->n_nodes; i++)
        for (uint32_t k = 0; k < j->n_nodes; k++)
            if (str_eq(q->nodes[i], j->nodes[k].name))
                return true;
    return q->n_nodes == 0;
}

static bool is_in_partition(const char *name, const struct job *j) {
    if (j->partition)
        return str_eq(j->partition, name);
    size_t n = strlen(name);
    for (const char *at = j->spec->partition ? j->spec->partition : ""; *at;) {
        size_t len = strcspn(at, ",");
        if (len == n && strncmp(at, name, n) == 0)
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

static bool fits(const struct cancel_request *q, const struct job *j) {
    const struct job_spec *s = j->spec;
    return (!q->user || str_eq(s->user, q->user)) && (!q->name || str_eq(s->name, q->name)) &&
           (!q->account || str_eq(s->account, q->account)) && (!q->qos || str_eq(s->qos, q->qos)) &&
           (!q->partition || is_in_partition(q->partition, j)) && has_state(q, j->state) && is_on(q, j);
}

static bool has_conditions(const struct cancel_request *q) {
    return q->user || q->name || q->account || q->qos || q->partition || q->n_states || q->n_nodes;
}

static bool has_names(const struct cancel_request *q) {
    return q->n_job_ids || q->n_targets || q->n_steps;
}

static const struct job_target *wish_for(const struct cancelling *c, const struct job *j) {
    const struct job_target *t = map64_get(&c->wished, j->id);
    if (!t && j->array)
        t = map64_get(&c->wished, j->array->job_id);
    return t;
}

/* The waiting tasks of an array's record that are wished; all that wait where no tasks are named. */
static void choose_pending(struct cancelling *c, const struct job *j, const struct job_target *wish) {
    struct job_target t = {.job_id = j->id, .tasks = j->array->pending, .n_tasks = j->array->n_pending};
    if (wish && wish->n_tasks) {
        uint32_t n_other, n;
        const struct array_range *other =
            array_without(&c->arena, t.tasks, t.n_tasks, wish->tasks, wish->n_tasks, &n_other);
        t.tasks = array_without(&c->arena, t.tasks, t.n_tasks, other, n_other, &n);
        t.n_tasks = n;
    } else {
        t.tasks = arena_memdup(&c->arena, t.tasks, t.n_tasks * sizeof(*t.tasks));
    }
    if (t.n_tasks)
        vec_push(&c->chosen, t);
}

static void choose_one(struct cancelling *c, const struct job *j) {
    const struct job_target *wish = c->wishes.n ? wish_for(c, j) : NULL;
    if ((c->wishes.n && !wish) || j->state >= JOB_COMPLETED || !fits(&c->req, j))
        return;
    if (!c->wishes.n && !c->req.user && !admit_may_steer(&c->st->who, j)) /* conditions alone speak of one's own */
        return;
    if (j->array && !j->array->task) {
        choose_pending(c, j, wish);
        return;
    }
    if (wish && wish->n_tasks && !array_has(wish->tasks, wish->n_tasks, j->array ? j->array->task - 1 : UINT32_MAX))
        return;
    struct job_target t = {.job_id = j->id};
    vec_push(&c->chosen, t);
}

static void choose_step(struct cancelling *c, const struct job *j) {
    for (uint32_t i = 0; i < c->req.n_steps; i++) {
        struct step_ref ref = c->req.steps[i];
        bool is_it = ref.array_task ? j->array && j->array->job_id == ref.job_id && j->array->task == ref.array_task
                                    : j->id == ref.job_id;
        ref.job_id = j->id;
        if (is_it)
            vec_push(&c->steps, ref);
    }
}

static void choose(void *arg) {
    struct cancelling *c = arg;
    const struct job *j;
    bool has_jobs = c->wishes.n || !has_names(&c->req);
    for (uint64_t k = 0; (j = view_next_job(&c->view, &k)); k++) {
        if (has_jobs)
            choose_one(c, j);
        if (c->req.n_steps)
            choose_step(c, j);
    }
}

/* ---- what is done ---- */

static int signal_one(struct cancelling *c, const struct job *j, uint32_t step_id) {
    struct react_signal what = {c->req.signal, step_id, c->req.batch_only, c->req.full};
    if (!j)
        return E_JOB_ID;
    if (j->state >= JOB_COMPLETED)
        return E_JOB_DONE;
    if (j->state == JOB_PENDING)
        return E_JOB_STATE;
    react_signal(c->st->room->react, j, &what);
    return 0;
}

static void jobs_end(struct cancelling *c);

static void on_stop_noted(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct cancelling *c = arg;
    if (--c->waiting == 0)
        jobs_end(c);
}

/* Whether a job that gets this signal is shown otherwise from now on. */
static bool changes_stop(const struct cancelling *c, const struct job *j) {
    bool is_stopped = job_rare_of(j)->stopped;
    return !c->req.batch_only && (c->req.signal == SIGSTOP ? !is_stopped : c->req.signal == SIGCONT && is_stopped);
}

/* The state says which jobs were stopped: a later leader has to know, too. */
static void note_stops(struct cancelling *c, const struct job_target *targets, size_t n) {
    struct cmd_suspend cmd = {
        .targets = targets, .n_targets = (uint32_t)n, .resume = c->req.signal == SIGCONT, .by_signal = true};
    if (!n)
        return;
    c->waiting++;
    room_propose(c->st->room, CMD_SUSPEND, &cmd, c->st->who.uid, NULL, on_stop_noted, c);
}

static void signal_jobs(struct cancelling *c, const struct view *v) {
    VEC(struct job_target) stops = {0};
    for (size_t i = 0; i < c->chosen.n; i++) {
        const struct job *j = view_job(v, c->chosen.p[i].job_id);
        int code = j && !admit_may_steer(&c->st->who, j) ? E_DENIED : signal_one(c, j, 0);
        steering_result(c->st, &c->chosen.p[i], code);
        if (!code && changes_stop(c, j))
            vec_push(&stops, ((struct job_target){.job_id = j->id}));
    }
    note_stops(c, stops.p, stops.n);
    vec_fini(&stops);
}

static int check_step(struct cancelling *c, const struct view *v, const struct step_ref *ref) {
    const struct job *j = view_job(v, ref->job_id);
    const struct step *s = view_step(v, ref->job_id, ref->step_id);
    if (!j)
        return E_JOB_ID;
    if (!admit_may_steer(&c->st->who, j))
        return E_DENIED;
    if (ref->step_id == STEP_BATCH)
        return c->req.signal ? 0 : E_STEP_ID;
    return !s ? E_STEP_ID : s->end_ms || s->start_no != j->start_no ? E_JOB_DONE : 0;
}

static void step_result(struct cancelling *c, const struct step_ref *ref, int code) {
    auto_str id = {0};
    step_print_id(ref->step_id, &id);
    struct job_result r = {.job_id = ref->job_id, .error = (uint32_t)-code, .text = code ? err_sentence(code) : NULL};
    r.id_text = arena_printf(&c->st->arena, "%u.%s", ref->job_id, str_text(&id));
    vec_push(&c->st->results, r);
}

struct step_end {
    struct cancelling *c;
    struct step_ref ref;
};

static void on_step_ended(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct step_end *se = arg;
    struct cancelling *c = se->c;
    step_result(c, &se->ref, code);
    free(se);
    if (--c->waiting == 0)
        jobs_end(c);
}

static void end_step(struct cancelling *c, const struct step_ref *ref) {
    struct cmd_step_cancel cmd = {.job_id = ref->job_id, .step_id = ref->step_id};
    struct step_end *se = xnew(struct step_end);
    *se = (struct step_end){c, *ref};
    c->waiting++;
    room_propose(c->st->room, CMD_STEP_CANCEL, &cmd, c->st->who.uid, NULL, on_step_ended, se);
}

static void do_steps(struct cancelling *c, const struct view *v) {
    for (size_t i = 0; i < c->steps.n; i++) {
        const struct step_ref *ref = &c->steps.p[i];
        int code = check_step(c, v, ref);
        if (!code && !c->req.signal) {
            end_step(c, ref);
            continue;
        }
        if (!code && ref->step_id == STEP_BATCH) {
            struct react_signal what = {.signal = c->req.signal, .batch_only = true};
            react_signal(c->st->room->react, view_job(v, ref->job_id), &what);
        } else if (!code) {
            code = signal_one(c, view_job(v, ref->job_id), ref->step_id + 1);
        }
        step_result(c, ref, code);
    }
}

/* The steps are done: now the jobs, with one command. */
static void jobs_end(struct cancelling *c) {
    struct steering *st = c->st;
    struct cmd_cancel cmd = {.job_ids = st->ids.p,
                             .n_job_ids = (uint32_t)st->ids.n,
                             .targets = st->targets.p,
                             .n_targets = (uint32_t)st->targets.n,
                             .complete = c->req.complete,
                             .no_trace = true,
                             .keep_reason = true};
    steering_propose(st, CMD_CANCEL, &cmd, c->req.token, c->req.n_token);
    drop(c);
}

/* A step or task that is named and not there is told of; a wish that no condition fits is not. */
static void tell_missing(struct cancelling *c, const struct view *v) {
    for (size_t i = 0; i < c->wishes.n; i++)
        if (!view_job(v, c->wishes.p[i].job_id))
            steering_result(c->st, &c->wishes.p[i], E_JOB_ID);
    for (uint32_t i = 0; i < c->req.n_steps; i++)
        if (!view_job(v, c->req.steps[i].job_id))
            step_result(c, &c->req.steps[i], E_JOB_ID);
}

static void act(struct cancelling *c) {
    struct view v;
    state_peek(c->st->room->state, &v);
    c->waiting = 1;
    tell_missing(c, &v);
    do_steps(c, &v);
    if (c->req.signal) {
        signal_jobs(c, &v);
    } else {
        for (size_t i = 0; i < c->chosen.n; i++)
            steering_take(c->st, view_job(&v, c->chosen.p[i].job_id), &c->chosen.p[i], E_DENIED);
    }
    if (--c->waiting == 0)
        jobs_end(c);
}

static void on_chosen(void *arg) {
    struct cancelling *c = arg;
    state_view_end(&c->view);
    act(c);
}

/* ---- the request ---- */

static bool is_array(const struct view *v, uint32_t id) {
    const struct job *j = view_job(v, id);
    return j && j->array && j->array->job_id == id;
}

/* Whether the records must be looked for: what the command itself can't say. */
static bool needs_search(const struct cancelling *c, const struct view *v) {
    if (has_conditions(&c->req))
        return true;
    for (uint32_t i = 0; i < c->req.n_steps; i++)
        if (c->req.steps[i].array_task)
            return true;
    for (size_t i = 0; i < c->wishes.n && c->req.signal; i++)
        if (c->wishes.p[i].n_tasks || is_array(v, c->wishes.p[i].job_id))
            return true;
    return false;
}

static void take_wishes(struct cancelling *c) {
    for (uint32_t i = 0; i < c->req.n_job_ids; i++) {
        struct job_target t = {.job_id = c->req.job_ids[i]};
        vec_push(&c->wishes, t);
    }
    for (uint32_t i = 0; i < c->req.n_targets; i++)
        vec_push(&c->wishes, c->req.targets[i]);
    for (size_t i = 0; i < c->wishes.n; i++)
        if (c->wishes.p[i].job_id)
            map64_put(&c->wished, c->wishes.p[i].job_id, &c->wishes.p[i]);
}

static void choose_directly(struct cancelling *c, const struct view *v) {
    for (size_t i = 0; i < c->wishes.n; i++)
        if (view_job(v, c->wishes.p[i].job_id))
            vec_push(&c->chosen, c->wishes.p[i]);
    for (uint32_t i = 0; i < c->req.n_steps; i++)
        if (view_job(v, c->req.steps[i].job_id))
            vec_push(&c->steps, c->req.steps[i]);
}

static int check_request(const struct cancel_request *req, struct err *e) {
    if (!has_names(req) && !has_conditions(req))
        return err_set(e, E_USAGE, "No job identification provided");
    if (req->signal > 64)
        return err_set(e, E_SYNTAX, "%u is no signal", req->signal);
    if (req->n_steps > STEER_IDS_MAX || req->n_states > 64 || req->n_nodes > STEER_IDS_MAX)
        return err_set(e, E_TOO_BIG, NULL);
    if (req->complete && (req->n_job_ids != 1 || req->n_targets || req->n_steps || req->signal || has_conditions(req)))
        return err_set(e, E_USAGE, "only one job can be completed");
    return steering_check(req->n_job_ids, req->targets, req->n_targets, e);
}

void admit_cancel(struct room *r, const struct who *who, const struct cancel_request *req, admit_fn done, void *arg) {
    struct err e = {0};
    int rc = check_request(req, &e);
    if (rc) {
        done(arg, rc, &e, NULL);
        return;
    }
    struct cancelling *c = xnew(struct cancelling);
    c->st = steering_new(r, who, done, arg);
    auto_buf bytes = {0};
    rec_encode(cancel_request_rec(), req, &bytes);
    must(rec_decode(cancel_request_rec(), bytes.p, bytes.n, &c->arena, &c->req, NULL) == 0);
    take_wishes(c);
    struct view v;
    state_peek(r->state, &v);
    if (!needs_search(c, &v)) {
        choose_directly(c, &v);
        act(c);
        return;
    }
    state_view(r->state, &c->view);
    r->host->work(r->host->impl, choose, on_chosen, c);
}
