# SPDX-License-Identifier: Apache-2.0
"""Any controller takes any request: three real controllers, asked by all of them."""
import concurrent.futures
import itertools
import re
import secrets
import signal
import subprocess
import sys
import time

import grpc
import pytest

from grpcwire import Peer, messages
from hacluster import HACluster, wait_for
from spurtest import BIN, REPO
from test_tokens import Proxy, token


@pytest.fixture(scope="module")
def trio():
    with HACluster(nodes=1) as c:
        c.batch("true", "--begin", "now+1hour", "-J", "waits")
        c.wait_same()
        yield c


def test_what_was_submitted_at_one_is_seen_at_another_at_once(trio):
    c = trio
    pairs = itertools.islice(itertools.cycle(itertools.product(c.ids, c.ids)), 200)
    for n, (a, b) in enumerate(pairs):
        job = c.run(["sbatch", "--parsable", "-H", "-J", f"seen{n}", "--wrap", "true"], env=c.only(a)).stdout.strip()
        assert c.run(["squeue", "-h", "-j", job, "-o", "%j"], env=c.only(b)).stdout.strip() == f"seen{n}", (n, a, b)
        if n % 2:
            c.run(["scancel", job], env=c.only(b))
            assert c.run(["squeue", "-h", "-j", job, "-t", "all", "-o", "%T"], env=c.only(a)).stdout.strip() == "CANCELLED", (n, a, b)


@pytest.mark.parametrize("command", ["squeue -h -t all -S i -o %A:%j:%T:%r:%u", "sinfo -h -N -o %N:%t:%c:%O:%e", "scontrol show partition", "sacct -n -X -P -o jobid,jobname,state"])
def test_each_member_answers_the_same(trio, command):
    c = trio

    def said():  # the load of a node may be told between two questions
        got = {c.run(command, env=c.only(i)).stdout for i in c.ids}
        return got if len(got) == 1 else None

    assert wait_for(said, 5, "one answer") != {""}


def test_a_job_runs_through_followers(trio):
    c = trio
    a, b = c.followers()
    job = c.run(["sbatch", "--parsable", "--wait", "--wrap", "exit 3"], env=c.only(a), check=False)
    assert job.returncode == 3
    assert c.run(["srun", "echo", "heard"], env=c.only(b)).stdout == "heard\n"


# ---- every row that is handed on ----

ROWS = [m.groups() for m in re.finditer(r"^RPC\((\w+),\s*(\w+),\s*(\w+),\s*LEADER,", (REPO / "src/spurctld/api/rpc.def").read_text(), re.M)]


@pytest.mark.parametrize("service, name", [(s, n) for s, n, role in ROWS if role != "MEMBER"])
def test_each_row_is_answered_alike_by_all(trio, service, name):
    """An empty request, by an administrator: what is said to it is the same everywhere, and never that another one leads."""
    c = trio
    said = {}
    for i in c.ids:
        with Peer(f"unix:{c.socket_of(i)}") as peer:
            try:
                peer.call(service, name)
                said[i] = "OK"
            except grpc.RpcError as e:
                said[i] = e.code().name, e.details()
    assert len(set(map(str, said.values()))) == 1 and "UNAVAILABLE" not in str(said), said


def test_rows_of_members_are_not_handed_on_for_others(trio):
    c = trio
    for name in ("Forward", "Offer", "Confirm"):
        with Peer(f"unix:{c.socket_of(c.followers()[0])}") as peer:
            assert peer.refused("Member", name)[0] == "PERMISSION_DENIED"


# ---- who asks ----

def test_who_asks_is_kept(trio):
    c = trio
    a, b = c.followers()
    job = c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env=c.only(a), uid=12345).stdout.strip()
    assert c.run(["squeue", "-h", "-j", job, "-o", "%U"], env=c.only(b)).stdout.strip() == "12345"
    for i in c.ids:
        other = c.run(["scancel", job], env=c.only(i), uid=12346, check=False)
        assert "denied" in other.stderr.lower() and c.state_of(job) == "PENDING"
        admins = c.run(["scontrol", "update", "partitionname=debug", "state=up"], env=c.only(i), uid=12346, check=False)
        assert admins.returncode != 0 and "Invalid user id" in admins.stderr
    c.run(["scontrol", "update", f"jobid={job}", "comment=mine"], env=c.only(b), uid=12345)
    c.run(["scancel", job], env=c.only(b))
    assert c.run(["squeue", "-h", "-j", job, "-t", "all", "-o", "%T"], env=c.only(a)).stdout.strip() == "CANCELLED"


def test_a_token_counts_at_all_members(trio):
    c = trio
    m = messages()
    ids = set()
    ask = m.SubmitRequest(token=secrets.token_bytes(16), spec=m.JobSpec(hold=True, work_dir="/tmp"), script=b"#!/bin/sh\n")
    for i in c.ids * 2:
        ids.add(c.call(i, "Submit", ask).job_id)
    assert len(ids) == 1 and 0 not in ids


def test_a_submit_whose_reply_is_cut_off_is_repeated_at_another_member():
    """Behind one address there is another member when the connection is made anew."""
    with HACluster(nodes=0, auth_lines='jwt_key = "a key for tests that is long enough"\n') as c:
        a, b = c.followers()
        proxy = Proxy(c.ports[a])
        try:
            env = {**c.tcp_env(token(c)), "SPUR_CONTROLLER_ADDR": f"127.0.0.1:{proxy.port}"}
            p = subprocess.Popen([BIN / "sbatch", "--parsable", "-H", "--wrap", "true"], env=env, cwd=c.work, stdout=subprocess.PIPE, text=True)
            made = wait_for(c.queue, what="the job to be there before its reply")
            assert p.poll() is None
            proxy.target = c.ports[b]
            proxy.cut()
            assert [int(p.communicate(timeout=60)[0])] == list(made) == list(c.queue())
        finally:
            proxy.close()


# ---- over a fail-over ----

@pytest.fixture
def three():
    with HACluster(nodes=2) as c:
        c.wait_same()
        yield c


class Submitter(concurrent.futures.ThreadPoolExecutor):
    """Clients that submit at all members until they are told to end. names: acknowledged."""

    def __init__(self, cluster, n):
        super().__init__(n)
        self.c, self.n, self.is_over, self.refused = cluster, n, False, []

    def one(self, k):
        names = {}
        while not self.is_over:
            name = f"c{k}x{len(names)}"
            got = self.c.run(["sbatch", "--parsable", "-H", "-J", name, "--wrap", "true"], env=self.c.first(self.c.ids[k % len(self.c.ids)]), check=False)
            if got.returncode:
                self.refused.append(got.stderr)
                return names
            names[name] = got.stdout.strip()
        return names

    def begin(self):
        self.running = [self.submit(self.one, k) for k in range(self.n)]

    def end(self):
        self.is_over = True
        return {name: job for f in self.running for name, job in f.result().items()}


def check_submits(c, names):
    said = [line.split() for line in c.run("squeue -h -o '%j %A'").stdout.splitlines()]
    assert len(said) == len({name for name, _ in said}), "a job was made twice"
    there = {name: job for name, job in said if name.startswith("c")}
    assert {n: there.get(n) for n in names} == names


def test_the_leader_dies_while_clients_submit_everywhere(three):
    c = three
    runs = str(c.batch("sleep 1000", "-J", "runs"))
    c.wait_state(runs, "RUNNING")
    waits = subprocess.Popen([BIN / "sbatch", "--wait", "--wrap", "while [ ! -e go ]; do sleep 0.1; done; exit 7"], cwd=c.work, env=c.env)
    step = subprocess.Popen([BIN / "srun", "-N1", "bash", "-c", "echo begun > step; while [ ! -e go ]; do sleep 0.1; done; echo ended"], cwd=c.work,
                            env=c.env, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: (c.work / "step").exists(), 20, "the step to begin")
    clients = Submitter(c, 8)
    clients.begin()
    wait_for(lambda: len(c.run("squeue -h -t PD").stdout.splitlines()) > 20, 20, "jobs to come")
    old = c.wait_leader()
    c.kill(old)
    began = time.monotonic()
    c.wait_leader(other_than=old)
    print(f"the next leader after {time.monotonic() - began:.2f} s")
    n = len(c.run("squeue -h -t PD").stdout.splitlines())
    wait_for(lambda: len(c.run("squeue -h -t PD").stdout.splitlines()) > n + 20, 20, "jobs to come again")
    names = clients.end()
    assert not clients.refused
    check_submits(c, names)
    (c.work / "go").touch()
    assert step.communicate(timeout=60)[0] == "ended\n" and step.returncode == 0
    assert waits.wait(timeout=60) == 7
    assert c.state_of(runs) == "RUNNING"
    assert c.run(["scontrol", "show", "job", runs]).stdout.count("Restarts=0")
    c.run(["scancel", runs])
    c.start_member(old)
    c.wait_same()
    for i in c.ids:
        assert c.run(["squeue", "-h", "-j", runs, "-t", "all", "-o", "%T"], env=c.only(i)).stdout.strip() in ("CANCELLED", "COMPLETING")


def test_a_rolling_restart_under_load(three):
    c = three
    clients = Submitter(c, 4)
    clients.begin()
    for i in c.ids:
        c.restart(i)
        c.wait_leader()
    names = clients.end()
    assert not clients.refused and names
    check_submits(c, names)


def test_who_leads_hands_the_lead_on_before_it_stops(three):
    """So that nobody has to find out that it is gone."""
    c = three
    lead = c.wait_leader()
    for _ in range(3):
        c.restart(lead)
        assert "no longer leading" in c.members[lead].log.rsplit("stopping: ", 1)[1]
        c.batch("true")
        lead = c.wait_leader()


@pytest.mark.parametrize("signals", ["TERM TERM TERM", "KILL KILL TERM", "KILL TERM TERM"])
def test_the_last_one_stops_when_nobody_is_left_to_take_the_lead(signals):
    with HACluster() as c:
        lead = c.wait_leader()
        for i, sig in zip([*c.followers(), lead], signals.split()):
            c.kill(i, getattr(signal, f"SIG{sig}"))  # fails where it does not end
        for d in c.members.values():
            d.spawn()
        c.wait_leader()


def test_a_request_that_a_follower_holds_goes_to_the_next_leader(three):
    """Its client knows that follower alone."""
    c = three
    old = c.wait_leader()
    left = c.followers()[0]
    c.stop(old)
    got = c.run(["sbatch", "--parsable", "-H", "--wrap", "true"], env=c.only(left))
    assert c.run(["squeue", "-h", "-o", "%A"], env=c.only(left)).stdout == got.stdout
    c.cont(old)
    c.wait_same()


def test_reconfigure_reaches_each_member(three):
    c = three
    lead, (a, b) = c.wait_leader(), c.followers()
    c.conf_text += '\n[[partitions]]\nname = "more"\n'
    for i in (lead, a):
        c.write_conf(i)
    got = c.run("scontrol reconfigure", env=c.only(b))
    told = got.stdout + got.stderr
    assert f"controller {b}: its file differs" in told and f"controller {a}" not in told and f"controller {lead}" not in told
    for i in c.ids:
        assert "more" in c.run("sinfo -h -o %R", env=c.only(i)).stdout
    c.kill(a)
    c.write_conf(b)
    got = c.run("scontrol reconfigure", env=c.only(b))
    assert f"controller {a} did not read its file" in got.stdout + got.stderr and f"controller {b}" not in got.stdout + got.stderr


def test_a_rolling_restart_onto_another_file_does_not_flap(three):
    """Each member has the new file when it starts; the partition comes with the first, and no later start drops it."""
    c = three
    c.conf_text += '\n[[partitions]]\nname = "more"\n'
    seen = []
    for i in c.ids:
        c.write_conf(i)
        c.restart(i)
        c.wait_leader()
        wait_for(lambda: "more" in c.run("sinfo -h -o %R").stdout, 10, "the partition to come")
        seen.append(c.run("sinfo -h -o %R").stdout.count("more"))
    c.wait_same()
    assert seen == [1, 1, 1] and all("more" in c.run("sinfo -h -o %R", env=c.only(i)).stdout for i in c.ids)


def test_many_agents_go_on_after_a_fail_over_without_a_word():
    """What the load program says: nothing of theirs is journaled, none has to register anew."""
    got = subprocess.run([sys.executable, REPO / "tests/bench/agents.py", "--agents", "60", "--rounds", "1"], capture_output=True, text=True, timeout=120)
    assert "after the fail-over 0 of 60 register anew; the log grew by 0 entries" in got.stdout, got.stdout + got.stderr
