/* SPDX-License-Identifier: Apache-2.0
 *
 * The table config.def as arrays, and questions to it.
 */
#include "core/model/config_table.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "core/model/job.h"

static const struct conf_section sections[] = {
#define CONF_SECTION(name, shape, doc) {name, doc, CONF_SHAPE_##shape},
#include "core/model/config.def"
#undef CONF_SECTION
};

static const struct conf_key keys[] = {
#define CONF_KEY(section, key, type, of, field, count, def, lo, hi, words, scope, slurm, doc)                          \
    {section, key, CONF_##type, offsetof(struct of, field), offsetof(struct of, count), def, lo, hi, words,            \
     CONF_##scope, slurm, doc},
#include "core/model/config.def"
#undef CONF_KEY
};

static const struct conf_other others[] = {
#define CONF_OTHER(section, key, type, value, why) {section, key, CONF_##type, value, why},
#include "core/model/config.def"
#undef CONF_OTHER
};

const struct conf_section *conf_sections(size_t *n) {
    *n = ARRAY_LEN(sections);
    return sections;
}

const struct conf_key *conf_keys(size_t *n) {
    *n = ARRAY_LEN(keys);
    return keys;
}

const struct conf_other *conf_others(size_t *n) {
    *n = ARRAY_LEN(others);
    return others;
}

const struct conf_section *conf_find_section(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        if (str_eq(sections[i].name, name))
            return &sections[i];
    }
    return NULL;
}

const struct conf_key *conf_find_key(const char *section, const char *key) {
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (str_eq(keys[i].section, section) && str_eq(keys[i].key, key))
            return &keys[i];
    }
    return NULL;
}

const struct conf_other *conf_find_other(const char *section, const char *key) {
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (str_eq(others[i].section, section) && str_eq(others[i].key, key))
            return &others[i];
    }
    return NULL;
}

void conf_print_name(const char *section, const char *key, struct str *out) {
    if (*section)
        str_addf(out, "%s.", section);
    str_add(out, key);
}

const char *conf_word(const char *words, size_t i, size_t *n) {
    for (; words; words = strchr(words, '|') ? strchr(words, '|') + 1 : NULL) {
        *n = strcspn(words, "|");
        if (i-- == 0)
            return words;
    }
    return NULL;
}

int conf_word_number(const char *words, const char *word, bool *refused) {
    size_t n;
    const char *w;
    for (size_t i = 0; (w = conf_word(words, i, &n)); i++) {
        *refused = *w == '!';
        w += *refused;
        n -= *refused;
        if (strlen(word) == n && strncasecmp(w, word, n) == 0)
            return (int)i;
    }
    return -1;
}

static void print_words(const char *words, struct str *out) {
    auto_str list = {0};
    size_t n, shown = 0;
    const char *w;
    for (size_t i = 0; (w = conf_word(words, i, &n)); i++) {
        if (*w != '!')
            str_addf(&list, "%s\"%.*s\"", shown++ ? ", " : "", (int)n, w);
    }
    str_addf(out, "%s%s", shown > 1 ? "one of " : "", str_text(&list));
}

void conf_print_allowed(const struct conf_key *k, struct str *out) {
    switch (k->type) {
    case CONF_STR:
    case CONF_SECRET: str_addf(out, "a text of %" PRIu64 " to %" PRIu64 " bytes", k->lo, k->hi); break;
    case CONF_ADDR: str_add(out, "a text \"host:port\""); break;
    case CONF_U32:
    case CONF_U64: str_addf(out, "an integer from %" PRIu64 " to %" PRIu64, k->lo, k->hi); break;
    case CONF_BOOL: str_add(out, "true or false"); break;
    case CONF_STRS: str_addf(out, "a list of at most %" PRIu64 " texts", k->hi); break;
    case CONF_NAMES: str_addf(out, "a list of at most %" PRIu64 " texts, or one text with commas", k->hi); break;
    case CONF_COUNTS: str_addf(out, "a table of at most %" PRIu64 " names and their numbers", k->hi); break;
    case CONF_LABELS: str_addf(out, "a table of at most %" PRIu64 " labels and their values", k->hi); break;
    case CONF_LIMIT: str_add(out, "a time such as 90 (minutes), \"1:30:00\", \"2-12\", \"1h40m\" or \"UNLIMITED\""); break;
    case CONF_CHOICE:
    case CONF_WORD: print_words(k->words, out); break;
    case CONF_TABLE:
    case CONF_LIST: break;
    }
}
