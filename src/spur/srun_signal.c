/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/srun.h"

int srun_signals(void) {
    static const int handled[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(handled); i++)
        sigaddset(&set, handled[i]);
    must(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    signal(SIGPIPE, SIG_IGN);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    must(fd >= 0);
    return fd;
}

int srun_signal_next(int fd) {
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}
