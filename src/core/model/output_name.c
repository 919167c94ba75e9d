/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of output files: "slurm-%j.out" and what the facts of a run make of it.
 *
 * A backslash anywhere switches all patterns off and is itself left out. A letter that is no pattern stays as it is
 * written.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/text.h"

#define WIDTH_MAX 10
#define NO_TASK_SHOWN 4294967294u /* Slurm's number for "no array task" */

static void add_padded(struct str *out, int width, uint32_t v) {
    str_addf(out, "%0*" PRIu32, width, v);
}

static void add_step(const struct name_facts *f, int width, struct str *out) {
    if (f->step_id == STEP_BATCH)
        str_add(out, "batch");
    else
        add_padded(out, width, f->step_id);
}

static void add_text(struct str *out, const char *text) {
    if (text)
        str_add(out, text);
}

/* What stands for the letter; false when it is no pattern. */
static bool add_pattern(char letter, int width, const struct name_facts *f, struct str *out) {
    bool is_array = f->array_task_id != UINT32_MAX;
    uint32_t task = is_array ? f->array_task_id : NO_TASK_SHOWN;
    switch (letter) {
    case '%': str_addc(out, '%'); return true;
    case 'A': add_padded(out, width, is_array ? f->array_job_id : f->job_id); return true;
    case 'a': add_padded(out, width, task); return true;
    case 'b': add_padded(out, width, task % 10); return true;
    case 'J':
        add_padded(out, width, f->job_id);
        str_addc(out, '.');
        add_step(f, 0, out);
        return true;
    case 'j': add_padded(out, width, f->job_id); return true;
    case 'N': add_text(out, f->node_name); return true;
    case 'n': add_padded(out, width, f->node_index); return true;
    case 's': add_step(f, width, out); return true;
    case 't': add_padded(out, width, f->task_rank); return true;
    case 'u': add_text(out, f->user); return true;
    case 'x': add_text(out, f->job_name); return true;
    default: return false;
    }
}

static void fill_in(const char *p, const struct name_facts *f, struct str *out) {
    while (*p) {
        if (*p != '%') {
            str_addc(out, *p++);
            continue;
        }
        const char *q = p + 1;
        int width = 0;
        for (; *q >= '0' && *q <= '9'; q++)
            width = MIN(width * 10 + (*q - '0'), WIDTH_MAX);
        if (*q && add_pattern(*q, width, f, out)) {
            p = q + 1;
            continue;
        }
        str_addn(out, p, (size_t)(q - p));
        p = q;
    }
}

void output_name(const char *pattern, const struct name_facts *f, struct str *out) {
    if (*pattern != '/' && f->work_dir) {
        str_add(out, f->work_dir);
        if (!str_ends(f->work_dir, "/"))
            str_addc(out, '/');
    }
    if (!strchr(pattern, '\\')) {
        fill_in(pattern, f, out);
        return;
    }
    for (; *pattern; pattern++) {
        if (*pattern != '\\')
            str_addc(out, *pattern);
    }
}
