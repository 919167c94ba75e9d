/* SPDX-License-Identifier: Apache-2.0
 *
 * A job's second id (`s` and 13 characters, a new one each time it is queued again) where a job's number may stand. The
 * controller is asked which job has it, the history when none has it any more.
 */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "spur/cli.h"

#define SLUID_LENGTH 14u

bool cli_is_sluid(const char *text) {
    size_t n = *text == 's' ? strspn(text + 1, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") + 1 : 0;
    return n == SLUID_LENGTH && !isalnum((unsigned char)text[n]);
}

static uint32_t find(struct cli *c, const char *sluid) {
    struct err e = {0};
    struct jobs_reply jobs = {0};
    struct history_reply old = {0};
    struct jobs_request request = {.sluids = &sluid, .n_sluids = 1, .with_ended = true, .show_hidden = true};
    struct history_request past = {.sluids = &sluid, .n_sluids = 1, .all_users = true, .duplicates = true};
    if (cli_call(c, WIRE_Controller_Jobs, &request, &jobs, &e))
        return 0;
    if (jobs.n_jobs && jobs.jobs[0].job)
        return jobs.jobs[0].job->id;
    if (cli_call(c, WIRE_Controller_History, &past, &old, &e) || !old.n_jobs || !old.jobs[0].job)
        return 0;
    return old.jobs[0].job->id;
}

const char *cli_sluids(struct cli *c, const char *text) {
    auto_str out = {0};
    bool any = false;
    for (size_t i = 0; text && text[i];) {
        bool begins = !i || !isalnum((unsigned char)text[i - 1]);
        uint32_t id = begins && cli_is_sluid(text + i) ? find(c, arena_strndup(&c->arena, text + i, SLUID_LENGTH)) : 0;
        if (id) {
            str_addf(&out, "%u", id);
            i += SLUID_LENGTH;
            any = true;
        } else {
            str_addc(&out, text[i++]);
        }
    }
    return any ? arena_strdup(&c->arena, out.p) : text;
}
