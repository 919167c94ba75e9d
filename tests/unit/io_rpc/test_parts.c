/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts that need no socket: framing, headers, addresses, the guard, descriptors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "io/loop/address.h"
#include "io/rpc/descriptor.h"
#include "io/rpc/frame.h"
#include "io/rpc/guard.h"
#include "io/rpc/header.h"
#include "io/rpc/rpc.h"

static void test_frames_survive_any_cut(void **state) {
    struct outq out = {0};
    uint8_t wire[64];
    outq_message(&out, "hello", 5);
    outq_message(&out, NULL, 0);
    outq_message(&out, "x", 1);
    size_t n = outq_pending(&out);
    assert_int_equal(n, 3 * FRAME_PREFIX + 6);
    outq_copy(&out, wire, n);
    for (size_t cut = 0; cut <= n; cut++) {
        struct inq in = {.max = 5};
        const uint8_t *m;
        size_t len, got = 0, lens[] = {5, 0, 1};
        const struct { size_t from, to; } parts[] = {{0, cut}, {cut, n}};
        for (size_t i = 0; i < 2; i++) {
            inq_add(&in, wire + parts[i].from, parts[i].to - parts[i].from);
            while (inq_next(&in, &m, &len, NULL) == 1)
                assert_int_equal(len, lens[got++]);
        }
        assert_int_equal(got, 3);
        assert_true(inq_is_empty(&in));
        buf_fini(&in.b);
    }
    buf_fini(&out.b);
}

static void test_a_long_stream_keeps_its_queues_small(void **state) {
    struct outq out = {0};
    struct inq in = {.max = 1000};
    uint8_t message[1000] = {1}, wire[700];
    const uint8_t *m;
    size_t n, sent = 0, got = 0;
    outq_message(&out, message, sizeof(message));
    while (got < 5000) {
        if (outq_pending(&out) < 3000) {
            outq_message(&out, message, sizeof(message));
            sent++;
        }
        outq_copy(&out, wire, sizeof(wire));
        inq_add(&in, wire, sizeof(wire));
        while (inq_next(&in, &m, &n, NULL) == 1)
            got++;
    }
    assert_true(out.b.cap < 16384 && in.b.cap < 16384);
    buf_fini(&out.b);
    buf_fini(&in.b);
}

static void test_high_water(void **state) {
    struct outq out = {0};
    autofree uint8_t *big = xcalloc(1, FRAME_HIGH);
    outq_message(&out, big, 100);
    outq_copy(&out, big, 105);
    assert_false(out.drained);
    outq_message(&out, big, FRAME_HIGH);
    outq_copy(&out, big, 5);
    assert_false(out.drained);
    outq_copy(&out, big, 1);
    assert_true(out.drained);
    buf_fini(&out.b);
}

static void test_frames_are_refused_early(void **state) {
    struct inq in = {.max = 10};
    const uint8_t *m;
    size_t n;
    struct err e;
    inq_add(&in, "\0\0\0\0\x0b", 5);
    assert_true(inq_has_message(&in));
    assert_int_equal(inq_check(&in, NULL), E_TOO_BIG);
    assert_int_equal(inq_next(&in, &m, &n, &e), E_TOO_BIG);
    assert_string_equal(e.text, "Message of 11 bytes is larger than the limit of 10");
    in.b.n = 0;
    inq_add(&in, "\1\0\0\0\1", 5);
    assert_int_equal(inq_next(&in, &m, &n, &e), E_UNSUPPORTED);
    buf_fini(&in.b);
}

static void test_percent(void **state) {
    const struct { const char *plain, *coded; } rows[] = {
        {"", ""}, {"plain ~ text", "plain ~ text"}, {"100%", "100%25"}, {"a\nb\x7f", "a%0Ab%7F"}, {"\xc3\xa9", "%C3%A9"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_str s = {0};
        header_percent_encode(&s, rows[i].plain);
        assert_string_equal(str_text(&s), rows[i].coded);
        autofree char *back = xstrdup(rows[i].coded);
        header_percent_decode(back);
        assert_string_equal(back, rows[i].plain);
    }
    const struct { const char *coded, *plain; } odd[] = {
        {"%", "%"}, {"%4", "%4"}, {"%zz", "%zz"}, {"%00", "%00"}, {"%41%", "A%"}, {"%c3%a9", "\xc3\xa9"},
    };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        autofree char *text = xstrdup(odd[i].coded);
        header_percent_decode(text);
        assert_string_equal(text, odd[i].plain);
    }
}

static void test_timeouts(void **state) {
    const struct { const char *text; uint64_t ms; } rows[] = {
        {"1H", 3600000}, {"2M", 120000}, {"3S", 3000}, {"4m", 4}, {"5u", 1}, {"0n", 0}, {"1000001n", 2},
        {"99999999H", 99999999ull * 3600000},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t ms = 7;
        assert_int_equal(header_timeout_parse(rows[i].text, &ms), 0);
        assert_int_equal(ms, rows[i].ms);
    }
    const char *const bad[] = {"", "1", "S", "-1S", "1s", "123456789S", "1.5S", "1 S", "1SS"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t ms;
        assert_int_equal(header_timeout_parse(bad[i], &ms), E_SYNTAX);
    }
    const struct { uint64_t ms; const char *text; } out[] = {
        {1, "1m"}, {30000, "30000m"}, {99999999, "99999999m"}, {100000000, "100000S"}, {UINT64_MAX, "99999999H"},
    };
    for (size_t i = 0; i < ARRAY_LEN(out); i++) {
        char text[16];
        header_timeout_print(text, out[i].ms);
        assert_string_equal(text, out[i].text);
    }
}

static void test_content_types(void **state) {
    assert_true(header_is_grpc_content("application/grpc"));
    assert_true(header_is_grpc_content("application/grpc+proto"));
    assert_true(header_is_grpc_content("application/grpc; charset=utf-8"));
    assert_false(header_is_grpc_content("application/grpc+json"));
    assert_false(header_is_grpc_content("application/grpc-web"));
    assert_false(header_is_grpc_content("application/grpcx"));
    assert_false(header_is_grpc_content("text/plain"));
    assert_false(header_is_grpc_content(""));
}

static void test_metadata_is_checked(void **state) {
    assert_int_equal(header_check("x-name_1.y", "any ~ value", NULL), 0);
    assert_int_equal(header_check("", "v", NULL), E_USAGE);
    assert_int_equal(header_check("Name", "v", NULL), E_USAGE);
    assert_int_equal(header_check(":path", "v", NULL), E_USAGE);
    assert_int_equal(header_check("grpc-status", "v", NULL), E_USAGE);
    assert_int_equal(header_check("te", "v", NULL), E_USAGE);
    assert_int_equal(header_check("x", "a\nb", NULL), E_USAGE);
    assert_int_equal(header_check("x", "\xc3\xa9", NULL), E_USAGE);
    autofree char *big = xcalloc(1, 40000);
    memset(big, 'x', 39999);
    assert_int_equal(header_check("x", big, NULL), E_TOO_BIG);
}

static void test_addresses(void **state) {
    const struct { const char *text, *is; } rows[] = {
        {"host:1", "host:1"},
        {"host", "host:6817"},
        {"http://ctl-0.svc.local:6817", "ctl-0.svc.local:6817"},
        {"http://ctl/", "ctl:6817"},
        {"10.0.0.1", "10.0.0.1:6817"},
        {"[::1]:99", "[::1]:99"},
        {"[::1]", "[::1]:6817"},
        {"::1", "[::1]:6817"},
        {"unix:/run/spur/ctl.sock", "unix:/run/spur/ctl.sock"},
        {"unix:///run/x", "unix:/run/x"},
        {" a , http://b:2 ", "a:6817 b:2"},
        {"a.b.:3", "a.b.:3"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        autofree char **out = NULL;
        size_t n;
        struct err e;
        auto_str s = {0};
        if (addresses_parse(rows[i].text, 6817, &out, &n, &e))
            fail_msg("%s: %s", rows[i].text, e.text);
        for (size_t k = 0; k < n; k++)
            str_addf(&s, "%s%s", k ? " " : "", out[k]);
        assert_string_equal(str_text(&s), rows[i].is);
    }
    const char *const bad[] = {"", ",", "a,", "a,,b", ":1", "a:", "a:0", "a:65536", "a:x", "a:1:2x", "https://a:1",
                               "[::1", "[::1]x", "[zz]:1", "a b:1", "a/b:1", "unix:", "unix:relative", "http://",
                               "ftp://a:1", "a:-1", "a: 1", "unix", "http://unix:1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char **out;
        size_t n;
        struct err e = {0};
        int rc = addresses_parse(bad[i], 6817, &out, &n, &e);
        if (rc != E_SYNTAX)
            fail_msg("'%s' was taken", bad[i]);
        assert_true(e.text[0]);
    }
    autofree char *longer = xcalloc(1, 400);
    memset(longer, 'a', 399);
    char **out;
    size_t n;
    assert_int_equal(addresses_parse(longer, 1, &out, &n, NULL), E_SYNTAX);
    memcpy(longer, "unix:/", 6);
    assert_int_equal(addresses_parse(longer, 1, &out, &n, NULL), E_SYNTAX);
    assert_int_equal(addresses_parse("host", 0, &out, &n, NULL), E_SYNTAX);
}

static void test_guard(void **state) {
    struct guard g;
    guard_init(&g, 1000);
    for (int i = 0; i < GUARD_BURST; i++)
        assert_true(guard_take(&g, 1000, 1));
    assert_false(guard_take(&g, 1000, 1));
    assert_false(guard_take(&g, 1004, 1)); /* less than a token */
    assert_true(guard_take(&g, 1005, 1));
    assert_false(guard_take(&g, 1005, 1));
    for (int i = 0; i < GUARD_PER_S; i++)
        assert_true(guard_take(&g, 2005, 1));
    assert_false(guard_take(&g, 2005, 1));
    assert_true(guard_take(&g, 1000000, GUARD_BURST)); /* not more than the burst */
    assert_false(guard_take(&g, 1000000, 1));
    assert_int_equal(guard_cost(&(nghttp2_frame_hd){.type = NGHTTP2_DATA, .length = 5}), 0);
    assert_int_equal(guard_cost(&(nghttp2_frame_hd){.type = NGHTTP2_DATA}), 1);
    assert_int_equal(guard_cost(&(nghttp2_frame_hd){.type = NGHTTP2_DATA, .flags = NGHTTP2_FLAG_END_STREAM}), 0);
    assert_int_equal(guard_cost(&(nghttp2_frame_hd){.type = NGHTTP2_HEADERS}), 0);
    assert_int_equal(guard_cost(&(nghttp2_frame_hd){.type = NGHTTP2_PING}), 1);
    assert_int_equal(guard_cost(&(nghttp2_frame_hd){.type = 99}), 1);
}

static void test_descriptors(void **state) {
    auto_buf b = {0};
    FILE *f = fopen(DESCRIPTORS, "rb");
    assert_non_null(f);
    b.n = fread(buf_reserve(&b, 65536), 1, 65536, f);
    fclose(f);
#define RD(text) rd_of(text, strlen(text))
    struct rd set = rd_of(b.p, b.n);
    struct rd echo = descriptor_file(set, RD("echo.proto")), word = descriptor_file(set, RD("echo_word.proto"));
    assert_non_null(echo.p);
    assert_non_null(word.p);
    assert_null(descriptor_file(set, RD("echo")).p);
    const char *const in_echo[] = {"spur.test.Echoed", "spur.test.Echoed.Inner", "spur.test.Echoed.Inner.text",
                                   "spur.test.Echoed.data", "spur.test.Echoed.Kind", "spur.test.Echoed.LOUD",
                                   "spur.test.Echo", "spur.test.Echo.Chat"};
    for (size_t i = 0; i < ARRAY_LEN(in_echo); i++)
        assert_ptr_equal(descriptor_of_symbol(set, RD(in_echo[i])).p, echo.p);
    assert_ptr_equal(descriptor_of_symbol(set, RD("spur.test.words.Word.text")).p, word.p);
    const char *const nowhere[] = {"", "spur", "spur.test", "spur.test.", "spur.test.Ech", "spur.test.Echo.Nope",
                                   "spur.test.Echoed.Kind.LOUD", "Echo", ".spur.test.Echo", "spur.test.words"};
    for (size_t i = 0; i < ARRAY_LEN(nowhere); i++)
        assert_null(descriptor_of_symbol(set, RD(nowhere[i])).p);
    struct rd dependency = descriptor_dependency(echo, 0);
    assert_memory_equal(dependency.p, "echo_word.proto", 15);
    assert_null(descriptor_dependency(echo, 1).p);
    for (size_t cut = 0; cut < b.n; cut++) { /* broken sets are read to their end and no further */
        autofree uint8_t *part = xmemdup(b.p, cut);
        descriptor_of_symbol(rd_of(part, cut), RD("spur.test.Echo.Chat"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_survive_any_cut),
        cmocka_unit_test(test_a_long_stream_keeps_its_queues_small),
        cmocka_unit_test(test_high_water),
        cmocka_unit_test(test_frames_are_refused_early),
        cmocka_unit_test(test_percent),
        cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_content_types),
        cmocka_unit_test(test_metadata_is_checked),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
