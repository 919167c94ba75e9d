/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share. Everything but the doors is the peer thread's.
 */
#ifndef SPUR_IO_PEER_INSIDE_H
#define SPUR_IO_PEER_INSIDE_H

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/mem.h"
#include "base/vec.h"
#include "io/loop/loop.h"
#include "io/peer/shake.h"

/* Who takes connections. It outlives the peer by what is on its way. */
struct door {
    struct loop *loop;
    peer_accept_fn fn;
    void *arg;
    uint64_t generation;
};
struct doors {
    pthread_mutex_t lock;
    unsigned refs;
    struct door door[PEER_N_USES];
};
void doors_unref(struct doors *d);
bool doors_is_open(struct doors *d, enum peer_use use);
void doors_give(struct doors *d, enum peer_use use, int fd, uint32_t id, const char *address); /* takes fd */

enum dial_state { DIAL_WAITING, DIAL_TOLD, DIAL_CANCELLED };
struct peer_dial {
    struct peer_dial *next; /* of those that the peer works on */
    struct peer *p;
    enum peer_use use;
    uint32_t id;
    char *address, *host;
    struct loop *loop;
    peer_dialled_fn fn;
    void *arg;
    enum dial_state state; /* under p->lock */
    bool is_gone;          /* cancelled after it was told; loop's thread */
    int fd;
    struct err why;
    VEC(struct sockaddr_storage) found;
    size_t next_found;
    bool is_plain; /* the next connection: the member knows no TLS */
    struct lookup *lookup; /* that it waits for */
    struct link *link;
};
/* Ends it: fd (taken), or -1 and d->why. */
void dial_end(struct peer_dial *d, int fd);

enum link_stage { LINK_CONNECTING, LINK_SECURING, LINK_WAITS_ASK, LINK_WAITS_REPLY, LINK_WAITS_PROOFS, LINK_WAITS_VERDICT };
struct link { /* a connection in its hand-shake */
    struct link *next, *prev; /* of those that others made; youngest first */
    struct peer *p;
    struct peer_dial *dial; /* NULL: another one made it */
    uv_tcp_t *tcp; /* the socket; with TLS one end of a local pair */
    struct tls_wrap *wrap; /* SECURING */
    uv_connect_t connect;
    struct loop_timer *limit;
    enum link_stage stage;
    bool is_closing;
    struct shake shake;
    struct shake_keys keys; /* as they were when it began */
    uint8_t in[SHAKE_BYTES_MAX];
    size_t n, want;
    char address[80];
};

struct handed {
    int fd; /* its owner's: this process's socket of that number, as long as it has this inode */
    ino_t inode;
};

struct peer {
    struct peer_conf conf;
    char *cluster;
    struct loop *loop;
    struct names *names;
    struct lookup *lookups; /* that run */
    pthread_t thread;
    int listen_fd;
    uint16_t port;
    uv_tcp_t listener;
    bool listens, is_stopping;
    struct doors *doors;
    struct link *links; /* that others made */
    size_t n_links;
    size_t busy; /* dials and links that are not gone yet */
    struct peer_dial *dials;
    VEC(struct handed) plain; /* connections that left without TLS, if they live yet */
    int64_t noticed_ms[2]; /* accepting, dialling */

    pthread_mutex_t lock; /* guards these, and the states of dials */
    struct shake_keys keys;
    struct peer_stats stats;
};

void peer_notice(struct peer *p, int kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void peer_settle(struct peer *p); /* something ended: perhaps the last, while stopping */

/* link.c */
void link_accept(struct peer *p);                                       /* the listener has one */
void link_connect(struct peer_dial *d, const struct sockaddr_storage *to);
void link_note_plain(struct peer *p, int fd);
void links_close(struct peer *p);
void link_close(struct link *k);
/* dial.c */
void dial_begin(void *dial);
void dial_next(struct peer_dial *d); /* the next address, or its end with d->why */
void dial_found(struct peer_dial *d, int code, const struct addrinfo *list); /* code: of getaddrinfo */
/* names.c */
struct names *names_new(struct peer *p);
void names_look_up(struct peer_dial *d, const char *host, const char *port); /* dial_found comes */
void names_stop(struct peer *p);                                             /* nobody is called any more */
void names_free(struct peer *p);                                             /* after its loop */

#endif
