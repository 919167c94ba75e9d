/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/gres.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "core/model/text.h"

#define COUNT_MAX (1u << 20)
#define FILES_MAX 1024

/* Indexes of one name count through all its types. */
static void number(struct gres_list *l) {
    for (uint32_t i = 0; i < l->n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (str_eq(l->p[k].name, l->p[i].name))
                l->p[i].first = (uint32_t)(l->p[k].first + l->p[k].count);
        }
    }
}

static void add(struct gres_list *l, const struct gres *g, struct arena *a) {
    struct gres *more = arena_calloc(a, l->n + 1, sizeof(*more));
    if (l->n)
        memcpy(more, l->p, l->n * sizeof(*more));
    more[l->n++] = *g;
    l->p = more;
}

static int set_files(struct gres *g, const char *text, struct arena *a, struct err *e) {
    int code = hostlist_expand(text, a, &g->files, &g->n_files, e);
    for (uint32_t i = 0; !code && i < g->n_files; i++) {
        if (g->files[i][0] != '/')
            code = err_set(e, E_CONFIG, "'%s' is no device file", g->files[i]);
    }
    if (!code && (!g->n_files || g->n_files > FILES_MAX))
        code = err_set(e, E_CONFIG, "'%s' are no device files", text);
    return code;
}

static int check(struct gres *g, bool has_count, struct err *e) {
    if (!g->name || !*g->name)
        return err_set(e, E_CONFIG, "a generic resource without name");
    if (!has_count)
        g->count = g->n_files ? g->n_files : 1;
    if (g->n_files && g->n_files != g->count)
        return err_set(e, E_CONFIG, "%s has %u files and a count of %llu", g->name, g->n_files, (unsigned long long)g->count);
    return 0;
}

/* name[:type][:count] */
static int read_one(const char *word, struct gres *g, bool *has_count, struct arena *a, struct err *e) {
    char *save = NULL, *copy = arena_strdup(a, word);
    char *name = strtok_r(copy, ":", &save), *second = strtok_r(NULL, ":", &save), *third = strtok_r(NULL, ":", &save);
    const char *count = third ? third : second && strspn(second, "0123456789kKmM") == strlen(second) ? second : NULL;
    *g = (struct gres){.name = name, .type = count == second ? NULL : second};
    *has_count = count != NULL;
    if (!name || strtok_r(NULL, ":", &save) || (count && count_parse(count, COUNT_MAX, &g->count)))
        return err_set(e, E_GRES, "--gres takes name:count or name:type:count, not '%s'", word);
    return 0;
}

int gres_read(const char *text, const char *files, struct arena *a, struct gres_list *out, struct err *e) {
    char *save = NULL, *copy = arena_strdup(a, text);
    *out = (struct gres_list){0};
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        struct gres g;
        bool has_count;
        int code = read_one(word, &g, &has_count, a, e);
        if (!code && files && !out->n)
            code = set_files(&g, files, a, e);
        if (!code)
            code = check(&g, has_count, e);
        if (code)
            return code;
        add(out, &g, a);
    }
    number(out);
    return out->n ? 0 : err_set(e, E_GRES, "--gres names nothing");
}

/* ---- lines of gres.conf ---- */

static bool is_for(const char *nodes, const char *node_name, struct arena *a) {
    const char *const *names;
    uint32_t n;
    if (hostlist_expand(nodes, a, &names, &n, NULL))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(names[i], node_name))
            return true;
    }
    return false;
}

struct line {
    struct gres g;
    bool has_count, is_ours;
};

/* CountOnly says what a line without File= is anyway. */
static int read_flags(char *list, struct gres *g, struct err *e) {
    char *save = NULL;
    for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        if (!strcasecmp(word, "explicit"))
            g->is_explicit = true;
        else if (strcasecmp(word, "CountOnly") != 0)
            return err_set(e, E_CONFIG, "Flags=%s is not supported", word);
    }
    return 0;
}

static int read_word(char *word, const char *node_name, struct line *l, struct arena *a, struct err *e) {
    char *value = strchr(word, '=');
    if (!value || !value[1])
        return err_set(e, E_CONFIG, "'%s' is no KEY=VALUE", word);
    *value++ = 0;
    if (!strcasecmp(word, "Name"))
        l->g.name = value;
    else if (!strcasecmp(word, "Type"))
        l->g.type = value;
    else if (!strcasecmp(word, "NodeName"))
        l->is_ours = is_for(value, node_name, a);
    else if (!strcasecmp(word, "File"))
        return set_files(&l->g, value, a, e);
    else if (!strcasecmp(word, "Count")) {
        l->has_count = true;
        return count_parse(value, COUNT_MAX, &l->g.count) ? err_set(e, E_CONFIG, "'%s' is no count", value) : 0;
    } else if (!strcasecmp(word, "AutoDetect") && !strcasecmp(value, "off"))
        return 0;
    else if (!strcasecmp(word, "Flags"))
        return read_flags(value, &l->g, e);
    else
        return err_set(e, E_CONFIG, "%s is not supported", word);
    return 0;
}

static int read_line(char *text, const char *node_name, struct gres_list *out, struct arena *a, struct err *e) {
    char *save = NULL;
    struct line l = {.is_ours = true};
    uint32_t n = 0;
    text[strcspn(text, "#")] = 0;
    for (char *word = strtok_r(text, " \t\r", &save); word; word = strtok_r(NULL, " \t\r", &save), n++) {
        int code = read_word(word, node_name, &l, a, e);
        if (code)
            return code;
    }
    if (!n || !l.is_ours || (n == 1 && !l.g.name))
        return 0;
    int code = check(&l.g, l.has_count, e);
    if (!code)
        add(out, &l.g, a);
    return code;
}

/* Lines of one name and type are one kind: files of Slurm's examples have a line for each. */
static void merge(struct gres_list *l, struct arena *a) {
    for (uint32_t i = 0; i < l->n; i++) {
        for (uint32_t k = i + 1; k < l->n;) {
            struct gres *x = &l->p[i], *y = &l->p[k];
            if (!str_eq(x->name, y->name) || !str_eq(x->type, y->type) || !x->n_files != !y->n_files) {
                k++;
                continue;
            }
            const char **files = arena_calloc(a, x->n_files + y->n_files + 1, sizeof(*files));
            for (uint32_t j = 0; j < x->n_files + y->n_files; j++)
                files[j] = j < x->n_files ? x->files[j] : y->files[j - x->n_files];
            x->files = files;
            x->n_files += y->n_files;
            x->count += y->count;
            memmove(y, y + 1, (l->n - k - 1) * sizeof(*y));
            l->n--;
        }
    }
}

int gres_config_read(const char *text, const char *node_name, struct arena *a, struct gres_list *out, struct err *e) {
    char *at = arena_strdup(a, text), *line;
    *out = (struct gres_list){0};
    for (unsigned n = 1; (line = strsep(&at, "\n")); n++) {
        if (read_line(line, node_name, out, a, e))
            return err_wrap(e, "line %u", n);
    }
    merge(out, a);
    number(out);
    return 0;
}
