/* SPDX-License-Identifier: Apache-2.0 */
#include "libspur/bearer.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define TOKEN_FILE_MAX 8192

/* A token is printable and has no blank: what could end its header line is refused, and never printed. */
static int add(const char *token, const char *where, struct str *metadata, struct err *e) {
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return err_set(e, E_BAD_PROOF, "%s holds no token", where);
    str_addf(metadata, "authorization: Bearer %s\n", token);
    return 0;
}

static char *file_path(void) {
    const char *home = getenv("HOME");
    struct passwd *pw = home && *home ? NULL : getpwuid(geteuid());
    if (pw)
        home = pw->pw_dir;
    return home && *home == '/' ? xasprintf("%s/.spur/token", home) : NULL;
}

/* The file's text without its line's end; false: there is none, or it is not the user's alone. */
static bool read_own(const char *path, char out[TOKEN_FILE_MAX + 1]) {
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) ||
        st.st_size > TOKEN_FILE_MAX)
        return false;
    ssize_t n = read(fd, out, TOKEN_FILE_MAX);
    if (n <= 0)
        return false;
    while (n && strchr(" \t\r\n", out[n - 1]))
        n--;
    out[n] = 0;
    return n > 0;
}

int bearer_add(struct str *metadata, bool has_tcp, bool *out_has_token, struct err *e) {
    static const char *const names[] = {"SPUR_JWT", "SLURM_JWT", "SPUR_AUTH_TOKEN"};
    *out_has_token = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *token = getenv(names[i]);
        if (!token || !*token)
            continue;
        *out_has_token = true;
        return add(token, names[i], metadata, e);
    }
    autofree char *path = has_tcp ? file_path() : NULL;
    char text[TOKEN_FILE_MAX + 1];
    if (!path || !read_own(path, text))
        return 0;
    *out_has_token = true;
    return add(text, path, metadata, e);
}
