# SPDX-License-Identifier: Apache-2.0
"""Munge: a munged of the test's own, with a key and a socket of its own, on this machine."""
import os
import shutil
import subprocess
import tempfile
import time

import pytest

from grpcwire import Peer, messages
from spurtest import NOBODY, wait_for
from test_identity import held, jwt, owner, with_auth

pytestmark = [pytest.mark.root, pytest.mark.skipif(not shutil.which("munged"), reason="needs munge (scripts/deps)")]


class Munged:
    def __init__(self, key=None):
        self.dir = tempfile.mkdtemp(prefix="spur-munge-")
        os.chmod(self.dir, 0o755)
        self.socket, self.key = f"{self.dir}/socket", f"{self.dir}/key"
        with open(os.open(self.key, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as f:
            f.write(key or os.urandom(128))
        self.start()

    def start(self):
        self.process = subprocess.Popen(["munged", "--foreground", "--force", f"--socket={self.socket}", f"--key-file={self.key}",
                                         f"--pid-file={self.dir}/pid", f"--seed-file={self.dir}/seed", "--num-threads=2"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(self.socket), 10, "munged")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def credential(self, path, uid=0, payload=None):
        payload = f"spur-munge-v1\n{path}\n" if payload is None else payload
        return subprocess.run(["munge", f"--socket={self.socket}"], input=payload, capture_output=True, text=True, check=True,
                              user=uid, group=uid, extra_groups=[]).stdout.strip()


@pytest.fixture(scope="module")
def munged():
    m = Munged()
    yield m
    m.stop()
    shutil.rmtree(m.dir, ignore_errors=True)


def lines(m, more=""):
    return f'munge_socket = "{m.socket}"\njwt_key = "a key for tests that is long enough"\n{more}'


@pytest.fixture(scope="module")
def asked(munged):
    """[auth] plugin = "munge"."""
    from spurtest import Cluster
    with Cluster(nodes=1, auth=None, auth_lines=lines(munged, 'plugin = "munge"\n')) as c:
        yield c


def env(m, c):
    return {**c.tcp_env(), "MUNGE_SOCKET": m.socket}


SUBMIT = "/spur.v1.Controller/Submit"


def request(user="nobody", uid=NOBODY):
    m = messages()
    return m.SubmitRequest(token=os.urandom(16), spec=m.JobSpec(name="x", hold=True, work_dir="/tmp", user=user, uid=uid), script=b"#!/bin/sh\n")


def test_munge_says_who_you_are(munged, asked):
    c = asked
    for uid, name in ((NOBODY, "nobody"), (0, "root")):
        got = c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env=env(munged, c), uid=uid)
        assert owner(c, got.stdout) == name
    assert c.run("squeue -h", env=env(munged, c), uid=NOBODY).stdout
    assert c.run("scontrol reconfigure", env=env(munged, c), uid=NOBODY, check=False).returncode != 0
    c.run("scontrol reconfigure", env=env(munged, c))


def test_the_plugin_requires_a_proof(munged, asked):
    c = asked
    assert held(c, check=False).returncode != 0
    assert held(c, uid=NOBODY, check=False).returncode != 0
    assert owner(c, held(c, jwt(sun="nobody")).stdout) == "nobody", "a token is one too"
    assert owner(c, held(c, tcp=False).stdout) == "root"


def test_a_token_goes_before_munge(munged, asked):
    c = asked
    got = c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env={**env(munged, c), "SPUR_JWT": jwt(sun="nobody")})
    assert owner(c, got.stdout) == "nobody"
    wrong = c.run(["sbatch", "-H", "--wrap", "true"], env={**env(munged, c), "SPUR_JWT": jwt(key="another key that is long enough", sun="nobody")}, check=False)
    assert wrong.returncode != 0, "a wrong proof is not made good by another"
    with Peer(f"127.0.0.1:{c.port}") as peer:
        both = [("authorization", f"Bearer {jwt(sun='nobody')}"), ("spur-munge", munged.credential(SUBMIT))]
        assert owner(c, peer.call("Controller", "Submit", request(), both).job_id) == "nobody"


def test_forgeries_are_refused(munged, asked):
    c = asked
    other = Munged()
    try:
        good = munged.credential(SUBMIT, NOBODY)
        wrong = {
            "another key": other.credential(SUBMIT, NOBODY), "another method": munged.credential("/spur.v1.Controller/Jobs", NOBODY),
            "another program": munged.credential(SUBMIT, NOBODY, payload=""), "slurm's": munged.credential(SUBMIT, NOBODY, payload="hello"),
            "changed": good[:30] + ("A" if good[30] != "A" else "B") + good[31:], "cut": good[:-20], "none": "hello", "empty": "",
            "long": "MUNGE:" + "A" * 5000 + ":",
        }
        with Peer(f"127.0.0.1:{c.port}") as peer:
            for what, credential in wrong.items():
                status, _ = peer.refused("Controller", "Submit", request(), [("spur-munge", credential)])
                assert status == "UNAUTHENTICATED", what
            job = peer.call("Controller", "Submit", request(), [("spur-munge", munged.credential(SUBMIT, NOBODY))]).job_id
            assert owner(c, job) == "nobody"
    finally:
        other.stop()
        shutil.rmtree(other.dir, ignore_errors=True)


def test_a_replay_is_refused(munged, asked):
    c = asked
    proof = [("spur-munge", munged.credential(SUBMIT, NOBODY))]
    with Peer(f"127.0.0.1:{c.port}") as peer:
        peer.call("Controller", "Submit", request(), proof)
        status, text = peer.refused("Controller", "Submit", request(), proof)
    assert status == "UNAUTHENTICATED" and "replay" in text


def test_munge_is_taken_in_every_mode_that_asks(new_cluster, munged):
    """With the ordinary plugin too, where munged runs; and a wrong one is refused where none would be allowed."""
    for mode in ("required", "permissive"):
        c = new_cluster(nodes=0, auth=mode, auth_lines=lines(munged))
        assert owner(c, c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env=env(munged, c)).stdout) == "root"
        c.run("scontrol reconfigure", env=env(munged, c))
        with Peer(f"127.0.0.1:{c.port}", [("spur-user", "nobody")]) as peer:
            assert peer.refused("Controller", "Submit", request(), [("spur-munge", "MUNGE:AAAA:")])[0] == "UNAUTHENTICATED"


def test_without_munged_a_credential_proves_nothing(new_cluster, munged):
    c = new_cluster(nodes=0, auth="required", auth_lines=f'munge_socket = "{munged.dir}/nothing"\n')
    got = c.run(["sbatch", "-H", "--wrap", "true"], env=env(munged, c), uid=NOBODY, check=False)
    assert got.returncode != 0 and "authentication" in got.stderr.lower()
    assert "munge" in c.ctld.log
    p = new_cluster(nodes=0, auth="permissive", auth_lines=f'munge_socket = "{munged.dir}/nothing"\n')
    assert owner(p, p.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env=env(munged, p), uid=NOBODY).stdout) == "nobody"
    assert p.run(["sbatch", "-H", "--wrap", "true"], env=env(munged, p), check=False).returncode != 0, "and root is not believed"


def test_a_munged_that_hangs_delays_nobody_else(new_cluster, munged):
    """It is asked on a worker: the loop goes on."""
    import signal

    c = new_cluster(nodes=0, auth="required", auth_lines=lines(munged))
    proof = [("spur-munge", munged.credential(SUBMIT, NOBODY))]
    munged.process.send_signal(signal.SIGSTOP)
    try:
        with Peer(f"127.0.0.1:{c.port}") as peer:
            method = messages().DESCRIPTOR.services_by_name["Controller"].methods_by_name["Submit"]
            unary = peer.channel.unary_unary(SUBMIT, request_serializer=lambda m: m.SerializeToString(), response_deserializer=messages().SubmitReply.FromString)
            waiting = unary.future(request(), metadata=proof, timeout=30)
            began = time.monotonic()
            for _ in range(5):
                assert owner(c, held(c, tcp=False).stdout) == "root"
            assert time.monotonic() - began < 5 and not waiting.done() and method.name == "Submit"
            munged.process.send_signal(signal.SIGCONT)
            assert owner(c, waiting.result().job_id) == "nobody"
    finally:
        munged.process.send_signal(signal.SIGCONT)
