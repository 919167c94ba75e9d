/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: one owner for each object, cleanup attributes for locals, abort in one place when there is none left.
 *
 * Sizes that a peer chooses are bounded before they get here; so running out means the machine is out, and a daemon
 * whose state is in a log restarts better than it limps.
 */
#ifndef SPUR_BASE_MEM_H
#define SPUR_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull)); /* zeroed */
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *s);                    /* NULL for NULL */
char *xstrndup(const char *s, size_t n);         /* at most n bytes */
void *xmemdup(const void *p, size_t n);          /* NULL for n == 0 */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list ap);
#define xnew(type) ((type *)xcalloc(1, sizeof(type)))

/* Cleanup attributes: `autofree char *s`, `autoclose int fd`, `auto(job_free) struct job *j`. */
void mem_auto_free(void *pp);
void mem_auto_close(int *fd); /* -1 is left alone */
#define autofree __attribute__((cleanup(mem_auto_free)))
#define autoclose __attribute__((cleanup(mem_auto_close)))
#define auto_call(fn) __attribute__((cleanup(fn)))

/* Defines `name_auto(T **)` for use with auto_call, from a free function that takes NULL. */
#define AUTO_FREE(type, free_fn)                                                                                       \
    static inline void free_fn##_auto(type **pp) {                                                                     \
        if (*pp)                                                                                                       \
            free_fn(*pp);                                                                                              \
    }

/* Moves the value of a local out of reach of its cleanup: `*out = take_ptr(&p)`. */
#define take_ptr(pp)                                                                                                   \
    ({                                                                                                                 \
        __auto_type _v = *(pp);                                                                                        \
        *(pp) = NULL;                                                                                                  \
        _v;                                                                                                            \
    })
static inline int take_fd(int *fd) {
    int v = *fd;
    *fd = -1;
    return v;
}

/* must(x): a promise whose breach means wrong state, a wrong log or a wrong launch. Stays in release builds. */
void must_failed(const char *what, const char *file, int line) __attribute__((noreturn));
#define must(x) ((x) ? (void)0 : must_failed(#x, __FILE__, __LINE__))

/* Called once, with the failed text, before abort; for the flight recorder. Not thread safe: set it at start. */
void must_on_failure(void (*fn)(const char *text));

#define ARRAY_LEN(a) (sizeof(a) / sizeof(*(a)))
#undef MIN /* sys/param.h, which uv.h includes, has the same two */
#undef MAX
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
