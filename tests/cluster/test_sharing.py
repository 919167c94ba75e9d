# SPDX-License-Identifier: Apache-2.0
"""With whom jobs share their nodes: what they and their partition say makes one answer, which is kept to, shown, and told to the script."""
import pytest

from spurtest import Cluster, wait_for

CONF = ('\n[[partitions]]\nname = "plain"\ndefault = true\n\n[[partitions]]\nname = "changed"\n')
SCRIPT = 'echo "$SLURM_JOB_OVERSUBSCRIBE $SLURM_JOB_EXCLUSIVE $SPUR_JOB_OVERSUBSCRIBE $SPUR_JOB_EXCLUSIVE"; sleep 600'


@pytest.fixture(scope="module")
def c():
    with Cluster(nodes=1, cpus=4, conf=CONF) as cluster:
        yield cluster


def words(c, *options, change=None):
    """OverSubscribe and Exclusive of a running job, and its CPUs; the script has been told the same."""
    if change:
        c.run(f"scontrol update PartitionName=changed {change}")
    job = c.batch(SCRIPT, "-p", "changed" if change else "plain", "--mem", "100", *options)
    c.wait_state(job, "RUNNING")
    fields = c.job(job)
    shown = (fields["OverSubscribe"], fields["Exclusive"])
    assert c.run(f"squeue -h -j {job} -O oversubscribe:9,exclusive:9").stdout.split() == list(shown)
    assert wait_for(lambda: c.output(job)).split() == [*shown, *shown]
    c.run(f"scancel {job}")
    c.wait_over(job)
    return (*shown, int(fields["NumCPUs"]))


@pytest.mark.parametrize("option, want", [
    ((), ("NO", "NO", 1)),
    (("--exclusive",), ("NO", "NODE", 4)),
    (("--exclusive=user",), ("NO", "USER", 1)),
    (("--exclusive=mcs",), ("NO", "MCS", 1)),
    (("--exclusive=topo",), ("NO", "TOPO", 4)),
    (("-s",), ("NO", "NO", 1)),
    (("--exclusive=oversubscribe",), ("NO", "NO", 1)),
])
def test_options_of_a_job(c, option, want):
    assert words(c, *option) == want


@pytest.mark.parametrize("change, option, want", [
    ("OverSubscribe=YES:4 Exclusive=NO", (), ("OK", "NO", 1)),
    ("OverSubscribe=YES:4 Exclusive=NO", ("-s",), ("YES", "NO", 1)),
    ("OverSubscribe=YES:4 Exclusive=NO", ("--exclusive=oversubscribe",), ("YES", "NO", 1)),
    ("OverSubscribe=YES:4 Exclusive=NO", ("--exclusive",), ("NO", "NODE", 4)),
    ("OverSubscribe=FORCE:2 Exclusive=NO", ("--exclusive",), ("YES", "NO", 1)),
    ("OverSubscribe=NO Exclusive=NODE", ("-s",), ("NO", "NODE", 4)),
    ("OverSubscribe=EXCLUSIVE", ("--exclusive=topo",), ("NO", "TOPO", 4)),
    ("OverSubscribe=NO Exclusive=USER", (), ("NO", "USER", 1)),
    ("OverSubscribe=NO Exclusive=TOPO", (), ("NO", "TOPO", 4)),
])
def test_what_the_partition_makes_of_it(c, change, option, want):
    assert words(c, *option, change=change) == want


@pytest.mark.parametrize("change, want", [
    ("OverSubscribe=FORCE:4 Exclusive=USER", ("FORCE:4", "USER")),
    ("Exclusive=NO", ("FORCE:4", "NO")),
    ("Exclusive=TOPO", ("FORCE:4", "TOPO")),
    ("Exclusive=NODE", ("NO", "NODE")),
    ("Exclusive=NO", ("NO", "NO")),
    ("OverSubscribe=EXCLUSIVE", ("NO", "NODE")),
    ("OverSubscribe=YES", ("YES:4", "NO")),
    ("OverSubscribe=FORCE", ("FORCE:4", "NO")),
    ("ExclusiveUser=YES", ("FORCE:4", "USER")),
    ("ExclusiveUser=NO", ("FORCE:4", "NO")),
])
def test_a_partition_says_both(c, change, want):
    c.run(f"scontrol update PartitionName=changed {change}")
    fields = dict(w.split("=", 1) for w in c.run("scontrol show partition changed -o").stdout.split())
    assert (fields["OverSubscribe"], fields["Exclusive"]) == want
    got = c.run("scontrol update PartitionName=changed Exclusive=MCS", check=False)
    assert got.returncode == 1


def test_alone_means_alone():
    with Cluster(nodes=1, cpus=4, conf=CONF) as c:
        c.run("scontrol update PartitionName=changed Exclusive=TOPO")
        for options in (("--exclusive=topo",), ("-p", "changed")):
            job = c.submit("--mem", "100", *options, "--wrap", "sleep 600")
            c.wait_state(job, "RUNNING")
            other = c.submit("--mem", "100", "--wrap", "true")
            got = c.run("srun --mem 100 --immediate=1 true", check=False)
            assert got.returncode == 1 and c.job(other)["JobState"] == "PENDING"
            c.run(f"scancel {job}")
            c.wait_state(other, "COMPLETED")
        mcs = c.submit("--mem", "100", "--exclusive=mcs", "--wrap", "sleep 600")
        c.wait_state(mcs, "RUNNING")
        c.run("srun --mem 100 true")  # no job has a label: all have the same
