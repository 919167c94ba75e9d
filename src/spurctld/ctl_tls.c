/* SPDX-License-Identifier: Apache-2.0
 *
 * [tls] of this controller: one `struct tls` for all its ports and for whom it connects to.
 */
#include "io/loop/loop.h"
#include "io/peer/peer.h"
#include "libspur/secure.h"
#include "spurctld/ctl_inside.h"

static void look_at_end(void *arg) {
    struct ctl *c = arg;
    secure_look(c->tls);
    c->tls_timer = loop_timer_start(c->loop, SECURE_LOOK_MS, look_at_end, c);
}

int ctl_tls_open(struct ctl *c, struct err *e) {
    struct tls_conf conf = secure_conf(&c->conf);
    int rc = tls_new(&conf, &c->tls, e);
    if (rc)
        return err_wrap(e, "[tls]");
    look_at_end(c);
    return 0;
}

int ctl_tls_set(struct ctl *c, const struct conf *next, struct err *e) {
    struct tls_conf conf = secure_conf(next);
    enum tls_mode before = tls_mode(c->tls);
    int rc = tls_set(c->tls, &conf, e);
    if (rc)
        return err_wrap(e, "[tls]");
    if (conf.mode == TLS_REQUIRE && before != TLS_REQUIRE) {
        api_retire_plain(c->api);
        if (c->peer)
            peer_retire_plain(c->peer);
    }
    return 0;
}
