/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/flavor.h"

#include <stdio.h>
#include <stdlib.h>

const struct policy *cli_policy(void) {
    enum flavor flavor = FLAVOR_SLURM;
    const char *word = getenv("SPUR_COMPAT");
    if (word && *word && policy_flavor(word, &flavor)) {
        fprintf(stderr, "spur: error: SPUR_COMPAT: \"%s\" is not allowed; must be \"slurm\" or \"amd\"\n", word);
        exit(1);
    }
    return policy_of(flavor);
}

void flavor_print(struct str *out) {
    str_add(out, "\n## Where AMD Spur differs\n\n"
                 "Slurm's way is the default. `[compat] flavor = \"amd\"` in spur.conf takes AMD Spur's; for commands, and for a controller\n"
                 "whose file doesn't say it, `SPUR_COMPAT=amd` in the environment.\n\n| what | `slurm` | `amd` |\n|---|---|---|\n");
#define ROW(type, field, slurm, amd, about, slurms, amds) str_add(out, "| " about " | " slurms " | " amds " |\n");
    POLICIES(ROW)
#undef ROW
}
