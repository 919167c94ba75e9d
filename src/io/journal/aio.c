/* SPDX-License-Identifier: Apache-2.0
 *
 * libraft ends the kernel's context for a segment's writes (io_destroy) on the loop, and the kernel answers only when all processors have
 * taken notice: 20 to 45 ms in which the loop is deaf, for each 8 MiB of log and at each snapshot. Nothing depends on the end of it: all writes
 * are through by then. libraft offers no way in between, but it calls the kernel by the C library's syscall(), which a program may
 * have of its own. Ours hands this one call to a thread, where the journal's own thread makes it, and is the C library's for all else.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/journal/inside.h"

typedef long (*syscall_fn)(long number, ...);

static _Thread_local bool destroys_elsewhere;
static syscall_fn of_libc;

static void find_libc(void) {
    of_libc = (syscall_fn)dlsym(RTLD_NEXT, "syscall");
    must(of_libc);
}

static long pass_on(long number, const long *a) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_libc);
    return of_libc(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void *destroy(void *context) {
    pass_on(SYS_io_destroy, (long[6]){(long)context});
    return NULL;
}

static bool destroy_elsewhere(long context) {
    pthread_attr_t detached;
    pthread_t thread;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &detached, destroy, (void *)context);
    pthread_attr_destroy(&detached);
    return rc == 0;
}

/* Takes what the kernel can take, like the C library's: its callers give fewer. */
long syscall(long number, ...) {
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (unsigned i = 0; i < ARRAY_LEN(a); i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_io_destroy && destroys_elsewhere && destroy_elsewhere(a[0]))
        return 0;
    return pass_on(number, a);
}

void aio_destroy_elsewhere(void) {
    destroys_elsewhere = true;
}
