/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes JSON as Slurm's commands lay it out: two blanks a level, "/" as "\/". A member is a key and a value; in arrays
 * the key is NULL. Nothing is kept: what is written is in `out`, which the caller may empty at any time.
 */
#ifndef SPUR_SPUR_JSON_H
#define SPUR_SPUR_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Of {"set": …, "infinite": …, "number": …}. */
#define JSON_UNSET INT64_MIN
#define JSON_INFINITE INT64_MAX

struct json {
    struct str *out;
    unsigned depth;
    bool has; /* something stands before, on this level */
};

void json_open(struct json *w, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *w, char bracket);                 /* '}' or ']' */
void json_text(struct json *w, const char *key, const char *value); /* NULL: "" */
void json_number(struct json *w, const char *key, int64_t value);
void json_real(struct json *w, const char *key, int64_t value, uint32_t divisor); /* with a point in it */
void json_flag(struct json *w, const char *key, bool value);
void json_no_val(struct json *w, const char *key, int64_t value);
void json_real_no_val(struct json *w, const char *key, int64_t value);
void json_empty(struct json *w, const char *key, const char *brackets); /* "[]", "{}" */
/* What stands before a member's value, and values by themselves: for those who write the same members again and again. */
void json_prefix(struct json *w, const char *key);
void json_text_value(struct str *out, const char *value);
void json_number_value(struct str *out, int64_t value);
/* {"status": …, "return_code": …, "signal": …} of what waitpid gave; pending: it hasn't ended. */
void json_exit(struct json *w, const char *key, uint32_t wait_status, bool pending);
/* Words of "a,b" as an array of texts. */
void json_words(struct json *w, const char *key, const char *list);

#endif
