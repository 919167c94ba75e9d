/* SPDX-License-Identifier: Apache-2.0
 *
 * scontrol: a keyword and its arguments. Keywords and entities may be cut short as long as it is clear what is meant.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/hint.h"
#include "spur/scontrol.h"
#include "spur/version.h"

static int set_json(struct opt_run *r, const struct opt_row *o, const char *value) {
    struct scontrol *s = r->ctx;
    s->json = true;
    s->json_version = value;
    return 0;
}

static int set_hide(struct opt_run *r, const struct opt_row *o, const char *value) {
    ((struct scontrol *)r->ctx)->all = false;
    return 0;
}

#define AT(field) offsetof(struct scontrol, field)
static const struct opt_row rows[] = {
    {"all", 'a', NULL, OPT_BOOL, 0, AT(all), NULL, NULL, "all partitions (none is hidden)"},
    {"cluster", 'M', "name", OPT_CLUSTERS, 0, 0, NULL, NULL, "this cluster by its name, or all"},
    {"details", 'd', NULL, OPT_BOOL, 0, AT(details), NULL, NULL, "more of jobs and nodes: what they have where"},
    {"future", 'F', NULL, OPT_BOOL, 0, AT(future), NULL, NULL, "nodes in state FUTURE too"},
    OPT_ROW_HELP,
    {"hide", 0, NULL, OPT_CALL, 0, 0, set_hide, NULL, "no hidden partitions (the default)"},
    {"json", 0, "version", OPT_CALL, OPT_MAYBE, 0, set_json, NULL, "what show shows, as JSON (list: which versions there are)"},
    {"local", 0, NULL, OPT_NOT_YET},
    {"oneliner", 'o', NULL, OPT_BOOL, 0, AT(one_line), NULL, NULL, "a line for each record"},
    {"quiet", 'Q', NULL, OPT_BOOL, 0, AT(quiet), NULL, NULL, "no messages but errors"},
    {"sibling", 0, NULL, OPT_NOT_YET},
    OPT_ROW_STALE,
    {"uid", 'u', "uid", OPT_NOT_YET},
    OPT_ROW_USAGE,
    {"verbose", 'v', NULL, OPT_COUNT, 0, AT(verbose), NULL, NULL, "say more: which controller answers"},
    OPT_ROW_VERSION,
    {"yaml", 0, "version", OPT_NOT_YET, OPT_MAYBE},
};

const struct opt_table *cmd_scontrol_options(void) {
    static const struct opt_table t = {
        .usage = "[OPTIONS...] [COMMAND...]", .brief = "[-ao] COMMAND [ARGUMENT...]", .row = rows,
        .n = ARRAY_LEN(rows), .usage_exit = 1, .words = "keywords",
        .note = "Valid <COMMAND> values are:\n"
                "  show <ENTITY> [<ID>]      everything of it. ENTITY: config, hostlist, hostlistsorted, hostnames,\n"
                "                            jobs, licenses, nodes, partitions, reservations, steps\n"
                "  hold JOBS | uhold JOBS | release JOBS             keep jobs from starting, or no longer\n"
                "  suspend JOBS | resume JOBS                        stop jobs that run, and let them go on\n"
                "  requeue JOBS | requeuehold [State=SpecialExit] JOBS  end jobs and queue them again\n"
                "  update JobId=JOBS KEY=VALUE…                      change jobs\n"
                "  update StepId=STEP TimeLimit=TIME                 change the limit of a step that runs\n"
                "  update NodeName=NODES State=… Reason=… KEY=VALUE… change nodes\n"
                "  update PartitionName=NAME KEY=VALUE…              change a partition\n"
                "  create PartitionName=NAME KEY=VALUE… | delete PartitionName=NAME\n"
                "  wait_job JOB                                      until its nodes are ready\n"
                "  listpids [JOB[.STEP]] [NODE] | pidinfo PID        processes of jobs on this node\n"
                "  write batch_script JOB [FILE|-]                   a job's script\n"
                "  completing                                        jobs that end\n"
                "  getaddrs NODES                                    where nodes are reached\n"
                "  ping                                              which controller answers\n"
                "  reconfigure                                       the controller reads its file again\n"
                "  setdebug LEVEL                                    how much the controller logs\n"
                "  shutdown [controller]                             the controller ends\n"
                "  top JOBS                                          before its user's other jobs (administrators)\n"
                "  token [lifespan=SECS] [username=NAME]             a token for use over TCP\n"
                "  errnumstr NUMBER                                  what an error number of Slurm means\n"
                "  version                                           show the version\n"
                "Without a command they are read from the input, one a line; exit or quit ends them."};
    return &t;
}

/* ---- words ---- */

bool scontrol_is(const char *text, const char *word, size_t least) {
    size_t n = strlen(text);
    return n >= least && n <= strlen(word) && strncasecmp(text, word, n) == 0;
}

bool scontrol_key(const char *word, const char *key, size_t least, const char **out_value) {
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : 0;
    if (n < least || n > strlen(key) || strncasecmp(word, key, n) != 0)
        return false;
    *out_value = equals + 1;
    return true;
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
    {"bbstat", 2, NULL}, {"burstbuffer", 2, NULL}, {"config", 1, scontrol_show_config}, {"daemons", 2, scontrol_show_daemons}, {"dwstat", 2, NULL},
    {"federation", 1, NULL}, {"licenses", 2, scontrol_show_licenses}, {"reservations", 1, scontrol_show_reservations}, {"slurmd", 2, NULL}, {"steps", 2, scontrol_show_step},
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
        if (!scontrol_is(bare, entities[i].word, entities[i].least))
            continue;
        if (entities[i].fn)
            return entities[i].fn(s, name);
        autofree char *what = xasprintf("show %s", entities[i].word);
        return not_yet(s, what);
    }
    fprintf(stderr, "invalid entity:%s for keyword:show\n", entity);
    struct near near = near_to(bare);
    for (size_t i = 0; i < ARRAY_LEN(entities); i++)
        near_try(&near, entities[i].word);
    hint_near(s->c, &near);
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
              {"NodeName", 2, scontrol_update_node}, {"PartitionName", 1, scontrol_update_part}, {"ReservationName", 1, NULL},
              {"StepId", 1, scontrol_update_step}, {"SuspendExcNodes", 8, NULL}};
    if (!s->n) {
        fprintf(stderr, "too few arguments for update keyword\n");
        return 1;
    }
    for (size_t w = 0; w < s->n; w++) {
        autofree char *key = xstrndup(s->word[w], strcspn(s->word[w], "="));
        for (size_t i = 0; i < ARRAY_LEN(of); i++) {
            if (!scontrol_is(key, of[i].key, of[i].least))
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

static int run_version(struct scontrol *s) {
    puts(VERSION_LINE);
    return 0;
}

/* fn NULL: Slurm's, and refused by name. */
static const struct {
    const char *word;
    size_t least;
    int (*fn)(struct scontrol *s);
} keywords[] = {
    {"show", 3, run_show}, {"hold", 4, scontrol_hold}, {"uhold", 5, scontrol_uhold}, {"release", 3, scontrol_release},
    {"ping", 3, scontrol_ping}, {"version", 4, run_version}, {"token", 1, scontrol_token}, {"reconfigure", 4, scontrol_reconfigure},
    {"abort", 5, NULL}, {"cancel_reboot", 3, NULL}, {"completing", 3, scontrol_completing}, {"create", 2, scontrol_create}, {"delete", 1, scontrol_delete},
    {"errnumstr", 3, scontrol_errnumstr}, {"fsdampeningfactor", 2, NULL}, {"getaddrs", 4, scontrol_getaddrs}, {"getent", 4, NULL},
    {"listjobs", 5, NULL}, {"listpids", 5, scontrol_listpids}, {"liststeps", 5, NULL}, {"notify", 1, NULL}, {"pidinfo", 3, scontrol_pidinfo}, {"cluster", 2, NULL}, {"power", 3, NULL},
    {"reboot", 3, NULL}, {"requeue", 3, scontrol_requeue}, {"requeuehold", 8, scontrol_requeuehold}, {"resume", 3, scontrol_resume}, {"schedloglevel", 3, NULL},
    {"setdebug", 8, scontrol_setdebug}, {"setdebugflags", 9, NULL}, {"shutdown", 8, scontrol_shutdown}, {"suspend", 2, scontrol_suspend}, {"takeover", 8, NULL},
    {"top", 3, scontrol_top}, {"update", 1, run_update}, {"wait_job", 2, scontrol_wait_job}, {"write", 5, scontrol_write},
};

void scontrol_print_keywords(void) {
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
        if (keywords[i].fn)
            puts(keywords[i].word);
    for (size_t i = 0; i < ARRAY_LEN(entities); i++)
        if (entities[i].fn)
            puts(entities[i].word);
}

static int run(struct scontrol *s, const char *keyword) {
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        if (!scontrol_is(keyword, keywords[i].word, keywords[i].least))
            continue;
        return keywords[i].fn ? keywords[i].fn(s) : not_yet(s, keywords[i].word);
    }
    fprintf(stderr, "invalid keyword: %s\n", keyword);
    struct near near = near_to(keyword);
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
        near_try(&near, keywords[i].word);
    hint_near(s->c, &near);
    return 1;
}

int scontrol_run(struct scontrol *s, const char *const *word, size_t n) {
    s->word = word + 1;
    s->n = n - 1;
    return run(s, word[0]);
}

int cmd_scontrol(struct cli *c) {
    struct scontrol s = {.c = c};
    struct opt_run r;
    int exit_code = 1;
    if (cli_options(c, cmd_scontrol_options(), &s, &r, true, &exit_code) &&
        (!s.json || json_doc_version(c, s.json_version, &exit_code)))
        exit_code = r.words.n ? scontrol_run(&s, r.words.p, r.words.n) : scontrol_prompt(&s);
    if (s.verbose && c->client)
        cli_say(c, "asked %s", spur_controllers(c->client));
    opt_fini(&r);
    return exit_code;
}
