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

static struct termios *before(bool *is_raw) {
    static struct termios saved;
    static bool raw;
    if (is_raw)
        raw = *is_raw;
    return raw || is_raw ? &saved : NULL;
}

bool srun_terminal_size(uint32_t *rows, uint32_t *columns) {
    struct winsize w;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &w))
        return false;
    *rows = w.ws_row;
    *columns = w.ws_col;
    return true;
}

void srun_terminal_raw(void) {
    struct termios now, raw;
    bool yes = true;
    if (tcgetattr(STDIN_FILENO, &now))
        return;
    *before(&yes) = now;
    raw = now;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    atexit(srun_terminal_restore);
}

void srun_terminal_restore(void) {
    struct termios *saved = before(NULL);
    if (saved)
        tcsetattr(STDIN_FILENO, TCSADRAIN, saved);
}
