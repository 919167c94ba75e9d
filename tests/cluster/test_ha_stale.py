# SPDX-License-Identifier: Apache-2.0
"""What a controller without a leader says, and what it answers to those who asked for no more than it has."""
import os

import pytest

from hacluster import HACluster
from spurtest import user_of


@pytest.fixture(scope="module")
def minority():
    """One of three is left. (the cluster, that member, a job that waits)"""
    with HACluster(nodes=1) as c:
        job = c.batch("true", "--begin", "now+1hour", "-J", "kept")
        c.wait_same()
        left = c.followers()[0]
        for i in c.ids:
            if i != left:
                c.kill(i)
        yield c, left, job


@pytest.mark.parametrize("command, shown", [
    ("squeue -h -o %j", "kept"), ("sinfo -h -N -o %N", "n1"), ("sacct -n -X -P -o jobname", "kept"), ("sprio -h -o %i:%u", "{job}:{user}"),
    ("scontrol show job {job}", "JobName=kept"), ("spur why {job}", "kept")])
def test_stale_reads_are_answered(minority, command, shown):
    c, left, job = minority
    words = command.format(job=job).split()
    at = 2 if words[0] == "spur" else 1
    got = c.run([*words[:at], "--stale", *words[at:]], env=c.only(left))
    assert shown.format(job=job, user=user_of(os.getuid())) in got.stdout


def test_the_environment_says_it_as_well(minority):
    c, left, _ = minority
    assert c.run("squeue -h -o %j", env={**c.only(left), "SPUR_STALE": "1"}).stdout == "kept\n"


def test_without_it_a_read_is_not_answered(minority):
    c, left, _ = minority
    assert c.call(left, "Jobs", timeout=3) is None
    assert c.call(left, "Jobs", timeout=3, metadata=[("spur-stale", "1")]) is not None


def test_no_write_is_taken_by_asking_for_it(minority):
    c, left, _ = minority
    before = c.ping(left).index
    assert c.call(left, "Submit", timeout=3, metadata=[("spur-stale", "1")]) is None
    assert c.ping(left).index == before
