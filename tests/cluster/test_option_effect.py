# SPDX-License-Identifier: Apache-2.0
"""No option of sbatch is without effect: for each there is a pair of runs that differ by it alone, and what differs then
is looked at: in scontrol show job, in the environment of the job, in its output, in what the command says or returns.
The list of options is the command's own (--help), so that a new one without a case fails here; those that are refused are
refused by name."""
import os
import pathlib
import re
import time

import pytest

from spurtest import REPO, wait_for

SHARED = {
    "cpus": 8,
    "conf": """
[licenses]
matlab = 4

[[partitions]]
name = "debug"
default = true
over_subscribe = "YES:2"

[[partitions]]
name = "long"
max_time = "UNLIMITED"

[[nodes]]
names = "n[1-2]"
features = ["ib", "zen"]
gres = ["gpu:a100:4"]
""",
}
# What two runs of the same command differ in.
VOLATILE = {"JobId", "SubmitTime", "EligibleTime", "AccrueTime", "LastSchedEval", "SubmitLine", "Priority", "StdOut", "StartTime",
            "EndTime", "AllocNode:Sid", "Reason"}


def shown(c, *options, env=None):
    """scontrol show job of a held job with these options."""
    job = c.submit("-H", "-o", "/dev/null", *options, "--wrap", "true", env=env)
    got = c.job(job)
    c.run(["scancel", str(job)])
    return {k: v for k, v in got.items() if k not in VOLATILE | {"Command"}}


# option → (what is given, what scontrol show job then says otherwise than without it)
IN_SHOW = {
    "account": (["-A", "ml"], {"Account": "ml"}),
    "array": (["--array=3,5%1"], {"ArrayTaskId": "3,5%1"}),
    "chdir": (["-D", "/tmp"], {"WorkDir": "/tmp"}),
    "comment": (["--comment=a=1, b"], {"Comment": "a=1, b"}),
    "constraint": (["-C", "ib,zen"], {"Features": "ib&zen"}),
    "contiguous": (["--contiguous"], {"Contiguous": "1"}),
    "cpus-per-task": (["-c", "2"], {"CPUs/Task": "2"}),
    "deadline": (["--deadline=2099-01-01", "-t", "5"], {"Deadline": "2099-01-01T00:00:00"}),
    "dependency": (["-d", "singleton"], {}),  # seen below: it makes the job wait
    "error": (["-e", "/tmp/e.%j"], {}),
    "exclude": (["-x", "n2"], {"ExcNodeList": "n2"}),
    "exclusive": (["--exclusive"], {"Exclusive": "NODE"}),
    "gpus": (["-G", "a100:2"], {"TresPerJob": "gres/gpu:a100:2"}),
    "gpus-per-node": (["--gpus-per-node=a100:1"], {"TresPerNode": "gres/gpu:a100:1"}),
    "gpus-per-task": (["--gpus-per-task=1", "-n", "1"], {"TresPerTask": "gres/gpu=1"}),
    "gres": (["--gres=gpu:2"], {"TresPerNode": "gres/gpu:2"}),
    "input": (["-i", "/etc/hostname"], {"StdIn": "/etc/hostname"}),
    "job-name": (["-J", "nm"], {"JobName": "nm"}),
    "kill-on-invalid-dep": (["--kill-on-invalid-dep=no"], {"KillOnInvalidDependent": "No"}),
    "licenses": (["-L", "matlab:2"], {"Licenses": "matlab:2"}),
    "mem": (["--mem=123"], {"MinMemoryNode": "123M"}),
    "mem-per-cpu": (["--mem-per-cpu=77"], {"MinMemoryCPU": "77M"}),
    "nice": (["--nice=5"], {"Nice": "5"}),
    "no-requeue": (["--no-requeue"], {"Requeue": "0"}),
    "nodelist": (["-w", "n2"], {"ReqNodeList": "n2"}),
    "nodes": (["-N", "2"], {"NumNodes": "2-2"}),
    "ntasks": (["-n", "3"], {"NumTasks": "3"}),
    "ntasks-per-gpu": (["--ntasks-per-gpu=3", "-G", "2"], {"NumTasks": "6"}),
    "ntasks-per-node": (["--ntasks-per-node=2"], {"NtasksPerN:B:S:C": "2:0:*:*"}),
    "oversubscribe": (["-s"], {"OverSubscribe": "YES"}),
    "partition": (["-p", "long"], {"Partition": "long"}),
    "qos": (["-q", "high"], {"QOS": "high"}),
    "time": (["-t", "7"], {"TimeLimit": "00:07:00"}),
    "time-min": (["--time-min=3", "-t", "7"], {"TimeMin": "00:03:00"}),
}


@pytest.fixture(scope="module")
def plain(shared):
    return shown(shared)


@pytest.mark.parametrize("option", [o for o, (_, want) in IN_SHOW.items() if want])
def test_shown(shared, plain, option):
    given, want = IN_SHOW[option]
    got = shown(shared, *given)
    for key, value in want.items():
        assert got[key] == value and plain.get(key) != value


def over(c, *options, body="true", env=None, out="o.txt"):
    """The job's end: (state, its output)."""
    path = c.work / out
    path.unlink(missing_ok=True)
    job = c.submit("-o", path, *options, c.script(body), env=env)
    state = c.wait_over(job)
    return state, path.read_text() if path.exists() else None


def differs(c, option, with_it, without):
    assert with_it != without, option


def begin(c):
    job = c.submit("--begin=now+1hour", "--wrap", "true")
    assert c.run(["squeue", "-h", "-j", str(job), "-o", "%r"]).stdout.strip() in ("BeginTime", "None")
    assert c.job(job)["EligibleTime"] > c.job(job)["SubmitTime"]
    c.run(["scancel", str(job)])


def dependency(c):
    first = c.submit("-J", "chain", "--wrap", "sleep 30")
    c.wait_state(first, "RUNNING")
    free, bound = c.submit("-J", "chain", "--wrap", "true"), c.submit("-J", "chain", "-d", "singleton", "--wrap", "true")
    c.wait_over(free)
    assert c.state_of(bound) == "PENDING" and c.job(bound)["Dependency"] == "singleton(unfulfilled)"
    c.run(["scancel", str(first)])
    c.wait_state(bound, "COMPLETED")


def error(c):
    errors = c.work / "err.txt"
    over(c, "-e", errors, body="echo bad >&2")
    assert errors.read_text() == "bad\n" and over(c, body="echo bad >&2")[1] == "bad\n"


def export(c):
    env = {"MARK": "1"}
    assert over(c, "--export=NONE", body="echo [$MARK]", env=env)[1] == "[]\n"
    assert over(c, body="echo [$MARK]", env=env)[1] == "[1]\n"


def hold(c):
    job = c.submit("-H", "--wrap", "true")
    assert c.job(job)["Reason"] == "JobHeldUser"
    c.run(["scancel", str(job)])
    assert over(c)[0] == "COMPLETED"


def ignore_pbs(c):
    script = c.script("#PBS -N frompbs\n#SBATCH -H\ntrue")
    names = []
    for options in ([], ["--ignore-pbs"]):
        job = c.submit(*options, script)
        names.append(c.job(job)["JobName"])
        c.run(["scancel", str(job)])
    assert names[0] == "frompbs" and names[1] == script.name


def open_mode(c):
    path = c.work / "kept.txt"
    for mode, want in (("append", "old\nnew\n"), ("truncate", "new\n")):
        path.write_text("old\n")
        c.wait_over(c.submit("-o", path, f"--open-mode={mode}", "--wrap", "echo new"))
        assert path.read_text() == want


def output(c):
    assert over(c, body="echo here")[1] == "here\n"


def parsable(c):
    assert re.fullmatch(r"\d+\n", c.run(["sbatch", "--parsable", "--wrap", "true"]).stdout)
    assert c.run(["sbatch", "--wrap", "true"]).stdout.startswith("Submitted batch job ")


def clusters(c):
    assert re.fullmatch(r"Submitted batch job \d+ on cluster test\n", c.run(["sbatch", "-M", "all", "--wrap", "true"]).stdout)
    got = c.run(["sbatch", "--wrap", "true"], env={"SBATCH_CLUSTERS": "nosuch"}, check=False)
    assert got.returncode == 1 and got.stderr.startswith("sbatch: error: No cluster 'nosuch' known by database.\n")


def propagate(c):
    limited = ["bash", "-c", "ulimit -Sc 5; exec sbatch --parsable \"$@\"", "-", "-o", str(c.work / "l.txt"), "--wrap", "ulimit -Sc"]
    seen = []
    for more in ([], ["--propagate=NONE"]):
        job = int(c.run([*limited[:4], *more, *limited[4:]]).stdout)
        c.wait_over(job)
        seen.append((c.work / "l.txt").read_text())
    assert seen[0] == "10\n" and seen[1] != "10\n"  # of 512 bytes


def quiet(c):
    assert c.run(["sbatch", "-Q", "--wrap", "true"]).stdout == ""


def requeue(c):
    """With job_requeue = false it decides; with true it undoes a --no-requeue before it."""
    assert shown(c, "--no-requeue", "--requeue")["Requeue"] == "1" and shown(c, "--no-requeue")["Requeue"] == "0"


def signal_option(c):
    body = 'trap "echo got" USR1; for i in 1 2 3 4 5 6 7 8; do sleep 0.2; done'
    assert over(c, "-t", "1", "--signal=B:USR1@60", body=body)[1] == "got\n"
    assert over(c, "-t", "1", body=body)[1] == ""


def only_test(c):
    before = c.run("squeue -h -t all -o %i").stdout
    got = c.run(["sbatch", "--test-only", "--wrap", "true"])
    assert re.fullmatch(r"sbatch: Job \d+ to start at \S+ a using \d+ processors on nodes n1 in partition debug\n", got.stderr)
    assert got.stdout == "" and c.run("squeue -h -t all -o %i").stdout == before


def verbose(c):
    assert "defined options" in c.run(["sbatch", "-v", "--wrap", "true"]).stderr
    assert "defined options" not in c.run(["sbatch", "--wrap", "true"]).stderr


def wait(c):
    assert c.run(["sbatch", "-W", "--wrap", "exit 7"], check=False).returncode == 7
    assert c.run(["sbatch", "--wrap", "exit 7"]).returncode == 0


def wrap(c):
    got = c.run(["sbatch", "--parsable", "-H"], input="#!/bin/sh\ntrue\n")
    assert c.job(int(got.stdout))["JobName"] == "sbatch"
    assert c.job(c.submit("-H", "--wrap", "true"))["JobName"] == "wrap"


def nodefile(c):
    path = c.work / "nodes.txt"
    path.write_text("n2\n")
    assert shown(c, "-F", path)["ReqNodeList"] == "n2" and shown(c)["ReqNodeList"] == "(null)"
    got = c.run(["sbatch", "-F", "nofile", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (255, "sbatch: error: slurm_allocate_resources error opening file nofile, No such file or directory\n"
                                                 "sbatch: error: Invalid --nodefile node file\n")


def distribution(c):
    """Steps of the job deal their tasks out as it says."""
    body = "srun -l bash -c 'echo $SLURMD_NODENAME' | sort"
    got = {how: over(c, "-N2", "--ntasks-per-node=2", "-m", how, body=body)[1] for how in ("block", "cyclic")}
    assert got["block"] == "0: n1\n1: n1\n2: n2\n3: n2\n" and got["cyclic"] == "0: n1\n1: n2\n2: n1\n3: n2\n"
    assert "block|cyclic" in c.run("sbatch --help").stdout
    got = c.run(["sbatch", "-m", "bogus", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (255, "sbatch: error: Invalid --distribution specification\n")


def overcommit(c):
    assert over(c, "-O", "-N1", "-n20", body="echo $SLURM_CPUS_ON_NODE")[1] == "1\n"
    assert c.run(["sbatch", "-N1", "-n20", "--wrap", "true"], check=False).returncode == 1


def priority(c):
    """An administrator sets it; of others it is not taken, and 0 holds."""
    job = c.submit("-H", "--priority=777", "--wrap", "true")
    assert c.job(job)["Priority"] == "0"
    c.run(["scontrol", "release", str(job)])
    wait_for(lambda: c.job(job)["JobState"] == "COMPLETED", 20, "its end")
    job = c.submit("--begin=now+1hour", "--priority=777", "--wrap", "true")
    other = c.submit("--begin=now+1hour", "--wrap", "true")
    assert c.job(job)["Priority"] == ("777" if os.geteuid() == 0 else c.job(other)["Priority"])
    c.run(["scancel", str(job), str(other)])
    assert c.job(c.submit("--priority=0", "--wrap", "true"))["Reason"] == "JobHeldUser"


def kill_on_invalid_dep(c):
    first = c.submit("--wrap", "false")
    c.wait_over(first)
    lost = [c.submit("-d", f"afterok:{first}", *more, "--wrap", "true") for more in (["--kill-on-invalid-dep=yes"], ["--kill-on-invalid-dep=no"], [])]
    c.wait_state(lost[0], "CANCELLED")
    assert c.job(lost[0])["Reason"] == "DependencyNeverSatisfied" and c.run(["sacct", "-nXPo", "state,exitcode", "-j", str(lost[0])]).stdout == "CANCELLED|0:0\n"
    waiting = c.submit("--kill-on-invalid-dep=yes", "-d", f"afterok:{c.submit('-H', '--wrap', 'true')}", "--wrap", "true")
    for job in [*lost[1:], waiting]:
        assert c.state_of(job) == "PENDING"
    assert c.run(["sbatch", "--kill-on-invalid-dep=x", "--wrap", "true"], check=False).returncode == 255
    c.run("scancel --me")


def says(option, text):
    def check(c):
        assert text in c.run(["sbatch", option]).stdout
    return check


IN_DOING = {
    "nodefile": nodefile, "overcommit": overcommit, "distribution": distribution, "priority": priority, "kill-on-invalid-dep": kill_on_invalid_dep,
    "begin": begin, "dependency": dependency, "error": error, "export": export, "hold": hold, "ignore-pbs": ignore_pbs,
    "open-mode": open_mode, "output": output, "parsable": parsable, "clusters": clusters, "propagate": propagate, "quiet": quiet, "requeue": requeue,
    "signal": signal_option, "test-only": only_test, "verbose": verbose, "wait": wait, "wrap": wrap,
    "help": says("--help", "Usage: sbatch"), "usage": says("--usage", "Usage: sbatch"), "version": says("--version", "slurm"),
}


@pytest.mark.parametrize("option", IN_DOING)
def test_done(shared, option):
    IN_DOING[option](shared)


def test_every_option_has_a_case(shared):
    names = set(re.findall(r"^ .*?--([a-z-]+)", shared.run("sbatch --help").stdout, re.M))
    covered = {o for o, (_, want) in IN_SHOW.items() if want} | set(IN_DOING)
    assert len(names) > 40 and names == covered


def refused_options():
    page = (REPO / "docs" / "compatibility.md").read_text()
    section = page.split("\n## sbatch ", 1)[1].split("\n## ", 1)[0]
    line = re.search(r"^Refused by name: (.*)$", section, re.M)[1]
    return [(m[1], m[2]) for m in re.finditer(r"`(?:-\w )?--([a-z-]+)(\[?=[^`]*)?`", line)]


@pytest.mark.parametrize("option, argument", refused_options())
def test_refused_by_name(shared, option, argument):
    value = "=x" if argument else ""
    got = shared.run(["sbatch", f"--{option}{value}", "--wrap", "true"], check=False)
    assert got.returncode == 1 and got.stdout == ""
    assert got.stderr == f"sbatch: error: option --{option} is not supported yet (see docs/compatibility.md)\n"
