# SPDX-License-Identifier: Apache-2.0
"""grpc-go against a real controller: every method, health, deadlines, cancellation, large messages, compression, GOAWAY."""
import os
import pathlib
import subprocess
import sys

import pytest

from gotools import program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from spurtest import Cluster, wait_for  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, auth_lines='jwt_key = "a key for tests that is long enough"\n') as c:
        yield c


@pytest.fixture(params=["socket", "tcp"])
def peer(request, cluster):
    if request.param == "socket":
        return f"unix:{cluster.socket}", {}
    token = cluster.run("scontrol token").stdout.strip().split("=", 1)[1]
    return f"127.0.0.1:{cluster.port}", {"SPUR_JWT": token}


def start(peer, *arguments):
    address, environment = peer
    return subprocess.Popen([program("./grpcgo"), address, *arguments], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


def check(peer, *arguments):
    process = start(peer, *arguments)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    return out


@pytest.mark.parametrize("name", ["methods", "health", "deadline", "large", "compression"])
def test_check(peer, name):
    check(peer, name)


def test_what_is_cancelled_is_over_in_the_controller_too(cluster, peer):
    check(peer, "cancellation")
    # The waiting calls have gone from the controller as well: the one in flight is sdiag's own question.
    wait_for(lambda: "Requests in flight: 1\n" in cluster.run("sdiag").stdout, what="nothing but sdiag's question to be in flight")


def test_a_restart_is_not_seen_by_who_waits_for_ready(cluster, peer):
    process = start(peer, "goaway", "4")
    assert process.stdout.readline() == "begun\n"
    for _ in range(2):
        cluster.ctld.stop()
        cluster.ctld.start()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
