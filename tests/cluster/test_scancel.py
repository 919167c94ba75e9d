# SPDX-License-Identifier: Apache-2.0
"""scancel: each option and variable by what it spares and what it ends; what is not there yet is refused by name."""
import re

import pytest

SHARED = {"conf": '[[partitions]]\nname = "debug"\ndefault = true\n\n[[partitions]]\nname = "deep"\n'}
# option → the job that it selects, the one that it spares
PAIRS = {
    "-A ml": (["-A", "ml"], []),
    "-n one": (["-J", "one"], ["-J", "two"]),
    "--jobname=one": (["-J", "one"], ["-J", "two"]),
    "-p deep": (["-p", "deep"], []),
    "-q high": (["-q", "high"], []),
    "-t PENDING -n one": (["-J", "one"], ["-J", "two"]),
    "--me -n one": (["-J", "one"], ["-J", "two"]),
    "-u root -n one": (["-J", "one"], ["-J", "two"]),
}
VARIABLES = {"ACCOUNT": ("ml", ["-A", "ml"]), "NAME": ("one", ["-J", "one"]), "PARTITION": ("deep", ["-p", "deep"]), "QOS": ("high", ["-q", "high"])}


def state(c, job):
    return c.run(["squeue", "-h", "-t", "all", "-o", "%T", "-j", str(job)]).stdout.strip()


@pytest.fixture
def held(shared):
    yield lambda options: shared.submit("-H", *options, "--wrap", "true")
    shared.run("scancel --me")


@pytest.mark.parametrize("options", PAIRS)
def test_option(shared, held, options):
    it, other = (held(more) for more in PAIRS[options])
    user = shared.run("id -un").stdout.strip()
    assert shared.run(["scancel", *options.replace("root", user).split()]).stderr == ""
    assert (state(shared, it), state(shared, other)) == ("CANCELLED", "PENDING")


@pytest.mark.parametrize("variable", VARIABLES)
def test_variable(shared, held, variable):
    value, options = VARIABLES[variable]
    it, other = held(options), held([])
    shared.run("scancel", env={f"SCANCEL_{variable}": value})
    assert (state(shared, it), state(shared, other)) == ("CANCELLED", "PENDING")


def test_interactive(shared, held):
    for answer, how, want in (("n\n", ["-i"], "PENDING"), ("", ["-i"], "PENDING"), ("what\ny\n", ["-i"], "CANCELLED")):
        job = held([])
        got = shared.run(["scancel", *how, str(job)], input=answer)
        assert f"Cancel job_id={job} name=wrap partition=debug [y/n]? " in got.stdout and state(shared, job) == want
    job = held([])
    shared.run(["scancel", str(job)], input="n\n", env={"SCANCEL_INTERACTIVE": "true"})
    assert state(shared, job) == "PENDING"
    shared.run(["scancel", str(job)], input="n\n", env={"SCANCEL_INTERACTIVE": "false"})
    assert state(shared, job) == "CANCELLED"


def test_values_of_flags(shared):
    for name in ("BATCH", "FULL", "INTERACTIVE", "CTLD", "VERBOSE"):
        got = shared.run("scancel 1", env={f"SCANCEL_{name}": "perhaps"}, check=False)
        assert (got.returncode, got.stderr) == (1, f"scancel: error: Unrecognized SCANCEL_{name} value: perhaps\n")


def test_what_is_said(shared, held):
    job = held([])
    assert shared.run(["scancel", "-v", str(job)]).stderr == f"scancel: Terminating job {job}\n"
    assert shared.run(["scancel", str(job)]).stderr == ""
    told = shared.run(["scancel", str(job)], env={"SCANCEL_VERBOSE": "true"}).stderr
    assert "Terminating job" in told and "Kill job error" in told
    assert shared.run(["scancel", "-Q", "-v", str(job)]).stderr == f"scancel: Terminating job {job}\n"
    assert shared.run(["scancel", "--ctld", str(held([]))]).returncode == 0
    assert shared.run(["scancel", "--hurry", str(held([]))]).returncode == 0


def test_nodes_and_reservation(shared):
    jobs = [shared.submit("-w", node, "--wrap", "sleep 60") for node in ("n1", "n2")]
    for job in jobs:
        shared.wait_state(job, "RUNNING")
    shared.run("scancel -R nosuch --me")
    assert {state(shared, job) for job in jobs} == {"RUNNING"}
    shared.run("scancel -w n2")
    shared.wait_over(jobs[1])
    assert state(shared, jobs[0]) == "RUNNING"
    shared.run(["scancel", str(jobs[0])])
    shared.wait_over(jobs[0])


@pytest.mark.parametrize("option", ["--cron", "--sibling=x", "--wckey=x"])
def test_refused_by_name(shared, option):
    got = shared.run(f"scancel {option} 1", check=False)
    assert got.returncode == 1 and re.fullmatch(r"scancel: error: option --[a-z]+ is not supported yet \(see docs/compatibility.md\)\n", got.stderr)


def test_variables_refused_by_name(shared):
    for name in ("CRON", "WCKEY"):
        got = shared.run("scancel 1", env={f"SCANCEL_{name}": "x"}, check=False)
        assert got.returncode == 1 and got.stderr.startswith(f"scancel: error: SCANCEL_{name}: option --{name.lower()} is not supported yet")
