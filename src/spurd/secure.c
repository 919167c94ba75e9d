/* SPDX-License-Identifier: Apache-2.0 */
#include "spurd/secure.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/loop/loop.h"
#include "libspur/secure.h"
#include "spurd/api/api.h"

struct secure {
    const struct options *o;
    struct loop *loop;
    struct tls *tls;
};

static void look_at_end(void *arg) {
    struct secure *s = arg;
    secure_look(s->tls);
    loop_timer_start(s->loop, SECURE_LOOK_MS, look_at_end, s);
}

int secure_new(struct loop *l, const struct options *o, struct secure **out, struct err *e) {
    struct secure *s = xnew(struct secure);
    s->o = o;
    s->loop = l;
    int code = tls_new(&o->tls, &s->tls, e);
    if (code) {
        free(s);
        return err_wrap(e, "[tls]");
    }
    look_at_end(s);
    *out = s;
    return 0;
}

struct tls *secure_tls(const struct secure *s) {
    return s->tls;
}

void secure_reread(struct secure *s, struct api *api) {
    auto_arena a = {0};
    struct conf conf;
    struct err e = {0};
    enum log_level level;
    enum tls_mode before = tls_mode(s->tls);
    int code = options_reread(s->o, &a, &conf, &e);
    if (!code) {
        struct tls_conf next = secure_conf(&conf);
        code = tls_set(s->tls, &next, &e);
        if (code)
            err_wrap(&e, "[tls]");
    }
    if (code) {
        log_error("SIGHUP: %s; nothing was changed", e.text);
        return;
    }
    if (!s->o->has_own_level && conf.log_level && !log_level_parse(conf.log_level, &level))
        log_set_level(level);
    if (tls_mode(s->tls) == TLS_REQUIRE && before != TLS_REQUIRE)
        api_retire_plain(api);
    log_info("SIGHUP: [tls] and the level of the log were read again");
}

void secure_free(struct secure *s) {
    if (!s)
        return;
    tls_free(s->tls);
    free(s);
}
