/* SPDX-License-Identifier: Apache-2.0
 *
 * With whom a run shares its nodes: what its job asked for and what its partition says make one answer, which the planner
 * plans by, and which is what is shown of the job and what its script is told.
 */
#include "base/mem.h"
#include "core/model/job.h"
#include "core/model/node.h"

static uint32_t stricter(const struct part *p, uint32_t asked) {
    if (asked == EXCLUSIVE_TOPO || p->exclusive_topo)
        return EXCLUSIVE_TOPO;
    if (asked == EXCLUSIVE_NODE || p->over_subscribe == OVER_EXCLUSIVE)
        return EXCLUSIVE_NODE;
    return p->exclusive_user ? EXCLUSIVE_USER : asked;
}

struct sharing part_sharing(const struct part *p, const struct job_more *m) {
    bool may = p->over_count > 1;
    if (p->over_subscribe == OVER_FORCE && may) /* nobody has a node for itself */
        return (struct sharing){m->exclusive == EXCLUSIVE_NODE ? EXCLUSIVE_NO : m->exclusive, OVERSUBSCRIBE_YES};
    struct sharing s = {stricter(p, m->exclusive), OVERSUBSCRIBE_NO};
    bool is_open = s.exclusive == EXCLUSIVE_NO || s.exclusive == EXCLUSIVE_MCS;
    if (p->over_subscribe == OVER_YES && may && is_open)
        s.oversubscribe = m->oversubscribe ? OVERSUBSCRIBE_YES : OVERSUBSCRIBE_OK;
    return s;
}

uint32_t sharing_of_nodes(struct sharing s) {
    if (s.oversubscribe == OVERSUBSCRIBE_YES)
        return SHARE_OVER;
    switch (s.exclusive) {
    case EXCLUSIVE_NODE:
    case EXCLUSIVE_TOPO: /* a node is all the topology there is */
        return SHARE_NONE;
    case EXCLUSIVE_USER:
        return SHARE_USER;
    default: /* no job has an MCS label: all have the same */
        return SHARE_CORES;
    }
}

const struct job_spec *part_settle(const struct part *p, const struct job_spec *s, struct job_spec *spec, struct job_more *more) {
    struct sharing to = part_sharing(p, job_spec_more(s));
    const struct job_more *m = job_spec_more(s);
    bool over = to.oversubscribe == OVERSUBSCRIBE_YES, may = to.oversubscribe == OVERSUBSCRIBE_OK;
    if (to.exclusive == m->exclusive && over == m->oversubscribe && !may)
        return s;
    *spec = *s;
    *more = *m;
    more->exclusive = to.exclusive;
    more->oversubscribe = over;
    more->may_share = may;
    spec->more = more;
    return spec;
}

const char *exclusive_word(const struct job_spec *s) {
    static const char *const words[] = {"NO", "NODE", "USER", "MCS", "TOPO"}; /* enum exclusive */
    uint32_t how = job_spec_more(s)->exclusive;
    return how < ARRAY_LEN(words) ? words[how] : "NO";
}

const char *oversubscribe_word(const struct job_spec *s) {
    const struct job_more *m = job_spec_more(s);
    return m->oversubscribe ? "YES" : m->may_share ? "OK" : "NO";
}
