/* SPDX-License-Identifier: Apache-2.0
 *
 * --multi-prog: a file of lines "RANKS COMMAND ARGUMENTS", where RANKS is "0", "1-3", "4,6" or "*", and %t in an argument
 * is the task's rank, %o its place in the line's ranks.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/srun.h"

#define FILE_MAX_BYTES (1u << 20)

/* Whether the rank is in the list, and at which place. */
static bool has_rank(const char *list, uint32_t rank, uint32_t *place) {
    uint32_t before = 0;
    if (str_eq(list, "*")) {
        *place = rank;
        return true;
    }
    for (const char *at = list; *at;) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at)
            return false;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (rank >= first && rank <= last) {
            *place = before + (uint32_t)(rank - first);
            return true;
        }
        before += last >= first ? (uint32_t)(last - first + 1) : 0;
        at = *end == ',' ? end + 1 : end + strlen(end);
    }
    return false;
}

static void add_word(const char *word, size_t n, uint32_t rank, uint32_t place, struct str *out) {
    for (size_t i = 0; i < n; i++) {
        if (word[i] == '%' && i + 1 < n && (word[i + 1] == 't' || word[i + 1] == 'o')) {
            str_addf(out, "%u", word[i + 1] == 't' ? rank : place);
            i++;
        } else {
            str_addc(out, word[i]);
        }
    }
}

/* The words of a line for one task. */
static struct stream_words words_of(struct srun *s, const char *line, uint32_t rank, uint32_t place) {
    struct arena *a = &s->job.c->arena;
    VEC(const char *) words = {0};
    for (;;) {
        line += strspn(line, " \t");
        size_t n = strcspn(line, " \t");
        if (!n)
            break;
        auto_str word = {0};
        add_word(line, n, rank, place, &word);
        vec_push(&words, arena_strdup(a, str_text(&word)));
        line += n;
    }
    struct stream_words out = {arena_memdup(a, words.p, words.n * sizeof(*words.p)), (uint32_t)words.n};
    vec_fini(&words);
    return out;
}

static struct stream_words line_of(struct srun *s, const char *const *line, uint32_t n, uint32_t rank) {
    for (uint32_t i = 0; i < n; i++) {
        const char *at = line[i] + strspn(line[i], " \t");
        size_t length = strcspn(at, " \t");
        autofree char *list = xstrndup(at, length);
        uint32_t place;
        if (length && *list != '#' && has_rank(list, rank, &place))
            return words_of(s, at + length, rank, place);
    }
    return (struct stream_words){0};
}

int srun_multi_read(struct srun *s, const char *path, uint32_t n_tasks, const struct stream_words **out) {
    struct cli *c = s->job.c;
    FILE *f = fopen(path, "re");
    if (!f) {
        cli_error(c, "Could not open multi_prog config file %s", path);
        return s->exit_error;
    }
    char *text = xcalloc(1, FILE_MAX_BYTES + 1);
    size_t n = fread(text, 1, FILE_MAX_BYTES, f);
    fclose(f);
    uint32_t n_lines;
    const char *const *line = n == strlen(text) ? cli_words(c, text, "\n", &n_lines) : NULL;
    free(text);
    struct stream_words *words = arena_calloc(&c->arena, MAX(n_tasks, 1u), sizeof(*words));
    for (uint32_t t = 0; t < n_tasks; t++) {
        if (line)
            words[t] = line_of(s, line, n_lines, t);
        if (!words[t].n_words) {
            cli_error(c, "Configuration file %s invalid, no record for task id %u", path, t);
            return s->exit_error;
        }
    }
    *out = words;
    return 0;
}
