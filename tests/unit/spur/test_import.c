/* SPDX-License-Identifier: Apache-2.0
 *
 * spur import slurm: files as sites have them; what comes out is read by the controller's own parser, and what can't be
 * carried over is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "core/model/config.h"
#include "core/model/job.h"
#include "io/toml/toml.h"
#include "spur/import.h"

static const char *const *others; /* name, text, …, NULL: what may be included */

static const char *read_other(void *ctx, const char *from, const char *name, size_t *out_n) {
    for (size_t i = 0; others && others[i]; i += 2)
        if (str_eq(others[i], name)) {
            *out_n = strlen(others[i + 1]);
            return others[i + 1];
        }
    return NULL;
}

struct got {
    struct arena arena;
    struct import im;
    struct conf conf;
};

static void import(struct got *g, const char *text, const char *gres) {
    struct tree *root;
    auto_str problems = {0};
    struct err e = {0};
    *g = (struct got){0};
    import_init(&g->im, &g->arena);
    g->im.read = read_other;
    import_text(&g->im, "slurm.conf", text, strlen(text), false, 0);
    if (gres)
        import_text(&g->im, "gres.conf", gres, strlen(gres), true, 0);
    import_slurm(&g->im);
    if (toml_parse(str_text(&g->im.conf), g->im.conf.n, &g->arena, &root, &e))
        fail_msg("%s\n%s", e.text, str_text(&g->im.conf));
    if (conf_read(root, &g->arena, &g->conf, &problems, &e))
        fail_msg("%s\n%s", str_text(&problems), str_text(&g->im.conf));
}

static void done(struct got *g) {
    import_fini(&g->im);
    arena_fini(&g->arena);
}

static const struct part *part(const struct got *g, const char *name) {
    for (uint32_t i = 0; i < g->conf.rep.n_parts; i++)
        if (str_eq(g->conf.rep.parts[i].name, name))
            return &g->conf.rep.parts[i];
    fail_msg("no partition %s", name);
    return NULL;
}

static void expect_note(const struct got *g, const char *line) {
    if (!strstr(str_text(&g->im.notes), line))
        fail_msg("`%s' is not noted:\n%s", line, str_text(&g->im.notes));
}

static void a_site(void **state) {
    struct got g;
    import(&g,
           "# our cluster\n"
           "clustername = alpha\n"
           "SlurmctldHost=head(10.1.0.1)\n"
           "SlurmctldPort=7001 SlurmdTimeout=300   # two on a line\n"
           "SlurmUser=slurm\n"
           "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nProctrackType=proctrack/cgroup\n"
           "MaxArraySize=100001\nKillWait=7\nPriorityMaxAge=7-0\nJobRequeue=0\nLicenses=matlab:3,ansys*2,matlab\n"
           "NodeName=DEFAULT Sockets=2 CoresPerSocket=8 \\\n"
           "    RealMemory=64000\n"
           "NodeName=n[1-3] Feature=ib,zen\n"
           "NodeName=g1 CPUs=32 Gres=gpu:a100:4,shard:8 Weight=50 State=UNKNOWN\n"
           "NodeSet=all Nodes=n[1-3],g1\n"
           "PartitionName=DEFAULT MaxTime=2-00:00:00\n"
           "PartitionName=cpu Nodes=n[1-3] Default=yes DefaultTime=30 MaxNodes=2 AllowGroups=staff,wheel PriorityTier=5\n"
           "PartitionName=any Nodes=all MaxTime=INFINITE OverSubscribe=FORCE:2 State=DOWN Hidden=YES\n",
           NULL);
    const struct rconf *r = &g.conf.rep;
    assert_string_equal(str_text(&g.im.notes), "");
    assert_string_equal(r->cluster_name, "alpha");
    assert_string_equal(g.conf.listen_addr, "[::]:7001");
    assert_string_equal(g.conf.hosts[0], "10.1.0.1");
    assert_int_equal(r->heartbeat_timeout_secs, 300);
    assert_string_equal(r->admins[0], "slurm");
    assert_int_equal(r->max_array_size, 100001);
    assert_int_equal(r->kill_wait_secs, 7);
    assert_int_equal(r->requeue_delay_secs, 120);
    assert_int_equal(r->max_age_secs, 604800);
    assert_true(r->no_requeue);
    assert_int_equal(r->n_licenses, 2);
    for (uint32_t i = 0; i < r->n_licenses; i++)
        assert_int_equal(r->licenses[i].count, str_eq(r->licenses[i].name, "matlab") ? 4 : 2);
    assert_int_equal(r->n_overlays, 2);
    assert_int_equal(r->overlays[0].cpus, 16);
    assert_int_equal(r->overlays[0].memory_mb, 64000);
    assert_int_equal(r->overlays[1].cpus, 32);
    assert_int_equal(r->overlays[1].weight, 50);
    assert_int_equal(r->overlays[1].n_gres, 2);
    assert_string_equal(r->overlays[1].gres[0].type, "a100");
    const struct part *cpu = part(&g, "cpu"), *any = part(&g, "any");
    assert_true(cpu->is_default && !any->is_default);
    assert_int_equal(cpu->max_time_min, 2880);
    assert_int_equal(cpu->default_time_min, 30);
    assert_int_equal(cpu->max_nodes, 2);
    assert_int_equal(cpu->n_allow_groups, 2);
    assert_int_equal(cpu->priority_tier, 5);
    assert_int_equal(any->n_nodes, 4);
    assert_int_equal(any->max_time_min, TIME_LIMIT_NONE);
    assert_int_equal(any->over_subscribe, OVER_FORCE);
    assert_int_equal(any->over_count, 2);
    assert_int_equal(any->state, PART_DOWN);
    assert_true(any->hidden);
    done(&g);
}

static void nodes_for_one_alone(void **state) {
    struct got g;
    import(&g,
           "ClusterName=a\nNodeName=n1\nSchedulerParameters=bf_interval=1,requeue_delay=7\n"
           "PartitionName=node Nodes=n1 Exclusive=Node\n"
           "PartitionName=user Nodes=n1 Exclusive=USER OverSubscribe=YES:3\n"
           "PartitionName=topo Nodes=n1 Exclusive=TOPO\n",
           NULL);
    assert_int_equal(g.conf.rep.requeue_delay_secs, 7);
    const struct part *node = part(&g, "node"), *user = part(&g, "user"), *topo = part(&g, "topo");
    assert_true(node->over_subscribe == OVER_EXCLUSIVE && !node->exclusive_user);
    assert_true(user->exclusive_user && user->over_subscribe == OVER_YES && user->over_count == 3);
    assert_true(!topo->exclusive_user && topo->over_subscribe == OVER_NO);
    expect_note(&g, "slurm.conf:6: PartitionName=topo: Exclusive=TOPO: topology is not supported yet; left out\n");
    done(&g);
}

static void what_is_left_out(void **state) {
    struct got g;
    import(&g,
           "ClusterName=a\n"
           "PreemptType=preempt/qos\n"
           "PluginDir=/x\n"
           "SlurmdTimeout=soon\n"
           "MinJobAge=0\n"
           "Licenses=matlab:x\n"
           "Prolog=/etc/slurm/prolog.sh\n"
           "NodeName=n1 Gres=gpu:2(S:0),gpu:2 State=CLOUD Boot=x\n"
           "NodeName=[bad CPUs=1\n"
           "PartitionName=p Nodes=n1 AllowQos=high PreemptMode=REQUEUE MaxTime=often Fancy=1\n"
           "PartitionName=p Nodes=n1\n"
           "DownNodes=n1 State=DRAIN Reason=\"a bad disk\"\n",
           "AutoDetect=nvml\n");
    static const char *const lines[] = {
        "slurm.conf:2: PreemptType=preempt/qos: not carried over: preemption is not supported yet\n",
        "slurm.conf:3: PluginDir=/x: not carried over: not supported yet\n",
        "slurm.conf:4: SlurmdTimeout=soon: no number; left out\n",
        "slurm.conf:5: MinJobAge=0: must be from 1 to 31536000 here; left out\n",
        "slurm.conf:6: Licenses: `matlab:x' is no NAME:COUNT; left out\n",
        "slurm.conf:7: Prolog=/etc/slurm/prolog.sh: not carried over: prologs and epilogs are not supported yet\n",
        "slurm.conf:8: NodeName=n1: Boot=x: not carried over: not supported yet\n",
        "slurm.conf:8: NodeName=n1: State=CLOUD: nodes are there once they have joined\n",
        "slurm.conf:8: NodeName=n1: Gres=gpu:2: no NAME:TYPE:COUNT of a new kind; left out\n",
        "slurm.conf:9: NodeName=[bad: no node list; left out\n",
        "slurm.conf:10: PartitionName=p: AllowQos=high: not supported yet; left out\n",
        "slurm.conf:10: PartitionName=p: MaxTime=often: no time; left out\n",
        "slurm.conf:10: PartitionName=p: Fancy=1: not carried over: not supported yet\n",
        "slurm.conf:11: PartitionName=p: is there already; this one is left out\n",
        "slurm.conf:12: DownNodes=n1: once they have joined: scontrol update nodename=n1 state=DRAIN reason=\"a bad disk\"\n",
        "gres.conf:1: AutoDetect: devices are not detected yet: File= and Count= say what there is\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        expect_note(&g, lines[i]);
    assert_int_equal(g.conf.rep.n_parts, 1);
    done(&g);
}

static void files_include_files(void **state) {
    static const char *const files[] = {"nodes.conf", "NodeName=n[1-2] CPUs=4\ninclude parts.conf\n",
                                        "parts.conf", "PartitionName=p Nodes=n[1-2] Default=YES\n",
                                        "self.conf", "Include self.conf\n", NULL};
    struct got g;
    others = files;
    import(&g, "ClusterName=a\nInclude nodes.conf\nInclude self.conf\nInclude gone.conf\n", NULL);
    assert_int_equal(g.conf.rep.n_overlays, 1);
    assert_true(part(&g, "p")->is_default);
    expect_note(&g, "slurm.conf:4: Include gone.conf: the file can't be read; left out\n");
    expect_note(&g, "self.conf:1: Include self.conf: files include each other too deeply; left out\n");
    done(&g);
    others = NULL;
}

static void agents(void **state) {
    struct got g;
    import(&g, "ClusterName=a\nNodeName=n[1-2] NodeAddr=10.0.0.[1-2] Port=[7001-7002] Gres=gpu:1\nNodeName=x NodeAddr=x\n",
           "Name=gpu File=/dev/null\n");
    assert_string_equal(str_text(&g.im.agents), "spurd -N n1 --listen [::]:7001 --address 10.0.0.1 --gres-config gres.conf\n"
                                                "spurd -N n2 --listen [::]:7002 --address 10.0.0.2 --gres-config gres.conf\n"
                                                "spurd -N x\n");
    done(&g);
}

/* Whatever a text is, what comes out is TOML. */
static void hostile_texts(void **state) {
    static const char *const texts[] = {
        "ClusterName=\"a\\\"b\n", "ClusterName=a\nPartitionName=\nPartitionName\nNodeName\n", "= = =\n\\\n\\", "#\n\\#x=1\n",
        "ClusterName=a\nNodeName=n[1-99999999]\n", "ClusterName=a\nNodeName=a Feature=\"x\ty\",,\n",
        "ClusterName=M\xfcnchen\nPartitionName=p Nodes=\xee[1-2]\n", "ClusterName=\xed\xa0\x80\xf4\x90\x80\x80\xc3\xa4\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        auto_arena a = {0};
        struct import im;
        struct tree *root;
        struct err e = {0};
        import_init(&im, &a);
        import_text(&im, "f", texts[i], strlen(texts[i]), false, 0);
        import_slurm(&im);
        if (toml_parse(str_text(&im.conf), im.conf.n, &a, &root, &e))
            fail_msg("%s\n%s", e.text, str_text(&im.conf));
        import_fini(&im);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site),  cmocka_unit_test(nodes_for_one_alone), cmocka_unit_test(what_is_left_out), cmocka_unit_test(files_include_files),
        cmocka_unit_test(agents), cmocka_unit_test(hostile_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
