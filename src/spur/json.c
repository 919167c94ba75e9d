/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/json.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/mem.h"

static void line(struct json *w) {
    static const char blanks[] = "                                ";
    str_addc(w->out, '\n');
    str_addn(w->out, blanks, MIN((size_t)w->depth * 2, sizeof(blanks) - 1));
}

/* Keys are ours: nothing in them is escaped. */
void json_prefix(struct json *w, const char *key) {
    if (w->has)
        str_addc(w->out, ',');
    if (w->depth)
        line(w);
    w->has = true;
    if (!key)
        return;
    str_addc(w->out, '"');
    str_add(w->out, key);
    str_addn(w->out, "\": ", 3);
}

void json_open(struct json *w, const char *key, char bracket) {
    json_prefix(w, key);
    str_addc(w->out, bracket);
    w->depth++;
    w->has = false;
}

void json_close(struct json *w, char bracket) {
    w->depth--;
    if (w->has)
        line(w);
    str_addc(w->out, bracket);
    w->has = true;
}

static void escaped(struct str *out, const char *s) {
    static const char plain[] = "\b\f\n\r\t\"\\/", letter[] = "bfnrt\"\\/";
    while (*s) {
        size_t n = 0;
        while (s[n] && (unsigned char)s[n] >= ' ' && s[n] != '"' && s[n] != '\\' && s[n] != '/')
            n++;
        str_addn(out, s, n);
        s += n;
        if (!*s)
            break;
        const char *at = strchr(plain, *s);
        if (at)
            str_addf(out, "\\%c", letter[at - plain]);
        else
            str_addf(out, "\\u%04x", (unsigned char)*s);
        s++;
    }
}

void json_text_value(struct str *out, const char *value) {
    str_addc(out, '"');
    escaped(out, value ? value : "");
    str_addc(out, '"');
}

void json_text(struct json *w, const char *key, const char *value) {
    json_prefix(w, key);
    json_text_value(w->out, value);
}

void json_number_value(struct str *out, int64_t n) {
    char digits[24], *at = digits + sizeof(digits);
    uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0)
        *--at = '-';
    str_addn(out, at, (size_t)(digits + sizeof(digits) - at));
}

void json_number(struct json *w, const char *key, int64_t value) {
    json_prefix(w, key);
    json_number_value(w->out, value);
}

void json_real(struct json *w, const char *key, int64_t value, uint32_t divisor) {
    json_prefix(w, key);
    str_addf(w->out, "%.*f", divisor > 1 ? 2 : 1, (double)value / divisor);
}

static void word(struct json *w, const char *key, const char *value) {
    json_prefix(w, key);
    str_add(w->out, value);
}

void json_flag(struct json *w, const char *key, bool value) {
    word(w, key, value ? "true" : "false");
}

static bool is_number(int64_t value) {
    return value != JSON_UNSET && value != JSON_INFINITE;
}

static void no_val_head(struct json *w, const char *key, int64_t value) {
    json_open(w, key, '{');
    json_flag(w, "set", is_number(value));
    json_flag(w, "infinite", value == JSON_INFINITE);
}

void json_no_val(struct json *w, const char *key, int64_t value) {
    no_val_head(w, key, value);
    json_number(w, "number", is_number(value) ? value : 0);
    json_close(w, '}');
}

void json_real_no_val(struct json *w, const char *key, int64_t value) {
    no_val_head(w, key, value);
    json_real(w, "number", is_number(value) ? value : 0, 1);
    json_close(w, '}');
}

void json_empty(struct json *w, const char *key, const char *brackets) {
    word(w, key, brackets);
}

void json_exit(struct json *w, const char *key, uint32_t wait_status, bool pending) {
    int status = (int)wait_status, sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const char *what = pending ? "PENDING" : sig ? "SIGNALED" : status ? "ERROR" : "SUCCESS";
    const char *name = sig ? sigabbrev_np(sig) : NULL;
    json_open(w, key, '{');
    json_words(w, "status", what);
    json_no_val(w, "return_code", sig ? JSON_UNSET : WEXITSTATUS(status));
    json_open(w, "signal", '{');
    json_no_val(w, "id", sig ? sig : JSON_UNSET);
    json_text(w, "name", name);
    json_close(w, '}');
    json_close(w, '}');
}

void json_words(struct json *w, const char *key, const char *list) {
    json_open(w, key, '[');
    while (list && *list) {
        char text[300];
        size_t n = strcspn(list, ",");
        if (n) {
            snprintf(text, sizeof(text), "%.*s", (int)MIN(n, sizeof(text) - 1), list);
            json_text(w, NULL, text);
        }
        list += n;
        list += *list == ',';
    }
    json_close(w, ']');
}
