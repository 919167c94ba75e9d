/* SPDX-License-Identifier: Apache-2.0
 *
 * What /proc says about processes, and small files read and written whole.
 */
#ifndef SPUR_SPURSTEPD_PROC_H
#define SPUR_SPURSTEPD_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pids {
    pid_t *p;
    size_t n, cap;
};
void pids_fini(struct pids *v);
void pids_add(struct pids *v, pid_t pid);
bool pids_has(const struct pids *v, pid_t pid);

/* All descendants of `root`, without it. Zombies are left out. */
void proc_descendants(pid_t root, struct pids *out);
uint64_t proc_started(pid_t pid); /* ticks after boot; 0: no such process */
/* Processes with the line NAME=value in their environment. */
void proc_marked(const char *line, struct pids *out);
void proc_boot_id(char out[64]);

/* At most n - 1 bytes, NUL-terminated; the length, or -1 with errno. */
ssize_t file_read(const char *path, char *out, size_t n);
/* One write(2). 0 or -1 with errno. */
int file_write(const char *path, const char *text);
int64_t wall_ms(void);
int64_t boot_ms(void);

#endif
