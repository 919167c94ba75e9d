/* SPDX-License-Identifier: Apache-2.0
 *
 * #PBS lines, for scripts that come from there: the options that have a counterpart are set, the others are told. One
 * more table for the option engine; its setters use those of sbatch's own rows.
 */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "spur/command.h"
#include "spur/sbatch.h"

#define SBATCH(r) ((struct sbatch *)(r)->ctx)

/* Sets sbatch's option of that name. */
static int set(struct opt_run *r, const char *name, const char *value) {
    const struct opt_table *t = cmd_sbatch_options();
    for (size_t i = 0; i < t->n; i++) {
        const struct opt_row *o = &t->row[i];
        if (!str_eq(o->name, name))
            continue;
        if (o->kind == OPT_CALL)
            return o->set(r, o, value);
        void *field = (char *)r->ctx + o->off;
        if (o->kind == OPT_BOOL)
            *(bool *)field = true;
        else
            *(const char **)field = value;
        return 0;
    }
    return opt_bad(r, 1, "#PBS: no such option: %s", name);
}

static const struct {
    char letter;
    const char *name;
} same[] = {{'A', "account"}, {'J', "array"}, {'N', "job-name"}, {'e', "error"}, {'o', "output"}, {'q', "partition"},
            {'t', "array"},   {'h', "hold"}};

static int set_same(struct opt_run *r, const struct opt_row *o, const char *value) {
    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        if (same[i].letter == o->letter)
            return set(r, same[i].name, value);
    return 0;
}

static int set_rerun(struct opt_run *r, const struct opt_row *o, const char *value) {
    return set(r, strcasecmp(value, "n") == 0 ? "no-requeue" : "requeue", NULL);
}

/* "walltime=1:00:00,nodes=2:ppn=4,mem=2gb,ncpus=2" */
static int set_resources(struct opt_run *r, const struct opt_row *o, const char *value) {
    uint32_t n;
    const char *const *word = cli_words(SBATCH(r)->c, value, ",", &n);
    for (uint32_t i = 0; i < n; i++) {
        const char *equals = strchr(word[i], '=');
        const char *v = equals ? equals + 1 : "";
        size_t len = equals ? (size_t)(equals - word[i]) : strlen(word[i]);
        const char *ppn = strstr(v, ":ppn=");
        int rc = 0;
        if (len == 8 && strncmp(word[i], "walltime", 8) == 0)
            rc = set(r, "time", v);
        else if (len == 3 && strncmp(word[i], "mem", 3) == 0)
            rc = set(r, "mem", v);
        else if (len == 5 && strncmp(word[i], "ncpus", 5) == 0)
            rc = set(r, "cpus-per-task", v);
        else if (len == 5 && strncmp(word[i], "nodes", 5) == 0 && !strchr(v, '+') && (ppn || !strchr(v, ':')))
            rc = set(r, "nodes", arena_strndup(&SBATCH(r)->c->arena, v, strcspn(v, ":")));
        else
            cli_say(SBATCH(r)->c, "warning: #PBS -l %s is not honoured", word[i]);
        if (!rc && ppn)
            rc = set(r, "ntasks-per-node", ppn + 5);
        if (rc)
            return rc;
    }
    return 0;
}

static int tell(struct opt_run *r, const struct opt_row *o, const char *value) {
    cli_say(SBATCH(r)->c, "warning: #PBS -%c is not honoured", o->letter);
    return 0;
}

/* The whole environment goes along anyway. */
static int nothing(struct opt_run *r, const struct opt_row *o, const char *value) {
    return 0;
}

#define PBS(letter, arg, fn) {NULL, letter, arg, OPT_CALL, 0, 0, fn, NULL, NULL}
static const struct opt_row rows[] = {
    PBS('A', "account", set_same), PBS('J', "array", set_same), PBS('M', "users", tell), PBS('N', "name", set_same),
    PBS('S', "shell", tell), PBS('V', NULL, nothing), PBS('W', "list", tell), PBS('a', "time", tell),
    PBS('c', "list", tell), PBS('e', "file", set_same), PBS('h', NULL, set_same), PBS('j', "oe", tell),
    PBS('k', "oe", tell), PBS('l', "list", set_resources), PBS('m', "events", tell), PBS('o', "file", set_same),
    PBS('p', "n", tell), PBS('q', "queue", set_same), PBS('r', "y|n", set_rerun), PBS('t', "array", set_same),
    PBS('u', "users", tell), PBS('v', "list", tell),
};

bool sbatch_pbs(struct sbatch *s, struct opt_run *r, uint32_t n, const char *const *word, const uint32_t *line) {
    static const struct opt_table t = {.row = rows, .n = ARRAY_LEN(rows), .usage_exit = 255};
    struct opt_run pbs;
    opt_init(&pbs, &t, r->prog, s);
    bool ok = opt_scan_script(&pbs, n, word, line) && opt_apply(&pbs, 0, pbs.items.n);
    if (!ok) {
        str_add(&r->err, str_text(&pbs.err));
        r->exit_code = pbs.exit_code;
    }
    opt_fini(&pbs);
    return ok;
}
