/* SPDX-License-Identifier: Apache-2.0
 *
 * Which records a command means by a job_target, and how tasks are taken out of an array's record.
 *
 * A *group* is a record that stands for several tasks of an array (job_array.task is 0): the array's own while tasks of it
 * wait, or tasks that one command took out of it: held, changed or cancelled ones.
 */
#include "base/hash.h"
#include "base/mem.h"
#include "core/state/inside.h"


static uint32_t free_job_id(struct state *s) {
    const struct rconf *conf = s->cluster->conf;
    uint32_t last = conf && conf->max_job_id ? MIN(conf->max_job_id, JOB_ID_MAX) : JOB_ID_MAX;
    uint32_t first = conf && conf->first_job_id ? conf->first_job_id : 1;
    uint32_t id = s->counters.next_job_id;
    for (size_t tried = 0; tried <= s->jobs.n; tried++, id++) {
        if (id < first || id > last)
            id = first;
        if (!state_job(s, id))
            return id;
    }
    return 0;
}

/* The second id of a record that apply makes: nobody proposed one. */
const char *derived_sluid(struct apply *ap, const char *from, uint32_t id) {
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    char *out = arena_calloc(ap->arena, 16, 1);
    auto_buf b = {0};
    buf_add(&b, from ? from : "", from ? __builtin_strlen(from) : 0);
    buf_u32le(&b, id);
    buf_u64le(&b, ap->index);
    uint64_t x = hash_fixed(b.p, b.n);
    out[0] = 's';
    for (int i = 1; i <= 13; i++, x >>= 5)
        out[i] = digits[x & 31];
    return out;
}

/* What tasks need no copy of is left with the array's own record. */
static const struct job_spec *task_spec(struct apply *ap, const struct job_spec *spec) {
    if (!spec->more || !spec->more->n_array_ranges)
        return spec;
    struct job_spec *mine = arena_memdup(ap->arena, spec, sizeof(*spec));
    struct job_more *more = arena_memdup(ap->arena, spec->more, sizeof(*more));
    more->array_ranges = NULL;
    more->n_array_ranges = 0;
    mine->more = more;
    return mine;
}

/* The id that a task has from the beginning; 0: none. */
static uint32_t reserved_id(const struct state *s, const struct job *from, uint32_t task) {
    const struct job *head = state_job(s, from->array->job_id);
    if (!head || !head->array->first_id)
        return 0;
    const struct job_more *more = job_spec_more(head->spec);
    uint32_t id = head->array->first_id + array_rank(more->array_ranges, more->n_array_ranges, task);
    return state_job(s, id) ? 0 : id;
}

uint32_t array_split(struct apply *ap, const struct job *from, const struct array_range *tasks, uint32_t n,
                     uint32_t id, const char *sluid) {
    struct state *s = ap->s;
    uint32_t own_id = n == 1 && tasks->first == tasks->last ? reserved_id(s, from, tasks->first) : 0;
    if (own_id)
        id = own_id;
    if (!id)
        id = free_job_id(s);
    if (!id)
        return 0;
    bool is_one = n == 1 && tasks->first == tasks->last;
    struct job_array mine = {.job_id = from->array->job_id, .task = is_one ? tasks->first + 1 : 0};
    struct job_array rest = *from->array;
    if (!is_one) {
        mine.pending = tasks;
        mine.n_pending = n;
    }
    rest.pending = array_without(ap->arena, rest.pending, rest.n_pending, tasks, n, &rest.n_pending);
    struct job j = *from, head = *from;
    j.id = id;
    j.sluid = sluid ? sluid : derived_sluid(ap, from->sluid, id);
    j.spec = task_spec(ap, from->spec);
    j.array = &mine;
    head.array = &rest;
    if (!rest.n_pending) { /* all its tasks have records of their own: it stands for their end alone */
        head.state = JOB_COMPLETED;
        head.end_ms = ap->now_ms;
        head.ended_index = ap->index;
    }
    s->counters.next_job_id = MAX(s->counters.next_job_id, id + 1);
    state_put_job(s, &head);
    state_put_job(s, &j);
    if (j.n_deps) /* by aftercorr, some tasks may and others not */
        deps_split(ap, from->id, id);
    return id;
}

const struct array_range *array_both(struct apply *ap, const struct array_range *a, uint32_t n_a,
                                     const struct array_range *b, uint32_t n_b, uint32_t *out_n) {
    uint32_t n_rest;
    const struct array_range *rest = array_without(ap->arena, a, n_a, b, n_b, &n_rest);
    return array_without(ap->arena, a, n_a, rest, n_rest, out_n);
}

struct walk {
    struct apply *ap;
    target_fn fn;
    void *arg;
    int code; /* the first refusal */
    bool any;
};

static void note(struct walk *w, int rc) {
    if (rc == 0)
        w->any = true;
    else if (!w->code)
        w->code = rc;
}

static void visit(struct walk *w, uint32_t id) {
    const struct job *j = state_job(w->ap->s, id);
    if (j && !job_is_hollow(j))
        note(w, w->fn(w->ap, j, w->arg, false));
}

/* Those of a group's tasks that are meant; the others stay what they are. */
static void visit_part(struct walk *w, const struct job *j, const struct job_target *t) {
    uint32_t n;
    const struct array_range *tasks = array_both(w->ap, j->array->pending, j->array->n_pending, t->tasks, t->n_tasks, &n);
    if (!n)
        return;
    uint32_t id = j->id;
    if (array_count(tasks, n) < array_count(j->array->pending, j->array->n_pending)) {
        int rc = w->fn(w->ap, j, w->arg, true);
        id = rc ? 0 : array_split(w->ap, j, tasks, n, 0, NULL);
        if (!id) {
            note(w, rc ? rc : E_ID_SPACE);
            return;
        }
    }
    visit(w, id);
}

static void visit_tasks(struct walk *w, uint32_t id, const struct job_target *t) {
    const struct job *j = state_job(w->ap->s, id);
    if (!j)
        return;
    if (job_is_group(j))
        visit_part(w, j, t);
    else if (array_has(t->tasks, t->n_tasks, j->array->task - 1))
        visit(w, id);
}

static bool ranges_are_sane(const struct job_target *t) {
    for (uint32_t i = 0; i < t->n_tasks; i++)
        if (t->tasks[i].last < t->tasks[i].first || t->tasks[i].last >= UINT32_MAX - 1 ||
            (i && t->tasks[i].first <= t->tasks[i - 1].last))
            return false;
    return true;
}

int target_each(struct apply *ap, const struct job_target *t, target_fn fn, void *arg) {
    struct walk w = {.ap = ap, .fn = fn, .arg = arg};
    const struct job *j = state_job(ap->s, t->job_id);
    if (!j || !ranges_are_sane(t))
        return E_JOB_ID;
    bool is_head = j->array && j->array->job_id == j->id;
    if (!is_head)
        return t->n_tasks ? E_JOB_ID : fn(ap, j, arg, false);
    const struct idset *others = idset_of(&ap->s->arrays, j->id);
    uint32_t n = others ? (uint32_t)others->ids.n : 0; /* records that are split off meanwhile are visited by then */
    uint32_t *ids = arena_memdup(ap->arena, n ? others->ids.p : NULL, n * sizeof(*ids));
    for (uint32_t i = 0; i <= n; i++) {
        uint32_t id = i ? ids[i - 1] : t->job_id;
        if (t->n_tasks)
            visit_tasks(&w, id, t);
        else
            visit(&w, id);
    }
    return w.any ? 0 : w.code ? w.code : E_JOB_ID;
}

void targets_each(struct apply *ap, const uint32_t *ids, uint32_t n_ids, const struct job_target *targets, uint32_t n,
                  target_fn fn, void *arg) {
    struct answer_item *items = apply_items(ap, n_ids + n);
    for (uint32_t i = 0; i < n_ids; i++)
        apply_item(&items[i], ids[i], target_each(ap, &(struct job_target){.job_id = ids[i]}, fn, arg));
    for (uint32_t i = 0; i < n; i++)
        apply_item(&items[n_ids + i], targets[i].job_id, target_each(ap, &targets[i], fn, arg));
}
