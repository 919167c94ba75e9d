/* SPDX-License-Identifier: Apache-2.0
 *
 * The library is loaded at the first use and never linked: commands start without it, and most machines have none. The
 * names below are its public interface (munge(3)).
 */
#include "libspur/munge.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "wire/proof.h"

#define LIBRARY "libmunge.so.2"
#define DEFAULT_SOCKET "/run/munge/munge.socket.2"

enum { OPT_SOCKET = 8 }; /* of munge_opt_t */

struct munge_ctx;
struct munge {
    int (*encode)(char **credential, struct munge_ctx *ctx, const void *payload, int n);
    struct munge_ctx *(*ctx_new)(void);
    void (*ctx_free)(struct munge_ctx *ctx);
    int (*ctx_set)(struct munge_ctx *ctx, int option, ...);
};

static bool find(void *library, const char *name, void *out_function) {
    void *f = dlsym(library, name);
    memcpy(out_function, &f, sizeof(f));
    return f != NULL;
}

static bool load(struct munge *m) {
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* again: the same one */
    return library && find(library, "munge_encode", &m->encode) && find(library, "munge_ctx_create", &m->ctx_new) &&
           find(library, "munge_ctx_destroy", &m->ctx_free) && find(library, "munge_ctx_set", &m->ctx_set);
}

static char *make(const char *socket, const char *payload) {
    struct munge m;
    char *credential = NULL;
    if (!load(&m))
        return NULL;
    struct munge_ctx *ctx = m.ctx_new();
    if (!ctx)
        return NULL;
    if ((socket && m.ctx_set(ctx, OPT_SOCKET, socket)) || m.encode(&credential, ctx, payload, (int)strlen(payload))) {
        free(credential);
        credential = NULL;
    }
    m.ctx_free(ctx);
    return credential;
}

void munge_add(const char *path, struct str *metadata) {
    const char *named = getenv("MUNGE_SOCKET");
    const char *socket = named && *named ? named : NULL;
    if (access(socket ? socket : DEFAULT_SOCKET, W_OK))
        return;
    autofree char *payload = xasprintf(PROOF_MUNGE_PAYLOAD, path);
    autofree char *credential = make(socket, payload);
    if (credential)
        str_addf(metadata, PROOF_MUNGE_HEADER ": %s\n", credential);
}
