/* SPDX-License-Identifier: Apache-2.0
 *
 * Names are looked up here and now: what the controller gives out are addresses, but for a node that was given a name.
 */
#include "libspur/link_dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/stream.h"

static void probe(int fd, int idle_secs, int every_secs, int times) {
    const unsigned unsent_ms = (unsigned)(idle_secs + every_secs * times) * 1000;
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_secs, sizeof(idle_secs));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_secs, sizeof(every_secs));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent_ms, sizeof(unsent_ms));
}

/* A machine that went away without a word is noticed. */
static void keep_alive(int fd) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    probe(fd, 20, 5, 4);
}

void link_hurry(int fd) {
    probe(fd, 2, 1, 4);
}

int link_dial(const struct node_place *place, int *out_fd, struct err *e) {
    if (!place || !place->address)
        return err_set(e, E_UNREACHABLE, "no address is known");
    char port[8];
    snprintf(port, sizeof(port), "%u", place->port & 0xffff);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(place->address, port, &hints, &found);
    if (rc)
        return err_set(e, E_UNREACHABLE, "%s: %s", place->address, gai_strerror(rc));
    int error = 0;
    for (struct addrinfo *a = found; a; a = a->ai_next) {
        autoclose int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) {
            error = errno;
            continue;
        }
        keep_alive(fd);
        if (connect(fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS) {
            error = errno;
            continue;
        }
        *out_fd = take_fd(&fd);
        break;
    }
    freeaddrinfo(found);
    return *out_fd >= 0 ? 0 : err_set(e, E_UNREACHABLE, "%s: %s", place->address, strerror(error));
}

uint32_t link_local_port(int fd) {
    struct sockaddr_storage ours;
    socklen_t n = sizeof(ours);
    if (getsockname(fd, (struct sockaddr *)&ours, &n))
        return 0;
    return ours.ss_family == AF_INET    ? ntohs(((const struct sockaddr_in *)&ours)->sin_port)
           : ours.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&ours)->sin6_port)
                                        : 0;
}

/* A datagram socket that is connected has a local address; nothing is sent. */
const char *spur_local_address(const struct node_place *place, struct arena *a) {
    char port[8], text[NI_MAXHOST];
    const char *out = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (!place || !place->address)
        return NULL;
    snprintf(port, sizeof(port), "%u", place->port & 0xffff);
    if (getaddrinfo(place->address, port, &hints, &found))
        return NULL;
    autoclose int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage ours;
    socklen_t n = sizeof(ours);
    if (fd >= 0 && !connect(fd, found->ai_addr, found->ai_addrlen) && !getsockname(fd, (struct sockaddr *)&ours, &n) &&
        !getnameinfo((struct sockaddr *)&ours, n, text, sizeof(text), NULL, 0, NI_NUMERICHOST))
        out = arena_strdup(a, text);
    freeaddrinfo(found);
    return out;
}
