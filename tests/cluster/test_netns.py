# SPDX-License-Identifier: Apache-2.0
"""Machines of their own, as network namespaces: the controller, two nodes and a client, each with one address on a bridge and nothing else in common but files. Nobody listens
on a port that could be guessed and loopback reaches nobody, so what works here went by the registered addresses and ports."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import time

import pytest

import spurtest
from spurtest import wait_for
from test_identity import WITH_KEY, jwt

NET = "10.213.77"
HOSTS = {"ctl": 1, "n1": 11, "n2": 12, "cli": 21}
BOUND_SECS = 40  # from the cut to srun's end: 4 s until the node counts as lost, 10 s of trying, and what the machine is slow


def ip(*args, ns=None, check=True):
    return subprocess.run(["ip", *(["-n", ns] if ns else []), *args], check=check, capture_output=True, text=True)


class Net:
    """A bridge in a namespace of its own, and one namespace for each host."""

    def __init__(self, hosts=None):
        self.hosts = hosts or HOSTS
        self.tag = f"spur{os.getpid()}"
        self.made = []

    def ns(self, host):
        return f"{self.tag}-{host}"

    def up(self):
        try:
            hub = self._add("hub")
            ip("link", "add", "name", "bridge0", "type", "bridge", ns=hub)
            ip("link", "set", "bridge0", "up", ns=hub)
            for host, last in self.hosts.items():
                ns = self._add(host)
                ip("link", "add", "name", f"to-{host}", "type", "veth", "peer", "name", "eth0", "netns", ns, ns=hub)
                ip("link", "set", f"to-{host}", "master", "bridge0", "up", ns=hub)
                ip("addr", "add", f"{NET}.{last}/24", "dev", "eth0", ns=ns)
                ip("link", "set", "eth0", "up", ns=ns)
                ip("link", "set", "lo", "up", ns=ns)
        except (OSError, subprocess.CalledProcessError) as e:
            self.down()
            why = getattr(e, "stderr", None) or str(e)
            if not re.search("not permitted|not supported|Unknown device type|Permission denied", why):
                raise AssertionError(why) from e
            pytest.skip(f"no network namespaces here: {why}")
        return self

    def _add(self, host):
        ip("netns", "add", self.ns(host))
        self.made.append(self.ns(host))
        return self.ns(host)

    def link(self, host, state):
        ip("link", "set", f"to-{host}", state, ns=self.ns("hub"))

    def inside(self, host):
        """`ip netns exec` would hide /sys/fs/cgroup; this changes the network alone."""
        return ["nsenter", f"--net=/run/netns/{self.ns(host)}"]

    def down(self):
        for ns in self.made:
            ip("netns", "del", ns, check=False)


class Apart(spurtest.Cluster):
    """Each daemon in its namespace, and all commands in the client's, over TCP with a token."""

    def __init__(self, net, **how):
        self.net = net
        super().__init__(nodes=2, **how)
        self.ctld.wrapper = net.inside("ctl")

    def _ctld_arguments(self):
        return [a.replace("127.0.0.1", f"{NET}.1") if isinstance(a, str) else a for a in super()._ctld_arguments()]

    def _node_arguments(self, name, cpus, memory_mb, extra):
        args = super()._node_arguments(name, cpus, memory_mb, extra)
        args = [a.replace("http://127.0.0.1", f"http://{NET}.1").replace("--listen=127.0.0.1", "--listen=0.0.0.0") if isinstance(a, str) else a
                for a in args]
        return [*args, "--address", f"{NET}.{HOSTS[name]}"]

    def add_node(self, name, **how):
        start = how.pop("start", True)
        node = super().add_node(name, **how, start=False)
        node.wrapper = self.net.inside(name)
        return node.start() if start else node

    @property
    def env(self):
        return {**super().env, "SPUR_CONTROLLER_ADDR": f"http://{NET}.1:{self.port}", "SPUR_JWT": jwt(sun="root")}

    def run(self, command, *more, **how):
        argv = shlex.split(command) if isinstance(command, str) else list(command)
        return super().run([*self.net.inside("cli"), *argv], *more, **how)

    def popen(self, *argv, **how):
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        return subprocess.Popen([*self.net.inside("cli"), *argv], env=self.env, cwd=self.work, **how)


pytestmark = [pytest.mark.root, pytest.mark.skipif(not shutil.which("ip") or not shutil.which("nsenter"), reason="needs ip and nsenter")]


@pytest.fixture(scope="module")
def net():
    n = Net().up()
    yield n
    n.down()


@pytest.fixture
def apart(net):
    with Apart(net, auth="required", auth_lines=WITH_KEY, cpus=4, controller="heartbeat_timeout_secs = 4") as c:
        yield c
        for host in HOSTS:
            net.link(host, "up")


def lines(text):
    return sorted(text.splitlines())


WHO = "echo $SLURMD_NODENAME $SLURM_PROCID $(cat /proc/net/fib_trie | grep -o '10\\.213\\.77\\.[12][12]*' | grep -v '\\.0$' | sort -u | tr '\\n' ' ')"


def test_nobody_is_reached_by_loopback(apart):
    """What this file relies on: the ports of the daemons are closed to everyone's own loopback."""
    for port in (apart.port, int(apart.node.ready["listen"])):
        got = apart.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"], check=False)
        assert got.returncode != 0
    assert f"NodeAddr={NET}.12" in apart.run("scontrol show node n2").stdout


def test_srun_over_two_machines(apart):
    got = apart.run(["srun", "-N2", "-n4", "-l", "bash", "-c", WHO])
    assert [line.split()[:4] for line in lines(got.stdout)] == [
        ["0:", "n1", "0", f"{NET}.11"], ["1:", "n1", "1", f"{NET}.11"], ["2:", "n1", "2", f"{NET}.11"], ["3:", "n2", "3", f"{NET}.12"]]
    got = apart.run(["srun", "-N2", "-l", "cat"], input="one\ntwo\n")
    assert lines(got.stdout) == ["0: one", "0: two", "1: one", "1: two"]
    data = os.urandom(200000).hex()
    got = apart.run(["srun", "-N2", "-i", "1", "bash", "-c", "cat; echo err$SLURM_PROCID >&2"], input=data)
    assert got.stdout == data and lines(got.stderr) == ["err0", "err1"]
    got = apart.run(["srun", "-N2", "bash", "-c", "exit $((3 + SLURM_PROCID))"], check=False)
    assert (got.returncode, lines(got.stderr)) == (4, ["srun: error: n1: task 0: Exited with exit code 3", "srun: error: n2: task 1: Exited with exit code 4"])
    assert apart.run(["srun", "-N2", "bash", "-c", "echo $SLURM_LAUNCH_NODE_IPADDR"]).stdout == f"{NET}.21\n" * 2


def test_a_batch_job_and_its_steps(apart):
    job = apart.batch(f"srun -l bash -c {shlex.quote(WHO)}\nsrun -n1 -N1 -w n2 --overlap bash -c 'echo on $SLURMD_NODENAME from $SLURM_LAUNCH_NODE_IPADDR'\nsrun -l cat <<<x",
                      "-N2", "-n2", "-o", "steps.out")
    apart.wait_state(job, "COMPLETED")
    text = (apart.work / "steps.out").read_text()
    assert f"0: n1 0 {NET}.11" in text and f"1: n2 1 {NET}.12" in text and f"on n2 from {NET}.11\n" in text, text
    assert "0: x\n" in text and "1: x\n" in text


def test_salloc_sattach_and_sbcast(apart):
    (apart.work / "data").write_bytes(os.urandom(3 << 20))
    (apart.work / "in.sh").write_text("""
srun -N2 -n2 rm -f $PWD/copy.n1 $PWD/copy.n2
sbcast -f data $PWD/copy; echo sbcast $?
cmp data copy; echo same $?
srun -N2 -n2 -l bash -c 'echo $SLURMD_NODENAME'
""")
    got = apart.run(["salloc", "-Q", "-N2", "-n2", "bash", "in.sh"])
    assert "sbcast 0\n" in got.stdout and "same 0\n" in got.stdout and "0: n1\n" in got.stdout and "1: n2\n" in got.stdout, got.stderr
    p = apart.popen("srun", "-N2", "-J", "watched", "bash", "-c", "echo up; while [ ! -e go ]; do sleep 0.05; done; echo $SLURMD_NODENAME out")
    p.stdout.readline(), p.stdout.readline()
    step = apart.run("squeue -h -n watched -o %i").stdout.strip() + ".0"
    a = apart.popen("sattach", "-l", "-v", step)
    told = {a.stderr.readline().decode().split()[-3].strip(",") for _ in range(2)}
    (apart.work / "go").touch()
    out, err = a.communicate(timeout=30 * spurtest.PATIENCE)
    assert told == {"n1", "n2"} and lines(out.decode()) == ["0: n1 out", "1: n2 out"], err
    assert p.wait(20) == 0


def tasks_on(c, node):
    """Processes of tasks of this cluster, by the node whose step daemon has them."""
    ours = (f"SLURMD_NODENAME={node}\0".encode(), f"SPUR_TEST_ROOT={c.root}\0".encode(), b"SLURM_STEP_ID=0\0")
    return [pid for pid, _, environ in spurtest.processes() if all(word in environ for word in ours)]


def state(c, node):
    return c.run(["sinfo", "-h", "-N", "-n", node, "-o", "%T"]).stdout.strip()


def test_a_cut_link_ends_the_step_and_leaves_nothing(apart, net):
    p = apart.popen("srun", "-N2", "-l", "-J", "cut", "bash", "-c", "echo up; exec sleep 600")
    assert lines(p.stdout.readline().decode() + p.stdout.readline().decode()) == ["0: up", "1: up"]
    job = apart.run("squeue -h -n cut -o %i").stdout.strip()
    batch = apart.batch("sleep 600", "-w", "n2", "-n1", "--no-requeue")
    apart.wait_state(batch, "RUNNING")
    again = apart.batch("[ $SLURM_RESTART_COUNT ] && exit 0; sleep 600", "-w", "n2", "-n1", "--requeue")
    apart.wait_state(again, "RUNNING")
    began = time.monotonic()
    net.link("n2", "down")
    out, err = p.communicate(timeout=BOUND_SECS * spurtest.PATIENCE)
    took = time.monotonic() - began
    assert p.returncode not in (0, None) and took < BOUND_SECS * spurtest.PATIENCE
    assert "n2" in err.decode() and re.search(r"node failure|Node failure", err.decode(), re.I), err.decode()
    apart.wait_state(int(job), "NODE_FAIL")
    apart.wait_state(batch, "NODE_FAIL")
    assert apart.state_of(again) == "PENDING"
    assert "down" in state(apart, "n2") and not tasks_on(apart, "n1")
    assert tasks_on(apart, "n2")  # it can't be told
    net.link("n2", "up")
    wait_for(lambda: not tasks_on(apart, "n2"), 40, "the tasks of the cut-off node to end")
    wait_for(lambda: state(apart, "n2").strip("*") in ("idle", "mixed"), 40, "n2 to be back")
    apart.wait_state(again, "COMPLETED", timeout=40)
    # a step daemon keeps what a client has not fetched for 30 s
    wait_for(lambda: not [c for _, c in apart.ours() if b"spurstepd" in c], 60, "the step daemons to be gone", every=0.2)
    assert lines(apart.run(["srun", "-N2", "-l", "bash", "-c", "echo $SLURMD_NODENAME"]).stdout) == ["0: n1", "1: n2"]


def test_a_link_that_comes_back_in_time_loses_nothing(apart, net):
    """Shorter than the time after which a node counts as lost: no byte is missing, no task is harmed."""
    count = 4000
    p = apart.popen("srun", "-N2", "-l", "bash", "-c", f"for ((i = 1; i <= {count}; i++)); do echo line $i; [ $((i % 40)) = 0 ] && sleep 0.03; done; true")
    seen = [p.stdout.readline() for _ in range(50)]
    net.link("n2", "down")
    time.sleep(1.5)  # the length of the failure
    net.link("n2", "up")
    every = b"".join(seen).splitlines() + p.stdout.read().splitlines()
    err = p.stderr.read()
    p.wait(60 * spurtest.PATIENCE)
    for task in (b"0", b"1"):
        assert [line for line in every if line.startswith(task)] == [b"%s: line %d" % (task, i) for i in range(1, count + 1)]
    assert p.returncode == 0, err


def test_a_client_that_is_cut_off_ends_its_job(apart, net):
    p = apart.popen("srun", "-N2", "-J", "gone", "bash", "-c", "echo up; exec sleep 600")
    p.stdout.readline()
    net.link("cli", "down")
    ctl = pathlib.Path(apart.state)
    env = {**apart.env, "SPUR_CONTROLLER_ADDR": f"unix:{ctl}/spurctld.sock"}

    def left():
        return subprocess.run([spurtest.BIN / "squeue", "-h", "-n", "gone"], env=env, capture_output=True, text=True).stdout

    assert left()
    wait_for(lambda: not left(), 90, "the job of a client that can't be reached to end", every=0.2)
    wait_for(lambda: not tasks_on(apart, "n1") and not tasks_on(apart, "n2"), 30, "its tasks to end")
    net.link("cli", "up")
    _, err = p.communicate(timeout=60 * spurtest.PATIENCE)
    assert p.returncode != 0
