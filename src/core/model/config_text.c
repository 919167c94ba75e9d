/* SPDX-License-Identifier: Apache-2.0
 *
 * The canonical text of the replicated part: every field of the record by its name, in the table's order, one a line.
 * It is made from the record and not from the file, so layout, order of keys and values that equal the default don't
 * show. Left out are the hash, which is made of this text, and a partition's node list as it was written, since the
 * names it stands for are there.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/config.h"

static void add_quoted(const char *s, struct str *out) {
    str_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            str_addc(out, '\\');
        if (*s == '\n')
            str_add(out, "\\n");
        else
            str_addc(out, *s);
    }
    str_addc(out, '"');
}

static void add_record(const struct rec_desc *d, const void *rec, const char *prefix, struct str *out);

static const void *pointer_at(const void *p) {
    const void *v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static void add_list(const struct rec_field *f, const void *items, uint32_t n, const char *name, struct str *out) {
    for (uint32_t i = 0; i < n; i++) {
        auto_str prefix = {0};
        str_addf(&prefix, "%s[%" PRIu32 "].", name, i);
        add_record(f->sub(), (const char *)items + i * f->sub()->size, str_text(&prefix), out);
    }
}

static void add_texts(const char *const *list, uint32_t n, struct str *out) {
    for (uint32_t i = 0; i < n; i++) {
        str_add(out, i ? " " : "");
        add_quoted(list[i], out);
    }
}

static void add_field(const struct rec_field *f, const void *rec, const char *prefix, struct str *out) {
    const char *at = (const char *)rec + f->off;
    uint32_t n = f->off_n ? *(const uint32_t *)((const char *)rec + f->off_n) : 0;
    auto_str name = {0};
    str_addf(&name, "%s%s", prefix, f->name);
    if (f->kind == REC_LIST) {
        add_list(f, pointer_at(at), n, str_text(&name), out);
        return;
    }
    str_addf(out, "%s = ", str_text(&name));
    switch (f->kind) {
    case REC_U32: str_addf(out, "%" PRIu32, *(const uint32_t *)at); break;
    case REC_U64: str_addf(out, "%" PRIu64, *(const uint64_t *)at); break;
    case REC_I64: str_addf(out, "%" PRId64, *(const int64_t *)at); break;
    case REC_BOOL: str_add(out, *(const bool *)at ? "true" : "false"); break;
    case REC_STR:
        if (pointer_at(at))
            add_quoted(pointer_at(at), out);
        break;
    case REC_STRS: add_texts(pointer_at(at), n, out); break;
    case REC_U32S: must(n == 0); break; /* of what is taken: never in a file */
    default: must(!"a kind of field that the configuration has");
    }
    str_addc(out, '\n');
}

static void add_record(const struct rec_desc *d, const void *rec, const char *prefix, struct str *out) {
    for (size_t i = 0; i < d->n_fields; i++) {
        const char *name = d->field[i].name;
        if (!str_eq(name, "hash") && !str_eq(name, "nodes_text"))
            add_field(&d->field[i], rec, prefix, out);
    }
}

void conf_rep_text(const struct rconf *r, struct str *out) {
    add_record(rconf_rec(), r, "", out);
}
