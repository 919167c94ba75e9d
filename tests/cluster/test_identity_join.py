# SPDX-License-Identifier: Apache-2.0
"""Tokens that admit nodes: spur token create, list, revoke; and what a node with a key of its own may not do."""
import datetime
import os
import re
import time

import grpc
import nacl.signing
import pytest

from grpcwire import Peer, launch_proof, messages, node_proof
from spurtest import NOBODY, wait_for
from test_identity import agent_port, jwt, node_key, with_auth

pytestmark = pytest.mark.root

REFUSED = ("UNAUTHENTICATED", "PERMISSION_DENIED")


@pytest.fixture
def asking(new_cluster):
    """A cluster without nodes that asks for tokens."""
    return new_cluster(nodes=0, admission="token")


def create(c, *options, **run):
    return c.run(["spur", "token", "create", *options], **run).stdout.strip()


def spawn(c, name, token=None, env=None):
    d = c.add_node(name, start=False)
    args = [str(a) for a in d.arguments()]
    if "--token" in args:
        at = args.index("--token")
        del args[at:at + 2]
    d.arguments = lambda: [*args, *(["--token", token] if token else [])]
    if env:
        before = dict(c.daemon_env)
        c.daemon_env.update(env)
        d.spawn()
        c.daemon_env = before
        return d
    return d.spawn()


def joined(c):
    return set(c.run("sinfo -h -N -o %N").stdout.split())


def test_a_token_that_was_made_admits_a_node(asking):
    c = asking
    token = create(c)
    assert re.fullmatch(r"[0-9a-f]{6}\.[0-9a-f]{64}", token)
    d = spawn(c, "m1", token)
    d.wait_ready()
    c.wait_state(c.batch("true"), "COMPLETED")
    assert token not in c.ctld.log and token not in d.log and token.split(".")[0] in c.ctld.log
    assert token.split(".")[1].encode() not in b"".join(p.read_bytes() for p in (c.state / "journal").iterdir()), "the log has hashes only"


def test_the_variable_does_as_well(asking):
    c = asking
    spawn(c, "m1", env={"SPUR_JOIN_TOKEN": create(c)}).wait_ready()


def test_list_and_revoke(asking):
    c = asking
    first, second = create(c, "--description", "rack 7"), create(c, "--ttl", "1h")
    ids = [t.split(".")[0] for t in (first, second)]
    said = c.run("spur token list").stdout
    assert said.splitlines()[0].split() == ["ID", "CREATED", "EXPIRES", "BY", "DESCRIPTION"]
    rows = {line.split()[0]: line for line in said.splitlines()[1:]}
    assert list(rows) == ids
    assert "rack 7" in rows[ids[0]] and "never" in rows[ids[0]] and "root" in rows[ids[0]]
    assert "never" not in rows[ids[1]]
    assert first.split(".")[1] not in said
    c.run(["spur", "token", "revoke", ids[0]])
    assert [line.split()[0] for line in c.run("spur token list").stdout.splitlines()[1:]] == [ids[1]]
    again = c.run(["spur", "token", "revoke", ids[0]], check=False)
    assert again.returncode == 1 and ids[0] in again.stderr
    d = spawn(c, "m1", first)
    wait_for(lambda: re.search(f"join token {ids[0]} .*revoked", d.log), 10, "to be told that it was revoked")
    spawn(c, "m2", second).wait_ready()
    assert joined(c) == {"m2"}
    c.ctld.restart()  # it is in the log
    assert [line.split()[0] for line in c.run("spur token list").stdout.splitlines()[1:]] == [ids[1]]


def test_an_expired_token_admits_nobody(new_cluster):
    c = new_cluster(nodes=0, admission="token", scale=100)
    token = create(c, "--ttl", "100")
    _, _, expires, *_ = c.run("spur token list").stdout.splitlines()[1].split()
    end = datetime.datetime.fromisoformat(expires).replace(tzinfo=datetime.timezone.utc).timestamp()
    wait_for(lambda: int(re.search(r"^sdiag output at .*\((\d+)\)", c.run("sdiag").stdout, re.M)[1]) > end, 10, "the token to expire")
    d = spawn(c, "m1", token)
    wait_for(lambda: re.search(r"join token \w+ expired \d+ s ago", d.log), 10, "to be told that it expired")
    assert joined(c) == set()


@pytest.mark.parametrize("token", ["", "x", "0" * 48, "abcdef." + "0" * 64, "abcdef.", "\u00e4" * 40, "a" * 5000])
def test_what_is_no_token_admits_nobody(asking, token):
    c = asking
    create(c)
    d = spawn(c, "m1", token)
    wait_for(lambda: "join token" in d.log, 10, "to be told why")
    assert joined(c) == set()


def test_only_administrators_make_them(new_cluster):
    c = new_cluster(nodes=0, admission="token", **with_auth("permissive"))
    for words in (["create"], ["list"], ["revoke", "abcdef"]):
        for env in (c.env, c.tcp_env(), c.tcp_env(jwt(sun="nobody"))):
            got = c.run(["spur", "token", *words], env=env, uid=NOBODY, check=False)
            assert got.returncode == 1 and "denied" in got.stderr.lower() and got.stdout == "", (words, got)
        claim = c.run(["spur", "token", *words], env=c.tcp_env(), check=False)  # says that it is root
        assert claim.returncode == 1 and claim.stdout == ""
    assert "." in create(c, env=c.tcp_env(jwt(sun="nobody", admin=True)), uid=NOBODY)


@pytest.mark.parametrize("words", [[], ["create", "x"], ["list", "x"], ["revoke"], ["make"], ["list", "--ttl", "1h"], ["create", "--ttl", "0"],
                                   ["create", "--ttl", "1y"], ["create", "--ttl", "-1"], ["create", "--ttl", "99999999999999999999"],
                                   ["create", "--ttl", "4000d"], ["create", "--description", "x" * 300]])
def test_mistakes_are_told(asking, words):
    got = asking.run(["spur", "token", *words], check=False)
    assert got.returncode == 1 and got.stderr.startswith("spur token: error:") and got.stdout == ""
    assert len(asking.run("spur token list").stdout.splitlines()) == 1


def test_a_repeated_request_makes_one_token_and_the_same(asking):
    c, m = asking, messages()
    request = m.JoinTokenRequest(token=os.urandom(16), create=m.JoinToken(text="twice"), ttl_secs=60)
    with Peer(f"unix:{c.socket}") as peer:
        first, second = (peer.call("Controller", "JoinToken", request).text for _ in range(2))
        assert first == second
        assert len(peer.call("Controller", "JoinToken", m.JoinTokenRequest()).tokens) == 1
        other = peer.call("Controller", "JoinToken", m.JoinTokenRequest(token=os.urandom(16), create=m.JoinToken()))
        assert other.text != first and other.tokens[0].hash == ""
    spawn(c, "m1", second).wait_ready()


# ---- a stolen node ----


def registration(m, c, name, key, token):
    node = m.Node(name=name, cpus=4, mem_mb=4000, address="127.0.0.1", port=1, public_key=bytes(key.verify_key), boot_id="b", agent_start_unix=1)
    return m.RegisterRequest(node=node, join_token=token)


def test_a_stolen_node_speaks_for_itself_alone(new_cluster):
    """It has its own key, a join token, the controller's public key. It can be nobody else with them."""
    c = new_cluster(nodes=2, admission="token", **with_auth("required"))
    victim = c.batch("sleep 1000", "-w", "n1")
    c.wait_state(victim, "RUNNING")
    m, n2, stranger = messages(), node_key(c, "n2"), nacl.signing.SigningKey.generate()
    token = (c.state / "join.token").read_text().strip()
    path = "/spur.v1.Registry/"
    with Peer(f"127.0.0.1:{c.port}") as peer:
        # another node's run
        lie = m.RunReport(name="n1", job_id=victim, start_no=1, end_ms=int(time.time() * 1000))
        assert peer.refused("Registry", "Report", lie, node_proof(n2, path + "Report", "n1", lie))[0] in REFUSED
        # another's name, with the key of its own, or a new one; the token is right
        for key in (n2, stranger):
            take = registration(m, c, "n1", key, token)
            status, text = peer.refused("Registry", "Register", take, node_proof(key, path + "Register", "n1", take))
            assert status in REFUSED and "another agent of that name is up" in text
        # the victim's true key in the record, its own signature
        public = registration(m, c, "n1", node_key(c, "n1"), token)
        assert peer.refused("Registry", "Register", public, node_proof(n2, path + "Register", "n1", public))[0] in REFUSED
        # what users ask: a node's key is no user's proof
        for method, request in (("Cancel", m.CancelRequest(token=os.urandom(16))), ("JoinToken", m.JoinTokenRequest()),
                                ("Token", m.TokenRequest(user="root"))):
            proof = node_proof(n2, f"/spur.v1.Controller/{method}", "n2", request)
            assert peer.refused("Controller", method, request, proof)[0] in REFUSED
    # the controller, towards the other agent
    launch = m.LaunchRequest(job_id=4242, start_no=1, spec=m.JobSpec(name="x", user="root", work_dir="/tmp"), nodes=[m.JobNode(node_id=1, name="n1", cpus=1)],
                             script=f"#!/bin/sh\ntouch {c.work}/forged\n".encode(), node_name="n1", start_unix=int(time.time()), cluster_name="test")
    end = m.TerminateRequest(job_id=victim, start_no=1, node_name="n1")
    with Peer(f"127.0.0.1:{agent_port(c, 'n1')}") as peer:
        for name, request in (("Launch", launch), ("Terminate", end)):
            for key in (n2, stranger):
                proof = launch_proof(key, f"/spur.v1.Agent/{name}", "n1", request.job_id, 1, 0, request)
                assert peer.refused("Agent", name, request, proof)[0] in REFUSED
    assert c.state_of(victim) == "RUNNING" and not (c.work / "forged").exists()
    assert joined(c) == {"n1", "n2"}


def test_more_reports_than_a_handful_do_not_open_a_replay(new_cluster):
    """What is remembered of a node is bounded by time, not by a number of messages."""
    c = new_cluster(**with_auth("required"))
    key, m, path = node_key(c, "n1"), messages(), "/spur.v1.Registry/Report"
    first = m.RunReport(name="n1", job_id=9999, start_no=1, end_ms=1)
    proof = node_proof(key, path, "n1", first)
    with Peer(f"127.0.0.1:{c.port}") as peer:
        def send(report, metadata):
            try:
                peer.call("Registry", "Report", report, metadata)
            except grpc.RpcError as e:
                return e.code().name
            return "OK"

        assert send(first, proof) not in REFUSED
        for i in range(300):
            other = m.RunReport(name="n1", job_id=10000 + i, start_no=1, end_ms=1)
            assert send(other, node_proof(key, path, "n1", other)) not in REFUSED
        assert send(first, proof) in REFUSED


def test_a_signal_counts_once(new_cluster):
    """Whoever saw a signal on the wire can't send it again; the controller can send the next one."""
    c = new_cluster(nodes=0)
    key = nacl.signing.SigningKey.generate()
    (c.root / "key.pub").write_text(bytes(key.verify_key).hex() + "\n")
    d = c.add_node("n1", start=False, extra=["--controller-key", str(c.root / "key.pub")])
    real = d.arguments
    d.arguments = lambda: [a if not str(a).startswith("--controller=") else "--controller=http://127.0.0.1:1" for a in real()]
    d.spawn()  # it never registers: the test is its controller
    port = int(wait_for(lambda: re.search(r"listening on port (\d+)", d.log))[1])
    m, hits = messages(), c.work / "hits"
    script = f"#!/bin/bash\ntrap 'echo >> {hits}' USR1\ntouch {c.work}/ready\nwhile :; do sleep 0.02; done\n".encode()
    run = m.LaunchRequest(job_id=7, start_no=1, spec=m.JobSpec(name="x", user="root", work_dir=str(c.work)), nodes=[m.JobNode(node_id=1, name="n1", cpus=1)],
                          script=script, node_name="n1", start_unix=int(time.time()), cluster_name="test", partition="debug")

    def count():
        return len(hits.read_text().splitlines()) if hits.exists() else 0

    def proof(method, request, **more):
        return launch_proof(key, f"/spur.v1.Agent/{method}", "n1", 7, 1, 0, request, **more)

    with Peer(f"127.0.0.1:{port}") as peer:
        peer.call("Agent", "Launch", run, proof("Launch", run))
        peer.call("Agent", "Launch", run, proof("Launch", run))  # a repeat finds the run: it may be sent again
        wait_for((c.work / "ready").exists)
        first = m.SignalRequest(job_id=7, start_no=1, signal=10, node_name="n1", batch_only=True, nonce=1)
        header = proof("Signal", first)
        peer.call("Agent", "Signal", first, header)
        wait_for(lambda: count() == 1)
        status, text = peer.refused("Agent", "Signal", first, header)
        assert status == "PERMISSION_DENIED" and "replay" in text
        second = m.SignalRequest(job_id=7, start_no=1, signal=10, node_name="n1", batch_only=True, nonce=2)
        peer.call("Agent", "Signal", second, proof("Signal", second))
        wait_for(lambda: count() == 2)
        for replayed in ((first, header), (second, header)):
            assert peer.refused("Agent", "Signal", *replayed)[0] in REFUSED
        assert count() == 2


def test_two_signals_in_one_second_both_arrive(new_cluster):
    c = new_cluster()
    job = c.batch("trap 'echo >> hits' USR1; touch ready; while :; do sleep 0.02; done")
    wait_for((c.work / "ready").exists)
    for n in range(1, 6):
        c.run(["scancel", "--batch", "--signal=USR1", str(job)])
        wait_for(lambda: (c.work / "hits").exists() and len((c.work / "hits").read_text().splitlines()) == n, what=f"{n} signals")
    assert "replay" not in c.node.log
