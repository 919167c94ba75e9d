# SPDX-License-Identifier: Apache-2.0
"""Slurm's way is the default; `[compat] flavor = "amd"`, or SPUR_COMPAT, takes AMD Spur's (docs/compatibility.md). Each policy by a pair of runs that differ by it alone."""

import time

import pytest

from spurtest import PATIENCE, Cluster, wait_for

AMD = {"SPUR_COMPAT": "amd"}


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as c:
        yield c


def test_a_limit_below_a_minute(cluster):
    job = cluster.submit("-t", "0:00:02", "--wrap", "sleep 100", env=AMD)
    other = cluster.submit("-t", "0:00:02", "--wrap", "sleep 100")
    cluster.wait_state(job, "TIMEOUT", timeout=20)
    assert cluster.state_of(other) == "RUNNING" and cluster.job(other)["TimeLimit"] == "00:01:00"
    cluster.run("scancel", other)


def test_what_show_job_shows(cluster):
    job = cluster.submit("-H", "--wrap", "true")
    slurm = cluster.run("scontrol show job", job).stdout
    amd = cluster.run("scontrol show job", job, env=AMD).stdout
    assert "TimeLimit=" in slurm and "TimeLimit" not in amd
    assert slurm.index(" ReqNodeList=") < slurm.index(" NodeList=") and amd.index(" NodeList=") < amd.index(" ReqNodeList=")
    assert sorted(w for w in slurm.split() if not w.startswith("TimeLimit=")) == sorted(amd.split())
    said = [cluster.run("scontrol requeue", job, check=False, env=env).stderr for env in ({}, AMD)]
    assert said[1] == said[0].replace("\n", " (already pending)\n")
    said = [cluster.run("scontrol requeue 999999", check=False, env=env).stderr for env in ({}, AMD)]
    assert said[1] == said[0].replace("\n", " (not found)\n")


def test_a_wrong_word_is_told(cluster):
    got = cluster.run("scontrol show job 1", check=False, env={"SPUR_COMPAT": "pbs"})
    assert got.returncode == 1 and got.stderr == 'spur: error: SPUR_COMPAT: "pbs" is not allowed; must be "slurm" or "amd"\n'


@pytest.mark.parametrize("conf, env, wait", [("", {}, 30), ('\n[compat]\nflavor = "amd"\n', {}, 5), ("", AMD, 5),
                                             ('\n[compat]\nflavor = "slurm"\n', AMD, 30)])
def test_where_the_controller_has_it_from(new_cluster, conf, env, wait):
    """By the time between SIGTERM and SIGKILL, ten times as fast."""
    c = new_cluster(start=False, conf=conf, scale=10)
    c.daemon_env.update(env)
    c.start()
    job = c.batch("trap '' TERM; echo ready; while :; do sleep 0.05; done")
    wait_for(lambda: (c.work / f"slurm-{job}.out").exists() and c.output(job) == "ready\n")
    began = time.monotonic()
    c.run("scancel", job)
    c.wait_state(job, "CANCELLED")
    took = (time.monotonic() - began) * 10
    assert took >= wait and (wait == 30 or took < 30 * PATIENCE), took


@pytest.mark.root
@pytest.mark.parametrize("flavor, allowed", [("slurm", False), ("amd", True)])
def test_who_is_believed_may_do_everything(new_cluster, flavor, allowed):
    c = new_cluster(nodes=0, auth=None, auth_lines='plugin = "none"\n', conf=f'\n[compat]\nflavor = "{flavor}"\n')
    got = c.run("scontrol reconfigure", check=False, env={**c.tcp_env()}, uid=12345)
    assert (got.returncode == 0) == allowed, got.stderr
