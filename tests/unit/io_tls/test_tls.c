/* SPDX-License-Identifier: Apache-2.0
 *
 * Both ends of a TLS connection on one loop; what speaks over it are the test's own reads and writes of two descriptors.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "certs.h"
#include "io/loop/loop.h"
#include "io/tls/tls.h"

enum { PATIENCE_MS = 20000 };

static char dir[] = "/tmp/spur-tls-XXXXXX";

struct end {
    struct tls *tls;
    struct tls_wrap *wrap;
    int fd;
    struct err why;
    bool is_done;
};

struct rig {
    struct loop *l;
    struct end server, client;
    bool is_mutual;
    char told[256];
    bool told_problem;
};

static char *in_dir(const char *stem, const char *end) {
    return stem ? xasprintf("%s/%s.%s", dir, stem, end) : NULL;
}

static void on_notice(void *arg, bool is_problem, const char *text) {
    struct rig *r = arg;
    r->told_problem = is_problem;
    snprintf(r->told, sizeof(r->told), "%s", text);
}

static int context(struct rig *r, struct tls **out, const char *cert, const char *ca, enum tls_verify verify, struct err *e) {
    autofree char *pem = in_dir(cert, "pem"), *key = in_dir(cert, "key"), *ca_pem = in_dir(ca, "pem");
    struct tls_conf c = {.mode = TLS_REQUIRE, .verify = verify, .cert = pem, .key = key, .ca = ca_pem,
                         .notice = on_notice, .arg = r};
    return tls_new(&c, out, e);
}

static void contexts(struct rig *r, const char *server_cert, bool wants, const char *client_cert, const char *client_ca,
                     enum tls_verify verify) {
    struct err e = {0};
    assert_int_equal(context(r, &r->server.tls, server_cert, "ca", TLS_VERIFY_FULL, &e), 0);
    assert_int_equal(context(r, &r->client.tls, client_cert, client_ca, verify, &e), 0);
    r->is_mutual = wants;
}

static void on_wrapped(void *arg, int fd, const struct err *why) {
    struct end *end = arg;
    end->is_done = true;
    end->wrap = NULL;
    end->fd = fd;
    if (why)
        end->why = *why;
}

static bool both_are_done(void *arg) {
    struct rig *r = arg;
    return r->server.is_done && r->client.is_done;
}

static void connected(int out[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, out), 0);
}

static void shake(struct rig *r, const char *host) {
    int pair[2];
    connected(pair);
    r->server.is_done = r->client.is_done = false;
    r->server.wrap = tls_accept(r->server.tls, r->l, pair[0], NULL, 0, r->is_mutual, on_wrapped, &r->server);
    r->client.wrap = tls_connect(r->client.tls, r->l, pair[1], host, on_wrapped, &r->client);
    assert_false(r->server.is_done || r->client.is_done);
    assert_true(loop_run_until(r->l, both_are_done, r, PATIENCE_MS));
}

/* The test's own descriptors wake nobody: conditions are looked at each millisecond. */
static void on_tick(void *arg) {
    struct rig *r = arg;
    loop_timer_start(r->l, 1, on_tick, r);
}

static int setup(void **state) {
    struct rig *r = xnew(struct rig);
    r->l = loop_new("test");
    on_tick(r);
    r->server.fd = r->client.fd = -1;
    *state = r;
    return 0;
}

static int teardown(void **state) {
    struct rig *r = *state;
    if (r->server.fd >= 0)
        close(r->server.fd);
    if (r->client.fd >= 0)
        close(r->client.fd);
    loop_free(r->l);
    tls_free(r->server.tls);
    tls_free(r->client.tls);
    free(r);
    return 0;
}

/* ---- bytes ---- */

struct flow {
    int from, to;
    size_t n, sent, got;
    bool is_wrong, is_ended;
};

static uint8_t byte_at(size_t i) {
    return (uint8_t)(i * 2654435761u >> 13);
}

static void flow_send(struct flow *f) {
    uint8_t b[8192];
    size_t n = MIN(sizeof(b), f->n - f->sent);
    for (size_t i = 0; i < n; i++)
        b[i] = byte_at(f->sent + i);
    ssize_t done = n ? write(f->from, b, n) : 0;
    if (done > 0)
        f->sent += (size_t)done;
}

/* All there is: nothing wakes the loop for what is left. */
static void flow_read(struct flow *f) {
    uint8_t b[8192];
    ssize_t n;
    while ((n = read(f->to, b, sizeof(b))) > 0)
        for (ssize_t i = 0; i < n; i++)
            f->is_wrong |= b[i] != byte_at(f->got++);
    f->is_ended |= n == 0;
}

static bool flows_are_done(void *arg) {
    struct flow *f = arg;
    for (int i = 0; i < 2; i++) {
        flow_send(&f[i]);
        flow_read(&f[i]);
    }
    return f[0].got == f[0].n && f[1].got == f[1].n;
}

static void test_bytes_go_both_ways(void **state) {
    struct rig *r = *state;
    contexts(r, "server", false, NULL, "ca", TLS_VERIFY_FULL);
    shake(r, "node1.example");
    assert_true(r->server.fd >= 0 && r->client.fd >= 0);
    struct flow f[2] = {{r->client.fd, r->server.fd, 9 << 20}, {r->server.fd, r->client.fd, 5 << 20}};
    assert_true(loop_run_until(r->l, flows_are_done, f, PATIENCE_MS));
    assert_false(f[0].is_wrong || f[1].is_wrong);
}

static bool never(void *arg) {
    return false;
}

static bool is_ended(void *arg) {
    struct flow *f = arg;
    flow_send(f);
    flow_read(f);
    return f->is_ended;
}

/* A reader that takes nothing stops the sender, and what he was sent is there when he reads. */
static void test_a_slow_reader_stops_the_sender(void **state) {
    struct rig *r = *state;
    contexts(r, "server", false, NULL, "ca", TLS_VERIFY_FULL);
    shake(r, "node1.example");
    struct flow f = {r->client.fd, r->server.fd, 64 << 20};
    size_t before;
    do {
        before = f.sent;
        for (int i = 0; i < 100; i++) {
            flow_send(&f);
            loop_run_until(r->l, never, NULL, 1);
        }
    } while (f.sent > before);
    assert_true(f.sent < 8 << 20);
    f.n = f.sent;
    assert_int_equal(shutdown(r->client.fd, SHUT_WR), 0);
    assert_true(loop_run_until(r->l, is_ended, &f, PATIENCE_MS));
    assert_int_equal(f.got, f.n);
    assert_false(f.is_wrong);
    /* the other half still stands */
    struct flow back = {r->server.fd, r->client.fd, 1 << 20};
    while (back.sent < back.n || back.got < back.n) {
        flow_send(&back);
        flow_read(&back);
        loop_run_until(r->l, never, NULL, 1);
    }
    assert_false(back.is_wrong);
}

static void test_a_closed_end_is_seen(void **state) {
    struct rig *r = *state;
    contexts(r, "server", false, NULL, "ca", TLS_VERIFY_FULL);
    shake(r, "node1.example");
    close(r->server.fd);
    r->server.fd = -1;
    struct flow f = {r->client.fd, r->client.fd, 0};
    assert_true(loop_run_until(r->l, is_ended, &f, PATIENCE_MS));
}

/* ---- who is believed ---- */

static void test_names_and_addresses(void **state) {
    struct rig *r = *state;
    contexts(r, "server", false, NULL, "ca", TLS_VERIFY_FULL);
    shake(r, "127.0.0.1");
    assert_true(r->client.fd >= 0);
    close(r->client.fd);
    close(r->server.fd);
    shake(r, "node2.example");
    assert_int_equal(r->client.fd, -1);
    assert_int_equal(r->client.why.code, E_NO_PROOF);
    assert_non_null(strstr(r->client.why.text, "hostname mismatch"));
    assert_int_equal(r->server.fd, -1);
}

static void test_an_unknown_signer_is_refused(void **state) {
    struct rig *r = *state;
    contexts(r, "server", false, NULL, "other-ca", TLS_VERIFY_FULL);
    shake(r, "node1.example");
    assert_int_equal(r->client.why.code, E_NO_PROOF);
    assert_int_equal(r->client.fd, -1);
}

static void test_one_that_has_run_out_is_refused(void **state) {
    struct rig *r = *state;
    contexts(r, "old", false, NULL, "ca", TLS_VERIFY_CA);
    assert_true(tls_expires_in(r->server.tls, NULL) < 0);
    shake(r, "node1.example");
    assert_int_equal(r->client.why.code, E_NO_PROOF);
    assert_non_null(strstr(r->client.why.text, "expired"));
}

static void test_less_may_be_asked(void **state) {
    struct rig *r = *state;
    contexts(r, "server", false, NULL, "ca", TLS_VERIFY_CA);
    shake(r, "node2.example");
    assert_true(r->client.fd >= 0 && r->server.fd >= 0);
}

static void test_certificates_of_clients(void **state) {
    struct rig *r = *state;
    contexts(r, "server", true, "client", "ca", TLS_VERIFY_FULL);
    shake(r, "node1.example");
    assert_true(r->client.fd >= 0 && r->server.fd >= 0);
}

static bool server_is_done(void *arg) {
    struct rig *r = arg;
    return r->server.is_done;
}

static void test_a_client_without_one_is_refused(void **state) {
    struct rig *r = *state;
    contexts(r, "server", true, NULL, "ca", TLS_VERIFY_FULL);
    int pair[2];
    connected(pair);
    tls_accept(r->server.tls, r->l, pair[0], NULL, 0, r->is_mutual, on_wrapped, &r->server);
    tls_connect(r->client.tls, r->l, pair[1], "node1.example", on_wrapped, &r->client);
    assert_true(loop_run_until(r->l, server_is_done, r, PATIENCE_MS));
    assert_int_equal(r->server.fd, -1);
}

/* ---- who speaks something else ---- */

static void test_plain_text_is_no_hello(void **state) {
    assert_false(tls_is_hello("PRI * HTTP/2.0\r\n\r\n", 18));
    assert_false(tls_is_hello("", 0));
    assert_true(tls_is_hello("\x16\x03\x01", 1));
}

static bool client_is_done(void *arg) {
    struct rig *r = arg;
    return r->client.is_done;
}

static void test_a_peer_without_tls(void **state) {
    struct rig *r = *state;
    contexts(r, "server", false, NULL, "ca", TLS_VERIFY_FULL);
    int pair[2];
    connected(pair);
    assert_int_equal(write(pair[0], "\0\0\0\x04\0\0\0\0\0", 9), 9); /* a server's settings */
    tls_connect(r->client.tls, r->l, pair[1], "node1.example", on_wrapped, &r->client);
    assert_true(loop_run_until(r->l, client_is_done, r, PATIENCE_MS));
    assert_int_equal(r->client.why.code, E_TLS);
    close(pair[0]);
    r->client.is_done = false;
    connected(pair);
    close(pair[0]);
    tls_connect(r->client.tls, r->l, pair[1], "node1.example", on_wrapped, &r->client);
    assert_true(loop_run_until(r->l, client_is_done, r, PATIENCE_MS));
    assert_int_equal(r->client.why.code, E_UNREACHABLE);
}

static void test_cancelled_on_the_way(void **state) {
    struct rig *r = *state;
    contexts(r, "server", false, NULL, "ca", TLS_VERIFY_FULL);
    int pair[2];
    connected(pair);
    struct tls_wrap *at_once = tls_connect(r->client.tls, r->l, pair[1], "node1.example", on_wrapped, &r->client);
    tls_cancel(at_once);
    r->server.wrap = tls_accept(r->server.tls, r->l, pair[0], "\x16", 1, false, on_wrapped, &r->server);
    assert_true(loop_run_until(r->l, server_is_done, r, PATIENCE_MS)); /* the other end has gone */
    assert_false(r->client.is_done);
}

/* Wraps that live when their loop goes are freed with their context. */
static void test_left_open_at_the_end(void **state) {
    struct rig *r = *state;
    contexts(r, "server", false, NULL, "ca", TLS_VERIFY_FULL);
    shake(r, "node1.example");
    assert_int_equal(write(r->client.fd, "more", 4), 4);
}

/* ---- files ---- */

static void copy(const char *from, const char *to, const char *end) {
    autofree char *a = in_dir(from, end), *b = in_dir(to, end);
    char bytes[8192];
    autoclose int in = open(a, O_RDONLY | O_CLOEXEC), out = open(b, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t n = read(in, bytes, sizeof(bytes));
    assert_true(n > 0);
    assert_int_equal(write(out, bytes, (size_t)n), n);
}

static bool was_told(void *arg) {
    struct rig *r = arg;
    tls_expires_in(r->server.tls, NULL); /* looks at the files, as a new connection does */
    return r->told[0];
}

static void test_a_changed_certificate_is_taken(void **state) {
    struct rig *r = *state;
    copy("server", "live", "pem");
    copy("server", "live", "key");
    contexts(r, "live", false, NULL, "ca", TLS_VERIFY_FULL);
    shake(r, "node1.example");
    close(r->client.fd);
    close(r->server.fd);
    copy("client", "live", "pem"); /* the key is still the other's */
    assert_true(loop_run_until(r->l, was_told, r, PATIENCE_MS));
    assert_true(r->told_problem);
    shake(r, "node1.example");
    assert_true(r->client.fd >= 0);
    close(r->client.fd);
    close(r->server.fd);
    r->told[0] = 0;
    copy("client", "live", "key");
    assert_true(loop_run_until(r->l, was_told, r, PATIENCE_MS));
    assert_false(r->told_problem);
    shake(r, "user.example");
    assert_true(r->client.fd >= 0);
}

static void test_files_that_are_wrong(void **state) {
    struct rig *r = *state;
    struct err e = {0};
    struct tls *t = NULL;
    assert_int_equal(context(r, &t, "nowhere", NULL, TLS_VERIFY_FULL, &e), E_CONFIG);
    assert_non_null(strstr(e.text, "nowhere.pem"));
    copy("server", "torn", "pem");
    copy("client", "torn", "key");
    assert_int_equal(context(r, &t, "torn", NULL, TLS_VERIFY_FULL, &e), E_CONFIG);
    assert_non_null(strstr(e.text, "torn.key"));
    assert_int_equal(context(r, &t, "server", "nowhere", TLS_VERIFY_FULL, &e), E_CONFIG);
    assert_null(t);
}

/* What is off needs no file, and what can't be taken over leaves what is there. */
static void test_set_later(void **state) {
    struct rig *r = *state;
    struct err e = {0};
    struct tls_conf off = {.mode = TLS_OFF}, wrong = {.mode = TLS_REQUIRE, .cert = "/nowhere.pem", .key = "/nowhere.key"};
    contexts(r, "server", false, NULL, "ca", TLS_VERIFY_FULL);
    unsigned before = tls_generation(r->server.tls);
    assert_int_equal(tls_set(r->server.tls, &wrong, &e), E_CONFIG);
    assert_int_equal(tls_generation(r->server.tls), before);
    shake(r, "node1.example");
    assert_true(r->client.fd >= 0 && r->server.fd >= 0);
    assert_int_equal(tls_set(r->server.tls, &off, &e), 0);
    assert_int_equal(tls_mode(r->server.tls), TLS_OFF);
    assert_true(tls_generation(r->server.tls) != before);
    struct flow f = {r->client.fd, r->server.fd, 1 << 20}, back = {r->server.fd, r->client.fd, 1 << 20};
    struct flow both[2] = {f, back}; /* what stands goes on */
    assert_true(loop_run_until(r->l, flows_are_done, both, PATIENCE_MS));
    close(r->client.fd);
    close(r->server.fd);
    shake(r, "node1.example");
    assert_int_equal(r->server.why.code, E_CONFIG);
    assert_int_equal(tls_mode(NULL), TLS_OFF);
}

int main(void) {
    must(mkdtemp(dir));
    certs_make(dir, "ca", NULL, &(struct certs){"ca.example", NULL, 86400});
    certs_make(dir, "other-ca", NULL, &(struct certs){"ca.example", NULL, 86400});
    certs_make(dir, "server", "ca", &(struct certs){"node1.example", "127.0.0.1", 86400});
    certs_make(dir, "old", "ca", &(struct certs){"node1.example", NULL, -60});
    certs_make(dir, "client", "ca", &(struct certs){"user.example", NULL, 86400});
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        T(test_bytes_go_both_ways), T(test_a_slow_reader_stops_the_sender), T(test_a_closed_end_is_seen),
        T(test_names_and_addresses), T(test_an_unknown_signer_is_refused), T(test_one_that_has_run_out_is_refused),
        T(test_less_may_be_asked), T(test_certificates_of_clients), T(test_a_client_without_one_is_refused),
        T(test_plain_text_is_no_hello), T(test_a_peer_without_tls), T(test_cancelled_on_the_way),
        T(test_left_open_at_the_end), T(test_a_changed_certificate_is_taken), T(test_files_that_are_wrong), T(test_set_later),
#undef T
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    autofree char *rm = xasprintf("rm -r %s", dir);
    FILE *p = popen(rm, "r");
    if (p)
        pclose(p);
    return failed;
}
