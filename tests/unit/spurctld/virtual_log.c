/* SPDX-License-Identifier: Apache-2.0 */
#include "virtual_log.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

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
    vlog_seen_fn seen;
    void *seen_arg;
};

/* ---- the log ---- */

static void serve(void *ctx, struct vrequest *rq) {
    struct vlog *l = ctx;
    vctl_serve(l->leader, rq);
}

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

static void apply_to(struct vlog *l, struct vctl *c, uint64_t index, const struct proposal *p) {
    const struct buf *b = &l->entries.p[index - 1].bytes;
    bool is_own = p && p->by == c;
    vctl_apply(c, index, b->p, b->n, is_own ? p->fn : NULL, is_own ? p->arg : NULL);
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
        apply_to(l, c, index, p);
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

/* ---- replay ---- */

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
        vctl_snapshot_write(s, &snap);
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

struct vctl *vctl_start(struct vworld *w, struct vlog *l, const struct vctl_conf *conf) {
    must(conf->member_id < CONTROLLERS_MAX && !l->ctl[conf->member_id]);
    struct vctl *c = vctl_new(conf, w, &(struct vhost_conf){.address = "ctl", .propose = propose}, l);
    while (c->applied_index < l->entries.n)
        apply_to(l, c, c->applied_index + 1, NULL);
    l->ctl[conf->member_id] = c;
    return c;
}

void vctl_elect(struct vctl *c) {
    struct vlog *l = c->log;
    must(!l->leader);
    l->leader = c;
    /* Of an earlier leader nothing is under way when a new one begins: it is in the log now, or never. */
    for (size_t i = 0; i < l->waiting.n; i++)
        must(!l->waiting.p[i].by);
    while (l->waiting.n) {
        struct proposal p = l->waiting.p[0];
        vec_remove(&l->waiting, 0);
        commit(l, &p);
    }
    vctl_lead(c);
}

void vctl_depose(struct vctl *c) {
    struct vlog *l = c->log;
    if (!c->is_elected)
        return;
    l->leader = NULL;
    vctl_follow(c);
    orphan(l, c, E_NOT_LEADER);
}

void vctl_stop(struct vctl *c) {
    struct vlog *l = c->log;
    vctl_silence(c);
    if (l->leader == c)
        l->leader = NULL;
    orphan(l, c, E_STOPPING);
    l->ctl[c->room.member_id] = NULL;
    vctl_free(c);
}

void vctl_kill(struct vctl *c) {
    struct vhistory h;
    vhistory_keep(&h, c);
    vctl_stop(c);
    vhistory_put_back(&h);
}

bool vctl_snapshot(struct vctl *c, struct buf *out) {
    if (acct_flushed_index(c->room.acct) < c->applied_index)
        return false;
    buf_clear(out);
    vctl_snapshot_write(c->room.state, out);
    return true;
}
