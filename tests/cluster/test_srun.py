# SPDX-License-Identifier: Apache-2.0
"""srun: its messages and exit codes, streams under a slow reader, a killed agent and a killed controller, signals."""
import hashlib
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

import spurtest
from spurtest import wait_for

SHARED = {"cpus": 8}


def srun(c, *args, **how):
    return c.run(["srun", *map(str, args)], check=False, **how)


def start(c, *args, **how):
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.Popen(["srun", *map(str, args)], env={**c.env, **how.pop("env", {})}, cwd=c.work, **how)


def lines(text):
    return sorted(text.splitlines())


def ids_gone(text):
    return re.sub(r"StepId=\d+", "StepId=J", re.sub(r"job \d+", "job J", text))


def test_exit_codes_and_their_lines(shared):
    """slurm-golden-cluster.md, "exit codes and failures"."""
    for command, code, err in [
        (["-n1", "true"], 0, []),
        (["bash", "-c", "exit 5"], 5, ["srun: error: n1: task 0: Exited with exit code 5"]),
        (["-n1", "bash", "-c", "exit 300"], 44, ["srun: error: n1: task 0: Exited with exit code 44"]),
        (["-n4", "bash", "-c", "exit 7"], 7, ["srun: error: n1: tasks 0-3: Exited with exit code 7"]),
        (["-n1", "bash", "-c", "kill -USR1 $$"], 138, ["srun: error: n1: task 0: User defined signal 1"]),
        (["-n1", "bash", "-c", "kill -9 $$"], 137, ["srun: Force Terminated StepId=J.0", "srun: error: n1: task 0: Killed"]),
        (["-n2", "bash", "-c", "kill -TERM $$"], 143,
         ["srun: Force Terminated StepId=J.0", "srun: error: n1: tasks 0-1: Terminated"]),
        (["-n2", "bash", "-c", "[ $SLURM_PROCID = 0 ] && exit 3; kill -9 $$"], 137,
         ["srun: Force Terminated StepId=J.0", "srun: error: n1: task 0: Exited with exit code 3", "srun: error: n1: task 1: Killed"]),
        (["-N2", "-n2", "bash", "-c", "exit $((SLURM_PROCID + 1))"], 2,
         ["srun: error: n1: task 0: Exited with exit code 1", "srun: error: n2: task 1: Exited with exit code 2"]),
        (["-Q", "-n2", "bash", "-c", "exit 6"], 6, ["srun: error: n1: tasks 0-1: Exited with exit code 6"]),
    ]:
        wait_for(lambda: not shared.run("squeue -h").stdout, what="n1 to be free again")
        got = srun(shared, *command)
        assert (got.returncode, lines(ids_gone(got.stderr))) == (code, err), command


def test_a_program_that_is_not_there(shared):
    got = srun(shared, "-n2", "nosuchcommand")
    assert got.returncode == 2
    assert "srun: error: n1: tasks 0-1: Exited with exit code 2" in got.stderr
    assert got.stderr.count("execve(): nosuchcommand: No such file or directory") == 2


def test_labels(shared):
    assert lines(srun(shared, "-n3", "-l", "echo", "hi").stdout) == ["0: hi", "1: hi", "2: hi"]
    assert lines(srun(shared, "-N2", "-n12", "-l", "echo", "x").stdout)[:3] == [" 0: x", " 1: x", " 2: x"]
    got = srun(shared, "-n2", "--label", "bash", "-c", "echo out; echo err >&2")
    assert (lines(got.stdout), lines(got.stderr)) == (["0: out", "1: out"], ["0: err", "1: err"])
    assert srun(shared, "-n1", "-l", "printf", "abc").stdout == "0: abc\n"
    assert srun(shared, "-n1", "printf", "abc").stdout == "abc"
    got = srun(shared, "-n2", "-u", "-l", "bash", "-c", "printf a; sleep 0.3; printf b; echo")
    assert lines(got.stdout) == ["0: a", "0: b", "1: a", "1: b"]


def test_two_nodes(shared):
    got = srun(shared, "--nodes", "2", "-n", "4", "-l", "bash", "-c", "echo $SLURMD_NODENAME $SLURM_PROCID")
    assert [line.split()[0] + line.split()[2] for line in lines(got.stdout)] == ["0:0", "1:1", "2:2", "3:3"]
    assert {line.split()[1] for line in got.stdout.splitlines()} == {"n1", "n2"}
    got = srun(shared, "-w", "n[1-2]", "-l", "bash", "-c", "echo $SLURMD_NODENAME")
    assert lines(got.stdout) == ["0: n1", "1: n2"], got.stderr


def test_input(shared):
    (shared.work / "in.txt").write_text("x\n")
    assert lines(srun(shared, "-n2", "-l", "cat", input="1\n2\n").stdout) == ["0: 1", "0: 2", "1: 1", "1: 2"]
    assert srun(shared, "-n2", "-l", "-i", "1", "cat", input="1\n2\n").stdout == "1: 1\n1: 2\n"
    assert srun(shared, "-n2", "-l", "-i", "none", "cat", input="1\n").stdout == ""
    assert lines(srun(shared, "-n2", "-l", "-i", "in.txt", "cat").stdout) == ["0: x", "1: x"]
    got = srun(shared, "-n2", "-i", "nofile.txt", "cat")
    assert (got.returncode, got.stderr) == (1, "srun: error: Could not open stdin file: No such file or directory\n")


def test_output_files(shared):
    w = shared.work
    got = srun(shared, "-n2", "-o", "out-%t-%n-%N-%s.txt", "echo", "x")
    assert got.returncode == 0, got.stderr
    assert sorted(p.name for p in w.glob("out-*")) == ["out-0-0-n1-0.txt", "out-1-0-n1-0.txt"]
    assert (w / "out-1-0-n1-0.txt").read_text() == "x\n"
    srun(shared, "-n2", "-l", "-o", "one-%j.txt", "bash", "-c", "echo o; echo e >&2")
    assert lines(next(w.glob("one-*")).read_text()) == ["0: e", "0: o", "1: e", "1: o"]
    assert srun(shared, "-n2", "-o", "none", "hostname").stdout == ""
    assert srun(shared, "-n3", "-l", "-o", "1", "echo", "x").stdout == "1: x\n"
    srun(shared, "-o", "all.txt", "-n1", "true")
    assert not (w / "all.txt").exists()
    got = srun(shared, "-n1", "-o", "/nodir/x", "hostname")
    assert (got.returncode, got.stderr) == (1, "srun: error: Could not open stdout file: No such file or directory\n")
    for expected in ("1\n", "1\n2\n"):
        srun(shared, "-o", "app.txt", "--open-mode=append", "-n1", "echo", expected[-2])
        assert (w / "app.txt").read_text() == expected


def test_multi_prog(shared):
    (shared.work / "multi.conf").write_text("0 echo zero of %t\n1-2 echo task %t offset %o\n3 sh exit.sh\n")
    (shared.work / "exit.sh").write_text("exit 4\n")
    (shared.work / "bad.conf").write_text("0 echo\n")
    got = srun(shared, "-n4", "-l", "--multi-prog", "multi.conf")
    assert (got.returncode, lines(got.stdout)) == (4, ["0: zero of 0", "1: task 1 offset 0", "2: task 2 offset 1"])
    got = srun(shared, "-n4", "--multi-prog", "bad.conf")
    assert (got.returncode, got.stderr) == (1, "srun: error: Configuration file bad.conf invalid, no record for task id 1\n")
    got = srun(shared, "-n4", "--multi-prog", "nofile.conf")
    assert (got.returncode, got.stderr) == (1, "srun: error: Could not open multi_prog config file nofile.conf\n")


def test_environment_of_tasks(shared):
    got = srun(shared, "-n2", "-c", "2", "bash", "-c", "echo $SLURM_CPUS_PER_TASK $SLURM_NTASKS $SLURM_STEP_ID $SLURM_UMASK $MINE",
               env={"MINE": "m"}, umask=0o027)
    assert got.stdout == "2 2 0 0027 m\n" * 2, got.stderr
    got = srun(shared, "--export=A=1,MINE", "/usr/bin/env", env={"MINE": "m", "OTHER": "o"})
    assert "A=1" in got.stdout.splitlines() and "MINE=m" in got.stdout.splitlines() and "OTHER=o" not in got.stdout
    assert srun(shared, "-n2", "pwd", "-P").stdout == f"{os.path.realpath(shared.work)}\n" * 2
    assert srun(shared, "-D", "/usr", "pwd").stdout == "/usr\n"


def test_input_variables(shared):
    assert len(srun(shared, "-l", "true", env={"SLURM_NTASKS": "3"}).stderr) == 0
    assert lines(srun(shared, "echo", "x", env={"SLURM_NTASKS": "3", "SLURM_LABELIO": "1"}).stdout) == ["0: x", "1: x", "2: x"]
    assert srun(shared, "-p", "nopart", "true", env={"SLURM_EXIT_ERROR": "77"}).returncode == 77
    got = srun(shared, "true", env={"SLURM_CPUS_PER_TASK": "2", "SRUN_CPUS_PER_TASK": "3"})
    assert got.returncode == 1 and "differ" in got.stderr


def test_refusals(shared):
    for command, code, err in [
        (["-p", "nopart", "true"], 1, "srun: error: invalid partition specified: nopart\n"
                                      "srun: error: Unable to allocate resources: Invalid partition name specified\n"),
        (["-w", "n99", "true"], 1, "srun: error: Unable to allocate resources: Invalid node name specified\n"),
        (["-n", "x", "true"], 1, 'srun: error: Invalid numeric value "x" for --ntasks.\n'),
        (["-t", "x", "true"], 255, "srun: error: Invalid --time specification\n"),
        (["--bogus", "true"], 255, "srun: unrecognized option '--bogus'\nTry \"srun --help\" for more information\n"),
        ([], 1, "srun: fatal: No command given to execute.\n"),
        (["--jobid=99999", "true"], 1, "srun: error: Unable to confirm allocation for job 99999: Invalid job id specified\n"
                                      "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 99999\n"),
    ]:
        got = srun(shared, *command)
        assert (got.returncode, got.stderr) == (code, err), command
    got = srun(shared, "-n1", "true", ":", "-n2", "true")
    assert got.returncode == 1 and "heterogeneous" in got.stderr
    for option in ("--cpu-bind=cores", "--cpu-bind=map_ldom:0", "--gpu-bind=closest", "--relative=1", "--bcast", "--task-prolog=/x", "-Z"):
        got = srun(shared, option, "true")
        assert got.returncode == 1 and "is not supported yet" in got.stderr, option


CPUS = sorted(os.sched_getaffinity(0))
SHOW = "import os; print(os.environ['SLURM_LOCALID'], sorted(os.sched_getaffinity(0)))"


@pytest.mark.parametrize("bind, want", [
    (f"map_cpu:{CPUS[-1]},{CPUS[0]}", [[CPUS[-1]], [CPUS[0]], [CPUS[-1]]]), (f"mask_cpu:{1 << CPUS[0]:#x},{1 << CPUS[-1]:x}*2", [[CPUS[0]], [CPUS[-1]], [CPUS[-1]]]),
    ("rank", [[CPUS[i % len(CPUS)]] for i in range(3)]), ("none", [CPUS] * 3), ("q", [CPUS] * 3)])
def test_cpu_bind(shared, bind, want):
    """A task runs on the CPUs that are its own, and the kernel says so."""
    got = srun(shared, "-n3", f"--cpu-bind={bind}", sys.executable, "-c", SHOW)
    assert (got.returncode, got.stderr) == (0, "") and sorted(got.stdout.splitlines()) == [f"{i} {cpus}" for i, cpus in enumerate(want)]


def test_cpu_bind_is_told(shared):
    got = srun(shared, "-n2", f"--cpu-bind=verbose,map_cpu:{CPUS[0]}", "bash", "-c", "echo $SLURM_CPU_BIND $SLURM_CPU_BIND_TYPE $SLURM_CPU_BIND_LIST $SLURM_CPU_BIND_VERBOSE")
    assert got.stdout == f"verbose,map_cpu:{CPUS[0]} map_cpu: {CPUS[0]} verbose\n" * 2
    assert len(re.findall(rf"^cpu-bind=MASK - n1, task  [01]  [01] \[\d+\]: mask 0x{1 << CPUS[0]:X} set$", got.stderr, re.M)) == 2, got.stderr
    got = srun(shared, "--cpu-bind=map_cpu:4095", "echo", "here")
    assert (got.returncode, got.stdout) == (0, "here\n") and "can't bind task 0" in got.stderr
    got = srun(shared, "--cpu-bind=bogus", "true")
    assert (got.returncode, got.stderr) == (1, 'srun: error: unrecognized --cpu-bind argument "bogus"\nsrun: fatal: Failed to parse --cpu-bind= values.\n')
    assert srun(shared, "--cpu-bind=help", "true").stdout.startswith("CPU bind options:\n")
    got = srun(shared, "--gpu-bind=x", "true")
    assert (got.returncode, got.stderr) == (255, "srun: error: Invalid --gpu-bind argument: x\n")


@pytest.mark.sanitize
def test_what_is_in_the_way_is_told(shared):
    p = start(shared, "-N3", "true")
    text = "".join(p.stderr.readline().decode() for _ in range(2))
    assert ids_gone(text) == "srun: Requested partition configuration not available now\nsrun: job J queued and waiting for resources\n"
    p.send_signal(signal.SIGINT)
    assert p.stderr.read().decode().endswith("has been revoked\n") and p.wait(20) == 1
    assert not shared.run("squeue -h").stdout


def test_test_only(shared):
    before = shared.run("squeue -h -t all").stdout.count("\n")
    got = srun(shared, "--test-only", "-N2", "-n4", "touch", "never")
    assert got.returncode == 0
    assert re.fullmatch(r"srun: Job \d+ to start at \S+ a using 4 processors on nodes n\[1-2\] in partition debug\n", got.stderr)
    assert not (shared.work / "never").exists() and shared.run("squeue -h -t all").stdout.count("\n") == before


def test_steps_of_a_batch_job(shared):
    job = shared.batch("""
srun -l echo a | sort
srun -n1 --overlap bash -c 'echo step $SLURM_STEP_ID of $SLURM_JOB_ID'
srun -n5 true; echo rc $?
srun bash -c 'exit 66'; echo rc $?
""", "-n2", "-o", "steps-%j.out")
    shared.wait_state(job, "COMPLETED")
    text = (shared.work / f"steps-{job}.out").read_text()
    assert "0: a\n1: a\n" in text and f"step 1 of {job}\n" in text and "rc 66\n" in text
    assert f"srun: error: Unable to create step for job {job}: More processors requested than permitted\nrc 1\n" in text


def test_a_step_of_a_job_without_the_users_variables(shared):
    """field-cases: with sbatch --export=NONE an srun in the script has the script's PATH and variables."""
    job = shared.batch(f"export SET=here SPUR_CONTROLLER_ADDR=unix:{shared.socket}; {spurtest.BIN}/srun env", "--export=NONE", "-o", "none-%j.out", env={"MINE": "m"})
    shared.wait_state(job, "COMPLETED")
    text = (shared.work / f"none-{job}.out").read_text()
    assert "\nPATH=" in "\n" + text and f"SLURM_JOB_ID={job}\n" in text and "SET=here\n" in text and "MINE=" not in text


@pytest.mark.sanitize
def test_steps_wait_for_each_other(shared):
    job = shared.batch("""
srun --exact -n1 sleep 1 & srun --exact -n1 sleep 1 & srun --exact -n1 -Q sleep 0 ; echo third $?
wait
srun -n2 sleep 2 &
while ! squeue -h -s -j $SLURM_JOB_ID | grep -q sleep; do sleep 0.1; done
srun -n1 --immediate=1 true; echo immediate $?
srun -n2 --overlap true; echo overlap $?
wait
""", "-n2", "-o", "wait-%j.out")
    shared.wait_state(job, "COMPLETED", timeout=30)
    text = (shared.work / f"wait-{job}.out").read_text()
    assert "third 0\n" in text and "immediate 1\n" in text and "overlap 0\n" in text
    assert f"Unable to create step for job {job}: Requested nodes are busy\n" in text


def test_features_of_a_step(new_cluster):
    c = new_cluster(nodes=0)
    c.add_node("n1", extra=["--features", "ib,zen"])
    c.add_node("n2", extra=["--features", "zen"])
    c.wait_idle()
    got = c.run(["salloc", "-Q", "-N2", "bash", "-c", """
srun -N1 -n1 -C 'ib&zen' bash -c 'echo $SLURMD_NODENAME'; srun -n2 -N2 -l -C zen bash -c 'echo $SLURMD_NODENAME' | sort
srun -C none true; echo $?; srun -N2 -C ib true; echo $?; srun -N1 -n1 -C 'ib*1' true; echo $?"""], check=False)
    assert got.stdout == "n1\n0: n1\n1: n2\n1\n1\n1\n", got.stderr
    assert ids_gone(got.stderr).splitlines()[0] == "srun: error: Unable to create step for job J: Invalid feature specification"
    assert "brackets and counts in --constraint of a step are not supported yet" in got.stderr


def test_each_task_has_its_own_gpus(new_cluster):
    c = new_cluster(nodes=0)
    for i in range(4):
        (c.root / f"nv{i}").touch()
    c.add_node("n1", extra=["--gres", "gpu:4", "--gres-files", f"{c.root}/nv[0-3]"])
    c.wait_idle()
    show = ["bash", "-c", "echo $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS $SPUR_STEP_GPUS $SLURM_GPUS_ON_NODE $SLURMD_TRES_BIND"]
    assert lines(srun(c, "-l", "-n2", "--gpus-per-task=2", *show).stdout) == ["0: 0,1 0,1 0,1 4 gres/gpu:per_task:2", "1: 2,3 2,3 2,3 4 gres/gpu:per_task:2"]
    assert lines(srun(c, "-l", "-n2", "--gres=gpu:3", *show).stdout) == ["0: 0,1,2 0,1,2 0,1,2 3", "1: 0,1,2 0,1,2 0,1,2 3"]
    got = c.run(["salloc", "-Q", "-n2", "--gres=gpu:4", "bash", "-c", f"srun -l -n2 --gpus-per-task=1 {show[0]} {show[1]} '{show[2]}' | sort"])
    assert got.stdout == "0: 0 0 0 2 gres/gpu:per_task:1\n1: 1 1 1 2 gres/gpu:per_task:1\n", got.stderr


def test_kill_on_bad_exit_and_wait(shared):
    begin = time.monotonic()
    got = srun(shared, "-K", "-N2", "-n4", "bash", "-c", "[ $SLURM_PROCID = 1 ] && exit 4; exec sleep 60")
    text = ids_gone(got.stderr)
    assert got.returncode == 143 and "srun: Terminating StepId=J.0\n" in text and "task 1: Exited with exit code 4\n" in text
    assert "srun: Force Terminated StepId=J.0" in text
    got = srun(shared, "-W", "1", "-n3", "bash", "-c", "[ $SLURM_PROCID = 1 ] && exit 0; exec sleep 60")
    text = ids_gone(got.stderr)
    assert got.returncode == 137 and "srun: First task exited 1s ago\n" in text
    assert "srun: StepId=J.0 tasks 0,2: running\nsrun: StepId=J.0 task 1: exited\nsrun: Terminating StepId=J.0\n" in text
    assert srun(shared, "-K0", "-n2", "bash", "-c", "[ $SLURM_PROCID = 1 ] && exit 4; sleep 0.5").returncode == 4
    assert time.monotonic() - begin < 40 * spurtest.PATIENCE


# ---- signals ----

def running(c, process):
    """Its first line is there: the tasks run."""
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return line


SLEEP = ("bash", "-c", "echo up; exec sleep 60")


def test_one_interrupt_tells_the_state_and_two_end_it(shared):
    p = start(shared, "-N2", "-n4", *SLEEP)
    for _ in range(4):
        running(shared, p)
    p.send_signal(signal.SIGINT)
    text = [p.stderr.readline().decode() for _ in range(2)]
    assert ids_gone("".join(text)) == ("srun: interrupt (one more within 1 sec to abort)\n"
                                       "srun: StepId=J.0 tasks 0-3: running\n")
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=30 * spurtest.PATIENCE)
    assert p.returncode in (130, 137)
    assert "sending Ctrl-C to StepId=" in err.decode() and "forcing job termination" in err.decode()


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_that_end_it(shared, signo):
    p = start(shared, *SLEEP)
    running(shared, p)
    p.send_signal(signo)
    _, err = p.communicate(timeout=30 * spurtest.PATIENCE)
    assert p.returncode == 137
    assert "srun: forcing job termination\nsrun: Job step aborted: Waiting up to " in err.decode()


def test_signals_that_are_passed_on(shared):
    p = start(shared, "bash", "-c", "trap 'echo got 1' USR1; echo up; while :; do sleep 0.05; done")
    running(shared, p)
    p.send_signal(signal.SIGUSR1)
    assert p.stdout.readline() == b"got 1\n"
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=30 * spurtest.PATIENCE)


def test_scancel_ends_it(shared):
    p = start(shared, "-J", "victim", *SLEEP)
    running(shared, p)
    shared.run("scancel -n victim")
    _, err = p.communicate(timeout=30 * spurtest.PATIENCE)
    assert p.returncode == 143, err
    assert "task 0: Terminated" in err.decode()


def test_a_killed_srun_ends_its_job(new_cluster):
    c = new_cluster(nodes=1, scheduler="attend_secs = 5\n")
    p = start(c, *SLEEP)
    running(c, p)
    p.kill()
    p.wait()
    wait_for(lambda: "sleep" not in c.run("squeue -h -o %T").stdout and not c.run("squeue -h").stdout.strip(), 40,
             "the job of a killed srun to end")


# ---- streams ----

def test_first_line_comes_at_once(shared):
    """Each line when it is written: the task waits for an answer before it goes on."""
    for _ in range(3):
        begin = time.monotonic()
        p = start(shared, "bash", "-c", "echo ready; read; echo $REPLY", stdin=subprocess.PIPE)
        assert p.stdout.readline() == b"ready\n"
        took = time.monotonic() - begin
        p.stdin.write(b"go\n")
        p.stdin.flush()
        assert p.stdout.readline() == b"go\n"
        p.stdin.close()
        assert p.wait(20) == 0
        if took < 0.5 * spurtest.PATIENCE:
            return
    raise AssertionError(f"the first line took {took:.2f} s")


def memory_mb(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0
    got = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(got.group(1)) / 1024 if got else 0


def pump(p, n, block):
    """Writes n bytes of repeated blocks to its stdin and reads all of stdout; (digest in, digest out, bytes out)."""
    to, back = hashlib.sha256(), hashlib.sha256()
    os.set_blocking(p.stdin.fileno(), False)
    left, pending, size = n, b"", 0
    while True:
        writers = [p.stdin] if p.stdin and not p.stdin.closed else []
        can_read, can_write, _ = select.select([p.stdout], writers, [], 60 * spurtest.PATIENCE)
        assert can_read or can_write, "nothing moves"
        if can_write:
            if not pending and left:
                pending = block[:min(len(block), left)]
                to.update(pending)
                left -= len(pending)
            if pending:
                pending = pending[os.write(p.stdin.fileno(), pending):]
            if not pending and not left:
                p.stdin.close()
        if can_read:
            got = os.read(p.stdout.fileno(), 1 << 20)
            if not got:
                return to.hexdigest(), back.hexdigest(), size
            back.update(got)
            size += len(got)


def test_a_gigabyte_through_and_back(shared):
    n = int(float(os.environ.get("SPUR_TEST_STREAM_MB", "1024")) * (1 << 20))
    p = start(shared, "-n1", "cat", stdin=subprocess.PIPE, bufsize=0)
    sent, received, size = pump(p, n, os.urandom((1 << 20) + 7))
    assert p.wait(20) == 0, p.stderr.read()
    assert (size, received) == (n, sent)


def test_a_stopped_reader_costs_no_memory(shared):
    """8 tasks write as fast as they can with -l; their reader stops for 5 s."""
    p = start(shared, "-N2", "-n8", "-l", "bash", "-c", "yes 0123456789012345678901234567890123456789 | head -c 20000000")
    assert p.stdout.readline()
    time.sleep(5)  # that the reader does nothing is the condition
    high = {pid: memory_mb(pid) for pid, _ in shared.ours()}
    daemons = {d.pid: memory_mb(d.pid) for d in [*shared.nodes.values()]}
    stepds = {pid: memory_mb(pid) for pid, cmdline in shared.ours() if b"spurstepd" in cmdline}
    assert memory_mb(p.pid) < 50 and all(m < 50 for m in {**daemons, **stepds}.values()), (high, daemons, stepds)
    size, count = 0, [0] * 8
    for line in p.stdout:
        match = re.fullmatch(rb"(\d): ([0-9]*)\n", line)
        assert match, line
        count[int(match.group(1))] += len(match.group(2)) + 1
    assert p.wait(20) == 0, p.stderr.read()
    # the first line was read before; the last one of each may have been without its end
    assert sum(count) >= 8 * 20000000 - 41 and memory_mb(p.pid) < 50


def test_a_killed_agent_loses_no_byte(new_cluster):
    c = new_cluster(nodes=2)
    p = start(c, "-N2", "-n2", "-l", "bash", "-c", "for i in {1..3000}; do echo line $i; [ $((i % 30)) = 0 ] && sleep 0.02; done; true")
    seen = [p.stdout.readline()]
    for node in c.nodes.values():
        node.kill()
        for _ in range(50):
            seen.append(p.stdout.readline())
        node.start()
    every = b"".join(seen).splitlines() + p.stdout.read().splitlines()
    err = p.stderr.read()
    p.wait(60 * spurtest.PATIENCE)
    for task in (b"0", b"1"):
        assert [line for line in every if line.startswith(task)] == [b"%s: line %d" % (task, i) for i in range(1, 3001)]
    assert p.returncode == 0, err


def test_a_killed_controller_stops_no_step(new_cluster):
    c = new_cluster(nodes=1)
    p = start(c, "bash", "-c", "echo up; read; echo down; exit 3", stdin=subprocess.PIPE)
    running(c, p)
    c.ctld.restart()
    p.stdin.write(b"\n")
    p.stdin.close()
    assert p.stdout.read() == b"down\n"
    assert p.wait(60 * spurtest.PATIENCE) == 3


def test_a_reader_that_goes_away_ends_the_step(shared):
    p = start(shared, "-J", "yes", "yes")
    assert p.stdout.readline() == b"y\n"
    p.stdout.close()
    assert p.wait(30 * spurtest.PATIENCE) == 128 + signal.SIGPIPE
    wait_for(lambda: not shared.run("squeue -h -n yes").stdout, what="the job to end")


# ---- terminals ----

def on_terminal(c, argv, typed=b"", until=b"", rows=24, columns=80):
    """(what was shown, wait status)"""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(c.work)
        os.execvpe(argv[0], argv, c.env)
    import fcntl
    import struct
    import termios
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    shown = b""
    end = time.monotonic() + 30 * spurtest.PATIENCE
    while time.monotonic() < end:
        if typed and until in shown:
            os.write(fd, typed)
            typed = b""
        ready, _, _ = select.select([fd], [], [], 0.2)
        if not ready:
            continue
        try:
            got = os.read(fd, 65536)
        except OSError:
            break
        if not got:
            break
        shown += got
    os.close(fd)
    return shown.replace(b"\r\n", b"\n"), os.waitpid(pid, 0)[1]


def test_a_terminal_of_its_own(shared):
    shown, status = on_terminal(shared, ["srun", "--pty", "bash", "-c", "tty; read x; stty size; exit 9"], b"\r", b"/dev/pts/")
    assert b"/dev/pts/" in shown and b"24 80" in shown, shown
    assert os.waitstatus_to_exitcode(status) == 9
    shown, status = on_terminal(shared, ["srun", "--pty", "bash", "-c", "trap 'echo got INT' INT; echo up; sleep 1; echo end"],
                                b"\x03", b"up")
    assert b"got INT" in shown and b"end" in shown, shown
    got = srun(shared, "--pty", "tty")
    assert got.returncode == 1 and "Not using a pseudo-terminal, disregarding --pty option" in got.stderr


# ---- speed ----

def test_many_steps_in_one_job(shared):
    """200 of them in 10 s is what is asked for; here 40, so that the figure stays true on a machine that does other work."""
    job = shared.batch("date +%s.%N; for i in {1..40}; do srun -n1 true || exit 1; done; date +%s.%N", "-n1", "-o", "loop-%j.out")
    shared.wait_state(job, "COMPLETED", timeout=60)
    begin, end = map(float, (shared.work / f"loop-{job}.out").read_text().split())
    assert (end - begin) / 40 < 0.05 * spurtest.PATIENCE * 2


def test_what_tasks_are_told_of_srun(shared):
    env = dict(line.split("=", 1) for line in shared.run("srun --export=TOLD=1 /usr/bin/env").stdout.splitlines())
    assert env["TOLD"] == "1" and "SLURM_EXPORT_ENV" not in env
    assert 0 < int(env["SLURM_SRUN_COMM_PORT"]) < 65536 and env["SLURM_SRUN_COMM_HOST"] == "127.0.0.1"
