# SPDX-License-Identifier: Apache-2.0
"""TLS among three controllers: the port among them, the roll-out while submits go on, and what must not be possible."""
import os
import re
import signal
import socket
import time

import pytest

import certs
from hacluster import HACluster, wait_for
from spurtest import SubmitLoop

KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    home = tmp_path_factory.mktemp("certs")

    class Made:
        dir = home
        ca = certs.Authority(home / "ca")
        other = certs.Authority(home / "other", "another authority")
        good = ca.issue(home / "good")
        strange = other.issue(home / "strange")

    return Made


class TLSCluster(HACluster):
    def __init__(self, tls, **how):
        super().__init__(auth_lines=f'jwt_key = "{KEY}"', **how)
        self.bare = self.conf_text
        for i in self.ids:
            self.set_tls(i, tls)

    def set_tls(self, i, tls):
        self.write_conf(i, self.bare + tls)

    def _node_arguments(self, *of):
        return [*super()._node_arguments(*of), "--config", self.conf_of(1)]

    def reread(self, daemon):
        before = daemon.log.count("read again") + daemon.log.count("reconfigured")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: daemon.log.count("read again") + daemon.log.count("reconfigured") > before, 10, f"{daemon.name} to read its file\n{daemon.log[-800:]}")


def first_bytes(port):
    """What a listener among controllers says to a hello of nobody, in plain."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.sendall(b"SPURPEER" + (1).to_bytes(2, "little") + bytes(74))
        return s.recv(100)


def test_among_controllers(made):
    """Required everywhere: they elect, take jobs, survive the loss of one, and a member in plain is none."""
    with TLSCluster(certs.lines("require", made.good, made.ca)) as c:
        job = c.batch("true")
        assert c.wait_over(job) == "COMPLETED"
        lead = c.wait_leader()
        c.kill(lead)
        c.wait_leader(other_than=lead)
        c.set_tls(lead, "")  # it comes back, and speaks no TLS: nobody has it
        c.members[lead].spawn()
        wait_for(lambda: "takes no connection in plain" in c.members[lead].log, 20, "it to be refused")
        assert "no longer" not in c.members[lead].log
        c.kill(lead)
        c.set_tls(lead, certs.lines("require", made.good, made.ca))
        c.start_member(lead)
        assert c.wait_over(c.batch("true")) == "COMPLETED"
        c.wait_same()


def test_a_certificate_of_another_authority(made):
    """The key of the cluster alone is not enough: the certificate is asked for on both sides."""
    with TLSCluster(certs.lines("require", made.good, made.ca), nodes=0) as c:
        other = c.followers()[0]
        c.kill(other)
        c.set_tls(other, certs.lines("require", made.strange, made.other))
        c.members[other].spawn()
        wait_for(lambda: "is not believed" in c.members[other].log, 20, "it not to believe the others")
        assert c.ping(other) is None or c.ping(other).role != "leader"


def test_rolled_out_while_submits_go_on(made):
    """off, accept, require, a controller at a time and by SIGHUP; no submit fails, and at the end nothing is plain."""
    with TLSCluster("") as c:
        loop = SubmitLoop(c, pause=0.05)
        loop.start()
        for mode in ("accept", "require"):
            for i in c.ids:
                c.set_tls(i, certs.lines(mode, made.good, made.ca))
                c.reread(c.members[i])
                wait_for(lambda n=len(loop.acknowledged): len(loop.acknowledged) > n + 3, 20, "submits to go on")
            c.reread(c.node)
        assert first_bytes(c.raft_ports[1])[10:12] == (111).to_bytes(2, "little")  # E_TLS
        lead = c.wait_leader()
        c.kill(lead)
        c.wait_leader(other_than=lead)
        wait_for(lambda n=len(loop.acknowledged): len(loop.acknowledged) > n + 3, 20, "submits to go on")
        c.start_member(lead)
        loop.stop()
        c.wait_same()
        assert not loop.twice() and not loop.failures, loop.messages
        ids = list(loop.acknowledged)
        wait_for(lambda: all((c.work / "runs" / str(i)).exists() for i in ids), 60, "all to run", every=0.2)


def test_a_certificate_runs_out_under_a_running_cluster(made, tmp_path):
    """Connections that stand go on, and jobs with them; who must connect anew says why it can't; new files heal it, and nothing is restarted but
    what was killed."""
    end = time.time() + 40
    pair = made.ca.issue(tmp_path / "short", until=end)
    with TLSCluster(certs.lines("require", pair, made.ca)) as c:
        lead = c.wait_leader()
        term = c.ping(lead).term
        assert c.wait_over(c.batch("true"), timeout=90) == "COMPLETED"
        for d in (*c.members.values(), c.node):
            assert re.search(r"certificate.*(runs out|expires)", d.log), f"{d.name} warns of nothing\n{d.log[-800:]}"
        running = c.batch("while [ ! -e go ]; do sleep 0.1; done")
        c.wait_state(running, "RUNNING", timeout=90)
        wait_for(lambda: time.time() > end + 1, 60, "it to run out", every=0.2)

        assert c.wait_over(c.batch("true"), timeout=90) == "COMPLETED"  # over what stands
        assert c.ping(lead).term == term
        gone = c.followers()[0]
        c.kill(gone)
        c.members[gone].spawn()
        wait_for(lambda: "certificate has expired" in c.members[gone].log, 20, "the member that came back to say why nobody has it")
        taken = c.batch("true")  # two of three are enough; the agent may have lost the one it spoke to, and finds no other
        c.kill(lead)  # the one that is left can't make a quorum with it
        c.members[lead].spawn()
        wait_for(lambda: "certificate has expired" in c.members[lead].log, 20, "the former leader to say why nobody has it")

        made.ca.issue(tmp_path / "next").take_the_place_of(pair)
        c.wait_leader()
        (c.work / "go").touch()
        assert c.wait_over(running, timeout=90) == "COMPLETED" and c.wait_over(taken, timeout=90) == "COMPLETED"
        assert c.wait_over(c.batch("true"), timeout=90) == "COMPLETED"
        c.wait_same()


@pytest.mark.parametrize("mode", ["off", "require"])
def test_garbage_and_half_open_connections(mode, made):
    """At the port among controllers: hellos that end in the middle, hand-shakes that are left open, more than may wait. No leader is lost
    by it, submits go on, and each connection is closed within its time."""
    with TLSCluster(certs.lines(mode, made.good, made.ca) if mode != "off" else "") as c:
        term = c.ping(c.wait_leader()).term
        said = [b"", b"S", b"SPURPEER", b"SPURPEER" + (1).to_bytes(2, "little") + os.urandom(60), b"\x16\x03\x01\x02\x00\x01", os.urandom(200),
                b"SPURPEER" + (1).to_bytes(2, "little") + os.urandom(74), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
        held = []
        for n in range(600):
            s = socket.create_connection(("127.0.0.1", c.raft_ports[1 + n % 3]), timeout=5)
            try:
                s.sendall(said[n % len(said)])
            except OSError:
                pass
            held.append(s)
            if n % 100 == 0:
                assert c.wait_over(c.batch("true"), timeout=90) == "COMPLETED"
        for s in held:
            s.settimeout(20)
            try:
                while s.recv(4096):
                    pass
            except OSError as e:
                assert not isinstance(e, TimeoutError), "it was left open"
            s.close()
        assert all(d.running() for d in c.members.values())
        assert c.ping(c.wait_leader()).term == term
