/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes what is made from the table of configuration keys, and checks that the copy in the tree is up to date:
 *
 *   gen_config_docs docs > docs/configuration.md
 *   gen_config_docs sample > examples/spur.conf
 *   gen_config_docs check docs docs/configuration.md      (0, or 1 with what to do)
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/config.h"

static int usage(void) {
    fprintf(stderr, "usage: gen_config_docs [check] docs|sample [FILE]\n");
    return 2;
}

static int make(const char *what, struct str *out) {
    if (strcmp(what, "docs") == 0)
        conf_docs(out);
    else if (strcmp(what, "sample") == 0)
        conf_sample(out);
    else
        return usage();
    return 0;
}

static int check(const char *what, const char *path) {
    auto_str want = {0}, have = {0};
    char block[4096];
    int rc = make(what, &want);
    if (rc)
        return rc;
    FILE *f = fopen(path, "re");
    for (size_t n; f && (n = fread(block, 1, sizeof(block), f)) > 0;)
        str_addn(&have, block, n);
    if (f)
        fclose(f);
    if (str_eq(str_text(&want), str_text(&have)))
        return 0;
    fprintf(stderr, "%s is not what the table says. Write it again: gen_config_docs %s > %s\n", path, what, path);
    return 1;
}

int main(int argc, char **argv) {
    auto_str out = {0};
    if (argc == 4 && strcmp(argv[1], "check") == 0)
        return check(argv[2], argv[3]);
    if (argc != 2)
        return usage();
    int rc = make(argv[1], &out);
    if (!rc)
        fputs(str_text(&out), stdout);
    return rc;
}
