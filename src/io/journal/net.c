/* SPDX-License-Identifier: Apache-2.0
 *
 * How members reach each other: libraft's TCP for now, nothing at all where a member is alone.
 *
 * The addresses in the log are those of the day on which the cluster was made; the configuration of today counts.
 */
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/journal/inside.h"

#define CONNECT_RETRY_MS 100

static struct instance *of_net(struct raft_uv_transport *t) {
    return (struct instance *)((char *)t - offsetof(struct instance, net));
}

static int none_init(struct raft_uv_transport *t, raft_id id, const char *address) {
    return 0;
}

static int none_listen(struct raft_uv_transport *t, raft_uv_accept_cb cb) {
    return 0;
}

static int none_connect(struct raft_uv_transport *t, struct raft_uv_connect *req, raft_id id, const char *address,
                        raft_uv_connect_cb cb) {
    return RAFT_NOCONNECTION;
}

static void none_close(struct raft_uv_transport *t, raft_uv_transport_close_cb cb) {
    cb(t);
}

static int tcp_connect(struct raft_uv_transport *t, struct raft_uv_connect *req, raft_id id, const char *address,
                       raft_uv_connect_cb cb) {
    struct instance *in = of_net(t);
    for (size_t i = 0; i < in->j->n_peers; i++)
        if (in->j->peers[i].id == id)
            address = in->j->peers[i].address;
    return in->net_connect(t, req, id, address, cb);
}

int net_init(struct instance *in, struct err *e) {
    in->net.version = 1;
    if (journal_alone(in->j)) {
        in->net.init = none_init;
        in->net.listen = none_listen;
        in->net.connect = none_connect;
        in->net.close = none_close;
        return 0;
    }
    must(raft_uv_tcp_init(&in->net, loop_uv(in->j->loop)) == 0);
    in->net_is_tcp = true;
    in->net_connect = in->net.connect;
    in->net.connect = tcp_connect;
    if (raft_uv_tcp_set_bind_address(&in->net, in->j->listen) == 0)
        return 0;
    net_fini(in);
    return err_set(e, E_CONFIG, "%s: is no host:port to listen on", in->j->listen);
}

void net_fini(struct instance *in) {
    if (in->net_is_tcp)
        raft_uv_tcp_close(&in->net);
    in->net_is_tcp = false;
}

/* libraft says only that listening failed, and frees what libuv still holds then. So it is tried before. */
int net_can_listen(struct journal *j, struct err *e) {
    if (journal_alone(j))
        return 0;
    const char *colon = strrchr(j->listen, ':');
    if (!colon)
        return err_set(e, E_CONFIG, "%s: is no host:port to listen on", j->listen);
    autofree char *host = xstrndup(j->listen, (size_t)(colon - j->listen));
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *ai;
    int rc = getaddrinfo(*host ? host : NULL, colon + 1, &hints, &ai);
    if (rc != 0)
        return err_set(e, E_CONFIG, "%s: can't be resolved: %s", j->listen, gai_strerror(rc));
    autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1, failed = 0;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, 1) < 0)
        failed = errno;
    freeaddrinfo(ai);
    errno = failed;
    return failed ? err_sys(e, "listen on %s", j->listen) : 0;
}
