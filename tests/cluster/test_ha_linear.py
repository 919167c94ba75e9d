# SPDX-License-Identifier: Apache-2.0
"""Three real controllers, whose leader is killed, stopped and let go, are to their clients as one that never fails: what these did and saw is
linearizable (linear.py)."""
import json
import random
import re
import threading
import time

import pytest

import linear
from hacluster import HACluster, wait_for

CLIENTS = 6
NO_ANSWER = re.compile(r"Unable to contact|connect failure|Socket timed out|controller")


class Recorder:
    """Clients that submit, cancel and look, each by a member of its own first, until they are told to end."""

    def __init__(self, c):
        self.c, self.history, self.known = c, [], []
        self.lock, self.is_over = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.live, args=(k,)) for k in range(CLIENTS)]
        for t in self.threads:
            t.start()

    def run(self, member, *words):
        return self.c.run(list(words), env=self.c.first(member), check=False)

    def note(self, op, begin, answered):
        with self.lock:
            self.history.append({**op, "begin": begin, "end": time.monotonic() if answered else None})

    def live(self, k):
        r = random.Random(k)
        for n in range(1_000_000):
            if self.is_over.is_set():
                return
            member = self.c.ids[(k + n) % len(self.c.ids)]
            with self.lock:
                job = r.choice(self.known[-12:]) if self.known else None
            deeds = [lambda: self.submit(member, f"c{k}x{n}")] + ([lambda: self.cancel(member, job), lambda: self.query(member, job), lambda: self.look(member)] if job else [])
            r.choice(deeds)()

    def submit(self, member, name):
        begin = time.monotonic()
        got = self.run(member, "sbatch", "-H", "--parsable", "-J", name, "--wrap", "true")
        answered = got.returncode == 0
        assert answered or NO_ANSWER.search(got.stderr), got
        job = int(got.stdout) if answered else None
        self.note({"what": "submit", "name": name, "id": job}, begin, answered)
        if answered:
            with self.lock:
                self.known.append(job)

    def cancel(self, member, job):
        begin = time.monotonic()
        got = self.run(member, "scancel", str(job))
        answered = not got.returncode or not NO_ANSWER.search(got.stderr)
        self.note({"what": "cancel", "id": job, "said": "ok" if answered else None}, begin, answered)

    def query(self, member, job):
        begin = time.monotonic()
        got = self.run(member, "squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T")
        if got.returncode == 0 or "Invalid job id" in got.stderr:
            self.note({"what": "query", "id": job, "said": got.stdout.strip() or "none"}, begin, True)

    def look(self, member):
        begin = time.monotonic()
        got = self.run(member, "squeue", "-h", "-t", "all", "-o", "%A %j %T")
        if got.returncode == 0:
            rows = [line.split() for line in got.stdout.splitlines()]
            self.note({"what": "list", "jobs": [[int(job), name, state] for job, name, state in rows]}, begin, True)

    def length(self):
        with self.lock:
            return len(self.history)

    def more(self, n):
        """Until so many operations more were done."""
        there = self.length() + n
        wait_for(lambda: self.length() >= there, 60, "clients to go on")

    def end(self):
        self.is_over.set()
        for t in self.threads:
            t.join()
        return self.history


@pytest.mark.slow
def test_what_clients_see_over_fail_overs_is_linearizable(tmp_path):
    with HACluster(nodes=1) as c:
        c.wait_same()
        clients = Recorder(c)
        try:
            for how in ("kill", "stop", "restart", "kill"):
                clients.more(40)
                lead = c.wait_leader()
                if how == "restart":
                    c.restart(lead)
                    continue
                getattr(c, how)(lead)
                c.wait_leader(other_than=lead)
                clients.more(40)
                c.cont(lead) if how == "stop" else c.start_member(lead)
            clients.more(40)
        finally:
            history = clients.end()
        (tmp_path / "history.json").write_text(json.dumps({"wrong": None, "history": history}, indent=1))
        verdict = linear.check(history)
        assert verdict.good, f"{verdict.text}\nthe history is in {tmp_path}/history.json"
        kinds = [op["what"] for op in history]
        assert min(kinds.count(what) for what in ("submit", "cancel", "query", "list")) > 10


def test_what_a_stale_read_says_is_not_taken_for_linearizable():
    """--stale of a member that nobody tells what is committed knows of nothing: the check refuses just that."""
    with HACluster(nodes=0) as c:
        job = int(c.run(["sbatch", "-H", "--parsable", "-J", "a", "--wrap", "true"]).stdout)
        c.wait_same()
        behind = c.followers()[0]
        c.kill(behind)
        c.run(["scancel", str(job)])
        for i in c.ids:
            if i != behind:
                c.kill(i)
        c.members[behind].spawn()
        said = wait_for(lambda: [got for got in [c.run(["squeue", "--stale", "-h", "-o", "%A %j %T"], env=c.only(behind), check=False)] if got.returncode == 0], 20,
                        "the one that is left to answer")
        assert said[0].stdout == ""
        history = [{"what": "submit", "name": "a", "id": job, "begin": 0, "end": 1}, {"what": "cancel", "id": job, "said": "ok", "begin": 2, "end": 3},
                   {"what": "list", "jobs": [], "begin": 4, "end": 5}]
        assert linear.check(history).wrong == 2
        assert linear.check(history[:2]).good
