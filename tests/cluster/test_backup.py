# SPDX-License-Identifier: Apache-2.0
"""spur backup and spur restore: everything of one moment, while the work goes on, comes back the same; what is not whole is refused."""
import re
import shutil
import threading

import pytest

from hacluster import HACluster, wait_for
from spurtest import Cluster


def looks(c, env=None):
    """What users see of jobs: everything that must be the same afterwards."""
    return (c.run("sacct", "-P", "-o", "JobID,JobName,State,ExitCode,Submit,Start,End,User,Elapsed", env=env).stdout,
            sorted(c.run("squeue", "-h", "-o", "%i %j %T %r %p %V", env=env).stdout.splitlines()))


def script_of(c, job, env=None):
    return c.run("scontrol", "write", "batch_script", str(job), "-", env=env).stdout


def some_work(c):
    """Jobs that are over, one that waits; the ids of both kinds."""
    done = [c.batch(f"echo {k}; exit {k % 2}", "-J", f"done-{k}") for k in range(6)]
    for job in done:
        c.wait_state(job)
    waiting = c.batch("echo this one waits", "--hold", "-J", "waits")
    return done, waiting


def refused(c, *words):
    got = c.run("spur", *words, check=False)
    assert got.returncode == 1 and not got.stdout, got
    return got.stderr


def restore(c, file, conf, state):
    return c.run("spur", "restore", "--state-dir", str(state), "--config", str(conf), str(file)).stdout


class Restored(Cluster):
    """A controller on a directory that was restored."""

    def __init__(self, file, conf_of, **how):
        super().__init__(**how)
        self.conf_path.write_text(conf_of.read_text())
        self.said = restore(self, file, self.conf_path, self.state)


def test_a_backup_made_while_submits_go_on_comes_back_as_it_was():
    with Cluster(nodes=1) as c:
        done, waiting = some_work(c)
        stop, ids = threading.Event(), []

        def submit():
            while not stop.is_set():
                ids.append(c.batch("true", "--hold", "-J", "meanwhile"))

        thread = threading.Thread(target=submit)
        thread.start()
        wait_for(lambda: len(ids) > 3, 20, "submits")
        said = c.run("spur", "backup", "all.backup").stdout
        seen = len(ids)
        wait_for(lambda: len(ids) > seen + 2, 20, "submits behind it")
        stop.set()
        thread.join()
        assert re.match(r"all.backup: cluster \S+ at entry \d+, \d+ scripts and environments, \d+ bytes\n$", said)
        assert (c.work / "all.backup").stat().st_mode & 0o777 == 0o600 and not (c.work / "all.backup.part").exists()
        before = looks(c)
        with Restored(c.work / "all.backup", c.conf_path, nodes=0) as r:
            after = looks(r)
            old = [line for line in before[0].splitlines() if "meanwhile" not in line]
            assert [line for line in after[0].splitlines() if "meanwhile" not in line] == old
            kept = set(after[1])
            assert kept <= set(before[1]), "nothing that was not there"
            assert {f"{k} " for k in ids[:4]} <= {line.split(" ")[0] + " " for line in kept}, "what was answered before it began is in it"
            assert script_of(r, waiting) == script_of(c, waiting) and "this one waits" in script_of(r, waiting)
            highest = max(int(line.split()[0]) for line in kept)
            assert r.batch("true") == highest + 1
            assert f"{r.state} is ready: start controller 1 on it" in r.said


def test_restored_onto_three():
    with HACluster(nodes=1) as c:
        done, waiting = some_work(c)
        c.run("spur", "backup", "all.backup", env=c.only(next(i for i in c.ids if i != c.wait_leader())))
        before = looks(c)
        for d in c.members.values():
            d.kill()
        for i in c.ids:
            shutil.rmtree(c.state_of_member[i])
        said = restore(c, c.work / "all.backup", c.conf_of(2), c.state_of_member[2])
        assert "start controller 2 on it, then the others, each with an empty directory" in said
        c.start_member(2)
        for i in (1, 3):
            c.members[i].spawn()
        for i in (1, 3):
            c.members[i].wait_ready(40)
        c.wait_same(timeout=40)
        for i in c.ids:
            wait_for(lambda i=i: looks(c, env=c.only(i)) == before, 20, f"member {i} to have everything")
        assert "this one waits" in script_of(c, waiting, env=c.only(1))
        c.run("scontrol", "release", str(waiting))
        c.wait_state(waiting, "COMPLETED")
        c.kill(2)  # all of it is on the others
        assert c.wait_leader(other_than=2, timeout=20) in (1, 3)
        assert "this one waits" in script_of(c, waiting, env=c.env_of([1, 3]))


def test_of_a_controller_that_is_stopped():
    with Cluster(nodes=1) as c:
        done, waiting = some_work(c)
        before = looks(c)
        assert "the controller runs; ask it" in refused(c, "backup", "--state-dir", str(c.state), "--config", str(c.conf_path), "x.backup")
        c.ctld.kill()
        # SQLite's -shm has nothing that lasts: whoever opens the file makes it anew
        files = {p: p.stat().st_mtime_ns for p in c.state.rglob("*") if p.is_file() and p.name != "lock" and "blobs" not in str(p) and p.suffix != ".db-shm"}
        said = c.run("spur", "backup", "--state-dir", str(c.state), "--config", str(c.conf_path), "off.backup").stdout
        assert re.match(r"off.backup: cluster \S+ at entry \d+, ", said)
        assert {p: p.stat().st_mtime_ns for p in files} == files and not (c.state / "backup-work").exists()
        with Restored(c.work / "off.backup", c.conf_path, nodes=0) as r:
            assert looks(r) == before
            assert "this one waits" in script_of(r, waiting)
        c.ctld.start()
        assert looks(c) == before


def test_of_one_of_three_that_are_stopped():
    with HACluster(nodes=1) as c:
        some_work(c)
        before = looks(c)
        c.wait_same()
        for d in c.members.values():
            d.kill()
        text = c.conf_of(3).read_text()
        c.conf_of(3).write_text(text.replace("[auth]", '[auth]\njwt_key_file = "/nowhere/jwt.key"'))  # keys went with the machine
        c.run("spur", "backup", "--state-dir", str(c.state_of_member[3]), "--config", str(c.conf_of(3)), "off.backup")
        shutil.rmtree(c.state_of_member[1])
        restore(c, c.work / "off.backup", c.conf_of(1), c.state_of_member[1])
        c.start_member(1)
        assert looks(c, env=c.only(1)) == before


@pytest.fixture(scope="module")
def made():
    with Cluster(nodes=1) as c:
        some_work(c)
        c.run("spur", "backup", "good.backup")
        c.ctld.kill()
        yield c


def test_what_is_not_whole_is_refused(made):
    c = made
    good = (c.work / "good.backup").read_bytes()
    assert c.run("spur", "restore", "--check", "good.backup").stdout.startswith("cluster ")
    bad = c.work / "bad.backup"
    for n in [0, 7, 16, 30, *range(100, len(good), len(good) // 40), len(good) - 1]:
        bad.write_bytes(good[:n])
        assert "backup" in refused(c, "restore", "--check", "bad.backup"), f"cut at {n}"
    for at in [0, 9, 13, 18, *range(100, len(good), len(good) // 60), len(good) - 2]:
        flipped = bytearray(good)
        flipped[at] ^= 4
        bad.write_bytes(flipped)
        assert "backup" in refused(c, "restore", "--check", "bad.backup"), f"a bit at {at}"
    bad.write_bytes(good + b"x")
    assert "something stands behind its end" in refused(c, "restore", "--check", "bad.backup")


def test_a_damaged_file_makes_nothing(made, tmp_path):
    c = made
    (c.work / "bad.backup").write_bytes((c.work / "good.backup").read_bytes()[:-9])
    to = c.root / "nothing"
    refused(c, "restore", "--state-dir", str(to), "--config", str(c.conf_path), "bad.backup")
    assert not to.exists()


def test_a_newer_format_is_refused_by_its_number(made):
    c = made
    newer = bytearray((c.work / "good.backup").read_bytes())
    newer[8] = 2
    (c.work / "newer.backup").write_bytes(newer)
    assert "of format 2, and this program knows format 1" in refused(c, "restore", "--check", "newer.backup")


def test_a_directory_that_is_not_empty_is_left_alone(made):
    c = made
    before = sorted(p.name for p in c.state.iterdir())
    assert "is not empty" in refused(c, "restore", "--state-dir", str(c.state), "--config", str(c.conf_path), "good.backup")
    assert sorted(p.name for p in c.state.iterdir()) == before


def test_a_restore_that_did_not_end_is_not_started_and_can_be_repeated(made):
    c = made
    to = c.root / "half"
    to.mkdir()
    (to / "restoring").touch()
    (to / "history").mkdir()
    (to / "history/history.db").write_bytes(b"half of it")
    got = c.run("spurctld", "--state-dir", str(to), "--config", str(c.conf_path), "--listen=127.0.0.1:0", check=False)
    assert got.returncode == 1 and "a restore into it did not end" in got.stderr
    restore(c, "good.backup", c.conf_path, to)
    assert not (to / "restoring").exists()


def test_only_administrators_and_only_one_at_a_time():
    with Cluster(nodes=0, ctld_args=["--snapshot-rate=20000"]) as c:
        for k in range(20):
            c.batch(f"echo {k}", "--hold")
        got = c.run("spur", "backup", str(c.root / "theirs.backup"), check=False, uid=65534)
        assert got.returncode == 1 and not (c.root / "theirs.backup").exists()
        codes = []
        first = threading.Thread(target=lambda: codes.append(c.run("spur", "backup", "one.backup", check=False).returncode))
        first.start()
        wait_for(lambda: (c.state / "snapshots/backup-out").exists(), 20, "it to begin")
        assert "a backup is being made already" in refused(c, "backup", "two.backup")
        assert not (c.work / "two.backup").exists() and not (c.work / "two.backup.part").exists()
        first.join()
        assert codes == [0]


def test_a_full_disk_on_the_controller():
    with Cluster(nodes=0, ctld_args=["--test-faults"]) as c:
        c.ctld.kill()
        c.ctld.wrapper = ["env", "SPUR_FAULT=backup.full:2"]
        c.ctld.start()
        c.batch("true", "--hold")
        assert "no space left on device" in refused(c, "backup", "x.backup")
        assert not (c.work / "x.backup").exists() and not (c.state / "snapshots/backup-out").exists()
        assert "at entry" in c.run("spur", "backup", "x.backup").stdout
