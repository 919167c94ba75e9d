/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/policy.h"

#include "base/mem.h"
#include "base/str.h"

#define OF_SLURM(type, field, slurm, amd, about, slurms, amds) .field = slurm,
#define OF_AMD(type, field, slurm, amd, about, slurms, amds) .field = amd,

static const struct policy policies[] = {
    [FLAVOR_SLURM] = {POLICIES(OF_SLURM)},
    [FLAVOR_AMD] = {POLICIES(OF_AMD)},
};

const struct policy *policy_of(enum flavor flavor) {
    return &policies[flavor == FLAVOR_AMD ? FLAVOR_AMD : FLAVOR_SLURM];
}

int policy_flavor(const char *word, enum flavor *out) {
    static const char *const words[] = {"slurm", "amd"};
    for (uint32_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_eq(word, words[i])) {
            *out = (enum flavor)i;
            return 0;
        }
    }
    return E_SYNTAX;
}
