/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol's keywords for the controller itself, and small ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "spur/controllers.h"
#include "spur/scontrol.h"

/* What only administrators may is an "invalid user id" in Slurm's words. */
const char *scontrol_denied(int code, const struct err *e) {
    return code == E_DENIED ? err_sentence(E_USER) : e->text;
}

/* ---- ping ---- */

/* Slurm's first controller is its primary; here it is the one that leads. */
static bool is_primary(const struct controllers_seen *seen, size_t i) {
    return seen->is_answered && seen->n > 1 ? seen->at[i].id == seen->leader_id : i == 0;
}

static const char *ping_host(const struct controllers_seen *seen, size_t i) {
    return seen->n == 1 && seen->is_answered ? seen->hostname : seen->at[i].host;
}

static void ping_json(struct scontrol *s, const struct controllers_seen *seen) {
    auto_str out = {0};
    struct json w = {.out = &out};
    json_doc_begin(&w);
    json_open(&w, "pings", '[');
    for (size_t i = 0; i < seen->n; i++) {
        const struct controller_seen *k = &seen->at[i];
        json_open(&w, NULL, '{');
        json_text(&w, "hostname", ping_host(seen, i));
        json_flag(&w, "responding", k->is_up);
        json_number(&w, "latency", (int64_t)k->latency_us);
        json_flag(&w, "primary", is_primary(seen, i));
        json_text(&w, "status", k->is_up ? "No error" : err_sentence(E_UNREACHABLE));
        if (seen->n > 1) {
            json_number(&w, "id", k->id);
            json_text(&w, "role", k->role);
            json_number(&w, "term", (int64_t)k->term);
            json_number(&w, "index", (int64_t)k->index);
        }
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_doc_end(&w, s->c, seen->cluster);
}

static void ping_lines(const struct controllers_seen *seen) {
    unsigned backup = 0;
    for (size_t i = 0; i < seen->n; i++) {
        char mode[16] = "primary";
        if (!is_primary(seen, i))
            snprintf(mode, sizeof(mode), seen->n == 2 ? "backup" : "backup%u", ++backup);
        printf("Slurmctld(%s) at %s is %s\n", mode, ping_host(seen, i), seen->at[i].is_up ? "UP" : "DOWN");
    }
    for (size_t i = 0; i < seen->n && seen->n > 1 && seen->is_answered; i++) {
        const struct controller_seen *k = &seen->at[i];
        printf("controller %u (%s): %s, term %llu, index %llu\n", k->id, k->address, *k->role ? k->role : "not there",
               (unsigned long long)k->term, (unsigned long long)k->index);
    }
}

int scontrol_ping(struct scontrol *s) {
    struct controllers_seen seen;
    struct err e = {0};
    if (controllers_see(s->c, &seen, &e)) {
        cli_error(s->c, "%s", e.text);
        return 1;
    }
    if (s->json)
        ping_json(s, &seen);
    else
        ping_lines(&seen);
    return seen.is_answered && (seen.leader_id || seen.n == 1) ? 0 : 1;
}

/* ---- token, reconfigure, setdebug ---- */

int scontrol_token(struct scontrol *s) {
    struct token_request request = {0};
    struct token_reply reply = {0};
    struct err e = {0};
    for (size_t i = 0; i < s->n; i++) {
        const char *w = s->word[i];
        uint64_t secs;
        if (strncasecmp(w, "username=", 9) == 0) {
            request.user = w + 9;
        } else if (strncasecmp(w, "lifespan=", 9) == 0) {
            if (strcasecmp(w + 9, "infinite") == 0)
                secs = UINT32_MAX;
            else if (str_to_u64(w + 9, UINT32_MAX - 1, &secs) || !secs) {
                cli_error(s->c, "Invalid lifespan specification: %s", w + 9);
                return 1;
            }
            request.lifespan_secs = (uint32_t)secs;
        } else {
            cli_error(s->c, "Invalid token argument: %s (lifespan=SECS, username=NAME)", w);
            return 1;
        }
    }
    int rc = cli_call(s->c, WIRE_Controller_Token, &request, &reply, &e);
    if (rc) {
        cli_error(s->c, "slurm_fetch_token: error with request: %s", scontrol_denied(rc, &e));
        return 1;
    }
    printf("SLURM_JWT=%s\n", reply.jwt ? reply.jwt : "");
    return 0;
}

int scontrol_reconfigure(struct scontrol *s) {
    struct nothing request = {0};
    struct reconfigure_reply reply = {0};
    struct err e = {0};
    int rc = cli_call(s->c, WIRE_Controller_Reconfigure, &request, &reply, &e);
    if (rc) {
        fprintf(stderr, "slurm_reconfigure error:%s\n", scontrol_denied(rc, &e));
        return 1;
    }
    for (uint32_t i = 0; i < reply.n_notes && !s->quiet; i++)
        cli_say(s->c, "%s", reply.notes[i]);
    return 0;
}

/* Slurm's ten levels are four here: a level of ours, by its name or by one of Slurm's names or numbers. */
int scontrol_setdebug(struct scontrol *s) {
    static const struct {
        const char *slurm, *ours;
    } levels[] = {{"quiet", "error"}, {"fatal", "error"},  {"error", "error"},  {"info", "info"},     {"verbose", "info"},
                  {"debug", "debug"}, {"debug2", "debug"}, {"debug3", "debug"}, {"debug4", "debug"}, {"debug5", "debug"},
                  {"warn", "warn"}};
    struct log_level_request request = {0};
    struct nothing reply = {0};
    struct err e = {0};
    uint64_t n;
    if (!s->n) {
        fprintf(stderr, "too few arguments for keyword:setdebug\n");
        return 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (strcasecmp(s->word[0], levels[i].slurm) == 0 || (i < 10 && str_to_u64(s->word[0], 9, &n) == 0 && n == i))
            request.level = levels[i].ours;
    if (!request.level) {
        fprintf(stderr, "invalid debug level: %s\n", s->word[0]);
        return 1;
    }
    int rc = cli_call(s->c, WIRE_Controller_LogLevel, &request, &reply, &e);
    if (rc)
        fprintf(stderr, "slurm_set_debug_level error: %s\n", scontrol_denied(rc, &e));
    return rc ? 1 : 0;
}

/* Slurm's without a word stops the nodes' daemons too; here they go on, with the jobs that run, and find the next one. */
int scontrol_shutdown(struct scontrol *s) {
    struct nothing request = {0}, reply = {0};
    struct err e = {0};
    bool is_controller = s->n && (scontrol_is(s->word[0], "slurmctld", 9) || scontrol_is(s->word[0], "controller", 4));
    if (s->n > 1 || (s->n && !is_controller)) {
        fprintf(stderr, s->n > 1 ? "too many arguments for keyword:shutdown\n" : "invalid shutdown argument:%s\n", s->word[0]);
        return 1;
    }
    int rc = cli_call(s->c, WIRE_Controller_Shutdown, &request, &reply, &e);
    if (rc) {
        if (!s->quiet)
            fprintf(stderr, "slurm_shutdown error: %s\n", scontrol_denied(rc, &e));
        return 1;
    }
    if (!s->n && !s->quiet)
        cli_say(s->c, "the controller stops; the agents of the nodes go on");
    return 0;
}

/* ---- write ---- */

static int write_out(struct scontrol *s, const char *path, const struct script_reply *reply) {
    bool to_stdout = str_eq(path, "-");
    autoclose int fd = to_stdout ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    if (!to_stdout && fd < 0) {
        cli_error(s->c, "failed to open file `%s`: %s", path, strerror(errno));
        return 1;
    }
    if (to_stdout)
        return fwrite(reply->script, 1, reply->n_script, stdout) != reply->n_script;
    for (size_t done = 0; done < reply->n_script;) {
        ssize_t n = write(fd, reply->script + done, reply->n_script - done);
        if (n < 0 && errno != EINTR) {
            cli_error(s->c, "failed to write `%s`: %s", path, strerror(errno));
            return 1;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    printf("batch script written to %s\n", path);
    return 0;
}

int scontrol_write(struct scontrol *s) {
    struct script_request request = {0};
    struct script_reply reply = {0};
    struct job_name name;
    struct err e = {0};
    if (!s->n || !scontrol_is(s->word[0], "batch_script", 5)) {
        if (s->n && scontrol_is(s->word[0], "config", 4))
            cli_error(s->c, "write config is not supported: the configuration is spur.conf (see docs/compatibility.md)");
        else
            fprintf(stderr, s->n ? "invalid write argument:%s\n" : "too few arguments for keyword:write\n", s->n ? s->word[0] : "");
        return 1;
    }
    if (s->n < 2 || job_name_parse(cli_sluids(s->c, s->word[1]), 0, &s->c->arena, &name, NULL)) {
        fprintf(stderr, "Invalid job id specified\n");
        return 1;
    }
    request.job_id = name.target.job_id;
    int rc = cli_call(s->c, WIRE_Controller_Script, &request, &reply, &e);
    if (rc) {
        fprintf(stderr, "job script retrieval failed: %s\n", scontrol_denied(rc, &e));
        return rc == E_USER ? 0 : 1; /* Slurm's exit code */
    }
    autofree char *path = xasprintf("slurm-%u.sh", request.job_id);
    return write_out(s, s->n > 2 ? s->word[2] : path, &reply);
}

/* ---- small ones ---- */

int scontrol_errnumstr(struct scontrol *s) {
    uint64_t n = 0;
    if (!s->n || str_to_u64(s->word[0], 100000, &n)) {
        fprintf(stderr, "too few arguments for keyword:errnumstr\n");
        return 1;
    }
    for (int code = 1; code < 200; code++)
        if ((uint64_t)err_slurm(-code) == n && n) {
            printf("%s\n", err_sentence(-code));
            return 0;
        }
    printf("%s\n", n < 200 ? strerror((int)n) : "Unknown error");
    return 0;
}

/* Jobs that end, and where they do. */
int scontrol_completing(struct scontrol *s) {
    struct jobs_request request = {0};
    struct jobs_reply reply = {0};
    struct err e = {0};
    if (cli_call(s->c, WIRE_Controller_Jobs, &request, &reply, &e)) {
        fprintf(stderr, "slurm_load_jobs error: %s\n", e.text);
        return 1;
    }
    for (uint32_t i = 0; i < reply.n_jobs; i++) {
        const struct job *j = reply.jobs[i].job;
        if (!j || !j->completing)
            continue;
        const char **left = arena_calloc(&s->c->arena, j->n_nodes + 1, sizeof(*left));
        uint32_t n = 0;
        auto_str list = {0}, end = {0};
        for (uint32_t k = 0; k < j->n_nodes; k++)
            if (!j->nodes[k].is_done)
                left[n++] = j->nodes[k].name;
        hostlist_compact(left, n, &list);
        cli_time(j->end_ms / 1000, "Unknown", &end);
        printf("JobId=%u EndTime=%s CompletingTime=%s Nodes(COMPLETING)=%s\n", j->id, str_text(&end), "00:00:00", str_text(&list));
    }
    return 0;
}

int scontrol_getaddrs(struct scontrol *s) {
    struct nothing request = {0};
    struct nodes_reply reply = {0};
    struct err e = {0};
    const char *const *name;
    uint32_t n;
    int exit_code = 0;
    if (!s->n || hostlist_expand(s->word[0], &s->c->arena, &name, &n, &e)) {
        fprintf(stderr, "%s\n", s->n ? e.text : "too few arguments for keyword:getaddrs");
        return 1;
    }
    if (cli_call(s->c, WIRE_Controller_Nodes, &request, &reply, &e)) {
        fprintf(stderr, "slurm_load_node error: %s\n", e.text);
        return 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct node *found = NULL;
        for (uint32_t k = 0; k < reply.n_nodes && !found; k++)
            if (str_eq(reply.nodes[k].node->name, name[i]))
                found = reply.nodes[k].node;
        if (found)
            printf("%s: %s:%u\n", found->name, found->address ? found->address : "", found->port);
        else
            exit_code = 1, cli_error(s->c, "Node %s not found", name[i]);
    }
    return exit_code;
}
