/* SPDX-License-Identifier: Apache-2.0
 *
 * The login shell is asked for its environment between two marks, for profiles print what they like:
 *
 *     SHELL -l -c "echo MARK; env -0; echo MARK"   →   …\nMARK\nA=1\0B=2\0MARK\n
 *
 * It has some time for that, and what it leaves running is ended.
 */
#include "spurstepd/login.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define MARK "spur-login-environment"
#define LOGIN_MS 30000
#define LOGIN_BYTES (4u << 20)

static const char *value_of(char *const *env, const char *name) {
    size_t n = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env;
    return NULL;
}

/* Does not return. */
static void be_shell(const char *shell, char *const *env, int out) {
    static const char *const names[] = {"HOME", "USER", "LOGNAME", "SHELL", "PATH"};
    const char *few[ARRAY_LEN(names) + 1] = {0}, *slash = strrchr(shell, '/');
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (value_of(env, names[i]))
            few[n++] = value_of(env, names[i]);
    char *argv0 = xasprintf("-%s", slash ? slash + 1 : shell);
    bool is_csh = strlen(argv0) > 3 && str_eq(argv0 + strlen(argv0) - 3, "csh"); /* takes -l by itself only */
    const char *what = "echo " MARK "; env -0; echo " MARK;
    const char *const long_argv[] = {argv0, "-l", "-c", what, NULL}, *const short_argv[] = {argv0, "-c", what, NULL};
    int null = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    dup2(null, 0);
    dup2(out, 1);
    dup2(null, 2);
    (void)syscall(SYS_close_range, 3, ~0u, 0);
    execve(shell, (char *const *)(is_csh ? short_argv : long_argv), (char *const *)few);
    _exit(127);
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Where the entries end; NULL: not yet. */
static const uint8_t *end_of(const struct buf *b) {
    static const char end[] = MARK "\n";
    size_t n = sizeof(end) - 1;
    if (b->n < n + 1 || memcmp(b->p + b->n - n, end, n) != 0 || b->p[b->n - n - 1] != '\0')
        return NULL;
    return b->p + b->n - n;
}

static void read_all(int fd, struct buf *out) {
    int64_t until = now_ms() + LOGIN_MS;
    uint8_t bytes[65536];
    while (!end_of(out) && out->n < LOGIN_BYTES) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = until - now_ms();
        if (left <= 0 || (poll(&p, 1, (int)left) < 0 && errno != EINTR))
            return;
        ssize_t n = p.revents ? read(fd, bytes, sizeof(bytes)) : -1;
        if (n == 0 || (n < 0 && p.revents && errno != EINTR))
            return;
        if (n > 0)
            buf_add(out, bytes, (size_t)n);
    }
}

static bool comes_along(const char *entry, char *const *env) {
    static const char *const shells_own[] = {"_=", "SHLVL=", "PWD=", "OLDPWD=", "SLURM_", "SPUR_"};
    const char *equals = strchr(entry, '=');
    for (size_t i = 0; i < ARRAY_LEN(shells_own); i++)
        if (str_starts(entry, shells_own[i]))
            return false;
    if (!equals || equals == entry)
        return false;
    autofree char *name = xstrndup(entry, (size_t)(equals - entry));
    return !value_of(env, name);
}

/* What was set before goes before it. */
static char **with(char **env, const uint8_t *at, const uint8_t *end, bool *found) {
    size_t n = 0, more = 0;
    while (env[n])
        n++;
    for (const uint8_t *p = at; p < end; p += strlen((const char *)p) + 1)
        more++;
    char **out = xcalloc(n + more + 2, sizeof(*out));
    memcpy(out, env, n * sizeof(*out));
    for (const uint8_t *p = at; p < end; p += strlen((const char *)p) + 1) {
        if (comes_along((const char *)p, out))
            out[n++] = xstrdup((const char *)p);
    }
    *found = true;
    return out;
}

static char **with_path(char **env) {
    static const uint8_t path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    bool found;
    return value_of(env, "PATH") ? env : with(env, path, path + sizeof(path), &found);
}

char **login_environment(const char *shell, char **env, bool *out_found) {
    int ends[2];
    auto_buf said = {0};
    *out_found = false;
    if (pipe2(ends, O_CLOEXEC))
        return with_path(env);
    pid_t pid = fork();
    if (pid == 0)
        be_shell(shell, env, ends[1]);
    close(ends[1]);
    if (pid > 0) {
        setpgid(pid, pid);
        read_all(ends[0], &said);
        kill(-pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    close(ends[0]);
    const uint8_t *end = end_of(&said);
    static const char begin[] = MARK "\n";
    const uint8_t *at = end ? memmem(said.p, said.n, begin, sizeof(begin) - 1) : NULL;
    if (at && at < end)
        env = with(env, at + sizeof(begin) - 1, end, out_found);
    return with_path(env);
}
