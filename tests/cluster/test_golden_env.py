# SPDX-License-Identifier: Apache-2.0
"""Whole environments of batch scripts, tasks and salloc's commands beside Slurm 26.05's (tests/golden/submit/environments.golden): names and values, all but ids, times, pids
and addresses; and each SLURM_ variable has its SPUR_ twin. A variable that is not equal has a line "env BLOCKS NAME" with its reason in tests/golden/left-out."""
import re

import pytest

from goldenworld import goldenfile, world
from spurtest import wait_for

BLOCKS = goldenfile.read(goldenfile.HERE / "submit" / "environments.golden")
RULES = goldenfile.left_out("submit")
OURS = [b for b in BLOCKS if (b.of("env") or re.search(r"\benv\b", b.command)) and not goldenfile.why_left_out(b, RULES)]
LEFT_OUT = [(what.split()[1], set(what.split()[2:])) for what, _ in goldenfile.rules() if what.startswith("env ")]  # (blocks, names)
# The recorded cluster had a default account and QOS for its user.
ACCOUNT = {"alice": {f"{p}_{n}": v for p in ("SBATCH", "SALLOC", "SLURM") for n, v in (("ACCOUNT", "ml"), ("QOS", "normal"))}}
ASKED = {"SLURM_ACCOUNT", "SLURM_QOS"}
# Of the many variables of a login only these are compared, besides Slurm's.
MORE = re.compile(r"(ENVIRONMENT|HOSTNAME|TMPDIR|HYDRA_\w+|I_MPI_\w+|OMPI_\w+|PRTE_\w+|CUDA_\w+|GPU_\w+|ROCR_\w+|ZE_\w+|NVIDIA_\w+)$")
SLURMS = re.compile(r"(SLURM|SLURMD|SRUN)_\w+$")
VALUES = [  # what stands for a value that is another each time
    (r"SLURM_(ARRAY_)?JOB_?ID", r"\d+", "ID"),
    (r"\w*(_PORT|_PID)|SLURM_JOB_(START|END)_TIME", r"\d+|\((number|unix)\)", "N"),
    (r"SLURM_JOB_SLUID", r"s[0-9A-Za-z]{13}|\(string\)", "SLUID"),
    (r"SLURM_(LAUNCH_NODE_IPADDR|SRUN_COMM_HOST)", r"[\d.]+", "IP"),
    (r"SLURM_JOB_GROUP", r".+", "GROUP"),
    (r"SLURM_JOB_[UG]ID", r"\d+", "ID"),
]


def plain(name, value):
    for names, values, stands in VALUES:
        if re.fullmatch(names, name) and re.fullmatch(values, value):
            return stands
    return value


def parse(lines):
    return {name: plain(name, value) for name, _, value in (line.partition("=") for line in lines if "=" in line)}


def of_block(block):
    """(variables, those that are absent)"""
    lines = block.of("env") or block.command.splitlines()[1:]
    absent = {n for line in lines if line.startswith("(absent: ") for n in line[9:].rstrip(")").split()}
    return parse(line for line in lines if not line.startswith("(")), absent


def compared(w, text):
    got = parse(w.recorded(text).splitlines())
    return {n: v for n, v in got.items() if (SLURMS.match(n) and n not in ASKED or MORE.match(n))}


def left_out(block):
    return {n for blocks, names in LEFT_OUT if block.name in goldenfile.expand(blocks) or blocks == "environments" for n in names}


def differences(block, want, got):
    out = []
    for name in sorted({*want, *got} - left_out(block)):
        if want.get(name) != got.get(name):
            out.append(f"{name}: recorded {want.get(name, '(absent)')}, now {got.get(name, '(absent)')}")
    return "\n".join(out)


def twins(text):
    env = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    return "\n".join(f"{n}={v} and SPUR_{n[6:]}={env.get('SPUR_' + n[6:], '(absent)')}" for n, v in sorted(env.items())
                     if n.startswith("SLURM_") and n not in ASKED and env.get("SPUR_" + n[6:]) != v)


@pytest.fixture(scope="module")
def six():
    w = world("six", devices=True, env=ACCOUNT).start()
    yield w
    w.c.close()


@pytest.fixture(scope="module")
def jobs(six):
    """The files that each recorded command's job wrote, run once."""
    made = {}

    def of(command):
        if command not in made:
            code, out, err = six.sh(six.ours(command) if command.startswith("sbatch") else command)
            assert code == 0, f"{command}: {out}{err}"
            job = out.split()[-1]
            wait_for(lambda: job not in six.c.run("squeue -h -o %F").stdout.split(), 40, f"job {job} to end")
            made[command] = job
        return made[command]

    return of


def job_of(block):
    """(command, the file of its environment, the file that it is told as a difference to)"""
    at = BLOCKS.index(block)
    first = lambda b: re.search(r"`(sbatch [^`]*)`", b.command)  # noqa: E731
    if m := first(block):
        return m[1], "e.{}.b", None
    if block.command.startswith("sbatch --array"):
        return block.command.split("`")[0], "e.{}.5", None
    if block.command.startswith("its last element"):
        return BLOCKS[at - 1].command.split("`")[0], "e.{}.9", None
    batch = next(b for b in reversed(BLOCKS[:at]) if first(b))
    return first(batch)[1], "e.{}.s" + re.match(r"task (\d)", block.command)[1], batch


def wanted(block):
    """The whole environment that was recorded: most are told as what differs from another."""
    new, absent = of_block(block)
    if block is BLOCKS[0]:
        return new
    command, _, batch = job_of(block)
    if batch:  # a task has its script's; what all tasks have besides is told of the first one
        return {**wanted(batch), **of_block(BLOCKS[1])[0], **new}
    if block.command.startswith("its last element"):
        return {**wanted(BLOCKS[BLOCKS.index(block) - 1]), **new}
    env = {n: v for n, v in {**wanted(BLOCKS[0]), **new}.items() if n not in absent}
    env["SLURM_JOB_NAME"] = (re.search(r"-J (\w+)", command) or ["", command.split()[-1]])[1]
    if "--ntasks-per-node" not in command:
        env.pop("SLURM_NTASKS_PER_NODE", None)
    return env


@pytest.mark.slow
@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in OURS if b.of("env") or b.command.startswith("sbatch --array")])
def test_environment_as_recorded(six, jobs, block):
    command, path, _ = job_of(block)
    text = (six.c.work / path.format(jobs(command))).read_text()
    wrong = differences(block, wanted(block), compared(six, text)) + twins(text)
    assert not wrong, f"{block.name}: {block.command.splitlines()[0]}\n{wrong}"


@pytest.mark.slow
@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in OURS if b.of("out")])
def test_environment_of_a_command_as_recorded(six, block):
    six.clean()
    code, out, err = six.sh(six.ours(block.command))
    assert code == 0, err
    if "uniq -c" in block.command:  # what differs between two tasks
        names = lambda lines: sorted(line.split()[1].replace("(number)", "1").split("=")[0] for line in lines)  # noqa: E731
        now = [n for n in names(out.splitlines()) if n.startswith("SLURM") and n not in left_out(block)]
        assert now == [n for n in names(block.of("out")) if n not in left_out(block)]
        return
    wrong = differences(block, parse(block.of("out")), compared(six, out))
    assert not wrong, f"{block.name}: {block.command.splitlines()[0]}\n{wrong}"
