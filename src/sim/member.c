/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/member.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "io/journal/inside.h"
#include "sim/loop.h"
#include "spurctld/member/member.h"
#include "wire/methods.h"

#define SNAPSHOT_EVERY 120u /* entries */
#define KEEP_ENTRIES 60000u
#define LAG_MOST_MS 1u
#define JOIN_EVERY_MS 250u
#define JOIN_MS 8000u

struct prop { /* of the rooms, in the journal */
    struct smember *m;
    struct prop *next, *prev;
    host_proposed_fn fn;
    void *arg;
};

struct move { /* of the room of members, in the journal: a change of them */
    struct smember *m;
    struct move *next, *prev;
    member_fn fn;
    void *arg;
};

struct smember {
    struct smember_conf conf;
    char dir[16], address[16];
    struct sdisk *disk;
    struct vctl *ctl;
    struct journal *journal;
    struct loop *state_loop;
    struct prop *props;
    struct move *moves;
    struct member_log log;
    /* the snapshot that is being made */
    bool is_taking;
    uint64_t taken_index, asked_index;
    struct buf taken;
    uint64_t n_snapshots;
    uint64_t seen_term; /* of its leadership */
    struct vevent *crash_event, *join_event;
    bool must_join, is_ending;
};

/* ---- proposals ---- */

static void prop_end(struct prop *p) {
    *(p->prev ? &p->prev->next : &p->m->props) = p->next;
    if (p->next)
        p->next->prev = p->prev;
    free(p);
}

static void propose(void *ctx, struct buf command, host_proposed_fn fn, void *arg) {
    struct smember *m = ((struct vctl *)ctx)->log;
    struct err e;
    if (!m->journal) {
        buf_fini(&command);
        err_set(&e, E_STOPPING, NULL);
        fn(arg, E_STOPPING, &e, 0, NULL, 0);
        return;
    }
    struct prop *p = xnew(struct prop);
    *p = (struct prop){.m = m, .next = m->props, .fn = fn, .arg = arg};
    if (m->props)
        m->props->prev = p;
    m->props = p;
    journal_propose(m->journal, command, p);
}

static void move_end(struct move *v, int code, const struct err *why) {
    struct move was = *v;
    *(v->prev ? &v->prev->next : &v->m->moves) = v->next;
    if (v->next)
        v->next->prev = v->prev;
    free(v);
    was.fn(was.arg, code, why);
}

static void refuse_all(struct smember *m) {
    struct err e;
    err_set(&e, E_STOPPING, NULL);
    while (m->props) {
        struct prop p = *m->props;
        prop_end(m->props);
        p.fn(p.arg, E_STOPPING, &e, 0, NULL, 0);
    }
    while (m->moves)
        move_end(m->moves, E_STOPPING, &e);
}

/* ---- snapshots: the manifest is the state itself ---- */

static void on_flushed(void *arg) {
    struct smember *m = arg;
    if (!m->is_taking || !m->journal)
        return;
    m->is_taking = false;
    m->n_snapshots++;
    journal_snapshot_done(m->journal, m->taken_index, m->taken.p, m->taken.n);
}

static void on_snapshot(void *ctx, uint64_t index) {
    struct smember *m = ctx;
    m->is_taking = true;
    m->taken_index = index;
    buf_clear(&m->taken);
    vctl_snapshot_write(m->ctl->room.state, &m->taken);
    acct_when_flushed(m->ctl->room.acct, index, on_flushed, m);
}

static void maybe_snapshot(struct smember *m, uint64_t index) {
    if (!m->journal || m->is_taking || index < m->asked_index + SNAPSHOT_EVERY + 13 * m->conf.id)
        return;
    m->asked_index = index;
    journal_snapshot_now(m->journal);
}

static int on_restore(void *ctx, uint64_t index, const void *manifest, size_t n, struct err *e) {
    struct smember *m = ctx;
    auto_buf bytes = {0};
    buf_add(&bytes, manifest, n);
    int rc = vctl_restore(m->ctl, &bytes, e);
    m->asked_index = index;
    if (!rc)
        m->conf.watch.restored(m->conf.watch.arg, m, index);
    return rc;
}

/* ---- what the journal says ---- */

static void on_entry(void *ctx, uint64_t index, uint64_t term, const void *p, size_t n, void *tag) {
    struct smember *m = ctx;
    struct prop own = {0};
    if (tag) {
        own = *(struct prop *)tag;
        prop_end(tag);
    }
    if (index <= m->ctl->applied_index) {
        printf("FAILED at %lld ms: member %u is handed entry %llu of term %llu again, behind %llu\n",
               (long long)vworld_now_ms(m->conf.world), m->conf.id, (unsigned long long)index, (unsigned long long)term,
               (unsigned long long)m->ctl->applied_index);
        fflush(stdout);
        _Exit(3);
    }
    vctl_apply(m->ctl, index, p, n, own.fn, own.arg);
    m->conf.watch.applied(m->conf.watch.arg, m, index, term, p, n);
    if (tag)
        m->conf.watch.acknowledges(m->conf.watch.arg, m, index);
    member_on_reached(m->ctl->room.member, index);
    maybe_snapshot(m, index);
}

static void on_refused(void *ctx, void *tag, int code, const struct err *why) {
    struct prop p = *(struct prop *)tag;
    prop_end(tag);
    p.fn(p.arg, code, why, 0, NULL, 0);
}

static void on_leader(void *ctx, bool is_leader, uint64_t term) {
    struct smember *m = ctx;
    if (is_leader == m->ctl->is_elected)
        return;
    if (is_leader)
        vctl_lead(m->ctl);
    else
        vctl_follow(m->ctl);
}

static void on_reached(void *ctx, uint64_t index) {
    struct smember *m = ctx;
    member_on_reached(m->ctl->room.member, index);
}

static void on_status(void *ctx, const struct journal_status *s) {
    struct smember *m = ctx;
    struct member_status st = {.is_leader = s->role == JOURNAL_LEADER, .term = s->term, .leader_id = (uint32_t)s->leader_id,
                               .n = s->n_members};
    for (size_t i = 0; i < s->n_members; i++) {
        st.members[i] = (struct member_info){.id = (uint32_t)s->members[i].id, .is_voter = s->members[i].is_voter};
        snprintf(st.members[i].address, sizeof(st.members[i].address), "%s", s->members[i].address);
    }
    member_on_status(m->ctl->room.member, &st);
}

/* ---- the room of members ---- */

static void member_send(void *impl, uint64_t id, const char *method, struct buf message, uint64_t timeout_ms,
                        host_reply_fn fn, void *arg) {
    struct host *h = vhost_host(impl);
    char address[16];
    snprintf(address, sizeof(address), "ctl%u", (unsigned)id);
    h->send(impl, address, method, NULL, message, timeout_ms, fn, arg);
}

static uint64_t log_term(void *impl) {
    return journal_term(((struct smember *)impl)->journal);
}

static uint64_t log_commit(void *impl) {
    return journal_commit(((struct smember *)impl)->journal);
}

static void on_moved(void *arg, int code, const struct err *why) {
    move_end(arg, code, why);
}

static void log_change(void *impl, enum controller_verb verb, uint32_t id, const char *address, member_fn done, void *arg) {
    struct smember *m = impl;
    struct move *v = xnew(struct move);
    *v = (struct move){.m = m, .next = m->moves, .fn = done, .arg = arg};
    if (m->moves)
        m->moves->prev = v;
    m->moves = v;
    if (verb == CONTROLLER_ADD)
        journal_add(m->journal, id, address, on_moved, v);
    else if (verb == CONTROLLER_REMOVE)
        journal_remove(m->journal, id, on_moved, v);
    else if (verb == CONTROLLER_TRANSFER)
        journal_transfer(m->journal, id, on_moved, v);
    else
        journal_promote(m->journal, id, on_moved, v);
}

static void serve(void *ctx, struct vrequest *rq) {
    vctl_serve(((struct smember *)ctx)->ctl, rq);
}

/* ---- life ---- */

static void log_removed(void *impl);

static void crash_now(void *arg) {
    struct smember *m = arg;
    m->crash_event = NULL;
    smember_crash(m);
}

static void on_crashes(void *arg, uint64_t id) {
    struct smember *m = arg;
    m->crash_event = m->crash_event ? m->crash_event : vworld_set(m->conf.world, 0, crash_now, m);
}

static void on_stored(void *arg, uint64_t id, uint64_t index, const struct sdisk_entry *e) {
    struct smember *m = arg;
    m->conf.watch.stored(m->conf.watch.arg, id, index, e);
}

struct smember *smember_new(const struct smember_conf *conf) {
    struct smember *m = xnew(struct smember);
    m->conf = *conf;
    m->must_join = conf->id > conf->n;
    snprintf(m->dir, sizeof(m->dir), "disk-%u", conf->id);
    snprintf(m->address, sizeof(m->address), "ctl%u", conf->id);
    m->disk = sdisk_new(&(struct sdisk_conf){conf->world, m->dir, conf->id, on_stored, on_crashes, m});
    return m;
}

static void log_removed(void *impl) {
    on_crashes(impl, 0);
}

static const char *const names[] = {"ctl1:6821", "ctl2:6821", "ctl3:6821", "ctl4:6821", "ctl5:6821"};

static void open_journal(struct smember *m) {
    struct journal_peer peers[ARRAY_LEN(names)];
    uint32_t n = m->must_join ? (uint32_t)ARRAY_LEN(names) : m->conf.n;
    for (uint32_t i = 0; i < n; i++)
        peers[i] = (struct journal_peer){i + 1, names[i]};
    struct journal_conf conf = {.dir = m->dir, .id = m->conf.id, .peers = peers, .n_peers = n, .join = m->must_join,
                                .snapshot_entries = UINT32_MAX, .keep_entries = KEEP_ENTRIES};
    struct journal_owner owner = {.ctx = m, .on_entry = on_entry, .on_refused = on_refused, .on_leader = on_leader,
                                  .on_snapshot = on_snapshot, .on_restore = on_restore, .on_status = on_status,
                                  .on_reached = on_reached};
    simloop_world(m->conf.world);
    m->state_loop = loop_new("state");
    struct journal *j = journal_new(m->state_loop, &conf, &owner);
    simloop_lag(m->state_loop, LAG_MOST_MS);
    simloop_enter(j->loop, journal_begin, j);
    must(j->open_is_done && j->open_code == 0);
    outbox_deliver_state(j->out);
    outbox_opened(j->out);
    m->journal = j;
    m->log = (struct member_log){.impl = m, .term = log_term, .commit_index = log_commit, .change = log_change, .removed = log_removed};
    member_set_log(m->ctl->room.member, &m->log);
}

/* ---- with an empty disk: as ctl_members.c has it ---- */

static void join(void *arg);

static void on_joined(void *arg, int code, const struct err *why, const void *reply, size_t n) {
    struct smember *m = arg;
    if (m->is_ending)
        return;
    if (!code)
        open_journal(m);
    else
        m->join_event = vworld_set(m->conf.world, JOIN_EVERY_MS, join, m);
}

static void join(void *arg) {
    struct smember *m = arg;
    struct join_request rq = {.address = names[m->conf.id - 1]};
    struct buf bytes = {0};
    uint64_t other = 1 + vworld_below(m->conf.world, ARRAY_LEN(names) - 1);
    m->join_event = NULL;
    rec_encode(join_request_rec(), &rq, &bytes);
    member_send(m->ctl->room.host->impl, other + (other >= m->conf.id), wire_method(WIRE_Member_Join)->path, bytes, JOIN_MS, on_joined, m);
}

void smember_start(struct smember *m) {
    struct vhost_conf host = {.address = m->address, .propose = propose};
    struct vctl_conf conf = {.dir = m->conf.dir, .member_id = m->conf.id, .fill = m->conf.fill, .work_max_ms = 4};
    must(!m->ctl);
    sdisk_thaw(m->disk);
    m->ctl = vctl_new(&conf, m->conf.world, &host, m);
    m->ctl->room.host->member_send = member_send;
    m->ctl->room.member = member_new(&m->ctl->room);
    m->ctl->conf.n_peers = m->conf.n;
    m->is_ending = false;
    if (m->must_join && sdisk_is_fresh(m->disk))
        m->join_event = vworld_set(m->conf.world, JOIN_EVERY_MS, join, m);
    else
        open_journal(m);
    vnet_listen(m->conf.world, m->address, serve, m);
}

static void end_journal(struct smember *m, struct journal *j) {
    simloop_enter(j->loop, (void (*)(void *))turn_stop, j);
    must(simloop_drain(j->loop));
    for (size_t i = 0; i < j->in.n; i++)
        buf_fini(&j->in.p[i].entry);
    vec_fini(&j->asks);
    journal_free(j);
    simloop_drain(m->state_loop); /* what was posted to it finds nobody */
    loop_free(m->state_loop);
    m->state_loop = NULL;
}

/* The order of ctl_free. Nothing that is done on the way down reaches the disk. */
void smember_crash(struct smember *m) {
    struct vhistory history;
    struct journal *j = m->journal;
    if (!m->ctl)
        return;
    vworld_unset(m->crash_event);
    vworld_unset(m->join_event);
    m->crash_event = m->join_event = NULL;
    m->is_ending = true;
    vnet_listen(m->conf.world, m->address, NULL, NULL);
    vhistory_keep(&history, m->ctl);
    sdisk_crash(m->disk);
    m->journal = NULL;
    m->is_taking = false;
    member_set_log(m->ctl->room.member, NULL);
    vctl_silence(m->ctl);
    refuse_all(m);
    if (j)
        end_journal(m, j);
    member_free(m->ctl->room.member);
    vctl_free(m->ctl);
    m->ctl = NULL;
    vhistory_put_back(&history);
}

void smember_empty(struct smember *m) {
    must(!m->ctl);
    sdisk_empty(m->disk);
    vhistory_remove(m->conf.dir, m->conf.id);
    m->must_join = true;
    m->asked_index = m->seen_term = 0;
}

void smember_free(struct smember *m) {
    smember_crash(m);
    sdisk_free(m->disk);
    buf_fini(&m->taken);
    free(m);
}

/* ---- looking ---- */

bool smember_is_up(const struct smember *m) {
    return m->ctl;
}

bool smember_has_log(const struct smember *m) {
    return m->journal;
}

uint32_t smember_id(const struct smember *m) {
    return m->conf.id;
}

const char *smember_address(const struct smember *m) {
    return m->address;
}

struct vctl *smember_ctl(const struct smember *m) {
    return m->ctl;
}

struct sdisk *smember_disk(const struct smember *m) {
    return m->disk;
}

uint64_t smember_snapshots(const struct smember *m) {
    return m->n_snapshots;
}

void smember_print(const struct smember *m) {
    struct journal *j = m->journal;
    struct instance *in = j ? j->inst : NULL;
    if (!in) {
        printf("  member %u: %s\n", m->conf.id, j ? "without an instance" : "down");
        return;
    }
    printf("  member %u: %s term %llu last %llu stored %llu commit %llu, leads %u, ready %d, broken %d, barrier %d, capacity %u, "
           "unstored %llu, trouble %d, writes under way %d\n",
           m->conf.id, raft_state_name(raft_state(&in->raft)), raft_current_term(&in->raft), raft_last_index(&in->raft),
           in->raft.last_stored, raft_commit_index(&in->raft), m->ctl->room.is_leader, in->ready, in->broken, in->barrier != NULL,
           in->io.capacity, (unsigned long long)in->unstored_bytes, j->trouble.code, in->writing);
    const struct raft_configuration *conf = &in->raft.configuration;
    printf("    a change %s; members:", !j->change ? "is not under way" : j->change->answered ? "is answered" : "is under way");
    for (unsigned i = 0; i < conf->n; i++)
        printf(" %llu%s", conf->servers[i].id, conf->servers[i].role == RAFT_VOTER ? "" : " (spare)");
    putchar('\n');
}

void smember_look(struct smember *m) {
    struct instance *in = m->journal ? m->journal->inst : NULL;
    if (!in || in->broken || in->closing || !in->started || raft_state(&in->raft) != RAFT_LEADER)
        return;
    uint64_t term = raft_current_term(&in->raft);
    if (term == m->seen_term)
        return;
    m->seen_term = term;
    m->conf.watch.leads(m->conf.watch.arg, m, term);
}
