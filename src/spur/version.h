/* SPDX-License-Identifier: Apache-2.0
 *
 * What --version prints: ours, and whose commands these are like.
 */
#ifndef SPUR_SPUR_VERSION_H
#define SPUR_SPUR_VERSION_H

/* The release of Slurm whose behaviour and shapes these are: what --json says to tools that look for it. */
#define SLURM_MAJOR "26"
#define SLURM_MINOR "05"
#define SLURM_MICRO "5"
#define SLURM_VERSION SLURM_MAJOR "." SLURM_MINOR "." SLURM_MICRO

/* What Slurm's commands say (tools look for "slurm N.N.N" at the beginning), and what spur itself does. */
#define VERSION_LINE "slurm " SLURM_VERSION " (spur " SPUR_VERSION ")"
#define SPUR_VERSION_LINE "spur " SPUR_VERSION " (slurm " SLURM_VERSION " compatible)"

#endif
