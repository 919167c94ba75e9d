/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol show: the configuration, licences, reservations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/job_facts.h"
#include "spur/scontrol.h"
#include "spur/version.h"

static int load_config(struct scontrol *s, const char *what, struct config_reply *reply) {
    struct nothing request = {0};
    struct err e = {0};
    int rc = cli_call(s->c, WIRE_Controller_Config, &request, reply, &e);
    if (rc)
        fprintf(stderr, "%s error: %s\n", what, e.text);
    return rc;
}

/* ---- config ---- */

static int by_text(const void *a, const void *b) {
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

/* Rows of the controller, and two that it alone can't know how to print. */
int scontrol_show_config(struct scontrol *s, const char *name) {
    struct config_reply reply = {0};
    auto_str out = {0}, boot = {0};
    uint32_t n;
    if (s->json) {
        cli_error(s->c, "show config has no --json (nor has Slurm's)");
        return 1;
    }
    if (load_config(s, "slurm_load_ctl_conf", &reply))
        return 1;
    cli_time(reply.boot_unix, "Unknown", &boot);
    autofree char *text = xasprintf("%s%-23s = %s\n%-23s = %s\n", reply.text ? reply.text : "", "BOOT_TIME", str_text(&boot), "SLURM_VERSION",
                           SLURM_MAJOR "." SLURM_MINOR "." SLURM_MICRO);
    const char *const *line = cli_words(s->c, text, "\n", &n);
    const char **sorted = arena_memdup(&s->c->arena, line, (n + 1) * sizeof(*line));
    qsort(sorted, n, sizeof(*sorted), by_text);
    str_add(&out, "Configuration data as of ");
    cli_time(reply.now_unix, "Unknown", &out);
    str_addc(&out, '\n');
    for (uint32_t i = 0; i < n; i++)
        str_addf(&out, "%s\n", sorted[i]);
    str_addf(&out, "\nSlurmctld(primary) at %s is UP\n", reply.hostname ? reply.hostname : "?");
    cli_out(&out);
    return 0;
}

/* ---- daemons ---- */

/* Slurm's names of those that belong on this host. */
int scontrol_show_daemons(struct scontrol *s, const char *name) {
    struct nothing request = {0};
    struct ping_reply ping = {0};
    struct nodes_reply nodes = {0};
    struct err e = {0};
    char host[256] = "";
    bool is_node = false;
    if (cli_call(s->c, WIRE_Controller_Ping, &request, &ping, &e) || cli_call(s->c, WIRE_Controller_Nodes, &request, &nodes, &e)) {
        fprintf(stderr, "slurm_load_ctl_conf error: %s\n", e.text);
        return 1;
    }
    gethostname(host, sizeof(host) - 1);
    for (uint32_t i = 0; i < nodes.n_nodes; i++)
        is_node |= str_eq(nodes.nodes[i].node->hostname, host);
    printf("%s%s\n", str_eq(ping.hostname, host) ? "slurmctld " : "", is_node ? "slurmd" : "");
    return 0;
}

/* ---- licences ---- */

static uint32_t count_in(const struct license_ask *list, uint32_t n, const char *name) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (str_eq(list[i].name, name))
            sum += list[i].count;
    return sum;
}

/* What the jobs that hold nodes have of it. */
static uint32_t used(const struct jobs_reply *jobs, const char *name) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < jobs->n_jobs; i++) {
        const struct job *j = jobs->jobs[i].job;
        if (!j || !job_holds_nodes(j))
            continue;
        const struct job_rare *rare = job_rare_of(j);
        const struct job_more *m = job_spec_more(j->spec);
        sum += rare->n_licenses ? count_in(rare->licenses, rare->n_licenses, name) : count_in(m->licenses, m->n_licenses, name);
    }
    return sum;
}

static void license_text(const struct license *l, uint32_t in_use, bool one_line, struct str *out) {
    str_addf(out, "LicenseName=%s%sTotal=%u Used=%u Free=%u Reserved=0 Remote=no\n", l->name, one_line ? " " : "\n    ",
             l->count, in_use, l->count > in_use ? l->count - in_use : 0);
}

static void license_json(struct json *w, const struct license *l, uint32_t in_use) {
    json_open(w, NULL, '{');
    json_text(w, "LicenseName", l->name);
    json_number(w, "Total", l->count);
    json_number(w, "Used", in_use);
    json_number(w, "Free", l->count > in_use ? l->count - in_use : 0);
    json_flag(w, "Remote", false);
    json_number(w, "Reserved", 0);
    json_number(w, "LastConsumed", 0);
    json_number(w, "LastDeficit", 0);
    json_number(w, "LastUpdate", 0);
    json_text(w, "Nodes", "");
    json_close(w, '}');
}

static int by_license(const void *a, const void *b) {
    return strcmp(((const struct license *)a)->name, ((const struct license *)b)->name);
}

int scontrol_show_licenses(struct scontrol *s, const char *name) {
    struct config_reply reply = {0};
    struct jobs_reply jobs = {0};
    struct jobs_request request = {0};
    struct err e = {0};
    auto_str out = {0};
    struct json w = {.out = &out};
    bool is_all = !name || !*name;
    uint32_t n = 0;
    if (load_config(s, "slurm_load_licenses", &reply))
        return 1;
    if (reply.n_licenses && cli_call(s->c, WIRE_Controller_Jobs, &request, &jobs, &e)) {
        fprintf(stderr, "slurm_load_licenses error: %s\n", e.text);
        return 1;
    }
    struct license *list = arena_memdup(&s->c->arena, reply.licenses, reply.n_licenses * sizeof(*list));
    if (reply.n_licenses)
        qsort(list, reply.n_licenses, sizeof(*list), by_license);
    if (s->json) {
        json_doc_begin(&w);
        json_open(&w, "licenses", '[');
    }
    for (uint32_t i = 0; i < reply.n_licenses; i++) {
        if (!is_all && !str_eq(list[i].name, name))
            continue;
        n++;
        if (s->json)
            license_json(&w, &list[i], used(&jobs, list[i].name));
        else
            license_text(&list[i], used(&jobs, list[i].name), s->one_line, &out);
    }
    if (s->json) {
        json_close(&w, ']');
        json_no_val(&w, "last_update", reply.now_unix);
        json_doc_end(&w, s->c, NULL);
    } else {
        cli_out(&out);
    }
    if (is_all && !n && !s->json)
        puts("No licenses configured in Slurm.");
    if (is_all || n)
        return 0;
    cli_error(s->c, "query \"%s\" matched zero licenses.", name);
    return 1;
}

/* ---- reservations: there are none yet ---- */

int scontrol_show_reservations(struct scontrol *s, const char *name) {
    auto_str out = {0};
    struct json w = {.out = &out};
    if (s->json) {
        json_doc_begin(&w);
        json_empty(&w, "reservations", "[]");
        json_no_val(&w, "last_update", 0);
        json_doc_end(&w, s->c, NULL);
        return 0;
    }
    if (name && *name) {
        printf("Reservation %s not found\n", name);
        return 1;
    }
    puts("No reservations in the system");
    return 0;
}
