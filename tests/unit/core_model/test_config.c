/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/model/config_table.h"
#include "core/model/job.h"
#include "io/toml/toml.h"

static int read_text(const char *text, struct arena *a, struct conf *out, struct str *problems, struct err *e) {
    struct tree *root;
    int rc = toml_parse(text, strlen(text), a, &root, e);
    if (rc) {
        str_addf(problems, "%s\n", e->text);
        return rc;
    }
    return conf_read(root, a, out, problems, e);
}

static struct conf must_read(const char *text, struct arena *a) {
    auto_str problems = {0};
    struct err e = {0};
    struct conf c = {0};
    if (read_text(text, a, &c, &problems, &e))
        fail_msg("%s\n%s", text, str_text(&problems));
    return c;
}

static void expect_problems(const char *text, const char *want) {
    auto_arena a = {0};
    auto_str problems = {0};
    struct err e = {0};
    struct conf c = {.node_id = 77};
    int rc = read_text(text, &a, &c, &problems, &e);
    assert_string_equal(str_text(&problems), want);
    assert_int_equal(rc, E_CONFIG);
    assert_int_equal(c.node_id, 77);
    size_t n = strcspn(want, "\n");
    assert_int_equal(strlen(e.text), n);
    assert_memory_equal(e.text, want, n);
}

/* As the page of the Kubernetes deployment has it. */
static const char seed[] = "cluster_name = \"spur-k8s\"\n"
                           "\n"
                           "[controller]\n"
                           "peers = [\n"
                           "  \"spurctld-0.spurctld.spur.svc.cluster.local:6821\",\n"
                           "  \"spurctld-1.spurctld.spur.svc.cluster.local:6821\",\n"
                           "  \"spurctld-2.spurctld.spur.svc.cluster.local:6821\",\n"
                           "]\n"
                           "\n"
                           "[scheduler]\n"
                           "interval_secs = 2\n"
                           "plugin = \"backfill\"\n"
                           "\n"
                           "[[partitions]]\n"
                           "name = \"default\"\n"
                           "state = \"UP\"\n"
                           "default = true\n";

static void the_seed(void **state) {
    auto_arena a = {0};
    struct conf c = must_read(seed, &a);
    assert_string_equal(c.rep.cluster_name, "spur-k8s");
    assert_int_equal(c.n_peers, 3);
    assert_string_equal(c.peers[2], "spurctld-2.spurctld.spur.svc.cluster.local:6821");
    assert_int_equal(c.node_id, 0);
    assert_int_equal(c.rep.interval_secs, 2);
    assert_int_equal(c.rep.n_parts, 1);
    const struct part *p = c.rep.parts;
    assert_string_equal(p->name, "default");
    assert_int_equal(p->id, 1);
    assert_int_equal(p->state, PART_UP);
    assert_true(p->is_default);
    assert_true(p->all_nodes);
    assert_int_equal(p->max_time_min, TIME_LIMIT_NONE);
    assert_int_equal(c.auth_mode, AUTH_PERMISSIVE);
}

static void defaults(void **state) {
    auto_arena a = {0};
    auto_str one = {0}, two = {0};
    struct conf c, read = must_read("cluster_name = \"spur\"\n", &a);
    conf_defaults(&a, &c);
    conf_rep_text(&c.rep, &one);
    conf_rep_text(&read.rep, &two);
    assert_string_equal(str_text(&one), str_text(&two));
    assert_string_equal(c.rep.cluster_name, "spur");
    assert_string_equal(c.listen_addr, "[::]:6817");
    assert_string_equal(c.rest_addr, "[::]:6820");
    assert_string_equal(c.raft_listen_addr, "[::]:6821");
    assert_string_equal(c.state_dir, "/var/spool/spur");
    assert_int_equal(c.n_hosts, 1);
    assert_string_equal(c.hosts[0], "localhost");
    assert_int_equal(c.n_peers, 0);
    assert_int_equal(c.node_id, 0);
    assert_null(c.socket);
    assert_null(c.jwt_key);
    assert_null(c.jwt_key_file);
    assert_null(c.log_file);
    assert_string_equal(c.log_level, "info");
    assert_string_equal(c.log_format, "text");
    assert_int_equal(c.rep.min_job_age_secs, 300);
    assert_int_equal(c.rep.heartbeat_timeout_secs, 90);
    assert_int_equal(c.rep.kill_wait_secs, 30);
    assert_int_equal(c.rep.first_job_id, 1);
    assert_int_equal(c.rep.max_job_id, JOB_ID_MAX);
    assert_int_equal(c.rep.max_script_bytes, 4 << 20);
    assert_int_equal(c.rep.max_env_bytes, 1 << 20);
    assert_int_equal(c.rep.n_admins, 0);
    assert_int_equal(c.rep.default_time_min, 0);
    assert_false(c.rep.admission_token);
    assert_int_equal(c.rep.n_parts, 1);
    assert_string_equal(c.rep.parts[0].name, "default");
    assert_true(c.rep.parts[0].is_default);
    assert_true(c.rep.parts[0].all_nodes);
    assert_int_equal(c.rep.parts[0].min_nodes, 1);
}

static void a_whole_file(void **state) {
    auto_arena a = {0};
    struct conf c = must_read("cluster_name = \"e2e-test\"\n"
                              "nodes = [\n"
                              "    { names = \"node1\", cpus = 64, memory_mb = 262144 },\n"
                              "    { names = \"n[1-3]\", features = [\"ib\", \"zen\"], weight = 5 },\n"
                              "    { names = \"far\", address = \"10.0.0.9\" },\n"
                              "]\n"
                              "[controller]\n"
                              "listen_addr = \"127.0.0.1:7001\"\nraft_listen_addr = \"0.0.0.0:7002\"\n"
                              "hosts = [\"a\", \"b\"]\npeers = [\"a:6821\", \"b:6821\"]\nnode_id = 2\n"
                              "first_job_id = 100\nmax_job_id = 999999999\nstate_dir = \"/s\"\nsocket = \"/s/x\"\n"
                              "heartbeat_timeout_secs = 60\nmax_batch_requeue = 2\nmax_launch_backoff_secs = 10\n"
                              "terminal_job_retention_secs = 2\nsnapshot_entries = 1000\n"
                              "[scheduler]\n"
                              "interval_secs = 1\nplugin = \"Backfill\"\nmax_jobs_per_cycle = 100\n"
                              "default_time_limit_minutes = 30\nkill_wait_secs = 5\nweight_age = 1\nweight_job_size = 2\n"
                              "weight_partition = 3\nmax_age_secs = 60\ndef_mem_per_cpu_mb = 500\nmax_jobs = 50\n"
                              "max_script_bytes = 2048\nmax_env_bytes = 4096\nlaunch_timeout_secs = 7\n"
                              "[auth]\nmode = \"Required\"\njwt_key = \"k\"\nadmins = [\"alice\"]\n"
                              "[admission]\nmode = \"token\"\n"
                              "[logging]\nlevel = \"debug\"\nformat = \"json\"\nfile = \"/l\"\n"
                              "[network]\nwg_enabled = false\nagent_port = 6818\n"
                              "[accounting]\ndatabase_url = \"\"\n"
                              "[[partitions]]\n"
                              "name = \"main\"\nstate = \"up\"\ndefault = true\nnodes = \"node1,n[1-2]\"\n"
                              "max_time = \"24:00:00\"\ndefault_time = \"10:00\"\nmax_nodes = 2\npriority_tier = 10\n"
                              "[[partitions]]\n"
                              "name = \"k8s\"\nnodes = \"ALL\"\nmax_time = \"1h\"\ndefault_time = \"10m\"\nstate = \"DRAIN\"\n"
                              "[[partitions]]\n"
                              "name = \"n\"\nmax_time = 90\nselector = {}\nallow_accounts = []\npreempt_mode = \"off\"\n",
                              &a);
    const struct rconf *r = &c.rep;
    assert_string_equal(c.listen_addr, "127.0.0.1:7001");
    assert_string_equal(c.raft_listen_addr, "0.0.0.0:7002");
    assert_int_equal(c.n_hosts, 2);
    assert_int_equal(c.node_id, 2);
    assert_string_equal(c.state_dir, "/s");
    assert_string_equal(c.socket, "/s/x");
    assert_int_equal(c.snapshot_entries, 1000);
    assert_int_equal(r->first_job_id, 100);
    assert_int_equal(r->max_job_id, JOB_ID_MAX);
    assert_int_equal(r->heartbeat_timeout_secs, 60);
    assert_int_equal(r->max_launch_failures, 2);
    assert_int_equal(r->max_launch_backoff_secs, 10);
    assert_int_equal(r->min_job_age_secs, 2);
    assert_int_equal(r->max_jobs_per_cycle, 100);
    assert_int_equal(r->default_time_min, 30);
    assert_int_equal(r->kill_wait_secs, 5);
    assert_int_equal(r->weight_age, 1);
    assert_int_equal(r->weight_job_size, 2);
    assert_int_equal(r->weight_partition, 3);
    assert_int_equal(r->max_age_secs, 60);
    assert_int_equal(r->def_mem_per_cpu_mb, 500);
    assert_int_equal(r->max_jobs, 50);
    assert_int_equal(r->max_script_bytes, 2048);
    assert_int_equal(r->max_env_bytes, 4096);
    assert_int_equal(r->launch_timeout_secs, 7);
    assert_int_equal(c.auth_mode, AUTH_REQUIRED);
    assert_string_equal(c.jwt_key, "k");
    assert_int_equal(r->n_admins, 1);
    assert_true(r->admission_token);
    assert_string_equal(c.log_level, "debug");
    assert_string_equal(c.log_format, "json");
    assert_string_equal(c.log_file, "/l");

    assert_int_equal(r->n_parts, 3);
    assert_int_equal(r->parts[0].n_nodes, 3);
    assert_string_equal(r->parts[0].nodes[2], "n2");
    assert_string_equal(r->parts[0].nodes_text, "node1,n[1-2]");
    assert_false(r->parts[0].all_nodes);
    assert_int_equal(r->parts[0].max_time_min, 1440);
    assert_int_equal(r->parts[0].default_time_min, 10);
    assert_int_equal(r->parts[0].max_nodes, 2);
    assert_int_equal(r->parts[0].priority_tier, 10);
    assert_int_equal(r->parts[1].id, 2);
    assert_true(r->parts[1].all_nodes);
    assert_int_equal(r->parts[1].max_time_min, 60);
    assert_int_equal(r->parts[1].default_time_min, 10);
    assert_int_equal(r->parts[1].state, PART_DRAIN);
    assert_int_equal(r->parts[2].max_time_min, 90);
    assert_int_equal(r->parts[2].default_time_min, 0);
    assert_int_equal(r->parts[2].priority_tier, 1);

    assert_int_equal(r->n_overlays, 3);
    assert_int_equal(rconf_overlay(r, "node1", NULL, 0)->cpus, 64);
    assert_int_equal(rconf_overlay(r, "node1", NULL, 0)->memory_mb, 262144);
    assert_int_equal(rconf_overlay(r, "n2", NULL, 0)->weight, 5);
    assert_int_equal(rconf_overlay(r, "n2", NULL, 0)->n_features, 2);
    assert_string_equal(rconf_overlay(r, "far", NULL, 0)->address, "10.0.0.9");
    assert_null(rconf_overlay(r, "n4", NULL, 0));
}

#define OK "cluster_name = \"c\"\n"

static void unknown_names(void **state) {
    expect_problems(OK "[scheduler]\ninterval_sec = 1\n",
                    "line 3: unknown key `interval_sec` in [scheduler]; did you mean `interval_secs`?\n");
    expect_problems(OK "cluster_nam = \"x\"\n", "line 2: unknown key `cluster_nam`; did you mean `cluster_name`?\n");
    expect_problems(OK "[schedular]\nx = 1\n", "line 2: unknown section [schedular]; did you mean [scheduler]?\n");
    expect_problems(OK "[bananas]\nx = 1\n", "line 2: unknown section [bananas]\n");
    expect_problems(OK "[auth]\nkill_wait_secs = 1\n",
                    "line 3: unknown key `kill_wait_secs` in [auth]; it belongs to [scheduler]\n");
    expect_problems(OK "[auth]\ncluster_name = \"x\"\n",
                    "line 3: unknown key `cluster_name` in [auth]; it belongs to the top of the file\n");
    expect_problems(OK "interval_secs = 1\n", "line 2: unknown key `interval_secs`; it belongs to [scheduler]\n");
    expect_problems(OK "zzz = 1\n", "line 2: unknown key `zzz`\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\nmaxtime = \"1\"\n",
                    "line 4: unknown key `maxtime` in [partitions]; did you mean `max_time`?\n");
    expect_problems(OK "[[nodes]]\nnames = \"a\"\ncpu = 1\n",
                    "line 4: unknown key `cpu` in [nodes]; did you mean `cpus`?\n");
    expect_problems(OK "scheduler.interval_sec = 1\n",
                    "line 2: unknown key `interval_sec` in [scheduler]; did you mean `interval_secs`?\n");
}

static void wrong_values(void **state) {
    expect_problems(OK "[scheduler]\ninterval_secs = \"2\"\n",
                    "line 3: scheduler.interval_secs: \"2\" is not allowed; must be an integer from 1 to 3600\n");
    expect_problems(OK "[scheduler]\ninterval_secs = 0\n",
                    "line 3: scheduler.interval_secs: 0 is not allowed; must be an integer from 1 to 3600\n");
    expect_problems(OK "[scheduler]\ninterval_secs = -1\n",
                    "line 3: scheduler.interval_secs: -1 is not allowed; must be an integer from 1 to 3600\n");
    expect_problems(OK "[scheduler]\ninterval_secs = 2.5\n",
                    "line 3: scheduler.interval_secs: a number with a fraction is not allowed; must be an integer from 1 "
                    "to 3600\n");
    expect_problems(OK "[scheduler]\nplugin = \"fifo\"\n",
                    "line 3: scheduler.plugin: \"fifo\" is not allowed; must be \"backfill\"\n");
    expect_problems(OK "[auth]\nplugin = \"munge\"\nmode = \"permissive\"\n",
                    "line 4: auth.mode: contradicts plugin = \"munge\", which requires a proof\n");
    expect_problems(OK "[auth]\nmode = \"open\"\n",
                    "line 3: auth.mode: \"open\" is not allowed; must be one of \"permissive\", \"required\", \"disabled\"\n");
    expect_problems(OK "[compat]\nflavor = \"pbs\"\n",
                    "line 3: compat.flavor: \"pbs\" is not allowed; must be one of \"slurm\", \"amd\"\n");
}

static void wrong_shapes(void **state) {
    expect_problems(OK "[controller]\nlisten_addr = \"6817\"\n",
                    "line 3: controller.listen_addr: \"6817\" is not allowed; must be a text \"host:port\"\n");
    expect_problems(OK "[controller]\nlisten_addr = \"[::]:70000\"\n",
                    "line 3: controller.listen_addr: \"[::]:70000\" is not allowed; must be a text \"host:port\"\n");
    expect_problems(OK "[controller]\nlisten_addr = \"::1:6817\"\n",
                    "line 3: controller.listen_addr: \"::1:6817\" is not allowed; must be a text \"host:port\"\n");
    expect_problems(OK "[controller]\nhosts = \"a\"\n",
                    "line 3: controller.hosts: this text is not allowed; must be a list of at most 16 texts\n");
    expect_problems(OK "[controller]\nhosts = [1]\n",
                    "line 3: controller.hosts: this list is not allowed; must be a list of at most 16 texts\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\ndefault = \"yes\"\n",
                    "line 4: partitions.default: \"yes\" is not allowed; must be true or false\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\nmax_time = \"1 hour\"\n",
                    "line 4: partitions.max_time: \"1 hour\" is not allowed; must be a time such as 90 (minutes), "
                    "\"1:30:00\", \"2-12\", \"1h40m\" or \"UNLIMITED\"\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\nstate = \"OFF\"\n",
                    "line 4: partitions.state: \"OFF\" is not allowed; must be one of \"UP\", \"DOWN\", \"DRAIN\", "
                    "\"INACTIVE\"\n");
    expect_problems(OK "[partitions]\nname = \"a\"\n",
                    "line 2: partitions: must be a list of tables: [[partitions]]\n");
    expect_problems(OK "partitions = 5\n", "line 2: partitions: must be a list of tables: [[partitions]]\n");
    expect_problems(OK "nodes = [1]\n", "line 2: nodes: must be a list of tables: [[nodes]]\n");
    expect_problems(OK "scheduler = 5\n", "line 2: scheduler: must be a table: [scheduler]\n");
    expect_problems("cluster_name = \"\"\n",
                    "line 1: cluster_name: an empty text is not allowed; must be a text of 1 to 40 bytes\n");
    expect_problems("cluster_name = 5\n",
                    "line 1: cluster_name: an integer is not allowed; must be a text of 1 to 40 bytes\n");
    expect_problems("cluster_name = \"a b\"\n",
                    "line 1: cluster_name: \"a b\" is not allowed; must be letters, digits, `-`, `_` and `.`\n");
    expect_problems("", "line 1: cluster_name: is missing; the cluster must have a name\n");
}

static void secrets_stay_secret(void **state) {
    expect_problems(OK "[auth]\njwt_key = [\"s3cret\"]\n",
                    "line 3: auth.jwt_key: a list is not allowed; must be a text of 0 to 65536 bytes\n");
    expect_problems(OK "[auth]\njwt_key = 5\n",
                    "line 3: auth.jwt_key: an integer is not allowed; must be a text of 0 to 65536 bytes\n");
    expect_problems(OK "[accounting]\ndatabase_url = \"postgres://spur:s3cret@h/spur\"\n",
                    "line 3: accounting.database_url: not supported yet: history is kept in the controller's own SQLite\n");
    auto_arena a = {0};
    auto_str s = {0};
    struct conf c = must_read(OK "[auth]\njwt_key = \"s3cret\"\n", &a);
    conf_show(&c, NULL, &s);
    assert_null(strstr(str_text(&s), "s3cret"));
    str_clear(&s);
    conf_rep_text(&c.rep, &s);
    assert_null(strstr(str_text(&s), "s3cret"));
}

static void contradictions(void **state) {
    expect_problems(OK "[[partitions]]\nname = \"a\"\n[[partitions]]\nname = \"b\"\n[[partitions]]\nname = \"a\"\n",
                    "line 7: partitions.name: \"a\" is there already, in line 3\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\ndefault = true\n[[partitions]]\nname = \"b\"\ndefault = true\n",
                    "line 7: partitions.default: only one may be, and line 4 has one already\n");
    expect_problems(OK "[[partitions]]\ndefault = true\n", "line 2: partitions.name: is missing\n");
    expect_problems(OK "[[partitions]]\nname = \"a,b\"\n",
                    "line 3: partitions.name: \"a,b\" is not allowed; must be letters, digits, `-`, `_` and `.`\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\nnodes = \"n[3-1]\"\n",
                    "line 4: partitions.nodes: Invalid range: `3-1'\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\nnodes = \"n[1-\"\n",
                    "line 4: partitions.nodes: Invalid hostlist: n[1-\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\nmin_nodes = 5\nmax_nodes = 2\n",
                    "line 4: partitions.min_nodes: is more than max_nodes\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\nmax_time = 5\ndefault_time = 6\n",
                    "line 5: partitions.default_time: is more than max_time\n");
    expect_problems(OK "[[nodes]]\ncpus = 4\n", "line 2: nodes.names: is missing, and so is nodes.selector\n");
    expect_problems(OK "[[nodes]]\nnames = \"n[1\"\n", "line 3: nodes.names: Invalid hostlist: n[1\n");
    expect_problems(OK "[[nodes]]\nnames = \"n[1-2]\"\naddress = \"h\"\n",
                    "line 4: nodes.address: is for one node, and `names` has 2\n");
    expect_problems(OK "[controller]\nnode_id = 2\n",
                    "line 3: controller.node_id: 2 is not from 1 to 1, the number of peers\n");
    expect_problems(OK "[controller]\npeers = [\"a:1\", \"b:1\"]\nnode_id = 3\n",
                    "line 4: controller.node_id: 3 is not from 1 to 2, the number of peers\n");
    expect_problems(OK "[controller]\nnode_id = 0\n",
                    "line 3: controller.node_id: 0 is not allowed; must be an integer from 1 to 9\n");
    expect_problems(OK "[controller]\npeers = [\"a\", \"b:1\", \"b:1\"]\n",
                    "line 3: controller.peers: \"a\" is not allowed; must be \"host:port\"\n"
                    "line 3: controller.peers: \"b:1\" is there twice\n");
    expect_problems(OK "[controller]\nfirst_job_id = 10\nmax_job_id = 5\n",
                    "line 3: controller.first_job_id: is more than max_job_id\n");
    expect_problems(OK "[auth]\nplugin = \"none\"\nmode = \"required\"\n",
                    "line 4: auth.mode: contradicts plugin = \"none\", which believes everyone\n");
    expect_problems(OK "[auth]\njwt_key = \"a\"\njwt_key_file = \"b\"\n",
                    "line 4: auth.jwt_key_file: only one of it and jwt_key may be set\n");
    expect_problems(OK "[auth]\njwt_key_old = \"a\"\njwt_key_old_file = \"b\"\n",
                    "line 4: auth.jwt_key_old_file: only one of it and jwt_key_old may be set\n");
}

static void all_at_once(void **state) {
    expect_problems("[scheduler]\nplugin = \"x\"\ninterval_secs = 0\n[[partitions]]\nname = \"a\"\ndeny_qos = [\"x\"]\n"
                    "[mpi]\nplugin_dir = \"/x\"\n",
                    "line 1: cluster_name: is missing; the cluster must have a name\n"
                    "line 2: scheduler.plugin: \"x\" is not allowed; must be \"backfill\"\n"
                    "line 3: scheduler.interval_secs: 0 is not allowed; must be an integer from 1 to 3600\n"
                    "line 6: partitions.deny_qos: not supported yet\n"
                    "line 8: mpi.plugin_dir: not supported yet\n");
    auto_arena a = {0};
    auto_str text = {0}, problems = {0};
    struct err e = {0};
    struct conf c;
    str_add(&text, OK);
    for (int i = 0; i < 150; i++)
        str_addf(&text, "zzz%d = 1\n", i);
    assert_int_equal(read_text(str_text(&text), &a, &c, &problems, &e), E_CONFIG);
    assert_true(str_ends(str_text(&problems), "line 101: unknown key `zzz99`\nand 50 more\n"));
}

static void no_key_needed(void **state) {
    auto_arena a = {0};
    assert_int_equal(must_read(OK "[auth]\nmode = \"required\"\n", &a).auth_mode, AUTH_REQUIRED);
    assert_int_equal(must_read(OK "[auth]\nplugin = \"none\"\n", &a).auth_mode, AUTH_DISABLED);
    assert_int_equal(must_read(OK "[auth]\nplugin = \"none\"\nmode = \"disabled\"\n", &a).auth_mode, AUTH_DISABLED);
    assert_int_equal(must_read(OK "[auth]\nmode = \"disabled\"\n", &a).auth_mode, AUTH_DISABLED);
    assert_int_equal(must_read(OK "[auth]\nplugin = \"munge\"\n", &a).auth_mode, AUTH_REQUIRED);
    assert_int_equal(must_read(OK "[auth]\nplugin = \"munge\"\nmode = \"required\"\n", &a).auth_mode, AUTH_REQUIRED);
    assert_null(must_read(OK "[auth]\njwt_key = \"\"\n", &a).jwt_key);
    assert_int_equal(must_read(OK "nodes = []\npartitions = []\n", &a).rep.n_parts, 1);
    assert_true(must_read(OK "[[partitions]]\nname = \"a\"\nnodes = \"\"\n", &a).rep.parts[0].all_nodes);
    assert_true(must_read(OK "[[partitions]]\nname = \"a\"\nnodes = \"all\"\n", &a).rep.parts[0].all_nodes);
    assert_string_equal(must_read(OK "[controller]\nlisten_addr = \":6817\"\n", &a).listen_addr, ":6817");
}

static void resources(void **state) {
    auto_arena a = {0};
    auto_str one = {0}, two = {0};
    struct conf c = must_read(OK "licenses = { matlab = 4, ansys = 2 }\n"
                              "[[nodes]]\nnames = \"n6\"\ngres = \"gpu:h100:4,gpu:a100:2,shard:2K\"\nfeatures = \"gpu,xeon\"\n"
                              "[[partitions]]\nname = \"a\"\nover_subscribe = \"Force:2\"\nexclusive_user = true\n"
                              "max_cpus_per_node = 3\nallow_groups = \"x,y\"\nallow_accounts = [\"ml\"]\nroot_only = true\n"
                              "hidden = true\npriority_job_factor = 7\n"
                              "[[partitions]]\nname = \"b\"\nover_subscribe = \"yes\"\n"
                              "[[partitions]]\nname = \"c\"\nover_subscribe = \"EXCLUSIVE\"\n"
                              "[scheduler]\nmax_array_size = 2000\njob_requeue = false\nmax_requeues = 3\nmax_steps = 4\n"
                              "attend_secs = 9\nbatch_starts = 11\n",
                              &a);
    const struct rconf *r = &c.rep;
    assert_int_equal(r->n_licenses, 2);
    assert_string_equal(r->licenses[0].name, "ansys");
    assert_int_equal(r->licenses[1].count, 4);
    const struct node_overlay *o = r->overlays;
    assert_int_equal(o->n_gres, 3);
    assert_string_equal(o->gres[1].name, "gpu");
    assert_string_equal(o->gres[1].type, "a100");
    assert_int_equal(o->gres[1].first, 4);
    assert_null(o->gres[2].type);
    assert_int_equal(o->gres[2].count, 2048);
    assert_int_equal(o->n_features, 2);
    assert_string_equal(o->features[1], "xeon");
    const struct part *p = r->parts;
    assert_int_equal(p->over_subscribe, OVER_FORCE);
    assert_int_equal(p->over_count, 2);
    assert_true(p->exclusive_user && p->root_only && p->hidden);
    assert_int_equal(p->max_cpus_per_node, 3);
    assert_int_equal(p->n_allow_groups, 2);
    assert_string_equal(p->allow_accounts[0], "ml");
    assert_int_equal(p->priority_job_factor, 7);
    assert_int_equal(p[1].over_subscribe, OVER_YES);
    assert_int_equal(p[1].over_count, 4);
    assert_int_equal(p[2].over_subscribe, OVER_EXCLUSIVE);
    assert_int_equal(r->max_array_size, 2000);
    assert_true(r->no_requeue);
    assert_int_equal(r->max_requeues, 3);
    assert_int_equal(r->max_steps, 4);
    assert_int_equal(r->attend_secs, 9);
    assert_int_equal(r->batch_starts, 11);
    conf_show(&c, NULL, &one);
    assert_non_null(strstr(str_text(&one), "Licenses                = ansys:2,matlab:4\n"));
    assert_non_null(strstr(str_text(&one), "JobRequeue              = 0\n"));
    assert_non_null(strstr(str_text(&one), "MaxArraySize            = 2000\n"));
    str_clear(&one);
    c = must_read(OK "[licenses]\nb = 1\na = 2\n", &a);
    conf_rep_text(&c.rep, &one);
    c = must_read(OK "licenses = { a = 2, b = 1 }\n", &a);
    conf_rep_text(&c.rep, &two);
    assert_string_equal(str_text(&one), str_text(&two));
    str_clear(&two);
    c = must_read(OK "licenses = { a = 2, b = 2 }\n", &a);
    conf_rep_text(&c.rep, &two);
    assert_string_not_equal(str_text(&one), str_text(&two));
    expect_problems(OK "licenses = { a = -1 }\n", "line 2: licenses: this table is not allowed; must be a table of at most "
                                                  "1000 names and their numbers\n");
    expect_problems(OK "[[nodes]]\nnames = \"n\"\ngres = [\"gpu:a:x\", \"gpu:a:1\", \"gpu:a:2\"]\n",
                    "line 4: nodes.gres: \"gpu:a:2\" is not allowed; must be \"NAME:TYPE:COUNT\" or \"NAME:COUNT\", each kind once\n"
                    "line 4: nodes.gres: \"gpu:a:x\" is not allowed; must be \"NAME:TYPE:COUNT\" or \"NAME:COUNT\", each kind once\n");
    expect_problems(OK "[[partitions]]\nname = \"a\"\nover_subscribe = \"NO:2\"\n",
                    "line 4: partitions.over_subscribe: \"NO:2\" is not allowed; must be \"NO\", \"EXCLUSIVE\", \"YES:COUNT\" or "
                    "\"FORCE:COUNT\"\n");
}

/* Prints a value of a row as a file has it. */
static void add_value(enum conf_type type, const char *text, struct str *out) {
    if (type == CONF_STRS || type == CONF_NAMES || type == CONF_LIST)
        str_addf(out, *text ? "[\"%s\"]" : "[]", text);
    else if (type == CONF_TABLE || type == CONF_COUNTS || type == CONF_LABELS)
        str_add(out, "{}");
    else if (type == CONF_U32 || type == CONF_U64 || type == CONF_BOOL)
        str_add(out, text);
    else
        str_addf(out, "\"%s\"", text);
}

static void file_with(const char *section, const char *key, enum conf_type type, const char *text, struct str *out) {
    const struct conf_section *s = conf_find_section(section);
    assert_non_null(s);
    if (strcmp(key, "cluster_name") != 0)
        str_add(out, OK);
    if (*section)
        str_addf(out, s->shape == CONF_SHAPE_TABLES ? "[[%s]]\n" : "[%s]\n", section);
    if (s->shape == CONF_SHAPE_TABLES)
        str_add(out, strcmp(section, "nodes") == 0 ? "names = \"x\"\n" : "name = \"x\"\n");
    str_addf(out, "%s = ", key);
    add_value(type, text, out);
    str_addc(out, '\n');
}

/* Each default is a value that a file may have, and writing it down changes nothing. */
static void written_defaults(void **state) {
    size_t n;
    const struct conf_key *k = conf_keys(&n);
    for (size_t i = 0; i < n; i++) {
        auto_arena a = {0};
        auto_str file = {0}, bare = {0}, one = {0}, two = {0};
        if (!k[i].def)
            continue;
        file_with(k[i].section, k[i].key, k[i].type, k[i].def, &file);
        struct conf with = must_read(str_text(&file), &a);
        if (strcmp(k[i].key, "cluster_name") == 0)
            continue;
        str_addn(&bare, file.p, (size_t)(strrchr(file.p, '=') - file.p));
        while (bare.n && bare.p[bare.n - 1] != '\n')
            bare.p[--bare.n] = '\0';
        struct conf without = must_read(str_text(&bare), &a);
        conf_show(&with, NULL, &one);
        conf_rep_text(&with.rep, &one);
        conf_show(&without, NULL, &two);
        conf_rep_text(&without.rep, &two);
        assert_string_equal(str_text(&one), str_text(&two));
    }
}

static void written_others(void **state) {
    size_t n;
    const struct conf_other *o = conf_others(&n);
    for (size_t i = 0; i < n; i++) {
        auto_arena a = {0};
        auto_str file = {0}, problems = {0}, want = {0};
        struct conf c;
        struct err e = {0};
        assert_null(conf_find_key(o[i].section, o[i].key));
        if (o[i].value) {
            file_with(o[i].section, o[i].key, o[i].type, o[i].value, &file);
            must_read(str_text(&file), &a);
            str_clear(&file);
        }
        file_with(o[i].section, o[i].key, o[i].type == CONF_BOOL ? CONF_BOOL : CONF_STR,
                  o[i].type == CONF_BOOL ? (strcmp(o[i].value, "true") ? "true" : "false") : "another", &file);
        assert_int_equal(read_text(str_text(&file), &a, &c, &problems, &e), E_CONFIG);
        conf_print_name(o[i].section, o[i].key, &want);
        str_add(&want, ": not supported yet");
        assert_non_null(strstr(str_text(&problems), str_text(&want)));
    }
}

static void canonical_text(void **state) {
    auto_arena a = {0};
    auto_str one = {0}, two = {0}, three = {0};
    struct conf c = must_read("cluster_name = \"c\"\n[[partitions]]\nname = \"a\"\nnodes = \"n[1-2]\"\nmax_time = \"1:00:00\"\n"
                              "[scheduler]\nkill_wait_secs = 30\n[auth]\nadmins = [\"x\"]\n",
                              &a);
    struct conf d = must_read("# a comment\ncluster_name='c'\n[auth]\nadmins = [ 'x' ]\n[logging]\nlevel = \"debug\"\n"
                              "[controller]\nstate_dir = \"/else\"\n[[partitions]]\nmax_time = 60\nnodes = \"n1,n2\"\n"
                              "name = \"a\"\n",
                              &a);
    conf_rep_text(&d.rep, &three);
    conf_rep_text(&c.rep, &one);
    c.rep.hash = (const uint8_t *)"x";
    c.rep.n_hash = 1;
    conf_rep_text(&c.rep, &two);
    assert_string_equal(str_text(&one), str_text(&two));
    assert_string_equal(str_text(&one), str_text(&three));
    c.rep.kill_wait_secs = 31;
    str_clear(&three);
    conf_rep_text(&c.rep, &three);
    assert_string_not_equal(str_text(&one), str_text(&three));
}

static void shown(void **state) {
    auto_arena a = {0};
    auto_str s = {0};
    struct conf c = must_read(seed, &a), other = must_read(OK "[scheduler]\nkill_wait_secs = 5\n", &a);
    conf_show(&c, &other.rep, &s);
    static const char *const lines[] = {
        "ClusterName             = c\n",
        "MinJobAge               = 300 sec\n",
        "KillWait                = 5 sec\n",
        "SlurmctldHost[0]        = spurctld-0.spurctld.spur.svc.cluster.local\n",
        "SlurmctldHost[2]        = spurctld-2.spurctld.spur.svc.cluster.local\n",
        "SlurmctldPort           = 6817\n",
        "PriorityMaxAge          = 7-00:00:00\n",
        "SelectType              = select/cons_tres\n",
        "StateSaveLocation       = /var/spool/spur\n",
        "SlurmctldLogFile        = (null)\n",
        "AuthType                = auth/jwt\n",
        "scheduler.interval_secs = 1 sec\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        if (!strstr(str_text(&s), lines[i]))
            fail_msg("no line %sin\n%s", lines[i], str_text(&s));
    }
    assert_true(str_starts(str_text(&s), "admission.mode          = open\n"));
}

static void sample_and_docs(void **state) {
    auto_arena a = {0};
    auto_str sample = {0}, docs = {0}, one = {0}, two = {0};
    size_t n, m;
    const struct conf_key *k = conf_keys(&n);
    const struct conf_other *o = conf_others(&m);
    struct conf c, d;
    conf_sample(&sample);
    conf_docs(&docs);
    c = must_read(str_text(&sample), &a);
    conf_defaults(&a, &d);
    conf_show(&c, NULL, &one);
    conf_show(&d, NULL, &two);
    assert_string_equal(str_text(&one), str_text(&two));
    for (size_t i = 0; i < n; i++) {
        char word[100];
        snprintf(word, sizeof(word), "%s = ", k[i].key);
        assert_non_null(strstr(str_text(&sample), word));
        snprintf(word, sizeof(word), "| `%s` | ", k[i].key);
        assert_non_null(strstr(str_text(&docs), word));
        for (size_t j = 0; j < i; j++)
            assert_false(str_eq(k[i].section, k[j].section) && str_eq(k[i].key, k[j].key));
    }
    for (size_t i = 0; i < m; i++)
        assert_non_null(strstr(str_text(&docs), o[i].key));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seed),        cmocka_unit_test(defaults),       cmocka_unit_test(a_whole_file),
        cmocka_unit_test(unknown_names),   cmocka_unit_test(wrong_values),   cmocka_unit_test(wrong_shapes),
        cmocka_unit_test(secrets_stay_secret), cmocka_unit_test(contradictions), cmocka_unit_test(all_at_once),
        cmocka_unit_test(no_key_needed),   cmocka_unit_test(written_defaults), cmocka_unit_test(written_others),
        cmocka_unit_test(canonical_text),  cmocka_unit_test(shown),          cmocka_unit_test(resources),      cmocka_unit_test(sample_and_docs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
