# SPDX-License-Identifier: Apache-2.0
"""salloc: its lines and exit codes, what its command sees, and that its job ends with it however it ends."""
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

import spurtest
from spurtest import wait_for

SHARED = {"cpus": 8}


def salloc(c, *args, **how):
    return c.run(["salloc", *map(str, args)], check=False, **how)


def start(c, *args, **how):
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.Popen(["salloc", *map(str, args)], env=c.env, cwd=c.work, **how)


def ids_gone(text):
    return re.sub(r"(allocation|job|Job) \d+", r"\1 J", text)


GRANTED = "salloc: Granted job allocation J\nsalloc: Nodes {} are ready for job\n"
GONE = "salloc: Relinquishing job allocation J\n"


def free(c):
    wait_for(lambda: not c.run("squeue -h").stdout, 30, "all jobs to end")


def test_lines_and_exit_codes(shared):
    """slurm-golden-cluster.md, "salloc"."""
    for command, code, err in [
        (["-N2", "-n4", "true"], 0, GRANTED.format("n[1-2]") + GONE),
        (["-n1", "nosuchcommand"], 1,
         GRANTED.format("n1") + 'salloc: error: _fork_command: Unable to find command "nosuchcommand"\n' + GONE),
        (["-n1", "bash", "-c", "kill -9 $$"], 0, GRANTED.format("n1") + GONE),
        (["-n1", "bash", "-c", "kill -TERM $$"], 1, GRANTED.format("n1") + GONE),
        (["-n1", "bash", "-c", "exit 7"], 7, GRANTED.format("n1") + GONE),
        (["-Q", "-n1", "true"], 0, ""),
    ]:
        got = salloc(shared, *command)
        assert (got.returncode, ids_gone(got.stderr)) == (code, err), command
    got = salloc(shared, "-p", "nopart", "true")
    assert got.returncode == 1 and "Invalid partition name specified" in got.stderr
    got = salloc(shared, "--get-user-env", "-n1", "true")
    assert (got.returncode, got.stderr) == (255, "salloc: unrecognized option '--get-user-env'\nTry \"salloc --help\" for more information\n")
    free(shared)


def test_shell_on_stdin(shared):
    got = salloc(shared, "-n1", input="echo $SLURM_JOB_ID; exit 4\n", env={"SHELL": "/bin/bash"})
    assert got.returncode == 4 and got.stdout.strip() == re.search(r"Granted job allocation (\d+)", got.stderr).group(1)


def test_environment_of_the_command(shared):
    got = salloc(shared, "-Q", "-N2", "--ntasks-per-node=2", "-t", "5", "env")
    env = dict(line.split("=", 1) for line in got.stdout.splitlines() if line.startswith(("SLURM_", "SPUR_")))
    want = {"SLURM_CLUSTER_NAME": "test", "SLURM_JOB_CPUS_PER_NODE": "2(x2)", "SLURM_JOB_NAME": "interactive",
            "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_PARTITION": "debug", "SLURM_NNODES": "2",
            "SLURM_NODELIST": "n[1-2]", "SLURM_NPROCS": "4", "SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "2",
            "SLURM_SUBMIT_DIR": str(shared.work), "SLURM_TASKS_PER_NODE": "2(x2)"}
    assert {k: env.get(k) for k in want} == want
    assert env["SLURM_JOB_ID"] == env["SLURM_JOBID"] == env["SPUR_JOB_ID"]
    got = salloc(shared, "-Q", "-n1", "-c2", "--mem=100", "env")
    env = dict(line.split("=", 1) for line in got.stdout.splitlines() if line.startswith("SLURM_"))
    assert (env["SLURM_CPUS_PER_TASK"], env["SLURM_MEM_PER_NODE"], env["SLURM_TRES_PER_TASK"]) == ("2", "100", "cpu=2")
    assert "SLURM_STEP_ID" not in env and "SLURM_PROCID" not in env


def test_steps_inside(shared):
    got = salloc(shared, "-Q", "-N2", "--ntasks-per-node=2", "bash", "-c", "srun -N2 -n2 bash -c 'echo $SLURMD_NODENAME'; srun -N3 true; srun -n9 true")
    assert sorted(got.stdout.split()) == ["n1", "n2"]
    assert "srun: error: Only allocated 2 nodes asked for 3\n" in got.stderr
    assert re.search(r"srun: error: Unable to create step for job \d+: More processors requested than permitted\n", got.stderr)


def test_no_shell(shared):
    got = salloc(shared, "--no-shell", "-N2", "-J", "nosh")
    assert (got.returncode, ids_gone(got.stderr)) == (0, GRANTED.format("n[1-2]"))
    job = int(re.search(r"allocation (\d+)", got.stderr).group(1))
    got = shared.run(["srun", f"--jobid={job}", "-l", "bash", "-c", "echo $SLURMD_NODENAME"])
    assert sorted(got.stdout.splitlines()) == ["0: n1", "1: n2"]
    shared.run(f"scancel {job}")
    free(shared)
    got = shared.run(["srun", f"--jobid={job}", "true"], check=False)
    assert got.returncode == 1 and f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {job}\n" in got.stderr


def test_waits_for_room(shared):
    full = shared.batch("sleep 300", "-N2", "--exclusive")
    shared.wait_state(full, "RUNNING")
    got = salloc(shared, "-I", "-n1", "true")
    assert (got.returncode, got.stderr) == (1, "salloc: error: Unable to allocate resources: Requested nodes are busy\n")
    p = start(shared, "-n1", "-w", "n1", "true")
    begun = [p.stderr.readline().decode() for _ in range(2)]
    assert ids_gone("".join(begun)) == "salloc: Pending job allocation J\nsalloc: job J queued and waiting for resources\n"
    shared.run(f"scancel {full}")
    _, err = p.communicate(timeout=30 * spurtest.PATIENCE)
    assert ids_gone(err.decode()).endswith("salloc: job J has been allocated resources\n" + GRANTED.format("n1") + GONE)
    assert p.returncode == 0


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_waits(shared, signo):
    full = shared.batch("sleep 300", "-N2", "--exclusive")
    shared.wait_state(full, "RUNNING")
    p = start(shared, "-n1", "-J", "waits", "true")
    p.stderr.readline()
    p.stderr.readline()
    p.send_signal(signo)
    _, err = p.communicate(timeout=30 * spurtest.PATIENCE)
    assert p.returncode == 1
    assert ids_gone(err.decode()).endswith("salloc: Job aborted due to signal\nsalloc: Job allocation J has been revoked.\n")
    assert not shared.run("squeue -h -n waits").stdout
    shared.run(f"scancel {full}")
    free(shared)


@pytest.mark.sanitize
def test_cancelled_while_it_waits(shared):
    full = shared.batch("sleep 300", "-N2", "--exclusive")
    shared.wait_state(full, "RUNNING")
    p = start(shared, "-n1", "-J", "waits", "true")
    p.stderr.readline()
    p.stderr.readline()
    shared.run("scancel -n waits")
    _, err = p.communicate(timeout=30 * spurtest.PATIENCE)
    assert p.returncode == 1
    assert ids_gone(err.decode()) == ("salloc: Job allocation J has been revoked.\nsalloc: Job has been cancelled\n"
                                      "salloc: error: Job submit/allocate failed: Job/step already completing or completed\n")
    shared.run(f"scancel {full}")
    free(shared)


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_while_its_command_runs(shared, signo):
    p = start(shared, "-n1", "-J", "signalled", "bash", "-c", "echo up; exec sleep 60")
    p.stdout.readline()
    p.send_signal(signo)
    _, err = p.communicate(timeout=30 * spurtest.PATIENCE)
    word = GONE if signo == signal.SIGHUP else "salloc: Job allocation J has been revoked.\n"
    assert (p.returncode, ids_gone(err.decode())) == (0, GRANTED.format("n1") + word)
    wait_for(lambda: not shared.run("squeue -h -n signalled").stdout, 30, "its job to end")


def test_scancel(shared):
    p = start(shared, "-n1", "-J", "out", "--kill-command=INT", "bash", "-c", "echo up; exec sleep 60")
    p.stdout.readline()
    shared.run("scancel -n out")
    _, err = p.communicate(timeout=30 * spurtest.PATIENCE)
    assert (p.returncode, ids_gone(err.decode())) == (0, GRANTED.format("n1") + "salloc: Job allocation J has been revoked.\n")
    p = start(shared, "-n1", "-J", "out", "bash", "-c", "echo up; read; echo end", stdin=subprocess.PIPE)
    p.stdout.readline()
    shared.run("scancel -n out")
    assert ids_gone("".join(p.stderr.readline().decode() for _ in range(3))).endswith("salloc: Job allocation J has been revoked.\n")
    p.stdin.write(b"\n")
    p.stdin.close()
    assert (p.stdout.read(), p.wait(20)) == (b"end\n", 0)  # without --kill-command it is left alone


def test_a_killed_salloc_ends_its_job(new_cluster):
    c = new_cluster(nodes=1, scheduler="attend_secs = 5\n")
    p = start(c, "-n1", "bash", "-c", "echo up; exec sleep 100")
    p.stdout.readline()
    p.kill()
    p.wait()
    began = time.monotonic()
    wait_for(lambda: not c.run("squeue -h").stdout, 30, "the job of a killed salloc to end")
    assert time.monotonic() - began > 1, "it was ended before anybody could have come back"


def test_it_lives_through_a_restart_of_the_controller(new_cluster):
    c = new_cluster(nodes=1)
    p = start(c, "-n1", "bash", "-c", "echo up; read; srun echo step", stdin=subprocess.PIPE)
    p.stdout.readline()
    c.ctld.restart()
    p.stdin.write(b"\n")
    p.stdin.close()
    assert p.stdout.read() == b"step\n", p.stderr.read()
    assert p.wait(60 * spurtest.PATIENCE) == 0


def test_terminal_belongs_to_the_command(shared):
    """^C ends the command and not salloc; an interactive shell has job control."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(shared.work)
        os.execvpe("salloc", ["salloc", "-n1", "bash", "-c", "echo up; sleep 60; echo no"], shared.env)
    shown = b""
    end = time.monotonic() + 30 * spurtest.PATIENCE
    typed = False
    while time.monotonic() < end:
        if b"up\r\n" in shown and not typed:
            os.write(fd, b"\x03")
            typed = True
        if not select.select([fd], [], [], 0.2)[0]:
            continue
        try:
            got = os.read(fd, 4096)
        except OSError:
            break
        if not got:
            break
        shown += got
    os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, 130) and b"Relinquishing job allocation" in shown and b"no\r\n" not in shown, shown
