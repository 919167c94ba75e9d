/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

static bool armed;

static struct {
    char name[64];
    char action[8];
    bool is_counted;
    atomic_long left; /* passes until it happens, once */
} the_fault;

bool fault_is_armed(void) {
    return armed;
}

void fault_enable(const char *spec) {
    armed = false;
    if (!spec || !*spec)
        return;
    long count = 0;
    the_fault.action[0] = 0;
    const char *end = spec + strcspn(spec, ":=");
    snprintf(the_fault.name, sizeof(the_fault.name), "%.*s", (int)(end - spec), spec);
    if (*end == ':') {
        uint64_t n;
        char digits[16];
        size_t len = strcspn(end + 1, "=");
        snprintf(digits, sizeof(digits), "%.*s", (int)len, end + 1);
        if (!str_to_u64(digits, 1000000, &n))
            count = (long)n;
        end += 1 + len;
    }
    snprintf(the_fault.action, sizeof(the_fault.action), "%s", *end == '=' ? end + 1 : "fail");
    the_fault.is_counted = count > 0;
    atomic_store(&the_fault.left, count);
    armed = true;
}

bool fault_hit(const char *name) {
    if (strcmp(name, the_fault.name) != 0)
        return false;
    if (the_fault.is_counted && atomic_fetch_sub(&the_fault.left, 1) != 1)
        return false;
    if (str_eq(the_fault.action, "kill"))
        kill(getpid(), SIGKILL);
    else if (str_eq(the_fault.action, "stop"))
        kill(getpid(), SIGSTOP);
    else
        return true;
    return false;
}
