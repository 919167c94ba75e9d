# SPDX-License-Identifier: Apache-2.0
"""Real clusters of several controllers on free loopback ports: the one helper of all tests of three controllers.

    with HACluster(nodes=1) as c:
        lead = c.wait_leader()
        c.kill(lead)
        c.wait_leader(other_than=lead)
        job = c.batch("true")            # commands know all controllers
        c.run("squeue", env=c.only(2))   # and this one asks member 2 alone

Members are numbered from 1. Each has a file of its own (c.conf_of(i)), which differs from the others' in node_id and addresses alone.
"""
import concurrent.futures
import os
import pathlib
import shutil
import signal
import socket
import time

import grpc

from grpcwire import messages
from spurtest import Cluster, Daemon, Failed, PATIENCE, wait_for


def free_ports(n):
    """Ports that were free a moment ago, all different."""
    held = [socket.socket() for _ in range(n)]
    try:
        for s in held:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()


class HACluster(Cluster):
    """members: how many controllers; all else as spurtest.Cluster. `controller` is put into each file's [controller]."""

    def __init__(self, nodes=1, members=3, controller="", ctld_args=(), **how):
        self.ids = list(range(1, members + 1))
        ports = free_ports(2 * members)
        self.ports = dict(zip(self.ids, ports))
        self.raft_ports = dict(zip(self.ids, ports[members:]))
        self.members = {}
        super().__init__(nodes=nodes, ctld_args=ctld_args, **how)
        self.controller_lines = controller
        self.state_of_member = {i: self.root / f"ctld{i}" for i in self.ids}
        for i in self.ids:
            self.members[i] = Daemon(self, f"ctld{i}", "spurctld", lambda i=i: self._member_arguments(i))
            self.write_conf(i)
        self.ctld = self.members[1]
        self.state = self.state_of_member[1]
        self.stopped = set()

    def grow(self, i):
        """A further member, with a file that names it too, and an empty directory. It is not started, and not added."""
        self.ports[i], self.raft_ports[i] = free_ports(2)
        self.ids.append(i)
        self.state_of_member[i] = self.root / f"ctld{i}"
        self.members[i] = Daemon(self, f"ctld{i}", "spurctld", lambda: self._member_arguments(i))
        self.write_conf(i)
        return f"{self.host_of(i)}:{self.raft_ports[i]}"

    # ---- where things are: a test may put the members elsewhere ----

    def host_of(self, i):
        """As the others know it."""
        return "127.0.0.1"

    def raft_listen_of(self, i):
        return f"{self.host_of(i)}:{self.raft_ports[i]}"

    def listen_of(self, i):
        return f"127.0.0.1:{self.ports[i]}"

    def conf_of(self, i):
        return self.root / f"spur{i}.conf"

    def write_conf(self, i, text=None):
        """The member's file, from conf_text (or another). Takes effect with its next start, or scontrol reconfigure."""
        peers = ", ".join(f'"{self.host_of(k)}:{self.raft_ports[k]}"' for k in self.ids)
        own = (f'node_id = {i}\npeers = [{peers}]\nraft_listen_addr = "{self.raft_listen_of(i)}"\n'
               f'listen_addr = "{self.listen_of(i)}"\n{self.controller_lines}\n')
        self.conf_of(i).write_text(f"{self.conf_text if text is None else text}\n[controller]\n{own}")

    def _member_arguments(self, i):
        return [f"--config={self.conf_of(i)}", f"--listen={self.listen_of(i)}", "--state-dir", self.state_of_member[i],
                *self._scale_arguments(), *self.ctld_args]

    def controllers(self, first=1):
        """All addresses, as spurd and clients by TCP take them."""
        order = self.ids[first - 1:] + self.ids[:first - 1]
        return ",".join(f"http://{self.listen_of(i)}" for i in order)

    def _node_arguments(self, name, cpus, memory_mb, extra):
        at = list(self.nodes).index(name) if name in self.nodes else 0
        return [f"--controller={self.controllers(1 + at % len(self.ids))}", "--listen=127.0.0.1:0", "-N", name, "--state-dir", self.root / name,
                "--cpus", cpus, "--memory-mb", memory_mb, *self._scale_arguments(), *extra]

    def socket_of(self, i):
        return self.state_of_member[i] / "spurctld.sock"

    @property
    def env(self):
        return self.env_of(self.ids)

    def env_of(self, ids):
        """Of a command that knows these members, in this order, by their local sockets."""
        return {**super().env, "SPUR_CONTROLLER_ADDR": ",".join(f"unix:{self.socket_of(i)}" for i in ids), "SPUR_CONF": str(self.conf_of(ids[0]))}

    def only(self, i):
        return {"SPUR_CONTROLLER_ADDR": f"unix:{self.socket_of(i)}"}

    def first(self, i):
        """All members, this one first."""
        at = self.ids.index(i)
        return {"SPUR_CONTROLLER_ADDR": ",".join(f"unix:{self.socket_of(k)}" for k in self.ids[at:] + self.ids[:at])}

    def tcp_env(self, jwt=None, first=1):
        env = {**self.env, "SPUR_CONTROLLER_ADDR": self.controllers(first)}
        if jwt:
            env["SPUR_JWT"] = jwt
        return env

    # ---- life ----

    def start_ctld(self, timeout=20.0):
        """All at once, as a StatefulSet does."""
        for d in self.members.values():
            d.spawn()
        for d in self.members.values():
            d.wait_ready(timeout)
        self.wait_leader(timeout)
        return self.ctld

    def close(self):
        self.stopped.clear()
        super().close()

    @property
    def daemons(self):
        return [*self.members.values(), *self.nodes.values()]

    def logs(self, n=60):
        out = []
        for daemon in self.daemons:
            out.append(f"---- {daemon.name} ----\n" + "\n".join(daemon.log.splitlines()[-n:]))
        return "\n".join(out)

    def kill(self, i, sig=signal.SIGKILL):
        self.stopped.discard(i)
        return self.members[i].kill(sig)

    def start_member(self, i, timeout=20.0):
        return self.members[i].start(timeout)

    def restart(self, i, sig=signal.SIGTERM, timeout=20.0):
        self.kill(i, sig)
        return self.start_member(i, timeout)

    def wipe(self, i):
        """As if its disk was replaced. It must not run."""
        assert not self.members[i].running()
        shutil.rmtree(self.state_of_member[i])

    def stop(self, i):
        """SIGSTOP: it holds its sockets and says nothing."""
        self.members[i].process.send_signal(signal.SIGSTOP)
        self.stopped.add(i)
        wait_for(lambda: pathlib.Path(f"/proc/{self.members[i].pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T", 5, "it to stop")

    def cont(self, i):
        self.members[i].process.send_signal(signal.SIGCONT)
        self.stopped.discard(i)

    # ---- who leads ----

    def call(self, i, name, request=None, timeout=2.0, metadata=()):
        """One method of service Controller at member i, by its local socket. None: no answer."""
        m = messages()
        method = m.DESCRIPTOR.services_by_name["Controller"].methods_by_name[name]
        request = request if request is not None else getattr(m, method.input_type.name)()
        with grpc.insecure_channel(f"unix:{self.socket_of(i)}", options=[("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]) as ch:
            unary = ch.unary_unary(f"/spur.v1.Controller/{name}", request_serializer=lambda r: r.SerializeToString(),
                                   response_deserializer=getattr(m, method.output_type.name).FromString)
            try:
                return unary(request, timeout=timeout, metadata=list(metadata))
            except grpc.RpcError:
                return None

    def ping(self, i, timeout=1.0):
        return self.call(i, "Ping", timeout=timeout) if self.members[i].running() and i not in self.stopped else None

    def pings(self):
        """{member: what it says of itself}, of those that answer."""
        with concurrent.futures.ThreadPoolExecutor(len(self.ids)) as pool:
            return {i: p for i, p in zip(self.ids, pool.map(self.ping, self.ids)) if p}

    def leader(self):
        """Whoever says that it leads and serves, in the highest term; None."""
        said = [(p.term, i) for i, p in self.pings().items() if p.role == "leader"]
        return max(said)[1] if said else None

    def wait_leader(self, timeout=20.0, other_than=None):
        def there():
            i = self.leader()
            return i if i and i != other_than else None

        try:
            return wait_for(there, timeout, "a leader")
        except Failed as e:
            raise Failed(f"{e}\n{self.logs(25)}") from None

    def followers(self):
        lead = self.wait_leader()
        return [i for i in self.ids if i != lead]

    def wait_same(self, ids=None, timeout=20.0):
        """Until these members (all that run) have applied the same entries; their digests must be equal then."""
        ids = ids or [i for i in self.ids if self.members[i].running() and i not in self.stopped]

        def same():
            got = [self.ping(i) for i in ids]
            if not all(got) or len({p.index for p in got}) != 1:
                return None
            return got

        got = wait_for(same, timeout, "members at one index", every=0.05)
        assert len({p.digest for p in got}) == 1, [(p.member_id, p.index, p.digest) for p in got]
        return got[0].index


def timed(fn):
    began = time.monotonic()
    got = fn()
    return got, time.monotonic() - began


def slow(secs):
    """A bound in seconds that a slow machine, or a sanitized build, may stretch."""
    return secs * PATIENCE


__all__ = ["HACluster", "Failed", "free_ports", "slow", "timed", "wait_for", "os"]
