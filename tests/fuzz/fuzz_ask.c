/* SPDX-License-Identifier: Apache-2.0
 *
 * What jobs ask for, and names of jobs: a refusal changes nothing; what was taken stays within its bounds, and a name
 * that is printed again is read as the same.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/step.h"
#include "core/model/text.h"

static void gres(const char *text, const char *name, struct arena *a) {
    const struct gres_ask *g = NULL;
    uint32_t n = 0;
    struct err e = {0};
    auto_str shown = {0};
    if (gres_parse(text, name, GRES_PER_NODE, a, &g, &n, &e)) {
        must(e.code == E_GRES && !g && !n);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        must(g[i].name && *g[i].name && g[i].count && (!g[i].type || *g[i].type));
    gres_text_print(text, "gres/", &shown);
}

static void name(const char *text, struct arena *a) {
    struct job_name j, again;
    auto_str out = {0};
    if (job_name_parse(text, JOB_NAME_STEP | JOB_NAME_TASKS, a, &j, NULL))
        return;
    must(j.target.job_id);
    str_addf(&out, "%u", j.target.job_id);
    if (j.target.n_tasks) {
        str_add(&out, "_[");
        array_print(j.target.tasks, j.target.n_tasks, &out);
        str_addc(&out, ']');
    }
    if (j.has_step) {
        str_addc(&out, '.');
        step_print_id(j.step_id, &out);
    }
    must(job_name_parse(out.p, JOB_NAME_STEP | JOB_NAME_TASKS, a, &again, NULL) == 0);
    must(again.target.job_id == j.target.job_id && again.has_step == j.has_step && again.step_id == j.step_id);
    must(again.target.n_tasks == j.target.n_tasks);
    must(array_count(again.target.tasks, again.target.n_tasks) == array_count(j.target.tasks, j.target.n_tasks));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto_arena a = {0};
    const char *text = arena_strndup(&a, (const char *)data, MIN(size, (size_t)64));
    const struct license_ask *l = NULL;
    uint32_t n = 0, signal;
    struct signal_ask s;
    gres(text, NULL, &a);
    gres(text, "gpu", &a);
    name(text, &a);
    if (license_parse(text, &a, &l, &n, NULL) == 0)
        for (uint32_t i = 0; i < n; i++)
            must(*l[i].name);
    if (signal_ask_parse(text, &s) == 0)
        must(s.signal && s.signal <= 64 && s.secs <= 65535);
    if (signal_parse(text, &signal) == 0)
        must(signal && signal <= 64);
    return 0;
}
