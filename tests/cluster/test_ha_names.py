# SPDX-License-Identifier: Apache-2.0
"""Controllers that are known by name alone, as pods of a StatefulSet: DNS comes later than they do, and after a restart the same names stand for other addresses.

All processes share a mount namespace each with an /etc/hosts of the test's; each member has a host name of its own, by which it finds itself among the peers."""
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from hacluster import HACluster, slow, timed, wait_for
from steady import Steady
from spurtest import BIN
from test_identity import WITH_KEY, jwt

DOMAIN = "spurctld.spur.svc.cluster.local"


def inside(root, host=None):
    """In front of a command: its /etc/hosts, /etc/nsswitch.conf and /etc/resolv.conf are the files in `root`, its host name is `host`."""
    binds = " && ".join(f'mount --bind "$0/{f}" /etc/{f}' for f in ("hosts", "nsswitch.conf", "resolv.conf"))
    name = f"hostname {host} && " if host else ""
    return ["unshare", "--mount", "--uts", "sh", "-c", f'{name}{binds} && exec "$@"', str(root)]


def is_possible():
    if not shutil.which("unshare") or os.geteuid() != 0:
        return False
    tried = subprocess.run(["unshare", "--mount", "--uts", "sh", "-c", "hostname x && mount --bind /etc/hosts /etc/hosts"], capture_output=True)
    return tried.returncode == 0 and os.path.exists("/etc/resolv.conf") and os.path.exists("/etc/nsswitch.conf")


pytestmark = [pytest.mark.root, pytest.mark.skipif(not is_possible(), reason="needs root and unshare")]


class Named(HACluster):
    """Peers, agents and clients have names only; move() gives members other addresses. Not started."""

    def __init__(self):
        self.at = {1: 11, 2: 12, 3: 13}
        super().__init__(nodes=0, auth_lines=WITH_KEY)
        self.etc = self.root / "etc"
        self.etc.mkdir()
        self.names_known([])
        (self.etc / "resolv.conf").write_text("")
        (self.etc / "nsswitch.conf").write_text("hosts: files\n")
        for i, d in self.members.items():
            d.wrapper = inside(self.etc, f"spurctld-{i - 1}")

    def address_of(self, i):
        return f"127.0.0.{self.at[i]}"

    def name_of(self, i):
        return f"spurctld-{i - 1}.{DOMAIN}"

    def host_of(self, i):
        return self.name_of(i)

    def listen_of(self, i):
        return f"{self.name_of(i)}:{self.ports[i]}"

    def write_conf(self, i, text=None):
        """One and the same file but for where it listens, and no node_id: its host name tells who it is."""
        peers = ", ".join(f'"{self.name_of(k)}:{self.raft_ports[k]}"' for k in self.ids)
        own = f'peers = [{peers}]\nraft_listen_addr = "{self.address_of(i)}:{self.raft_ports[i]}"\n{self.controller_lines}\n'
        self.conf_of(i).write_text(f"{self.conf_text if text is None else text}\n[controller]\n{own}")

    def _member_arguments(self, i):
        return [a if a != f"--listen={self.listen_of(i)}" else f"--listen={self.address_of(i)}:{self.ports[i]}" for a in super()._member_arguments(i)]

    def _node_arguments(self, name, cpus, memory_mb, extra):
        token = next((t for p in self.state_of_member.values() if (t := p / "join.token").exists()), None)
        return [*super()._node_arguments(name, cpus, memory_mb, extra), *(["--token", token.read_text().strip()] if token else [])]

    def add_node(self, name, **how):
        start = how.pop("start", True)
        node = super().add_node(name, **how, start=False)
        node.wrapper = inside(self.etc)
        return node.start() if start else node

    def names_known(self, ids):
        """In place: the file is bound over /etc/hosts of processes that run."""
        lines = ["127.0.0.1 localhost", *(f"{self.address_of(i)} {self.name_of(i)}" for i in ids)]
        (self.etc / "hosts").write_text("\n".join(lines) + "\n")

    def move(self, *ids):
        """To new addresses, which their names stand for at once. They may not run."""
        assert not any(self.members[i].running() for i in ids)
        for i in ids:
            self.at[i] += 10
            self.write_conf(i)

    def by_name(self, *argv, timeout=60, **how):
        env = {**self.env, "SPUR_CONTROLLER_ADDR": self.controllers(), "SPUR_JWT": jwt(sun="root")}
        return subprocess.run([*inside(self.etc), *map(str, argv)], env=env, cwd=self.work, timeout=timeout, capture_output=True, text=True, **how)


@pytest.fixture
def c():
    with contextlib.closing(Named()) as made:
        yield made


def spawn(c):
    for d in c.members.values():
        d.spawn()


def everybody_follows_one(c):
    def agreed():
        said = c.pings()
        led_by = {p.leader_id for p in said.values()}
        return len(said) == len(c.ids) and len(led_by) == 1 and c.leader() in led_by

    wait_for(agreed, 30, f"all to follow one\n{c.logs(20)}")


def begin(c):
    c.names_known(c.ids)
    c.start_ctld()
    everybody_follows_one(c)
    for name in "n1", "n2":
        c.add_node(name)
    wait_for(lambda: c.run("sinfo -h -N -o %N:%t").stdout.split() == ["n1:idle", "n2:idle"], 20, "both nodes")


def test_names_come_later_than_all_the_controllers(c):
    """A new cluster begins when all have been heard, and not before: one that is not heard may have a state."""
    spawn(c)
    for known in [], [2], [2, 3]:
        c.names_known(known)
        wait_for(lambda: len(c.pings()) == 3, 20, "all to answer")
        time.sleep(1)  # some attempts
        assert c.leader() is None and all(d.running() for d in c.members.values())
    c.names_known(c.ids)
    _, took = timed(c.wait_leader)
    print(f"a leader {took:.2f} s after the names")
    assert took < slow(5)
    everybody_follows_one(c)


def test_names_come_later_than_a_restart(c):
    """Two of three that find each other go on; the third joins them when its name is known."""
    begin(c)
    job = c.batch("true", "--hold")
    c.wait_same()
    for i in c.ids:
        c.kill(i)
    c.names_known([1])
    spawn(c)
    wait_for(lambda: len(c.pings()) == 3, 20, "all to answer")
    time.sleep(1)  # some elections that nobody hears of
    assert c.leader() is None and all(d.running() for d in c.members.values())
    c.names_known([1, 2])
    _, took = timed(c.wait_leader)
    print(f"a leader {took:.2f} s after the second name")
    assert took < slow(5)
    assert c.run("squeue -h -o %i").stdout.split() == [str(job)]
    c.names_known(c.ids)
    everybody_follows_one(c)
    c.wait_same()


def test_all_restart_with_other_addresses_behind_the_same_names(c):
    """The agents and a client that submits go on running. Nobody listens at the old addresses any more."""
    begin(c)
    job = c.batch("echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended")
    c.wait_state(job, "RUNNING")
    load = Steady(c, "moved")
    load.wrapper, load.targets, load.env = inside(c.etc), c.controllers(), {"SPUR_JWT": jwt(sun="root")}
    with load:
        load.more(20)
        for _ in range(2):
            for i in c.ids:
                c.kill(i)
            c.names_known([])
            c.move(*c.ids)
            spawn(c)
            c.names_known(c.ids)
            _, took = timed(c.wait_leader)
            print(f"a leader {took:.2f} s after the names")
            assert took < slow(5)
            _, took = timed(load.more)
            print(f"submits {took:.2f} s later")
            assert took < slow(5)
            everybody_follows_one(c)
    assert load.failed == [] and load.judge() == ([], [])
    assert c.state_of(job) == "RUNNING"
    (c.work / "go").touch()
    c.wait_state(job, "COMPLETED")
    assert c.output(job) == "begun\nended\n"
    assert c.by_name(BIN / "srun", "-N2", "echo", "there").stdout == "there\nthere\n"
    c.wait_same()


def test_one_comes_back_at_another_address(c):
    """The others, which go on running, find it there; the agents and a client too, which knew only the old one."""
    begin(c)
    for i in c.followers()[:1] + [c.wait_leader()]:
        c.kill(i)
        c.wait_leader(other_than=i)
        c.move(i)
        c.names_known(c.ids)
        c.start_member(i)
        everybody_follows_one(c)
        assert c.by_name(BIN / "srun", "-N2", "echo", "there").stdout == "there\nthere\n"
    c.wait_same()


def test_agents_start_before_any_name_is_known(c):
    begin(c)
    for name in "n1", "n2":
        c.nodes[name].kill()
    for i in c.ids:
        c.kill(i)
    c.names_known([])
    c.move(*c.ids)
    for d in c.nodes.values():
        d.spawn()
    spawn(c)
    wait_for(lambda: all("; trying again" in d.log for d in c.nodes.values()), 20, "the agents to look for names in vain")
    c.names_known(c.ids)
    for d in c.nodes.values():
        d.wait_ready(30)
    assert c.by_name(BIN / "srun", "-N2", "echo", "there").stdout == "there\nthere\n"


class SilentServer(threading.Thread):
    """Takes questions and answers none, as a name server that is cut off. asked: names in question."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for left in reversed(range(20)):  # other servers may have the port of some addresses
            self.address = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
            try:
                self.socket.bind((self.address, 53))
                break
            except OSError:
                if not left:
                    raise
        self.asked = 0
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while self.socket.recv(2000):
                self.asked += 1

    def close(self):
        self.socket.close()


def test_a_name_server_that_says_nothing(c):
    """Each look-up of the third's name takes many seconds; the two others, whose names are known, find each other and lead at once."""
    begin(c)
    with contextlib.closing(SilentServer()) as silent:
        for i in c.ids:
            c.kill(i)
        (c.etc / "nsswitch.conf").write_text("hosts: files dns\n")
        (c.etc / "resolv.conf").write_text(f"nameserver {silent.address}\noptions timeout:10 attempts:3\n")
        c.names_known([])
        spawn(c)
        wait_for(lambda: silent.asked > 5 and len(c.pings()) == 3, 20, "all to ask for each other")
        for i in c.ids:
            c.kill(i)
        c.names_known([1, 2])
        for i in 1, 2:
            c.members[i].spawn()
        _, took = timed(lambda: c.wait_leader(40))
        print(f"a leader after {took:.2f} s")
        assert took < slow(8)
        assert c.batch("true", "--hold")
        began = time.monotonic()
        for i in 1, 2:
            assert c.run("squeue -h -o %T", env=c.only(i)).stdout == "PENDING\n"
        assert time.monotonic() - began < slow(4)
        for other in 2, 1, 2, 1:  # meanwhile the third is looked for again and again
            took = c.kill(other, signal.SIGTERM)
            c.move(other)
            c.names_known([1, 2])
            c.members[other].spawn()
            _, back = timed(lambda: c.batch("true", "--hold"))
            print(f"it stopped after {took:.2f} s, a submit was taken after {back:.2f} s")
            assert took < slow(5) and back < slow(8)
