/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of libraft on the directory: made, started, broken, closed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/journal/inside.h"

/* Many: 150 to 300 ms without a word from the leader begin an election. Alone there are none; the tick only looks. */
#define ELECTION_MS 150
#define HEARTBEAT_MS 30
#define ALONE_ELECTION_MS 1000
#define ALONE_TICK_MS 100
#define INSTALL_MS 5000
#define INFLIGHT_ENTRIES 512

/* ---- making one ---- */

static const char *own_address(const struct journal *j) {
    for (size_t i = 0; i < j->n_peers; i++)
        if (j->peers[i].id == j->id)
            return j->peers[i].address;
    return "alone";
}

static int raft_err(struct err *e, const struct journal *j, int rv, const char *what, const char *text) {
    int code = rv == RAFT_CORRUPT || rv == RAFT_MALFORMED ? E_CORRUPT : E_SYS;
    if (rv == RAFT_NOSPACE || (text && strstr(text, "no space left")))
        code = E_FULL;
    return err_set(e, code, "%s: %s: %s%s%s", j->dir, what, raft_strerror(rv), text && *text ? ": " : "",
                   text ? text : "");
}

static int bootstrap(struct instance *in, struct err *e) {
    struct journal *j = in->j;
    struct raft_configuration c;
    raft_configuration_init(&c);
    int rv = 0;
    if (journal_alone(j))
        rv = raft_configuration_add(&c, j->id, own_address(j), RAFT_VOTER);
    for (size_t i = 0; i < j->n_peers && !journal_alone(j) && rv == 0; i++)
        rv = raft_configuration_add(&c, j->peers[i].id, j->peers[i].address, RAFT_VOTER);
    if (rv == 0)
        rv = raft_bootstrap(&in->raft, &c);
    raft_configuration_close(&c);
    if (rv != 0)
        return raft_err(e, j, rv, "the first files can't be written", in->io.errmsg);
    return check_mark_owner(j->dir, j->id, false, e);
}

/* Who is a member is in the log. A configuration that names nobody else can't reach those whom the log names. */
static int check_members(struct instance *in, struct err *e) {
    const struct raft_configuration *c = &in->raft.configuration;
    struct journal *j = in->j;
    if (!journal_alone(j) || c->n == 0)
        return 0;
    if (c->n == 1 && c->servers[0].id == j->id)
        return 0;
    return err_set(e, E_CONFIG, "%s: is the log of a cluster of %u controllers, but the configuration names no others "
                   "([controller] peers)", j->dir, c->n);
}

/* Appended to the log, as if a majority had agreed to it: for one whose majority is lost for good. */
static int force_new(struct instance *in, struct err *e) {
    struct journal *j = in->j;
    struct raft_configuration c;
    raft_configuration_init(&c);
    int rv = raft_configuration_add(&c, j->id, own_address(j), RAFT_VOTER);
    if (rv == 0)
        rv = raft_recover(&in->raft, &c);
    raft_configuration_close(&c);
    return rv == 0 ? 0 : raft_err(e, j, rv, "the members can't be replaced", in->io.errmsg);
}

static void configure(struct instance *in) {
    struct journal *j = in->j;
    bool alone = journal_alone(j);
    raft_set_heartbeat_timeout(&in->raft, alone ? ALONE_TICK_MS : HEARTBEAT_MS);
    raft_set_election_timeout(&in->raft, alone ? ALONE_ELECTION_MS : ELECTION_MS);
    raft_set_install_snapshot_timeout(&in->raft, INSTALL_MS);
    raft_set_max_inflight_entries(&in->raft, INFLIGHT_ENTRIES);
    raft_set_pre_vote(&in->raft, true);
    raft_set_snapshot_threshold(&in->raft, j->snapshot_entries);
    raft_set_snapshot_trailing(&in->raft, j->keep_entries);
    raft_set_capacity_threshold(&in->raft, CAPACITY_KIB_MIN);
    raft_uv_set_segment_size(&in->io, SEGMENT_BYTES);
    raft_uv_set_disk_retry(&in->io, DISK_RETRY_MS);
    raft_uv_set_connect_retry_delay(&in->io, 100);
    raft_uv_set_auto_recovery(&in->io, false); /* check_dir has looked; nothing is to be renamed away */
}

static int start(struct instance *in, bool fresh, struct err *e) {
    struct journal *j = in->j;
    trace_init(in);
    configure(in);
    int rc = 0;
    if (fresh && j->join)
        rc = check_mark_owner(j->dir, j->id, true, e);
    else if (fresh)
        rc = bootstrap(in, e);
    else if (j->force_new)
        rc = force_new(in, e);
    j->force_new = false;
    if (rc != 0)
        return rc;
    disk_guard_init(in);
    int rv = raft_start(&in->raft);
    if (rv != 0)
        return raft_err(e, j, rv, "the log can't be read", in->io.errmsg);
    in->started = true;
    atomic_store(&j->term_now, raft_current_term(&in->raft));
    if (in->broken)
        return err_set(e, in->broken_code, "%s: %s", j->dir, in->broken_text);
    if (journal_alone(j) && raft_last_index(&in->raft) < j->delivered)
        return err_set(e, E_CORRUPT, "%s: the log ends at entry %llu, but entry %llu was committed", j->dir,
                       raft_last_index(&in->raft), (unsigned long long)j->delivered);
    return check_members(in, e);
}

static int make(struct journal *j, bool fresh, struct err *e) {
    struct instance *in = xnew(struct instance);
    in->j = j;
    fsm_init(in);
    net_init(in);
    int rc = 0;
    int rv = raft_uv_init(&in->io, loop_uv(j->loop), j->dir, &in->net);
    if (rv == 0 && (rv = raft_init(&in->raft, &in->io, &in->fsm, j->id, own_address(j))) != 0)
        raft_uv_close(&in->io);
    if (rv != 0) {
        rc = raft_err(e, j, rv, "the directory can't be used", in->io.errmsg);
        free(in);
        return rc;
    }
    j->inst = in;
    rc = start(in, fresh, e);
    if (rc != 0)
        instance_break(in, rc, "%s", e ? e->text : err_sentence(rc));
    return rc;
}

/* On failure j->inst may be there: broken, and to be closed like any other. */
int instance_open(struct journal *j, bool first, struct err *e) {
    heap_init();
    struct check c;
    int rc = check_dir(j->dir, j->id, journal_alone(j), &c, e);
    if (rc != 0)
        return rc;
    j->snap.disk_index = c.snapshot_index;
    j->snap.disk_term = c.snapshot_term;
    if (c.fresh && !first)
        rc = err_set(e, E_CORRUPT, "%s: the log is gone", j->dir);
    if (rc == 0)
        rc = check_repair(j->dir, &c, e);
    if (rc == 0 && c.joined && (c.last > 0 || c.snapshot_index > 0))
        rc = check_mark_owner(j->dir, j->id, false, e);
    if (rc == 0)
        rc = make(j, c.fresh, e);
    if (rc == E_FULL && !j->inst && trouble_free_reserve(j))
        rc = make(j, c.fresh, e);
    if (rc == 0 && c.torn)
        out_notice(j->out, false, "%s: the last write before a crash was not complete and is left out", j->dir);
    check_fini(&c);
    return rc;
}

/* ---- unmaking it ---- */

void instance_break(struct instance *in, int code, const char *fmt, ...) {
    if (in->broken || in->closing)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(in->broken_text, sizeof(in->broken_text), fmt, ap);
    va_end(ap);
    in->broken = true;
    in->broken_code = code ? code : strstr(in->broken_text, "no space left") ? E_FULL : E_SYS;
    in->ready = false;
    turn_soon(in->j);
}

static void on_closed(struct raft *r) {
    struct instance *in = (struct instance *)r;
    in->gone = true; /* freed at the end of the turn: libraft is still on the stack */
    turn_soon(in->j);
}

void instance_free(struct instance *in) {
    must(in->gone);
    own_forget_all(in);
    barriers_free(in);
    buf_fini(&in->put.blob);
    buf_fini(&in->change);
    raft_uv_close(&in->io);
    free(in);
}

/* Only while no write is in flight: one that fails in a closing instance would start a timer that is closed already. */
void instance_close(struct instance *in) {
    must(!in->closing && !in->writing);
    in->closing = true;
    in->ready = false;
    raft_close(&in->raft, on_closed);
    guard_closed(in);
}
