# SPDX-License-Identifier: Apache-2.0
"""TLS on the ports of controllers and agents: [tls] mode off, accept, require."""
import os
import signal
import socket
import ssl
import subprocess
import time

import grpc
import pytest

import certs
from grpcwire import messages
from spurtest import Cluster, wait_for

KEY = "0123456789abcdef0123456789abcdef"
NEEDS = "This port takes TLS only: set [tls] mode in spur.conf"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An authority, a certificate, another authority, one that has run out, one for another name."""
    home = tmp_path_factory.mktemp("certs")
    os.chmod(home, 0o755)

    class Made:
        dir = home
        ca = certs.Authority(home / "ca")
        other = certs.Authority(home / "other", "another authority")
        good = ca.issue(home / "good")
        old = ca.issue(home / "old", days=-1)
        elsewhere = ca.issue(home / "elsewhere", names=("DNS:elsewhere.example", "IP:192.0.2.1"))
        strange = other.issue(home / "strange")

    return Made


class TLSCluster(Cluster):
    """Agents read the cluster's file too; commands connect over TCP with a token."""

    def __init__(self, mode, pair, ca, verify=None, **how):
        self.tls = certs.lines(mode, pair, ca, verify)
        super().__init__(conf=self.tls, auth_lines=f'jwt_key = "{KEY}"', **how)

    def _node_arguments(self, *of):
        return [*super()._node_arguments(*of), "--config", self.conf_path]

    @property
    def token(self):
        return self.run("scontrol token").stdout.strip().split("=", 1)[1]

    def client(self, text=None):
        """The environment of a command over TCP whose spur.conf says this of TLS; None: what the daemons' says."""
        env = self.tcp_env(self.token)
        if text is not None:
            path = self.root / f"client-{abs(hash(text))}.conf"
            path.write_text(f'cluster_name = "test"\n{text}')
            env["SPUR_CONF"] = str(path)
        return env

    def set_tls(self, text):
        self.conf_path.write_text(self.conf_path.read_text().replace(self.tls, text))
        self.tls = text


def speak(port, said, wait=5.0):
    """What comes back for these bytes until the port closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as s:
        s.sendall(said)
        got = b""
        try:
            while more := s.recv(65536):
                got += more
        except ConnectionResetError:
            pass
        return got


CLIENTS = ["off", "accept", "require"]


@pytest.mark.parametrize("mode", ["off", "accept", "require"])
def test_who_may_speak_to_whom(mode, made):
    """Each mode of a client against each of the servers: what works, and in what words the rest is refused."""
    with TLSCluster(mode, made.good, made.ca) as c:
        for client in CLIENTS:
            began = time.monotonic()
            got = c.run("squeue -h", env=c.client(certs.lines(client, None, made.ca)), check=False)
            assert time.monotonic() - began < 8
            refused = {("off", "require"): NEEDS, ("require", "off"): "speaks no TLS"}.get((client, mode))
            if refused:
                assert got.returncode == 1 and refused in got.stderr, (client, mode, got)
            else:
                assert (got.returncode, got.stderr) == (0, ""), (client, mode, got)
        job = c.batch("true", env=c.client())  # the controller reaches the agent, and hears of the end
        assert c.wait_over(job) == "COMPLETED"
        assert c.run("squeue -h").stderr == ""  # the local socket is as it was


def test_what_is_not_believed(made):
    """Another signer, one that has run out, another name: refused by whoever connects, never by way of plain."""
    for pair, words in ((made.strange, "unable to get local issuer certificate"), (made.old, "certificate has expired"),
                        (made.elsewhere, "IP address mismatch")):
        with TLSCluster("accept", pair, made.ca, nodes=0) as c:
            got = c.run("squeue -h", env=c.client(), check=False)
            assert got.returncode == 1 and "is not believed" in got.stderr and words in got.stderr, got
    with TLSCluster("require", made.elsewhere, made.ca, verify="ca") as c:  # its signer is enough
        assert c.run("squeue -h", env=c.client()).stderr == ""


@pytest.mark.parametrize("breaks, words", [
    (lambda p: p.cert.unlink(), "cert.pem"), (lambda p: p.key.unlink(), "cert.key"), (lambda p: p.key.write_text("nothing"), "cert.key"),
    (lambda p: None, "tls.mode: needs cert_file and key_file")])
def test_refused_at_the_start(breaks, words, made, tmp_path):
    """A file that isn't there or is no good stops the start, and the text names it."""
    pair = made.ca.issue(tmp_path / "cert")
    breaks(pair)
    c = Cluster(nodes=0, conf=certs.lines("require", None if "needs" in words else pair, made.ca))
    try:
        c.ctld.spawn()
        assert c.ctld.process.wait(10) == 1
        assert words in c.ctld.log, c.ctld.log
        node = c.add_node("n1", extra=["--config", c.conf_path], start=False).spawn()
        assert node.process.wait(10) == 1
        assert words in node.log, node.log
    finally:
        c.close()


@pytest.mark.parametrize("mode", ["accept", "require"])
def test_streams_of_a_step(mode, made):
    """srun's streams go through TLS, all of what is written arrives, in both directions; in plain only where it may be."""
    with TLSCluster(mode, made.good, made.ca) as c:
        size = 5_000_000
        got = c.run(["srun", "bash", "-c", f"head -c {size} /dev/zero | tr '\\0' x; exit 3"], check=False, env=c.client())
        assert (got.returncode, len(got.stdout), got.stdout.strip("x")) == (3, size, ""), got.stderr
        sent = "y" * 3_000_000
        assert c.run("srun cat", input=sent, env=c.client()).stdout == sent
        plain = c.run("srun -n1 echo over", env={"SPUR_CONF": c.client("")["SPUR_CONF"]}, check=False)
        if mode == "accept":
            assert plain.stdout == "over\n", plain
        else:
            assert plain.returncode and NEEDS in plain.stderr, plain
        wrong = c.client(certs.lines("accept", None, made.other))
        wrong["SPUR_CONTROLLER_ADDR"] = c.env["SPUR_CONTROLLER_ADDR"]
        got = c.run("srun echo over", env=wrong, check=False)
        assert got.returncode and "is not believed" in got.stderr and not got.stdout, got


def test_streams_outlive_a_restart_of_the_agent(made):
    with TLSCluster("require", made.good, made.ca) as c:
        p = subprocess.Popen(["srun", "bash", "-c", "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended"], cwd=c.work,
                             stdout=subprocess.PIPE, env={**c.env, **c.client()}, text=True)
        assert p.stdout.readline() == "begun\n"
        fresh = made.ca.issue(c.root / "fresh")
        fresh.take_the_place_of(made.good)  # and its certificate is another one from now on
        c.node.restart()
        (c.work / "go").touch()
        assert p.communicate(timeout=40)[0] == "ended\n" and p.returncode == 0


def test_a_certificate_is_renewed_under_a_running_cluster(made, tmp_path):
    """Exchanged files are taken without a restart; what is connected stays, a running srun among it. What is no good is told and not taken."""
    pair = made.ca.issue(tmp_path / "cert")
    with TLSCluster("require", pair, made.ca) as c:
        p = subprocess.Popen(["srun", "bash", "-c", "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended"], cwd=c.work,
                             stdout=subprocess.PIPE, env={**c.env, **c.client()}, text=True)
        assert p.stdout.readline() == "begun\n"
        pids = c.ctld.pid, c.node.pid
        before = served_by(c.port)
        pair.cert.with_suffix(".new").write_text("nothing")
        os.rename(pair.cert.with_suffix(".new"), pair.cert)
        wait_for(lambda: served_by(c.port) and "is not taken" in c.ctld.log, 10, "the controller to say so", every=0.3)
        assert served_by(c.port) == before
        made.ca.issue(tmp_path / "next").take_the_place_of(pair)
        for port, daemon in ((c.port, c.ctld), (int(c.node.ready["listen"]), c.node)):
            wait_for(lambda: served_by(port) == made_serial(pair), 10, f"{daemon.name} to show the new one", every=0.3)
            assert "the certificate has changed and is in use" in daemon.log
        (c.work / "go").touch()
        assert p.communicate(timeout=40)[0] == "ended\n" and p.returncode == 0
        assert c.wait_over(c.batch("true", env=c.client())) == "COMPLETED"
        assert pids == (c.ctld.pid, c.node.pid)


def served_by(port):
    """The serial number of the certificate that is shown there."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s, context.wrap_socket(s) as t:
        return serial(ssl.DER_cert_to_PEM_cert(t.getpeercert(True)).encode())


def serial(pem):
    return certs.openssl("x509", "-noout", "-serial", input=pem).decode().strip()


def made_serial(pair):
    return serial(pair.cert.read_bytes())


def test_the_mode_changes_under_way(made):
    """off, accept, require and back by reconfigure and SIGHUP: an agent that is connected in plain comes back with TLS."""
    with TLSCluster("off", made.good, made.ca) as c:
        for mode in ("accept", "require", "off"):
            c.set_tls(certs.lines(mode, made.good, made.ca))
            heard = c.node.log.count("read again")
            if mode == "off":
                c.node.process.send_signal(signal.SIGHUP)
                wait_for(lambda: c.node.log.count("read again") > heard, 10, "the agent to read its file")
            c.run("scontrol reconfigure")
            if mode != "off":
                c.node.process.send_signal(signal.SIGHUP)
                wait_for(lambda: c.node.log.count("read again") > heard, 10, "the agent to read its file")
            assert c.wait_over(c.batch("true", env=c.client())) == "COMPLETED"
            if mode == "require":
                assert NEEDS in c.run("squeue", env=c.client(""), check=False).stderr
        c.set_tls(certs.lines("require", None, made.ca))
        got = c.run("scontrol reconfigure", check=False)
        assert got.returncode and "needs cert_file and key_file" in got.stderr
        assert c.run("squeue -h", env=c.client("")).stderr == ""  # nothing was changed


def test_a_grpc_client_of_another_make(made):
    m = messages()
    kinds = m.DESCRIPTOR.services_by_name["Controller"].methods_by_name["Ping"]
    request, reply = (getattr(m, t.name) for t in (kinds.input_type, kinds.output_type))
    how = {"request_serializer": lambda r: r.SerializeToString(), "response_deserializer": reply.FromString}
    with TLSCluster("require", made.good, made.ca, nodes=0) as c:
        credentials = grpc.ssl_channel_credentials(made.ca.pem.read_bytes())
        with grpc.secure_channel(f"localhost:{c.port}", credentials) as ch:
            ping = ch.unary_unary("/spur.v1.Controller/Ping", **how)
            assert ping(request(), timeout=10, metadata=[("authorization", f"Bearer {c.token}")]).role == "leader"
        with grpc.insecure_channel(f"localhost:{c.port}") as ch:
            ping = ch.unary_unary("/spur.v1.Controller/Ping", **how)
            with pytest.raises(grpc.RpcError) as e:
                ping(request(), timeout=10)
            assert e.value.code() == grpc.StatusCode.FAILED_PRECONDITION and e.value.details() == NEEDS


def test_garbage_and_half_open_connections(made):
    """Hand-shakes that are left open, sent a byte at a time, cut off, or no hand-shakes at all: others are served meanwhile, and all of them end."""
    with TLSCluster("require", made.good, made.ca) as c:
        node = int(c.node.ready["listen"])
        for port in (c.port, node):
            assert len(speak(port, b"GET / HTTP/1.1\r\n\r\n")) < 1000
            assert len(speak(port, b"\x16\x03\x01\x02\x00\x01" + os.urandom(600))) < 1000
            assert len(speak(port, os.urandom(4096), wait=15)) < 1000
        held = []
        for i in range(1500):  # more than may wait at one port; what is oldest goes
            s = socket.create_connection(("127.0.0.1", c.port if i % 2 else node), timeout=5)
            s.sendall(b"\x16\x03\x01\x02\x00"[:1 + i % 5])
            held.append(s)
        began = time.monotonic()
        for _ in range(5):
            c.run("squeue -h", env=c.client())
        assert c.run("srun echo over", env=c.client()).stdout == "over\n"
        assert time.monotonic() - began < 8
        for s in held:  # each is closed by the daemon within its time
            s.settimeout(20)
            try:
                while s.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            s.close()
        assert c.ctld.running() and c.node.running()
        assert c.wait_over(c.batch("true", env=c.client())) == "COMPLETED"
