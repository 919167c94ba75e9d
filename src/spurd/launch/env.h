/* SPDX-License-Identifier: Apache-2.0
 *
 * An environment that is being made: internal to this folder. Texts are in the arena, or borrowed.
 */
#ifndef SPUR_SPURD_LAUNCH_ENV_H
#define SPUR_SPURD_LAUNCH_ENV_H

#include "base/vec.h"
#include "spurd/launch/plan.h"

struct env {
    struct arena *a;
    VEC(const char *) entries; /* NAME=value */
};

const char *env_get(const struct env *env, const char *name);
void env_put(struct env *env, const char *entry);
void env_del(struct env *env, const char *name);
void env_set(struct env *env, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* SLURM_NAME and SPUR_NAME. */
void env_twin(struct env *env, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The entries, in the arena; the environment is empty then. */
void env_take(struct env *env, const char *const **out, uint32_t *out_n);

/* What a job's batch script and its steps have alike (env.c). */
void env_add_job(struct env *env, const struct launch_request *q);
void env_add_shape(struct env *env, const struct launch_request *q);
void env_add_devices(struct env *env, const char *list); /* CUDA_VISIBLE_DEVICES and what others call it */
const char *env_blob_next(const uint8_t *blob, size_t n, size_t *at); /* NULL at its end */

#endif
