/* SPDX-License-Identifier: Apache-2.0
 *
 * slurm.conf to spur.conf: the parameters of the whole cluster. Each is a row: where it goes, or why it doesn't.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/vec.h"
#include "core/model/text.h"
#include "spur/import.h"

enum kind { KIND_NUMBER, KIND_TIME, KIND_YES, KIND_TEXT, KIND_LEVEL, KIND_LICENSES, KIND_HOST, KIND_PORT, KIND_USER, KIND_AUTH,
            KIND_AUTH_INFO, KIND_ENFORCE };

static const char requeue_delay[] = "requeue_delay_secs";

/* In the order in which they are written. Several rows may give one key: the last line of the file counts. */
static const struct row {
    const char *slurm, *section, *key;
    enum kind kind;
    uint64_t low, high;
} rows[] = {
    {"ClusterName", "", "cluster_name", KIND_TEXT, 0, 0},
    {"Licenses", "", "licenses", KIND_LICENSES, 0, 0},
    {"SlurmctldPort", "controller", "listen_addr", KIND_PORT, 1, 65535},
    {"SlurmctldHost", "controller", "hosts", KIND_HOST, 0, 0},
    {"ControlMachine", "controller", "hosts", KIND_HOST, 0, 0},
    {"FirstJobId", "controller", "first_job_id", KIND_NUMBER, 1, 67108863},
    {"MaxJobId", "controller", "max_job_id", KIND_NUMBER, 1, 999999999},
    {"SlurmdTimeout", "controller", "heartbeat_timeout_secs", KIND_NUMBER, 1, 86400},
    {"MaxBatchRequeue", "controller", "max_batch_requeue", KIND_NUMBER, 1, 1000},
    {"MinJobAge", "controller", "terminal_job_retention_secs", KIND_NUMBER, 1, 31536000},
    {"KillWait", "scheduler", "kill_wait_secs", KIND_NUMBER, 1, 65533},
    {"UnkillableStepTimeout", "scheduler", "complete_wait_secs", KIND_NUMBER, 1, 65533},
    {"", "scheduler", requeue_delay, KIND_NUMBER, 0, 86400}, /* no word of Slurm's: what it does */
    {"BatchStartTimeout", "scheduler", "launch_timeout_secs", KIND_NUMBER, 1, 3600},
    {"PriorityWeightAge", "scheduler", "weight_age", KIND_NUMBER, 0, 1000000000},
    {"PriorityWeightJobSize", "scheduler", "weight_job_size", KIND_NUMBER, 0, 1000000000},
    {"PriorityWeightPartition", "scheduler", "weight_partition", KIND_NUMBER, 0, 1000000000},
    {"PriorityMaxAge", "scheduler", "max_age_secs", KIND_TIME, 1, 315360000},
    {"DefMemPerCPU", "scheduler", "def_mem_per_cpu_mb", KIND_NUMBER, 0, 1073741824},
    {"MaxJobCount", "scheduler", "max_jobs", KIND_NUMBER, 1, 10000000},
    {"MaxArraySize", "scheduler", "max_array_size", KIND_NUMBER, 2, 4000001},
    {"JobRequeue", "scheduler", "job_requeue", KIND_YES, 0, 0},
    {"MaxStepCount", "scheduler", "max_steps", KIND_NUMBER, 1, 10000000},
    {"EnforcePartLimits", "scheduler", "enforce_part_limits", KIND_ENFORCE, 0, 0},
    {"AuthType", "auth", "plugin", KIND_AUTH, 0, 0},
    {"AuthAltParameters", "auth", "jwt_key_file", KIND_AUTH_INFO, 0, 0},
    {"SlurmUser", "auth", "admins", KIND_USER, 0, 0},
    {"SlurmctldDebug", "logging", "level", KIND_LEVEL, 0, 0},
    {"SlurmctldLogFile", "logging", "file", KIND_TEXT, 0, 0},
};

/* `same`: the value (or, ending in `*`, how it begins) that asks for what is done anyway; "*" any. Sorted by nothing: the
 * first that fits counts. */
static const struct other {
    const char *slurm, *same, *why;
} others[] = {
    {"SelectType", "select/cons_tres", "CPUs, memory and generic resources are counted (select/cons_tres)"},
    {"SelectTypeParameters", "CR_CPU*", "CPUs are counted (CR_CPU_Memory where jobs ask for memory)"},
    {"SelectTypeParameters", "CR_Core*", NULL},
    {"SchedulerType", "sched/backfill", "the planner is backfill"},
    {"PriorityType", "priority/multifactor", "priority is multifactor"},
    {"AuthAltTypes", "auth/jwt", "tokens are JSON Web Tokens"},
    {"StateSaveLocation", NULL, "Spur keeps a state of its own: [controller] state_dir, /var/spool/spur where it isn't set"},
    {"SlurmdSpoolDir", NULL, "an agent keeps its runs below its --state-dir, /var/spool/spurd where it isn't given"},
    {"SlurmdPort", "6818", "an agent's port is its --listen"},
    {"SlurmdLogFile", NULL, "an agent's log is its --log-file"},
    {"SlurmdDebug", NULL, "an agent's log level is its --log-level"},
    {"SlurmdUser", "root", "agents run as root"},
    {"SlurmctldPidFile", "*", NULL},
    {"SlurmdPidFile", "*", NULL},
    {"SlurmctldTimeout", NULL, "controllers elect a leader among themselves within a second"},
    {"ReturnToService", "2", "a node is back as soon as it answers again (2)"},
    {"MpiDefault", "none", "no MPI plugin is there yet"},
    {"ProctrackType", "*", NULL},
    {"TaskPlugin", "task/none", "tasks are not bound to CPUs yet"},
    {"JobAcctGatherType", NULL, "usage is taken from the kernel at the end of each step"},
    {"JobAcctGatherFrequency", NULL, "usage is taken from the kernel at the end of each step"},
    {"JobCompType", "jobcomp/none", "what became of jobs is in sacct"},
    {"AccountingStorageType", "accounting_storage/none", "history is kept by each controller itself; accounts and limits are not supported yet"},
    {"AccountingStorageEnforce", "none", "accounts and limits are not supported yet"},
    {"AccountingStorageTRES", NULL, "what there is is counted"},
    {"AccountingStorageHost", NULL, "no database daemon is needed: history is kept by each controller itself"},
    {"AccountingStoragePort", NULL, "no database daemon is needed: history is kept by each controller itself"},
    {"AccountingStoragePass", NULL, "no database daemon is needed: history is kept by each controller itself"},
    {"AccountingStorageUser", NULL, "no database daemon is needed: history is kept by each controller itself"},
    {"GresTypes", "*", NULL},
    {"CryptoType", "*", NULL},
    {"CredType", "*", NULL},
    {"SwitchType", "switch/none", "switches are not supported"},
    {"TopologyPlugin", "topology/default", "topology is not supported yet"},
    {"TopologyPlugin", "topology/flat", "topology is not supported yet"},
    {"PreemptType", "preempt/none", "preemption is not supported yet"},
    {"PreemptMode", "OFF", "preemption is not supported yet"},
    {"TrackWCKey", "no", "wckeys are not supported yet"},
    {"PrivateData", "none", "everyone sees all jobs, without their scripts and environments"},
    {"PropagateResourceLimits", "ALL", "a job gets the limits of its submitter's shell"},
    {"InactiveLimit", "0", "a client of an interactive job that is silent ends it: [scheduler] attend_secs"},
    {"WaitTime", "0", "srun -W says how long the others go on"},
    {"HealthCheckProgram", NULL, "health checks are not supported yet"},
    {"HealthCheckInterval", NULL, "health checks are not supported yet"},
    {"Prolog", NULL, "prologs and epilogs are not supported yet"},
    {"Epilog", NULL, "prologs and epilogs are not supported yet"},
    {"PrologFlags", NULL, "prologs and epilogs are not supported yet"},
    {"TaskProlog", NULL, "prologs and epilogs are not supported yet"},
    {"TaskEpilog", NULL, "prologs and epilogs are not supported yet"},
    {"SrunProlog", NULL, "prologs and epilogs are not supported yet"},
    {"SrunEpilog", NULL, "prologs and epilogs are not supported yet"},
    {"PrologSlurmctld", NULL, "prologs and epilogs are not supported yet"},
    {"EpilogSlurmctld", NULL, "prologs and epilogs are not supported yet"},
    {"JobSubmitPlugins", NULL, "submit plugins are not supported yet"},
    {"MailProg", NULL, "mail is not supported yet"},
    {"SuspendProgram", NULL, "power saving is not supported yet"},
    {"ResumeProgram", NULL, "power saving is not supported yet"},
    {"SuspendTime", "INFINITE", "power saving is not supported yet"},
    {"RebootProgram", NULL, "reboots are not supported yet"},
    {"SchedulerParameters", NULL, "the planner has parameters of its own: [scheduler]"},
    {"SlurmctldParameters", NULL, "the controller has parameters of its own: [controller]"},
    {"SlurmdParameters", NULL, "agents have parameters of their own"},
    {"LaunchParameters", NULL, "launches have no parameters"},
    {"PriorityWeightFairshare", "0", "fair share is not supported yet"},
    {"PriorityWeightQOS", "0", "QOS is not supported yet"},
    {"PriorityWeightAssoc", "0", "accounts are not supported yet"},
    {"PriorityWeightTRES", "", "priority by resources is not supported yet"},
    {"PriorityDecayHalfLife", NULL, "fair share is not supported yet"},
    {"PriorityCalcPeriod", NULL, "fair share is not supported yet"},
    {"PriorityUsageResetPeriod", NULL, "fair share is not supported yet"},
    {"PriorityFavorSmall", "no", "large jobs are favoured by weight_job_size"},
    {"DefMemPerNode", "0", "memory of a job that names none: [scheduler] def_mem_per_cpu_mb"},
    {"MaxMemPerNode", "0", "bounds of memory are not supported yet"},
    {"MaxMemPerCPU", "0", "bounds of memory are not supported yet"},
    {"RequeueExit", NULL, "a job that ends with an error isn't queued again by itself"},
    {"RequeueExitHold", NULL, "a job that ends with an error isn't queued again by itself"},
    {"TmpFS", "/tmp", "the size of a node's temporary files is that of /tmp"},
};

struct value {
    const struct row *row;
    const struct import_line *line;
    const char *text;
};

/* Bytes of the UTF-8 character that begins here; 0: it is none. */
static size_t utf8_len(const unsigned char *s) {
    size_t n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool is_bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
                  (s[0] == 0xf4 && s[1] > 0x8f);
    return is_bad ? 0 : n;
}

void import_quoted(const char *text, struct str *out) {
    str_addc(out, '"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        size_t n = c >= 0x80 ? utf8_len((const unsigned char *)text) : 0;
        if (n) {
            str_addn(out, text, n);
            text += n - 1;
        } else if (c >= 0x80) { /* a file of another encoding: TOML is UTF-8 */
            str_add(out, "\\ufffd");
        } else if (c == '"' || c == '\\')
            str_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            str_addf(out, "\\u%04x", c);
        else
            str_addc(out, (char)c);
    }
    str_addc(out, '"');
}

/* ---- one value ---- */

static bool number(struct import *im, const struct value *v, uint64_t n, struct str *out) {
    if (n < v->row->low || n > v->row->high) {
        import_note(im, v->line, "%s=%s: must be from %llu to %llu here; left out", v->row->slurm, v->text,
                    (unsigned long long)v->row->low, (unsigned long long)v->row->high);
        return false;
    }
    str_addf(out, "%llu", (unsigned long long)n);
    return true;
}

static bool no_value(struct import *im, const struct value *v, const char *why) {
    import_note(im, v->line, "%s=%s: %s; left out", v->row->slurm, v->text, why);
    return false;
}

/* "matlab:4,ansys": { matlab = 4, ansys = 1 } */
struct license {
    char *name; /* owned */
    uint64_t count;
};

/* One that is named twice is the sum of both, as Slurm has it. */
static bool licenses(struct import *im, const struct value *v, struct str *out) {
    VEC(struct license) list = {0};
    for (const char *at = v->text; *at;) {
        size_t n = strcspn(at, ",;"), i = 0;
        autofree char *word = xstrndup(at, n);
        char *count = strpbrk(word, ":*");
        uint64_t k = 1;
        if (count)
            *count++ = '\0';
        while (i < list.n && !str_eq(list.p[i].name, word))
            i++;
        if (!*word || (count && str_to_u64(count, 1000000000, &k)))
            import_note(im, v->line, "%s: `%.*s' is no NAME:COUNT; left out", v->row->slurm, (int)n, at);
        else if (i < list.n)
            list.p[i].count = MIN(list.p[i].count + k, (uint64_t)1000000000);
        else
            vec_push(&list, ((struct license){xstrndup(word, n), k}));
        at += n + (at[n] != '\0');
    }
    bool any = list.n != 0;
    str_add(out, "{ ");
    for (size_t i = 0; i < list.n; i++) {
        str_add(out, i ? ", " : "");
        import_quoted(list.p[i].name, out);
        str_addf(out, " = %llu", (unsigned long long)list.p[i].count);
        free(list.p[i].name);
    }
    vec_fini(&list);
    str_add(out, " }");
    return any;
}

static bool level(struct import *im, const struct value *v, struct str *out) {
    static const char *const words[][2] = {{"quiet", "error"},   {"fatal", "error"},  {"error", "error"},  {"info", "info"},
                                           {"verbose", "info"}, {"debug", "debug"},  {"debug2", "debug"}, {"debug3", "debug"},
                                           {"debug4", "debug"}, {"debug5", "debug"}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        char digit[2] = {(char)('0' + i), '\0'};
        if (strcasecmp(v->text, words[i][0]) != 0 && !str_eq(v->text, digit))
            continue;
        import_quoted(words[i][1], out);
        return true;
    }
    return no_value(im, v, "no such level");
}

static bool auth(struct import *im, const struct value *v, struct str *out) {
    if (import_is(v->text, "auth/munge") || import_is(v->text, "auth/none")) {
        import_quoted(strchr(v->text, '/') + 1, out);
        return true;
    }
    return no_value(im, v, "users are known by the local socket, tokens or munge");
}

static bool auth_info(struct import *im, const struct value *v, struct str *out) {
    const char *key = strstr(v->text, "jwt_key=");
    if (!key)
        return no_value(im, v, "only jwt_key has a meaning");
    key += strlen("jwt_key=");
    autofree char *path = xstrndup(key, strcspn(key, ","));
    import_quoted(path, out);
    return true;
}

/* "head(10.0.0.1)": the address, else the name. All of them, in the file's order. */
static bool hosts(struct import *im, const struct value *v, struct str *out) {
    uint32_t n = 0;
    str_addc(out, '[');
    for (size_t i = 0; i < im->lines.n; i++) {
        const char *host = import_value(&im->lines.p[i], v->row->slurm);
        if (!host || !*host)
            continue;
        const char *open = strchr(host, '(');
        autofree char *name = open ? xstrndup(open + 1, strcspn(open + 1, ")")) : xstrdup(host);
        str_add(out, n++ ? ", " : "");
        import_quoted(name, out);
    }
    str_addc(out, ']');
    if (n > 1)
        import_note(im, v->line, "%s: several controllers must know each other: [controller] peers, one HOST:6821 each; "
                    "left out", v->row->slurm);
    return n > 0;
}

static bool print(struct import *im, const struct value *v, struct str *out) {
    uint64_t n = 0;
    uint32_t minutes;
    const struct row *r = v->row;
    switch (r->kind) {
    case KIND_NUMBER: return str_to_u64(v->text, UINT32_MAX, &n) ? no_value(im, v, "no number") : number(im, v, n, out);
    case KIND_TIME:
        return time_limit_parse(v->text, &minutes) || minutes == TIME_LIMIT_NONE ? no_value(im, v, "no time")
                                                                               : number(im, v, (uint64_t)minutes * 60, out);
    case KIND_YES: str_add(out, str_eq(v->text, "0") || import_is(v->text, "no") ? "false" : "true"); return true;
    case KIND_TEXT: import_quoted(v->text, out); return *v->text != '\0';
    case KIND_LEVEL: return level(im, v, out);
    case KIND_LICENSES: return licenses(im, v, out);
    case KIND_HOST: return hosts(im, v, out);
    case KIND_PORT:
        if (str_to_u64(v->text, r->high, &n) || n < r->low)
            return no_value(im, v, "one port is needed");
        str_addf(out, "\"[::]:%llu\"", (unsigned long long)n);
        return true;
    case KIND_USER:
        if (str_eq(v->text, "root"))
            return false; /* is one anyway */
        str_addc(out, '[');
        import_quoted(v->text, out);
        str_addc(out, ']');
        return true;
    case KIND_AUTH: return auth(im, v, out);
    case KIND_ENFORCE:
        if (!import_is(v->text, "ALL") && !import_is(v->text, "YES") && !import_is(v->text, "ANY") && !import_is(v->text, "NO"))
            return no_value(im, v, "must be NO, ANY or ALL");
        import_quoted(import_is(v->text, "NO") ? "NO" : import_is(v->text, "ANY") ? "ANY" : "ALL", out);
        return true;
    case KIND_AUTH_INFO: return auth_info(im, v, out);
    }
    return false;
}

/* ---- all of them ---- */

static bool fits(const char *value, const char *same) {
    size_t n = same ? strlen(same) : 0;
    if (n && same[n - 1] == '*')
        return strncasecmp(value, same, n - 1) == 0;
    return same && strcasecmp(value, same) == 0;
}

static void other(struct import *im, const struct import_line *l, const struct import_word *w) {
    const struct other *found = NULL;
    const char *value = w->value ? w->value : "";
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (!import_is(w->key, others[i].slurm))
            continue;
        if (fits(value, others[i].same))
            return;
        if (!found)
            found = &others[i];
    }
    if (found && found->why)
        import_note(im, l, "%s=%s: not carried over: %s", w->key, value, found->why);
    else
        import_note(im, l, "%s%s%s: not carried over: not supported yet", w->key, w->value ? "=" : "", value);
}

static bool is_record(const char *key) {
    static const char *const records[] = {"NodeName", "PartitionName", "NodeSet", "DownNodes", "FrontendName"};
    for (size_t i = 0; i < ARRAY_LEN(records); i++)
        if (import_is(key, records[i]))
            return true;
    return false;
}

static void read_values(struct import *im, struct value *values) {
    for (size_t i = 0; i < im->lines.n; i++) {
        const struct import_line *l = &im->lines.p[i];
        if (is_record(l->word[0].key))
            continue;
        for (uint32_t k = 0; k < l->n_words; k++) {
            const struct row *row = NULL;
            for (size_t r = 0; r < ARRAY_LEN(rows) && !row; r++)
                if (import_is(l->word[k].key, rows[r].slurm))
                    row = &rows[r];
            if (row)
                values[row - rows] = (struct value){row, l, l->word[k].value ? l->word[k].value : ""};
            else
                other(im, l, &l->word[k]);
        }
    }
}

/* DownNodes lines say what is true today: a state, no configuration. */
static void note_states(struct import *im) {
    for (size_t i = 0; i < im->lines.n; i++) {
        const struct import_line *l = &im->lines.p[i];
        const char *list = import_value(l, "DownNodes"), *state = import_value(l, "State"), *why = import_value(l, "Reason");
        if (list && import_is(l->word[0].key, "DownNodes"))
            import_note(im, l, "DownNodes=%s: once they have joined: scontrol update nodename=%s state=%s reason=\"%s\"", list, list,
                        state ? state : "DOWN", why ? why : "set in slurm.conf");
        if (import_is(l->word[0].key, "FrontendName"))
            import_note(im, l, "FrontendName: front ends are not supported");
    }
}

static void write_values(struct import *im, const struct value *values) {
    const char *section = "";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_str text = {0};
        if (!values[i].row || !print(im, &values[i], &text))
            continue;
        if (!str_eq(section, rows[i].section))
            str_addf(&im->conf, "\n[%s]\n", section = rows[i].section);
        str_addf(&im->conf, "%s = %s\n", rows[i].key, str_text(&text));
    }
}

/* Seconds, of SchedulerParameters=requeue_delay=N; Slurm's own are 120. */
static const char *delay_of(struct import *im) {
    static const char name[] = "requeue_delay=";
    const char *out = "120";
    for (size_t i = 0; i < im->lines.n; i++) {
        const char *at = import_value(&im->lines.p[i], "SchedulerParameters");
        for (; at && *at; at += strcspn(at, ","), at += *at == ',')
            if (strncasecmp(at, name, sizeof(name) - 1) == 0)
                out = arena_printf(im->arena, "%.*s", (int)strspn(at + sizeof(name) - 1, "0123456789"), at + sizeof(name) - 1);
    }
    uint64_t secs;
    return str_to_u64(out, 86400, &secs) ? "120" : out;
}

void import_slurm(struct import *im) {
    struct value values[ARRAY_LEN(rows)] = {0};
    str_add(&im->conf, "# Made from slurm.conf by `spur import slurm`.\n\n");
    read_values(im, values);
    const struct value *hosts_of[2] = {&values[3], &values[4]};
    if (hosts_of[0]->row) /* SlurmctldHost goes before the older name */
        values[4].row = NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].key == requeue_delay)
            values[i] = (struct value){.row = &rows[i], .text = delay_of(im)};
    write_values(im, values);
    note_states(im);
    import_parts(im);
    import_nodes(im);
}
