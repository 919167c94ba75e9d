/* SPDX-License-Identifier: Apache-2.0
 *
 * Task streams against a peer of the test's own, which speaks the protocol of wire/stream.h over a real connection and
 * does what nodes do at their worst: it breaks off in the middle, sends again what was received, and asks to come later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "spur/stream.h"

/* ---- the peer ---- */

struct peer {
    int listener;
    uint16_t port;
    void (*play)(struct peer *p);
    pthread_t thread;
    int fd;
    struct buf in;
    uint32_t opens;
    struct buf got; /* input of the tasks */
};

static void peer_start(struct peer *p, void (*play)(struct peer *p)) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    *p = (struct peer){.play = play, .fd = -1};
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listener, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(p->listener, 8), 0);
    assert_int_equal(getsockname(p->listener, (struct sockaddr *)&a, &n), 0);
    p->port = ntohs(a.sin_port);
    must(pthread_create(&p->thread, NULL, (void *(*)(void *))(void *)play, p) == 0);
}

static void peer_stop(struct peer *p) {
    must(pthread_join(p->thread, NULL) == 0);
    if (p->fd >= 0)
        close(p->fd);
    close(p->listener);
    buf_fini(&p->in);
    buf_fini(&p->got);
}

static void take(struct peer *p, size_t n) {
    while (p->in.n < n) {
        uint8_t *to = buf_reserve(&p->in, 65536);
        ssize_t got = recv(p->fd, to, 65536, 0);
        must(got > 0);
        p->in.n += (size_t)got;
    }
}

static void drop(struct peer *p, size_t n) {
    memmove(p->in.p, p->in.p + n, p->in.n - n);
    p->in.n -= n;
}

/* The next frame, decoded into `rec`. Returns its type. */
static uint8_t hear(struct peer *p, struct arena *a, const struct rec_desc *d, void *rec) {
    struct stream_header h;
    take(p, STREAM_HEADER_SIZE);
    must(stream_header_read(p->in.p, p->in.n, &h) == 1);
    take(p, STREAM_HEADER_SIZE + h.length);
    if (d)
        must(rec_decode(d, p->in.p + STREAM_HEADER_SIZE, h.length, a, rec, NULL) == 0);
    drop(p, STREAM_HEADER_SIZE + h.length);
    return h.type;
}

static void tell(struct peer *p, enum stream_frame type, const struct rec_desc *d, const void *rec) {
    auto_buf out = {0};
    stream_frame_add(&out, type, d, rec);
    for (size_t at = 0; at < out.n;) {
        ssize_t n = send(p->fd, out.p + at, out.n - at, MSG_NOSIGNAL);
        must(n > 0);
        at += (size_t)n;
    }
}

static void tell_data(struct peer *p, uint32_t task, uint32_t number, uint64_t offset, const void *b, size_t n) {
    struct stream_data d = {task, number, offset, b, (uint32_t)n};
    tell(p, STREAM_DATA, stream_data_rec(), &d);
}

/* Accepts, hears OPEN. */
static void greet(struct peer *p, struct arena *a, struct stream_open *open) {
    if (p->fd >= 0)
        close(p->fd);
    p->in.n = 0;
    p->fd = accept(p->listener, NULL, NULL);
    must(p->fd >= 0);
    take(p, STREAM_MAGIC_SIZE);
    must(memcmp(p->in.p, STREAM_MAGIC, STREAM_MAGIC_SIZE) == 0);
    drop(p, STREAM_MAGIC_SIZE);
    must(hear(p, a, stream_open_rec(), open) == STREAM_OPEN);
    p->opens++;
}

static void welcome(struct peer *p, uint64_t have) {
    uint32_t ranks[] = {0, 1};
    struct stream_mark mark = {STREAM_ALL_TASKS, STREAM_IN, have};
    struct stream_welcome w = {.ranks = ranks, .n_ranks = 2, .have = &mark, .n_have = have ? 1 : 0, .window = STREAM_WINDOW};
    tell(p, STREAM_WELCOME, stream_welcome_rec(), &w);
}

/* Until BYE; everything else is skipped. */
static void farewell(struct peer *p, uint32_t status) {
    struct stream_done d = {.wait_status = status};
    tell(p, STREAM_DONE, stream_done_rec(), &d);
    while (hear(p, NULL, NULL, NULL) != STREAM_BYE)
        ;
}

/* ---- the client ---- */

struct client {
    struct spur_streams *s;
    struct str out[2][2]; /* by task, by stream */
    uint32_t ends, exits, dones, failures, welcomes;
    int code;
    bool refuse_data;
    size_t refused;
    const uint8_t *input;
    size_t n_input, input_at;
};

static void on_welcome(void *arg, uint32_t node, const struct stream_welcome *w) {
    ((struct client *)arg)->welcomes++;
}

static void on_started(void *arg, uint32_t node, const struct stream_started *x) {
}

static bool on_data(void *arg, uint32_t node, uint32_t task, uint32_t number, const uint8_t *p, size_t n) {
    struct client *c = arg;
    if (c->refuse_data) {
        c->refused++;
        return false;
    }
    assert_true(task < 2);
    if (n)
        str_addn(&c->out[task][number == STREAM_ERR], (const char *)p, n);
    else
        c->ends++;
    return true;
}

static void on_exited(void *arg, uint32_t node, const struct stream_exit *x) {
    ((struct client *)arg)->exits++;
}

static void on_text(void *arg, uint32_t node, const char *text) {
}

static void on_done(void *arg, uint32_t node, const struct stream_done *d) {
    ((struct client *)arg)->dones++;
}

static void on_failed(void *arg, uint32_t node, const struct err *why) {
    ((struct client *)arg)->failures++;
    ((struct client *)arg)->code = why->code;
}

static void client_open(struct client *c, const struct peer *p, bool takes_input) {
    static const uint32_t ranks[] = {0, 1};
    static struct step_node node = {.name = "n1", .n_tasks = 2, .ranks = ranks, .n_ranks = 2};
    static struct step step = {.job_id = 1, .nodes = &node, .n_nodes = 1};
    static struct stream_launch launch = {.work_dir = "/"};
    struct node_place place = {"n1", "127.0.0.1", p->port};
    struct step_ticket_signed ticket = {.signature = (const uint8_t *)"s",
                                        .n_signature = 1, .place = &place};
    struct spur_streams_conf conf = {
        .ticket = (const uint8_t *)"t", .n_ticket = 1, .tickets = &ticket, .n_tickets = 1, .step = &step, .launch = &launch, .takes_input = takes_input,
        .input_task = STREAM_ALL_TASKS,
        .on = {c, on_welcome, on_started, on_data, on_exited, on_text, on_done, on_failed}};
    c->s = spur_streams_new(&conf);
}

static void feed(struct client *c) {
    size_t room;
    while (c->input && (uint8_t *)spur_streams_input_room(c->s, &room) && room) {
        uint8_t *to = spur_streams_input_room(c->s, &room);
        size_t n = MIN(room, c->n_input - c->input_at);
        memcpy(to, c->input + c->input_at, n);
        spur_streams_input_add(c->s, n);
        c->input_at += n;
        if (c->input_at == c->n_input) {
            spur_streams_input_end(c->s);
            c->input = NULL;
        }
    }
}

static void turn(struct client *c, int most_ms) {
    struct pollfd fds[1];
    int timeout = most_ms;
    feed(c);
    size_t n = spur_streams_poll(c->s, fds, &timeout);
    if (spur_streams_left(c->s) && poll(fds, n, timeout) >= 0)
        spur_streams_turn(c->s, fds, n);
}

static void run(struct client *c) {
    while (spur_streams_left(c->s))
        turn(c, 10000);
}

static void client_close(struct client *c) {
    spur_streams_free(c->s);
    for (size_t i = 0; i < 4; i++)
        str_fini(&c->out[i / 2][i % 2]);
}

/* ---- tests ---- */

static void play_plain(struct peer *p) {
    auto_arena a = {0};
    struct stream_open open;
    struct stream_exit x = {.task = 1, .wait_status = 3 << 8};
    greet(p, &a, &open);
    must(!open.resume && open.launch && str_eq(open.launch->work_dir, "/"));
    welcome(p, 0);
    tell_data(p, 0, STREAM_OUT, 0, "one\n", 4);
    tell_data(p, 1, STREAM_ERR, 0, "two", 3);
    tell_data(p, 0, STREAM_OUT, 4, "three\n", 6);
    tell(p, STREAM_EXIT, stream_exit_rec(), &x);
    for (uint32_t t = 0; t < 2; t++) {
        tell_data(p, t, STREAM_OUT, t ? 0 : 10, NULL, 0);
        tell_data(p, t, STREAM_ERR, t ? 3 : 0, NULL, 0);
    }
    farewell(p, 3 << 8);
}

static void output_of_two_tasks_arrives(void **state) {
    struct peer p;
    struct client c = {0};
    peer_start(&p, play_plain);
    client_open(&c, &p, false);
    run(&c);
    peer_stop(&p);
    assert_string_equal(str_text(&c.out[0][0]), "one\nthree\n");
    assert_string_equal(str_text(&c.out[1][1]), "two");
    assert_int_equal(c.ends, 4);
    assert_int_equal(c.exits, 1);
    assert_int_equal(c.dones, 1);
    assert_int_equal(c.failures, 0);
    client_close(&c);
}

static uint64_t mark_of(const struct stream_open *open, uint32_t task, uint32_t number) {
    for (uint32_t i = 0; i < open->n_have; i++)
        if (open->have[i].task == task && open->have[i].number == number)
            return open->have[i].offset;
    return 0;
}

/* Breaks off three times; sends from before the mark on, as a node that lost the last acknowledgements does. */
static void play_broken(struct peer *p) {
    static uint8_t bytes[300000];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 31 + i / 255);
    size_t sent_until[] = {100000, 200000, 250000, sizeof(bytes)};
    for (size_t k = 0; k < ARRAY_LEN(sent_until); k++) {
        auto_arena a = {0};
        struct stream_open open;
        greet(p, &a, &open);
        must(open.resume == (k > 0));
        welcome(p, 0);
        size_t at = (size_t)mark_of(&open, 0, STREAM_OUT);
        at -= MIN(at, (size_t)777);
        for (size_t n; at < sent_until[k]; at += n) {
            n = MIN(sent_until[k] - at, (size_t)30000);
            tell_data(p, 0, STREAM_OUT, at, bytes + at, n);
        }
    }
    tell_data(p, 0, STREAM_OUT, sizeof(bytes), NULL, 0);
    farewell(p, 0);
}

static void a_broken_connection_loses_and_doubles_nothing(void **state) {
    struct peer p;
    struct client c = {0};
    peer_start(&p, play_broken);
    client_open(&c, &p, false);
    run(&c);
    peer_stop(&p);
    assert_int_equal(p.opens, 4);
    assert_int_equal(c.out[0][0].n, 300000);
    for (size_t i = 0; i < 300000; i++)
        if ((uint8_t)c.out[0][0].p[i] != (uint8_t)(i * 31 + i / 255))
            fail_msg("byte %zu differs", i);
    assert_int_equal(c.failures, 0);
    client_close(&c);
}

/* Takes input with acknowledgements; after some of it breaks off and says less than it was sent. */
static void play_input(struct peer *p) {
    bool broke = false;
    for (;;) {
        auto_arena a = {0};
        struct stream_open open;
        greet(p, &a, &open);
        welcome(p, p->got.n);
        for (;;) {
            auto_arena b = {0};
            struct stream_data d;
            must(hear(p, &b, stream_data_rec(), &d) == STREAM_DATA);
            must(d.task == STREAM_ALL_TASKS && d.number == STREAM_IN && d.offset == p->got.n);
            if (!d.n_bytes) {
                farewell(p, 0);
                return;
            }
            if (!broke && p->got.n > 1500000) { /* this one gets lost */
                broke = true;
                break;
            }
            buf_add(&p->got, d.bytes, d.n_bytes);
            struct stream_ack ack = {STREAM_ALL_TASKS, STREAM_IN, p->got.n};
            if (p->got.n % 3 == 0 || p->got.n > 1000000 || p->got.n > 500000)
                tell(p, STREAM_ACK, stream_ack_rec(), &ack);
        }
    }
}

static void input_goes_through_a_window_and_a_break(void **state) {
    struct peer p;
    struct client c = {0};
    size_t n = 5000000;
    uint8_t *input = xmalloc(n);
    for (size_t i = 0; i < n; i++)
        input[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
    c.input = input;
    c.n_input = n;
    peer_start(&p, play_input);
    client_open(&c, &p, true);
    run(&c);
    must(pthread_join(p.thread, NULL) == 0);
    assert_int_equal(p.opens, 2);
    assert_int_equal(p.got.n, n);
    assert_memory_equal(p.got.p, input, n);
    free(input);
    close(p.fd);
    close(p.listener);
    buf_fini(&p.in);
    buf_fini(&p.got);
    client_close(&c);
}

static void play_flood(struct peer *p) {
    static uint8_t bytes[60000];
    auto_arena a = {0};
    struct stream_open open;
    greet(p, &a, &open);
    welcome(p, 0);
    uint64_t at = 0, acked = 0;
    while (at < 40000000) {
        if (at - acked + sizeof(bytes) > STREAM_WINDOW) {
            struct stream_ack ack;
            auto_arena b = {0};
            must(hear(p, &b, stream_ack_rec(), &ack) == STREAM_ACK);
            must(ack.offset > acked && ack.offset <= at);
            acked = ack.offset;
            continue;
        }
        tell_data(p, 0, STREAM_OUT, at, bytes, sizeof(bytes));
        at += sizeof(bytes);
    }
    farewell(p, 0);
}

/* Nothing is read while the caller has no room; then all of it comes, in order. */
static void a_caller_without_room_stops_the_node(void **state) {
    struct peer p;
    struct client c = {.refuse_data = true};
    peer_start(&p, play_flood);
    client_open(&c, &p, false);
    while (!c.refused)
        turn(&c, 1000);
    for (int i = 0; i < 20; i++)
        turn(&c, 5);
    assert_int_equal(c.refused, 1);
    assert_true(spur_streams_is_stalled(c.s));
    spur_streams_retry(c.s);
    assert_int_equal(c.refused, 2);
    c.refuse_data = false;
    spur_streams_retry(c.s);
    run(&c);
    peer_stop(&p);
    assert_true(c.out[0][0].n >= 40000000);
    client_close(&c);
}

static void play_later_then_no(struct peer *p) {
    for (int k = 0; k < 3; k++) {
        auto_arena a = {0};
        struct stream_open open;
        struct stream_refused r = {.error = (uint32_t)-(k < 2 ? E_STOPPING : E_CREDENTIAL), .text = "no"};
        greet(p, &a, &open);
        tell(p, STREAM_REFUSED, stream_refused_rec(), &r);
    }
}

static void a_node_that_stops_is_asked_again_and_a_refusal_is_told(void **state) {
    struct peer p;
    struct client c = {0};
    peer_start(&p, play_later_then_no);
    client_open(&c, &p, false);
    run(&c);
    peer_stop(&p);
    assert_int_equal(p.opens, 3);
    assert_int_equal(c.failures, 1);
    assert_int_equal(c.code, E_CREDENTIAL);
    client_close(&c);
}

static void play_signals(struct peer *p) {
    auto_arena a = {0};
    struct stream_open open;
    struct stream_winsize w;
    struct stream_signal s;
    greet(p, &a, &open);
    welcome(p, 0);
    must(hear(p, &a, stream_winsize_rec(), &w) == STREAM_WINDOW_SIZE && w.rows == 24 && w.columns == 80);
    must(hear(p, &a, stream_signal_rec(), &s) == STREAM_SIGNAL && s.signal == 10);
    must(hear(p, NULL, NULL, NULL) == STREAM_TERMINATE);
    farewell(p, 0);
}

/* What is asked for before the node is there is not lost. */
static void signals_wait_for_the_connection(void **state) {
    struct peer p;
    struct client c = {0};
    peer_start(&p, play_signals);
    client_open(&c, &p, false);
    spur_streams_window_size(c.s, 24, 80);
    spur_streams_signal(c.s, 10);
    spur_streams_terminate(c.s);
    run(&c);
    peer_stop(&p);
    assert_int_equal(c.dones, 1);
    client_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_of_two_tasks_arrives),
        cmocka_unit_test(a_broken_connection_loses_and_doubles_nothing),
        cmocka_unit_test(input_goes_through_a_window_and_a_break),
        cmocka_unit_test(a_caller_without_room_stops_the_node),
        cmocka_unit_test(a_node_that_stops_is_asked_again_and_a_refusal_is_told),
        cmocka_unit_test(signals_wait_for_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
