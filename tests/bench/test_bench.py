# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run and end with their line. How fast is not asked here: that depends on the machine."""
import os
import pathlib
import re
import subprocess

import pytest

RUN = pathlib.Path(__file__).resolve().parent / "run"


@pytest.mark.parametrize("name, count, unit", [
    ("fsync", None, "/s"), ("submit", 300, "/s"), ("submit64", 2000, "/s"), ("sbatch", 50, "/s"), ("lifecycle", 30, "s"),
    ("array", 40, "s"), ("srun", 2, "MB/s"), ("steps", 5, "s"),
    ("sched", 300, "ms"), ("squeue", 300, "s"), ("busy", 300, "ms"), ("memory", 500, "MB"), ("gap", 50, "ms"), ("gap_million", 20000, "ms"),
    ("submit3", 300, "/s"), ("submit64_3", 2000, "/s"), ("catchup", 2000, "s"),
])
def test_each_benchmark_ends_with_its_line(name, count, unit):
    got = subprocess.run([str(RUN), name, *(["--count", str(count)] if count else []), "--build", os.environ["SPUR_TEST_BUILD"]],
                         capture_output=True, text=True, timeout=120)
    assert got.returncode == 0, got.stdout + got.stderr
    assert re.fullmatch(rf"{name} -?[\d.]+ {unit}", got.stdout.splitlines()[-1])


def test_failover_ends_with_its_line():
    got = subprocess.run([str(RUN), "failover", "--count", "2", "--build", os.environ["SPUR_TEST_BUILD"]], capture_output=True, text=True, timeout=120)
    assert got.returncode == 0, got.stdout + got.stderr
    assert re.fullmatch(r"failover p50 [\d.]+ p99 [\d.]+ lost 0", got.stdout.splitlines()[-1])


def test_a_peer_is_compared(tmp_path):
    """The "other installation" is a shell with commands that take no time."""
    for name, text in (("sbatch", "echo Submitted batch job 1"), ("squeue", "true"), ("scancel", "true")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("sbatch", "lifecycle"):
        got = subprocess.run([str(RUN), name, "--count", "20", "--peer", f"env PATH={tmp_path}:/usr/bin:/bin", "--build",
                              os.environ["SPUR_TEST_BUILD"]], capture_output=True, text=True, timeout=120)
        assert got.returncode == 0, got.stdout + got.stderr
        assert re.search(r"the peer: [\d.]+; ours is [\d.]+ times as good", got.stdout)


@pytest.mark.parametrize("name, at", [("submits", "4,8"), ("pass", "50,100"), ("memory", "50,100"), ("looking", "50,100")])
def test_each_curve_is_measured_and_drawn(name, at, tmp_path):
    got = subprocess.run([str(RUN.parent / "curve"), name, "--at", at, "--runs", "2", "--out", str(tmp_path), "--build",
                          os.environ["SPUR_TEST_BUILD"]], capture_output=True, text=True, timeout=120)
    assert got.returncode == 0, got.stdout + got.stderr
    rows = (tmp_path / f"{name}.csv").read_text().splitlines()
    picture = (tmp_path / f"{name}.svg").read_text()
    assert rows[0] == "line,x,y,load" and len(rows) > 4 and picture.count("<circle") == len(rows) - 1
