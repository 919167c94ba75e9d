/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/sbatch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define SCRIPT_MAX (64u << 20) /* what is read at all; the controller's own bound is lower */

static int read_all(int fd, const char *name, struct buf *out, struct err *e) {
    for (;;) {
        ssize_t n = read(fd, buf_reserve(out, 65536), 65536);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EISDIR)
            return 0; /* as Slurm: "Batch script is empty!" */
        if (n < 0)
            return err_sys(e, "Unable to read file %s", name);
        if (n == 0)
            return 0;
        out->n += (size_t)n;
        if (out->n > SCRIPT_MAX)
            return err_set(e, E_SCRIPT_SIZE, "Batch script %s is larger than %u MiB", name, SCRIPT_MAX >> 20);
    }
}

/* A file of the working directory, else one of PATH: as a shell would find it, and as Slurm does. */
static int open_script(struct sbatch *s, const char *word, const char **out_path) {
    *out_path = word;
    int fd = open(word, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 || strchr(word, '/'))
        return fd;
    const char *path = getenv("PATH");
    uint32_t n;
    const char *const *dir = cli_words(s->c, path ? path : "", ":", &n);
    for (uint32_t i = 0; i < n; i++) {
        const char *full = arena_printf(&s->c->arena, "%s/%s", dir[i], word);
        fd = open(full, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            *out_path = full;
            return fd;
        }
    }
    return -1;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *absolute(struct sbatch *s, const char *path) {
    autofree char *cwd = *path == '/' ? NULL : getcwd(NULL, 0);
    if (!cwd)
        return path;
    while (str_starts(path, "./"))
        path += 2;
    return arena_printf(&s->c->arena, "%s/%s", cwd, path);
}

static int from_file(struct sbatch *s, const char *word, struct buf *out, struct err *e) {
    const char *path;
    autoclose int fd = open_script(s, word, &path);
    if (fd < 0)
        return err_set(e, E_SCRIPT, "Unable to open file %s", word);
    int rc = read_all(fd, word, out, e);
    s->spec.command = absolute(s, path);
    s->spec.name = base_name(word);
    return rc;
}

static int from_wrap(struct sbatch *s, struct buf *out) {
    static const char head[] = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n";
    buf_add(out, head, sizeof(head) - 1);
    buf_add(out, s->wrap, strlen(s->wrap));
    buf_add(out, "\n", 1);
    s->spec.name = "wrap";
    return 0;
}

int sbatch_script(struct sbatch *s, const char *const *words, size_t n_words, struct buf *out, struct err *e) {
    int rc;
    if (s->wrap && n_words)
        return err_set(e, E_USAGE, "Script arguments not permitted with --wrap option");
    if (s->wrap) {
        rc = from_wrap(s, out);
    } else if (n_words && !str_eq(words[0], "/dev/stdin")) {
        rc = from_file(s, words[0], out, e);
    } else {
        rc = read_all(STDIN_FILENO, "stdin", out, e);
        s->spec.name = n_words ? "stdin" : "sbatch";
    }
    if (rc)
        return rc;
    if (n_words > 1) {
        s->spec.args = words + 1;
        s->spec.n_args = (uint32_t)(n_words - 1);
    }
    return script_check((const char *)out->p, out->n, e);
}
