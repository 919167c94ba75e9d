/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/table.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define LONG_WIDTH 20
#define WIDTH_MAX 10000

void table_init(struct table *t, const struct table_fields *f) {
    *t = (struct table){.fields = f};
}

void table_fini(struct table *t) {
    vec_fini(&t->cols);
    arena_fini(&t->arena);
    vec_fini(&t->bad);
}

const struct table_field *table_letter(const struct table_fields *f, char letter) {
    for (size_t i = 0; letter && i < f->n; i++)
        if (f->row[i].letter == letter)
            return &f->row[i];
    return NULL;
}

const struct table_field *table_name(const struct table_fields *f, const char *name, size_t n) {
    for (size_t i = 0; i < f->n; i++)
        if (f->row[i].name && strncasecmp(f->row[i].name, name, n) == 0 && !f->row[i].name[n])
            return &f->row[i];
    return NULL;
}

void table_add(struct table *t, const struct table_field *f, int width, bool right, const char *suffix) {
    vec_push(&t->cols, (struct table_col){f, width, right, arena_strdup(&t->arena, suffix)});
}

static int read_width(const char **at) {
    int width = 0;
    for (; isdigit((unsigned char)**at); ++*at)
        if (width < WIDTH_MAX)
            width = width * 10 + (**at - '0');
    return MIN(width, WIDTH_MAX);
}

/* Text between two % signs: "[.][WIDTH]LETTER SUFFIX". */
static void parse_token(struct table *t, const char *token, size_t n) {
    autofree char *text = xstrndup(token, n);
    const char *at = text;
    bool right = *at == '.';
    at += right;
    int width = read_width(&at);
    const struct table_field *f = table_letter(t->fields, *at);
    if (f) {
        table_add(t, f, width, right, at + 1);
        return;
    }
    vec_push(&t->bad, arena_printf(&t->arena, "%.1s", at));
    autofree char *literal = xasprintf("%%%s", text);
    table_add(t, NULL, 0, false, literal);
}

/* "%all": every letter there is, small ones first; what has a capital is followed by a blank. */
static void add_all(struct table *t) {
    for (char c = 'a'; c <= 'z'; c++)
        if (table_letter(t->fields, c))
            table_add(t, table_letter(t->fields, c), 0, false, "|");
    for (char c = 'A'; c <= 'Z'; c++)
        if (table_letter(t->fields, c))
            table_add(t, table_letter(t->fields, c), 0, false, " |");
    if (t->cols.n)
        t->cols.p[t->cols.n - 1].suffix = " ";
}

void table_parse_percent(struct table *t, const char *format) {
    if (strcasecmp(format, "%all") == 0) {
        add_all(t);
        return;
    }
    if (*format != '%') {
        t->prefix = arena_strndup(&t->arena, format, strcspn(format, "%"));
        format += strcspn(format, "%");
    }
    while (*format) {
        format += strspn(format, "%"); /* as strtok: %% is nothing */
        size_t n = strcspn(format, "%");
        if (n)
            parse_token(t, format, n);
        format += n;
    }
}

/* A width below zero is nobody's intention; Slurm then prints the value and a blank. */
static void parse_long(struct table *t, const char *token, size_t n) {
    size_t name = strcspn(token, ":,");
    name = MIN(name, n);
    const struct table_field *f = table_name(t->fields, token, name);
    if (!f) {
        vec_push(&t->bad, arena_strndup(&t->arena, token, name));
        return;
    }
    if (name == n) {
        table_add(t, f, LONG_WIDTH, false, "");
        return;
    }
    autofree char *rest = xstrndup(token + name + 1, n - name - 1);
    const char *at = rest;
    bool right = *at == '.';
    at += right;
    bool negative = *at == '-' && isdigit((unsigned char)at[1]);
    at += negative;
    int width = read_width(&at);
    table_add(t, f, negative ? 0 : width, right, negative ? " " : at);
}

void table_parse_long(struct table *t, const char *format) {
    while (*format) {
        size_t n = strcspn(format, ",");
        if (n)
            parse_long(t, format, n);
        format += n;
        format += *format == ',';
    }
}

static void blanks(struct str *out, size_t n) {
    static const char sixteen[] = "                ";
    for (; n; n -= MIN(n, sizeof(sixteen) - 1))
        str_addn(out, sixteen, MIN(n, sizeof(sixteen) - 1));
}

void table_cell(const char *text, int width, bool right, struct str *out) {
    size_t n = strlen(text), wide = (size_t)width;
    if (!width || n >= wide) {
        str_addn(out, text, width ? wide : n);
        return;
    }
    if (right)
        blanks(out, wide - n);
    str_addn(out, text, n);
    if (!right)
        blanks(out, wide - n);
}

static void value(const struct table_field *f, const void *row, const void *env, struct str *out) {
    if (f->text)
        f->text(row, env, out);
    else
        str_add(out, f->fixed);
}

void table_head(const struct table *t, struct str *out) {
    str_add(out, t->prefix ? t->prefix : "");
    for (size_t i = 0; i < t->cols.n; i++) {
        const struct table_col *c = &t->cols.p[i];
        bool whole = c->field && c->field->whole_head && c->right && strlen(c->field->head) > (size_t)c->width;
        if (c->field)
            table_cell(c->field->head, whole ? 0 : c->width, c->right, out);
        str_add(out, c->suffix);
    }
    str_addc(out, '\n');
}

void table_line(const struct table *t, const void *row, const void *env, struct str *out) {
    auto_str text = {0};
    if (!t->cols.n && !t->prefix) /* a table without columns is its heading alone */
        return;
    str_add(out, t->prefix ? t->prefix : "");
    for (size_t i = 0; i < t->cols.n; i++) {
        const struct table_col *c = &t->cols.p[i];
        if (c->field) {
            str_clear(&text);
            value(c->field, row, env, &text);
            bool fits = text.n <= (size_t)c->width || !c->field->whole;
            table_cell(str_text(&text), fits ? c->width : 0, c->right, out);
        }
        str_add(out, c->suffix);
    }
    str_addc(out, '\n');
}

void table_key(const struct table *t, uint16_t flags, const void *row, const void *env, struct str *out) {
    for (size_t i = 0; i < t->cols.n; i++) {
        const struct table_field *f = t->cols.p[i].field;
        if (!f || !(f->flags & flags))
            continue;
        value(f, row, env, out);
        str_addc(out, '\x1f');
    }
}

int table_compare(const struct table_field *f, const void *a, const void *b, const void *env) {
    if (f->compare)
        return f->compare(a, b);
    if (f->number) {
        int64_t x = f->number(a, env), y = f->number(b, env);
        return (x > y) - (x < y);
    }
    if (!f->text)
        return 0;
    auto_str left = {0}, right = {0};
    f->text(a, env, &left);
    f->text(b, env, &right);
    return strcmp(str_text(&left), str_text(&right));
}

void table_names(const struct table_fields *f, struct str *out) {
    unsigned n = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (!f->row[i].name)
            continue;
        if (n)
            str_addc(out, n % 4 ? ' ' : '\n');
        str_addf(out, "%-19s", f->row[i].name);
        n++;
    }
    str_addc(out, '\n');
}
