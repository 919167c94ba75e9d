/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ctl.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "spurctld/member/member.h"
#include "wire/methods.h"

/* ---- entries ---- */

static void check_state(const struct state *s, uint64_t index) {
    struct err e;
    if (state_check(s, &e)) {
        fprintf(stderr, "after entry %llu: %s\n", (unsigned long long)index, e.text);
        must(!"invariants");
    }
}

void vctl_apply(struct vctl *c, uint64_t index, const void *p, size_t n, host_proposed_fn fn, void *arg) {
    struct err e;
    struct applied *r = &c->applied;
    must(state_apply(c->room.state, index, p, n, r, &e) == 0);
    c->applied_index = index;
    check_state(c->room.state, index);
    if (fn)
        fn(arg, r->code, r->code ? &r->why : NULL, index, r->answer.p, r->answer.n);
    room_tell(&c->room, index, r);
}

/* ---- what comes over the network: as api/ does it, without its proofs ---- */

struct served {
    struct vrequest *rq;
    enum wire_method method;
    struct arena arena;
    struct vctl *ctl;
    void *request;
};

static bool is_replay(struct vctl *c, const struct vrequest *rq) {
    char proof[512];
    if (!vrequest_header(rq, "spur-node", proof, sizeof(proof)))
        return false;
    return map64_put(&c->proofs, hash_fixed(proof, strlen(proof)), (void *)1) != NULL;
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

static bool find_method(const char *path, enum wire_method *out) {
    for (unsigned m = 0; m < WIRE_N_METHODS; m++)
        if (strcmp(wire_method(m)->path, path) == 0) {
            *out = m;
            return true;
        }
    return false;
}

/* ---- what any member answers ---- */

static void on_read(void *arg, int code, const struct err *why) {
    struct served *s = arg;
    struct who who = vctl_user(0);
    if (code)
        on_served_bytes(s, code, why, NULL, 0);
    else
        query_jobs(&s->ctl->room, &who, s->request, on_served_bytes, s);
}

static void on_index(void *arg, int code, const struct err *why, uint64_t index, uint64_t term) {
    struct read_index_reply reply = {.index = index, .term = term};
    on_served(arg, code, why, &reply);
}

static void on_changed(void *arg, int code, const struct err *why) {
    on_served(arg, code, why, &(struct nothing){0});
}

static uint32_t member_of(const struct served *s) { /* "ctlN" */
    return (uint32_t)(vrequest_from(s->rq)[3] - '0');
}

static void serve_confirm(struct served *s) {
    struct confirm_reply reply;
    member_confirm(&s->ctl->room, member_of(s), s->request, &reply);
    on_served(s, 0, NULL, &reply);
}

static void serve_join(struct served *s) {
    const struct join_request *rq = s->request;
    member_join(&s->ctl->room, member_of(s), rq->address, on_changed, s);
}

static bool is_for_any(enum wire_method m) {
    return m == WIRE_Member_Confirm || m == WIRE_Member_Join || m == WIRE_Member_ReadIndex || m == WIRE_Controller_Jobs;
}

static struct served *served_new(struct vctl *c, struct vrequest *rq, enum wire_method m) {
    struct served *s = xnew(struct served);
    *s = (struct served){.rq = rq, .method = m, .ctl = c};
    s->request = arena_alloc(&s->arena, wire_method(m)->request()->size);
    must(rec_decode(wire_method(m)->request(), rq->message.p, rq->message.n, &s->arena, s->request, NULL) == 0);
    return s;
}

static void serve_any(struct vctl *c, struct vrequest *rq, enum wire_method m) {
    struct served *s = served_new(c, rq, m);
    switch (m) {
    case WIRE_Member_Confirm: serve_confirm(s); break;
    case WIRE_Member_Join: serve_join(s); break;
    case WIRE_Member_ReadIndex: member_read_index(&c->room, on_index, s); break;
    default: member_read(&c->room, on_read, s); break;
    }
}

void vctl_serve(struct vctl *c, struct vrequest *rq) {
    struct room *r = c ? &c->room : NULL;
    enum wire_method m;
    char uid[16] = "";
    must(find_method(rq->method, &m));
    if (c && is_replay(c, rq)) {
        vrequest_drop(rq);
        return;
    }
    if (r && r->member && is_for_any(m)) {
        serve_any(c, rq, m);
        return;
    }
    if (!r || !r->is_leader) {
        vrequest_reply(rq, r ? E_NOT_LEADER : E_UNREACHABLE, NULL, NULL, 0);
        return;
    }
    struct served *s = served_new(c, rq, m);
    const void *req = s->request;
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
    case WIRE_Controller_ChangeController: member_change(r, req, on_changed, s); break;
    case WIRE_Controller_StepStart: admit_step_start(r, &who, req, on_served, s); break;
    case WIRE_Controller_Attach: admit_attach(r, &who, req, on_served, s); break;
    case WIRE_Controller_Attend: query_attend(r->query, &who, req, on_served_bytes, s); break;
    case WIRE_Registry_StepReport: admit_step_report(r, req, on_served, s); break;
    default: must(!"a method that is served");
    }
}

/* ---- snapshots ---- */

static int to_buf(void *arg, const void *p, size_t n, struct err *e) {
    buf_add(arg, p, n);
    return 0;
}

void vctl_snapshot_write(struct state *s, struct buf *out) {
    struct view v;
    state_view(s, &v);
    must(state_snapshot_write(&v, to_buf, out, NULL) == 0);
    state_view_end(&v);
}

int vctl_restore(struct vctl *c, const struct buf *snapshot, struct err *e) {
    struct state *fresh = state_new();
    int rc = state_restore(fresh, snapshot->p, snapshot->n, e);
    if (rc) {
        state_free(fresh);
        return rc;
    }
    state_free(c->room.state);
    c->room.state = fresh;
    c->applied_index = state_index(fresh);
    acct_restored(c->room.acct);
    return 0;
}

/* ---- life ---- */

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

struct vctl *vctl_new(const struct vctl_conf *conf, struct vworld *w, const struct vhost_conf *host, void *log) {
    struct vctl *c = xnew(struct vctl);
    struct vhost_conf hc = *host;
    hc.ctx = c;
    hc.work_max_ms = conf->work_max_ms;
    c->world = w;
    c->log = log;
    c->host = vhost_new(w, &hc);
    c->history = xasprintf("%s/history-%u.db", conf->dir, conf->member_id);
    c->room.host = vhost_host(c->host);
    c->room.conf = &c->conf;
    c->room.member_id = conf->member_id;
    c->room.state = state_new();
    make_conf(c, conf);
    make_rooms(c);
    must(!conf->snapshot || vctl_restore(c, conf->snapshot, NULL) == 0);
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

void vctl_lead(struct vctl *c) {
    must(!c->is_elected);
    c->is_elected = true;
    lead_offer_config(c->room.lead, false, on_offered, c);
}

void vctl_follow(struct vctl *c) {
    c->is_elected = false;
    stop_offering(c);
    room_follow(&c->room);
}

void vctl_silence(struct vctl *c) {
    query_free(c->room.query);
    c->room.query = NULL;
    vctl_follow(c);
}

void vctl_free(struct vctl *c) {
    struct room *r = &c->room;
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
    map64_fini(&c->proofs);
    free(c->history);
    free(c);
}

/* ---- the history's file ---- */

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

void vhistory_keep(struct vhistory *h, const struct vctl *c) {
    autofree char *wal = xasprintf("%s-wal", c->history);
    *h = (struct vhistory){.path = xstrdup(c->history)};
    h->has_db = read_all(h->path, &h->db);
    h->has_wal = read_all(wal, &h->wal);
}

void vhistory_remove(const char *dir, uint32_t member_id) {
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        autofree char *path = xasprintf("%s/history-%u.db%s", dir, member_id, ends[i]);
        remove(path);
    }
}

void vhistory_put_back(struct vhistory *h) {
    autofree char *wal = xasprintf("%s-wal", h->path), *shm = xasprintf("%s-shm", h->path);
    write_all(h->path, &h->db, h->has_db);
    write_all(wal, &h->wal, h->has_wal);
    remove(shm);
    buf_fini(&h->db);
    buf_fini(&h->wal);
    free(h->path);
}

/* ---- looking ---- */

struct who vctl_user(uint32_t uid) {
    struct who who = {.uid = uid, .gid = uid, .is_proven = true, .is_admin = uid == 0};
    snprintf(who.user, sizeof(who.user), uid ? "u%u" : "root", uid);
    snprintf(who.group, sizeof(who.group), "g%u", uid);
    return who;
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

/* A job, or any of an array. */
static bool any_may_wait(const struct vctl *c, uint32_t id) {
    struct view v;
    const struct job *j;
    state_peek(c->room.state, &v);
    for (uint64_t k = 0; (j = view_next_job(&v, &k)); k++)
        if ((j->id == id || (j->array && j->array->job_id == id)) && vctl_may_wait(c, j))
            return true;
    return false;
}

bool vctl_may_wait(const struct vctl *c, const struct job *j) {
    if (j->state != JOB_PENDING || j->completing)
        return false;
    if (j->hold)
        return true;
    for (uint32_t i = 0; i < j->n_deps; i++)
        if (j->deps[i].state == DEP_NEVER || (j->deps[i].state == DEP_WAITING && any_may_wait(c, j->deps[i].job_id)))
            return true;
    return false;
}
