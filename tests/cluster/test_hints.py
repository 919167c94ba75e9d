# SPDX-License-Identifier: Apache-2.0
"""Errors name what was perhaps meant: an option, a column, a partition, a node, a verb, a keyword, a key. Slurm's own sentence comes first, and where nothing is near nothing is added."""
import re

import pytest

SHARED = {"conf": '[[partitions]]\nname = "debug"\ndefault = true\n'}
# command → (what is written in error, what is meant; None: nothing is near)
CASES = {
    "sbatch --partion=debug --wrap true": "--partition",
    "squeue --usre=root": "--user",
    "spur cancel --interctive 5": "--interactive",
    "sbatch --bogus-option=1 --wrap true": None,
    "squeue -O jobd": "jobid",
    "squeue -O zzzzz": None,
    "sinfo -O nodlist": "nodelist",
    "sacct -o jobidd": "JobID",
    "sbatch -p debgu --wrap true": "debug",
    "srun -p dbug true": "debug",
    "salloc -p debugg true": "debug",
    "sbatch -p weekend --wrap true": None,
    "sbatch -w n11 --wrap true": "n1",
    "scontrol shwo job": "show",
    "scontrol xyzzy": None,
    "scontrol show partitons": "partitions",
    "scontrol update jobid=1 timelimt=5": "TimeLimit",
    "scontrol update nodename=n1 reasn=x": "Reason",
    "spur sumbit": "submit",
    "spur xyzzy": None,
    "spur help sqeue": "squeue",
}


@pytest.mark.parametrize("command", CASES)
def test_hint(shared, command):
    got = shared.run(command, check=False)
    hints = re.findall(r"^.*: did you mean '(.*)'\?$", got.stderr, re.M)
    want = CASES[command]
    assert [h.lower() for h in hints] == ([want.lower()] if want else [])
    assert not got.stderr.splitlines()[0].endswith("?") and (got.returncode or "-O" in command)


def test_help_of_a_verb(shared):
    assert shared.run("spur help submit").stdout == shared.run("spur submit --help").stdout != shared.run("spur help queue").stdout
    page = shared.run("spur --help").stdout
    groups = re.findall(r"^(\w+)$", page, re.M)
    assert groups == ["jobs", "cluster", "shell"] and shared.run("spur help sbatch").stdout == shared.run("spur submit --help").stdout
    for other, verb in re.findall(r"(\w+) \((\w+)\)", page.split("Other names: ")[1]):
        assert shared.run(["spur", other, "--usage"]).stdout.replace(f"spur {other}", f"spur {verb}") == shared.run(["spur", verb, "--usage"]).stdout


def test_partition_that_is_not_there(shared):
    """Slurm says it on stdout."""
    got = shared.run("scontrol show partition debgu", check=False)
    assert (got.returncode, got.stdout, got.stderr) == (1, "Partition debgu not found\n", "scontrol: did you mean 'debug'?\n")
    got = shared.run("scontrol show partition weekend", check=False)
    assert (got.returncode, got.stdout, got.stderr) == (1, "Partition weekend not found\n", "")
