/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of sbcast.
 */
#ifndef SPUR_SPURSTEPD_COPY_H
#define SPUR_SPURSTEPD_COPY_H

/* Reads its step_copy from `spurd`, answers "ok" or what went wrong there, and takes the file from `client`. */
int copy_run(int spurd, int client);

#endif
