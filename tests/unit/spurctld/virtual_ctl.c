/* SPDX-License-Identifier: Apache-2.0 */
#include "virtual_ctl.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/methods.h"

#define CONTROLLERS_MAX 8u

struct entry {
    struct buf bytes;
    enum command command;
};

struct proposal {
    struct vctl *by; /* NULL: nobody waits for it any more */
    struct buf bytes;
    enum command command;
    host_proposed_fn fn;
    void *arg;
    int64_t due_ms;
};

struct vlog {
    struct vworld *world;
    VEC(struct entry) entries;
    VEC(struct proposal) waiting; /* in their order */
    struct vctl *ctl[CONTROLLERS_MAX];
    struct vctl *leader;
    unsigned min_ms, max_ms;
    int64_t last_due_ms;
    enum command refused;
    int refuse_code;
    uint32_t refuse_n;
    uint64_t term;
    vlog_seen_fn seen;
    void *seen_arg;
    struct map64 proofs; /* of nodes' calls: each counts once, as api/identity has it */
};

/* ---- the log ---- */

static void serve(void *ctx, struct vrequest *rq);

struct vlog *vlog_new(struct vworld *w) {
    struct vlog *l = xnew(struct vlog);
    *l = (struct vlog){.world = w, .min_ms = 1, .max_ms = 2};
    vnet_listen(w, "ctl", serve, l);
    return l;
}

void vlog_free(struct vlog *l) {
    vnet_listen(l->world, "ctl", NULL, NULL);
    for (size_t i = 0; i < l->entries.n; i++)
        buf_fini(&l->entries.p[i].bytes);
    for (size_t i = 0; i < l->waiting.n; i++)
        buf_fini(&l->waiting.p[i].bytes);
    vec_fini(&l->entries);
    vec_fini(&l->waiting);
    map64_fini(&l->proofs);
    free(l);
}

uint64_t vlog_index(const struct vlog *l) {
    return l->entries.n;
}

void vlog_delay(struct vlog *l, unsigned min_ms, unsigned max_ms) {
    l->min_ms = min_ms;
    l->max_ms = max_ms;
}

void vlog_refuse(struct vlog *l, enum command command, int code, uint32_t n) {
    l->refused = command;
    l->refuse_code = code;
    l->refuse_n = n;
}

void vlog_watch(struct vlog *l, vlog_seen_fn fn, void *arg) {
    l->seen = fn;
    l->seen_arg = arg;
}

uint64_t vlog_count(const struct vlog *l, enum command c) {
    uint64_t n = 0;
    for (size_t i = 0; i < l->entries.n; i++)
        n += l->entries.p[i].command == c;
    return n;
}

static void check_state(const struct state *s, uint64_t index) {
    struct err e;
    if (state_check(s, &e)) {
        fprintf(stderr, "after entry %llu: %s\n", (unsigned long long)index, e.text);
        must(!"invariants");
    }
}

/* One entry into one controller: as ctl.c does it. */
static void apply_to(struct vctl *c, uint64_t index, const struct proposal *p) {
    struct err e;
    const struct buf *b = &c->log->entries.p[index - 1].bytes;
    struct applied *r = &c->applied;
    must(state_apply(c->room.state, index, b->p, b->n, r, &e) == 0);
    c->applied_index = index;
    check_state(c->room.state, index);
    if (p && p->by == c)
        p->fn(p->arg, r->code, r->code ? &r->why : NULL, index, r->answer.p, r->answer.n);
    room_tell(&c->room, index, r);
}

static void commit(struct vlog *l, struct proposal *p) {
    struct entry en = {p->bytes, p->command};
    bool is_seen = false;
    vec_push(&l->entries, en);
    uint64_t index = l->entries.n;
    for (size_t i = 0; i < CONTROLLERS_MAX; i++) {
        struct vctl *c = l->ctl[i];
        if (!c)
            continue;
        apply_to(c, index, p);
        if (l->seen && !is_seen && (c == l->leader || !l->leader)) {
            l->seen(l->seen_arg, c, index, &c->applied);
            is_seen = true;
        }
    }
}

static void refuse(struct proposal *p, int code) {
    struct err e;
    buf_fini(&p->bytes);
    err_set(&e, code, NULL);
    if (p->by)
        p->fn(p->arg, code, &e, 0, NULL, 0);
}

static bool is_refused(struct vlog *l, const struct proposal *p) {
    if (!l->refuse_n || (l->refused && l->refused != p->command))
        return false;
    if (l->refuse_n != UINT32_MAX)
        l->refuse_n--;
    return true;
}

/* The oldest that is due. */
static void on_due(void *arg) {
    struct vlog *l = arg;
    if (!l->waiting.n || l->waiting.p[0].due_ms > vworld_now_ms(l->world))
        return;
    struct proposal p = l->waiting.p[0];
    vec_remove(&l->waiting, 0);
    if (is_refused(l, &p))
        refuse(&p, l->refuse_code);
    else
        commit(l, &p);
}

static enum command command_of(const struct buf *b) {
    auto_arena a = {0};
    struct command_head head;
    void *record;
    must(command_decode(b->p, b->n, &a, &head, &record, NULL) == 0);
    return head.command;
}

static void propose(void *ctx, struct buf command, host_proposed_fn fn, void *arg) {
    struct vctl *c = ctx;
    struct vlog *l = c->log;
    struct proposal p = {.by = c, .bytes = command, .command = command_of(&command), .fn = fn, .arg = arg};
    if (l->leader != c) {
        refuse(&p, E_NOT_LEADER);
        return;
    }
    uint64_t delay = l->min_ms + vworld_below(l->world, l->max_ms - l->min_ms + 1);
    p.due_ms = MAX(vworld_now_ms(l->world) + (int64_t)delay, l->last_due_ms);
    l->last_due_ms = p.due_ms;
    vec_push(&l->waiting, p);
    vworld_at(l->world, (uint64_t)(p.due_ms - vworld_now_ms(l->world)), on_due, l);
}

/* Its proposals: nobody waits for them; some of them are committed all the same. */
static void orphan(struct vlog *l, struct vctl *c, int code) {
    VEC(struct proposal) told = {0};
    for (size_t i = 0; i < l->waiting.n;) {
        struct proposal *p = &l->waiting.p[i];
        if (p->by != c) {
            i++;
            continue;
        }
        vec_push(&told, *p);
        p->by = NULL;
        told.p[told.n - 1].bytes = (struct buf){0};
        if (vworld_chance(l->world, 500)) {
            i++;
        } else {
            buf_fini(&p->bytes);
            vec_remove(&l->waiting, i);
        }
    }
    for (size_t i = 0; i < told.n; i++)
        refuse(&told.p[i], code);
    vec_fini(&told);
}

/* ---- what comes over the network: as api/ does it, without its proofs ---- */

struct served {
    struct vrequest *rq;
    enum wire_method method;
    struct arena arena;
};

static bool is_replay(struct vlog *l, const struct vrequest *rq) {
    char proof[512];
    if (!vrequest_header(rq, "spur-node", proof, sizeof(proof)))
        return false;
    return map64_put(&l->proofs, hash_fixed(proof, strlen(proof)), (void *)1) != NULL;
}

static void on_served(void *arg, int code, const struct err *why, const void *reply) {
    struct served *s = arg;
    auto_buf bytes = {0};
    if (!code)
        rec_encode(wire_method(s->method)->reply(), reply, &bytes);
    vrequest_reply(s->rq, code, why ? why->text : NULL, bytes.p, bytes.n);
    arena_fini(&s->arena);
    free(s);
}

static void on_served_bytes(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct served *s = arg;
    vrequest_reply(s->rq, code, why ? why->text : NULL, reply, n);
    arena_fini(&s->arena);
    free(s);
}

struct who vctl_user(uint32_t uid) {
    struct who who = {.uid = uid, .gid = uid, .is_proven = true, .is_admin = uid == 0};
    snprintf(who.user, sizeof(who.user), uid ? "u%u" : "root", uid);
    snprintf(who.group, sizeof(who.group), "g%u", uid);
    return who;
}

static bool find_method(const char *path, enum wire_method *out) {
    for (unsigned m = 0; m < WIRE_N_METHODS; m++)
        if (strcmp(wire_method(m)->path, path) == 0) {
            *out = m;
            return true;
        }
    return false;
}

static void serve(void *ctx, struct vrequest *rq) {
    struct vlog *l = ctx;
    struct room *r = l->leader ? &l->leader->room : NULL;
    enum wire_method m;
    char uid[16] = "";
    must(find_method(rq->method, &m));
    if (is_replay(l, rq)) {
        vrequest_drop(rq);
        return;
    }
    if (!r || !r->is_leader) {
        vrequest_reply(rq, r ? E_NOT_LEADER : E_UNREACHABLE, NULL, NULL, 0);
        return;
    }
    struct served *s = xnew(struct served);
    *s = (struct served){.rq = rq, .method = m};
    void *req = arena_alloc(&s->arena, wire_method(m)->request()->size);
    must(rec_decode(wire_method(m)->request(), rq->message.p, rq->message.n, &s->arena, req, NULL) == 0);
    uint64_t n_uid = 0;
    if (vrequest_header(rq, "uid", uid, sizeof(uid)))
        must(str_to_u64(uid, UINT32_MAX, &n_uid) == 0);
    struct who who = vctl_user((uint32_t)n_uid);
    switch (m) {
    case WIRE_Registry_Register: admit_register(r, req, on_served, s); break;
    case WIRE_Registry_Heartbeat: admit_heartbeat(r, req, on_served, s); break;
    case WIRE_Registry_Report: admit_report(r, req, on_served, s); break;
    case WIRE_Controller_Submit: admit_submit(r, &who, req, on_served, s); break;
    case WIRE_Controller_Cancel: admit_cancel(r, &who, req, on_served, s); break;
    case WIRE_Controller_Hold: admit_hold(r, &who, req, on_served, s); break;
    case WIRE_Controller_Requeue: admit_requeue(r, &who, req, on_served, s); break;
    case WIRE_Controller_Suspend: admit_suspend(r, &who, req, on_served, s); break;
    case WIRE_Controller_Update: admit_update(r, &who, req, on_served, s); break;
    case WIRE_Controller_StepStart: admit_step_start(r, &who, req, on_served, s); break;
    case WIRE_Controller_Attach: admit_attach(r, &who, req, on_served, s); break;
    case WIRE_Controller_Attend: query_attend(r->query, &who, req, on_served_bytes, s); break;
    case WIRE_Registry_StepReport: admit_step_report(r, req, on_served, s); break;
    default: must(!"a method that is served");
    }
}

/* ---- replay ---- */

static int to_buf(void *arg, const void *p, size_t n, struct err *e) {
    buf_add(arg, p, n);
    return 0;
}

static void write_snapshot(struct state *s, struct buf *out) {
    struct view v;
    state_view(s, &v);
    must(state_snapshot_write(&v, to_buf, out, NULL) == 0);
    state_view_end(&v);
}

void vlog_replay(const struct vlog *l, void (*fn)(void *arg, const struct state *s, const struct applied *what),
                 void *arg) {
    struct state *s = state_new();
    struct applied r = {0};
    for (uint64_t i = 1; i <= l->entries.n; i++) {
        must(state_apply(s, i, l->entries.p[i - 1].bytes.p, l->entries.p[i - 1].bytes.n, &r, NULL) == 0);
        fn(arg, s, &r);
    }
    applied_fini(&r);
    state_free(s);
}

void vlog_check_replay(struct vlog *l, const struct vctl *c) {
    struct state *s = state_new();
    struct applied r = {0};
    auto_buf snap = {0};
    struct err e = {0};
    for (uint64_t i = 1; i <= c->applied_index; i++) {
        must(state_apply(s, i, l->entries.p[i - 1].bytes.p, l->entries.p[i - 1].bytes.n, &r, NULL) == 0);
        if (i % (c->applied_index / 5 + 1) != 0)
            continue;
        buf_clear(&snap);
        write_snapshot(s, &snap);
        state_free(s);
        s = state_new();
        if (state_restore(s, snap.p, snap.n, &e))
            fprintf(stderr, "snapshot at %llu: %s\n", (unsigned long long)i, e.text);
        must(!e.code);
    }
    must(state_digest(s) == state_digest(c->room.state));
    applied_fini(&r);
    state_free(s);
}

/* ---- controllers ---- */

static void make_conf(struct vctl *c, const struct vctl_conf *conf) {
    auto_str text = {0};
    conf_defaults(&c->conf_arena, &c->conf);
    if (conf->fill)
        conf->fill(&c->conf.rep, &c->conf_arena);
    conf_rep_text(&c->conf.rep, &text);
    uint8_t *hash = arena_alloc(&c->conf_arena, 32);
    cred_hash(str_text(&text), text.n, hash);
    c->conf.rep.hash = hash;
    c->conf.rep.n_hash = 32;
}

static void make_state(struct vctl *c, const struct buf *snapshot) {
    struct err e;
    c->room.state = state_new();
    if (snapshot) {
        must(state_restore(c->room.state, snapshot->p, snapshot->n, &e) == 0);
        c->applied_index = state_index(c->room.state);
        acct_restored(c->room.acct);
    }
    while (c->applied_index < c->log->entries.n)
        apply_to(c, c->applied_index + 1, NULL);
}

static void make_rooms(struct vctl *c) {
    struct room *r = &c->room;
    struct secret seed = {0};
    struct err e;
    secret_set(&seed, "the cluster's own seed of 32 byte", 32);
    cred_key_derive(&seed, "spur launch credential 1", &r->launch_key);
    secret_fini(&seed);
    if (acct_open(r, c->history, &r->acct, &e)) {
        fprintf(stderr, "%s\n", e.text);
        must(!"history");
    }
    r->admit = admit_new(r);
    r->lead = lead_new(r);
    r->react = react_new(r);
    r->plan = plan_new(r);
    r->query = query_new(r);
}

struct vctl *vctl_start(struct vworld *w, struct vlog *l, const struct vctl_conf *conf) {
    struct vctl *c = xnew(struct vctl);
    struct vhost_conf host = {"ctl", c, propose, conf->work_max_ms};
    must(conf->member_id < CONTROLLERS_MAX && !l->ctl[conf->member_id]);
    c->world = w;
    c->log = l;
    c->host = vhost_new(w, &host);
    c->history = xasprintf("%s/history-%u.db", conf->dir, conf->member_id);
    c->room.host = vhost_host(c->host);
    c->room.conf = &c->conf;
    c->room.member_id = conf->member_id;
    make_conf(c, conf);
    make_rooms(c);
    make_state(c, conf->snapshot);
    l->ctl[conf->member_id] = c;
    return c;
}

static void offer_again(void *arg);

static void on_offered(void *arg, int code, const struct err *why, uint64_t index, const void *answer, size_t n) {
    struct vctl *c = arg;
    struct host *h = c->room.host;
    if (!c->is_elected || c->room.is_leader || code == E_STOPPING || code == E_NOT_LEADER)
        return;
    if (!code) {
        room_lead(&c->room);
        return;
    }
    h->timer_stop(h->impl, c->again); /* a full disk: as ctl.c, until it has room */
    c->again = h->timer_start(h->impl, 1000, offer_again, c);
}

static void offer_again(void *arg) {
    struct vctl *c = arg;
    c->again = NULL;
    lead_offer_config(c->room.lead, false, on_offered, c);
}

static void stop_offering(struct vctl *c) {
    c->room.host->timer_stop(c->room.host->impl, c->again);
    c->again = NULL;
}

void vctl_elect(struct vctl *c) {
    must(!c->log->leader);
    c->log->leader = c;
    c->is_elected = true;
    /* Of an earlier leader nothing is under way when a new one begins: it is in the log now, or never. */
    for (size_t i = 0; i < c->log->waiting.n; i++)
        must(!c->log->waiting.p[i].by);
    while (c->log->waiting.n) {
        struct proposal p = c->log->waiting.p[0];
        vec_remove(&c->log->waiting, 0);
        commit(c->log, &p);
    }
    lead_offer_config(c->room.lead, false, on_offered, c);
}

void vctl_depose(struct vctl *c) {
    if (!c->is_elected)
        return;
    c->is_elected = false;
    c->log->leader = NULL;
    stop_offering(c);
    room_follow(&c->room);
    orphan(c->log, c, E_NOT_LEADER);
}

/* The order of ctl_free. */
static void end(struct vctl *c) {
    struct room *r = &c->room;
    query_free(r->query);
    r->query = NULL;
    c->is_elected = false;
    if (c->log->leader == c)
        c->log->leader = NULL;
    stop_offering(c);
    room_follow(r);
    orphan(c->log, c, E_STOPPING);
    c->log->ctl[r->member_id] = NULL;
    vhost_finish_work(c->host);
    acct_close(r->acct);
    plan_free(r->plan);
    react_free(r->react);
    lead_free(r->lead);
    admit_free(r->admit);
    vhost_free(c->host);
    state_free(r->state);
    applied_fini(&c->applied);
    cred_key_fini(&r->launch_key);
    arena_fini(&c->conf_arena);
    free(c->history);
    free(c);
}

void vctl_stop(struct vctl *c) {
    end(c);
}

static bool read_all(const char *path, struct buf *out) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    size_t n;
    while ((n = fread(buf_reserve(out, 65536), 1, 65536, f)) > 0)
        out->n += n;
    fclose(f);
    return true;
}

static void write_all(const char *path, const struct buf *b, bool is_there) {
    remove(path);
    if (!is_there)
        return;
    FILE *f = fopen(path, "wb");
    must(f && fwrite(b->p, 1, b->n, f) == b->n);
    fclose(f);
}

void vctl_kill(struct vctl *c) {
    autofree char *db = xstrdup(c->history), *wal = xasprintf("%s-wal", c->history), *shm = xasprintf("%s-shm", db);
    auto_buf db_bytes = {0}, wal_bytes = {0};
    bool has_db = read_all(db, &db_bytes), has_wal = read_all(wal, &wal_bytes);
    end(c);
    write_all(db, &db_bytes, has_db);
    write_all(wal, &wal_bytes, has_wal);
    remove(shm);
}

bool vctl_snapshot(struct vctl *c, struct buf *out) {
    if (acct_flushed_index(c->room.acct) < c->applied_index)
        return false;
    buf_clear(out);
    write_snapshot(c->room.state, out);
    return true;
}

const struct job *vctl_job(const struct vctl *c, uint32_t id) {
    struct view v;
    state_peek(c->room.state, &v);
    return view_job(&v, id);
}

const struct node *vctl_node(const struct vctl *c, const char *name) {
    return state_find_node(c->room.state, name);
}

const struct rconf *vctl_conf_in_force(const struct vctl *c) {
    return room_rconf(&c->room);
}

struct rows {
    void (*row)(void *arg, const struct job *j);
    void *arg;
    uint32_t n, n_steps;
};

static bool on_row(void *arg, const struct job *j, const struct step *steps, uint32_t n_steps) {
    struct rows *r = arg;
    r->n++;
    r->n_steps += n_steps;
    if (r->row)
        r->row(r->arg, j);
    return true;
}

uint32_t vctl_rows(const struct vctl *c, void (*row)(void *arg, const struct job *j), void *arg, uint32_t *out_steps) {
    struct rows r = {.row = row, .arg = arg};
    struct acct_filter f = {.limit = 1000000};
    struct err e;
    if (acct_read(c->history, &f, on_row, &r, &e)) {
        fprintf(stderr, "%s\n", e.text);
        must(!"history");
    }
    if (out_steps)
        *out_steps = r.n_steps;
    return r.n;
}
