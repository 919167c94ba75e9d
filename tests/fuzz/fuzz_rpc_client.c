/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever a server may send: a channel connects to a socket of ours, from which the input comes, cut into pieces, and
 * each call of the channel ends exactly once. The first byte says how: bit 0 puts settings in front, bit 1 also good
 * headers of an answer on stream 1, the rest the size of the pieces.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct loop *l;

static int listens;
static struct sockaddr_un name = {.sun_family = AF_UNIX};

struct world {
    int fd; /* the server's end; -1: not yet, or closed */
    unsigned ended, messages;
};

static void remove_socket(void) {
    unlink(name.sun_path);
}

static void begin(void) {
    l = loop_new("fuzz");
    snprintf(name.sun_path, sizeof(name.sun_path), "/tmp/fuzz-rpc-client-%d", getpid());
    listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(name.sun_path);
    must(listens >= 0 && !bind(listens, (struct sockaddr *)&name, sizeof(name)) && !listen(listens, 8));
    atexit(remove_socket);
}

static void done(void *arg, int code, const struct err *why, const void *message, size_t n) {
    struct world *w = arg;
    must(code <= 0 && (code == 0 || (why && why->code == code && *why->text)));
    w->ended++;
}

static bool message(void *arg, const void *p, size_t n) {
    ((struct world *)arg)->messages++;
    return true;
}

static bool second_time(void *arg) {
    return (*(int *)arg)++ > 0;
}

static void turn(void) {
    int asked = 0;
    loop_run_until(l, second_time, &asked, 1);
}

static void take(struct world *w) {
    char bytes[4096];
    while (w->fd >= 0 && recv(w->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
}

static void put(struct world *w, const void *p, size_t n, size_t piece) {
    for (const uint8_t *at = p; n && w->fd >= 0;) {
        ssize_t sent = send(w->fd, at, MIN(n, piece), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return;
        turn();
        take(w);
        if (sent > 0)
            at += sent, n -= (size_t)sent;
    }
}

static const uint8_t settings[] = "\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0";

/* HEADERS of stream 1: :status 200 (indexed), content-type application/grpc; END_HEADERS. */
static const uint8_t headers[] = "\0\0\x21\1\4\0\0\0\1\x88\0\x0c" "content-type" "\x10" "application/grpc";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!l)
        begin();
    if (n < 1)
        return 0;
    struct world w = {.fd = -1};
    char address[sizeof(name.sun_path) + 8];
    snprintf(address, sizeof(address), "unix:%s", name.sun_path);
    struct rpc_channel_conf conf = {.targets = address, .max_message = 1 << 16, .connect_ms = 1000};
    struct rpc_channel *ch;
    struct err e = {0};
    must(rpc_channel_new(l, &conf, &ch, &e) == 0);
    rpc_send(ch, "/spur.test.Echo/Chat", NULL, "x", 1, 2000, done, &w);
    rpc_stream(ch, "/spur.test.Echo/Numbers", NULL, "x", 1, 2000, message, done, &w);
    for (int i = 0; i < 1000 && w.fd < 0; i++) {
        turn();
        w.fd = accept4(listens, NULL, NULL, SOCK_CLOEXEC);
    }
    must(w.fd >= 0);
    take(&w);
    if (data[0] & 1)
        put(&w, settings, sizeof(settings) - 1, 65536);
    if ((data[0] & 3) == 3)
        put(&w, headers, sizeof(headers) - 1, 65536);
    put(&w, data + 1, n - 1, data[0] >> 2 ? data[0] >> 2 : 65536);
    turn();
    take(&w);
    close(w.fd);
    turn();
    rpc_channel_free(ch);
    for (int again; (again = accept4(listens, NULL, NULL, SOCK_CLOEXEC)) >= 0;) /* it tried once more */
        close(again);
    must(w.ended == 2);
    turn();
    return 0;
}
