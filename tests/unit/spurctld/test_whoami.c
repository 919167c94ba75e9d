/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the controllers a machine is: each row of the table is a rule or its edge.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "spurctld/whoami.h"

#define PEERS_MAX 4

struct row {
    const char *what;
    const char *peers[PEERS_MAX];
    uint32_t node_id;
    const char *host;
    uint32_t id;      /* 0: an error, which holds `said` */
    const char *said;
};

static const struct row rows[] = {
    {"no peers: one member, id 1", {0}, 0, "anything", 1, NULL},
    {"no peers, and node_id 1 says the same", {0}, 1, "anything", 1, NULL},
    {"no peers, another node_id", {0}, 2, "anything", 0, "node_id = 2, but there are no peers"},

    {"node_id goes before a name that matches", {"a:6821", "b:6821", "c:6821"}, 3, "a", 3, NULL},
    {"node_id goes before an ordinal", {"10.0.0.1:6821", "10.0.0.2:6821"}, 1, "ctl-1", 1, NULL},
    {"node_id beyond the peers", {"a:6821", "b:6821"}, 3, "a", 0, "node_id = 3, but peers names 2"},

    {"short name in peers, short host", {"a:6821", "b:6821", "c:6821"}, 0, "b", 2, NULL},
    {"full name in peers, short host", {"a.x.org:6821", "b.x.org:6821"}, 0, "b", 2, NULL},
    {"short name in peers, full host", {"a:6821", "b:6821"}, 0, "b.x.org", 2, NULL},
    {"full names on both sides", {"a.x.org:6821", "b.x.org:6821"}, 0, "a.x.org", 1, NULL},
    {"full names of different domains are different", {"a.x.org:6821", "a.y.org:6821"}, 0, "a.y.org", 2, NULL},
    {"any case", {"CTL-A:6821", "Ctl-B:6821"}, 0, "ctl-b", 2, NULL},
    {"a dot at the end of a peer", {"a.x.org.:6821", "b.x.org.:6821"}, 0, "b.x.org", 2, NULL},
    {"a dot at the end of the host", {"a.x.org:6821", "b.x.org:6821"}, 0, "b.x.org.", 2, NULL},
    {"a StatefulSet: pods' names in a headless service",
     {"spurctld-0.spurctld.spur.svc.cluster.local:6821", "spurctld-1.spurctld.spur.svc.cluster.local:6821",
      "spurctld-2.spurctld.spur.svc.cluster.local:6821"}, 0, "spurctld-1", 2, NULL},
    {"a name goes before its ordinal", {"ctl-2:6821", "ctl-0:6821", "ctl-1:6821"}, 0, "ctl-2", 1, NULL},
    {"with a scheme", {"http://a:6821", "HTTP://b:6821"}, 0, "b", 2, NULL},

    {"no entry is this host", {"a:6821", "b:6821"}, 0, "c", 0, "'c'; of [controller] peers (a, b) none is that name"},
    {"no entry is this host: the ordinal does not count", {"a:6821", "b:6821"}, 0, "c-1", 0, "none is that name"},
    {"several are this host", {"a.x.org:6821", "a.y.org:6821"}, 0, "a", 0, "(a.x.org, a.y.org) several are that name"},
    {"several ports of one host", {"a:6821", "a:6822"}, 0, "a", 0, "several are that name"},
    {"part of a name is not the name", {"ctl-1:6821", "ctl-2:6821"}, 0, "ctl-11", 0, "none is that name"},

    {"addresses: the ordinal plus one", {"10.0.0.1:6821", "10.0.0.2:6821", "10.0.0.3:6821"}, 0, "spurctld-2", 3, NULL},
    {"addresses: the ordinal of a full name", {"10.0.0.1:6821", "10.0.0.2:6821"}, 0, "spurctld-1.x.org", 2, NULL},
    {"addresses of IPv6", {"[fd00::1]:6821", "[fd00::2]:6821"}, 0, "ctl-0", 1, NULL},
    {"localhost names nobody", {"localhost:6821", "localhost:6822", "localhost:6823"}, 0, "ctl-1", 2, NULL},
    {"addresses, and an ordinal beyond them", {"10.0.0.1:6821", "10.0.0.2:6821"}, 0, "ctl-2", 0, "'ctl-2' does not end in a number from 0 to 1"},
    {"addresses, and no ordinal", {"10.0.0.1:6821", "10.0.0.2:6821"}, 0, "head", 0, "set [controller] node_id"},
    {"addresses, and a number that does not fit", {"10.0.0.1:6821", "10.0.0.2:6821"}, 0, "ctl-99999999999999999999", 0, "set [controller] node_id"},
    {"one name among addresses: names count", {"10.0.0.1:6821", "b:6821"}, 0, "b", 2, NULL},
    {"one name among addresses, and not this one's", {"10.0.0.1:6821", "b:6821"}, 0, "ctl-0", 0, "none is that name"},
    {"one address, alone", {"10.0.0.1:6821"}, 0, "head", 1, NULL},

    {"no port", {"a", "b"}, 0, "a", 0, "'a' is no host:port"},
    {"no host", {":6821", "b:6821"}, 0, "b", 0, "':6821' is no host:port"},
    {"the same twice", {"a:6821", "A:6821"}, 1, "a", 0, "'A:6821' is there twice"},
};

static void test_each_row(void **state) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        struct err e = {0};
        uint32_t id = 77;
        size_t n = 0;
        while (n < PEERS_MAX && r->peers[n])
            n++;
        int rc = whoami_find(r->peers, n, r->node_id, r->host, &id, &e);
        if (rc == 0 ? id != r->id : r->id != 0 || !strstr(e.text, r->said) || rc != E_CONFIG || id != 77)
            fail_msg("%s: code %d, id %u, \"%s\"", r->what, rc, id, rc ? e.text : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
