# SPDX-License-Identifier: Apache-2.0
"""scancel and scontrol on jobs, arrays, tasks and steps, in Slurm's words."""
import json
import os
import re
import signal
import subprocess

import pytest

from spurtest import NOBODY, wait_for

SHARED = {"cpus": 8, "conf": '\n[licenses]\nmatlab = 4\n\n[[partitions]]\nname = "debug"\ndefault = true\nmax_time = "1:00:00"\n'
                             '\n[[partitions]]\nname = "long"\n'}


def said(c, command, **run):
    got = c.run(command, check=False, **run)
    return got.returncode, got.stdout, got.stderr


def rows(c, fmt, *options):
    return [line.split() for line in c.run(["squeue", "-h", "-o", fmt, *map(str, options)]).stdout.splitlines()]


def running(c, *options, body="sleep 100", **run):
    job = c.submit(*options, "--wrap", body, **run)
    c.wait_state(job, "RUNNING")
    return job


def held(c, *options, **run):
    return c.submit("-H", *options, "--wrap", "true", **run)


@pytest.fixture
def c(shared):
    yield shared
    for user in {line[0] for line in rows(shared, "%u")}:
        shared.run(["scancel", "-u", user])
    wait_for(lambda: not rows(shared, "%i"), 20, "all jobs to be over")


# ---- scancel ----


@pytest.mark.sanitize
def test_parts_of_an_array(c):
    job = c.submit("--array=0-9%2", "--wrap", "sleep 100")
    wait_for(lambda: len(rows(c, "%i", "-t", "R")) == 2)
    assert said(c, f"scancel {job}_[3-5]") == (0, "", "")
    assert rows(c, "%i %t", "-t", "PD") == [[f"{job}_[2,6-9%2]", "PD"]]
    assert said(c, f"scancel {job}_0 {job}_7") == (0, "", "")
    wait_for(lambda: {i for i, in rows(c, "%i", "-t", "R")} == {f"{job}_1", f"{job}_2"})
    assert said(c, f"scancel {job}_99") == (0, "", "")
    assert said(c, f"scancel {job}_[50-60]") == (0, "", "")
    assert said(c, f"scancel {job}_") == (0, "", "")
    assert said(c, f"scancel {job}_[x]") == (
        1, "", f"scancel: error: _parse_single_range: Invalid range: `x'\nscancel: error: Invalid job id {job}_[x]\n")
    assert said(c, f"scancel -t PD {job}") == (0, "", "")
    assert {i for i, in rows(c, "%i")} == {f"{job}_1", f"{job}_2"}
    assert said(c, f"scancel -v {job}_2") == (0, "", f"scancel: Terminating job {job}_2\n")
    assert said(c, f"scancel {job}") == (0, "", "")
    wait_for(lambda: not rows(c, "%i"))
    got = c.run(["sacct", "-X", "-n", "-P", "-o", "jobid,state,exitcode", "-j", str(job)]).stdout.splitlines()
    assert all(re.fullmatch(rf"{job}(_\S+)?\|CANCELLED by \d+\|0:0", line) for line in got) and len(got) >= 3


@pytest.mark.root
def test_jobs_of_others(c):
    one, array = running(c), c.submit("--array=1-3%1", "--wrap", "sleep 100")
    assert said(c, f"scancel {one}", uid=NOBODY) == (
        210, "", f"scancel: error: Kill job error on job id {one}: Access/permission denied\n")
    assert said(c, f"scancel {array}", uid=NOBODY)[0] == 210
    assert said(c, f"scancel {array}_3", uid=NOBODY) == (
        210, "", f"scancel: error: Kill job error on job id {array}_3: Access/permission denied\n")
    mine = held(c, uid=NOBODY)
    assert said(c, f"scancel {one} {mine}", uid=NOBODY)[0] == 210
    assert c.state_of(mine) == "CANCELLED" and c.state_of(one) == "RUNNING"


def test_what_is_over(c):
    job = running(c)
    assert said(c, f"scancel -v {job}") == (0, "", f"scancel: Terminating job {job}\n")
    c.wait_over(job)
    assert said(c, f"scancel {job}") == (0, "", "")
    assert said(c, f"scancel -v {job}") == (0, "", f"scancel: Terminating job {job}\n"
                                            f"scancel: error: Kill job error on job id {job}: Job/step already completing or completed\n")
    assert said(c, "scancel 99999999") == (0, "", "")
    assert said(c, "scancel abc") == (1, "", "scancel: error: Invalid job id abc\n")
    assert said(c, "scancel 5.batch") == (1, "", "scancel: error: Invalid job id 5.batch\n")
    assert said(c, "scancel") == (1, "", "scancel: error: No job identification provided\n")


def test_filters(c):
    one, two, waits = running(c, "-J", "one"), running(c, "-J", "two", "-p", "long", "-A", "ml", "-w", "n2"), held(c, "-J", "held")
    for filters in ("-n nosuch", "-p nopart", "-w n99", "-A nosuch", f"-n wrong {one}", f"-p long {one}", f"-q none {one}"):
        assert said(c, f"scancel {filters}") == (0, "", "")
    assert said(c, "scancel -v -n nosuch") == (
        0, "", "scancel: error: No active jobs match ALL job filters, including: job_name=nosuch \n")
    assert len(rows(c, "%i")) == 3
    assert said(c, "scancel -t PENDING --me") == (0, "", "")
    assert {i for i, in rows(c, "%i")} == {str(one), str(two)} and c.state_of(waits) == "CANCELLED"
    assert said(c, "scancel -w n2 -A ml") == (0, "", "")
    wait_for(lambda: rows(c, "%i") == [[str(one)]])
    assert said(c, "scancel -t bogus --me") == (
        1, "", "Invalid job state specified: bogus\nValid job states are PENDING, RUNNING, and SUSPENDED\n")
    assert said(c, "scancel -u nosuch") == (1, "", "scancel: error: Invalid user name: nosuch\n")
    assert said(c, "scancel -s BOGUS 1") == (1, "", "Unknown job signal: BOGUS\n")


def test_interactive(c):
    one = running(c, "-J", "one")
    asked = f"Cancel job_id={one} name=one partition=debug [y/n]? "
    assert said(c, "scancel -i --me", input="n\ny\n") == (0, asked, "")
    assert said(c, f"scancel -i {one}", input="") == (0, asked, "")
    assert c.state_of(one) == "RUNNING"
    assert said(c, f"scancel -i {one}", input="what\ny\n") == (0, asked + asked, "")
    c.wait_state(one, "CANCELLED")


def test_signals_and_steps(c):
    script = c.script('trap "echo batch USR1" USR1; trap "echo batch TERM; exit 0" TERM\n'
                      'srun -n1 bash -c \'trap "echo task USR1" USR1; trap "" TERM; echo ready; for i in $(seq 200); do sleep 0.1; done\' &\n'
                      "while true; do sleep 0.1; done")
    out = c.work / "traps.out"
    job = c.submit("-o", out, script)
    c.wait_state(job, "RUNNING")
    wait_for(lambda: [f"{job}.0"] in [[r[0]] for r in [l.split() for l in c.run("squeue -s -h").stdout.splitlines()]], 15)
    count = lambda text: out.read_text().splitlines().count(text)
    wait_for(lambda: count("ready") == 1)
    for command, who in ((f"scancel -s USR1 {job}", "task"), (f"scancel -s USR1 {job}.0", "task"), (f"scancel -b -s 10 {job}", "batch"),
                         (f"scancel -s SIGUSR1 {job}.0", "task")):
        before = {w: count(f"{w} USR1") for w in ("task", "batch")}
        assert said(c, command) == (0, "", "")
        wait_for(lambda: count(f"{who} USR1") == before[who] + 1, 10, f"{who} to get it")
        other = {"task": "batch", "batch": "task"}[who]
        assert count(f"{other} USR1") == before[other]
    before = {w: count(f"{w} USR1") for w in ("task", "batch")}
    assert said(c, f"scancel -f -s USR1 {job}") == (0, "", "")
    wait_for(lambda: all(count(f"{w} USR1") > before[w] for w in before))
    assert said(c, f"scancel -s USR1 {job}.7") == (0, "", "")
    assert said(c, f"scancel {job}.0") == (0, "", "")
    wait_for(lambda: f"{job}.0 " not in c.run("squeue -s -h").stdout, 60)
    assert c.state_of(job) == "RUNNING"
    got = c.run(["sacct", "-n", "-P", "-o", "jobid,state", "-j", f"{job}.0"]).stdout
    assert re.fullmatch(rf"{job}\.0\|CANCELLED by \d+\n", got)


# ---- scontrol: hold, release, suspend, resume, requeue ----


def test_hold_and_release(c):
    job = c.submit("--array=1-4", "-H", "--wrap", "sleep 100")
    assert said(c, f"scontrol release {job}_[2-3]") == (0, "", "")
    wait_for(lambda: sorted(i for i, in rows(c, "%i", "-t", "R")) == [f"{job}_2", f"{job}_3"])
    assert rows(c, "%i %r", "-t", "PD") == [[f"{job}_[1,4]", "JobHeldAdmin"]] or rows(c, "%i %r", "-t", "PD") == [[f"{job}_[1,4]", "JobHeldUser"]]
    assert said(c, f"scontrol release {job}") == (0, "", "")
    wait_for(lambda: len(rows(c, "%i", "-t", "R")) == 4)
    named = held(c, "-J", "byname")
    assert said(c, "scontrol release jobname=nosuch") == (0, "", "")
    assert said(c, "scontrol release jobname=byname") == (0, "", "")
    c.wait_state(named, "COMPLETED")
    assert said(c, "scontrol hold 99999999") == (
        1, "", "Invalid job id specified for job 99999999\nslurm_suspend error:Invalid job id specified\n")
    assert said(c, "scontrol hold") == (1, "", "too few arguments for keyword:hold\n")


@pytest.mark.root
def test_hold_of_others(c):
    job, mine = held(c), held(c, uid=NOBODY)
    text = f"Invalid user id for job {job}\nslurm_suspend error:Invalid user id\n"
    assert said(c, f"scontrol hold {job}", uid=NOBODY) == said(c, f"scontrol release {job}", uid=NOBODY) == (1, "", text)
    assert said(c, f"scontrol hold {mine}") == (0, "", "") and c.job(mine)["Reason"] == "JobHeldAdmin"
    assert said(c, f"scontrol release {mine}", uid=NOBODY) == (
        1, "", f"Access/permission denied for job {mine}\nslurm_suspend error:Access/permission denied\n")
    assert said(c, f"scontrol uhold {mine}") == (0, "", "") and c.job(mine)["Reason"] == "JobHeldUser"
    assert said(c, f"scontrol release {mine}", uid=NOBODY) == (0, "", "")
    c.wait_state(mine, "COMPLETED")


def test_suspend_and_resume(c):
    ticks = c.work / "ticks"
    job = running(c, body=f"while true; do echo x >> {ticks}; sleep 0.05; done")
    wait_for(lambda: ticks.exists() and len(ticks.read_text()) > 4)
    assert said(c, f"scontrol suspend {job}") == (0, "", "")
    c.wait_state(job, "SUSPENDED")
    assert rows(c, "%t", "-j", job) == [["S"]]
    assert said(c, f"scontrol suspend {job}")[0] == 0
    seen = []

    def still():
        seen.append(len(ticks.read_text()))
        return len(seen) > 30 and len(set(seen[-30:])) == 1

    wait_for(still, every=0.02)
    size = seen[-1]
    assert said(c, f"scontrol resume {job}") == (0, "", "")
    c.wait_state(job, "RUNNING")
    wait_for(lambda: len(ticks.read_text()) > size)
    assert said(c, f"scontrol resume {job}")[0] == 1
    c.run(f"scontrol suspend {job}")
    c.run(f"scancel {job}")
    c.wait_state(job, "CANCELLED")


def test_requeue(new_cluster):
    c = new_cluster(scale=60)
    job = c.submit("-o", "rq.out", "--open-mode=append", "--wrap",
                   'echo "run ${SLURM_RESTART_COUNT:-0}"; [ -n "$SLURM_RESTART_COUNT" ] || sleep 6000')
    c.wait_state(job, "RUNNING")
    wait_for(lambda: (c.work / "rq.out").exists() and "run 0" in (c.work / "rq.out").read_text())
    assert said(c, f"scontrol requeue {job}") == (0, "", "")
    c.wait_state(job, "COMPLETED", timeout=60)
    assert [l for l in (c.work / "rq.out").read_text().splitlines() if l.startswith("run")] == ["run 0", "run 1"]
    assert c.job(job)["Restarts"] == "1"
    waits = held(c)
    assert said(c, f"scontrol requeue {waits}") == (1, "", f"Job is pending execution for job {waits}\n")
    never = c.submit("--no-requeue", "--wrap", "sleep 6000")
    c.wait_state(never, "RUNNING")
    assert said(c, f"scontrol requeue {never}") == (1, "", f"Requested operation is presently disabled for job {never}\n")
    again = c.submit("--wrap", "sleep 6000")
    c.wait_state(again, "RUNNING")
    assert said(c, f"scontrol requeuehold {again}") == (0, "", "")
    wait_for(lambda: rows(c, "%t %r", "-j", again) == [["PD", *"job requeued in held state".split()]], 60)
    assert c.job(again)["Reason"] == "job_requeued_in_held_state"
    assert said(c, f"scontrol requeuehold state=bogus {again}") == (1, "", "scontrol: error: Invalid state name: bogus\n")
    special = c.submit("--wrap", "sleep 6000")
    c.wait_state(special, "RUNNING")
    assert said(c, f"scontrol requeuehold state=specialexit {special}") == (0, "", "")
    wait_for(lambda: rows(c, "%t %T", "-j", special) == [["SE", "SPECIAL_EXIT"]], 60)
    assert rows(c, "%i", "-t", "SE") == rows(c, "%i", "-t", "special_exit") == [[str(special)]]
    assert c.job(special)["JobState"] == "SPECIAL_EXIT"
    assert said(c, f"scontrol release {special}") == (0, "", "")
    c.wait_state(special, "RUNNING")
    assert rows(c, "%i", "-t", "SE") == []


def test_wait_job(c):
    job, waits = running(c), held(c)
    assert said(c, f"scontrol wait_job {job}") == (0, "", f"scontrol: Nodes are ready for job {job}\n")
    assert said(c, f"scontrol wait_job {waits}") == (1, "", f"scontrol: Job {waits} no longer running\n")
    assert said(c, "scontrol wait_job abc") == (1, "", "Invalid job_id abc")


def test_top(new_cluster):
    c = new_cluster(nodes=1)
    c.run("scontrol update nodename=n1 state=drain reason=x")
    a, b, last = (str(c.submit("--nice=50", "-J", name, "--wrap", "true")) for name in ("a", "b", "last"))
    other = c.submit("-H", "--wrap", "true")
    order = lambda: [words[0] for words in rows(c, "%i", "-h", "-S", "-p,i") if words[0] != str(other)]
    assert order() == [a, b, last]
    assert said(c, f"scontrol top {last}") == (0, "", "") and order() == [last, a, b]
    assert said(c, f"scontrol top {b},{last}") == (0, "", "") and order() == [b, last, a]
    assert said(c, "scontrol top 9999") == (1, "", "Invalid job id specified for job 9999\n")
    assert said(c, "scontrol top") == (1, "", "too few arguments for keyword:top\n")


def test_shutdown(new_cluster):
    c = new_cluster(nodes=1)
    job = running(c)
    assert said(c, "scontrol shutdown bogus") == (1, "", "invalid shutdown argument:bogus\n")
    assert said(c, "scontrol shutdown controller") == (0, "", "")
    wait_for(lambda: not c.ctld.running(), 20)
    assert c.ctld.process.returncode == 0
    c.start_ctld()
    wait_for(lambda: c.job(job)["JobState"] == "RUNNING", 20)


# ---- scontrol update ----


def test_limit_of_a_step(new_cluster):
    c = new_cluster(scale=10)
    job = running(c, body="srun -J one sleep 6000; sleep 6000")
    wait_for(lambda: rows(c, "%i", "-s", "-j", job).count([f"{job}.0"]) == 1, 20)
    limit = lambda step: re.search(r"TimeLimit=(\S+)", c.run(f"scontrol show step {job}.{step}").stdout)[1]
    assert limit(0) == "UNLIMITED"
    assert said(c, f"scontrol update stepid={job}.0 timelimit=2:00:00") == (0, "", "") and limit(0) == "02:00:00"
    assert said(c, f"scontrol update stepid={job} timelimit=3:00:00") == (0, "", "") and limit(0) == "03:00:00"
    for step in (f"{job}.7", f"{job}.batch", "9999.0"):
        assert said(c, f"scontrol update stepid={step} timelimit=5") == (1, "", "slurm_update error: Invalid job id specified\n"), step
    assert said(c, f"scontrol update stepid={job}.0 timelimit=bogus")[0] == 1
    assert said(c, f"scontrol update stepid={job}.0 name=x")[0] == 1 and limit(0) == "03:00:00"
    if os.geteuid() == 0:
        assert said(c, f"scontrol update stepid={job}.0 timelimit=5", uid=NOBODY)[0] == 1 and limit(0) == "03:00:00"
    assert said(c, f"scontrol update stepid={job}.0 timelimit=1") == (0, "", "")
    wait_for(lambda: "TIMEOUT" in c.run(f"sacct -n -P -j {job}.0 -o state").stdout, 60, "the step's new limit to end it")
    assert c.job(job)["JobState"] == "RUNNING"


@pytest.mark.parametrize("change, key, want", [
    ("timelimit=30", "TimeLimit", "00:30:00"), ("TimeLimit=+10", "TimeLimit", "00:30:00"), ("timelimit=-5", "TimeLimit", "00:15:00"),
    ("TIMEMIN=5", "TimeMin", "00:05:00"), ("name=newname", "JobName", "newname"), ("comment=two words", "Comment", "two words"),
    ("partition=long", "Partition", "long"), ("account=ml", "Account", "ml"), ("qos=high", "QOS", "high"), ("nice=7", "Nice", "7"),
    ("numnodes=2", "NumNodes", "2-2"), ("numtasks=4", "NumTasks", "4"), ("cpuspertask=2", "CPUs/Task", "2"),
    ("minmemorynode=300", "MinMemoryNode", "300M"), ("minmemorycpu=50", "MinMemoryCPU", "50M"), ("reqnodelist=n2", "ReqNodeList", "n2"),
    ("excnodelist=n1", "ExcNodeList", "n1"), ("licenses=matlab:1", "Licenses", "matlab:1"), ("requeue=0", "Requeue", "0"),
    ("oversubscribe=yes", "OverSubscribe", "YES"), ("dependency=singleton", None, None), ("stdout=/tmp/so", "StdOut", "/tmp/so"),
    ("stderr=/tmp/se", "StdErr", "/tmp/se"), ("stdin=/etc/passwd", "StdIn", "/etc/passwd"),
    ("starttime=2099-01-01", "EligibleTime", None), ("deadline=2099-01-02", "Deadline", "2099-01-02T00:00:00"),
    ("priority=0", "Reason", "JobHeldAdmin")])
def test_update_of_a_pending_job(c, change, key, want):
    job = held(c, "-t", "20", "-n", "2")
    assert said(c, ["scontrol", "update", f"JobId={job}", change]) == (0, "", "")
    if want:
        assert c.job(job)[key] == want
    elif key:
        assert c.job(job)["StartTime"].startswith("2099") or c.job(job)[key] == "Unknown"
        c.run(f"scontrol release {job}")
        wait_for(lambda: c.job(job)["StartTime"].startswith("2099-01-01"))


@pytest.mark.parametrize("change, text", [
    ("bogus=1", "Update of this parameter is not supported: bogus=1\nRequest aborted\n"),
    ("timelimit=bogus", "scontrol: error: Invalid TimeLimit value\n"),
    ("minmemorynode=2G", "scontrol: error: Invalid MinMemoryNode value: 2G\n"),
    ("starttime=bogus", "Invalid time specification (pos=0): bogus\nNo changes specified\n"),
    ("dependency=bogus:1", "Job dependency problem for job {job}\n"), ("dependency=afterok:{job}", "Job dependency problem for job {job}\n"),
    ("priority=10", "Job is in held state, pending scheduler release for job {job}\n"), (None, "No changes specified\n"),
    ("arraytaskthrottle=2", "scontrol: error: Update of ArrayTaskThrottle is only allowed on ArrayJobId\n"
                            "Requested operation not supported on this system for job {job}\n")])
def test_update_is_refused(c, change, text):
    job = held(c, "-t", "20")
    words = ["scontrol", "update", f"jobid={job}", *([change.format(job=job)] if change else [])]
    assert said(c, words) == (1, "", text.format(job=job))


def test_update_names(c):
    one, two = held(c, "-J", "nm"), held(c)
    assert said(c, f"scontrol update job={one},{two} comment=both") == (0, "", "")
    assert rows(c, "%k", "-j", f"{one},{two}") == [["both"], ["both"]]
    assert said(c, "scontrol update jobname=nm comment=byname") == (0, "", "") and rows(c, "%k", "-j", one) == [["byname"]]
    assert said(c, "scontrol update jobname=nosuch comment=x") == (1, "", "scontrol: error: No jobs with name 'nosuch'\n")
    for bad in ("abc", f"{one}.0"):
        assert said(c, f"scontrol update jobid={bad} name=x") == (1, "", f"Invalid job id specified for job {bad}\n")
    assert said(c, "scontrol update jobid=99999999 name=x") == (1, "", "Invalid job id specified for job 99999999\n")
    assert said(c, "scontrol update") == (1, "", "too few arguments for update keyword\n")
    array = c.submit("-H", "--array=1-3", "--wrap", "true")
    assert said(c, f"scontrol update jobid={array}_2 comment=second") == (0, "", "")
    wait_for(lambda: [f"{array}_2", "second"] in rows(c, "%i %k", "-r", "-j", array))
    assert sorted(rows(c, "%i %k", "-r", "-j", array)) == [[f"{array}_1", "(null)"], [f"{array}_2", "second"], [f"{array}_3", "(null)"]]


@pytest.mark.root
def test_update_of_a_running_job(c):
    job = running(c, "-t", "20", uid=NOBODY)
    assert said(c, f"scontrol update jobid={job} timelimit=10", uid=NOBODY) == (0, "", "")
    assert said(c, f"scontrol update jobid={job} timelimit=-1", uid=NOBODY) == (0, "", "") and rows(c, "%l", "-j", job) == [["9:00"]]
    for longer in ("+5", "60"):
        assert said(c, f"scontrol update jobid={job} timelimit={longer}", uid=NOBODY) == (
            1, "", f"Access/permission denied for job {job}\n")
    assert said(c, f"scontrol update jobid={job} timelimit=+30") == (0, "", "") and rows(c, "%l", "-j", job) == [["39:00"]]
    assert said(c, f"scontrol update jobid={job} timelimit=unlimited") == (0, "", "") and rows(c, "%l", "-j", job) == [["UNLIMITED"]]
    assert said(c, f"scontrol update jobid={job} partition=long", uid=NOBODY) == (
        1, "", f"Job is no longer pending execution for job {job}\n")
    assert said(c, f"scontrol update jobid={job} numnodes=3")[2] == f"Requested operation not supported on this system for job {job}\n"
    other = running(c)
    assert said(c, f"scontrol update jobid={other} timelimit=5", uid=NOBODY) == (1, "", f"Invalid user id for job {other}\n")


def test_update_of_nodes(new_cluster):
    c = new_cluster(nodes=2)
    states = lambda: dict(line.split() for line in c.run(["sinfo", "-h", "-N", "-o", "%N %t"]).stdout.splitlines())
    assert said(c, "scontrol update nodename=n1 state=drain") == (
        1, "", "You must specify a reason when DOWNING or DRAINING a node. Request denied\n")
    assert said(c, ["scontrol", "update", "nodename=n[1-2]", "state=drain", "reason=two words"]) == (0, "", "")
    assert states() == {"n1": "drain", "n2": "drain"}
    assert said(c, ["scontrol", "update", "nodename=n1", "reason=changed only"]) == (0, "", "")
    lines = c.run(["sinfo", "-h", "-R", "-o", "%E|%u|%N"]).stdout.splitlines()
    assert sorted(lines) == ["changed only|root|n1", "two words|root|n2"]
    assert said(c, "scontrol update nodename=n1 state=undrain") == (0, "", "") and states()["n1"] == "idle"
    assert said(c, "scontrol update nodename=n1 state=undrain") == (0, "", "")
    assert said(c, "scontrol update nodename=n1 state=resume") == (1, "", "slurm_update error: Invalid node state transition\n")
    assert said(c, "scontrol update nodename=n1 state=idle") == (0, "", "")
    assert said(c, "scontrol update nodename=n2 state=resume") == (0, "", "") and states()["n2"] == "idle"
    assert said(c, "scontrol update nodename=n99 state=resume") == (1, "", "slurm_update error: Invalid node name specified\n")
    assert said(c, "scontrol update nodename=n1") == (1, "", "No changes specified\n")
    code, out, err = said(c, "scontrol update nodename=n1 state=bogus")
    assert code == 1 and err.startswith("Invalid input: state=bogus\nRequest aborted\nValid states are: ")
    assert said(c, "scontrol update nodename=n1 state=power_down")[0] == 1
    assert said(c, "scontrol update nodename=n1 state=fail reason=x") == (0, "", "") and states()["n1"] == "fail"
    assert c.run("sinfo -h -t fail -o %N").stdout == "n1\n" and "State=IDLE+FAIL" in c.run("scontrol show node n1").stdout
    assert said(c, "scontrol update nodename=n1 state=resume") == (0, "", "") and states()["n1"] == "idle"
    assert said(c, "scontrol update nodename=n1 state=future") == (0, "", "") and "n1" not in states()
    assert c.run("sinfo -F -h -N -n n1 -o %t").stdout == "futr\n"
    assert "State=FUTURE" in c.run("scontrol -F show node n1").stdout and "n1" not in c.run("scontrol show node", check=False).stdout
    assert said(c, "scontrol update nodename=n1 state=resume") == (0, "", "") and states()["n1"] == "idle"
    assert said(c, "scontrol update nodename=n1 state=drain reason=x resumeafter=bogus") == (
        1, "", "scontrol: error: Invalid ResumeAfter value: bogus\n")
    assert said(c, "scontrol update nodename=n1 state=drain reason=x resumeafter=2") == (0, "", "") and states()["n1"] == "drain"
    assert not re.search("ResumeAfterTime=None", c.run("scontrol show node n1").stdout)
    wait_for(lambda: states()["n1"] == "idle", 30)
    assert said(c, "scontrol update nodename=n1 state=down reason=x resumeafter=2") == (0, "", "")
    wait_for(lambda: states()["n1"] == "idle", 30)
    assert said(c, "scontrol update nodename=n1 state=down reason=off") == (0, "", "") and states()["n1"].startswith("down")
    assert said(c, "scontrol update nodename=n1 state=undrain") == (0, "", "") and states()["n1"].startswith("down")
    # those that are well are told of, and the others are resumed
    assert said(c, "scontrol update nodename=ALL state=resume") == (1, "", "slurm_update error: Invalid node state transition\n")
    assert states()["n1"] == "idle"
    assert said(c, "scontrol update nodename=n2 weight=5 features=fast,big") == (0, "", "")
    assert c.run("sinfo -h -N -n n2 -o '%w %f'").stdout == "5 fast,big\n"


def test_features_that_are_preferred(c):
    """In place of -C, where nodes that have them are free; else as if nothing was preferred. Who looks sees which of the two it was."""
    assert said(c, "scontrol update nodename=ALL availablefeatures= activefeatures=") == (0, "", "")
    assert said(c, "scontrol update nodename=ALL availablefeatures=slow") == (0, "", "")
    assert said(c, "scontrol update nodename=n2 availablefeatures=slow,fast") == (0, "", "")
    held = c.submit("-H", "-C", "slow", "--prefer=fast", "--wrap", "sleep 100")
    word = c.run(["squeue", "-h", "-j", str(held), "-O", "feature:10,prefer:10"]).stdout.split()
    assert word == ["slow", "fast"]
    for text, says in (("none", "Invalid preferred feature specification"), ("fast&&slow", "Invalid preferred feature specification")):
        code, out, err = said(c, f"scontrol update jobid={held} prefer={text}")
        assert code == 1 and says in err
    assert said(c, f"scontrol update jobid={held} prefer=") == (0, "", "") and "Prefer" not in c.job(held)
    assert said(c, f"scontrol update jobid={held} prefer=slow,fast") == (0, "", "") and c.job(held)["Prefer"] == "slow&fast"
    full = c.submit("-w", "n2", "--exclusive", "--wrap", "sleep 100")
    c.wait_state(full, "RUNNING")
    c.run(["scontrol", "release", str(held)])
    c.wait_state(held, "RUNNING")
    job = c.job(held)
    assert job["NodeList"] != "n2" and job["Features"] == "slow" and "Prefer" not in job
    code, out, err = said(c, f"scontrol update jobid={held} prefer=fast")
    assert code == 1 and "Job is no longer pending execution" in err
    c.run(["scancel", str(held), str(full)])
    c.wait_state(full, "CANCELLED")
    wait_for(lambda: c.run("squeue -h").stdout == "")
    there = c.submit("-C", "slow", "--prefer=fast", "--wrap", "sleep 100")
    c.wait_state(there, "RUNNING")
    job = c.job(there)
    assert job["NodeList"] == "n2" and job["Features"] == "fast" and "Prefer" not in job
    assert c.run(["sacct", "-X", "-n", "-P", "-j", str(there), "-o", "constraints"]).stdout == "fast\n"
    c.run(["scancel", str(there)])
    assert said(c, "scontrol update nodename=ALL availablefeatures= activefeatures=") == (0, "", "")


def test_features_that_are_not_active(c):
    """Slurm's rule where no plugin switches features: a job goes by those that are active, which are some of those there are."""
    refused = (1, "", "slurm_update error: Active features not subset of available features\n")

    def shown():
        return c.run("sinfo -h -N -n n2 -o '%f|%b'").stdout.splitlines()[0]

    assert said(c, "scontrol update nodename=ALL availablefeatures= activefeatures=") == (0, "", "")
    assert said(c, "scontrol update nodename=n2 availablefeatures=fast,big") == (0, "", "") and shown() == "fast,big|fast,big"
    assert said(c, "scontrol update nodename=n2 activefeatures=small") == refused and shown() == "fast,big|fast,big"
    assert said(c, "scontrol update nodename=n2 availablefeatures=fast") == refused, "big is active"
    assert said(c, "scontrol update nodename=n2 activefeatures=big") == (0, "", "") and shown() == "fast,big|big"
    node = c.run("scontrol show node n2").stdout
    assert "AvailableFeatures=fast,big\n" in node and "ActiveFeatures=big\n" in node
    node = json.loads(c.run("scontrol show node n2 --json").stdout)["nodes"][0]
    assert node["features"] == ["fast", "big"] and node["active_features"] == ["big"]
    assert c.run("sbatch -C big --test-only --wrap true").returncode == 0
    asked = c.run("sbatch -C fast --wrap true", check=False)
    assert asked.returncode == 1 and "Requested node configuration is not available" in asked.stderr
    asked = c.run("sbatch -C none --wrap true", check=False)
    assert asked.returncode == 1 and "Invalid feature specification" in asked.stderr
    assert said(c, "scontrol update nodename=n2 availablefeatures=big") == (0, "", "") and shown() == "big|big"
    assert said(c, "scontrol update nodename=n2 activefeatures=") == (0, "", "") and shown() == "big|(null)"
    assert said(c, "scontrol update nodename=n2 availablefeatures=fast") == (0, "", "") and shown() == "fast|fast"
    assert said(c, "scontrol update nodename=n2 availablefeatures= activefeatures=") == (0, "", "") and shown() == "(null)|(null)"


@pytest.mark.root
def test_nodes_are_administrators(c):
    assert said(c, "scontrol update nodename=n1 state=drain reason=x", uid=NOBODY) == (1, "", "slurm_update error: Invalid user id\n")


@pytest.mark.root
def test_an_administrators_comment(c):
    """Of a job that waits or runs; its owner sees it, and may not write it."""
    job = running(c, "--comment=mine", body="srun sleep 100")
    sluid = re.search(r"SLUID=(\w+)", c.run(["scontrol", "-d", "show", "job", str(job)]).stdout)[1]
    assert said(c, f"scontrol update job={sluid} admincomment=a_b") == (0, "", "")
    text = c.run(["scontrol", "show", "job", str(job)]).stdout
    assert "\n   AdminComment=a_b\n   Comment=mine\n" in text
    assert c.run(["squeue", "-h", "-j", str(job), "-O", "admin_comment"]).stdout.strip() == "a_b"
    assert json.loads(c.run(["scontrol", "--json", "show", "job", str(job)]).stdout)["jobs"][0]["admin_comment"] == "a_b"
    assert c.run(["sacct", "-X", "-n", "-P", "-j", str(job), "-o", "admincomment,comment"]).stdout == "a_b|mine\n"
    row = json.loads(c.run(["sacct", "-j", str(job), "--json"]).stdout)["jobs"][0]
    assert row["comment"]["administrator"] == "a_b" and row["comment"]["job"] == "mine"
    wait_for(lambda: f"{job}.0 " in c.run("squeue -s -h").stdout, 15)
    steps = json.loads(c.run(["scontrol", "--json", "show", "steps", f"{job}.0"]).stdout)["steps"]
    assert [s["sluid"] for s in steps] == [sluid]
    code, out, err = said(c, f"scontrol update job={job} admincomment=x", uid=NOBODY)
    assert code == 1 and "AdminComment=a_b" in c.run(["scontrol", "show", "job", str(job)]).stdout
    assert said(c, f"scontrol update job={job} admincomment=") == (0, "", "")
    assert "AdminComment" not in c.run(["scontrol", "show", "job", str(job)]).stdout
    c.run(["scancel", str(job)])


# ---- steps ----


def test_show_steps(c):
    job = running(c, "-J", "st", "-n", "2", body="srun -n2 sleep 100")
    wait_for(lambda: f"{job}.0 " in c.run("squeue -s -h").stdout, 15)
    lines = [l.split() for l in c.run(["squeue", "-s", "-h", "-j", str(job)]).stdout.splitlines()]
    assert [l[:4] for l in lines] == [[f"{job}.0", "sleep", "debug", "root"], [f"{job}.batch", "batch", "debug", "root"]]
    assert c.run(["squeue", "-h", "-s", f"{job}.0", "-o", "%i %A"]).stdout == f"{job}.0 2\n"
    text = c.run(["scontrol", "show", "step", f"{job}.0"]).stdout
    assert text.startswith(f"StepId={job}.0 UserId=0 StartTime=") and " Tasks=2 Name=sleep " in text
    both = c.run(["scontrol", "-o", "show", "step", str(job)]).stdout.splitlines()
    assert [l.split()[0] for l in both] == [f"StepId={job}.batch", f"StepId={job}.0"]
    assert said(c, "scontrol show step 99999999.0") == (
        1, "", "scontrol: error: scontrol_print_step: slurm_get_job_steps(99999999.0) failed: Invalid job id specified\n")
    c.run(["scancel", str(job)])
    c.wait_over(job)
    rows_ = c.run(["sacct", "-n", "-P", "-o", "jobid,jobname", "-j", str(job)]).stdout
    assert rows_ == f"{job}|st\n{job}.batch|batch\n{job}.0|sleep\n"
    assert c.run(["sacct", "-X", "-n", "-P", "-o", "jobid", "-j", str(job)]).stdout == f"{job}\n"
