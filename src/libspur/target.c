/* SPDX-License-Identifier: Apache-2.0
 *
 * spur.conf is read for a few keys only, and without the checks that the controller makes: a command must work with
 * the file of a newer or older controller. It isn't read where the environment names local sockets alone.
 */
#include "libspur/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "io/loop/address.h"
#include "io/toml/toml.h"

#define CONF_MAX (1u << 20)
#define STATE_DIR "/var/spool/spur" /* spurctld's own default */

const struct tree *target_child(const struct tree *table, const char *key) {
    for (size_t i = 0; table && table->kind == TREE_TABLE && i < table->n_children; i++)
        if (str_eq(table->child[i]->key, key))
            return table->child[i];
    return NULL;
}

static const char *text_of(const struct tree *t) {
    return t && t->kind == TREE_STRING && *t->string ? t->string : NULL;
}

static void add(struct str *list, const char *text) {
    if (list->n)
        str_addc(list, ',');
    str_add(list, text);
}

/* Every address with its port, no scheme. */
static int normalise(const char *list, uint32_t port, char **out, struct err *e) {
    autofree char **address = NULL;
    size_t n;
    int rc = addresses_parse(list, (uint16_t)port, &address, &n, e);
    if (rc)
        return rc;
    auto_str text = {0};
    for (size_t i = 0; i < n; i++)
        add(&text, address[i]);
    *out = str_take(&text);
    return 0;
}

static uint32_t port_of(const char *listen) {
    const char *colon = listen ? strrchr(listen, ':') : NULL;
    uint64_t port;
    return colon && str_to_u64(colon + 1, 65535, &port) == 0 && port ? (uint32_t)port : TARGET_DEFAULT_PORT;
}

/* The local socket as spurctld places it. */
static char *socket_of(const struct tree *controller) {
    const char *socket = text_of(target_child(controller, "socket"));
    if (socket)
        return xasprintf("%s", str_starts(socket, "unix:") ? socket + 5 : socket);
    const char *dir = text_of(target_child(controller, "state_dir"));
    return xasprintf("%s/spurctld.sock", dir ? dir : STATE_DIR);
}

/* The members among themselves use another port, so only their hosts count. Whether there were any. */
static bool add_peers(struct str *list, const struct tree *peers) {
    size_t n = list->n;
    for (size_t i = 0; peers && peers->kind == TREE_ARRAY && i < peers->n_children; i++) {
        const char *peer = text_of(peers->child[i]);
        const char *colon = peer ? strrchr(peer, ':') : NULL;
        if (!colon)
            continue;
        autofree char *host = xasprintf("%.*s", (int)(colon - peer), peer);
        add(list, host);
    }
    return list->n > n;
}

int target_from_tree(const struct tree *root, bool (*exists)(const char *path), char **out, struct err *e) {
    const struct tree *controller = target_child(root, "controller");
    const struct tree *hosts = target_child(controller, "hosts");
    autofree char *socket = socket_of(controller);
    uint32_t port = port_of(text_of(target_child(controller, "listen_addr")));
    auto_str list = {0};
    if (exists(socket)) {
        str_add(&list, "unix:");
        str_add(&list, socket);
    }
    if (text_of(hosts))
        add(&list, hosts->string);
    for (size_t i = 0; hosts && hosts->kind == TREE_ARRAY && i < hosts->n_children; i++) {
        if (!text_of(hosts->child[i]))
            return err_set(e, E_CONFIG, "line %u: controller.hosts takes host names", hosts->child[i]->line);
        add(&list, hosts->child[i]->string);
    }
    if (!text_of(hosts) && !(hosts && hosts->kind == TREE_ARRAY && hosts->n_children) && !add_peers(&list, target_child(controller, "peers")))
        add(&list, "localhost");
    return normalise(list.p, port, out, e);
}

static bool is_there(const char *path) {
    return access(path, F_OK) == 0;
}

static int read_text(int fd, const char *path, struct str *text, struct err *e) {
    char chunk[8192];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "%s", path);
        str_addn(text, chunk, (size_t)n);
        if (text->n > CONF_MAX)
            return err_set(e, E_CONFIG, "%s: larger than %u bytes", path, CONF_MAX);
    }
    return 0;
}

int target_read_conf(struct arena *a, struct tree **out, const char **out_path, struct err *e) {
    const char *given = getenv("SPUR_CONF");
    const char *path = given && *given ? given : TARGET_CONF_PATH;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    auto_str text = {0};
    struct err why = {0};
    *out = NULL;
    *out_path = path;
    if (fd < 0)
        return given && *given ? err_sys(e, "%s", path) : 0;
    int rc = read_text(fd, path, &text, e);
    if (rc)
        return rc;
    rc = toml_parse(str_text(&text), text.n, a, out, &why);
    return rc ? err_set(e, rc, "%s: %s", path, why.text) : 0;
}

static int from_file(char **out, struct err *e) {
    auto_arena a = {0};
    struct tree *root;
    const char *path;
    struct err why = {0};
    int rc = target_read_conf(&a, &root, &path, e);
    if (rc)
        return rc;
    rc = target_from_tree(root, is_there, out, &why);
    return rc ? err_set(e, rc, "%s: %s", path, why.text) : 0;
}

int target_find(const char *asked, char **out, struct err *e) {
    const char *named[] = {asked, getenv("SPUR_CONTROLLER_ADDR"), getenv("SPUR_CONTROLLER")};
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        if (named[i] && *named[i]) {
            struct err why = {0};
            int rc = normalise(named[i], TARGET_DEFAULT_PORT, out, &why);
            return rc ? err_set(e, rc, "controller address \"%s\": %s", named[i], why.text) : 0;
        }
    }
    return from_file(out, e);
}

bool target_has_tcp(const char *targets) {
    for (const char *at = targets; at; at = strchr(at, ',')) {
        at += *at == ',';
        at += strspn(at, " ");
        if (!str_starts(at, "unix:"))
            return true;
    }
    return false;
}
