/* SPDX-License-Identifier: Apache-2.0 */
#include "spurstepd/hierarchy.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define MAX_DEPTH 16 /* of groups that a job made below its own */

static const struct {
    const char *name;
    unsigned is;
} v1_names[] = {
    {"freezer", HIER_FREEZER}, {"memory", HIER_MEMORY}, {"pids", HIER_PIDS}, {"name=systemd", HIER_SYSTEMD},
    {"devices", HIER_DEVICES}};

static unsigned bits_of(char *list) {
    unsigned is = 0;
    char *save = NULL;
    for (char *word = strtok_r(list, ",\n", &save); word; word = strtok_r(NULL, ",\n", &save)) {
        for (size_t i = 0; i < ARRAY_LEN(v1_names); i++) {
            if (!strcmp(word, v1_names[i].name))
                is |= v1_names[i].is;
        }
    }
    return is;
}

/* "36 35 98:0 /root /mount/point rw,opts optional - type source super,options" */
static void add_mount(struct hierarchies *out, char *line) {
    char mount[256], type[32], options[512];
    char *tail = strstr(line, " - ");
    if (!tail || sscanf(line, "%*s %*s %*s %*s %255s", mount) != 1 ||
        sscanf(tail + 3, "%31s %*s %511s", type, options) != 2 || out->n == ARRAY_LEN(out->h))
        return;
    unsigned is = !strcmp(type, "cgroup2") ? HIER_V2 : !strcmp(type, "cgroup") ? bits_of(options) : 0;
    if (!is || hierarchies_with(out, is))
        return;
    struct hierarchy *h = &out->h[out->n++];
    *h = (struct hierarchy){.is = is, .at_root = true};
    snprintf(h->mount, sizeof(h->mount), "%s", mount);
}

/* "4:memory:/a/b" and "0::/a/b" */
static void note_place(struct hierarchies *out, char *line) {
    char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
    if (!path)
        return;
    *path++ = 0;
    names++;
    bool at_root = !strcmp(path, "/") || !strcmp(path, "/\n");
    unsigned is = *names ? bits_of(names) : HIER_V2;
    for (unsigned i = 0; i < out->n; i++) {
        if (out->h[i].is & is)
            out->h[i].at_root = at_root;
    }
}

static void each_line(const char *path, void (*fn)(struct hierarchies *, char *), struct hierarchies *out) {
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, f) > 0)
        fn(out, line);
    free(line);
    fclose(f);
}

void hierarchies_find(struct hierarchies *out) {
    out->n = 0;
    each_line("/proc/self/mountinfo", add_mount, out);
    each_line("/proc/self/cgroup", note_place, out);
}

const struct hierarchy *hierarchies_with(const struct hierarchies *hs, unsigned is) {
    for (unsigned i = 0; i < hs->n; i++) {
        if (hs->h[i].is & is)
            return &hs->h[i];
    }
    return NULL;
}

int group_make(const char *dir) {
    char path[1024];
    if (!mkdir(dir, 0755) || errno == EEXIST)
        return 0;
    if (errno != ENOENT || strlen(dir) >= sizeof(path))
        return -1;
    memcpy(path, dir, strlen(dir) + 1);
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return -1;
    *slash = 0;
    if (group_make(path))
        return -1;
    return !mkdir(dir, 0755) || errno == EEXIST ? 0 : -1;
}

static void walk(const char *dir, unsigned depth, void (*fn)(const char *dir, void *arg), void *arg) {
    DIR *d = depth < MAX_DEPTH ? opendir(dir) : NULL;
    if (!d)
        return;
    for (struct dirent *entry; (entry = readdir(d));) {
        char path[1024];
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= sizeof(path))
            continue;
        walk(path, depth + 1, fn, arg);
    }
    closedir(d);
    fn(dir, arg); /* children first, so that a walk may remove */
}

void group_each(const char *dir, void (*fn)(const char *dir, void *arg), void *arg) {
    walk(dir, 0, fn, arg);
}

static void remove_one(const char *dir, void *arg) {
    (void)arg;
    (void)rmdir(dir);
}

bool group_remove(const char *dir) {
    if (!rmdir(dir) || errno == ENOENT)
        return true;
    group_each(dir, remove_one, NULL);
    return !rmdir(dir) || errno == ENOENT;
}
