/* SPDX-License-Identifier: Apache-2.0
 *
 * spur.conf is read for four keys only, and without the checks that the controller makes: a command must work with
 * the file of a newer or older controller. It isn't read at all where the environment names the controllers.
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
#include "io/rpc/rpc.h"
#include "io/toml/toml.h"

#define CONF_MAX (1u << 20)
#define STATE_DIR "/var/spool/spur" /* spurctld's own default */

static const struct tree *find(const struct tree *table, const char *key) {
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
    int rc = rpc_addresses_parse(list, (uint16_t)port, &address, &n, e);
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
    const char *socket = text_of(find(controller, "socket"));
    if (socket)
        return xasprintf("%s", str_starts(socket, "unix:") ? socket + 5 : socket);
    const char *dir = text_of(find(controller, "state_dir"));
    return xasprintf("%s/spurctld.sock", dir ? dir : STATE_DIR);
}

int target_from_tree(const struct tree *root, bool (*exists)(const char *path), char **out, struct err *e) {
    const struct tree *controller = find(root, "controller");
    const struct tree *hosts = find(controller, "hosts");
    autofree char *socket = socket_of(controller);
    uint32_t port = port_of(text_of(find(controller, "listen_addr")));
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
    if (!text_of(hosts) && !(hosts && hosts->kind == TREE_ARRAY && hosts->n_children))
        add(&list, "localhost");
    return normalise(list.p, port, out, e);
}

static bool is_there(const char *path) {
    return access(path, F_OK) == 0;
}

static int read_conf(int fd, const char *path, char **out, struct err *e) {
    auto_arena a = {0};
    auto_str text = {0};
    char chunk[8192];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "%s", path);
        str_addn(&text, chunk, (size_t)n);
        if (text.n > CONF_MAX)
            return err_set(e, E_CONFIG, "%s: larger than %u bytes", path, CONF_MAX);
    }
    struct tree *root = NULL;
    struct err why = {0};
    int rc = toml_parse(str_text(&text), text.n, &a, &root, &why);
    if (!rc)
        rc = target_from_tree(root, is_there, out, &why);
    return rc ? err_set(e, rc, "%s: %s", path, why.text) : 0;
}

static int from_file(char **out, struct err *e) {
    const char *given = getenv("SPUR_CONF");
    const char *path = given && *given ? given : TARGET_CONF_PATH;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return read_conf(fd, path, out, e);
    if (given && *given)
        return err_sys(e, "%s", path);
    return target_from_tree(NULL, is_there, out, e);
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
