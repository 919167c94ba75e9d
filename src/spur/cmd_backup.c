/* SPDX-License-Identifier: Apache-2.0
 *
 * spur backup: state, history, scripts and environments of the cluster, of one moment, into one file. From the
 * controllers while they run; from the directory of one that is stopped by spurctld itself, since only that knows what is
 * in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/backup.h"
#include "spur/command.h"
#include "spur/daemon.h"

struct backup {
    const char *state_dir, *config;
};

#define AT(field) offsetof(struct backup, field)
static const struct opt_row rows[] = {
    {"config", 'f', "file", OPT_TEXT, 0, AT(config), NULL, NULL, "with --state-dir: the configuration (/etc/spur/spur.conf)"},
    OPT_ROW_HELP,
    {"state-dir", 's', "dir", OPT_TEXT, 0, AT(state_dir), NULL, NULL, "of a controller that is stopped, instead of asking those that run"},
    OPT_ROW_USAGE,
    OPT_ROW_VERSION,
};

const struct opt_table *cmd_backup_options(void) {
    static const struct opt_table t = {
        .usage = "[--state-dir=DIR] FILE",
        .brief = "[-s dir [-f file]] file",
        .row = rows,
        .n = ARRAY_LEN(rows),
        .usage_exit = 1,
        .note = "For administrators. Everything goes on meanwhile. The file holds the cluster's own keys and everybody's scripts: keep\n"
                "it as safe as the state directory. The keys that spur.conf names are not in it. A file of that name is replaced\n"
                "once the new one is whole.\n"};
    return &t;
}

static int put_in_place(const char *part, const char *path, int fd, struct err *e) {
    autofree char *copy = xstrdup(path);
    if (fsync(fd) < 0 || rename(part, path) < 0)
        return err_sys(e, "write %s", path);
    autoclose int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 || fsync(dir) < 0 ? err_sys(e, "sync the directory of %s", path) : 0;
}

static int fetch(struct cli *c, const char *path, struct spur_backup *out, struct err *e) {
    autofree char *part = xasprintf("%s.part", path);
    autoclose int fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "make %s", part);
    int rc = c->client ? 0 : spur_open(NULL, &c->client, e);
    if (!rc)
        rc = spur_backup(c->client, fd, &c->arena, out, e);
    if (!rc)
        rc = put_in_place(part, path, fd, e);
    if (rc)
        unlink(part);
    return rc;
}

static int from_controllers(struct cli *c, const char *path) {
    struct spur_backup b = {0};
    struct err e = {0};
    auto_str out = {0};
    if (fetch(c, path, &b, &e)) {
        cli_error(c, "%s", e.text);
        return 1;
    }
    str_addf(&out, "%s: cluster %s at entry %llu, %llu scripts and environments, %llu bytes\n", path,
             b.head.cluster_name ? b.head.cluster_name : "", (unsigned long long)b.head.index, (unsigned long long)b.end.blobs,
             (unsigned long long)b.bytes);
    if (b.end.missing)
        str_addf(&out, "%llu scripts or environments are on no controller and are not in it\n", (unsigned long long)b.end.missing);
    cli_out(&out);
    return 0;
}

static int run(struct cli *c, const struct backup *b, const char *const *word, size_t n) {
    if (n != 1)
        cli_error(c, n ? "one file only" : "say which file to write");
    else if (b->config && !b->state_dir)
        cli_error(c, "--config is for --state-dir");
    else if (b->state_dir)
        return daemon_run(c, "backup", word[0], b->state_dir, b->config);
    else
        return from_controllers(c, word[0]);
    return 1;
}

int cmd_backup(struct cli *c) {
    struct backup b = {0};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_backup_options(), &b, &r, true, &exit_code))
        exit_code = run(c, &b, r.words.p, r.words.n);
    opt_fini(&r);
    return exit_code;
}
