# SPDX-License-Identifier: Apache-2.0
"""Is what clients saw of held jobs linearizable: as if each operation had happened at one moment between its begin and its end?

The search is Wing and Gong's, with Lowe's memory of where it has been. A history is a list of operations:

    {"what": "submit", "name": "a", "id": 7, "begin": 0.1, "end": 0.2}
    {"what": "cancel", "id": 7, "said": "ok" or "none", …}
    {"what": "query",  "id": 7, "said": "PENDING", "CANCELLED" or "none", …}
    {"what": "list",   "jobs": [[7, "a", "PENDING"], …], …}     all jobs that exist

A name is submitted once in a history, and held, so that nothing but a cancel changes a job. "end" is null where no answer came: such a write
may have happened at any moment after its begin, or never. Times are of one clock; operations that touch in time may be in either order.

Two facts keep the search small. A read that fits is placed at once: it changes nothing, so later is never better. And the state is told
by which operations were placed (a write adds a job or cancels one, for good), so the set of them is all that need be remembered.
"""
import collections

Verdict = collections.namedtuple("Verdict", "good wrong text")
"""wrong: the index in the history of the operation that fits nowhere; None where it is good. text: the same for people."""

# So many places are looked at before it is given up. A history of few operations without an answer is far below.
LIMIT = 2_000_000


class Undecided(Exception):
    """Too many operations without an answer to be sure of either."""


def check(history):
    """Each job alone first, which is quick and tells most sharply what is wrong; then all together where
    something binds the jobs to each other: a list, or an id given twice."""
    history = with_ids_learned(history)
    for part in parts(history):
        verdict = search(part)
        if not verdict.good:
            return verdict
    given = [op["id"] for op in history if op["what"] == "submit" and op["id"] is not None]
    if len(given) != len(set(given)) or any(op["what"] == "list" for op in history):
        return search(list(enumerate(history)))
    return Verdict(True, None, "linearizable")


# ---- what is known before the search ----

def with_ids_learned(history):
    """The id of a submit without an answer is the one that others saw of its name (were there two, one is a job too many)."""
    names = [op["name"] for op in history if op["what"] == "submit"]
    assert len(names) == len(set(names)), "a name was submitted twice: this is no history for this check"
    seen = {}
    for op in history:
        for job, name, _ in op.get("jobs") or ():
            seen[name] = min(job, seen.get(name, job))
    return [{**op, "id": seen.get(op["name"])} if op["what"] == "submit" and op["end"] is None else op for op in history]


def has_effect(op, cancelled):
    """Of a write without an answer: whether anybody saw what it did. If nobody did it can be taken not to have happened."""
    return op["id"] is not None if op["what"] == "submit" else op["what"] == "cancel" and op["id"] in cancelled


def parts(history):
    """The history of each name alone, as (index, operation); of a list no more than its rows of that name. Of a history that is linearizable
    each part is: whatever is wrong in a part is wrong."""
    names = {}
    for op in history:
        for job, name, _ in op.get("jobs") or ():
            names.setdefault(job, name)
        if op["what"] == "submit" and op["id"] is not None:
            names.setdefault(op["id"], op["name"])
    out = {name: [] for name in names.values()}
    for at, op in enumerate(history):
        if op["what"] == "list":
            if op["end"] is None:
                continue
            rows = collections.defaultdict(list)
            for row in op["jobs"]:
                rows[row[1]].append(row)
            for name in set(names.values()):
                out[name].append((at, {**op, "jobs": rows[name]}))
        else:
            name = op["name"] if op["what"] == "submit" else names.get(op["id"], op["id"])
            out.setdefault(name, []).append((at, op))
    return out.values()


# ---- the model: {id: [name, state]} ----

def fits(jobs, op):
    """Whether this answer is right in this state. An operation without an answer is one that does what it was asked for."""
    job = jobs.get(op["id"]) if op["what"] != "list" else None
    if op["what"] == "submit":
        return job is None and all(name != op["name"] for name, _ in jobs.values())
    if op["what"] == "list":
        return len(op["jobs"]) == len(jobs) and all(jobs.get(i) == [name, state] for i, name, state in op["jobs"])
    if op["what"] == "cancel":
        return (job is not None) == (op["end"] is None or op["said"] == "ok")
    return op["said"] == (job[1] if job else "none")


def is_write(op):
    return op["what"] == "submit" or op["what"] == "cancel" and (op["end"] is None or op["said"] == "ok")


def apply(jobs, op):
    """Does it, and returns how it was before."""
    before = jobs.get(op["id"])
    jobs[op["id"]] = [op["name"], "PENDING"] if op["what"] == "submit" else [before[0], "CANCELLED"]
    return before


def undo(jobs, op, before):
    if before is None:
        del jobs[op["id"]]
    else:
        jobs[op["id"]] = before


# ---- the search ----

class Search:
    def __init__(self, part):
        cancelled = {i for _, op in part for i, _, s in op.get("jobs") or () if s == "CANCELLED"}
        cancelled |= {op["id"] for _, op in part if op["what"] == "query" and op["end"] is not None and op["said"] == "CANCELLED"}
        self.ops = sorted((p for p in part if p[1]["end"] is not None), key=lambda p: p[1]["begin"])
        self.n_answered = len(self.ops)
        self.ops += [p for p in part if p[1]["end"] is None and has_effect(p[1], cancelled)]
        self.jobs, self.done, self.low, self.n = {}, 0, 0, 0  # done: bit k for ops[k]; all answered ones below low are done

    def is_done(self, k):
        return self.done >> k & 1

    def mark(self, k):
        self.done |= 1 << k
        self.n += k < self.n_answered
        while self.low < self.n_answered and self.is_done(self.low):
            self.low += 1

    def next_ones(self):
        """What may come next: began before each of the rest had ended. What ends first comes first, what has no answer last."""
        ready, first_end, k = [], float("inf"), self.low
        while k < self.n_answered and self.ops[k][1]["begin"] <= first_end:
            if not self.is_done(k):
                ready.append(k)
                first_end = min(first_end, self.ops[k][1]["end"])
            k += 1
        ready = sorted((k for k in ready if self.ops[k][1]["begin"] <= first_end), key=lambda k: self.ops[k][1]["end"])
        return ready + [k for k in range(self.n_answered, len(self.ops)) if not self.is_done(k) and self.ops[k][1]["begin"] <= first_end]

    def place_reads(self):
        """All reads that fit now. Returns the writes that may come next."""
        while True:
            ready = self.next_ones()
            reads = [k for k in ready if not is_write(self.ops[k][1]) and fits(self.jobs, self.ops[k][1])]
            if not reads:
                return [k for k in ready if is_write(self.ops[k][1]) and fits(self.jobs, self.ops[k][1])]
            for k in reads:
                self.mark(k)

    def run(self):
        deepest, stuck = -1, None
        writes = self.place_reads()
        trail, seen = [], {self.done}
        while True:
            if self.n == self.n_answered:
                return Verdict(True, None, "linearizable")
            if self.n > deepest:
                deepest, stuck = self.n, self.tell()
            if writes:
                k = writes.pop(0)
                trail.append((k, writes, self.done, self.low, self.n, apply(self.jobs, self.ops[k][1])))
                self.mark(k)
                writes = self.place_reads()
                if self.done not in seen:
                    seen.add(self.done)
                    if len(seen) > LIMIT:
                        raise Undecided(f"after {LIMIT} places; {stuck.text}")
                    continue
            elif not trail:
                return stuck
            k, writes, self.done, self.low, self.n, before = trail.pop()
            undo(self.jobs, self.ops[k][1], before)

    def tell(self):
        """The operation that ended first of those that are left: if nothing gets beyond here, it is the one that fits nowhere."""
        at, op = self.ops[self.next_ones()[0]]
        ids = [op["id"]] if op["what"] != "list" else sorted({i for i, _, _ in op["jobs"]} | set(self.jobs))
        told = {i: s for i, _, s in op.get("jobs") or ()}
        have = {i: self.jobs[i][1] if i in self.jobs else "none" for i in ids}
        if op["what"] == "list":
            have = {i: s for i, s in have.items() if told.get(i, "none") != s}
        shown = {key: value for key, value in op.items() if key != "jobs"}
        return Verdict(False, at, f"operation {at} fits nowhere: {shown}; by then it is {have}" + (f", listed as { {i: told.get(i, 'none') for i in have} }" if told else ""))


def search(part):
    return Search(part).run()
