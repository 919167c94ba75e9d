/* SPDX-License-Identifier: Apache-2.0
 *
 * What --version prints: ours, and whose commands these are like.
 */
#ifndef SPUR_SPUR_VERSION_H
#define SPUR_SPUR_VERSION_H

#define VERSION_LINE "spur " SPUR_VERSION " (slurm-wlm 26.05 compatible)"

/* The release of Slurm whose behaviour and shapes these are: what --json says to tools that look for it. */
#define SLURM_MAJOR "26"
#define SLURM_MINOR "05"
#define SLURM_MICRO "5"

#endif
