# SPDX-License-Identifier: Apache-2.0
"""./quickstart as a newcomer types it, with a state directory of its own. It builds nothing here: the build is there."""
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "cluster"))
import spurtest  # noqa: E402


@pytest.fixture
def state():
    path = pathlib.Path(tempfile.mkdtemp(prefix="spur-q-"))
    yield path
    quickstart(path, "stop")
    for pid, cmdline, _ in list(spurtest.processes()):
        if str(path).encode() in cmdline:
            subprocess.run(["kill", "-9", str(pid)])
    shutil.rmtree(path, ignore_errors=True)


def quickstart(state, *arguments):
    return subprocess.run([str(REPO / "quickstart"), *arguments, "--state", str(state)], capture_output=True, text=True,
                          timeout=120, stdin=subprocess.DEVNULL)


def test_from_start_to_stop(state):
    began = time.monotonic()
    first = quickstart(state, "--nodes", "2")
    assert first.returncode == 0, first.stdout + first.stderr
    assert time.monotonic() - began < 10 * spurtest.PATIENCE, "under 10 s once built"
    assert "Submitted batch job 1\n" in first.stdout
    assert "all four processes are done" in first.stdout
    seen = first.stdout.split("squeue, while it ran")[1]  # half a second of work: on a busy machine it may be over when it is looked at
    assert "JOBID PARTITION" in seen and (" R " in seen or " CD " in seen)
    assert "COMPLETED" in first.stdout.split("sacct -j")[1]

    # A second run finds the cluster: same processes, next job.
    before = quickstart(state, "status").stdout.splitlines()[:3]
    second = quickstart(state)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "runs already" in second.stdout and "Submitted batch job 2\n" in second.stdout
    assert quickstart(state, "status").stdout.splitlines()[:3] == before

    # What it says about going on works.
    got = subprocess.run(["bash", "-c", f"source {state}/env && sinfo -h -N -o %N && sbatch --parsable -H --wrap true"],
                         capture_output=True, text=True, cwd=state)
    assert got.stdout.split() == ["n1", "n2", "3"], got

    assert quickstart(state, "stop").returncode == 0
    assert quickstart(state, "status").returncode == 1
    third = quickstart(state)  # as many agents as before, and nothing forgotten
    assert third.returncode == 0 and "Submitted batch job 4\n" in third.stdout
    assert "spurd n2" in quickstart(state, "status").stdout


def test_other_ports_where_the_defaults_are_taken(state):
    taken = []
    for port in (6817, 6818):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:  # by somebody else: as well
            continue
        s.listen()
        taken.append(s)
    got = quickstart(state)
    assert got.returncode == 0, got.stdout + got.stderr
    assert "port 6817" not in got.stdout and "port 6818" not in got.stdout


@pytest.mark.parametrize("arguments", [["--nodes", "0"], ["--nodes"], ["--frob"], ["--nodes", "two"]])
def test_what_is_wrong_is_told(arguments):
    got = subprocess.run([str(REPO / "quickstart"), *arguments], capture_output=True, text=True)
    assert got.returncode == 1 and got.stderr.startswith("quickstart: ")
