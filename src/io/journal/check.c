/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at the whole directory before libraft does: nothing is changed until all of it has been read.
 *
 * libraft repairs on its own what it takes for a crash, renames what it takes for damage and goes on without it, and
 * stops at a file that ends within a batch. We want three answers instead: whole; torn by a crash, with the cut that
 * loses nothing that was acknowledged; damaged, with the name of the file and every byte left as it is.
 *
 * The log is a chain: closed segments (their names say first and last index), then open ones in the order of their
 * counters. Each must begin where the one before it ends, and the chain must reach back to the newest snapshot.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/journal/check.h"
#include "io/journal/frame.h"

#define SMALL_FILE_MAX (64u << 20) /* of a manifest */

struct closed {
    char name[64];
    unsigned long long first, last;
};
struct opened {
    char name[64];
    unsigned long long counter;
};
struct snap {
    char name[64]; /* without .meta */
    unsigned long long term, index, stamp;
};
struct listing {
    VEC(struct closed) closed;
    VEC(struct opened) open;
    VEC(struct snap) snaps;
    bool metadata[2], owner;
};

static int read_file(const char *dir, const char *name, struct buf *out, struct err *e) {
    autofree char *path = xasprintf("%s/%s", dir, name);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "%s", path);
    if (st.st_size > SMALL_FILE_MAX)
        return err_set(e, E_CORRUPT, "%s: too large", path);
    buf_reserve(out, (size_t)st.st_size + 1);
    ssize_t n = read(fd, out->p, (size_t)st.st_size);
    if (n < 0)
        return err_sys(e, "%s", path);
    out->n = (size_t)n;
    return 0;
}

static void list_one(struct listing *l, const char *name) {
    struct closed c;
    struct opened o;
    struct snap s;
    int used = 0, n = (int)strlen(name);
    if (n >= 64)
        return;
    if (sscanf(name, "%llu-%llu%n", &c.first, &c.last, &used) == 2 && used == n) {
        memcpy(c.name, name, (size_t)n + 1);
        vec_push(&l->closed, c);
    } else if (sscanf(name, "open-%llu%n", &o.counter, &used) == 1 && used == n) {
        memcpy(o.name, name, (size_t)n + 1);
        vec_push(&l->open, o);
    } else if (sscanf(name, "snapshot-%llu-%llu-%llu.meta%n", &s.term, &s.index, &s.stamp, &used) == 3 && used == n) {
        memcpy(s.name, name, (size_t)n - 5);
        s.name[n - 5] = 0;
        vec_push(&l->snaps, s);
    } else if (strcmp(name, "metadata1") == 0 || strcmp(name, "metadata2") == 0) {
        l->metadata[name[8] - '1'] = true;
    } else if (strcmp(name, OWNER_FILE) == 0) {
        l->owner = true;
    }
}

static int by_closed(const void *a, const void *b) {
    const struct closed *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->last < y->last ? -1 : x->last > y->last;
}

static int by_open(const void *a, const void *b) {
    const struct opened *x = a, *y = b;
    return x->counter < y->counter ? -1 : x->counter > y->counter;
}

static int by_snap(const void *a, const void *b) { /* libraft's order */
    const struct snap *x = a, *y = b;
    if (x->term != y->term)
        return x->term < y->term ? -1 : 1;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x->stamp < y->stamp ? -1 : x->stamp > y->stamp;
}

static int list_dir(const char *dir, struct listing *l, struct err *e) {
    DIR *d = opendir(dir);
    if (!d)
        return err_sys(e, "%s", dir);
    struct dirent *de;
    while ((de = readdir(d)))
        list_one(l, de->d_name);
    closedir(d);
    if (l->closed.n)
        qsort(l->closed.p, l->closed.n, sizeof(*l->closed.p), by_closed);
    if (l->open.n)
        qsort(l->open.p, l->open.n, sizeof(*l->open.p), by_open);
    if (l->snaps.n)
        qsort(l->snaps.p, l->snaps.n, sizeof(*l->snaps.p), by_snap);
    return 0;
}

static void fix(struct check *c, const char *name, bool remove, size_t bytes) {
    struct check_fix f = {.remove = remove, .bytes = bytes};
    memcpy(f.name, name, strlen(name) + 1);
    vec_push(&c->fixes, f);
}

/* ---- metadata: term and vote, written in turns to two files ---- */

static int check_metadata(const char *dir, const struct listing *l, struct check *c, uint64_t *out_term,
                          bool *out_found, struct err *e) {
    uint64_t version[2] = {0}, term[2] = {0};
    for (int i = 0; i < 2; i++) {
        char name[] = {'m', 'e', 't', 'a', 'd', 'a', 't', 'a', (char)('1' + i), 0};
        if (!l->metadata[i])
            continue;
        auto_buf b = {0};
        int rc = read_file(dir, name, &b, e);
        if (rc != 0)
            return rc;
        struct rd r = rd_of(b.p, b.n);
        uint64_t format = rd_u64le(&r);
        version[i] = rd_u64le(&r);
        term[i] = rd_u64le(&r);
        rd_u64le(&r);
        if (r.bad || (format == 0 && version[i] == 0 && term[i] == 0)) {
            version[i] = 0; /* the first write to it never ended */
            fix(c, name, true, 0);
        } else if (format != 1 || version[i] == 0 || rd_left(&r) > 0) {
            return err_set(e, E_CORRUPT, "%s/%s: is no metadata file of this format", dir, name);
        }
    }
    if (version[0] && version[0] == version[1])
        return err_set(e, E_CORRUPT, "%s/metadata1: has the same version as metadata2", dir);
    *out_term = version[0] > version[1] ? term[0] : term[1];
    *out_found = version[0] || version[1];
    return 0;
}

/* ---- snapshots ---- */

static int check_snapshot_meta(const char *dir, const char *name, struct err *e) {
    auto_buf b = {0};
    autofree char *meta = xasprintf("%s.meta", name);
    int rc = read_file(dir, meta, &b, e);
    if (rc != 0)
        return rc;
    struct rd r = rd_of(b.p, b.n);
    uint64_t format = rd_u64le(&r);
    uint32_t crc = (uint32_t)rd_u64le(&r);
    rd_u64le(&r);
    uint64_t n = rd_u64le(&r);
    if (r.bad || format != 1 || n == 0 || n != rd_left(&r) || crc_add(0, b.p + 16, b.n - 16) != crc)
        return err_set(e, E_CORRUPT, "%s/%s: the snapshot's description is damaged", dir, meta);
    return 0;
}

static int check_snapshots(const char *dir, const struct listing *l, struct check *c, struct err *e) {
    for (size_t i = l->snaps.n; i-- > 0;) {
        const struct snap *s = &l->snaps.p[i];
        autofree char *path = xasprintf("%s/%s", dir, s->name);
        if (access(path, F_OK) != 0 && errno == ENOENT)
            continue; /* linked in this order: description, content. A crash came between. */
        int rc = check_snapshot_meta(dir, s->name, e);
        if (rc != 0)
            return rc;
        auto_buf b = {0};
        struct blob blob;
        if ((rc = read_file(dir, s->name, &b, e)) != 0)
            return rc;
        if (!blob_read(b.p, b.n, &blob) || blob.raft_index != s->index)
            return err_set(e, E_CORRUPT, "%s: the snapshot's manifest is damaged", path);
        c->snapshot_index = s->index;
        c->snapshot_term = s->term;
        return 0;
    }
    return 0;
}

/* ---- the log ---- */

static int missing(const char *dir, const char *name, uint64_t from, uint64_t to, struct err *e) {
    return err_set(e, E_CORRUPT, "%s/%s: the entries %llu to %llu before it are missing", dir, name,
                   (unsigned long long)from, (unsigned long long)to);
}

/* The newest run of closed segments without a gap begins at *out_from. What lies before a gap is of use to nobody as
 * long as a snapshot covers the gap. */
static int closed_chain(const char *dir, struct listing *l, struct check *c, size_t *out_from, struct err *e) {
    for (size_t i = 0; i + 1 < l->closed.n;) {
        struct closed *a = &l->closed.p[i], *b = a + 1;
        if (a->first == b->first) {
            /* A follower was cutting off entries that its leader doesn't have: the short copy is new and the long one
             * not yet gone. Taking the short one back is safe, nothing was appended behind it. */
            fix(c, a->name, true, 0);
            vec_remove(&l->closed, i);
        } else {
            i++;
        }
    }
    size_t from = l->closed.n;
    while (from > 0 && (from == l->closed.n || l->closed.p[from - 1].last + 1 == l->closed.p[from].first))
        from--;
    *out_from = from;
    if (from == l->closed.n)
        return 0;
    struct closed *a = &l->closed.p[from];
    if (a->first > c->snapshot_index + 1)
        return missing(dir, a->name, (from ? l->closed.p[from - 1].last : c->snapshot_index) + 1, a->first - 1, e);
    c->first = a->first;
    return 0;
}

static int check_closed(const char *dir, const struct closed *s, struct check *c, bool alone, uint64_t *term_max,
                        struct err *e) {
    struct segment_facts f;
    int rc = segment_read(dir, s->name, s->first, alone, &f, e);
    if (rc != 0)
        return rc;
    if (f.wrong_index || s->last < s->first)
        return err_set(e, E_CORRUPT, "%s/%s: holds other entries than its name says", dir, s->name);
    if (f.torn || f.blank || f.entries != s->last - s->first + 1)
        return err_set(e, E_CORRUPT, "%s/%s: damaged: %llu of its %llu entries are whole", dir, s->name,
                       (unsigned long long)f.entries, (unsigned long long)(s->last - s->first + 1));
    if (f.valid_bytes < f.bytes)
        fix(c, s->name, false, f.valid_bytes); /* zeros, which libraft stops at */
    *term_max = MAX(*term_max, f.term_max);
    return 0;
}

static int check_open(const char *dir, const struct listing *l, struct check *c, bool alone, uint64_t *term_max,
                      struct err *e) {
    const char *torn = NULL; /* name of one that ends within a batch; nothing may follow it */
    for (size_t i = 0; i < l->open.n; i++) {
        const char *name = l->open.p[i].name;
        struct segment_facts f;
        int rc = segment_read(dir, name, c->last + 1, alone, &f, e);
        if (rc != 0)
            return rc;
        if (f.blank) {
            fix(c, name, true, 0);
            continue;
        }
        if (torn)
            return err_set(e, E_CORRUPT, "%s/%s: damaged, and the log goes on behind it in %s", dir, torn, name);
        if (f.wrong_index)
            return err_set(e, E_CORRUPT, "%s/%s: entries before it are missing", dir, name);
        if (f.lost)
            return err_set(e, E_CORRUPT, "%s/%s: damaged at byte %zu, before entries that are whole", dir, name,
                           MAX(f.valid_bytes, (size_t)8));
        if (f.torn) {
            torn = name;
            c->torn = true;
        }
        fix(c, name, f.entries == 0, f.valid_bytes);
        c->last += f.entries;
        *term_max = MAX(*term_max, f.term_max);
    }
    return 0;
}

static void all_obsolete(const struct listing *l, size_t from, struct check *c) {
    c->fixes.n = 0;
    c->torn = false;
    for (size_t i = from; i < l->closed.n; i++)
        fix(c, l->closed.p[i].name, true, 0);
    for (size_t i = 0; i < l->open.n; i++)
        fix(c, l->open.p[i].name, true, 0);
    c->first = 0;
    c->last = c->snapshot_index;
}

static int check_log(const char *dir, struct listing *l, struct check *c, bool alone, uint64_t *term_max,
                     struct err *e) {
    size_t from;
    int rc = closed_chain(dir, l, c, &from, e);
    if (rc != 0)
        return rc;
    c->last = c->snapshot_index;
    for (size_t i = from; i < l->closed.n; i++) {
        if ((rc = check_closed(dir, &l->closed.p[i], c, alone, term_max, e)) != 0)
            return rc;
        c->last = l->closed.p[i].last;
    }
    if ((rc = check_open(dir, l, c, alone, term_max, e)) != 0)
        return rc;
    if (c->last < c->snapshot_index)
        all_obsolete(l, from, c); /* a snapshot from the leader had replaced the log, and a crash came before the end */
    return 0;
}

/* ---- all of it ---- */

static int check_owner(const char *dir, uint64_t id, bool *out_joined, struct err *e) {
    auto_buf b = {0};
    int rc = read_file(dir, OWNER_FILE, &b, e);
    if (rc != 0)
        return rc;
    buf_u8(&b, 0);
    unsigned version;
    unsigned long long member;
    if (sscanf((const char *)b.p, "spur journal %u\nmember %llu\n", &version, &member) != 2)
        return err_set(e, E_CORRUPT, "%s/%s: can't be read", dir, OWNER_FILE);
    if (version != 1)
        return err_set(e, E_VERSION, "%s: is a journal of format %u, this program knows format 1", dir, version);
    if (member != id)
        return err_set(e, E_CONFIG, "%s: is the journal of member %llu, not of member %llu", dir, member,
                       (unsigned long long)id);
    *out_joined = strstr((const char *)b.p, "\njoined\n") != NULL;
    return 0;
}

static int check_listed(const char *dir, uint64_t id, bool alone, struct listing *l, struct check *c, struct err *e) {
    int rc = 0;
    if (l->owner && (rc = check_owner(dir, id, &c->joined, e)) != 0)
        return rc;
    uint64_t term = 0, term_max = 0;
    bool has_metadata = false;
    if ((rc = check_metadata(dir, l, c, &term, &has_metadata, e)) != 0 || (rc = check_snapshots(dir, l, c, e)) != 0 ||
        (rc = check_log(dir, l, c, alone, &term_max, e)) != 0)
        return rc;
    if (!l->owner) {
        /* Bootstrapping writes OWNER_FILE last. What an attempt that didn't get there left is begun again. */
        if (c->snapshot_index > 0 || c->last > 1 || term > 1)
            return err_set(e, E_CORRUPT, "%s/%s: is missing, but there is a log", dir, OWNER_FILE);
        c->fresh = true;
        c->fixes.n = 0;
        for (size_t i = 0; i < l->closed.n; i++)
            fix(c, l->closed.p[i].name, true, 0);
        for (size_t i = 0; i < l->open.n; i++)
            fix(c, l->open.p[i].name, true, 0);
        for (int i = 0; i < 2; i++)
            if (l->metadata[i])
                fix(c, i ? "metadata2" : "metadata1", true, 0);
        return 0;
    }
    if (!has_metadata && c->joined && c->last == 0)
        return 0;
    if (!has_metadata)
        return err_set(e, E_CORRUPT, "%s/metadata1: is missing", dir);
    if (c->last == 0 && !c->joined)
        return err_set(e, E_CORRUPT, "%s: the log's first file is missing", dir);
    if (term_max > term)
        return err_set(e, E_CORRUPT, "%s/metadata1: says term %llu, but the log has entries of term %llu", dir,
                       (unsigned long long)term, (unsigned long long)term_max);
    return 0;
}

int check_dir(const char *dir, uint64_t id, bool alone, struct check *out, struct err *e) {
    struct listing l = {0};
    *out = (struct check){0};
    int rc = list_dir(dir, &l, e);
    if (rc == 0)
        rc = check_listed(dir, id, alone, &l, out, e);
    vec_fini(&l.closed);
    vec_fini(&l.open);
    vec_fini(&l.snaps);
    if (rc != 0)
        check_fini(out);
    return rc;
}

void check_fini(struct check *c) {
    vec_fini(&c->fixes);
}
