/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/columns.h"

#include "base/mem.h"
#include "spur/job_fields.h"
#include "spur/node_fields.h"
#include "spur/sacct.h"
#include "spur/step_facts.h"

static void cell(const char *text, struct str *out) {
    if (text && *text)
        str_addf(out, " `%s` |", text);
    else
        str_add(out, " |");
}

void columns_of(const struct table_fields *f, struct str *out) {
    str_add(out, "| `-O` | `-o` | heading | `--json` |\n|---|---|---|---|\n");
    for (size_t i = 0; i < f->n; i++) {
        const struct table_field *x = &f->row[i];
        char letter[] = {'%', x->letter, '\0'};
        str_add(out, "|");
        cell(x->name, out);
        cell(x->letter ? letter : NULL, out);
        cell(x->head, out);
        cell(x->json, out);
        str_addc(out, '\n');
    }
}

static void names(const struct table_fields *f, struct str *out) {
    for (size_t i = 0; i < f->n; i++)
        str_addf(out, "%s`%s`", i ? i % 8 ? ", " : ",\n" : "", f->row[i].head);
    str_add(out, ".\n");
}

void columns_page(struct str *out) {
    str_add(out,
            "<!-- Printed by `spur columns` from the commands' field tables; a test compares. Do not edit. -->\n"
            "# Columns\n\n"
            "What can stand in `-O NAME[:[.]WIDTH],…` and `-o '%[.][WIDTH]LETTER…'`, and the member of `--json` that has it. A name is\n"
            "cut at 20 characters where it has no width of its own, as Slurm cuts it; `:100` makes room. Lines without a name are of `--json` alone.\n\n"
            "## squeue\n\n");
    columns_of(job_fields(), out);
    str_add(out, "\n## squeue -s\n\n");
    columns_of(step_fields(), out);
    str_add(out, "\n## sinfo\n\n");
    columns_of(node_fields(), out);
    str_add(out, "\n## sacct -o\n\n");
    names(sacct_fields(), out);
}
