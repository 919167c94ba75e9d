# SPDX-License-Identifier: Apache-2.0
"""Clients that die, hang or lose their terminal, and a controller or an agent that is away just when they need it: jobs and
steps end within their bound, with the right rows, or go on as if nothing had been."""
import os
import pty
import re
import signal
import subprocess
import time

import pytest

import spurtest
from spurtest import alive, wait_for

ATTEND = 5
BOUND = ATTEND + 10


@pytest.fixture(scope="module")
def c():
    with spurtest.Cluster(nodes=1, cpus=8, scheduler=f"attend_secs = {ATTEND}\n") as cluster:
        yield cluster


def start(c, *argv, **how):
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.Popen(list(map(str, argv)), env={**c.env, **how.pop("env", {})}, cwd=c.work, **how)


def answer(p, text="\n"):
    p.stdin.write(text.encode())
    p.stdin.close()
    p.stdin = None


def rows(c, job):
    got = c.run(["sacct", "-n", "-P", "-o", "JobID,State,ExitCode", "-j", str(job)])
    return {line.split("|")[0].partition(".")[2]: tuple(line.split("|")[1:]) for line in got.stdout.splitlines()}


def job_of(c, name):
    return int(wait_for(lambda: c.run(["squeue", "-h", "-n", name, "-o", "%A"]).stdout.strip(), 10, name))


def pid_of(p):
    """What a step of ours writes as its first line: the pid of its task."""
    return int(p.stdout.readline())


UP = ("sh", "-c", "echo $$; exec sleep 300")


# ---- clients that are killed ----

def test_a_killed_srun_of_its_own(c):
    p = start(c, "srun", "-J", "alone", *UP)
    pid, job = pid_of(p), job_of(c, "alone")
    p.kill()
    p.wait()
    c.wait_over(job, timeout=BOUND)
    wait_for(lambda: not alive(pid), 10, "its task to be gone")
    assert c.sacct(job)["State"].startswith("CANCELLED")


def test_a_killed_srun_in_a_job_ends_its_step_alone(c):
    job = c.batch("srun -n1 sh -c 'echo $$ >pid; exec sleep 300' & echo $! >srun\nwait $!\necho rc $?\nsrun -n1 echo next", "-n1", "-o", "killed-%j.out")
    pid = int(wait_for(lambda: (c.work / "pid").exists() and (c.work / "pid").read_text().strip(), 20, "the step"))
    os.kill(int((c.work / "srun").read_text()), signal.SIGKILL)
    c.wait_state(job, "COMPLETED", timeout=BOUND + 10)
    out = (c.work / f"killed-{job}.out").read_text().splitlines()
    assert "rc 137" in out and out[-1] == "next", out
    assert not alive(pid)
    got = rows(c, job)
    assert got[""] == got["batch"] == got["1"] == ("COMPLETED", "0:0") and got["0"][0].startswith("CANCELLED"), got


def test_a_killed_salloc_ends_its_job_and_its_steps(c):
    p = start(c, "salloc", "-Q", "-n2", "-J", "killed", "sh", "-c", "srun -n1 sh -c 'echo $$; exec sleep 300'; echo srun $?")
    pid, job = pid_of(p), job_of(c, "killed")
    p.kill()
    p.wait()
    c.wait_over(job, timeout=BOUND)
    wait_for(lambda: not alive(pid), 10, "its step's task to be gone")
    # the command was salloc's child and lives on: its srun is told
    out = p.stdout.read().decode()
    assert re.fullmatch(r"srun \d+\n", out) and out != "srun 0\n", out
    got = rows(c, job)
    assert got[""][0].startswith("CANCELLED") and got["0"][0].startswith("CANCELLED"), got


@pytest.mark.parametrize("argv", [["srun", *UP], ["srun", "--pty", *UP], ["salloc", "-Q", "srun", *UP]], ids=["srun", "srun --pty", "salloc"])
def test_a_terminal_that_is_closed(c, argv):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(c.work)
        os.execvpe(argv[0], [argv[0], "-J", "terminal", *argv[1:]], c.env)
    shown = b""
    while not re.search(rb"\d+\r\n", shown):
        shown += os.read(fd, 4096)
    task, job = int(re.search(rb"(\d+)\r\n", shown)[1]), job_of(c, "terminal")
    os.close(fd)
    began = time.monotonic()
    wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0], 20, f"{argv} to end")
    c.wait_over(job)
    assert time.monotonic() - began < ATTEND * spurtest.PATIENCE, "it was not ended by its client"
    wait_for(lambda: not alive(task), 10, "the task to be gone")


def test_an_srun_that_was_stopped_for_long_says_what_became_of_its_job(c):
    p = start(c, "srun", "-J", "stopped", *UP)
    pid, job = pid_of(p), job_of(c, "stopped")
    os.kill(p.pid, signal.SIGSTOP)
    c.wait_over(job, timeout=BOUND)
    wait_for(lambda: not alive(pid), 10, "its task to be gone")
    os.kill(p.pid, signal.SIGCONT)
    out, err = p.communicate(timeout=30 * spurtest.PATIENCE)
    assert p.returncode != 0
    assert "srun: got SIGCONT" in err.decode() and "CANCELLED" in err.decode(), err
    assert f"srun: error: StepId={job}.0 was ended while srun was stopped: " in err.decode(), err


def test_an_srun_that_was_stopped_for_a_moment_goes_on(c):
    p = start(c, "srun", "sh", "-c", "echo up; read x; echo down; exit 3")
    p.stdout.readline()
    os.kill(p.pid, signal.SIGSTOP)
    answer(p)
    os.kill(p.pid, signal.SIGCONT)
    assert (p.stdout.read(), p.wait(20)) == (b"down\n", 3)


@pytest.mark.parametrize("kind", ["srun", "salloc"])
def test_the_daemon_that_holds_the_job_is_killed(c, kind):
    """As with a batch job: what it held was killed, and nobody's exit code stands for that."""
    p = start(c, *(["srun", "-J", "held"] if kind == "srun" else ["salloc", "-Q", "-J", "held", "--kill-command", "srun"]), *UP)
    pid, job = pid_of(p), job_of(c, "held")
    holders = [pid for pid, cmdline in c.ours() if cmdline.startswith(b"spurstepd") and cmdline.rstrip(b"\0").endswith(f"/{job}.1".encode())]
    assert len(holders) == 1
    os.kill(holders[0], signal.SIGKILL)
    c.wait_over(job)
    assert p.wait(30 * spurtest.PATIENCE) != 0 or kind == "salloc"
    wait_for(lambda: not alive(pid), 10, "the task to be gone")
    assert rows(c, job)[""] == ("FAILED", "0:9")
    assert c.job(job)["Reason"] == "RaisedSignal:9(Killed)", c.job(job)
    p.communicate()


# ---- a controller that is away ----

def test_a_step_ends_while_the_controller_is_away(c):
    p = start(c, "srun", "-J", "ends", "sh", "-c", "echo $$; read x; echo down; exit 3")
    pid = pid_of(p)
    job = job_of(c, "ends")
    c.ctld.kill()
    answer(p)
    assert p.stdout.readline() == b"down\n"
    wait_for(lambda: not alive(pid), 10, "the step to be over")
    assert p.poll() is None, "it has its job to end yet"
    c.ctld.start()
    assert p.wait(30 * spurtest.PATIENCE) == 3
    c.wait_over(job)
    wait_for(lambda: rows(c, job) == {"": ("FAILED", "3:0"), "0": ("FAILED", "3:0")}, 20, f"rows {rows(c, job)}")


@pytest.mark.parametrize("kind", ["in its job", "--jobid"])
def test_an_srun_waits_for_a_controller_that_is_started_anew(c, kind):
    p = start(c, "salloc", "-Q", "-n1", "sh", "-c", "echo $SLURM_JOB_ID; read x; srun echo step; exit $?")
    job = int(p.stdout.readline())
    c.ctld.kill()
    if kind == "--jobid":
        other = start(c, "srun", f"--jobid={job}", "echo", "step", stdin=subprocess.DEVNULL)
    else:
        answer(p)
        other = p
    # it is there and looks for the controller
    wait_for(lambda: any(cmdline.startswith(b"srun\0") for _, cmdline in c.ours()), 10, "srun to be there")
    c.ctld.start()
    assert other.stdout.read() == b"step\n", other.stderr.read()
    assert other.wait(30 * spurtest.PATIENCE) == 0
    if other is not p:
        answer(p)
        assert p.wait(30 * spurtest.PATIENCE) == 0
    c.wait_over(job)


def test_but_not_for_ever(c):
    """As long as Slurm's, whose MessageTimeout is 10 s; what else is asked tells at once."""
    c.ctld.kill()
    try:
        began = time.monotonic()
        assert c.run("squeue", check=False).returncode == 1
        assert time.monotonic() - began < 5 * spurtest.PATIENCE
        began = time.monotonic()
        got = c.run("srun true", check=False)
        took = time.monotonic() - began
        assert got.returncode == 1
        assert got.stderr == "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)\n"
        assert 9 < took < 15 * spurtest.PATIENCE, took
        p = start(c, "srun", "true")
        wait_for(lambda: signal_is_blocked(p.pid, signal.SIGINT), 10, "srun to have begun")
        p.send_signal(signal.SIGINT)
        assert p.wait(5 * spurtest.PATIENCE) == 1, "an interrupt ends its patience"
        p.communicate()
    finally:
        c.ctld.start()


def signal_is_blocked(pid, signo):
    mask = re.search(r"SigBlk:\s*(\w+)", open(f"/proc/{pid}/status").read())
    return int(mask[1], 16) >> (signo - 1) & 1


# ---- an agent that comes back elsewhere ----

def test_a_step_finds_its_node_at_another_port(c):
    """Its ticket names the port that the agent had."""
    p = start(c, "salloc", "-Q", "-n1", "sh", "-c", "echo $SLURM_JOB_ID; read x; srun -n1 sh -c 'echo found; exit 5'")
    job = int(p.stdout.readline())
    before = c.node.ready["listen"]
    c.node.kill()
    answer(p)
    wait_for(lambda: c.run(["squeue", "-h", "-s", "-j", str(job)]).stdout, 10, "the step to be granted")
    c.node.start()
    assert c.node.ready["listen"] != before
    assert p.stdout.read() == b"found\n", p.stderr.read()
    assert p.wait(30 * spurtest.PATIENCE) == 5
    c.wait_over(job)
    assert rows(c, job) == {"": ("FAILED", "5:0"), "0": ("FAILED", "5:0")}
