/* SPDX-License-Identifier: Apache-2.0
 *
 * sbatch's own option table, its script, and what follows from options together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/sbatch.h"

struct fixture {
    struct cli c;
    struct sbatch s;
    struct opt_run r;
};

static bool run(struct fixture *f, int n, const char *const *word) {
    *f = (struct fixture){.c = {.prog = "sbatch"}};
    f->s.c = &f->c;
    opt_init(&f->r, cmd_sbatch_options(), "sbatch", &f->s);
    return opt_scan(&f->r, n, word) && opt_apply(&f->r, 0, f->r.items.n);
}
#define RUN(f, ...) run(f, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__})

static void done(struct fixture *f) {
    opt_fini(&f->r);
    arena_fini(&f->c.arena);
}

static void values(void **state) {
    struct fixture f;
    assert_true(RUN(&f, "-J", "nm", "-p", "a,b", "-N", "1-4", "-n4k", "-c", "2", "-t", "1-0", "--mem=2G", "-H", "--nice",
                    "--comment=a=1,b", "-A", "ml", "-q", "high", "--parsable", "-W", "--open-mode=append", "-w", "n[1-2]",
                    "-x", "n9", "-d", "afterok:5", "--no-requeue", "--requeue", "script", "-p", "x"));
    const struct job_spec *j = &f.s.spec;
    assert_string_equal(j->name, "nm");
    assert_string_equal(j->partition, "a,b");
    assert_int_equal(j->min_nodes, 1);
    assert_int_equal(j->max_nodes, 4);
    assert_true(j->min_nodes_given);
    assert_int_equal(j->n_tasks_given, 4096);
    assert_int_equal(j->cpus_per_task_given, 2);
    assert_int_equal(j->time_limit_min, 1440);
    assert_true(j->hold && f.s.parsable && f.s.wait && !j->no_requeue);
    assert_int_equal(j->nice, 100);
    assert_int_equal(j->open_mode, OPEN_APPEND);
    assert_string_equal(j->dependency, "afterok:5");
    assert_int_equal(f.r.words.n, 3);
    assert_true(job_ask_settle(&f.s.ask));
    assert_int_equal(j->mem_node_mb, 2048);
    assert_int_equal(j->n_req_nodes, 2);
    assert_string_equal(j->exc_nodes[0], "n9");
    done(&f);
}

static void oddities_of_slurms(void **state) {
    struct fixture f;
    assert_true(RUN(&f, "-t", "0", "--nice=x", "-N", "0", "--mem=0", "-p", ""));
    assert_int_equal(f.s.spec.time_limit_min, TIME_LIMIT_NONE);
    assert_int_equal(f.s.spec.nice, 0);
    assert_false(f.s.spec.min_nodes_given);
    assert_true(job_ask_settle(&f.s.ask));
    assert_true(f.s.spec.mem_all && !f.s.spec.mem_node_mb);
    assert_null(f.s.spec.partition);
    done(&f);
}

static void refusals(void **state) {
    static const struct {
        const char *option;
        int code;
        const char *want;
    } cases[] = {
        {"-t1:2:3:4:5", 255, "sbatch: error: Invalid --time specification\n"},
        {"-tx", 255, "sbatch: error: Invalid --time specification\n"},
        {"--mem=5X", 255, "sbatch: error: Invalid --mem specification\n"},
        {"--mem=-5", 255, "sbatch: error: Invalid --mem specification\n"},
        {"--open-mode=x", 255, "sbatch: error: Invalid --open-mode specification\n"},
        {"--begin=25:99", 255,
         "Invalid time specification (pos=0): 25:99\nsbatch: error: Invalid --begin specification\n"},
        {"--begin=now+5x", 255,
         "Invalid time specification (pos=4): now+5x\nsbatch: error: Invalid --begin specification\n"},
        {"-Nx", 255, "sbatch: error: \"x\" is not a valid node count\n"},
        {"-N3-2", 255, "sbatch: error: Maximum node count 2 is less than minimum node count 3\n"},
        {"-N2-", 255, "sbatch: error: Maximum node count -1 is less than minimum node count 2\n"},
        {"-nx", 1, "sbatch: error: Invalid numeric value \"x\" for --ntasks.\n"},
        {"-n0", 1, "sbatch: error: Invalid numeric value \"0\" for --ntasks.\n"},
        {"-c0", 1, "sbatch: error: Invalid numeric value \"0\" for --cpus-per-task.\n"},
        {"--nice=99999999999", 255, "sbatch: error: Invalid --nice value, out of range (+/- 2147483645)\n"},
        {"--propagate=BOGUS", 1, "sbatch: error: Bad rlimit name: BOGUS\nsbatch: error: --propagate=BOGUS is not valid.\n"},
        {"--mem-per-cpu=5X", 255, "sbatch: error: Invalid --mem-per-cpu specification\n"},
        {"--time-min=x", 255, "sbatch: error: Invalid --time-min specification\n"},
        {"--deadline=25:99", 255,
         "Invalid time specification (pos=0): 25:99\nsbatch: error: Invalid --deadline specification\n"},
        {"--ntasks-per-node=x", 1, "sbatch: error: Invalid numeric value \"x\" for --ntasks-per-node.\n"},
        {"--signal=BOGUS", 255, "sbatch: error: Invalid --signal specification\n"},
        {"--exclusive=bogus", 255, "sbatch: error: Invalid --exclusive specification\n"},
        {"--oversubscribe=x", 255, "sbatch: option '--oversubscribe' doesn't allow an argument\n"
                                   "Try \"sbatch --help\" for more information\n"},
        {"--bb=1", 1, "sbatch: error: option --bb is not supported yet (see docs/compatibility.md)\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        assert_false(run(&f, 1, &cases[i].option));
        assert_int_equal(f.r.exit_code, cases[i].code);
        assert_string_equal(str_text(&f.r.err), cases[i].want);
        done(&f);
    }
}

static void what_slurm_lacks_we_lack(void **state) {
    static const char *const none[] = {"--no-shell", "--x11", "--pty", "--power=x", "-I"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct fixture f;
        assert_false(run(&f, 1, &none[i]));
        assert_int_equal(f.r.exit_code, 255);
        done(&f);
    }
    struct fixture f;
    assert_false(RUN(&f, "--ntask=2"));
    assert_string_equal(str_text(&f.r.err),
                        "sbatch: option '--ntask=2' is ambiguous; possibilities: '--ntasks' '--ntasks-per-core' "
                        "'--ntasks-per-gpu' '--ntasks-per-node' '--ntasks-per-socket' '--ntasks-per-tres'\n"
                        "Try \"sbatch --help\" for more information\n");
    done(&f);
}

/* Each table is sorted, has no name or letter twice, and says what each option that works does. */
static void tables_are_sound(void **state) {
    for (size_t k = 0; k < command_count(); k++) {
        const struct opt_table *t = command_at(k)->options();
        for (size_t i = 0; i < t->n; i++) {
            const struct opt_row *o = &t->row[i];
            if (i && strcmp(t->row[i - 1].name, o->name) >= 0)
                fail_msg("%s: --%s is out of order", command_at(k)->verb, o->name);
            if (o->kind != OPT_NOT_YET && !o->help)
                fail_msg("%s: --%s has no help", command_at(k)->verb, o->name);
            for (size_t n = 0; n < i; n++)
                if (o->letter && t->row[n].letter == o->letter)
                    fail_msg("%s: -%c is there twice", command_at(k)->verb, o->letter);
            assert_true(o->kind != OPT_CALL || o->set);
            assert_true(o->kind != OPT_TEXT || o->arg);
        }
    }
}

static void fewer_tasks_than_nodes(void **state) {
    struct fixture f;
    int saved = dup(STDERR_FILENO);
    FILE *seen = tmpfile();
    assert_true(RUN(&f, "-N", "99", "-n", "1"));
    dup2(fileno(seen), STDERR_FILENO);
    bool ok = job_ask_settle(&f.s.ask);
    dup2(saved, STDERR_FILENO);
    close(saved);
    char text[200] = "";
    rewind(seen);
    assert_true(fread(text, 1, sizeof(text) - 1, seen) > 0);
    fclose(seen);
    assert_true(ok);
    assert_string_equal(text, "sbatch: warning: can't run 1 processes on 99 nodes, setting nnodes to 1\n");
    assert_int_equal(f.s.spec.min_nodes, 1);
    assert_int_equal(f.s.spec.max_nodes, 1);
    done(&f);
}

/* ---- together ---- */

/* What settling the words says on stderr; *out_ok its result. `at` is the first word of the later level. */
static void settle(struct fixture *f, int n, const char *const *word, int at, bool *out_ok, char text[static 400]) {
    int saved = dup(STDERR_FILENO);
    FILE *seen = tmpfile();
    *f = (struct fixture){.c = {.prog = "sbatch"}};
    f->s.c = &f->c;
    opt_init(&f->r, cmd_sbatch_options(), "sbatch", &f->s);
    assert_true(opt_scan(&f->r, at, word) && opt_apply(&f->r, 0, f->r.items.n));
    size_t first = f->r.items.n;
    f->s.level++;
    assert_true(opt_scan(&f->r, n - at, word + at) && opt_apply(&f->r, first, f->r.items.n));
    dup2(fileno(seen), STDERR_FILENO);
    *out_ok = job_ask_settle(&f->s.ask);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(seen);
    text[fread(text, 1, 399, seen)] = '\0';
    fclose(seen);
}

static void refused_together(void **state) {
    static const struct {
        const char *word[4];
        const char *want;
    } cases[] = {
        {{"--mem=1G", "--mem-per-cpu=1G"},
         "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n"},
        {{"--exclusive", "-s"}, "sbatch: fatal: --exclusive and --oversubscribe options are mutually exclusive\n"},
        {{"--gpus-per-task=1"},
         "sbatch: error: Failed to validate job spec. --gpus-per-task or --tres-per-task used without either --gpus or "
         "-n/--ntasks is not allowed.\nsbatch: error: Invalid generic resource (gres) specification\n"},
        {{"-G4", "--gpus-per-task=2", "-n3"},
         "sbatch: error: Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks differ "
         "from -n/--ntasks.\nsbatch: error: Invalid generic resource (gres) specification\n"},
        {{"--gres=gpu:h100:x"}, "sbatch: error: Invalid Trackable RESource (TRES) specification\n"},
        {{"--gres=gpu:1,gpu:h100:1"},
         "sbatch: error: Invalid GRES specification (with and without type identification)\n"},
        {{"--gres=gpu:1", "--gpus-per-node=h100:1"},
         "sbatch: error: Invalid GRES specification (with and without type identification)\n"},
        {{"-a5-1"}, "sbatch: error: Batch job submission failed: Invalid job array specification\n"},
        {{"-Lx:y"}, "sbatch: error: Batch job submission failed: Invalid license specification\n"},
        {{"--signal=R:USR1@60"},
         "sbatch: error: Batch job submission failed: Preemption is required but is disabled on this system\n"},
        {{"-wn[1-"}, "sbatch: fatal: Invalid node list specified\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        char text[400];
        bool ok;
        int n = 0;
        while (n < 4 && cases[i].word[n])
            n++;
        settle(&f, n, cases[i].word, n, &ok, text);
        assert_false(ok);
        assert_string_equal(text, cases[i].want);
        done(&f);
    }
}

static void taken_together(void **state) {
    static const char *const words[] = {
        "--mem=1G", "-a[3,1,1]%2", "-Cib,zen", "--gres=gpu:a100:1", "--gpus-per-node=a100:1", "-G2", "-Lmatlab:2,ansys",
        "--signal=B:USR1@90", "--time-min=5", "--exclusive=user", "--ntasks-per-node=3", "-N2", "--requeue",
        /* later ones */ "--mem-per-cpu=100"};
    struct fixture f;
    char text[400];
    bool ok;
    settle(&f, ARRAY_LEN(words), words, ARRAY_LEN(words) - 1, &ok, text);
    assert_string_equal(text, "");
    assert_true(ok);
    const struct job_spec *j = &f.s.spec;
    const struct job_more *m = j->more;
    assert_non_null(m);
    assert_int_equal(j->mem_node_mb, 0);
    assert_int_equal(m->mem_cpu_mb, 100);
    assert_string_equal(m->array, "3,1,1");
    assert_int_equal(m->array_max_running, 2);
    assert_int_equal(array_count(m->array_ranges, m->n_array_ranges), 2);
    assert_string_equal(m->features, "ib&zen");
    assert_int_equal(m->n_gres, 2);
    assert_int_equal(m->gres[0].count, 2);
    assert_string_equal(m->gres_text, "gpu:a100:1,gpu:a100:1");
    assert_string_equal(m->gpus_text, "2");
    assert_int_equal(m->n_licenses, 2);
    assert_int_equal(m->signal_secs, 90);
    assert_true(m->signal_batch && m->requeue);
    assert_int_equal(m->time_min_min, 5);
    assert_int_equal(m->exclusive, EXCLUSIVE_USER);
    assert_int_equal(j->n_tasks_given, 6);
    assert_int_equal(m->nodes_given, 2);
    done(&f);
    assert_true(RUN(&f, "-J", "plain", "-n1"));
    assert_true(job_ask_settle(&f.s.ask));
    assert_null(f.s.spec.more); /* ten thousands of those wait in memory */
    done(&f);
}

static void pbs_lines(void **state) {
    static const char script[] =
        "#!/bin/sh\n#PBS -N pbsname -q long\n#PBS -l walltime=1:00:00,nodes=2:ppn=3,mem=2gb\n#PBS -r n\n#SBATCH -t 5\n";
    struct fixture f = {.c = {.prog = "sbatch"}};
    const char *const *word;
    const uint32_t *line;
    uint32_t n;
    f.s.c = &f.c;
    opt_init(&f.r, cmd_sbatch_options(), "sbatch", &f.s);
    assert_int_equal(script_pbs_options(script, sizeof(script) - 1, &f.c.arena, &word, &line, &n, NULL), 0);
    assert_true(sbatch_pbs(&f.s, &f.r, n, word, line));
    assert_string_equal(f.s.spec.name, "pbsname");
    assert_string_equal(f.s.spec.partition, "long");
    assert_int_equal(f.s.spec.time_limit_min, 60);
    assert_int_equal(f.s.spec.min_nodes, 2);
    assert_int_equal(f.s.more.tasks_per_node, 3);
    assert_int_equal(f.s.mem[ASK_MEM_NODE].mb, 2048);
    assert_true(f.s.spec.no_requeue);
    done(&f);
}

/* ---- scripts ---- */

static void write_file(const char *name, const char *text) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void script_files(void **state) {
    char dir[] = "/tmp/spur-script-XXXXXX";
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    write_file("s.sh", "#!/bin/sh\ntrue\n");
    mkdir("d", 0700);
    struct cli c = {.prog = "sbatch"};
    struct sbatch s = {.c = &c};
    struct err e = {0};
    auto_buf text = {0};
    const char *const words[] = {"s.sh", "a b", "-c"};
    assert_int_equal(sbatch_script(&s, words, 3, &text, &e), 0);
    assert_int_equal(text.n, 15);
    assert_string_equal(s.spec.name, "s.sh");
    assert_int_equal(s.spec.n_args, 2);
    assert_string_equal(s.spec.args[1], "-c");
    char want[64];
    snprintf(want, sizeof(want), "%s/s.sh", dir);
    assert_string_equal(s.spec.command, want);
    buf_clear(&text);
    assert_int_equal(sbatch_script(&s, (const char *const[]){"nofile.sh"}, 1, &text, &e), E_SCRIPT);
    assert_string_equal(e.text, "Unable to open file nofile.sh");
    assert_int_equal(sbatch_script(&s, (const char *const[]){"d"}, 1, &text, &e), E_SCRIPT);
    assert_string_equal(e.text, "Batch script is empty!");
    s.wrap = "true";
    assert_int_equal(sbatch_script(&s, words, 1, &text, &e), E_USAGE);
    assert_string_equal(e.text, "Script arguments not permitted with --wrap option");
    assert_int_equal(sbatch_script(&s, NULL, 0, &text, &e), 0);
    assert_int_equal(text.n, strlen("#!/bin/sh\n# This script was created by sbatch --wrap.\n\ntrue\n"));
    assert_memory_equal(text.p, "#!/bin/sh\n# This script was created by sbatch --wrap.\n\ntrue\n", text.n);
    arena_fini(&c.arena);
    unlink("s.sh");
    rmdir("d");
    assert_int_equal(chdir("/"), 0);
    rmdir(dir);
}

static void facts(void **state) {
    char word[4][20] = {"/usr/bin/sbatch", "-D", "w", "s.sh"};
    char *argv[] = {word[0], word[1], word[2], word[3]};
    struct cli c = {.prog = "sbatch", .typed = argv, .n_typed = 4};
    struct sbatch s = {.c = &c, .propagate = "NOFILE,rlimit_core"};
    struct err e = {0};
    assert_int_equal(chdir("/tmp"), 0);
    mode_t before = umask(027);
    s.spec.work_dir = "w";
    assert_int_equal(sbatch_facts(&s, &e), 0);
    umask(before);
    assert_string_equal(s.spec.work_dir, "/tmp/w");
    assert_int_equal(s.spec.umask, 027 + 1);
    assert_string_equal(s.spec.submit_line, "sbatch -D w s.sh");
    assert_int_equal(s.spec.n_rlimits, 2);
    assert_string_equal(s.spec.rlimits[0].name, "CORE");
    s.propagate = "NONE";
    assert_int_equal(sbatch_facts(&s, &e), 0);
    assert_int_equal(s.spec.n_rlimits, 0);
    s.propagate = NULL;
    assert_int_equal(sbatch_facts(&s, &e), 0);
    assert_int_equal(s.spec.n_rlimits, 10);
    arena_fini(&c.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(oddities_of_slurms),
        cmocka_unit_test(refusals),
        cmocka_unit_test(what_slurm_lacks_we_lack),
        cmocka_unit_test(tables_are_sound),
        cmocka_unit_test(fewer_tasks_than_nodes), cmocka_unit_test(refused_together), cmocka_unit_test(taken_together),
        cmocka_unit_test(pbs_lines),
        cmocka_unit_test(script_files),
        cmocka_unit_test(facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
