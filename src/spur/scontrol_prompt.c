/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol without a keyword: reads them, one a line. A failure doesn't end it; the exit code tells whether there was one.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "spur/scontrol.h"

/* Cuts the line into words at blanks that stand in no quotes; the quotes go. */
static size_t cut(char *line, const char **word, size_t most) {
    size_t n = 0;
    for (char *at = line; n < most;) {
        while (isspace((unsigned char)*at))
            at++;
        if (!*at)
            break;
        char *to = at, quote = '\0';
        word[n++] = to;
        for (; *at && (quote || !isspace((unsigned char)*at)); at++)
            if (quote ? *at == quote : *at == '"' || *at == '\'')
                quote = quote ? '\0' : *at;
            else
                *to++ = *at;
        at += *at != '\0';
        *to = '\0';
    }
    return n;
}

static bool is_end(const char *word) {
    return scontrol_is(word, "exit", 1) || scontrol_is(word, "quit", 4);
}

int scontrol_prompt(struct scontrol *s) {
    char *line = NULL, *before = NULL;
    size_t size = 0;
    bool echoes = !isatty(STDIN_FILENO);
    int exit_code = 0;
    for (;;) {
        fputs("scontrol: ", stdout);
        fflush(stdout);
        ssize_t n = getline(&line, &size, stdin);
        if (n < 0) {
            puts("");
            break;
        }
        line[strcspn(line, "\n")] = '\0';
        if (echoes)
            puts(line);
        if (str_eq(line, "!!") && before) { /* once more */
            free(line);
            line = xstrdup(before);
            size = strlen(line) + 1;
        }
        free(before);
        before = xstrdup(line);
        const char *word[256];
        size_t n_words = cut(line, word, ARRAY_LEN(word));
        if (n_words && is_end(word[0]))
            break;
        if (n_words && scontrol_run(s, word, n_words))
            exit_code = 1;
    }
    free(line);
    free(before);
    return exit_code;
}
