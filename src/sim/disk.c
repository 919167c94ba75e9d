/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/disk.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "sim/disk_inside.h"

static struct sdisk *the_disks;

struct sdisk *sdisk_new(const struct sdisk_conf *conf) {
    struct sdisk *d = xnew(struct sdisk);
    d->conf = *conf;
    d->dir = xstrdup(conf->dir);
    snprintf(d->address, sizeof(d->address), "ctl%u", (unsigned)conf->id);
    d->faults = (struct sdisk_faults){.latency_max_ms = 2};
    d->first = 1;
    d->next = the_disks;
    the_disks = d;
    return d;
}

static void entries_free(struct sdisk *d, size_t from) {
    while (d->entries.n > from)
        buf_fini(&d->entries.p[--d->entries.n].bytes);
}

static void snapshot_free(struct ssnapshot *s) {
    buf_fini(&s->conf);
    buf_fini(&s->data);
    *s = (struct ssnapshot){0};
}

void sdisk_free(struct sdisk *d) {
    must(!d->io);
    for (struct sdisk **p = &the_disks; *p; p = &(*p)->next)
        if (*p == d) {
            *p = d->next;
            break;
        }
    entries_free(d, 0);
    vec_fini(&d->entries);
    vec_fini(&d->cache);
    vec_fini(&d->lost.terms);
    vec_fini(&d->changes);
    snapshot_free(&d->snapshot);
    free(d->dir);
    free(d);
}

struct sdisk *sdisk_find(const char *dir) {
    struct sdisk *d = the_disks;
    while (d && !str_eq(d->dir, dir))
        d = d->next;
    must(d);
    return d;
}

struct sdisk *sdisk_of_member(uint64_t id) {
    struct sdisk *d = the_disks;
    while (d && d->conf.id != id)
        d = d->next;
    return d;
}

void sdisk_faults(struct sdisk *d, const struct sdisk_faults *f) {
    d->faults = *f;
}

void sdisk_crash_in(struct sdisk *d, unsigned writes) {
    d->crash_in = writes;
}

/* ---- durable ---- */

static void keep_from(struct sdisk *d, uint64_t index) {
    while (d->entries.n && d->first < index) {
        buf_fini(&d->entries.p[0].bytes);
        vec_remove(&d->entries, 0);
        d->first++;
    }
    if (!d->entries.n)
        d->first = MAX(d->first, index);
}

static void store_snapshot(struct sdisk *d, struct sop *op) {
    snapshot_free(&d->snapshot);
    d->snapshot = op->snapshot;
    op->snapshot = (struct ssnapshot){0};
    uint64_t index = d->snapshot.index;
    if (op->trailing == 0) { /* from the leader: what was here is of no use */
        entries_free(d, 0);
        d->first = index + 1;
    } else if (index > op->trailing) {
        keep_from(d, index - op->trailing + 1);
    }
}

void sdisk_apply(struct sdisk *d, struct sop *op) {
    switch (op->kind) {
    case SOP_APPEND:
        for (size_t i = 0; i < op->entries.n; i++) {
            vec_push(&d->entries, op->entries.p[i]);
            d->conf.stored(d->conf.arg, d->conf.id, d->first + d->entries.n - 1, &op->entries.p[i]);
        }
        op->entries.n = 0;
        break;
    case SOP_TRUNCATE:
        if (op->index < d->first + d->entries.n)
            entries_free(d, op->index > d->first ? op->index - d->first : 0);
        break;
    case SOP_SNAPSHOT:
        store_snapshot(d, op);
        break;
    }
}

void sop_free(struct sop *op) {
    for (size_t i = 0; i < op->entries.n; i++)
        buf_fini(&op->entries.p[i].bytes);
    vec_fini(&op->entries);
    snapshot_free(&op->snapshot);
    free(op);
}

void sdisk_cache(struct sdisk *d, struct sop *op) {
    struct sop *kept = xnew(struct sop);
    *kept = (struct sop){.kind = op->kind, .entries = op->entries, .index = op->index, .snapshot = op->snapshot,
                         .trailing = op->trailing};
    vec_push(&d->cache, kept);
    memset(&op->entries, 0, sizeof(op->entries));
    op->snapshot = (struct ssnapshot){0};
}

void sdisk_sync(struct sdisk *d, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct sop *op = d->cache.p[0];
        vec_remove(&d->cache, 0);
        sdisk_apply(d, op);
        sop_free(op);
    }
}

static bool had(const struct sdisk *d, uint64_t index, uint64_t term) {
    if (index <= d->lost.snapshot_index)
        return true;
    return index >= d->lost.first && index < d->lost.first + d->lost.terms.n && d->lost.terms.p[index - d->lost.first] == term;
}

bool sdisk_has(const struct sdisk *d, uint64_t index, uint64_t term) {
    if (index <= d->snapshot.index || had(d, index, term))
        return true;
    return index >= d->first && index < d->first + d->entries.n && d->entries.p[index - d->first].term == term;
}

uint64_t sdisk_last(const struct sdisk *d) {
    return MAX(d->first + d->entries.n - 1, d->snapshot.index);
}

static uint32_t voters_of(const void *p, size_t n) {
    struct raft_configuration conf;
    uint32_t voters = 0;
    raft_configuration_init(&conf);
    must(raft_configuration_decode(&(struct raft_buffer){(void *)p, n}, &conf) == 0);
    for (unsigned i = 0; i < conf.n; i++)
        if (conf.servers[i].role == RAFT_VOTER)
            voters |= 1u << conf.servers[i].id;
    raft_configuration_close(&conf);
    return voters;
}

void sdisk_note_changes(struct sdisk *d, const struct raft_entry *e, unsigned n, uint64_t first) {
    for (unsigned i = 0; i < n; i++)
        if (e[i].type == RAFT_CHANGE)
            vec_push(&d->changes, (struct schange){first + i, voters_of(e[i].buf.base, e[i].buf.len)});
}

bool sdisk_next_change(const struct sdisk *d, size_t *cursor, uint64_t *out_index, uint32_t *out_voters) {
    if (*cursor >= d->changes.n)
        return false;
    *out_index = d->changes.p[*cursor].index;
    *out_voters = d->changes.p[(*cursor)++].voters;
    return true;
}

uint32_t sdisk_voters(const struct sdisk *d, uint64_t at) {
    const struct sdisk_entry *found = NULL;
    for (size_t i = 0; i < d->entries.n && d->first + i <= at; i++)
        if (d->entries.p[i].type == RAFT_CHANGE)
            found = &d->entries.p[i];
    if (found)
        return voters_of(found->bytes.p, found->bytes.n);
    return d->snapshot.index && d->snapshot.index <= at ? voters_of(d->snapshot.conf.p, d->snapshot.conf.n) : 0;
}

/* ---- another one in its place ---- */

bool sdisk_is_fresh(const struct sdisk *d) {
    return !d->is_marked;
}

void sdisk_empty(struct sdisk *d) {
    must(!d->io && !d->cache.n);
    d->lost.terms.n = 0;
    d->lost.first = d->first;
    d->lost.snapshot_index = d->snapshot.index;
    for (size_t i = 0; i < d->entries.n; i++)
        vec_push(&d->lost.terms, d->entries.p[i].term);
    entries_free(d, 0);
    snapshot_free(&d->snapshot);
    d->first = 1;
    d->term = d->vote = 0;
    d->is_marked = d->is_joining = false;
}

/* ---- crashes ---- */

void sdisk_freeze(struct sdisk *d) {
    d->is_frozen = true;
}

void sdisk_thaw(struct sdisk *d) {
    d->is_frozen = false;
    d->crash_in = 0;
}

void sdisk_crash(struct sdisk *d) {
    d->is_frozen = true;
    if (!d->io)
        return;
    while (d->cache.n)
        sop_free(d->cache.p[--d->cache.n]);
    size_t n = vworld_below(d->conf.world, d->io->ops.n + 1);
    for (size_t i = 0; i < n; i++)
        sdisk_apply(d, d->io->ops.p[i]);
    sio_abandon(d->io);
}

/* ---- bytes in and out ---- */

void sdisk_entry_copy(struct sdisk_entry *out, const struct raft_entry *e) {
    *out = (struct sdisk_entry){.term = e->term, .type = (uint16_t)e->type};
    buf_add(&out->bytes, e->buf.base, e->buf.len);
}

struct raft_entry *sdisk_entries_out(const struct sdisk_entry *e, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += e[i].bytes.n;
    struct raft_entry *out = raft_malloc(n * sizeof(*out));
    char *batch = raft_malloc(bytes + 1);
    for (size_t i = 0, at = 0; i < n; at += e[i++].bytes.n) {
        out[i] = (struct raft_entry){.term = e[i].term, .type = e[i].type, .buf = {batch + at, e[i].bytes.n},
                                     .batch = batch};
        if (e[i].bytes.n)
            memcpy(batch + at, e[i].bytes.p, e[i].bytes.n);
    }
    return out;
}

/* ---- in the place of check.c, repair.c and probe.c ---- */

int check_dir(const char *dir, uint64_t id, bool alone, struct check *out, struct err *e) {
    struct sdisk *d = sdisk_find(dir);
    *out = (struct check){.fresh = !d->is_marked, .snapshot_index = d->snapshot.index, .snapshot_term = d->snapshot.term,
                          .first = d->first, .last = d->entries.n ? d->first + d->entries.n - 1 : 0};
    out->joined = d->is_joining;
    return 0;
}

int check_repair(const char *dir, const struct check *c, struct err *e) {
    return 0;
}

void check_fini(struct check *c) {
    vec_fini(&c->fixes);
}

int check_mark_owner(const char *dir, uint64_t id, bool joined, struct err *e) {
    struct sdisk *d = sdisk_find(dir);
    d->is_marked = true;
    d->is_joining = joined;
    d->lost.terms.n = 0;
    d->lost.snapshot_index = 0;
    return 0;
}

void net_init(struct instance *in) {
}

void probe_begin(struct journal *j) {
    j->trouble.probe_errno = sdisk_find(j->dir)->faults.is_full ? ENOSPC : 0;
    j->trouble.probe_step = "allocate a file of the log";
    loop_post(j->loop, (void (*)(void *))trouble_probed, j);
}

void reserve_begin(struct journal *j) {
    loop_post(j->loop, (void (*)(void *))trouble_reserved, j);
}

bool reserve_is_there(const struct journal *j) {
    return false;
}

void reserve_remove(const struct journal *j) {
}
