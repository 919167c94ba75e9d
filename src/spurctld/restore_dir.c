/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/restore_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/blob/blob.h"
#include "io/loop/loop.h"
#include "spurctld/config_file.h"
#include "spurctld/restore.h"
#include "spurctld/whoami.h"
#include "wire/backup.h"

#define MARK "restoring"
#define BLOBS_AT_ONCE (8u << 20)

static const char *const parts[] = {"snapshots", "history", "blobs", "journal"};

/* ---- whose, and where ---- */

int restore_place_find(const struct ctl_options *o, struct restore_place *out, struct err *e) {
    struct conf conf;
    auto_str problems = {0};
    char host[256] = "";
    *out = (struct restore_place){0};
    int rc = config_file_load(o->config_path, &out->arena, &conf, &problems, e);
    if (rc)
        return problems.n ? err_set(e, rc, "the configuration: %s", problems.p) : rc;
    gethostname(host, sizeof(host) - 1);
    rc = whoami_find(conf.peers, conf.n_peers, conf.node_id, host, &out->id, e);
    const char *dir = o->state_dir ? o->state_dir : conf.state_dir ? conf.state_dir : CTL_STATE_DIR;
    out->dir = xstrdup(dir);
    if (!rc && conf.n_peers > 1)
        out->address = conf_peer_address(conf.peers[out->id - 1]);
    return rc;
}

void restore_place_fini(struct restore_place *p) {
    free(p->dir);
    arena_fini(&p->arena);
}

/* ---- the directory ---- */

static bool has_mark(const char *dir) {
    autofree char *mark = xasprintf("%s/" MARK, dir);
    return access(mark, F_OK) == 0;
}

int restore_is_whole(const char *dir, struct err *e) {
    return has_mark(dir) ? err_set(e, E_CORRUPT, "%s: a restore into it did not end; run it again", dir) : 0;
}

int restore_dir_check(const char *dir, struct err *e) {
    DIR *d = opendir(dir);
    struct dirent *en;
    int rc = 0;
    if (!d)
        return errno == ENOENT ? 0 : err_sys(e, "%s", dir);
    while (!rc && !has_mark(dir) && (en = readdir(d)))
        if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0 && strcmp(en->d_name, "lost+found") != 0)
            rc = err_set(e, E_EXISTS, "%s is not empty (%s): move what is in it elsewhere first", dir, en->d_name);
    closedir(d);
    return rc;
}

static int make_dir(const char *path, mode_t mode, struct err *e) {
    return mkdir(path, mode) < 0 && errno != EEXIST ? err_sys(e, "make %s", path) : 0;
}

static int clear(const char *dir, struct err *e) {
    DIR *d = opendir(dir);
    struct dirent *en;
    int rc = 0;
    while (d && !rc && (en = readdir(d)))
        if (strcmp(en->d_name, ".") != 0 && strcmp(en->d_name, "..") != 0 && unlinkat(dirfd(d), en->d_name, 0) < 0)
            rc = err_sys(e, "remove %s/%s", dir, en->d_name);
    if (d)
        closedir(d);
    return rc;
}

int restore_dir_begin(const char *dir, struct err *e) {
    autofree char *mark = xasprintf("%s/" MARK, dir);
    int rc = make_dir(dir, 0755, e);
    autoclose int fd = rc ? -1 : open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (rc || fd < 0 || fsync(fd) < 0)
        return rc ? rc : err_sys(e, "make %s", mark);
    rc = dir_sync(dir, e);
    for (size_t i = 0; !rc && i < ARRAY_LEN(parts); i++) {
        autofree char *path = xasprintf("%s/%s", dir, parts[i]);
        rc = make_dir(path, 0700, e);
        if (!rc)
            rc = clear(path, e);
    }
    return rc;
}

int restore_dir_end(const char *dir, struct err *e) {
    autofree char *mark = xasprintf("%s/" MARK, dir);
    int rc = 0;
    for (size_t i = 0; !rc && i < ARRAY_LEN(parts); i++) {
        autofree char *path = xasprintf("%s/%s", dir, parts[i]);
        rc = dir_sync(path, e);
    }
    if (!rc)
        rc = dir_sync(dir, e);
    if (!rc && unlink(mark) < 0)
        rc = err_sys(e, "remove %s", mark);
    return rc ? rc : dir_sync(dir, e);
}

/* ---- a file ---- */

int restore_file_open(struct restore_file *f, const char *path, struct err *e) {
    *f = (struct restore_file){open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), xstrdup(path)};
    return f->fd < 0 ? err_sys(e, "make %s", path) : 0;
}

int restore_file_add(struct restore_file *f, const void *p, size_t n, struct err *e) {
    return fd_write(f->fd, p, n) < 0 ? err_sys(e, "write %s", f->path) : 0;
}

int restore_file_close(struct restore_file *f, int rc, struct err *e) {
    if (!rc && fsync(f->fd) < 0)
        rc = err_sys(e, "sync %s", f->path);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    return rc;
}

/* ---- bulk, through the store itself ---- */

struct restore_blobs {
    struct loop *loop;
    struct blob_store *store;
    struct blob_hash hash; /* of the one that comes */
    struct buf bytes;
    uint64_t n_waiting, bytes_waiting;
    int code;
    struct err why;
};

struct put {
    struct restore_blobs *b;
    struct blob_hash hash;
    size_t n;
};

int restore_blobs_open(const char *dir, struct restore_blobs **out, struct err *e) {
    struct restore_blobs *b = xnew(struct restore_blobs);
    b->loop = loop_new("restore");
    int rc = blob_open(b->loop, dir, &b->store, e);
    *out = b;
    return rc;
}

static void on_put(void *arg, int code, const struct err *why, const struct blob_hash *hash) {
    struct put *p = arg;
    struct restore_blobs *b = p->b;
    if (!code && memcmp(hash, &p->hash, sizeof(*hash)) != 0)
        code = err_set(&b->why, E_CORRUPT, "a script in the backup is not the one that its name says");
    else if (code && why)
        b->why = *why;
    b->code = b->code ? b->code : code;
    b->n_waiting--;
    b->bytes_waiting -= p->n;
    free(p);
}

static bool is_calm(void *arg) {
    const struct restore_blobs *b = arg;
    return b->code || b->bytes_waiting < BLOBS_AT_ONCE;
}

static bool is_done(void *arg) {
    return ((const struct restore_blobs *)arg)->n_waiting == 0;
}

static int store(struct restore_blobs *b, struct err *e) {
    struct put *p = xnew(struct put);
    *p = (struct put){b, b->hash, b->bytes.n};
    b->n_waiting++;
    b->bytes_waiting += p->n;
    blob_put(b->store, buf_take(&b->bytes), on_put, p);
    loop_run_until(b->loop, is_calm, b, UINT32_MAX);
    if (b->code)
        *e = b->why;
    return b->code;
}

int restore_blobs_add(struct restore_blobs *b, bool is_new, const struct buf *p, uint64_t left, struct err *e) {
    auto_arena a = {0};
    struct backup_blob name;
    if (!is_new) {
        buf_add(&b->bytes, p->p, p->n);
    } else {
        int rc = rec_decode(backup_blob_rec(), p->p, p->n, &a, &name, e);
        if (rc)
            return rc;
        memcpy(b->hash.b, name.hash, sizeof(b->hash.b)); /* its length was looked at by the reader */
    }
    return left ? 0 : store(b, e);
}

int restore_blobs_close(struct restore_blobs *b, int rc, struct err *e) {
    if (!b)
        return rc;
    if (b->store)
        loop_run_until(b->loop, is_done, b, UINT32_MAX);
    if (!rc && b->code) {
        rc = b->code;
        *e = b->why;
    }
    blob_close(b->store);
    loop_free(b->loop);
    buf_fini(&b->bytes);
    free(b);
    return rc;
}
