/* SPDX-License-Identifier: Apache-2.0
 *
 * How members reach each other: libraft's transport over io/peer, nothing at all where a member is alone.
 *
 * The addresses in the log are those of the day on which a member was added; the configuration of today goes before.
 * The names in them are looked up at each connect.
 */
#include <string.h>
#include <unistd.h>

#include "io/journal/inside.h"

struct reaching {
    struct reaching *next;
    struct instance *in;
    struct raft_uv_connect *req;
    raft_uv_connect_cb cb;
    struct peer_dial *dial;
};

static struct instance *of_net(struct raft_uv_transport *t) {
    return (struct instance *)((char *)t - offsetof(struct instance, net));
}

static int net_start(struct raft_uv_transport *t, raft_id id, const char *address) {
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

/* libraft frees it with raft_free. */
static struct uv_stream_s *stream_of(struct journal *j, int fd) {
    struct uv_tcp_s *tcp = raft_calloc(1, sizeof(*tcp));
    must(uv_tcp_init(loop_uv(j->loop), tcp) == 0);
    if (uv_tcp_open(tcp, fd) == 0)
        return (struct uv_stream_s *)tcp;
    close(fd);
    uv_close((struct uv_handle_s *)tcp, (uv_close_cb)raft_free);
    return NULL;
}

static void on_accepted(void *arg, int fd, uint32_t id, const char *address) {
    struct instance *in = arg;
    struct uv_stream_s *stream = stream_of(in->j, fd);
    if (stream)
        in->net_accept(&in->net, id, address, stream);
}

static int net_listen(struct raft_uv_transport *t, raft_uv_accept_cb cb) {
    struct instance *in = of_net(t);
    in->net_accept = cb;
    peer_on_accept(in->j->net, PEER_RAFT, in->j->loop, on_accepted, in);
    return 0;
}

static void leave(struct reaching *r) {
    struct reaching **at = &r->in->reaching;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
}

static void on_dialled(void *arg, int fd, const struct err *why) {
    struct reaching *r = arg;
    struct uv_stream_s *stream = fd >= 0 ? stream_of(r->in->j, fd) : NULL;
    leave(r);
    r->cb(r->req, stream, stream ? 0 : RAFT_NOCONNECTION);
    free(r);
}

static int net_connect(struct raft_uv_transport *t, struct raft_uv_connect *req, raft_id id, const char *address,
                       raft_uv_connect_cb cb) {
    struct instance *in = of_net(t);
    struct journal *j = in->j;
    for (size_t i = 0; i < j->n_peers; i++)
        if (j->peers[i].id == id)
            address = j->peers[i].address;
    struct reaching *r = xnew(struct reaching);
    *r = (struct reaching){.next = in->reaching, .in = in, .req = req, .cb = cb};
    in->reaching = r;
    r->dial = peer_dial(j->net, PEER_RAFT, (uint32_t)id, address, j->loop, on_dialled, r);
    return 0;
}

static void net_close(struct raft_uv_transport *t, raft_uv_transport_close_cb cb) {
    struct instance *in = of_net(t);
    peer_on_accept(in->j->net, PEER_RAFT, in->j->loop, NULL, NULL);
    while (in->reaching) {
        struct reaching *r = in->reaching;
        in->reaching = r->next;
        peer_dial_cancel(r->dial);
        r->cb(r->req, NULL, RAFT_CANCELED);
        free(r);
    }
    cb(t);
}

void net_init(struct instance *in) {
    bool alone = journal_alone(in->j);
    in->net = (struct raft_uv_transport){
        .version = 1,
        .init = net_start,
        .listen = alone ? none_listen : net_listen,
        .connect = alone ? none_connect : net_connect,
        .close = alone ? none_close : net_close,
    };
}
