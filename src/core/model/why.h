/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pending job waits for, in facts (`spur why`): made by core/sched/why.c, sent as it is.
 */
#ifndef SPUR_CORE_MODEL_WHY_H
#define SPUR_CORE_MODEL_WHY_H

#include "base/rec.h"

/* A gate or a limit that bars it, or that it has to do with. */
#define WHY_FACT_FIELDS(F)                                                                                            \
    F(STR, kind, 1, _) /* one word, for programs: "hold", "dependency", "begin", "partition", "limit", "licence" … */  \
    F(STR, text, 2, _) /* a sentence, for people: names and values are in it */                                       \
    F(I64, when_unix, 3, _) /* it counts until then; 0: not known */                                                  \
    F(U32S, jobs, 4, _)     /* that have to do with it */
REC_DECLARE(why_fact, WHY_FACT_FIELDS)

/* Nodes of which the same is to be said. */
#define WHY_NODE_FIELDS(F)                                                                                            \
    F(STRS, names, 1, _)                                                                                              \
    F(STR, partition, 2, _)                                                                                           \
    F(STR, kind, 3, _) /* "busy", "kept", "down", "drained", "unfit", "left out", "free" */                            \
    F(STR, text, 4, _)                                                                                                \
    F(I64, until_unix, 5, _) /* then it could take part, if all jobs take all of their time; 0: not known */          \
    F(U32S, jobs, 6, _)      /* that run there, or that it is kept for */
REC_DECLARE(why_node, WHY_NODE_FIELDS)

#define WHY_FIELDS(F)                                                                                                 \
    F(U32, reason, 1, _) /* enum job_reason, as squeue shows it */                                                    \
    F(STR, reason_text, 2, _) /* what squeue shows instead of its word; NULL: the word */                             \
    F(U64, priority, 3, _)                                                                                            \
    F(I64, expected_unix, 4, _) /* when it is expected to start; 0: not known */                                      \
    F(STRS, expected_nodes, 5, _)                                                                                     \
    F(LIST, facts, 6, why_fact)                                                                                       \
    F(LIST, nodes, 7, why_node)                                                                                       \
    F(U32S, before, 8, _)   /* jobs that wait and have their turn before it, where it waits: the first of them */      \
    F(U32, n_before_all, 9, _) /* all of them */                                                                      \
    F(BOOL, starts, 10, _)  /* nothing bars it: it starts with the next pass */                                       \
    F(U32, n_rows_more, 11, _) /* nodes beyond those listed */
REC_DECLARE(why, WHY_FIELDS)

#endif
