# SPDX-License-Identifier: Apache-2.0
"""Controllers come and go: spur controller, scontrol ping, members that are added, removed and replaced while submits go on."""
import json
import os
import re
import signal
import socket
import struct

import pytest

from hacluster import HACluster, slow, timed, wait_for
from steady import Steady


@pytest.fixture(scope="module")
def three():
    with HACluster(nodes=1) as c:
        yield c


def listed(c, **how):
    """{id: {column: text}} of spur controller list."""
    got = c.run("spur controller list", **how)
    head, *lines = [line.split() for line in got.stdout.splitlines()]
    assert head == ["ID", "ADDRESS", "ROLE", "STATE", "TERM", "INDEX", "VERSION"]
    return {int(line[0]): dict(zip(head, line)) for line in lines}


def lines_of_ping(c, **how):
    got = c.run("scontrol ping", check=False, **how)
    slurm = re.findall(r"^Slurmctld\((\w+)\) at (\S+) is (UP|DOWN)$", got.stdout, re.M)
    ours = re.findall(r"^controller (\d+) \((\S+)\): ([\w ]+), term (\d+), index (\d+)$", got.stdout, re.M)
    assert len(slurm) + len(ours) == len(got.stdout.splitlines()), got.stdout
    return got.returncode, slurm, ours


# ---- who is there ----

def test_list_and_ping_show_role_term_and_index(three):
    c = three
    lead = c.wait_leader()
    c.wait_same()
    rows = listed(c)
    assert sorted(rows) == [1, 2, 3]
    said = c.pings()
    for i, row in rows.items():
        assert row["ROLE"] == ("leader" if i == lead else "follower") and row["STATE"] == "UP"
        assert int(row["TERM"]) == said[i].term and int(row["INDEX"]) >= 1
        assert row["ADDRESS"] == f"127.0.0.1:{c.raft_ports[i]}"
    code, slurm, ours = lines_of_ping(c)
    assert code == 0 and [m for m, _, _ in slurm].count("primary") == 1 and {s for _, _, s in slurm} == {"UP"}
    assert {int(i): role for i, _, role, _, _ in ours} == {i: r["ROLE"] for i, r in rows.items()}
    doc = json.loads(c.run("spur controller list --json").stdout)
    assert [k["id"] for k in doc["controllers"]] == [1, 2, 3] and doc["leader"] == lead and doc["errors"] == []
    pings = json.loads(c.run("scontrol ping --json").stdout)["pings"]
    assert [(p["id"], p["role"], p["primary"]) for p in pings] == [(i, rows[i]["ROLE"], i == lead) for i in (1, 2, 3)]


def test_one_controller_tells_of_all(three):
    c = three
    lead = c.wait_leader()
    for i in c.ids:
        wait_for(lambda: {k: r["ROLE"] for k, r in listed(c, env=c.only(i)).items()} ==
                 {k: "leader" if k == lead else "follower" for k in c.ids}, 10, "each to know each")


def test_the_lead_is_handed_on(three):
    c = three
    for wanted in (2, 3, 1):
        c.run(f"spur controller transfer {wanted}")
        assert c.wait_leader() == wanted
    c.run("spur controller transfer")
    wait_for(lambda: c.leader() not in (None, 1), 10, "another one to lead")


@pytest.mark.parametrize("words, said", [
    ("transfer 9", "there is no controller 9"), ("remove 9", "there is no controller 9"), ("add 2 h:1", "there is a controller 2 already"),
    ("add 4 nowhere", "a controller's address is HOST:PORT"), ("add 400 h:1", "a controller's number is from 1 to 9"),
    ("add four h:1", "four is no controller's number"), ("add 4", "say what to do"), ("", "say what to do"), ("list 2", "say what to do"),
    ("remove 2 --json", "--json and --noheader are for `list`")])
def test_mistakes_are_told_in_words(three, words, said):
    got = three.run(f"spur controller {words}", check=False)
    assert got.returncode == 1 and said in got.stderr and got.stderr.startswith("spur controller: error: "), got.stderr


def test_only_an_administrator_changes_members(three):
    got = three.run("spur controller transfer", check=False, uid=65534)
    assert got.returncode == 1 and re.search("denied|not permitted|administrator|Invalid user", got.stderr, re.I), got.stderr
    assert sorted(listed(three, uid=65534)) == [1, 2, 3]


def test_who_is_down_is_shown_within_a_bound():
    with HACluster(nodes=0) as c:
        lead = c.wait_leader()
        gone, halted = [i for i in c.ids if i != lead]
        c.kill(gone)
        wait_for(lambda: listed(c)[gone]["STATE"] == "DOWN", 10, "it to be seen")
        assert listed(c)[lead]["STATE"] == listed(c)[halted]["STATE"] == "UP"
        c.stop(halted)
        (code, slurm, ours), took = timed(lambda: lines_of_ping(c))
        assert took < slow(6)
        wait_for(lambda: {k: r["STATE"] for k, r in listed(c, env=c.first(lead), check=False).items()} == {lead: "UP", gone: "DOWN", halted: "DOWN"}, 15, "both to be seen")
        c.cont(halted)
        c.wait_leader()
        wait_for(lambda: listed(c)[halted]["STATE"] == "UP", 15, "it to be there again")
        for i in (lead, halted):
            c.kill(i)
        (code, slurm, ours), took = timed(lambda: lines_of_ping(c))
        assert code == 1 and {s for _, _, s in slurm} == {"DOWN"} and ours == [] and took < slow(6)
        assert slurm[0][0] == "primary"


# ---- changes ----

def roles(c, **how):
    return {i: r["ROLE"] for i, r in listed(c, check=False, **how).items()}


def add(c, i):
    c.run(f"spur controller add {i} {c.grow(i)}")
    c.start_member(i)
    wait_for(lambda: roles(c).get(i) == "follower", 30, f"member {i} to vote")


def test_three_become_five_and_three_again_while_submits_go_on():
    with HACluster(nodes=1) as c:
        job = c.batch("while [ ! -e go ]; do sleep 0.05; done", "-J", "runs")
        c.wait_state(job, "RUNNING")
        with Steady(c, "members") as load:
            load.more(10)
            add(c, 4)
            add(c, 5)
            assert sorted(listed(c)) == [1, 2, 3, 4, 5]
            load.more(10)
            for i in (c.wait_leader(), *[k for k in (1, 2) if k != c.wait_leader()][:1]):
                c.run(f"spur controller remove {i}")
                assert c.members[i].process.wait(slow(20)) == 0 and f"this is controller {i} no more: it was removed" in c.members[i].log
                c.ids.remove(i)
                load.more(10)
        assert len(listed(c)) == 3 and load.failed == [] and load.judge() == ([], [])
        (c.work / "go").touch()
        c.wait_state(job, "COMPLETED")
        c.wait_same()


def test_what_would_leave_no_majority_is_refused():
    with HACluster(nodes=0) as c:
        lead = c.wait_leader()
        gone, left = [i for i in c.ids if i != lead]
        c.kill(gone)
        wait_for(lambda: listed(c)[gone]["STATE"] == "DOWN", 10, "it to be seen")
        got = c.run(f"spur controller remove {left}", check=False)
        assert got.returncode == 1 and "only 1 of 2 would be there, which is no majority" in got.stderr
        c.run(f"spur controller remove {gone}")
        assert sorted(listed(c)) == sorted([lead, left])
        job = c.batch("true", "--hold")
        assert job in c.queue()


def test_an_emptied_member_comes_back_by_itself():
    with HACluster(nodes=0) as c:
        with Steady(c, "emptied") as load:
            i = c.followers()[0]
            c.kill(i)
            c.wipe(i)
            load.more(10)
            c.start_member(i)
            wait_for(lambda: roles(c).get(i) == "follower", 30, "it to vote again")
            load.more(10)
        assert load.failed == [] and load.judge() == ([], [])
        c.wait_same()


def test_the_majority_is_lost_for_good():
    with HACluster(nodes=0) as c:
        jobs = [c.batch("true", "--hold", "-J", f"kept-{n}") for n in range(5)]
        c.wait_same()
        left = c.followers()[0]
        for i in c.ids:
            c.kill(i)
        keep, c.ctld_args = c.ctld_args, ["--force-new-cluster"]
        c.start_member(left)
        c.ctld_args = keep
        wait_for(lambda: c.leader() == left, 20, "it to lead alone")
        assert "--force-new-cluster: this controller goes on alone. What only the others had is lost" in c.members[left].log
        assert set(jobs) <= set(c.queue()) and list(listed(c)) == [left]
        c.restart(left)
        wait_for(lambda: c.leader() == left, 20, "it to lead alone, without the flag as well")
        for i in c.ids:
            if i != left:
                c.wipe(i)
                c.start_member(i)
        wait_for(lambda: sorted(roles(c).values()) == ["follower", "follower", "leader"], 40, "three again")
        assert set(jobs) <= set(c.queue())
        c.wait_same()


# ---- the key among them ----

def test_a_wrong_key_and_a_change_of_keys():
    old, new = "a" * 40, "b" * 40
    with HACluster(nodes=0, auth_lines=f'jwt_key = "{old}"') as c:
        plain = c.conf_text
        i = c.followers()[0]
        c.write_conf(i, plain.replace(old, new))
        c.kill(i)
        c.members[i].spawn()
        wait_for(lambda: "does not know" in c.members[i].log and any("does not know the cluster's key" in c.members[k].log for k in c.ids if k != i), 20,
                 "both sides to say it")
        job = c.batch("true", "--hold")
        c.kill(i)
        with Steady(c, "keys") as load:
            for lines in (f'jwt_key = "{old}"\njwt_key_old = "{new}"', f'jwt_key = "{new}"\njwt_key_old = "{old}"', f'jwt_key = "{new}"'):
                for k in c.ids:
                    c.write_conf(k, plain.replace(f'jwt_key = "{old}"', lines))
                    c.kill(k, signal.SIGTERM)
                    c.start_member(k)
                    c.wait_leader()
                    wait_for(lambda: roles(c).get(k) in ("leader", "follower") and listed(c)[k]["STATE"] == "UP", 20, "it to be among the others")
                load.more(3)
        assert load.failed == [] and load.judge() == ([], []) and job in c.queue()
        c.wait_same()


# ---- the port among them, and who is none of them ----

def test_what_is_no_member_is_refused_before_one_byte_of_raft(three):
    c = three
    lead = c.wait_leader()
    term = c.ping(lead).term
    ask = b"SPURPEER" + struct.pack("<HBBII", 1, 1, 0, c.ids[lead % 3], lead) + bytes(32) + os.urandom(32)
    raft = bytes(1024)
    kept = []
    for bytes_sent in (b"", b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", os.urandom(4096), ask, ask[:40], ask + raft, raft):
        s = socket.create_connection(("127.0.0.1", c.raft_ports[lead]), timeout=slow(10))
        s.sendall(bytes_sent)
        if len(bytes_sent) < 84:
            kept.append(s)  # half open: it is ended by the hand-shake's limit
            continue
        try:
            said = b""
            while more := s.recv(4096):
                said += more
        except ConnectionResetError:
            pass
        assert len(said) <= 48 and (not said or said[:8] == b"SPURPEER" and struct.unpack("<H", said[10:12])[0] != 0)
    for s in kept:
        try:
            while s.recv(4096):
                pass  # at most the listener's hello
        except ConnectionResetError:
            pass
        s.close()
    flood = []
    for _ in range(300):
        s = socket.socket()
        s.settimeout(slow(5))
        s.connect(("127.0.0.1", c.raft_ports[lead]))
        flood.append(s)
    job = c.batch("true", "--hold")
    assert job in c.queue() and c.leader() == lead and c.ping(lead).term == term
    for s in flood:
        s.close()
