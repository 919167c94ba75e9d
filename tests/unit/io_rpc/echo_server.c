/* SPDX-License-Identifier: Apache-2.0
 *
 * The echo service as a program, for clients of other languages: echo_server [--descriptors FILE] ADDRESS…
 * Prints "port N" for each address once it listens. SIGTERM drains (5 s), SIGUSR1 turns health to NOT_SERVING.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "echo.h"
#include "io/loop/loop.h"

struct program {
    struct loop *l;
    struct rpc_server *s;
};

static void stop(void *arg) {
    loop_stop(arg);
}

static void on_term(void *arg, int signo) {
    struct program *p = arg;
    rpc_server_drain(p->s, 5000, stop, p->l);
}

static void on_usr1(void *arg, int signo) {
    rpc_server_set_serving(((struct program *)arg)->s, false);
}

static void read_file(const char *path, struct buf *out) {
    FILE *f = fopen(path, "rb");
    size_t n;
    if (!f) {
        perror(path);
        exit(1);
    }
    while ((n = fread(buf_reserve(out, 65536), 1, 65536, f)) > 0)
        out->n += n;
    fclose(f);
}

int main(int argc, char **argv) {
    struct program p = {.l = loop_new("echo")};
    struct echo echo = {.l = p.l};
    auto_buf descriptors = {0};
    int at = 1;
    if (argc > 2 && strcmp(argv[1], "--descriptors") == 0) {
        read_file(argv[2], &descriptors);
        at = 3;
    }
    struct rpc_server_conf conf = {.ctx = &echo, .descriptors = descriptors.p, .n_descriptors = descriptors.n};
    conf.methods = echo_methods(&conf.n_methods);
    p.s = rpc_server_new(p.l, &conf);
    for (; at < argc; at++) {
        struct err e;
        uint16_t port = 0;
        if (rpc_server_listen(p.s, argv[at], &port, &e)) {
            fprintf(stderr, "%s\n", e.text);
            return 1;
        }
        printf("port %u\n", port);
    }
    fflush(stdout);
    loop_on_signal(p.l, SIGTERM, on_term, &p);
    loop_on_signal(p.l, SIGUSR1, on_usr1, &p);
    loop_run(p.l);
    rpc_server_free(p.s);
    loop_free(p.l);
    return 0;
}
