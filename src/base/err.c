/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct row {
    int code, grpc, http, slurm;
    const char *name, *text;
};

static const struct row rows[] = {
#define ERR(name, number, grpc, http, slurm, text) {-(number), grpc, http, slurm, #name, text},
#include "base/err.def"
#undef ERR
};

static const struct row *row_find(int code) {
    const struct row *internal = NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (rows[i].code == code)
            return &rows[i];
        if (rows[i].code == E_INTERNAL)
            internal = &rows[i];
    }
    return internal;
}

int err_vset(struct err *e, int code, const char *fmt, va_list ap) {
    if (!e)
        return code;
    e->code = code;
    if (fmt)
        vsnprintf(e->text, sizeof(e->text), fmt, ap);
    else
        snprintf(e->text, sizeof(e->text), "%s", err_sentence(code));
    return code;
}

int err_set(struct err *e, int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    err_vset(e, code, fmt, ap);
    va_end(ap);
    return code;
}

int err_sys(struct err *e, const char *fmt, ...) {
    int saved = errno;
    int code = saved == ENOSPC || saved == EDQUOT ? E_FULL : E_SYS;
    if (!e)
        return code;
    va_list ap;
    va_start(ap, fmt);
    err_vset(e, code, fmt, ap);
    va_end(ap);
    size_t n = strlen(e->text);
    char why[128];
    snprintf(e->text + n, sizeof(e->text) - n, ": %s", strerror_r(saved, why, sizeof(why)));
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...) {
    if (!e)
        return E_INTERNAL;
    char front[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(front, sizeof(front), fmt, ap);
    va_end(ap);
    char whole[2 * ERR_TEXT_MAX + 4];
    snprintf(whole, sizeof(whole), "%s: %s", front, e->text);
    whole[ERR_TEXT_MAX - 1] = 0;
    memcpy(e->text, whole, strlen(whole) + 1);
    return e->code;
}

const char *err_name(int code) {
    return row_find(code)->name;
}

const char *err_sentence(int code) {
    return row_find(code)->text;
}

int err_grpc(int code) {
    return row_find(code)->grpc;
}

int err_http(int code) {
    return row_find(code)->http;
}

int err_slurm(int code) {
    return row_find(code)->slurm;
}

bool err_known(int code) {
    return row_find(code)->code == code;
}

int err_from_grpc(int status) {
    switch (status) {
    case 0: return E_OK;
    case 1: return E_CANCELLED;
    case 3: return E_USAGE;
    case 4: return E_DEADLINE;
    case 5: return E_NOT_FOUND;
    case 6: return E_EXISTS;
    case 7: return E_DENIED;
    case 8: return E_BUSY;
    case 9: return E_JOB_STATE;
    case 12: return E_METHOD;
    case 14: return E_UNREACHABLE;
    case 15: return E_CORRUPT;
    case 16: return E_BAD_PROOF;
    default: return E_INTERNAL;
    }
}
