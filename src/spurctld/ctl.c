/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of contents: what a controller is made of, in the order in which it comes to life, and how a committed
 * entry reaches those who act on it.
 *
 *     state loop   api ─► admit ─► (journal) ─► apply ─► events ─► react, plan, lead, acct, query
 *     journal      its own thread and loop (io/journal)
 *     pool         what blocks: planner passes, long replies, SQL, snapshots, name look-ups
 */
#include "spurctld/ctl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/journal/journal.h"
#include "io/tls/tls.h"
#include "spurctld/admit/admit.h"
#include "spurctld/catchup/catchup.h"
#include "spurctld/config_file.h"
#include "spurctld/ctl_inside.h"
#include "spurctld/member/member.h"
#include "spurctld/ready.h"
#include "spurctld/restore.h"

#define DEFAULT_SNAPSHOT_RATE (64ull << 20)
#define DEFAULT_FETCH_RATE (256ull << 20) /* of a member that lacks everything: nobody can rely on it until it has it */
#define POOL_THREADS 4
#define KEEP_ENTRIES 512 /* of the log behind a snapshot */
#define TURN_PATIENCE 8 /* times the entries between two snapshots */
#define TURN_AGAIN_MS 50u
#define TURN_APART_MS 17u
#define DRAIN_MS 300
#define PREPARE_AGAIN_MS 1000u
#define KEEP_ENTRIES_SEVERAL 8192 /* for followers that were away for a while */

/* ---- the configuration ---- */

static int load_config(const struct ctl_options *o, struct arena *a, struct conf *out) {
    auto_str problems = {0};
    struct err e = {0};
    int rc = config_file_load(o->config_path, a, out, &problems, &e);
    if (rc)
        fprintf(stderr, "spurctld: error: %s:\n%s", o->config_path ? o->config_path : CONFIG_DEFAULT_PATH,
                problems.n ? problems.p : e.text);
    return rc;
}

int ctl_check_config(const struct ctl_options *o) {
    auto_arena a = {0};
    struct conf conf;
    struct secret jwt = {0}, jwt_old = {0};
    struct err e;
    int rc = load_config(o, &a, &conf);
    if (rc)
        return rc;
    rc = config_file_jwt(&conf, &jwt, &jwt_old, &e);
    if (rc)
        fprintf(stderr, "spurctld: error: %s\n", e.text);
    secret_fini(&jwt);
    secret_fini(&jwt_old);
    return rc;
}

/* ---- committed entries ---- */

static void stop_member(struct ctl *c, const char *what, const struct err *e) {
    log_error("%s: %s; this member stops and keeps its files", what, e->text);
    c->exit_code = 1;
    loop_stop(c->loop);
}

/* Members take theirs at different moments: what one of them does for it must not slow a majority. Slots of the log
 * spread them; where one takes longer than a slot, the next one waits for it (member_turn_ask). */
static bool is_our_slot(const struct ctl *c, uint64_t slot) {
    struct member_info all[MEMBERS_MAX];
    size_t n = member_is_alone(&c->room) ? 0 : member_list(&c->room, all), before = 0;
    for (size_t i = 0; i < n; i++)
        before += all[i].id < c->room.member_id;
    return n <= 1 || slot % n == before;
}

static void on_turn(void *arg, int code, const struct err *why);

static void on_turn_again(void *arg) {
    struct ctl *c = arg;
    c->turn.again = NULL;
    member_turn_ask(&c->room, on_turn, c);
}

/* Our turn, or not yet; a member that never ends its own must not let everybody's log grow for ever. */
static void on_turn(void *arg, int code, const struct err *why) {
    struct ctl *c = arg;
    if (!c->journal)
        return;
    if (code && state_index(c->room.state) < c->turn.latest) {
        uint64_t ms = TURN_AGAIN_MS + c->room.member_id * TURN_APART_MS; /* those that met do not meet again */
        c->turn.again = c->room.host->timer_start(c->room.host->impl, ms, on_turn_again, c);
        return;
    }
    c->turn.is_due = false;
    journal_snapshot_now(c->journal);
}

/* A snapshot costs as much as the state is large, so a large one waits for more entries. What the log holds in memory
 * and a start must read again stays within the same bound. */
static void maybe_snapshot(struct ctl *c, uint64_t index) {
    struct state_stats st = state_stats(c->room.state);
    uint64_t after = MAX((uint64_t)c->conf.snapshot_entries, (st.jobs + st.tokens) / 8);
    if (!c->journal || index < c->snapshot_asked + after || snapshots_are_out(c->snapshots) || c->turn.is_due ||
        !is_our_slot(c, index / after))
        return;
    c->snapshot_asked = index;
    c->turn.is_due = true;
    c->turn.latest = index + TURN_PATIENCE * after;
    member_turn_ask(&c->room, on_turn, c);
}

static void follower_look(struct ctl *c);

/* A test's: one bit of what this member, and no other, applies. */
static const void *flip_bit(const void *p, size_t n, struct buf *copy) {
    static const char what[] = "flip-me";
    buf_add(copy, p, n);
    char *at = memmem(copy->p, copy->n, what, sizeof(what) - 1);
    if (at)
        at[0] ^= 1;
    return copy->p;
}

static void caught_up(struct ctl *c, uint64_t index, const struct applied *r) {
    catchup_on_applied(c->room.catchup, index);
    for (size_t i = 0; i < r->events.n; i++)
        catchup_on_event(c->room.catchup, &r->events.p[i]);
}

static void on_entry(void *ctx, uint64_t index, uint64_t term, const void *p, size_t n, void *tag) {
    struct ctl *c = ctx;
    struct err e = {0};
    struct applied *r = &c->applied;
    if (c->exit_code) { /* behind an entry that can't be read nothing may be applied */
        err_set(&e, E_STOPPING, NULL);
        if (tag)
            ctl_host_proposed(tag, E_STOPPING, &e, index, NULL, 0);
        return;
    }
    if (index <= state_index(c->room.state)) { /* the snapshot that was loaded is newer than the one that the journal named */
        if (tag)
            ctl_host_proposed(tag, err_set(&e, E_NOT_LEADER, NULL), &e, index, NULL, 0);
        member_on_reached(c->room.member, index);
        return;
    }
    auto_buf flipped = {0};
    if (FAULT("ctl.flip_bit"))
        p = flip_bit(p, n, &flipped);
    int64_t begun_us = ctl_now_us();
    int rc = state_apply(c->room.state, index, p, n, r, &e);
    ctl_count_apply(c, (uint64_t)(ctl_now_us() - begun_us));
    if (rc) {
        stop_member(c, "a committed entry can't be read", &e);
        if (tag)
            ctl_host_proposed(tag, rc, &e, index, NULL, 0);
        return;
    }
    if (FAULT("ctl.before_reply"))
        log_warn("fault point ctl.before_reply");
    struct log_about old = log_about_set(ctl_host_about(tag));
    if (tag)
        ctl_host_proposed(tag, r->code, r->code ? &r->why : NULL, index, r->answer.p, r->answer.n);
    room_tell(&c->room, index, r);
    log_about_set(old.id);
    caught_up(c, index, r);
    member_on_reached(c->room.member, index);
    if (!c->is_ready)
        follower_look(c);
    maybe_snapshot(c, index);
}

static void on_refused(void *ctx, void *tag, int code, const struct err *why) {
    ctl_host_proposed(tag, code, why, 0, NULL, 0);
}

static void on_status(void *ctx, const struct journal_status *s) {
    struct ctl *c = ctx;
    ctl_members_status(c, s);
    follower_look(c);
    api_leader_changed(c->api);
}

static void on_reached(void *ctx, uint64_t index) {
    struct ctl *c = ctx;
    member_on_reached(c->room.member, index);
}

static void on_notice(void *ctx, bool is_problem, const char *text) {
    log_line(is_problem ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "journal: %s", text);
}

/* ---- snapshots and blobs ---- */

static bool is_named(void *arg, const struct blob_hash *h) {
    return ctl_blob_is_named(arg, h->b);
}

static void on_collected(void *arg, uint64_t n_dropped, uint64_t bytes_freed) {
    struct ctl *c = arg;
    ctl_forget_names(c);
    if (n_dropped)
        log_info("%llu scripts and environments that no job names any more are gone: %llu bytes",
                 (unsigned long long)n_dropped, (unsigned long long)bytes_freed);
}

static void collect_blobs(struct ctl *c) {
    blob_collect(c->blobs, is_named, c, on_collected, c);
}

static void on_snapshot_taken(void *arg, uint64_t index, int code, const struct err *why, const void *manifest,
                              size_t n) {
    struct ctl *c = arg;
    member_turn_end(&c->room);
    if (!c->journal)
        return; /* it went first: the daemon is stopping */
    if (code) {
        log_error("snapshot at %llu failed: %s", (unsigned long long)index, why->text);
        journal_snapshot_failed(c->journal, index);
        return;
    }
    journal_snapshot_done(c->journal, index, manifest, n);
    if (!catchup_is_backing_up(c->room.catchup)) /* else with the next snapshot */
        ctl_collect_names(c, collect_blobs);
}

static void on_snapshot(void *ctx, uint64_t index) {
    struct ctl *c = ctx;
    uint64_t stored = c->journal ? journal_stats(c->journal).snapshot_index : 0;
    member_turn_take(&c->room);
    snapshots_take(c->snapshots, index, stored, on_snapshot_taken, c);
}

static int on_restore(void *ctx, uint64_t index, const void *manifest, size_t n, struct err *e) {
    return ctl_restore(ctx, index, manifest, n, e);
}

/* ---- leadership ---- */

static void serve(struct ctl *c) {
    struct err e;
    api_set_serving(c->api, true); /* what waited goes on */
    if (c->is_ready)
        return;
    c->is_ready = true;
    log_info("serving: %s", c->listen_text);
    if (c->options.ready_file && ready_write(c->options.ready_file, c->listen_text, &e))
        log_error("%s", e.text);
}

/* A follower serves from the moment on at which it has caught up for the first time. */
static void on_caught_up(void *arg, int code, const struct err *why) {
    struct ctl *c = arg;
    c->is_catching_up = false;
    if (code || c->is_ready || c->is_stopping || !room_rconf(&c->room)->n_hash)
        return;
    serve(c);
    ctl_offer_as_follower(c);
}

static void follower_look(struct ctl *c) {
    uint32_t leader = member_leader(&c->room);
    if (!leader || leader == c->room.member_id || !c->journal)
        return;
    if (c->is_ready) {
        ctl_offer_as_follower(c);
    } else if (!c->is_catching_up) {
        c->is_catching_up = true;
        member_read(&c->room, on_caught_up, c);
    }
}

static void prepare(struct ctl *c);

static void on_again(void *arg) {
    struct ctl *c = arg;
    c->again = NULL;
    prepare(c);
}

/* A full disk, most often: whoever leads goes on trying. False: it went well, and we still lead. */
static bool failed(struct ctl *c, int code, const struct err *why, const char *what) {
    struct host *h = c->room.host;
    if (!c->is_elected || c->room.is_leader || code == E_STOPPING || code == E_NOT_LEADER)
        return true;
    if (!code)
        return false;
    log_error("%s: %s", what, why ? why->text : err_sentence(code));
    h->timer_stop(h->impl, c->again);
    c->again = h->timer_start(h->impl, PREPARE_AGAIN_MS, on_again, c);
    return true;
}

static void on_config_offered(void *arg, int code, const struct err *why, uint64_t index, const void *answer,
                              size_t n) {
    struct ctl *c = arg;
    struct view v;
    if (failed(c, code, why, "the configuration was not taken, will be offered again"))
        return;
    state_peek(c->room.state, &v);
    ctl_take_launch_key(c, v.cluster);
    room_lead(&c->room);
    serve(c);
}

static void on_cluster_init(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct ctl *c = arg;
    if (!failed(c, code == E_EXISTS ? 0 : code, why, "the cluster's keys were not made, will be tried again"))
        lead_offer_config(c->room.lead, false, on_config_offered, c);
}

/* Leads, and the state is current; before anything is served the cluster needs its keys and a configuration. */
static void prepare(struct ctl *c) {
    ctl_propose_init(c, on_cluster_init);
}

static void on_leader(void *ctx, bool is_leader, uint64_t term) {
    struct ctl *c = ctx;
    if (is_leader == c->is_elected)
        return;
    c->is_elected = is_leader;
    log_info(is_leader ? "leading in term %llu" : "no longer leading (term %llu)", (unsigned long long)term);
    if (is_leader && c->options.backup_to) {
        ctl_write_backup(c);
        return;
    }
    if (is_leader) {
        prepare(c);
        return;
    }
    c->room.host->timer_stop(c->room.host->impl, c->again);
    c->again = NULL;
    if (member_is_alone(&c->room))
        api_set_serving(c->api, false);
    room_follow(&c->room);
}

/* ---- life ---- */

static int make_dirs(struct ctl *c, struct err *e) {
    const char *const names[] = {"", "/journal", "/blobs", "/history", "/snapshots"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        autofree char *path = xasprintf("%s%s", c->state_dir, names[i]);
        /* Others pass through the top to reach the local socket; nobody else reads what is below. */
        if (mkdir(path, i ? 0700 : 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make %s", path);
    }
    return 0;
}

static uint64_t snapshot_rate(const struct ctl *c) {
    return c->options.snapshot_rate ? c->options.snapshot_rate : DEFAULT_SNAPSHOT_RATE;
}

static int open_stores(struct ctl *c, struct err *e) {
    autofree char *blobs = xasprintf("%s/blobs", c->state_dir);
    autofree char *history = xasprintf("%s/history/history.db", c->state_dir);
    autofree char *snaps = xasprintf("%s/snapshots", c->state_dir);
    struct room *r = &c->room;
    struct clock clock;
    int rc = blob_open(c->loop, blobs, &c->blobs, e);
    if (rc)
        return rc;
    clock_init(&clock, c->options.clock_scale);
    c->host = ctl_host_new(c->loop, c->pool, &clock, c->tls);
    r->host = ctl_host_host(c->host);
    r->state = state_new();
    state_set_checking(r->state, c->options.check_invariants);
    rc = acct_open(r, history, &r->acct, e);
    if (!rc)
        rc = snapshots_open(r, snaps, snapshot_rate(c), &c->snapshots, e);
    return rc;
}

static void snapshot_now(void *ctx) {
    struct ctl *c = ctx;
    if (c->journal)
        journal_snapshot_now(c->journal);
}

static void make_rooms(struct ctl *c) {
    struct room *r = &c->room;
    struct catchup_conf catchup = {.state_dir = c->state_dir, .snapshots = c->snapshots, .blobs = c->blobs,
                                   .rate = c->options.snapshot_rate ? c->options.snapshot_rate : DEFAULT_FETCH_RATE,
                                   .write_rate = snapshot_rate(c), .ctx = c, .snapshot_now = snapshot_now, .differs = ctl_differs};
    r->admit = admit_new(r);
    r->lead = lead_new(r);
    r->react = react_new(r);
    r->plan = plan_new(r);
    r->query = query_new(r);
    r->member = member_new(r);
    r->catchup = catchup_new(r, &catchup);
    ctl_host_set_catchup(c->host, r->catchup);
    struct api_ctl hooks = {c, ctl_ping, ctl_diag, ctl_config, ctl_reconfigure, ctl_reread, ctl_hello, ctl_offer};
    c->api = api_new(c->loop, r, &hooks, c->tls);
}

static int listen_all(struct ctl *c, struct err *e) {
    const char *tcp = c->options.listen ? c->options.listen : c->conf.listen_addr;
    autofree char *socket = c->conf.socket ? xstrdup(c->conf.socket) : xasprintf("%s/spurctld.sock", c->state_dir);
    autofree char *local = xasprintf("unix:%s", socket);
    uint16_t port = 0;
    int rc = api_listen(c->api, tcp, &port, e);
    if (!rc)
        rc = api_listen(c->api, local, NULL, e);
    if (!rc)
        c->listen_text = xasprintf("listen=%u\nsocket=%s\npid=%d\n", port, socket, (int)getpid());
    return rc;
}

int ctl_open_journal(struct ctl *c, bool join, struct err *e) {
    autofree char *dir = xasprintf("%s/journal", c->state_dir);
    uint32_t n = c->conf.n_peers;
    struct journal_peer peers[JOURNAL_PEERS_MAX];
    for (uint32_t i = 0; i < n; i++)
        peers[i] = (struct journal_peer){i + 1, conf_peer_address(c->conf.peers[i])};
    struct journal_conf conf = {.dir = dir, .id = c->room.member_id, .net = c->peer, .peers = peers, .n_peers = n > 1 ? n : 0,
                                .join = join, .force_new = c->options.force_new_cluster || c->options.backup_to,
                                .snapshot_entries = UINT32_MAX, /* maybe_snapshot decides */
                                .keep_entries = n > 1 ? MIN(KEEP_ENTRIES_SEVERAL, c->conf.snapshot_entries) : KEEP_ENTRIES};
    struct journal_owner owner = {c,          on_entry,  on_refused, on_leader, on_snapshot,
                                  on_restore, on_notice, on_status,  on_reached};
    int rc = journal_open(c->loop, &conf, &owner, &c->journal, e);
    if (rc)
        return rc;
    ctl_host_set_journal(c->host, c->journal);
    ctl_members_opened(c);
    return 0;
}

static int begin_journal(struct ctl *c, struct err *e) {
    autofree char *dir = xasprintf("%s/journal", c->state_dir);
    bool is_fresh = journal_is_fresh(dir);
    if (is_fresh && c->options.force_new_cluster)
        return err_set(e, E_USAGE, "%s is empty: there is nothing for --force-new-cluster to go on with", c->state_dir);
    if (c->options.force_new_cluster)
        log_warn("--force-new-cluster: this controller goes on alone. What only the others had is lost, and none of them may "
                 "be started with its old files again");
    if (!is_fresh || c->conf.n_peers <= 1)
        return ctl_open_journal(c, false, e);
    ctl_founding_begin(c);
    return 0;
}

static void on_drained(void *arg) {
    struct ctl *c = arg;
    loop_stop(c->loop);
}

static void on_handed_on(void *arg, int code, const struct err *why) {
    struct ctl *c = arg;
    api_drain(c->api, DRAIN_MS, on_drained, c);
}

/* Whoever leads hands the lead on before it goes: the others need not find out first. It is told within an election's time,
 * whether somebody took it or not. */
static void on_signal(void *arg, int signo) {
    struct ctl *c = arg;
    if (c->is_stopping)
        return;
    c->is_stopping = true;
    log_info("stopping: %s", strsignal(signo));
    if (c->is_elected && c->journal && !member_is_alone(&c->room))
        journal_transfer(c->journal, 0, on_handed_on, c);
    else
        api_drain(c->api, DRAIN_MS, on_drained, c);
}

static void warn_about_trust(const struct ctl *c) {
    if (c->conf.auth_mode == AUTH_DISABLED)
        log_warn("authentication is switched off ([auth] mode = \"disabled\" or plugin = \"none\"): every client is "
                 "believed, whoever it says it is");
    if (c->options.clock_scale > 1)
        log_warn("test clock: time runs %u times faster", c->options.clock_scale);
}

static int start(struct ctl *c, struct err *e) {
    bool is_open = !c->options.backup_to; /* to others, who are to know us */
    int rc = is_open ? ctl_members_whoami(c, e) : 0;
    if (!rc && is_open)
        rc = config_file_jwt(&c->conf, &c->room.jwt, &c->room.jwt_old, e);
    if (!rc)
        rc = restore_is_whole(c->state_dir, e);
    if (!rc)
        rc = ctl_move_aside(c, e);
    if (!rc)
        rc = make_dirs(c, e);
    if (rc)
        return rc;
    c->loop = loop_new("state");
    c->pool = pool_new("work", POOL_THREADS);
    loop_on_signal(c->loop, SIGTERM, on_signal, c);
    loop_on_signal(c->loop, SIGINT, on_signal, c);
    loop_on_signal(c->loop, SIGHUP, ctl_on_hangup, c);
    rc = is_open ? ctl_tls_open(c, e) : 0;
    if (!rc)
        rc = open_stores(c, e);
    if (rc)
        return rc;
    make_rooms(c);
    rc = is_open ? listen_all(c, e) : 0;
    if (!rc)
        rc = ctl_members_listen(c, e);
    if (!rc)
        rc = begin_journal(c, e);
    warn_about_trust(c);
    return rc;
}

static int init_log(const struct ctl_options *o, const struct conf *conf, struct err *e) {
    const char *level_text = o->log_level ? o->log_level : conf->log_level;
    const char *format = o->log_format ? o->log_format : conf->log_format;
    enum log_level level = LOG_LEVEL_INFO;
    if (level_text && log_level_parse(level_text, &level))
        return err_set(e, E_USAGE, "log level must be error, warn, info or debug, not %s", level_text);
    bool json = format && strcmp(format, "json") == 0;
    return log_init("spurctld", level, json, o->log_file ? o->log_file : conf->log_file, e);
}

/* The path of the local socket is handed to others, who have another working directory. */
static char *absolute(const char *path) {
    autofree char *cwd = path[0] == '/' ? NULL : getcwd(NULL, 0);
    return cwd ? xasprintf("%s/%s", cwd, path) : xstrdup(path);
}

int ctl_new(const struct ctl_options *o, struct ctl **out, struct err *e) {
    struct ctl *c = xnew(struct ctl);
    c->options = *o;
    c->started_unix = time(NULL);
    c->room.conf = &c->conf;
    int rc = load_config(o, &c->start_arena, &c->conf);
    if (o->backup_to) { /* whoever the others are, they are not asked */
        c->conf.n_peers = 0;
        c->room.member_id = o->backup_member;
    }
    c->at_start = c->conf;
    if (rc)
        err_set(e, rc, "the configuration has problems; nothing was started");
    if (!rc)
        rc = init_log(o, &c->conf, e);
    const char *dir = o->state_dir ? o->state_dir : c->conf.state_dir;
    c->state_dir = absolute(dir ? dir : CTL_STATE_DIR);
    if (!rc)
        rc = start(c, e);
    if (rc) {
        ctl_free(c);
        return rc;
    }
    *out = c;
    return 0;
}

int ctl_run(struct ctl *c) {
    if (c->exit_code == 0)
        loop_run(c->loop);
    return c->exit_code;
}

void ctl_free(struct ctl *c) {
    struct room *r = &c->room;
    /* Whoever waits for an answer gets one, so the api goes after all who give them. */
    if (r->query)
        query_free(r->query);
    r->query = NULL;
    c->is_elected = false;
    if (c->snapshots)
        snapshots_stop(c->snapshots);
    if (r->catchup)
        catchup_stop(r->catchup);
    if (c->host && c->room.member) {
        ctl_founding_end(c);
        member_set_log(r->member, NULL);
    }
    if (c->host) {
        r->host->timer_stop(r->host->impl, c->again);
        r->host->timer_stop(r->host->impl, c->turn.again);
        room_follow(r);
        ctl_host_set_journal(c->host, NULL);
    }
    if (c->journal)
        journal_close(c->journal);
    c->journal = NULL;
    member_free(r->member);
    if (c->host)
        ctl_members_close(c);
    if (c->pool)
        ctl_finish_work(c); /* what workers still have comes back before its owners go */
    api_free(c->api);
    acct_close(r->acct);
    snapshots_close(c->snapshots);
    plan_free(r->plan);
    react_free(r->react);
    lead_free(r->lead);
    admit_free(r->admit);
    ctl_host_free(c->host);
    blob_close(c->blobs);
    catchup_free(r->catchup);
    pool_free(c->pool);
    state_free(r->state);
    applied_fini(&c->applied);
    loop_free(c->loop);
    tls_free(c->tls);
    cred_key_fini(&r->launch_key);
    secret_fini(&r->jwt);
    secret_fini(&r->jwt_old);
    arena_fini(&c->conf_arena);
    arena_fini(&c->start_arena);
    free(c->listen_text);
    free(c->state_dir);
    free(c);
}
