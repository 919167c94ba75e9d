/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch scripts: whether a text is one, and the options of its #SBATCH lines.
 *
 * Words of a line are cut as a shell would cut them, a little simpler: single and double quotes are the same, a
 * backslash takes the next character as it is everywhere, an unquoted # ends the line. Lines count until the first that
 * is neither blank nor a comment; #SBATCH stands at the very beginning of its line.
 */
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/model/text.h"

#define WORDS_MAX 4096
#define MAGIC "#SBATCH"

struct words {
    struct arena *arena;
    struct err *e;
    VEC(const char *) word;
    VEC(uint32_t) line;
};

static void words_fini(struct words *w) {
    vec_fini(&w->word);
    vec_fini(&w->line);
}

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int script_check(const char *script, size_t n, struct err *e) {
    if (n == 0)
        return err_set(e, E_SCRIPT, "Batch script is empty!");
    if (n < 2 || memcmp(script, "#!", 2) != 0)
        return err_set(e, E_SCRIPT,
                       "This does not look like a batch script.  The first\n"
                       "line must start with #! followed by the path to an interpreter.\n"
                       "For instance: #!/bin/sh");
    if (memchr(script, '\0', n))
        return err_set(e, E_SCRIPT,
                       "The Slurm controller does not allow scripts that\n"
                       "contain a NULL character '\\0'.");
    if (memmem(script, n, "\r\n", 2))
        return err_set(e, E_SCRIPT,
                       "Batch script contains DOS line breaks (\\r\\n)\n"
                       "instead of expected UNIX line breaks (\\n).");
    return 0;
}

static int push(struct words *w, const char *word, uint32_t line) {
    if (w->word.n == WORDS_MAX)
        return err_set(w->e, E_SCRIPT, "line %u: more than %d words in " MAGIC " lines", line, WORDS_MAX);
    vec_push(&w->word, word);
    vec_push(&w->line, line);
    return 0;
}

/* One word at *p, which is no blank. `room` has place for the rest of the line; *quoted tells an empty "" from nothing.
 * Returns the quote that stays open, or 0. */
static char cut_word(const char **p, const char *end, char *room, bool *quoted) {
    char quote = 0;
    *quoted = false;
    for (; *p < end; (*p)++) {
        char c = **p;
        if (c == '\\' && *p + 1 < end) {
            *room++ = *++*p;
        } else if (quote && c == quote) {
            quote = 0;
        } else if (quote) {
            *room++ = c;
        } else if (c == '"' || c == '\'') {
            quote = c;
            *quoted = true;
        } else if (is_blank(c)) {
            break;
        } else if (c == '#') {
            *p = end;
            break;
        } else {
            *room++ = c;
        }
    }
    *room = '\0';
    return quote;
}

static int cut_line(struct words *w, const char *p, const char *end, uint32_t line) {
    const char *start = p;
    while (p < end) {
        if (is_blank(*p)) {
            p++;
            continue;
        }
        bool quoted;
        autofree char *word = xmalloc((size_t)(end - p) + 1);
        char open = cut_word(&p, end, word, &quoted);
        if (open)
            return err_set(w->e, E_SCRIPT, "line %u: Unmatched `%c` in [%.*s]", line, open,
                           (int)MIN(end - start, 200), start);
        if (!*word && !quoted)
            continue;
        int rc = push(w, arena_strdup(w->arena, word), line);
        if (rc)
            return rc;
    }
    return 0;
}

/* The part of a line behind #SBATCH or #PBS, or NULL. */
static const char *behind_magic(const char *p, const char *end, const char *magic) {
    size_t n = strlen(magic);
    if ((size_t)(end - p) < n || memcmp(p, magic, n) != 0)
        return NULL;
    p += n;
    return p == end || is_blank(*p) || *p == '-' ? p : NULL;
}

static bool is_comment_or_blank(const char *p, const char *end) {
    while (p < end && is_blank(*p))
        p++;
    return p == end || *p == '#';
}

static int read_directive(struct words *w, const char *p, const char *end, uint32_t line) {
    size_t before = w->word.n;
    int rc = cut_line(w, p, end, line);
    if (rc || w->word.n == before)
        return rc;
    const char *first = w->word.p[before];
    if (strcmp(first, "hetjob") == 0 || strcmp(first, "packjob") == 0)
        return err_set(w->e, E_UNSUPPORTED, "line %u: heterogeneous jobs (" MAGIC " %s) are not supported yet", line,
                       first);
    return 0;
}

static int options_of(const char *magic, const char *script, size_t n, struct arena *a, const char *const **out,
                      const uint32_t **out_lines, uint32_t *out_n, struct err *e) {
    auto_call(words_fini) struct words w = {.arena = a, .e = e};
    int rc = script_check(script, n, e);
    const char *p = script, *limit = script + n;
    for (uint32_t line = 1; !rc && p < limit; line++) {
        const char *nl = memchr(p, '\n', (size_t)(limit - p));
        const char *end = nl ? nl : limit;
        const char *rest = behind_magic(p, end, magic);
        if (rest)
            rc = read_directive(&w, rest, end, line);
        else if (!is_comment_or_blank(p, end))
            break;
        p = nl ? nl + 1 : limit;
    }
    if (rc)
        return rc;
    *out = w.word.n ? arena_memdup(a, w.word.p, w.word.n * sizeof(*w.word.p)) : NULL;
    if (out_lines)
        *out_lines = w.line.n ? arena_memdup(a, w.line.p, w.line.n * sizeof(*w.line.p)) : NULL;
    *out_n = (uint32_t)w.word.n;
    return 0;
}

int script_options(const char *script, size_t n, struct arena *a, const char *const **out, const uint32_t **out_lines,
                   uint32_t *out_n, struct err *e) {
    return options_of(MAGIC, script, n, a, out, out_lines, out_n, e);
}

int script_pbs_options(const char *script, size_t n, struct arena *a, const char *const **out,
                       const uint32_t **out_lines, uint32_t *out_n, struct err *e) {
    return options_of("#PBS", script, n, a, out, out_lines, out_n, e);
}
