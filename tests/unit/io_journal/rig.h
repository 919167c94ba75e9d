/* SPDX-License-Identifier: Apache-2.0
 *
 * An owner that writes down all that the journal tells it, and checks its promises as it goes: entries in log order,
 * none twice, exactly one answer for a tag, leadership told before it is used.
 */
#ifndef SPUR_TEST_JOURNAL_RIG_H
#define SPUR_TEST_JOURNAL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/journal/journal.h"
#include "io/loop/loop.h"

#define TAGS_MAX 400000

struct seen {
    uint64_t index, term, value; /* value: the entry's first 8 bytes */
    uint64_t n, mine; /* no padding: it goes to the disk */
};

struct rig {
    struct loop *loop; /* may be shared */
    bool own_loop;
    struct journal *j;
    char dir[256];
    VEC(struct seen) log; /* the owner's state: every value in order, also those that a manifest brought back */
    uint64_t last_index, last_term;
    uint64_t values;                     /* proposed ever; the last one's value */
    uint64_t applied_ever;
    uint64_t proposed, applied, refused; /* of our own, since the beginning or rig_count_anew */
    int refused_code;
    char refused_why[ERR_TEXT_MAX];
    uint8_t *answered; /* by tag */
    bool leader;
    unsigned leader_times;
    /* snapshots */
    bool answer_snapshots;
    unsigned snapshots, restores;
    uint64_t snapshot_index;  /* of the open pin */
    size_t snapshot_values;   /* how many values there were */
    uint64_t restored_index;
    bool fail_restore;
    unsigned problems, relieved;
    char notice[ERR_TEXT_MAX];
    void (*on_entry)(struct rig *r); /* called for each */
    /* configuration of the next open */
    struct journal_conf conf;
};

void rig_init(struct rig *r, const char *dir, struct loop *loop); /* loop NULL: one of its own */
void rig_fini(struct rig *r);
void rig_loop_free(struct loop *l);
int rig_try_open(struct rig *r, struct err *e);
void rig_open(struct rig *r);   /* must work */
void rig_close(struct rig *r);
void rig_forget(struct rig *r); /* what a crash forgets: the owner's state */
void rig_reopen(struct rig *r); /* close, forget, open */
void rig_until(struct rig *r, bool (*done)(struct rig *r), uint64_t timeout_ms);
void rig_lead(struct rig *r);                      /* waits for leadership */
uint64_t rig_propose(struct rig *r, size_t bytes); /* the value it carries */
void rig_settle(struct rig *r);                    /* until every proposal has its answer */
void rig_count_anew(struct rig *r);
void rig_answer_snapshot(struct rig *r);           /* journal_snapshot_done with a manifest of the pinned moment */
void rig_expect_values(struct rig *r, uint64_t first, uint64_t last); /* the log is exactly these, in order */

char *temp_dir(void); /* heap; under TMPDIR or /tmp */
void temp_remove(const char *dir);
uint64_t dir_bytes(const char *dir);
int dir_count(const char *dir, const char *prefix); /* files whose names begin so */

#endif
