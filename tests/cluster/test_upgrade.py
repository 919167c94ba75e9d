# SPDX-License-Identifier: Apache-2.0
"""The last version's programs (lastversion.py) and today's, together: state directories, agents, step daemons, commands, controllers."""
import os
import threading

import pytest

import lastversion
from hacluster import HACluster
from spurtest import BIN, alive, wait_for
from workloads import Array, Chain, Plain, Requeued, Salloc, Srun, Steps, Suspended, finish_all, start_all

# building the last version takes minutes where no cache has its objects
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def old():
    return lastversion.programs()


@pytest.fixture
def old_cluster(old, new_cluster):
    """All of it is of the last version."""
    def make(**how):
        c = new_cluster(start=False, **how)
        c.bin = old
        return c.start()

    return make


def to_today(c, *daemons):
    """These daemons, one after the other, as a package that is upgraded restarts them."""
    for d in daemons:
        d.stop()
        d.bin = BIN
        d.start()


def by(programs):
    """The environment of a command of these programs."""
    return {"PATH": f"{programs}:{os.environ.get('PATH', '/usr/bin:/bin')}"}


# ---- a state directory ----

HISTORY = ("sacct", "-a", "-P", "-o", "JobID,JobName,State,ExitCode,Submit,Start,End,Elapsed,User,Account,Partition,NodeList,AllocCPUS,ReqMem,Comment")
QUEUE = ("squeue", "-h", "-t", "all", "-S", "i", "-o", "%i|%j|%T|%r|%P|%V|%u|%C|%m|%l|%Q|%E|%k|%D|%o|%Z|%f")


def looks(c, env=None):
    return c.run(HISTORY, env=env).stdout, c.run(QUEUE, env=env).stdout


def scripts(c, jobs):
    return {job: c.run("scontrol", "write", "batch_script", str(job), "-").stdout for job in jobs}


def test_the_state_of_the_last_version_is_read_whole(old_cluster):
    """Jobs of each state, with scripts, history, an array that waits, dependencies, reservations, a drained node: the same
    under today's controller, also after a snapshot of it, and they run."""
    c = old_cluster(nodes=2)
    over = [c.batch(f"echo {n}; exit {n % 3}", "-J", f"over{n}", "--comment", f"the {n}th") for n in range(8)]
    for job in over:
        c.wait_over(job)
    array = c.batch("echo of $SLURM_ARRAY_TASK_ID; exit $((SLURM_ARRAY_TASK_ID % 2))", "--array=0-9%2", "-J", "array", "--hold")
    held = c.batch("echo it was held", "--hold", "-J", "held", "-t", "10", "--mem", "100", "--nice=5")
    after = c.batch("echo after", "-d", f"afterok:{held}", "-J", "after")
    later = c.batch("true", "--begin", "now+2hours", "-J", "later")
    gone = c.batch("true", "--hold", "-J", "gone")
    c.run("scancel", str(gone))
    c.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=a disk is broken")
    was, written = looks(c), scripts(c, [array, held, after, later])
    nodes = c.run("sinfo -h -N -o %N|%T|%E|%c|%m").stdout

    to_today(c, c.ctld)
    c.bin = BIN
    wait_for(lambda: c.run("sinfo -h -N -o %N|%T|%E|%c|%m").stdout == nodes, 15, "the nodes as they were")
    assert looks(c) == was
    assert scripts(c, [array, held, after, later]) == written
    c.ctld.restart()
    assert looks(c) == was

    for job in (array, held):
        c.run("scontrol", "release", str(job))
    for job in (held, after):
        assert c.wait_over(job) == "COMPLETED"
    wait_for(lambda: not c.run("squeue", "-h", "-j", str(array)).stdout, 30, "the array to be over")
    rows = dict(line.split("|") for line in c.run("sacct", "-X", "-n", "-P", "-j", str(array), "-o", "JobID,State").stdout.splitlines())
    assert rows == {f"{array}_{n}": "FAILED" if n % 2 else "COMPLETED" for n in range(10)}
    assert c.batch("true") > max(array, held, after, later, gone)


# ---- agents and step daemons ----

ALL = [Plain, Array, Steps, Srun, Salloc, Chain, Suspended, Requeued]


def test_a_cluster_is_upgraded_in_the_middle_of_its_work(old_cluster):
    """The controller first, then the agents; the commands last. What ran goes on in the step daemons of the last version."""
    c = old_cluster(nodes=2, cpus=16)
    ws = start_all(c, ALL)
    to_today(c, c.ctld)
    to_today(c, *c.nodes.values())
    c.bin = BIN
    c.wait_idle()
    finish_all(c, ws)


def test_old_agents_work_under_todays_controller(old_cluster):
    c = old_cluster(nodes=2, cpus=16)
    to_today(c, c.ctld)
    c.bin = BIN
    for d in c.nodes.values():
        assert d.bin is None
    c.wait_idle()
    ws = start_all(c, ALL)
    finish_all(c, ws)


def test_todays_agent_takes_over_a_running_job_of_an_old_step_daemon(old_cluster):
    c = old_cluster(nodes=1)
    job = c.batch("echo begun; until [ -e go ]; do sleep 0.02; done; echo ended; exit 6")
    doomed = c.batch("sleep 1000")
    for j in (job, doomed):
        c.wait_state(j, "RUNNING")
    wait_for(lambda: (c.work / f"slurm-{job}.out").exists() and c.output(job) == "begun\n", 10, "the script to begin")
    steppers = [pid for pid, cmdline in c.ours() if cmdline.startswith(b"spurstepd")]
    assert steppers
    to_today(c, c.ctld, c.node)
    c.bin = BIN
    c.wait_idle()
    assert all(alive(pid) for pid in steppers)
    assert [c.state_of(j) for j in (job, doomed)] == ["RUNNING"] * 2
    got = c.run("srun", "--jobid", str(job), "--overlap", "echo", "a step beside it")
    assert got.stdout == "a step beside it\n"
    c.run("scancel", str(doomed))
    assert c.wait_over(doomed) == "CANCELLED"
    (c.work / "go").touch()
    assert c.wait_over(job) == "FAILED"
    assert c.sacct(job)["ExitCode"] == "6:0" and c.output(job) == "begun\nended\n"


# ---- commands ----

@pytest.mark.parametrize("which", ["old commands, today's controller", "today's commands, old controller"])
def test_commands_of_the_other_version(old, old_cluster, new_cluster, which):
    if which.startswith("old"):
        c, env = new_cluster(nodes=1), by(old)
    else:
        c, env = old_cluster(nodes=1), by(BIN)
    path = c.script("echo heard $1; exit $2", "s.sh")
    done = c.submit("-J", "done", "-o", "out", path, "me", "3", env=env)
    assert c.wait_over(done) == "FAILED" and (c.work / "out").read_text() == "heard me\n"
    held = c.submit("--hold", "-J", "held", "--array=1-3", path, env=env)
    assert c.run("squeue", "-h", "-o", "%i %j %T %r", env=env).stdout == f"{held}_[1-3] held PENDING JobHeldUser\n"
    c.run("scancel", f"{held}_2", env=env)
    assert c.run("squeue", "-h", "-o", "%i", env=env).stdout == f"{held}_[1,3]\n"
    c.run("scontrol", "update", f"JobId={held}", "Comment=changed", env=env)
    assert "Comment=changed" in c.run("scontrol", "show", "job", str(held), env=env).stdout
    c.run("scancel", str(held), env=env)
    assert c.run("squeue", "-h", env=env).stdout == ""
    got = c.run("sacct", "-X", "-n", "-P", "-o", "JobName,State,ExitCode", "-j", str(done), env=env)
    assert got.stdout == "done|FAILED|3:0\n"
    got = c.run("srun", "-n2", "-l", "sh", "-c", "cat; exit 4", input="what is typed\n", env=env, check=False)
    assert (got.returncode, sorted(got.stdout.splitlines())) == (4, ["0: what is typed", "1: what is typed"]), got
    assert c.run("salloc", "-Q", "sh", "-c", "srun echo inside", env=env).stdout == "inside\n"
    assert c.run("sbatch", "--wait", "--parsable", "--wrap", "exit 5", env=env, check=False).returncode == 5
    assert c.run("sinfo", "-h", "-o", "%P %D %N", env=env).stdout == "debug* 1 n1\n"
    for words in (("scontrol", "show", "node"), ("scontrol", "show", "partition"), ("scontrol", "show", "config"), ("scontrol", "ping"), ("sdiag",), ("sprio",)):
        assert c.run(*words, env=env).stdout


# ---- three controllers ----

def test_three_controllers_one_at_a_time(old):
    """Under submits that never cease, to all controllers. The last version may not forward: whoever leads is found by the command."""
    c = HACluster(nodes=1)
    c.bin = old
    try:
        c.start()
        said, stop = {}, threading.Event()

        def submit():
            n = 0
            while not stop.wait(0.05):
                n += 1
                got = c.run(["sbatch", "--parsable", "-H", "-J", f"job{n}", "--wrap", f"echo {n}"], check=False)
                if got.returncode == 0:
                    said[int(got.stdout)] = f"job{n}"

        thread = threading.Thread(target=submit)
        thread.start()
        try:
            ran = c.batch("until [ -e go ]; do sleep 0.05; done; exit 2")
            c.wait_state(ran, "RUNNING")
            for i in [*c.followers(), c.wait_leader()]:
                more = len(said) + 5
                wait_for(lambda: len(said) >= more, 60, "submits")
                to_today(c, c.members[i])
                c.wait_leader()
                wait_for(lambda: (p := c.ping(i)) and p.index and p.role in ("leader", "follower"), 20, f"member {i} to be one again")
            more = len(said) + 5
            wait_for(lambda: len(said) >= more, 60, "submits")
        finally:
            stop.set()
            thread.join()
        c.bin = BIN
        to_today(c, *c.nodes.values())
        (c.work / "go").touch()
        assert c.wait_over(ran) == "FAILED"
        c.wait_same()
        for i in c.ids:
            names = dict(line.split() for line in c.run("squeue", "-h", "-t", "PD", "-o", "%A %j", env=c.only(i)).stdout.splitlines())
            assert {int(k): v for k, v in names.items()}.items() >= said.items(), i
            assert len(names) - len(said) <= 5, "what was submitted twice was a command's whose controller went away"
    except BaseException:
        print(c.logs(80))
        raise
    finally:
        c.close()
