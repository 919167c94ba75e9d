/* SPDX-License-Identifier: Apache-2.0
 *
 * How many unary calls a second io/rpc makes: rpc_echo [-c connections] [-f in flight, each] [-s bytes] [-t seconds]
 * [-a address]. Without an address the server runs on a thread of its own in this process, on a free port. Prints one
 * line: calls/s, and the latency of a call in microseconds (median, 99th percentile, longest).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "echo.h"
#include "io/loop/loop.h"

enum { MAX_CONNECTIONS = 64, SAMPLES = 1 << 20 };

struct bench {
    struct loop *l;
    struct rpc_channel *ch[MAX_CONNECTIONS];
    uint64_t connections, in_flight, size, seconds;
    const char *address;
    uint8_t *message;
    uint64_t calls, failed, open;
    bool stop;
    uint32_t *sample_us;
    uint64_t n_samples;
};

struct caller {
    struct bench *b;
    struct rpc_channel *ch;
    uint64_t from_ns;
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void on_done(void *arg, int code, const struct err *why, const void *message, size_t n);

static void send_one(struct caller *c) {
    c->from_ns = now_ns();
    c->b->open++;
    rpc_send(c->ch, "/spur.test.Echo/Unary", NULL, c->b->message, c->b->size, 0, on_done, c);
}

static void on_done(void *arg, int code, const struct err *why, const void *message, size_t n) {
    struct caller *c = arg;
    struct bench *b = c->b;
    b->open--;
    b->calls++;
    b->failed += code != 0 || n != b->size;
    b->sample_us[b->n_samples++ % SAMPLES] = (uint32_t)((now_ns() - c->from_ns) / 1000);
    if (!b->stop)
        send_one(c);
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void set_stop(void *arg) {
    ((struct bench *)arg)->stop = true;
}

static bool is_stopped(void *arg) {
    return ((struct bench *)arg)->stop && ((struct bench *)arg)->open == 0;
}

static void run(struct bench *b) {
    struct caller *callers = xcalloc(b->connections * b->in_flight, sizeof(*callers));
    for (uint64_t i = 0; i < b->connections; i++) {
        struct rpc_channel_conf conf = {.targets = b->address};
        struct err e;
        if (rpc_channel_new(b->l, &conf, &b->ch[i], &e)) {
            fprintf(stderr, "%s\n", e.text);
            exit(1);
        }
    }
    uint64_t from = now_ns();
    for (uint64_t i = 0; i < b->connections * b->in_flight; i++) {
        callers[i] = (struct caller){b, b->ch[i % b->connections], 0};
        send_one(&callers[i]);
    }
    loop_timer_start(b->l, b->seconds * 1000, set_stop, b);
    loop_run_until(b->l, is_stopped, b, b->seconds * 1000 + 30000);
    double s = (double)(now_ns() - from) / 1e9;
    uint64_t n = MIN(b->n_samples, (uint64_t)SAMPLES);
    qsort(b->sample_us, n, sizeof(*b->sample_us), compare);
    printf("%.0f calls/s, %llu failed; latency us: median %u, p99 %u, max %u; client's longest gap %llu us\n",
           (double)b->calls / s, (unsigned long long)b->failed, b->sample_us[n / 2], b->sample_us[n * 99 / 100],
           b->sample_us[n - 1], (unsigned long long)loop_stats(b->l).gap_max_us);
    for (uint64_t i = 0; i < b->connections; i++)
        rpc_channel_free(b->ch[i]);
    free(callers);
}

struct server {
    struct loop *l;
    pthread_t thread;
    uint16_t port;
};

static void *serve(void *arg) {
    loop_run(((struct server *)arg)->l);
    return NULL;
}

static uint64_t option_u64(const char *text) {
    uint64_t v;
    if (str_to_u64(text, UINT32_MAX, &v)) {
        fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return v;
}

static void options(struct bench *b, int argc, char **argv) {
    for (int c; (c = getopt(argc, argv, "c:f:s:t:a:")) != -1;) {
        switch (c) {
        case 'c': b->connections = option_u64(optarg); break;
        case 'f': b->in_flight = option_u64(optarg); break;
        case 's': b->size = option_u64(optarg); break;
        case 't': b->seconds = option_u64(optarg); break;
        case 'a': b->address = optarg; break;
        default: exit(2);
        }
    }
    if (b->connections < 1 || b->connections > MAX_CONNECTIONS || b->in_flight < 1)
        exit(2);
}

int main(int argc, char **argv) {
    struct bench b = {.connections = 1, .in_flight = 64, .size = 64, .seconds = 3};
    options(&b, argc, argv);
    b.message = xcalloc(1, b.size + 1);
    b.sample_us = xcalloc(SAMPLES, sizeof(*b.sample_us));
    struct server s = {.l = loop_new("server")};
    struct echo echo = {.l = s.l};
    struct rpc_server_conf conf = {.ctx = &echo};
    conf.methods = echo_methods(&conf.n_methods);
    struct rpc_server *server = rpc_server_new(s.l, &conf);
    char address[32];
    if (!b.address) {
        struct err e;
        if (rpc_server_listen(server, "127.0.0.1:0", &s.port, &e)) {
            fprintf(stderr, "%s\n", e.text);
            return 1;
        }
        snprintf(address, sizeof(address), "127.0.0.1:%u", s.port);
        b.address = address;
    }
    if (pthread_create(&s.thread, NULL, serve, &s))
        return 1;
    b.l = loop_new("client");
    run(&b);
    loop_free(b.l);
    loop_stop(s.l);
    pthread_join(s.thread, NULL);
    rpc_server_free(server);
    loop_free(s.l);
    free(b.message);
    free(b.sample_us);
    return b.failed != 0;
}
