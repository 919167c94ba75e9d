# SPDX-License-Identifier: Apache-2.0
"""scontrol update NumNodes= and NodeList= of a job that runs: it gives nodes back."""
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
