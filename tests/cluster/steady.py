# SPDX-License-Identifier: Apache-2.0
"""Submits that go on whatever happens to the controllers, and what became of them (tests/bench/submit_steady.c)."""
import collections
import subprocess
import threading
import time

from spurtest import BUILD, wait_for


class Steady:
    """One client that submits held jobs one after another until it is left. acks: (began, ended, job id, name) of each answer, in
    seconds of time.monotonic()."""

    def __init__(self, cluster, name="steady", first=1):
        self.cluster, self.name = cluster, name
        order = cluster.ids[first - 1:] + cluster.ids[:first - 1]
        self.targets = ",".join(f"unix:{cluster.socket_of(i)}" for i in order)
        self.wrapper, self.env = [], {}  # where the client is, and as whom
        self.acks, self.failed = [], []

    def __enter__(self):
        self.process = subprocess.Popen([*self.wrapper, str(BUILD / "tests/bench/submit_steady"), self.targets, self.name], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.cluster.env, **self.env},
                                        cwd=self.cluster.work)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.more()
        return self

    def _read(self):
        for line in self.process.stdout:
            began, ended, job, name = line.split()
            (self.acks if int(job) else self.failed).append((float(began), float(ended), int(job), name))

    def more(self, n=1, timeout=20):
        """Until n more answers are there."""
        have = len(self.acks)
        wait_for(lambda: len(self.acks) >= have + n, timeout, "submits to go on", every=0.003)

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.reader.join(10)

    def outage(self, at):
        """Seconds from `at` to the end of the longest silence after it: until submits went on."""
        wait_for(lambda: self.acks and self.acks[-1][0] > at, 30, "a submit that began after it", every=0.003)
        ended = [at] + [e for _, e, _, _ in list(self.acks) if e > at]
        _, end = max((b - a, b) for a, b in zip(ended, ended[1:]))
        return end - at

    def judge(self):
        """(lost, twice): acknowledged and not there; names that more than one job has."""
        rows = [line.split() for line in self.cluster.run("squeue -h -t all -o '%i %j'", timeout=120).stdout.splitlines()]
        there = {int(i): name for i, name in rows}
        lost = [job for _, _, job, name in self.acks if there.get(job) != name]
        names = collections.Counter(name for name in there.values() if name.startswith(self.name + "-"))
        return lost, [name for name, n in names.items() if n > 1]


def now():
    return time.monotonic()
