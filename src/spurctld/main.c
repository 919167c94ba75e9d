/* SPDX-License-Identifier: Apache-2.0
 *
 * spurctld: flags, then ctl.
 */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/cred/cred.h"
#include "spurctld/ctl.h"
#include "spurctld/offline.h"
#include "spurctld/restore.h"

enum { OPT_STATE_DIR = 256, OPT_LISTEN, OPT_CHECK, OPT_LEVEL, OPT_FORMAT, OPT_FILE, OPT_READY, OPT_SCALE, OPT_FAULTS,
       OPT_INVARIANTS, OPT_RATE, OPT_RAFT_LISTEN, OPT_FORCE_NEW, OPT_BACKUP, OPT_RESTORE, OPT_CHECK_BACKUP };

static const struct option options[] = {
    {"config", required_argument, NULL, 'f'},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"raft-listen", required_argument, NULL, OPT_RAFT_LISTEN},
    {"force-new-cluster", no_argument, NULL, OPT_FORCE_NEW},
    {"state-dir", required_argument, NULL, OPT_STATE_DIR},
    {"backup", required_argument, NULL, OPT_BACKUP},
    {"restore", required_argument, NULL, OPT_RESTORE},
    {"check-backup", required_argument, NULL, OPT_CHECK_BACKUP},
    {"check-config", no_argument, NULL, OPT_CHECK},
    {"log-level", required_argument, NULL, OPT_LEVEL},
    {"log-format", required_argument, NULL, OPT_FORMAT},
    {"log-file", required_argument, NULL, OPT_FILE},
    {"ready-file", required_argument, NULL, OPT_READY},
    {"snapshot-rate", required_argument, NULL, OPT_RATE},
    {"test-clock-scale", required_argument, NULL, OPT_SCALE},
    {"test-faults", no_argument, NULL, OPT_FAULTS},
    {"test-invariants", no_argument, NULL, OPT_INVARIANTS},
    {"foreground", no_argument, NULL, 'D'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static const char usage[] =
    "Usage: spurctld [OPTIONS]\n"
    "  -f, --config=FILE         configuration (default /etc/spur/spur.conf, else built-in)\n"
    "      --listen=ADDR         gRPC address (default from the configuration, [::]:6817)\n"
    "      --raft-listen=ADDR    address for the other controllers (default from the configuration, [::]:6821)\n"
    "      --state-dir=DIR       journal, history, scripts (default /var/spool/spur)\n"
    "      --check-config        check the configuration and stop: 0 when it is good\n"
    "      --log-level=LEVEL     error, warn, info, debug\n"
    "      --log-format=FORMAT   text, json\n"
    "      --log-file=FILE       default: stderr\n"
    "      --ready-file=FILE     written when requests are served: listen=PORT, socket=PATH, pid=PID\n"
    "      --snapshot-rate=N     bytes a second that a snapshot may write (default 67108864)\n"
    "      --force-new-cluster   when a majority of the controllers is lost for good: go on alone with what is here. What\n"
    "                            only the lost ones had is gone; never start one of them with its old files again\n"
    "      --backup=FILE         of a state directory that no controller uses (spur backup --state-dir)\n"
    "      --restore=FILE        a backup into a state directory that is empty (spur restore)\n"
    "      --check-backup=FILE   whether a backup is whole, and what is in it (spur restore --check)\n"
    "  -D, --foreground          the only mode there is: spurctld never daemonizes\n"
    "      --test-clock-scale=N  tests: time runs N times faster (refused with the default state directory)\n"
    "      --test-faults         tests: obey SPUR_FAULT\n"
    "      --test-invariants     tests: check the whole state after each command\n"
    "  -V, --version\n"
    "  -h, --help\n";

static void on_broken_promise(const char *text) {
    log_dump_recorder(2);
}

static int number(const char *name, const char *text, uint64_t max, uint64_t *out) {
    if (!str_to_u64(text, max, out) && *out > 0)
        return 0;
    fprintf(stderr, "spurctld: error: --%s takes a number from 1 to %llu, not '%s'\n", name, (unsigned long long)max,
            text);
    return 2;
}

/* What is done instead of being a controller. */
struct task {
    bool check;
    const char *backup, *restore, *check_backup;
};

/* 0 go on, 1 stop with success, 2 stop with failure. */
static int parse(int argc, char **argv, struct ctl_options *o, struct task *task) {
    int c;
    uint64_t n;
    while ((c = getopt_long(argc, argv, "f:DVh", options, NULL)) != -1) {
        switch (c) {
        case 'f': o->config_path = optarg; break;
        case 'D': break;
        case 'V': printf("spur %s\n", SPUR_VERSION); return 1;
        case 'h': fputs(usage, stdout); return 1;
        case OPT_LISTEN: o->listen = optarg; break;
        case OPT_RAFT_LISTEN: o->raft_listen = optarg; break;
        case OPT_FORCE_NEW: o->force_new_cluster = true; break;
        case OPT_STATE_DIR: o->state_dir = optarg; break;
        case OPT_CHECK: task->check = true; break;
        case OPT_BACKUP: task->backup = optarg; break;
        case OPT_RESTORE: task->restore = optarg; break;
        case OPT_CHECK_BACKUP: task->check_backup = optarg; break;
        case OPT_LEVEL: o->log_level = optarg; break;
        case OPT_FORMAT: o->log_format = optarg; break;
        case OPT_FILE: o->log_file = optarg; break;
        case OPT_READY: o->ready_file = optarg; break;
        case OPT_INVARIANTS: o->check_invariants = true; break;
        case OPT_FAULTS: fault_enable(getenv("SPUR_FAULT")); break;
        case OPT_RATE:
            if (number("snapshot-rate", optarg, INT64_MAX, &n))
                return 2;
            o->snapshot_rate = n;
            break;
        case OPT_SCALE:
            if (number("test-clock-scale", optarg, 100000, &n))
                return 2;
            o->clock_scale = (uint32_t)n;
            break;
        default: fputs("Try \"spurctld --help\" for more information\n", stderr); return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "spurctld: error: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    if (o->clock_scale > 1 && !o->state_dir) {
        fputs("spurctld: error: --test-clock-scale needs a --state-dir of its own\n", stderr);
        return 2;
    }
    return 0;
}

/* One heap for all threads, and large pieces given back at once: the records of waiting jobs are made by one thread and
 * freed by it, so a heap a thread only keeps holes (10,000 pending jobs: 20 MB with glibc's defaults, 15 MB so). */
static void tame_malloc(void) {
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

static int run_task(const struct ctl_options *o, const struct task *t) {
    struct err e = {0};
    if (t->check) {
        int rc = ctl_check_config(o);
        if (!rc)
            printf("%s: the configuration is good\n", o->config_path ? o->config_path : "spur.conf");
        return rc ? 1 : 0;
    }
    int rc = t->backup         ? offline_backup(o, t->backup, &e)
             : t->check_backup ? restore_check(t->check_backup, &e)
                               : restore_run(o, t->restore, &e);
    if (rc)
        fprintf(stderr, "spurctld: error: %s\n", e.text);
    return rc ? 1 : 0;
}

int main(int argc, char **argv) {
    struct ctl_options o = {0};
    struct ctl *c = NULL;
    struct err e = {0};
    struct task task = {0};
    uint64_t seed[2];
    int stop = parse(argc, argv, &o, &task);
    if (stop)
        return stop == 1 ? 0 : 2;
    tame_malloc();
    if (cred_init(&e)) {
        fprintf(stderr, "spurctld: error: %s\n", e.text);
        return 1;
    }
    cred_random(seed, sizeof(seed));
    hash_seed(seed[0], seed[1]);
    must_on_failure(on_broken_promise);
    if (task.check || task.backup || task.restore || task.check_backup)
        return run_task(&o, &task);
    if (ctl_new(&o, &c, &e)) {
        fprintf(stderr, "spurctld: error: %s\n", e.text);
        return 1;
    }
    int code = ctl_run(c);
    ctl_free(c);
    return code;
}
