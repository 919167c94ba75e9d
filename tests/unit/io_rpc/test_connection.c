/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that come, go, break and lie: what the channel makes of it, and the server's drain.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig.h"

#define UNARY "/spur.test.Echo/Unary"
#define NUMBERS "/spur.test.Echo/Numbers"

/* A port on which nobody listens, and which nobody else is given while `fd` is open. */
static uint16_t dead_port(int *fd) {
    struct sockaddr_in in = {.sin_family = AF_INET};
    socklen_t n = sizeof(in);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&in, sizeof(in)), 0);
    getsockname(*fd, (struct sockaddr *)&in, &n);
    return ntohs(in.sin_port);
}

static void test_nobody_there(void **state) {
    struct rig *r = *state;
    int fd;
    char target[64], expected[128];
    struct outcome o = {0}, second = {0};
    snprintf(target, sizeof(target), "127.0.0.1:%u", dead_port(&fd));
    struct rpc_channel *ch = rig_channel(r, target);
    call(ch, UNARY, NULL, NULL, 0, 0, &o);
    call(ch, UNARY, NULL, NULL, 0, 0, &second);
    assert_int_equal(o.done, 0);
    WAIT(r->l, o.done && second.done);
    assert_int_equal(o.code, E_UNREACHABLE);
    snprintf(expected, sizeof(expected), "Unable to contact %s: connection refused", target);
    assert_string_equal(o.why.text, expected);
    assert_int_equal(second.code, E_UNREACHABLE);
    assert_string_equal(rpc_channel_address(ch), target);
    rpc_channel_free(ch);
    ch = rig_channel(r, "unix:/nonexistent/socket");
    call(ch, UNARY, NULL, NULL, 0, 0, &o);
    WAIT(r->l, o.done == 2);
    assert_string_equal(o.why.text, "Unable to contact unix:/nonexistent/socket: no such file or directory");
    rpc_channel_free(ch);
    ch = rig_channel(r, "no-such-host.invalid:1");
    call(ch, UNARY, NULL, NULL, 0, 0, &o);
    WAIT(r->l, o.done == 3);
    assert_int_equal(o.code, E_UNREACHABLE);
    rpc_channel_free(ch);
    close(fd);
}

struct again {
    struct rpc_channel *ch;
    struct outcome last;
    int left;
};

static void send_again(void *arg, int code, const struct err *why, const void *message, size_t n) {
    struct again *a = arg;
    if (a->left-- > 0)
        rpc_send(a->ch, UNARY, NULL, NULL, 0, 0, send_again, a);
    else
        a->last.code = code, a->last.done = 1;
}

static void test_a_caller_may_try_again_when_it_failed(void **state) {
    struct rig *r = *state;
    int fd;
    char target[64];
    snprintf(target, sizeof(target), "127.0.0.1:%u", dead_port(&fd));
    struct again a = {.ch = rig_channel(r, target), .left = 3};
    rpc_send(a.ch, UNARY, NULL, NULL, 0, 0, send_again, &a);
    WAIT(r->l, a.last.done);
    assert_int_equal(a.last.code, E_UNREACHABLE);
    rpc_channel_free(a.ch);
    close(fd);
}

static void test_the_next_address(void **state) {
    struct rig *r = *state;
    int fd;
    char targets[128];
    snprintf(targets, sizeof(targets), "127.0.0.1:%u,unix:/nonexistent,http://%s", dead_port(&fd), r->address);
    struct rpc_channel *ch = rig_channel(r, targets);
    struct outcome o = {0};
    call(ch, UNARY, NULL, "x", 1, 0, &o);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    assert_string_equal(rpc_channel_address(ch), r->address);
    rpc_channel_free(ch);
    outcome_fini(&o);
    close(fd);
}

/* A listener whose queue is full: the kernel answers nothing, as a host does that swallows packets. */
static void test_an_address_that_swallows_packets(void **state) {
    struct rig *r = *state;
    int fd, filler[4];
    char targets[128];
    uint16_t port = dead_port(&fd);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(listen(fd, 0), 0);
    for (int i = 0; i < 4; i++) {
        filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(filler[i], (struct sockaddr *)&in, sizeof(in));
    }
    snprintf(targets, sizeof(targets), "127.0.0.1:%u,%s", port, r->address);
    struct rpc_channel *ch = rig_channel(r, targets);
    struct outcome o = {0};
    int64_t from = loop_now_ms(r->l);
    call(ch, UNARY, NULL, "x", 1, 0, &o);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    assert_true(loop_now_ms(r->l) - from < 5000); /* connect_ms is twice that */
    rpc_channel_free(ch);
    struct rpc_channel_conf conf = {.targets = targets, .connect_ms = 80};
    *strchr(targets, ',') = 0;
    assert_int_equal(rpc_channel_new(r->l, &conf, &ch, NULL), 0);
    call(ch, UNARY, NULL, "x", 1, 0, &o);
    WAIT(r->l, o.done == 2);
    assert_int_equal(o.code, E_UNREACHABLE);
    assert_non_null(strstr(o.why.text, "no answer"));
    rpc_channel_free(ch);
    outcome_fini(&o);
    for (int i = 0; i < 4; i++)
        close(filler[i]);
    close(fd);
}

static void test_a_server_that_dies_mid_call(void **state) {
    struct rig *r = *state;
    struct outcome o = {0}, s = {0};
    uint16_t port = r->port;
    call(r->ch, UNARY, "never: 1", NULL, 0, 0, &o);
    stream(r->ch, NUMBERS, "count: 2\nnever: 1", NULL, 0, 0, &s);
    WAIT(r->l, s.n_messages == 2 && r->echo.never_open == 2);
    rpc_server_free(r->s);
    r->s = NULL;
    WAIT(r->l, o.done && s.done);
    assert_int_equal(o.code, E_UNREACHABLE); /* it may have been processed: its caller decides */
    assert_int_equal(s.code, E_UNREACHABLE);
    r->s = rig_server(r, NULL, &port); /* it is back on its port */
    call_wait(r, NULL, "again", 5, &o);
    assert_int_equal(o.code, 0);
    outcome_fini(&o);
    outcome_fini(&s);
}

static void test_a_server_that_was_restarted_while_nobody_looked(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    int pair = 0;
    call_wait(r, NULL, "1", 1, &o);
    /* The channel lives on another loop, which doesn't run while the server goes and comes back. */
    struct loop *own = loop_new("client");
    struct rpc_channel *ch;
    struct rpc_channel_conf conf = {.targets = r->address};
    assert_int_equal(rpc_channel_new(own, &conf, &ch, NULL), 0);
    for (pair = 0; pair < 2; pair++) {
        struct outcome mine = {0};
        call(ch, UNARY, NULL, "2", 1, 0, &mine);
        for (int64_t until = loop_now_ms(own) + PATIENCE_MS; !mine.done && loop_now_ms(own) < until;) {
            rig_turn(own);
            rig_turn(r->l);
        }
        assert_int_equal(mine.done, 1);
        assert_int_equal(mine.code, 0);
        outcome_fini(&mine);
        uint16_t port = r->port;
        rpc_server_free(r->s);
        rig_turn(r->l); /* sockets are closed */
        rig_turn(r->l);
        r->s = rig_server(r, NULL, &port);
    }
    rpc_channel_free(ch);
    loop_free(own);
    outcome_fini(&o);
}

static void set_done(void *arg) {
    *(bool *)arg = true;
}

static void test_drain_lets_calls_end(void **state) {
    struct rig *r = *state;
    struct outcome o = {0}, late = {0};
    bool drained = false;
    uint16_t port2 = 0;
    call(r->ch, UNARY, "sleep-ms: 150", "slow", 4, 0, &o);
    WAIT(r->l, r->echo.started == 1);
    struct rpc_server *old = r->s;
    r->s = rig_server(r, NULL, &port2);
    rpc_server_drain(old, 10000, set_done, &drained);
    rpc_server_drain(old, 10000, set_done, &drained); /* twice is once */
    struct raw raw = {.l = r->l, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(r->port)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rig_turn(r->l);
    assert_int_equal(connect(raw.fd, (struct sockaddr *)&in, sizeof(in)), -1); /* nobody listens */
    close(raw.fd);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    WAIT(r->l, drained);
    assert_int_equal(rpc_server_stats(old).connections_now, 0);
    rpc_server_free(old);
    call_wait(r, NULL, NULL, 0, &late);
    assert_int_equal(late.code, E_UNREACHABLE); /* the channel knows the old port only */
    outcome_fini(&o);
    outcome_fini(&late);
}

static void test_drain_with_nobody_there(void **state) {
    struct rig *r = *state;
    bool drained = false;
    rpc_server_drain(r->s, 10000, set_done, &drained);
    assert_false(drained);
    WAIT(r->l, drained);
}

static void test_drain_ends_what_does_not_end(void **state) {
    struct rig *r = *state;
    struct outcome o = {0}, s = {0};
    bool drained = false;
    call(r->ch, UNARY, "never: 1", NULL, 0, 0, &o);
    stream(r->ch, NUMBERS, "count: 1\nnever: 1", NULL, 0, 0, &s);
    WAIT(r->l, r->echo.never_open == 2);
    rpc_server_drain(r->s, 50, set_done, &drained);
    WAIT(r->l, drained);
    assert_int_equal(r->echo.cancelled, 2);
    WAIT(r->l, o.done && s.done);
    assert_int_equal(o.code, E_STOPPING);
    assert_int_equal(s.code, E_STOPPING);
    outcome_fini(&o);
    outcome_fini(&s);
}

/* Calls all the time, while one server after the other goes and comes on the same two addresses: none may fail. */
struct load {
    struct rig *r;
    struct rpc_channel *ch;
    unsigned ok, failed, open;
    bool stop;
    struct err why;
};

static void load_one(struct load *l);

static void load_done(void *arg, int code, const struct err *why, const void *message, size_t n) {
    struct load *l = arg;
    l->open--;
    if (code == 0)
        l->ok++;
    else
        l->failed++, l->why = *why;
    if (!l->stop)
        load_one(l);
}

static void load_one(struct load *l) {
    l->open++;
    rpc_send(l->ch, UNARY, l->ok % 3 ? NULL : "sleep-ms: 2", "load", 4, 0, load_done, l);
}

static void test_no_call_is_lost_over_drains(void **state) {
    struct rig *r = *state;
    struct rpc_server *two[2] = {r->s, NULL};
    uint16_t port[2] = {r->port, 0};
    char targets[128];
    two[1] = rig_server(r, NULL, &port[1]);
    snprintf(targets, sizeof(targets), "127.0.0.1:%u,127.0.0.1:%u", port[0], port[1]);
    struct load l = {.r = r, .ch = rig_channel(r, targets)};
    for (int i = 0; i < 20; i++)
        load_one(&l);
    for (int round = 0; round < 10; round++) {
        bool drained = false;
        unsigned before = l.ok;
        WAIT(r->l, l.ok > before + 500);
        rpc_server_drain(two[round % 2], 5000, set_done, &drained);
        WAIT(r->l, drained);
        rpc_server_free(two[round % 2]);
        rig_turn(r->l);
        two[round % 2] = rig_server(r, NULL, &port[round % 2]);
    }
    l.stop = true;
    WAIT(r->l, l.open == 0);
    if (l.failed)
        fail_msg("%u of %u failed: %s", l.failed, l.failed + l.ok, l.why.text);
    rpc_channel_free(l.ch);
    r->s = two[0];
    rpc_server_free(two[1]);
}

/* The server's end of a connection, said by hand. */
static struct raw raw_accept(struct rig *r, int listener) {
    int fd;
    WAIT(r->l, (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0);
    struct raw raw = {.l = r->l, .fd = fd};
    return raw;
}

static int raw_listen(struct rig *r, struct rpc_channel_conf *conf, struct rpc_channel **ch) {
    int fd;
    char target[64];
    snprintf(target, sizeof(target), "127.0.0.1:%u", dead_port(&fd));
    assert_int_equal(listen(fd, 10), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    struct rpc_channel_conf c = conf ? *conf : (struct rpc_channel_conf){0};
    c.targets = target;
    assert_int_equal(rpc_channel_new(r->l, &c, ch, NULL), 0);
    return fd;
}

static void raw_goaway(struct raw *raw, uint8_t last) {
    raw_frame(raw, 7, 0, 0, (uint8_t[]){0, 0, 0, last, 0, 0, 0, 0}, 8);
}

/* Skips the client's magic. */
static void wait_for_request(struct rig *r, struct raw *raw, uint32_t stream) {
    WAIT(r->l, (raw_pump(raw), raw->in.n >= 24));
    if (memcmp(raw->in.p, "PRI", 3) == 0) {
        memmove(raw->in.p, raw->in.p + 24, raw->in.n - 24);
        raw->in.n -= 24;
    }
    WAIT(r->l, raw_has(raw, 0, stream, NULL, NULL));
}

static const char *const ok_headers[] = {":status", "200", "content-type", "application/grpc", NULL};
static const char *const ok_trailers[] = {"grpc-status", "0", NULL};

static void raw_answer(struct raw *raw, uint32_t stream) {
    raw_headers(raw, 4, stream, ok_headers);
    raw_frame(raw, 0, 0, stream, "\0\0\0\0\2hi", 7);
    raw_headers(raw, 5, stream, ok_trailers);
}

static void test_goaway_retries_what_was_not_seen(void **state) {
    struct rig *r = *state;
    struct rpc_channel *ch;
    struct outcome seen = {0}, unseen = {0};
    int listener = raw_listen(r, NULL, &ch);
    call(ch, UNARY, NULL, "1", 1, 0, &seen);
    call(ch, UNARY, NULL, "2", 1, 0, &unseen);
    struct raw first = raw_accept(r, listener);
    raw_frame(&first, 4, 0, 0, NULL, 0);
    wait_for_request(r, &first, 3);
    raw_goaway(&first, 1);
    struct raw second = raw_accept(r, listener); /* for the one that was not seen */
    raw_frame(&second, 4, 0, 0, NULL, 0);
    wait_for_request(r, &second, 1);
    assert_int_equal(seen.done + unseen.done, 0);
    raw_answer(&first, 1); /* the other is still answered on the first */
    WAIT(r->l, seen.done);
    assert_int_equal(seen.code, 0);
    WAIT(r->l, (raw_pump(&first), first.closed)); /* which has no use then */
    raw_goaway(&second, 0); /* a second time it isn't tried again */
    WAIT(r->l, unseen.done);
    assert_int_equal(unseen.code, E_UNREACHABLE);
    raw_close(&first);
    raw_close(&second);
    rpc_channel_free(ch);
    close(listener);
    outcome_fini(&seen);
    outcome_fini(&unseen);
}

static void test_a_refused_stream_is_tried_once_more(void **state) {
    struct rig *r = *state;
    struct rpc_channel *ch;
    struct outcome o = {0};
    int listener = raw_listen(r, NULL, &ch);
    call(ch, UNARY, NULL, "1", 1, 0, &o);
    struct raw raw = raw_accept(r, listener);
    raw_frame(&raw, 4, 0, 0, NULL, 0);
    wait_for_request(r, &raw, 1);
    raw_frame(&raw, 3, 0, 1, "\0\0\0\7", 4);
    WAIT(r->l, raw_has(&raw, 0, 3, NULL, NULL));
    raw_answer(&raw, 3);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    assert_memory_equal(o.message.p, "hi", 2);
    raw_close(&raw);
    rpc_channel_free(ch);
    close(listener);
    outcome_fini(&o);
}

static void test_what_was_sent_and_broke_is_not_repeated(void **state) {
    struct rig *r = *state;
    struct rpc_channel *ch;
    struct outcome o = {0};
    int listener = raw_listen(r, NULL, &ch);
    call(ch, UNARY, NULL, "1", 1, 0, &o);
    struct raw raw = raw_accept(r, listener);
    raw_frame(&raw, 4, 0, 0, NULL, 0);
    wait_for_request(r, &raw, 1);
    raw_headers(&raw, 4, 1, ok_headers);
    raw_frame(&raw, 0, 0, 1, "\0\0\0\0\2h", 6);
    raw_close(&raw);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, E_UNREACHABLE);
    assert_int_equal(accept4(listener, NULL, NULL, SOCK_NONBLOCK), -1);
    rpc_channel_free(ch);
    close(listener);
}

struct odd {
    const char *what;
    const char *const *headers, *const *trailers; /* of the answer; trailers NULL: none */
    const char *data;
    size_t n_data;
    bool is_stream;
    int code;
};

static void test_odd_answers(void **state) {
    struct rig *r = *state;
    static const char *const html[] = {":status", "200", "content-type", "text/html", NULL};
    static const char *const busy[] = {":status", "503", "content-type", "text/plain", NULL};
    static const char *const denied[] = {":status", "403", NULL};
    static const char *const only[] = {":status", "200", "content-type", "application/grpc", "grpc-status", "5", NULL};
    static const char *const ours[] = {":status", "200", "content-type", "application/grpc", "grpc-status", "5",
                                       "spur-error", "50", "grpc-message", "no job%201%", NULL};
    static const char *const status99[] = {"grpc-status", "99", NULL};
    static const char *const statusx[] = {"grpc-status", "x", NULL};
    static const char *const nothing[] = {"x-other", "1", NULL};
    const struct odd rows[] = {
        {"html", html, NULL, "<html>", 6, false, E_PROTOCOL},
        {"503", busy, NULL, "busy", 4, false, E_UNREACHABLE},
        {"403", denied, NULL, NULL, 0, false, E_DENIED},
        {"trailers only", only, NULL, NULL, 0, false, E_NOT_FOUND},
        {"spur-error", ours, NULL, NULL, 0, false, E_JOB_ID},
        {"no status", ok_headers, nothing, "\0\0\0\0\0", 5, false, E_PROTOCOL},
        {"no trailers", ok_headers, NULL, "\0\0\0\0\0", 5, false, E_PROTOCOL},
        {"status 99", ok_headers, status99, NULL, 0, false, E_INTERNAL},
        {"status x", ok_headers, statusx, NULL, 0, false, E_INTERNAL},
        {"no message", ok_headers, ok_trailers, NULL, 0, false, E_PROTOCOL},
        {"two messages", ok_headers, ok_trailers, "\0\0\0\0\0\0\0\0\0\0", 10, false, E_PROTOCOL},
        {"cut message", ok_headers, ok_trailers, "\0\0\0\0\5abc", 8, false, E_PROTOCOL},
        {"cut message of a stream", ok_headers, ok_trailers, "\0\0\0\0\5abc", 8, true, E_PROTOCOL},
        {"compressed", ok_headers, ok_trailers, "\1\0\0\0\1x", 6, false, E_UNSUPPORTED},
        {"compressed in a stream", ok_headers, ok_trailers, "\1\0\0\0\1x", 6, true, E_UNSUPPORTED},
        {"too big", ok_headers, ok_trailers, "\0\x7f\0\0\0x", 6, false, E_TOO_BIG},
        {"too big in a stream", ok_headers, ok_trailers, "\0\x7f\0\0\0x", 6, true, E_TOO_BIG},
        {"good", ok_headers, ok_trailers, "\0\0\0\0\1x", 6, false, 0},
    };
    struct rpc_channel *ch;
    int listener = raw_listen(r, NULL, &ch);
    struct raw raw = {0};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct odd *row = &rows[i];
        struct outcome o = {0};
        uint32_t id = (uint32_t)(2 * i + 1);
        if (row->is_stream)
            stream(ch, NUMBERS, NULL, NULL, 0, 0, &o);
        else
            call(ch, UNARY, NULL, NULL, 0, 0, &o);
        if (i == 0) {
            raw = raw_accept(r, listener);
            raw_frame(&raw, 4, 0, 0, NULL, 0);
        }
        wait_for_request(r, &raw, id);
        bool has_data = row->data != NULL;
        raw_headers(&raw, has_data || row->trailers ? 4 : 5, id, row->headers);
        if (has_data)
            raw_frame(&raw, 0, row->trailers ? 0 : 1, id, row->data, row->n_data);
        if (row->trailers)
            raw_headers(&raw, 5, id, row->trailers);
        WAIT(r->l, o.done);
        if (o.code != row->code)
            fail_msg("%s: %s (%s)", row->what, err_name(o.code), o.why.text);
        if (row->code == E_JOB_ID)
            assert_string_equal(o.why.text, "no job 1%");
        outcome_fini(&o);
    }
    raw_close(&raw);
    rpc_channel_free(ch);
    close(listener);
}

static void test_interim_answers_are_skipped(void **state) {
    struct rig *r = *state;
    static const char *const hints[] = {":status", "103", NULL};
    struct rpc_channel *ch;
    struct outcome o = {0};
    int listener = raw_listen(r, NULL, &ch);
    call(ch, UNARY, NULL, NULL, 0, 0, &o);
    struct raw raw = raw_accept(r, listener);
    raw_frame(&raw, 4, 0, 0, NULL, 0);
    wait_for_request(r, &raw, 1);
    raw_headers(&raw, 4, 1, hints);
    raw_answer(&raw, 1);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, 0);
    raw_close(&raw);
    rpc_channel_free(ch);
    close(listener);
    outcome_fini(&o);
}

static void test_a_peer_that_speaks_something_else(void **state) {
    struct rig *r = *state;
    struct rpc_channel *ch;
    struct outcome o = {0};
    int listener = raw_listen(r, NULL, &ch);
    call(ch, UNARY, NULL, NULL, 0, 0, &o);
    struct raw raw = raw_accept(r, listener);
    raw_send(&raw, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    WAIT(r->l, o.done);
    assert_int_not_equal(o.code, 0);
    raw_close(&raw);
    rpc_channel_free(ch);
    close(listener);
}

static void test_a_peer_that_never_speaks(void **state) {
    struct rig *r = *state;
    struct rpc_channel *ch;
    struct outcome o = {0};
    struct rpc_channel_conf conf = {.connect_ms = 60};
    int listener = raw_listen(r, &conf, &ch);
    call(ch, UNARY, NULL, NULL, 0, 0, &o);
    WAIT(r->l, o.done);
    assert_int_equal(o.code, E_UNREACHABLE);
    assert_non_null(strstr(o.why.text, "doesn't speak"));
    rpc_channel_free(ch);
    close(listener);
}

static void test_pings(void **state) {
    struct rig *r = *state;
    struct rpc_channel *ch;
    struct outcome o = {0};
    struct rpc_channel_conf conf = {.ping_ms = 30, .ping_timeout_ms = 100};
    int listener = raw_listen(r, &conf, &ch);
    call(ch, UNARY, NULL, NULL, 0, 0, &o);
    struct raw raw = raw_accept(r, listener);
    raw_frame(&raw, 4, 0, 0, NULL, 0);
    wait_for_request(r, &raw, 1);
    for (int i = 0; i < 5; i++) { /* answered: the call goes on */
        raw.in.n = 0;
        WAIT(r->l, raw_has(&raw, 6, 0, NULL, NULL));
        raw_frame(&raw, 6, 1, 0, "\0\0\0\0\0\0\0\0", 8);
    }
    assert_int_equal(o.done, 0);
    WAIT(r->l, o.done); /* not answered */
    assert_int_equal(o.code, E_UNREACHABLE);
    assert_non_null(strstr(o.why.text, "ping"));
    raw_close(&raw);
    rpc_channel_free(ch);
    close(listener);
}

static void test_more_calls_than_the_server_allows(void **state) {
    struct rpc_server_conf conf = {.max_streams = 3};
    struct rig *r = rig_new(&conf, NULL);
    enum { N = 50 };
    struct outcome o[N] = {0}, first = {0};
    call_wait(r, NULL, NULL, 0, &first); /* its settings are known then */
    for (int i = 0; i < N; i++)
        call(r->ch, UNARY, "sleep-ms: 2", NULL, 0, 0, &o[i]);
    for (int i = 0; i < N; i++) {
        WAIT(r->l, o[i].done);
        assert_int_equal(o[i].code, 0);
        outcome_fini(&o[i]);
    }
    assert_int_equal(rpc_server_stats(r->s).calls, N + 1);
    outcome_fini(&first);
    rig_free(r);
}

static void test_queued_calls_survive_a_drain(void **state) {
    struct rpc_server_conf conf = {.max_streams = 1};
    struct rig *r = rig_new(&conf, NULL);
    struct outcome o[6] = {0}, first = {0};
    bool drained = false;
    uint16_t port2 = 0;
    char targets[128];
    struct rpc_server *other = rig_server(r, NULL, &port2);
    snprintf(targets, sizeof(targets), "%s,127.0.0.1:%u", r->address, port2);
    struct rpc_channel *ch = rig_channel(r, targets);
    call(ch, UNARY, NULL, NULL, 0, 0, &first);
    WAIT(r->l, first.done);
    for (int i = 0; i < 6; i++)
        call(ch, UNARY, i ? NULL : "sleep-ms: 100", NULL, 0, 0, &o[i]);
    WAIT(r->l, r->echo.started == 2); /* the others wait in the client */
    rpc_server_drain(r->s, 5000, set_done, &drained);
    for (int i = 0; i < 6; i++) {
        WAIT(r->l, o[i].done);
        assert_int_equal(o[i].code, 0);
        outcome_fini(&o[i]);
    }
    WAIT(r->l, drained);
    rpc_channel_free(ch);
    rpc_server_free(other);
    outcome_fini(&first);
    rig_free(r);
}

static void free_channel(void *arg, int code, const struct err *why, const void *message, size_t n) {
    struct rpc_channel **ch = arg;
    rpc_channel_free(*ch);
    *ch = NULL;
}

static void test_the_channel_may_be_freed_by_done(void **state) {
    struct rig *r = *state;
    struct outcome other = {0};
    for (int i = 0; i < 3; i++) {
        struct rpc_channel *ch = rig_channel(r, i == 2 ? "unix:/nonexistent" : r->address);
        if (i == 1)
            call(ch, UNARY, "never: 1", NULL, 0, 0, &other);
        rpc_send(ch, UNARY, NULL, NULL, 0, 0, free_channel, &ch);
        WAIT(r->l, !ch);
    }
    assert_int_equal(other.code, E_CANCELLED);
    WAIT(r->l, r->echo.never_open == 0);
}

static void free_server(struct echo *e, struct rpc_call *c) {
    struct rig *r = (struct rig *)((char *)e - offsetof(struct rig, echo));
    rpc_server_free(r->s);
    r->s = NULL;
}

static void test_the_server_may_be_freed_by_start(void **state) {
    struct rig *r = *state;
    struct outcome o = {0};
    r->echo.on_start = free_server;
    call_wait(r, NULL, "some message", 12, &o);
    assert_int_equal(o.code, E_UNREACHABLE);
    assert_int_equal(r->echo.cancelled, 1);
}

int main(void) {
#define T(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(test_nobody_there),
        T(test_a_caller_may_try_again_when_it_failed),
        T(test_the_next_address),
        T(test_an_address_that_swallows_packets),
        T(test_a_server_that_dies_mid_call),
        T(test_a_server_that_was_restarted_while_nobody_looked),
        T(test_drain_lets_calls_end),
        T(test_drain_with_nobody_there),
        T(test_drain_ends_what_does_not_end),
        T(test_no_call_is_lost_over_drains),
        T(test_goaway_retries_what_was_not_seen),
        T(test_a_refused_stream_is_tried_once_more),
        T(test_what_was_sent_and_broke_is_not_repeated),
        T(test_odd_answers),
        T(test_interim_answers_are_skipped),
        T(test_a_peer_that_speaks_something_else),
        T(test_a_peer_that_never_speaks),
        T(test_pings),
        cmocka_unit_test(test_more_calls_than_the_server_allows),
        cmocka_unit_test(test_queued_calls_survive_a_drain),
        T(test_the_channel_may_be_freed_by_done),
        T(test_the_server_may_be_freed_by_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
