/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing array of any type: VEC(struct thing) v = {0}; vec_push(&v, t); for (i < v.n) v.p[i]; vec_fini(&v).
 * Pointers into it die with the next push.
 */
#ifndef SPUR_BASE_VEC_H
#define SPUR_BASE_VEC_H

#include "base/mem.h"

#define VEC(T)                                                                                                         \
    struct {                                                                                                           \
        T *p;                                                                                                          \
        size_t n, cap;                                                                                                 \
    }

#define vec_push(v, ...)                                                                                               \
    do {                                                                                                               \
        if ((v)->n == (v)->cap) {                                                                                      \
            (v)->cap = (v)->cap ? (v)->cap * 2 : 8;                                                                    \
            (v)->p = xrealloc((v)->p, (v)->cap * sizeof(*(v)->p));                                                     \
        }                                                                                                              \
        (v)->p[(v)->n++] = (__VA_ARGS__);                                                                              \
    } while (0)

#define vec_fini(v)                                                                                                    \
    do {                                                                                                               \
        free((v)->p);                                                                                                  \
        (v)->p = NULL;                                                                                                 \
        (v)->n = (v)->cap = 0;                                                                                         \
    } while (0)

/* Keeps the order of the rest. */
#define vec_remove(v, i)                                                                                               \
    do {                                                                                                               \
        __builtin_memmove(&(v)->p[i], &(v)->p[(i) + 1], ((v)->n - (i)-1) * sizeof(*(v)->p));                           \
        (v)->n--;                                                                                                      \
    } while (0)

#endif
