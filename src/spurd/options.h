/* SPDX-License-Identifier: Apache-2.0
 *
 * spurd's flags, environment and the part of spur.conf that concerns it.
 */
#ifndef SPUR_SPURD_OPTIONS_H
#define SPUR_SPURD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "core/model/config.h"
#include "io/tls/tls.h"
#include "spurd/gres.h"

#define LABELS_MAX 256

struct options {
    const char *controllers, *listen, *hostname, *address, *state_dir, *token, *controller_key, *config;
    const char *gres, *gres_files, *gres_config;
    const char *label[LABELS_MAX]; /* KEY=VALUE */
    uint32_t n_labels;
    const char *features, *log_level, *log_format, *log_file, *ready_file;
    uint32_t cpus;
    uint64_t memory_mb;
    int ready_fd; /* -1: none */
    uint32_t clock_scale;
    uint32_t containment; /* enum step_containment */
    bool test_faults;
    bool own_state_dir;  /* it was named */
    bool has_own_listen; /* it was given */
    bool has_own_level;  /* so was --log-level */
    struct tls_conf tls; /* [tls] */
};

enum options_do { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG };
/* Prints help, version and what is wrong itself. Texts are borrowed from argv, the environment and the arena. */
enum options_do options_read(int argc, char **argv, struct options *out);
/* The generic resources that --gres or --gres-config name, of this node. */
int options_read_gres(const struct options *o, const char *node_name, struct arena *a, struct gres_list *out, struct err *e);
/* The same file once more, with its checks; without any: its defaults. */
int options_reread(const struct options *o, struct arena *a, struct conf *out, struct err *e);
/* Reads the configuration (where there is one) for what no flag says. */
int options_read_config(struct options *o, struct arena *a, struct err *e);

#endif
