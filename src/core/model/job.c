/* SPDX-License-Identifier: Apache-2.0
 *
 * The job records' descriptions.
 */
#include "core/model/job.h"

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
