/* SPDX-License-Identifier: Apache-2.0
 *
 * Raft's messages over the simulated network. A connection keeps their order and repeats nothing; a new one may be made while
 * the old one still delivers, so that now and then one arrives late, or twice.
 */
#include <string.h>

#include "sim/disk_inside.h"

#define STRAY 20 /* of a thousand, where the network is bad */

struct packet {
    struct vworld *world;
    uint64_t from, to;
    char from_address[16];
    struct raft_message m;
    VEC(struct sdisk_entry) entries;
    struct buf conf, data;
    unsigned users;
};

static void packet_drop(void *arg) {
    struct packet *p = arg;
    if (--p->users)
        return;
    for (size_t i = 0; i < p->entries.n; i++)
        buf_fini(&p->entries.p[i].bytes);
    vec_fini(&p->entries);
    buf_fini(&p->conf);
    buf_fini(&p->data);
    free(p);
}

static void unpack(struct packet *p, struct raft_message *m) {
    *m = p->m;
    m->server_id = p->from;
    m->server_address = p->from_address;
    if (m->type == RAFT_APPEND_ENTRIES) {
        m->append_entries.n_entries = (unsigned)p->entries.n;
        m->append_entries.entries = p->entries.n ? sdisk_entries_out(p->entries.p, p->entries.n) : NULL;
    } else if (m->type == RAFT_INSTALL_SNAPSHOT) {
        raft_configuration_init(&m->install_snapshot.conf);
        must(raft_configuration_decode(&(struct raft_buffer){p->conf.p, p->conf.n}, &m->install_snapshot.conf) == 0);
        m->install_snapshot.data = (struct raft_buffer){raft_malloc(p->data.n), p->data.n};
        memcpy(m->install_snapshot.data.base, p->data.p, p->data.n);
    }
}

static void receive(void *arg) {
    struct packet *p = arg;
    struct sdisk *d = sdisk_of_member(p->to);
    struct raft_message m;
    unpack(p, &m);
    d->io->recv(d->io->io, &m);
}

static void on_arrival(void *arg) {
    struct packet *p = arg;
    struct sdisk *d = sdisk_of_member(p->to), *from = sdisk_of_member(p->from);
    if (d && from && d->io && d->io->recv && !d->is_frozen && vnet_passes(p->world, from->address, d->address))
        simloop_enter(d->io->loop, receive, p);
    packet_drop(p);
}

static struct packet *pack(struct sdisk *d, const struct raft_message *m) {
    struct packet *p = xnew(struct packet);
    *p = (struct packet){.world = d->conf.world, .from = d->conf.id, .to = m->server_id, .m = *m};
    memcpy(p->from_address, d->address, sizeof(p->from_address));
    if (m->type == RAFT_APPEND_ENTRIES) {
        for (unsigned i = 0; i < m->append_entries.n_entries; i++) {
            struct sdisk_entry e;
            sdisk_entry_copy(&e, &m->append_entries.entries[i]);
            vec_push(&p->entries, e);
        }
    } else if (m->type == RAFT_INSTALL_SNAPSHOT) {
        struct raft_buffer conf;
        must(raft_configuration_encode(&m->install_snapshot.conf, &conf) == 0);
        buf_add(&p->conf, conf.base, conf.len);
        raft_free(conf.base);
        buf_add(&p->data, m->install_snapshot.data.base, m->install_snapshot.data.len);
    }
    return p;
}

int snet_send(struct raft_io *io, struct raft_io_send *req, const struct raft_message *m, raft_io_send_cb cb) {
    struct sdisk *d = ((struct sio *)io->impl)->disk;
    struct vworld *w = d->conf.world;
    const struct vfaults *f = vnet_faults_now(w);
    if (!d->is_frozen && sdisk_of_member(m->server_id) && !vworld_chance(w, f->lose_request)) {
        struct packet *p = pack(d, m);
        int64_t now = vworld_now_ms(w), at = now + (int64_t)vnet_delay(w);
        bool is_bad = f->lose_request || f->late || f->twice;
        if (!is_bad || !vworld_chance(w, STRAY)) {
            at = MAX(at, d->sent_ms[m->server_id]);
            d->sent_ms[m->server_id] = at;
        }
        p->users = is_bad && vworld_chance(w, STRAY) ? 2 : 1;
        vworld_later(w, (uint64_t)(at - now), on_arrival, packet_drop, p);
        if (p->users == 2)
            vworld_later(w, (uint64_t)(at - now) + vworld_below(w, 200), on_arrival, packet_drop, p);
    }
    cb(req, 0);
    return 0;
}
