/* SPDX-License-Identifier: Apache-2.0
 *
 * spur.conf, from one table (config.def): for each key its place, type, default, bounds, whether it is local or
 * replicated, live or needs a restart, and its documentation. Parser, defaults, checks, `scontrol show config`, the
 * sample file and docs/configuration.md all come from that table.
 *
 * Pure: text is read and parsed to a tree by others (io/toml).
 */
#ifndef SPUR_CORE_MODEL_CONFIG_H
#define SPUR_CORE_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/tree.h"
#include "core/model/cluster.h"

enum auth_mode { AUTH_PERMISSIVE = 0, AUTH_REQUIRED = 1, AUTH_DISABLED = 2 };

/* Everything in the arena of the caller. `rep` is what all members share, by command config_set; the rest is this
 * member's own. */
struct conf {
    struct rconf rep;
    /* [controller], local */
    const char *listen_addr; /* "[::]:6817" */
    const char *rest_addr;
    const char *raft_listen_addr;
    const char *const *hosts; /* for commands: where controllers are */
    uint32_t n_hosts;
    const char *const *peers;
    uint32_t n_peers;
    uint32_t node_id; /* 0: from peers */
    uint32_t snapshot_entries;
    const char *state_dir; /* "/var/spool/spur"; --state-dir goes before it */
    const char *socket; /* the local socket; NULL: STATE_DIR/spurctld.sock */
    /* [auth] */
    enum auth_mode auth_mode;   /* in force: plugin = "none" makes it AUTH_DISABLED, "munge" AUTH_REQUIRED */
    uint32_t auth_mode_asked;   /* enum auth_mode, as the file has it */
    const char *auth_plugin;
    const char *jwt_key, *jwt_key_file; /* jwt_key: the key, or a file's path; at most one of the two is set */
    const char *jwt_key_old, *jwt_key_old_file; /* the same of the key of before */
    const char *munge_socket; /* NULL: the library's own */
    /* [tls] */
    uint32_t tls_mode;   /* 0 off, 1 accept, 2 require */
    uint32_t tls_verify; /* 0 full, 1 ca */
    const char *tls_cert, *tls_key, *tls_ca;
    /* [logging] */
    const char *log_level, *log_format, *log_file; /* log_file NULL: standard error */
    uint32_t agent_port;
};

/* Reads a tree into *out, starting from the defaults. Unknown keys, wrong types and impossible values are told with
 * line, key and what is allowed: all of them, one a line, in `problems`; the return is E_CONFIG when there is any
 * (text of `e`: the first). A key that is known but not supported yet is a problem too, by name. */
int conf_read(const struct tree *root, struct arena *a, struct conf *out, struct str *problems, struct err *e);
/* With no file: a cluster "spur" with one partition "default" of all nodes. */
void conf_defaults(struct arena *a, struct conf *out);

/* One of [controller] peers without its scheme: "host:port"; borrowed of it. */
static inline const char *conf_peer_address(const char *peer) {
    return strncasecmp(peer, "http://", 7) == 0 ? peer + 7 : peer;
}

/* The canonical text of the replicated part: equal settings give equal texts, whatever the file's layout. Its hash
 * (made by the caller) decides whether a member offers its file. */
void conf_rep_text(const struct rconf *r, struct str *out);

/* The keys of the local part whose values differ and count from the next start on, as "[controller] socket". The texts
 * are in the arena. */
uint32_t conf_restart_keys(struct arena *a, const struct conf *before, const struct conf *after, const char *const **out);

/* `Key = value` rows as scontrol show config prints, of what is in force. */
void conf_show(const struct conf *c, const struct rconf *in_force, struct str *out);
/* A commented sample file, and the Markdown table of all keys. */
void conf_sample(struct str *out);
void conf_docs(struct str *out);

#endif
