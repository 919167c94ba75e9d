/* SPDX-License-Identifier: Apache-2.0
 *
 * A directory that begins with a snapshot: for a state that was restored. In libraft's own formats (docs/format/journal.md),
 * as if all other entries had been trimmed behind that snapshot.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/journal/check.h"
#include "io/journal/frame.h"

#define TERM 1
#define CONFIGURATION_FORMAT 1
#define ROLE_VOTER 1

static int write_file(const char *dir, const char *name, const struct buf *b, struct err *e) {
    autofree char *path = xasprintf("%s/%s", dir, name);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "%s", path);
    if (fd_write(fd, b->p, b->n) < 0 || fsync(fd) < 0)
        return err_sys(e, "%s", path);
    return 0;
}

/* Who the members are, as libraft keeps it: this one alone. */
static void add_configuration(struct buf *out, uint64_t id, const char *address) {
    static const uint8_t zeros[8];
    size_t begun = out->n;
    buf_u8(out, CONFIGURATION_FORMAT);
    buf_u64le(out, 1);
    buf_u64le(out, id);
    buf_add(out, address, strlen(address) + 1);
    buf_u8(out, ROLE_VOTER);
    buf_add(out, zeros, -(out->n - begun) & 7);
}

static int write_description(const char *dir, const char *name, uint64_t index, const struct buf *members, struct err *e) {
    auto_buf body = {0}, whole = {0};
    autofree char *meta = xasprintf("%s.meta", name);
    buf_u64le(&body, index);
    buf_u64le(&body, members->n);
    buf_add(&body, members->p, members->n);
    buf_u64le(&whole, 1);
    buf_u64le(&whole, crc_add(0, body.p, body.n));
    buf_add(&whole, body.p, body.n);
    return write_file(dir, meta, &whole, e);
}

static int write_metadata(const char *dir, struct err *e) {
    auto_buf b = {0};
    buf_u64le(&b, 1);
    buf_u64le(&b, 1);
    buf_u64le(&b, TERM);
    buf_u64le(&b, 0);
    return write_file(dir, "metadata1", &b, e);
}

int journal_seed(const char *dir, uint64_t id, const char *address, uint64_t index, const void *manifest, size_t n,
                 struct err *e) {
    auto_buf members = {0}, content = {0};
    struct blob blob = {index, index, manifest, n};
    char name[64];
    if (!journal_is_fresh(dir))
        return err_set(e, E_EXISTS, "%s holds a journal", dir);
    snprintf(name, sizeof(name), "snapshot-%d-%llu-1", TERM, (unsigned long long)index);
    add_configuration(&members, id, address ? address : "alone");
    blob_write(&content, &blob);
    int rc = write_description(dir, name, index, &members, e);
    if (!rc)
        rc = write_file(dir, name, &content, e);
    if (!rc)
        rc = write_metadata(dir, e);
    if (!rc)
        rc = dir_sync(dir, e);
    return rc ? rc : check_mark_owner(dir, id, false, e);
}

int journal_owner(const char *dir, uint64_t *out_id, struct err *e) {
    autofree char *path = xasprintf("%s/" OWNER_FILE, dir);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[64] = "";
    unsigned version;
    unsigned long long id;
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return err_sys(e, "%s", path);
    if (sscanf(text, "spur journal %u\nmember %llu\n", &version, &id) != 2)
        return err_set(e, E_CORRUPT, "%s: can't be read", path);
    *out_id = id;
    return 0;
}

int journal_lock(const char *dir, int *out_fd, struct err *e) {
    return dir_lock(dir, out_fd, e);
}
