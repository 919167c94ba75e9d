/* SPDX-License-Identifier: Apache-2.0
 *
 * What this machine is: the node record as the agent registers it, and how it is just now.
 */
#ifndef SPUR_SPURD_FACTS_H
#define SPUR_SPURD_FACTS_H

#include <stdint.h>

#include "base/arena.h"
#include "core/model/node.h"

/* Fills all but address, port and public_key. Texts are in the arena. `name` NULL: the short host name. cpus and mem_mb
 * 0: what the machine has. `features` is "a,b" or NULL. */
void facts_node(const char *name, uint32_t cpus, uint64_t mem_mb, const char *features, struct arena *a,
                struct node *out);
/* KEY=VALUE words, which were checked; the last of a key counts. Texts are in the arena. */
void facts_labels(const char *const *label, uint32_t n, struct arena *a, struct node *out);
/* Load in hundredths + 1 and free memory in MiB + 1; 0: not known. */
void facts_sample(uint32_t *out_load, uint64_t *out_free_mb);
/* The address under which controllers reach this machine: `listen`'s own, if that is one; NULL for a wildcard. */
char *facts_listen_address(const char *listen, struct arena *a);
/* Our end of the way to the first controller; NULL while its name is not known. Blocks; any thread. The caller frees. */
char *facts_address_towards(const char *controllers);

#endif
