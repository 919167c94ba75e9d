/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/daemon.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define PROGRAM "spurctld"

int daemon_run(struct cli *c, const char *verb, const char *file, const char *state_dir, const char *config) {
    char self[4096] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    autofree char *beside = n > 0 ? xasprintf("%s/" PROGRAM, dirname(self)) : NULL;
    autofree char *what = xasprintf("--%s=%s", verb, file);
    autofree char *dir = state_dir ? xasprintf("--state-dir=%s", state_dir) : NULL;
    autofree char *conf = config ? xasprintf("--config=%s", config) : NULL;
    char *argv[5] = {(char *)PROGRAM, what};
    size_t at = 2;
    if (dir)
        argv[at++] = dir;
    if (conf)
        argv[at++] = conf;
    if (beside)
        execv(beside, argv);
    execvp(PROGRAM, argv);
    cli_error(c, PROGRAM " can't be run: %s", strerror(errno));
    return 1;
}
