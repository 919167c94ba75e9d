/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls against a server that answers by a list of moods: what is repeated, with what, and what is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "io/loop/loop.h"
#include "io/rpc/rpc.h"
#include "spur/spur.h"

enum mood { ANSWER, BUSY, STOPPING, NOT_LEADER, REFUSE, FULL, GARBAGE, HANG_UP };

struct server {
    struct loop *loop;
    struct rpc_server *rpc;
    pthread_t thread;
    const enum mood *moods;
    size_t n_moods, n_calls;
    struct rpc_call *hung; /* the call whose connection is about to break */
    VEC(char *) seen; /* the token of each call, in hex */
    char version[32], authorization[64], claim[64];
    char dir[40], address[80];
};

static void refuse(struct rpc_call *call, int code, const char *text) {
    struct err e = {0};
    err_set(&e, code, "%s", text);
    rpc_fail(call, &e);
}

static void note(struct server *s, struct rpc_call *call, const struct submit_request *r) {
    char *hex = xcalloc(1, 2 * TOKEN_SIZE + 1);
    for (uint32_t i = 0; i < r->n_token && i < TOKEN_SIZE; i++)
        snprintf(hex + 2 * i, 3, "%02x", r->token[i]);
    vec_push(&s->seen, hex);
    const char *const names[] = {"spur-version", "authorization", "spur-user"};
    char *const to[] = {s->version, s->authorization, s->claim};
    const size_t room[] = {sizeof(s->version), sizeof(s->authorization), sizeof(s->claim)};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = rpc_metadata(call, names[i]);
        snprintf(to[i], room[i], "%s", value ? value : "");
    }
}

static void listen_again(struct server *s);

static void on_submit(void *ctx, struct rpc_call *call, const void *message, size_t n) {
    struct server *s = ctx;
    auto_arena a = {0};
    struct submit_request r = {0};
    assert_int_equal(rec_decode(submit_request_rec(), message, n, &a, &r, NULL), 0);
    note(s, call, &r);
    enum mood mood = s->n_calls < s->n_moods ? s->moods[s->n_calls] : ANSWER;
    s->n_calls++;
    auto_buf bytes = {0};
    struct submit_reply reply = {.job_id = 7};
    switch (mood) {
    case ANSWER:
        rec_encode(submit_reply_rec(), &reply, &bytes);
        rpc_reply(call, bytes.p, bytes.n);
        break;
    case BUSY:
        rpc_trailer(call, "retry-after-ms", "30");
        refuse(call, E_BUSY, "later");
        break;
    case STOPPING:
        refuse(call, E_STOPPING, "stopping");
        break;
    case NOT_LEADER:
        refuse(call, E_NOT_LEADER, "not me");
        break;
    case REFUSE:
        refuse(call, E_PARTITION, "no such partition");
        break;
    case FULL:
        refuse(call, E_FULL, "disk full");
        break;
    case GARBAGE:
        rpc_reply(call, "\xff\xff\xff", 3);
        break;
    case HANG_UP:
        s->hung = call;
        loop_post(s->loop, (void (*)(void *))listen_again, s);
        break;
    }
}

static void listen_now(struct server *s) {
    static struct rpc_method methods[1];
    methods[0] = (struct rpc_method){.path = wire_method(WIRE_Controller_Submit)->path, .start = on_submit};
    struct rpc_server_conf conf = {.methods = methods, .n_methods = 1, .ctx = s};
    struct err e = {0};
    s->rpc = rpc_server_new(s->loop, &conf);
    if (rpc_server_listen(s->rpc, s->address, NULL, &e))
        fail_msg("%s", e.text);
}

/* The connection breaks with the call unanswered, and the server is there again. */
static void listen_again(struct server *s) {
    rpc_server_free(s->rpc);
    refuse(s->hung, E_CANCELLED, "nobody hears it"); /* the handle's end */
    listen_now(s);
}

static void *serve(void *arg) {
    loop_run(((struct server *)arg)->loop);
    return NULL;
}

static void start(struct server *s, const enum mood *moods, size_t n) {
    *s = (struct server){.moods = moods, .n_moods = n};
    snprintf(s->dir, sizeof(s->dir), "/tmp/spur-client-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->address, sizeof(s->address), "unix:%s/sock", s->dir);
    s->loop = loop_new("server");
    listen_now(s);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s) {
    loop_stop(s->loop);
    pthread_join(s->thread, NULL);
    rpc_server_free(s->rpc);
    loop_free(s->loop);
    unlink(s->address + 5);
    rmdir(s->dir);
    for (size_t i = 0; i < s->seen.n; i++)
        free(s->seen.p[i]);
    vec_fini(&s->seen);
}

/* One submit; the code, and the server as it was left. */
static int submit(struct server *s, const char *controllers, uint32_t *out_id, struct err *e) {
    struct spur_client *c = NULL;
    auto_arena a = {0};
    uint8_t token[TOKEN_SIZE];
    spur_token(token);
    struct submit_request request = {.token = token, .n_token = sizeof(token)};
    struct submit_reply reply = {0};
    const struct spur_options options = {.controllers = controllers ? controllers : s->address, .timeout_ms = 20000};
    assert_int_equal(spur_open(&options, &c, e), 0);
    int rc = spur_call(c, WIRE_Controller_Submit, &request, &a, &reply, e);
    *out_id = reply.job_id;
    spur_close(c);
    return rc;
}

static void repeats(const enum mood *moods, size_t n) {
    struct server s;
    struct err e = {0};
    uint32_t id;
    start(&s, moods, n);
    int rc = submit(&s, NULL, &id, &e);
    if (rc)
        fail_msg("%s: %s", err_name(rc), e.text);
    assert_int_equal(id, 7);
    assert_int_equal(s.n_calls, n + 1);
    for (size_t i = 1; i < s.seen.n; i++)
        assert_string_equal(s.seen.p[i], s.seen.p[0]);
    assert_int_equal(strlen(s.seen.p[0]), 2 * TOKEN_SIZE);
    assert_string_equal(s.version, SPUR_VERSION);
    assert_string_equal(s.claim, ""); /* the kernel says it */
    stop(&s);
}

static void what_may_do_better_is_repeated_with_the_same_token(void **state) {
    static const enum mood moods[] = {BUSY, STOPPING, NOT_LEADER, BUSY};
    repeats(moods, ARRAY_LEN(moods));
}

static void a_connection_that_breaks_under_way_is_no_failure(void **state) {
    static const enum mood moods[] = {HANG_UP, HANG_UP};
    repeats(moods, ARRAY_LEN(moods));
}

static void once(enum mood mood, int want, const char *text) {
    struct server s;
    struct err e = {0};
    uint32_t id;
    start(&s, &mood, 1);
    assert_int_equal(submit(&s, NULL, &id, &e), want);
    assert_int_equal(s.n_calls, 1);
    assert_non_null(strstr(e.text, text));
    stop(&s);
}

static void what_is_refused_is_not_repeated(void **state) {
    once(REFUSE, E_PARTITION, "no such partition");
    once(FULL, E_FULL, "disk full");
    once(GARBAGE, E_PROTOCOL, "can't be read");
}

static void nobody_there(void **state) {
    struct err e = {0};
    uint32_t id;
    assert_int_equal(submit(NULL, "unix:/nonexistent/a,unix:/nonexistent/b", &id, &e), E_UNREACHABLE);
    assert_string_equal(e.text, "Unable to contact slurm controller (connect failure)");
}

static void the_next_address_is_tried(void **state) {
    struct server s;
    struct err e = {0};
    uint32_t id;
    start(&s, NULL, 0);
    autofree char *list = xasprintf("unix:/nonexistent/a,%s", s.address);
    assert_int_equal(submit(&s, list, &id, &e), 0);
    assert_int_equal(id, 7);
    stop(&s);
}

/* A listener whose process never wakes up: the kernel takes connections, and nobody answers. */
static int hang(char *dir, char *out, size_t room) {
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    assert_non_null(mkdtemp(dir));
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/sock", dir);
    snprintf(out, room, "unix:%s", sa.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void one_that_hangs_is_left_for_the_next(void **state) {
    struct server s;
    struct err e = {0};
    uint32_t id;
    char dir[] = "/tmp/spur-hang-XXXXXX", address[80];
    int fd = hang(dir, address, sizeof(address));
    start(&s, NULL, 0);
    autofree char *list = xasprintf("%s,%s", address, s.address);
    int64_t began = now_ms();
    assert_int_equal(submit(&s, list, &id, &e), 0);
    assert_int_equal(id, 7);
    assert_in_range(now_ms() - began, 400, 10000); /* not the 30 s of a call; the moment itself depends on the machine */
    close(fd);
    unlink(address + 5);
    rmdir(dir);
    stop(&s);
}

/* Where all are slow the bound grows, so that one is heard in the end. */
static void all_that_hang_are_no_answer(void **state) {
    struct err e = {0};
    char dir[] = "/tmp/spur-hang-XXXXXX", address[80];
    int fd = hang(dir, address, sizeof(address));
    autofree char *list = xasprintf("%s,%s", address, address);
    struct spur_client *c = NULL;
    auto_arena a = {0};
    struct submit_request request = {0};
    struct submit_reply reply = {0};
    assert_int_equal(spur_open(&(struct spur_options){.controllers = list, .timeout_ms = 3000}, &c, &e), 0);
    int64_t began = now_ms();
    int rc = spur_call(c, WIRE_Controller_Submit, &request, &a, &reply, &e);
    assert_true(rc == E_UNREACHABLE || rc == E_DEADLINE);
    assert_in_range(now_ms() - began, 1000, 20000);
    spur_close(c);
    close(fd);
    unlink(address + 5);
    rmdir(dir);
}

/* One that leads no cluster, and knows no leader; and one that goes. The other has the answer, and is asked again first. */
static void another_is_asked_where_one_is_not_the_leader(void **state) {
    static const enum mood moods[] = {NOT_LEADER, STOPPING, NOT_LEADER, NOT_LEADER};
    struct server other, s;
    struct err e = {0};
    uint32_t id;
    start(&other, moods, ARRAY_LEN(moods));
    start(&s, NULL, 0);
    autofree char *list = xasprintf("%s,%s", other.address, s.address);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(submit(&s, list, &id, &e), 0);
    assert_int_equal(other.n_calls, 2);
    assert_int_equal(s.n_calls, 2);
    assert_string_equal(other.seen.p[0], s.seen.p[0]);
    struct spur_client *c = NULL;
    auto_arena a = {0};
    uint8_t token[TOKEN_SIZE] = {0};
    struct submit_request request = {.token = token, .n_token = sizeof(token)};
    struct submit_reply reply = {0};
    assert_int_equal(spur_open(&(struct spur_options){.controllers = list}, &c, &e), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(spur_call(c, WIRE_Controller_Submit, &request, &a, &reply, &e), 0);
    assert_int_equal(other.n_calls, 3); /* only the first one went there */
    assert_int_equal(s.n_calls, 5);
    spur_close(c);
    stop(&other);
    stop(&s);
}

static void tokens_go_along(void **state) {
    struct server s;
    struct err e = {0};
    uint32_t id;
    start(&s, NULL, 0);
    setenv("SLURM_JWT", "old", 1);
    setenv("SPUR_JWT", "abc.def.ghi", 1);
    autofree char *list = xasprintf("%s,127.0.0.1:1", s.address); /* one by TCP: who we are is claimed as well */
    assert_int_equal(submit(&s, list, &id, &e), 0);
    assert_string_equal(s.authorization, "Bearer abc.def.ghi");
    assert_true(*s.claim);
    setenv("SPUR_JWT", "a\r\nspur-user: root", 1);
    struct spur_client *c = NULL;
    assert_int_equal(spur_open(&(struct spur_options){.controllers = s.address}, &c, &e), E_BAD_PROOF);
    assert_null(c);
    assert_null(strstr(e.text, "root"));
    unsetenv("SPUR_JWT");
    unsetenv("SLURM_JWT");
    stop(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_do_better_is_repeated_with_the_same_token),
        cmocka_unit_test(a_connection_that_breaks_under_way_is_no_failure),
        cmocka_unit_test(what_is_refused_is_not_repeated),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(the_next_address_is_tried),
        cmocka_unit_test(one_that_hangs_is_left_for_the_next),
        cmocka_unit_test(all_that_hang_are_no_answer),
        cmocka_unit_test(another_is_asked_where_one_is_not_the_leader),
        cmocka_unit_test(tokens_go_along),
    };
    unsetenv("SPUR_JWT");
    unsetenv("SLURM_JWT");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
