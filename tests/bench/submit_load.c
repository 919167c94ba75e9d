/* SPDX-License-Identifier: Apache-2.0
 *
 * Durable submits a second over one connection:  submit_load TARGET COUNT IN_FLIGHT [unique]
 *
 * TARGET is as a command takes it ("unix:/path", "host:port"). Every submit is a held job with a small script and this
 * process's own environment; with "unique" each has an environment and a script that no other has, as submits of
 * different people do. Prints "COUNT SECONDS RATE P50 P99" when the last one is answered, the last two in milliseconds
 * from a submit to its answer; an answer that is no id ends it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"
#include "spur/spur.h"

extern char **environ;

struct load {
    struct rpc_channel *ch;
    struct buf env;
    const char *dir;
    uint64_t count, sent, answered;
    bool is_unique;
    VEC(double) took_ms;
};

struct one { /* submit on its way */
    struct load *load;
    double began;
};

static double now_secs(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void send_next(struct load *l);

static void answered(void *arg, int code, const struct err *why, const void *message, size_t n) {
    autofree struct one *one = arg;
    struct load *l = one->load;
    auto_arena arena = {0};
    struct submit_reply reply;
    struct err e;
    if (code) {
        fprintf(stderr, "submit_load: submit %llu failed: %s\n", (unsigned long long)l->answered + 1, why->text);
        exit(1);
    }
    if (rec_decode(submit_reply_rec(), message, n, &arena, &reply, &e) || !reply.job_id) {
        fprintf(stderr, "submit_load: an answer without an id\n");
        exit(1);
    }
    l->answered++;
    vec_push(&l->took_ms, (now_secs() - one->began) * 1e3);
    send_next(l);
}

static void send_next(struct load *l) {
    if (l->sent == l->count)
        return;
    l->sent++;
    auto_str script = {0}, name = {0};
    auto_buf env = {0};
    buf_add(&env, l->env.p, l->env.n);
    str_add(&script, "#!/bin/sh\nexec true\n");
    str_addf(&name, "load-%llu", (unsigned long long)l->sent);
    if (l->is_unique) {
        str_addf(&script, "# %s\n", str_text(&name));
        buf_add(&env, "LOAD_ID=", strlen("LOAD_ID="));
        buf_add(&env, str_text(&name), strlen(str_text(&name)) + 1);
    }
    struct job_spec spec = {.name = str_text(&name), .hold = true, .work_dir = l->dir, .umask = 022 + 1,
                            .submit_line = "submit_load", .submit_host = "localhost"};
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    struct submit_request request = {.token = token, .n_token = sizeof(token), .spec = &spec, .env = env.p, .n_env = (uint32_t)env.n,
                                     .script = (const uint8_t *)str_text(&script), .n_script = (uint32_t)strlen(str_text(&script))};
    struct one *one = xnew(struct one);
    *one = (struct one){l, now_secs()};
    auto_buf message = {0};
    rec_encode(submit_request_rec(), &request, &message);
    rpc_send(l->ch, "/spur.v1.Controller/Submit", NULL, message.p, message.n, 60000, answered, one);
}

static bool all_answered(void *arg) {
    const struct load *l = arg;
    return l->answered == l->count;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted ones. */
static double quantile(const struct load *l, double q) {
    return l->took_ms.p[(size_t)((double)(l->took_ms.n - 1) * q)];
}

int main(int argc, char **argv) {
    uint64_t count = 0, in_flight = 0;
    if (argc < 4 || str_to_u64(argv[2], 10000000, &count) || str_to_u64(argv[3], 10000, &in_flight) || !count || !in_flight) {
        fprintf(stderr, "Usage: submit_load TARGET COUNT IN_FLIGHT [unique]\n");
        return 2;
    }
    char dir[4096];
    if (!getcwd(dir, sizeof(dir)))
        return 1;
    struct load l = {.count = count, .dir = dir, .is_unique = argc > 4 && str_eq(argv[4], "unique")};
    for (char **v = environ; *v; v++)
        buf_add(&l.env, *v, strlen(*v) + 1);
    struct loop *loop = loop_new("submit_load");
    struct err e;
    struct rpc_channel_conf conf = {.targets = argv[1]};
    if (rpc_channel_new(loop, &conf, &l.ch, &e)) {
        fprintf(stderr, "submit_load: %s\n", e.text);
        return 1;
    }
    double began = now_secs();
    for (uint64_t i = 0; i < in_flight; i++)
        send_next(&l);
    loop_run_until(loop, all_answered, &l, 3600000);
    double took = now_secs() - began;
    qsort(l.took_ms.p, l.took_ms.n, sizeof(double), by_size);
    printf("%llu %.3f %.1f %.3f %.3f\n", (unsigned long long)count, took, (double)count / took, quantile(&l, 0.5),
           quantile(&l, 0.99));
    vec_fini(&l.took_ms);
    rpc_channel_free(l.ch);
    loop_free(loop);
    buf_fini(&l.env);
    return 0;
}
