/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault points: places where a test may make a daemon die or an operation fail, by name.
 *
 * FAULT("submit.after_commit") is false and costs one call unless the process was started with
 * SPUR_FAULT="name[:count][=action]" and allowed it (fault_enable, which daemons call only under --test-faults).
 * Actions: `fail` (the point returns true; default), `kill` (SIGKILL to oneself), `stop` (SIGSTOP to oneself).
 * With a count N the action happens at the Nth pass only.
 */
#ifndef SPUR_BASE_FAULT_H
#define SPUR_BASE_FAULT_H

#include <stdbool.h>

bool fault_is_armed(void);
void fault_enable(const char *spec);  /* at start; NULL disarms */
bool fault_hit(const char *name);
#define FAULT(name) (__builtin_expect(fault_is_armed(), 0) && fault_hit(name))

#endif
