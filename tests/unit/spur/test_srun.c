/* SPDX-License-Identifier: Apache-2.0
 *
 * Output by lines and with labels, and how the ends of tasks are told.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/srun.h"

struct place {
    int pipe[2];
    struct sink sink;
    struct srun_output *o;
};

static void open_place(struct place *p, struct srun_output_conf conf) {
    assert_int_equal(pipe2(p->pipe, O_CLOEXEC), 0);
    fcntl(p->pipe[0], F_SETFL, O_NONBLOCK);
    sink_open(&p->sink, p->pipe[1]);
    conf.sink[0] = conf.sink[1] = &p->sink;
    p->o = srun_output_new(&conf);
}

static void close_place(struct place *p) {
    srun_output_free(p->o);
    sink_fini(&p->sink);
    close(p->pipe[0]);
    close(p->pipe[1]);
}

static void say(struct place *p, uint32_t task, const char *text) {
    assert_true(srun_output_data(p->o, task, STREAM_OUT, (const uint8_t *)text, strlen(text)));
}

static void end(struct place *p, uint32_t task) {
    assert_true(srun_output_data(p->o, task, STREAM_OUT, NULL, 0));
}

static void assert_shown(struct place *p, const char *expected) {
    char got[65536];
    sink_flush(&p->sink);
    ssize_t n = read(p->pipe[0], got, sizeof(got) - 1);
    got[n > 0 ? n : 0] = 0;
    assert_string_equal(got, expected);
}

static void lines_stay_whole(void **state) {
    struct place p;
    open_place(&p, (struct srun_output_conf){.n_tasks = 2});
    say(&p, 0, "a");
    say(&p, 1, "b\nc");
    assert_shown(&p, "b\n");
    say(&p, 0, "x\ny\nz");
    assert_shown(&p, "ax\ny\n");
    end(&p, 1);
    end(&p, 0);
    assert_shown(&p, "cz");
    close_place(&p);
}

static void one_task_is_not_held_back(void **state) {
    struct place p;
    open_place(&p, (struct srun_output_conf){.n_tasks = 1});
    say(&p, 0, "prompt> ");
    assert_shown(&p, "prompt> ");
    close_place(&p);
}

static void labels_are_as_wide_as_the_largest(void **state) {
    struct place p;
    open_place(&p, (struct srun_output_conf){.n_tasks = 12, .label = true});
    say(&p, 3, "x\n\ny\n");
    say(&p, 11, "half");
    end(&p, 11);
    assert_shown(&p, " 3: x\n 3: \n 3: y\n11: half\n");
    close_place(&p);
}

/* A line that is too long to be kept is begun; when another task comes in between it is ended, and goes on labelled. */
static void a_long_line_with_a_label_is_never_mixed(void **state) {
    struct place p;
    char big[3001] = "";
    open_place(&p, (struct srun_output_conf){.n_tasks = 8192, .label = true});
    memset(big, 'b', 3000);
    say(&p, 1, big);
    say(&p, 2, "two\n");
    say(&p, 1, "end\n");
    auto_str want = {0};
    str_addf(&want, "   1: %s\n   2: two\n   1: end\n", big);
    assert_shown(&p, str_text(&want));
    close_place(&p);
}

static void unbuffered_pieces_are_lines(void **state) {
    struct place p;
    open_place(&p, (struct srun_output_conf){.n_tasks = 2, .label = true, .unbuffered = true});
    say(&p, 0, "a");
    say(&p, 0, "b");
    say(&p, 0, "\n");
    say(&p, 0, "c\n");
    assert_shown(&p, "0: a\n0: b\n0: c\n");
    close_place(&p);
}

/* What is not read waits up to a bound, then no more is taken, until there is room. */
static void a_full_place_takes_nothing(void **state) {
    struct place p;
    static uint8_t block[65536];
    open_place(&p, (struct srun_output_conf){.n_tasks = 1});
    size_t taken = 0;
    while (srun_output_data(p.o, 0, STREAM_OUT, block, sizeof(block)))
        assert_true((taken += sizeof(block)) < 1u << 20);
    for (ssize_t n; (n = read(p.pipe[0], block, sizeof(block))) > 0;) {
        taken -= (size_t)n;
        sink_flush(&p.sink);
    }
    assert_int_equal(taken, 0);
    assert_true(srun_output_data(p.o, 0, STREAM_OUT, block, sizeof(block)));
    close_place(&p);
}

static void a_reader_that_is_gone_is_noticed(void **state) {
    struct place p;
    open_place(&p, (struct srun_output_conf){.n_tasks = 1});
    close(p.pipe[0]);
    p.pipe[0] = -1;
    say(&p, 0, "x\n");
    sink_flush(&p.sink);
    assert_true(p.sink.is_broken);
    say(&p, 0, "dropped\n");
    assert_int_equal(sink_waiting(&p.sink), 0);
    close_place(&p);
}

static void the_worst_end_counts(void **state) {
    struct cli c = {.prog = "srun"};
    static const uint32_t first[] = {0, 1, 2}, second[] = {3};
    struct step_node nodes[] = {{.name = "n1", .ranks = first, .n_ranks = 3}, {.name = "n2", .ranks = second, .n_ranks = 1}};
    struct step step = {.job_id = 5, .id = 0, .nodes = nodes, .n_nodes = 2};
    struct srun_tasks t;
    srun_tasks_init(&t, &c, &step);
    t.is_silent = true;
    assert_int_equal(t.n_tasks, 4);
    srun_tasks_exited(&t, &(struct stream_exit){.task = 0, .wait_status = 3 << 8});
    srun_tasks_exited(&t, &(struct stream_exit){.task = 1, .wait_status = 3 << 8});
    srun_tasks_exited(&t, &(struct stream_exit){.task = 1, .wait_status = 9}); /* told again */
    assert_int_equal(t.exits.n, 1);
    assert_int_equal(t.exits.p[0].ranks.n, 2);
    srun_tasks_exited(&t, &(struct stream_exit){.task = 3, .wait_status = 11});
    assert_int_equal(t.exit_code, 128 + 11);
    assert_false(t.any_killed);
    srun_tasks_tell(&t, 0);
    assert_int_equal(t.exits.n, 1);
    srun_tasks_lost(&t, 0);
    assert_int_equal(t.n_over, 4);
    assert_int_equal(t.exit_code, 128 + 11);
    srun_tasks_fini(&t);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_stay_whole),
        cmocka_unit_test(one_task_is_not_held_back),
        cmocka_unit_test(labels_are_as_wide_as_the_largest),
        cmocka_unit_test(a_long_line_with_a_label_is_never_mixed),
        cmocka_unit_test(unbuffered_pieces_are_lines),
        cmocka_unit_test(a_full_place_takes_nothing),
        cmocka_unit_test(a_reader_that_is_gone_is_noticed),
        cmocka_unit_test(the_worst_end_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
