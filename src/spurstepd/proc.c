/* SPDX-License-Identifier: Apache-2.0
 *
 * /proc is read afresh each time: a run ends once, and between two rounds everything may have forked.
 */
#include "spurstepd/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define ENVIRON_MAX (1u << 20)

void pids_fini(struct pids *v) {
    free(v->p);
    *v = (struct pids){0};
}

void pids_add(struct pids *v, pid_t pid) {
    if (v->n == v->cap) {
        v->cap = v->cap ? v->cap * 2 : 64;
        v->p = xrealloc(v->p, v->cap * sizeof(*v->p));
    }
    v->p[v->n++] = pid;
}

bool pids_has(const struct pids *v, pid_t pid) {
    for (size_t i = 0; i < v->n; i++) {
        if (v->p[i] == pid)
            return true;
    }
    return false;
}

ssize_t file_read(const char *path, char *out, size_t n) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = fd_read(fd, out, n - 1);
    if (got >= 0)
        out[got] = 0;
    return got;
}

int file_write(const char *path, const char *text) {
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t n = strlen(text);
    return write(fd, text, n) == (ssize_t)n ? 0 : -1;
}

static int64_t clock_ms(clockid_t id) {
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t wall_ms(void) {
    return clock_ms(CLOCK_REALTIME);
}

int64_t boot_ms(void) {
    return clock_ms(CLOCK_BOOTTIME);
}

void proc_boot_id(char out[64]) {
    out[0] = 0;
    if (file_read("/proc/sys/kernel/random/boot_id", out, 64) > 0)
        out[strcspn(out, "\n")] = 0;
}

struct stat_line {
    pid_t pid, ppid;
    char state;
    uint64_t started;
};

/* The name in the second field may hold anything, blanks and brackets too: the last ')' ends it. */
static bool stat_read(pid_t pid, struct stat_line *out) {
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (file_read(path, text, sizeof(text)) <= 0)
        return false;
    const char *rest = strrchr(text, ')');
    int ppid;
    unsigned long long started;
    if (!rest || sscanf(rest + 1,
                        " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                        &out->state, &ppid, &started) != 3)
        return false;
    out->pid = pid;
    out->ppid = ppid;
    out->started = started;
    return true;
}

uint64_t proc_started(pid_t pid) {
    struct stat_line s;
    return pid > 0 && stat_read(pid, &s) ? s.started : 0;
}

static void each_process(void (*fn)(pid_t pid, void *arg), void *arg) {
    DIR *d = opendir("/proc");
    if (!d)
        return;
    for (struct dirent *entry; (entry = readdir(d));) {
        if (isdigit((unsigned char)entry->d_name[0]))
            fn((pid_t)strtol(entry->d_name, NULL, 10), arg);
    }
    closedir(d);
}

struct table {
    struct stat_line *p;
    size_t n, cap;
};

static void table_add(pid_t pid, void *arg) {
    struct table *t = arg;
    struct stat_line s;
    if (!stat_read(pid, &s))
        return;
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 256;
        t->p = xrealloc(t->p, t->cap * sizeof(*t->p));
    }
    t->p[t->n++] = s;
}

/* Parents may come behind their children in the list: repeat until nothing new is found. */
void proc_descendants(pid_t root, struct pids *out) {
    struct table t = {0};
    struct pids family = {0};
    each_process(table_add, &t);
    pids_add(&family, root);
    for (size_t before = 0; before != family.n;) {
        before = family.n;
        for (size_t i = 0; i < t.n; i++) {
            if (t.p[i].pid && pids_has(&family, t.p[i].ppid)) {
                pids_add(&family, t.p[i].pid);
                if (t.p[i].state != 'Z')
                    pids_add(out, t.p[i].pid);
                t.p[i].pid = 0;
            }
        }
    }
    pids_fini(&family);
    free(t.p);
}

struct marked {
    const char *line;
    char *text;
    struct pids *out;
};

static void marked_add(pid_t pid, void *arg) {
    struct marked *m = arg;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    ssize_t n = pid == getpid() ? -1 : file_read(path, m->text, ENVIRON_MAX);
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(m->text + at) + 1) {
        if (!strcmp(m->text + at, m->line)) {
            pids_add(m->out, pid);
            return;
        }
    }
}

void proc_marked(const char *line, struct pids *out) {
    struct marked m = {line, xmalloc(ENVIRON_MAX), out};
    each_process(marked_add, &m);
    free(m.text);
}
