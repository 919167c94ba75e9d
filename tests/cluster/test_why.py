# SPDX-License-Identifier: Apache-2.0
"""`spur why JOB`: pairs of situations that differ in one fact; the answer names the fact, and goes with it."""
import json
import re

import pytest

from spurtest import Cluster, wait_for

CONF = """
[licenses]
matlab = 1

[[partitions]]
name = "debug"
default = true
max_time = "01:00:00"

[[partitions]]
name = "small"
nodes = "n1"
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=2, cpus=4, conf=CONF) as c:
        yield c


@pytest.fixture
def full(cluster):
    """Two jobs that have both nodes for half an hour."""
    jobs = [cluster.submit("-N1", "-n4", "-t", "30", "-J", f"full{i}", "--wrap", "sleep 1000") for i in range(2)]
    for job in jobs:
        cluster.wait_state(job, "RUNNING")
    yield jobs
    cluster.run("scancel --me")
    for job in jobs:
        cluster.wait_over(job)


def why(c, job, *options):
    return c.run("spur why", *options, job).stdout


def facts(c, job):
    return json.loads(why(c, job, "--json"))[0]


def settled(c, job, part):
    """The jobs are there before the plan is: asks until it is said."""
    wait_for(lambda: part in why(c, job), what=lambda: why(c, job))
    return why(c, job)


def node_of(c, job):
    return c.job(job)["NodeList"]


def test_busy_nodes_name_their_jobs(cluster, full):
    job = cluster.submit("-N2", "-t", "5", "-J", "wide", "--wrap", "true")
    said = settled(cluster, job, "Resources")
    assert said.startswith(f"Job {job} (wide) waits in partition debug: Resources.\n")
    for other in full:
        row = next(line for line in said.splitlines() if f"  - {node_of(cluster, other)}:" in line)
        assert f"busy: 0 of its 4 CPUs are free, and 1 are needed; job {other} is there, until 2" in row
    assert re.search(r"It is expected to start at \d{4}-\d\d-\d\dT\S+ on \S+\.", said)
    cluster.run("scancel", full[0])
    cluster.wait_over(full[0])
    said = why(cluster, job)
    assert f"job {full[0]} is there" not in said and f"job {full[1]} is there" in said
    assert "it has room now for 2 of its tasks" in said


def test_who_is_before_it(cluster, full):
    first = cluster.submit("-N2", "-t", "5", "--wrap", "true")
    job = cluster.submit("-N2", "-t", "5", "--wrap", "true")
    assert f"Before it in the queue: 1 job: {first}\n" in settled(cluster, job, "Priority")
    cluster.run("scancel", first)
    assert "Before it" not in settled(cluster, job, "Resources")


def test_a_drained_node_is_named_with_its_cause(cluster, full):
    job = cluster.submit("-N2", "-t", "5", "--wrap", "true")
    node = node_of(cluster, full[0])
    assert "drained" not in settled(cluster, job, "Resources")
    cluster.run("scontrol update", f"nodename={node}", "state=drain", "reason=new disk")
    assert f"  - {node}: drained: new disk (by " in settled(cluster, job, "drained")
    cluster.run("scontrol update", f"nodename={node}", "state=resume")
    assert "drained" not in settled(cluster, job, "Resources")


def test_limits_by_name_and_value(cluster):
    job = cluster.submit("-t", "90", "--wrap", "true")
    assert "partition debug: max_time is 1:00:00, and it asks for 1:30:00" in settled(cluster, job, "PartitionTimeLimit")
    cluster.run("scontrol update", f"jobid={job}", "timelimit=1")
    cluster.wait_over(job)
    wide = cluster.submit("-p", "small", "-N2", "--wrap", "true")
    assert "partition small has 1 nodes, and it asks for 2" in settled(cluster, wide, "PartitionNodeLimit")
    cluster.run("scancel", wide)


def test_gates(cluster):
    held = cluster.submit("-H", "--wrap", "true")
    assert f"it is held (`scontrol release {held}` lets it go)" in settled(cluster, held, "JobHeldUser")
    after = cluster.submit("-d", f"afterok:{held}", "--wrap", "true")
    assert f"it waits for job {held} to end well (afterok), which is PENDING" in settled(cluster, after, "Dependency")
    later = cluster.submit("--begin=now+1hour", "--wrap", "true")
    assert "its --begin is in the future, until 2" in settled(cluster, later, "BeginTime")
    cluster.run("scontrol release", held)
    cluster.wait_over(after)
    assert why(cluster, after) == f"Job {after} (wrap) doesn't wait: it is COMPLETED.\n"
    cluster.run("scancel", later)


def test_licences_and_arrays(cluster):
    has = cluster.submit("-L", "matlab:1", "--wrap", "sleep 1000")
    cluster.wait_state(has, "RUNNING")
    job = cluster.submit("-L", "matlab:1", "--wrap", "true")
    assert f"licence matlab: it needs 1, 0 of 1 free; job {has} has it" in settled(cluster, job, "Licenses")
    cluster.run("scancel", has)
    cluster.wait_over(job)
    array = cluster.submit("-a", "1-4%1", "--wrap", "sleep 1000")
    assert "1 tasks of its array run, and its %1 allows no more" in settled(cluster, f"{array}_3", "JobArrayTaskLimit")
    wait_for(lambda: f"Job {array}_1 (wrap) doesn't wait: it is RUNNING.\n" == why(cluster, f"{array}_1"))
    cluster.run("scancel", array)


def test_as_json(cluster, full):
    job = cluster.submit("-N2", "-t", "5", "--wrap", "true")
    settled(cluster, job, "Resources")
    got = facts(cluster, job)
    assert (got["job"], got["reason"], got["partition"], got["state"]) == (str(job), "Resources", "debug", "PENDING")
    assert sorted(n["jobs"][0] for n in got["nodes"]) == sorted(int(j) for j in full)
    assert all(n["kind"] == "busy" and n["until"] > 0 for n in got["nodes"])
    assert got["expected_start"] == max(n["until"] for n in got["nodes"])


def test_mistakes(cluster):
    assert cluster.run("spur why 999999", check=False).stderr == "spur why: error: 999999: Invalid job id specified\n"
    assert cluster.run("spur why x", check=False).stderr == "spur why: error: x is not the id of a job, or of one task of an array\n"
    assert cluster.run("spur why", check=False).returncode == 1
