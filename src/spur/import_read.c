/* SPDX-License-Identifier: Apache-2.0
 *
 * Text to lines and words, as Slurm's own reader takes them: a `#` that has no backslash in front begins a comment, a
 * backslash at the end continues the line, values may stand in quotes, `Include FILE` is replaced by the file's lines.
 */
#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/import.h"

#define DEPTH_MAX 8u
#define LINES_MAX 200000u
#define WORDS_MAX 256u

void import_init(struct import *im, struct arena *a) {
    *im = (struct import){.arena = a};
}

void import_fini(struct import *im) {
    vec_fini(&im->lines);
    vec_fini(&im->gres);
    str_fini(&im->notes);
    str_fini(&im->conf);
    str_fini(&im->agents);
}

bool import_is(const char *a, const char *b) {
    return a && strcasecmp(a, b) == 0;
}

void import_note(struct import *im, const struct import_line *l, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str_addf(&im->notes, "%s:%u: ", l->file, l->line);
    str_vaddf(&im->notes, fmt, ap);
    str_addc(&im->notes, '\n');
    va_end(ap);
}

const char *import_value(const struct import_line *l, const char *key) {
    const char *value = NULL;
    for (uint32_t i = 0; i < l->n_words; i++)
        if (import_is(l->word[i].key, key))
            value = l->word[i].value;
    return value;
}

/* One line of the text, continued ones joined, without its comment. NULL: the end. */
static const char *next_line(struct import *im, const char **at, const char *end, uint32_t *line) {
    auto_str out = {0};
    bool any = false, in_comment = false;
    for (; *at < end; (*at)++) {
        char c = **at;
        any = true;
        if (c == '\n') {
            (*line)++;
            (*at)++;
            if (out.n && out.p[out.n - 1] == '\\' && !in_comment) {
                out.p[out.n - 1] = ' ';
                (*at)--;
                continue;
            }
            break;
        }
        if (c == '#' && !in_comment) {
            if (out.n && out.p[out.n - 1] == '\\')
                out.p[out.n - 1] = '#';
            else
                in_comment = true;
            continue;
        }
        if (!in_comment && c != '\r' && c != '\0')
            str_addc(&out, c);
    }
    return any ? arena_strdup(im->arena, str_text(&out)) : NULL;
}

/* KEY=VALUE or KEY="VALUE with blanks"; blanks around the `=` are allowed. */
static const char *next_word(struct import *im, const char *at, struct import_word *out) {
    const char *from = at;
    while (*at && *at != '=' && !isspace((unsigned char)*at))
        at++;
    size_t n = (size_t)(at - from);
    const char *behind = at;
    while (isspace((unsigned char)*behind))
        behind++;
    if (n && from[n - 1] == '+' && *behind == '=')
        n--;
    out->key = arena_strndup(im->arena, from, n);
    out->value = NULL;
    if (*behind != '=')
        return at;
    at = behind + 1;
    while (isspace((unsigned char)*at))
        at++;
    char quote = *at == '"' || *at == '\'' ? *at++ : '\0';
    from = at;
    while (*at && (quote ? *at != quote : !isspace((unsigned char)*at)))
        at++;
    out->value = arena_strndup(im->arena, from, (size_t)(at - from));
    return *at && quote ? at + 1 : at;
}

static uint32_t cut(struct import *im, const char *text, struct import_word *word) {
    uint32_t n = 0;
    while (n < WORDS_MAX) {
        while (isspace((unsigned char)*text))
            text++;
        if (!*text)
            break;
        const char *before = text;
        text = next_word(im, text, &word[n]);
        if (text == before) /* an `=` alone */
            text++;
        else
            n++;
    }
    return n;
}

static void include(struct import *im, const struct import_line *l, const char *name, bool is_gres, unsigned depth) {
    size_t n = 0;
    if (depth >= DEPTH_MAX) {
        import_note(im, l, "Include %s: files include each other too deeply; left out", name);
        return;
    }
    const char *text = im->read ? im->read(im->ctx, l->file, name, &n) : NULL;
    if (text)
        import_text(im, name, text, n, is_gres, depth + 1);
    else
        import_note(im, l, "Include %s: the file can't be read; left out", name);
}

void import_text(struct import *im, const char *file, const char *text, size_t n, bool is_gres, unsigned depth) {
    const char *at = text, *end = text + n, *line;
    struct import_word word[WORDS_MAX];
    for (uint32_t number = 1, from = 1; (line = next_line(im, &at, end, &number)); from = number) {
        struct import_line l = {.file = file, .line = from};
        if (strncasecmp(line + strspn(line, " \t"), "include", 7) == 0 &&
            isspace((unsigned char)line[strspn(line, " \t") + 7])) {
            const char *name = line + strspn(line, " \t") + 7;
            name += strspn(name, " \t");
            include(im, &l, arena_strndup(im->arena, name, strcspn(name, " \t")), is_gres, depth);
            continue;
        }
        l.n_words = cut(im, line, word);
        if (!l.n_words)
            continue;
        if (im->lines.n + im->gres.n >= LINES_MAX) {
            import_note(im, &l, "more than %u lines: the rest is left out", LINES_MAX);
            return;
        }
        l.word = arena_memdup(im->arena, word, l.n_words * sizeof(*word));
        if (is_gres)
            vec_push(&im->gres, l);
        else
            vec_push(&im->lines, l);
    }
}
