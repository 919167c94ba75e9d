/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done where Slurm and AMD Spur differ: the one struct of such choices, from one table. Which flavour holds is said in one place, `[compat]
 * flavor` of spur.conf, and by SPUR_COMPAT where no file can say it (a command; a controller whose file has no such key). Everybody else asks a field
 * of the policy, never for the flavour.
 */
#ifndef SPUR_CORE_MODEL_POLICY_H
#define SPUR_CORE_MODEL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum flavor { FLAVOR_SLURM = 0, FLAVOR_AMD = 1 };

/* P(type, field, Slurm's value, AMD Spur's, what it is about, Slurm's way, AMD Spur's way) */
#define POLICIES(P)                                                                                                        \
    P(bool, limits_in_seconds, false, true, "`-t` below a minute", "is rounded up to a minute", "counts in seconds")       \
    P(bool, shows_no_limit, false, true, "`scontrol show job`, the limit", "has `TimeLimit=`", "has no such field")        \
    P(bool, allocation_first, false, true, "`scontrol show job`, nodes", "`ReqNodeList=` comes before `NodeList=`",        \
      "`NodeList=` is the first of them")                                                                                  \
    P(bool, believed_is_operator, false, true, "`[auth] plugin = \"none\"`, administrators' actions",                      \
      "need an administrator", "are anybody's: the client is believed")                                                    \
    P(bool, plain_reasons, false, true, "`scontrol` on a job that is unknown, or waits already; `sbatch -d expand`", "Slurm's sentence",                    \
      "`(not found)`, `(already pending)`, `(dependency)` behind it")                                                                      \
    P(bool, agents_say_goodbye, false, true, "an agent that ends on SIGTERM",                                              \
      "its node stays, and is not responding after a while", "its node leaves the cluster, unless jobs run there")         \
    P(bool, anybody_makes_tokens, false, true, "`spur token` without a proof of who asks",                                 \
      "needs an administrator", "works, whoever asks, unless `[auth] mode = \"required\"`")                                \
    P(bool, lost_jobs_fail, false, true, "a job that lost a node",                                                         \
      "is queued again, unless `--no-requeue` or `job_requeue = false`", "is NODE_FAIL, unless `--requeue`")                 \
    P(bool, script_everywhere, false, true, "the batch script of a job with several nodes",                                \
      "runs on the first of them", "runs on each, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; all must end well")   \
    P(bool, raw_task_ids, false, true, "tasks of the array P", "have the ids P_0, P_1, … and get job ids as they start",    \
      "have the job ids P+1, P+2, … from the beginning, and are shown by them")                                             \
    P(bool, short_keys, false, true, "`[auth] jwt_key` of less than 16 bytes", "is refused",                                 \
      "is taken, with a warning at each start")                                                                            \
    P(uint32_t, kill_wait_secs, 30, 5, "`kill_wait_secs` where spur.conf has none", "30", "5")

#define POLICY_FIELD(type, field, slurm, amd, about, slurms, amds) type field;
struct policy {
    POLICIES(POLICY_FIELD)
};
#undef POLICY_FIELD

const struct policy *policy_of(enum flavor flavor);
/* "slurm", "amd"; E_SYNTAX: neither. */
int policy_flavor(const char *word, enum flavor *out);

#endif
