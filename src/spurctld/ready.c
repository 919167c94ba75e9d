/* SPDX-License-Identifier: Apache-2.0 */
#include "spurctld/ready.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

int ready_write(const char *path, const char *text, struct err *e) {
    autofree char *tmp = xasprintf("%s.tmp", path);
    autoclose int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(e, "make %s", tmp);
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return err_sys(e, "write %s", tmp);
    if (rename(tmp, path) < 0)
        return err_sys(e, "rename %s", tmp);
    return 0;
}
