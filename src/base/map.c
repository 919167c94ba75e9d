/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* Both maps are the same algorithm over another key; `home` and `same` are all that differs. */
#define DEFINE_MAP(M, KEY, home, same)                                                                                 \
    void M##_fini(struct M *m) {                                                                                       \
        free(m->slot);                                                                                                 \
        *m = (struct M){0};                                                                                            \
    }                                                                                                                  \
    static size_t M##_where(const struct M *m, KEY key) {                                                              \
        size_t i = home(key) & (m->cap - 1);                                                                           \
        while (m->slot[i].value && !same(m->slot[i].key, key))                                                         \
            i = (i + 1) & (m->cap - 1);                                                                                \
        return i;                                                                                                      \
    }                                                                                                                  \
    static void M##_grow(struct M *m) {                                                                                \
        struct M next = {.cap = m->cap ? m->cap * 2 : 16, .n = m->n};                                                  \
        next.slot = xcalloc(next.cap, sizeof(*next.slot));                                                             \
        for (size_t i = 0; i < m->cap; i++)                                                                            \
            if (m->slot[i].value)                                                                                      \
                next.slot[M##_where(&next, m->slot[i].key)] = m->slot[i];                                              \
        free(m->slot);                                                                                                 \
        *m = next;                                                                                                     \
    }                                                                                                                  \
    void *M##_get(const struct M *m, KEY key) {                                                                        \
        return m->cap ? m->slot[M##_where(m, key)].value : NULL;                                                       \
    }                                                                                                                  \
    void *M##_put(struct M *m, KEY key, void *value) {                                                                 \
        must(value);                                                                                                   \
        if ((m->n + 1) * 4 > m->cap * 3)                                                                               \
            M##_grow(m);                                                                                               \
        size_t i = M##_where(m, key);                                                                                  \
        void *old = m->slot[i].value;                                                                                  \
        m->n += !old;                                                                                                  \
        m->slot[i].key = key;                                                                                          \
        m->slot[i].value = value;                                                                                      \
        return old;                                                                                                    \
    }                                                                                                                  \
    /* Closes the gap by moving back whoever probed over it (Knuth 6.4, algorithm R). */                               \
    void *M##_del(struct M *m, KEY key) {                                                                              \
        if (!m->cap)                                                                                                   \
            return NULL;                                                                                               \
        size_t hole = M##_where(m, key);                                                                               \
        void *old = m->slot[hole].value;                                                                               \
        if (!old)                                                                                                      \
            return NULL;                                                                                               \
        m->n--;                                                                                                        \
        for (size_t i = (hole + 1) & (m->cap - 1); m->slot[i].value; i = (i + 1) & (m->cap - 1)) {                     \
            size_t at_home = home(m->slot[i].key) & (m->cap - 1);                                                      \
            if (((i - at_home) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {                                       \
                m->slot[hole] = m->slot[i];                                                                            \
                hole = i;                                                                                              \
            }                                                                                                          \
        }                                                                                                              \
        memset(&m->slot[hole], 0, sizeof(m->slot[hole]));                                                              \
        return old;                                                                                                    \
    }                                                                                                                  \
    bool M##_next(const struct M *m, size_t *cursor, KEY *key, void **value) {                                         \
        for (; *cursor < m->cap; (*cursor)++) {                                                                        \
            if (!m->slot[*cursor].value)                                                                               \
                continue;                                                                                              \
            if (key)                                                                                                   \
                *key = m->slot[*cursor].key;                                                                           \
            *value = m->slot[(*cursor)++].value;                                                                       \
            return true;                                                                                               \
        }                                                                                                              \
        return false;                                                                                                  \
    }

static size_t home_text(const char *key) {
    return (size_t)hash_seeded(key, strlen(key));
}

static bool same_text(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

#define same_number(a, b) ((a) == (b))
typedef const char *text_key;

DEFINE_MAP(map64, uint64_t, hash_u64, same_number)
DEFINE_MAP(maps, text_key, home_text, same_text)
