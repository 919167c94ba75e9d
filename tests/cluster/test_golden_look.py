# SPDX-License-Identifier: Apache-2.0
"""squeue, sinfo, sacct, scontrol, sprio and sdiag beside what Slurm 26.05 printed and returned (tests/golden/look), on clusters set up as the recorded ones, and on another with
other names and sizes. Compared is all but ids, times, pids, host names and what is measured, widths of columns too; on the other cluster words only."""
import os
import re

import pytest

from goldenworld import BOB, SETUPS, account_for, goldenfile, goldenlook, world

BLOCKS = goldenfile.all_blocks("look")
RULES = goldenfile.left_out("look")
EVERYTHING = os.environ.get("SPUR_GOLDEN_ALL") == "1"
ACCOUNTS = {name: {"SBATCH_ACCOUNT": account, "SBATCH_QOS": "normal"} for name, account in (("alice", "ml"), ("bob", "research"))}


def wanted(file=None):
    for stem, blocks in BLOCKS.items():
        for block in blocks:
            if (file is None or stem == file) and (EVERYTHING or not goldenfile.why_left_out(block, RULES)):
                yield block


@pytest.fixture(scope="module")
def worlds():
    made = {}

    def get(kind):
        if kind not in made:
            made[kind] = world(kind, first_id=13500 if kind == "one" else 400, hosts=os.geteuid() == 0, devices=True,
                               env=ACCOUNTS if kind != "one" else {}).start()
        return made[kind]

    yield get
    for w in made.values():
        w.c.close()


def fields_as_told(w, block):
    """"name → HEADING (value), …": each of them, by itself."""
    command = re.search(r"`(squeue -j \d+ -O) ", block.command)[1]
    told = re.findall(r"([\w-]+) → (\S+) \(((?:\([^)]*\)|[^()])*)\)", " ".join(block.of("out")))
    assert len(told) > 90
    wrong = []
    for name, head, value in told:
        _, out, _ = w.sh(w.ours(f"{command} {name}:99"), "alice")
        got = [goldenlook.plain(w, line) for line in out.splitlines()]
        if got != [head, goldenlook.plain(w, value)] and name not in goldenlook.NOT_THESE:
            wrong.append(f"{name}: {head} {value}: {got}")
    assert not wrong, "\n".join(wrong)


def kind_of(block):
    return {"one": "one", "gpus": "gpus"}.get(block.name.partition(":")[0], "six")


def check(w, block, exact):
    if block.user == "bob" and not BOB or os.geteuid() != 0:
        pytest.skip("needs root, to be several users")
    w.enter(block)
    user = "root" if block.name.startswith("one:") else block.user
    w.do(SETUPS.get(block.name, []))
    if block.note == "in words":
        return fields_as_told(w, block)
    code, out, err = w.sh(w.ours(block.command), user)
    goldenlook.learn(w, block, out, err)
    wrong = [] if str(code) == block.exit else [f"exit recorded {block.exit}, now {code}"]
    wrong += [goldenlook.compare(w, block, kind, text, exact) for kind, text in (("out", out), ("err", err))]
    wrong = [x for x in wrong if x]
    assert not wrong, "\n".join([f"{block.name}: {block.command}", *wrong])


@pytest.mark.slow
@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in wanted()])
def test_as_recorded(worlds, block):
    check(worlds(kind_of(block)), block, exact=True)


OTHERS = ("sinfo", "squeue", "show", "ends", "reports", "update")


@pytest.mark.slow
@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for f in OTHERS for b in wanted(f) if not goldenlook.is_about_sizes(b)])
def test_on_another_cluster(worlds, block):
    check(worlds("other"), block, exact=False)


def test_everything_is_accounted_for():
    run = account_for("look", BLOCKS, RULES)
    assert run >= 100


@pytest.mark.slow
def test_gpus_of_a_job_in_all_and_on_each_node(worlds):
    """As gpus:4 has it, all but the numbers of the CPUs."""
    w = worlds("gpus")
    w.slug = w.state = None
    w.clean()
    w.do(["508 = sbatch --parsable train.sh", "wait 508 RUNNING"])
    _, out, _ = w.sh(w.ours("scontrol -d show job 508"))
    assert "   JOB_GRES=gpu:h100:4\n" in out
    assert re.findall(r" Nodes=(\S+) CPUs=(\d+) Mem=4096 GRES=(\S+)", out) == [("n5", "6", "gpu:h100:2(IDX:0-1)"), ("n6", "2", "gpu:h100:2(IDX:0-1)")]
    w.clean()
