/* SPDX-License-Identifier: Apache-2.0
 *
 * From the files of a directory to the index.
 *
 * A finished pack is known by its list. One without a list (the last, or the writer died between) is scanned, what is
 * found is put on disk before anybody is told that it is there, and a torn end of the last is cut off. The last pack
 * goes on being written to.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "io/blob/sidefile.h"
#include "io/blob/store.h"

struct found {
    VEC(uint32_t) packs, lists;
};

static void found_fini(struct found *f) {
    vec_fini(&f->packs);
    vec_fini(&f->lists);
}

static int make_dir(const char *dir, struct err *e) {
    if (mkdir(dir, 0700))
        return errno == EEXIST ? 0 : err_sys(e, "cannot make %s", dir);
    autofree char *copy = xstrdup(dir);
    autoclose int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) ? err_sys(e, "cannot sync the directory above %s", dir) : 0;
}

static int lock_dir(struct files *f, const char *dir, struct err *e) {
    f->dir = xstrdup(dir);
    f->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir_fd < 0)
        return err_sys(e, "cannot open %s", dir);
    if (flock(f->dir_fd, LOCK_EX | LOCK_NB))
        return errno == EWOULDBLOCK ? err_set(e, E_BUSY, "%s is in use by another process", dir)
                                    : err_sys(e, "cannot lock %s", dir);
    return 0;
}

/* "pack-NNNNNN" and `end`: the number, 0 for another name. */
static uint32_t number_of(const char *name, const char *end) {
    char digits[12];
    uint64_t n;
    if (!str_starts(name, "pack-") || !str_ends(name, end))
        return 0;
    size_t len = strlen(name) - 5 - strlen(end);
    if (len < 6 || len > 10)
        return 0;
    snprintf(digits, sizeof(digits), "%.*s", (int)len, name + 5);
    return str_to_u64(digits, UINT32_MAX - 1, &n) ? 0 : (uint32_t)n;
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int list_dir(struct files *f, struct found *out, struct err *e) {
    int fd = dup(f->dir_fd);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return err_sys(e, "cannot read %s", f->dir);
    struct dirent *n;
    while ((errno = 0, n = readdir(d))) {
        uint32_t pack = number_of(n->d_name, ""), list = number_of(n->d_name, ".list");
        if (pack)
            vec_push(&out->packs, pack);
        else if (list)
            vec_push(&out->lists, list);
        else if (number_of(n->d_name, ".list.new"))
            unlinkat(f->dir_fd, n->d_name, 0);
    }
    int r = errno ? err_sys(e, "cannot read %s", f->dir) : 0;
    closedir(d);
    if (out->packs.n)
        qsort(out->packs.p, out->packs.n, sizeof(uint32_t), by_number);
    return r;
}

static void remove_stray_lists(struct files *f, const struct found *found) {
    for (size_t i = 0; i < found->lists.n; i++) {
        uint32_t n = found->lists.p[i];
        if (found->packs.n && bsearch(&n, found->packs.p, found->packs.n, sizeof(n), by_number))
            continue;
        char name[32];
        snprintf(name, sizeof(name), "pack-%06u.list", n);
        unlinkat(f->dir_fd, name, 0);
    }
}

/* A later record of the same bytes counts, so that an older pack can go; a damaged one counts where there is none
 * better, so that reading it tells. */
static void take_records(struct blob_store *s, uint32_t number, const struct pack_scan *scan) {
    uint32_t tick = store_tick(s);
    for (size_t i = 0; i < scan->records.n; i++) {
        const struct pack_record *r = &scan->records.p[i];
        struct blob_entry *e = index_find(&s->index, &r->hash);
        if (e && r->bad && !e->bad)
            continue;
        if (!e)
            e = index_add(&s->index, &r->hash);
        store_point(s, e, number, r->offset, r->length);
        e->bad = r->bad;
        e->fresh = tick;
    }
    struct pack_info *p = store_pack(s, number);
    p->bytes = scan->end;
    p->damaged = scan->header_bad || scan->has_holes;
}

static uint64_t read_id(int fd) {
    uint8_t h[PACK_HEADER_SIZE];
    uint32_t number;
    uint64_t id;
    return pread(fd, h, sizeof(h), 0) == sizeof(h) && pack_header_decode(h, &number, &id) == 0 ? id : 0;
}

/* A pack whose making was cut short holds nothing; its name may be used again. */
static bool was_never_begun(const struct pack_scan *scan) {
    return scan->header_bad && scan->size <= PACK_HEADER_SIZE;
}

static int finish_scanned(struct blob_store *s, uint32_t number, int *fd, const struct pack_scan *scan, bool is_last,
                          struct err *e) {
    if (is_last && scan->size > scan->end && ftruncate(*fd, (off_t)scan->end))
        return err_sys(e, "cannot cut off the torn end of %s/pack-%06u", s->files.dir, number);
    if (fdatasync(*fd))
        return err_sys(e, "cannot sync %s/pack-%06u", s->files.dir, number);
    bool is_whole = !scan->header_bad && !scan->has_holes;
    for (size_t i = 0; is_whole && i < scan->records.n; i++)
        is_whole = !scan->records.p[i].bad;
    if (is_last && !scan->header_bad)
        files_adopt(&s->files, number, take_fd(fd), scan);
    else if (is_whole)
        sidefile_write(s->files.dir_fd, number, scan->id, scan->end, scan->records.p, scan->records.n, NULL);
    return 0;
}

static int load_pack(struct blob_store *s, uint32_t number, bool is_last, struct pack_scan *scan, struct err *e) {
    char name[24];
    snprintf(name, sizeof(name), "pack-%06u", number);
    autoclose int fd = openat(s->files.dir_fd, name, O_RDWR | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        return err_sys(e, "cannot open %s/%s", s->files.dir, name);
    if (sidefile_read(s->files.dir_fd, number, read_id(fd), (uint64_t)st.st_size, scan)) {
        pack_scan_fini(scan);
        int r = pack_scan(fd, number, scan, e);
        if (!r && was_never_begun(scan)) {
            unlinkat(s->files.dir_fd, name, 0);
            return 0;
        }
        if (!r)
            r = finish_scanned(s, number, &fd, scan, is_last, e);
        if (r)
            return r;
    }
    take_records(s, number, scan);
    return 0;
}

int store_load(struct blob_store *s, const char *dir, struct err *e) {
    int r = make_dir(dir, e);
    if (!r)
        r = lock_dir(&s->files, dir, e);
    auto_call(found_fini) struct found found = {0};
    if (!r)
        r = list_dir(&s->files, &found, e);
    if (r)
        return r;
    remove_stray_lists(&s->files, &found);
    for (size_t i = 0; !r && i < found.packs.n; i++) {
        struct pack_scan scan = {0};
        r = load_pack(s, found.packs.p[i], i + 1 == found.packs.n, &scan, e);
        pack_scan_fini(&scan);
    }
    s->files.next = found.packs.n ? found.packs.p[found.packs.n - 1] + 1 : 1;
    s->active = s->files.active;
    if (!r && fsync(s->files.dir_fd))
        r = err_sys(e, "cannot sync %s", dir);
    return r;
}
