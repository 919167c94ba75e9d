# SPDX-License-Identifier: Apache-2.0
"""Slurm's own Python tests, unmodified, against these programs: the files of tests/clients/slurm.passing, a list that only grows.

    SPUR_SLURM_CHECKOUT   a checkout of github.com/SchedMD/slurm (master), or its testsuite folder; none of it is here
    SPUR_SLURM_RUN        what runs the suite's files: RUN SUITE LIST…, ending with "N passed, N failed, N skipped"
    SPUR_SLURM_PYTHON     a Python with pytest, pytest-timeout, pexpect, jsondiff, jsonpatch, requests and PyYAML (default: python3)

A line of the list is a mode (auto, local) and a file as RUN takes it (105_5, x5.6): every function of it passes or skips itself, and
one passes at least. Most files stand there twice: what needs another cluster than the one of local mode skips itself there.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
LIST = HERE / "slurm.passing"
BUILD = pathlib.Path(os.environ.get("SPUR_TEST_BUILD", "build"))


def rows():
    return [line.split()[:2] for line in LIST.read_text().splitlines() if line and not line.startswith("#")]


def test_each_is_named_once():
    assert len(rows()) == len({tuple(row) for row in rows()})
    assert all(mode in ("auto", "local") and re.fullmatch(r"\d+_\d+|x\d+\.\d+", file) for mode, file in rows())


def test_what_passes_is_not_named_as_failing():
    table = (HERE.parents[1] / "docs" / "compatibility.md").read_text().split("## Slurm's own tests")[1].split("\n## ")[0]
    failing = {word for line in table.splitlines() if line.startswith("| ") for word in line.split("|")[1].split()}
    assert not failing & {file for _, file in rows()}


@pytest.fixture
def world():
    """A folder that the suite's user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        path.chmod(0o755)
        yield path


@pytest.mark.slow
@pytest.mark.timeout(3600)  # a hundred files, one after the other
@pytest.mark.parametrize("mode", ["auto", "local"])
def test_slurms_own_tests(world, mode):
    files = [file for m, file in rows() if m == mode]
    checkout, run = os.environ.get("SPUR_SLURM_CHECKOUT"), os.environ.get("SPUR_SLURM_RUN")
    if not checkout or not run:
        pytest.skip("SPUR_SLURM_CHECKOUT (a checkout of github.com/SchedMD/slurm) and SPUR_SLURM_RUN (what runs its files) are not set")
    if os.geteuid() != 0:
        pytest.skip("needs root, for its namespaces")
    if not files:
        pytest.skip(f"the list has none in {mode} mode")
    programs = world / "bin"
    programs.mkdir()
    for name in ("spurctld", "spurd", "spur"):
        shutil.copy(BUILD / "bin" / name, programs / name)
    got = subprocess.run([HERE / "slurm-world", "-m", mode, "-o", world / "out", checkout, programs, *files], capture_output=True, text=True)
    lines = re.findall(r"^\S*/test_(\w+)\.py\s+(\d+) passed\s+(\d+) failed", got.stdout, re.M)
    assert len(lines) == len(files), got.stdout[-5000:] + got.stderr[-2000:]
    bad = [name for name, passed, failed in lines if failed != "0" or passed == "0"]
    assert not bad, got.stdout[-20000:]
