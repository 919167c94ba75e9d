/* SPDX-License-Identifier: Apache-2.0
 *
 * spurstepd copy: a file of sbcast, from the client's connection into the user's directory, as the user. It gets its
 * name when it is whole.
 */
#include "spurstepd/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <lz4frame.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "spurstepd/step.h"
#include "wire/stream.h"

#define REQUEST_MAX (1u << 20)
#define QUIET_SECS 60 /* a client that says nothing for so long is left */
#define PATH_BYTES 4096

struct copy {
    int client, fd;
    struct buf in;
    char path[PATH_BYTES], made[PATH_BYTES + 16]; /* where it is to be, and is until it is whole; "": none */
    struct stream_file file;
    uint64_t at, acked; /* of what comes */
    uint64_t written;   /* of the file */
    LZ4F_dctx *unpacker;
    bool frame_ended;
};

static int become(const struct step_copy *q, struct err *e) {
    if (geteuid() != 0)
        return q->uid == geteuid() ? 0 : err_set(e, E_DENIED, "the node agent is not root");
    if (setgroups(q->n_groups, q->groups) || setresgid(q->gid, q->gid, q->gid) || setresuid(q->uid, q->uid, q->uid))
        return err_sys(e, "become user id %u", q->uid);
    return 0;
}

static int say(struct copy *c, enum stream_frame type, const struct rec_desc *d, const void *rec) {
    auto_buf out = {0};
    stream_frame_add(&out, type, d, rec);
    for (size_t at = 0; at < out.n;) {
        ssize_t n = send(c->client, out.p + at, out.n - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return E_UNREACHABLE;
        at += (size_t)n;
    }
    return 0;
}

static int begin_file(struct copy *c, const struct stream_file *f, struct err *e) {
    struct stat st;
    if (c->fd >= 0 || !f->path || *f->path != '/' || strlen(f->path) >= PATH_BYTES)
        return err_set(e, E_SYNTAX, "a file needs one absolute path");
    snprintf(c->path, sizeof(c->path), "%s", f->path);
    c->file = *f;
    c->file.path = c->path;
    if (f->packing > STREAM_PACKING_LZ4)
        return err_set(e, E_UNSUPPORTED, "this agent can't unpack what comes");
    if (f->packing == STREAM_PACKING_LZ4 && LZ4F_isError(LZ4F_createDecompressionContext(&c->unpacker, LZ4F_VERSION)))
        return err_set(e, E_INTERNAL, NULL);
    if (!f->force && !lstat(c->path, &st))
        return err_set(e, E_EXISTS, "%s: %s", c->path, strerror(EEXIST));
    snprintf(c->made, sizeof(c->made), "%s.XXXXXX", c->path);
    c->fd = mkostemp(c->made, O_CLOEXEC);
    if (c->fd < 0) {
        c->made[0] = 0;
        return err_sys(e, "%s", c->path);
    }
    return 0;
}

static int end_file(struct copy *c, struct err *e) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = c->file.mtime_unix}};
    if (c->fd < 0 || c->written != c->file.size || (c->unpacker && !c->frame_ended))
        return err_set(e, E_SYNTAX, "%s: %llu bytes came, not %llu", c->path, (unsigned long long)c->written,
                       (unsigned long long)c->file.size);
    if (fchmod(c->fd, (mode_t)c->file.mode & 0777) || (c->file.mtime_unix && futimens(c->fd, times)) || close(c->fd))
        return err_sys(e, "%s", c->path);
    c->fd = -1;
    bool failed = c->file.force ? rename(c->made, c->path) : link(c->made, c->path) || unlink(c->made);
    if (failed)
        return err_sys(e, "%s", c->path);
    c->made[0] = 0;
    return 0;
}

static int write_plain(struct copy *c, const uint8_t *p, size_t n, struct err *e) {
    if (n > c->file.size - c->written)
        return err_set(e, E_SYNTAX, "%s: more than its %llu bytes came", c->path, (unsigned long long)c->file.size);
    if (fd_write(c->fd, p, n))
        return err_sys(e, "%s", c->path);
    c->written += n;
    return 0;
}

static int write_packed(struct copy *c, const uint8_t *p, size_t n, struct err *e) {
    uint8_t plain[65536];
    size_t made;
    do {
        size_t taken = n;
        made = sizeof(plain);
        size_t left = c->frame_ended ? 0 : LZ4F_decompress(c->unpacker, plain, &made, p, &taken, NULL);
        if (LZ4F_isError(left) || c->frame_ended)
            return err_set(e, E_PROTOCOL, "%s: what comes is not one LZ4 frame", c->path);
        int code = write_plain(c, plain, made, e);
        if (code)
            return code;
        c->frame_ended = left == 0;
        p += taken;
        n -= taken;
    } while (n || (made == sizeof(plain) && !c->frame_ended)); /* a full piece: there may be more inside */
    return 0;
}

/* 1: the file is whole. */
static int on_data(struct copy *c, const struct stream_data *d, struct err *e) {
    if (c->fd < 0 || d->number != STREAM_IN || d->offset != c->at)
        return err_set(e, E_PROTOCOL, "bytes of no file");
    if (!d->n_bytes) {
        int code = end_file(c, e);
        return code ? code : 1;
    }
    int code = (c->unpacker ? write_packed : write_plain)(c, d->bytes, d->n_bytes, e);
    if (code)
        return code;
    c->at += d->n_bytes;
    if (c->at - c->acked < STREAM_WINDOW / 4)
        return 0;
    c->acked = c->at;
    struct stream_ack ack = {d->task, STREAM_IN, c->at};
    return say(c, STREAM_ACK, stream_ack_rec(), &ack);
}

static int on_frame(struct copy *c, unsigned type, const uint8_t *p, size_t n, struct err *e) {
    auto_arena a = {0};
    struct stream_file file;
    struct stream_data data;
    if (type == STREAM_FILE) {
        int code = rec_decode(stream_file_rec(), p, n, &a, &file, e);
        return code ? code : begin_file(c, &file, e);
    }
    if (type == STREAM_DATA)
        return stream_data_read(p, n, &data) ? err_set(e, E_PROTOCOL, NULL) : on_data(c, &data, e);
    return type == STREAM_TERMINATE || type == STREAM_BYE ? err_set(e, E_CANCELLED, NULL) : 0;
}

/* One frame. 1: the file is whole; negative: it will not be. */
static int step(struct copy *c, struct err *e) {
    struct stream_header h;
    int got;
    while ((got = stream_header_read(c->in.p, c->in.n, &h)) == 0 || (got > 0 && c->in.n < STREAM_HEADER_SIZE + h.length)) {
        ssize_t n = recv(c->client, buf_reserve(&c->in, 2 * STREAM_DATA_MAX), 2 * STREAM_DATA_MAX, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, E_UNREACHABLE, "the client is gone");
        c->in.n += (size_t)n;
    }
    if (got < 0)
        return err_set(e, got, NULL);
    got = on_frame(c, h.type, c->in.p + STREAM_HEADER_SIZE, h.length, e);
    size_t used = STREAM_HEADER_SIZE + h.length;
    memmove(c->in.p, c->in.p + used, c->in.n - used);
    c->in.n -= used;
    return got;
}

static void take_file(struct copy *c) {
    struct err e = {0};
    uint32_t rank = 0;
    struct stream_welcome w = {.ranks = &rank, .n_ranks = 1, .window = STREAM_WINDOW};
    int got = say(c, STREAM_WELCOME, stream_welcome_rec(), &w);
    while (got == 0)
        got = step(c, &e);
    LZ4F_freeDecompressionContext(c->unpacker);
    if (c->fd >= 0)
        close(c->fd);
    if (c->made[0])
        (void)unlink(c->made);
    struct stream_done done = {.wait_status = got == 1 ? 0 : 1u << 8, .text = got == 1 ? NULL : e.text};
    (void)say(c, STREAM_DONE, stream_done_rec(), &done);
    (void)shutdown(c->client, SHUT_WR);
    for (char rest[4096]; recv(c->client, rest, sizeof(rest), 0) > 0;) {
        /* a socket with unread bytes is reset, and that may overtake what we said */
    }
}

int copy_run(int spurd, int client) {
    auto_arena a = {0};
    auto_buf request = {0};
    struct step_copy q;
    struct err e = {0};
    struct copy c = {.client = client, .fd = -1};
    const struct timeval quiet = {.tv_sec = QUIET_SECS};
    for (ssize_t n; request.n < REQUEST_MAX && (n = read(spurd, buf_reserve(&request, 65536), 65536)) > 0;)
        request.n += (size_t)n;
    if (rec_decode(step_copy_rec(), request.p, request.n, &a, &q, &e) || become(&q, &e)) {
        dprintf(spurd, "%s\n", e.text);
        return 1;
    }
    umask(077);
    (void)fcntl(client, F_SETFL, 0);
    (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &quiet, sizeof(quiet));
    (void)setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &quiet, sizeof(quiet));
    dprintf(spurd, "ok\n");
    close(spurd);
    buf_add(&c.in, q.rest, q.n_rest);
    take_file(&c);
    buf_fini(&c.in);
    return 0;
}
