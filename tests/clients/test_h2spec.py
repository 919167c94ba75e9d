# SPDX-License-Identifier: Apache-2.0
"""h2spec (github.com/summerwind/h2spec) against io/rpc's echo server and against a real controller."""
import pathlib
import re
import subprocess
import sys

import pytest

from gotools import program
from test_rpc_echo import Server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from spurtest import Cluster  # noqa: E402

# It asks for pages with GET, and a gRPC server answers 415.
ALLOWED = {
    "Sends a WINDOW_UPDATE frame on half-closed (remote) stream",  # expects a body
    "Sends a PRIORITY frame on half-closed (remote) stream",  # expects a body
    "Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded",  # each is answered and gone
    "Sends stream identifier that is numerically smaller than previous",  # nghttp2's own server answers likewise
}


def judge(port):
    h2spec = program("github.com/summerwind/h2spec/cmd/h2spec")
    out = subprocess.run([h2spec, "-h", "127.0.0.1", "-p", str(port), "-o", "3"], capture_output=True, text=True, timeout=280).stdout
    passed = int(re.search(r"tests, (\d+) passed", out).group(1))
    failed = set(re.findall(r"× \d+: (.*)", out[out.find("Failures:"):]))
    assert failed <= ALLOWED, out[out.find("Failures:"):]
    assert passed >= 137


def test_echo_server():
    server = Server("127.0.0.1:0")
    try:
        judge(server.ports[0])
    finally:
        assert server.stop() == 0


def test_controller():
    with Cluster(nodes=1) as c:
        judge(c.port)
        assert c.run("squeue -h").returncode == 0
        assert c.ctld.running()
