/* SPDX-License-Identifier: Apache-2.0
 *
 * A descriptor that is handed to a step daemon, which is a child of this test.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "spurd/steps/conn.h"

struct daemon {
    char dir[64];
    int listen_fd;
    pid_t pid;
};

static int set_up(void **state) {
    struct daemon *d = xnew(struct daemon);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(d->dir, sizeof(d->dir), "/tmp/spur-conn-XXXXXX");
    assert_non_null(mkdtemp(d->dir));
    snprintf(a.sun_path, sizeof(a.sun_path), "%s/" STEP_SOCKET_FILE, d->dir);
    d->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(d->listen_fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(d->listen_fd, 1), 0);
    *state = d;
    return 0;
}

static int tear_down(void **state) {
    struct daemon *d = *state;
    char path[96];
    snprintf(path, sizeof(path), "%s/" STEP_SOCKET_FILE, d->dir);
    kill(d->pid, SIGKILL);
    waitpid(d->pid, NULL, 0);
    close(d->listen_fd);
    unlink(path);
    rmdir(d->dir);
    free(d);
    return 0;
}

static bool is_state(pid_t pid, char want) {
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (f)
        fclose(f);
    return state == want;
}

static void wait_state(pid_t pid, char want) {
    while (!is_state(pid, want))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Takes what comes, lets `between` happen, answers OK. */
static void serve(struct daemon *d, void (*between)(pid_t peer)) {
    pid_t test = getpid();
    d->pid = fork();
    assert_true(d->pid >= 0);
    if (d->pid)
        return;
    auto_buf ok = {0};
    struct step_empty none = {0};
    char bytes[4096];
    int fd = accept(d->listen_fd, NULL, NULL);
    if (fd < 0 || recv(fd, bytes, sizeof(bytes), 0) <= 0)
        _exit(1);
    between(test);
    step_frame_add(&ok, STEP_OK, step_empty_rec(), &none);
    (void)send(fd, ok.p, ok.n, MSG_NOSIGNAL);
    _exit(0);
}

static int pass(struct daemon *d, struct err *e) {
    struct step_stream s = {.open = (const uint8_t *)"x", .n_open = 1};
    int fd = dup(STDIN_FILENO), rc = conn_pass(d->dir, fd, &s, e);
    close(fd);
    return rc;
}

static void stop_and_go_on(pid_t test) {
    wait_state(test, 'S'); /* it waits for the answer */
    kill(test, SIGSTOP);
    wait_state(test, 'T');
    kill(test, SIGCONT);
    wait_state(test, 'S');
}

static void an_agent_that_was_stopped_waits_on(void **state) {
    struct err e = {0};
    serve(*state, stop_and_go_on);
    assert_int_equal(pass(*state, &e), 0);
}

static void leave(pid_t test) {
    _exit(0);
}

static void a_daemon_that_left_is_gone(void **state) {
    struct err e = {0};
    serve(*state, leave);
    assert_int_equal(pass(*state, &e), E_NOT_FOUND);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(an_agent_that_was_stopped_waits_on), TEST(a_daemon_that_left_is_gone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
