# SPDX-License-Identifier: Apache-2.0
"""Cases from the field: what went wrong for people elsewhere, and what is right. SUB: submitting; DEP: arrays and
dependencies; QRY: queries. The names are those of the list that they come from."""
import os
import re
import signal
import threading

import pytest

from spurtest import NOBODY, Cluster, wait_for

SHARED = {"cpus": 8,
          "conf": '\n[[partitions]]\nname = "debug"\ndefault = true\n\n[[partitions]]\nname = "short"\nmax_time = "10:00"\n'
                  '\n[[nodes]]\nnames = "n1"\ngres = ["gpu:a100:2"]\n'}


def rows(c, fmt, *options):
    return [line.split() for line in c.run(["squeue", "-h", "-o", fmt, *map(str, options)]).stdout.splitlines()]


def states(c, job):
    """{"12_0": "COMPLETED"} of history, without steps."""
    got = c.run(["sacct", "-X", "-n", "-P", "-o", "jobid,state", "-j", str(job)]).stdout
    return {line.split("|")[0]: line.split("|")[1].split()[0] for line in got.splitlines()}


def wait_gone(c, job, timeout=20):
    wait_for(lambda: not rows(c, "%i", "-j", job), timeout, f"job {job} to be over")


def hold(c, *options, body="true"):
    job = c.submit("-H", *options, c.script(body))
    shown = c.job(job)
    c.run(["scancel", str(job)])
    return shown


# ---- SUB ----


def test_sub01_parsable_is_the_id_alone(shared):
    for more in ([], ["-v"]):
        got = shared.run(["sbatch", "--parsable", *more, "-N", "99", "-n", "1", "--wrap", "true"])
        assert re.fullmatch(r"\d+\n", got.stdout) and "can't run 1 processes on 99 nodes" in got.stderr


def test_sub02_directives_as_people_write_them(shared):
    body = ('#SBATCH -N 1 --ntasks-per-node 2 -J "a:b+c" -t 0:05:00   # note\n##SBATCH -N 4\n# a comment\n\n'
            "echo hi\n#SBATCH -N 3")
    job = hold(shared, body=body)
    assert job["NumNodes"] == "1-1" and job["JobName"] == "a:b+c" and job["TimeLimit"] == "00:05:00" and job["NumTasks"] == "2"


def test_sub02_who_goes_before_whom(shared):
    script = shared.script("#SBATCH -J script -t 1 -p debug\ntrue")
    job = shared.submit("-H", "-t", "3", script, env={"SBATCH_TIMELIMIT": "2", "SBATCH_PARTITION": "short"})
    got = shared.job(job)
    assert (got["JobName"], got["Partition"], got["TimeLimit"]) == ("script", "short", "00:03:00")
    shared.run(["scancel", str(job)])


def test_sub02_a_wrong_directive_names_its_line(shared):
    got = shared.run(["sbatch", shared.script("#SBATCH -t 5\n#SBATCH --bogus-option=1\ntrue")], check=False)
    assert got.returncode == 255 and "unrecognized option '--bogus-option=1'" in got.stderr and "line 3" in got.stderr


def test_sub03_a_long_array_on_stdin(shared):
    text = "#!/bin/sh\n" + "".join(f"# {i}\n" for i in range(200000)) + "echo T$SLURM_ARRAY_TASK_ID\n"
    job = int(shared.run(["sbatch", "--parsable", "--array=1-3", "/dev/stdin"], input=text).stdout)
    wait_gone(shared, job)
    assert [shared.output(job, f"slurm-{{}}_{t}.out") for t in (1, 2, 3)] == ["T1\n", "T2\n", "T3\n"]


def test_sub04_relative_paths_follow_chdir(shared):
    (shared.work / "w" / "o").mkdir(parents=True)
    job = shared.submit("-D", shared.work / "w", "-o", "o/%x.txt", "-J", "z", "--wrap", "pwd", cwd="/tmp")
    shared.wait_state(job, "COMPLETED")
    assert (shared.work / "w" / "o" / "z.txt").read_text() == f"{shared.work}/w\n"


def test_sub05_one_memory_option_at_a_time(shared):
    both = shared.script("#SBATCH --mem=1G\n#SBATCH --mem-per-cpu=100\ntrue")
    got = shared.run(["sbatch", both], check=False)
    assert got.returncode == 1 and got.stdout == ""
    assert got.stderr == "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n"
    job = hold(shared, "--mem-per-cpu=100", body="#SBATCH --mem=1G\ntrue")
    assert job["MinMemoryCPU"] == "100M"
    job = hold(shared, "--mem=200", body="#SBATCH --mem-per-cpu=100\ntrue")
    assert job["MinMemoryNode"] == "200M"


def test_sub06_the_outer_job_is_left_behind(shared):
    inner = "sbatch --parsable -W -o inner.txt --mem=200 --wrap env"
    job = shared.submit("--mem-per-cpu=100", "--gres=gpu:1", "-o", "outer.txt", "--wrap", inner)
    shared.wait_state(job, "COMPLETED")
    env = (shared.work / "inner.txt").read_text().splitlines()
    assert "SLURM_MEM_PER_NODE=200" in env
    for name in ("SLURM_MEM_PER_CPU", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES", "SLURM_GPUS_ON_NODE"):
        assert not any(line.startswith(name + "=") for line in env), name


@pytest.mark.root
def test_sub07_the_script_is_readable_wherever_the_directory_is(shared):
    job = shared.submit("-D", "/no/such", "-o", shared.work / "sub07.txt", "--wrap", "pwd", uid=NOBODY)
    shared.wait_state(job, "COMPLETED")
    text = (shared.work / "sub07.txt").read_text()
    assert text.endswith("/tmp\n") and "/no/such" in text


def test_sub08_the_comment_comes_back(shared):
    job = shared.submit("-H", "-J", "bk", "--comment=https://ci/x?a=1,b é", "--wrap", "true")
    assert shared.run(["squeue", "--name=bk", "-h", "--format=%k,%A"]).stdout == f"https://ci/x?a=1,b é,{job}\n"
    assert shared.sacct(job, "Comment")["Comment"] == "https://ci/x?a=1,b é"
    shared.run(["scancel", str(job)])


def test_sub09_wait_returns_the_highest_code(shared):
    assert shared.run(["sbatch", "-W", "--wrap", "exit 7"], check=False).returncode == 7
    got = shared.run(["sbatch", "-W", "--array=0-2", "--wrap", 'test $SLURM_ARRAY_TASK_ID = 1 && exit 3; true'], check=False)
    assert got.returncode == 3
    got = shared.run(["sbatch", "-W", "--wrap", "kill -9 $$"], check=False)
    assert got.returncode == 1


def test_sub09_wait_for_what_is_cancelled(shared):
    codes = []
    waiter = threading.Thread(target=lambda: codes.append(
        shared.run(["sbatch", "-W", "-J", "sub09", "--array=0-3%1", "--wrap", "sleep 60"], check=False).returncode))
    waiter.start()
    wait_for(lambda: rows(shared, "%i", "-n", "sub09", "-t", "R"))
    shared.run("scancel -n sub09")
    waiter.join(20)
    assert codes == [1]


def test_sub09_wait_over_a_change_of_the_controller(cluster):
    codes = []
    waiter = threading.Thread(target=lambda: codes.append(
        cluster.run(["sbatch", "-W", "--array=0-1", "--wrap", "sleep 2; exit 4"], check=False).returncode))
    waiter.start()
    wait_for(lambda: rows(cluster, "%i", "-t", "R"))
    cluster.ctld.restart(signal.SIGKILL)
    waiter.join(30)
    assert codes == [4]


def test_sub10_the_set_counts(shared):
    assert hold(shared, "--array=0-99,0-99,5")["ArrayTaskId"] == "0-99"
    got = shared.run(["sbatch", "--array=1001", "--wrap", "true"], check=False)
    assert (got.returncode, got.stderr) == (1, "sbatch: error: Batch job submission failed: Invalid job array specification\n")


@pytest.mark.parametrize("export, want", [
    ("A,C=x y", {"A": "1", "B": None, "C": "x y"}), ("NONE", {"A": None}), ("NIL", {"A": None, "HOME": None}),
    ("ALL,A=2", {"A": "2", "B": "2"}), ("ALL", {"A": "1"})])
def test_sub11_export(shared, export, want):
    job = shared.submit("-o", "sub11.txt", f"--export={export}", "--wrap", "env", env={"A": "1", "B": "2"})
    shared.wait_state(job, "COMPLETED")
    env = dict(line.split("=", 1) for line in (shared.work / "sub11.txt").read_text().splitlines() if "=" in line)
    assert {k: env.get(k) for k in want} == want and env["SLURM_JOB_ID"] == str(job)


def test_sub12_several_partitions(new_cluster):
    c = new_cluster(nodes=2, cpus=1, conf='\n[[partitions]]\nname = "main"\nnodes = "n1"\ndefault = true\n'
                                          '\n[[partitions]]\nname = "short"\nnodes = "n2"\nmax_time = "10:00"\n')
    full = c.submit("-p", "main", "--wrap", "sleep 60")
    c.wait_state(full, "RUNNING")
    job = c.submit("-p", "main,short", "-t", "5", "--wrap", "sleep 5")
    c.wait_state(job, "RUNNING")
    assert c.job(job)["Partition"] == "short"
    held = c.submit("-H", "-p", "main,short", "--wrap", "true")
    assert rows(c, "%P", "-j", held) == [["main,short"]]


# ---- QRY ----


def test_qry01_unknown_ids(shared):
    known = shared.submit("-H", "--wrap", "true")
    got = shared.run("squeue -j 99999999", check=False)
    assert (got.returncode, got.stderr) == (1, "slurm_load_jobs error: Invalid job id specified\n")
    assert rows(shared, "%i", "-j", f"{known},99999999") == [[str(known)]]
    assert shared.run("squeue -h -j 99999998,99999999").stdout == ""
    shared.run(["scancel", str(known)])


def test_qry05_state_names(shared):
    assert shared.run("squeue -t configuring,PD,cd -h").returncode == 0
    assert shared.run("sacct -s to,nf,OOM").returncode == 0
    got = shared.run("squeue -t bogus", check=False)
    assert got.returncode == 1 and got.stderr.startswith("squeue: error: Invalid job state specified: bogus\n")


def test_qry06_the_partition_is_that_of_now(shared):
    job = shared.submit("-H", "-p", "debug", "-t", "1", "--wrap", "true")
    shared.run(["scontrol", "update", f"jobid={job}", "partition=short"])
    assert rows(shared, "%i %P", "-j", job) == [[str(job), "short"]]
    assert [str(job)] in rows(shared, "%i", "-p", "short") and [str(job)] not in rows(shared, "%i", "-p", "debug")
    shared.run(["scancel", str(job)])


def test_qry09_two_names_of_a_task(shared):
    job = shared.submit("--array=1-4%1", "--wrap", "sleep 60")
    wait_for(lambda: rows(shared, "%i", "-j", job, "-t", "R"))
    ((shown, raw, array, task),) = rows(shared, "%i %A %F %K", "-j", job, "-t", "R")
    assert (shown, array, task) == (f"{job}_1", str(job), "1") and raw != str(job)
    assert rows(shared, "%i", "-j", f"{job}_1") == rows(shared, "%i", "-j", raw) == [[f"{job}_1"]]
    assert sorted(rows(shared, "%i", "-j", job)) == sorted([[f"{job}_[2-4%1]"], [f"{job}_1"]])
    assert [r[0] for r in rows(shared, "%i", "-r", "-j", job, "-t", "PD")] == [f"{job}_{t}" for t in (2, 3, 4)]
    assert rows(shared, "%i %t", "-j", f"{job}_3") == [[f"{job}_3", "PD"]]
    line = shared.run(["scontrol", "show", "job", f"{job}_1"]).stdout.split("\n")[0]
    assert line.startswith(f"JobId={raw} ArrayJobId={job} ArrayTaskId=1 ArrayTaskThrottle=1 ")
    got = shared.run(["scontrol", "show", "job", f"{job}_9"], check=False)
    assert (got.returncode, got.stderr) == (1, f"Job {job}_9 not found\n")
    both = shared.run(["sacct", "-X", "-n", "-P", "-o", "jobid,jobidraw", "-j", f"{job}_1"]).stdout
    assert both == f"{job}_1|{raw}\n"
    shared.run(["scancel", str(job)])
    wait_gone(shared, job)


# ---- DEP ----


def test_dep01_a_whole_array(shared):
    well = shared.submit("--array=0-2", "--wrap", "sleep 0.$SLURM_ARRAY_TASK_ID")
    child = shared.submit("-d", f"afterok:{well}", "--wrap", "true")
    shared.wait_state(child, "COMPLETED")
    assert set(states(shared, well).values()) == {"COMPLETED"}
    bad = shared.submit("--array=0-2", "--wrap", "sleep 0.2; test $SLURM_ARRAY_TASK_ID != 1")
    never, runs, one = (shared.submit("-d", f"{kind}:{bad}{task}", "--wrap", "true")
                        for kind, task in (("afterok", ""), ("afternotok", ""), ("afterok", "_2")))
    shared.wait_state(runs, "COMPLETED")
    shared.wait_state(one, "COMPLETED")
    assert shared.state_of(never) == "PENDING"
    wait_for(lambda: shared.job(never)["Reason"] == "DependencyNeverSatisfied")
    assert shared.job(never)["Dependency"] == f"afterok:{bad}_*(failed)"
    shared.run(["scancel", str(never)])


def test_dep02_aftercorr(shared):
    parent = shared.submit("--array=0-2", "--wrap", "sleep 0.3; test $SLURM_ARRAY_TASK_ID != 1")
    child = shared.submit("--array=0-2", "-d", f"aftercorr:{parent}", "--wrap", "true")
    wait_for(lambda: {k: v for k, v in states(shared, child).items() if v == "COMPLETED"}.keys() ==
             {f"{child}_0", f"{child}_2"}, 20)
    left = rows(shared, "%i %t %r", "-j", child)
    assert left in ([[f"{child}_1", "PD", "DependencyNeverSatisfied"]], [[f"{child}_[1]", "PD", "DependencyNeverSatisfied"]])
    shared.run(["scancel", str(child)])


def test_dep03_after_with_minutes(new_cluster):
    c = new_cluster(scale=20)
    first = c.submit("--wrap", "sleep 600")
    c.wait_state(first, "RUNNING")
    plain, later = c.submit("-d", f"after:{first}", "--wrap", "true"), c.submit("-d", f"after:{first}+1", "--wrap", "true")
    c.wait_over(plain)
    assert c.job(later)["Dependency"] == f"after:{first}+1(unfulfilled)"
    c.wait_state(later, "COMPLETED", timeout=30)
    import datetime
    begins = [datetime.datetime.fromisoformat(c.sacct(j, "Start")["Start"]) for j in (first, later)]
    assert 59 <= (begins[1] - begins[0]).total_seconds() < 90


def test_dep04_the_parent_is_over(shared):
    well, bad = shared.submit("--wrap", "true"), shared.submit("--wrap", "false")
    shared.wait_over(well)
    shared.wait_over(bad)
    shared.wait_state(shared.submit("-d", f"afterok:{well}", "--wrap", "true"), "COMPLETED")
    never = shared.submit("-d", f"afterok:{bad}", "--wrap", "true")
    wait_for(lambda: shared.job(never)["Reason"] == "DependencyNeverSatisfied")
    got = shared.run("sbatch -d afterok:9999999 --wrap true", check=False)
    assert (got.returncode, got.stderr) == (1, "sbatch: error: Batch job submission failed: Job dependency problem\n")
    shared.run(["scancel", str(never)])


def test_dep05_throttled_tasks_say_so(shared):
    job = shared.submit("--array=1-4%1", "--wrap", "sleep 60")
    wait_for(lambda: rows(shared, "%i", "-j", job, "-t", "R"))
    wait_for(lambda: rows(shared, "%i %r", "-j", job, "-t", "PD") == [[f"{job}_[2-4%1]", "JobArrayTaskLimit"]])
    shared.run(["scontrol", "update", f"jobid={job}", "arraytaskthrottle=2"])
    wait_for(lambda: len(rows(shared, "%i", "-j", job, "-t", "R")) == 2)
    got = shared.run(["scontrol", "update", f"jobid={shared.submit('-H', '-J', 'one', '--wrap', 'true')}", "arraytaskthrottle=2"],
                     check=False)
    assert got.returncode == 1
    assert got.stderr.startswith("scontrol: error: Update of ArrayTaskThrottle is only allowed on ArrayJobId\n"
                                 "Requested operation not supported on this system for job ")
    shared.run(["scancel", str(job)])
    shared.run("scancel -n one")
    wait_gone(shared, job)


def test_dep06_parts_of_an_array(shared):
    job = shared.submit("-H", "--array=1-6", "-o", "dep06-%a.txt", "--wrap",
                        "echo $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX "
                        "$SLURM_ARRAY_TASK_STEP $SLURM_ARRAY_JOB_ID")
    shared.run(["scancel", f"{job}_[2-3]"])
    assert rows(shared, "%i", "-j", job) == [[f"{job}_[1,4-6]"]]
    shared.run(["scontrol", "release", f"{job}_4"])
    wait_for(lambda: (shared.work / "dep06-4.txt").exists() and (shared.work / "dep06-4.txt").read_text() == f"4 6 1 6 1 {job}\n")
    wait_for(lambda: rows(shared, "%i", "-j", job) == [[f"{job}_[1,5-6]"]])
    shared.run(["scancel", "--state=PENDING", str(job)])
    wait_gone(shared, job)
    got = states(shared, job)
    assert got[f"{job}_4"] == "COMPLETED" and set(v for k, v in got.items() if k != f"{job}_4") == {"CANCELLED"}


def test_dep07_singleton(shared):
    jobs = [shared.submit("-J", "single", "-d", "singleton", "--wrap", "sleep 0.3") for _ in range(4)]
    most = 0
    while rows(shared, "%i", "-n", "single"):
        most = max(most, len(rows(shared, "%i", "-n", "single", "-t", "R,CG,CF")))
    starts = [shared.sacct(j, "Start")["Start"] for j in jobs]
    assert most == 1 and starts == sorted(starts)


def test_dep08_expressions(shared):
    bad, well = shared.submit("--wrap", "false"), shared.submit("--wrap", "sleep 0.5")
    any_of = shared.submit("-d", f"afterok:{bad}?afterok:{well}", "--wrap", "true")
    shared.wait_state(any_of, "COMPLETED")
    runs = shared.submit("--wrap", "sleep 60")
    shared.wait_state(runs, "RUNNING")
    job = shared.submit("-d", f"afterok:{well}:{runs},after:{runs}", "--wrap", "true")
    assert shared.job(job)["Dependency"] == f"afterok:{runs}(unfulfilled)"
    shared.run(["scontrol", "update", f"jobid={job}", "dependency="])
    shared.wait_state(job, "COMPLETED")
    for text in (f"afterok:{runs},afterok:{runs}?afterok:{runs}", "foo:1", f"afterok:{runs}_1"):
        got = shared.run(["sbatch", "-d", text, "--wrap", "true"], check=False)
        assert (got.returncode, got.stderr) == (1, "sbatch: error: Batch job submission failed: Job dependency problem\n"), text
    shared.run(["scancel", str(runs)])


# ---- #PBS, input variables ----


def test_pbs_lines(shared):
    job = hold(shared, body="#PBS -N pbsname\n#SBATCH -t 5\n#PBS -l walltime=1:00:00\ntrue")
    assert job["JobName"] == "pbsname" and job["TimeLimit"] == "00:05:00"
    job = hold(shared, "--ignore-pbs", body="#PBS -N pbsname\ntrue")
    assert job["JobName"] != "pbsname"
    got = shared.run(["sbatch", "-H", "--parsable", shared.script("#PBS -m abe\ntrue")])
    assert got.stderr == "sbatch: warning: #PBS -m is not honoured\n"
    shared.run(["scancel", got.stdout.strip()])


@pytest.mark.parametrize("env, key, value", [
    ({"SBATCH_ARRAY_INX": "2-4%1"}, "ArrayTaskId", "2-4%1"), ({"SBATCH_CONSTRAINT": "nofeat"}, None, "Invalid feature specification"),
    ({"SBATCH_EXCLUSIVE": "user"}, "Exclusive", "USER"), ({"SBATCH_GPUS": "a100:1"}, "TresPerJob", "gres/gpu:a100:1"),
    ({"SBATCH_GRES": "gpu:1"}, "TresPerNode", "gres/gpu:1"), ({"SBATCH_JOB_NAME": "byenv"}, "JobName", "byenv"),
    ({"SBATCH_MEM_PER_CPU": "50"}, "MinMemoryCPU", "50M"), ({"SBATCH_MEM_PER_NODE": "60"}, "MinMemoryNode", "60M"),
    ({"SBATCH_NO_REQUEUE": ""}, "Requeue", "0"), ({"SBATCH_OUTPUT": "/tmp/x"}, "StdOut", "/tmp/x"),
    ({"SBATCH_QOS": "q1"}, "QOS", "q1"), ({"SBATCH_ACCOUNT": "ac"}, "Account", "ac"), ({"SBATCH_TIMELIMIT": "3"}, "TimeLimit", "00:03:00"),
    ({"SBATCH_ERROR": "/tmp/e"}, "StdErr", "/tmp/e"), ({"SBATCH_INPUT": "/etc/passwd"}, "StdIn", "/etc/passwd"),
    ({"SBATCH_SIGNAL": "bogus"}, None, "Invalid --signal specification"), ({"SBATCH_CONTAINER": "x"}, None,
     "SBATCH_CONTAINER: option --container is not supported yet"), ({"SBATCH_HINT": "x"}, None, "unrecognized --hint argument"), ({"SBATCH_GPUS_PER_NODE": "2"}, "TresPerNode", "gres/gpu:2"),
    ({"SLURM_PARTITION": "short"}, "Partition", "debug"), ({"SLURM_NTASKS": "3"}, "NumTasks", "1")])
def test_input_variables(shared, env, key, value):
    got = shared.run(["sbatch", "-H", "--parsable", "-w", "n1", shared.script("true")], env=env, check=False)
    if key is None:
        assert got.returncode != 0 and value in got.stderr
        return
    assert got.returncode == 0, got.stderr
    line = shared.run(["scontrol", "-o", "show", "job", got.stdout.strip()]).stdout
    assert f" {key}={value} " in line or f" {key}={value}\n" in line
    shared.run(["scancel", got.stdout.strip()])


def test_exit_code_of_our_own_mistakes(shared):
    assert shared.run("sbatch -p nopart --wrap true", env={"SLURM_EXIT_ERROR": "77"}, check=False).returncode == 77
    assert shared.run("sbatch --bogus", env={"SLURM_EXIT_ERROR": "77"}, check=False).returncode == 77
    assert shared.run(["sbatch", "-W", "--wrap", "exit 3"], env={"SLURM_EXIT_ERROR": "77"}, check=False).returncode == 3


def test_umask_by_variable(shared):
    job = shared.submit("-o", "mask.txt", "--wrap", "umask", env={"SLURM_UMASK": "0027"})
    shared.wait_state(job, "COMPLETED")
    assert (shared.work / "mask.txt").read_text() == "0027\n"


def test_time_format_by_variable(shared):
    job = shared.submit("-H", "--wrap", "true")
    for command in (["squeue", "-h", "-o", "%V", "-j"], ["sacct", "-X", "-n", "-P", "-o", "submit", "-j"]):
        assert re.fullmatch(r"\d\d/\d\d/\d\d\n", shared.run([*command, str(job)], env={"SLURM_TIME_FORMAT": "%d/%m/%y"}).stdout)
    assert "SubmitTime=today" in shared.run(["scontrol", "show", "job", str(job)], env={"SLURM_TIME_FORMAT": "today%n"}).stdout
    shared.run(["scancel", str(job)])


def test_all_columns(shared):
    job = shared.submit("-H", "-J", "allcols", "--wrap", "true")
    head, line = shared.run(["squeue", "-o", "%all", "-j", str(job)]).stdout.splitlines()
    assert head.startswith("ACCOUNT|TRES_PER_NODE|MIN_CPUS|") and head.endswith("|WORK_DIR ") and "allcols" in line.split("|")
    head, *lines = shared.run("sinfo -o %all").stdout.splitlines()
    assert head.startswith("AVAIL|ACTIVE_FEATURES|CPUS|") and head.endswith("|THREADS ") and lines
    got = shared.run("squeue -O ALL")
    assert got.stdout.split("\n")[0] == "" and got.stderr == "squeue: error: Invalid job format specification: ALL\n"
    shared.run(["scancel", str(job)])
