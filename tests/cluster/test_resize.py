# SPDX-License-Identifier: Apache-2.0
"""scontrol update NumNodes= and NodeList= of a job that runs: it gives nodes back. And --no-kill: it goes on without a node that it lost."""
import subprocess

import pytest

from spurtest import wait_for

NO_SIZE = "Requested operation not supported on this system for job {}\n"


@pytest.fixture
def c(new_cluster):
    return new_cluster(nodes=3, cpus=2, memory_mb=1000)


def shown(c, job):
    return c.run(["squeue", "-h", "-j", str(job), "-o", "%T %D %N %C"]).stdout.strip()


def test_a_run_gives_nodes_back(c):
    job = c.submit("-N3", "-n6", "--wrap", "sleep 300")
    c.wait_state(job, "RUNNING")
    grown = c.run(["scontrol", "update", f"jobid={job}", "numnodes=4"], check=False)
    assert grown.returncode == 1 and grown.stderr == NO_SIZE.format(job)
    said = c.run(["scontrol", "update", f"jobid={job}", "numnodes=2"])
    assert said.stdout + said.stderr == ""
    wait_for(lambda: shown(c, job) == "RUNNING 2 n[1-2] 4", 10, "two nodes", every=0.2)
    text = c.run(["scontrol", "show", "job", str(job)]).stdout
    assert "NodeList=n[1-2]\n" in text and "AllocTRES=cpu=4,node=2," in text and "NumNodes=2 NumCPUs=4 NumTasks=4 " in text, text
    wait_for(lambda: c.run(["sinfo", "-h", "-n", "n3", "-o", "%T"]).stdout.strip() == "idle", 20, "n3 is free", every=0.2)
    for wrong, words in (("n1,n3", "Invalid node name specified"), ("n2", "Invalid node name specified")):
        refused = c.run(["scontrol", "update", f"jobid={job}", f"nodelist={wrong}"], check=False)
        assert refused.returncode == 1 and words in refused.stderr
    refused = c.run(["scontrol", "update", f"jobid={job}", "excnodelist=n2"], check=False)
    assert refused.returncode == 1 and "no longer pending" in refused.stderr
    c.run(["scontrol", "update", f"jobid={job}", "nodelist=n1"])
    assert shown(c, job) == "RUNNING 1 n1 2"
    other = c.submit("-w", "n2", "--exclusive", "--wrap", "hostname")
    c.wait_state(other, "COMPLETED")
    c.run(["scancel", str(job)])
    c.wait_state(job, "CANCELLED")


def test_a_controller_that_dies_ends_it_all_the_same(c):
    """What was given back is in the state: the next start of the controller tells the node to end it."""
    job = c.submit("-N2", "--wrap", "sleep 300")
    c.wait_state(job, "RUNNING")
    nodes = c.run(["squeue", "-h", "-j", str(job), "-o", "%N"]).stdout.strip()
    gone = c.run(["scontrol", "show", "hostnames", nodes]).stdout.split()[1]
    agent = c.nodes[gone]
    agent.kill()
    c.run(["scontrol", "update", f"jobid={job}", "numnodes=1"])
    c.ctld.kill()
    c.ctld.start()
    assert shown(c, job).startswith("RUNNING 1 ")
    agent.start()
    wait_for(lambda: c.run(["sinfo", "-h", "-n", gone, "-o", "%T"]).stdout.strip() == "idle", 40, f"{gone} is free", every=0.3)
    assert shown(c, job).startswith("RUNNING 1 ")
    c.run(["scancel", str(job)])
    c.wait_state(job, "CANCELLED")


def test_the_job_gets_scripts_with_its_variables(c):
    body = """
scontrol update JobId=$SLURM_JOB_ID NumNodes=1
. ./slurm_job_${SLURM_JOB_ID}_resize.sh
echo "$SLURM_NNODES $SLURM_JOB_NODELIST $SLURM_JOB_CPUS_PER_NODE ${SLURM_TASKS_PER_NODE-none}"
srun hostname -s | wc -l
"""
    job = c.batch(body, "-N2", "-n2")
    c.wait_state(job, "COMPLETED")
    sh = f"slurm_job_{job}_resize"
    said, out = c.output(job).split(f"{sh}.csh\n")
    assert said == ("To reset Slurm environment variables, execute\n"
                    f"  For bash or sh shells:  . ./{sh}.sh\n"
                    "  For csh shells:         source ./")
    first = out.splitlines()[0]
    assert first == "1 n1 1 none", out


def ends(c, job):
    """Of its steps: {id: state}"""
    got = c.run(["sacct", "-n", "-P", "-j", str(job), "-o", "JobID,State"]).stdout
    return {line.split("|")[0].split(".")[1]: line.split("|")[1] for line in got.splitlines() if "." in line}


STEPS = """
srun --no-kill --overlap -N3 -n3 bash -c 'touch on.$SLURM_STEP_ID.$SLURM_PROCID; [ $SLURM_NODEID = 1 ] && sleep 300; while [ ! -e go ]; do sleep 0.1; done' &
srun --overlap -N3 -n3 bash -c 'touch on.$SLURM_STEP_ID.$SLURM_PROCID; sleep 300' &
wait
sleep 300
"""


def test_it_goes_on_without_a_node_that_is_set_down(c):
    """Its other nodes stay, with the steps that say the same; other steps end. What runs on the lost node ends too. Without --no-kill it would be queued again."""
    job = c.submit("-N3", "-n3", "--no-kill", c.script(STEPS))
    c.wait_state(job, "RUNNING")
    wait_for(lambda: len(list(c.work.glob("on.*"))) == 6, 30, "six tasks")
    c.run(["scontrol", "update", "nodename=n2", "state=down", "reason=x"])
    assert shown(c, job) == "RUNNING 2 n[1,3] 2"
    assert c.job(job)["Restarts"] == "0"
    wait_for(lambda: c.run(["sinfo", "-h", "-n", "n2", "-o", "%T"]).stdout.strip() == "down", 30, "n2 is clean", every=0.2)
    wait_for(lambda: "CANCELLED" in ends(c, job).values(), 30, "the other step to end", every=0.2)
    states = ends(c, job)
    kept = next(k for k in ("0", "1") if states[k] == "RUNNING")
    assert sorted(states[k].split()[0] for k in ("0", "1")) == ["CANCELLED", "RUNNING"], states
    again = c.run(["srun", "--jobid", str(job), "--overlap", "-N2", "-n2", "-l", "bash", "-c", "echo $SLURMD_NODENAME"]).stdout
    assert sorted(again.splitlines()) == ["0: n1", "1: n3"]
    (c.work / "go").touch()
    wait_for(lambda: ends(c, job)[kept] != "RUNNING", 30, "the step's end", every=0.2)
    assert shown(c, job) == "RUNNING 2 n[1,3] 2"
    other = c.submit("-N2", "-w", "n1,n3", "--wrap", "sleep 300", "-s")
    c.run(["scontrol", "update", "nodename=n3", "state=down", "reason=x"])
    assert shown(c, job) == "RUNNING 1 n1 1"
    c.run(["scontrol", "update", "nodename=n1", "state=down", "reason=x"])  # its last one
    assert c.job(job)["JobState"] in ("PENDING", "COMPLETING")
    wait_for(lambda: c.job(job)["JobState"] == "PENDING", 30, "it waits again", every=0.2)
    assert c.job(job)["Restarts"] == "1" and c.job(job)["NumNodes"] == "3-3", "as it was asked for"
    c.run(["scancel", str(job), str(other)])


def test_it_goes_on_without_a_node_that_vanishes(new_cluster):
    """Even that of its script: its time goes on."""
    c = new_cluster(nodes=3, cpus=2, memory_mb=1000, controller="heartbeat_timeout_secs = 8")
    job = c.submit("-N3", "-k", "--wrap", "sleep 300")
    with_off = c.submit("-N2", "-s", "-k", "-koff", "-H", "--wrap", "sleep 300")
    c.wait_state(job, "RUNNING")
    held = c.run(["salloc", "--no-shell", "-N2", "-w", "n[1-2]", "-k"]).stderr
    allocation = held.split()[4]
    c.nodes["n1"].kill()
    wait_for(lambda: shown(c, job) == "RUNNING 2 n[2-3] 2", 60, "n1 to be missed", every=0.3)
    assert c.job(job)["Restarts"] == "0"
    wait_for(lambda: shown(c, allocation) == "RUNNING 1 n2 1", 60, "the allocation too", every=0.3)
    c.ctld.kill()
    c.ctld.start()
    assert shown(c, job) == "RUNNING 2 n[2-3] 2"
    c.nodes["n1"].start()
    wait_for(lambda: c.run(["sinfo", "-h", "-n", "n1", "-o", "%T"]).stdout.strip() == "idle", 60, "n1 is back, and clean", every=0.3)
    c.run(["scancel", str(job), allocation, str(with_off)])
    c.wait_state(job, "CANCELLED")
    wait_for(lambda: c.run(["sinfo", "-h", "-o", "%T"]).stdout.split() == ["idle"], 60, "all free", every=0.3)


def test_an_srun_goes_on_without_a_node(c):
    body = "touch on.$SLURM_PROCID; [ $SLURM_NODEID = 2 ] && sleep 300; while [ ! -e go ]; do sleep 0.1; done; echo over"
    p = subprocess.Popen(["srun", "-N3", "-n3", "--no-kill", "-l", "bash", "-c", body], env=c.env, cwd=c.work, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(list(c.work.glob("on.*"))) == 3, 30, "three tasks")
    c.run(["scontrol", "update", "nodename=n3", "state=down", "reason=x"])
    wait_for(lambda: c.run(["sinfo", "-h", "-n", "n3", "-o", "%T"]).stdout.strip() == "down", 30, "n3 is clean", every=0.2)
    (c.work / "go").touch()
    out, err = p.communicate(timeout=60)
    assert sorted(out.splitlines()) == ["0: over", "1: over"], (out, err)
    assert p.returncode == 143 and "n3: task 2: Terminated" in err and "aborted" not in err, err
