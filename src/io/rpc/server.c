/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's life: its table of methods, its connections, the tick that closes those that are of no use, and drain.
 *
 * Drain, as HTTP/2 wants it: a GOAWAY that names no stream yet and a ping; once the ping's answer is there, all that the
 * client sent without knowing is there too, and the second GOAWAY names the last stream that will be answered.
 */
#include "io/rpc/server.h"

#include <string.h>

#include "base/mem.h"
#include "grpc_descriptors.h"

void server_unref(struct rpc_server *s) {
    if (--s->refs)
        return;
    while (s->free_calls) {
        struct rpc_call *c = s->free_calls;
        s->free_calls = c->next;
        call_destroy(c);
    }
    maps_fini(&s->methods);
    nghttp2_session_callbacks_del(s->callbacks);
    nghttp2_option_del(s->option);
    free(s->table);
    buf_fini(&s->descriptors);
    free(s);
}

static void table_add(struct rpc_server *s, const struct rpc_method *m, size_t n, void *ctx) {
    for (size_t i = 0; i < n; i++) {
        struct method *row = &s->table[s->n_table++];
        *row = (struct method){&m[i], ctx};
        must(!maps_put(&s->methods, m[i].path, row));
    }
}

static void table_fill(struct rpc_server *s) {
    size_t n_health, n_reflection;
    const struct rpc_method *health = health_methods(&n_health), *reflection = reflection_methods(&n_reflection);
    s->table = xcalloc(s->conf.n_methods + n_health + n_reflection, sizeof(*s->table));
    table_add(s, s->conf.methods, s->conf.n_methods, s->conf.ctx);
    table_add(s, health, n_health, s);
    if (s->conf.descriptors) {
        size_t n;
        const unsigned char *standard = grpc_descriptors(&n);
        table_add(s, reflection, n_reflection, s);
        buf_add(&s->descriptors, s->conf.descriptors, s->conf.n_descriptors); /* a set and a set are a set, as bytes */
        buf_add(&s->descriptors, standard, n);
    }
}

struct rpc_server *rpc_server_new(struct loop *l, const struct rpc_server_conf *conf) {
    struct rpc_server *s = xnew(struct rpc_server);
    s->refs = 1;
    s->l = l;
    s->conf = *conf;
    s->serving = true;
    if (!s->conf.max_message)
        s->conf.max_message = 8 << 20;
    if (!s->conf.max_streams)
        s->conf.max_streams = 256;
    if (!s->conf.max_connections)
        s->conf.max_connections = 4096;
    if (!s->conf.handshake_ms)
        s->conf.handshake_ms = 10000;
    table_fill(s);
    must(nghttp2_session_callbacks_new(&s->callbacks) == 0);
    session_callbacks_set(s->callbacks);
    must(nghttp2_option_new(&s->option) == 0);
    nghttp2_option_set_no_auto_window_update(s->option, 1);
    nghttp2_option_set_max_outbound_ack(s->option, GUARD_BURST);
    nghttp2_option_set_max_settings(s->option, 32);
    nghttp2_option_set_max_continuations(s->option, 8);
    nghttp2_option_set_stream_reset_rate_limit(s->option, GUARD_BURST, GUARD_PER_S);
    return s;
}

static bool has_waited(uint64_t now, uint64_t since, uint64_t ms) {
    return now >= since + ms;
}

static void calls_check_progress(struct server_conn *sc, uint64_t now) {
    for (struct rpc_call *c = sc->calls, *next; c; c = next) {
        next = c->next; /* giving up a call that has no owner calls nobody, so the list stays */
        if (!c->is_started && !c->is_finished && has_waited(now, c->progress_ms, SERVER_REQUEST_MS))
            call_give_up(c, E_DEADLINE, "The request did not arrive in time");
    }
}

static void goodbye(struct server_conn *sc) {
    nghttp2_session_terminate_session(sc->c.session, NGHTTP2_NO_ERROR);
    conn_dirty(&sc->c);
}

static void last_goaway(struct server_conn *sc) {
    sc->drain = DRAIN_LAST;
    nghttp2_submit_goaway(sc->c.session, 0, nghttp2_session_get_last_proc_stream_id(sc->c.session), NGHTTP2_NO_ERROR,
                          NULL, 0);
    conn_dirty(&sc->c);
}

void server_conn_pong(struct server_conn *sc) {
    if (sc->drain == DRAIN_NOTICE)
        last_goaway(sc);
}

static void conn_tick(struct server_conn *sc, uint64_t now) {
    const struct rpc_server_conf *conf = &sc->s->conf;
    if (sc->c.dead) {
        return; /* by what an owner did when another connection went */
    } else if (sc->c.lingering) {
        if (has_waited(now, sc->c.lingering_ms, CONN_LINGER_MS))
            conn_close(&sc->c, E_UNREACHABLE, "connection closed");
    } else if (!sc->is_up) {
        if (has_waited(now, sc->c.opened_ms, conf->handshake_ms))
            conn_close(&sc->c, E_PROTOCOL, "no HTTP/2 preface");
    } else if (sc->drain == DRAIN_NOTICE && has_waited(now, sc->notice_ms, CONN_LINGER_MS)) {
        last_goaway(sc);
    } else if (!sc->n_calls && conf->idle_ms && has_waited(now, sc->idle_ms, conf->idle_ms)) {
        goodbye(sc);
    } else if (sc->is_flooding && has_waited(now, sc->c.received_ms, CONN_LINGER_MS)) {
        conn_close(&sc->c, E_BUSY, "flood"); /* it doesn't even read its GOAWAY */
    } else {
        calls_check_progress(sc, now);
    }
}

static void on_tick(void *arg);

void server_tick_start(struct rpc_server *s) {
    uint64_t ms = MIN(s->conf.handshake_ms / 2, (uint64_t)1000);
    if (s->conf.idle_ms)
        ms = MIN(ms, s->conf.idle_ms / 2);
    if (s->draining)
        ms = MIN(ms, (uint64_t)50);
    if (!s->tick && (s->conns || s->greetings) && !s->freed)
        s->tick = loop_timer_start(s->l, MAX(ms, (uint64_t)10), on_tick, s);
}

static void on_tick(void *arg) {
    struct rpc_server *s = arg;
    uint64_t now = uv_now(loop_uv(s->l));
    s->tick = NULL;
    for (struct server_conn *sc = s->conns, *next; sc; sc = next) {
        next = sc->next;
        conn_tick(sc, now);
    }
    greetings_tick(s, now);
    server_tick_start(s);
}

static void on_drained(void *arg) {
    struct rpc_server *s = arg;
    void (*fn)(void *arg) = s->drained;
    s->drained_timer = NULL;
    s->drained = NULL;
    if (fn)
        fn(s->drained_arg);
}

/* In a turn of its own: the last connection may go down inside a function of the owner of `drained`. */
static void check_drained(struct rpc_server *s) {
    if (!s->draining || s->conns || s->freed || s->drained_timer || !s->drained)
        return;
    loop_timer_stop(s->grace);
    s->grace = NULL;
    s->drained_timer = loop_timer_start(s->l, 0, on_drained, s);
}

static void conn_down(struct conn *c, const struct err *why) {
    struct server_conn *sc = (struct server_conn *)c;
    struct rpc_server *s = sc->s;
    if (sc->prev)
        sc->prev->next = sc->next;
    else
        s->conns = sc->next;
    if (sc->next)
        sc->next->prev = sc->prev;
    s->stats.connections_now--;
    while (sc->calls)
        call_closed(sc->calls);
    calls_forget_home(sc);
    check_drained(s);
}

static void conn_release(struct conn *c) {
    struct server_conn *sc = (struct server_conn *)c;
    server_unref(sc->s);
    free(sc);
}

static void conn_broken(struct conn *c, int nghttp2_error) {
    if (nghttp2_error == NGHTTP2_ERR_FLOODED)
        ((struct server_conn *)c)->s->stats.refused_floods++;
}

static void conn_drained(struct conn *c) {
    struct server_conn *sc = (struct server_conn *)c;
    struct rpc_call *call = sc->calls;
    while (call) {
        bool is_due = call->out.drained && !call->is_ended && call->on_drain;
        call->out.drained = false;
        if (!is_due) {
            call = call->next;
            continue;
        }
        call->on_drain(call, call->data); /* may change the list: look again from its head */
        call = c->dead ? NULL : sc->calls;
    }
}

/* Else whoever opens connections and says nothing would lock everybody out. */
bool server_make_room(struct rpc_server *s) {
    if (s->stats.connections_now < s->conf.max_connections)
        return true;
    struct server_conn *oldest = NULL;
    for (struct server_conn *sc = s->conns; sc; sc = sc->next)
        if (!sc->n_calls && !sc->n_orphans && (!oldest || sc->idle_ms <= oldest->idle_ms))
            oldest = sc;
    if (oldest)
        conn_close(&oldest->c, E_BUSY, "too many connections");
    return oldest != NULL;
}

struct server_conn *server_conn_add(struct rpc_server *s, struct sock *sock, const struct rpc_peer *peer) {
    static const struct conn_ops ops = {conn_down, conn_release, conn_broken, conn_drained, true};
    struct server_conn *sc = xnew(struct server_conn);
    nghttp2_session *session;
    sc->s = s;
    sc->peer = *peer;
    sc->next = s->conns;
    if (sc->next)
        sc->next->prev = sc;
    s->conns = sc;
    s->refs++;
    s->stats.connections++;
    s->stats.connections_now++;
    must(nghttp2_session_server_new2(&session, s->callbacks, sc, s->option) == 0);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, s->conf.max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, SERVER_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_MAX},
    };
    must(nghttp2_submit_settings(session, 0, settings, ARRAY_LEN(settings)) == 0);
    must(nghttp2_session_set_local_window_size(session, 0, 0, SERVER_CONN_WINDOW) == 0);
    conn_open(&sc->c, s->l, sock, session, &ops);
    guard_init(&sc->guard, sc->c.opened_ms);
    sc->idle_ms = sc->c.opened_ms;
    server_tick_start(s);
    return sc;
}

void server_conn_idle(struct server_conn *sc) {
    sc->idle_ms = conn_now(&sc->c);
}

void rpc_server_set_serving(struct rpc_server *s, bool serving) {
    if (s->serving == serving)
        return;
    s->serving = serving;
    health_changed(s);
}

static void say_goodbye(struct server_conn *sc) {
    sc->drain = DRAIN_NOTICE;
    sc->notice_ms = conn_now(&sc->c);
    nghttp2_submit_shutdown_notice(sc->c.session);
    nghttp2_submit_ping(sc->c.session, 0, NULL);
    conn_dirty(&sc->c);
}

/* Those of members are io/peer's. */
void rpc_server_retire_plain(struct rpc_server *s) {
    for (struct server_conn *sc = s->conns; sc; sc = sc->next)
        if (!sc->peer.is_tls && !sc->peer.is_local && !sc->peer.member_id && sc->is_up && sc->drain == DRAIN_NOT)
            say_goodbye(sc);
}

/* A call that its owner has not ended. Owners are called in between, so nothing is remembered but which connections
 * are done with. */
static struct rpc_call *call_left(struct rpc_server *s) {
    for (struct server_conn *sc = s->conns; sc; sc = sc->next) {
        for (struct rpc_call *c = sc->given_up ? NULL : sc->calls; c; c = c->next)
            if (!c->is_finished && !c->is_cancelled)
                return c;
        sc->given_up = true;
    }
    return NULL;
}

/* Time is up: the calls that are left fail, and what they still have to say must be gone soon. */
static void on_grace_over(void *arg) {
    struct rpc_server *s = arg;
    s->grace = NULL;
    s->refs++;
    if (s->grace_over) {
        while (s->conns && !s->freed)
            conn_close(&s->conns->c, E_STOPPING, "the server stops");
    } else {
        s->grace_over = true;
        s->grace = loop_timer_start(s->l, SERVER_LAST_MS, on_grace_over, s);
        for (struct rpc_call *c; !s->freed && (c = call_left(s));)
            call_give_up(c, E_STOPPING, "The server stops");
        for (struct server_conn *sc = s->conns; sc; sc = sc->next)
            last_goaway(sc);
    }
    server_unref(s);
}

void rpc_server_drain(struct rpc_server *s, uint64_t grace_ms, void (*done)(void *arg), void *arg) {
    if (s->draining)
        return;
    s->draining = true;
    s->drained = done;
    s->drained_arg = arg;
    listeners_close(s);
    greetings_close(s);
    rpc_server_set_serving(s, false);
    health_stop(s);
    s->grace = loop_timer_start(s->l, grace_ms, on_grace_over, s);
    for (struct server_conn *sc = s->conns, *next; sc; sc = next) {
        next = sc->next;
        if (!sc->is_up) {
            conn_close(&sc->c, E_STOPPING, "the server stops");
            continue;
        }
        say_goodbye(sc);
    }
    loop_timer_stop(s->tick);
    s->tick = NULL;
    server_tick_start(s);
    check_drained(s);
}

void rpc_server_free(struct rpc_server *s) {
    if (!s)
        return;
    must(!s->freed);
    s->freed = true;
    listeners_close(s);
    greetings_close(s);
    while (s->conns)
        conn_close(&s->conns->c, E_STOPPING, "the server stops");
    loop_timer_stop(s->tick);
    loop_timer_stop(s->grace);
    loop_timer_stop(s->drained_timer);
    server_unref(s);
}

struct rpc_server_stats rpc_server_stats(const struct rpc_server *s) {
    return s->stats;
}
