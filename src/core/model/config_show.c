/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration for people: `scontrol show config`, the sample file, the reference of all keys.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/model/config_table.h"
#include "core/model/text.h"

/* ---- scontrol show config ---- */

struct rows {
    struct arena *arena;
    VEC(const char *) v;
};

static void add_row(struct rows *rows, const char *name, const char *value) {
    vec_push(&rows->v, arena_printf(rows->arena, "%-23s = %s", name, value));
}

static void print_list(const char *const *list, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n; i++)
        str_addf(out, "%s%s", i ? "," : "", list[i]);
}

static void print_counts(const struct license *list, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n; i++)
        str_addf(out, "%s%s:%" PRIu32, i ? "," : "", list[i].name, list[i].count);
}

static void print_number(const struct conf_key *k, uint64_t v, struct str *out) {
    if (str_eq(k->slurm, "PriorityMaxAge"))
        duration_print_long((int64_t)v, out);
    else
        str_addf(out, "%" PRIu64 "%s", v, str_ends(k->key, "_secs") ? " sec" : str_ends(k->key, "_minutes") ? " min" : "");
}

static void print_value(const struct conf_key *k, const void *base, struct str *out) {
    const char *at = (const char *)base + k->off;
    const char *text;
    size_t n;
    switch (k->type) {
    case CONF_U32: print_number(k, *(const uint32_t *)at, out); break;
    case CONF_U64: print_number(k, *(const uint64_t *)at, out); break;
    case CONF_BOOL: str_add(out, *(const bool *)at ? "yes" : "no"); break;
    case CONF_LABELS:
        labels_print(*(const struct selector *const *)(const void *)at, *(const uint32_t *)((const char *)base + k->off_n), out);
        break;
    case CONF_COUNTS:
        print_counts(*(const struct license *const *)(const void *)at, *(const uint32_t *)((const char *)base + k->off_n), out);
        break;
    case CONF_STRS:
    case CONF_NAMES:
        print_list(*(const char *const *const *)at, *(const uint32_t *)((const char *)base + k->off_n), out);
        break;
    case CONF_WORD:
        text = conf_word(k->words, *(const uint32_t *)at, &n);
        str_addn(out, text, text ? n : 0);
        break;
    case CONF_SECRET: str_add(out, *(const char *const *)at ? "(set)" : ""); break;
    default:
        text = *(const char *const *)at;
        str_add(out, text ? text : "");
        break;
    }
    if (out->n == 0)
        str_add(out, "(null)");
}

/* SlurmctldHost[0…] and SlurmctldPort: what tools of Slurm look for first. */
static void add_hosts(struct rows *rows, const struct conf *c) {
    const char *const *host = c->n_peers ? c->peers : c->hosts;
    uint32_t n = c->n_peers ? c->n_peers : c->n_hosts;
    for (uint32_t i = 0; i < n; i++) {
        const char *colon = c->n_peers ? strrchr(host[i], ':') : NULL;
        size_t len = colon ? (size_t)(colon - host[i]) : strlen(host[i]);
        add_row(rows, arena_printf(rows->arena, "SlurmctldHost[%" PRIu32 "]", i),
                arena_printf(rows->arena, "%.*s", (int)len, host[i]));
    }
    const char *port = c->listen_addr ? strrchr(c->listen_addr, ':') : NULL;
    add_row(rows, "SlurmctldPort", port ? port + 1 : "6817");
}

static void add_fixed(struct rows *rows, const struct conf *c) {
    static const char *const fixed[][2] = {{"PriorityType", "priority/multifactor"},
                                           {"SchedulerType", "sched/backfill"},
                                           {"SelectType", "select/cons_tres"}};
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        add_row(rows, fixed[i][0], fixed[i][1]);
    add_row(rows, "JobRequeue", c->rep.no_requeue ? "0" : "1");
    add_row(rows, "AuthType", c->auth_mode == AUTH_DISABLED          ? "auth/none"
                                : str_eq(c->auth_plugin, "munge") ? "auth/munge"
                                                                  : "auth/jwt");
}

static int by_name(const void *a, const void *b) {
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

void conf_show(const struct conf *c, const struct rconf *in_force, struct str *out) {
    auto_arena a = {0};
    struct rows rows = {.arena = &a};
    size_t n;
    const struct conf_key *k = conf_keys(&n);
    struct conf_all all = {.c = *c};
    all.c.auth_mode_asked = c->auth_mode;
    if (in_force)
        all.c.rep = *in_force;
    all.admission_mode = all.c.rep.admission_token;
    all.job_requeue = !all.c.rep.no_requeue;
    for (size_t i = 0; i < n; i++) {
        auto_str name = {0}, value = {0};
        if (str_eq(k[i].slurm, ""))
            continue;
        conf_print_name(k[i].section, k[i].key, &name);
        print_value(&k[i], &all, &value);
        add_row(&rows, k[i].slurm ? k[i].slurm : str_text(&name), str_text(&value));
    }
    add_hosts(&rows, &all.c);
    add_fixed(&rows, &all.c);
    qsort(rows.v.p, rows.v.n, sizeof(*rows.v.p), by_name);
    for (size_t i = 0; i < rows.v.n; i++)
        str_addf(out, "%s\n", rows.v.p[i]);
    vec_fini(&rows.v);
}

/* ---- what a restart would change ---- */

static bool is_same_list(const char *const *a, uint32_t n_a, const char *const *b, uint32_t n_b) {
    bool is_same = n_a == n_b;
    for (uint32_t i = 0; i < n_a && is_same; i++)
        is_same = str_eq(a[i], b[i]);
    return is_same;
}

static bool is_same_value(const struct conf_key *k, const void *a, const void *b) {
    const char *x = (const char *)a + k->off, *y = (const char *)b + k->off;
    const uint32_t *n_x = (const void *)((const char *)a + k->off_n), *n_y = (const void *)((const char *)b + k->off_n);
    switch (k->type) {
    case CONF_U32:
    case CONF_WORD:
    case CONF_LIMIT:
        return memcmp(x, y, sizeof(uint32_t)) == 0;
    case CONF_U64:
        return memcmp(x, y, sizeof(uint64_t)) == 0;
    case CONF_BOOL:
        return *(const bool *)(const void *)x == *(const bool *)(const void *)y;
    case CONF_COUNTS:
    case CONF_LABELS:
        return true; /* SHARED */
    case CONF_STRS:
    case CONF_NAMES:
        return is_same_list(*(const char *const *const *)(const void *)x, *n_x, *(const char *const *const *)(const void *)y, *n_y);
    default:
        return str_eq(*(const char *const *)(const void *)x, *(const char *const *)(const void *)y);
    }
}

uint32_t conf_restart_keys(struct arena *a, const struct conf *before, const struct conf *after, const char *const **out) {
    const struct conf_all x = {.c = *before}, y = {.c = *after};
    size_t n;
    const struct conf_key *k = conf_keys(&n);
    const char **names = arena_calloc(a, n, sizeof(*names));
    uint32_t n_names = 0;
    for (size_t i = 0; i < n; i++)
        if (k[i].scope == CONF_LOCAL && !is_same_value(&k[i], &x, &y))
            names[n_names++] = arena_printf(a, "[%s] %s", k[i].section, k[i].key);
    *out = names;
    return n_names;
}

/* ---- the sample file ---- */

static bool is_quoted(enum conf_type t) {
    return t == CONF_STR || t == CONF_SECRET || t == CONF_ADDR || t == CONF_LIMIT || t == CONF_CHOICE || t == CONF_WORD;
}

/* A value as a file has it. */
static void print_toml(enum conf_type type, const char *text, struct str *out) {
    if (type == CONF_STRS || type == CONF_NAMES || type == CONF_LIST)
        str_addf(out, *text ? "[\"%s\"]" : "[]", text);
    else if (type == CONF_TABLE || type == CONF_COUNTS || type == CONF_LABELS)
        str_add(out, "{}");
    else
        str_addf(out, is_quoted(type) ? "\"%s\"" : "%s", text);
}

static void add_wrapped(const char *text, struct str *out) {
    const size_t width = 110;
    while (*text) {
        size_t n = strlen(text);
        if (n > width) {
            n = width;
            while (n > 1 && text[n] != ' ')
                n--;
        }
        str_add(out, "# ");
        for (size_t i = 0; i < n; i++) {
            if (text[i] != '`') /* the marks are for Markdown */
                str_addc(out, text[i]);
        }
        str_addc(out, '\n');
        text += n + (text[n] == ' ');
    }
}

static void add_sample_key(const struct conf_key *k, struct str *out) {
    auto_str doc = {0};
    bool live = str_eq(k->key, "cluster_name");
    str_addf(&doc, "%s (", k->doc);
    conf_print_allowed(k, &doc);
    str_add(&doc, ")");
    add_wrapped(str_text(&doc), out);
    str_addf(out, "%s%s = ", live ? "" : "#", k->key);
    print_toml(k->type, k->def ? k->def : k->type == CONF_U32 ? "1" : "", out);
    str_add(out, "\n");
}

static void add_sample_section(const struct conf_section *s, struct str *out) {
    size_t n;
    const struct conf_key *k = conf_keys(&n);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!str_eq(k[i].section, s->name))
            continue;
        if (!any && *s->name) {
            str_addc(out, '\n');
            add_wrapped(s->doc, out);
            str_addf(out, s->shape == CONF_SHAPE_TABLES ? "#[[%s]]\n" : "[%s]\n", s->name);
        }
        any = true;
        add_sample_key(&k[i], out);
    }
}

void conf_sample(struct str *out) {
    size_t n;
    const struct conf_section *s = conf_sections(&n);
    str_add(out, "# spur.conf: every key that has an effect, with its default. Lines that begin with # do nothing.\n"
                 "# Made from the table in src/core/model/config.def; docs/configuration.md says more.\n\n");
    for (size_t i = 0; i < n; i++)
        add_sample_section(&s[i], out);
}

/* ---- docs/configuration.md ---- */

/* In a table of Markdown a bar would end the cell. */
static void add_cell(const char *text, struct str *out) {
    for (; *text; text++) {
        if (*text == '|')
            str_addc(out, '\\');
        str_addc(out, *text);
    }
    str_add(out, " | ");
}

static void add_key_row(const struct conf_key *k, struct str *out) {
    auto_str allowed = {0}, def = {0};
    conf_print_allowed(k, &allowed);
    if (k->def)
        print_toml(k->type, k->def, &def);
    str_addf(out, "| `%s` | ", k->key);
    add_cell(str_text(&allowed), out);
    if (k->def)
        str_addf(out, "`%s` | ", str_text(&def));
    else
        str_add(out, "not set | ");
    str_add(out, k->scope == CONF_LOCAL ? "restart | " : "reconfigure | ");
    add_cell(k->doc, out);
    out->p[--out->n] = '\0'; /* the blank behind the last bar */
    str_addc(out, '\n');
}

static void add_section_docs(const struct conf_section *s, struct str *out) {
    size_t n;
    const struct conf_key *k = conf_keys(&n);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!str_eq(k[i].section, s->name))
            continue;
        if (!any && *s->name)
            str_addf(out, s->shape == CONF_SHAPE_TABLES ? "\n## [[%s]]\n" : "\n## [%s]\n", s->name);
        if (!any)
            str_addf(out, "%s%s.\n\n| key | value | default | takes effect at | what it does |\n|---|---|---|---|---|\n",
                     *s->name ? "\n" : "\n## At the top of the file\n\n", s->doc);
        any = true;
        add_key_row(&k[i], out);
    }
}

static void add_other_docs(struct str *out) {
    size_t n;
    const struct conf_other *o = conf_others(&n);
    str_add(out, "\n## Keys without an effect\n\n"
                 "Known from AMD Spur's `spur.conf`. Each is refused by its name, unless it has the value shown here, which asks for\n"
                 "what is done anyway.\n\n| key | passes with | else |\n|---|---|---|\n");
    for (size_t i = 0; i < n; i++) {
        auto_str value = {0};
        str_add(out, "| `");
        conf_print_name(o[i].section, o[i].key, out);
        if (o[i].value)
            print_toml(o[i].type, o[i].value, &value);
        if (o[i].value)
            str_addf(out, "` | `%s` | ", str_text(&value));
        else
            str_add(out, "` | nothing | ");
        str_addf(out, "%s |\n", o[i].why ? o[i].why : "not supported yet");
    }
}

void conf_docs(struct str *out) {
    size_t n;
    const struct conf_section *s = conf_sections(&n);
    str_add(out,
            "# spur.conf\n\n"
            "One TOML file, `/etc/spur/spur.conf` unless `--config` names another. This page is made from the table in\n"
            "`src/core/model/config.def`, as are the parser, the checks and [the sample file](../examples/spur.conf).\n\n"
            "A key that is not known, a wrong type, a value out of bounds or two values that contradict each other are told\n"
            "with their lines, all of them, and the daemon doesn't start; `spurctld --check-config` does only that.\n\n"
            "*reconfigure*: the value is kept in the state that all controllers share, and `scontrol reconfigure` reads the\n"
            "leader's file again. *restart*: the value is a controller's own, read when it starts.\n\n"
            "Times are minutes, or texts as Slurm writes them (`\"10\"`, `\"10:00\"`, `\"1:30:00\"`, `\"2-12\"`, `\"UNLIMITED\"`) or\n"
            "with units (`\"1h40m\"`, `\"2d12h\"`). Without a file there is a cluster `spur` with one partition `default` of all\n"
            "nodes.\n");
    for (size_t i = 0; i < n; i++)
        add_section_docs(&s[i], out);
    add_other_docs(out);
}
