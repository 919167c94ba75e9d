/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol: a keyword and its arguments. Keywords and entities may be cut short as long as it is clear what is meant.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/scontrol.h"
#include "spur/version.h"

#define AT(field) offsetof(struct scontrol, field)
static const struct opt_row rows[] = {
    {"all", 'a', NULL, OPT_BOOL, 0, AT(all), NULL, NULL, "all partitions (none is hidden)"},
    {"cluster", 'M', "name", OPT_NOT_YET},
    {"details", 'd', NULL, OPT_NOT_YET},
    {"future", 'F', NULL, OPT_NOT_YET},
    {"help", 'h', NULL, OPT_HELP, 0, 0, NULL, NULL, "show this help"},
    {"hide", 0, NULL, OPT_NOT_YET},
    {"json", 0, "version", OPT_NOT_YET, OPT_MAYBE},
    {"local", 0, NULL, OPT_NOT_YET},
    {"oneliner", 'o', NULL, OPT_BOOL, 0, AT(one_line), NULL, NULL, "a line for each record"},
    {"quiet", 'Q', NULL, OPT_NOT_YET},
    {"sibling", 0, NULL, OPT_NOT_YET},
    {"uid", 'u', "uid", OPT_NOT_YET},
    {"usage", 0, NULL, OPT_USAGE, 0, 0, NULL, NULL, "show a short usage"},
    {"verbose", 'v', NULL, OPT_NOT_YET},
    {"version", 'V', NULL, OPT_VERSION, 0, 0, NULL, NULL, "show the version"},
    {"yaml", 0, "version", OPT_NOT_YET, OPT_MAYBE},
};

const struct opt_table *cmd_scontrol_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS...] [COMMAND...]", .brief = "[-ao] COMMAND [ARGUMENT...]", .row = rows,
        .n = ARRAY_LEN(rows), .usage_exit = 1,
        .note = "Commands:\n"
                "  show job [ID] | node [NAMES] | partition [NAME]   everything of it\n"
                "  show step [ID]                                    the steps that run\n"
                "  show hostnames LIST | hostlist NAMES | hostlistsorted NAMES\n"
                "  hold JOBS | uhold JOBS | release JOBS             keep jobs from starting, or no longer\n"
                "  suspend JOBS | resume JOBS                        stop jobs that run, and let them go on\n"
                "  requeue JOBS | requeuehold JOBS                   end jobs and queue them again\n"
                "  update JobId=JOBS KEY=VALUE… | NodeName=NODES State=STATE Reason=TEXT\n"
                "  wait_job JOB                                      until its nodes are ready\n"
                "  ping                                              which controller answers\n"
                "  reconfigure                                       the controller reads its file again\n"
                "  token [lifespan=SECS] [username=NAME]             a token for use over TCP\n"
                "  version"};
    return &t;
}

/* ---- words ---- */

/* `text` is `word` or its beginning, at least `least` letters of it. */
static bool is(const char *text, const char *word, size_t least) {
    size_t n = strlen(text);
    return n >= least && n <= strlen(word) && strncasecmp(text, word, n) == 0;
}

static int not_yet(struct scontrol *s, const char *what) {
    cli_error(s->c, "%s is not supported yet (see docs/compatibility.md)", what);
    return 1;
}

/* ---- show ---- */

static int show_job(struct scontrol *s, const char *name) {
    return scontrol_show_job(s, name);
}
static int show_hostlist(struct scontrol *s, const char *name) {
    return scontrol_show_hostlist(s, name, false);
}
static int show_hostlistsorted(struct scontrol *s, const char *name) {
    return scontrol_show_hostlist(s, name, true);
}

/* In the order in which shortened words are tried. fn NULL: Slurm's, and refused by name. */
static const struct {
    const char *word;
    size_t least;
    int (*fn)(struct scontrol *s, const char *name);
} entities[] = {
    {"jobs", 1, show_job}, {"nodes", 1, scontrol_show_node}, {"partitions", 1, scontrol_show_partition},
    {"hostnames", 5, scontrol_show_hostnames}, {"hostlist", 5, show_hostlist},
    {"hostlistsorted", 9, show_hostlistsorted}, {"aliases", 1, NULL}, {"assoc_mgr", 2, NULL},
    {"bbstat", 2, NULL}, {"burstbuffer", 2, NULL}, {"config", 1, NULL}, {"daemons", 2, NULL}, {"dwstat", 2, NULL},
    {"federation", 1, NULL}, {"licenses", 2, NULL}, {"reservations", 1, NULL}, {"slurmd", 2, NULL}, {"steps", 2, scontrol_show_step},
    {"topology", 1, NULL}, {"topoconf", 5, NULL},
};

static int run_show(struct scontrol *s) {
    if (!s->n) {
        fprintf(stderr, "too few arguments for keyword:show\n");
        return 1;
    }
    if (s->n > 2) {
        fprintf(stderr, "too many arguments for keyword:show\n");
        return 1;
    }
    const char *entity = s->word[0];
    autofree char *bare = xstrndup(entity, strcspn(entity, "=")); /* "show job=5" too */
    const char *name = s->n > 1 ? s->word[1] : entity[strlen(bare)] ? entity + strlen(bare) + 1 : NULL;
    for (size_t i = 0; i < ARRAY_LEN(entities); i++) {
        if (!is(bare, entities[i].word, entities[i].least))
            continue;
        if (entities[i].fn)
            return entities[i].fn(s, name);
        autofree char *what = xasprintf("show %s", entities[i].word);
        return not_yet(s, what);
    }
    fprintf(stderr, "invalid entity:%s for keyword:show\n", entity);
    return 1;
}

/* ---- update ---- */

/* The first key says of what; a shortened one too. */
static int run_update(struct scontrol *s) {
    static const struct {
        const char *key;
        size_t least;
        int (*fn)(struct scontrol *s);
    } of[] = {{"JobId", 1, scontrol_update_job}, {"JobName", 4, scontrol_update_job}, {"Name", 2, scontrol_update_job},
              {"NodeName", 2, scontrol_update_node}, {"PartitionName", 1, NULL}, {"ReservationName", 1, NULL},
              {"StepId", 1, NULL}, {"SuspendExcNodes", 8, NULL}};
    if (!s->n) {
        fprintf(stderr, "too few arguments for update keyword\n");
        return 1;
    }
    for (size_t w = 0; w < s->n; w++) {
        autofree char *key = xstrndup(s->word[w], strcspn(s->word[w], "="));
        for (size_t i = 0; i < ARRAY_LEN(of); i++) {
            if (!is(key, of[i].key, of[i].least))
                continue;
            if (of[i].fn)
                return of[i].fn(s);
            autofree char *what = xasprintf("update %s", of[i].key);
            return not_yet(s, what);
        }
    }
    fprintf(stderr, "No valid entity in update command\n"
                    "Input line must include \"NodeName\", \"JobId\" or \"JobName\"\n");
    return 1;
}

/* ---- the controller ---- */

/* What only administrators may is an "invalid user id" in Slurm's words. */
static const char *denied_text(int code, const struct err *e) {
    return code == E_DENIED ? err_sentence(E_USER) : e->text;
}

static int run_ping(struct scontrol *s) {
    struct nothing request = {0};
    struct ping_reply reply = {0};
    struct err e = {0};
    int rc = cli_call(s->c, WIRE_Controller_Ping, &request, &reply, &e);
    const char *host = reply.hostname;
    if (rc)
        host = s->c->client ? spur_controllers(s->c->client) : "?";
    printf("Slurmctld(primary) at %s is %s\n", host ? host : "?", rc ? "DOWN" : "UP");
    return rc ? 1 : 0;
}

static int run_version(struct scontrol *s) {
    puts(VERSION_LINE);
    return 0;
}

static int run_token(struct scontrol *s) {
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
        cli_error(s->c, "slurm_fetch_token: error with request: %s", denied_text(rc, &e));
        return 1;
    }
    printf("SLURM_JWT=%s\n", reply.jwt ? reply.jwt : "");
    return 0;
}

static int run_reconfigure(struct scontrol *s) {
    struct nothing request = {0};
    struct reconfigure_reply reply = {0};
    struct err e = {0};
    int rc = cli_call(s->c, WIRE_Controller_Reconfigure, &request, &reply, &e);
    if (rc) {
        fprintf(stderr, "slurm_reconfigure error:%s\n", denied_text(rc, &e));
        return 1;
    }
    for (uint32_t i = 0; i < reply.n_notes; i++)
        cli_say(s->c, "%s", reply.notes[i]);
    return 0;
}

/* fn NULL: Slurm's, and refused by name. */
static const struct {
    const char *word;
    size_t least;
    int (*fn)(struct scontrol *s);
} keywords[] = {
    {"show", 3, run_show}, {"hold", 4, scontrol_hold}, {"uhold", 5, scontrol_uhold}, {"release", 3, scontrol_release},
    {"ping", 3, run_ping}, {"version", 4, run_version}, {"token", 1, run_token}, {"reconfigure", 4, run_reconfigure},
    {"abort", 5, NULL}, {"cancel_reboot", 3, NULL}, {"completing", 3, NULL}, {"create", 2, NULL}, {"delete", 1, NULL},
    {"errnumstr", 3, NULL}, {"fsdampeningfactor", 2, NULL}, {"getaddrs", 4, NULL}, {"getent", 4, NULL},
    {"listjobs", 5, NULL}, {"listpids", 5, NULL}, {"liststeps", 5, NULL}, {"notify", 1, NULL}, {"power", 3, NULL},
    {"reboot", 3, NULL}, {"requeue", 3, scontrol_requeue}, {"requeuehold", 8, scontrol_requeuehold}, {"resume", 3, scontrol_resume}, {"schedloglevel", 3, NULL},
    {"setdebug", 8, NULL}, {"setdebugflags", 9, NULL}, {"shutdown", 8, NULL}, {"suspend", 2, scontrol_suspend}, {"takeover", 8, NULL},
    {"top", 3, NULL}, {"update", 1, run_update}, {"wait_job", 2, scontrol_wait_job}, {"write", 5, NULL},
};

static int run(struct scontrol *s, const char *keyword) {
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        if (!is(keyword, keywords[i].word, keywords[i].least))
            continue;
        return keywords[i].fn ? keywords[i].fn(s) : not_yet(s, keywords[i].word);
    }
    fprintf(stderr, "invalid keyword: %s\n", keyword);
    return 1;
}

int cmd_scontrol(struct cli *c) {
    struct scontrol s = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_scontrol_options(), &s, &r, true, &exit_code)) {
        s.word = r.words.n ? r.words.p + 1 : NULL;
        s.n = r.words.n ? r.words.n - 1 : 0;
        exit_code = r.words.n ? run(&s, r.words.p[0]) : not_yet(&s, "the interactive mode");
    }
    opt_fini(&r);
    return exit_code;
}
