# SPDX-License-Identifier: Apache-2.0
"""Each request has a name: the command prints it with -v when it fails, and the controller's log has it."""
import json
import re

import pytest

from spurtest import wait_for


@pytest.fixture
def c(new_cluster):
    return new_cluster(nodes=1, conf='\n[logging]\nlevel = "debug"\n')


def lines(c, word):
    return [line for line in c.ctld.log.splitlines() if word in line]


def name_in(line):
    return re.search(r" request=([\w.-]+)$", line).group(1)


def test_a_refused_request_is_found_in_the_log(c):
    quiet = c.run(["sbatch", "-p", "nosuch", "--wrap", "true"], check=False)
    assert quiet.returncode == 1 and "request" not in quiet.stderr
    said = c.run(["sbatch", "-v", "-p", "nosuch", "--wrap", "true"], check=False)
    name = re.search(r"request ([0-9a-f]{16}): ", said.stderr).group(1)
    assert any(line.endswith(f"request={name}") for line in lines(c, "Submit of")), c.ctld.log
    assert len({name_in(line) for line in lines(c, "Submit of")}) == 2


def test_what_is_sent_to_nodes_has_the_name_of_the_request_that_caused_it(c):
    job = c.submit("--wrap", "sleep 100")
    c.wait_state(job, "RUNNING")
    c.run(["scontrol", "suspend", str(job)])
    wait_for(lambda: lines(c, "sent SuspendJob"), 10, "the node is told")
    asked, = lines(c, "Suspend of")
    assert name_in(lines(c, "sent SuspendJob")[0]) == name_in(asked)
    assert all(" request=" not in line for line in lines(c, "leading in term"))
    c.run(["scancel", str(job)])
    c.wait_state(job, "CANCELLED")


def test_a_request_without_a_good_name_gets_one(c):
    grpc = pytest.importorskip("grpc")
    with grpc.insecure_channel(f"unix:{c.socket}") as channel:
        ping = channel.unary_unary("/spur.v1.Controller/Ping", request_serializer=bytes, response_deserializer=bytes)
        ping(b"", metadata=[("spur-request", "my.own-name_1")], timeout=10)
        ping(b"", metadata=[("spur-request", "two words")], timeout=10)
        ping(b"", timeout=10)
    wait_for(lambda: len(lines(c, "Ping of")) >= 3, 10, "three lines")
    names = [name_in(line) for line in lines(c, "Ping of")][-3:]
    assert names[0] == "my.own-name_1"
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in names[1:]) and names[1] != names[2]
