# SPDX-License-Identifier: Apache-2.0
"""A batch job really runs: from sbatch to its output, its exit code and its end."""
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import pytest

from spurtest import NOBODY, OVER, Cluster, wait_for

SHARED = {"cpus": 4}
ROOT = os.geteuid() == 0


def ended(c, *sbatch, body=None, **run):
    """Submits, waits for the end, returns (id, sacct row)."""
    job = c.batch(body, *sbatch, **run) if body is not None else c.submit(*sbatch, **run)
    c.wait_over(job)
    return job, c.sacct(job, "State,ExitCode")


# ---- how a script is given ----


@pytest.mark.sanitize
def test_script_file(shared):
    job = shared.batch('echo "hello from $SLURM_JOB_ID"')
    shared.wait_state(job, "COMPLETED")
    assert shared.output(job) == f"hello from {job}\n"


def test_sbatch_prints_the_id(shared):
    got = shared.run("sbatch --wrap true")
    assert re.fullmatch(r"Submitted batch job \d+\n", got.stdout) and got.stderr == ""


def test_parsable_prints_the_id_alone(shared):
    got = shared.run("sbatch --parsable --wrap true")
    assert re.fullmatch(r"\d+\n", got.stdout) and got.stderr == ""


def test_parsable_holds_nothing_else_with_a_warning(shared):
    got = shared.run(["sbatch", "--parsable", "-N", "99", "-n", "1", "--wrap", "true"])
    assert re.fullmatch(r"\d+\n", got.stdout)
    assert "can't run 1 processes on 99 nodes, setting nnodes to 1" in got.stderr


def test_script_on_stdin(shared):
    job = int(shared.run("sbatch --parsable", input="#!/bin/bash\n#SBATCH -J fromstdin\necho stdin script $SLURM_JOB_NAME\n").stdout)
    shared.wait_state(job, "COMPLETED")
    assert shared.output(job) == "stdin script fromstdin\n"


def test_wrap_is_a_sh_script(shared):
    job, row = ended(shared, "--wrap", "echo $0 a b | grep -c slurm_script; echo $((40 + 2))")
    assert shared.output(job) == "1\n42\n" and row["State"] == "COMPLETED"
    assert shared.job(job)["JobName"] == "wrap"


def test_arguments_reach_the_script(shared):
    job = shared.submit(shared.script('printf "%s|" "$#" "$@"'), "a b", "-c", "")
    shared.wait_state(job, "COMPLETED")
    assert shared.output(job) == "3|a b|-c||"


def test_the_interpreter_is_the_first_line(shared):
    job = shared.submit(shared.script("import sys\nprint(sys.version_info[0])", shebang="#!/usr/bin/env python3"))
    shared.wait_state(job, "COMPLETED")
    assert shared.output(job) == "3\n"


@pytest.mark.parametrize("text, message", [
    ("echo no shebang\n", "This does not look like a batch script.  The first"),
    ("", "Batch script is empty!"),
    ("#!/bin/bash\r\ntrue\r\n", "Batch script contains DOS line breaks"),
    ("#!/bin/bash\n\0x\n", "contain a NULL character"),
    ("#!/bin/bash\n#SBATCH --bogus=1\n", "unrecognized option '--bogus=1'"),
    ("#!/bin/bash\n#SBATCH -n x\n", 'Invalid numeric value "x" for --ntasks.'),
])
def test_scripts_that_are_refused(shared, text, message):
    before = shared.queue("-t", "all")
    path = shared.work / "refused.sh"
    path.write_bytes(text.encode())
    got = shared.run(["sbatch", str(path)], check=False)
    assert got.returncode != 0 and message in got.stderr and got.stdout == ""
    assert shared.queue("-t", "all") == before


def test_no_such_script(shared):
    got = shared.run("sbatch nofile.sh", check=False)
    assert (got.returncode, got.stderr) == (1, "sbatch: error: Unable to open file nofile.sh\n")


def test_a_script_that_is_too_large_is_told(shared):
    path = shared.work / "large.sh"
    path.write_text("#!/bin/bash\n" + "#" * 20_000_000)
    got = shared.run(["sbatch", str(path)], check=False)
    assert got.returncode == 1 and "Batch job submission failed: Pathname of a file, directory or other parameter too long" in got.stderr


def test_an_environment_that_is_too_large_is_told(shared):
    big = {f"BIG{i}": "x" * 100_000 for i in range(15)}
    got = shared.run(["sbatch", "--wrap", "true"], env=big, check=False)
    assert got.returncode == 0 or "environment" in got.stderr.lower() or "too long" in got.stderr
    if got.returncode == 0:  # it fits: then it arrives whole
        job = int(got.stdout.split()[-1])
        shared.wait_state(job, "COMPLETED")


# ---- #SBATCH ----


def test_directives(shared):
    job = shared.submit("-H", shared.script(
        "#SBATCH -N 1 --ntasks 2 -J \"a:b+c\" -t 0:05:00   # a note\n  #SBATCH -J indented\n##SBATCH -J double\n"
        "#sbatch -J lower\n#SBATCH --comment='x y'\necho hi\n#SBATCH -J late"))
    got = shared.job(job)
    assert (got["JobName"], got["TimeLimit"], got["NumTasks"], got["Comment"]) == ("a:b+c", "00:05:00", "2", "x y")
    shared.run(["scancel", str(job)])


def test_the_command_line_wins_over_the_script(shared):
    path = shared.script("#SBATCH -J fromfile -t 5")
    job = shared.submit("-H", "-J", "fromcli", path)
    assert (shared.job(job)["JobName"], shared.job(job)["TimeLimit"]) == ("fromcli", "00:05:00")
    job = int(shared.run(["sbatch", "--parsable", "-H", str(path)], env={"SBATCH_JOB_NAME": "fromenv"}).stdout)
    assert shared.job(job)["JobName"] == "fromenv"
    shared.run("scancel -u root" if ROOT else "scancel --me")


@pytest.mark.parametrize("option, field, want", [
    (["-J", "nm"], "JobName", "nm"), (["-n", "3"], "NumTasks", "3"), (["-c", "2"], "CPUs/Task", "2"),
    (["-t", "1-2:03:04"], "TimeLimit", "1-02:04:00"), (["--time=90"], "TimeLimit", "01:30:00"),
    (["--comment", "a=1,b c"], "Comment", "a=1,b c"), (["-A", "ml"], "Account", "ml"), (["-q", "high"], "QOS", "high"),
    (["--nice=7"], "Nice", "7"), (["-p", "debug"], "Partition", "debug"), (["-N", "2"], "NumNodes", "2"),
    (["-D", "/tmp"], "WorkDir", "/tmp"), (["-w", "n2"], "ReqNodeList", "n2"), (["-x", "n1"], "ExcNodeList", "n1"),
])
def test_options_are_kept_and_shown(shared, option, field, want):
    job = shared.submit("-H", *option, "--wrap", "true")
    assert shared.job(job)[field].split("-")[0 if field == "NumNodes" else slice(None)] in (want, [want]) or \
        shared.job(job)[field] == want
    shared.run(["scancel", str(job)])


@pytest.mark.parametrize("option, code, message", [
    (["--bogus"], 255, "sbatch: unrecognized option '--bogus'"),
    (["-t", "1:2:3:4:5"], 255, "sbatch: error: Invalid --time specification"),
    (["-n", "x"], 1, 'sbatch: error: Invalid numeric value "x" for --ntasks.'),
    (["-n", "0"], 1, 'sbatch: error: Invalid numeric value "0" for --ntasks.'),
    (["--begin=25:99"], 255, "sbatch: error: Invalid --begin specification"),
    (["-p", "nopart"], 1, "sbatch: error: Batch job submission failed: Invalid partition name specified"),
    (["-d", "afterok:999999"], 1, "sbatch: error: Batch job submission failed: Job dependency problem"),
    (["-d", "bogus:1"], 1, "sbatch: error: Batch job submission failed: Job dependency problem"),
    (["-w", "nonode"], 1, "sbatch: error: Batch job submission failed: Invalid node name specified"),
    (["--mem=999999G"], 1, "sbatch: error: Batch job submission failed: Requested node configuration is not available"),
    (["--mem=5X"], 255, "sbatch: error: Invalid --mem specification"),
])
def test_options_that_are_refused(shared, option, code, message):
    before = shared.queue("-t", "all")
    got = shared.run(["sbatch", *option, "--wrap", "true"], check=False)
    assert message in got.stderr and got.returncode == code and got.stdout == ""
    assert shared.queue("-t", "all") == before


@pytest.mark.parametrize("option", ["--bb=x", "--stepmgr", "--container=x"])
def test_an_option_that_is_not_there_yet_is_refused_by_name(shared, option):
    got = shared.run(["sbatch", option, "--wrap", "true"], check=False)
    assert got.returncode != 0 and option.split("=")[0] in got.stderr and got.stdout == ""


def test_no_message_of_a_directive_is_lost_on_wrap_with_file(shared):
    got = shared.run(["sbatch", "--wrap", "true", "j.sh"], check=False)
    assert (got.returncode, got.stderr) == (1, "sbatch: error: Script arguments not permitted with --wrap option\n")


# ---- output ----


def test_output_patterns(shared):
    user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
    job, _ = ended(shared, "-w", "n1", "-J", "nm", "-o", "o-%x-%j-%J-%u-%N-%n-%t-%s-%%-%5j.out", "--wrap", "echo there")
    name = f"o-nm-{job}-{job}.batch-{user}-n1-0-0-batch-%-{job:05d}.out"
    assert (shared.work / name).exists(), sorted(p.name for p in shared.work.glob("o-nm*"))
    assert (shared.work / name).read_text() == "there\n"


def test_error_file(shared):
    job, _ = ended(shared, "-o", "both-%j.out", "-e", "both-%j.err", "--wrap", "echo out; echo err >&2")
    assert shared.output(job, "both-{}.out") == "out\n" and shared.output(job, "both-{}.err") == "err\n"


def test_stderr_goes_with_stdout_unless_told(shared):
    job, _ = ended(shared, "--wrap", "echo out; echo err >&2")
    assert shared.output(job) == "out\nerr\n"


def test_input_file(shared):
    (shared.work / "in.txt").write_text("given\n")
    job, _ = ended(shared, "-i", "in.txt", "--wrap", "cat")
    assert shared.output(job) == "given\n"


def test_stdin_is_empty_unless_told(shared):
    job, row = ended(shared, "--wrap", "readlink /proc/self/fd/0; wc -c")
    assert shared.output(job) == "/dev/null\n0\n"


def test_open_mode(shared):
    for mode, want in (("append", "old\nnew\n"), ("truncate", "new\n")):
        (shared.work / "mode.out").write_text("old\n")
        ended(shared, "-o", "mode.out", f"--open-mode={mode}", "--wrap", "echo new")
        assert (shared.work / "mode.out").read_text() == want


def test_output_directory_is_made_where_it_can(shared):
    ended(shared, "-o", "made/sub/x.out", "--wrap", "echo x")
    assert (shared.work / "made/sub/x.out").read_text() == "x\n"


def test_output_that_cannot_be_opened_fails_the_job(shared):
    _, row = ended(shared, "-o", "/proc/nodir/x.out", "--wrap", "true")
    assert (row["State"], row["ExitCode"]) == ("FAILED", "0:53")


def test_a_missing_working_directory_is_tmp_and_told(shared):
    job, row = ended(shared, "-D", "/nodir", "-o", str(shared.work / "d.out"), "--wrap", "pwd")
    text = (shared.work / "d.out").read_text()
    assert row["State"] == "COMPLETED" and text.splitlines()[-1] == "/tmp" and "couldn't chdir to `/nodir'" in text


def test_relative_output_follows_chdir(shared):
    (shared.work / "w").mkdir(exist_ok=True)
    os.chmod(shared.work / "w", 0o777)
    ended(shared, "-D", str(shared.work / "w"), "-o", "z.txt", "--wrap", "pwd")
    assert (shared.work / "w" / "z.txt").read_text() == f"{shared.work}/w\n"


@pytest.mark.parametrize("export", ["ALL", "NONE"])
def test_submit_dir_is_where_sbatch_was_started(shared, export):
    job, _ = ended(shared, "-D", "/", "--export", export, "-o", str(shared.work / "s.out"), "--wrap", "echo $PWD $SLURM_SUBMIT_DIR $SPUR_SUBMIT_DIR",
                   env={**shared.env, "SLURM_SUBMIT_DIR": "/left/over"})
    assert (shared.work / "s.out").read_text() == f"/ {shared.work} {shared.work}\n"


# ---- how jobs end ----


@pytest.mark.sanitize
@pytest.mark.parametrize("body, state, code, reason", [
    ("exit 0", "COMPLETED", "0:0", "None"), ("exit 3", "FAILED", "3:0", "NonZeroExitCode"),
    ("exit 130", "FAILED", "130:0", "NonZeroExitCode"), ("exit 256", "COMPLETED", "0:0", "None"),
    ("kill -9 $$", "FAILED", "0:9", "RaisedSignal:9(Killed)"), ("kill -TERM $$", "FAILED", "0:15", "RaisedSignal:15(Terminated)"),
])
def test_exit_codes_and_signals(shared, body, state, code, reason):
    job, row = ended(shared, body=body)
    assert (row["State"], row["ExitCode"]) == (state, code)
    shown = shared.job(job)
    assert (shown["JobState"], shown["Reason"], shown["ExitCode"]) == (state, reason, code)


def test_a_bad_interpreter_is_2(shared):
    job = shared.submit(shared.script("true", shebang="#!/nosuch/interp"))
    shared.wait_over(job)
    assert shared.sacct(job, "State,ExitCode") == {"State": "FAILED", "ExitCode": "2:0"}
    assert "bad interpreter" in shared.output(job)


@pytest.mark.parametrize("body, code", [("exit 7", 7), ("true", 0), ("kill -9 $$", 1)])
def test_wait_returns_the_exit_code(shared, body, code):
    assert shared.run(["sbatch", "-W", "--wrap", body], check=False).returncode == code


def test_wait_goes_on_at_an_interrupt(shared):
    p = subprocess.Popen(["sbatch", "--parsable", "-W", "--wrap", "while [ ! -e go ]; do sleep 0.05; done; exit 6"],
                         env=shared.env, cwd=shared.work, stdout=subprocess.PIPE, text=True)
    job = int(p.stdout.readline())
    ignored = lambda: int(re.search(r"SigIgn:\s*(\w+)", pathlib.Path(f"/proc/{p.pid}/status").read_text())[1], 16)
    wait_for(lambda: ignored() & 1 << signal.SIGINT - 1, 10)
    p.send_signal(signal.SIGINT)
    shared.wait_state(job, "RUNNING")
    (pathlib.Path(shared.work) / "go").touch()
    assert p.wait(20) == 6


def test_wait_prints_the_id_at_once_and_a_cancel_is_not_0(shared):
    p = subprocess.Popen(["sbatch", "--parsable", "-W", "--wrap", "sleep 100"], env=shared.env, cwd=shared.work,
                         stdout=subprocess.PIPE, text=True)
    job = int(p.stdout.readline())
    shared.wait_state(job, "RUNNING")
    shared.run(["scancel", str(job)])
    assert p.wait(20) == 1


# ---- environment ----


def environment(c, *options, env=None, **run):
    job = c.batch("env -0 > env.$SLURM_JOB_ID", *options, env=env, **run)
    c.wait_state(job, "COMPLETED")
    text = (c.work / f"env.{job}").read_text()
    return job, dict(line.split("=", 1) for line in text.split("\0") if line)


def test_job_environment_is_slurms(shared):
    job, env = environment(shared, "-J", "golden", "-n", "2", "-t", "5", "-w", "n1")
    want = {
        "SLURMD_NODENAME": "n1", "SLURM_CLUSTER_NAME": "test", "SLURM_CPUS_ON_NODE": "2", "SLURM_GTIDS": "0", "SLURM_JOBID": str(job),
        "SLURM_JOB_CPUS_PER_NODE": "2", "SLURM_JOB_GID": str(os.getgid()), "SLURM_JOB_ID": str(job), "SLURM_JOB_NAME": "golden",
        "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_PARTITION": "debug", "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_LOCALID": "0", "SLURM_NNODES": "1", "SLURM_NODEID": "0", "SLURM_NODELIST": "n1", "SLURM_NPROCS": "2", "SLURM_NTASKS": "2",
        "SLURM_PRIO_PROCESS": "0", "SLURM_PROCID": "0", "SLURM_STEPID": "-5", "SLURM_STEP_ID": "-5", "SLURM_SUBMIT_DIR": str(shared.work),
        "SLURM_SUBMIT_HOST": os.uname().nodename, "SLURM_TASKS_PER_NODE": "2", "ENVIRONMENT": "BATCH", "TMPDIR": "/tmp",
        "SLURM_JOB_EXCLUSIVE": "NO", "SLURM_JOB_OVERSUBSCRIBE": "NO", "SLURM_OOM_KILL_STEP": "0",
    }
    assert {k: env.get(k) for k in want} == want
    assert re.fullmatch(r"s[0-9A-Za-z]{13}", env["SLURM_JOB_SLUID"])
    assert int(env["SLURM_JOB_END_TIME"]) - int(env["SLURM_JOB_START_TIME"]) == 300
    assert int(env["SLURM_TASK_PID"]) > 1
    assert env["SLURM_JOB_USER"] == env["USER"] if "USER" in env else True


def test_each_slurm_variable_has_its_spur_twin(shared):
    _, env = environment(shared, "-n", "2")
    ours = {k for k in env if k.startswith("SLURM_")}
    assert len(ours) > 30
    lacking = sorted(k for k in ours if env.get("SPUR_" + k[6:]) != env[k])
    assert not lacking


def test_memory_and_cpus_per_task_in_the_environment(shared):
    _, env = environment(shared, "-n", "2", "-c", "2", "--mem=300M")
    assert (env["SLURM_MEM_PER_NODE"], env["SLURM_CPUS_PER_TASK"], env["SLURM_CPUS_ON_NODE"]) == ("300", "2", "4")
    _, env = environment(shared)
    assert "SLURM_MEM_PER_NODE" not in env and "SLURM_CPUS_PER_TASK" not in env


@pytest.mark.parametrize("export, have, lack", [
    ([], {"A": "1", "B": "2"}, []),
    (["--export=ALL,C=x y"], {"A": "1", "B": "2", "C": "x y"}, []),
    (["--export=A,C=x"], {"A": "1", "C": "x"}, ["B"]),
    (["--export=NONE"], {}, ["A", "B"]),
    (["--export=ALL,BAD"], {"A": "1"}, ["BAD"]),
    (["--export=NIL"], {}, ["A", "B"]),
])
def test_export(shared, export, have, lack):
    _, env = environment(shared, *export, env={"A": "1", "B": "2"})
    assert {k: env.get(k) for k in have} == have
    assert not [k for k in lack if k in env]
    assert env["SLURM_JOB_ID"]


def test_a_job_from_inside_a_job_does_not_inherit_its_shape(shared):
    job = shared.batch("sbatch --parsable -W --wrap 'env -0 > inner.env' > inner.id", "-n", "2", "-c", "2", "--mem=100", "-w", "n1")
    shared.wait_state(job, "COMPLETED", timeout=30)
    env = dict(line.split("=", 1) for line in (shared.work / "inner.env").read_text().split("\0") if line)
    assert env["SLURM_JOB_ID"] == (shared.work / "inner.id").read_text().strip() != str(job)
    assert "SLURM_MEM_PER_NODE" not in env and "SLURM_CPUS_PER_TASK" not in env and "SPUR_MEM_PER_NODE" not in env


# ---- as whom ----


def test_umask_and_directory_are_the_submitters(shared):
    (shared.work / "um").mkdir(exist_ok=True)
    job = int(shared.run(["sbatch", "--parsable", "--wrap", "umask; pwd; touch made"], cwd=shared.work / "um", umask=0o027).stdout)
    shared.wait_state(job, "COMPLETED")
    assert (shared.work / "um" / f"slurm-{job}.out").read_text() == f"0027\n{shared.work}/um\n"
    assert (shared.work / "um" / "made").stat().st_mode & 0o777 == 0o640


@pytest.mark.root
@pytest.mark.sanitize
def test_the_job_runs_as_its_user(shared):
    job = shared.batch("id -u; id -g; id -G; grep -E '^(Uid|Gid|Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)' /proc/self/status; ls -l /proc/$$/fd | wc -l",
                       uid=NOBODY)
    shared.wait_state(job, "COMPLETED")
    lines = shared.output(job).splitlines()
    gid = str(os.stat(shared.work / f"slurm-{job}.out").st_gid)
    assert lines[0] == str(NOBODY) and lines[1] == gid and str(0) not in lines[2].split()
    status = dict(line.split(":\t") for line in lines[3:-1] if ":\t" in line)
    assert set(status["Uid"].split()) == {str(NOBODY)}
    assert {int(status[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert os.stat(shared.work / f"slurm-{job}.out").st_uid == NOBODY


@pytest.mark.parametrize("uid", [None, pytest.param(NOBODY, marks=pytest.mark.root)])
def test_no_descriptor_is_left_over(shared, uid):
    job = shared.batch("ls -l /proc/$$/fd\ntrue", uid=uid)
    shared.wait_state(job, "COMPLETED")
    kept = {line.split()[-3]: line.split()[-1] for line in shared.output(job).splitlines() if " -> " in line}
    kept.pop("255", None)  # bash's own handle of the script
    assert set(kept) == {"0", "1", "2"}, kept


@pytest.mark.root
def test_limits_are_the_submitters(shared):
    got = shared.run(["bash", "-c", "ulimit -S -n 321; ulimit -S -c 0; sbatch --parsable --wrap 'ulimit -S -n; ulimit -S -c'"], uid=NOBODY)
    job = int(got.stdout)
    shared.wait_state(job, "COMPLETED")
    assert shared.output(job) == "321\n0\n"


@pytest.mark.root
def test_signals_are_as_in_a_fresh_process(shared):
    job = shared.batch("grep -E '^Sig(Blk|Ign)' /proc/self/status; ps -o ni= -p $$", uid=NOBODY)
    shared.wait_state(job, "COMPLETED")
    lines = shared.output(job).split()
    assert int(lines[1], 16) == 0 and int(lines[3], 16) == 0 and lines[4] == "0"


# ---- nothing of a job lives on ----

LEAVES = """
setsid bash -c 'exec -a leftover.a.$SLURM_JOB_ID sleep 1000' &
(setsid bash -c '(setsid bash -c "exec -a leftover.b.$SLURM_JOB_ID sleep 1000" &) &' &)
nohup bash -c 'exec -a leftover.c.$SLURM_JOB_ID sleep 1000' >/dev/null 2>&1 &
env -i setsid bash -c "exec -a leftover.d.$SLURM_JOB_ID sleep 1000" </dev/null >/dev/null 2>&1 &
while [ $(grep -l leftover..*.$SLURM_JOB_ID /proc/[0-9]*/cmdline 2>/dev/null | wc -l) -lt 4 ]; do :; done
"""


def leftovers(job):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if text.startswith(b"leftover.") and text.split(b"\0")[0].endswith(b".%d" % job):
            found.append(text.split(b"\0")[0].decode())
    return sorted(found)


@pytest.mark.parametrize("uid", [None, pytest.param(NOBODY, marks=pytest.mark.root)])
def test_double_forks_and_setsid_die_with_the_job(shared, uid):
    job = shared.batch(LEAVES + "exit 0", uid=uid)
    shared.wait_state(job, "COMPLETED")
    assert leftovers(job) == []


def test_a_cancelled_job_leaves_nothing(shared):
    job = shared.batch("trap '' TERM\n" + LEAVES + "touch ready.$SLURM_JOB_ID; while :; do sleep 1000; done")
    wait_for(lambda: (shared.work / f"ready.{job}").exists())
    assert len(leftovers(job)) == 4
    shared.run(["scancel", "-s", "KILL", str(job)])  # as Slurm: the job's end, with SIGTERM, KillWait and SIGKILL
    shared.wait_over(job, timeout=60)
    assert leftovers(job) == []


def test_the_step_daemon_is_gone_too(shared):
    job = shared.batch("sleep 0.1")
    shared.wait_over(job)
    wait_for(lambda: not [1 for _, cmdline in shared.ours() if b"spurstepd" in cmdline and str(job).encode() in cmdline],
             what="the job's spurstepd to be gone")


# ---- cancel, hold, begin, nice, dependencies ----


def test_cancel_a_running_job(shared):
    job = shared.batch("sleep 1000")
    shared.wait_state(job, "RUNNING")
    shared.run(["scancel", str(job)])
    shared.wait_state(job, "CANCELLED")
    row = shared.sacct(job, "State,ExitCode")
    assert row["State"] == f"CANCELLED by {os.getuid()}" and row["ExitCode"] in ("0:0", "0:15")
    assert re.search(rf"\*\*\* JOB {job} ON n\d CANCELLED AT \d\d\d\d-\d\d-\d\dT", shared.output(job))


def test_cancel_a_waiting_job(shared):
    job = shared.submit("-H", "--wrap", "true")
    shared.run(["scancel", str(job)])
    assert shared.state_of(job) == "CANCELLED"
    assert not (shared.work / f"slurm-{job}.out").exists()


def test_a_job_that_never_ran_has_no_step(shared):
    job = shared.submit("-H", "--wrap", "true")
    shared.run(["scancel", str(job)])
    shared.wait_state(job, "CANCELLED")
    assert shared.run(f"sacct -n -P -j {job} -o jobid,alloccpus").stdout == f"{job}|0\n"


def test_cancel_says_what_slurm_says(shared):
    for args, code, err in [(["99999999"], 0, ""), ([], 1, "scancel: error: No job identification provided\n"),
                            (["abc"], 1, "scancel: error: Invalid job id abc\n"),
                            (["-u", "nobodyxyz"], 1, "scancel: error: Invalid user name: nobodyxyz\n")]:
        got = shared.run(["scancel", *args], check=False)
        assert (got.returncode, got.stderr) == (code, err)


def test_signal_a_running_job(shared):
    job = shared.batch("trap 'echo got usr1; exit 8' USR1; touch ready.$SLURM_JOB_ID; while :; do sleep 0.02; done")
    wait_for(lambda: (shared.work / f"ready.{job}").exists())
    shared.run(["scancel", "-s", "USR1", "-b", str(job)])
    shared.wait_state(job, "FAILED")
    assert shared.sacct(job, "ExitCode")["ExitCode"] == "8:0" and "got usr1" in shared.output(job)


def test_cancel_by_user(new_cluster):
    c = new_cluster()
    mine = c.submit("-H", "--wrap", "true")
    if ROOT:
        theirs = c.submit("-H", "--wrap", "true", uid=NOBODY)
        c.run("scancel -u nobody")
        assert c.queue() == {mine: "PENDING"}
        assert c.state_of(theirs) == "CANCELLED"
    c.run(["scancel", "-u", subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()])
    assert c.queue() == {}


def test_hold_and_release(shared):
    job = shared.submit("-H", "--wrap", "echo ran")
    assert shared.job(job)["Reason"] == "JobHeldUser" and shared.job(job)["Priority"] == "0"
    later = shared.batch("true")
    shared.wait_state(later, "COMPLETED")
    assert shared.state_of(job) == "PENDING"
    shared.run(["scontrol", "release", str(job)])
    shared.wait_state(job, "COMPLETED")
    job = shared.submit("--begin=now+1hour", "--wrap", "true")
    shared.run(["scontrol", "hold", str(job)])
    assert shared.job(job)["Reason"].startswith("JobHeld")
    got = shared.run("scontrol hold 99999999", check=False)
    assert got.returncode == 1 and "Invalid job id specified" in got.stderr
    shared.run(["scancel", str(job)])


def test_begin(shared):
    job = shared.submit("--begin=now+1hour", "--wrap", "true")
    wait_for(lambda: shared.job(job)["Reason"] == "BeginTime")
    assert shared.state_of(job) == "PENDING"
    soon = shared.submit("--begin=now+1", "--wrap", "true")
    shared.wait_state(soon, "COMPLETED")
    shared.run(["scancel", str(job)])


def test_afterok(shared):
    first = shared.batch("while [ ! -e go.$SLURM_JOB_ID ]; do sleep 0.02; done; echo first >> order.txt")
    second = shared.batch("echo second >> order.txt", "-d", f"afterok:{first}")
    wait_for(lambda: shared.job(second)["Reason"] == "Dependency")
    assert shared.job(second)["Dependency"] == f"afterok:{first}(unfulfilled)"
    shared.wait_state(first, "RUNNING")
    (shared.work / f"go.{first}").touch()
    shared.wait_state(second, "COMPLETED")
    assert (shared.work / "order.txt").read_text() == "first\nsecond\n"


def test_afterok_of_a_failed_job_never_starts(shared):
    first = shared.batch("exit 1")
    waits = shared.submit("-d", f"afterok:{first}", "--wrap", "true")
    runs = shared.submit("-d", f"afterany:{first}", "--wrap", "true")
    shared.wait_state(runs, "COMPLETED")
    wait_for(lambda: shared.job(waits)["Reason"] == "DependencyNeverSatisfied")
    assert shared.state_of(waits) == "PENDING"
    shared.run(["scancel", str(waits)])


def test_nice_decides_who_goes_first(new_cluster):
    c = new_cluster(cpus=1)
    blocker = c.batch("while [ ! -e go ]; do sleep 0.02; done")
    c.wait_state(blocker, "RUNNING")
    last = c.batch("echo last >> order.txt", "--nice=1000")
    first = c.batch("echo first >> order.txt")
    (c.work / "go").touch()
    c.wait_state(last, "COMPLETED")
    assert (c.work / "order.txt").read_text() == "first\nlast\n" and c.state_of(first) == "COMPLETED"


# ---- where ----


def test_node_lists(shared):
    a, b = shared.batch("echo $SLURMD_NODENAME", "-w", "n2"), shared.batch("echo $SLURMD_NODENAME", "-x", "n2")
    shared.wait_state(a, "COMPLETED")
    shared.wait_state(b, "COMPLETED")
    assert (shared.output(a), shared.output(b)) == ("n2\n", "n1\n")


def test_two_nodes(shared):
    job, env = environment(shared, "-N", "2", "-n", "4")
    assert (env["SLURM_JOB_NUM_NODES"], env["SLURM_JOB_NODELIST"], env["SLURM_NTASKS"]) == ("2", "n[1-2]", "4")
    assert env["SLURMD_NODENAME"] == "n1" and env["SLURM_JOB_CPUS_PER_NODE"] in ("2(x2)", "3,1", "1,3")
    assert shared.job(job)["NodeList"] == "n[1-2]"


def test_cpus_are_not_sold_twice(new_cluster):
    c = new_cluster(cpus=2)
    jobs = [c.batch("echo start >> log.txt; sleep 0.2; echo end >> log.txt") for _ in range(6)]
    for job in jobs:
        c.wait_state(job, "COMPLETED")
    running = most = 0
    for line in (c.work / "log.txt").read_text().split():
        running += 1 if line == "start" else -1
        most = max(most, running)
    assert most == 2


def test_memory_is_not_sold_twice(new_cluster):
    c = new_cluster(cpus=4, memory_mb=1000)
    first = c.batch("while [ ! -e go ]; do sleep 0.02; done", "--mem=600")
    second = c.batch("true", "--mem=600")
    c.wait_state(first, "RUNNING")
    wait_for(lambda: c.job(second)["Reason"] in ("Resources", "Priority"))
    assert c.state_of(second) == "PENDING"
    (c.work / "go").touch()
    c.wait_state(second, "COMPLETED")


# ---- time limits: a minute is two seconds on this clock ----


@pytest.fixture(scope="module")
def fast(request):
    with Cluster(scale=30) as c:
        yield c


def test_time_limit(fast):
    began = time.monotonic()
    job = fast.batch("trap 'echo got term; exit 0' TERM; sleep 1000 & wait", "-t", "1")
    fast.wait_state(job, "TIMEOUT", timeout=30)
    assert time.monotonic() - began > 1.5
    assert fast.sacct(job, "State,ExitCode") == {"State": "TIMEOUT", "ExitCode": "0:0"}
    assert fast.job(job)["Reason"] == "TimeLimit"
    assert f"*** JOB {job} ON n1 CANCELLED AT" in fast.output(job) and "DUE TO TIME LIMIT ***" in fast.output(job)


def test_time_limit_kills_after_kill_wait(fast):
    job = fast.batch("trap 'echo ignored' TERM; touch started; while :; do sleep 0.1; done", "-t", "1")
    fast.wait_state(job, "TIMEOUT", timeout=40)
    assert "ignored" in fast.output(job)


def test_cancel_kills_after_kill_wait(fast):
    job = fast.batch("trap 'echo ignored' TERM; touch stubborn; while :; do sleep 0.1; done")
    wait_for(lambda: (fast.work / "stubborn").exists())
    fast.run(["scancel", str(job)])
    fast.wait_state(job, "CANCELLED", timeout=20)
    assert "ignored" in fast.output(job)


def test_wait_of_a_job_over_its_limit_is_not_0(fast):
    assert fast.run(["sbatch", "-W", "-t", "1", "--wrap", "sleep 1000"], check=False, timeout=60).returncode != 0


# ---- commands ----


def test_squeue_lines(new_cluster):
    c = new_cluster()
    job = c.submit("-J", "avery-long-name", "--wrap", "sleep 1000")
    c.wait_state(job, "RUNNING")
    held = c.submit("-H", "--wrap", "true")
    user = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout.strip()
    lines = c.run("squeue").stdout.splitlines()
    assert lines[0] == "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
    assert re.fullmatch(rf" {{17}}{held}     debug     wrap {user:>8} PD       0:00      1 \(JobHeldUser\)", lines[1])
    assert re.fullmatch(rf" {{17}}{job}     debug avery-lo {user:>8}  R       \d:\d\d      1 n1", lines[2])
    assert c.run("squeue -h").stdout.splitlines() == lines[1:] or len(c.run("squeue -h").stdout.splitlines()) == 2
    assert c.run("spur squeue -h -o %i").stdout.split() == [str(held), str(job)]


def test_a_waiting_job_shows_its_partitions_limit(new_cluster):
    c = new_cluster(nodes=0, start=False)
    c.conf_path.write_text(c.conf_path.read_text() + PARTS)
    c.start()
    short, long = c.submit("-H", "-p", "short,long", "--wrap", "true"), c.submit("-H", "-p", "long", "--wrap", "true")
    assert c.run("squeue -h -S i -o '%l %L'").stdout == "10:00 10:00\nUNLIMITED UNLIMITED\n"
    assert "TimeLimit=00:10:00 " in c.run(f"scontrol show job {short}").stdout
    c.run(f"scancel {short} {long}")
    assert c.run("sacct -n -P -X -o timelimit").stdout == "00:10:00\nUNLIMITED\n"


PARTS = """
[[partitions]]
name = "short"
default_time = 10

[[partitions]]
name = "long"
"""


def test_squeue_of_what_is_not_there(shared):
    got = shared.run("squeue -j 99999999", check=False)
    assert (got.returncode, got.stderr) == (1, "slurm_load_jobs error: Invalid job id specified\n")


def test_ended_jobs_are_seen_only_when_asked_for(shared):
    job, _ = ended(shared, body="true")
    assert job not in shared.queue()
    assert shared.queue("-t", "all")[job] == "COMPLETED"


def test_a_new_id_is_known_everywhere_at_once(shared):
    for _ in range(20):
        job = shared.submit("-H", "--wrap", "true")
        assert shared.queue("-j", str(job)) == {job: "PENDING"}
        assert shared.sacct(job, "State") == {"State": "PENDING"}
        assert shared.job(job)["JobId"] == str(job)
        shared.run(["scancel", str(job)])


def test_sinfo(shared):
    lines = shared.run("sinfo").stdout.splitlines()
    assert lines[0] == "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST"
    assert lines[1].startswith("debug*       up   infinite ")
    nodes = shared.run("sinfo -h -N -o '%N %c %m'").stdout.split("\n")
    assert nodes[:2] == ["n1 4 4000", "n2 4 4000"]


def test_scontrol_shows_nodes_and_partitions(shared):
    node = shared.run("scontrol show node n1").stdout
    assert node.startswith("NodeName=n1 ") and "CPUTot=4" in node and "RealMemory=4000" in node
    part = shared.run("scontrol show partition debug").stdout
    assert part.startswith("PartitionName=debug\n") and "Nodes=n[1-2]" in part and "Default=YES" in part
    got = shared.run("scontrol show node nonode", check=False)
    assert (got.returncode, got.stdout) == (1, "Node nonode not found\n")


def test_scontrol_ping_and_version(shared):
    assert re.search(r"\(primary\) at \S+ is UP", shared.run("scontrol ping").stdout)
    assert shared.run("scontrol version").returncode == 0
    got = shared.run("scontrol bogus", check=False)
    assert (got.returncode, got.stderr.splitlines()[-1]) == (1, "invalid keyword: bogus")


def test_sacct(shared):
    job, _ = ended(shared, "-J", "acct", "-n", "2", "-A", "ml", "--wrap", "exit 3")
    lines = shared.run(["sacct", "-j", str(job)]).stdout.splitlines()
    assert lines[0] == "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode "
    assert lines[2] == f"{job:<12}       acct      debug         ml          2     FAILED      3:0 "
    assert lines[3] == f"{str(job) + '.batch':<12}      batch                    ml          2     FAILED      3:0 "
    assert len(shared.run(["sacct", "-X", "-n", "-j", str(job)]).stdout.splitlines()) == 1
    assert shared.run(["sacct", "-n", "-P", "-X", "-o", "jobid,State", "-j", str(job)]).stdout == f"{job}|FAILED\n"
    got = shared.run("sacct -o bogusfield", check=False)
    assert got.returncode != 0 and "bogusfield" in got.stderr


def test_sdiag(shared):
    text = shared.run("sdiag").stdout
    for word in ("sdiag output at", "Data since", "State loop longest gap", "Journal loop longest gap", "Append and fsync longest",
                 "Longest pass", "Proposals waiting", "Jobs pending"):
        assert word in text


@pytest.mark.parametrize("name", ["sbatch", "squeue", "sinfo", "scancel", "scontrol", "sacct", "sdiag"])
def test_each_command_also_by_its_spur_name(shared, name):
    by_link = shared.run([name, "--help"], check=False)
    by_spur = shared.run(["spur", name, "--help"], check=False)
    assert by_link.returncode == by_spur.returncode == 0
    assert "Usage: " in by_link.stdout and len(by_link.stdout.splitlines()) > 5
    assert by_spur.stdout.splitlines()[1:] == by_link.stdout.splitlines()[1:]


def test_controller_away_is_not_an_unknown_id(new_cluster):
    c = new_cluster(nodes=0)
    job = c.submit("-H", "--wrap", "true")
    c.ctld.kill()
    got = c.run(["squeue", "-j", str(job)], check=False)
    assert got.returncode == 1 and "Unable to contact slurm controller" in got.stderr and "Invalid job id" not in got.stderr


# ---- a start is all or nothing ----


def test_a_node_that_hangs_undoes_the_start(new_cluster):
    c = new_cluster(nodes=2, cpus=1, scale=10)
    c.nodes["n2"].process.send_signal(signal.SIGSTOP)
    try:
        job = c.batch("echo ran on $SLURM_JOB_NODELIST", "-N", "2", "-n", "2")
        small = c.batch("true", "-w", "n1")
        wait_for(lambda: c.state_of(small) == "COMPLETED" or c.state_of(job) == "PENDING", timeout=60)
        c.wait_state(small, "COMPLETED", timeout=60)  # n1 was given back
        assert c.state_of(job) not in ("RUNNING", *OVER - {"CANCELLED"}) or c.job(job)["Restarts"] != "0"
        assert not (c.work / f"slurm-{job}.out").exists()
    finally:
        c.nodes["n2"].process.send_signal(signal.SIGCONT)
    c.wait_state(job, "COMPLETED", timeout=60)
    assert c.output(job) == "ran on n[1-2]\n"


@pytest.mark.root
def test_a_script_that_is_still_open_for_writing_is_waited_for(new_cluster):
    """A daemon that starts many jobs at once has the descriptor of one script in the next one's child, for a moment."""
    c = new_cluster()
    caught = []

    def hold(path):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                fd = os.open(path, os.O_WRONLY)
            except OSError:
                continue
            caught.append(path)
            time.sleep(0.3)  # the length of the hindrance
            os.close(fd)
            return

    for job in range(1, 6):
        holder = threading.Thread(target=hold, args=(c.root / "n1" / "runs" / f"{job}.1" / "slurm_script",))
        holder.start()
        assert c.batch("true") == job
        c.wait_state(job, "COMPLETED")
        holder.join()
    assert caught
