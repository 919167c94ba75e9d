/* SPDX-License-Identifier: Apache-2.0
 *
 * What --version prints: ours, and whose commands these are like.
 */
#ifndef SPUR_SPUR_VERSION_H
#define SPUR_SPUR_VERSION_H

#define VERSION_LINE "spur " SPUR_VERSION " (slurm-wlm 26.05 compatible)"

#endif
