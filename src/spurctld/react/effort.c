/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/react/effort.h"

#include "base/mem.h"

#define RETRY_FIRST_MS 250u
#define RETRY_MOST_MS 10000u

/* Job ids have 26 bits. */
uint64_t effort_key(enum effort_kind kind, uint32_t job_id, uint32_t step_id) {
    switch (kind) {
    case EFFORT_STEP_ENDING: return UINT64_C(1) << 62 | step_key(job_id, step_id);
    case EFFORT_SUSPEND: return UINT64_C(1) << 63 | job_id;
    default: return job_id;
    }
}

static uint64_t key_of(const struct effort *ef) {
    return effort_key(ef->kind, ef->job_id, ef->step_id);
}

struct effort *effort_new(struct react *re, const struct job *j, enum effort_kind kind, uint32_t step_id) {
    struct effort *ef = xnew(struct effort);
    *ef = (struct effort){
        .re = re,
        .job_id = j->id,
        .start_no = j->start_no,
        .step_id = step_id,
        .kind = kind,
        .n_nodes = j->n_nodes,
        .confirmed = xcalloc(j->n_nodes + 1, sizeof(bool)),
        .begun_ms = re->room->host->now_ms(re->room->host->impl),
        .wait_ms = RETRY_FIRST_MS,
        .about = log_about_now(),
    };
    map64_put(&re->efforts, key_of(ef), ef);
    return ef;
}

static void effort_free(struct effort *ef) {
    buf_fini(&ef->script);
    buf_fini(&ef->env);
    free(ef->failure);
    free(ef->excuse);
    free(ef->confirmed);
    free(ef);
}

/* Out of the table; freed when the last callback is back. */
void effort_drop(struct effort *ef) {
    struct host *h = ef->re->room->host;
    if (map64_get(&ef->re->efforts, key_of(ef)) == ef)
        map64_del(&ef->re->efforts, key_of(ef));
    h->timer_stop(h->impl, ef->timer);
    ef->timer = NULL;
    ef->is_dead = true;
    if (!ef->out)
        effort_free(ef);
}

/* A callback came back: false when the effort is gone and nothing more may be done with it. */
bool effort_back(struct effort *ef) {
    ef->out--;
    if (!ef->is_dead)
        return true;
    if (!ef->out)
        effort_free(ef);
    return false;
}

const struct job *effort_job(const struct effort *ef) {
    struct view v;
    state_peek(ef->re->room->state, &v);
    const struct job *j = view_job(&v, ef->job_id);
    return j && j->start_no == ef->start_no ? j : NULL;
}

const struct node *effort_node(const struct effort *ef, uint32_t node_id) {
    struct view v;
    state_peek(ef->re->room->state, &v);
    return view_node(&v, node_id);
}

static void on_timer(void *arg) {
    struct effort *ef = arg;
    ef->timer = NULL;
    struct log_about old = log_about_set(ef->about.id);
    effort_round(ef);
    log_about_set(old.id);
}

int64_t effort_now_ms(const struct effort *ef) {
    struct host *h = ef->re->room->host;
    return h->now_ms(h->impl);
}

/* Sooner counts. */
void effort_again_in(struct effort *ef, uint64_t delay_ms) {
    struct host *h = ef->re->room->host;
    int64_t due_ms = effort_now_ms(ef) + (int64_t)delay_ms;
    if (ef->timer && ef->due_ms <= due_ms)
        return;
    h->timer_stop(h->impl, ef->timer);
    ef->due_ms = due_ms;
    ef->timer = h->timer_start(h->impl, delay_ms, on_timer, ef);
}

/* However many fail in a round, the pause doubles once. */
void effort_back_off(struct effort *ef) {
    if (!ef->pause_ms) {
        ef->pause_ms = ef->wait_ms;
        ef->wait_ms = MIN(ef->wait_ms * 2, (uint64_t)RETRY_MOST_MS);
    }
    effort_again_in(ef, ef->pause_ms);
}

/* Whether a refused proposal is worth making again: not when the state has gone on, or we don't lead. */
bool effort_is_worth_repeating(int code) {
    return code && code != E_STALE && code != E_NOT_LEADER && code != E_STOPPING;
}

bool effort_is_transport(int code) {
    return code == E_UNREACHABLE || code == E_DEADLINE || code == E_BUSY || code == E_CANCELLED || code == E_STOPPING;
}

void effort_round(struct effort *ef) {
    switch (ef->kind) {
    case EFFORT_LAUNCH: launch_round(ef, effort_job(ef)); break;
    case EFFORT_ENDING: ending_round(ef, effort_job(ef)); break;
    case EFFORT_STEP_ENDING: step_ending_round(ef, effort_job(ef)); break;
    case EFFORT_SUSPEND: suspend_round(ef, effort_job(ef)); break;
    }
}
