/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/admit/steering.h"

#include "base/mem.h"
#include "base/str.h"

struct steering *steering_new(struct room *r, const struct who *who, admit_fn done, void *arg) {
    struct steering *st = xnew(struct steering);
    st->room = r;
    st->who = *who;
    st->done = done;
    st->arg = arg;
    return st;
}

void steering_finish(struct steering *st, int code, const struct err *why) {
    struct results reply = {st->results.p, (uint32_t)st->results.n};
    st->done(st->arg, code, why, &reply);
    vec_fini(&st->results);
    vec_fini(&st->ids);
    vec_fini(&st->targets);
    arena_fini(&st->arena);
    free(st);
}

bool admit_may_steer(const struct who *who, const struct job *j) {
    return who->is_admin || (who->uid == j->spec->uid && (who->uid != 0 || who->is_proven));
}

static void add_result(struct steering *st, const struct job_target *t, int code, const char *text) {
    struct job_result r = {.job_id = t->job_id, .error = (uint32_t)-code, .text = text};
    if (t->n_tasks) {
        auto_str name = {0};
        str_addf(&name, "%u_[", t->job_id);
        array_print(t->tasks, t->n_tasks, &name);
        str_addc(&name, ']');
        bool is_one = t->n_tasks == 1 && t->tasks[0].first == t->tasks[0].last;
        r.id_text = is_one ? arena_printf(&st->arena, "%u_%u", t->job_id, t->tasks[0].first)
                           : arena_strdup(&st->arena, str_text(&name));
    }
    vec_push(&st->results, r);
}

void steering_result(struct steering *st, const struct job_target *t, int code) {
    add_result(st, t, code, code ? err_sentence(code) : NULL);
}

void steering_take(struct steering *st, const struct job *j, const struct job_target *t, int denied) {
    if (!j) {
        steering_result(st, t, E_JOB_ID);
    } else if (!admit_may_steer(&st->who, j)) {
        steering_result(st, t, denied);
    } else if (t->n_tasks) {
        struct job_target mine = *t;
        mine.tasks = arena_memdup(&st->arena, t->tasks, t->n_tasks * sizeof(*t->tasks));
        vec_push(&st->targets, mine);
    } else if (j->array && j->array->job_id == j->id) { /* all of the array */
        vec_push(&st->targets, *t);
    } else {
        vec_push(&st->ids, t->job_id);
    }
}

void steering_take_all(struct steering *st, const uint32_t *ids, uint32_t n_ids, const struct job_target *targets,
                       uint32_t n_targets, int denied) {
    struct view v;
    state_peek(st->room->state, &v);
    for (uint32_t i = 0; i < n_ids; i++) {
        struct job_target t = {.job_id = ids[i]};
        steering_take(st, view_job(&v, ids[i]), &t, denied);
    }
    for (uint32_t i = 0; i < n_targets; i++)
        steering_take(st, view_job(&v, targets[i].job_id), &targets[i], denied);
}

static void on_proposed(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct steering *st = arg;
    struct answer a = {0};
    struct err e = {0};
    if (!code) {
        code = rec_decode(answer_rec(), answer, n, &st->arena, &a, &e);
        why = &e;
    }
    for (uint32_t i = 0; i < a.n_items; i++) { /* in the order of the command: ids, then targets */
        size_t k = i >= st->ids.n ? i - st->ids.n : SIZE_MAX;
        struct job_target plain = {.job_id = a.items[i].job_id};
        bool is_target = k < st->targets.n && st->targets.p[k].job_id == plain.job_id;
        add_result(st, is_target ? &st->targets.p[k] : &plain, -(int)a.items[i].error, a.items[i].text);
    }
    steering_finish(st, code, why);
}

void steering_propose(struct steering *st, enum command c, const void *cmd, const uint8_t *token, uint32_t n_token) {
    if (st->ids.n || st->targets.n)
        room_propose(st->room, c, cmd, st->who.uid, n_token == TOKEN_SIZE ? token : NULL, on_proposed, st);
    else
        steering_finish(st, 0, NULL);
}

int steering_check(uint32_t n_ids, const struct job_target *targets, uint32_t n_targets, struct err *e) {
    if (n_ids > STEER_IDS_MAX || n_targets > STEER_IDS_MAX)
        return err_set(e, E_TOO_BIG, "more than %u jobs in one request", STEER_IDS_MAX);
    for (uint32_t i = 0; i < n_targets; i++) {
        for (uint32_t k = 0; k < targets[i].n_tasks; k++) {
            const struct array_range *r = &targets[i].tasks[k];
            if (r->first > r->last || (k && r->first <= targets[i].tasks[k - 1].last))
                return err_set(e, E_ARRAY, NULL);
        }
    }
    return 0;
}
