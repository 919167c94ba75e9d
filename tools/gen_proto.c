/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints proto/spur/v1/spur.proto from the tables that Spur itself speaks by: the rows of wire/methods.def and the
 * records that they name. For other people's clients, for the descriptors of the reflection service, and for the test
 * that no tag is ever renumbered. proto2, so that absent and zero are the same as in the records.
 *
 *     gen-proto > proto/spur/v1/spur.proto
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "wire/methods.h"

#define MAX_MESSAGES 512

struct messages {
    const struct rec_desc *desc[MAX_MESSAGES];
    size_t n;
};

/* job_spec is JobSpec. */
static const char *camel(const char *name, struct str *out) {
    str_clear(out);
    bool starts = true;
    for (const char *p = name; *p; p++) {
        if (*p == '_') {
            starts = true;
            continue;
        }
        char c = *p;
        if (starts && c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        str_addc(out, c);
        starts = false;
    }
    return str_text(out);
}

/* Depth first: a message stands behind those that it names. */
static int collect(struct messages *m, const struct rec_desc *d) {
    for (size_t i = 0; i < m->n; i++) {
        if (m->desc[i] == d)
            return 0;
    }
    for (size_t i = 0; i < d->n_fields; i++) {
        if (d->field[i].sub && collect(m, d->field[i].sub()))
            return -1;
    }
    if (m->n == MAX_MESSAGES)
        return -1;
    m->desc[m->n++] = d;
    return 0;
}

static const char *scalar(uint32_t kind) {
    switch (kind) {
    case REC_U32:
    case REC_U32S:
        return "uint32";
    case REC_U64:
    case REC_U64S:
        return "uint64";
    case REC_I64:
        return "sint64";
    case REC_BOOL:
        return "bool";
    case REC_STR:
    case REC_STRS:
        return "string";
    case REC_BYTES:
        return "bytes";
    default:
        return NULL;
    }
}

static void print_field(const struct rec_field *f, FILE *out) {
    auto_str type = {0};
    bool many = f->kind == REC_STRS || f->kind == REC_U32S || f->kind == REC_U64S || f->kind == REC_LIST;
    bool packed = f->kind == REC_U32S || f->kind == REC_U64S;
    const char *name = scalar(f->kind);
    if (!name)
        name = camel(f->sub()->name, &type);
    fprintf(out, "  %s %s %s = %u%s;\n", many ? "repeated" : "optional", name, f->name, f->tag,
            packed ? " [packed = true]" : "");
}

/* Rows stand as the struct wants them; a reader of the protocol wants them by number. */
static const struct rec_field *next_tag(const struct rec_desc *d, uint32_t after) {
    const struct rec_field *best = NULL;
    for (size_t i = 0; i < d->n_fields; i++)
        if (d->field[i].tag > after && (!best || d->field[i].tag < best->tag))
            best = &d->field[i];
    return best;
}

static void print_messages(const struct messages *m, FILE *out) {
    auto_str name = {0};
    for (size_t i = 0; i < m->n; i++) {
        const struct rec_desc *d = m->desc[i];
        fprintf(out, "\nmessage %s {\n", camel(d->name, &name));
        const struct rec_field *f = NULL;
        while ((f = next_tag(d, f ? f->tag : 0)))
            print_field(f, out);
        fprintf(out, "}\n");
    }
}

static void print_services(FILE *out) {
    auto_str request = {0}, reply = {0};
    const char *service = NULL;
    for (unsigned i = 0; i < WIRE_N_METHODS; i++) {
        const struct wire_method_info *m = wire_method((enum wire_method)i);
        if (!service || strcmp(service, m->service) != 0)
            fprintf(out, "%s\nservice %s {\n", service ? "}\n" : "", m->service);
        service = m->service;
        camel(m->request()->name, &request);
        bool is_same = str_eq(m->name, str_text(&request)); /* within the service the name alone is the method */
        fprintf(out, "  rpc %s(%s%s) returns (%s);\n", m->name, is_same ? ".spur.v1." : "", str_text(&request),
                camel(m->reply()->name, &reply));
    }
    if (service)
        fprintf(out, "}\n");
}

int main(void) {
    struct messages m = {0};
    for (unsigned i = 0; i < WIRE_N_METHODS; i++) {
        const struct wire_method_info *method = wire_method((enum wire_method)i);
        if (collect(&m, method->request()) || collect(&m, method->reply())) {
            fprintf(stderr, "gen-proto: more than %d messages\n", MAX_MESSAGES);
            return 1;
        }
    }
    printf("// SPDX-License-Identifier: Apache-2.0\n"
           "//\n"
           "// What Spur's processes say to each other. Printed by tools/gen-proto from src/wire and src/core/model, which\n"
           "// say what each field means; change them, not this file. Tags are append-only.\n"
           "syntax = \"proto2\";\n\npackage spur.v1;\n");
    print_messages(&m, stdout);
    print_services(stdout);
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
