/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/opt.h"

#include <stdarg.h>
#include <string.h>

#include "base/mem.h"
#include "base/near.h"
#include "spur/version.h"

void opt_init(struct opt_run *r, const struct opt_table *t, const char *prog, void *ctx) {
    *r = (struct opt_run){.table = t, .prog = prog, .ctx = ctx, .exit_code = -1};
}

void opt_fini(struct opt_run *r) {
    vec_fini(&r->items);
    vec_fini(&r->words);
    str_fini(&r->out);
    str_fini(&r->err);
}

static bool stop(struct opt_run *r, int exit_code) {
    r->exit_code = exit_code;
    return false;
}

int opt_bad(struct opt_run *r, int exit_code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str_addf(&r->err, "%s: error: ", r->prog);
    str_vaddf(&r->err, fmt, ap);
    str_addc(&r->err, '\n');
    va_end(ap);
    r->exit_code = exit_code;
    return -1;
}

int opt_bad_value(struct opt_run *r, const struct opt_row *o) {
    return opt_bad(r, r->table->usage_exit, "Invalid --%s specification", o->name);
}

/* getopt's own complaints have no "error:". `near` (may be NULL): what was perhaps meant. */
__attribute__((format(printf, 3, 4))) static bool misuse(struct opt_run *r, const char *near, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str_addf(&r->err, "%s: ", r->prog);
    str_vaddf(&r->err, fmt, ap);
    str_addc(&r->err, '\n');
    if (near)
        str_addf(&r->err, "%s: did you mean '--%s'?\n", r->prog, near);
    str_addf(&r->err, "Try \"%s --help\" for more information\n", r->prog);
    va_end(ap);
    return stop(r, r->table->usage_exit);
}

/* The option that works and is written almost so. */
static const char *near_option(const struct opt_table *t, const char *text, size_t n) {
    autofree char *word = xstrndup(text, n);
    struct near near = near_to(word);
    for (size_t i = 0; i < t->n; i++)
        if (t->row[i].kind != OPT_NOT_YET && !(t->row[i].flags & OPT_HIDDEN))
            near_try(&near, t->row[i].name);
    return near.best;
}

/* Where the words stand, and where the reader is in them. */
struct reader {
    uint32_t n, at;
    const char *const *word;
    const uint32_t *line; /* NULL: a command line */
};

/* The argument that is no part of the option's own word; NULL: there is none. */
static const char *next_word(struct reader *rd, const struct opt_row *o) {
    if (rd->at + 1 >= rd->n || (o->flags & OPT_MAYBE && !(o->flags & OPT_NEXT)))
        return NULL;
    if (o->flags & OPT_MAYBE && rd->word[rd->at + 1][0] == '-')
        return NULL;
    return rd->word[++rd->at];
}

static bool add(struct opt_run *r, const struct reader *rd, const struct opt_row *o, const char *value) {
    switch (o->kind) {
    case OPT_HELP:
        opt_help(r->table, r->prog, &r->out);
        return stop(r, 0);
    case OPT_USAGE:
        str_addf(&r->out, "Usage: %s %s\n", r->prog, r->table->brief);
        return stop(r, 0);
    case OPT_VERSION:
        str_add(&r->out, VERSION_LINE "\n");
        return stop(r, 0);
    default:
        vec_push(&r->items, (struct opt_item){o, value, rd->line ? rd->line[rd->at] : 0, NULL});
        return true;
    }
}

/* As getopt_long: the exact name, else the only one that begins so. `--tasks` of two options with the same meaning
 * would not be ambiguous there; our tables have no such pair. */
static const struct opt_row *find_long(struct opt_run *r, const char *text, size_t n) {
    const struct opt_row *found = NULL;
    auto_str possible = {0};
    size_t n_found = 0;
    for (size_t i = 0; i < r->table->n; i++) {
        const struct opt_row *o = &r->table->row[i];
        if (!o->name || strncmp(o->name, text, n) != 0)
            continue;
        if (!o->name[n])
            return o;
        if (o->flags & OPT_WHOLE)
            continue;
        str_addf(&possible, " '--%s'", o->name);
        found = o;
        n_found++;
    }
    if (n_found == 1)
        return found;
    if (n_found)
        misuse(r, NULL, "option '--%s' is ambiguous; possibilities:%s", text, str_text(&possible));
    else
        misuse(r, near_option(r->table, text, n), "unrecognized option '--%s'", text);
    return NULL;
}

static bool read_long(struct opt_run *r, struct reader *rd, const char *text) {
    const char *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : strlen(text);
    const struct opt_row *o = find_long(r, text, n);
    if (!o)
        return false;
    const char *value = equals ? equals + 1 : NULL;
    if (value && !o->arg)
        return misuse(r, NULL, "option '--%s' doesn't allow an argument", o->name);
    if (!value && o->arg) {
        value = next_word(rd, o);
        if (!value && !(o->flags & OPT_MAYBE))
            return misuse(r, NULL, "option '--%s' requires an argument", o->name);
    }
    return add(r, rd, o, value);
}

static const struct opt_row *find_letter(const struct opt_table *t, char c) {
    for (size_t i = 0; i < t->n; i++)
        if (t->row[i].letter == c)
            return &t->row[i];
    return NULL;
}

static bool read_letters(struct opt_run *r, struct reader *rd, const char *text) {
    for (const char *c = text; *c; c++) {
        const struct opt_row *o = find_letter(r->table, *c);
        if (!o)
            return misuse(r, NULL, "invalid option -- '%c'", *c);
        if (!o->arg) {
            if (!add(r, rd, o, NULL))
                return false;
            continue;
        }
        const char *value = c[1] ? c + 1 : NULL;
        if (!value) {
            value = next_word(rd, o);
            if (!value && !(o->flags & OPT_MAYBE))
                return misuse(r, NULL, "option requires an argument -- '%c'", *c);
        }
        return add(r, rd, o, value);
    }
    return true;
}

static bool scan(struct opt_run *r, struct reader *rd) {
    for (; rd->at < rd->n; rd->at++) {
        const char *w = rd->word[rd->at];
        if (str_eq(w, "--")) {
            for (rd->at++; rd->at < rd->n; rd->at++)
                vec_push(&r->words, rd->word[rd->at]);
            return true;
        }
        bool is_option = w[0] == '-' && w[1];
        if (is_option && !(w[1] == '-' ? read_long(r, rd, w + 2) : read_letters(r, rd, w + 1)))
            return false;
        if (is_option)
            continue;
        vec_push(&r->words, w);
        if (r->table->stop_at_word) {
            for (rd->at++; rd->at < rd->n; rd->at++)
                vec_push(&r->words, rd->word[rd->at]);
            return true;
        }
    }
    return true;
}

bool opt_scan(struct opt_run *r, int n, const char *const *word) {
    struct reader rd = {.n = (uint32_t)n, .word = word};
    return scan(r, &rd);
}

bool opt_scan_script(struct opt_run *r, uint32_t n, const char *const *word, const uint32_t *line) {
    size_t words = r->words.n;
    struct reader rd = {.n = n, .word = word, .line = line};
    if (!scan(r, &rd)) {
        if (r->exit_code > 0 && n)
            str_addf(&r->err, "%s: error: in line %u of the batch script\n", r->prog,
                     line[MIN(rd.at, n - 1)]);
        return false;
    }
    if (r->words.n == words)
        return true;
    const char *extra = r->words.p[words];
    uint32_t at = 0;
    while (at + 1 < n && word[at] != extra)
        at++;
    opt_bad(r, r->table->usage_exit, "Invalid argument in line %u of the batch script: %s", line[at], extra);
    return false;
}

void opt_scan_env(struct opt_run *r, const char *(*get)(const char *name)) {
    char name[128];
    for (size_t i = 0; i < r->table->n; i++) {
        const struct opt_row *o = &r->table->row[i];
        for (size_t k = 0; o->env && k < ARRAY_LEN(r->table->env_prefix) && r->table->env_prefix[k]; k++) {
            size_t prefix = strlen(r->table->env_prefix[k]), rest = strlen(o->env);
            must(prefix + rest < sizeof(name));
            memcpy(name, r->table->env_prefix[k], prefix);
            memcpy(name + prefix, o->env, rest + 1);
            const char *value = get(name);
            if (value)
                vec_push(&r->items, (struct opt_item){o, value, 0, o->env});
            if (value || !(o->flags & OPT_ENV_ALL))
                break;
        }
    }
}

static bool refuse(struct opt_run *r, const struct opt_item *it) {
    const struct opt_row *o = it->row;
    auto_str where = {0};
    int rc = o->set ? o->set(r, o, it->value) : 0;
    if (rc)
        return rc > 0;
    if (it->line)
        str_addf(&where, "line %u of the batch script: ", it->line);
    else if (it->env)
        str_addf(&where, "%s%s: ", r->table->env_prefix[0], it->env);
    if (o->name)
        opt_bad(r, 1, "%soption --%s is not supported yet (see docs/compatibility.md)", str_text(&where), o->name);
    else
        opt_bad(r, 1, "%soption -%c is not supported yet (see docs/compatibility.md)", str_text(&where), o->letter);
    return false;
}

static bool apply(struct opt_run *r, const struct opt_item *it) {
    void *field = (char *)r->ctx + it->row->off;
    switch (it->row->kind) {
    case OPT_BOOL:
        *(bool *)field = true;
        return true;
    case OPT_TEXT:
        *(const char **)field = it->value;
        return true;
    case OPT_COUNT:
        ++*(uint32_t *)field;
        return true;
    case OPT_CALL:
        return it->row->set(r, it->row, it->value) == 0;
    case OPT_CLUSTERS:
        r->clusters = it->value;
        return true;
    case OPT_STALE:
        r->stale = true;
        return true;
    case OPT_NOT_YET:
        return refuse(r, it);
    default:
        return true;
    }
}

bool opt_apply(struct opt_run *r, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (!apply(r, &r->items.p[i]))
            return false;
    return true;
}

const struct opt_item *opt_find(const struct opt_run *r, const char *name) {
    for (size_t i = r->items.n; i-- > 0;)
        if (str_eq(r->items.p[i].row->name, name))
            return &r->items.p[i];
    return NULL;
}

#define HELP_COLUMN 30

void opt_help(const struct opt_table *t, const char *prog, struct str *out) {
    bool is_help = false; /* those that tell of the command come last, as with Slurm */
    str_addf(out, "Usage: %s %s\n\n", prog, t->usage);
    for (size_t i = 0; i < 2 * t->n; i++) {
        const struct opt_row *o = &t->row[i % t->n];
        if (o->kind == OPT_NOT_YET || o->flags & OPT_HIDDEN)
            continue;
        bool tells = o->kind == OPT_HELP || o->kind == OPT_USAGE || o->kind == OPT_VERSION;
        if (tells != (i >= t->n))
            continue;
        if (tells && !is_help)
            str_add(out, "\nHelp options:\n");
        is_help = tells;
        auto_str left = {0};
        if (o->letter)
            str_addf(&left, "  -%c%s", o->letter, o->name ? ", " : "");
        else
            str_add(&left, "      ");
        if (o->name)
            str_addf(&left, "--%s", o->name);
        if (o->arg)
            str_addf(&left, o->flags & OPT_MAYBE ? "[%s%s]" : "%s%s", o->name ? "=" : " ", o->arg);
        int pad = left.n < HELP_COLUMN ? (int)(HELP_COLUMN - left.n) : 1;
        str_addf(out, "%s%*s%s\n", left.p, pad, "", o->help);
    }
    if (t->note)
        str_addf(out, "\n%s\n", t->note);
}
