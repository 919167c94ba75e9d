/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder is a ring of fixed slots: a line that does not fit is cut there, never in the log itself.
 */
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define RECORDER_LINES 10000u
#define RECORDER_WIDTH 160u
#define LINE_MAX_BYTES 4096

static struct {
    pthread_mutex_t lock;
    int fd;
    enum log_level level;
    bool json;
    const char *program;
    char (*ring)[RECORDER_WIDTH];
    unsigned long n_ring;
} the_log = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = 2, .level = LOG_LEVEL_INFO, .program = "spur"};

static _Thread_local struct log_about the_about;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

int log_level_parse(const char *s, enum log_level *out) {
    for (unsigned i = 0; i < ARRAY_LEN(level_names); i++) {
        if (str_eq(s, level_names[i])) {
            *out = (enum log_level)i;
            return 0;
        }
    }
    return E_SYNTAX;
}

int log_init(const char *program, enum log_level level, bool json, const char *path, struct err *e) {
    if (path && *path) {
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
        if (fd < 0)
            return err_sys(e, "open log file %s", path);
        the_log.fd = fd;
    }
    the_log.program = program;
    the_log.level = level;
    the_log.json = json;
    if (!the_log.ring)
        the_log.ring = xcalloc(RECORDER_LINES, sizeof(*the_log.ring));
    return 0;
}

const char *log_level_name(void) {
    return level_names[the_log.level];
}

void log_set_level(enum log_level level) {
    the_log.level = level;
}

bool log_wants(enum log_level level) {
    return level <= the_log.level;
}

static void add_json_text(struct str *out, const char *s) {
    str_addc(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            str_addf(out, "\\%c", c);
        else if (c < 0x20)
            str_addf(out, "\\u%04x", c);
        else
            str_addc(out, (char)c);
    }
    str_addc(out, '"');
}

bool log_about_is_id(const char *id) {
    size_t n = id ? strlen(id) : 0;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)id[i]) && !strchr("-_.", id[i]))
            return false;
    return n && n < LOG_ABOUT_SIZE;
}

struct log_about log_about_now(void) {
    return the_about;
}

struct log_about log_about_set(const char *id) {
    struct log_about old = the_about;
    the_about = (struct log_about){0};
    if (log_about_is_id(id))
        memcpy(the_about.id, id, strlen(id));
    return old;
}

/* Whoever can put text into a log line must not be able to put lines into it. */
static void add_plain_text(struct str *out, const char *s) {
    for (; *s; s++)
        str_addc(out, (unsigned char)*s < 0x20 && *s != '\t' ? ' ' : *s);
}

void log_line(enum log_level level, const char *fmt, ...) {
    char text[LINE_MAX_BYTES];
    int saved = errno;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    struct tm tm;
    gmtime_r(&ts.tv_sec, &tm);
    char stamp[40];
    size_t n = strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(stamp + n, sizeof(stamp) - n, ".%03ldZ", ts.tv_nsec / 1000000);

    auto_str line = {0};
    if (the_log.json) {
        str_addf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",\"msg\":", stamp, level_names[level],
                 the_log.program);
        add_json_text(&line, text);
        if (the_about.id[0])
            str_addf(&line, ",\"request\":\"%s\"", the_about.id);
        str_add(&line, "}\n");
    } else {
        str_addf(&line, "%s %s %s: ", stamp, the_log.program, level_names[level]);
        add_plain_text(&line, text);
        if (the_about.id[0])
            str_addf(&line, " request=%s", the_about.id);
        str_addc(&line, '\n');
    }
    pthread_mutex_lock(&the_log.lock);
    if (the_log.ring)
        snprintf(the_log.ring[the_log.n_ring++ % RECORDER_LINES], RECORDER_WIDTH, "%.*s", (int)line.n - 1, line.p);
    if (level <= the_log.level) {
        ssize_t ignored = write(the_log.fd, line.p, line.n);
        (void)ignored; /* a full log disk must not stop the daemon */
    }
    pthread_mutex_unlock(&the_log.lock);
    errno = saved;
}

void log_dump_recorder(int fd) {
    unsigned long first = the_log.n_ring > RECORDER_LINES ? the_log.n_ring - RECORDER_LINES : 0;
    for (unsigned long i = first; the_log.ring && i < the_log.n_ring; i++)
        dprintf(fd, "%s\n", the_log.ring[i % RECORDER_LINES]);
}
