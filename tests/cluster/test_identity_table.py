# SPDX-License-Identifier: Apache-2.0
"""The table of docs/admin/identity.md, line by line: what each mode allows to whom."""
import functools
import os
import shutil
import time

import grpc
import nacl.signing
import pytest

from grpcwire import Peer, messages, node_proof
from spurtest import NOBODY, REPO, Cluster
from test_identity import jwt, node_key, owner
from test_identity_munge import Munged

pytestmark = pytest.mark.root

REFUSED = ("UNAUTHENTICATED", "PERMISSION_DENIED")
COLUMNS = ["mode", "what is shown", "own job", "another's job", "administer", "get a token", "register a node", "report for it"]
KEY = 'jwt_key = "a key for tests that is long enough"\n'
MODES = {"required": ("required", ""), "permissive": ("permissive", ""), "disabled": ("disabled", ""),
         "plugin none": (None, 'plugin = "none"\n'), "plugin munge": (None, 'plugin = "munge"\n')}
# how a command shows it: (over TCP, its token, uid, with munge)
SHOWN = {
    "local socket, a user": (False, None, NOBODY, False), "local socket, root": (False, None, 0, False),
    "token of a user": (True, {"sun": "nobody"}, 0, False), "token of root": (True, {"sun": "root"}, NOBODY, False),
    "token with `admin`": (True, {"sub": "nobody", "admin": True}, NOBODY, False),
    "wrong token": (True, {"sun": "nobody", "key": "another key that is long enough"}, NOBODY, False),
    "munge, a user": (True, None, NOBODY, True), "munge, root": (True, None, 0, True),
    "claim of a user": (True, None, NOBODY, False), "claim of root": (True, None, 0, False),
}
BY_PEER = ("nothing", "the node's own key", "another node's key")


def table():
    lines = (REPO / "docs/admin/identity.md").read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if cells(line) == COLUMNS)
    out = []
    for line in lines[at + 2:]:
        if not line.startswith("|"):
            return out
        out.append(cells(line))
    return out


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split("|")]


ROWS = table()


def test_the_table_is_whole():
    assert [(r[0], r[1]) for r in ROWS] == [(mode, shown) for mode in MODES for shown in (*SHOWN, *BY_PEER)]
    assert all(cell in ("yes", "no") for r in ROWS for cell in r[2:])


@pytest.fixture(scope="module")
def munged():
    if not shutil.which("munged"):
        yield None
        return
    m = Munged()
    yield m
    m.stop()
    shutil.rmtree(m.dir, ignore_errors=True)


@pytest.fixture(scope="module")
def of_mode(munged):
    made = {}

    def get(mode):
        if mode not in made:
            auth, lines = MODES[mode]
            socket = f'munge_socket = "{munged.dir}/socket"\n' if munged else ""
            made[mode] = Cluster(nodes=2, auth=auth, auth_lines=lines + KEY + socket).start()
        return made[mode]

    yield get
    for c in made.values():
        c.close()


def command(c, shown, munged):
    """A function that runs a command as the row says; and the user that it should be taken for."""
    tcp, claims, uid, with_munge = SHOWN[shown]
    env = c.env
    if tcp:
        env = c.tcp_env(jwt(**claims) if claims else None)
    env = {**env, "MUNGE_SOCKET": munged.socket if with_munge else "/nowhere"}
    who = claims.get("sun", claims.get("sub")) if claims else "nobody" if uid else "root"
    return functools.partial(c.run, env=env, uid=uid or None, check=False), who


def play_user(c, shown, munged):
    run, who = command(c, shown, munged)
    theirs = c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], uid=1).stdout.strip()
    own = run(["sbatch", "--parsable", "-H", "--wrap", "true"])
    if own.returncode == 0:
        assert owner(c, own.stdout) == who
    run(["scancel", theirs])
    token = run("scontrol token")
    assert (token.returncode == 0) == token.stdout.startswith("SLURM_JWT=")
    return [own.returncode == 0, c.state_of(int(theirs)) == "CANCELLED", run("scontrol reconfigure").returncode == 0, token.returncode == 0]


def answered(peer, service, method, request, metadata):
    try:
        peer.call(service, method, request, metadata)
    except grpc.RpcError as e:
        return e.code().name not in REFUSED
    return True


def proof_of(shown, c, path, name, request, key):
    return node_proof(key, path, name, request) if key else []


def play_peer(c, shown):
    """With no proof of a user's."""
    m = messages()
    key = {"nothing": None, "the node's own key": node_key(c, "n1"), "another node's key": node_key(c, "n2")}[shown]
    spec = m.JobSpec(name="x", hold=True, work_dir="/tmp", user="nobody", uid=NOBODY)
    asked = [("Submit", m.SubmitRequest(token=os.urandom(16), spec=spec, script=b"#!/bin/sh\n")), ("Cancel", m.CancelRequest(token=os.urandom(16))),
             ("Reconfigure", m.Nothing()), ("Token", m.TokenRequest())]
    before = c.queue("-t", "all")
    with Peer(f"127.0.0.1:{c.port}") as peer:
        out = [answered(peer, "Controller", name, r, proof_of(shown, c, f"/spur.v1.Controller/{name}", "n1", r, key)) for name, r in asked]
    assert c.queue("-t", "all") == before
    return out


def play_node(c, shown, munged):
    m = messages()
    fresh = nacl.signing.SigningKey.generate()
    own = shown == "the node's own key"
    key = {"the node's own key": node_key(c, "n1"), "another node's key": node_key(c, "n2")}.get(shown)
    name, new_key = (f"m{time.monotonic_ns()}", fresh) if own else ("n1", key or fresh)
    node = m.Node(name=name, cpus=1, mem_mb=100, address="127.0.0.1", port=1, public_key=bytes(new_key.verify_key), boot_id="b", agent_start_unix=1)
    register = m.RegisterRequest(node=node)
    report = m.RunReport(name="n1", job_id=999999, start_no=1, end_ms=1)
    user = []
    if shown in SHOWN and SHOWN[shown][1]:
        user = [("authorization", f"Bearer {jwt(**SHOWN[shown][1])}")]
    elif shown in SHOWN:
        user = [("spur-user", "nobody" if SHOWN[shown][2] else "root"), ("spur-uid", str(SHOWN[shown][2]))]
    where = f"unix:{c.socket}" if shown.startswith("local socket") else f"127.0.0.1:{c.port}"
    with Peer(where, user) as peer:
        sign = new_key if own else key
        registered = answered(peer, "Registry", "Register", register, node_proof(sign, "/spur.v1.Registry/Register", name, register) if sign else [])
        reported = answered(peer, "Registry", "Report", report, node_proof(key, "/spur.v1.Registry/Report", "n1", report) if key else [])
    return [registered, reported]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r[0]}: {r[1]}")
def test_a_row(of_mode, munged, row):
    mode, shown, *allowed = row
    if shown.startswith("munge") and not munged:
        pytest.skip("needs munge (scripts/deps)")
    c = of_mode(mode)
    got = [*(play_user(c, shown, munged) if shown in SHOWN else play_peer(c, shown)), *play_node(c, shown, munged)]
    said = dict(zip(COLUMNS[2:], allowed))
    assert dict(zip(COLUMNS[2:], ("yes" if g else "no" for g in got))) == said
