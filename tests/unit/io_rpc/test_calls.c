/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls between our client and our server.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rig.h"

#define UNARY "/spur.test.Echo/Unary"
#define NUMBERS "/spur.test.Echo/Numbers"

static void test_unary(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    call_wait(r, NULL, "hello", 5, &o);
    assert_int_equal(o.code, 0);
    assert_int_equal(o.message.n, 5);
    assert_memory_equal(o.message.p, "hello", 5);
    assert_string_equal(rpc_channel_address(r->ch), r->address);
    assert_true(str_starts(r->echo.last_peer.address, "127.0.0.1:"));
    assert_false(r->echo.last_peer.is_local);
    outcome_fini(&o);
}

static void test_empty_messages(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    call_wait(r, NULL, NULL, 0, &o);
    assert_int_equal(o.code, 0);
    assert_int_equal(o.message.n, 0);
    outcome_fini(&o);
}

static void test_many_at_once(void **state) {
    struct rig *r = *state;
    enum { N = 2000 };
    struct outcome *o = xcalloc(N, sizeof(*o));
    for (uint32_t i = 0; i < N; i++)
        call(r->ch, UNARY, NULL, &i, sizeof(i), 0, &o[i]);
    for (uint32_t i = 0; i < N; i++) {
        WAIT(r->l, o[i].done);
        assert_int_equal(o[i].code, 0);
        assert_memory_equal(o[i].message.p, &i, sizeof(i));
        outcome_fini(&o[i]);
    }
    assert_int_equal(rpc_server_stats(r->s).calls, N);
    assert_int_equal(rpc_server_stats(r->s).connections, 1);
    WAIT(r->l, rpc_server_stats(r->s).calls_now == 0);
    assert_int_equal(rpc_server_stats(r->s).failed, 0);
    free(o);
}

static void test_big_messages(void **state) {
    struct rig *r = *state;
    const size_t sizes[] = {16378, 16379, 16384, 65535, 1 << 20, (8 << 20) - 1, 8 << 20};
    autofree uint8_t *big = xmalloc(8 << 20);
    for (size_t i = 0; i < 8 << 20; i++)
        big[i] = (uint8_t)(i * 7 + (i >> 12));
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct outcome o = {0};
        call_wait(r, NULL, big, sizes[i], &o);
        assert_int_equal(o.code, 0);
        assert_int_equal(o.message.n, sizes[i]);
        assert_memory_equal(o.message.p, big, sizes[i]);
        outcome_fini(&o);
    }
}

static void test_too_big_for_the_server(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    autofree uint8_t *big = xcalloc(1, (8 << 20) + 1);
    call_wait(r, NULL, big, (8 << 20) + 1, &o);
    assert_int_equal(o.code, E_TOO_BIG);
    assert_string_equal(o.why.text, "Message of 8388609 bytes is larger than the limit of 8388608");
    call(r->ch, "/spur.test.Echo/Small", NULL, big, 101, 0, &o);
    WAIT(r->l, o.done == 2);
    assert_int_equal(o.code, E_TOO_BIG);
    call(r->ch, "/spur.test.Echo/Small", NULL, big, 100, 0, &o);
    WAIT(r->l, o.done == 3);
    assert_int_equal(o.code, 0);
    outcome_fini(&o);
}

static void test_too_big_for_the_client(void **state) {
    struct rpc_channel_conf conf = {.max_message = 1000};
    struct rig *r = rig_new(NULL, &conf);
    struct outcome o = {0};
    autofree uint8_t *big = xcalloc(1, 1001);
    call_wait(r, NULL, big, 1001, &o);
    assert_int_equal(o.code, E_TOO_BIG);
    call_wait(r, NULL, big, 1000, &o);
    WAIT(r->l, o.done == 2);
    assert_int_equal(o.code, 0);
    outcome_fini(&o);
    rig_free(r);
}

static void test_errors_come_back_as_they_were(void **state) {
    struct rig *r = *state;
    const struct { const char *metadata; int code; const char *text; } rows[] = {
        {"fail: 51\ntext: Invalid partition name specified: gpu", E_PARTITION, "Invalid partition name specified: gpu"},
        {"fail: 50", E_JOB_ID, "Invalid job id specified"},
        {"fail: 64\ntext: 100% of \"caf'e\" % 1", E_JOB_STATE, "100% of \"caf'e\" % 1"},
        {"fail: 9999", -9999, NULL}, /* of a newer version: the status is what we have */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct outcome o = {0};
        call_wait(r, rows[i].metadata, NULL, 0, &o);
        if (rows[i].text) {
            assert_int_equal(o.code, rows[i].code);
            assert_string_equal(o.why.text, rows[i].text);
        } else {
            assert_int_equal(o.code, err_from_grpc(err_grpc(rows[i].code)));
        }
        outcome_fini(&o);
    }
    WAIT(r->l, rpc_server_stats(r->s).failed == 4);
}

static void test_texts_are_bytes(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    call_wait(r, "fail: 65\nbytes: 1\ntrailer: of failure", NULL, 0, &o);
    assert_string_equal(o.why.text, "1\n2\t100% \xc3\xa9");
    assert_string_equal(o.trailer, "of failure");
    assert_int_equal(o.code, E_SCRIPT);
    outcome_fini(&o);
}

static void test_metadata_and_trailers(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    call_wait(r, "X-Other: 1\nTrailer:  a value: with colon\n", "m", 1, &o);
    assert_int_equal(o.code, 0);
    assert_string_equal(o.trailer, "a value: with colon");
    outcome_fini(&o);
}

static void test_bad_metadata_fails_later_and_sends_nothing(void **state) {
    struct rig *r = *state;
    const char *const bad[] = {"no colon", "grpc-timeout: 1S", "x: \x01", "te: trailers", ": x"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct outcome o = {0};
        call(r->ch, UNARY, bad[i], NULL, 0, 0, &o);
        assert_int_equal(o.done, 0);
        WAIT(r->l, o.done);
        assert_int_equal(o.code, E_USAGE);
        outcome_fini(&o);
    }
    struct outcome o = {0};
    auto_str big = {0};
    for (int i = 0; i < 40; i++)
        str_addf(&big, "x%d: %01000d\n", i, i);
    call_wait(r, str_text(&big), NULL, 0, &o);
    assert_int_equal(o.code, E_TOO_BIG);
    assert_int_equal(rpc_server_stats(r->s).connections, 0);
    call(r->ch, UNARY, "bad", NULL, 0, 0, &o);
    rpc_cancel(o.request); /* before it failed by itself */
    assert_int_equal(o.done, 2);
    assert_int_equal(o.code, E_CANCELLED);
    outcome_fini(&o);
}

static void test_unknown_method(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    autofree uint8_t *big = xcalloc(1, 4 << 20);
    call(r->ch, "/spur.test.Echo/Nope", NULL, big, 4 << 20, 0, &o);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, E_METHOD);
    assert_string_equal(o.why.text, "Unknown method /spur.test.Echo/Nope");
    call_wait(r, NULL, "x", 1, &o); /* the connection is as good as before */
    WAIT(r->l, o.done == 2);
    assert_int_equal(o.code, 0);
    assert_int_equal(rpc_server_stats(r->s).connections, 1);
    outcome_fini(&o);
}

static void test_deadline_of_the_server(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    int64_t from = loop_now_ms(r->l);
    call(r->ch, UNARY, "never: 1", NULL, 0, 50, &o);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, E_DEADLINE);
    assert_in_range(loop_now_ms(r->l) - from, 49, 5000); /* the server counts from when it sees it, in whole ms */
    WAIT(r->l, r->echo.cancelled == 1);
    WAIT(r->l, rpc_server_stats(r->s).calls_now == 0);
    assert_int_equal(rpc_server_stats(r->s).failed, 1);
    outcome_fini(&o);
}

static void note_deadline(struct echo *e, struct rpc_call *c) {
    e->left_ms = rpc_deadline_ms(c) - loop_now_ms(e->l);
}

static void test_the_deadline_is_seen_by_the_method(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    r->echo.on_start = note_deadline;
    call(r->ch, UNARY, NULL, NULL, 0, 70000, &o);
    WAIT(r->l, o.done);
    assert_in_range(r->echo.left_ms, 60000, 70000);
    outcome_fini(&o);
}

static void test_cancel(void **state) {
    struct rig *r = *state;
    struct outcome o = {0}, other = {0};
    call(r->ch, UNARY, "never: 1", NULL, 0, 0, &o);
    call(r->ch, UNARY, "sleep-ms: 30", "ok", 2, 0, &other);
    WAIT(r->l, r->echo.never_open == 1);
    rpc_cancel(o.request);
    assert_int_equal(o.done, 1);
    assert_int_equal(o.code, E_CANCELLED);
    WAIT(r->l, r->echo.cancelled == 1);
    WAIT(r->l, other.done);
    assert_int_equal(other.code, 0);
    call(r->ch, UNARY, NULL, NULL, 0, 0, &o); /* not even sent */
    rpc_cancel(o.request);
    assert_int_equal(o.done, 2);
    outcome_fini(&o);
    outcome_fini(&other);
}

static void test_channel_free_ends_requests(void **state) {
    struct rig *r = *state;
    struct outcome o[3] = {0};
    struct rpc_channel *ch = rig_channel(r, r->address);
    call(ch, UNARY, "never: 1", NULL, 0, 0, &o[0]);
    stream(ch, NUMBERS, "never: 1", NULL, 0, 0, &o[1]);
    WAIT(r->l, r->echo.never_open == 2);
    call(ch, UNARY, "bad", NULL, 0, 0, &o[2]);
    rpc_channel_free(ch);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(o[i].done, 1);
        assert_int_equal(o[i].code, E_CANCELLED);
        outcome_fini(&o[i]);
    }
    WAIT(r->l, r->echo.never_open == 0);
    ch = rig_channel(r, r->address); /* before it was connected */
    call(ch, UNARY, NULL, NULL, 0, 0, &o[0]);
    rpc_channel_free(ch);
    assert_int_equal(o[0].done, 2);
    outcome_fini(&o[0]);
}

static void test_server_free_cancels_calls(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    call(r->ch, UNARY, "never: 1", NULL, 0, 0, &o);
    WAIT(r->l, r->echo.never_open == 1);
    rpc_server_free(r->s);
    r->s = NULL;
    assert_int_equal(r->echo.cancelled, 1);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, E_UNREACHABLE);
    outcome_fini(&o);
}

static void test_stream(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    stream(r->ch, NUMBERS, "count: 1000\nsize: 100\ntrailer: end", NULL, 0, 0, &o);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    assert_int_equal(o.n_messages, 1000);
    assert_int_equal(o.n_bytes, 100000);
    assert_string_equal(o.trailer, "end");
    stream(r->ch, NUMBERS, "count: 5\nfail: 12", NULL, 0, 0, &o);
    WAIT(r->l, o.done == 2);
    assert_int_equal(o.code, E_BUSY);
    assert_int_equal(o.n_messages, 1005);
    stream(r->ch, NUMBERS, "count: 0", NULL, 0, 0, &o);
    WAIT(r->l, o.done == 3);
    assert_int_equal(o.code, 0);
    assert_int_equal(o.n_messages, 1005);
    outcome_fini(&o);
}

static void test_stream_back_pressure(void **state) {
    struct rig *r = *state;
    struct outcome o = {.pause_after = 3};
    stream(r->ch, NUMBERS, "count: 20000\nsize: 5000", NULL, 0, 0, &o); /* 100 MB */
    WAIT(r->l, o.n_messages == 3);
    struct outcome other = {0};
    call_wait(r, NULL, "beside", 6, &other); /* the connection isn't blocked */
    assert_int_equal(other.code, 0);
    for (int i = 0; i < 20; i++)
        call_wait(r, NULL, "turns", 5, &other);
    assert_int_equal(o.n_messages, 3);
    assert_true(r->echo.pending_max < 300 << 10);
    assert_int_equal(r->echo.ended, 21); /* the stream hasn't */
    rpc_resume(o.request);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    assert_int_equal(o.n_messages, 20000);
    assert_true(r->echo.drained > 10);
    assert_true(r->echo.pending_max < 300 << 10);
    outcome_fini(&o);
    outcome_fini(&other);
}

static void test_a_long_stream_holds_up_nobody(void **state) {
    struct rig *r = *state;
    struct outcome o = {0}, other = {0};
    stream(r->ch, NUMBERS, "count: 40000\nsize: 5000", NULL, 0, 0, &o); /* 200 MB */
    WAIT(r->l, o.n_messages > 100);
    for (int i = 0; i < 5; i++)
        call_wait(r, NULL, "beside", 6, &other);
    assert_int_equal(o.done, 0);
    assert_true(o.n_messages < 30000);
    rpc_cancel(o.request);
    outcome_fini(&o);
    outcome_fini(&other);
}

static void test_a_paused_stream_ends_after_its_messages(void **state) {
    struct rig *r = *state;
    struct outcome o = {.pause_after = 2};
    stream(r->ch, NUMBERS, "count: 10\nsize: 10\nfail: 12", NULL, 0, 0, &o);
    WAIT(r->l, r->echo.ended == 1);
    struct outcome other = {0};
    call_wait(r, NULL, NULL, 0, &other); /* what was sent before its answer has arrived */
    assert_int_equal(other.code, 0);
    assert_int_equal(o.done, 0);
    rpc_server_free(r->s); /* so the connection may go */
    r->s = NULL;
    call_wait(r, NULL, NULL, 0, &other);
    assert_int_equal(other.code, E_UNREACHABLE);
    assert_int_equal(o.n_messages, 2);
    rpc_resume(o.request);
    WAIT(r->l, o.done);
    assert_int_equal(o.n_messages, 10);
    assert_int_equal(o.code, E_BUSY);
    outcome_fini(&o);
    outcome_fini(&other);
}

static void test_a_stream_that_ignores_back_pressure_is_cut_off(void **state) {
    struct rig *r = *state;
    struct outcome o = {.pause_after = 1};
    stream(r->ch, NUMBERS, "count: 100\nsize: 1000000\nflood: 1\nnever: 1", NULL, 0, 0, &o);
    WAIT(r->l, r->echo.cancelled == 1);
    assert_true(r->echo.pending_max <= 64 << 20);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, E_BUSY);
    outcome_fini(&o);
}

static void test_stream_idle(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    stream(r->ch, NUMBERS, "count: 3\nsize: 10\nnever: 1", NULL, 0, 40, &o);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, E_DEADLINE);
    assert_int_equal(o.n_messages, 3);
    WAIT(r->l, r->echo.cancelled == 1);
    outcome_fini(&o);
}

static void test_unix_socket(void **state) {
    struct rig *r = *state;
    char directory[] = "/tmp/rpc-test-XXXXXX", address[64];
    struct err e;
    struct stat st;
    assert_non_null(mkdtemp(directory));
    snprintf(address, sizeof(address), "unix:%s/s", directory);
    assert_int_equal(rpc_server_listen(r->s, address, NULL, &e), 0);
    assert_int_equal(stat(address + 5, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0666);
    struct rpc_channel *ch = rig_channel(r, address);
    struct outcome o = {0};
    call(ch, UNARY, NULL, "local", 5, 0, &o);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    assert_true(r->echo.last_peer.is_local);
    assert_int_equal(r->echo.last_peer.uid, getuid());
    assert_int_equal(r->echo.last_peer.gid, getgid());
    assert_int_equal(r->echo.last_peer.pid, getpid());
    assert_string_equal(r->echo.last_peer.address, "unix");
    assert_int_equal(rpc_server_listen(r->s, address, NULL, &e), E_EXISTS); /* a live one is refused */
    rpc_channel_free(ch);
    rpc_server_free(r->s);
    r->s = NULL;
    assert_int_not_equal(stat(address + 5, &st), 0); /* and gone with the server */
    rmdir(directory);
    outcome_fini(&o);
}

static void test_unix_socket_that_is_stale(void **state) {
    struct rig *r = *state;
    char directory[] = "/tmp/rpc-test-XXXXXX", address[64];
    struct err e;
    assert_non_null(mkdtemp(directory));
    snprintf(address, sizeof(address), "unix:%s/s", directory);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", address + 5);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    close(fd);
    assert_int_equal(rpc_server_listen(r->s, address, NULL, &e), 0);
    struct rpc_channel *ch = rig_channel(r, address);
    struct outcome o = {0};
    call(ch, UNARY, NULL, "x", 1, 0, &o);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    rpc_channel_free(ch);
    outcome_fini(&o);
    rpc_server_free(r->s);
    r->s = NULL;
    FILE *f = fopen(address + 5, "w"); /* a file that isn't ours stays */
    fclose(f);
    r->s = rpc_server_new(r->l, &(struct rpc_server_conf){0});
    assert_int_equal(rpc_server_listen(r->s, address, NULL, &e), E_EXISTS);
    assert_int_equal(unlink(address + 5), 0);
    rmdir(directory);
}

static void test_both_families(void **state) {
    struct rig *r = *state;
    struct err e;
    uint16_t port = 0;
    char address[64];
    struct outcome o = {0};
    assert_int_equal(rpc_server_listen(r->s, "[::]:0", &port, &e), 0);
    assert_int_not_equal(port, 0);
    snprintf(address, sizeof(address), "http://127.0.0.1:%u", port);
    struct rpc_channel *ch = rig_channel(r, address);
    call(ch, UNARY, NULL, "4", 1, 0, &o);
    WAIT(r->l, o.done == 1);
    assert_int_equal(o.code, 0);
    assert_true(str_starts(r->echo.last_peer.address, "127.0.0.1:"));
    rpc_channel_free(ch);
    snprintf(address, sizeof(address), "localhost:%u", port);
    ch = rig_channel(r, address);
    call(ch, UNARY, NULL, "name", 4, 0, &o);
    WAIT(r->l, o.done == 2);
    assert_int_equal(o.code, 0);
    rpc_channel_free(ch);
    int fd = socket(AF_INET6, SOCK_STREAM, 0); /* only where there is IPv6 */
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    bool has_v6 = fd >= 0 && bind(fd, (struct sockaddr *)&in6, sizeof(in6)) == 0;
    close(fd);
    if (has_v6) {
        snprintf(address, sizeof(address), "[::1]:%u", port);
        ch = rig_channel(r, address);
        call(ch, UNARY, NULL, "6", 1, 0, &o);
        WAIT(r->l, o.done == 3);
        assert_int_equal(o.code, 0);
        assert_true(str_starts(r->echo.last_peer.address, "[::1]:"));
        rpc_channel_free(ch);
    }
    outcome_fini(&o);
}

static void test_listen_errors(void **state) {
    struct rig *r = *state;
    struct err e;
    assert_int_equal(rpc_server_listen(r->s, r->address, NULL, &e), E_EXISTS);
    assert_int_equal(rpc_server_listen(r->s, "192.0.2.1:0", NULL, &e), E_SYS);
    assert_int_equal(rpc_server_listen(r->s, "nonsense", NULL, &e), E_SYNTAX);
    assert_int_equal(rpc_server_listen(r->s, "unix:/nonexistent/x", NULL, &e), E_SYS);
}

int main(void) {
#define T(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(test_unary),
        T(test_empty_messages),
        T(test_many_at_once),
        T(test_big_messages),
        T(test_too_big_for_the_server),
        cmocka_unit_test(test_too_big_for_the_client),
        T(test_errors_come_back_as_they_were),
        T(test_texts_are_bytes),
        T(test_metadata_and_trailers),
        T(test_bad_metadata_fails_later_and_sends_nothing),
        T(test_unknown_method),
        T(test_deadline_of_the_server),
        T(test_the_deadline_is_seen_by_the_method),
        T(test_cancel),
        T(test_channel_free_ends_requests),
        T(test_server_free_cancels_calls),
        T(test_stream),
        T(test_stream_back_pressure),
        T(test_a_long_stream_holds_up_nobody),
        T(test_a_paused_stream_ends_after_its_messages),
        T(test_a_stream_that_ignores_back_pressure_is_cut_off),
        T(test_stream_idle),
        T(test_unix_socket),
        T(test_unix_socket_that_is_stale),
        T(test_both_families),
        T(test_listen_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
