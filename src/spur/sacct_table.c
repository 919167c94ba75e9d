/* SPDX-License-Identifier: Apache-2.0
 *
 * How sacct writes a table: each column with a blank behind it, a value that is cut ends with +.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "spur/sacct.h"

#define WIDTH_MAX 10000

/* A column's width is below zero where it is left-aligned; table_col has a flag for that. */
static void add(struct table *t, const struct table_field *f, long width) {
    bool left = width < 0;
    long wide = labs(width);
    table_add(t, f, (int)MIN(wide, (long)WIDTH_MAX), !left, "");
}

static void add_all(struct table *t) {
    for (size_t i = 0; i < t->fields->n; i++)
        add(t, &t->fields->row[i], t->fields->row[i].width);
}

bool sacct_parse(struct table *t, const char *format, const char **bad, size_t *n_bad) {
    while (*format) {
        size_t n = strcspn(format, ",");
        size_t name = MIN(strcspn(format, "%"), n);
        const struct table_field *f = table_name(t->fields, format, name);
        if (name == 3 && strncasecmp(format, "all", 3) == 0) {
            add_all(t);
        } else if (f) {
            char *end;
            long width = name < n ? strtol(format + name + 1, &end, 10) : f->width;
            add(t, f, width ? width : f->width);
        } else if (n) {
            *bad = format;
            *n_bad = name;
            return false;
        }
        format += n;
        format += *format == ',';
    }
    return true;
}

static bool is_last(const struct table *t, size_t i) {
    return i + 1 == t->cols.n;
}

static void cell(const struct table *t, size_t i, const struct sacct_style *s, const char *text, bool mark_cut,
                 struct str *out) {
    const struct table_col *c = &t->cols.p[i];
    if (s->parsable) {
        str_add(out, text);
        if (!s->no_ending || !is_last(t, i))
            str_add(out, s->delimiter);
        return;
    }
    size_t from = out->n;
    table_cell(text, c->width, c->right, out);
    if (mark_cut && strlen(text) > (size_t)c->width && out->n > from)
        out->p[out->n - 1] = '+';
    str_addc(out, ' ');
}

void sacct_head(const struct table *t, const struct sacct_style *s, struct str *out) {
    for (size_t i = 0; i < t->cols.n; i++)
        cell(t, i, s, t->cols.p[i].field->head, false, out);
    str_addc(out, '\n');
    if (s->parsable)
        return;
    for (size_t i = 0; i < t->cols.n; i++) {
        for (int k = 0; k < t->cols.p[i].width; k++)
            str_addc(out, '-');
        str_addc(out, ' ');
    }
    str_addc(out, '\n');
}

void sacct_line(const struct table *t, const struct sacct_style *s, const void *row, const void *env, struct str *out) {
    auto_str text = {0};
    for (size_t i = 0; i < t->cols.n; i++) {
        const struct table_field *f = t->cols.p[i].field;
        str_clear(&text);
        if (f->text)
            f->text(row, env, &text);
        cell(t, i, s, f->text ? str_text(&text) : f->fixed, true, out);
    }
    str_addc(out, '\n');
}
