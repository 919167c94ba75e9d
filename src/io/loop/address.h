/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses as people write them: "host:port", "[::1]:port", "unix:/path", with or without "http://".
 */
#ifndef SPUR_IO_LOOP_ADDRESS_H
#define SPUR_IO_LOOP_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/err.h"

enum { ADDRESS_MAX = 300 }; /* a host name of 253, brackets, a port */

struct address {
    char text[ADDRESS_MAX]; /* as it is printed: "host:port", "[::1]:port", "unix:/path" */
    char host[256];         /* without brackets; for unix: the path */
    uint16_t port;
    bool is_unix;
    bool is_numeric; /* `sa` is filled in; always for unix */
    struct sockaddr_storage sa;
    socklen_t n_sa;
};

/* One address of n bytes. `default_port` 0: one must be written. Port 0 only where `may_be_any`. E_SYNTAX. */
int address_parse(const char *text, size_t n, uint16_t default_port, bool may_be_any, struct address *out, struct err *e);
/* A list with commas. The caller frees *out. */
int address_parse_list(const char *text, uint16_t default_port, struct address **out, size_t *out_n, struct err *e);

/* The same as texts, each with its port, for conf files and flags. The caller frees *out (one block). */
int addresses_parse(const char *text, uint16_t default_port, char ***out, size_t *out_n, struct err *e);

/* "127.0.0.1:5123", "[::1]:5123", "unix"; IPv4 inside IPv6 is printed as IPv4. */
void address_print(const struct sockaddr *sa, char *out, size_t n);
void address_set_port(struct sockaddr_storage *sa, uint16_t port);
uint16_t address_port(const struct sockaddr_storage *sa);

#endif
