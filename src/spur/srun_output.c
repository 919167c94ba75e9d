/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of many tasks into one place. Lines stay whole: what has no end yet waits, up to a bound that keeps the memory
 * of thousands of tasks small. A single task's output without labels goes through as it comes.
 *
 * With labels, a task's line that was begun and not ended is ended by us when another task writes, and goes on with its
 * label again; without them nothing is ever added.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/srun.h"

#define HOLD_MAX (64u << 10)
#define HOLD_MIN (1u << 10)
#define HOLD_ALL (8u << 20)

struct held {
    uint8_t *p;
    uint32_t n, cap;
    bool broke; /* unbuffered, with labels: we ended its line */
};

struct srun_output {
    struct srun_output_conf conf;
    struct held *hold; /* by task * 2 + number */
    int width;         /* of a label's number */
    size_t hold_max;
};

struct srun_output *srun_output_new(const struct srun_output_conf *conf) {
    struct srun_output *o = xnew(struct srun_output);
    o->conf = *conf;
    o->hold = xcalloc((size_t)MAX(conf->n_tasks, 1u) * 2, sizeof(*o->hold));
    o->width = snprintf(NULL, 0, "%u", MAX(conf->n_tasks, 1u) - 1);
    o->hold_max = MAX(MIN(HOLD_ALL / MAX(conf->n_tasks, 1u), HOLD_MAX), HOLD_MIN);
    return o;
}

void srun_output_free(struct srun_output *o) {
    if (!o)
        return;
    for (size_t i = 0; i < (size_t)MAX(o->conf.n_tasks, 1u) * 2; i++)
        free(o->hold[i].p);
    free(o->hold);
    free(o);
}

static void label(struct srun_output *o, struct sink *k, uint32_t task) {
    char text[24];
    int n = snprintf(text, sizeof(text), "%*u: ", o->width, task);
    sink_put(k, text, (size_t)n);
}

/* `p` belongs behind what this stream wrote last. */
static void put(struct srun_output *o, struct sink *k, uint32_t stream, const uint8_t *p, size_t n) {
    if (!n)
        return;
    if (!o->conf.label) {
        sink_put(k, p, n);
        return;
    }
    while (n) {
        if (k->owner && k->owner != stream + 1)
            sink_put(k, "\n", 1);
        if (k->owner != stream + 1)
            label(o, k, stream / 2);
        const uint8_t *end = memchr(p, '\n', n);
        size_t line = end ? (size_t)(end - p) + 1 : n;
        sink_put(k, p, line);
        k->owner = end ? 0 : stream + 1;
        p += line;
        n -= line;
    }
}

static void hold_add(struct held *h, const uint8_t *p, size_t n) {
    if (h->n + n > h->cap) {
        h->cap = (uint32_t)MAX(h->n + n, MIN((size_t)h->cap * 2, (size_t)HOLD_MAX));
        h->p = xrealloc(h->p, h->cap);
    }
    memcpy(h->p + h->n, p, n);
    h->n += (uint32_t)n;
}

static void hold_put(struct srun_output *o, struct sink *k, uint32_t stream) {
    struct held *h = &o->hold[stream];
    put(o, k, stream, h->p, h->n);
    free(h->p);
    *h = (struct held){0};
}

static void ended(struct srun_output *o, struct sink *k, uint32_t stream) {
    hold_put(o, k, stream);
    if (o->conf.label && k->owner == stream + 1) {
        sink_put(k, "\n", 1);
        k->owner = 0;
    }
}

static void by_lines(struct srun_output *o, struct sink *k, uint32_t stream, const uint8_t *p, size_t n) {
    struct held *h = &o->hold[stream];
    const uint8_t *last = memrchr(p, '\n', n);
    if (last) {
        size_t whole = (size_t)(last - p) + 1;
        hold_put(o, k, stream);
        put(o, k, stream, p, whole);
        p += whole;
        n -= whole;
    }
    if (h->n + n > o->hold_max) {
        hold_put(o, k, stream);
        put(o, k, stream, p, n);
    } else if (n) {
        hold_add(h, p, n);
    }
}

/* As Slurm: each piece is a line. The line's own end, where it comes later, is not another one. */
static void in_pieces(struct srun_output *o, struct sink *k, uint32_t stream, const uint8_t *p, size_t n) {
    struct held *h = &o->hold[stream];
    if (h->broke && *p == '\n') {
        p++;
        n--;
    }
    h->broke = false;
    put(o, k, stream, p, n);
    if (k->owner) {
        sink_put(k, "\n", 1);
        k->owner = 0;
        h->broke = true;
    }
}

bool srun_output_data(struct srun_output *o, uint32_t task, uint32_t number, const uint8_t *p, size_t n) {
    uint32_t which = number == STREAM_ERR, stream = task * 2 + which, only = o->conf.only_task[which];
    struct sink *k = o->conf.sink[which];
    if (!k || k->is_broken || task >= o->conf.n_tasks || (only && only != task + 1))
        return true;
    if (sink_is_full(k))
        return false;
    if (!n) {
        ended(o, k, stream);
    } else if (o->conf.unbuffered && o->conf.label) {
        in_pieces(o, k, stream, p, n);
    } else if (o->conf.unbuffered || (o->conf.n_tasks == 1 && !o->conf.label)) {
        put(o, k, stream, p, n);
    } else {
        by_lines(o, k, stream, p, n);
    }
    return true;
}

void srun_output_text(struct srun_output *o, uint32_t task, const char *text) {
    struct sink *k = o->conf.sink[1];
    if (!k)
        return;
    if (k->owner) {
        sink_put(k, "\n", 1);
        k->owner = 0;
    }
    if (o->conf.label)
        label(o, k, task);
    size_t n = strlen(text);
    sink_put(k, text, n);
    if (!n || text[n - 1] != '\n')
        sink_put(k, "\n", 1);
}
