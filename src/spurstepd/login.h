/* SPDX-License-Identifier: Apache-2.0
 *
 * --get-user-env: what a login of the job's user would have set.
 */
#ifndef SPUR_SPURSTEPD_LOGIN_H
#define SPUR_SPURSTEPD_LOGIN_H

#include <stdbool.h>

/* In the process that is to be the script, as its user: `env` with what is missing there. *found false: the login shell didn't say. */
char **login_environment(const char *shell, char **env, bool *out_found);

#endif
