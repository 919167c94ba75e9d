/* SPDX-License-Identifier: Apache-2.0
 *
 * The byte that tells TLS from plain, and a client that expects TLS, fed by a stranger: whatever comes, the hand-shake ends in a refusal.
 * The first byte says how the input is cut into writes.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/loop/loop.h"
#include "io/tls/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct outcome {
    bool is_done;
    int fd;
};

static void on_wrapped(void *arg, int fd, const struct err *why) {
    struct outcome *o = arg;
    o->is_done = true;
    o->fd = fd;
    must(fd < 0 && why->code < 0 && *why->text); /* nobody says what we believe */
}

static bool is_done(void *arg) {
    return ((struct outcome *)arg)->is_done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static struct tls *t;
    static struct loop *l;
    struct err e = {0};
    struct tls_conf conf = {.mode = TLS_REQUIRE};
    int pair[2];
    if (!t) {
        l = loop_new("fuzz");
        must(tls_new(&conf, &t, &e) == 0);
    }
    if (n < 1)
        return 0;
    (void)tls_is_hello(data + 1, n - 1);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    struct outcome o = {0};
    tls_connect(t, l, pair[0], "fuzz.example", on_wrapped, &o);
    for (size_t at = 1, step = (size_t)data[0] + 1; at < n; at += step) {
        (void)!write(pair[1], data + at, MIN(step, n - at));
        if (step > 64)
            loop_run_until(l, is_done, &o, 0);
    }
    shutdown(pair[1], SHUT_WR);
    must(loop_run_until(l, is_done, &o, 5000));
    close(pair[1]);
    return 0;
}
