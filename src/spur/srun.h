/* SPDX-License-Identifier: Apache-2.0
 *
 * srun, in parts: options, allocation, the step, its streams and tasks. salloc, sattach and sbcast use some of them.
 */
#ifndef SPUR_SPUR_SRUN_H
#define SPUR_SPUR_SRUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "spur/attend.h"
#include "spur/sbatch.h"
#include "spur/stream.h"

enum srun_bad_exit { BAD_EXIT_UNSET = 0, BAD_EXIT_GOES_ON = 1, BAD_EXIT_KILLS = 2 };

struct srun {
    struct sbatch job; /* first: the setters of its options work on this one too */
    const char *input, *output, *error; /* as given */
    const char *job_id_text, *node_range;
    bool label, unbuffered, overlap, exact, multi_prog, pty, quit_on_interrupt, disable_status;
    bool is_inside;
    int pty_fd; /* whose terminal --pty means */
    uint32_t immediate_secs; /* + 1; 0: not given */
    uint32_t bad_exit;       /* enum srun_bad_exit */
    uint32_t wait_secs;      /* 0: for ever */
    uint32_t job_id;
    const char *const *argv; /* the command */
    uint32_t n_argv;
    int exit_error, exit_immediate; /* what it returns when it fails by itself */
    const char *cpu_bind;           /* --cpu-bind, where it binds or tells; NULL */
    const char *kind;               /* of the allocation: "srun", "salloc" */
};

/* ---- srun_options.c ---- */
/* Setters of the rows of srun's own options (opt.h). */
int srun_ask_immediate(struct opt_run *r, const struct opt_row *o, const char *value);
int srun_ask_bad_exit(struct opt_run *r, const struct opt_row *o, const char *value);
int srun_ask_wait(struct opt_run *r, const struct opt_row *o, const char *value);
int srun_ask_job(struct opt_run *r, const struct opt_row *o, const char *value);
int srun_ask_pty(struct opt_run *r, const struct opt_row *o, const char *value);
int srun_ask_mpi(struct opt_run *r, const struct opt_row *o, const char *value);
int srun_ask_nodes(struct opt_run *r, const struct opt_row *o, const char *value);
int srun_ask_cpu_bind(struct opt_run *r, const struct opt_row *o, const char *value);
int srun_ask_het(struct opt_run *r, const struct opt_row *o, const char *value);
const char *srun_env_get(const char *name); /* getenv for opt_scan_env, with srun's other names */
/* Words behind the options into argv; what fits together. false: said so. */
bool srun_settle(struct srun *s, const struct opt_run *r);

/* ---- srun_env.c ---- */
/* "NAME=value\0…": what the tasks get of this process's environment, by --export. */
void srun_env(struct srun *s, const char *const *environ_, struct buf *out);

/* ---- srun_multi.c: --multi-prog ---- */
/* For each rank its words, in the arena. 0 or said so. */
int srun_multi_read(struct srun *s, const char *path, uint32_t n_tasks, const struct stream_words **out);

/* ---- srun_signal.c ---- */
/* cli_call, for 10 s where no controller can be reached. */
int srun_call(struct cli *c, enum wire_method m, const void *request, void *reply, struct err *e);

int srun_signals(void); /* blocks those that srun handles; a descriptor from which they are read */
int srun_signal_next(int fd); /* 0: none */

/* ---- srun_alloc.c: an interactive job ---- */
struct srun_alloc {
    struct srun *s;
    uint32_t job_id;
    struct attend_reply *heard; /* packed; NULL: nothing yet */
    struct spur_attend *attend;
    int signal_fd;
    bool was_queued; /* it was said that the job waits */
};
const struct job *srun_alloc_job(const struct srun_alloc *a); /* as last heard; NULL */
/* Submits and waits until the job's nodes are there. 0: they are; else the exit code, the job is gone and all is said. */
int srun_alloc_get(struct srun_alloc *a);
/* The job ends: COMPLETED, or FAILED with a wait status. */
void srun_alloc_end(struct srun_alloc *a, uint32_t wait_status);
void srun_alloc_cancel(struct srun_alloc *a);
/* Takes the record out of news. false: the job is over, or going to be. */
bool srun_alloc_hear(struct srun_alloc *a, struct spur_news *n);
void srun_alloc_fini(struct srun_alloc *a);
bool srun_alloc_is_salloc(const struct srun_alloc *a);

/* ---- srun_sink.c: where output goes ---- */
enum sink_kind { SINK_PLAIN, SINK_NONBLOCK, SINK_SOCKET };
struct sink {
    int fd, own_fd; /* own_fd: another way to the same, which can't block; -1: none */
    enum sink_kind kind;
    struct buf out;
    size_t at;
    bool is_broken;
    int error;      /* errno of the write that broke it */
    uint32_t owner; /* + 1: the stream (task * 2 + number) that is in the middle of a line */
};
void sink_open(struct sink *k, int fd);
void sink_fini(struct sink *k);
bool sink_is_full(struct sink *k); /* after a try to write */
void sink_put(struct sink *k, const void *p, size_t n);
void sink_flush(struct sink *k);
size_t sink_waiting(const struct sink *k);
int sink_fd(const struct sink *k);

/* ---- srun_output.c: tasks' output to sinks, by lines and with labels ---- */
struct srun_output;
struct srun_output_conf {
    uint32_t n_tasks;
    bool label, unbuffered;
    uint32_t only_task[2]; /* + 1: of stdout, stderr; 0: all */
    struct sink *sink[2];  /* NULL: dropped; may be the same one */
};
struct srun_output *srun_output_new(const struct srun_output_conf *conf);
void srun_output_free(struct srun_output *o);
bool srun_output_data(struct srun_output *o, uint32_t task, uint32_t number, const uint8_t *p, size_t n);
/* A line of the node's, labelled as that task's. */
void srun_output_text(struct srun_output *o, uint32_t task, const char *text);

/* ---- srun_tasks.c: what became of the tasks ---- */
struct srun_exits { /* of one node, that ended alike */
    uint32_t node, status;
    bool out_of_memory;
    VEC(uint32_t) ranks;
};
struct srun_tasks {
    const struct cli *c;
    const struct step *step;
    uint32_t n_tasks, n_over;
    uint8_t *state;        /* by rank: 0 not yet, 1 runs, 2 over */
    uint32_t *node;        /* by rank */
    VEC(struct srun_exits) exits; /* not told yet */
    int exit_code;         /* the highest */
    uint32_t worst_status; /* as waitpid gives it */
    bool any_killed;       /* by SIGKILL or SIGTERM */
    bool any_bad, is_silent;
    int64_t first_over_ms, untold_ms; /* 0: none */
};
void srun_tasks_init(struct srun_tasks *t, const struct cli *c, const struct step *step);
void srun_tasks_fini(struct srun_tasks *t);
void srun_tasks_started(struct srun_tasks *t, uint32_t rank);
void srun_tasks_exited(struct srun_tasks *t, const struct stream_exit *x);
void srun_tasks_lost(struct srun_tasks *t, uint32_t node); /* those of a node that is gone count as killed */
void srun_tasks_tell(struct srun_tasks *t, uint32_t node); /* exits of a node that were not told; UINT32_MAX: of all */
void srun_tasks_status(const struct srun_tasks *t); /* who runs, who is over */
void srun_step_name(const struct step *st, struct str *out); /* "StepId=12.0" */

/* ---- srun_step.c ---- */
struct srun_step {
    struct srun *s;
    uint32_t job_id;
    const struct job *job; /* NULL: not known */
    struct step_reply reply;
    struct stream_launch launch;
    struct sink out, err;
    int in_fd; /* -1: no input */
    uint32_t in_task, only_task[2];
    bool is_out_dropped, is_err_with_out;
    bool is_attach; /* sattach: the step runs already */
    struct srun_alloc *alloc; /* NULL: the job is somebody else's */
};
/* Asks the controller for the step. 0, or the exit code after it said why. */
int srun_step_start(struct srun_step *st);
/* Where the streams go to and come from, by -o -e -i and --pty. 0, or the exit code. */
int srun_step_streams(struct srun_step *st);

/* ---- srun_run.c ---- */
/* Runs the step until all of it is over. The exit code; *out_status (may be NULL): the worst wait status. */
int srun_run(struct srun_step *st, struct spur_attend *attend, int signal_fd, uint32_t *out_status);

/* ---- srun_terminal.c: a terminal in raw mode ---- */
bool srun_terminal_size(int fd, uint32_t *rows, uint32_t *columns);
void srun_terminal_raw(int fd);
void srun_terminal_restore(void);

#endif
