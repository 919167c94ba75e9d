/* SPDX-License-Identifier: Apache-2.0
 *
 * spur restore: what `spur backup` wrote becomes the state directory of a controller, on the machine on which it is to run.
 */
#include "base/mem.h"
#include "spur/command.h"
#include "spur/daemon.h"

struct restore {
    const char *state_dir, *config;
    bool check;
};

#define AT(field) offsetof(struct restore, field)
static const struct opt_row rows[] = {
    {"check", 'c', NULL, OPT_BOOL, 0, AT(check), NULL, NULL, "only read the file to its end, and say what is in it"},
    {"config", 'f', "file", OPT_TEXT, 0, AT(config), NULL, NULL, "the controller's configuration (/etc/spur/spur.conf)"},
    OPT_ROW_HELP,
    {"state-dir", 's', "dir", OPT_TEXT, 0, AT(state_dir), NULL, NULL, "where to: missing or empty (as the configuration says)"},
    OPT_ROW_USAGE,
    OPT_ROW_VERSION,
};

const struct opt_table *cmd_restore_options(void) {
    static const struct opt_table t = {
        .usage = "[--check] [--state-dir=DIR] [--config=FILE] FILE",
        .brief = "[-c] [-s dir] [-f file] file",
        .row = rows,
        .n = ARRAY_LEN(rows),
        .usage_exit = 1,
        .note = "No controller of the cluster may run. Of several, restore one and start it, then start the others with empty\n"
                "directories: they get everything from it. What came after the backup is gone, and its job ids are given again.\n"};
    return &t;
}

static int run(struct cli *c, const struct restore *o, const char *const *word, size_t n) {
    if (n != 1) {
        cli_error(c, n ? "one file only" : "say which file to read");
        return 1;
    }
    return daemon_run(c, o->check ? "check-backup" : "restore", word[0], o->state_dir, o->config);
}

int cmd_restore(struct cli *c) {
    struct restore o = {0};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_restore_options(), &o, &r, true, &exit_code))
        exit_code = run(c, &o, r.words.p, r.words.n);
    opt_fini(&r);
    return exit_code;
}
