/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in, recorded lines of Slurm's out: squeue, scontrol show, sacct and sinfo without a daemon.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spur/cli.h"
#include "spur/job_facts.h"
#include "base/mem.h"
#include "spur/job_fields.h"
#include "spur/job_select.h"
#include "spur/node_facts.h"
#include "spur/node_fields.h"
#include "spur/sacct.h"
#include "spur/scontrol.h"
#include "spur/step_facts.h"

#define T0 1796140122 /* 2026-12-01T15:48:42 UTC */

static const struct job_node one_node[] = {{.node_id = 1, .name = "n1", .cpus = 1, .n_tasks = 1}};
static const struct job_spec demo = {
    .name = "demo", .user = "root", .group = "root", .n_tasks = 1, .n_tasks_given = 1, .cpus_per_task = 1, .min_nodes = 1,
    .time_limit_min = 10, .partition = "debug", .work_dir = "/home/alice", .command = "/home/alice/s.sh",
    .submit_line = "sbatch s.sh", .submit_host = "0.0.0.0", .session_id = 1561,
};
static const struct job running = {
    .id = 13506, .spec = &demo, .state = JOB_RUNNING, .submit_ms = T0 * 1000ll, .eligible_unix = T0,
    .start_ms = T0 * 1000ll, .partition = "debug", .nodes = one_node, .n_nodes = 1, .n_cpus = 1, .time_limit_min = 10,
    .start_no = 1, .sluid = "s0NHM8SXAJ0V00",
};
static const struct job_info running_info = {.job = &running, .priority = 1};
static const struct job_env env = {T0 + 4, "peer"};

static void line(const struct table_fields *f, const char *format, bool is_long, const void *row, const void *e,
                 const char *want) {
    struct table t;
    auto_str out = {0};
    table_init(&t, f);
    (is_long ? table_parse_long : table_parse_percent)(&t, format);
    table_line(&t, row, e, &out);
    assert_string_equal(str_text(&out), want);
    assert_int_equal(t.bad.n, 0);
    table_fini(&t);
}
#define SQUEUE "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"

static void squeue_running(void **state) {
    line(job_fields(), SQUEUE, false, &running_info, &env,
         "             13506     debug     demo     root  R       0:04      1 n1\n");
    line(job_fields(), "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R", false, &running_info, &env,
         "             13506     debug     demo     root  RUNNING       0:04     10:00      1 n1\n");
    line(job_fields(),
         "%A %a %B %b %C %c %D %d %E %e %F %f %G %g %h %i %j %K %k %L %l %M %m %N %n %O %P %p %Q %q %R %r %S %t %T %u %U %V "
         "%v %W %w %X %x %Y %y %Z %z",
         false, &running_info, &env,
         "13506 (null) n1 N/A 1 1 1 0 (null) 2026-12-01T15:58:42 13506 (null) 0 root NO 13506 demo N/A (null) 9:56 10:00 "
         "0:04 0 n1  0 debug 0.00000000023283 1 (null) n1 None 2026-12-01T15:48:42 R RUNNING root 0 2026-12-01T15:48:42 "
         "(null) (null) (null) N/A  (null) 0 /home/alice *:*:*\n");
    line(job_fields(), "JobID,Name:20,State,tres-alloc:40,NodeList,Reason", true, &running_info, &env,
         "13506               demo                RUNNING             cpu=1,node=1,billing=1                  n1              "
         "    None                \n");
}

static struct job waiting(uint32_t id) {
    struct job j = running;
    j.id = id;
    j.state = JOB_PENDING;
    j.start_ms = 0;
    j.partition = NULL;
    j.nodes = NULL;
    j.n_nodes = j.n_cpus = 0;
    return j;
}

static void squeue_waiting(void **state) {
    struct job j = waiting(13507);
    j.hold = HOLD_USER;
    struct job_info ji = {.job = &j, .reason = REASON_HELD_USER};
    line(job_fields(), SQUEUE, false, &ji, &env,
         "             13507     debug     demo     root PD       0:00      1 (JobHeldUser)\n");
    line(job_fields(), "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R", false, &ji, &env,
         "             13507     debug     demo     root PD                 N/A      1 (null)               (JobHeldUser)\n");
    struct job_spec begin = demo;
    begin.begin_unix = T0 + 3602;
    j.spec = &begin;
    j.hold = HOLD_NONE;
    ji.reason = REASON_BEGIN_TIME;
    line(job_fields(), "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R", false, &ji, &env,
         "             13507     debug     demo     root PD 2026-12-01T16:48:44      1 (null)               (BeginTime)\n");
    ji.reason = REASON_NODES_UNAVAIL;
    line(job_fields(), "%r", false, &ji, &env, "ReqNodeNotAvail\n");
    ji.reason_text = "ReqNodeNotAvail, UnavailableNodes:n[2,5]";
    line(job_fields(), "%r|%R", false, &ji, &env,
         "ReqNodeNotAvail, UnavailableNodes:n[2,5]|(ReqNodeNotAvail, UnavailableNodes:n[2,5])\n");
    begin.time_limit_min = j.time_limit_min = 0; /* its partition's, which the controller knows */
    line(job_fields(), "%l|%L", false, &ji, &env, "NOT_SET|NOT_SET\n");
    ji.limit_min = 30;
    line(job_fields(), "%.9l|%L|%e", false, &ji, &env, "    30:00|30:00|2026-12-01T17:18:44\n");
    ji.limit_min = TIME_LIMIT_NONE;
    line(job_fields(), "%l|%L|%e", false, &ji, &env, "UNLIMITED|UNLIMITED|N/A\n");
}

static void squeue_ended(void **state) {
    struct job j = running;
    j.state = JOB_FAILED;
    j.end_ms = (T0 + 4) * 1000ll;
    j.wait_status = 9;
    j.reason = REASON_RAISED_SIGNAL;
    struct job_info ji = {.job = &j};
    line(job_fields(), "%i %T %r %R", false, &ji, &env,
         "13506 FAILED RaisedSignal:9(Killed) (RaisedSignal:9(Killed))\n");
    j.state = JOB_CANCELLED;
    j.completing = true;
    j.reason = REASON_NONE;
    line(job_fields(), "%t %T %r %R", false, &ji, &env, "CG COMPLETING None n1\n");
}

static void scontrol_job(void **state) {
    static const char want[] =
        "JobId=13506 JobName=demo\n"
        "   UserId=root(0) GroupId=root(0) MCS_label=N/A\n"
        "   Priority=1 Nice=0 Account=(null) QOS=(null)\n"
        "   JobState=RUNNING Reason=None Dependency=(null)\n"
        "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0\n"
        "   RunTime=00:00:04 TimeLimit=00:10:00 TimeMin=N/A\n"
        "   SubmitTime=2026-12-01T15:48:42 EligibleTime=2026-12-01T15:48:42\n"
        "   AccrueTime=2026-12-01T15:48:42\n"
        "   StartTime=2026-12-01T15:48:42 EndTime=2026-12-01T15:58:42 Deadline=N/A\n"
        "   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-12-01T15:48:42 Scheduler=Main\n"
        "   Partition=debug AllocNode:Sid=0.0.0.0:1561\n"
        "   ReqNodeList=(null) ExcNodeList=(null)\n"
        "   NodeList=n1\n"
        "   BatchHost=n1\n"
        "   NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n"
        "   ReqTRES=cpu=1,node=1,billing=1\n"
        "   AllocTRES=cpu=1,node=1,billing=1\n"
        "   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*\n"
        "   MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0\n"
        "   Features=(null) DelayBoot=00:00:00\n"
        "   OverSubscribe=NO Exclusive=NO Contiguous=0 Licenses=(null) LicensesAlloc=(null) Network=(null)\n"
        "   Command=/home/alice/s.sh\n"
        "   SubmitLine=sbatch s.sh\n"
        "   WorkDir=/home/alice\n"
        "   StdErr=\n"
        "   StdIn=/dev/null\n"
        "   StdOut=/home/alice/slurm-13506.out\n\n";
    auto_str out = {0}, flat = {0};
    scontrol_job_text(&running_info, T0 + 4, false, false, &out);
    assert_string_equal(str_text(&out), want);
    str_clear(&out);
    scontrol_job_text(&running_info, T0 + 4, true, false, &out);
    for (const char *c = want; *c; c++) {
        if (strncmp(c, "\n   ", 4) == 0) {
            str_addc(&flat, ' ');
            c += 3;
        } else if (strcmp(c, "\n\n") != 0) {
            str_addc(&flat, *c);
        }
    }
    assert_string_equal(str_text(&out), str_text(&flat));
}

static void scontrol_waiting_job(void **state) {
    static const struct dep deps[] = {{.kind = DEP_AFTEROK, .job_id = 5}};
    static const char *const wanted[] = {"n1", "n2", "n3", "n4"};
    struct job j = waiting(385);
    struct job_spec spec = demo;
    spec.req_nodes = wanted;
    spec.n_req_nodes = spec.min_nodes = spec.max_nodes = spec.n_tasks = 4;
    spec.comment = "x y";
    spec.std_err = "e.%j";
    j.spec = &spec;
    j.deps = deps;
    j.n_deps = 1;
    j.eligible_unix = 0;
    auto_str out = {0};
    scontrol_job_text(&(struct job_info){.job = &j, .reason = REASON_LAUNCH_FAILED}, T0 + 4, false, false, &out);
    static const char *const lines[] = {
        "\n   JobState=PENDING Reason=launch_failed_requeued_held Dependency=afterok:5(unfulfilled)\n",
        "\n   SubmitTime=2026-12-01T15:48:42 EligibleTime=Unknown\n   AccrueTime=Unknown\n",
        "\n   StartTime=Unknown EndTime=Unknown Deadline=N/A\n",
        "\n   ReqNodeList=n[1-4] ExcNodeList=(null)\n   NodeList=\n   NumNodes=4-4 NumCPUs=4 NumTasks=4 CPUs/Task=1",
        "\n   AllocTRES=(null)\n",
        "\n   Comment=x y\n   StdErr=/home/alice/e.385\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (!strstr(out.p, lines[i]))
            fail_msg("%s is not in\n%s", lines[i], out.p);
}

static const char *const features[] = {"ib", "zen"};
static const struct node n1 = {
    .id = 1, .name = "n1", .address = "10.0.0.1", .port = 6818, .hostname = "n1", .cpus = 8, .sockets = 2,
    .cores_per_socket = 4, .threads_per_core = 1, .mem_mb = 64000, .tmp_disk_mb = 10000, .features = features,
    .n_features = 2, .weight = 1, .arch = "x86_64", .os = "Linux 6.1.0", .version = "26.05.5", .boot_unix = T0 - 100,
    .agent_start_unix = T0 - 50, .base = NODE_UP, .alloc_cpus = 3, .alloc_mem_mb = 3072, .n_jobs = 1,
    .last_busy_unix = T0,
};
static const char *const parts_of_n1[] = {"debug", "long"};
static const struct node_info n1_info = {.node = &n1, .cpu_load_hundredths = 190, .free_mem_mb = 18949,
                                         .partitions = parts_of_n1, .n_partitions = 2};

static void scontrol_node(void **state) {
    auto_str out = {0};
    scontrol_node_text(&n1_info, false, false, &out);
    assert_string_equal(str_text(&out),
                        "NodeName=n1 Arch=x86_64 CoresPerSocket=4 \n"
                        "   CPUAlloc=3 CPUEfctv=8 CPUTot=8 CPULoad=1.89\n"
                        "   AvailableFeatures=ib,zen\n"
                        "   ActiveFeatures=ib,zen\n"
                        "   Gres=(null)\n"
                        "   NodeAddr=10.0.0.1 NodeHostName=n1 Version=26.05.5\n"
                        "   OS=Linux 6.1.0 \n"
                        "   RealMemory=64000 AllocMem=3072 FreeMem=18948 Sockets=2 Boards=1\n"
                        "   State=MIXED ThreadsPerCore=1 TmpDisk=10000 Weight=1 Owner=N/A MCS_label=N/A\n"
                        "   Partitions=debug,long \n"
                        "   BootTime=2026-12-01T15:47:02 SlurmdStartTime=2026-12-01T15:47:52\n"
                        "   LastBusyTime=2026-12-01T15:48:42 ResumeAfterTime=None SuspendTime=INFINITE\n"
                        "   CfgTRES=cpu=8,mem=62.50G,billing=8\n"
                        "   AllocTRES=cpu=3,mem=3G\n"
                        "   CurrentWatts=0 AveWatts=0\n\n");
    static const struct drain drains[] = {{.owner = "admin", .text = "bad disk", .since_unix = T0, .user = "root"}};
    struct node drained = n1;
    drained.drains = drains;
    drained.n_drains = 1;
    str_clear(&out);
    scontrol_node_text(&(struct node_info){.node = &drained}, false, false, &out);
    assert_non_null(strstr(out.p, "State=MIXED+DRAIN "));
    assert_true(str_ends(out.p, "\n   Reason=bad disk [root@2026-12-01T15:48:42]\n\n"));
}

static void scontrol_partition(void **state) {
    struct part p = {.name = "debug", .is_default = true, .max_time_min = TIME_LIMIT_NONE, .all_nodes = true};
    struct nodes_reply all = {.nodes = &n1_info, .n_nodes = 1, .parts = &p, .n_parts = 1};
    auto_str out = {0};
    scontrol_part_text(&p, &all, false, &out);
    assert_string_equal(str_text(&out),
                        "PartitionName=debug\n"
                        "   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL\n"
                        "   AllocNodes=ALL Default=YES QoS=N/A\n"
                        "   DefaultTime=NONE DisableRootJobs=NO Exclusive=NO GraceTime=0 Hidden=NO\n"
                        "   MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED "
                        "MaxCPUsPerSocket=UNLIMITED\n"
                        "   Nodes=n1\n"
                        "   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO\n"
                        "   OverTimeLimit=NONE PreemptMode=OFF\n"
                        "   State=UP TotalCPUs=8 TotalNodes=1 SelectTypeParameters=NONE\n"
                        "   JobDefaults=(null)\n"
                        "   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n"
                        "   TRES=cpu=8,mem=62.50G,node=1,billing=8\n\n");
}

/* ---- sacct ---- */

static void sacct_row(const char *format, const struct job *j, bool is_batch, const char *want) {
    struct table t;
    auto_str out = {0};
    const char *bad;
    size_t n_bad;
    const struct sacct_style style = {.parsable = true, .no_ending = true, .delimiter = "|"};
    struct job_info ji = {.job = j};
    struct step_batch batch;
    struct sacct_row row = {&ji, NULL};
    if (is_batch) {
        assert_true(step_of_batch(j, &batch));
        row.step = &batch.step;
    }
    table_init(&t, sacct_fields());
    assert_true(sacct_parse(&t, format, &bad, &n_bad));
    sacct_line(&t, &style, &row, &env, &out);
    assert_string_equal(str_text(&out), want);
    table_fini(&t);
}

static void sacct_rows(void **state) {
    struct job_spec spec = demo;
    spec.account = "ml";
    spec.qos = "normal";
    spec.uid = spec.gid = 1001;
    spec.user = spec.group = "alice";
    spec.mem_node_mb = 16000;
    struct job j = running;
    j.spec = &spec;
    j.end_ms = (T0 + 3) * 1000ll;
    j.state = JOB_COMPLETED;
    j.max_rss_kb = 3796;
    j.user_cpu_us = 30000;
    j.sys_cpu_us = 6000;
    sacct_row("jobid,jobname,partition,account,alloccpus,state,exitcode", &j, false, "13506|demo|debug|ml|1|COMPLETED|0:0\n");
    sacct_row("jobid,jobname,partition,account,alloccpus,state,exitcode", &j, true, "13506.batch|batch||ml|1|COMPLETED|0:0\n");
    sacct_row("JobIDRaw,State,ExitCode,Elapsed,Submit,Start,End,NodeList,ReqMem,ReqTRES,AllocTRES,User,Group,QOS,Timelimit,WorkDir",
              &j, false,
              "13506|COMPLETED|0:0|00:00:03|2026-12-01T15:48:42|2026-12-01T15:48:42|2026-12-01T15:48:45|n1|16000M|"
              "billing=1,cpu=1,mem=16000M,node=1|billing=1,cpu=1,node=1|alice|alice|normal|00:10:00|/home/alice\n");
    sacct_row("jobid,maxrss,averss,totalcpu,elapsedraw", &j, false, "13506|||00:00.036|3\n");
    sacct_row("jobid,maxrss,averss,totalcpu,elapsedraw", &j, true, "13506.batch|3796K|3796K|00:00.036|3\n");
    j.state = JOB_CANCELLED;
    j.end_uid = 1;
    j.wait_status = 15;
    sacct_row("jobid,state,exitcode", &j, false, "13506|CANCELLED by 0|0:0\n");
    sacct_row("jobid,state,exitcode", &j, true, "13506.batch|CANCELLED|0:15\n");
    j.state = JOB_FAILED;
    j.wait_status = 9;
    sacct_row("jobid,state,exitcode", &j, false, "13506|FAILED|0:9\n");
    sacct_row("jobid,state,exitcode", &j, true, "13506.batch|CANCELLED|0:9\n");
    j.wait_status = 3 << 8;
    sacct_row("jobid,state,exitcode", &j, true, "13506.batch|FAILED|3:0\n");
}

static void sacct_waiting(void **state) {
    struct job j = waiting(13538);
    sacct_row("jobid,alloccpus,state,exitcode,elapsed,start,end,nodelist,alloctres,totalcpu", &j, false,
              "13538|0|PENDING|0:0|00:00:00|Unknown|Unknown|None assigned||00:00:00\n");
    j.state = JOB_CANCELLED;
    j.end_uid = 1002;
    j.end_ms = T0 * 1000ll;
    sacct_row("jobid,state,exitcode,start,end,elapsed,nodelist", &j, false,
              "13538|CANCELLED by 1001|0:0|None|2026-12-01T15:48:42|00:00:00|None assigned\n");
}

/* ---- sinfo ---- */

static void sinfo_rows(void **state) {
    struct part p = {.name = "debug", .is_default = true, .max_time_min = 60, .default_time_min = 10};
    struct node_row row = {.part = &p};
    vec_push(&row.nodes, &n1_info);
    line(node_fields(), "%9P %.5a %.10l %.6D %.6t %N", false, &row, NULL, "debug*       up    1:00:00      1    mix n1\n");
    line(node_fields(), "%9P %.5a %.10l %.16F %N", false, &row, NULL, "debug*       up    1:00:00          1/0/0/1 n1\n");
    line(node_fields(), "%9N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E", false, &row, NULL,
         "n1             1    debug*       mixed 8       2:4:1  64000    10000      1   ib,zen none                \n");
    line(node_fields(), "%A|%a|%B|%b|%C|%c|%D|%d|%E|%e|%F|%f|%G|%g|%H|%h|%I|%i|%L|%l|%M|%m|%N|%n|%O|%o|%P|%p|%R|%r|%S|%s|%T|%t|"
         "%U|%u|%V|%v|%w|%X|%Y|%Z|%z", false, &row, NULL,
         "1/0|up|UNLIMITED|ib,zen|3/5/0/8|8|1|10000|none|18948|1/0/0/1|ib,zen|(null)|all|Unknown|NO|1||10:00|1:00:00|OFF|"
         "64000|n1|n1|1.89|10.0.0.1|debug*|1|debug|no|all|1-infinite|mixed|mix|Unknown|Unknown|N/A|26.05.5|1|2|4|1|2:4:1\n");
    struct node big = n1;
    big.name = "n2";
    big.cpus = 16;
    const struct node_info big_info = {.node = &big};
    vec_push(&row.nodes, &big_info);
    line(node_fields(), "nodelist:.12,partition:.10,cpus:4", true, &row, NULL, "      n[1-2]    debug*8+  \n");
    vec_fini(&row.nodes);
    line(node_fields(), "%9P %.5a %.10l %.6D %.6t %N", false, &row, NULL, "debug*       up    1:00:00      0    n/a \n");
}

static bool matches(const struct node *n, const char *word, bool *out_known) {
    const struct node_info info = {.node = n};
    return node_state_matches(&info, word, out_known);
}

static void node_states(void **state) {
    static const struct drain drains[] = {{.owner = "admin", .text = "x"}};
    struct node idle = {.name = "a", .base = NODE_UP, .cpus = 4}, drained = idle, mixed = idle, down = idle;
    drained.drains = drains;
    drained.n_drains = 1;
    mixed.alloc_cpus = 1;
    down.base = NODE_DOWN;
    bool known;
    assert_true(matches(&idle, "idle", &known) && matches(&drained, "IDLE", &known));
    assert_true(matches(&mixed, "alloc", &known) && matches(&mixed, "mix", &known));
    assert_false(matches(&idle, "alloc", &known));
    assert_true(matches(&drained, "drain", &known) && matches(&drained, "drained", &known));
    assert_false(matches(&drained, "draining", &known));
    assert_true(matches(&down, "down", &known) && known);
    assert_false(matches(&idle, "maint", &known));
    assert_true(known);
    static const char *const bad[] = {"bogus", "pow_dn", ""};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        matches(&idle, bad[i], &known);
        assert_false(known);
    }
    assert_true(node_sort_state(&drained) > node_sort_state(&mixed));
    assert_true(node_sort_state(&mixed) > node_sort_state(&idle));
    assert_true(node_sort_state(&idle) > node_sort_state(&down));
}

/* ---- arrays, steps, GPUs ---- */

static const struct array_range left[] = {{2, 4}};
static const struct job_array rest = {.job_id = 384, .pending = left, .n_pending = 1, .max_running = 2, .n = 5};
static const struct job_array second = {.job_id = 384, .task = 2, .max_running = 2};
static const struct job array_rest = {.id = 384, .spec = &demo, .state = JOB_PENDING, .array = &rest,
                                      .submit_ms = T0 * 1000ll, .eligible_unix = T0};
static const struct job array_task = {
    .id = 387, .spec = &demo, .state = JOB_RUNNING, .array = &second, .submit_ms = T0 * 1000ll, .eligible_unix = T0,
    .start_ms = T0 * 1000ll, .partition = "debug", .nodes = one_node, .n_nodes = 1, .n_cpus = 1, .time_limit_min = 10};

static void arrays(void **state) {
    const struct job_info head = {.job = &array_rest, .priority = 1, .reason = REASON_PRIORITY}, task = {.job = &array_task};
    line(job_fields(), "%i|%A|%F|%K|%t", false, &head, &env, "384_[2-4%2]|384|384|2-4%2|PD\n");
    line(job_fields(), "%i|%A|%F|%K|%t", false, &task, &env, "384_1|387|384|1|R\n");
    auto_str out = {0};
    scontrol_job_text(&head, T0 + 4, true, false, &out);
    assert_ptr_equal(strstr(out.p, "JobId=384 ArrayJobId=384 ArrayTaskId=2-4%2 ArrayTaskThrottle=2 JobName=demo "), out.p);
    assert_non_null(strstr(out.p, "StdOut=/home/alice/slurm-384_4294967294.out"));
    str_clear(&out);
    scontrol_job_text(&task, T0 + 4, true, false, &out);
    assert_ptr_equal(strstr(out.p, "JobId=387 ArrayJobId=384 ArrayTaskId=1 ArrayTaskThrottle=2 JobName=demo "), out.p);
    assert_non_null(strstr(out.p, "StdOut=/home/alice/slurm-384_1.out"));
    sacct_row("jobid,jobidraw", &array_task, false, "384_1|387\n");
    sacct_row("jobid,jobidraw", &array_task, true, "384_1.batch|387.batch\n");
    sacct_row("jobid,state", &array_rest, false, "384_[2-4%2]|PENDING\n");
}

static void long_lists_of_tasks(void **state) {
    struct array_range odd[40];
    for (uint32_t i = 0; i < ARRAY_LEN(odd); i++)
        odd[i] = (struct array_range){2 * i + 1, 2 * i + 1};
    struct job_array a = rest;
    struct job j = array_rest;
    auto_str out = {0};
    a.pending = odd;
    a.n_pending = ARRAY_LEN(odd);
    j.array = &a;
    unsetenv("SLURM_BITSTR_LEN");
    job_id_text(&j, &out);
    assert_string_equal(out.p, "384_[1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,43...%2]");
    str_clear(&out);
    setenv("SLURM_BITSTR_LEN", "0", 1);
    job_id_text(&j, &out);
    assert_non_null(strstr(out.p, ",77,79%2]"));
    unsetenv("SLURM_BITSTR_LEN");
}

/* `-j 384`, `-j 384_3`, `-j 384_1`, `-r`: which rows of the two records. */
static void rows_of_arrays(void **state) {
    static const struct {
        const char *list;
        bool each;
        const char *want;
    } cases[] = {{NULL, false, "384_[2-4%2] 384_1 "}, {NULL, true, "384_2 384_3 384_4 384_1 "},
                 {"384", false, "384_[2-4%2] 384_1 "}, {"384_3", false, "384_3 "}, {"384_1", false, "384_1 "},
                 {"387", false, "384_1 "}, {"384_99", false, ""}, {"384_3,384_1", false, "384_3 384_1 "},
                 {"384.0", false, "384_[2-4%2] 384_1 "}, {"385", true, ""}};
    const struct job_info jobs[] = {{.job = &array_rest}, {.job = &array_task}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cli c = {.prog = "squeue"};
        struct job_select pick;
        struct job_rows rows = {0};
        auto_str out = {0};
        job_select_init(&pick, &c);
        pick.states = ~0u;
        assert_true(job_select_ids(&pick, cases[i].list));
        for (size_t k = 0; k < ARRAY_LEN(jobs); k++)
            job_select_rows(&pick, &jobs[k], cases[i].each, &rows);
        for (size_t k = 0; k < rows.v.n; k++) {
            job_id_text(rows.v.p[k].job, &out);
            str_addc(&out, ' ');
        }
        assert_string_equal(str_text(&out), cases[i].want);
        vec_fini(&rows.v);
        arena_fini(&c.arena);
    }
}

static const struct gres_ask two_kinds[] = {{"gpu", "h100", 1, GRES_PER_NODE}, {"gpu", "a100", 1, GRES_PER_NODE}};
static const struct gres_held has_two[] = {{.name = "gpu", .type = "h100", .count = 1}, {.name = "gpu", .type = "a100", .count = 1}};
static const struct license_ask two_licenses[] = {{"ansys", 2, false}, {"matlab", 1, false}};

static void resources(void **state) {
    const struct job_more more = {.gres = two_kinds, .n_gres = 2, .gres_text = "gpu:h100:1,gpu:a100:1",
                                  .licenses = two_licenses, .n_licenses = 2, .licenses_text = "ansys:2,matlab:1",
                                  .features = "ib&zen", .exclusive = EXCLUSIVE_NODE, .tasks_per_node = 3,
                                  .mem_cpu_mb = 500, .time_min_min = 5, .deadline_unix = T0 + 60};
    const struct job_node node = {.node_id = 6, .name = "n6", .cpus = 4, .mem_mb = 3072, .gres = has_two, .n_gres = 2};
    struct job_spec spec = demo;
    struct job j = running;
    spec.more = &more;
    spec.cpus_per_task_given = spec.cpus_per_task = 2;
    j.spec = &spec;
    j.nodes = &node;
    j.n_cpus = 4;
    const struct job_info ji = {.job = &j};
    auto_str out = {0};
    scontrol_job_text(&ji, T0 + 4, false, false, &out);
    static const char *const want[] = {
        "\n   AllocTRES=cpu=4,mem=3G,node=1,billing=4,gres/gpu=2,gres/gpu:a100=1,gres/gpu:h100=1,license/ansys=2,"
        "license/matlab=1\n",
        " TimeMin=00:05:00\n", " Deadline=2026-12-01T15:49:42\n", " NtasksPerN:B:S:C=3:0:*:* ",
        "\n   MinCPUsNode=6 MinMemoryCPU=500M ", "\n   Features=ib&zen ",
        "\n   OverSubscribe=NO Exclusive=NODE Contiguous=0 Licenses=ansys:2,matlab:1 LicensesAlloc=ansys:2;matlab:1 "
        "Network=(null)\n",
        "\n   TresPerNode=gres/gpu:h100:1,gres/gpu:a100:1\n   TresPerTask=cpu=2\n\n"};
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        if (!strstr(out.p, want[i]))
            fail_msg("no \"%s\" in:\n%s", want[i], out.p);
    line(job_fields(), "%b|%f|%W|%c|%m|%h", false, &ji, &env,
         "gres/gpu:h100:1,gres/gpu:a100:1|ib&zen|ansys:2,matlab:1|6|500M|NO\n");
    sacct_row("alloctres,constraints,licenses,exclusive", &j, false,
              "billing=4,cpu=4,gres/gpu:a100=1,gres/gpu:h100=1,gres/gpu=2,license/ansys=2,license/matlab=1,mem=3G,node=1|"
              "ib&zen|ansys:2,matlab:1|NODE\n");
}

static void suspended(void **state) {
    struct job j = running;
    struct job_rare rare = {.suspended_ms = (T0 + 10) * 1000ll, .suspended_total_ms = 4000};
    j.state = JOB_SUSPENDED;
    j.rare = &rare;
    assert_int_equal(job_run_secs(&j, T0 + 30), 6);
    rare.suspended_ms = 0;
    assert_int_equal(job_run_secs(&j, T0 + 30), 26);
    const struct job_info ji = {.job = &j};
    line(job_fields(), "%t|%e", false, &ji, &env, "S|2026-12-01T15:58:46\n"); /* four seconds later */
}

static const struct step_node two_places[] = {{1, "n1", 2, 1000, 2}, {2, "n2", 2, 1000, 2}};
static const struct step_spec sleeps = {.name = "sleep", .n_tasks = 4, .cpus_per_task = 2, .submit_host = "n1"};
static const struct step step0 = {.job_id = 13506, .id = 0, .spec = &sleeps, .state = JOB_RUNNING, .nodes = two_places,
                                  .n_nodes = 2, .start_ms = T0 * 1000ll, .n_cpus = 8};

static void steps(void **state) {
    const struct step_row row = {&running_info, &step0};
    struct step_batch batch;
    assert_true(step_of_batch(&running, &batch));
    const struct step_row script = {&running_info, &batch.step};
    line(step_fields(), "%.15i %.8j %.9P %.8u %.9M %N", false, &row, &env,
         "        13506.0    sleep     debug     root      0:04 n[1-2]\n");
    line(step_fields(), "%A|%i|%j|%l|%M|%N|%P|%S|%u|%U|%b", false, &script, &env,
         "1|13506.batch|batch|UNLIMITED|0:04|n1|debug|2026-12-01T15:48:42|root|0|(null)\n");
    auto_str out = {0};
    scontrol_step_text(&running_info, &step0, false, &out);
    assert_string_equal(out.p, "StepId=13506.0 UserId=0 StartTime=2026-12-01T15:48:42 TimeLimit=UNLIMITED\n"
                               "   State=RUNNING Partition=debug NodeList=n[1-2]\n"
                               "   Nodes=2 CPUs=8 Tasks=4 Name=sleep Network=(null)\n"
                               "   TRES=cpu=8,mem=2000M,node=2\n"
                               "   ResvPorts=(null)\n"
                               "   CPUFreqReq=Default Dist=Block\n"
                               "   SrunHost:Pid=n1:0\n"
                               "   TresPerTask=cpu=2\n\n");
    str_clear(&out);
    scontrol_step_text(&running_info, &batch.step, false, &out);
    assert_string_equal(out.p, "StepId=13506.batch UserId=0 StartTime=2026-12-01T15:48:42 TimeLimit=UNLIMITED\n"
                               "   State=RUNNING Partition=debug NodeList=n1\n"
                               "   Nodes=1 CPUs=0 Tasks=1 Name=batch Network=(null)\n"
                               "   TRES=(null)\n"
                               "   ResvPorts=(null)\n"
                               "   CPUFreqReq=Default\n"
                               "   SrunHost:Pid=(null):0\n\n");
}

static void sacct_steps(void **state) {
    const struct step done[] = {
        {.id = 0, .spec = &sleeps, .state = JOB_FAILED, .wait_status = 9 << 8, .start_ms = T0 * 1000ll, .end_ms = (T0 + 1) * 1000ll,
         .nodes = two_places, .n_nodes = 2, .n_cpus = 4},
        {.id = 1, .spec = &sleeps, .state = JOB_CANCELLED, .wait_status = 11, .end_uid = 1002, .start_ms = T0 * 1000ll,
         .end_ms = (T0 + 1) * 1000ll, .nodes = two_places, .n_nodes = 2, .n_cpus = 4}};
    const struct job_info ji = {.job = &running, .steps = done, .n_steps = 2};
    static const char *const want[] = {"13506|demo|RUNNING|0:0|9:0|||1|n1\n", "13506.0|sleep|FAILED|9:0||4|2|4|n[1-2]\n",
                                       "13506.1|sleep|CANCELLED by 1001|0:11||4|2|4|n[1-2]\n"};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct table t;
        auto_str out = {0};
        const char *bad;
        size_t n_bad;
        const struct sacct_style style = {.parsable = true, .no_ending = true, .delimiter = "|"};
        const struct sacct_row row = {&ji, i ? &done[i - 1] : NULL};
        table_init(&t, sacct_fields());
        assert_true(sacct_parse(&t, i ? "jobid,jobname,state,exitcode,derivedexitcode,ntasks,nnodes,ncpus,nodelist"
                                      : "jobid,jobname,state,exitcode,derivedexitcode,ntasks,maxrss,ncpus,nodelist",
                                &bad, &n_bad));
        sacct_line(&t, &style, &row, &env, &out);
        assert_string_equal(out.p, want[i]);
        table_fini(&t);
    }
}

static void time_formats(void **state) {
    time_t now = time(NULL);
    struct tm tm = {0};
    localtime_r(&now, &tm);
    int64_t noon = now - (tm.tm_hour - 12) * 3600 - tm.tm_min * 60 - tm.tm_sec; /* of today */
    const struct {
        const char *format;
        int64_t at;
        const char *want;
    } cases[] = {{"standard", T0, "2026-12-01T15:48:42"}, {"%H.%M", T0, "15.48"}, {"bogus", T0, "2026-12-01T15:48:42"},
                 {"", T0, "2026-12-01T15:48:42"}, {"relative", noon, "12:00:00"}, {"relative", noon - 86400, "Ystday 12:00"},
                 {"relative", noon + 86400, "Tomorr 12:00"}, {"relative", 1000000000, "9 Sep 2001"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_str out = {0};
        setenv("SLURM_TIME_FORMAT", cases[i].format, 1);
        cli_time(cases[i].at, "N/A", &out);
        bool new_year = tm.tm_yday == 0 || tm.tm_yday >= 364; /* Slurm's days do not go across it */
        if (!new_year || cases[i].at < noon - 86400)
            assert_string_equal(out.p, cases[i].want);
    }
    unsetenv("SLURM_TIME_FORMAT");
}

static void nodes_with_gpus(void **state) {
    static const char *const files[] = {"/dev/a", "/dev/b"};
    static const uint32_t taken[] = {0, 1, 3};
    const struct gres gres[] = {{.name = "gpu", .type = "h100", .count = 4, .files = files, .n_files = 2, .alloc = 3,
                                 .taken = taken, .n_taken = 3},
                                {.name = "gpu", .type = "a100", .count = 2, .files = files, .n_files = 2},
                                {.name = "disk", .count = 8, .alloc = 2}};
    const struct node n = {.name = "n6", .base = NODE_UP, .cpus = 4, .gres = gres, .n_gres = 3};
    const struct node *list = &n;
    const struct node_info ni = {.node = &n};
    auto_str out = {0};
    node_gres(&n, &out);
    assert_string_equal(out.p, "gpu:h100:4,gpu:a100:2,disk:8");
    str_clear(&out);
    node_gres_used(&n, &out);
    assert_string_equal(out.p, "gpu:h100:3(IDX:0-1,3),gpu:a100:0(IDX:N/A),disk:2");
    str_clear(&out);
    node_gres_tres(&list, 1, false, &out);
    assert_string_equal(out.p, ",gres/disk=8,gres/gpu=6,gres/gpu:a100=2,gres/gpu:h100=4");
    str_clear(&out);
    scontrol_node_text(&ni, false, false, &out);
    assert_non_null(strstr(out.p, "\n   Gres=gpu:h100:4,gpu:a100:2,disk:8\n"));
    assert_non_null(strstr(out.p, ",billing=4,gres/disk=8,gres/gpu=6,gres/gpu:a100=2,gres/gpu:h100=4\n   AllocTRES="));
}

static void counts(void **state) {
    auto_str s = {0};
    count_print(0, &s);
    str_addc(&s, ' ');
    count_print(1000, &s);
    str_addc(&s, ' ');
    count_print(2048, &s);
    assert_string_equal(str_text(&s), "0 1000 2K");
    static const struct {
        uint64_t n;
        char unit, want;
        const char *text;
    } cases[] = {{16000, 'M', 0, "16000M"}, {64000, 'M', 0, "62.50G"}, {3072, 'M', 0, "3G"},    {3072, 'M', '=', "3072M"},
                 {14176, 'K', 0, "14176K"}, {14176, 'K', 'M', "13.84M"}, {2000, 'M', 'M', "2000M"}, {0, 'M', 0, "0"},
                 {1024, 'K', 'G', "0.00G"}, {512, 'M', 0, "512M"},      {0, ' ', 0, "0"},       {2048, ' ', '=', "2048"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        str_clear(&s);
        amount_print(cases[i].n, cases[i].unit, cases[i].want, &s);
        assert_string_equal(str_text(&s), cases[i].text);
    }
}

int main(void) {
    setenv("TZ", "UTC", 1);
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squeue_running),       cmocka_unit_test(squeue_waiting), cmocka_unit_test(squeue_ended),
        cmocka_unit_test(scontrol_job),         cmocka_unit_test(scontrol_waiting_job),
        cmocka_unit_test(scontrol_node),        cmocka_unit_test(scontrol_partition),
        cmocka_unit_test(sacct_rows),           cmocka_unit_test(sacct_waiting),  cmocka_unit_test(sinfo_rows),
        cmocka_unit_test(node_states),          cmocka_unit_test(counts),
        cmocka_unit_test(arrays),               cmocka_unit_test(long_lists_of_tasks),
        cmocka_unit_test(rows_of_arrays),       cmocka_unit_test(resources),
        cmocka_unit_test(suspended),            cmocka_unit_test(steps),
        cmocka_unit_test(sacct_steps),          cmocka_unit_test(time_formats),
        cmocka_unit_test(nodes_with_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
