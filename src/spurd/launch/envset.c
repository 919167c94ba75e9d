/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/launch/env.h"

#include <stdarg.h>
#include <string.h>

#include "base/str.h"

static size_t name_length(const char *entry) {
    return strcspn(entry, "=");
}

static bool is_named(const char *entry, const char *name, size_t n) {
    return name_length(entry) == n && !memcmp(entry, name, n);
}

const char *env_get(const struct env *env, const char *name) {
    for (size_t i = 0; i < env->entries.n; i++) {
        if (is_named(env->entries.p[i], name, strlen(name)))
            return env->entries.p[i] + strlen(name) + 1;
    }
    return NULL;
}

void env_put(struct env *env, const char *entry) {
    for (size_t i = 0; i < env->entries.n; i++) {
        if (is_named(env->entries.p[i], entry, name_length(entry))) {
            env->entries.p[i] = entry;
            return;
        }
    }
    vec_push(&env->entries, entry);
}

void env_del(struct env *env, const char *name) {
    for (size_t i = env->entries.n; i-- > 0;) {
        if (is_named(env->entries.p[i], name, strlen(name)))
            vec_remove(&env->entries, i);
    }
}

static const char *printed(struct arena *a, const char *fmt, va_list ap) {
    auto_str text = {0};
    str_vaddf(&text, fmt, ap);
    return arena_strdup(a, str_text(&text));
}

void env_set(struct env *env, const char *name, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    env_put(env, arena_printf(env->a, "%s=%s", name, printed(env->a, fmt, ap)));
    va_end(ap);
}

void env_twin(struct env *env, const char *name, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *value = printed(env->a, fmt, ap);
    va_end(ap);
    env_put(env, arena_printf(env->a, "SLURM_%s=%s", name, value));
    env_put(env, arena_printf(env->a, "SPUR_%s=%s", name, value));
}

void env_take(struct env *env, const char *const **out, uint32_t *out_n) {
    *out = arena_memdup(env->a, env->entries.p, env->entries.n * sizeof(*env->entries.p));
    *out_n = (uint32_t)env->entries.n;
    vec_fini(&env->entries);
}

void env_add_devices(struct env *env, const char *list) {
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                                        "ZE_AFFINITY_MASK"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        env_set(env, names[i], "%s", list);
}

const char *env_blob_next(const uint8_t *blob, size_t n, size_t *at) {
    while (*at < n) {
        const char *entry = (const char *)blob + *at;
        size_t length = strnlen(entry, n - *at);
        if (*at + length >= n)
            return NULL; /* without its NUL: cut off */
        *at += length + 1;
        if (length)
            return entry;
    }
    return NULL;
}
