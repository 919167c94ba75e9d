/* SPDX-License-Identifier: Apache-2.0 */
#include "spur/cli.h"

void cli_defined(const struct cli *c, const struct opt_run *r) {
    cli_say(c, "defined options");
    cli_say(c, "-------------------- --------------------");
    for (size_t i = 0; i < r->table->n; i++) {
        const struct opt_item *it = r->table->row[i].name ? opt_find(r, r->table->row[i].name) : NULL;
        if (!it)
            continue;
        size_t times = 0;
        for (size_t k = 0; k < r->items.n; k++)
            times += r->items.p[k].row == it->row;
        if (it->row->kind == OPT_COUNT)
            cli_say(c, "%-20s: %zu", it->row->name, times);
        else
            cli_say(c, "%-20s: %s", it->row->name, it->value ? it->value : "set");
    }
    cli_say(c, "-------------------- --------------------");
    cli_say(c, "end of defined options");
}
