# SPDX-License-Identifier: Apache-2.0
"""Who you are, and what you may: each mode of [auth], each forgery."""
import base64
import getpass
import hashlib
import hmac
import json
import os
import re
import time

import pytest

from grpcwire import Peer, key_of_file, launch_proof, messages, node_proof
from spurtest import NOBODY, Cluster, wait_for

KEY = "a key for tests that is long enough"
ME = getpass.getuser() if os.geteuid() else "root"
WITH_KEY = f'jwt_key = "{KEY}"\n'

pytestmark = pytest.mark.root  # several users are played


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt(key=KEY, alg="HS256", lifespan=600, **claims):
    head = b64(json.dumps({"alg": alg, "typ": "JWT"}).encode())
    now = int(time.time())
    body = b64(json.dumps({"iat": now, "exp": now + lifespan, **claims}).encode())
    digest = {"HS256": hashlib.sha256, "HS512": hashlib.sha512}.get(alg)
    sig = b64(hmac.new(key.encode(), f"{head}.{body}".encode(), digest).digest()) if digest else ""
    return f"{head}.{body}.{sig}"


def with_auth(mode, more=WITH_KEY):
    """Cluster's arguments for a mode; the key stands in the same table."""
    return {"auth": mode, "auth_lines": more}


@pytest.fixture(scope="module")
def required():
    with Cluster(**with_auth("required")) as c:
        yield c


@pytest.fixture(scope="module")
def permissive():
    with Cluster(**with_auth("permissive")) as c:
        yield c


def held(c, token=None, uid=None, check=True, tcp=True):
    env = c.tcp_env(token) if tcp else c.env
    return c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env=env, uid=uid, check=check)


def owner(c, job_id):
    return c.job(int(job_id))["UserId"].split("(")[0]


# ---- the local socket ----


def test_the_kernel_says_who_you_are(required):
    c = required
    assert owner(c, held(c, tcp=False).stdout) == ME
    assert owner(c, held(c, uid=NOBODY, tcp=False).stdout) == "nobody"


def test_a_claim_on_the_socket_counts_for_nothing(required):
    """Who sends a claim beside the kernel's word is still who the kernel says."""
    c = required
    job = held(c, uid=NOBODY, tcp=False).stdout.strip()
    with Peer(f"unix:{c.socket}", [("spur-user", "nobody"), ("spur-uid", str(NOBODY))]) as peer:
        spec = messages().JobSpec(name="x", hold=True, work_dir="/tmp", user="nobody", uid=NOBODY)
        reply = peer.call("Controller", "Submit", messages().SubmitRequest(token=os.urandom(16), spec=spec, script=b"#!/bin/sh\n"))
    assert owner(c, reply.job_id) == ME and owner(c, job) == "nobody"


# ---- required ----


def test_required_no_proof_no_answer(required):
    c = required
    for command in (["squeue"], ["sinfo"], ["sbatch", "--wrap", "true"], ["scancel", "1"], ["sacct"], ["scontrol", "show", "job"], ["sdiag"]):
        got = c.run(command, env=c.tcp_env(), check=False)
        assert got.returncode != 0 and "authentication" in got.stderr.lower(), (command, got)
    with Peer(f"127.0.0.1:{c.port}", [("spur-user", "root"), ("spur-uid", "0")]) as peer:
        for method in messages().DESCRIPTOR.services_by_name["Controller"].methods:
            if method.name == "Ping":
                continue
            assert peer.refused("Controller", method.name)[0] in ("UNAUTHENTICATED", "PERMISSION_DENIED"), method.name


def test_required_a_token_is_a_proof(required):
    c = required
    assert owner(c, held(c, jwt(sun="nobody")).stdout) == "nobody"
    assert owner(c, held(c, jwt(sun=ME)).stdout) == ME
    assert owner(c, held(c, jwt(sub="nobody", uid=NOBODY)).stdout) == "nobody"


def test_scontrol_token(required):
    c = required
    said = c.run("scontrol token").stdout
    assert said.startswith("SLURM_JWT=")
    assert owner(c, held(c, said.strip().split("=", 1)[1]).stdout) == ME
    theirs = c.run("scontrol token", uid=NOBODY).stdout.strip().split("=", 1)[1]
    assert owner(c, held(c, theirs).stdout) == "nobody"
    by_root = c.run("scontrol token username=nobody lifespan=60").stdout.strip().split("=", 1)[1]
    assert owner(c, held(c, by_root).stdout) == "nobody"
    claims = json.loads(base64.urlsafe_b64decode(by_root.split(".")[1] + "=="))
    assert 0 < claims["exp"] - time.time() <= 61


def test_a_token_of_a_file(required, tmp_path):
    """~/.spur/token, as AMD Spur's clients have it: behind the environment, and only where it is its user's alone."""
    c = required
    file = tmp_path / ".spur" / "token"
    file.parent.mkdir()

    def said(mode, text, **more):
        file.write_text(text)
        file.chmod(mode)
        return c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env={**c.tcp_env(), "HOME": str(tmp_path), **more}, check=False)

    assert owner(c, said(0o600, jwt(sun="nobody") + "\n").stdout) == "nobody"
    assert owner(c, said(0o600, jwt(sun="nobody"), SPUR_JWT=jwt(sun=ME)).stdout) == ME
    for mode in (0o640, 0o604, 0o620):
        got = said(mode, jwt(sun="nobody"))
        assert got.returncode != 0 and "authentication" in got.stderr.lower(), (mode, got)
    got = said(0o600, "two words")
    assert got.returncode != 0 and f"{file} holds no token" in got.stderr and "two words" not in got.stderr
    os.chown(file, NOBODY, -1)
    got = c.run("squeue", env={**c.tcp_env(), "HOME": str(tmp_path)}, check=False)
    assert got.returncode != 0 and "authentication" in got.stderr.lower()


def test_nobody_gets_no_token_of_another_user(required):
    got = required.run("scontrol token username=root", uid=NOBODY, check=False)
    assert got.returncode != 0 and "SLURM_JWT" not in got.stdout


WRONG = {
    "another key": lambda: jwt(key="another key that is long enough", sun="nobody"),
    "expired": lambda: jwt(sun="nobody", lifespan=-5),
    "no expiry": lambda: jwt(sun="nobody", exp=None),
    "not yet": lambda: jwt(sun="nobody", nbf=int(time.time()) + 600),
    "algorithm none": lambda: jwt(alg="none", sun="nobody"),
    "another algorithm": lambda: jwt(alg="HS512", sun="nobody"),
    "changed claims": lambda: ".".join([jwt(sun="nobody").split(".")[0], jwt(sun=ME).split(".")[1], jwt(sun="nobody").split(".")[2]]),
    "no user": lambda: jwt(),
    "unknown user": lambda: jwt(sun="nosuchuserhere"),
    "cut": lambda: jwt(sun="nobody")[:-5],
    "no token at all": lambda: "hello",
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("mode", ["required", "permissive"])
def test_a_wrong_token_is_refused(request, mode, what):
    c = request.getfixturevalue(mode)
    before = c.queue("-t", "all")
    got = held(c, WRONG[what](), check=False)
    assert got.returncode != 0 and got.stdout == "", got
    assert c.queue("-t", "all") == before
    # Not taken for somebody without a token either: reads are refused as well.
    assert c.run("squeue", env=c.tcp_env(WRONG[what]()), check=False).returncode != 0


def test_a_key_in_a_file(new_cluster, tmp_path):
    path = tmp_path / "jwt.key"
    path.write_text(KEY)
    path.chmod(0o600)
    c = new_cluster(nodes=0, **with_auth("required", f'jwt_key_file = "{path}"\n'))
    assert owner(c, held(c, jwt(sun="nobody")).stdout) == "nobody"


# ---- permissive ----


def test_permissive_is_the_default(new_cluster):
    c = new_cluster(nodes=0, start=False)
    c.conf_path.write_text('cluster_name = "test"\n')
    c.start()
    got = c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env=c.tcp_env(), uid=NOBODY)
    assert owner(c, got.stdout) == "nobody"
    assert "nobody" in c.ctld.log and "without a proof" in c.ctld.log


def test_permissive_a_claim_is_an_ordinary_user(permissive):
    c = permissive
    assert owner(c, held(c, uid=NOBODY).stdout) == "nobody"


def test_permissive_a_claim_is_never_root(permissive):
    c = permissive
    mine = held(c, uid=NOBODY, tcp=False).stdout.strip()
    roots = held(c, tcp=False).stdout.strip()
    before = c.queue("-t", "all")
    assert held(c, check=False).returncode != 0, "a claim to be root submits"
    for job in (mine, roots):
        assert c.run(["scancel", job], env=c.tcp_env(), check=False).returncode != 0
    assert c.run("scontrol reconfigure", env=c.tcp_env(), check=False).returncode != 0
    assert c.run("scontrol token", env=c.tcp_env(), check=False).returncode != 0
    assert c.queue("-t", "all") == before


def test_permissive_a_claim_is_never_an_administrator(new_cluster):
    c = new_cluster(nodes=0, **with_auth("permissive", WITH_KEY + 'admins = ["nobody"]\n'))
    roots = held(c, tcp=False).stdout.strip()
    assert c.run("scontrol reconfigure", env=c.tcp_env(), uid=NOBODY, check=False).returncode != 0
    assert c.run(["scancel", roots], env=c.tcp_env(), uid=NOBODY, check=False).returncode != 0
    assert c.state_of(int(roots)) == "PENDING"
    # With a proof the same user is one.
    c.run(["scancel", roots], env=c.tcp_env(jwt(sun="nobody")), uid=NOBODY)
    assert c.state_of(int(roots)) == "CANCELLED"


def test_permissive_a_claim_gets_no_token(permissive):
    """Else a claim could be turned into a proof."""
    c = permissive
    for args in ("", "username=daemon"):
        got = c.run(f"scontrol token {args}", env=c.tcp_env(), uid=NOBODY, check=False)
        assert got.returncode != 0 and "SLURM_JWT" not in got.stdout


def test_permissive_takes_agents(permissive):
    """The fixture's agent registered; so does one more."""
    permissive.add_node("n2")
    permissive.wait_idle()


# ---- disabled ----


@pytest.mark.parametrize("auth, lines", [("disabled", ""), (None, 'plugin = "none"\n')])
def test_disabled_believes_and_warns_at_each_start(new_cluster, auth, lines):
    c = new_cluster(nodes=1, auth=auth, auth_lines=lines)
    assert owner(c, held(c, uid=NOBODY).stdout) == "nobody"
    assert owner(c, held(c).stdout) == ME
    first = len(re.findall("(?i)warn.*(auth|believe)", c.ctld.log))
    assert first >= 1
    c.ctld.restart()
    assert len(re.findall("(?i)warn.*(auth|believe)", c.ctld.log)) > first


# ---- what users may ----


def test_users_do_not_change_others_jobs(required):
    c = required
    theirs = held(c, tcp=False).stdout.strip()
    got = c.run(["scancel", theirs], uid=NOBODY, check=False)
    assert (got.returncode, got.stderr) == (210, f"scancel: error: Kill job error on job id {theirs}: Access/permission denied\n")
    assert c.run(["scontrol", "release", theirs], uid=NOBODY, check=False).returncode != 0
    assert c.run(["scontrol", "hold", theirs], uid=NOBODY, check=False).returncode != 0
    assert c.run("scontrol reconfigure", uid=NOBODY, check=False).returncode != 0
    assert c.job(int(theirs))["Reason"] == "JobHeldUser" and c.state_of(int(theirs)) == "PENDING"


def test_root_may_change_others_jobs(required):
    c = required
    mine = held(c, uid=NOBODY, tcp=False).stdout.strip()
    c.run(["scancel", mine])
    assert c.state_of(int(mine)) == "CANCELLED"


def test_an_administrators_hold_is_not_released_by_the_user(required):
    c = required
    job = c.run(["sbatch", "--parsable", "--begin=now+1hour", "--wrap", "true"], uid=NOBODY).stdout.strip()
    c.run(["scontrol", "hold", job])
    assert c.job(int(job))["Reason"] == "JobHeldAdmin"
    assert c.run(["scontrol", "release", job], uid=NOBODY, check=False).returncode != 0
    assert c.job(int(job))["Reason"] == "JobHeldAdmin"
    c.run(["scontrol", "release", job])
    wait_for(lambda: c.job(int(job))["Reason"] != "JobHeldAdmin", 5)
    c.run(["scancel", job])


def test_negative_nice_is_for_administrators(required):
    c = required
    got = c.run(["sbatch", "--parsable", "-H", "--nice=-100", "--wrap", "true"], uid=NOBODY, check=False)
    assert got.returncode == 1 and got.stderr == "sbatch: error: Batch job submission failed: Invalid --nice value\n"
    job = c.run(["sbatch", "--parsable", "-H", "--nice=-100", "--wrap", "true"]).stdout
    assert c.job(int(job))["Nice"] == "-100"


def test_scripts_and_environments_are_not_shown_to_others(required):
    c = required
    job = c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env={"SECRET_OF_ROOT": "xyzzy"}).stdout.strip()
    with Peer(f"127.0.0.1:{c.port}", [("authorization", f"Bearer {jwt(sun='nobody')}")]) as peer:
        reply = peer.call("Controller", "Jobs", messages().JobsRequest(job_ids=[int(job)]))
    assert reply.jobs[0].job.spec.script_hash == b"" and reply.jobs[0].job.spec.env_hash == b""
    for daemon in (c.ctld, *c.nodes.values()):
        assert "xyzzy" not in daemon.log


# ---- controller to agent ----


def launch(c, name="n1", uid=0, job_id=4242):
    m = messages()
    return m.LaunchRequest(job_id=job_id, start_no=1, spec=m.JobSpec(name="forged", uid=uid, gid=uid, user="root", work_dir="/tmp"),
                           nodes=[m.JobNode(node_id=1, name=name, cpus=1)], script=b"#!/bin/sh\ntouch %s/forged\n" % str(c.work).encode(),
                           node_name=name, start_unix=int(time.time()), cluster_name="test", partition="debug")


def agent_port(c, name="n1"):
    return int(c.nodes[name].ready["listen"].rsplit(":", 1)[-1])


PATHS = {"Launch": "/spur.v1.Agent/Launch", "Signal": "/spur.v1.Agent/Signal", "Terminate": "/spur.v1.Agent/Terminate"}


@pytest.mark.parametrize("mode", ["required", "permissive", "disabled"])
def test_an_agent_takes_nothing_without_the_controllers_credential(new_cluster, mode):
    import nacl.signing

    c = new_cluster(**with_auth(mode))
    stranger = nacl.signing.SigningKey.generate()
    running = c.batch("sleep 1000")
    c.wait_state(running, "RUNNING")
    m = messages()
    with Peer(f"127.0.0.1:{agent_port(c)}") as peer:
        for name, request in (("Launch", launch(c)), ("Signal", m.SignalRequest(job_id=running, start_no=1, signal=9, node_name="n1")),
                              ("Terminate", m.TerminateRequest(job_id=running, start_no=1, node_name="n1"))):
            job, uid = request.job_id, 0
            forged = launch_proof(stranger, PATHS[name], "n1", job, 1, uid, request)
            for metadata in ([], [("authorization", f"Bearer {jwt(sun='root', admin=True)}")], [("spur-launch", "nonsense")], forged):
                assert peer.refused("Agent", name, request, metadata)[0] in ("UNAUTHENTICATED", "PERMISSION_DENIED"), (name, metadata)
    assert not (c.work / "forged").exists() and c.state_of(running) == "RUNNING"


# ---- agent to controller ----


def node_key(c, name):
    keys = [p for p in (c.root / name).rglob("*") if p.is_file() and re.fullmatch(r"[0-9a-f]{64}\s*", p.read_text(errors="replace"))]
    keys = [p for p in keys if p.stat().st_mode & 0o077 == 0]
    assert keys, "the agent's key is not found"
    return key_of_file(keys[0])


@pytest.mark.parametrize("mode", ["required", "permissive", "disabled"])
def test_a_report_counts_only_from_its_node(new_cluster, mode):
    import nacl.signing

    c = new_cluster(nodes=2, **with_auth(mode))
    victim = c.batch("sleep 1000", "-w", "n1")
    c.wait_state(victim, "RUNNING")
    m = messages()
    path = "/spur.v1.Registry/Report"
    lie = m.RunReport(name="n1", job_id=victim, start_no=1, end_ms=int(time.time() * 1000))
    n2, stranger = node_key(c, "n2"), nacl.signing.SigningKey.generate()
    assert node_key(c, "n1").encode() != n2.encode()
    with Peer(f"127.0.0.1:{c.port}") as peer:
        for metadata in ([], [("spur-node", "nonsense")], [("authorization", f"Bearer {jwt(sun='root', admin=True)}")],
                         node_proof(stranger, path, "n1", lie), node_proof(n2, path, "n1", lie), node_proof(n2, path, "n2", lie),
                         node_proof(n2, path, "n2", lie, said_name="n1")):
            assert peer.refused("Registry", "Report", lie, metadata)[0] in ("UNAUTHENTICATED", "PERMISSION_DENIED"), metadata
        # A node may speak of itself, but the job does not run there: nothing changes.
        own = m.RunReport(name="n2", job_id=victim, start_no=1, end_ms=int(time.time() * 1000))
        try:
            peer.call("Registry", "Report", own, node_proof(n2, path, "n2", own))
        except Exception:
            pass
        beat = m.HeartbeatRequest(name="n1")
        assert peer.refused("Registry", "Heartbeat", beat, node_proof(n2, "/spur.v1.Registry/Heartbeat", "n1", beat))[0] in \
            ("UNAUTHENTICATED", "PERMISSION_DENIED")
    assert c.state_of(victim) == "RUNNING"


def test_a_replay_of_a_report_is_refused(new_cluster):
    c = new_cluster(**with_auth("required"))
    key, m, path = node_key(c, "n1"), messages(), "/spur.v1.Registry/Report"
    report = m.RunReport(name="n1", job_id=9999, start_no=1, end_ms=1)
    proof = node_proof(key, path, "n1", report)
    with Peer(f"127.0.0.1:{c.port}") as peer:
        try:
            peer.call("Registry", "Report", report, proof)
        except Exception as e:
            assert e.code().name not in ("UNAUTHENTICATED", "PERMISSION_DENIED"), "the first one is genuine"
        assert peer.refused("Registry", "Report", report, proof)[0] in ("UNAUTHENTICATED", "PERMISSION_DENIED")
        old = node_proof(key, path, "n1", report, sent_ms=int(time.time() * 1000) - 3600_000)
        assert peer.refused("Registry", "Report", report, old)[0] in ("UNAUTHENTICATED", "PERMISSION_DENIED")
        other = m.RunReport(name="n1", job_id=9998, start_no=1, end_ms=1)
        assert peer.refused("Registry", "Report", other, node_proof(key, path, "n1", report))[0] in ("UNAUTHENTICATED", "PERMISSION_DENIED")
        beat = m.HeartbeatRequest(name="n1")
        assert peer.refused("Registry", "Heartbeat", beat, node_proof(key, path, "n1", beat))[0] in ("UNAUTHENTICATED", "PERMISSION_DENIED")


@pytest.mark.parametrize("mode", ["required", "permissive"])
def test_a_node_does_not_take_the_name_of_one_that_lives(new_cluster, mode):
    c = new_cluster(**with_auth(mode))
    job = c.batch("sleep 1000")
    c.wait_state(job, "RUNNING")
    thief = c.add_node("n1x", start=False)
    real = thief.arguments
    thief.arguments = lambda: ["n1" if a == "n1x" else a for a in real()]
    del c.nodes["n1x"]
    thief.spawn()
    wait_for(lambda: "another agent of that name is up" in thief.log, 10, "the second n1 to be refused")
    assert c.state_of(job) == "RUNNING"
    thief.kill()
    c.node.restart()  # the first one is still the one
    c.wait_idle()
    assert c.state_of(job) == "RUNNING"


# ---- admission ----


def test_a_join_token_is_asked_for(new_cluster):
    c = new_cluster(nodes=1, admission="token")
    token = (c.state / "join.token").read_text().strip()
    assert (c.state / "join.token").stat().st_mode & 0o777 == 0o600 and len(token) >= 16

    def spawn(name, words):
        d = c.add_node(name, start=False)
        args = [str(a) for a in d.arguments()]
        if "--token" in args:
            at = args.index("--token")
            del args[at:at + 2]
        d.arguments = lambda: [*args, *words]
        return d.spawn()

    none, wrong, right = spawn("m1", []), spawn("m2", ["--token", "wrong" * 8]), spawn("m3", ["--token", token])
    right.wait_ready()
    wait_for(lambda: "m3 idle" in c.run("sinfo -h -N -o '%N %t'").stdout)
    for d in (none, wrong):
        wait_for(lambda: "token" in d.log, 10, "to be told why")
    assert re.findall(r"m\d", c.run("sinfo -h -N -o %N").stdout) == ["m3"]
    for daemon in (c.ctld, none, wrong, right):
        assert token not in daemon.log
    # A node that is known may come back without a token.
    c.node.restart()
    c.wait_state(c.batch("true", "-w", "n1"), "COMPLETED")
