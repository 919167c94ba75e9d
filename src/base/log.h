/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of a daemon: one sentence a line, then fields, as text or JSON, on stderr or in a file.
 *
 * core/ and io/ never log: they return errors. Levels: error (someone must act), warn (degraded, going on), info (a
 * change an operator wants to see), debug. Thread safe; a line is one write(2). Secrets have a type that these
 * functions don't take (base/secret.h).
 */
#ifndef SPUR_BASE_LOG_H
#define SPUR_BASE_LOG_H

#include <stdbool.h>

#include "base/err.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

int log_level_parse(const char *s, enum log_level *out); /* error|warn|info|debug; 0 or E_SYNTAX */
/* At start, before threads. `path` NULL or "" is stderr. 0 or an error; on failure the old target stays. */
int log_init(const char *program, enum log_level level, bool json, const char *path, struct err *e);
void log_set_level(enum log_level level);
const char *log_level_name(void); /* of the level in force */
bool log_wants(enum log_level level);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                                                 \
    do {                                                                                                               \
        if (log_wants(LOG_LEVEL_DEBUG))                                                                                \
            log_line(LOG_LEVEL_DEBUG, __VA_ARGS__);                                                                    \
    } while (0)

/* What this thread's lines are about, until it is set anew: the id of the request that caused them, at the end of each
 * line. NULL or "": nothing. What can be no id of a request (letters, digits, `-_.`, at most 32) is nothing, too. */
#define LOG_ABOUT_SIZE 33
struct log_about {
    char id[LOG_ABOUT_SIZE];
};
struct log_about log_about_now(void);
struct log_about log_about_set(const char *id); /* what it was before: set that again behind what the id is for */
bool log_about_is_id(const char *id);

/* The flight recorder: the last 10,000 lines of any level, kept in memory, written to `fd`. Used when must() fails. */
void log_dump_recorder(int fd);

#endif
