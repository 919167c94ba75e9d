# SPDX-License-Identifier: Apache-2.0
"""Each way in which daemons die, times each thing that people run (workloads.py): plain jobs, arrays, steps, srun, salloc,
chains, suspended and requeued jobs are struck in their middle, all at once, and end as if nothing had been."""
import os
import random
import re
import signal
import subprocess
import threading

import pytest

from spurtest import alive, wait_for
from workloads import again, finish_all, start_all, wait_parts


@pytest.fixture
def wide(new_cluster):
    return new_cluster(nodes=2, cpus=16)


def agents(c):
    return list(c.nodes.values())


def with_another_configuration(c):
    """It comes back with one partition more and another scheduler setting."""
    c.ctld.kill()
    c.conf_path.write_text(c.conf_text + '\n[[partitions]]\nname = "other"\nmax_time = "5"\n\n[scheduler]\nattend_secs = 20\n')
    c.ctld.start()
    wait_for(lambda: "other" in c.run("sinfo -h -o %P").stdout, 10, "the new partition")


def with_a_torn_log(c):
    """Behind the last entry of the open segments lies half of another."""
    c.ctld.kill()
    torn = 0
    for path in [p for p in c.state.rglob("open-*") if re.fullmatch(r"open-\d+", p.name)]:
        end = (len(path.read_bytes().rstrip(b"\0")) + 7) // 8 * 8
        if end:
            with open(path, "r+b") as f:
                f.seek(end)
                f.write(random.randbytes(200))
            torn += 1
    assert torn
    c.ctld.start()


STRIKES = {
    "another configuration": with_another_configuration,
    "torn log": with_a_torn_log,
    "controller killed": lambda c: [c.ctld.restart() for _ in range(2)],
    "controller told to stop": lambda c: c.ctld.restart(signal.SIGTERM),
    "agents killed": lambda c: [d.restart() for d in agents(c)],
    "agents told to stop": lambda c: [d.restart(signal.SIGTERM) for d in agents(c)],
    "all killed": lambda c: ([d.kill() for d in [*agents(c), c.ctld]], [d.start() for d in [c.ctld, *agents(c)]]),
}


@pytest.mark.parametrize("strike", STRIKES)
def test_struck_in_the_middle(wide, strike):
    ws = start_all(wide)
    STRIKES[strike](wide)
    finish_all(wide, ws)


def those(c, who):
    return {"controller": [c.ctld], "agents": agents(c), "all": [*agents(c), c.ctld]}[who]


@pytest.mark.parametrize("who", ["controller", "agents", "all"])
def test_ended_meanwhile(wide, who):
    """What runs ends while those are away to whom it would be told."""
    c = wide
    ws = start_all(c)
    away = those(c, who)
    for daemon in away:
        daemon.kill()
    for w in ws:
        w.go()
    wait_parts(ws)
    for daemon in reversed(away):
        daemon.start()
    finish_all(c, ws)


@pytest.mark.parametrize("who", ["controller", "agents", "all"])
def test_ended_while_they_hang(wide, who):
    """The same with daemons that hang for a while: what is sent to them is lost or comes late, and is said again."""
    c = wide
    ws = start_all(c)
    for daemon in those(c, who):
        daemon.process.send_signal(signal.SIGSTOP)
    for w in ws:
        w.go()
    try:
        wait_parts(ws)
    finally:
        for daemon in those(c, who):
            daemon.process.send_signal(signal.SIGCONT)
    finish_all(c, ws)


@pytest.mark.root
def test_ended_on_a_full_disk(new_cluster):
    """The controller can write nothing while everything ends."""
    c = new_cluster(nodes=2, cpus=16, start=False)
    c.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(c.state)], check=True)
    try:
        c.start()
        held = c.submit("-H", "--wrap", "true")
        ws = start_all(c)
        filler = c.state / "filler"
        with open(filler, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 65536)
            except OSError:
                pass
        for i in range(3000):  # what is preallocated is used up first
            if c.run(["scontrol", "update", f"jobid={held}", f"comment={i}{'x' * 100000}"], check=False).returncode != 0:
                break
        else:
            raise AssertionError("the disk is full and writes are still taken")
        for w in ws:
            w.go()
        wait_parts(ws)
        pid = c.ctld.pid
        filler.unlink()
        again(c, "scancel", held)
        finish_all(c, ws)
        assert c.ctld.running() and c.ctld.pid == pid
    finally:
        c.ctld.kill()
        subprocess.run(["umount", "-l", str(c.state)], check=True)


# ---- what can't go on ----


def test_step_daemons_killed(wide):
    """Nobody knows the exit codes any more: what ran has failed, what waited for it goes on, nothing is left over."""
    c = wide
    ws = start_all(c)
    for w in ws:
        w.lost = True
    pids = [pid for w in ws for pid in w.pids()]
    for pid, cmdline in c.ours():
        if cmdline.startswith(b"spurstepd"):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(alive(pid) for pid in pids), 20, "what ran under them to be ended")
    finish_all(c, ws, how="check_struck")
    for w in ws:
        ended = [(name, task) for name, task, _ in w.runs("ended")]
        struck = {key for key, row in w.rows().items() if row == ("FAILED", "0:9")}
        if w.kind == "array":
            assert struck == {"job_0", "job_1", "job_2"} and sorted(ended) == [("job", str(n)) for n in range(3, 8)]
        elif w.kind == "chain":
            assert struck == {"a_0", "a_1", "a_2", "first"} and sorted(ended) == [(name, "-") for name in ("any", "notok", "second")]
        elif w.kind in ("srun", "salloc"):
            assert w.process.returncode != 0 and w.rows()["job"][0] == "FAILED" and not ended
        else:
            assert "job" in struck and not ended, w.name


@pytest.mark.parametrize("controller_too", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_node_lost(new_cluster, controller_too):
    """With all that runs there; what is a batch job begins anew, on another node."""
    c = new_cluster(nodes=2, cpus=20, scale=3, controller="heartbeat_timeout_secs = 5")
    ws = start_all(c)
    for w in ws:
        w.lost = True
    node = c.nodes["n1"]
    for pid, cmdline in c.ours():
        if str(c.root / "n1").encode() in cmdline and pid != node.pid:
            os.kill(pid, signal.SIGKILL)
    for w in ws:
        for pid in w.pids():
            if on_node(pid, "n1"):
                os.kill(pid, signal.SIGKILL)
    node.kill()
    if controller_too:
        c.ctld.restart()
    wait_for(lambda: re.search(r"^n1 down", c.run("sinfo -h -N -o '%N %t'", check=False).stdout, re.M), 30, "n1 to be down")
    if controller_too:
        c.ctld.restart()
    node.start()
    finish_all(c, ws, how="check_lost")


def on_node(pid, name):
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            return f"SLURMD_NODENAME={name}".encode() in f.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False


# ---- between the commit of an entry and what comes of it ----


class Dying(threading.Thread):
    """A controller that dies again and again, each time after an entry is in the log and before anything is told or done."""

    def __init__(self, c, steps):
        super().__init__(daemon=True)
        self.c, self.steps, self.at, self.lives, self.done = c, steps, 40, 0, threading.Event()

    def run(self):
        while not self.done.is_set():
            if self.c.ctld.running():
                self.done.wait(0.002)
                continue
            self.lives += 1
            self.at += self.steps()
            self.c.daemon_env["SPUR_FAULT"] = f"ctl.before_reply:{self.at}=kill"
            self.c.ctld.spawn()

    def stop(self):
        self.done.set()
        self.join()
        self.c.daemon_env.pop("SPUR_FAULT", None)
        self.c.ctld.restart()


def test_dies_between_commit_and_effect(new_cluster):
    c = new_cluster(nodes=2, cpus=16, ctld_args=["--test-faults"])
    random.seed(7)
    c.daemon_env["SPUR_FAULT"] = "ctl.before_reply:40=kill"
    c.ctld.restart()
    dying = Dying(c, lambda: random.randint(3, 25))
    dying.start()
    try:
        ws = start_all(c)
        for w in ws:
            w.go()
        for w in ws:
            wait_for(w.over, 120, f"{w.name} to be over", every=0.1)
    finally:
        dying.stop()
    assert dying.lives >= 5
    finish_all(c, ws)


def test_steps_and_their_jobs_end_while_the_agent_is_away(wide):
    """The end of a job ends its steps: what those returned is told first."""
    c = wide
    jobs = [c.batch("srun -Q -n1 -J one sh -c 'touch up.$SLURM_JOB_ID; until [ -e go ]; do sleep 0.02; done'", "-n1", "-o", "/dev/null") for _ in range(12)]
    wait_for(lambda: all((c.work / f"up.{job}").exists() for job in jobs), 20, "the steps to run")
    for node in agents(c):
        node.kill()
    (c.work / "go").touch()
    wait_for(lambda: not any(b"slurm_script" in cmdline or cmdline.startswith(b"srun") for _, cmdline in c.ours()), 20, "the scripts to end")
    for node in agents(c):
        node.start()
    for job in jobs:
        c.wait_state(job, "COMPLETED")
    wanted = sorted([f"{job}{part}|COMPLETED|0:0" for job in jobs for part in ("", ".0", ".batch")])
    assert sorted(c.run("sacct -n -P -a -o JobID,State,ExitCode").stdout.splitlines()) == wanted
