/* SPDX-License-Identifier: Apache-2.0
 *
 * spur import slurm: a site's slurm.conf becomes a spur.conf. What can't be carried over is told on stderr, line by line.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/import.h"

#define FILE_MAX (16u << 20)

struct options {
    const char *conf, *output;
    bool agents, quiet;
};

#define AT(field) offsetof(struct options, field)
static const struct opt_row rows[] = {
    {"agents", 0, NULL, OPT_BOOL, 0, AT(agents), NULL, NULL, "print the command line of each node's agent instead"},
    {"conf", 0, "file", OPT_TEXT, 0, AT(conf), NULL, NULL, "slurm.conf (default: SLURM_CONF, else /etc/slurm/slurm.conf)"},
    OPT_ROW_HELP,
    {"output", 'o', "file", OPT_TEXT, 0, AT(output), NULL, NULL, "write there, not to the output"},
    {"quiet", 'q', NULL, OPT_BOOL, 0, AT(quiet), NULL, NULL, "don't tell what could not be carried over"},
    OPT_ROW_USAGE,
};

const struct opt_table *cmd_import_options(void) {
    static const struct opt_table t = {.usage = "slurm [OPTIONS]",
                                       .brief = "slurm [-q] [--conf FILE] [-o FILE] [--agents]",
                                       .row = rows,
                                       .n = ARRAY_LEN(rows),
                                       .usage_exit = 1,
                                       .note = "Reads slurm.conf with what it includes, and gres.conf beside it.\n"
                                               "Exit code 0, also where lines could not be carried over."};
    return &t;
}

static const char *read_file(struct arena *a, const char *path, size_t *out_n) {
    FILE *f = fopen(path, "re");
    auto_str text = {0};
    char chunk[8192];
    size_t n;
    if (!f)
        return NULL;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0 && text.n < FILE_MAX)
        str_addn(&text, chunk, n);
    bool failed = ferror(f);
    fclose(f);
    *out_n = text.n;
    return failed ? NULL : arena_strndup(a, str_text(&text), text.n);
}

/* Names without a path are beside slurm.conf. */
static const char *beside(struct import *im, const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    return *name == '/' || !slash ? name : arena_printf(im->arena, "%.*s%s", (int)(slash + 1 - path), path, name);
}

static const char *read_included(void *ctx, const char *from, const char *name, size_t *out_n) {
    struct import *im = ctx;
    return read_file(im->arena, beside(im, from, name), out_n);
}

static int put(struct cli *c, const char *path, const struct str *text) {
    FILE *f = path ? fopen(path, "we") : stdout;
    if (!f || fwrite(str_text(text), 1, text->n, f) != text->n || (path && fclose(f))) {
        cli_error(c, "can't write %s: %s", path ? path : "the output", strerror(errno));
        return 1;
    }
    return 0;
}

static int import(struct cli *c, const struct options *o) {
    struct import im;
    size_t n = 0;
    const char *env = cli_env("SLURM_CONF"), *path = o->conf ? o->conf : env && *env ? env : "/etc/slurm/slurm.conf";
    import_init(&im, &c->arena);
    im.read = read_included;
    im.ctx = &im;
    const char *text = read_file(&c->arena, path, &n);
    if (!text) {
        cli_error(c, "can't read %s: %s", path, strerror(errno));
        return 1;
    }
    import_text(&im, path, text, n, false, 0);
    const char *gres_path = beside(&im, path, "gres.conf"), *gres = read_file(&c->arena, gres_path, &n);
    if (gres)
        import_text(&im, gres_path, gres, n, true, 0);
    for (int i = 0; i < 2; i++) {
        const char *topology = beside(&im, path, i ? "topology.yaml" : "topology.conf");
        if (read_file(&c->arena, topology, &n))
            str_addf(&im.notes, "%s: not carried over: topology is not supported yet\n", topology);
    }
    import_slurm(&im);
    if (!o->quiet)
        fputs(str_text(&im.notes), stderr);
    int rc = put(c, o->output, o->agents ? &im.agents : &im.conf);
    import_fini(&im);
    return rc;
}

int cmd_import(struct cli *c) {
    struct options o = {0};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_import_options(), &o, &r, true, &exit_code)) {
        if (r.words.n == 1 && str_eq(r.words.p[0], "slurm"))
            exit_code = import(c, &o);
        else
            cli_error(c, "whose configuration? `spur import slurm`");
    }
    opt_fini(&r);
    return exit_code;
}
