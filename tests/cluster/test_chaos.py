# SPDX-License-Identifier: Apache-2.0
"""Some of everything at once, and daemons and clients that die or hang at random moments; at the end each line is as it must
be. Seeded: SPUR_TEST_SEED=N repeats the choices of one run (the moments are the machine's). SPUR_TEST_SOAK=SECONDS is how long, with a seed of the moment."""
import os
import random
import signal
import threading
import time

import pytest

from workloads import KINDS, Client, finish_all

SECONDS = float(os.environ.get("SPUR_TEST_SOAK", "40"))
SEED = int(os.environ.get("SPUR_TEST_SEED", "0" if "SPUR_TEST_SOAK" in os.environ else "2003"))


def pick_step_daemon(c, rnd, ws):
    """A step daemon of one of the workloads, and whose it is."""
    found = [(pid, cmdline) for pid, cmdline in c.ours() if cmdline.startswith(b"spurstepd")]
    if not found:
        return None, []
    pid, cmdline = rnd.choice(sorted(found))
    job = int(cmdline.rstrip(b"\0").rsplit(b"/", 1)[1].split(b".")[0])
    return pid, job


def strike(c, rnd, ws, struck_jobs):
    """One thing goes wrong."""
    kind = rnd.choices(["ctld", "agent", "both", "ctld stops", "agent stops", "stepd", "stepd stops", "client", "client stops", "sigterm"],
                       [6, 4, 2, 2, 2, 1, 2, 1, 1, 2])[0]
    agents = list(c.nodes.values())
    pause = rnd.uniform(0, 0.6)  # how long it is away: part of what is tried, nothing is waited for
    if kind in ("ctld", "agent", "both", "sigterm"):
        victims = {"ctld": [c.ctld], "agent": [rnd.choice(agents)], "both": [rnd.choice(agents), c.ctld], "sigterm": [rnd.choice([c.ctld, *agents])]}[kind]
        for daemon in victims:
            daemon.kill(signal.SIGTERM if kind == "sigterm" else signal.SIGKILL)
        time.sleep(pause)
        for daemon in reversed(victims):
            daemon.start()
        return kind
    if kind in ("ctld stops", "agent stops"):
        pid = c.ctld.pid if kind == "ctld stops" else rnd.choice(agents).pid
        stopped = [pid]
    elif kind.startswith("stepd"):
        pid, job = pick_step_daemon(c, rnd, ws)
        if pid is None:
            return kind
        if kind == "stepd":
            struck_jobs.add(job)
            kill(pid, signal.SIGKILL)
            return kind
        stopped = [pid]
    else:
        clients = [w for w in ws if isinstance(w, Client) and w.process.poll() is None]
        if not clients:
            return kind
        w = rnd.choice(clients)
        if kind == "client":
            w.struck = True
            w.process.kill()
            return kind
        stopped = [w.process.pid]
    for pid in stopped:
        kill(pid, signal.SIGSTOP)
    time.sleep(pause)
    for pid in stopped:
        kill(pid, signal.SIGCONT)
    return kind


def kill(pid, sig):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


class Striker(threading.Thread):
    def __init__(self, c, seed, ws):
        super().__init__(daemon=True)
        self.c, self.rnd, self.ws, self.log, self.struck, self.error = c, random.Random(seed), ws, [], set(), None
        self.stopping = threading.Event()

    def run(self):
        try:
            while not self.stopping.wait(self.rnd.uniform(0, 0.5)):
                self.log.append(strike(self.c, self.rnd, list(self.ws), self.struck))
        except BaseException as e:  # told by the test's own thread
            self.error = e

    def stop(self):
        self.stopping.set()
        self.join()
        for daemon in [self.c.ctld, *self.c.nodes.values()]:
            if not daemon.running():
                daemon.start()


def soak(c, seed, seconds):
    rnd, ws = random.Random(seed), []
    striker = Striker(c, seed + 1, ws)
    striker.start()
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not striker.error:
            live = [w for w in ws if not w.finished()]
            if len(live) < 6:
                w = rnd.choice(KINDS)(c, secs=round(rnd.uniform(0.05, 1.5), 2))
                w.lost = True  # what is suspended may be found ended
                ws.append(w)
            for w in live:
                w.middle()  # what its owner does to it
        striker.stop()
        if striker.error:
            raise striker.error
        # a client that was killed leaves a job that ends in its time
        finish_all(c, ws, timeout=120, how=lambda w: "check_struck" if w.struck or w.jobs() & striker.struck else "check")
    except BaseException:
        striker.stop()
        print(f"seed {seed}: {' '.join(w.name for w in ws)}\nstruck: {sorted(striker.struck)}; {' '.join(striker.log)}")
        raise
    finally:
        for w in ws:
            w.close()


@pytest.mark.slow
def test_chaos(new_cluster):
    seed = SEED or random.randrange(1, 1 << 30)
    print(f"SPUR_TEST_SEED={seed}")
    c = new_cluster(nodes=3, cpus=8, scheduler="attend_secs = 5", controller="heartbeat_timeout_secs = 30")
    soak(c, seed, SECONDS)
