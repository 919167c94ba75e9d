# SPDX-License-Identifier: Apache-2.0
"""A job that is queued again: each life of it has a second id and a line of its own."""
import pytest

from spurtest import wait_for

SHARED = {"cpus": 4}


@pytest.fixture
def c(shared):
    yield shared


def sluid(c, job):
    return c.run(["squeue", "-h", "-j", str(job), "-O", "sluid:20"]).stdout.strip()


def lines(c, *options):
    return c.run(["sacct", "-X", "-n", "-P", "-o", "jobid,state,exitcode,sluid", *map(str, options)]).stdout.splitlines()


def test_lives_and_second_ids(c):
    job = c.submit("--requeue", "--wrap", "sleep 100")
    c.wait_state(job, "RUNNING")
    first = sluid(c, job)
    assert c.run(["squeue", "-h", "-o", "%i", "-j", first]).stdout == f"{job}\n"
    assert f"JobId={job} " in c.run(["scontrol", "show", "job", first]).stdout
    c.run(["scontrol", "hold", first])
    assert c.run(["squeue", "-h", "-j", str(job), "-o", "%T %r %Q"]).stdout == "RUNNING JobHeldAdmin 0\n"
    c.run(["scontrol", "requeue", first])
    wait_for(lambda: sluid(c, job) != first, 20, "a second life")
    second = sluid(c, job)
    wait_for(lambda: lines(c, "-D", "-j", job) == [f"{job}|REQUEUED|0:0|{first}", f"{job}|PENDING|0:0|{second}"], 10, "two lines")
    assert c.run(["squeue", "-h", "-j", second, "-o", "%T %r"]).stdout == "PENDING JobHeldAdmin\n"
    assert lines(c, "-j", job) == [f"{job}|PENDING|0:0|{second}"]
    assert lines(c, "-j", first) == [f"{job}|REQUEUED|0:0|{first}"]
    after = c.submit(f"--dependency=afterany:{second}", "--wrap", "true")
    assert f"Dependency=afterany:{job}" in c.run(["scontrol", "show", "job", str(after)]).stdout
    c.run(["scancel", second])
    c.wait_state(after, "COMPLETED")
    assert [line.split("|")[1].split()[0] for line in lines(c, "-D", "-j", job)] == ["REQUEUED", "CANCELLED"]
    unknown = "s0000000000000"
    assert c.run(["scontrol", "show", "job", unknown], check=False).returncode == 1
