# SPDX-License-Identifier: Apache-2.0
"""A member that lacks something gets it: state, history, scripts. With real controllers."""
import random
import re
import sqlite3
import threading

from grpcwire import messages
from hacluster import HACluster, wait_for

SNAP = "snapshot_entries = 64"


def rows(c, i):
    """All that member i's own history has, to the byte."""
    with sqlite3.connect(f"file:{c.state_of_member[i]}/history/history.db?mode=ro", uri=True) as db:
        return db.execute("SELECT * FROM job ORDER BY id, sluid").fetchall(), db.execute("SELECT * FROM step ORDER BY job_id, sluid, step_id").fetchall()


def lead_by(c, i):
    """Hands leadership to member i: whoever leads answers from its own files alone."""
    m = messages()
    change = m.ControllerChange(verb=3, id=i)
    wait_for(lambda: c.leader() == i or c.call(c.wait_leader(), "ChangeController", change, timeout=5) and c.leader() == i, 20, f"member {i} to lead")


def history(c, i):
    lead_by(c, i)
    return c.run("sacct", "-P", "-o", "JobID,JobName,State,ExitCode,Submit,End,User", env=c.only(i)).stdout


def script(c, i, job):
    lead_by(c, i)
    return c.run("scontrol", "write", "batch_script", str(job), "-", env=c.only(i)).stdout


def finish_some(c, n, first=0):
    """n jobs that are over, of names of their own; the id of the last."""
    job = None
    for k in range(first, first + n):
        job = c.batch(f"echo {k}", "-J", f"done-{k}")
    c.wait_state(job, "COMPLETED")
    return job


def test_a_replaced_empty_member_has_what_the_others_have():
    with HACluster(nodes=1, controller=SNAP) as c:
        finish_some(c, 60)
        waiting = c.batch("echo this waits", "--hold", "-J", "waits")
        lead = c.wait_leader()
        gone = next(i for i in c.ids if i != lead)
        before = history(c, lead)
        assert before.count("COMPLETED") >= 60
        c.kill(gone)
        c.wipe(gone)
        finish_some(c, 40, first=60)
        past_the_log(c, lead)
        c.start_member(gone)
        c.wait_same()
        wait_for(lambda: rows(c, gone) == rows(c, lead) and len(rows(c, gone)[0]) >= 100, 20, "the same history")
        assert "caught up with member" in c.members[gone].log
        after = history(c, lead)
        assert after.count("COMPLETED") >= 100 and history(c, gone) == after
        assert "echo this waits" in script(c, gone, waiting)


def with_fault(c, i, fault):
    """Member i's next start has this fault point armed; "" none any more."""
    c.members[i].wrapper = ["env", f"SPUR_FAULT={fault}"] if fault else []


def large(c):
    """The same rows in the history of each: a file of several pieces."""
    finish_some(c, 20)
    pattern = [(10**6 + k, f"s{k}", 0, 3, 1, 1, 1, random.Random(k).randbytes(1000)) for k in range(3000)]
    for i in c.ids:
        with sqlite3.connect(c.state_of_member[i] / "history/history.db", timeout=20) as db:
            db.executemany("INSERT INTO job (id, sluid, uid, state, submit_ms, start_ms, end_ms, record) VALUES (?,?,?,?,?,?,?,?)", pattern)


def past_the_log(c, lead):
    """Jobs, until the leader's log no longer begins with the first entry: then only a snapshot helps who has nothing."""
    for k in range(1000, 1400, 10):
        kept = [int(p.name.split("-")[2]) for p in (c.state_of_member[lead] / "journal").glob("snapshot-*.meta")]
        if kept and max(kept) > 2 * 64:
            return
        finish_some(c, 10, first=k)
    raise AssertionError("the leader took no snapshot")


def empty_follower(c):
    """Kills a follower and takes all it has; the others go on, past what their logs still hold for it."""
    lead = c.wait_leader()
    gone = next(i for i in c.ids if i != lead)
    c.kill(gone)
    c.wipe(gone)
    past_the_log(c, lead)
    return lead, gone


def caught_up(c, gone, lead=None):
    c.wait_same(timeout=40)
    lead = lead or c.wait_leader()
    wait_for(lambda: rows(c, gone) == rows(c, lead), 20, "the same history")
    assert "caught up with member" in c.members[gone].log


def test_a_piece_that_came_damaged_is_fetched_again():
    with HACluster(nodes=1, controller=SNAP, ctld_args=["--test-faults"]) as c:
        large(c)
        lead, gone = empty_follower(c)
        with_fault(c, gone, "fetch.damaged:2")
        c.start_member(gone)
        caught_up(c, gone)
        assert "came damaged and is fetched again" in c.members[gone].log


def test_a_full_disk_on_the_member_that_catches_up():
    with HACluster(nodes=1, controller=SNAP, ctld_args=["--test-faults"]) as c:
        large(c)
        lead, gone = empty_follower(c)
        with_fault(c, gone, "fetch.full:2")
        c.start_member(gone)
        caught_up(c, gone)
        assert re.search("catching up: .*no space left.*; will be tried again", c.members[gone].log)


def test_killed_in_the_middle_it_goes_on_where_it_was():
    with HACluster(nodes=1, controller=SNAP, ctld_args=["--test-faults"]) as c:
        large(c)
        lead, gone = empty_follower(c)
        with_fault(c, gone, "fetch.piece:2=kill")
        c.members[gone].spawn()
        wait_for(lambda: not c.members[gone].running(), 20, "it to die")
        assert (c.state_of_member[gone] / "catching-up").exists()
        with_fault(c, gone, "")
        c.start_member(gone)
        caught_up(c, gone)
        assert re.search(r"\d+ of \d+ pieces are here already", c.members[gone].log)
        assert not (c.state_of_member[gone] / "catching-up").exists()


def test_submits_go_on_meanwhile_and_the_leader_may_change():
    with HACluster(nodes=1, controller=SNAP, ctld_args=["--snapshot-rate=500000"]) as c:
        large(c)
        lead, gone = empty_follower(c)
        c.members[gone].spawn()
        wait_for(lambda: "has a snapshot at entry" in c.members[gone].log, 20, "it to begin")
        finish_some(c, 5, first=200)
        other = next(i for i in c.ids if i not in (lead, gone))
        c.kill(lead)  # the one that catches up must help to elect another one: its log is whole
        finish_some(c, 5, first=300) if c.wait_leader(other_than=lead, timeout=40) else None
        c.start_member(lead)
        c.members[gone].wait_ready(60)
        caught_up(c, gone, other)


def test_a_member_whose_state_differs_stops_and_comes_back_by_snapshot():
    with HACluster(nodes=1, controller=SNAP, ctld_args=["--test-faults"]) as c:
        lead = c.wait_leader()
        wrong = next(i for i in c.ids if i != lead)
        c.kill(wrong)
        with_fault(c, wrong, "ctl.flip_bit")
        c.start_member(wrong)
        finish_some(c, 80)
        c.batch("true", "-J", "flip-me")
        wait_for(lambda: not c.members[wrong].running(), 20, "it to stop")
        assert c.members[wrong].process.returncode == 1
        assert "is not that of the others" in c.members[wrong].log and "keeps its files" in c.members[wrong].log
        finish_some(c, 10, first=80)  # nobody else minds
        with_fault(c, wrong, "")
        c.start_member(wrong)
        caught_up(c, wrong)
        assert "were moved to" in c.members[wrong].log
        aside = [p for p in c.state_of_member[wrong].iterdir() if p.name.startswith("aside-")]
        assert len(aside) == 1 and (aside[0] / "history/history.db").exists()


# ---- when members make snapshots ----

def being_written(c, i):
    return {p.name for p in (c.state_of_member[i] / "snapshots").glob("snap-*[0-9].tmp")}


def test_no_two_members_make_a_snapshot_at_the_same_moment():
    """Each takes longer than the log needs to reach the next member's slot."""
    with HACluster(nodes=0, controller="snapshot_entries = 64", ctld_args=["--snapshot-rate=100000"]) as c:
        seen, together = {i: set() for i in c.ids}, []
        done = threading.Event()

        def watch():
            while not done.wait(0.002):
                before = {i: being_written(c, i) for i in c.ids}
                after = {i: being_written(c, i) for i in c.ids}
                now = {i: before[i] & after[i] for i in c.ids}
                for i in c.ids:
                    seen[i] |= now[i]
                if sum(map(bool, now.values())) > 1:
                    together.append(now)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for k in range(200):
                c.batch("true", "--hold", "-J", f"waits-{k}")
            wait_for(lambda: c.batch("true", "--hold") and all(seen.values()), 40, "each member's snapshot", every=0.05)
        finally:
            done.set()
            watcher.join()
        assert not together, together[:3]
