/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of jobs, of tasks of arrays and of steps: "12", "12_3", "12_[1-3,7]", "12.0", "12_3.batch".
 */
#include <string.h>

#include "base/mem.h"
#include "core/model/step.h"
#include "core/model/text.h"

/* A number at *s, at most `max`; moves behind it. */
static bool number(const char **s, uint64_t max, uint32_t *out) {
    uint64_t v = 0;
    const char *from = *s;
    for (; **s >= '0' && **s <= '9'; (*s)++) {
        v = v * 10 + (unsigned)(**s - '0');
        if (v > max)
            return false;
    }
    *out = (uint32_t)v;
    return *s != from;
}

/* The first part of a list that is no range: as Slurm's list parser complains. */
static int bad_range(const char *list, struct err *e) {
    for (; *list; list += strcspn(list, ","), list += *list == ',') {
        size_t n = strcspn(list, ",");
        if (strspn(list, "0123456789-:") < n || !n)
            return err_set(e, E_JOB_ID, "_parse_single_range: Invalid range: `%.*s'", (int)MIN(n, 64), list);
    }
    return E_JOB_ID;
}

/* "3" or "[1-3,7]" behind the underscore. */
static int tasks(const char **s, unsigned flags, struct arena *a, struct job_target *out, struct err *e) {
    const struct array_range *list;
    uint32_t n, limit, one;
    if (**s != '[') {
        if (!number(s, ARRAY_ID_MAX, &one))
            return E_JOB_ID;
        const struct array_range r = {one, one};
        out->tasks = arena_memdup(a, &r, sizeof(r));
        out->n_tasks = 1;
        return 0;
    }
    const char *close = strchr(*s, ']');
    if (!close || !(flags & JOB_NAME_TASKS))
        return E_JOB_ID;
    const char *text = arena_strndup(a, *s + 1, (size_t)(close - *s - 1));
    if (array_parse(text, ARRAY_ID_MAX, a, &list, &n, &limit, NULL) || limit)
        return bad_range(text, e);
    out->tasks = list;
    out->n_tasks = n;
    *s = close + 1;
    return 0;
}

int job_name_parse(const char *s, unsigned flags, struct arena *a, struct job_name *out, struct err *e) {
    struct job_name name = {0};
    if (e)
        e->text[0] = '\0';
    if (!number(&s, UINT32_MAX - 1, &name.target.job_id) || !name.target.job_id)
        return E_JOB_ID;
    if (*s == '_') {
        s++;
        int rc = tasks(&s, flags, a, &name.target, e);
        if (rc)
            return rc;
    }
    if (*s == '.' && flags & JOB_NAME_STEP) {
        s++;
        name.has_step = true;
        if (strcmp(s, "batch") == 0) {
            name.step_id = STEP_BATCH;
            s += 5;
        } else if (!number(&s, STEP_ID_MAX, &name.step_id)) {
            return E_JOB_ID;
        }
    }
    if (*s)
        return E_JOB_ID;
    *out = name;
    return 0;
}
