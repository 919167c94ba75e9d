# SPDX-License-Identifier: Apache-2.0
"""No option of sbatch is without effect: for each there is a pair of runs that differ by it alone, and what differs then
is looked at: in scontrol show job, in the environment of the job, in its output, in what the command says or returns.
The list of options is the command's own (--help), so that a new one without a case fails here; those that are refused are
refused by name."""
import os
import pathlib
import pwd
import re
import time

import pytest

from spurtest import REPO, wait_for

ME = pwd.getpwuid(os.geteuid()).pw_name
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
sockets = 2
cores_per_socket = 2
threads_per_core = 2
tmp_disk_mb = 500
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
    "prefer": (["--prefer=ib,zen"], {"Prefer": "ib&zen"}),
    "partition": (["-p", "long"], {"Partition": "long"}),
    "qos": (["-q", "high"], {"QOS": "high"}),
    "mincpus": (["--mincpus=3"], {"MinCPUsNode": "3"}),
    "tmp": (["--tmp=1"], {"MinTmpDiskNode": "1M"}),
    "sockets-per-node": (["--sockets-per-node=2"], {"Socks/Node": "2"}),
    "cores-per-socket": (["--cores-per-socket=2"], {"ReqB:S:C:T": "0:0:2:*"}),
    "threads-per-core": (["--threads-per-core=1"], {"ReqB:S:C:T": "0:0:*:1"}),
    "extra-node-info": (["-B", "2:2:1"], {"ReqB:S:C:T": "0:0:2:1", "Socks/Node": "2", "NumTasks": "4"}),
    "ntasks-per-core": (["--ntasks-per-core=2"], {"NtasksPerN:B:S:C": "0:0:*:2"}),
    "ntasks-per-socket": (["--ntasks-per-socket=3"], {"NtasksPerN:B:S:C": "0:0:3:*"}),
    "cpus-per-gpu": (["--cpus-per-gpu=3", "-G2"], {"NumCPUs": "6", "CpusPerTres": "gres/gpu:3"}),
    "mem-per-gpu": (["--mem-per-gpu=64", "--gres=gpu:2"], {"MemPerTres": "gres/gpu:64"}),
    "tres-per-task": (["--tres-per-task=cpu=2,gres/gpu=1", "-n2"], {"TresPerTask": "cpu=2,gres/gpu=1", "CPUs/Task": "2", "NumCPUs": "4"}),
    "mail-type": (["--mail-type=END,time_limit_80"], {"MailType": "END,TIME_LIMIT_80", "MailUser": ME}),
    "mail-user": (["--mail-type=END", "--mail-user=a@b.c"], {"MailUser": "a@b.c"}),
    "extra": (["--extra=a=b"], {"Extra": "a=b"}),
    "switches": (["--switches=2@0:30"], {"Switches": "2@00:00:30"}),
    "delay-boot": (["--delay-boot=5"], {"DelayBoot": "00:05:00"}),
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
    assert over(c, "-N2", "--ntasks-per-node=2", "-m", "cyclic:block", body=body)[1] == got["cyclic"]
    assert "block|cyclic" in c.run("sbatch --help").stdout
    body += "; echo $SLURM_DISTRIBUTION $SLURM_DIST_PLANESIZE"
    out = over(c, "-N2", "--ntasks-per-node=3", "-m", "plane=2", body=body)[1]
    assert out == "0: n1\n1: n1\n2: n2\n3: n2\n4: n1\n5: n2\nplane 2\n"
    assert over(c, "-N2", "--ntasks-per-node=3", "-m", "plane", body=body, env={"SLURM_DIST_PLANESIZE": "2"})[1] == out
    got = c.run(["sbatch", "-N2", "-n2", "-m", "plane=2", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (1, "sbatch: error: Too few processes for the requested {plane,node} distribution\n")
    got = c.run(["sbatch", "-m", "plane", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (255, "sbatch: error: Invalid plane size or size not specified\nsbatch: error: Invalid --distribution specification\n")
    got = c.run(["sbatch", "-m", "bogus", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (255, "sbatch: error: Invalid --distribution specification\n")


def test_a_node_for_each_task(shared, tmp_path):
    """-m arbitrary, by -w and by SLURM_HOSTFILE: CPUs, tasks and their numbers are as the list says, in the job and in its steps."""
    c = shared
    body = "srun -l bash -c 'echo $SLURMD_NODENAME' | sort; srun -m arbitrary -w n2,n1 -l bash -c 'echo $SLURMD_NODENAME' | sort; " \
           "echo $SLURM_DISTRIBUTION $SLURM_ARBITRARY_NODELIST $SLURM_JOB_CPUS_PER_NODE $SLURM_NTASKS"
    want = "0: n2\n1: n1\n2: n2\n3: n2\n0: n2\n1: n1\narbitrary n2,n1,n2,n2 1,3 4\n"
    assert over(c, "-m", "arbitrary", "-w", "n2,n1,n2,n2", body=body)[1] == want
    hosts = tmp_path / "hosts"
    hosts.write_text("n2 # the first\nn1\nn2*2\n")
    assert over(c, body=body, env={"SLURM_HOSTFILE": str(hosts)})[1] == want
    got = c.run(["srun", "-l", "hostname"], env={"SLURM_HOSTFILE": str(hosts), "SLURM_EXIT_ERROR": "7"}).stdout
    assert sorted(line.split(":")[0] for line in got.splitlines()) == ["0", "1", "2", "3"]
    for argv, code, says in (
        (["sbatch", "-N2", "-m", "arbitrary", "-w", "n1,n2", "--wrap", "true"], 1, "error: --nodes is incompatible with --distribution=arbitrary"),
        (["sbatch", "-m", "arbitrary", "--wrap", "true"], 1, "error: With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option"),
        (["sbatch", "-m", "arbitrary", "-n3", "-w", "n1,n2", "--wrap", "true"], 1, "error: Batch job submission failed: Task count specification invalid"),
        (["sbatch", "-m", "arbitrary", "-w", "n1,n9", "--wrap", "true"], 1, "error: Batch job submission failed: Invalid node name specified"),
        (["sbatch", "-m", "arbitrary", "-w", ",".join(["n1"] * 9), "--wrap", "true"], 1, "error: Batch job submission failed: Requested node configuration is not available"),
    ):
        got = c.run(argv, check=False)
        assert (got.returncode, got.stdout) == (code, "") and says in got.stderr, got.stderr
    for text, says in (("", "Hostlist is empty!"), ("n1\n", "Too few NodeNames in Slurm Hostfile")):
        hosts.write_text(text)
        got = c.run(["sbatch", "-n2", "--wrap", "true"], env={"SLURM_HOSTFILE": str(hosts)}, check=False)
        assert got.returncode == 1 and got.stderr == f"sbatch: error: {says}\nsbatch: error: Failure getting NodeNames from hostfile\n"
    got = c.run(["sbatch", "--wrap", "true"], env={"SLURM_HOSTFILE": "/no/file"}, check=False)
    assert got.returncode == 1 and "error opening file /no/file, No such file or directory" in got.stderr


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


def get_user_env(c):
    """What the profile of the user's login shell sets, but for what the job has already; one that hangs or fails costs nothing else."""
    home = c.work / "home"
    home.mkdir(exist_ok=True)
    profile = home / (".bash_profile" if pwd.getpwuid(os.geteuid()).pw_shell.endswith("bash") else ".profile")
    profile.write_text("echo noise; export FROM_LOGIN='a b' OWN=login TOLD=${TOLD:-nothing}; sleep 1000 & \n")
    body = 'echo "[$FROM_LOGIN] [$OWN] [$TOLD] [$SLURM_GET_USER_ENV]"'
    env = {"HOME": str(home), "OWN": "mine"}
    assert over(c, "--get-user-env", body=body, env=env)[1] == "[a b] [mine] [nothing] [1]\n"
    assert over(c, body=body, env=env)[1] == "[] [mine] [] []\n"
    assert over(c, "--get-user-env=30L", f"--export=HOME={home}", body=body, env=env)[1] == "[a b] [login] [nothing] [1]\n"
    profile.write_text("PATH=/opt/mine:$PATH\n")
    assert over(c, "--get-user-env", f"--export=HOME={home}", body="echo $PATH", env=env)[1].startswith("/opt/mine:/")
    profile.write_text("exit 3\n")
    out = over(c, "--get-user-env", body=body, env=env)[1]
    assert re.fullmatch(r"\[\S+\] error: Unable to get user's local environment, running only with passed environment\n\[\] \[mine\] \[\] \[1\]\n", out), out
    got = c.run(["sbatch", "--get-user-env=x", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (255, "sbatch: error: Invalid --get-user-env specification\n")


def no_kill(c):
    """What it does is seen in test_resize.py; here, what it takes."""
    for value in ("--no-kill", "--no-kill=set", "--no-kill=off", "-k", "-kno"):
        assert c.run(["sbatch", "-H", value, "--wrap", "true"]).returncode == 0
    got = c.run(["sbatch", "--no-kill=x", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (255, "sbatch: error: Invalid --no-kill specification\n")
    c.run(["scancel", "-u", ME])


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


def taken(option, good, bad, says=""):
    """Of what needs nothing to be done here: a right value is taken, a wrong one is not."""
    def check(c):
        got = c.run(["sbatch", "-H", f"--{option}{good}", "--wrap", "true"])
        assert got.stderr == says and got.stdout.startswith("Submitted")
        got = c.run(["sbatch", "-H", f"--{option}{bad}", "--wrap", "true"], check=False)
        assert got.returncode and not got.stdout
        c.run("scancel --me")
    return check


NO_SPEC = "sbatch: error: Ignoring {} since it's not allowed by configuration (AllowSpecResourcesUsage = No)\n"


def says(option, text):
    def check(c):
        assert text in c.run(["sbatch", option]).stdout
    return check


def spread_job(c):
    assert over(c, "--spread-job", "-n2", body="echo $SLURM_JOB_NODELIST")[1] == "n[1-2]\n" and over(c, "-n2", body="echo $SLURM_JOB_NODELIST")[1] == "n1\n"


def use_min_nodes(c):
    assert over(c, "-N1-2", body="echo $SLURM_NNODES")[1] == "2\n" and over(c, "-N1-2", "--use-min-nodes", body="echo $SLURM_NNODES")[1] == "1\n"


def hint(c):
    """One thread of each core is used, and the core is nobody else's."""
    assert over(c, "-n3", "--hint=nomultithread", body="echo $SLURM_CPUS_ON_NODE")[1] == "6\n" and over(c, "-n3", "--hint=multithread", body="echo $SLURM_CPUS_ON_NODE")[1] == "3\n"
    got = c.run(["sbatch", "-N1", "-n5", "--hint=compute_bound", "--wrap", "true"], check=False)
    assert got.returncode == 1 and "node configuration is not available" in got.stderr
    assert c.run(["sbatch", "--hint=help", "--wrap", "true"]).stdout.startswith("Application hint options:\n")
    got = c.run(["sbatch", "--hint=bogus", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (1, 'sbatch: error: unrecognized --hint argument "bogus", see --hint=help\n')


def wckey(c):
    job = c.submit("-H", "--wckey=proj", "--wrap", "true")
    assert c.run(["squeue", "-h", "-o", "%w", "-j", str(job)]).stdout == "proj\n"
    c.run("scancel --me")


def export_file(c):
    path = c.work / "vars"
    path.write_bytes(b"MARK=a b\nc\0OTHER=1")
    env = {"MARK": "mine"}
    assert over(c, f"--export-file={path}", body='echo "[$MARK] [$OTHER] [$HOME]"', env=env)[1] == f"[a b\nc] [1] [{c.env['HOME']}]\n"
    got = c.run(["sbatch", "--export-file=nofile", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (1, "sbatch: error: Could not open user environment file nofile\n")


IN_DOING = {
    "export-file": export_file,
    "spread-job": spread_job, "use-min-nodes": use_min_nodes, "hint": hint, "wckey": wckey,
    "core-spec": taken("core-spec", "=1", "=x", NO_SPEC.format("-S")), "thread-spec": taken("thread-spec", "=1", "=x", NO_SPEC.format("--thread-spec")),
    "wait-all-nodes": taken("wait-all-nodes", "=1", "=2"), "segment": taken("segment", "=2", "=x"),
    "consolidate-segments": taken("consolidate-segments", "", "=x"),
    "nodefile": nodefile, "overcommit": overcommit, "distribution": distribution, "priority": priority, "kill-on-invalid-dep": kill_on_invalid_dep, "no-kill": no_kill, "get-user-env": get_user_env,
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


# Values are looked at before the option is refused.
GOOD = {"acctg-freq": "task=30", "batch": "ib -C ib", "cpu-freq": "low-high:performance", "gpu-freq": "medium,memory=high", "gpu-bind": "single:1", "mem-bind": "local",
        "gres-flags": "one-task-per-sharing", "oom-kill-step": "1", "resv-ports": "2", "gpus-per-socket": "1 --sockets-per-node=2"}
BAD = [("acctg-freq", "x", 255), ("cpu-freq", "bogus", 255), ("gpu-freq", "bogus", 255), ("gpu-bind", "x", 255), ("gpus-per-socket", "1", 1), ("mem-bind", "bogus", 255), ("gres-flags", "bogus", 255), ("batch", "x", 1),
       ("oom-kill-step", "x", 255), ("resv-ports", "x", 1), ("reservation", "x", 1)]
NOTHING = ["--oom-kill-step=0", "--mem-bind=quiet,none", "--gpu-bind=none", "--gres-flags=disable-binding"]


@pytest.mark.parametrize("option, value, code", BAD)
def test_refused_for_its_value(shared, option, value, code):
    got = shared.run(["sbatch", f"--{option}={value}", "--wrap", "true"], check=False)
    assert (got.returncode, got.stdout) == (code, "") and "nvalid" in got.stderr + "nvalid" * ("unrecognized" in got.stderr)
    assert "not supported" not in got.stderr


@pytest.mark.parametrize("option", NOTHING)
def test_what_asks_for_nothing_is_taken(shared, option):
    assert shown(shared, option) == shown(shared)


@pytest.mark.parametrize("option, argument", [x for x in refused_options() if x[0] != "reservation"])
def test_refused_by_name(shared, option, argument):
    value = f"={GOOD.get(option, 'x')}" if argument else ""
    if option == "reboot" and os.geteuid() != 0:
        pytest.skip("of administrators alone")
    got = shared.run(["sbatch", *f"--{option}{value}".split(" "), "--wrap", "true"], check=False)
    assert got.returncode == 1 and got.stdout == ""
    assert got.stderr == f"sbatch: error: option --{option} is not supported yet (see docs/compatibility.md)\n"


# What the planner makes of it: (options, what the script prints of its environment, what it prints)
SHAPES = [
    (["--mincpus=5"], "$SLURM_CPUS_ON_NODE", "5"),
    (["--mincpus=5", "-n2", "-c3"], "$SLURM_CPUS_ON_NODE", "6"),
    (["-G2", "--cpus-per-gpu=3"], "$SLURM_CPUS_ON_NODE $SLURM_CPUS_PER_GPU $SLURM_GPUS_ON_NODE", "6 3 2"),
    (["--gres=gpu:2", "--cpus-per-gpu=3"], "$SLURM_CPUS_ON_NODE", "6"),
    (["--gpus-per-task=1", "-n2", "--cpus-per-gpu=3"], "$SLURM_CPUS_ON_NODE $SLURM_TASKS_PER_NODE", "6 2"),
    (["-G2", "--mem-per-gpu=64"], "$SLURM_MEM_PER_GPU", "64"),
    (["-N1", "--gpus-per-node=a100:1", "--ntasks-per-gpu=2"], "$SLURM_GPUS_PER_NODE $SLURM_NTASKS_PER_GPU $SLURM_NTASKS", "a100:1 2 2"),
    (["-N1", "--gpus-per-node=2", "--ntasks-per-gpu=1"], "$(srun -n1 --gres=gpu:1 true && srun -n1 true && echo steps)", "steps"),
    (["-G6"], "$SLURM_NNODES", "2"),
    (["-n4", "--ntasks-per-socket=1"], "$SLURM_TASKS_PER_NODE $SLURM_NTASKS_PER_SOCKET", "2(x2) 1"),
    (["-n6", "--ntasks-per-core=1"], "$SLURM_NNODES $SLURM_NTASKS_PER_CORE", "2 1"),
    (["-n3", "--threads-per-core=1"], "$SLURM_CPUS_ON_NODE $SLURM_THREADS_PER_CORE", "6 1"),
    (["-B", "2:2"], "$SLURM_NTASKS $SLURM_NNODES", "4 1"),
    (["--tres-per-task=cpu=2,gres/gpu:a100=1", "-n2"], "$SLURM_CPUS_ON_NODE $SLURM_GPUS_ON_NODE", "4 2"),
]


@pytest.mark.parametrize("options, what, want", SHAPES)
def test_shapes(shared, options, what, want):
    assert over(shared, *options, body=f"echo {what}")[1] == want + "\n"


@pytest.mark.parametrize("option, first", [
    ("--tmp=501", "Temporary disk specification can not be satisfied"), ("--mincpus=9", "CPU count per node can not be satisfied"),
    *[(o, "Socket, core and/or thread specification can not be satisfied") for o in ("-B3", "--sockets-per-node=3", "--cores-per-socket=3", "--threads-per-core=3")]])
def test_no_node_is_so(shared, option, first):
    got = shared.run(["sbatch", option, "--wrap", "true"], check=False)
    assert got.stderr == f"sbatch: error: {first}\nsbatch: error: Batch job submission failed: Requested node configuration is not available\n"


def test_memory_follows_the_gpus(shared):
    """What a job has of a node's memory is for its GPUs, or for the CPUs that they bring."""
    for options, want in ((["-G2", "--mem-per-gpu=64"], "128M"), (["--gres=gpu:3", "--mem-per-gpu=64"], "192M"), (["-G2", "--cpus-per-gpu=2", "--mem-per-cpu=10"], "40M"),
                          (["--mincpus=4", "--mem-per-cpu=10"], "40M")):
        job = shared.submit("-o", "/dev/null", *options, "--wrap", "sleep 30")
        shared.wait_state(job, "RUNNING")
        assert f"mem={want}," in shared.job(job)["AllocTRES"], options
        shared.run(["scancel", str(job)])
    got = shared.run(["sbatch", "--mem-per-gpu=1G", "--wrap", "true"], check=False)
    assert "did not request any GPU" in got.stderr and got.returncode == 1


@pytest.mark.parametrize("options", [["-G2", "--mem-per-gpu=64"], ["--gpus-per-task=1", "-n2", "--cpus-per-gpu=2", "--mem-per-gpu=64"], ["--gres=gpu:1", "--cpus-per-gpu=2"],
                                     ["-n2", "--threads-per-core=1", "--ntasks-per-core=1"], ["--tres-per-task=cpu=2,gres/gpu=1", "-n1"], ["--hint=nomultithread"], ["-B", "1:2"]])
def test_steps_run_in_jobs_of_any_shape(shared, options):
    """What the job's environment says of its shape is no wish of its steps that can't be had."""
    state, out = over(shared, *options, body="srun --mem=10 echo in a step && srun -n1 --mem=10 echo one")
    assert state == "COMPLETED" and out.startswith("in a step\n") and out.endswith("one\n"), out


def test_memory_by_gpus_alone(shared):
    state, out = over(shared, "-G1", "--mem-per-gpu=64", "--gpus-per-task=1", body="echo $SLURM_MEM_PER_GPU [$SLURM_MEM_PER_CPU] $SLURM_TRES_PER_TASK")
    assert out == "64 [] gres/gpu=1\n"
    got = shared.run(["srun", "-G1", "--cpus-per-gpu=2", "true"], check=False)
    assert got.returncode == 0, got.stderr
