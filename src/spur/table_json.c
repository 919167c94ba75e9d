/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/table_json.h"

#include <string.h>

#include "base/mem.h"

static bool is_constant(const struct table_field *f) {
    return f->as == JSON_OWN ? false : f->as == JSON_TEXT ? !f->text : !f->number;
}

/* What stands for nothing in a column. */
static const char *plain(const char *text) {
    return str_eq(text, "(null)") || str_eq(text, "N/A") || str_eq(text, "NA") ? "" : text;
}

static void constant(struct json *w, const struct table_field *f) {
    if (f->as == JSON_TEXT)
        json_text(w, f->json, plain(f->fixed));
    else if (f->as == JSON_NUMBER)
        json_number(w, f->json, 0);
    else if (f->as == JSON_NO_VAL)
        json_no_val(w, f->json, JSON_UNSET);
    else if (f->as == JSON_FLAG)
        json_flag(w, f->json, false);
    else
        json_empty(w, f->json, "[]");
}

/* The text of {"set": true, "infinite": false, "number": N} before and behind N. */
static void around_number(struct table_json *t, unsigned depth) {
    auto_str whole = {0};
    struct json w = {.out = &whole, .depth = depth};
    json_no_val(&w, NULL, 7);
    const char *start = strchr(whole.p, '{'), *at = strchr(whole.p, '7');
    str_addn(&t->number_head, start, (size_t)(at - start));
    str_add(&t->number_tail, at + 1);
}

void table_json_init(struct table_json *t, const struct table_fields *f, unsigned depth) {
    *t = (struct table_json){0};
    around_number(t, depth);
    struct str text = {0};
    struct json w = {.out = &text, .depth = depth};
    for (size_t i = 0; i < f->n; i++) {
        const struct table_field *x = &f->row[i];
        if (!x->json)
            continue;
        if (is_constant(x)) {
            constant(&w, x);
            continue;
        }
        if (x->as != JSON_OWN)
            json_prefix(&w, x->json);
        vec_push(&t->parts, ((struct table_json_part){text, x}));
        text = (struct str){0};
        w.has = true;
    }
    vec_push(&t->parts, ((struct table_json_part){text, NULL}));
}

void table_json_fini(struct table_json *t) {
    for (size_t i = 0; i < t->parts.n; i++)
        str_fini(&t->parts.p[i].literal);
    vec_fini(&t->parts);
    str_fini(&t->number_head);
    str_fini(&t->number_tail);
}

static void no_val(const struct table_json *t, struct json *w, int64_t number) {
    if (number == JSON_UNSET || number == JSON_INFINITE) {
        str_add(w->out, "{");
        w->depth++;
        w->has = false;
        json_flag(w, "set", false);
        json_flag(w, "infinite", number == JSON_INFINITE);
        json_number(w, "number", 0);
        json_close(w, '}');
        return;
    }
    str_addn(w->out, t->number_head.p, t->number_head.n);
    json_number_value(w->out, number);
    str_addn(w->out, t->number_tail.p, t->number_tail.n);
}

static void members(const struct table_json *t, struct json *w, const void *row, const void *env) {
    auto_str text = {0};
    for (size_t i = 0; i < t->parts.n; i++) {
        const struct table_field *f = t->parts.p[i].field;
        str_addn(w->out, str_text(&t->parts.p[i].literal), t->parts.p[i].literal.n);
        w->has |= i || t->parts.p[i].literal.n;
        if (!f)
            continue;
        if (f->as == JSON_OWN) {
            f->write(w, f->json, row, env);
        } else if (f->as == JSON_TEXT) {
            str_clear(&text);
            f->text(row, env, &text);
            json_text_value(w->out, plain(str_text(&text)));
        } else if (f->as == JSON_NO_VAL) {
            no_val(t, w, f->number(row, env));
        } else if (f->as == JSON_FLAG) {
            str_add(w->out, f->number(row, env) ? "true" : "false");
        } else {
            json_number_value(w->out, f->number(row, env));
        }
    }
}

void table_json_row(const struct table_json *t, struct json *w, const void *row, const void *env) {
    json_open(w, NULL, '{');
    members(t, w, row, env);
    json_close(w, '}');
}

void table_json(const struct table_fields *f, struct json *w, const void *row, const void *env) {
    struct table_json t;
    table_json_init(&t, f, w->depth);
    members(&t, w, row, env);
    table_json_fini(&t);
}
