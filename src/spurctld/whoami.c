/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/whoami.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/model/config.h"

#define HOST_MAX 256

/* "http://host.:6821" → "host". False: no host:port. */
static bool host_of(const char *peer, char out[HOST_MAX]) {
    peer = conf_peer_address(peer);
    const char *colon = strrchr(peer, ':');
    size_t n = colon ? (size_t)(colon - peer) : 0;
    if (n >= 2 && peer[0] == '[' && peer[n - 1] == ']') {
        peer++;
        n -= 2;
    }
    while (n > 1 && peer[n - 1] == '.')
        n--;
    if (n == 0 || n >= HOST_MAX)
        return false;
    memcpy(out, peer, n);
    out[n] = 0;
    return true;
}

static bool is_address(const char *host) {
    uint8_t b[16];
    return inet_pton(AF_INET, host, b) == 1 || inet_pton(AF_INET6, host, b) == 1;
}

/* "localhost" is everybody's name, and tells nobody apart. */
static bool is_name(const char *host) {
    return !is_address(host) && strcasecmp(host, "localhost") != 0;
}

/* The short name of either counts, the domains only where both have one. */
static bool is_same_host(const char *a, const char *b) {
    const char *dot_a = strchr(a, '.'), *dot_b = strchr(b, '.');
    if (!dot_a || !dot_b) {
        size_t n_a = dot_a ? (size_t)(dot_a - a) : strlen(a), n_b = dot_b ? (size_t)(dot_b - b) : strlen(b);
        return n_a == n_b && strncasecmp(a, b, n_a) == 0;
    }
    return strcasecmp(a, b) == 0;
}

static int by_ordinal(const char *host, size_t n, uint32_t *out_id, struct err *e) {
    const char *dot = strchr(host, '.');
    size_t end = dot ? (size_t)(dot - host) : strlen(host), from = end;
    while (from > 0 && isdigit((unsigned char)host[from - 1]))
        from--;
    unsigned long ordinal = 0;
    if (from < end && end - from < 9)
        ordinal = strtoul(host + from, NULL, 10) + 1;
    if (ordinal >= 1 && ordinal <= n) {
        *out_id = (uint32_t)ordinal;
        return 0;
    }
    return err_set(e, E_CONFIG, "[controller] peers holds no names that this host's name could be compared with, and '%s' does not end in "
                   "a number from 0 to %zu: set [controller] node_id", host, n - 1);
}

static int none_or_several(const char *const *peers, size_t n, size_t n_same, const char *host, struct err *e) {
    auto_str names = {0};
    for (size_t i = 0; i < n; i++) {
        char peer[HOST_MAX] = "?";
        host_of(peers[i], peer);
        str_addf(&names, "%s%s", i ? ", " : "", peer);
    }
    return err_set(e, E_CONFIG, "which of the controllers is this one? This host is '%s'; of [controller] peers (%s) %s: set "
                   "[controller] node_id", host, str_text(&names), n_same ? "several are that name" : "none is that name");
}

static int check_peers(const char *const *peers, size_t n, struct err *e) {
    char host[HOST_MAX];
    for (size_t i = 0; i < n; i++) {
        if (!host_of(peers[i], host))
            return err_set(e, E_CONFIG, "[controller] peers: '%s' is no host:port", peers[i]);
        for (size_t k = 0; k < i; k++)
            if (strcasecmp(peers[i], peers[k]) == 0)
                return err_set(e, E_CONFIG, "[controller] peers: '%s' is there twice", peers[i]);
    }
    return 0;
}

int whoami_find(const char *const *peers, size_t n, uint32_t node_id, const char *host, uint32_t *out_id, struct err *e) {
    char peer[HOST_MAX], self[HOST_MAX];
    if (n == 0) {
        if (node_id > 1)
            return err_set(e, E_CONFIG, "[controller] node_id = %u, but there are no peers", node_id);
        *out_id = 1;
        return 0;
    }
    int rc = check_peers(peers, n, e);
    if (rc)
        return rc;
    if (node_id > n)
        return err_set(e, E_CONFIG, "[controller] node_id = %u, but peers names %zu", node_id, n);
    if (node_id) {
        *out_id = node_id;
        return 0;
    }
    snprintf(self, sizeof(self), "%s", host);
    size_t n_self = strlen(self);
    while (n_self > 1 && self[n_self - 1] == '.')
        self[--n_self] = 0;
    size_t n_names = 0, n_same = 0;
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++) {
        host_of(peers[i], peer);
        if (!is_name(peer))
            continue;
        n_names++;
        if (is_same_host(peer, self)) {
            n_same++;
            found = (uint32_t)i + 1;
        }
    }
    if (n_names == 0 && n > 1)
        return by_ordinal(self, n, out_id, e);
    if (n_names == 0 && n == 1)
        found = 1, n_same = 1; /* alone, under whatever name */
    if (n_same != 1)
        return none_or_several(peers, n, n_same, self, e);
    *out_id = found;
    return 0;
}
