/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors as values.
 *
 * A fallible function returns 0 or the negative number of a row of err.def. When a person will read why, its last
 * argument is a `struct err *`: owned by the caller, of fixed size, may be NULL, untouched on success. Setting one
 * allocates nothing. Functions of core/ and io/ return errors and never log them; they are logged once, where they
 * stop.
 */
#ifndef SPUR_BASE_ERR_H
#define SPUR_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
#define ERR(name, number, grpc, http, slurm, text) name = -(number),
#include "base/err.def"
#undef ERR
};

#define ERR_TEXT_MAX 512 /* bytes with the NUL; longer texts are cut */

struct err {
    int code; /* 0 or a negative E_… */
    char text[ERR_TEXT_MAX];
};

/* Sets `e` (may be NULL) and returns `code`, so that failing is one line. A NULL format takes the row's sentence. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_vset(struct err *e, int code, const char *fmt, va_list ap);

/* After a failed system call: E_SYS (E_FULL for ENOSPC and EDQUOT) with the text of errno behind the context. */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts context in front of the text of `e`: "context: text". Returns the code of `e`. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The row's columns. An unknown code reads as E_INTERNAL. */
const char *err_name(int code);
const char *err_sentence(int code);
int err_grpc(int code);
int err_http(int code);
int err_slurm(int code);
bool err_known(int code);

/* The code whose row best fits a bare gRPC status, for answers that carry no code of ours. */
int err_from_grpc(int status);

#endif
