/* SPDX-License-Identifier: Apache-2.0
 *
 * spur-sim: lives of simulated clusters. Each seed is a process of its own, so that one that fails harms no other.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "sim/cluster.h"

#define STEPS 250u
#define STEPS_OF_MORE 160u /* more members do more: such a life costs as much */
#define KINDS 4u           /* of lives: of each so many seeds one has five members, and one has members that come and go */

struct options {
    uint64_t first, n;
    uint32_t steps, members; /* 0: as the seed has it */
    bool changes, is_loud, stops_at_first, is_logged;
    const char *fault;
};

/* Of the sanitizers: libraft 0.22.1 never frees the bytes of a change of members that it refuses, some hundred each. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:raft_add\nleak:raft_remove\nleak:raft_assign\n";
}

static void usage(FILE *f) {
    fputs("usage: spur-sim [--seed N] [--seeds COUNT] [--steps N] [--members N] [--changes] [--fault NAME] [--trace] [--log] [--first]\n"
          "  --seed N       the first seed (1)\n"
          "  --seeds COUNT  how many, one after the other (1)\n"
          "  --steps N      length of a life (250; of the two below 160)\n"
          "  --members N    3 or 5 controllers (each fourth seed has 5)\n"
          "  --changes      controllers are added, removed, moved, and lose their disks (each fourth seed of three)\n"
          "  --fault NAME   breaks the product at this fault point\n"
          "  --trace        prints what happens\n"
          "  --log          prints what controllers and agents log\n"
          "  --first        stops at the first seed that fails\n", f);
}

static uint64_t number(const char *s) {
    uint64_t n;
    if (str_to_u64(s, UINT64_MAX, &n)) {
        usage(stderr);
        exit(2);
    }
    return n;
}

static void parse(int argc, char **argv, struct options *o) {
    static const struct option rows[] = {{"seed", 1, NULL, 's'},  {"seeds", 1, NULL, 'n'}, {"steps", 1, NULL, 't'},
                                         {"fault", 1, NULL, 'f'}, {"trace", 0, NULL, 'v'}, {"log", 0, NULL, 'l'},
                                         {"first", 0, NULL, '1'}, {"help", 0, NULL, 'h'},  {"members", 1, NULL, 'm'},
                                         {"changes", 0, NULL, 'c'}, {0}};
    *o = (struct options){.first = 1, .n = 1};
    for (int c; (c = getopt_long(argc, argv, "", rows, NULL)) != -1;) {
        switch (c) {
        case 's': o->first = number(optarg); break;
        case 'n': o->n = number(optarg); break;
        case 't': o->steps = (uint32_t)number(optarg); break;
        case 'c': o->changes = true; break;
        case 'm': o->members = (uint32_t)number(optarg); break;
        case 'f': o->fault = optarg; break;
        case 'v': o->is_loud = true; break;
        case 'l': o->is_logged = true; break;
        case '1': o->stops_at_first = true; break;
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    if (o->members && o->members != 3 && o->members != 5) {
        usage(stderr);
        exit(2);
    }
}

/* Where nothing is written to a disk, if there is such a place. */
static void make_dir(char *out, size_t n) {
    snprintf(out, n, "/dev/shm/spur-sim-XXXXXX");
    if (mkdtemp(out))
        return;
    snprintf(out, n, "/tmp/spur-sim-XXXXXX");
    if (!mkdtemp(out)) {
        perror("spur-sim: a temporary directory");
        exit(2);
    }
}

static void remove_dir(const char *path) {
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d)))
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

static void live(const struct options *o, uint64_t seed, const char *dir) {
    struct cluster_conf conf = {.seed = seed, .members = o->members, .steps = o->steps, .dir = dir, .is_loud = o->is_loud};
    struct cluster_result r;
    conf.changes = o->changes || (!o->members && seed % KINDS == 2);
    if (!conf.members)
        conf.members = conf.changes || seed % KINDS ? 3 : 5;
    if (!conf.steps)
        conf.steps = conf.members == 5 || conf.changes ? STEPS_OF_MORE : STEPS;
    hash_seed(seed, 1);
    log_set_level(o->is_logged ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR);
    if (!o->is_logged && !freopen("/dev/null", "w", stderr))
        exit(2);
    fault_enable(o->fault);
    printf("seed %llu: ", (unsigned long long)seed);
    if (o->is_loud)
        putchar('\n');
    fflush(stdout);
    cluster_live(&conf, &r);
    printf("ok, trace %016llx: %u members, %llu s, %llu entries, %llu terms, %llu crashes, %llu snapshots, %llu restores, %u jobs, "
           "%u runs, %u reads, %u changes\n",
           (unsigned long long)r.hash, conf.members, (unsigned long long)r.virtual_ms / 1000, (unsigned long long)r.entries,
           (unsigned long long)r.terms, (unsigned long long)r.crashes, (unsigned long long)r.snapshots,
           (unsigned long long)r.restores, r.jobs, r.runs, r.reads, r.changes);
    fflush(stdout);
}

static bool live_apart(const struct options *o, uint64_t seed) {
    char dir[64];
    make_dir(dir, sizeof(dir));
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        live(o, seed, dir);
        exit(0);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    remove_dir(dir);
    if (WIFSIGNALED(status))
        printf("FAILED: ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        printf("FAILED: exit status %d (what leaks is found at the exit): --log tells\n", WEXITSTATUS(status));
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv) {
    struct options o;
    uint64_t n_failed = 0;
    parse(argc, argv, &o);
    for (uint64_t seed = o.first; seed < o.first + o.n; seed++) {
        n_failed += !live_apart(&o, seed);
        if (n_failed && o.stops_at_first)
            break;
    }
    if (o.n > 1)
        printf("%llu seeds failed\n", (unsigned long long)n_failed);
    return n_failed ? 1 : 0;
}
