/* SPDX-License-Identifier: Apache-2.0
 *
 * What no client of ours sends: raw sockets against the server. After each the server must still answer a good call.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig.h"

#define UNARY "/spur.test.Echo/Unary"
#define CHAT "/spur.test.Echo/Chat"

enum { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION };
enum { END_STREAM = 1, END_HEADERS = 4 };
enum { REFUSED = 7, CALM = 11 };

static void still_answers(struct rig *r) {
    struct outcome o = {0};
    call_wait(r, NULL, "still here", 10, &o);
    assert_int_equal(o.code, 0);
    assert_memory_equal(o.message.p, "still here", 10);
    outcome_fini(&o);
}

#define GOOD(path)                                                                                                     \
    ":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "te", "trailers", "content-type",          \
        "application/grpc"

static bool answered(struct raw *raw, uint32_t stream) {
    return raw_has(raw, HEADERS, stream, NULL, NULL);
}

static void test_partial_frames(void **state) {
    struct rig *r = *state;
    struct raw whole = {.fd = -1}, raw = raw_connect(r->l, r->port);
    int pair[2];
    /* A good conversation, recorded, then sent byte by byte. */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    whole.l = r->l;
    whole.fd = pair[0];
    raw_hello(&whole);
    raw_request(&whole, 1, UNARY, "in pieces", 9);
    uint8_t bytes[1024];
    ssize_t n = read(pair[1], bytes, sizeof(bytes));
    assert_true(n > 100);
    for (ssize_t i = 0; i < n; i++) {
        raw_send(&raw, bytes + i, 1);
        rig_turn(r->l);
    }
    const uint8_t *p;
    size_t len;
    WAIT(r->l, raw_has(&raw, DATA, 1, &p, &len));
    assert_int_equal(len, 14);
    assert_memory_equal(p + 5, "in pieces", 9);
    raw_close(&raw);
    raw_close(&whole);
    close(pair[1]);
    still_answers(r);
}

static void test_a_connection_that_says_nothing(void **state) {
    struct rpc_server_conf conf = {.handshake_ms = 50};
    struct rig *r = rig_new(&conf, NULL);
    struct raw mute = raw_connect(r->l, r->port), half = raw_connect(r->l, r->port), magic = raw_connect(r->l, r->port);
    raw_send(&half, "PRI * HT", 8);
    raw_send(&magic, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    WAIT(r->l, (raw_pump(&mute), mute.closed));
    WAIT(r->l, (raw_pump(&half), half.closed));
    WAIT(r->l, (raw_pump(&magic), magic.closed));
    still_answers(r);
    raw_close(&mute);
    raw_close(&half);
    raw_close(&magic);
    rig_free(r);
}

static void test_idle_connections_are_closed(void **state) {
    struct rpc_server_conf conf = {.idle_ms = 60};
    struct rig *r = rig_new(&conf, NULL);
    struct raw raw = raw_connect(r->l, r->port);
    raw_preface(&raw);
    WAIT(r->l, raw_has_goaway(&raw, 0));
    WAIT(r->l, (raw_pump(&raw), raw.closed));
    struct outcome o = {0};
    call(r->ch, UNARY, "sleep-ms: 200", NULL, 0, 0, &o); /* one with a call is not idle */
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    WAIT(r->l, rpc_server_stats(r->s).connections_now == 0);
    still_answers(r);
    raw_close(&raw);
    outcome_fini(&o);
    rig_free(r);
}

static void test_other_protocols(void **state) {
    struct rig *r = *state;
    const char *const texts[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                                 "SSH-2.0-OpenSSH_9.2\r\n", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct raw raw = raw_connect(r->l, r->port);
        raw_send(&raw, texts[i], strlen(texts[i]));
        WAIT(r->l, (raw_pump(&raw), raw.closed));
        raw_close(&raw);
    }
    still_answers(r);
}

static void test_too_many_connections(void **state) {
    struct rpc_server_conf conf = {.max_connections = 3};
    struct rig *r = rig_new(&conf, NULL);
    struct raw raw[4];
    struct outcome busy = {0};
    call(r->ch, UNARY, "never: 1", NULL, 0, 0, &busy);
    WAIT(r->l, r->echo.never_open == 1);
    for (int i = 0; i < 3; i++) { /* the third one takes the place of the first, which is idle longest */
        raw[i] = raw_connect(r->l, r->port);
        raw_preface(&raw[i]);
        int64_t until = loop_now_ms(r->l) + 2;
        WAIT(r->l, loop_now_ms(r->l) > until); /* so that the order is clear */
    }
    WAIT(r->l, (raw_pump(&raw[0]), raw[0].closed));
    assert_int_equal(busy.done, 0);
    for (int i = 1; i < 3; i++)
        raw_headers(&raw[i], END_HEADERS, 1, (const char *const[]){GOOD(CHAT), NULL});
    WAIT(r->l, rpc_server_stats(r->s).calls_now == 3);
    raw[3] = raw_connect(r->l, r->port); /* all are busy: it is refused */
    WAIT(r->l, (raw_pump(&raw[3]), raw[3].closed));
    for (int i = 0; i < 4; i++)
        raw_close(&raw[i]);
    rpc_cancel(busy.request);
    rig_free(r);
}

static void flood(struct rig *r, uint8_t type, uint8_t flags, uint32_t stream, const void *p, size_t n) {
    struct raw raw = raw_connect(r->l, r->port);
    uint64_t before = rpc_server_stats(r->s).refused_floods;
    raw_preface(&raw);
    if (stream)
        raw_headers(&raw, END_HEADERS, stream, (const char *const[]){GOOD(CHAT), NULL});
    for (int i = 0; i < 30000 && !raw.closed; i++) {
        raw_frame(&raw, type, flags, stream, p, n);
        if (i % 100 == 0) {
            rig_turn(r->l);
            raw_pump(&raw);
        }
    }
    WAIT(r->l, raw_has_goaway(&raw, CALM) || raw.closed);
    assert_int_equal(rpc_server_stats(r->s).refused_floods, before + 1);
    WAIT(r->l, (raw_pump(&raw), raw.closed));
    raw_close(&raw);
    still_answers(r);
}

static void test_floods_of_cheap_frames(void **state) {
    struct rig *r = *state;
    flood(r, PING, 0, 0, "12345678", 8);
    flood(r, SETTINGS, 0, 0, NULL, 0);
    flood(r, SETTINGS, 0, 0, "\0\4\0\0\0\1", 6);
    flood(r, DATA, 0, 1, NULL, 0);
    flood(r, PRIORITY, 0, 1, "\0\0\0\0\1", 5);
}

static void test_a_flood_that_is_not_read(void **state) {
    struct rig *r = *state;
    struct raw raw = raw_connect(r->l, r->port);
    int small = 4096;
    setsockopt(raw.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    raw_preface(&raw);
    for (int i = 0; i < 30000; i++) {
        raw_frame(&raw, PING, 0, 0, "12345678", 8);
        if (i % 500 == 0)
            rig_turn(r->l);
    }
    WAIT(r->l, rpc_server_stats(r->s).connections_now == 0);
    assert_int_equal(rpc_server_stats(r->s).refused_floods, 1);
    raw_close(&raw);
    still_answers(r);
}

static void test_rapid_reset(void **state) {
    struct rig *r = *state;
    struct raw raw = raw_connect(r->l, r->port);
    raw_preface(&raw);
    for (uint32_t id = 1; id < 40000 && !raw.closed; id += 2) {
        raw_request(&raw, id, UNARY, "x", 1);
        raw_frame(&raw, RST_STREAM, 0, id, "\0\0\0\10", 4);
        if (id % 101 == 0) {
            rig_turn(r->l);
            raw_pump(&raw);
        }
    }
    WAIT(r->l, (raw_pump(&raw), raw.closed));
    assert_true(rpc_server_stats(r->s).calls < 3000);
    raw_close(&raw);
    still_answers(r);
}

/* Resets that the client makes the server send. */
static void test_provoked_resets(void **state) {
    struct rig *r = *state;
    struct raw raw = raw_connect(r->l, r->port);
    raw_preface(&raw);
    for (uint32_t id = 1; id < 40000 && !raw.closed; id += 2) {
        raw_headers(&raw, END_HEADERS, id, (const char *const[]){GOOD(CHAT), NULL});
        raw_frame(&raw, WINDOW_UPDATE, 0, id, "\x7f\xff\xff\xff", 4); /* overflows */
        if (id % 101 == 0) {
            rig_turn(r->l);
            raw_pump(&raw);
        }
    }
    WAIT(r->l, (raw_pump(&raw), raw.closed));
    assert_true(rpc_server_stats(r->s).calls < 3000);
    assert_true(rpc_server_stats(r->s).refused_floods > 0);
    raw_close(&raw);
    still_answers(r);
}

static void test_continuations_without_end(void **state) {
    struct rig *r = *state;
    struct raw raw = raw_connect(r->l, r->port);
    raw_preface(&raw);
    raw_headers(&raw, 0, 1, (const char *const[]){GOOD(UNARY), NULL});
    for (int i = 0; i < 1000 && !raw.closed; i++) {
        raw_frame(&raw, CONTINUATION, 0, 1, "\0\1y\1z", 5);
        rig_turn(r->l);
        raw_pump(&raw);
    }
    assert_true(raw.closed);
    raw_close(&raw);
    still_answers(r);
}

static void test_a_header_list_that_is_too_large(void **state) {
    struct rig *r = *state;
    struct raw raw = raw_connect(r->l, r->port);
    auto_buf b = {0};
    raw_preface(&raw);
    const char *const pairs[] = {GOOD(UNARY)};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i += 2) {
        buf_u8(&b, 0);
        buf_u8(&b, (uint8_t)strlen(pairs[i]));
        buf_add(&b, pairs[i], strlen(pairs[i]));
        buf_u8(&b, (uint8_t)strlen(pairs[i + 1]));
        buf_add(&b, pairs[i + 1], strlen(pairs[i + 1]));
    }
    for (int i = 0; i < 330; i++) { /* 330 × (100 + 1 + 32) > 32 KiB */
        buf_u8(&b, 0);
        buf_u8(&b, 1);
        buf_u8(&b, 'y');
        buf_u8(&b, 100);
        memset(buf_reserve(&b, 100), 'z', 100);
        b.n += 100;
    }
    raw_frame(&raw, HEADERS, 0, 1, b.p, 16000);
    raw_frame(&raw, CONTINUATION, 0, 1, b.p + 16000, 16000);
    raw_frame(&raw, CONTINUATION, END_HEADERS, 1, b.p + 32000, b.n - 32000);
    WAIT(r->l, answered(&raw, 1)); /* RESOURCE_EXHAUSTED, and the connection lives */
    assert_int_equal(rpc_server_stats(r->s).failed + rpc_server_stats(r->s).calls_now, 1);
    assert_int_equal(r->echo.started, 0);
    raw_request(&raw, 3, UNARY, "good", 4);
    WAIT(r->l, raw_has(&raw, DATA, 3, NULL, NULL));
    raw_close(&raw);
    still_answers(r);
}

static void test_too_many_streams(void **state) {
    struct rpc_server_conf conf = {.max_streams = 5};
    struct rig *r = rig_new(&conf, NULL);
    struct raw raw = raw_connect(r->l, r->port);
    raw_preface(&raw);
    for (uint32_t id = 1; id < 21; id += 2)
        raw_headers(&raw, END_HEADERS, id, (const char *const[]){GOOD(CHAT), NULL});
    WAIT(r->l, raw_has(&raw, RST_STREAM, 11, NULL, NULL) || raw.closed);
    assert_int_equal(rpc_server_stats(r->s).calls, 5);
    raw_close(&raw);
    still_answers(r);
    rig_free(r);
}

/* Calls that were reset count until their owner has let go. */
static void test_reset_calls_that_still_run_are_bounded(void **state) {
    struct rpc_server_conf conf = {.max_streams = 5};
    struct rig *r = rig_new(&conf, NULL);
    struct raw raw = raw_connect(r->l, r->port);
    struct rpc_call *held[64];
    unsigned n = 0;
    raw_preface(&raw);
    /* Chat's on_cancel would let go at once: take it away. */
    for (uint32_t id = 1; id < 101; id += 2) {
        raw_headers(&raw, END_HEADERS, id, (const char *const[]){GOOD(CHAT), NULL});
        raw_frame(&raw, DATA, 0, id, "\0\0\0\0\1x", 6);
        for (int i = 0; i < 3; i++)
            rig_turn(r->l);
        if (r->echo.chat) {
            rpc_on_cancel(r->echo.chat, NULL);
            held[n++] = r->echo.chat;
            r->echo.chat = NULL;
        }
        raw_frame(&raw, RST_STREAM, 0, id, "\0\0\0\10", 4);
    }
    WAIT(r->l, raw_has(&raw, RST_STREAM, 99, NULL, NULL));
    assert_int_equal(n, 10); /* twice max_streams */
    assert_int_equal(rpc_server_stats(r->s).calls_now, 10);
    for (unsigned i = 0; i < n; i++) {
        assert_true(rpc_is_cancelled(held[i]));
        assert_int_equal(rpc_push(held[i], "x", 1), 0);
        echo_forget(&r->echo, held[i]);
    }
    assert_int_equal(rpc_server_stats(r->s).calls_now, 0);
    raw_request(&raw, 201, UNARY, "x", 1);
    WAIT(r->l, raw_has(&raw, DATA, 201, NULL, NULL));
    raw_close(&raw);
    still_answers(r);
    rig_free(r);
}

/* One request that is refused before its method sees it; the connection goes on. */
static void refused(struct rig *r, const char *const *headers, const char *data, size_t n, bool starts) {
    struct raw raw = raw_connect(r->l, r->port);
    unsigned before = r->echo.started;
    raw_preface(&raw);
    raw_headers(&raw, data ? END_HEADERS : END_HEADERS | END_STREAM, 1, headers);
    if (data)
        raw_frame(&raw, DATA, END_STREAM, 1, data, n);
    WAIT(r->l, answered(&raw, 1));
    assert_int_equal(r->echo.started, before + starts);
    raw_request(&raw, 3, UNARY, "good", 4);
    WAIT(r->l, raw_has(&raw, DATA, 3, NULL, NULL));
    raw_close(&raw);
}

static void test_requests_that_are_refused(void **state) {
    struct rig *r = *state;
    const char *const good[] = {GOOD(UNARY), NULL};
    const char *const gzip[] = {GOOD(UNARY), "grpc-encoding", "gzip", NULL};
    const char *const identity[] = {GOOD(UNARY), "grpc-encoding", "identity", NULL};
    const char *const timeout[] = {GOOD(UNARY), "grpc-timeout", "soon", NULL};
    const char *const unknown[] = {GOOD("/nowhere"), NULL};
    const char *const get[] = {":method", "GET", ":scheme", "http", ":path", UNARY, ":authority", "x",
                               "content-type", "application/grpc", NULL};
    const char *const html[] = {":method", "POST", ":scheme", "http", ":path", UNARY, ":authority", "x",
                                "content-type", "text/html", NULL};
    const char *const bare[] = {":method", "POST", ":scheme", "http", ":path", UNARY, ":authority", "x", NULL};
    refused(r, identity, "\0\0\0\0\1x", 6, true);
    refused(r, gzip, "\0\0\0\0\1x", 6, false);
    refused(r, timeout, "\0\0\0\0\1x", 6, false);
    refused(r, unknown, "\0\0\0\0\1x", 6, false);
    refused(r, get, NULL, 0, false);
    refused(r, html, "<p>", 3, false);
    refused(r, bare, "x", 1, false);
    refused(r, good, NULL, 0, false);                    /* no message */
    refused(r, good, "\0\0\0\0\5abc", 8, false);         /* half of one */
    refused(r, good, "\0\0\0\0\1x\0\0\0\0\1y", 12, false); /* two */
    refused(r, good, "\1\0\0\0\1x", 6, false);           /* compressed */
    refused(r, good, "\0\xff\xff\xff\xff", 5, false);    /* four gigabytes */
}

/* Large messages that never end: bytes are held up to a bound, then calls fail. */
static void test_unfinished_messages_are_bounded(void **state) {
    struct rig *r = *state;
    struct raw raw = raw_connect(r->l, r->port);
    autofree uint8_t *chunk = xcalloc(1, 16384);
    raw_preface(&raw);
    memcpy(chunk, "\0\0\x7f\xff\xff", 5); /* just under 8 MiB */
    for (uint32_t id = 1; id < 401 && !raw.closed; id += 2) {
        raw_headers(&raw, END_HEADERS, id, (const char *const[]){GOOD(UNARY), NULL});
        for (int i = 0; i < 50; i++)
            raw_frame(&raw, DATA, 0, id, chunk, 16384);
        raw_pump(&raw);
    }
    WAIT(r->l, rpc_server_stats(r->s).failed > 100);
    assert_true(rpc_server_stats(r->s).calls_now <= 41); /* 32 MiB of 800 KiB each */
    assert_false(raw.closed);
    raw_close(&raw);
    WAIT(r->l, rpc_server_stats(r->s).connections_now == 0);
    still_answers(r);
}

/* Messages that the method doesn't take yet hold up the client's window, not the server's memory. */
static void test_input_that_waits(void **state) {
    struct rig *r = *state;
    struct raw raw = raw_connect(r->l, r->port);
    autofree uint8_t *message = xcalloc(1, 16384);
    message[3] = 0x3f, message[4] = 0xfb; /* 16379 bytes */
    r->echo.late_on_message = true;
    raw_preface(&raw);
    raw_headers(&raw, END_HEADERS, 1, (const char *const[]){GOOD(CHAT), NULL});
    const unsigned fits = (1 << 20) / 16384;
    for (unsigned i = 0; i < fits; i++)
        raw_frame(&raw, DATA, 0, 1, message, 16384);
    WAIT(r->l, r->echo.messages == 1);
    for (int i = 0; i < 10; i++)
        rig_turn(r->l);
    assert_false(raw_has(&raw, WINDOW_UPDATE, 1, NULL, NULL));
    assert_int_equal(r->echo.messages, 1);
    r->echo.late_on_message = false;
    echo_listen(&r->echo);
    WAIT(r->l, r->echo.messages == fits); /* what came and waited, and what is still on the way */
    WAIT(r->l, raw_has(&raw, WINDOW_UPDATE, 1, NULL, NULL));
    raw_frame(&raw, DATA, END_STREAM, 1, message, 16384);
    WAIT(r->l, r->echo.ended == 1);
    assert_int_equal(r->echo.messages, fits + 1);
    raw_close(&raw);
    still_answers(r);
}

static void test_chat(void **state) {
    struct rig *r = *state;
    struct raw raw = raw_connect(r->l, r->port);
    raw_preface(&raw);
    raw_headers(&raw, END_HEADERS, 1, (const char *const[]){GOOD(CHAT), NULL});
    raw_frame(&raw, DATA, 0, 1, "\0\0\0", 3);
    rig_turn(r->l);
    raw_frame(&raw, DATA, 0, 1, "\0\1a\0\0\0\0\2bc\0\0", 12);
    WAIT(r->l, r->echo.messages == 2);
    raw_frame(&raw, DATA, END_STREAM, 1, "\0\0\0", 3);
    WAIT(r->l, r->echo.ended == 1);
    assert_int_equal(r->echo.messages, 3); /* the last one is empty */
    /* without a single message: started all the same, and ended */
    raw_headers(&raw, END_HEADERS | END_STREAM, 3, (const char *const[]){GOOD(CHAT), NULL});
    WAIT(r->l, r->echo.ended == 2);
    assert_int_equal(r->echo.messages, 3);
    /* cut off in the middle of one, after the first */
    raw_headers(&raw, END_HEADERS, 5, (const char *const[]){GOOD(CHAT), NULL});
    raw_frame(&raw, DATA, END_STREAM, 5, "\0\0\0\0\1x\0\0", 8);
    WAIT(r->l, r->echo.ended == 3);
    assert_int_equal(r->echo.cancelled, 1);
    raw_close(&raw);
    still_answers(r);
}

/* A client that closes its connection while calls run, at every stage. */
static void test_clients_that_vanish(void **state) {
    struct rig *r = *state;
    for (int stage = 0; stage < 5; stage++) {
        struct raw raw = raw_connect(r->l, r->port);
        const char *const never[] = {GOOD(UNARY), "never", "1", NULL};
        raw_preface(&raw);
        if (stage >= 1)
            raw_headers(&raw, END_HEADERS, 1, never);
        if (stage >= 2)
            raw_frame(&raw, DATA, 0, 1, "\0\0\0", 3);
        if (stage >= 3)
            raw_frame(&raw, DATA, END_STREAM, 1, "\0\1x", 3);
        if (stage >= 4)
            WAIT(r->l, r->echo.never_open == 1);
        raw_close(&raw);
        WAIT(r->l, rpc_server_stats(r->s).connections == (uint64_t)stage + 1 &&
                       rpc_server_stats(r->s).connections_now == 0);
        WAIT(r->l, rpc_server_stats(r->s).calls_now == 0);
    }
    still_answers(r);
}

/* It asks for much and reads nothing; then its connection is refused further calls. */
static void test_a_client_that_does_not_read(void **state) {
    struct rig *r = *state;
    struct raw raw = raw_connect(r->l, r->port);
    const char *const big[] = {GOOD("/spur.test.Echo/Numbers"), "count", "1", "size", "4000000", NULL};
    raw_preface(&raw);
    for (uint32_t id = 1; id < 101; id += 2) {
        raw_headers(&raw, END_HEADERS, id, big);
        raw_frame(&raw, DATA, END_STREAM, id, "\0\0\0\0\0", 5);
        rig_turn(r->l);
    }
    WAIT(r->l, raw_has(&raw, RST_STREAM, 99, NULL, NULL));
    assert_true(rpc_server_stats(r->s).calls <= 18); /* 64 MiB of 4 MB, and one */
    raw_close(&raw);
    WAIT(r->l, rpc_server_stats(r->s).calls_now == 0);
    still_answers(r);
}

int main(void) {
#define T(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(test_partial_frames),
        cmocka_unit_test(test_a_connection_that_says_nothing),
        cmocka_unit_test(test_idle_connections_are_closed),
        T(test_other_protocols),
        cmocka_unit_test(test_too_many_connections),
        T(test_floods_of_cheap_frames),
        T(test_a_flood_that_is_not_read),
        T(test_rapid_reset),
        T(test_provoked_resets),
        T(test_continuations_without_end),
        T(test_a_header_list_that_is_too_large),
        cmocka_unit_test(test_too_many_streams),
        cmocka_unit_test(test_reset_calls_that_still_run_are_bounded),
        T(test_requests_that_are_refused),
        T(test_unfinished_messages_are_bounded),
        T(test_input_that_waits),
        T(test_chat),
        T(test_clients_that_vanish),
        T(test_a_client_that_does_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
