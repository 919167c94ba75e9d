/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* Growing
 *
 *     old   [ moved: dead to everybody | not moved yet ]      moved →
 *     now   [ whatever was moved or put since          ]
 *
 * A key lives in one of the two. Slots of `old` in front of `moved` keep their old bytes, so that who probes past them
 * goes on instead of stopping; a key taken out of the rest leaves GONE there for the same reason. */
static const char gone;
#define GONE ((void *)&gone)

enum { MOVES_A_CALL = 8 }; /* at 3/4 full and doubled: all is moved long before the next growth */

/* Both maps are the same algorithm over another key; `home` and `same` are all that differs. */
#define DEFINE_MAP(M, KEY, home, same)                                                                                 \
    void M##_fini(struct M *m) {                                                                                       \
        free(m->now.slot);                                                                                             \
        free(m->old.slot);                                                                                             \
        *m = (struct M){0};                                                                                            \
    }                                                                                                                  \
    /* The slot that has the key, or the free one where it belongs. Slots in front of `dead` have nobody's key. */     \
    static size_t M##_where(const struct M##_table *t, KEY key, size_t dead) {                                         \
        size_t i = home(key) & (t->cap - 1);                                                                           \
        while (t->slot[i].value && (i < dead || t->slot[i].value == GONE || !same(t->slot[i].key, key)))               \
            i = (i + 1) & (t->cap - 1);                                                                                \
        return i;                                                                                                      \
    }                                                                                                                  \
    static void M##_move_some(struct M *m) {                                                                           \
        for (size_t k = 0; k < MOVES_A_CALL && m->old.cap; k++) {                                                      \
            const struct M##_slot *s = &m->old.slot[m->moved++];                                                       \
            if (s->value && s->value != GONE)                                                                          \
                m->now.slot[M##_where(&m->now, s->key, 0)] = *s;                                                       \
            if (m->moved < m->old.cap)                                                                                 \
                continue;                                                                                              \
            free(m->old.slot);                                                                                         \
            m->old = (struct M##_table){0};                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void M##_grow(struct M *m) {                                                                                \
        must(!m->old.cap);                                                                                             \
        m->old = m->now;                                                                                               \
        m->moved = 0;                                                                                                  \
        m->now.cap = m->old.cap ? m->old.cap * 2 : 16;                                                                 \
        m->now.slot = xcalloc(m->now.cap, sizeof(*m->now.slot));                                                       \
    }                                                                                                                  \
    static struct M##_slot *M##_find(const struct M *m, KEY key) {                                                     \
        size_t i;                                                                                                      \
        if (m->now.cap && m->now.slot[i = M##_where(&m->now, key, 0)].value)                                           \
            return &m->now.slot[i];                                                                                    \
        if (m->old.cap && m->old.slot[i = M##_where(&m->old, key, m->moved)].value)                                    \
            return &m->old.slot[i];                                                                                    \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    void *M##_get(const struct M *m, KEY key) {                                                                        \
        const struct M##_slot *s = M##_find(m, key);                                                                   \
        return s ? s->value : NULL;                                                                                    \
    }                                                                                                                  \
    void *M##_put(struct M *m, KEY key, void *value) {                                                                 \
        must(value);                                                                                                   \
        M##_move_some(m);                                                                                              \
        struct M##_slot *s = M##_find(m, key);                                                                         \
        void *before = s ? s->value : NULL;                                                                            \
        if (!s) {                                                                                                      \
            if ((m->n + 1) * 4 > m->now.cap * 3)                                                                       \
                M##_grow(m);                                                                                           \
            m->n++;                                                                                                    \
            s = &m->now.slot[M##_where(&m->now, key, 0)];                                                              \
        }                                                                                                              \
        s->key = key;                                                                                                  \
        s->value = value;                                                                                              \
        return before;                                                                                                 \
    }                                                                                                                  \
    /* Closes the gap by moving back whoever probed over it (Knuth 6.4, algorithm R). */                               \
    static void M##_close(struct M##_table *t, size_t hole) {                                                          \
        for (size_t i = (hole + 1) & (t->cap - 1); t->slot[i].value; i = (i + 1) & (t->cap - 1)) {                     \
            size_t at_home = home(t->slot[i].key) & (t->cap - 1);                                                      \
            if (((i - at_home) & (t->cap - 1)) >= ((i - hole) & (t->cap - 1))) {                                       \
                t->slot[hole] = t->slot[i];                                                                            \
                hole = i;                                                                                              \
            }                                                                                                          \
        }                                                                                                              \
        memset(&t->slot[hole], 0, sizeof(t->slot[hole]));                                                              \
    }                                                                                                                  \
    void *M##_del(struct M *m, KEY key) {                                                                              \
        M##_move_some(m);                                                                                              \
        struct M##_slot *s = M##_find(m, key);                                                                         \
        if (!s)                                                                                                        \
            return NULL;                                                                                               \
        void *was = s->value;                                                                                          \
        m->n--;                                                                                                        \
        if (s >= m->now.slot && s < m->now.slot + m->now.cap)                                                          \
            M##_close(&m->now, (size_t)(s - m->now.slot));                                                             \
        else                                                                                                           \
            s->value = GONE;                                                                                           \
        return was;                                                                                                    \
    }                                                                                                                  \
    bool M##_next(const struct M *m, size_t *cursor, KEY *key, void **value) {                                         \
        for (; *cursor < m->now.cap + m->old.cap; (*cursor)++) {                                                       \
            bool is_old = *cursor >= m->now.cap;                                                                       \
            size_t i = is_old ? *cursor - m->now.cap : *cursor;                                                        \
            const struct M##_slot *s = is_old ? &m->old.slot[i] : &m->now.slot[i];                                     \
            if (!s->value || s->value == GONE || (is_old && i < m->moved))                                             \
                continue;                                                                                              \
            if (key)                                                                                                   \
                *key = s->key;                                                                                         \
            *value = s->value;                                                                                         \
            (*cursor)++;                                                                                               \
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
