/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tls/crypto.h"

#include <dlfcn.h>
#include <pthread.h>

#define LIBRARY "libssl.so.3" /* libcrypto comes with it, and its functions are found through it */

static struct crypto loaded;
static struct err why;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
    void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        err_set(&why, E_UNSUPPORTED, "TLS needs OpenSSL 3 (package libssl3): %s", dlerror());
        return;
    }
    struct {
        const char *name;
        void **to;
    } table[] = {
#define F(name) {#name, (void **)&loaded.f_##name},
        CRYPTO_FUNCTIONS(F)
#undef F
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        *table[i].to = dlsym(lib, table[i].name);
        if (!*table[i].to && !why.code)
            err_set(&why, E_UNSUPPORTED, "TLS needs OpenSSL 3: " LIBRARY " has no %s", table[i].name);
    }
}

int crypto_load(struct err *e) {
    pthread_once(&once, load);
    return why.code ? err_set(e, why.code, "%s", why.text) : 0;
}

const struct crypto *crypto(void) {
    return &loaded;
}
