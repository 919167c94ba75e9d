/* SPDX-License-Identifier: Apache-2.0
 *
 * spur.conf: TOML to a configuration, or to problems with their lines.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "core/model/config.h"
#include "io/toml/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    auto_arena a = {0};
    auto_str problems = {0}, text = {0};
    struct tree *root;
    struct conf c;
    struct err e = {0};
    if (toml_parse((const char *)data, size, &a, &root, &e)) {
        must(*e.text);
        return 0;
    }
    if (conf_read(root, &a, &c, &problems, &e)) {
        must(problems.n > 0 && str_starts(e.text, "line "));
        return 0;
    }
    must(c.rep.n_parts > 0);
    conf_rep_text(&c.rep, &text);
    conf_show(&c, NULL, &text);
    return 0;
}
