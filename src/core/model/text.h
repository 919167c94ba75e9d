/* SPDX-License-Identifier: Apache-2.0
 *
 * What people write: times, sizes, node lists, dependencies, #SBATCH lines, output name patterns. Pure functions; the
 * results live in the given arena. On failure the err has the sentence that Slurm prints, without the "sbatch: error: ".
 */
#ifndef SPUR_CORE_MODEL_TEXT_H
#define SPUR_CORE_MODEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "core/model/job.h"

/* ---- times ---- */

/* A limit in minutes, seconds rounded up: "m", "m:s", "h:m:s", "d-h", "d-h:m", "d-h:m:s", INFINITE, UNLIMITED, -1. As
 * with Slurm, 0 is TIME_LIMIT_NONE too. E_SYNTAX for anything else. */
int time_limit_parse(const char *s, uint32_t *out_min);
/* spur.conf takes these too: "1h40m", "2d12h", "30s". */
int time_limit_parse_conf(const char *s, uint32_t *out_min);
void time_limit_print(uint32_t minutes, struct str *out); /* "10:00", "5-00:00:00", "UNLIMITED" */
void duration_print(int64_t seconds, struct str *out);    /* squeue's TIME: "0:04", "1:02:03", "2-03:04:05" */
void duration_print_long(int64_t seconds, struct str *out); /* scontrol's and sacct's: "00:00:04", "2-03:04:05" */
/* A moment: "now", "now+1hour", "today", "tomorrow", "midnight", "noon", "fika", "teatime", "HH:MM[:SS] [AM|PM]",
 * "MM/DD[/YY]-HH:MM", "YYYY-MM-DD[THH:MM[:SS]]", "uts…" — all that slurm_strtime takes. `zone_secs_at` maps a local
 * broken-down time to Unix seconds (mktime for commands; tests give their own), so that this stays pure. */
struct text_clock {
    int64_t now_unix;
    int64_t (*to_unix)(void *arg, int year, int month, int day, int hour, int minute, int second);
    void (*to_local)(void *arg, int64_t unix_secs, int out_ymdhms[6]);
    void *arg;
    bool past; /* what is left open is filled in towards the past: sacct -S 08:00 is today's */
};
int moment_parse(const char *s, const struct text_clock *c, int64_t *out_unix, struct err *e);

/* ---- sizes ---- */

int size_mb_parse(const char *s, uint64_t *out_mb); /* --mem: "500", "2G", "1T", "1024K" (rounded up), "0" */
void size_mb_print(uint64_t mb, struct str *out);   /* "500M", "2G": as scontrol and sacct print memory */
int count_parse(const char *s, uint64_t max, uint64_t *out); /* "16", "4k" (x 1024), "1m" as Slurm's -n takes them */
int node_range_parse(const char *s, uint32_t *out_min, uint32_t *out_max); /* -N: "2", "1-4", "2k" */
int node_count_parse(const char *s, uint32_t *out_min, uint32_t *out_max, struct err *e); /* the same, with a reason */

/* ---- node lists ---- */

#define HOSTLIST_MAX 65536
/* "n[001-003,7],x[1-2]y" to names, in the order given, at most HOSTLIST_MAX (E_SYNTAX beyond). Several brackets in a
 * name multiply, the last one runs fastest. An empty list is no mistake. The reason is "Invalid hostlist: …", for a bad
 * range "_parse_single_range: Invalid range: `3-1'", which Slurm logs in front of that line. */
int hostlist_expand(const char *s, struct arena *a, const char *const **out, uint32_t *out_n, struct err *e);
/* Names to "n[001-003,7]": in the order given, neighbours merged, as Slurm prints. */
void hostlist_compact(const char *const *names, uint32_t n, struct str *out);
/* The order in which Slurm sorts node names: "n2" before "n10". For qsort-like callers. */
int hostname_compare(const char *a, const char *b);

/* ---- dependencies ---- */

/* "afterok:12:13_4,after:14+5", "afterok:12_[1-3]?afterany:13_*": Only `after`-kinds of *supported* (bits 1 << enum
 * dep_kind); another is E_UNSUPPORTED by name, nonsense is E_DEPENDENCY with Slurm's sentence. */
int deps_parse(const char *s, uint32_t supported, struct arena *a, const struct dep **out, uint32_t *out_n,
               struct err *e);
void deps_print(const struct dep *d, uint32_t n, struct str *out); /* "afterok:12(unfulfilled)", as scontrol */

/* ---- resources, signals ---- */

/* "gpu:2,gpu:a100:1,nic" (name NULL), or with a name what stands behind it: "2", "a100:2,h100:1" (--gpus). Adds to the
 * *out_n at *out, in the arena; the same again adds up, a count of 0 is left out. E_GRES with Slurm's sentence. */
int gres_parse(const char *s, const char *name, enum gres_per per, struct arena *a, const struct gres_ask **out,
               uint32_t *out_n, struct err *e);
/* "gres/gpu:a100:1,gres/nic:1": as TresPerNode shows what was asked for. `prefix`: "gres/", or "gres/gpu:" of --gpus. */
void gres_text_print(const char *text, const char *prefix, struct str *out);
/* "matlab:2,ansys" (all) or "matlab:1|ansys:1" (one of them); E_LICENSE. */
int license_parse(const char *s, struct arena *a, const struct license_ask **out, uint32_t *out_n, struct err *e);

/* "USR1", "sigusr1", "10"; E_SYNTAX. */
int signal_parse(const char *s, uint32_t *out);
/* --signal: "[R][B]:SIG[@secs]", "SIG@secs"; 60 seconds where none are given. E_SYNTAX. */
struct signal_ask {
    uint32_t signal, secs;
    bool batch, reservation;
};
int signal_ask_parse(const char *s, struct signal_ask *out);

/* ---- names of jobs and steps ---- */

#define ARRAY_ID_MAX 4000000u /* Slurm's bound on MaxArraySize */
enum { JOB_NAME_STEP = 1, JOB_NAME_TASKS = 2 };
/* "12", "12_3", with JOB_NAME_TASKS also "12_[1-3,7]", with JOB_NAME_STEP also "12.0", "12_3.batch". Else E_JOB_ID, with
 * Slurm's reason in front where it has one ("_parse_single_range: Invalid range: `x'"), else no text. */
struct job_name {
    struct job_target target;
    bool has_step;
    uint32_t step_id;
};
int job_name_parse(const char *s, unsigned flags, struct arena *a, struct job_name *out, struct err *e);

/* ---- batch scripts ---- */

/* The options of the #SBATCH lines, in order, as argv-like words. Lines count until the first line that is neither
 * blank nor a comment; quoting, an unquoted # and several options a line as in field-cases SUB-02. Fails when the text
 * is no batch script (E_SCRIPT with Slurm's sentences, for which lines are separated by \n): no "#!", NUL bytes, DOS
 * line breaks. `out_lines` (may be NULL) gets the line number of each word. */
int script_options(const char *script, size_t n, struct arena *a, const char *const **out, const uint32_t **out_lines,
                   uint32_t *out_n, struct err *e);
/* The same of its #PBS lines. */
int script_pbs_options(const char *script, size_t n, struct arena *a, const char *const **out,
                       const uint32_t **out_lines, uint32_t *out_n, struct err *e);
int script_check(const char *script, size_t n, struct err *e);

/* ---- output name patterns ---- */

struct name_facts {
    uint32_t job_id;
    uint32_t array_job_id, array_task_id; /* 0 and UINT32_MAX: no array */
    uint32_t step_id;                     /* STEP_BATCH prints "batch" */
    uint32_t node_index, task_rank;
    const char *job_name, *user, *node_name, *work_dir;
};
/* %j %J %x %u %N %n %t %s %A %a %%, with a width as in %5j (at most 10 digits); "\\" in front switches the patterns
 * off. A relative name is put behind work_dir. */
void output_name(const char *pattern, const struct name_facts *f, struct str *out);

#endif
