/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns of what few jobs ask for (job_seldom): a star or N/A where nothing is.
 */
#include "base/mem.h"
#include "core/model/text.h"
#include "spur/job_facts.h"
#include "spur/job_text.h"

#define SELDOM(row) job_spec_seldom(((const struct job_info *)(row))->job->spec)
#define FIELD(fn) void job_text_##fn(const void *row, const void *env, struct str *out)

static void count(uint32_t n, const char *none, struct str *out) {
    if (n)
        str_addf(out, "%u", n);
    else
        str_add(out, none);
}

FIELD(cores) {
    count(SELDOM(row)->cores, "*", out);
}

FIELD(sockets) {
    count(SELDOM(row)->sockets, "*", out);
}

FIELD(threads) {
    count(SELDOM(row)->threads, "*", out);
}

FIELD(sct) {
    count(SELDOM(row)->sockets, "*", out);
    str_addc(out, ':');
    count(SELDOM(row)->cores, "*", out);
    str_addc(out, ':');
    count(SELDOM(row)->threads, "*", out);
}

FIELD(tasks_per_core) {
    count(SELDOM(row)->tasks_per_core, "N/A", out);
}

FIELD(tasks_per_socket) {
    count(SELDOM(row)->tasks_per_socket, "N/A", out);
}

FIELD(tmp_disk) {
    size_mb_print(SELDOM(row)->tmp_mb, out);
}

FIELD(wckey) {
    str_add(out, SELDOM(row)->wckey ? SELDOM(row)->wckey : "(null)");
}

FIELD(extra) {
    str_add(out, SELDOM(row)->extra ? SELDOM(row)->extra : "");
}

/* Whose job it is, where mail was asked for and nobody named. */
FIELD(mail_user) {
    const struct job_spec *s = ((const struct job_info *)row)->job->spec;
    const char *user = SELDOM(row)->mail_user;
    if (user || SELDOM(row)->mail_type)
        str_add(out, user ? user : s->user ? s->user : "");
}

FIELD(cpus_per_tres) {
    if (SELDOM(row)->cpus_per_gpu)
        str_addf(out, "gres/gpu:%u", SELDOM(row)->cpus_per_gpu);
    else
        str_add(out, "N/A");
}

FIELD(mem_per_tres) {
    if (SELDOM(row)->mem_gpu_mb)
        str_addf(out, "gres/gpu:%llu", (unsigned long long)SELDOM(row)->mem_gpu_mb);
    else
        str_add(out, "N/A");
}

FIELD(delay_boot) {
    duration_print(SELDOM(row)->delay_boot_secs, out);
}

FIELD(switches) {
    count(SELDOM(row)->switches, "0", out);
}

FIELD(switches_wait) {
    duration_print(SELDOM(row)->switches_secs, out);
}
