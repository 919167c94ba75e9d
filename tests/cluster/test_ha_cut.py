# SPDX-License-Identifier: Apache-2.0
"""Three controllers on machines of their own (network namespaces), one of which is cut off: nobody is told so, packets just do not arrive."""
import contextlib
import shutil


import pytest

from grpcwire import messages
from hacluster import HACluster, slow, timed, wait_for
from steady import Steady, now
from test_identity import WITH_KEY, jwt
from test_netns import NET, Net

pytestmark = [pytest.mark.root, pytest.mark.skipif(not shutil.which("ip") or not shutil.which("nsenter"), reason="needs ip and nsenter")]

HOSTS = {"m1": 1, "m2": 2, "m3": 3, "n1": 11, "cli": 21}
# What a busy machine may take. How long it takes on one that is not is measured: tests/bench/run failover.
BOUND = 4


class Apart(HACluster):
    """Each member, the node and the clients by TCP in a namespace of their own. Local sockets reach a member from anywhere."""

    def __init__(self, net, **how):
        self.net = net
        super().__init__(auth_lines=WITH_KEY, **how)
        for i, d in self.members.items():
            d.wrapper = net.inside(f"m{i}")

    def host_of(self, i):
        return f"{NET}.{HOSTS[f'm{i}']}"

    def listen_of(self, i):
        return f"{self.host_of(i)}:{self.ports[i]}"

    def _node_arguments(self, name, cpus, memory_mb, extra):
        args = [a.replace("--listen=127.0.0.1", "--listen=0.0.0.0") if isinstance(a, str) else a
                for a in super()._node_arguments(name, cpus, memory_mb, extra)]
        token = next((t for p in self.state_of_member.values() if (t := p / "join.token").exists()), None)
        return [*args, "--address", f"{NET}.{HOSTS[name]}", *(["--token", token.read_text().strip()] if token else [])]

    def add_node(self, name, **how):
        start = how.pop("start", True)
        node = super().add_node(name, **how, start=False)
        node.wrapper = self.net.inside(name)
        return node.start() if start else node

    @contextlib.contextmanager
    def cut(self, i):
        self.net.link(f"m{i}", "down")
        try:
            yield now()
        finally:
            self.net.link(f"m{i}", "up")

    def steady(self, name, first, by_tcp):
        load = Steady(self, name, first=first)
        if by_tcp:
            load.targets = self.controllers(first)
            load.wrapper = self.net.inside("cli")
            load.env = {"SPUR_JWT": jwt(sun="root")}
        return load


@pytest.fixture(scope="module")
def apart():
    net = Net(HOSTS).up()
    try:
        with Apart(net) as c:
            yield c
    finally:
        net.down()


def follows(c, i):
    return lambda: (p := c.ping(i)) and p.role == "follower" and p.leader_id == c.leader()


@pytest.mark.parametrize("reached_by", ["those cut off from it", "its clients"])
def test_the_leader_is_cut_off(apart, reached_by):
    """Its clients are cut off with it (they come by TCP), or go on talking to it (by its local socket)."""
    c = apart
    old = c.wait_leader()
    job = c.batch("echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended")
    c.wait_state(job, "RUNNING")
    m = messages()
    with c.steady(f"cut{old}", old, reached_by == "those cut off from it") as load:
        load.more(20)
        with c.cut(old) as at:
            new, took = timed(lambda: c.wait_leader(other_than=old))
            assert new != old and took < slow(BOUND)
            after = c.batch("true", "--hold", "-J", "after", env=c.first(new))
            load.more(20)
            outage = load.outage(at)
            print(f"the next leader after {took:.2f} s, submits after {outage:.2f} s")
            assert outage < slow(BOUND)
            # whoever asks the old one itself is told nothing
            assert c.call(old, "Submit", m.SubmitRequest(token=b"0" * 16, spec=m.JobSpec(hold=True, work_dir="/tmp", name="alone"), script=b"#!/bin/sh\n")) is None
            assert c.call(old, "Jobs") is None
            assert c.call(old, "Jobs", metadata=[("spur-stale", "1")]) is not None
            assert c.ping(old).role != "leader"
        wait_for(follows(c, old), 20, "it to follow")
        shown = c.run("squeue -h -o %i", env=c.only(old)).stdout.split()
        assert str(after) in shown
        load.more(20)
    assert load.failed == []
    assert load.judge() == ([], [])
    assert len(load.acks) > 60
    assert c.state_of(job) == "RUNNING"
    (c.work / "go").touch()
    c.wait_state(job, "COMPLETED")
    assert c.output(job) == "begun\nended\n"
    (c.work / "go").unlink()
    c.run(["scancel", "-t", "PD", "-u", "root"])
    c.wait_same()


def test_a_follower_is_cut_off(apart):
    """Nobody else notices; it answers no current read, and what it is asked meanwhile is not lost between two leaders."""
    c = apart
    lead = c.wait_leader()
    term = c.ping(lead).term
    left = c.followers()[0]
    with c.steady("side", lead, True) as load:
        load.more(20)
        with c.cut(left) as at:
            load.more(200)
            assert load.outage(at) < slow(BOUND)
            assert c.call(left, "Jobs") is None
            wait_for(lambda: c.ping(left).leader_id == 0, 20, "it to know of no leader")
        wait_for(follows(c, left), 20, "it to follow")
        load.more(20)
    assert load.failed == [] and load.judge() == ([], [])
    # that it asked for votes in vain, which nobody heard, makes no election
    assert (c.leader(), c.ping(lead).term) == (lead, term)
    c.wait_same()


def test_each_on_its_own(apart):
    """No two reach each other: nobody leads, nothing is taken; with the links back all goes on from where it was."""
    c = apart
    before = c.batch("true", "--hold")
    c.wait_same()
    with contextlib.ExitStack() as links:
        for i in c.ids:
            links.enter_context(c.cut(i))
        wait_for(lambda: c.leader() is None, 20, "nobody to lead")
        for i in c.ids:
            wait_for(lambda: c.ping(i).leader_id == 0, 20, "it to know of no leader")
            assert c.call(i, "Jobs") is None
        # who has missed a leader for a while says so at once: another one may do better
        for i in c.ids:
            for method in ("Jobs", "Cancel"):
                got, took = timed(lambda: c.call(i, method))
                assert got is None and took < slow(1)
    c.wait_leader()
    assert c.state_of(before) == "PENDING"
    c.run(["scancel", str(before)])
    c.wait_same()
