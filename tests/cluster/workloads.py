# SPDX-License-Identifier: Apache-2.0
"""What people run, as pieces that a test starts, strikes in the middle, lets go and then checks to the last line.

    ws = start_all(c)              each in its middle: tasks run, steps run, others wait for them
    c.ctld.restart()
    finish_all(c, ws)              lets them go, waits for the end, checks all of it, and that nothing is left anywhere

Each task and each step adds one line to the file `begun` of its workload when it begins and to `ended` when it ends, so
that what ran twice, or never, is seen. A workload waits for its file `go`, or runs for `secs` where that is given.
"""
import datetime
import itertools
import os
import pathlib
import re
import subprocess
import time

import spurtest
from spurtest import OVER, alive, wait_for

NUMBER = itertools.count(1)


def hms(text):
    days, _, rest = text.rpartition("-")
    h, m, s = map(int, rest.split(":"))
    return (int(days or 0) * 24 + h) * 3600 + m * 60 + s


def again(c, *argv, timeout=60, **run):
    """As a person does whose command met a dead controller."""
    got = []

    def done():
        got[:] = [c.run(list(map(str, argv)), check=False, **run)]
        return got[0].returncode == 0

    try:
        wait_for(done, timeout, every=0.05)
    except spurtest.Failed:
        raise spurtest.Failed(f"{argv}: {got[0].returncode} {got[0].stdout}{got[0].stderr}") from None
    return got[0]


def ask(c, *argv):
    """Of a controller that may be away for a moment."""
    return again(c, *argv).stdout


def steer(c, verb, job, state=None):
    """Unless the job has ended before, or is there already."""
    def done():
        if c.run(["scontrol", verb, str(job)], check=False).returncode == 0:
            return "done"
        now = ask(c, "squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T").strip()
        return "over" if now in OVER else "done" if now == state else None

    return wait_for(done, 60, f"{verb} of {job}", every=0.05) == "done"


class Workload:
    """One of them. Subclasses say what is submitted, when it is in the middle, and what is there at the end."""

    kind = None
    cpus = 1

    def __init__(self, c, secs=None):
        self.c, self.secs, self.ids, self.mended, self.lost, self.struck = c, secs, {}, False, False, False
        self.name = f"{self.kind}{next(NUMBER)}"
        self.dir = c.work / self.name
        self.dir.mkdir()
        self.dir.chmod(0o1777)
        self.began = time.time()
        wait = f"sleep {secs}" if secs is not None else f"until [ -e {self.dir}/go ]; do sleep 0.02; done"
        # note WHAT: one line, one write
        self.head = (f"cd {self.dir}\nnote() {{ echo \"$1 ${{SLURM_JOB_ID}} ${{SLURM_ARRAY_TASK_ID:--}} ${{SLURM_RESTART_COUNT:-0}} $$\" >>\"$2\"; }}\n"
                     f"hold() {{ note $1 begun; {wait}; note $1 ended; }}\n")
        (self.dir / "part").write_text(f"{self.head}hold \"$1\"\nexit $2\n")  # of a step: sh part NAME CODE
        self.submit()

    # ---- for subclasses ----

    def script(self, body, name):
        path = self.dir / f"{name}.sh"
        path.write_text(f"#!/bin/bash\n{self.head}{body}\n")
        path.chmod(0o755)
        return path

    def batch(self, body, *options, as_="job"):
        """Submits, also under a controller that dies: what has the name is not submitted twice."""
        name = f"{self.name}-{as_}"
        argv = ["sbatch", "--parsable", "--requeue", "-J", name, "-o", f"{self.dir}/{as_}-%a.out" if any("--array" in str(o) for o in options)
                else f"{self.dir}/{as_}.out", *options, str(self.script(body, as_))]
        return self.submit_once(argv, name, as_)

    def submit_once(self, argv, name, as_):
        def there():
            got = self.c.run(argv, check=False)
            if got.returncode == 0:
                return int(got.stdout.split(";")[0])
            known = ask(self.c, "squeue", "-h", "-t", "all", "-n", name, "-o", "%A").split()
            return int(known[0]) if known else None

        self.ids[as_] = wait_for(there, 60, f"{name} to be submitted", every=0.05)
        return self.ids[as_]

    def lines(self, what):
        """[(name, job, task, restart, pid)]"""
        path = self.dir / what
        out = []
        for line in path.read_text().splitlines() if path.exists() else []:
            words = line.split()
            assert len(words) == 5, f"{self.name}: a torn line in {what}: {line!r}"
            out.append((words[0], int(words[1]), words[2], int(words[3]), int(words[4])))
        return out

    def runs(self, what="begun"):
        return sorted((name, task, restart) for name, _, task, restart, _ in self.lines(what))

    def pids(self):
        """Of what ends by itself when it is let go, without the controller."""
        return [line[4] for line in self.lines("begun")]

    def go(self):
        (self.dir / "go").touch()

    def settle(self):
        """What its owner does when all that can end has ended."""

    def states(self):
        ids = ",".join(str(i) for i in self.ids.values())
        return [line.split() for line in ask(self.c, "squeue", "-h", "-r", "-t", "all", "-j", ids, "-o", "%A %i %T").splitlines()] if ids else []

    def over(self):
        self.settle()
        left = [row for row in self.states() if row[2] not in OVER]
        return not left

    def finished(self):
        """over(), asked for again and again."""
        self.is_finished = getattr(self, "is_finished", False) or self.over()
        return self.is_finished

    def jobs(self):
        """Ids, those of an array's tasks too."""
        return {int(row[0]) for row in self.states()}

    def rows(self):
        """{"job" | "job_3" | "job.batch" | "job/step-name": (state, exit code)} of sacct; times are checked here."""
        fields = "JobID,JobName,State,ExitCode,Elapsed,Start,End"
        names = {str(i): as_ for as_, i in self.ids.items()}
        out, numbers = {}, {}
        for line in ask(self.c, "sacct", "-n", "-P", "-a", "-o", fields, "-j", ",".join(names)).splitlines():
            job, name, state, code, elapsed, start, end = line.split("|")
            m = re.fullmatch(r"(\d+)(?:_(\d+|\[.*\]))?(?:\.(\w+))?", job)
            assert m and m[1] in names, f"{self.name}: {line}"
            # the last waiting task of an array is _[1] where it was alone in its record
            key = names[m[1]] + (f"_{m[2]}".replace("[", "").replace("]", "") if m[2] else "")
            if m[3]:
                key += f".{m[3]}" if not m[3].isdigit() else f"/{name}"
                if m[3].isdigit():
                    numbers.setdefault(m[1], []).append(int(m[3]))
            assert key not in out, f"{self.name}: two rows of {key}: {line}"
            out[key] = (state, code)
            took = hms(elapsed)
            assert 0 <= took <= (time.time() - self.began) * (self.c.scale or 1) + 2, f"{self.name}: it took {elapsed}: {line}"
            if start not in ("Unknown", "None"):
                assert end not in ("Unknown", "None"), f"{self.name}: no end: {line}"
                spent = (datetime.datetime.fromisoformat(end) - datetime.datetime.fromisoformat(start)).total_seconds()
                assert took == spent or self.kind == "suspended" and took <= spent, f"{self.name}: {spent} s: {line}"
        for job, got in numbers.items():
            assert sorted(got) == list(range(len(got))), f"{self.name}: steps of job {job}: {got}"
        return out

    def check(self):
        """To the last line, when nothing of its own was killed."""
        rows, want = self.rows(), self.want()
        assert rows == want, f"{self.name}: sacct\n{rows}\nwanted\n{want}"
        for what in ("begun", "ended"):
            assert self.runs(what) == sorted(self.want_runs(what)), f"{self.name}: {what}\n{self.runs(what)}\nwanted\n{sorted(self.want_runs(what))}"

    def check_lost(self):
        """When its nodes were lost: what ran there began anew, and all ended as it should, in its last run."""
        rows, want = self.rows(), self.want()
        assert rows == want, f"{self.name}: sacct\n{rows}\nwanted\n{want}"
        last = {}
        for name, task, restart in self.runs():
            assert restart in (last.get((name, task), -1) + 1, last.get((name, task), -1) + 2), f"{self.name}: {self.runs()}"
            last[name, task] = restart
        ended = {(name, task): restart for name, task, restart in self.runs("ended")}
        assert ended == last and len(ended) == len(self.lines("ended")), f"{self.name}: begun {self.runs()}, ended {self.runs('ended')}"

    def check_struck(self):
        """When daemons of its steps, or its client, were killed: all is over, all has rows, no run is there twice."""
        rows = self.rows()
        for key, (state, _) in rows.items():
            assert state.split()[0] in OVER, f"{self.name}: {key} is {state}"
        got = [(name, job, task, restart) for name, job, task, restart, _ in self.lines("begun")]
        assert len(got) == len(set(got)), f"{self.name}: ran twice: {self.lines('begun')}"
        known = {key.split(".")[0].split("/")[0].split("_")[0] for key in rows}
        assert known == set(self.ids), f"{self.name}: rows of {known}, jobs {self.ids}"

    def close(self):
        """When a test ends early."""


class Plain(Workload):
    kind = "plain"

    def submit(self):
        self.batch("hold job; echo done; exit 7")

    def middle(self):
        return len(self.lines("begun")) == 1

    def want(self):
        return {"job": ("FAILED", "7:0"), "job.batch": ("FAILED", "7:0")}

    def want_runs(self, what):
        return [("job", "-", 0)]

    def check(self):
        super().check()
        assert (self.dir / "job.out").read_text() == "done\n"


class Array(Workload):
    """8 tasks, 3 at a time; task 5 fails."""
    kind = "array"
    cpus = 3

    def submit(self):
        self.batch("hold job; echo of $SLURM_ARRAY_TASK_ID; [ $SLURM_ARRAY_TASK_ID != 5 ] || exit 3", "--array=0-7%3")

    def middle(self):
        return len(self.lines("begun")) == 3

    def want(self):
        out = {}
        for n in range(8):
            for row in (f"job_{n}", f"job_{n}.batch"):
                out[row] = ("FAILED", "3:0") if n == 5 else ("COMPLETED", "0:0")
        return out

    def want_runs(self, what):
        return [("job", str(n), 0) for n in range(8)]

    def check(self):
        super().check()
        for n in range(8):
            assert (self.dir / f"job-{n}.out").read_text() == f"of {n}\n"


class Steps(Workload):
    """Three steps at once in a batch job, and one after them."""
    kind = "steps"
    cpus = 3
    CODES = {"s0": 0, "s1": 4, "s2": 9}

    def submit(self):
        each = "\n".join(f"srun -Q -n1 --exact -J {name} sh part {name} {code} 2>>said & p{i}=$!" for i, (name, code) in enumerate(self.CODES.items()))
        self.batch(f"note job begun\n{each}\nfor p in $p0 $p1 $p2; do wait $p; echo rc $?; done\nsrun -n3 -J last -l sh -c 'echo last of $SLURM_NTASKS' 2>>said | sort\n"
                   "note job ended\nexit 5", "-n3", "-N1")

    def middle(self):
        return len(self.lines("begun")) == 4

    def pids(self):
        return [line[4] for line in self.lines("begun") if line[0] != "job"]  # the script begins another step

    def want(self):
        out = {"job": ("FAILED", "5:0"), "job.batch": ("FAILED", "5:0"), "job/last": ("COMPLETED", "0:0")}
        for name, code in self.CODES.items():
            out[f"job/{name}"] = ("FAILED" if code else "COMPLETED", f"{code}:0")
        return out

    def want_runs(self, what):
        return [(name, "-", 0) for name in ("job", *self.CODES)]

    def check(self):
        super().check()
        text = (self.dir / "job.out").read_text()
        assert text == "rc 0\nrc 4\nrc 9\n" + "".join(f"{n}: last of 3\n" for n in range(3)), f"{self.name}: {text}"


class Client(Workload):
    """srun or salloc of a person."""

    def client(self, *argv):
        # its job's id is known by what it says, and by its name when it says nothing
        self.out = open(self.dir / "client.out", "wb+")
        self.err = open(self.dir / "client.err", "wb+")
        self.process = subprocess.Popen(list(map(str, argv)), env=self.c.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)

    def find_id(self):
        if not self.ids:
            known = ask(self.c, "squeue", "-h", "-t", "all", "-n", f"{self.name}-job", "-o", "%A").split()
            if known:
                self.ids["job"] = int(known[0])
        return bool(self.ids)

    def said(self):
        return (self.dir / "client.out").read_text(), (self.dir / "client.err").read_text()

    def over(self):
        self.find_id()
        return self.process.poll() is not None and super().over()

    def check_struck(self):
        if self.ids:
            super().check_struck()

    def check_lost(self):
        assert self.process.returncode != 0
        self.check_struck()
        assert self.rows()["job"][0] in ("NODE_FAIL", "FAILED"), self.rows()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.out.close()
        self.err.close()


class Srun(Client):
    """srun outside of a job: two tasks, the second fails."""
    kind = "srun"
    cpus = 2

    def submit(self):
        self.client("srun", "-n2", "-l", "-J", f"{self.name}-job", "sh", "-c", "sh part t$SLURM_PROCID $((SLURM_PROCID * 6)); rc=$?; echo end $rc; exit $rc")

    def middle(self):
        return len(self.lines("begun")) == 2 and self.find_id()

    def want(self):
        return {"job": ("FAILED", "6:0"), f"job/{self.name}-job": ("FAILED", "6:0")}

    def want_runs(self, what):
        return [("t0", "-", 0), ("t1", "-", 0)]

    def check(self):
        out, err = self.said()
        assert (self.process.returncode, sorted(out.splitlines())) == (6, ["0: end 0", "1: end 6"]), (self.name, self.process.returncode, out, err)
        super().check()


class Salloc(Client):
    """salloc with a command that runs steps."""
    kind = "salloc"
    cpus = 2

    def submit(self):
        self.client("salloc", "-Q", "-n2", "-J", f"{self.name}-job", "sh", "-c",
                    "srun -Q -n1 -J one sh part one 3; echo rc $?; srun -n2 -J two echo two; exit 4")

    def middle(self):
        return len(self.lines("begun")) == 1 and self.find_id()

    def want(self):
        return {"job": ("FAILED", "4:0"), "job/one": ("FAILED", "3:0"), "job/two": ("COMPLETED", "0:0")}

    def want_runs(self, what):
        return [("one", "-", 0)]

    def check(self):
        out, err = self.said()
        assert (self.process.returncode, out) == (4, "rc 3\ntwo\ntwo\n"), (self.name, self.process.returncode, out, err)
        super().check()


class Chain(Workload):
    """An array whose task 1 fails; one job for each kind of dependency on it; and two of one name."""
    kind = "chain"
    cpus = 4

    def submit(self):
        a = self.batch("hold a; [ $SLURM_ARRAY_TASK_ID != 1 ]", "--array=0-2", as_="a")
        self.batch("hold ok", "-d", f"afterok:{a}", as_="ok")
        self.batch("hold notok", "-d", f"afternotok:{a}", as_="notok")
        self.batch("hold any", "-d", f"afterany:{a}", as_="any")
        self.batch("hold corr", "--array=0-2", "-d", f"aftercorr:{a}", as_="corr")
        # of the same name: the later `-J` wins
        for as_ in ("first", "second"):
            argv = ["sbatch", "--parsable", "--requeue", "-J", f"{self.name}-one", "-o", f"{self.dir}/{as_}.out", "-d", "singleton", "--comment", as_,
                    str(self.script(f"hold {as_}", as_))]
            self.submit_named(argv, as_)

    def submit_named(self, argv, as_):
        def there():
            got = self.c.run(argv, check=False)
            if got.returncode == 0:
                return int(got.stdout)
            for line in ask(self.c, "squeue", "-h", "-t", "all", "-n", f"{self.name}-one", "-o", "%A %o").splitlines():
                job, command = line.split(None, 1)
                if command.endswith(f"/{as_}.sh"):
                    return int(job)
            return None

        self.ids[as_] = wait_for(there, 60, f"{as_} to be submitted", every=0.05)

    def middle(self):
        return sorted(line[0] for line in self.lines("begun")) == ["a", "a", "a", "first"]

    def settle(self):
        """What can never run is told so, and is taken away by its owner."""
        if self.mended:
            return
        waiting = [row[1] for row in self.states() if row[2] not in OVER]
        if not waiting:
            return
        reasons = ask(self.c, "squeue", "-h", "-r", "-t", "all", "-j", ",".join(str(self.ids[k]) for k in ("ok", "corr", "notok")), "-o", "%i %T %r")
        never = [words[0] for words in map(str.split, reasons.splitlines()) if words[1:] == ["PENDING", "DependencyNeverSatisfied"]]
        if sorted(never) == sorted(waiting):
            again(self.c, "scancel", *never)
            self.mended = True

    def want(self):
        gone = (f"CANCELLED by {os.geteuid()}", "0:0")
        out = {"ok": gone, "corr_1": gone}
        for n in range(3):
            for row in (f"a_{n}", f"a_{n}.batch"):
                out[row] = ("FAILED", "1:0") if n == 1 else ("COMPLETED", "0:0")
        for job in ("notok", "any", "corr_0", "corr_2", "first", "second"):
            out[job] = out[f"{job}.batch"] = ("COMPLETED", "0:0")
        return out

    def want_runs(self, what):
        return [("a", str(n), 0) for n in range(3)] + [("corr", n, 0) for n in "02"] + [(name, "-", 0) for name in ("notok", "any", "first", "second")]


class Suspended(Workload):
    kind = "suspended"

    def submit(self):
        self.suspended = self.resumed = False
        self.batch("hold job; echo done")

    def middle(self):
        if not self.suspended and self.lines("begun"):
            self.suspended = steer(self.c, "suspend", self.ids["job"], "SUSPENDED")
        return self.suspended

    def settle(self):
        """It does not go on before it is told to."""
        if self.suspended and not self.resumed:
            ended, states = self.lines("ended"), self.states()
            self.resumed = True
            if self.lost and (ended or states[0][2] != "SUSPENDED"):  # its node may hear of it late
                steer(self.c, "resume", self.ids["job"], "RUNNING")
                return
            assert not ended and states[0][2] == "SUSPENDED", f"{self.name}: it went on by itself: {states}"
            steer(self.c, "resume", self.ids["job"], "RUNNING")

    def want(self):
        return {"job": ("COMPLETED", "0:0"), "job.batch": ("COMPLETED", "0:0")}

    def want_runs(self, what):
        return [("job", "-", 0)]

    def check(self):
        super().check()
        assert (self.dir / "job.out").read_text() == "done\n"


class Requeued(Workload):
    """In the middle of its second run."""
    kind = "requeued"

    def submit(self):
        self.requeued = False
        self.batch("hold job; echo run $SLURM_RESTART_COUNT")

    def middle(self):
        if not self.requeued and self.lines("begun"):
            self.requeued = steer(self.c, "requeue", self.ids["job"])
        return len(self.lines("begun")) == 2

    def want(self):
        return {"job": ("COMPLETED", "0:0"), "job.batch": ("COMPLETED", "0:0")}

    def want_runs(self, what):
        return [("job", "-", 1)] + [("job", "-", 0)] * (what == "begun")

    def check(self):
        if self.secs is not None:  # the moment is not chosen, and a person may have said it twice
            rows = self.rows()
            assert rows == self.want(), rows
            begun, ended = self.runs(), self.runs("ended")
            assert begun and len(set(begun)) == len(begun) and set(ended) <= set(begun) and begun[-1] in ended, (begun, ended)
            return
        super().check()
        assert (self.dir / "job.out").read_text() == "run 1\n"


KINDS = [Plain, Array, Steps, Srun, Salloc, Chain, Suspended, Requeued]


def groups_of(c):
    """Control groups of this cluster's runs; the agents' marks are read from plans that are there."""
    marks = getattr(c, "group_marks", set())
    for plan in c.root.glob("*/runs/*/plan"):
        try:
            marks.update(m.decode() for m in re.findall(rb"n\d+-[0-9a-f]{8}-", plan.read_bytes()))
        except FileNotFoundError:
            continue
    c.group_marks = marks
    return [p for mark in marks for p in pathlib.Path("/sys/fs/cgroup").glob(f"*/spur/{mark}*")]


def start_all(c, kinds=KINDS):
    ws = []
    for kind in kinds:
        ws.append(kind(c))
    for w in ws:
        wait_for(w.middle, 60, f"{w.name} to be in its middle", every=0.03)
    groups_of(c)
    return ws


def wait_parts(ws, timeout=30):
    """Until what runs now has ended, seen from outside: the controller may be away."""
    for w in ws:
        if w.kind != "suspended":
            pids = w.pids()
            wait_for(lambda: not any(alive(p) for p in pids), timeout, f"what runs of {w.name} to end")


def check_clean(c):
    """No process, no group, no directory of a run, nothing allocated."""
    def left():
        daemons = {d.pid for d in [c.ctld, *c.nodes.values()] if d.running()}
        return [(pid, cmdline) for pid, cmdline in c.ours() if pid not in daemons and alive(pid)]

    wait_for(lambda: not left(), 30, f"processes to be gone: {left()}")
    dirs = lambda: [str(p) for p in c.root.glob("*/runs/*")]
    wait_for(lambda: not dirs(), 30, f"directories of runs to be gone: {dirs()}")
    wait_for(lambda: not groups_of(c), 30, f"groups to be gone: {groups_of(c)}")
    assert ask(c, "squeue", "-h") == ""
    for line in ask(c, "scontrol", "-o", "show", "node").splitlines():
        got = spurtest.parse_pairs(line)
        assert (got["CPUAlloc"], got["AllocMem"], got["AllocTRES"]) == ("0", "0", ""), line


def finish_all(c, ws, timeout=90, how="check"):
    """how: check, check_struck or check_lost; or which of them, for each."""
    for w in ws:
        w.go()
    try:
        for w in ws:
            wait_for(w.over, timeout, f"{w.name} to be over", every=0.1)
        for w in ws:
            getattr(w, how(w) if callable(how) else how)()
        check_clean(c)
    finally:
        for w in ws:
            w.close()
