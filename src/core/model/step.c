/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/step.h"

#include <inttypes.h>

#define REC_SELF step_spec
REC_DEFINE(step_spec, STEP_SPEC_FIELDS)
#undef REC_SELF

#define REC_SELF step_node
REC_DEFINE(step_node, STEP_NODE_FIELDS)
#undef REC_SELF

#define REC_SELF step
REC_DEFINE(step, STEP_FIELDS)
#undef REC_SELF

const char *step_distribution(const struct step_spec *s) {
    return s->n_task_nodes ? "arbitrary" : s->plane ? "plane" : s->cyclic ? "cyclic" : "block";
}

void step_print_id(uint32_t id, struct str *out) {
    if (id == STEP_BATCH)
        str_add(out, "batch");
    else
        str_addf(out, "%" PRIu32, id);
}
