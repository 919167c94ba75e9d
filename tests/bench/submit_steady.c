/* SPDX-License-Identifier: Apache-2.0
 *
 * Submits one after another through libspur until its input is closed:  submit_steady TARGETS NAME [TIMEOUT_MS]
 *
 * As a command does it: a call that fails on its way is sent again with the same token, to another controller. Each answer is a
 * line "BEGAN ENDED ID NAME", the first two seconds of CLOCK_MONOTONIC; a submit that failed in the end has id 0.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "spur/spur.h"

static double now_secs(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool is_over(void) {
    struct pollfd in = {.fd = 0, .events = POLLIN};
    char c;
    return poll(&in, 1, 0) > 0 && read(0, &c, 1) <= 0;
}

static void submit(struct spur_client *client, const char *name, const char *dir) {
    static const char script[] = "#!/bin/sh\nexec true\n";
    auto_arena a = {0};
    struct err e = {0};
    struct submit_reply reply = {0};
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    struct job_spec spec = {.name = name, .hold = true, .work_dir = dir, .umask = 022 + 1, .submit_line = "submit_steady", .submit_host = "localhost"};
    struct submit_request request = {.token = token, .n_token = sizeof(token), .spec = &spec, .script = (const uint8_t *)script,
                                     .n_script = sizeof(script) - 1};
    double began = now_secs();
    int rc = spur_call(client, WIRE_Controller_Submit, &request, &a, &reply, &e);
    printf("%.6f %.6f %u %s\n", began, now_secs(), rc ? 0 : reply.job_id, name);
    fflush(stdout);
    if (rc)
        fprintf(stderr, "submit_steady: %s: %s\n", name, e.text);
}

int main(int argc, char **argv) {
    struct spur_client *client = NULL;
    struct err e = {0};
    char dir[4096];
    uint64_t timeout_ms = 30000;
    if (argc < 3 || (argc > 3 && str_to_u64(argv[3], 600000, &timeout_ms)) || !getcwd(dir, sizeof(dir))) {
        fprintf(stderr, "Usage: submit_steady TARGETS NAME [TIMEOUT_MS]\n");
        return 2;
    }
    struct spur_options options = {.controllers = argv[1], .timeout_ms = timeout_ms};
    if (spur_open(&options, &client, &e)) {
        fprintf(stderr, "submit_steady: %s\n", e.text);
        return 1;
    }
    for (uint64_t n = 1; !is_over(); n++) {
        autofree char *name = xasprintf("%s-%llu", argv[2], (unsigned long long)n);
        submit(client, name, dir);
    }
    spur_close(client);
    return 0;
}
