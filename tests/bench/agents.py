#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many agents at three controllers, as they speak: signed registrations and heartbeats, by all members.

    tests/bench/agents.py [--agents 1000] [--rounds 5]

Says what a heartbeat that has nothing new costs (bytes, CPU of the leader and of the follower that hands it on), then kills
the leader and says what the next one sees: how many had to register anew, how many entries the log grew by.
"""
import argparse
import concurrent.futures
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))

import grpc  # noqa: E402
import nacl.signing  # noqa: E402
from grpcwire import messages, node_proof  # noqa: E402
from hacluster import HACluster, wait_for  # noqa: E402


def cpu_ms(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) * 1000 / os.sysconf("SC_CLK_TCK")


class Agents:
    def __init__(self, cluster, n):
        self.c, self.m = cluster, messages()
        self.names = [f"a{i}" for i in range(n)]
        self.keys = {name: nacl.signing.SigningKey.generate() for name in self.names}
        self.channels = {i: grpc.insecure_channel(cluster.listen_of(i), options=[("grpc.enable_retries", 0)]) for i in cluster.ids}
        self.bytes = 0

    def call(self, i, method, name, request, reply):
        path = f"/spur.v1.Registry/{method}"
        proof = node_proof(self.keys[name], path, name, request)
        self.bytes = len(request.SerializeToString(deterministic=True)), sum(len(k) + len(v) for k, v in proof)
        unary = self.channels[i].unary_unary(path, request_serializer=lambda r: r.SerializeToString(deterministic=True), response_deserializer=reply.FromString)
        return unary(request, metadata=proof, timeout=30)

    def register(self, i, name):
        m = self.m
        node = m.Node(name=name, address="127.0.0.1", port=1, cpus=4, mem_mb=1000, boot_id="b", agent_start_unix=1, public_key=bytes(self.keys[name].verify_key))
        return self.call(i, "Register", name, m.RegisterRequest(node=node), m.RegisterReply)

    def beat(self, i, name):
        m = self.m
        ask = m.HeartbeatRequest(name=name, boot_id="b", agent_start_unix=1, cpu_load_hundredths=101, free_mem_mb=500)
        return self.call(i, "Heartbeat", name, ask, m.HeartbeatReply)

    def all(self, what, ids):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            return list(pool.map(lambda k: what(ids[k % len(ids)], self.names[k]), range(len(self.names))))


def main():
    o = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    o.add_argument("--agents", type=int, default=1000)
    o.add_argument("--rounds", type=int, default=5)
    o = o.parse_args()
    with HACluster(nodes=0) as c:
        agents = Agents(c, o.agents)
        began = time.monotonic()
        agents.all(agents.register, c.ids)
        print(f"{o.agents} agents registered by three controllers in {time.monotonic() - began:.1f} s")
        agents.all(agents.beat, c.ids)
        lead, follower = c.wait_leader(), c.followers()[0]
        index = c.ping(lead).index
        for what, ids in (("at the leader", [lead]), ("by a follower", [follower])):
            before = {i: cpu_ms(c.members[i].pid) for i in (lead, follower)}
            began = time.monotonic()
            for _ in range(o.rounds):
                agents.all(agents.beat, ids)
            n, secs = o.rounds * o.agents, time.monotonic() - began
            used = {i: (cpu_ms(c.members[i].pid) - before[i]) * 1000 / n for i in (lead, follower)}
            print(f"heartbeats {what}: {n / secs:.0f}/s, CPU of the leader {used[lead]:.0f} us, of the follower {used[follower]:.0f} us each")
        print(f"a heartbeat: {agents.bytes[0]} bytes and {agents.bytes[1]} of signature; the log grew by {c.ping(lead).index - index} entries")
        c.kill(lead)
        began = time.monotonic()
        new = c.wait_leader(other_than=lead)
        print(f"the next leader after {time.monotonic() - began:.2f} s")
        index = c.ping(new).index
        left = [i for i in c.ids if i != lead]
        again = sum(r.register_again for r in agents.all(agents.beat, left))
        wait_for(lambda: c.ping(new), 5, "the leader to answer")
        print(f"after the fail-over {again} of {o.agents} register anew; the log grew by {c.ping(new).index - index} entries")


if __name__ == "__main__":
    main()
