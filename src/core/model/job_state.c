/* SPDX-License-Identifier: Apache-2.0
 *
 * What the table job_state.def says: names, codes, legal moves.
 *
 * COMPLETING, CONFIGURING and STOPPED are flags of ours and states to those who look, so they are shown and parsed here.
 */
#include <strings.h>

#include "base/err.h"
#include "base/mem.h"
#include "core/model/job.h"

struct row {
    const char *name, *compact;
    uint32_t moves;
};

static const struct row rows[] = {
#define JOB_STATE(name, number, compact, moves, doc) [number] = {#name, compact, moves},
#define JOB_REASON(name, number, word, doc)
#include "core/model/job_state.def"
#undef JOB_STATE
#undef JOB_REASON
};
_Static_assert(ARRAY_LEN(rows) == JOB_N_STATES, "job states are numbered without gaps");

static const char *const reasons[] = {
#define JOB_STATE(name, number, compact, moves, doc)
#define JOB_REASON(name, number, word, doc) [number] = word,
#include "core/model/job_state.def"
#undef JOB_STATE
#undef JOB_REASON
};
_Static_assert(ARRAY_LEN(reasons) == JOB_N_REASONS, "reasons are numbered without gaps");

static const struct {
    const char *name, *compact;
    uint32_t number;
} flags[] = {{"COMPLETING", "CG", JOB_N_STATES},
             {"CONFIGURING", "CF", JOB_N_STATES + 1},
             {"STOPPED", "ST", JOB_N_STATES + 2},
             {"SPECIAL_EXIT", "SE", JOB_N_STATES + 3}};

const char *job_state_name(uint32_t state) {
    return state < JOB_N_STATES ? rows[state].name : "UNKNOWN";
}

const char *job_state_compact(uint32_t state) {
    return state < JOB_N_STATES ? rows[state].compact : "?";
}

bool job_is_stopped(const struct job *j) {
    return j->state == JOB_RUNNING && !j->completing && job_rare_of(j)->stopped;
}

/* The flag that is shown in the state's place; -1: none. */
static int shown_flag(const struct job *j) {
    if (j->completing)
        return 0;
    if (j->state == JOB_PENDING && job_rare_of(j)->special_exit)
        return 3;
    return j->state == JOB_RUNNING && j->configuring ? 1 : job_is_stopped(j) ? 2 : -1;
}

const char *job_shown_state(const struct job *j) {
    int flag = shown_flag(j);
    return flag >= 0 ? flags[flag].name : job_state_name(j->state);
}

const char *job_shown_state_compact(const struct job *j) {
    int flag = shown_flag(j);
    return flag >= 0 ? flags[flag].compact : job_state_compact(j->state);
}

int job_state_parse(const char *s, uint32_t *out) {
    for (uint32_t i = 0; i < JOB_N_STATES; i++) {
        if (strcasecmp(s, rows[i].name) == 0 || strcasecmp(s, rows[i].compact) == 0) {
            *out = i;
            return 0;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (strcasecmp(s, flags[i].name) == 0 || strcasecmp(s, flags[i].compact) == 0) {
            *out = flags[i].number;
            return 0;
        }
    }
    return E_STATE_NAME;
}

bool job_may_move(uint32_t from, uint32_t to) {
    return from < JOB_N_STATES && to < JOB_N_STATES && rows[from].moves >> to & 1;
}

const char *job_reason_word(uint32_t reason) {
    return reason < JOB_N_REASONS ? reasons[reason] : "Unknown";
}

uint32_t job_hold_reason(uint32_t hold) {
    return hold == HOLD_USER ? REASON_HELD_USER : hold ? REASON_HELD_ADMIN : REASON_NONE;
}

bool job_state_is_end(uint32_t state) {
    return state >= JOB_COMPLETED && state < JOB_N_STATES;
}
