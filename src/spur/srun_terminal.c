/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal of --pty: keys go to the task as they are typed. It is put back at every end of the program that a
 * program can see.
 */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "spur/srun.h"

struct before {
    int fd; /* -1: nothing to put back */
    struct termios was;
};

static struct before *before(void) {
    static struct before b = {.fd = -1};
    return &b;
}

bool srun_terminal_size(int fd, uint32_t *rows, uint32_t *columns) {
    struct winsize w;
    if (ioctl(fd, TIOCGWINSZ, &w))
        return false;
    *rows = w.ws_row;
    *columns = w.ws_col;
    return true;
}

void srun_terminal_raw(int fd) {
    struct before *b = before();
    if (tcgetattr(fd, &b->was))
        return;
    b->fd = fd;
    struct termios raw = b->was;
    cfmakeraw(&raw);
    tcsetattr(fd, TCSADRAIN, &raw);
    atexit(srun_terminal_restore);
}

void srun_terminal_restore(void) {
    struct before *b = before();
    if (b->fd >= 0)
        tcsetattr(b->fd, TCSADRAIN, &b->was);
}
