/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void (*failure_fn)(const char *text);

static void die(const char *text) {
    if (failure_fn)
        failure_fn(text);
    ssize_t ignored = write(2, text, strlen(text));
    ignored = write(2, "\n", 1);
    (void)ignored;
    abort();
}

void must_on_failure(void (*fn)(const char *text)) {
    failure_fn = fn;
}

void must_failed(const char *what, const char *file, int line) {
    char text[512];
    snprintf(text, sizeof(text), "broken promise: %s (%s:%d)", what, file, line);
    die(text);
    abort();
}

static void *checked(void *p) {
    if (!p)
        die("out of memory");
    return p;
}

void *xmalloc(size_t n) {
    return checked(malloc(n ? n : 1));
}

void *xcalloc(size_t count, size_t size) {
    return checked(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n) {
    return checked(realloc(p, n ? n : 1));
}

char *xstrdup(const char *s) {
    return s ? checked(strdup(s)) : NULL;
}

char *xstrndup(const char *s, size_t n) {
    return checked(strndup(s, n));
}

void *xmemdup(const void *p, size_t n) {
    return n ? memcpy(xmalloc(n), p, n) : NULL;
}

char *xvasprintf(const char *fmt, va_list ap) {
    char *s = NULL;
    if (vasprintf(&s, fmt, ap) < 0)
        die("out of memory");
    return s;
}

char *xasprintf(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *s = xvasprintf(fmt, ap);
    va_end(ap);
    return s;
}

void mem_auto_free(void *pp) {
    free(*(void **)pp);
}

void mem_auto_close(int *fd) {
    if (*fd >= 0)
        close(*fd);
}
