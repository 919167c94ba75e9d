# SPDX-License-Identifier: Apache-2.0
"""AMD Spur's own end-to-end tests, unmodified, against these programs: those of tests/clients/amd-spur.passing, a list that only grows.

    SPUR_E2E_CHECKOUT   a checkout of github.com/ROCm/spur, or of its tests/ folder; none of it is here
    SPUR_E2E_RUN        what runs the suite on this machine: RUN [-e NAME=VALUE] [-n NODES] [-l RESULTS] [-f LIST] CHECKOUT BINDIR, ending with "N passed, N failed, N skipped"
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

LIST = pathlib.Path(__file__).resolve().parent / "amd-spur.passing"
BUILD = pathlib.Path(os.environ.get("SPUR_TEST_BUILD", "build"))


def names():
    return [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]


def test_each_is_named_once():
    assert len(names()) == len(set(names())) and all(re.fullmatch(r"test_\w+\.py::\w+::\w+", name) for name in names())


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_amd_spurs_own_tests(tmp_path):
    checkout, run = os.environ.get("SPUR_E2E_CHECKOUT"), os.environ.get("SPUR_E2E_RUN")
    if not checkout or not run:
        pytest.skip("SPUR_E2E_CHECKOUT (a checkout of github.com/ROCm/spur) and SPUR_E2E_RUN (what runs its suite) are not set")
    if os.geteuid() != 0:
        pytest.skip("needs root, for its namespaces")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("spurctld", "spurd", "spur"):
        shutil.copy(BUILD / "bin" / name, programs / name)
    wanted = tmp_path / "list"
    wanted.write_text("\n".join(names()) + "\n")
    got = subprocess.run([run, "-P", "-n", "2", "-t", "600", "-e", "SPUR_COMPAT=amd", "-f", str(wanted), checkout, str(programs)],
                         capture_output=True, text=True)
    counts = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", got.stdout, re.M)
    assert counts, got.stdout[-5000:] + got.stderr[-2000:]
    assert counts[-1] == (str(len(names())), "0", "0"), got.stdout[-20000:]
