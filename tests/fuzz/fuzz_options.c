/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines. The first byte chooses a command, the rest are its words, one a line. The option engine reads them with the
 * table of any command; for srun, salloc and sbatch they are set as well, with the setters of a real run, and settled. What is
 * refused is refused in words and with an exit code.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/job_ask.h"
#include "spur/salloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *nothing(const char *name) {
    return NULL;
}

static void ask(struct opt_run *r, struct cli *c, struct salloc *s) {
    opt_scan_env(r, nothing);
    for (size_t i = 0; i < r->items.n; i++)
        if (r->items.p[i].row->set == ask_nodefile) /* reads a file */
            return;
    if (!opt_apply(r, 0, r->items.n)) {
        must(r->exit_code >= 0);
        return;
    }
    must(r->ctx == s);
    struct job_ask *a = &s->run.job.ask;
    if (job_ask_settle(a)) {
        auto_buf b = {0};
        rec_encode(job_spec_rec(), &a->spec, &b);
    }
}

static void command(const struct command *cmd, const char *const *word, int n, struct cli *c) {
    struct salloc s = {0}; /* begins with srun's, which begins with sbatch's */
    struct opt_run r;
    bool asks = str_eq(cmd->slurm, "sbatch") || str_eq(cmd->slurm, "srun") || str_eq(cmd->slurm, "salloc");
    s.run.job.c = c;
    opt_init(&r, cmd->options(), cmd->verb, &s);
    if (opt_scan(&r, n, word)) {
        if (asks)
            ask(&r, c, &s);
    } else {
        must(r.exit_code >= 0 && (r.out.n || r.err.n));
    }
    opt_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static FILE *quiet;
    if (!quiet) {
        quiet = fopen("/dev/null", "we");
        must(quiet);
        stderr = quiet; /* libFuzzer writes to the descriptor */
    }
    if (n < 1 || n > 4096)
        return 0;
    struct cli c = {.prog = "fuzz"};
    char *text = arena_strndup(&c.arena, (const char *)data + 1, n - 1);
    VEC(const char *) words = {0};
    for (char *line; (line = strsep(&text, "\n"));)
        vec_push(&words, line);
    const struct command *cmd = command_at(data[0] % command_count());
    c.argc = (int)words.n;
    c.argv = (char **)words.p;
    command(cmd, words.p, (int)words.n, &c);
    vec_fini(&words);
    arena_fini(&c.arena);
    return 0;
}
