# SPDX-License-Identifier: Apache-2.0
"""-O: more tasks than CPUs. And [scheduler] enforce_part_limits: what breaks a partition's limit waits, or is refused."""
import collections

import pytest

SHARED = {"cpus": 2}
TOO_MANY = "More processors requested than permitted"


def test_a_step_of_its_own(shared):
    got = shared.run("srun -n16 -O -N2 bash -c 'echo $SLURMD_NODENAME'")
    assert collections.Counter(got.stdout.split()) == {"n1": 8, "n2": 8}
    assert len(shared.run("srun -n5 -O -N1 hostname").stdout.split()) == 5
    got = shared.run("srun -n5 -N1 hostname", check=False)
    assert got.returncode == 1 and "not available" in got.stderr


def test_steps_of_a_batch_job(shared):
    job = shared.batch("srun -n7 hostname | wc -l; srun -O -n3 hostname | wc -l; echo $SLURM_NTASKS $SLURM_TASKS_PER_NODE", "-O", "-N1", "-n6")
    shared.wait_state(job, "COMPLETED")
    assert shared.output(job).split() == ["7", "3", "6", "6"]
    assert shared.job(job)["NumCPUs"] == "1" or "cpu=1," in shared.job(job)["AllocTRES"]


def test_in_an_allocation(shared):
    got = shared.run(["salloc", "-Q", "-n8", "-O", "bash", "-c", "srun -n8 -l hostname | sort -n"])
    assert [line.split(":")[0].strip() for line in got.stdout.splitlines()] == [str(i) for i in range(8)]


@pytest.mark.parametrize("enforce, outcomes", [("NO", ["waits", "waits", "waits"]), ("ANY", ["refused", "waits", "refused"]),
                                               ("ALL", ["refused", "refused", "refused"])])
def test_limits_of_partitions(new_cluster, enforce, outcomes):
    c = new_cluster(nodes=1, cpus=2, scheduler=f'enforce_part_limits = "{enforce}"',
                    conf='[[partitions]]\nname = "short"\nmax_time = "10"\n\n[[partitions]]\nname = "long"\ndefault = true\n')
    asks = [["-p", "short", "-t", "20"], ["-p", "short,long", "-t", "20", "-H"], ["-n3"]]
    for ask, outcome in zip(asks, outcomes):
        got = c.run(["sbatch", *ask, "--wrap", "true"], check=False)
        assert (got.returncode == 0) == (outcome == "waits"), (ask, got.stderr)
        if outcome == "refused":
            assert (TOO_MANY if ask == ["-n3"] else "Requested time limit is invalid") in got.stderr
    assert ["EnforcePartLimits", "=", enforce] in [line.split() for line in c.run("scontrol show config").stdout.splitlines()]


def test_a_program_is_looked_for_where_the_job_works(shared):
    program = shared.script("echo here $0", name="hereprog")
    got = shared.run("srun hereprog")
    assert got.stdout == f"here {program}\n"
    (shared.work / "below").mkdir()
    assert shared.run("srun -D .. hereprog", cwd=shared.work / "below").stdout == f"here {program}\n"
    assert len(shared.run("srun -N1 --ntasks-per-node=6 -O hostname").stdout.split()) == 6
