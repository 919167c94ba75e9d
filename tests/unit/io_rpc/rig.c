/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct rpc_server *rig_server(struct rig *r, const struct rpc_server_conf *conf, uint16_t *port) {
    struct rpc_server_conf c = conf ? *conf : (struct rpc_server_conf){0};
    if (!c.methods) {
        c.methods = echo_methods(&c.n_methods);
        c.ctx = &r->echo;
    }
    struct rpc_server *s = rpc_server_new(r->l, &c);
    char address[32];
    struct err e;
    snprintf(address, sizeof(address), "127.0.0.1:%u", *port);
    if (rpc_server_listen(s, address, port, &e))
        fail_msg("%s", e.text);
    return s;
}

struct rpc_channel *rig_channel(struct rig *r, const char *targets) {
    struct rpc_channel *ch;
    struct rpc_channel_conf conf = {.targets = targets};
    assert_int_equal(rpc_channel_new(r->l, &conf, &ch, NULL), 0);
    return ch;
}

struct rig *rig_new(const struct rpc_server_conf *conf, const struct rpc_channel_conf *channel) {
    struct rig *r = xnew(struct rig);
    struct rpc_channel_conf c = channel ? *channel : (struct rpc_channel_conf){0};
    r->l = loop_new("test");
    r->echo.l = r->l;
    r->s = rig_server(r, conf, &r->port);
    snprintf(r->address, sizeof(r->address), "127.0.0.1:%u", r->port);
    c.targets = r->address;
    assert_int_equal(rpc_channel_new(r->l, &c, &r->ch, NULL), 0);
    return r;
}

void rig_free(struct rig *r) {
    rpc_channel_free(r->ch);
    rpc_server_free(r->s);
    loop_free(r->l);
    assert_int_equal(r->echo.started, r->echo.ended);
    free(r);
}

int rig_setup(void **state) {
    *state = rig_new(NULL, NULL);
    return 0;
}

int rig_teardown(void **state) {
    rig_free(*state);
    return 0;
}

void outcome_fini(struct outcome *o) {
    buf_fini(&o->message);
}

static void on_done(void *arg, int code, const struct err *why, const void *message, size_t n) {
    struct outcome *o = arg;
    o->done++;
    o->code = code;
    assert_true((code == 0) == (why == NULL));
    if (why)
        o->why = *why;
    buf_clear(&o->message);
    buf_add(&o->message, message, n);
    if (o->request) {
        const char *trailer = rpc_request_trailer(o->request, "echoed");
        snprintf(o->trailer, sizeof(o->trailer), "%s", trailer ? trailer : "");
    }
}

static bool on_message(void *arg, const void *message, size_t n) {
    struct outcome *o = arg;
    o->n_messages++;
    o->n_bytes += n;
    return o->n_messages != o->pause_after;
}

void call(struct rpc_channel *ch, const char *method, const char *metadata, const void *message, size_t n,
          uint64_t timeout_ms, struct outcome *o) {
    o->request = rpc_send(ch, method, metadata, message, n, timeout_ms, on_done, o);
}

void stream(struct rpc_channel *ch, const char *method, const char *metadata, const void *message, size_t n,
            uint64_t idle_ms, struct outcome *o) {
    o->request = rpc_stream(ch, method, metadata, message, n, idle_ms, on_message, on_done, o);
}

void call_wait(struct rig *r, const char *metadata, const void *message, size_t n, struct outcome *o) {
    unsigned before = o->done;
    call(r->ch, "/spur.test.Echo/Unary", metadata, message, n, 0, o);
    WAIT(r->l, o->done > before);
}

static bool second_time(void *arg) {
    return (*(int *)arg)++ > 0;
}

void rig_turn(struct loop *l) {
    int asked = 0;
    loop_run_until(l, second_time, &asked, 20);
}

struct raw raw_connect(struct loop *l, uint16_t port) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct raw r = {.l = l, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(r.fd, (struct sockaddr *)&in, sizeof(in)), 0);
    fcntl(r.fd, F_SETFL, O_NONBLOCK);
    return r;
}

void raw_close(struct raw *r) {
    buf_fini(&r->in);
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

void raw_pump(struct raw *r) {
    for (;;) {
        ssize_t n = recv(r->fd, buf_reserve(&r->in, 65536), 65536, 0);
        if (n > 0)
            r->in.n += (size_t)n;
        else if (n == 0 || errno != EAGAIN)
            r->closed = true;
        if (n <= 0)
            return;
    }
}

bool raw_try_send(struct raw *r, const void *p, size_t n) {
    const uint8_t *at = p;
    while (n) {
        ssize_t done = send(r->fd, at, n, MSG_NOSIGNAL);
        if (done < 0 && errno != EAGAIN)
            return false;
        if (done < 0)
            rig_turn(r->l);
        else
            at += done, n -= (size_t)done;
    }
    return true;
}

void raw_send(struct raw *r, const void *p, size_t n) {
    assert_true(raw_try_send(r, p, n));
}

static void head(uint8_t out[9], size_t n, uint8_t type, uint8_t flags, uint32_t id) {
    uint8_t h[9] = {(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, type, flags, (uint8_t)(id >> 24),
                    (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};
    memcpy(out, h, sizeof(h));
}

void raw_frame(struct raw *r, uint8_t type, uint8_t flags, uint32_t id, const void *p, size_t n) {
    auto_buf b = {0};
    head(buf_reserve(&b, 9), n, type, flags, id);
    b.n = 9;
    buf_add(&b, p, n);
    raw_try_send(r, b.p, b.n);
}

void raw_hello(struct raw *r) {
    raw_send(r, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    raw_frame(r, 4, 0, 0, NULL, 0);
}

void raw_preface(struct raw *r) {
    raw_hello(r);
    WAIT(r->l, raw_has(r, 4, 0, NULL, NULL));
    raw_frame(r, 4, 1, 0, NULL, 0);
}

/* Literal fields that are not indexed, lengths below 127. */
void raw_headers(struct raw *r, uint8_t flags, uint32_t id, const char *const *pairs) {
    auto_buf b = {0};
    for (; *pairs; pairs += 2) {
        buf_u8(&b, 0);
        for (int i = 0; i < 2; i++) {
            assert_true(strlen(pairs[i]) < 127);
            buf_u8(&b, (uint8_t)strlen(pairs[i]));
            buf_add(&b, pairs[i], strlen(pairs[i]));
        }
    }
    raw_frame(r, 1, flags, id, b.p, b.n);
}

void raw_request(struct raw *r, uint32_t id, const char *path, const void *message, size_t n) {
    const char *pairs[] = {":method", "POST", ":scheme", "http", ":path", path, ":authority", "x",
                           "te", "trailers", "content-type", "application/grpc", NULL};
    auto_buf b = {0};
    uint8_t prefix[5] = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    raw_headers(r, 4, id, pairs);
    buf_add(&b, prefix, 5);
    buf_add(&b, message, n);
    raw_frame(r, 0, 1, id, b.p, b.n);
}

bool raw_has(struct raw *r, uint8_t type, uint32_t id, const uint8_t **out, size_t *out_n) {
    raw_pump(r);
    for (size_t at = 0; at + 9 <= r->in.n;) {
        const uint8_t *h = r->in.p + at;
        size_t n = (size_t)h[0] << 16 | (size_t)h[1] << 8 | h[2];
        uint32_t its = (uint32_t)h[5] << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8];
        if (at + 9 + n > r->in.n)
            return false;
        if (h[3] == type && (id == UINT32_MAX || id == its)) {
            if (out) {
                *out = h + 9;
                *out_n = n;
            }
            return true;
        }
        at += 9 + n;
    }
    return false;
}

bool raw_has_goaway(struct raw *r, uint32_t error) {
    const uint8_t *p;
    size_t n;
    return raw_has(r, 7, 0, &p, &n) && n >= 8 &&
           ((uint32_t)p[4] << 24 | (uint32_t)p[5] << 16 | (uint32_t)p[6] << 8 | p[7]) == error;
}
