/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller as a whole: create in order, destroy in reverse.
 */
#ifndef SPUR_SPURCTLD_CTL_H
#define SPUR_SPURCTLD_CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct ctl;

#define CTL_STATE_DIR "/var/spool/spur"

struct ctl_options {
    const char *config_path; /* NULL: /etc/spur/spur.conf where it exists, else the built-in defaults */
    const char *listen;      /* NULL: from the configuration */
    const char *raft_listen; /* the port among controllers; NULL: from the configuration */
    const char *state_dir;   /* NULL: as the configuration says, else CTL_STATE_DIR */
    const char *log_level, *log_format, *log_file; /* NULL: from the configuration */
    const char *ready_file;  /* NULL: none; written when requests are served */
    uint32_t clock_scale;    /* 0: 1 */
    uint64_t snapshot_rate;  /* bytes a second; 0: 64 MiB */
    bool check_invariants;
    const char *backup_to;   /* not NULL: nobody can reach it; with all that the log says it writes a backup there, and ends */
    uint32_t backup_member;  /* then: whose log it is */
    bool force_new_cluster;  /* the majority is lost for good: go on alone with what is here */
};

/* Loads and checks the configuration alone: prints every problem to stderr. 0 or E_CONFIG. */
int ctl_check_config(const struct ctl_options *o);

int ctl_new(const struct ctl_options *o, struct ctl **out, struct err *e);
int ctl_run(struct ctl *c); /* until SIGTERM or SIGINT: 0; 1 when it had to stop by itself */
void ctl_free(struct ctl *c);

#endif
