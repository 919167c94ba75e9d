/* SPDX-License-Identifier: Apache-2.0
 *
 * spurd, the node agent.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/cred/cred.h"
#include "spurd/agent.h"

static void dump(const char *text) {
    (void)text;
    log_dump_recorder(2);
}

static int fail(const struct err *e) {
    fprintf(stderr, "spurd: error: %s\n", e->text);
    return 1;
}

static int set_up_log(const struct options *o, struct err *e) {
    enum log_level level = LOG_LEVEL_INFO;
    if (o->log_level)
        (void)log_level_parse(o->log_level, &level);
    return log_init("spurd", level, str_eq(o->log_format, "json"), o->log_file, e);
}

int main(int argc, char **argv) {
    auto_arena arena = {0};
    struct options o;
    struct err e;
    uint64_t seed[2];
    enum options_do what = options_read(argc, argv, &o);
    if (what != OPTIONS_RUN)
        return what == OPTIONS_WRONG ? 2 : 0;
    if (options_read_config(&o, &arena, &e) || set_up_log(&o, &e) || cred_init(&e))
        return fail(&e);
    cred_random(seed, sizeof(seed));
    hash_seed(seed[0], seed[1]);
    must_on_failure(dump);
    if (o.test_faults)
        fault_enable(getenv("SPUR_FAULT"));
    int code = agent_run(&o, &e);
    if (code) {
        log_error("%s", e.text);
        return fail(&e);
    }
    return 0;
}
