/* SPDX-License-Identifier: Apache-2.0 */
#include "io/loop/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

static int unix_parse(const char *path, size_t n, struct address *out, struct err *e) {
    struct sockaddr_un *un = (struct sockaddr_un *)&out->sa;
    while (n > 1 && path[0] == '/' && path[1] == '/') { /* unix:///path */
        path++;
        n--;
    }
    if (n == 0 || path[0] != '/')
        return err_set(e, E_SYNTAX, "unix:%.*s: the path must be absolute", (int)MIN(n, 200u), path);
    if (n >= sizeof(un->sun_path))
        return err_set(e, E_SYNTAX, "unix:%.*s: the path is longer than %zu bytes", (int)MIN(n, 200u), path,
                       sizeof(un->sun_path) - 1);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, n);
    memcpy(out->host, path, n);
    out->n_sa = sizeof(*un);
    out->is_unix = out->is_numeric = true;
    snprintf(out->text, sizeof(out->text), "unix:%s", out->host);
    return 0;
}

/* Splits at the port. An IPv6 address has its own colons: it is in brackets, or has no port. */
static int split(const char *text, const char **out_host, size_t *out_n_host, const char **out_port) {
    const char *colon = strrchr(text, ':');
    *out_port = NULL;
    if (text[0] == '[') {
        const char *close = strchr(text, ']');
        if (!close || (close[1] && close[1] != ':'))
            return E_SYNTAX;
        *out_host = text + 1;
        *out_n_host = (size_t)(close - text - 1);
        if (close[1])
            *out_port = close + 2;
        return 0;
    }
    *out_host = text;
    *out_n_host = strlen(text);
    if (colon && strchr(text, ':') == colon) {
        *out_n_host = (size_t)(colon - text);
        *out_port = colon + 1;
    }
    return 0;
}

static bool is_host_name(const char *s) {
    return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(s);
}

static int host_set(struct address *a, bool in_brackets) {
    struct sockaddr_in *in = (struct sockaddr_in *)&a->sa;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a->sa;
    if (!in_brackets && inet_pton(AF_INET, a->host, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        a->n_sa = sizeof(*in);
    } else if (inet_pton(AF_INET6, a->host, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        a->n_sa = sizeof(*in6);
    } else {
        return !in_brackets && is_host_name(a->host) ? 0 : E_SYNTAX;
    }
    a->is_numeric = true;
    address_set_port(&a->sa, a->port);
    return 0;
}

static int tcp_parse(const char *text, uint16_t default_port, bool may_be_any, struct address *out, struct err *e) {
    const char *host, *port;
    size_t n_host;
    if (split(text, &host, &n_host, &port) || n_host == 0 || n_host >= sizeof(out->host))
        return err_set(e, E_SYNTAX, "'%.200s' is not an address: expected host:port", text);
    memcpy(out->host, host, n_host);
    uint64_t number = default_port;
    if (port && (str_to_u64(port, UINT16_MAX, &number) || (number == 0 && !may_be_any)))
        return err_set(e, E_SYNTAX, "'%.200s': the port is not a number from 1 to 65535", text);
    if (!port && !default_port)
        return err_set(e, E_SYNTAX, "'%.200s' has no port", text);
    out->port = (uint16_t)number;
    if (host_set(out, text[0] == '[') || strcmp(out->host, "unix") == 0) /* "unix:6817" would be a socket's path */
        return err_set(e, E_SYNTAX, "'%.200s' is neither a host name nor an IP address", out->host);
    bool is_v6 = out->is_numeric && out->sa.ss_family == AF_INET6;
    snprintf(out->text, sizeof(out->text), is_v6 ? "[%s]:%u" : "%s:%u", out->host, out->port);
    return 0;
}

int address_parse(const char *text, size_t n, uint16_t default_port, bool may_be_any, struct address *out,
                  struct err *e) {
    while (n && strchr(" \t\n", text[0])) {
        text++;
        n--;
    }
    while (n && strchr(" \t\n", text[n - 1]))
        n--;
    struct address a = {0};
    autofree char *copy = xstrndup(text, n);
    const char *p = copy;
    int rc;
    if (str_starts(p, "unix:")) {
        rc = unix_parse(p + 5, strlen(p + 5), &a, e);
    } else {
        if (str_starts(p, "https://"))
            return err_set(e, E_SYNTAX, "'%.200s': TLS is chosen by [tls] mode in spur.conf; write http://, or nothing", p);
        if (str_starts(p, "http://")) {
            p += 7;
            if (str_ends(p, "/"))
                copy[strlen(copy) - 1] = 0;
        }
        rc = tcp_parse(p, default_port, may_be_any, &a, e);
    }
    if (rc == 0)
        *out = a;
    return rc;
}

int address_parse_list(const char *text, uint16_t default_port, struct address **out, size_t *out_n, struct err *e) {
    VEC(struct address) v = {0};
    for (const char *p = text; p;) {
        size_t n = strcspn(p, ",");
        struct address a;
        int rc = address_parse(p, n, default_port, false, &a, e);
        if (rc) {
            vec_fini(&v);
            return rc;
        }
        vec_push(&v, a);
        p = p[n] ? p + n + 1 : NULL;
    }
    *out = v.p;
    *out_n = v.n;
    return 0;
}

int addresses_parse(const char *text, uint16_t default_port, char ***out, size_t *out_n, struct err *e) {
    autofree struct address *list = NULL;
    size_t n, bytes = 0;
    int rc = address_parse_list(text, default_port, &list, &n, e);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(list[i].text) + 1;
    char **block = xmalloc(n * sizeof(*block) + bytes);
    char *at = (char *)(block + n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(list[i].text) + 1;
        block[i] = memcpy(at, list[i].text, len);
        at += len;
    }
    *out = block;
    *out_n = n;
    return 0;
}

void address_print(const struct sockaddr *sa, char *out, size_t n) {
    char host[INET6_ADDRSTRLEN] = "";
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
        snprintf(out, n, "%s:%u", host, ntohs(in->sin_port));
        return;
    }
    if (sa->sa_family != AF_INET6) {
        snprintf(out, n, "unix");
        return;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
    bool is_v4 = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
    if (is_v4)
        inet_ntop(AF_INET, in6->sin6_addr.s6_addr + 12, host, sizeof(host));
    else
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
    snprintf(out, n, is_v4 ? "%s:%u" : "[%s]:%u", host, ntohs(in6->sin6_port));
}

void address_set_port(struct sockaddr_storage *sa, uint16_t port) {
    if (sa->ss_family == AF_INET)
        ((struct sockaddr_in *)sa)->sin_port = htons(port);
    else if (sa->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)sa)->sin6_port = htons(port);
}

uint16_t address_port(const struct sockaddr_storage *sa) {
    if (sa->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)sa)->sin_port);
    return sa->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)sa)->sin6_port) : 0;
}
