# SPDX-License-Identifier: Apache-2.0
"""--contiguous: the nodes of a job are neighbours in the order of their names."""
import pytest

from spurtest import Cluster, wait_for


@pytest.fixture(scope="module")
def c():
    with Cluster(nodes=6, cpus=2) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def none(c):
    yield
    c.run("scancel -u root", check=False)
    wait_for(lambda: not c.run("squeue -h").stdout)


def fill(c, *names):
    jobs = [c.submit("-n2", "--mem", "1", "-w", name, "--wrap", "sleep 600") for name in names]
    for job in jobs:
        c.wait_state(job, "RUNNING")
    return jobs


def nodes(c, *options):
    job = c.submit("--mem", "1", *options, "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    return c.job(job)["NodeList"], job


@pytest.mark.parametrize("options, plain, together", [
    (("-N2",), "n[1,3]", "n[3-4]"),
    (("-n4",), "n[1,3]", "n[3-4]"),
    (("-n5",), "n[1,3-4]", None),
    (("-N2", "-w", "n6"), None, None),
    (("-N1",), "n1", "n1"),
])
def test_neighbours_are_chosen(c, options, plain, together):
    fill(c, "n2", "n5")
    if plain:
        got, job = nodes(c, *options)
        assert got == plain
        c.run(f"scancel {job}")
        c.wait_over(job)
    if together:
        got, job = nodes(c, "--contiguous", *options)
        assert got == together
    else:
        job = c.submit("--mem", "1", "--contiguous", *options, "--wrap", "sleep 600")
        wait_for(lambda: c.job(job)["Reason"] == "Resources")
    assert c.job(job)["Contiguous"] == "1" and c.run(f"squeue -h -j {job} -O contiguous").stdout.strip() == "1"


def test_it_waits_for_neighbours_and_then_runs(c):
    blocks = fill(c, "n2", "n4", "n6")
    job = c.submit("-N3", "--mem", "1", "--contiguous", "--wrap", "sleep 600")
    wait_for(lambda: c.job(job)["Reason"] == "Resources")
    c.run(f"scancel {blocks[1]}")
    c.wait_state(job, "RUNNING")
    assert c.job(job)["NodeList"] == "n[3-5]"


def test_salloc_and_srun(c):
    fill(c, "n2")
    for command in ("salloc -Q", "srun"):
        got = c.run(f"{command} -N2 --mem 1 --contiguous printenv SLURM_JOB_NODELIST").stdout.split()
        assert set(got) == {"n[3-4]"}


def test_what_never_fits_is_told(c):
    for options in ("-N2 -x n2,n4,n6", "-n7 -N2-3", "-N2 -w n1,n3", "-N2 -G2"):
        got = c.run(f"sbatch --contiguous {options} --wrap true", check=False)
        assert got.returncode == 1, options
    for options in ("-N2 -x n2,n4", "-N3 -w n1,n3"):
        c.wait_over(c.submit("--mem", "1", "--contiguous", *options.split(), "--wrap", "true"))
