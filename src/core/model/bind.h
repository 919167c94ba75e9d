/* SPDX-License-Identifier: Apache-2.0
 *
 * --cpu-bind: which CPUs of its node a task may run on.
 */
#ifndef SPUR_CORE_MODEL_BIND_H
#define SPUR_CORE_MODEL_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum cpu_bind { CPU_BIND_NONE, CPU_BIND_RANK, CPU_BIND_MAP, CPU_BIND_MASK, CPU_BIND_LATER };
struct cpu_bind_ask {
    enum cpu_bind kind;  /* LATER: a word of Slurm's that is not there yet */
    bool verbose, is_help;
    const char *list;    /* of MAP and MASK: behind the colon; borrowed */
};

/* "rank", "map_cpu:0,1", "quiet,mask_cpu:0x3*2,0xc". E_SYNTAX. */
int cpu_bind_parse(const char *text, struct cpu_bind_ask *out);
/* The CPUs of the node's task number `local`, ascending, in the arena; a list begins anew behind its end. RANK: one number, to be
 * counted among the CPUs that there are. NONE: none. */
void cpu_bind_task(const struct cpu_bind_ask *b, uint32_t local, struct arena *a, const uint32_t **out, uint32_t *out_n);

#endif
