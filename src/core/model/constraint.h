/* SPDX-License-Identifier: Apache-2.0
 *
 * What -C asks of nodes:
 *
 *     a&b   a|b   (a&b)|c     each node has these; `&`, `,` and `|` bind alike, from left to right, as with Slurm
 *     [a|b]                   all nodes have the same one of these
 *     a*4                     four nodes of the job have it, the others may have others
 *     [a*2&b*1]               two nodes have this, another one that
 *
 * A bracket may be joined by `&` to what each node must have.
 */
#ifndef SPUR_CORE_MODEL_CONSTRAINT_H
#define SPUR_CORE_MODEL_CONSTRAINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "core/model/node.h"

struct feature_op { /* in postfix order */
    char op;        /* 'n': a name; '&', '|' */
    const char *name;
};
struct feature_expr { /* no ops: every node will do */
    const struct feature_op *op;
    uint32_t n_ops;
};
struct feature_group { /* so many nodes have it */
    struct feature_expr expr;
    uint32_t count;
};

struct features {
    struct feature_expr all;
    const struct feature_expr *alt; /* one of them for all nodes; none: no bracket with `|` */
    uint32_t n_alts;
    const struct feature_group *group;
    uint32_t n_groups;
};

/* E_FEATURE with Slurm's sentence. NULL and "" ask for nothing. */
int features_parse(const char *s, struct arena *a, struct features *out, struct err *e);
bool features_match(const struct feature_expr *x, const char *const *have, uint32_t n_have);
bool features_list(const char *name, const char *const *have, uint32_t n_have); /* whether it is one of them */
bool features_active(const struct feature_expr *x, const struct node *n); /* by those that are active there */
/* Whether each name is one that `knows` says yes to. */
bool features_known(const struct features *f, bool (*knows)(void *arg, const char *name), void *arg);

#endif
