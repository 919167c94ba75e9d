# SPDX-License-Identifier: Apache-2.0
"""Cases from the field, continued from test_cli_cases.py: the rest of QRY (queries and their output), LC (life, signals, exit
codes), and the numbered list of things that went wrong for people ("plain"). tests/golden/cases says which case is where."""
import re
import signal
import subprocess
import time

import pytest

from spurtest import NOBODY, PATIENCE, Cluster, wait_for

SHARED = {"cpus": 8,
          "conf": '\n[[partitions]]\nname = "debug"\ndefault = true\n\n[[partitions]]\nname = "short"\nmax_time = "10:00"\n'}


def rows(c, fmt, *options):
    return [line.split() for line in c.run(["squeue", "-h", "-o", fmt, *map(str, options)]).stdout.splitlines()]


def nodes(c, fmt="%N %t"):
    return dict(line.split(None, 1) for line in c.run(["sinfo", "-h", "-N", "-o", fmt]).stdout.splitlines())


def wait_gone(c, job, timeout=20):
    wait_for(lambda: not rows(c, "%i", "-j", job), timeout, f"job {job} to be over", every=0.03)


# ---- QRY ----

OPEN_ONDEMAND = """Account JobID BatchHost MinCpus NumCPUs MinTmpDisk NumNodes EndTime Dependency Feature ArrayJobID GroupName GroupID
OverSubscribe Sockets JobArrayID Cores Name Threads Comment ArrayTaskID TimeLimit TimeLeft MinMemory TimeUsed ReqNodes NodeList Command
Contiguous QOS Partition PriorityLong Reason StartTime StateCompact State UserName UserID Reservation SubmitTime WCKey Licenses ExcNodes
CoreSpec Nice SchedNodes SCT WorkDir tres-alloc tres-per-node""".split()


def test_qry02_open_ondemands_query(shared):
    job = shared.submit("-H", "-J", "ood", "--comment=a b", "--wrap", "true")
    asked = ",".join(f"{name}:\x1f" for name in OPEN_ONDEMAND)
    got = shared.run(["squeue", "--all", "--states=all", "--noconvert", "-O", asked, "-j", str(job)]).stdout
    head, line = got.removesuffix("\x1f\n").split("\x1f\n")
    values = dict(zip(OPEN_ONDEMAND, line.split("\x1f"), strict=True))
    assert len(head.split("\x1f")) == len(OPEN_ONDEMAND) == line.count("\x1f") + 1
    assert len(set(head.split("\x1f"))) == len(OPEN_ONDEMAND) - 2, head  # JobArrayID and JobID: JOBID, as GroupName and GroupID: GROUP
    want = {"JobID": str(job), "Name": "ood", "Comment": "a b", "StateCompact": "PD", "State": "PENDING", "Reason": "JobHeldUser",
            "ArrayTaskID": "N/A", "Dependency": "(null)", "Feature": "(null)", "Reservation": "(null)", "tres-per-node": "N/A",
            "NodeList": "", "SchedNodes": "(null)", "StartTime": "N/A", "TimeUsed": "0:00", "WorkDir": str(shared.work)}
    assert {k: values[k] for k in want} == want
    shared.run(["scancel", str(job)])


def test_qry03_names_widths_and_signs(shared):
    job = shared.submit("-J", "a-long-name-of-a-job", "--mem=100", "--wrap", "true")
    shared.wait_over(job)

    def sacct(*options, check=True):
        return shared.run(["sacct", "-X", "-n", "-j", str(job), *options], check=check)

    assert sacct("-o", "jobid%10,state%20").stdout == f"{job:>10} {'COMPLETED':>20} \n"
    assert sacct("-o", "JOBNAME%-8,State%-12,partition").stdout == f"{'a-long-+':<8} {'COMPLETED':<12} {'debug':>10} \n"
    assert sacct("-o", "nodelist%-40").stdout.rstrip("\n") in [f"{n:<40} " for n in ("n1", "n2")]
    assert sacct("-P", "-o", "jobid,jobname%5").stdout == f"{job}|a-long-name-of-a-job\n"
    assert sacct("-p", "-o", "jobid,state").stdout == f"{job}|COMPLETED|\n"
    assert sacct("-P", "--delimiter", "\x1f", "-o", "jobid,state").stdout == f"{job}\x1fCOMPLETED\n"
    assert sacct("-P", "--delimiter=<=>", "-o", "jobid,state").stdout == f"{job}<=>COMPLETED\n"
    assert sacct("-P", "--units=G", "-o", "reqmem").stdout == "0.10G\n"
    assert sacct("-P", "-o", "reqmem").stdout == "100M\n"
    got = sacct("-o", "nosuch", check=False)
    assert got.returncode == 1 and "nosuch" in got.stderr and got.stdout == ""


def test_qry04_columns_are_20_wide(new_cluster):
    c = new_cluster(nodes=0)
    name = "abcdefghijklmnopqrstuvwxy"
    c.add_node(name)
    c.wait_idle()
    assert c.run("sinfo -h -N -O NodeList,AllocMem,Memory,CPUsState,StateLong").stdout == (
        f"{name[:20]}{0:<20}{4000:<20}{'0/4/0/4':<20}{'idle':<20}\n")
    assert c.run("sinfo -h -N -O NodeList:40,AllocMem").stdout == f"{name:<40}{0:<20}\n"
    assert c.run("sinfo -h -N -O NodeList:.30,StateLong:.10").stdout == f"{name:>30}{'idle':>10}\n"
    job = c.submit("-H", "-J", name, "--wrap", "true")
    assert c.run("squeue -h -O Name,State").stdout == f"{name[:20]}{'PENDING':<20}\n"
    assert c.run("squeue -h -O JobID:.12,Name:30").stdout == f"{job:>12}{name:<30}\n"


def test_qry05_a_list_of_states(shared):
    held = shared.submit("-H", "-J", "qry05", "--wrap", "true")
    over = shared.submit("-J", "qry05", "--wrap", "true")
    shared.wait_over(over)

    def seen(command, states):
        fmt = {"squeue": ["-o", "%A"], "sacct": ["-X", "-n", "-P", "-o", "jobidraw", "-E", "now+60", "-S", "00:00"]}[command]
        flag = {"squeue": ["-h", "-n"], "sacct": ["--name"]}[command]
        return {int(i) for i in shared.run([command, *fmt, *flag, "qry05", f"--state={states}"]).stdout.split()}

    for words in ("PD,cd", "pending,COMPLETED", "Pending,Cd"):
        assert seen("squeue", words) == seen("sacct", words) == {held, over}, words
    assert seen("squeue", "all") == {held, over} and seen("squeue", "configuring,PD") == {held}
    assert seen("sacct", "PD,r") == {held, over}  # was in that state in these hours
    assert seen("sacct", "to,nf,OOM") == set() and seen("squeue", "cd") == {over} == seen("sacct", "cd")
    shared.run(["scancel", str(held)])


def test_qry06_never_missing_never_twice(shared):
    """What a workflow engine polls keeps a job in sight, whatever becomes of it."""
    job = shared.submit("-p", "debug", "-t", "1", "-J", "qry06", "--wrap", "sleep 0.5")
    seen, end = [], time.monotonic() + 20 * PATIENCE
    while time.monotonic() < end and seen[-1:] != [["CD"]]:
        got = shared.run(["squeue", "--noheader", "-o", "%i %t", "-t", "all", "-u", "root", "-n", "qry06"]).stdout.splitlines()
        assert len(got) == 1 and got[0].split()[0] == str(job), got
        seen.append(got[0].split()[1:])
    order = [s for s, before in zip(seen, [None, *seen]) if s != before]
    assert order[-1] == ["CD"] and [s[0] for s in order] == [s for s in ("PD", "CF", "R", "CG", "CD") if [s] in order]


def test_qry07_the_configuration_as_tools_read_it(shared):
    text = shared.run("scontrol show config").stdout
    assert re.search(r"MinJobAge\s*=\s*(\d+) sec", text)[1] == "300"
    assert re.search(r"MaxArraySize\s*=?\s*(\d+)", text)[1] == "1001"
    assert re.search(r"(?m)^ClusterName             = test$", text) and re.search(r"(?m)^MinJobAge               = 300 sec$", text)
    for key in ("HealthCheckProgram", "TopologyPlugin", "AccountingStorageType", "KillWait", "ReturnToService", "SlurmctldHost"):
        assert re.search(rf"(?m)^{key}(\[0\])?\s+= \S", text), key
    blocks = shared.run("scontrol show partition").stdout
    assert [re.match(r"PartitionName=(\S+)", b)[1] for b in blocks.rstrip("\n").split("\n\n")] == ["debug", "short"]
    lines = shared.run("scontrol show part -o").stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        for token in line.split():
            assert re.fullmatch(r"\w+=.+", token), token
    assert re.search(r" MaxTime=00:10:00 ", lines[1]) and re.search(r" TotalCPUs=16 TotalNodes=2 ", lines[1])
    said = subprocess.run(["grep", "-oP", r"^PartitionName=\K(\S+)| State=\K(\S+)"], input="\n".join(lines), capture_output=True, text=True)
    assert said.stdout.split() == ["debug", "UP", "short", "UP"]


def test_qry08_a_line_is_a_job_that_is_not_over(shared):
    job = shared.submit("-J", "qry08", "--wrap", "true")
    shared.wait_over(job)
    assert rows(shared, "%i", "-n", "qry08") == [] and shared.run("squeue -h -n qry08").stdout == ""
    assert rows(shared, "%i %t", "-n", "qry08", "-t", "all") == [[str(job), "CD"]]


@pytest.mark.parametrize("command", ["squeue", "sinfo", "sacct"])
def test_qry10_the_cluster_flag_of_queries(shared, command):
    plain = shared.run([command]).stdout
    for name in ("test", "all"):
        got = shared.run([command, "-M", name]).stdout
        assert got == (plain if command == "sacct" else f"CLUSTER: test\n{plain}"), name
    assert shared.run([command, "--clusters=all"]).stdout == got
    bare = shared.run([command, "-M", "test", {"sacct": "-n"}.get(command, "-h")]).stdout
    assert bare.startswith("CLUSTER: test\n") == (command != "sacct")
    got = shared.run([command, "-M", "nosuch"], check=False)
    assert got.returncode == 1 and "nosuch" in got.stderr and got.stdout == ""


def test_qry10_the_cluster_flag_of_the_rest(shared):
    got = shared.run(["sbatch", "-H", "-M", "test", "--wrap", "true"]).stdout
    job = re.fullmatch(r"Submitted batch job (\d+) on cluster test\n", got)[1]
    assert f"JobId={job} " in shared.run(["scontrol", "-M", "test", "show", "job", job]).stdout
    assert re.fullmatch(r"\d+;test\n", shared.run(["sbatch", "--parsable", "-M", "test", "--wrap", "true"]).stdout)
    for argv in (["scancel", "-M", "nosuch", job], ["scontrol", "-M", "nosuch", "show", "job", job], ["sbatch", "-M", "nosuch", "--wrap", "true"]):
        got = shared.run(argv, check=False)
        assert got.returncode == 1 and "nosuch" in got.stderr and got.stdout == "", argv
    assert shared.state_of(job) == "PENDING"
    shared.run(["scancel", job, "--clusters=all"])
    assert shared.state_of(job) == "CANCELLED"


def test_qry11_node_states_with_their_marks(new_cluster):
    c = new_cluster(nodes=2, cpus=2, scale=10)
    job = c.submit("-w", "n1", "-n1", "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    c.run(["scontrol", "update", "nodename=n1,n2", "state=drain", "reason=disk"])
    state = lambda n: re.search(r" State=(\S+) ", c.run(["scontrol", "-o", "show", "node", n]).stdout)[1]
    assert (nodes(c)["n1"], nodes(c, "%N %T")["n1"], state("n1")) == ("drng", "draining", "MIXED+DRAIN")
    assert (nodes(c)["n2"], nodes(c, "%N %T")["n2"], state("n2")) == ("drain", "drained", "IDLE+DRAIN")
    c.run(["scancel", str(job)])
    wait_for(lambda: nodes(c)["n1"] == "drain", 10)
    assert state("n1") == "IDLE+DRAIN"
    c.run(["scontrol", "update", "nodename=n1,n2", "state=resume"])
    assert nodes(c) == {"n1": "idle", "n2": "idle"}
    c.nodes["n2"].kill(signal.SIGKILL)
    wait_for(lambda: nodes(c)["n2"] == "down*", 60, "n2 to be down")
    assert nodes(c, "%N %T")["n2"] == "down*" and state("n2") == "DOWN+NOT_RESPONDING"


# ---- the numbered list ----


def test_plain01_known_at_once_everywhere(shared):
    job = shared.submit("-J", "at-once", "--wrap", "true")
    assert shared.sacct(job)["JobID"] == str(job)
    assert rows(shared, "%i", "-t", "all", "-j", job) == [[str(job)]] and shared.job(job)["JobId"] == str(job)


def test_plain02_what_a_workflow_tool_polls(shared):
    name = "3d8f6a70-2c1b-4f1e-9c55-6b1d0a2f7e11"
    job = shared.submit("--job-name", name, "--comment", "rule", "--wrap", "true")
    shared.wait_over(job)
    got = shared.run(["sacct", "-X", "--parsable2", "--clusters", "all", "--noheader", "--format=JobIdRaw,State",
                      "--starttime", "2024-10-14T09:00", "--endtime", "now", "--name", name]).stdout
    assert got == f"{job}|COMPLETED\n"
    got = shared.run(["squeue", "--format=%i|%T", "--states=all", "--noheader", "--name", name]).stdout
    assert got == f"{job}|COMPLETED\n"
    got = shared.run(["sacct", f"--name={name}", "--parsable2", "--noheader", "--format=JobID,JobName,Comment,Elapsed,TotalCPU,NNodes,NCPUS,MaxRSS,ReqMem"]).stdout
    first = got.splitlines()[0].split("|")
    assert first[:3] == [str(job), name, "rule"] and re.fullmatch(r"(\d+-)?\d\d:\d\d:\d\d", first[3]) and re.fullmatch(r"\d\d:\d\d(\.\d{3}|:\d\d)", first[4])
    shared.run(["scancel", str(job), "--clusters=all"], check=False)
    assert re.fullmatch(r"n\d +\n", shared.run(["sacct", "-j", str(job), "-n", "-X", "-o", "nodelist%-256"]).stdout)


def test_plain04_both_names_of_a_task_and_its_steps(shared):
    job = shared.submit("--array=3,91,92", "--wrap", "srun -n1 true")
    wait_gone(shared, job)
    got = dict(line.split("|") for line in shared.run(["sacct", "-n", "-P", "-o", "jobid,jobidraw", "-j", str(job)]).stdout.splitlines())
    raw = got[f"{job}_91"]
    assert {f"{job}_91.batch": f"{raw}.batch", f"{job}_91.0": f"{raw}.0"}.items() <= got.items()
    for name in (f"{job}_91", raw):
        assert shared.run(["sacct", "-n", "-P", "-o", "jobid", "-j", name]).stdout.split() == [f"{job}_91", f"{job}_91.batch", f"{job}_91.0"]
        assert rows(shared, "%i %A", "-t", "all", "-j", name) == [[f"{job}_91", raw]]
        assert shared.run(["sacct", "-n", "-P", "-o", "jobid", "-j", f"{name}.0"]).stdout.split()[-1] == f"{job}_91.0"


@pytest.mark.root
def test_plain05_cancelled_by(shared):
    job = shared.submit("-H", "--wrap", "true", uid=NOBODY)
    shared.run(["scancel", str(job)], uid=NOBODY)
    assert shared.run(["sacct", "-X", "-n", "-P", "-o", "state", "-j", str(job)]).stdout == f"CANCELLED by {NOBODY}\n"
    assert rows(shared, "%T %t", "-t", "all", "-j", job) == [["CANCELLED", "CA"]] and shared.job(job)["JobState"] == "CANCELLED"


def test_plain06_ended_jobs_are_kept(new_cluster):
    c = new_cluster(controller="terminal_job_retention_secs = 1")
    job = c.submit("--wrap", "exit 3")
    c.wait_over(job)
    wait_for(lambda: c.job(job, check=False) is None, 20, "the job to leave")
    got = c.run(["squeue", "-t", "all", "-j", str(job)], check=False)
    assert (got.returncode, got.stderr) == (1, "slurm_load_jobs error: Invalid job id specified\n")
    assert c.sacct(job) == {"JobID": str(job), "State": "FAILED", "ExitCode": "3:0"}


def test_dep04_the_parent_is_long_over(new_cluster):
    """Better than Slurm, which forgets after MinJobAge: history knows how it ended. What it doesn't know is refused as there."""
    c = new_cluster(controller="terminal_job_retention_secs = 1")
    good, bad, array = c.submit("--wrap", "true"), c.submit("--wrap", "exit 3"), c.submit("-a", "1-2", "--wrap", "exit $((SLURM_ARRAY_TASK_ID - 1))")
    for job in (good, bad, array):
        wait_for(lambda: c.job(job, check=False) is None, 30, "the job to leave")
    runs = [f"afterok:{good}", f"afterany:{bad}", f"afternotok:{bad}", f"after:{bad}", f"afterok:{good},afterany:{bad}", f"afterok:{bad}?afterok:{good}",
            f"afterok:{array}_1", f"afternotok:{array}", f"afternotok:{array}_2", f"aftercorr:{good}"]
    for dependency in runs:
        c.wait_state(c.submit("-d", dependency, "--wrap", "true"), "COMPLETED")
    assert c.run(["srun", "-d", f"afterok:{good}", "echo", "here"]).stdout == "here\n"
    for dependency in (f"afterok:{bad}", f"afternotok:{good}", f"afterok:{good}:{bad}", f"afterok:{array}", f"afterok:{array}_2"):
        job = c.submit("-d", dependency, "--wrap", "true")
        wait_for(lambda: c.job(job)["Reason"] == "DependencyNeverSatisfied", 20, dependency)
    for dependency in ("afterok:9999", f"afterok:{good}:9999", f"afterok:{array}_7"):
        got = c.run(["sbatch", "-d", dependency, "--wrap", "true"], check=False)
        assert (got.returncode, got.stderr) == (1, "sbatch: error: Batch job submission failed: Job dependency problem\n"), dependency
    c.ctld.restart()
    assert {row[0] for row in rows(c, "%r")} == {"DependencyNeverSatisfied"}
    never = rows(c, "%i")[0][0]  # the same by an update
    c.run(["scontrol", "update", f"jobid={never}", f"dependency=afterok:{good}"])
    c.wait_state(never, "COMPLETED")
    waits = c.submit("--begin=now+1hour", "--wrap", "true")
    c.run(["scontrol", "update", f"jobid={waits}", f"dependency=afterok:{bad}"])
    wait_for(lambda: c.job(waits)["Reason"] == "DependencyNeverSatisfied", 20, "history's word")
    got = c.run(["scontrol", "update", f"jobid={waits}", "dependency=afterok:9999"], check=False)
    assert (got.returncode, got.stderr) == (1, "Job dependency problem for job %s\n" % waits)


def test_plain07_one_row_or_all_attempts(shared):
    job = shared.submit("--requeue", "--wrap", "test ${SLURM_RESTART_COUNT:-0} = 1 || sleep 60")
    shared.wait_state(job, "RUNNING")
    shared.run(["scontrol", "requeue", str(job)])
    shared.run(["scontrol", "update", f"jobid={job}", "starttime=now"], check=False)
    shared.wait_state(job, "COMPLETED", timeout=40)
    ask = lambda *more: shared.run(["sacct", "-X", "-n", "-P", "-o", "state", *more, "-j", str(job)]).stdout.split()
    assert ask() == ["COMPLETED"] and ask("-D") == ["REQUEUED", "COMPLETED"]


def test_plain09_any_range(shared):
    job = shared.submit("-J", "plain09", "--wrap", "true")
    shared.wait_over(job)
    for since, until in (("1970-01-02", "now"), ("2000-01-01", "2037-12-31T23:59"), ("now-3650days", "now+1day")):
        assert shared.run(["sacct", "-X", "-n", "-P", "-o", "jobid", "--name=plain09", "-S", since, "-E", until]).stdout == f"{job}\n"


def test_plain12_a_partition_goes_while_jobs_name_it(new_cluster):
    c = new_cluster(conf='\n[[partitions]]\nname = "debug"\ndefault = true\n\n[[partitions]]\nname = "gone"\n')
    waits = c.submit("-H", "-p", "gone", "--wrap", "true")
    runs = c.submit("-p", "gone", "--wrap", "sleep 60")
    c.wait_state(runs, "RUNNING")
    c.conf_path.write_text(c.conf_text.replace('\n[[partitions]]\nname = "gone"\n', ""))
    c.run("scontrol reconfigure")
    c.run(["scontrol", "release", str(waits)], check=False)
    for _ in range(2):
        wait_for(lambda: c.job(waits)["Reason"] not in ("None", "Priority", "JobHeldUser"), 10)
        assert c.state_of(runs) == "RUNNING" and c.state_of(waits) == "PENDING"
        c.ctld.restart(signal.SIGKILL)
        c.wait_idle()
    c.run(["scontrol", "update", f"jobid={waits}", "partition=debug"])
    c.wait_state(waits, "COMPLETED")
    c.run(["scancel", str(runs)])
    c.wait_state(runs, "CANCELLED")
