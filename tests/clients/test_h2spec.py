# SPDX-License-Identifier: Apache-2.0
"""h2spec (github.com/summerwind/h2spec) against io/rpc's echo server, where it is installed."""
import os
import re
import shutil
import subprocess

import pytest

from test_rpc_echo import Server

# It asks for pages with GET; a gRPC server answers 415 at once, before what these go on to do, and without a body.
ALLOWED = {
    "Sends a WINDOW_UPDATE frame on half-closed (remote) stream",  # expects a body
    "Sends a PRIORITY frame on half-closed (remote) stream",  # expects a body
    "closed: Sends a HEADERS frame after sending RST_STREAM frame",  # our own RST_STREAM came first, so it is ignored
    "Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded",  # each is answered and gone
    "Sends stream identifier that is numerically smaller than previous",  # nghttp2's own server answers likewise
    "Sends a DATA frame with invalid pad length",  # the same as the third, on a slow machine
}


def test_h2spec():
    h2spec = os.environ.get("H2SPEC") or shutil.which("h2spec")
    if not h2spec:
        pytest.skip("h2spec is not installed (go install github.com/summerwind/h2spec/cmd/h2spec@latest)")
    server = Server("127.0.0.1:0")
    try:
        out = subprocess.run([h2spec, "-h", "127.0.0.1", "-p", str(server.ports[0]), "-o", "3"], capture_output=True, text=True, timeout=280).stdout
    finally:
        assert server.stop() == 0
    passed = int(re.search(r"tests, (\d+) passed", out).group(1))
    failed = set(re.findall(r"× \d+: (.*)", out[out.find("Failures:"):]))
    assert failed <= ALLOWED, out[out.find("Failures:"):]
    assert passed >= 130
