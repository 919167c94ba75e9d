# SPDX-License-Identifier: Apache-2.0
"""Kinds of mistakes that a neighbour of this project made and mended (ids 11.N of tests/golden/cases): what had no test elsewhere."""
import os
import re
import signal
import subprocess

import pytest

from spurtest import NOBODY, wait_for

@pytest.fixture(autouse=True)
def leaves_nothing(request):
    yield
    if "shared" in request.fixturenames:  # also when it failed: the next one finds an empty cluster
        c = request.getfixturevalue("shared")
        c.run("scancel -u root")
        wait_for(lambda: not c.run("squeue -h").stdout, 20, "an empty cluster")


SHARED = {"cpus": 8, "conf": '\n[[partitions]]\nname = "debug"\ndefault = true\n\n[[nodes]]\nnames = "n1"\ngres = ["gpu:a100:2"]\n'}


def node(c, name):
    return c.run(["scontrol", "-d", "-o", "show", "node", name]).stdout


def hold(c, *options, env=None):
    job = c.submit("-H", *options, "--wrap", "true", env=env)
    got = c.job(job)
    c.run(["scancel", str(job)])
    return got


@pytest.mark.parametrize("options, want", [
    ([], {"NumTasks": "1", "NumCPUs": "1"}),
    (["-N2"], {"NumTasks": "2", "NumCPUs": "2", "NumNodes": "2-2"}),
    (["-N2", "--ntasks-per-node=3"], {"NumTasks": "6", "NumCPUs": "6"}),
    (["-n4", "-c2"], {"NumTasks": "4", "NumCPUs": "8", "CPUs/Task": "2"}),
    (["-N2", "-c3"], {"NumTasks": "2", "NumCPUs": "6"})])
def test_11_1_defaults_of_tasks_and_cpus(shared, options, want):
    got = hold(shared, *options)
    assert {k: got[k] for k in want} == want


def test_11_1_fewer_tasks_than_nodes(shared):
    """Each node of a job has a CPU."""
    got = shared.run(["sbatch", "-N2", "-n1", "--wrap", "true"], check=False)
    assert got.returncode == 0 and "can't run 1 processes on 2 nodes, setting nnodes to 1" in got.stderr
    shared.wait_state(re.search(r"\d+", got.stdout)[0], "COMPLETED")


def test_11_1_account_and_qos_have_their_twins(shared):
    for env in ({"SBATCH_ACCOUNT": "a1", "SBATCH_QOS": "q1"}, {"SPUR_ACCOUNT": "a1", "SPUR_QOS": "q1"}):
        got = hold(shared, env=env)
        assert (got["Account"], got["QOS"]) == ("a1", "q1")
        assert hold(shared, "-A", "a2", "-q", "q2", env=env)["Account"] == "a2"
    for command in (["srun", "-A", "a3", "-q", "q3", "-J", "twin-srun", "true"], ["salloc", "-Q", "-A", "a3", "-q", "q3", "-J", "twin-salloc", "true"]):
        shared.run(command)
        assert shared.run(["sacct", "-X", "-n", "-P", "-o", "account,qos", "--name", f"twin-{command[0]}"]).stdout == "a3|q3\n"


def test_11_6_a_reason_goes_with_its_cause(shared):
    job = shared.submit("--begin=now+1hour", "-w", "n2", "--wrap", "sleep 60")
    row = lambda: shared.run(["squeue", "-h", "-t", "all", "-j", str(job), "-o", "%t %r"]).stdout.strip()
    wait_for(lambda: row() == "PD BeginTime", 5, "the time to be the reason")
    shared.run(["scontrol", "hold", str(job)])
    assert row() == "PD JobHeldAdmin"
    shared.run(["scontrol", "release", str(job)])
    wait_for(lambda: row() == "PD BeginTime", 5, "the time to be the reason again")
    shared.run(["scontrol", "update", f"jobid={job}", "starttime=now"])
    wait_for(lambda: row() == "R None", 5, "it to run")
    shared.run(["scancel", str(job)])
    wait_for(lambda: row() == "CA None", 5, "its end")


def test_11_11_gpus_come_back_however_a_job_ends(shared):
    used = lambda: re.search(r" GresUsed=(\S+)", node(shared, "n1"))[1]
    free = used()
    assert free in ("gpu:a100:0(IDX:N/A)", "gpu:a100:0")
    for how in ("complete", "cancel", "kill", "requeue"):
        job = shared.submit("--gres=gpu:2", "-w", "n1", "--wrap", "true" if how == "complete" else "sleep 60")
        if how == "complete":
            shared.wait_over(job)
        else:
            shared.wait_state(job, "RUNNING")
            assert used().startswith("gpu:a100:2")
            if how == "requeue":
                shared.run(["scontrol", "requeuehold", str(job)])
            else:
                shared.run(["scancel", *(["-s", "KILL"] if how == "kill" else []), str(job)])
        wait_for(lambda: used() == free, 20, f"the GPUs to be free after {how}")
        shared.run(["scancel", str(job)], check=False)
    # a start that fails before the script runs
    job = shared.submit("--gres=gpu:2", "-w", "n1", "-o", "/dev/null/dir/x", "--wrap", "true")
    shared.wait_over(job)
    wait_for(lambda: used() == free, 20, "the GPUs to be free after a start that failed")


def test_11_11_gpus_of_a_killed_salloc_come_back(new_cluster):
    c = new_cluster(scale=10, conf='\n[[nodes]]\nnames = "n1"\ngres = ["gpu:2"]\n')
    used = lambda: re.search(r" GresUsed=(\S+)", node(c, "n1"))[1]
    assert used().startswith("gpu:0")
    held = subprocess.Popen(["salloc", "-Q", "--gres=gpu:2", "sleep", "60"], env=c.env, cwd=c.work)
    wait_for(lambda: used().startswith("gpu:2"), 10, "the GPUs to be taken")
    held.kill()
    held.wait()
    wait_for(lambda: used().startswith("gpu:0"), 60, "the GPUs to be free")


def test_11_11_a_job_without_gpus_sees_none(shared):
    job = shared.submit("-w", "n1", "-o", "nogpu.txt", "--wrap", "env; srun env")
    shared.wait_state(job, "COMPLETED")
    text = (shared.work / "nogpu.txt").read_text()
    assert not re.search(r"^SLURM_(JOB_GPUS|GPUS_ON_NODE|STEP_GPUS)=", text, re.M) and not re.search(r"^(CUDA|ROCR)_VISIBLE_DEVICES=[^\n]", text, re.M)


def test_11_12_exclusive_takes_the_whole_node(shared):
    one = shared.submit("--exclusive", "-n1", "-w", "n1", "--wrap", "sleep 60")
    shared.wait_state(one, "RUNNING")
    assert " CPUAlloc=8 " in node(shared, "n1") and shared.job(one)["NumCPUs"] == "8"
    other = shared.submit("-n1", "-w", "n1", "--wrap", "true")
    wait_for(lambda: shared.job(other)["Reason"] == "Resources", 5, "it to wait")
    shared.run(["scancel", str(one)])
    shared.wait_state(other, "COMPLETED")
    filler = shared.submit("-n1", "-w", "n1", "--wrap", "sleep 60")
    shared.wait_state(filler, "RUNNING")
    alone = shared.submit("--exclusive", "-n1", "--wrap", "sleep 60")
    shared.wait_state(alone, "RUNNING")
    assert shared.job(alone)["NodeList"] == "n2"
    shared.run(["scancel", str(filler), str(alone)])


@pytest.mark.root
def test_11_16_nobody_touches_the_jobs_of_others(shared):
    job = shared.submit("-n2", "-o", "own16.txt", "--wrap", "srun -n1 sh -c 'echo secret; sleep 60'")
    shared.wait_state(job, "RUNNING")
    wait_for(lambda: shared.run("squeue", "-h", "-s", "-j", str(job), "-o", "%i").stdout.split(), 10, "the step")
    refused = [["scancel", str(job)], ["scancel", f"{job}.0"], ["scancel", "-s", "USR1", str(job)], ["scontrol", "suspend", str(job)], ["scontrol", "resume", str(job)],
               ["scontrol", "requeue", str(job)], ["scontrol", "hold", str(job)], ["scontrol", "release", str(job)], ["scontrol", "update", f"jobid={job}", "comment=x"],
               ["srun", f"--jobid={job}", "--overlap", "id"], ["sattach", f"{job}.0"], ["scontrol", "write", "batch_script", str(job), "-"],
               ["scontrol", "update", "nodename=n1", "state=drain", "reason=x"], ["scontrol", "reconfigure"], ["scontrol", "create", "partitionname=mine", "nodes=n1"],
               ["scontrol", "update", "partitionname=debug", "state=down"], ["scontrol", "delete", "partitionname=debug"], ["spur", "token", "create"],
               ["scontrol", "token", "username=root"], ["spur", "node", "remove", "n2"]]
    for argv in refused:
        got = shared.run(argv, uid=NOBODY, check=False, timeout=20)
        assert (got.returncode != 0 or argv[1] == "write") and "secret" not in got.stdout and not got.stdout.strip(), (argv, got)
        assert re.search("(?i)denied|not permitted|access|privilege|administrator|owner|Invalid user id", got.stderr), (argv, got.stderr)
    assert shared.state_of(job) == "RUNNING" and shared.job(job)["Comment" if "Comment" in shared.job(job) else "JobId"] in (str(job), "(null)")
    assert shared.run("sinfo -h -o %t").stdout.split() != ["drain"] and "mine" not in shared.run("sinfo -h -o %P").stdout
    shared.run(["scancel", str(job)])


def test_11_17_ids_go_on_and_nodes_stay_up_over_a_new_controller(new_cluster):
    c = new_cluster()
    runs = c.submit("--wrap", "sleep 60")
    c.wait_state(runs, "RUNNING")
    last = [c.submit("-H", "--wrap", "true") for _ in range(3)][-1]
    c.run(["scancel", str(last)])
    for how in (signal.SIGKILL, signal.SIGTERM):
        c.ctld.restart(how)
        new = c.submit("-H", "--wrap", "true")
        assert new == last + 1
        last = new
        assert not set(c.run("sinfo -h -N -o %t").stdout.split()) & {"down", "down*", "drain"}  # just after the change
        assert " CPUAlloc=1 " in node(c, "n1") and c.state_of(runs) == "RUNNING"


@pytest.mark.root
def test_11_20_what_a_job_makes_is_its_users(shared):
    os.chmod(shared.work, 0o1777)
    job = shared.submit("-o", "o20.txt", "-e", "e20.txt", "--wrap", "id -u; id -G; touch made20; ulimit -l", uid=NOBODY)
    shared.wait_state(job, "COMPLETED")
    groups = sorted(map(int, subprocess.run(["id", "-G", "nobody"], capture_output=True, text=True).stdout.split()))
    uid, gids, _ = (shared.work / "o20.txt").read_text().splitlines()
    assert int(uid) == NOBODY and sorted(map(int, gids.split())) == groups
    assert {(shared.work / f).stat().st_uid for f in ("o20.txt", "e20.txt", "made20")} == {NOBODY}


def test_11_20_arguments_stay_as_they_are(shared):
    odd = ["a b", "$HOME", "`id`", "'", '"', "\\", "*", "", "x\ny", "-n", "é", ";false"]
    script = shared.script('printf "<%s>" "$@"')
    job = shared.submit("-o", "args20.txt", script, *odd)
    shared.wait_state(job, "COMPLETED")
    want = "".join(f"<{a}>" for a in odd)
    assert (shared.work / "args20.txt").read_text() == want
    assert shared.run(["srun", "-n1", "printf", "<%s>", *odd]).stdout == want


def test_11_20_a_missing_directory_drains_nothing(shared):
    job = shared.submit("-D", "/no/such/dir", "-o", shared.work / "d20.txt", "--wrap", "pwd")
    shared.wait_over(job)
    assert not set(shared.run("sinfo -h -N -o %t").stdout.split()) & {"drain", "drng", "down"}


def test_11_22_the_batch_script_runs_once_and_its_words_are_its_own(shared):
    body = "echo 'srun -n2 hostname'; echo \"srun\" > said-srun; echo once >> once22; srun sh -c 'echo task $SLURM_PROCID $SLURMD_NODENAME' | sort"
    job = shared.batch(body, "-N2", "-n4", "--ntasks-per-node=2", "-o", "s22.txt")
    shared.wait_state(job, "COMPLETED")
    assert (shared.work / "s22.txt").read_text().splitlines() == ["srun -n2 hostname", "task 0 n1", "task 1 n1", "task 2 n2", "task 3 n2"]
    assert (shared.work / "once22").read_text() == "once\n"
    assert shared.run(["sacct", "-n", "-P", "-o", "jobid", "-j", str(job)]).stdout.split() == [str(job), f"{job}.batch", f"{job}.0"]
