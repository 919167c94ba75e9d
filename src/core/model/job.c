/* SPDX-License-Identifier: Apache-2.0
 *
 * The job records' descriptions.
 */
#include "core/model/job.h"

#define REC_SELF array_range
REC_DEFINE(array_range, ARRAY_RANGE_FIELDS)
#undef REC_SELF

#define REC_SELF job_target
REC_DEFINE(job_target, JOB_TARGET_FIELDS)
#undef REC_SELF

#define REC_SELF job_nice
REC_DEFINE(job_nice, JOB_NICE_FIELDS)
#undef REC_SELF

#define REC_SELF gres_ask
REC_DEFINE(gres_ask, GRES_ASK_FIELDS)
#undef REC_SELF

#define REC_SELF gres_held
REC_DEFINE(gres_held, GRES_HELD_FIELDS)
#undef REC_SELF

#define REC_SELF license_ask
REC_DEFINE(license_ask, LICENSE_ASK_FIELDS)
#undef REC_SELF

#define REC_SELF job_seldom
REC_DEFINE(job_seldom, JOB_SELDOM_FIELDS)
#undef REC_SELF

#define REC_SELF job_more
REC_DEFINE(job_more, JOB_MORE_FIELDS)
#undef REC_SELF

#define REC_SELF job_array
REC_DEFINE(job_array, JOB_ARRAY_FIELDS)
#undef REC_SELF

#define REC_SELF job_rare
REC_DEFINE(job_rare, JOB_RARE_FIELDS)
#undef REC_SELF

#define REC_SELF dep
REC_DEFINE(dep, DEP_FIELDS)
#undef REC_SELF

#define REC_SELF job_rlimit
REC_DEFINE(job_rlimit, RLIMIT_FIELDS)
#undef REC_SELF

#define REC_SELF job_spec
REC_DEFINE(job_spec, JOB_SPEC_FIELDS)
#undef REC_SELF

#define REC_SELF job_node
REC_DEFINE(job_node, JOB_NODE_FIELDS)
#undef REC_SELF

#define REC_SELF job
REC_DEFINE(job, JOB_FIELDS)
#undef REC_SELF

const struct job_seldom *job_spec_seldom(const struct job_spec *s) {
    static const struct job_seldom nothing;
    return s->more && s->more->seldom ? s->more->seldom : &nothing;
}

const struct job_more *job_spec_more(const struct job_spec *s) {
    static const struct job_more nothing;
    return s->more ? s->more : &nothing;
}

const struct job_rare *job_rare_of(const struct job *j) {
    static const struct job_rare nothing;
    return j->rare ? j->rare : &nothing;
}

const char *job_shown_features(const struct job *j) {
    const struct job_more *m = job_spec_more(j->spec);
    return j->state != JOB_PENDING && job_rare_of(j)->preferred ? m->prefer : m->features;
}

const char *job_shown_prefer(const struct job *j) {
    return j->state == JOB_PENDING ? job_spec_more(j->spec)->prefer : NULL;
}

uint32_t job_n_held(const struct job *j) {
    return j->n_nodes + job_rare_of(j)->n_leaving;
}

const struct job_node *job_held(const struct job *j, uint32_t i) {
    return i < j->n_nodes ? &j->nodes[i] : &job_rare_of(j)->leaving[i - j->n_nodes];
}

const struct job_node *job_held_on(const struct job *j, uint32_t node_id) {
    for (uint32_t i = 0, n = job_n_held(j); i < n; i++) {
        const struct job_node *jn = job_held(j, i);
        if (jn->node_id == node_id && !jn->is_done)
            return jn;
    }
    return NULL;
}
