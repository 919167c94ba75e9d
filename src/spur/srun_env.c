/* SPDX-License-Identifier: Apache-2.0
 *
 * What tasks get of srun's own environment. The node sets what is the step's and the task's on top of it.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "spur/srun.h"

static void add(struct buf *out, const char *text) {
    buf_add(out, text, strlen(text) + 1);
}

/* Of the job or of the commands' settings: goes along with every --export. */
static bool is_slurms(const char *text) {
    return str_starts(text, "SLURM_") || str_starts(text, "SPUR_") || str_starts(text, "SRUN_");
}

static size_t name_length(const char *text) {
    return strcspn(text, "=");
}

static bool has_name(const char *const *item, uint32_t n, const char *text, size_t length) {
    for (uint32_t i = 0; i < n; i++)
        if (name_length(item[i]) == length && strncmp(item[i], text, length) == 0)
            return true;
    return false;
}

/* Variables that are set here, below. */
static bool is_set_here(const struct srun *s, const char *text) {
    size_t n = name_length(text);
    const char *const mine[] = {"SLURM_UMASK", "SRUN_DEBUG", s->job.spec.cpus_per_task_given ? "SLURM_CPUS_PER_TASK" : ""};
    static const char *const memory[] = {"SLURM_MEM_PER_NODE", "SPUR_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SPUR_MEM_PER_CPU"};
    bool asks = s->job.spec.mem_node_mb || s->job.more.mem_cpu_mb;
    return has_name(mine, ARRAY_LEN(mine), text, n) || (asks && has_name(memory, ARRAY_LEN(memory), text, n));
}

static void add_both(struct buf *out, struct arena *a, const char *name, uint64_t value) {
    add(out, arena_printf(a, "SLURM_%s=%llu", name, (unsigned long long)value));
    add(out, arena_printf(a, "SPUR_%s=%llu", name, (unsigned long long)value));
}

static void add_own(struct srun *s, struct buf *out) {
    struct arena *a = &s->job.c->arena;
    add(out, arena_printf(a, "SLURM_UMASK=%04o", s->job.spec.umask ? s->job.spec.umask - 1 : 022));
    add(out, arena_printf(a, "SRUN_DEBUG=%u", 3 + s->job.verbose));
    if (s->job.spec.cpus_per_task_given) {
        add(out, arena_printf(a, "SLURM_CPUS_PER_TASK=%u", s->job.spec.cpus_per_task));
        add(out, arena_printf(a, "SLURM_TRES_PER_TASK=cpu=%u", s->job.spec.cpus_per_task));
    }
    uint64_t mem_cpu_mb = s->job.more.mem_cpu_mb;
    if (s->job.spec.mem_node_mb)
        add_both(out, a, "MEM_PER_NODE", s->job.spec.mem_node_mb);
    else if (mem_cpu_mb)
        add_both(out, a, "MEM_PER_CPU", mem_cpu_mb);
}

void srun_env(struct srun *s, const char *const *environ_, struct buf *out) {
    const char *export = s->job.export ? s->job.export : "ALL";
    bool none = strcasecmp(export, "NONE") == 0 || strcasecmp(export, "NIL") == 0;
    uint32_t n = 0;
    const char *const *item = none || strcasecmp(export, "ALL") == 0 ? NULL : cli_words(s->job.c, export, ",", &n);
    bool all = !none && !item;
    for (uint32_t i = 0; i < n; i++)
        all |= strcasecmp(item[i], "ALL") == 0;
    for (; *environ_; environ_++) {
        const char *text = *environ_;
        size_t length = name_length(text);
        if (!text[length] || !length || is_set_here(s, text))
            continue;
        bool is_listed = has_name(item, n, text, length);
        bool has_value = false; /* in the list */
        for (uint32_t i = 0; i < n; i++)
            has_value |= strncmp(item[i], text, length + 1) == 0;
        if (!has_value && (all || is_listed || is_slurms(text)))
            add(out, text);
    }
    for (uint32_t i = 0; i < n; i++)
        if (strchr(item[i], '='))
            add(out, item[i]);
    add_own(s, out);
}
