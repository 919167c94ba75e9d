/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever a client may send: a server on a unix socket pair's end gets the input, cut into pieces, and must neither
 * crash, hang nor keep a call. The first byte says how: bit 0 puts HTTP/2's preface and settings in front, bit 1 also a
 * good call's headers, the rest the size of the pieces.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "echo.h"
#include "io/loop/loop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct loop *l;
static struct echo echo;
static struct rpc_server *server;
static struct sockaddr_un name = {.sun_family = AF_UNIX};

/* A descriptor set of one file "a" with one message "b". */
static const uint8_t descriptors[] = {0x0a, 0x08, 0x0a, 0x01, 'a', 0x22, 0x03, 0x0a, 0x01, 'b'};

static void remove_socket(void) {
    unlink(name.sun_path);
}

static void begin(void) {
    char address[sizeof(name.sun_path) + 8];
    struct rpc_server_conf conf = {.ctx = &echo, .descriptors = descriptors, .n_descriptors = sizeof(descriptors)};
    conf.methods = echo_methods(&conf.n_methods);
    conf.max_message = 1 << 16;
    conf.max_streams = 16;
    l = loop_new("fuzz");
    echo.l = l;
    server = rpc_server_new(l, &conf);
    snprintf(name.sun_path, sizeof(name.sun_path), "/tmp/fuzz-rpc-%d", getpid());
    snprintf(address, sizeof(address), "unix:%s", name.sun_path);
    struct err e;
    if (rpc_server_listen(server, address, NULL, &e)) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
    atexit(remove_socket);
}

static bool second_time(void *arg) {
    return (*(int *)arg)++ > 0;
}

static void turn(void) {
    int asked = 0;
    loop_run_until(l, second_time, &asked, 1);
}

static void take_answers(int fd) {
    char bytes[4096];
    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
}

static void put(int fd, const void *p, size_t n, size_t piece) {
    for (const uint8_t *at = p; n;) {
        ssize_t done = send(fd, at, MIN(n, piece), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0 && errno != EAGAIN)
            return;
        turn();
        take_answers(fd);
        if (done > 0)
            at += done, n -= (size_t)done;
    }
}

static const uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0";

/* HEADERS of POST /spur.test.Echo/Chat, stream 1, without its end. */
static size_t call_headers(uint8_t out[256]) {
    static const char *const pairs[] = {":method", "POST", ":scheme", "http", ":authority", "x", ":path",
                                        "/spur.test.Echo/Chat", "content-type", "application/grpc"};
    size_t n = 9;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        if (i % 2 == 0)
            out[n++] = 0;
        out[n++] = (uint8_t)strlen(pairs[i]);
        memcpy(out + n, pairs[i], strlen(pairs[i]));
        n += strlen(pairs[i]);
    }
    const uint8_t head[9] = {0, 0, (uint8_t)(n - 9), 1, 4, 0, 0, 0, 1};
    memcpy(out, head, sizeof(head));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (!l)
        begin();
    if (n < 1)
        return 0;
    uint8_t how = data[0], headers[256];
    size_t piece = how >> 2 ? how >> 2 : 65536;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
        abort();
    if (how & 1)
        put(fd, preface, sizeof(preface) - 1, 65536);
    if ((how & 3) == 3)
        put(fd, headers, call_headers(headers), 65536);
    put(fd, data + 1, n - 1, piece);
    turn();
    take_answers(fd);
    close(fd);
    for (int i = 0; i < 10000 && rpc_server_stats(server).connections_now; i++)
        turn();
    struct rpc_server_stats s = rpc_server_stats(server);
    if (s.connections_now || s.calls_now || echo.started != echo.ended) {
        fprintf(stderr, "left over: %llu connections, %llu calls\n", (unsigned long long)s.connections_now,
                (unsigned long long)s.calls_now);
        abort();
    }
    return 0;
}
