# SPDX-License-Identifier: Apache-2.0
"""sbatch, srun, salloc and scancel beside what Slurm 26.05 printed and returned (tests/golden), on a cluster set up as the recorded one, and on a second one with other names and
sizes. Compared is all but ids, times, pids and host names. What is not run is in tests/golden/left-out, with reasons; test_everything_is_accounted_for counts it."""
import os
import re
import signal
import subprocess
import time

import pytest

import spurtest
from goldenworld import BOB, SETUPS, WHOLE, account_for, goldenfile, is_environment, world
from spurtest import Failed, wait_for

@pytest.fixture(scope="module")
def worlds(request):
    made = {}

    def get(kind):
        if kind not in made:
            made[kind] = world(kind).start()
        return made[kind]

    yield get
    for w in made.values():
        w.c.close()


BLOCKS = goldenfile.all_blocks("submit")
RULES = goldenfile.left_out("submit")
EVERYTHING = os.environ.get("SPUR_GOLDEN_ALL") == "1"  # for whoever mends the list: run what is left out too
SIZES = re.compile(r"-[nNc] ?\d{2,}|mem|-N ?\d|--gpus|per-gpu|-w|-x|-B|core|socket|mincpus")


def wanted():
    for blocks in BLOCKS.values():
        for block in blocks:
            if not is_environment(block) and (EVERYTHING or not goldenfile.why_left_out(block, RULES)):
                yield block


def signals_of(note):
    return [(float(s), getattr(signal, name)) for name, s in re.findall(r"(SIG\w+) after ([\d.]+) s", note)]


def run_block(w, block):
    """(exit, out, err)"""
    command = w.ours(block.command)
    signals = signals_of(block.note)
    during = SETUPS.get(f"during {block.name}", [])
    if block.exit == "stopped":
        signals = [(2.0, signal.SIGTERM)]
    if not signals and not during:
        return w.sh(command, block.user)
    p = w.popen("exec " + command if signals and block.exit != "stopped" else command, block.user)
    for i, (delay, signo) in enumerate(signals):
        time.sleep(min(delay, 1.5 if i == 0 else delay) * spurtest.PATIENCE)
        if block.exit == "stopped":
            os.killpg(p.pid, signo)
        else:
            p.send_signal(signo)
    if during:
        time.sleep(1.5 * spurtest.PATIENCE)
        w.do(during)
    try:
        out, err = p.communicate(timeout=40)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        raise Failed(f"{command} doesn't end: {p.communicate()}") from None
    return p.returncode if p.returncode >= 0 else 128 - p.returncode, out, err


def job_differs(w, block, out):
    """What `scontrol show job` says against the recorded `job:` lines."""
    m = re.search(r"Submitted batch job (\d+)", out)
    if not m:
        return f"not submitted: {out}"
    words = " ".join(block.of("job"))
    if m2 := re.match(r"(\w+) \((\w+)\) in (\S+), (\d+) nodes?, (\d+) CPUs?|(\w+) in (\S+) on (\S+), (\d+) CPUs?", words):
        state, reason, part, nodes, cpus = m2[1], m2[2], m2[3], m2[4], m2[5]
        if m2[6]:
            state, reason, part, nodes, cpus = m2[6], "None", m2[7], m2[8], m2[9]
        want = f"{state} {reason} {part} {nodes} {cpus}"
        seen = []

        def reached():
            got = w.c.run(["squeue", "-h", "-t", "all", "-j", m[1], "-o", "%T %r %P " + ("%N" if m2[6] else "%D") + " %C"], check=False).stdout.strip()
            seen[:] = [w.recorded(got)]
            return seen[0] == want

        try:
            wait_for(reached, 4, every=0.1)
        except Failed:
            return f"the job recorded: {want}\nof now:           {seen[0]}"
        fields = dict(re.findall(r"([A-Za-z/:]+)=(\S+)", words.partition(" CPUs")[2]))
    else:
        fields = {**WHOLE, **dict(re.findall(r"([A-Z][A-Za-z/:]*)=(\S+)", words))}
        if "MinMemoryNode" in fields:
            fields.pop("MinMemoryCPU", None)
    got = w.c.job(int(m[1]))
    wrong = []
    for name, value in fields.items():
        if name in ("Account", "QOS", "Priority", "EligibleTime"):
            continue
        seen = w.recorded(got.get(name, "(absent)"))
        if re.sub(r"\d{4}-\d\d-\d\dT[\d:]+", "TIME", seen) != re.sub(r"\d{4}-\d\d-\d\dT[\d:]+", "TIME", value):
            wrong.append(f"{name} recorded {value}, now {seen}")
    return "\n".join(wrong) or None


def check(w, block):
    if block.user == "bob" and not BOB or block.user == "root" and os.geteuid() != 0:
        pytest.skip("needs root, to be several users")
    w.enter(block)
    if block.name.startswith("srun:"):
        w.clean()  # also of what the one before has not quite given back
    w.do(SETUPS.get(block.name, []))
    code, out, err = run_block(w, block)
    wrong = []
    if block.exit != "stopped" and str(code) != block.exit:
        wrong.append(f"exit recorded {block.exit}, now {code}")
    unordered = bool(re.search(r"\b(srun|salloc)\b", block.command)) or block.command.startswith("scancel -u") or "cat traps" in block.command
    if block.of("job"):
        wrong.append(job_differs(w, block, out))
    else:
        wrong.append(goldenfile.compare(block, "out", out, w.recorded, unordered))
    wrong.append(goldenfile.compare(block, "err", err, w.recorded, unordered))
    wrong = [x for x in wrong if x]
    for kind, text in (("out", out), ("err", err)):
        raw = goldenfile.IDS.findall("\n".join(block.of(kind)))
        now = goldenfile.IDS.findall(w.recorded(text.rstrip("\n")))
        if len(raw) == len(now):
            w.names.ours.update((a.strip(), b.strip()) for a, b in zip(raw, now))
    if block.name.startswith(("sbatch-options", "sbatch-runs", "srun", "salloc", "sbatch-files", "environments")) and block.state != 4 and not SETUPS.get(
            f"{w.slug} {block.state}") and "nosh" not in block.command and "--jobid" not in block.command:
        if "sbatch" in block.command:
            w.clean()
    assert not wrong, "\n".join([f"{block.name}: {block.command}", *wrong, *([f"err of now: {err}"] if err else [])])


@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in wanted() if not b.of("env")])
@pytest.mark.slow
def test_as_recorded(worlds, block):
    check(worlds("one" if block.name.startswith("one-node") else "six"), block)


FOLLOW = {"salloc:10", "salloc:11", "scancel:28"}  # the one before asks for a certain size


@pytest.mark.slow
@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in wanted()
                                   if not b.of("env") and b.name not in FOLLOW and not b.name.startswith("one-node") and not SIZES.search(b.command)])
def test_on_another_cluster(worlds, block):
    """Other names and sizes: what the commands do depends on neither. (Those that ask for a certain size are left to the first cluster.)"""
    check(worlds("other"), block)


def refused():
    for blocks in BLOCKS.values():
        for block in blocks:
            why = goldenfile.why_left_out(block, RULES)
            if why and why[1].startswith("refused") and not is_environment(block):
                yield block


@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in refused()])
def test_what_is_refused_is_refused(worlds, block):
    """The list says so: whoever makes one of these work takes it from there."""
    w = worlds("six")
    w.enter(block)
    code, out, err = run_block(w, block)
    assert re.search("(is|are) not supported yet", err + out), f"{block.command}: exit {code}\n{out}{err}"


def test_everything_is_accounted_for():
    """Each recorded command is run, or in the list with its reason; and the list names nothing that isn't there."""
    run = account_for("submit", BLOCKS, RULES)
    assert run >= 300
