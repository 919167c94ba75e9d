/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/catchup/catchup.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "spurctld/catchup/inside.h"
#include "spurctld/catchup/shelf.h"
#include "spurctld/snapshot.h"

static void add_source(struct sources *s, const struct room *r, uint32_t id) {
    bool is_there = !id || id == r->member_id || s->n == MEMBERS_MAX;
    for (size_t i = 0; i < s->n; i++)
        is_there |= s->id[i] == id;
    if (!is_there)
        s->id[s->n++] = id;
}

void sources_look(struct sources *s, const struct room *r) {
    struct member_info all[MEMBERS_MAX];
    size_t n = r->member ? member_list(r, all) : 0;
    uint32_t leader = r->member ? member_leader(r) : 0;
    *s = (struct sources){0};
    add_source(s, r, leader);
    for (size_t i = 0; i < n; i++)
        add_source(s, r, all[i].id);
    for (uint32_t id = 1; id <= r->conf->n_peers; id++) /* one that was just taken in knows no more than its file says */
        add_source(s, r, id);
}

void catchup_send(struct catchup *c, uint32_t member, const char *method, const struct rec_desc *d, const void *record,
                  uint64_t timeout_ms, host_reply_fn fn, void *arg) {
    struct host *h = c->room->host;
    struct buf bytes = {0};
    rec_encode(d, record, &bytes);
    h->member_send(h->impl, member, method, bytes, timeout_ms, fn, arg);
}

static void on_newest(void *arg, const char *name, const char *path, const char *old_name) {
    struct catchup *c = arg;
    struct err e;
    if (*old_name)
        shelf_let_go(c->shelf, old_name);
    if (shelf_put(c->shelf, name, path, &e))
        log_warn("the snapshot %s can't be given to other members: %s", name, e.text);
}

struct catchup *catchup_new(struct room *r, const struct catchup_conf *conf) {
    struct catchup *c = xnew(struct catchup);
    c->room = r;
    c->conf = *conf;
    c->state_dir = xstrdup(conf->state_dir);
    c->shelf = shelf_new(r);
    c->install = install_new(c);
    c->copies = copies_new(c);
    c->spread = spread_new(c);
    c->digests = digests_new(c);
    c->backups = backups_new(c);
    snapshots_on_newest(conf->snapshots, on_newest, c);
    snapshots_tell_newest(conf->snapshots);
    return c;
}

void catchup_stop(struct catchup *c) {
    c->is_stopping = true;
    install_stop(c->install);
    copies_stop(c->copies);
    shelf_stop(c->shelf);
    spread_stop(c->spread);
    digests_stop(c->digests);
    backups_stop(c->backups);
}

void catchup_free(struct catchup *c) {
    if (!c)
        return;
    install_free(c->install);
    copies_free(c->copies);
    spread_free(c->spread);
    digests_free(c->digests);
    backups_free(c->backups);
    shelf_free(c->shelf);
    free(c->state_dir);
    free(c);
}

bool catchup_is_out(const struct catchup *c) {
    return copies_are_out(c->copies) || shelf_is_out(c->shelf) || install_is_out(c->install) ||
           backups_are_out(c->backups);
}

/* ---- what others ask ---- */

void catchup_manifest(struct catchup *c, const struct manifest_request *rq, host_reply_fn fn, void *arg) {
    const struct buf *newest;
    struct manifest_reply reply = {0};
    struct err e;
    auto_buf bytes = {0};
    if (catchup_is_open(c) || !snapshots_newest(c->conf.snapshots, rq->at_least, &reply.index, &newest)) {
        if (rq->take && !catchup_is_open(c) && state_index(c->room->state) >= rq->at_least &&
            !snapshots_are_out(c->conf.snapshots))
            c->conf.snapshot_now(c->conf.ctx);
        fn(arg, err_set(&e, E_NOT_FOUND, "no snapshot here reaches entry %llu", (unsigned long long)rq->at_least), &e,
           NULL, 0);
        return;
    }
    reply.manifest = (const uint8_t *)newest->p;
    reply.n_manifest = (uint32_t)newest->n;
    rec_encode(manifest_reply_rec(), &reply, &bytes);
    fn(arg, 0, NULL, bytes.p, bytes.n);
}

void catchup_piece(struct catchup *c, const struct piece_request *rq, host_reply_fn fn, void *arg) {
    shelf_read(c->shelf, rq, fn, arg);
}

struct catchup_stats catchup_stats(const struct catchup *c) {
    return c->stats;
}
