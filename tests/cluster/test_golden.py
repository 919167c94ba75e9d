# SPDX-License-Identifier: Apache-2.0
"""What the commands print and return, to the byte, as recorded from Slurm 26.05; names, numbers and times are ours."""
import os
import pwd
import re
import subprocess

import pytest

from spurtest import NOBODY, wait_for

SHARED = {"cpus": 8, "memory_mb": 16000,
          "conf": '\n[[partitions]]\nname = "debug"\ndefault = true\nmax_time = "1h"\ndefault_time = "10m"\n'
                  '\n[[partitions]]\nname = "long"\nnodes = "n2"\n'}
ME = pwd.getpwuid(os.geteuid()).pw_name


def said(c, argv, **run):
    got = c.run(argv if isinstance(argv, str) else [str(a) for a in argv], check=False, **run)
    return got.returncode, got.stdout, got.stderr


@pytest.fixture(scope="module")
def sh(shared):
    """The files of the recording."""
    (shared.work / "s.sh").write_text("#!/bin/bash\n#SBATCH -J demo\n#SBATCH -n1\n#SBATCH -t 10\necho hello; sleep 120\n")
    (shared.work / "bad.sh").write_text("echo no shebang\n")
    (shared.work / "crlf.sh").write_bytes(b"#!/bin/bash\r\ntrue\r\n")
    (shared.work / "empty.sh").write_text("")
    (shared.work / "late.sh").write_text("\n#!/bin/bash\ntrue\n")
    (shared.work / "unknown.sh").write_text("#!/bin/bash\n#SBATCH -J x\n#SBATCH --bogus-option=1\n")
    (shared.work / "noarg.sh").write_text("#!/bin/bash\n#SBATCH\n#SBATCH -t\n")
    return shared


NO_SCRIPT = ("sbatch: error: This does not look like a batch script.  The first\n"
             "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
             "sbatch: error: For instance: #!/bin/sh\n")
FAILED = "sbatch: error: Batch job submission failed: "
TRY = 'Try "sbatch --help" for more information\n'


@pytest.mark.parametrize("argv, code, err", [
    (["bad.sh"], 1, NO_SCRIPT),
    (["late.sh"], 1, NO_SCRIPT),
    (["empty.sh"], 1, "sbatch: error: Batch script is empty!\n"),
    (["."], 1, "sbatch: error: Batch script is empty!\n"),
    (["nofile.sh"], 1, "sbatch: error: Unable to open file nofile.sh\n"),
    (["--mem", "1G", "extra", "s.sh"], 1, "sbatch: error: Unable to open file extra\n"),
    (["crlf.sh"], 1, "sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n"
                     "sbatch: error: instead of expected UNIX line breaks (\\n).\n"),
    (["unknown.sh"], 255, "sbatch: unrecognized option '--bogus-option=1'\n" + TRY +
     "sbatch: error: in line 3 of the batch script\n"),
    (["noarg.sh"], 255, "sbatch: option requires an argument -- 't'\n" + TRY + "sbatch: error: in line 3 of the batch script\n"),
    (["-p", "nopart", "s.sh"], 1, "sbatch: error: invalid partition specified: nopart\n" + FAILED +
     "Invalid partition name specified\n"),
    (["-p", "debug,nopart", "s.sh"], 1, "sbatch: error: invalid partition specified: nopart\n" + FAILED +
     "Invalid partition name specified\n"),
    (["--mem=999G", "s.sh"], 1, "sbatch: error: Memory specification can not be satisfied\n" + FAILED +
     "Requested node configuration is not available\n"),
    (["-c", "9", "s.sh"], 1, "sbatch: error: CPU count per node can not be satisfied\n" + FAILED +
     "Requested node configuration is not available\n"),
    (["-t", "1:2:3:4:5", "s.sh"], 255, "sbatch: error: Invalid --time specification\n"),
    (["--begin=25:99", "s.sh"], 255, "Invalid time specification (pos=0): 25:99\nsbatch: error: Invalid --begin specification\n"),
    (["-d", "afterok:999999", "s.sh"], 1, FAILED + "Job dependency problem\n"),
    (["-d", "bogus:1", "s.sh"], 1, FAILED + "Job dependency problem\n"),
    (["-d", "afterok:1:", "s.sh"], 1, FAILED + "Job dependency problem\n"),
    (["--bogus", "s.sh"], 255, "sbatch: unrecognized option '--bogus'\n" + TRY),
    (["-I", "s.sh"], 255, "sbatch: invalid option -- 'I'\n" + TRY),
    (["--wrap"], 255, "sbatch: option '--wrap' requires an argument\n" + TRY),
    (["--wrap", "true", "s.sh"], 1, "sbatch: error: Script arguments not permitted with --wrap option\n"),
    (["--nodelist=nonode", "s.sh"], 1, FAILED + "Invalid node name specified\n"),
    (["-x", "n99", "s.sh"], 1, FAILED + "Invalid node name specified\n"),
    (["-w", "n1", "-x", "n1", "s.sh"], 1, FAILED + "Invalid node name specified\n"),
    (["-w", "n[1-", "s.sh"], 1, "sbatch: fatal: Invalid node list specified\n"),
    (["-N", "x", "s.sh"], 255, 'sbatch: error: "x" is not a valid node count\n'),
    (["--gres=gpu:1", "s.sh"], 1, "sbatch: error: Invalid generic resource (gres) specification\n"),
    (["--bb=1", "s.sh"], 1, "sbatch: error: option --bb is not supported yet (see docs/compatibility.md)\n"),
])
def test_sbatch_refuses(sh, argv, code, err):
    before = sh.run("squeue -h -t all -o %i").stdout
    assert said(sh, ["sbatch", *argv]) == (code, "", err)
    assert sh.run("squeue -h -t all -o %i").stdout == before


def test_sbatch_says(sh):
    code, out, err = said(sh, ["sbatch", "-H", "s.sh"])
    assert (code, err) == (0, "") and re.fullmatch(r"Submitted batch job \d+\n", out)
    code, out, err = said(sh, ["sbatch", "--parsable", "-H", "s.sh"])
    assert (code, err) == (0, "") and re.fullmatch(r"\d+\n", out)
    assert said(sh, ["sbatch", "-Q", "-H", "s.sh"]) == (0, "", "")
    code, out, err = said(sh, ["sbatch", "-H", "-N", "99", "s.sh"])
    assert (code, err) == (0, "sbatch: warning: can't run 1 processes on 99 nodes, setting nnodes to 1\n")
    code, out, err = said(sh, ["sbatch", "-H", "-v", "s.sh"])
    assert err == ("sbatch: defined options\nsbatch: -------------------- --------------------\n"
                   "sbatch: hold                : set\nsbatch: job-name            : demo\n"
                   "sbatch: ntasks              : 1\nsbatch: time                : 10\nsbatch: verbose             : 1\n"
                   "sbatch: -------------------- --------------------\nsbatch: end of defined options\n")
    sh.run("scancel --me")


def test_squeue_lists(new_cluster):
    c = new_cluster(cpus=8, nodes=1)
    body = "#SBATCH -J demo\n#SBATCH -t 10\nsleep 1000"
    running = c.batch(body, name="s.sh")
    c.wait_state(running, "RUNNING")
    held = c.submit("-H", c.work / "s.sh")
    begin = c.submit("--begin=now+1hour", c.work / "s.sh")
    long = c.submit("-H", "-t", "5-0", c.work / "s.sh")
    wait_for(lambda: c.job(begin)["Reason"] == "BeginTime")
    head = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    def row(job, state, time, where):
        return f"{job:>18}     debug     demo {ME:>8} {state:>2} {time:>10}      1 {where}\n"
    def untimed(text):
        return re.sub(r"  R       \d:\d\d", "  R       0:00", text)
    rows = row(begin, "PD", "0:00", "(BeginTime)"), row(long, "PD", "0:00", "(JobHeldUser)"), row(held, "PD", "0:00", "(JobHeldUser)")
    last = row(running, "R", "0:00", "n1")
    got = c.run("squeue").stdout
    assert untimed(got) == head + "".join(rows) + last
    assert untimed(c.run("squeue -h").stdout) == "".join(rows) + last
    lines = c.run("squeue -l").stdout.splitlines()
    assert re.fullmatch(r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \d{4}", lines[0])
    assert lines[1] == "             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)"
    assert lines[3] == f"{long:>18}     debug     demo {ME:>8}  PENDING       0:00 5-00:00:00      1 (JobHeldUser)"[:len(lines[3])] or \
        "5-00:00:0" in lines[3]
    start = c.run("squeue --start").stdout.splitlines()
    assert start[0] == "             JOBID PARTITION     NAME     USER ST          START_TIME  NODES SCHEDNODES           NODELIST(REASON)"
    assert start[1].startswith(f"{begin:>18} ") and "T" in start[1]
    assert start[2] == f"{held:>18}     debug     demo {ME:>8} PD                 N/A      1 (null)               (JobHeldUser)"
    assert len(start) == 4
    assert c.run(["squeue", "--me", "-t", "PD", "-o", "%i %r"]).stdout == \
        f"JOBID REASON\n{begin} BeginTime\n{long} JobHeldUser\n{held} JobHeldUser\n"
    assert c.run(["squeue", "-S", "i", "-h", "-o", "%i"]).stdout.split() == [str(j) for j in sorted([running, held, begin, long])]
    assert c.run(["squeue", "-S", "-t,-i", "-h", "-o", "%t"]).stdout.split() == ["R", "PD", "PD", "PD"]
    assert said(c, ["squeue", "-S", "?"]) == (1, head, "squeue: error: Invalid sort specification: ?\n")
    assert c.run(["squeue", "-h", "-w", "n1", "-o", "%i"]).stdout == f"{running}\n"
    assert c.run(["squeue", "-h", "-n", "nosuch"]).stdout == "" == c.run(["squeue", "-h", "-p", "nopart"]).stdout
    assert c.run(["squeue", "-h", "-A", "nosuch"]).stdout == "" == c.run(["squeue", "-h", "-q", "nosuch"]).stdout
    assert c.run(["squeue", "-h", "-j", f"{running},99999999", "-o", "%i"]).stdout == f"{running}\n"
    assert c.run(["squeue", "-h", "-j", f"{running}.0", "-o", "%i"]).stdout == f"{running}\n"
    assert c.run(["squeue", "-j", ""]).stdout == head
    assert c.run(["squeue", "-r", "-a", "-h", "-o%F %K", "-t", "R"]).stdout == f"{running} N/A\n"
    assert said(c, ["squeue", "-j", str(running), "-O", "bogus"])[2] == "squeue: error: Invalid job format specification: bogus\n"
    assert said(c, ["squeue", "-j", str(running), "-O", "jobid:.10,name:8,state:-9,nodelist:3"])[1] == \
        f"     JOBIDNAME    STATE NOD\n{running:>10}demo    RUNNING n1 \n"
    assert c.run(["squeue", "-h", "-t", "R"], env={"SQUEUE_FORMAT": "%i|%T"}).stdout == f"{running}|RUNNING\n"
    assert c.run(["squeue", "-h", "-t", "R", "-O", "JobID:1"], env={"SQUEUE_FORMAT": "%i|%T"}).stdout == f"{str(running)[0]}\n"


def test_squeue_errors(shared):
    head = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    assert said(shared, "squeue -j 99999999") == (1, "", "slurm_load_jobs error: Invalid job id specified\n")
    assert said(shared, "squeue -j 99999998,99999999")[0] == 0
    assert said(shared, "squeue -j abc") == (1, "", "squeue: error: Invalid job id: abc\n")
    assert said(shared, ["squeue", "-j", "354_[2-4]"]) == (1, "", "squeue: error: Invalid job id: 354_[2-4]\n")
    assert said(shared, "squeue -u nobodyxyz") == (0, head, "squeue: error: Invalid user: nobodyxyz\n")
    code, out, err = said(shared, "squeue -t bogus")
    assert (code, out) == (1, "") and err.startswith(
        "squeue: error: Invalid job state specified: bogus\nsqueue: error: Valid job states include: pending,running,suspended,")
    assert said(shared, "squeue -t configuring,PD,cd,oom -h")[0] == 0
    assert said(shared, "squeue --bogus") == (1, "", "squeue: unrecognized option '--bogus'\n"
                                                     'Try "squeue --help" for more information\n')
    assert said(shared, "squeue word") == (1, "", "squeue: error: Unrecognized option: word\n")
    assert said(shared, "squeue -i 0") == (1, "", "squeue: error: Error: Invalid --iterate value: 0\n")
    code, out, err = said(shared, "timeout -s INT 1.5 squeue -i 1")
    assert out.count(head) == 2 and re.match(r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \d{4}\n", out) and "\n\n" in out
    assert "state: " not in shared.run("squeue --helpformat").stdout and "prioritylong" in shared.run("squeue --helpformat").stdout


# Open OnDemand's one big query, as its adapter sends it.
OOD = ("Account JobID BatchHost MinCpus NumCPUs MinTmpDisk NumNodes EndTime Dependency Feature ArrayJobID GroupName GroupID "
       "OverSubscribe Sockets JobArrayID Cores Name Threads Comment ArrayTaskID TimeLimit TimeLeft MinMemory TimeUsed ReqNodes "
       "NodeList Command Contiguous QOS Partition PriorityLong Reason StartTime StateCompact State UserName UserID Reservation "
       "SubmitTime WCKey Licenses ExcNodes CoreSpec Nice SchedNodes SCT WorkDir tres-alloc tres-per-node").split()


def test_open_ondemands_query(shared):
    job = shared.submit("-H", "--comment=a,b", "--mem=2G", "--wrap", "true")
    out = shared.run(["squeue", "--all", "--states=all", "--noconvert", "-O", ",".join(f"{f}:\x1f" for f in OOD), "-j", str(job)]).stdout
    head, line = out.splitlines()
    assert head.count("\x1f") == line.count("\x1f") == len(OOD) and head.endswith("\x1f")
    row = dict(zip(OOD, line.split("\x1f")))
    assert (row["JobID"], row["StateCompact"], row["Comment"], row["tres-per-node"]) == (str(job), "PD", "a,b", "N/A")
    assert row["MinMemory"] == "2048M" and row["tres-alloc"] == "cpu=1,mem=2048M,node=1,billing=1"
    assert shared.run(["squeue", "-h", "-o", "%m", "-j", str(job)]).stdout == "2G\n"
    assert shared.run(["sacct", "-n", "-X", "-P", "-o", "reqmem", "-j", str(job)]).stdout == "2G\n"
    assert shared.run(["sacct", "-n", "-X", "-P", "--units=M", "-o", "reqmem", "-j", str(job)]).stdout == "2048M\n"
    shared.run(["scancel", str(job)])


def test_sinfo(shared):
    host = ["sinfo", "-h"]
    assert shared.run("sinfo").stdout == ("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
                                          "debug*       up    1:00:00      2   idle n[1-2]\n"
                                          "long         up   infinite      1   idle n2\n")
    assert shared.run("sinfo -s").stdout == ("PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\n"
                                             "debug*       up    1:00:00          0/2/0/2 n[1-2]\n"
                                             "long         up   infinite          0/1/0/1 n2\n")
    assert shared.run("sinfo -N").stdout == ("NODELIST   NODES PARTITION STATE \n"
                                             "n1             1    debug* idle  \n"
                                             "n2             1    debug* idle  \n"
                                             "n2             1      long idle  \n")
    lines = shared.run("sinfo -Nl").stdout.splitlines()
    assert lines[1] == "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON              "
    assert re.fullmatch(r"n1             1    debug\*        idle 8    [ \d:]{8}  16000 [ \d]{8}      1   \(null\) none                ", lines[2])
    lines = shared.run("sinfo -l").stdout.splitlines()
    assert lines[1:] == [
        "PARTITION AVAIL  TIMELIMIT   JOB_SIZE ROOT OVERSUBS     GROUPS  NODES       STATE RESERVATION NODELIST",
        "debug*       up    1:00:00 1-infinite   no       NO        all      2        idle             n[1-2]",
        "long         up   infinite 1-infinite   no       NO        all      1        idle             n2"]
    assert shared.run("sinfo -R").stdout == "REASON               USER      TIMESTAMP           NODELIST\n"
    assert shared.run("sinfo -p nopart").stdout == "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
    assert shared.run("sinfo -n nonode").stdout == ("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
                                                    "debug*       up    1:00:00      0    n/a \n"
                                                    "long         up   infinite      0    n/a \n")
    assert shared.run([*host, "-t", "down"]).stdout == ("debug*       up    1:00:00      0    n/a \n"
                                                        "long         up   infinite      0    n/a \n")
    assert shared.run([*host, "-t", "down,idle", "-o", "%P"]).stdout == "debug*\nlong\n"
    assert shared.run([*host, "-d"]).stdout == shared.run([*host, "-t", "down"]).stdout
    assert shared.run([*host, "-o", "%N %C"]).stdout == "n[1-2] 0/16/0/16\n"
    assert shared.run([*host, "-N", "-p", "debug", "-o", "%N %C"]).stdout == "n1 0/8/0/8\nn2 0/8/0/8\n"
    assert shared.run(["sinfo", "-aho", "%F/%C"]).stdout == "0/2/0/2/0/16/0/16\n"
    assert shared.run([*host, "-o%R,%C"]).stdout == "debug,0/16/0/16\nlong,0/8/0/8\n"
    assert shared.run([*host, "-N", "-O", "NodeList,AllocMem,Memory,CPUsState,StateLong"]).stdout.splitlines()[0] == \
        f"{'n1':20}{'0':20}{'16000':20}{'0/8/0/8':20}{'idle':20}"
    assert said(shared, ["sinfo", "-o", "%P %J %q"]) == (0, "PARTITION %J %q\ndebug* %J %q\nlong %J %q\n",
                                                        "Invalid node format specification: J\n"
                                                        "Invalid node format specification: q\n")
    assert said(shared, ["sinfo", "-O", "partition,bogus"]) == (
        0, f"{'PARTITION':20}\n{'debug*':20}\n{'long':20}\n", "sinfo: error: Invalid job format specification: bogus\n")
    assert said(shared, "sinfo -t bogus")[::2] == (1, 'sinfo: error: Bad state string: "bogus"\n'
        "sinfo: error: valid states: unknown,down,idle,allocated,mixed,future,drain,drained,draining,no_respond,reserved,planned,"
        "blocked,cloud,completing,powering_down,powered_down,power_down,powering_up,power_up,inval,fail,maint,reboot,reboot^,"
        "external,dynamic_future,dynamic_norm\n")
    assert said(shared, "sinfo --bogus") == (1, "", "sinfo: unrecognized option '--bogus'\n"
                                                    'Try "sinfo --help" for more information\n')
    assert shared.run("spur nodes").stdout == shared.run("sinfo").stdout


def test_sinfo_with_a_job(new_cluster):
    c = new_cluster(nodes=2, cpus=2)
    job = c.submit("-n", "1", "-w", "n1", "--wrap", "sleep 1000")
    full = c.submit("-n", "2", "-w", "n2", "--wrap", "sleep 1000")
    c.wait_state(job, "RUNNING")
    c.wait_state(full, "RUNNING")
    assert c.run("sinfo -h").stdout == ("debug*       up   infinite      1    mix n1\n"
                                        "debug*       up   infinite      1  alloc n2\n")
    assert c.run("sinfo -h -t alloc").stdout == c.run("sinfo -h").stdout
    assert c.run("sinfo -h -t mix -o %N").stdout == "n1\n"
    assert c.run("sinfo -h -s -o %C").stdout == "3/1/0/4\n"


def test_scancel(shared):
    assert said(shared, "scancel") == (1, "", "scancel: error: No job identification provided\n")
    assert said(shared, "scancel abc") == (1, "", "scancel: error: Invalid job id abc\n")
    assert said(shared, "scancel 5.batch") == (1, "", "scancel: error: Invalid job id 5.batch\n")
    assert said(shared, "scancel 99999999") == (0, "", "")
    assert said(shared, "scancel -v 99999999")[::2] == (
        0, "scancel: Terminating job 99999999\nscancel: error: Kill job error on job id 99999999: Invalid job id specified\n")
    assert said(shared, "scancel -u nobodyxyz") == (1, "", "scancel: error: Invalid user name: nobodyxyz\n")
    assert said(shared, "scancel -n nosuchname") == (0, "", "")
    assert said(shared, "scancel -n nosuch -v")[::2] == (
        0, "scancel: error: No active jobs match ALL job filters, including: job_name=nosuch \n")
    assert said(shared, "scancel -s BOGUS 1") == (1, "", "Unknown job signal: BOGUS\n")
    assert said(shared, "scancel -t bogus --me") == (1, "", "Invalid job state specified: bogus\n"
                                                            "Valid job states are PENDING, RUNNING, and SUSPENDED\n")
    assert said(shared, "scancel -p nopart --me") == (0, "", "")
    a, b = (shared.submit("-H", "-J", name, "--wrap", "true") for name in ("one", "two"))
    assert said(shared, ["scancel", "-n", "one"]) == (0, "", "")
    assert [shared.state_of(j) for j in (a, b)] == ["CANCELLED", "PENDING"]
    assert said(shared, ["scancel", "-n", "wrong", b]) == (0, "", "") and shared.state_of(b) == "PENDING"
    assert said(shared, ["scancel", f"{a},{b}", "99999999"]) == (0, "", "") and shared.state_of(b) == "CANCELLED"
    assert said(shared, ["scancel", "-v", b])[::2] == (0, f"scancel: Terminating job {b}\nscancel: error: Kill job error on job id "
                                                          f"{b}: Job/step already completing or completed\n")
    a = shared.submit("-H", "--wrap", "true")
    assert said(shared, "scancel -t PENDING --me") == (0, "", "") and shared.state_of(a) == "CANCELLED"


@pytest.mark.root
def test_jobs_of_others(shared):
    theirs = shared.submit("-H", "-J", "theirs", "--wrap", "true", cwd="/tmp")
    refused = f"scancel: error: Kill job error on job id {theirs}: Access/permission denied\n"
    assert said(shared, ["scancel", theirs], uid=NOBODY) == (210, "", refused)
    assert said(shared, ["scancel", "-n", "theirs"], uid=NOBODY) == (210, "", refused)
    assert said(shared, ["scontrol", "hold", theirs], uid=NOBODY) == (
        1, "", f"Invalid user id for job {theirs}\nslurm_suspend error:Invalid user id\n")
    assert said(shared, ["scontrol", "reconfigure"], uid=NOBODY) == (1, "", "slurm_reconfigure error:Invalid user id\n")
    assert shared.state_of(theirs) == "PENDING"
    held = shared.submit("-H", "--wrap", "true", uid=NOBODY, cwd="/tmp")
    assert shared.run(["squeue", "-h", "-u", "nobody", "-o", "%i %u"]).stdout == f"{held} nobody\n"
    assert shared.run(["squeue", "-h", "-u", str(NOBODY), "-o", "%i"]).stdout == f"{held}\n"
    assert shared.run(["squeue", "-h", "--me", "-o", "%i"], uid=NOBODY).stdout == f"{held}\n"
    shared.run("scontrol hold", held)
    assert said(shared, ["scontrol", "release", held], uid=NOBODY) == (
        1, "", f"Access/permission denied for job {held}\nslurm_suspend error:Access/permission denied\n")
    shared.run("scontrol uhold", held)
    assert shared.job(held)["Reason"] == "JobHeldUser"
    assert said(shared, ["scancel", "-u", "nobody"]) == (0, "", "") and shared.state_of(held) == "CANCELLED"
    shared.run("scancel", theirs)


def test_scontrol_errors(shared):
    assert said(shared, "scontrol bogus") == (1, "", "invalid keyword: bogus\n")
    assert said(shared, "scontrol show bogus") == (1, "", "invalid entity:bogus for keyword:show\n")
    assert said(shared, "scontrol show") == (1, "", "too few arguments for keyword:show\n")
    assert said(shared, "scontrol show job 1 2") == (1, "", "too many arguments for keyword:show\n")
    assert said(shared, "scontrol show job 99999999") == (1, "", "slurm_load_jobs error: Invalid job id specified\n")
    assert said(shared, "scontrol show job abc") == (1, "", "scontrol_print_job error: Invalid job id specified\n")
    assert said(shared, "scontrol show node nonode") == (1, "Node nonode not found\n", "")
    assert said(shared, "scontrol show partition nopart") == (1, "Partition nopart not found\n", "")
    assert said(shared, "scontrol hold 99999999") == (
        1, "", "Invalid job id specified for job 99999999\nslurm_suspend error:Invalid job id specified\n")
    assert said(shared, "scontrol --bogus") == (1, "", "scontrol: unrecognized option '--bogus'\n"
                                                       'Try "scontrol --help" for more information\n')
    host = os.uname().nodename
    assert said(shared, "scontrol ping") == (0, f"Slurmctld(primary) at {host} is UP\n", "")


def test_scontrol_show(shared):
    job = shared.submit("-H", "-t", "5", "-N", "2", "-n", "2", "-w", "n[1-2]", "--wrap", "true")
    text = shared.run("scontrol show job", job).stdout
    assert text.startswith(f"JobId={job} JobName=wrap\n   UserId={ME}({os.geteuid()}) GroupId=") and text.endswith("\n\n")
    assert "\n   NumNodes=2-2 NumCPUs=2 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n" in text
    assert "\n   ReqNodeList=n[1-2] ExcNodeList=(null)\n   NodeList=\n   NumNodes" in text
    one = shared.run("scontrol -o show job", job).stdout
    assert one.count("\n") == 1 and one.split() == text.split()
    assert shared.run("spur show job", job).stdout.startswith(f"JobId={job} ")
    shared.run("scancel", job)
    part = shared.run("scontrol show partition debug").stdout
    assert "\n   DefaultTime=00:10:00 DisableRootJobs=NO" in part and " MaxTime=01:00:00 " in part
    # Open OnDemand: every word is NAME=something
    for line in shared.run("scontrol show part -o").stdout.splitlines():
        assert all(re.fullmatch(r"[\w/]+=.+", word) for word in line.split())
    nodes = shared.run("scontrol show nodes").stdout
    assert nodes.startswith("NodeName=n1 Arch=") and nodes.count("\n\n") == 2
    assert "\n   CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=" in nodes and "State=IDLE " in nodes
    code, out, err = said(shared, "scontrol show nodes n1,n99")
    assert code == 1 and out.startswith("NodeName=n1 ") and out.endswith("Node n99 not found\n")


@pytest.mark.parametrize("argv, code, out, err", [
    (["hostnames", "n[001-003,7],x[1-2]y"], 0, "n001\nn002\nn003\nn7\nx1y\nx2y\n", ""),
    (["hostnames", "n[1-3,5],n[01-03]"], 0, "n1\nn2\nn3\nn5\nn01\nn02\nn03\n", ""),
    (["hostname", "r[1-2]n[1-3]"], 0, "r1n1\nr1n2\nr1n3\nr2n1\nr2n2\nr2n3\n", ""),
    (["hostnames"], 0, "", "scontrol: error: host list is empty\n"),
    (["hostnames", "n[3-1]"], 0, "", "scontrol: error: _parse_single_range: Invalid range: `3-1'\nInvalid hostlist: n[3-1]\n"),
    (["hostnames", "n[1-"], 0, "", "Invalid hostlist: n[1-\n"),
    (["hostlist", "n001,n002,n003,n7"], 0, "n[001-003,7]\n", ""),
    (["hostlist", "n3,n1,n2,n1"], 0, "n[3,1-2,1]\n", ""),
    (["hostlistsorted", "n3,n1,n2,n1"], 0, "n[1,1-3]\n", ""),
    (["hostlist", "n09,n10,n11,n8,x1,n100"], 0, "n[09-11,8],x1,n100\n", ""),
    (["hostlistsorted", "n10,n9,m1,n09,n8"], 0, "m1,n[8-9,09-10]\n", ""),
    (["hostlist", "n1-ib,n2-ib"], 0, "n1-ib,n2-ib\n", ""),
    (["hostlist", ""], 0, "\n", ""),
    (["hostlist", "/etc/nofile"], 1, "", "Can not open /etc/nofile\n"),
])
def test_node_lists(shared, argv, code, out, err):
    assert said(shared, ["scontrol", "show", *argv]) == (code, out, err)


def test_a_file_of_names(shared):
    (shared.work / "hl.txt").write_text("n1\nn2\nn4\n")
    assert shared.run("scontrol show hostlist", shared.work / "hl.txt").stdout == "n[1-2,4]\n"


def test_sacct(new_cluster):
    c = new_cluster()
    ok = c.submit("-A", "ml", "-J", "acct", "-n", "2", "--wrap", "true")
    bad = c.submit("-A", "ml", "--wrap", "exit 3")
    c.wait_over(ok)
    c.wait_over(bad)
    killed = c.submit("--wrap", "sleep 1000")
    c.wait_state(killed, "RUNNING")
    c.run("scancel", killed)
    c.wait_over(killed)
    waits = c.submit("-H", "--wrap", "true")
    head = ("JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
            "------------ ---------- ---------- ---------- ---------- ---------- -------- \n")
    def row(job, name, part, acct, cpus, state, code):
        return f"{job:<12} {name:>10} {part:>10} {acct:>10} {cpus:>10} {state:>10} {code:>8} \n"
    uid = os.geteuid()
    rows = [row(ok, "acct", "debug", "ml", 2, "COMPLETED", "0:0"), row(f"{ok}.batch", "batch", "", "ml", 2, "COMPLETED", "0:0"),
            row(bad, "wrap", "debug", "ml", 1, "FAILED", "3:0"), row(f"{bad}.batch", "batch", "", "ml", 1, "FAILED", "3:0"),
            row(killed, "wrap", "debug", "", 1, "CANCELLED+", "0:0"), row(f"{killed}.batch", "batch", "", "", 1, "CANCELLED", "0:15"),
            row(waits, "wrap", "debug", "", 0, "PENDING", "0:0")]
    assert c.run("sacct").stdout == head + "".join(rows)
    own = [r for r in rows if ".batch" not in r]
    assert c.run("sacct -X").stdout == head + "".join(own)
    assert c.run("sacct -X -n").stdout == "".join(own)
    assert c.run(["sacct", "-a", "-X", "-P", "-o", "JobID,State,ExitCode"]).stdout == (
        f"JobID|State|ExitCode\n{ok}|COMPLETED|0:0\n{bad}|FAILED|3:0\n{killed}|CANCELLED by {uid}|0:0\n{waits}|PENDING|0:0\n")
    assert c.run(["sacct", "-X", "-n", "-p", "-j", str(ok), "-o", "jobid,state"]).stdout == f"{ok}|COMPLETED|\n"
    assert c.run(["sacct", "-X", "-n", "-P", "--delimiter=;", "-j", str(ok), "-o", "jobid,state"]).stdout == f"{ok};COMPLETED\n"
    assert c.run(["sacct", "-X", "-j", str(ok), "-n", "-o", "jobid,state%20"]).stdout == f"{ok:<12}            COMPLETED \n"
    assert c.run(["sacct", "-X", "-j", str(ok), "-n", "-o", "nodelist%-6"]).stdout == "n1     \n"
    assert c.run(["sacct", "-j", str(killed), "-o", "jobid%14,jobname%10,state%22,exitcode"]).stdout == (
        "         JobID    JobName                  State ExitCode \n"
        "-------------- ---------- ---------------------- -------- \n"
        f"{killed:>14}       wrap {'CANCELLED by ' + str(uid):>22}      0:0 \n"
        f"{str(killed) + '.batch':>14}      batch              CANCELLED     0:15 \n")
    assert c.run(["sacct", "-j", "999999"]).stdout == head
    assert c.run(["sacct", "-n", "-j", f"{ok}.batch", "-o", "jobid"]).stdout == f"{str(ok) + '.batch':<12} \n"
    assert c.run(["sacct", "-n", "-j", f"{ok}.0"]).stdout == ""
    assert c.run(["sacct", "-n", "-X", "-P", "-j", str(ok), "-j", str(bad), "-o", "jobid", "-o", "exitcode"]).stdout == \
        f"{ok}|0:0\n{bad}|3:0\n"
    # a window of time, and states in it
    assert c.run("sacct -a -S 2020-01-01 -E 2020-01-02").stdout == head
    assert c.run("sacct -a -S now-1hour -E now -X -n").stdout == "".join(own)
    wait_for(lambda: c.run("sacct -a -s F -X").stdout == head)  # -s alone means now, and it failed before
    assert c.run(["sacct", "-n", "-X", "-P", "-o", "jobid", "-s", "F,ca", "-S", "now-1hour", "-E", "now+1hour"]).stdout == \
        f"{bad}\n{killed}\n"
    wait_for(lambda: c.run("sacct -n -X -P -o jobid -s PENDING").stdout == f"{waits}\n")  # the killed one waited this very second
    assert c.run(["sacct", "-n", "-X", "-P", "-o", "jobid", "--name", "acct"]).stdout == f"{ok}\n"
    assert c.run(["sacct", "-n", "-X", "-P", "-o", "jobid", "-A", "ml", "-r", "debug", "-N", "n1"]).stdout == f"{ok}\n{bad}\n"
    assert c.run(["sacct", "-n", "-X", "-P", "-u", ME, "-o", "user"]).stdout == f"{ME}\n" * 4


def test_sacct_errors(shared):
    assert said(shared, "sacct -a -o bogusfield") == (1, "", 'sacct: error: Invalid field requested: "bogusfield"\n')
    assert said(shared, "sacct -o maxvmsize")[::2] == (1, "sacct: error: field maxvmsize is not supported yet (see docs/compatibility.md)\n")
    assert said(shared, "sacct -j 1-3")[0] == 1
    assert said(shared, "sacct -u nosuchuser")[0] == 1
    assert said(shared, "sacct -s bogus")[0] == 1
    assert said(shared, "sacct -S bogus")[0] == 1
    assert "JobIDRaw" in shared.run("sacct --helpformat").stdout
    assert shared.run("sacct -e").stdout == shared.run("sacct --helpformat").stdout


def test_sdiag(shared):
    lines = shared.run("sdiag").stdout.splitlines()
    stamp = r"[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \d{4} \(\d+\)"
    assert lines[0] == lines[3] == "*" * 55
    assert re.fullmatch("sdiag output at " + stamp, lines[1]) and re.fullmatch("Data since      " + stamp, lines[2])


def test_versions(shared):
    assert re.fullmatch(r"spur \d+\.\d+\.\d+ \(slurm 26\.05\.5 compatible\)\n", shared.run("spur version").stdout)
    for argv in ("sbatch --version", "squeue -V", "sinfo -V", "scancel -V", "scontrol version", "scontrol -V", "sacct -V", "spur submit -V"):
        assert re.fullmatch(r"slurm 26\.05\.5 \(spur \d+\.\d+\.\d+\)\n", shared.run(argv).stdout)


def test_what_is_not_there_is_said(shared):
    code, out, err = said(shared, "scontrol notify 1 hello")
    assert code == 1 and out == "" and "is not supported yet" in err
    assert said(shared, "spur bogus")[::2] == (1, 'spur: error: unknown command: bogus\nTry "spur help" for more information\n')


def test_the_controller_is_away(new_cluster):
    c = new_cluster(nodes=0)
    c.ctld.kill()
    away = "Unable to contact slurm controller (connect failure)\n"
    assert said(c, "squeue") == (1, "", "slurm_load_jobs error: " + away)
    assert said(c, "squeue -j 5") == (1, "", "slurm_load_jobs error: " + away)
    assert said(c, "sinfo") == (1, "", "slurm_load_partitions: " + away)
    assert said(c, ["sbatch", "--wrap", "true"]) == (1, "", "sbatch: error: Batch job submission failed: " + away)
    code, out, err = said(c, "scontrol ping")
    assert code == 1 and re.fullmatch(r"Slurmctld\(primary\) at \S+ is DOWN\n", out)
    # each address of a list is tried
    assert said(c, "squeue", env={"SPUR_CONTROLLER_ADDR": "127.0.0.1:1,unix:/nonexistent"})[2] == "slurm_load_jobs error: " + away
    c.ctld.start()
    assert said(c, "squeue -h", env={"SPUR_CONTROLLER_ADDR": f"127.0.0.1:1,unix:{c.socket}"}) == (0, "", "")


def test_a_pipe_that_closes_ends_the_command(shared):
    got = subprocess.run("squeue | true; exit ${PIPESTATUS[0]}", shell=True, executable="/bin/bash", env=shared.env,
                         capture_output=True, text=True)
    assert got.stderr == "" and got.returncode in (0, 141)


def test_output_that_is_lost_is_an_error(shared):
    got = subprocess.run("squeue > /dev/full", shell=True, executable="/bin/bash", env=shared.env, capture_output=True, text=True)
    assert got.returncode == 1 and "No space left on device" in got.stderr


def test_a_wait_survives_the_controllers_restart(new_cluster):
    c = new_cluster()
    p = subprocess.Popen(["sbatch", "--parsable", "-W", "--wrap", "while [ ! -e go ]; do sleep 0.02; done; exit 7"], env=c.env,
                         cwd=c.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    job = int(p.stdout.readline())
    c.wait_state(job, "RUNNING")
    c.ctld.kill()
    (c.work / "go").touch()
    c.ctld.start()
    assert p.wait(60) == 7 and p.stderr.read() == ""


def test_a_full_queue_is_told_and_tried_again(new_cluster):
    c = new_cluster(nodes=0, scheduler="max_jobs = 2", controller="terminal_job_retention_secs = 1")
    first, _ = c.submit("-H", "--wrap", "true"), c.submit("-H", "--wrap", "true")
    p = subprocess.Popen(["sbatch", "--parsable", "-H", "--wrap", "true"], env=c.env, cwd=c.work, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    said_first = p.stderr.readline()
    assert said_first == "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n"
    c.run("scancel", first)
    assert p.wait(60) == 0 and p.stdout.read().strip().isdigit()
