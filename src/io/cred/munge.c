/* SPDX-License-Identifier: Apache-2.0
 *
 * Munge credentials, checked: who holds the cluster's munge key (munged does, for everybody on its machine) says the uid
 * of who asked it. They are made by clients (libspur/munge.c). The library is loaded where it is first used and never linked: most machines have none.
 *
 * The few names below are its public interface (munge(3), munge_ctx(3)), declared here so that no header of it is needed
 * either.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/cred/cred.h"

#define LIBRARY "libmunge.so.2"
#define DEFAULT_SOCKET "/run/munge/munge.socket.2"

enum { OPT_SOCKET = 8, ERR_OK = 0, ERR_SOCKET = 6, ERR_REPLAYED = 17 }; /* of munge_opt_t and munge_err_t */

struct munge_ctx;
static struct {
    int (*decode)(const char *cred, struct munge_ctx *ctx, void **buf, int *len, uid_t *uid, gid_t *gid);
    const char *(*text)(int e);
    struct munge_ctx *(*ctx_new)(void);
    void (*ctx_free)(struct munge_ctx *ctx);
    int (*ctx_set)(struct munge_ctx *ctx, int opt, ...);
    bool is_there;
} lib;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
    void *h = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!h)
        return;
    struct {
        const char *name;
        void *at;
    } const names[] = {{"munge_decode", &lib.decode},
                       {"munge_strerror", &lib.text},
                       {"munge_ctx_create", &lib.ctx_new},
                       {"munge_ctx_destroy", &lib.ctx_free},
                       {"munge_ctx_set", &lib.ctx_set}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        void *f = dlsym(h, names[i].name);
        if (!f)
            return;
        memcpy(names[i].at, &f, sizeof(f));
    }
    lib.is_there = true;
}

static const char *socket_of(const char *socket) {
    const char *named = socket && *socket ? socket : getenv("MUNGE_SOCKET");
    return named && *named ? named : NULL;
}

bool cred_munge_is_there(const char *socket) {
    const char *named = socket_of(socket);
    return access(named ? named : DEFAULT_SOCKET, W_OK) == 0;
}

static int open_ctx(const char *socket, struct munge_ctx **out, struct err *e) {
    pthread_once(&once, load);
    if (!lib.is_there)
        return err_set(e, E_UNSUPPORTED, "munge's library (" LIBRARY ") is not on this machine");
    struct munge_ctx *ctx = lib.ctx_new();
    const char *named = socket_of(socket);
    if (!ctx || (named && lib.ctx_set(ctx, OPT_SOCKET, named) != ERR_OK)) {
        if (ctx)
            lib.ctx_free(ctx);
        return err_set(e, E_INTERNAL, "munge can't be asked");
    }
    *out = ctx;
    return 0;
}

/* Of an expired or repeated credential munge gives the payload too: it is freed whatever the answer is. */
int cred_munge_check(const char *socket, const char *credential, const void *payload, size_t n, uint32_t *out_uid,
                     uint32_t *out_gid, struct err *e) {
    struct munge_ctx *ctx = NULL;
    if (strnlen(credential, CRED_MUNGE_MAX + 1) > CRED_MUNGE_MAX)
        return err_set(e, E_BAD_PROOF, "the munge credential is longer than %d bytes", CRED_MUNGE_MAX);
    int r = open_ctx(socket, &ctx, e);
    if (r)
        return r;
    autofree void *got = NULL;
    int n_got = 0;
    uid_t uid;
    gid_t gid;
    int m = lib.decode(credential, ctx, &got, &n_got, &uid, &gid);
    lib.ctx_free(ctx);
    if (m == ERR_SOCKET)
        return err_set(e, E_UNSUPPORTED, "munged doesn't answer: %s", lib.text(m));
    if (m == ERR_REPLAYED)
        return err_set(e, E_BAD_PROOF, "the munge credential was used before: a replay");
    if (m != ERR_OK)
        return err_set(e, E_BAD_PROOF, "the munge credential is refused: %s", lib.text(m));
    if (n_got < 0 || (size_t)n_got != n || !cred_same(got, payload, n))
        return err_set(e, E_BAD_PROOF, "the munge credential was made for another request");
    *out_uid = uid;
    *out_gid = gid;
    return 0;
}
