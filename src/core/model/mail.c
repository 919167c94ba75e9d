/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/mail.h"

#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/mem.h"

/* In the order in which Slurm prints them. */
static const struct {
    const char *word;
    uint32_t bits;
} words[] = {
    {"ARRAY_TASKS", MAIL_ARRAY_TASKS}, {"INVALID_DEPEND", MAIL_INVALID_DEPEND},
    {"BEGIN", MAIL_BEGIN},             {"END", MAIL_END},
    {"FAIL", MAIL_FAIL},               {"REQUEUE", MAIL_REQUEUE},
    {"STAGE_OUT", MAIL_STAGE_OUT},     {"TIME_LIMIT_50", MAIL_TIME_50},
    {"TIME_LIMIT_80", MAIL_TIME_80},   {"TIME_LIMIT_90", MAIL_TIME_90},
    {"TIME_LIMIT", MAIL_TIME_100},
};
#define MAIL_ALL (MAIL_BEGIN | MAIL_END | MAIL_FAIL | MAIL_INVALID_DEPEND | MAIL_REQUEUE | MAIL_STAGE_OUT)

static int one_word(const char *s, size_t n, uint32_t *out) {
    if (n == 4 && !strncasecmp(s, "NONE", n)) {
        *out = 0;
        return 0;
    }
    if (n == 3 && !strncasecmp(s, "ALL", n)) {
        *out |= MAIL_ALL;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strlen(words[i].word) == n && !strncasecmp(s, words[i].word, n)) {
            *out |= words[i].bits;
            return 0;
        }
    }
    return E_SYNTAX;
}

int mail_type_parse(const char *s, uint32_t *out) {
    uint32_t bits = 0;
    int rc = *s ? 0 : E_SYNTAX;
    while (!rc && *s) {
        size_t n = strcspn(s, ",");
        rc = n ? one_word(s, n, &bits) : 0;
        s += n + (s[n] == ',');
    }
    if (!rc)
        *out = bits;
    return rc;
}

void mail_type_print(uint32_t bits, struct str *out) {
    bool any = false;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (!(bits & words[i].bits))
            continue;
        str_addf(out, "%s%s", any ? "," : "", words[i].word);
        any = true;
    }
    if (!any)
        str_add(out, "NONE");
}
