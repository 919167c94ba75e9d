/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of srun and its kin. A script must not fail because the controller is started anew just now: it is looked for as
 * long as Slurm's commands do (its MessageTimeout), where others tell at once that it is not there.
 */
#include <signal.h>
#include <time.h>

#include "spur/command.h"
#include "spur/srun.h"

#define CONTROLLER_SECS 10
#define AGAIN_MS 200

/* They are blocked, and told by a descriptor that nobody reads now. */
static bool is_interrupted(void) {
    sigset_t set;
    return sigpending(&set) == 0 && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) || sigismember(&set, SIGHUP) ||
                                     sigismember(&set, SIGQUIT));
}

int srun_call(struct cli *c, enum wire_method m, const void *request, void *reply, struct err *e) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t end = now.tv_sec + CONTROLLER_SECS;
    int rc;
    while ((rc = cli_call(c, m, request, reply, e)) == E_UNREACHABLE && now.tv_sec < end && !is_interrupted()) {
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000l}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    return rc;
}
