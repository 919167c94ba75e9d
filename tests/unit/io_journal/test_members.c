/* SPDX-License-Identifier: Apache-2.0
 *
 * Three members on loopback, in one process and on one owner's loop: elect, propose, lose the leader, go on, come back.
 */
#include "rig.h"

#include "io/cred/cred.h"
#include "io/peer/peer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define N 3

struct cluster {
    struct loop *loop;
    struct peer *net[N];
    struct rig m[N];
    struct journal_peer peers[N];
    char address[N][32];
    char *dir;
};

/* Ports that were free a moment ago. */
static void pick_ports(struct cluster *c) {
    int fds[N];
    for (int i = 0; i < N; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof(a);
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_true(fds[i] >= 0 && bind(fds[i], (struct sockaddr *)&a, n) == 0);
        assert_int_equal(getsockname(fds[i], (struct sockaddr *)&a, &n), 0);
        snprintf(c->address[i], sizeof(c->address[i]), "127.0.0.1:%d", ntohs(a.sin_port));
        c->peers[i] = (struct journal_peer){(uint64_t)i + 1, c->address[i]};
    }
    for (int i = 0; i < N; i++)
        close(fds[i]);
}

static int setup(void **state) {
    struct cluster *c = xnew(struct cluster);
    c->loop = loop_new("owner");
    c->dir = temp_dir();
    pick_ports(c);
    for (int i = 0; i < N; i++) {
        char *dir = xasprintf("%s/%d", c->dir, i + 1);
        assert_int_equal(mkdir(dir, 0700), 0);
        rig_init(&c->m[i], dir, c->loop);
        free(dir);
        c->m[i].conf.id = (uint64_t)i + 1;
        c->net[i] = NULL;
        struct peer_conf net = {.cluster = "test", .id = (uint32_t)i + 1, .listen = c->address[i]};
        struct err e = {0};
        if (peer_new(&net, &c->net[i], &e))
            fail_msg("%s", e.text);
        c->m[i].conf.net = c->net[i];
        c->m[i].conf.peers = c->peers;
        c->m[i].conf.n_peers = N;
    }
    *state = c;
    return 0;
}

static int teardown(void **state) {
    struct cluster *c = *state;
    for (int i = 0; i < N; i++)
        rig_fini(&c->m[i]);
    for (int i = 0; i < N; i++)
        peer_free(c->net[i]);
    rig_loop_free(c->loop);
    temp_remove(c->dir);
    free(c->dir);
    free(c);
    return 0;
}

static struct cluster *the; /* for conditions over all members */

static struct rig *leader(struct cluster *c) {
    struct rig *found = NULL;
    for (int i = 0; i < N; i++)
        if (c->m[i].j && c->m[i].leader) {
            if (found)
                return NULL; /* the old one has not heard yet */
            found = &c->m[i];
        }
    return found;
}

static bool has_leader(struct rig *r) {
    return leader(the) != NULL;
}

static struct rig *wait_leader(struct cluster *c) {
    the = c;
    rig_until(&c->m[0], has_leader, 20000);
    return leader(c);
}

static uint64_t wanted;

static bool all_have(struct rig *r) {
    for (int i = 0; i < N; i++)
        if (the->m[i].j && (the->m[i].log.n == 0 || the->m[i].log.p[the->m[i].log.n - 1].value != wanted))
            return false;
    return true;
}

static void wait_all(struct cluster *c, uint64_t last_value) {
    the = c;
    wanted = last_value;
    rig_until(&c->m[0], all_have, 20000);
}

/* Whoever leads proposes; values go on across members. A refused one is proposed again, as a client would. */
static void propose_all(struct cluster *c, uint64_t *value, int n) {
    for (int i = 0; i < n;) {
        struct rig *r = wait_leader(c);
        r->values = *value;
        uint64_t refused = r->refused;
        int some = n - i < 16 ? n - i : 16;
        for (int k = 0; k < some; k++)
            rig_propose(r, 100);
        rig_settle(r);
        *value = r->values;
        i += some - (int)(r->refused - refused);
    }
}

static void expect_same(struct cluster *c) {
    struct rig *a = NULL;
    for (int i = 0; i < N; i++) {
        struct rig *b = &c->m[i];
        if (!b->j)
            continue;
        for (size_t k = 0; a && k < a->log.n; k++) {
            assert_int_equal(a->log.p[k].value, b->log.p[k].value);
            assert_int_equal(a->log.p[k].index, b->log.p[k].index);
            assert_int_equal(a->log.p[k].term, b->log.p[k].term);
        }
        if (a)
            assert_int_equal(a->log.n, b->log.n);
        a = b;
    }
}

static void test_elect_propose_lose_the_leader(void **state) {
    struct cluster *c = *state;
    for (int i = 0; i < N; i++)
        rig_open(&c->m[i]);
    uint64_t value = 0;
    propose_all(c, &value, 200);
    wait_all(c, value);
    expect_same(c);
    for (int round = 0; round < 3; round++) {
        struct rig *old = wait_leader(c);
        uint64_t term = journal_stats(old->j).term;
        rig_close(old);
        struct rig *next = wait_leader(c);
        assert_ptr_not_equal(old, next);
        assert_true(journal_stats(next->j).term > term);
        propose_all(c, &value, 100);
        wait_all(c, value);
        rig_forget(old);
        rig_open(old);
        propose_all(c, &value, 20);
        wait_all(c, value);
        expect_same(c);
    }
    struct rig *l = wait_leader(c);
    for (int i = 0; i < N; i++) {
        struct journal_stats s = journal_stats(c->m[i].j);
        assert_int_equal(s.leader_id, l->conf.id);
        assert_int_equal(s.role, &c->m[i] == l ? JOURNAL_LEADER : JOURNAL_FOLLOWER);

    }
}

static void test_a_follower_refuses(void **state) {
    struct cluster *c = *state;
    for (int i = 0; i < N; i++)
        rig_open(&c->m[i]);
    struct rig *l = wait_leader(c);
    struct rig *f = l == &c->m[0] ? &c->m[1] : &c->m[0];
    rig_propose(f, 8);
    rig_settle(f);
    assert_int_equal(f->refused_code, E_NOT_LEADER);
}

static bool lost(struct rig *r) {
    return !r->leader;
}

/* Without a majority nothing is acknowledged, every proposal gets its answer, and leadership is given up. */
static void test_no_majority(void **state) {
    struct cluster *c = *state;
    for (int i = 0; i < N; i++)
        rig_open(&c->m[i]);
    uint64_t value = 0;
    propose_all(c, &value, 50);
    wait_all(c, value);
    struct rig *l = wait_leader(c);
    for (int i = 0; i < N; i++)
        if (&c->m[i] != l)
            rig_close(&c->m[i]);
    uint64_t applied = l->applied;
    for (int i = 0; i < 20; i++)
        rig_propose(l, 50);
    rig_settle(l);
    rig_until(l, lost, 20000);
    assert_int_equal(l->applied, applied);
    assert_int_equal(l->refused_code, E_NOT_LEADER);
    for (int i = 0; i < N; i++)
        if (&c->m[i] != l) {
            rig_forget(&c->m[i]);
            rig_open(&c->m[i]);
        }
    value = l->values;
    propose_all(c, &value, 10);
    wait_all(c, value);
    expect_same(c);
}

#define NOT_ANSWERED 1 /* no code is above 0 */

static int transfer_code;

static void on_transferred(void *arg, int code, const struct err *why) {
    transfer_code = code;
}

static bool transfer_answered(struct rig *r) {
    return transfer_code != NOT_ANSWERED;
}

/* The last of three hands the lead on in vain: nobody is left who could take it, nobody leads, and it is told. */
static void test_transfer_to_nobody(void **state) {
    struct cluster *c = *state;
    for (int i = 0; i < N; i++)
        rig_open(&c->m[i]);
    struct rig *l = wait_leader(c);
    for (int i = 0; i < N; i++)
        if (&c->m[i] != l)
            rig_close(&c->m[i]);
    transfer_code = NOT_ANSWERED;
    journal_transfer(l->j, 0, on_transferred, NULL);
    rig_until(l, transfer_answered, 20000);
    assert_true(transfer_code < 0);
    rig_until(l, lost, 20000);
}

static bool all_snapshots(struct rig *r) {
    for (int i = 0; i < N; i++)
        if (the->m[i].j && journal_stats(the->m[i].j).snapshot_index < 500)
            return false;
    return true;
}

/* One that was away for longer than the log reaches back gets the manifest. */
static void test_far_behind(void **state) {
    struct cluster *c = *state;
    for (int i = 0; i < N; i++) {
        c->m[i].conf.snapshot_entries = 300;
        c->m[i].conf.keep_entries = 50;
        rig_open(&c->m[i]);
    }
    uint64_t value = 0;
    propose_all(c, &value, 20);
    wait_all(c, value);
    struct rig *l = wait_leader(c);
    struct rig *away = l == &c->m[2] ? &c->m[1] : &c->m[2];
    rig_close(away);
    propose_all(c, &value, 1500);
    wait_all(c, value);
    the = c;
    rig_until(l, all_snapshots, 20000);
    rig_forget(away);
    rig_open(away);
    assert_int_equal(away->restores, 0);
    propose_all(c, &value, 20);
    wait_all(c, value);
    unsigned restores = away->restores;
    assert_true(restores >= 1); /* two where the leader makes its next one meanwhile */
    expect_same(c);
    rig_reopen(away);
    propose_all(c, &value, 20);
    wait_all(c, value);
    assert_true(away->restores > restores);
    expect_same(c);
}

static char *in_dir(struct rig *r, const char *name, int i) {
    return xasprintf("%s/%s%d", r->dir, name, i);
}

/* Takes away (or gives back) the files for term and vote. */
static void metadata_away(struct rig *r, bool away) {
    for (int i = 1; i <= 2; i++) {
        char *file = in_dir(r, "metadata", i), *saved = in_dir(r, "saved", i);
        if (away) {
            rename(file, saved);
            assert_int_equal(mkdir(file, 0700), 0);
        } else {
            assert_int_equal(rmdir(file), 0);
            rename(saved, file);
        }
        free(file);
        free(saved);
    }
}

static bool in_trouble(struct rig *r) {
    return r->problems > 0 && journal_stats(r->j).disk_refuses;
}

/* A member that can't store its term takes no part, and does again when it can. */
static void test_term_cannot_be_stored(void **state) {
    struct cluster *c = *state;
    for (int i = 0; i < N; i++)
        rig_open(&c->m[i]);
    uint64_t value = 0;
    propose_all(c, &value, 50);
    wait_all(c, value);
    struct rig *l = wait_leader(c);
    struct rig *f = l == &c->m[0] ? &c->m[1] : &c->m[0];
    metadata_away(f, true);
    rig_close(l); /* an election, and with it a new term */
    rig_until(f, in_trouble, 20000);
    rig_propose(f, 8);
    rig_settle(f);
    assert_int_equal(f->refused_code, E_SYS);
    assert_null(leader(c)); /* one of three */
    metadata_away(f, false);
    value = 1000;
    propose_all(c, &value, 50);
    wait_all(c, value);
    assert_true(f->relieved > 0);
    rig_forget(l);
    rig_open(l);
    propose_all(c, &value, 10);
    wait_all(c, value);
    expect_same(c);
}

static void test_port_is_taken(void **state) {
    struct cluster *c = *state;
    struct err e = {0};
    struct peer *p;
    struct peer_conf net = {.cluster = "test", .id = 2, .listen = c->address[0]};
    assert_int_equal(peer_new(&net, &p, &e), E_SYS);
    assert_non_null(strstr(e.text, "in use"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_elect_propose_lose_the_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_follower_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_majority, setup, teardown),
        cmocka_unit_test_setup_teardown(test_transfer_to_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(test_far_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(test_term_cannot_be_stored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_port_is_taken, setup, teardown),
    };
    assert_int_equal(cred_init(NULL), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
