# SPDX-License-Identifier: Apache-2.0
"""Cases from the field: LC (life, signals, exit codes) and ST (steps and environment). tests/golden/cases says which case is
where; what needs a faster clock shares one cluster, what hurts nodes has one of its own."""
import os
import re
import signal
import subprocess
import threading
import time

import pytest

import spurtest
from spurtest import wait_for

SHARED = {"cpus": 8, "memory_mb": 8000}
FAST = 20


@pytest.fixture(scope="module")
def fast(request):
    """A minute's limit takes three seconds."""
    with spurtest.Cluster(nodes=1, cpus=8, scale=FAST) as c:
        yield c


def rows(c, fmt, *options):
    return [line.split() for line in c.run(["squeue", "-h", "-o", fmt, *map(str, options)]).stdout.splitlines()]


def srun(c, *argv, **more):
    return c.run(["srun", *map(str, argv)], check=False, **more)


def text_of(c, name):
    path = c.work / name
    return path.read_text() if path.exists() else ""


# ---- LC ----


def test_lc01_over_the_limit_is_timeout_however_it_dies(fast):
    bodies = {"plain": "exec sleep 1000", "obeys": "trap 'exit 0' TERM; sleep 1000 & wait", "code": "trap 'exit 5' TERM; sleep 1000 & wait",
              "deaf": "trap '' TERM; while :; do sleep 0.1; done"}
    jobs = {name: fast.batch(body, "-t", "1", "-J", name) for name, body in bodies.items()}
    for name, job in jobs.items():
        fast.wait_state(job, "TIMEOUT", timeout=40)
        assert rows(fast, "%t %r", "-t", "all", "-j", job) == [["TO", "TimeLimit"]], name
        assert fast.job(job)["JobState"] == "TIMEOUT" and fast.sacct(job)["State"] == "TIMEOUT", name
    ends = {name: fast.sacct(job, "ElapsedRaw")["ElapsedRaw"] for name, job in jobs.items()}
    assert int(ends["deaf"]) >= 85 > int(ends["obeys"]) >= 58  # KillWait is 30 s; the clock runs FAST times faster, and starts when the agent says so


def test_lc01_a_change_of_the_controller_between_signal_and_end(new_cluster):
    c = new_cluster(scale=FAST, conf="")
    job = c.batch("trap 'touch told; sleep 0.6; exit 0' TERM; sleep 1000 & wait", "-t", "1")
    wait_for(lambda: (c.work / "told").exists(), 30)
    c.ctld.restart(signal.SIGKILL)
    c.wait_state(job, "TIMEOUT", timeout=40)
    assert c.sacct(job)["State"] == "TIMEOUT"


def test_lc02_early_warning(fast):
    handler = "trap 'echo told >> shell-{0}' USR1; for i in $(seq 1200); do sleep 0.05; done"
    jobs = {name: fast.batch(handler.format(name), "-t", "2", "-J", name, f"--signal={sig}")
            for name, sig in (("name", "B:USR1@60"), ("long", "B:SIGUSR1@60"), ("number", "B:10@60"), ("default", "B:USR1"))}
    for job in jobs.values():
        fast.wait_state(job, "TIMEOUT", timeout=60)
    assert {n: text_of(fast, f"shell-{n}") for n in jobs} == {n: "told\n" for n in jobs}  # once


def test_lc02_steps_are_warned_and_not_the_shell(new_cluster):
    c = new_cluster(scale=5)
    (c.work / "step.sh").write_text("trap 'echo told >> step-told' USR1; echo > step-ready; while :; do sleep 0.05; done\n")
    job = c.batch("trap 'echo told >> shell-told' USR1; srun -n1 sh step.sh & wait; wait", "-t", "1", "--signal=USR1@45")
    began = time.monotonic()
    wait_for(lambda: text_of(c, "step-told"), 30, "the step to be told")
    assert time.monotonic() - began < 45 / 5 + 3 * spurtest.PATIENCE  # up to 60 s early, never late
    assert text_of(c, "step-told") == "told\n" and text_of(c, "shell-told") == ""
    c.run(["scancel", str(job)])


@pytest.mark.root
def test_lc03_a_memory_kill_is_visible_even_if_the_script_goes_on(shared):
    eats = "python3 -c 'x = bytearray(300 << 20); print(len(x))'"
    job = shared.batch(f"srun -n1 {eats}; echo rc $?; exit 0", "--mem=100M", "-o", "lc03.txt")
    alone = shared.batch(f"{eats}; exit 0", "--mem=100M", "-o", "lc03b.txt")
    for one in (job, alone):
        shared.wait_state(one, "OUT_OF_MEMORY", timeout=30)
        assert shared.sacct(one) == {"JobID": str(one), "State": "OUT_OF_MEMORY", "ExitCode": "0:125"}
        assert rows(shared, "%t", "-t", "all", "-j", one) == [["OOM"]]
    steps = dict(line.split("|") for line in shared.run(["sacct", "-n", "-P", "-o", "jobid,state", "-j", str(job)]).stdout.splitlines())
    assert steps == {str(job): "OUT_OF_MEMORY", f"{job}.batch": "OUT_OF_MEMORY", f"{job}.0": "OUT_OF_MEMORY"}
    for front in (["srun"], ["salloc", "-Q", "-J", "lc03-salloc"]):  # the client says how it went; the limit was the cause all the same
        name = f"lc03-{front[0]}"
        got = shared.run([*front, "--mem=100M", *(["srun"] if front[0] == "salloc" else ["-J", name]), "sh", "-c", f"exec {eats}"], check=False)
        assert got.returncode == 137 and "srun: error: n1: task 0: Out Of Memory\n" in got.stderr
        wait_for(lambda: rows(shared, "%t %r", "-t", "all", "-n", name) == [["OOM", "OutOfMemory"]], 10, f"{front[0]}'s job to be told")
        assert shared.run(["sacct", "-X", "-n", "-P", "-o", "state,exitcode", "--name", name]).stdout == "OUT_OF_MEMORY|0:125\n"
    text = (shared.work / "lc03.txt").read_text()
    assert "srun: error: n1: task 0: Out Of Memory\n" in text and f"{job}.0" in text and "rc 0" not in text
    assert set(shared.run("sinfo -h -N -o %t").stdout.split()) <= {"idle", "mix"}


def test_lc04_a_lost_node(new_cluster):
    c = new_cluster(nodes=2, cpus=2, scale=FAST)
    on_n2 = ["-w", "n2", "-n1", "--wrap", "sleep 3000"]
    stays, comes_back = c.submit("--no-requeue", *on_n2), c.submit("--requeue", *on_n2)
    for job in (stays, comes_back):
        c.wait_state(job, "RUNNING")
    lost = [pid for pid, line in c.ours() if b"spurstepd" in line or b"sleep" in line]
    c.nodes["n2"].kill(signal.SIGKILL)
    for pid in lost:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    c.wait_state(stays, "NODE_FAIL", timeout=60)
    assert rows(c, "%t", "-t", "all", "-j", stays) == [["NF"]]
    row = c.sacct(stays, "State,ExitCode,NodeList")
    assert row["State"] == "NODE_FAIL" and row["NodeList"] == "n2" and row["ExitCode"] != "0:0"
    wait_for(lambda: c.state_of(comes_back) == "PENDING", 60)
    assert c.job(comes_back)["Restarts"] == "1"
    c.run(["scancel", str(comes_back)])
    c.nodes["n2"].start()
    wait_for(lambda: "IDLE " in c.run("scontrol -o show node n2").stdout, 60, "n2 to be idle")
    assert re.search(r" CPUAlloc=0 ", c.run("scontrol -o show node n2").stdout)


def test_lc05_requeue_from_inside(shared):
    body = """echo run ${SLURM_RESTART_COUNT:-0} task $SLURM_ARRAY_TASK_ID
[ -n "$SLURM_RESTART_COUNT" ] && exit 0
scontrol requeue ${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}
exit 0"""  # not SLURM_JOB_ID alone: the last task's is the array's, which means all its tasks
    jobs = [shared.batch(body, "--requeue", "--open-mode=append", "-o", "lc05-%j.txt") for _ in range(50)]
    array = shared.batch(body, "--requeue", "--open-mode=append", "-o", "lc05-%A_%a.txt", "--array=3,7")
    names = [f"lc05-{job}.txt" for job in jobs] + [f"lc05-{array}_{t}.txt" for t in (3, 7)]
    for job in [*jobs, array]:
        for _ in range(2):
            wait_for(lambda: not rows(shared, "%i", "-j", job), 60, f"job {job} to be over")
    for name, task in zip(names, [""] * 50 + ["3", "7"]):
        lines = [line.rstrip() for line in text_of(shared, name).splitlines() if "***" not in line]
        assert lines == [f"run 0 task {task}".rstrip(), f"run 1 task {task}".rstrip()], name
    for job in jobs:
        assert shared.sacct(job)["State"] == "COMPLETED" and shared.job(job)["Restarts"] == "1"
        assert shared.run(["sacct", "-X", "-D", "-n", "-P", "-o", "state", "-j", str(job)]).stdout.split() == ["REQUEUED", "COMPLETED"]


def test_lc07_salloc_waits(new_cluster):
    c = new_cluster(cpus=2, scale=60)
    full = c.submit("-n2", "--wrap", "sleep 3000")
    c.wait_state(full, "RUNNING")
    got = c.run(["salloc", "-n1", "-I2", "true"], check=False)
    assert got.returncode == 1 and rows(c, "%i", "-t", "PD") == []
    out = {}
    waiter = threading.Thread(target=lambda: out.update(got=c.run(["salloc", "-n1", "sh", "-c", "exit 4"], check=False, timeout=120)))
    waiter.start()
    began = time.monotonic()
    ((job, _),) = wait_for(lambda: rows(c, "%A %t", "-t", "PD"))
    wait_for(lambda: time.monotonic() - began > 6.2, 20)  # 372 s of the daemons' clock
    assert c.state_of(job) == "PENDING"
    c.run(["scancel", str(full)])
    waiter.join(20)
    err = out["got"].stderr
    assert out["got"].returncode == 4 and f"salloc: Pending job allocation {job}\nsalloc: job {job} queued and waiting for resources\n" in err


def test_lc07_an_interrupt_while_it_waits(new_cluster):
    c = new_cluster(cpus=2)
    c.wait_state(c.submit("-n2", "--wrap", "sleep 3000"), "RUNNING")
    waits = subprocess.Popen(["salloc", "-n1", "true"], env=c.env, cwd=c.work, stderr=subprocess.PIPE, text=True)
    ((job, _),) = wait_for(lambda: rows(c, "%A %t", "-t", "PD"))
    waits.send_signal(signal.SIGINT)
    assert waits.wait(10) != 0
    waits.stderr.close()
    wait_for(lambda: rows(c, "%i", "-t", "PD") == [])
    assert c.state_of(job) == "CANCELLED"


def test_lc09_suspended_time_does_not_count(fast):
    job = fast.batch("(while :; do echo x >> ticks; sleep 0.05; done) & wait", "-t", "2")
    fast.wait_state(job, "RUNNING")
    wait_for(lambda: text_of(fast, "ticks"))
    began = time.monotonic()
    fast.run(["scontrol", "suspend", str(job)])
    fast.wait_state(job, "SUSPENDED")
    size = wait_for(lambda: (lambda a: a == (time.sleep(0.3), len(text_of(fast, "ticks")))[1] and a)(len(text_of(fast, "ticks"))), 5, "the grandchild to stop")
    wait_for(lambda: time.monotonic() - began > 7, 20)  # 140 s of their clock: beyond the limit
    assert fast.state_of(job) == "SUSPENDED" and len(text_of(fast, "ticks")) == size
    assert " CPUAlloc=1 " in fast.run("scontrol -o show node n1").stdout
    fast.run(["scontrol", "resume", str(job)])
    fast.wait_state(job, "TIMEOUT", timeout=40)
    assert 115 <= int(fast.sacct(job, "ElapsedRaw")["ElapsedRaw"]) < 160
    other = fast.batch("sleep 3000")
    fast.wait_state(other, "RUNNING")
    fast.run(["scontrol", "suspend", str(other)])
    fast.wait_state(other, "SUSPENDED")
    fast.run(["scancel", str(other)])
    fast.wait_state(other, "CANCELLED")


# ---- ST ----


def test_st01_cpus_per_task_inside_the_job(shared):
    job = shared.submit("-N1", "-n2", "-c2", "-o", "st01.txt", "--wrap", 'srun sh -c "nproc; echo \\$SLURM_CPUS_PER_TASK"')
    none = shared.submit("-n2", "-o", "st01b.txt", "--wrap", "echo ${SLURM_CPUS_PER_TASK-unset}")
    differ = shared.submit("-N1", "-n2", "-c2", "-o", "st01c.txt", "--wrap", "SRUN_CPUS_PER_TASK=1 srun true; echo $?")
    for one in (job, none, differ):
        shared.wait_state(one, "COMPLETED")
    assert text_of(shared, "st01.txt").split() == ["2"] * 4 and text_of(shared, "st01b.txt") == "unset\n"
    text = text_of(shared, "st01c.txt")
    assert "SRUN_CPUS_PER_TASK" in text and text.endswith("1\n"), text


def test_st02_many_steps_in_the_background(shared):
    body = "\n".join(f"srun --exact -N1 -n1 -c3 --mem=1000 sh -c 'echo begun {i}; sleep 1; echo ended {i}' & p{i}=$!" for i in range(5)) + """
for p in $p0 $p1 $p2 $p3 $p4; do wait $p; echo rc $?; done"""
    job = shared.batch(body, "-N1", "-n2", "-c3", "--mem=2000", "-o", "st02.txt")
    shared.wait_state(job, "COMPLETED", timeout=40)
    text = text_of(shared, "st02.txt")
    assert text.count("rc 0\n") == 5 and all(f"ended {i}\n" in text for i in range(5))
    busy, most = 0, 0
    for word in re.findall(r"(begun|ended) \d", text):
        busy += 1 if word == "begun" else -1
        most = max(most, busy)
    assert most == 2, text
    # as recorded from Slurm, who waits some seconds is told of it at the end alone ("Step created for …")


@pytest.mark.parametrize("options, want", [
    ([], {"NTASKS": None, "NPROCS": None, "NTASKS_PER_NODE": None, "TASKS_PER_NODE": "1", "CPUS_PER_TASK": None}),
    (["-n3", "-N1"], {"NTASKS": "3", "NPROCS": "3", "NTASKS_PER_NODE": None, "TASKS_PER_NODE": "3"}),
    (["-N2"], {"NTASKS": None, "TASKS_PER_NODE": "1(x2)", "JOB_NUM_NODES": "2"}),
    (["-N2", "-n3"], {"NTASKS": "3", "TASKS_PER_NODE": "2,1"}),
    (["-N2", "-n4", "--ntasks-per-node=2"], {"NTASKS": "4", "NTASKS_PER_NODE": "2", "TASKS_PER_NODE": "2(x2)"}),
    (["-N2", "--ntasks-per-node=2"], {"NTASKS_PER_NODE": "2", "TASKS_PER_NODE": "2(x2)"}),
    (["-c2"], {"NTASKS": None, "CPUS_PER_TASK": "2"}),
    (["-n2", "-c3", "-N1"], {"NTASKS": "2", "CPUS_PER_TASK": "3", "TASKS_PER_NODE": "2"})])
def test_st03_numbers_of_tasks(shared, options, want):
    job = shared.submit(*options, "-o", "st03.txt", "--wrap", "env; echo STEP; srun -n1 -N1 env 2>/dev/null")
    shared.wait_state(job, "COMPLETED")
    script, step = ({k[6:]: v for k, _, v in (line.partition("=") for line in part.splitlines()) if k.startswith("SLURM_")}
                    for part in text_of(shared, "st03.txt").split("\nSTEP\n"))
    assert {k: script.get(k) for k in want} == want
    assert (step["NTASKS"], step["NPROCS"], step["STEP_NUM_TASKS"], step["TASKS_PER_NODE"]) == ("1", "1", "1", "1")


def test_st04_step_scope_and_job_scope(shared):
    job = shared.submit("-N2", "-o", "st04.txt", "--wrap", "env; echo STEP; srun -N1 -n1 env")
    shared.wait_state(job, "COMPLETED")
    script, step = ({k[6:]: v for k, _, v in (line.partition("=") for line in part.splitlines()) if k.startswith("SLURM_")}
                    for part in text_of(shared, "st04.txt").split("\nSTEP\n"))
    want = {"NNODES": "1", "STEP_NUM_NODES": "1", "JOB_NUM_NODES": "2", "STEP_NODELIST": "n1", "JOB_NODELIST": "n[1-2]"}
    assert {k: step.get(k) for k in want} == want
    want = {"NODEID": "0", "PROCID": "0", "LOCALID": "0", "STEP_NUM_NODES": None, "NNODES": "2", "JOB_NUM_NODES": "2"}
    assert {k: script.get(k) for k in want} == want


def test_st05_srun_inside_salloc_runs_on_the_nodes(shared):
    got = shared.run(["salloc", "-Q", "-N2", "sh", "-c", "echo here ${SLURMD_NODENAME-none}; srun sh -c 'echo $SLURMD_NODENAME'"])
    here, *there = got.stdout.splitlines()
    assert here == "here none" and sorted(there) == ["n1", "n2"]
    job = shared.submit("-n1", "--wrap", "sleep 60")
    shared.wait_state(job, "RUNNING")
    got = srun(shared, f"--jobid={job}", "--overlap", "sh", "-c", "echo $SLURM_JOB_ID $SLURM_STEP_ID")
    assert got.stdout == f"{job} 0\n"
    shared.run(["scancel", str(job)])


def test_st06_exit_codes_of_srun(shared):
    assert srun(shared, "-n3", "sh", "-c", "exit $SLURM_PROCID").returncode == 2
    got = srun(shared, "-n1", "-w", "n1", "-J", "st06", "sh", "-c", "kill -9 $$")
    assert got.returncode == 137 and "srun: error: n1: task 0: Killed\n" in got.stderr
    job = rows(shared, "%A", "-t", "all", "-n", "st06")[0][0]
    steps = dict(line.split("|") for line in shared.run(["sacct", "-n", "-P", "-o", "jobid,exitcode", "-j", job]).stdout.splitlines())
    assert steps[f"{job}.0"] == "0:9"
    began = time.monotonic()
    got = srun(shared, "-K", "-n2", "sh", "-c", "test $SLURM_PROCID = 1 && exit 3; sleep 60")
    assert got.returncode != 0 and time.monotonic() - began < 30 * spurtest.PATIENCE


def test_st07_labels_and_names_of_files(shared):
    out = srun(shared, "-n2", "-l", "echo", "hi").stdout
    assert sorted(out.splitlines()) == ["0: hi", "1: hi"]
    out = srun(shared, "-n12", "-l", "echo", "x").stdout
    assert sorted(out.splitlines()) == sorted(f"{n:2}: x" for n in range(12))
    got = srun(shared, "-N2", "-n2", "-J", "st07", "-o", "st07-%t-%n-%N-%s-%J.txt", "sh", "-c", "echo $SLURM_PROCID")
    job = rows(shared, "%A", "-t", "all", "-n", "st07")[0][0]
    assert got.stdout == "" and sorted(p.name for p in shared.work.glob("st07-*")) == [f"st07-{t}-{t}-n{t + 1}-0-{job}.0.txt" for t in (0, 1)]
    got = shared.run(["srun", "-n16", "-l", "sh", "-c", "yes 0123456789abcde | head -c 1048576"], timeout=120)
    counts = {}
    for line in got.stdout.splitlines():
        label, text = line.split(": ")
        assert text == "0123456789abcde"
        counts[int(label)] = counts.get(int(label), 0) + 1
    assert counts == {n: 65536 for n in range(16)}
