/* SPDX-License-Identifier: Apache-2.0
 *
 * What administrators do to partitions: until the next configuration file that is applied, which sets them all. A
 * partition that goes while jobs name it harms nothing: they wait with a reason.
 */
#include "base/mem.h"
#include "base/str.h"
#include "core/state/inside.h"

#define PARTS_MAX 10000u

static int no_such(struct apply *ap) {
    return apply_refuse(ap, E_PARTITION, "%s", err_sentence(E_PARTITION));
}

static const struct part *find(const struct state *s, const char *name) {
    const struct part *p;
    for (uint64_t k = 0; (p = cow_next(s->parts.root, &k)); k++)
        if (str_eq(p->name, name))
            return p;
    return NULL;
}

static uint32_t last_id(const struct state *s) {
    const struct part *p;
    uint32_t id = 0;
    for (uint64_t k = 0; (p = cow_next(s->parts.root, &k)); k++)
        id = p->id;
    return id;
}

/* There is one default at most. */
static void take_default_from_others(struct state *s, uint32_t id) {
    const struct part *p;
    for (uint64_t k = 0; (p = cow_next(s->parts.root, &k)); k++) {
        struct part other = *p;
        other.is_default = false;
        if (p->id != id && p->is_default)
            state_put_part(s, &other);
    }
}

static int put(struct apply *ap, const struct part *p) {
    if (p->is_default)
        take_default_from_others(ap->s, p->id);
    state_put_part(ap->s, p);
    return 0;
}

static int create(struct apply *ap, const struct part *wanted) {
    struct part p = *wanted;
    if (cow_count(ap->s->parts.root) >= PARTS_MAX)
        return apply_refuse(ap, E_BUSY, "there are %u partitions", PARTS_MAX);
    p.id = last_id(ap->s) + 1;
    return put(ap, &p);
}

int apply_partition(struct apply *ap, const struct cmd_partition *cmd) {
    if (!cmd->part || !cmd->part->name || !*cmd->part->name)
        return no_such(ap);
    const struct part *old = find(ap->s, cmd->part->name);
    if (!old != (cmd->op == PART_OP_CREATE))
        return no_such(ap);
    struct part p = old ? *old : *cmd->part;
    int rc = 0;
    switch ((enum part_op)cmd->op) {
    case PART_OP_CREATE: rc = create(ap, &p); break;
    case PART_OP_UPDATE:
        part_change(&p, cmd->part, cmd->changes);
        rc = put(ap, &p);
        break;
    case PART_OP_DELETE: state_del_part(ap->s, p.id); break;
    default: return apply_refuse(ap, E_SYNTAX, "partition operation %u is not known", cmd->op);
    }
    if (!rc)
        apply_event(ap, EV_CONFIG_CHANGED, 0, 0, 0);
    return rc;
}
