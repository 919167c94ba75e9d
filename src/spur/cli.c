/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/cli.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

static void line(const struct cli *c, const char *kind, const char *fmt, va_list ap) {
    auto_str text = {0};
    str_addf(&text, "%s: %s", c->prog, kind);
    str_vaddf(&text, fmt, ap);
    str_addc(&text, '\n');
    fflush(stdout);
    fputs(str_text(&text), stderr);
}

void cli_error(const struct cli *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    line(c, "error: ", fmt, ap);
    va_end(ap);
}

void cli_say(const struct cli *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    line(c, "", fmt, ap);
    va_end(ap);
}

void cli_out(const struct str *s) {
    fwrite(str_text(s), 1, s->n, stdout);
}

int cli_stop(struct opt_run *r) {
    cli_out(&r->out);
    fflush(stdout);
    fputs(str_text(&r->err), stderr);
    return r->exit_code;
}

const char *cli_env(const char *name) {
    return getenv(name);
}

bool cli_options(struct cli *c, const struct opt_table *t, void *ctx, struct opt_run *r, bool takes_words,
                 int *exit_code) {
    opt_init(r, t, c->prog, ctx);
    bool ok = opt_scan(r, c->argc - 1, (const char *const *)c->argv + 1);
    size_t n = r->items.n;
    if (ok) {
        opt_scan_env(r, cli_env);
        ok = opt_apply(r, n, r->items.n) && opt_apply(r, 0, n);
    }
    if (ok && r->words.n && !takes_words) {
        opt_bad(r, 1, "Unrecognized option: %s", r->words.p[0]);
        ok = false;
    }
    c->stale = r->stale;
    if (!ok) {
        *exit_code = cli_stop(r);
    } else if (!cli_clusters(c, r, !str_eq(c->prog, "scancel") && !str_eq(c->prog, "sacct"))) {
        *exit_code = 1;
        return false;
    }
    return ok;
}

/* -v, -vv, --verbose: it means the same for all commands. */
static bool is_verbose(const struct cli *c) {
    for (int i = 1; i < c->argc && !str_eq(c->argv[i], "--"); i++) {
        const char *w = c->argv[i];
        if (str_eq(w, "--verbose") || (w[0] == '-' && w[1] == 'v' && strspn(w + 1, "v") == strlen(w + 1)))
            return true;
    }
    return false;
}

int cli_call(struct cli *c, enum wire_method m, const void *request, void *reply, struct err *e) {
    const struct spur_options options = {.stale = c->stale};
    int rc = c->client ? 0 : spur_open(&options, &c->client, e);
    if (rc)
        return rc;
    rc = spur_call(c->client, m, request, &c->arena, reply, e);
    if (rc && is_verbose(c))
        cli_say(c, "request %s: %s", spur_request_id(c->client), e->text);
    return rc;
}

const char *const *cli_words(struct cli *c, const char *list, const char *separators, uint32_t *out_n) {
    VEC(const char *) words = {0};
    while (*list) {
        list += strspn(list, separators);
        size_t n = strcspn(list, separators);
        if (n)
            vec_push(&words, arena_strndup(&c->arena, list, n));
        list += n;
    }
    *out_n = (uint32_t)words.n;
    const char *const *out = arena_memdup(&c->arena, words.p, words.n * sizeof(*words.p));
    vec_fini(&words);
    return out;
}

const char *const *cli_job_words(struct cli *c, const char *list, uint32_t *out_n) {
    VEC(const char *) words = {0};
    while (*list) {
        list += strspn(list, ", ");
        size_t n = 0;
        for (bool in_list = false; list[n] && (in_list || !strchr(", ", list[n])); n++)
            in_list = list[n] == '[' || (in_list && list[n] != ']');
        if (n)
            vec_push(&words, arena_strndup(&c->arena, list, n));
        list += n;
    }
    *out_n = (uint32_t)words.n;
    const char *const *out = arena_memdup(&c->arena, words.p, words.n * sizeof(*words.p));
    vec_fini(&words);
    return out;
}

bool cli_job_id(const char *text, uint32_t *out) {
    auto_arena a = {0};
    struct job_name name;
    if (job_name_parse(text, JOB_NAME_STEP, &a, &name, NULL) || name.target.n_tasks)
        return false;
    *out = name.target.job_id;
    return true;
}

bool cli_job_name(struct cli *c, const char *text, unsigned flags, struct job_name *out) {
    text = cli_sluids(c, text);
    const char *dot = strchr(text, '.');
    if (job_name_parse(text, flags | JOB_NAME_STEP, &c->arena, out, NULL) == 0)
        return true;
    if (!dot || !dot[1] || job_name_parse(arena_strndup(&c->arena, text, (size_t)(dot - text)), flags, &c->arena, out, NULL))
        return false;
    out->has_step = true;
    out->step_id = STEP_NONE;
    return true;
}

static int64_t local_to_unix(void *arg, int year, int month, int day, int hour, int minute, int second) {
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day,
                    .tm_hour = hour, .tm_min = minute, .tm_sec = second, .tm_isdst = -1};
    return mktime(&tm);
}

static void unix_to_local(void *arg, int64_t unix_secs, int out[6]) {
    time_t t = unix_secs;
    struct tm tm = {0};
    localtime_r(&t, &tm);
    out[0] = tm.tm_year + 1900;
    out[1] = tm.tm_mon + 1;
    out[2] = tm.tm_mday;
    out[3] = tm.tm_hour;
    out[4] = tm.tm_min;
    out[5] = tm.tm_sec;
}

struct text_clock cli_clock(void) {
    return (struct text_clock){.now_unix = time(NULL), .to_unix = local_to_unix, .to_local = unix_to_local};
}

/* SLURM_TIME_FORMAT=relative: the shorter the nearer. */
static const char *relative_format(const struct tm *when) {
    time_t now = time(NULL);
    struct tm today = {0};
    localtime_r(&now, &today);
    int days = (when->tm_year - today.tm_year) * 1000 + when->tm_yday - today.tm_yday;
    if (days >= -1 && days <= 1)
        return days ? days < 0 ? "Ystday %H:%M" : "Tomorr %H:%M" : "%H:%M:%S";
    if (days > 1 && days < 7)
        return "%a %H:%M";
    return days < -365 || days > 365 ? "%-d %b %Y" : "%-d %b %H:%M";
}

/* As Slurm: "standard", "relative", or a format of strftime; else the standard one. */
static const char *time_format(const struct tm *when) {
    const char *asked = getenv("SLURM_TIME_FORMAT");
    if (asked && strcmp(asked, "relative") == 0)
        return relative_format(when);
    return asked && strchr(asked, '%') ? asked : "%Y-%m-%dT%H:%M:%S";
}

void cli_time(int64_t unix_secs, const char *none, struct str *out) {
    if (unix_secs <= 0) {
        str_add(out, none);
        return;
    }
    time_t t = unix_secs;
    struct tm tm = {0};
    char text[256];
    localtime_r(&t, &tm);
    size_t n = strftime(text, sizeof(text), time_format(&tm), &tm);
    str_addn(out, text, n ? n : strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm));
}

void cli_date(int64_t unix_secs, struct str *out) {
    time_t t = unix_secs;
    struct tm tm = {0};
    char text[64];
    localtime_r(&t, &tm);
    strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &tm);
    str_add(out, text);
}

bool cli_user(const char *text, uint32_t *out_uid) {
    struct passwd *pw = getpwnam(text);
    uint64_t uid;
    if (pw)
        *out_uid = pw->pw_uid;
    else if (str_to_u64(text, UINT32_MAX - 1, &uid) == 0)
        *out_uid = (uint32_t)uid;
    else
        return false;
    return true;
}

bool cli_interval(const struct cli *c, const char *text, uint32_t *out_secs) {
    char *end;
    long secs = strtol(text, &end, 10);
    *out_secs = (uint32_t)secs;
    if (end != text && !*end && secs > 0 && secs <= 86400)
        return true;
    cli_error(c, "Error: Invalid --iterate value: %s", text);
    return false;
}
