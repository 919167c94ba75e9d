# SPDX-License-Identifier: Apache-2.0
"""Too much of it: one user who asks without end, and clients that mean harm. Others must not notice."""
import os
import socket
import struct
import subprocess
import threading
import time

import grpc
import pytest

from grpcwire import messages
from spurtest import Cluster, wait_for

USER_MOST = 2048  # api.c's bound on what one user has in flight
STREAMS = 256  # io/rpc's bound on the calls of one connection


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, auth_lines='jwt_key = "a key for tests that is long enough"\n') as c:
        yield c


class Waiting:
    """Calls that wait for a job that is held, of user nobody, spread over as many connections as they need."""

    def __init__(self, c, job, n):
        self.jwt = c.run("scontrol token username=nobody").stdout.strip().split("=", 1)[1]
        self.channels = [grpc.insecure_channel(f"127.0.0.1:{c.port}", options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])
                         for _ in range(n // STREAMS + 1)]
        m = messages()
        self.request = m.WaitRequest(job_id=job)
        methods = [ch.unary_unary("/spur.v1.Controller/Wait", request_serializer=lambda r: r.SerializeToString(), response_deserializer=m.WaitReply.FromString)
                   for ch in self.channels]
        self.methods = methods
        self.calls = [methods[i // STREAMS].future(self.request, metadata=self.metadata, timeout=60) for i in range(n)]

    @property
    def metadata(self):
        return [("authorization", f"Bearer {self.jwt}")]

    def one_more(self):
        return self.methods[-1].future(self.request, metadata=self.metadata, timeout=10)

    def end(self):
        for call in self.calls:
            call.cancel()
        for ch in self.channels:
            ch.close()


def in_flight(c):
    text = c.run("sdiag").stdout
    return int(text.split("Requests in flight:")[1].split()[0])


def test_one_user_has_a_bound_and_others_do_not_notice(cluster):
    c = cluster
    held = c.submit("-H", c.script("true"))
    waiting = Waiting(c, held, USER_MOST)
    try:
        wait_for(lambda: in_flight(c) >= USER_MOST, 20, "the calls to be in flight")
        refused = waiting.one_more()
        assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert int(dict(refused.trailing_metadata())["retry-after-ms"]) > 0
        # Others are served, and so is the agent: a job is launched and ends.
        c.wait_state(c.batch("true"), "COMPLETED")
        # The user's own command is told to come back, and does so until there is room.
        env = {**c.tcp_env(waiting.jwt)}
        patient = subprocess.Popen(["squeue", "-h", "-j", str(held), "-o", "%i"], env=env, stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            patient.wait(0.5)
    finally:
        waiting.end()
    out, _ = patient.communicate(timeout=30)
    assert (patient.returncode, out.strip()) == (0, str(held))
    wait_for(lambda: in_flight(c) == 1, what="nothing but sdiag's question to be in flight")


# ---- clients that mean harm ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


HEADERS = b"".join(literal(n, v) for n, v in ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/spur.v1.Controller/Jobs"), (b":authority", b"x"),
                                               (b"te", b"trailers"), (b"content-type", b"application/grpc")))


def resets(n):
    """Calls that are begun and reset at once."""
    return b"".join(frame(1, 4, 2 * i + 1, HEADERS) + frame(3, 0, 2 * i + 1, struct.pack(">I", 8)) for i in range(n))


def pings(n):
    return frame(6, 0, 0, b"\0" * 8) * n


def settings(n):
    return frame(4, 0, 0, struct.pack(">HI", 4, 65535)) * n


def continuations(n):
    return frame(1, 0, 1, HEADERS) + frame(9, 0, 1, literal(b"x-%08d" % 1, b"y" * 100)) * n


def garbage(n):
    return os.urandom(20 * n)


class Floods:
    """Threads that connect, send a flood until they are sent away, and connect again."""

    def __init__(self, port, floods, silent):
        self.port, self.stop = port, threading.Event()
        self.sent_away = {flood.__name__: 0 for flood in floods}
        self.silent = [self.connect() for _ in range(silent)]
        for s in self.silent[::2]:
            s.sendall(PREFACE[:9])
        self.threads = [threading.Thread(target=self.run, args=(flood,)) for flood in floods]
        for t in self.threads:
            t.start()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def run(self, flood):
        bytes_ = (b"" if flood is garbage else PREFACE + frame(4, 0, 0)) + flood(2000)
        while not self.stop.is_set():
            try:
                with self.connect() as s:
                    s.sendall(bytes_)
                    while s.recv(65536):
                        pass
            except (ConnectionError, BrokenPipeError):
                pass
            except TimeoutError:
                return  # it was neither answered nor sent away
            self.sent_away[flood.__name__] += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop.set()
        for t in self.threads:
            t.join()
        for s in self.silent:
            s.close()


@pytest.mark.slow
def test_floods_cost_others_nothing(cluster):
    c = cluster
    before = c.ctld.pid
    with Floods(c.port, [resets, pings, settings, continuations, garbage], silent=300) as floods:
        wait_for(lambda: all(floods.sent_away.values()), 20, f"each flood to be sent away: {floods.sent_away}")
        jobs = [c.batch("true") for _ in range(10)]
        for job in jobs:
            c.wait_state(job, "COMPLETED")
        token = c.run("scontrol token").stdout.strip().split("=", 1)[1]
        began = time.monotonic()
        for _ in range(20):
            assert c.run("squeue -h", env=c.tcp_env(token)).returncode == 0
        assert time.monotonic() - began < 20
    assert c.ctld.pid == before and c.ctld.running()
    assert c.run("sinfo -h -o %t").stdout.split() == ["idle"]
    wait_for(lambda: in_flight(c) == 1, what="nothing but sdiag's question to be in flight")


def test_a_node_s_port_too(cluster):
    """The agent's port speaks the same protocol, and task streams besides."""
    c = cluster
    port = int(c.node.ready["listen"].rsplit(":", 1)[-1])
    with Floods(port, [resets, pings, garbage], silent=100) as floods:
        wait_for(lambda: all(floods.sent_away.values()), 20, f"each flood to be sent away: {floods.sent_away}")
        assert c.run("srun hostname").stdout.strip()
    c.wait_idle()
