# SPDX-License-Identifier: Apache-2.0
"""Generic resources that are given away in other ways: explicit, no_consume; and what spur.conf and gres.conf say of one kind together."""
import pytest

from spurtest import Cluster, wait_for

CONF = '\n[[nodes]]\nnames = "n1"\ngres = ["r1:1", "r2:2", "free:no_consume:1", "tty:2"]\n'
GRES = "Name=r1 Flags=CountOnly\nName=r2 Count=2 Flags=explicit # as Slurm writes it\nName=tty File=/dev/tty[0-1]\n"


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    path = tmp_path_factory.mktemp("gres") / "gres.conf"
    path.write_text(GRES)
    with Cluster(nodes=1, cpus=4, conf=CONF, node_args=("--gres-config", str(path))) as cluster:
        yield cluster


def used(c):
    """What jobs have of the node's kinds."""
    line = next(w for w in c.run("scontrol show node n1 -d -o").stdout.split() if w.startswith("GresUsed="))
    return line.removeprefix("GresUsed=").replace("(IDX:N/A)", "")


@pytest.fixture
def none(c):
    c.run("scancel -u root", check=False)
    wait_for(lambda: used(c) == "r1:0,r2:0,free:0,tty:0" and not c.run("squeue -h").stdout)


@pytest.mark.parametrize("options, want", [
    (("--exclusive",), "r1:1,r2:0,free:0,tty:2(IDX:0-1)"),
    (("--exclusive", "--gres=r2"), "r1:1,r2:1,free:0,tty:2(IDX:0-1)"),
    (("--exclusive", "--gres=r2:2,tty:1"), "r1:1,r2:2,free:0,tty:2(IDX:0-1)"),
    (("--gres=r2,free",), "r1:0,r2:1,free:0,tty:0"),
    (("--gres=tty",), "r1:0,r2:0,free:0,tty:1(IDX:0)"),
])
def test_what_a_job_has_of_each(c, none, options, want):
    job = c.submit("--mem", "1", *options, "--wrap", "sleep 600")
    c.wait_state(job, "RUNNING")
    assert used(c) == want


def test_all_find_what_nobody_consumes(c, none):
    assert " Gres=r1:1,r2:2,free:no_consume:1,tty:2" in c.run("scontrol show node n1 -o").stdout
    jobs = [c.submit("--gres=free", "--mem", "1", "--wrap", "srun --gres=free --mem 1 sleep 600") for _ in range(3)]
    for job in jobs:
        c.wait_state(job, "RUNNING")
    wait_for(lambda: c.run("squeue -h -s").stdout.count("\n") == 6)
    c.run("srun --gres=free --mem 1 true")
    assert used(c) == "r1:0,r2:0,free:0,tty:0"
    got = c.run("sbatch --gres=free:2 --wrap true", check=False)
    assert got.returncode == 1 and "Requested node configuration is not available" in got.stderr


def test_one_that_is_consumed_is_waited_for(c, none):
    jobs = [c.submit("--gres=r1", "--mem", "1", "--wrap", "sleep 600") for _ in range(2)]
    c.wait_state(jobs[0], "RUNNING")
    wait_for(lambda: c.job(jobs[1])["Reason"] == "Resources")


def test_other_flags_are_refused(tmp_path):
    path = tmp_path / "gres.conf"
    path.write_text("Name=r1 Flags=one_sharing\n")
    with Cluster(nodes=0) as c:
        got = c.run(["spurd", "-N", "n9", "--gres-config", str(path), "--state-dir", str(tmp_path / "s")], check=False)
        assert got.returncode != 0 and "line 1: Flags=one_sharing is not supported" in got.stderr
