/* SPDX-License-Identifier: Apache-2.0
 *
 * What jobs ask for beside CPUs and memory: generic resources (--gres, --gpus), licences, a signal before the end.
 */
#include <signal.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/model/text.h"

#define ASKS_MAX 256
#define SIGNAL_SECS 60
#define SIGNAL_SECS_MAX 65535
#define SIGNAL_MAX 64

/* ---- counts ---- */

/* "4", "2k": times 1024 for each letter. The whole of [s, end). */
static bool count(const char *s, const char *end, uint64_t *out) {
    static const char units[] = "kmgtp";
    uint64_t v = 0;
    const char *from = s;
    for (; s < end && *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return false;
    if (s == from)
        return false;
    if (s < end) {
        const char *unit = *s ? strchr(units, *s | 0x20) : NULL;
        if (!unit || s + 1 != end)
            return false;
        for (const char *u = units; u <= unit; u++)
            if (__builtin_mul_overflow(v, 1024, &v))
                return false;
    }
    *out = v;
    return v <= INT64_MAX;
}

/* ---- generic resources ---- */

struct asks {
    VEC(struct gres_ask) v;
};

static void asks_fini(struct asks *a) {
    vec_fini(&a->v);
}

static int add_ask(struct asks *to, const struct gres_ask *ask, struct err *e) {
    for (size_t i = 0; i < to->v.n; i++) {
        struct gres_ask *have = &to->v.p[i];
        if (!str_eq(have->name, ask->name) || have->per != ask->per)
            continue;
        if (!have->type != !ask->type)
            return err_set(e, E_GRES, "Invalid GRES specification (with and without type identification)");
        if (str_eq(have->type, ask->type)) {
            if (__builtin_add_overflow(have->count, ask->count, &have->count))
                return err_set(e, E_GRES, NULL);
            return 0;
        }
    }
    if (to->v.n == ASKS_MAX)
        return err_set(e, E_GRES, "%s: more than %d", err_sentence(E_GRES), ASKS_MAX);
    vec_push(&to->v, *ask);
    return 0;
}

/* The part up to the next ':' or '=' of [*s, end); moves behind it. */
static const char *take_word(const char **s, const char *end, size_t *out_n) {
    const char *from = *s, *p = from;
    while (p < end && *p != ':' && *p != '=')
        p++;
    *out_n = (size_t)(p - from);
    *s = p < end ? p + 1 : p;
    return from;
}

static const char *skip_prefix(const char *s) {
    return strncasecmp(s, "gres/", 5) == 0 || strncasecmp(s, "gres:", 5) == 0 ? s + 5 : s;
}

/* "gpu", "gpu:2", "gpu:a100", "gpu:a100:2"; with `ask->name` given what stands behind it. */
static int read_ask(const char *s, const char *end, struct arena *a, struct gres_ask *ask, struct err *e) {
    size_t n;
    const char *word;
    ask->count = 1;
    if (!ask->name) {
        s = skip_prefix(s);
        word = take_word(&s, end, &n);
        if (!n)
            return err_set(e, E_GRES, NULL);
        ask->name = arena_strndup(a, word, n);
        if (s == end)
            return end[-1] == ':' || end[-1] == '=' ? err_set(e, E_GRES, NULL) : 0;
    }
    if (count(s, end, &ask->count))
        return 0;
    word = take_word(&s, end, &n);
    if (!n || (*word >= '0' && *word <= '9' && s == end))
        return err_set(e, E_GRES, NULL);
    ask->type = arena_strndup(a, word, n);
    if (s < end && !count(s, end, &ask->count))
        return err_set(e, E_GRES, "Invalid Trackable RESource (TRES) specification");
    return 0;
}

int gres_parse(const char *s, const char *name, enum gres_per per, struct arena *a, const struct gres_ask **out,
               uint32_t *out_n, struct err *e) {
    auto_call(asks_fini) struct asks asks = {0};
    for (uint32_t i = 0; i < *out_n; i++)
        vec_push(&asks.v, (*out)[i]);
    if (strcasecmp(s, "none") == 0)
        s = "";
    while (*s) {
        struct gres_ask ask = {.name = name, .per = per};
        size_t n = strcspn(s, ",");
        int rc = n ? read_ask(s, s + n, a, &ask, e) : 0;
        if (!rc && n && ask.count)
            rc = add_ask(&asks, &ask, e);
        if (rc)
            return rc;
        s += n + (s[n] == ',');
    }
    *out = asks.v.n ? arena_memdup(a, asks.v.p, asks.v.n * sizeof(*asks.v.p)) : NULL;
    *out_n = (uint32_t)asks.v.n;
    return 0;
}

void gres_text_print(const char *text, const char *prefix, struct str *out) {
    for (bool first = true; *text; first = false) {
        size_t n = strcspn(text, ",");
        const char *bare = skip_prefix(text);
        str_addf(out, "%s%s", first ? "" : ",", prefix);
        str_addn(out, bare, n - (size_t)(bare - text));
        text += n + (text[n] == ',');
    }
}

/* ---- licences ---- */

static int read_license(const char *s, size_t n, bool is_or, struct arena *a, struct license_ask *out, struct err *e) {
    const char *colon = memchr(s, ':', n);
    uint64_t many = 1;
    size_t name = colon ? (size_t)(colon - s) : n;
    if (!name || (colon && (!count(colon + 1, s + n, &many) || many > UINT32_MAX)))
        return err_set(e, E_LICENSE, NULL);
    *out = (struct license_ask){.name = arena_strndup(a, s, name), .count = (uint32_t)many, .is_or = is_or};
    return 0;
}

int license_parse(const char *s, struct arena *a, const struct license_ask **out, uint32_t *out_n, struct err *e) {
    struct license_ask *list = arena_calloc(a, ASKS_MAX, sizeof(*list));
    bool is_or = strchr(s, '|') != NULL;
    uint32_t n = 0;
    if (is_or && strpbrk(s, ",;"))
        return err_set(e, E_LICENSE, NULL);
    while (*s) {
        size_t len = strcspn(s, ",;|");
        if (n == ASKS_MAX)
            return err_set(e, E_LICENSE, NULL);
        int rc = read_license(s, len, is_or && n, a, &list[n], e);
        if (rc)
            return rc;
        n++;
        s += len + (s[len] != '\0');
    }
    *out = n ? list : NULL;
    *out_n = n;
    return 0;
}

/* ---- signals ---- */

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"ILL", SIGILL},   {"TRAP", SIGTRAP},     {"ABRT", SIGABRT},
    {"BUS", SIGBUS},   {"FPE", SIGFPE},   {"KILL", SIGKILL}, {"USR1", SIGUSR1}, {"SEGV", SIGSEGV},     {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE}, {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"CHLD", SIGCHLD}, {"CONT", SIGCONT},     {"STOP", SIGSTOP},
    {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN}, {"TTOU", SIGTTOU}, {"URG", SIGURG},   {"XCPU", SIGXCPU},     {"XFSZ", SIGXFSZ},
    {"PROF", SIGPROF}, {"IO", SIGIO},     {"PWR", SIGPWR},   {"SYS", SIGSYS},   {"VTALRM", SIGVTALRM}, {"WINCH", SIGWINCH},
};

static int read_signal(const char *s, size_t n, uint32_t *out) {
    uint64_t number;
    if (count(s, s + n, &number)) {
        if (!number || number > SIGNAL_MAX)
            return E_SYNTAX;
        *out = (uint32_t)number;
        return 0;
    }
    if (n > 3 && strncasecmp(s, "SIG", 3) == 0) {
        s += 3;
        n -= 3;
    }
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (strlen(signals[i].name) == n && strncasecmp(signals[i].name, s, n) == 0) {
            *out = (uint32_t)signals[i].number;
            return 0;
        }
    return E_SYNTAX;
}

int signal_parse(const char *s, uint32_t *out) {
    return read_signal(s, strlen(s), out);
}

int signal_ask_parse(const char *s, struct signal_ask *out) {
    struct signal_ask ask = {.secs = SIGNAL_SECS};
    const char *colon = strchr(s, ':');
    for (; colon && s < colon; s++) {
        bool *flag = (*s | 0x20) == 'b' ? &ask.batch : (*s | 0x20) == 'r' ? &ask.reservation : NULL;
        if (!flag || *flag)
            return E_SYNTAX;
        *flag = true;
    }
    s += colon != NULL;
    size_t n = strcspn(s, "@");
    uint64_t secs;
    if (read_signal(s, n, &ask.signal))
        return E_SYNTAX;
    if (s[n]) {
        if (str_to_u64(s + n + 1, SIGNAL_SECS_MAX, &secs))
            return E_SYNTAX;
        ask.secs = (uint32_t)secs;
    }
    *out = ask;
    return 0;
}
