/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/model/policy.h"
#include "io/cred/cred.h"
#include "io/toml/toml.h"

#define CONFIG_MOST_BYTES (1u << 20)

static int read_text(const char *path, struct buf *out, struct err *e) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open %s", path);
    for (;;) {
        ssize_t n = read(fd, buf_reserve(out, 65536), 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read %s", path);
        if (n == 0)
            return 0;
        out->n += (size_t)n;
        if (out->n > CONFIG_MOST_BYTES)
            return err_set(e, E_CONFIG, "%s is larger than %u bytes", path, CONFIG_MOST_BYTES);
    }
}

static void add_hash(struct arena *a, struct conf *c) {
    auto_str text = {0};
    uint8_t *hash = arena_alloc(a, 32);
    conf_rep_text(&c->rep, &text);
    cred_hash(str_text(&text), text.n, hash);
    c->rep.hash = hash;
    c->rep.n_hash = 32;
}

/* SPUR_COMPAT counts where the file doesn't say it. */
static void add_flavor(struct buf *text) {
    const char *word = getenv("SPUR_COMPAT");
    auto_str more = {0};
    buf_add(text, "", 1); /* a terminating zero, to search in it; overwritten below */
    text->n--;
    if (!word || !*word || strstr((const char *)text->p, "[compat]"))
        return;
    str_addf(&more, "\n[compat]\nflavor = \"%s\"\n", word);
    buf_add(text, str_text(&more), more.n);
}

int config_file_load(const char *path, struct arena *a, struct conf *out, struct str *problems, struct err *e) {
    auto_buf text = {0};
    struct tree *root;
    if (!path && access(CONFIG_DEFAULT_PATH, F_OK) == 0)
        path = CONFIG_DEFAULT_PATH;
    if (!path) {
        conf_defaults(a, out);
        add_hash(a, out);
        return 0;
    }
    int rc = read_text(path, &text, e);
    if (!rc)
        add_flavor(&text);
    if (!rc)
        rc = toml_parse((const char *)text.p, text.n, a, &root, e);
    if (rc) {
        str_addf(problems, "%s\n", e->text);
        return rc;
    }
    rc = conf_read(root, a, out, problems, e);
    if (!rc)
        add_hash(a, out);
    return rc;
}

/* AMD Spur's jwt_key may be the path of a file. */
static int read_key(const char *name, const char *text, const char *file, size_t least, struct secret *out, struct err *e) {
    if (!text && !file)
        return 0;
    bool is_path = text && text[0] == '/';
    int rc = cred_secret_from(is_path ? NULL : text, is_path ? text : file, least, out, e);
    if (!rc && out->n < CRED_SECRET_MIN)
        log_warn("[auth] %s has %zu bytes: a key of less than %d can be guessed, and with it anybody's name taken", name, out->n,
                 CRED_SECRET_MIN);
    return rc ? err_wrap(e, "[auth] %s", name) : 0;
}

int config_file_jwt(const struct conf *c, struct secret *out, struct secret *out_old, struct err *e) {
    size_t least = policy_of((enum flavor)c->rep.flavor)->short_keys ? 1 : CRED_SECRET_MIN;
    int rc = read_key("jwt_key", c->jwt_key, c->jwt_key_file, least, out, e);
    if (!rc)
        rc = read_key("jwt_key_old", c->jwt_key_old, c->jwt_key_old_file, least, out_old, e);
    if (!rc && out_old->n && !out->n)
        rc = err_set(e, E_CONFIG, "[auth] jwt_key_old: there is no jwt_key beside it");
    if (rc) {
        secret_fini(out);
        secret_fini(out_old);
    }
    return rc;
}
