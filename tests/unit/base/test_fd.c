/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define BYTES (1u << 20) /* far more than a pipe holds, so neither side does it in one call */

static void on_alarm(int signo) {
}

/* The reader is slow and both are interrupted again and again: every byte comes, in its place. */
static void all_bytes_come_over_a_pipe(void **state) {
    int pipe_fd[2];
    struct sigaction sa = {.sa_handler = on_alarm}; /* without SA_RESTART */
    autofree uint8_t *sent = xmalloc(BYTES), *got = xmalloc(BYTES + 1);
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (uint8_t)(i * 31 >> 3);
    assert_int_equal(pipe(pipe_fd), 0);
    assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(pipe_fd[0]);
        ualarm(500, 500);
        _exit(fd_write(pipe_fd[1], sent, BYTES) ? 1 : 0);
    }
    close(pipe_fd[1]);
    ualarm(700, 700);
    ssize_t n = fd_read(pipe_fd[0], got, BYTES + 1);
    ualarm(0, 0);
    close(pipe_fd[0]);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(n, BYTES);
    assert_memory_equal(sent, got, BYTES);
}

static void failures_are_told(void **state) {
    int pipe_fd[2];
    uint8_t byte = 0;
    struct err e;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(pipe_fd), 0);
    close(pipe_fd[0]);
    assert_int_equal(fd_write(pipe_fd[1], &byte, 1), -1);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(fd_read(pipe_fd[1], &byte, 1), -1);
    assert_int_equal(errno, EBADF);
    close(pipe_fd[1]);
    assert_int_equal(dir_sync("/", &e), 0);
    assert_int_not_equal(dir_sync("/no/such/directory", &e), 0);
    assert_non_null(strstr(e.text, "/no/such/directory"));
}

static void words_in_any_case(void **state) {
    static const char *const words[] = {"map", "map_cpu"};
    assert_true(str_is_one_of("MAP:0,1", 3, words, 2));
    assert_true(str_is_one_of("map_CPU", 7, words, 2));
    assert_false(str_is_one_of("map_c", 5, words, 2));
    assert_false(str_is_one_of("", 0, words, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_bytes_come_over_a_pipe), cmocka_unit_test(failures_are_told),
                                       cmocka_unit_test(words_in_any_case)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
