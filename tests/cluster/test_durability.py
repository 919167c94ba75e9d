# SPDX-License-Identifier: Apache-2.0
"""Nothing acknowledged is lost, nothing runs twice, running jobs go on: under kill -9 of each daemon at random moments, a
torn log, a full disk. And how long starts and stops take."""
import os
import pathlib
import random
import re
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

from spurtest import BUILD, OVER, SANITIZED, SubmitLoop, alive, wait_for

KILLS = int(os.environ.get("SPUR_TEST_KILLS", "50"))


def wait_all_over(c, ids, timeout=120):
    def over():
        states = c.queue("-t", "all")
        return all(states.get(i) in OVER for i in ids)

    wait_for(over, timeout, f"{len(ids)} jobs to end", every=0.2)


def check_nothing_lost(c, loop):
    """Each acknowledged job is there, ran once, and is in the history once."""
    ids = loop.acknowledged
    assert len(ids) == len(set(ids)), "an id was given twice"
    wait_all_over(c, ids)
    states = c.queue("-t", "all")
    assert {i: states.get(i) for i in ids} == {i: "COMPLETED" for i in ids}
    assert loop.twice() == []
    ran = {int(name) for name in os.listdir(c.work / "runs")}
    assert set(ids) <= ran
    rows = c.run("sacct -X -n -P -a -o JobIDRaw,State,ExitCode").stdout.splitlines()
    history = {}
    for row in rows:
        job, state, code = row.split("|")
        assert int(job) not in history, f"job {job} is twice in the history"
        history[int(job)] = (state, code)
    assert {i: history.get(i) for i in ids} == {i: ("COMPLETED", "0:0") for i in ids}


@pytest.mark.slow
def test_kills_of_the_controller_at_random_moments(new_cluster):
    c = new_cluster(nodes=2, cpus=8)
    random.seed()
    with SubmitLoop(c, pause=0.01) as loop:
        for _ in range(KILLS):
            time.sleep(random.uniform(0, 0.2))
            c.ctld.restart()
        wait_for(lambda: len(loop.acknowledged) > KILLS / 2, 60, "submits between the kills")
    check_nothing_lost(c, loop)


@pytest.mark.sanitize
def test_a_few_kills_of_the_controller(new_cluster):
    c = new_cluster(nodes=1, cpus=8)
    with SubmitLoop(c, pause=0.01) as loop:
        for n in range(1, 6):
            wait_for(lambda: len(loop.acknowledged) >= 5 * n, 60)
            c.ctld.restart()
    check_nothing_lost(c, loop)


@pytest.mark.slow
def test_kills_of_both_daemons_at_random_moments(new_cluster):
    c = new_cluster(nodes=2, cpus=8)
    with SubmitLoop(c, pause=0.02) as loop:
        for _ in range(max(5, KILLS // 3)):
            time.sleep(random.uniform(0, 0.2))
            for daemon in random.sample([c.ctld, *c.nodes.values()], random.randint(1, 3)):
                daemon.restart()
    check_nothing_lost(c, loop)


def test_a_stop_by_sigterm_loses_nothing_either(new_cluster):
    c = new_cluster()
    with SubmitLoop(c, pause=0.01) as loop:
        for n in range(1, 6):
            wait_for(lambda: len(loop.acknowledged) >= 5 * n, 30)
            c.ctld.restart(signal.SIGTERM)
    check_nothing_lost(c, loop)


# ---- running jobs outlive daemons ----

WAITS = "echo $$ > pid.$SLURM_JOB_ID; while [ ! -e go.$SLURM_JOB_ID ]; do sleep 0.02; done; echo done; exit 7"


def started(c):
    job = c.batch(WAITS)
    wait_for(lambda: (c.work / f"pid.{job}").exists() and (c.work / f"pid.{job}").read_text().strip(), 20, "the job to run")
    return job, int((c.work / f"pid.{job}").read_text())


def finish(c, job, pid):
    (c.work / f"go.{job}").touch()
    wait_for(lambda: not alive(pid), 20, "the script to end")


def killed(c, who):
    daemons = {"controller": [c.ctld], "agent": [c.node], "both": [c.ctld, c.node]}[who]
    for daemon in daemons:
        daemon.kill()
    return daemons


@pytest.mark.parametrize("who", ["controller", "agent", "both"])
def test_a_running_job_goes_on_and_is_adopted(cluster, who):
    c = cluster
    job, pid = started(c)
    daemons = killed(c, who)
    assert alive(pid)
    for daemon in daemons:
        daemon.start()
    c.wait_state(job, "RUNNING")
    assert alive(pid)
    finish(c, job, pid)
    c.wait_state(job, "FAILED")
    assert c.sacct(job, "State,ExitCode") == {"State": "FAILED", "ExitCode": "7:0"} and c.output(job) == "done\n"
    assert c.job(job)["Restarts"] == "0"


@pytest.mark.parametrize("who", ["controller", "agent", "both"])
def test_a_job_that_ended_meanwhile_has_its_real_exit_code(cluster, who):
    c = cluster
    job, pid = started(c)
    daemons = killed(c, who)
    finish(c, job, pid)
    for daemon in daemons:
        daemon.start()
    c.wait_state(job, "FAILED")
    assert c.sacct(job, "State,ExitCode") == {"State": "FAILED", "ExitCode": "7:0"} and c.output(job) == "done\n"


@pytest.mark.parametrize("who", ["controller", "agent"])
def test_an_adopted_job_can_be_cancelled(cluster, who):
    c = cluster
    job, pid = started(c)
    for daemon in killed(c, who):
        daemon.start()
    c.run(["scancel", str(job)])
    c.wait_state(job, "CANCELLED")
    assert not alive(pid)


def test_a_cancel_that_came_while_the_agent_was_away_is_carried_out(cluster):
    c = cluster
    job, pid = started(c)
    c.node.kill()
    c.run(["scancel", str(job)])
    c.node.start()
    c.wait_state(job, "CANCELLED")
    assert not alive(pid)


@pytest.mark.root
def test_a_kill_of_the_agents_cgroup_leaves_its_steps(cluster):
    """As systemd does it for a unit with KillMode=control-group: every process in the agent's cgroup gets SIGKILL."""
    c = cluster
    home = next((p for p in ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(p + "/cgroup.procs")), None)
    if home is None:
        pytest.skip("no cgroup hierarchy is mounted")
    unit = pathlib.Path(home) / f"spur-test-{os.getpid()}.service"
    try:
        unit.mkdir()
    except OSError as e:
        pytest.skip(f"no cgroup can be made here: {e}")
    try:
        (unit / "cgroup.procs").write_text(str(c.node.pid))
        job, pid = started(c)
        for member in (unit / "cgroup.procs").read_text().split():
            os.kill(int(member), signal.SIGKILL)
        c.node.process.wait(10)
        assert alive(pid)
        c.node.start()
        finish(c, job, pid)
        c.wait_state(job, "FAILED")
        assert c.sacct(job, "ExitCode")["ExitCode"] == "7:0"
    finally:
        c.close()
        wait_for(lambda: not (unit / "cgroup.procs").read_text().split())
        unit.rmdir()


def test_the_step_daemon_alone_killed_ends_its_job(cluster):
    """Nobody can tell its exit code any more; the job ends, leaves nothing, and the node takes work again."""
    c = cluster
    job, pid = started(c)
    stepds = [p for p, cmdline in c.ours() if b"spurstepd" in cmdline.split(b"\0")[0]]
    assert stepds
    for p in stepds:
        os.kill(p, signal.SIGKILL)
    c.wait_over(job, timeout=40)
    wait_for(lambda: not alive(pid), 20, "the script to be ended")
    assert c.state_of(job) != "COMPLETED"


# ---- the disk ----


def journal_files(c):
    return [p for p in c.state.rglob("*") if p.is_file()]


def test_a_torn_last_segment_recovers(cluster):
    """A crash in the middle of a write: the tail of the open segment holds half an entry."""
    c = cluster
    ids = [c.submit("-H", "--wrap", "true") for _ in range(30)]
    c.ctld.kill()
    segments = [p for p in journal_files(c) if re.fullmatch(r"open-\d+", p.name)]
    assert segments, [str(p) for p in journal_files(c)]
    torn = 0
    for path in segments:
        data = path.read_bytes()
        end = len(data.rstrip(b"\0"))
        if end == 0:
            continue
        end = (end + 7) // 8 * 8
        with open(path, "r+b") as f:
            f.seek(end)
            f.write(random.randbytes(200))
        torn += 1
    assert torn
    c.ctld.start()
    assert sorted(c.queue()) == ids
    more = c.submit("-H", "--wrap", "true")
    c.ctld.restart()
    assert sorted(c.queue()) == [*ids, more]


@pytest.mark.root
def test_a_full_disk_refuses_and_goes_on(new_cluster):
    c = new_cluster(nodes=1, start=False)
    c.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(c.state)], check=True)
    try:
        c.start()
        pid = c.ctld.pid
        ids = [c.submit("-H", "--wrap", "true") for _ in range(5)]
        filler = c.state / "filler"
        with open(filler, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 65536)
            except OSError:
                pass
        refused = None
        for i in range(3000):  # what is preallocated is used up first
            got = c.run(["sbatch", "--parsable", "-H", "--wrap", f"# {i} {'x' * 30000}"], check=False, timeout=60)
            if got.returncode != 0:
                refused = got
                break
            ids.append(int(got.stdout))
        assert refused is not None, "the disk is full and submits are still taken"
        assert "No space left" in refused.stderr or "disk" in refused.stderr.lower(), refused.stderr
        assert c.ctld.running() and c.ctld.pid == pid
        assert sorted(c.queue()) == ids  # it still answers, and nothing is lost
        filler.unlink()
        after = wait_for(lambda: (lambda g: int(g.stdout) if g.returncode == 0 else None)(
            c.run("sbatch --parsable -H --wrap true", check=False)), 20, "submits to be taken again")
        assert c.ctld.pid == pid and c.ctld.running()
        c.ctld.restart()
        assert sorted(c.queue()) == sorted([*ids, after])
        job = c.batch("true")
        c.wait_state(job, "COMPLETED")
    finally:
        c.ctld.kill()
        subprocess.run(["umount", "-l", str(c.state)], check=True)


def load(c, count, in_flight=16):
    """Held jobs over one connection, quickly."""
    got = subprocess.run([str(BUILD / "tests/bench/submit_load"), f"unix:{c.socket}", str(count), str(in_flight)], env=c.env, cwd=c.work,
                         capture_output=True, text=True)
    assert got.returncode == 0, got.stderr


def counter(c, name):
    return int(re.search(rf"{re.escape(name)}: (\d+)", c.run("sdiag").stdout)[1])


@pytest.mark.sanitize
def test_snapshots_bound_the_log_and_the_start(new_cluster):
    c = new_cluster(nodes=0, controller="snapshot_entries = 200")
    ids = [c.submit("-H", "--wrap", "true") for _ in range(10)]
    count = 1500 if SANITIZED else 14000
    load(c, count, 64)
    wait_for(lambda: counter(c, "Snapshots taken") >= 2, 30, "snapshots")
    last = counter(c, "Last index")
    assert last > count
    wait_for(lambda: (c.submit("-H", "--wrap", "true"), counter(c, "Entries in the log"))[1] < 10000, 30, "the log to be cut")
    c.ctld.restart()
    assert counter(c, "Last index") >= last
    there = c.queue()
    assert len(there) >= count + 11 and set(ids) <= set(there)
    more = [c.submit("-H", "--wrap", "true") for _ in range(10)]
    c.ctld.restart()
    assert set(c.queue()) == set(there) | set(more)
    c.run(["scontrol", "release", str(ids[0])])  # scripts that only a snapshot names are still there
    assert c.state_of(ids[0]) == "PENDING"


@pytest.mark.slow
def test_a_start_with_a_million_past_jobs_takes_less_than_five_seconds(cluster):
    """The history gets a million copies of a real row, with ids and times of their own."""
    c = cluster
    job = c.batch("true")
    c.wait_state(job, "COMPLETED")
    wait_for(lambda: counter(c, "History rows waiting") == 0 and counter(c, "History rows") >= 1, 10)
    c.node.kill()
    c.ctld.kill(signal.SIGTERM)
    db = sqlite3.connect(c.state / "history" / "history.db")
    columns = [row[1] for row in db.execute("PRAGMA table_info(job)")]
    chosen = ", ".join({"id": "n + 1000", "sluid": "sluid || n", "end_ms": "end_ms - n", "start_ms": "start_ms - n"}.get(x, x) for x in columns)
    db.execute("PRAGMA synchronous = OFF")
    db.execute(f"WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < 1000000) "
               f"INSERT INTO job ({', '.join(columns)}) SELECT {chosen} FROM job, k WHERE id = {job}")
    db.commit()
    assert db.execute("SELECT count(*) FROM job").fetchone()[0] == 1000001
    db.close()
    for sig in (signal.SIGKILL, signal.SIGTERM):
        began = time.monotonic()
        c.ctld.start(30)
        assert time.monotonic() - began < 5
        began = time.monotonic()
        assert c.sacct(job, "State")["State"] == "COMPLETED"
        assert c.submit("-H", "--wrap", "true") > job
        assert time.monotonic() - began < 2, "a question about one job does not read them all"
        c.ctld.kill(sig)


@pytest.mark.slow
def test_kills_while_snapshots_are_taken(new_cluster):
    c = new_cluster(nodes=1, cpus=8, controller="snapshot_entries = 64")
    with SubmitLoop(c, pause=0.01) as loop:
        for _ in range(max(5, KILLS // 3)):
            time.sleep(random.uniform(0, 0.3))
            c.ctld.restart()
    check_nothing_lost(c, loop)


# ---- written before it is told ----


def syscalls(path):
    """(pid, name, arguments, result) in the order of completion."""
    out, open_calls = [], {}
    for line in path.read_text(errors="replace").splitlines():
        got = re.match(r"(\d+)\s+[\d.]+ (.*)", line)
        if not got:
            continue
        pid, rest = got.groups()
        if m := re.match(r"(\w+)\((.*) <unfinished \.\.\.>$", rest):
            open_calls[pid] = m.groups()
        elif m := re.match(r"<\.\.\. (\w+) resumed>(.*)\)\s+= (.*)", rest):
            name, begun = open_calls.pop(pid, (m[1], ""))
            out.append((pid, m[1], begun + m[2], m[3]))
        elif m := re.match(r"(\w+)\((.*)\)\s+= (.*)", rest):
            out.append((pid, m[1], m[2], m[3]))
    return out


@pytest.mark.root
def test_the_id_is_told_after_the_synced_write(new_cluster, tmp_path):
    """By the system calls: between the request's arrival and the answer lies a write to the log that is synced."""
    c = new_cluster(nodes=0)
    trace = tmp_path / "trace"
    strace = subprocess.Popen(["strace", "-f", "-ttt", "-s", "8192", "-o", str(trace), "-e",
                               "trace=openat,read,recvfrom,recvmsg,write,writev,pwrite64,pwritev,pwritev2,sendmsg,sendto,fsync,"
                               "fdatasync,io_submit,io_getevents,io_uring_enter", "-p", str(c.ctld.pid)], stderr=subprocess.PIPE, text=True)
    try:
        assert "attached" in strace.stderr.readline()
        mark = f"mark{random.getrandbits(64):x}"
        job = c.submit("-H", "-J", mark, "--wrap", "true")
    finally:
        strace.terminate()
        strace.wait()
    calls = syscalls(trace)
    arrived = next(i for i, (_, name, args, _) in enumerate(calls) if mark in args and name in ("read", "recvfrom", "recvmsg"))
    written = [i for i, (_, name, args, _) in enumerate(calls) if mark in args and name in
               ("write", "writev", "pwrite64", "pwritev", "pwritev2", "io_submit") and i > arrived]
    answered = next(i for i, (_, name, args, result) in enumerate(calls)
                    if i > arrived and name in ("write", "writev", "sendmsg", "sendto") and "grpc-status" in args or
                    i > arrived and name in ("write", "writev", "sendmsg", "sendto") and calls[i][0] == calls[arrived][0]
                    and answer_like(args, job))
    before = [i for i in written if i < answered]
    assert before, "the entry was not written before the answer"
    first = min(before)
    if calls[first][1] == "io_submit":  # a synced write is done when its event is there
        assert "RWF_DSYNC" in calls[first][2] or "RWF_SYNC" in calls[first][2]
        assert [i for i in range(first, answered) if calls[i][1] == "io_getevents" and calls[i][3].split()[0] not in ("-1", "0")]
    else:
        assert [i for i in range(first, answered) if calls[i][3].split()[0] != "-1" and
                (calls[i][1] in ("fdatasync", "fsync") or "RWF_DSYNC" in calls[i][2])], "nothing was synced between the write and the answer"
    # Script and environment, which the entry names, were synced before it.
    assert [i for i in range(arrived, first) if calls[i][1] == "fdatasync" and calls[i][3] == "0"]


@pytest.mark.root
def test_what_a_start_finds_is_durable_before_it_counts(new_cluster, tmp_path):
    """A write that a kill cut short may be in the kernel's memory alone: read back and taken for committed, it would be lost with
    the power."""
    c = new_cluster(nodes=0)
    c.submit("-H", "--wrap", "true")
    c.ctld.kill()
    trace = tmp_path / "trace"
    c.ctld.wrapper = ["strace", "-f", "-y", "-s", "16", "-o", str(trace), "-e", "trace=read,pread64,fdatasync"]
    c.ctld.start(30)
    c.ctld.wrapper = []
    looked_at = set()
    for call, path, result in re.findall(r"(\w+)\(\d+<([^>]*)>.*\) += (-?\d+)", trace.read_text()):
        if not re.search(r"/(open-\d+|\d{16}-\d{16})$", path):
            continue
        if call == "fdatasync" and result == "0":
            looked_at.add(path)
        elif call != "fdatasync":
            assert path in looked_at, f"{path} was read before it was synced"
    assert looked_at


def answer_like(args, job):
    """A gRPC message frame with field 1 = the job's id: 00 00000N 08 <varint>."""
    varint, n = "", job
    while True:
        varint += chr((n & 127) | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            break
    return "\\10" in args


# ---- how long it takes ----


def port_is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def test_sigterm_does_not_wait_for_a_snapshot(new_cluster):
    c = new_cluster(nodes=0, controller="snapshot_entries = 100", ctld_args=["--snapshot-rate=2000"])
    for _ in range(150):
        c.submit("-H", "--wrap", "true")
    wait_for(lambda: list((c.state / "snapshots").glob("*.tmp")), what="a snapshot being written")
    assert c.ctld.kill(signal.SIGTERM) < 1.0 and c.ctld.process.returncode == 0
    assert not list((c.state / "snapshots").glob("*.tmp"))
    c.ctld.start()
    assert len(c.queue()) == 150


def test_sigterm_frees_port_and_lock_within_a_second(cluster):
    c = cluster
    job, pid = started(c)
    waiter = subprocess.Popen(["sbatch", "-W", "-H", "--wrap", "true"], env=c.env, cwd=c.work, stdout=subprocess.PIPE, text=True)
    waiter.stdout.readline()
    try:
        assert c.ctld.kill(signal.SIGTERM) < 1.0
        assert c.ctld.process.returncode == 0 and port_is_free(c.port)
        assert alive(pid)
        began = time.monotonic()
        c.ctld.start()
        assert time.monotonic() - began < 2.0
    finally:
        waiter.kill()
        waiter.wait()


@pytest.mark.parametrize("controller", ["there", "killed", "stopped"])
def test_sigterm_ends_an_agent_within_two_seconds(cluster, controller):
    c = cluster
    job, pid = started(c)
    if controller == "killed":
        c.ctld.kill()
    elif controller == "stopped":
        c.ctld.process.send_signal(signal.SIGSTOP)
    try:
        assert c.node.kill(signal.SIGTERM) < 2.0
        assert c.node.process.returncode == 0
        assert alive(pid), "a stop of the agent leaves running steps alone"
    finally:
        c.ctld.process.send_signal(signal.SIGCONT) if controller == "stopped" else None


def test_a_controller_alone_takes_writes_within_two_seconds_of_its_start(new_cluster):
    c = new_cluster(nodes=0, start=False)
    began = time.monotonic()
    c.ctld.spawn()
    wait_for(lambda: c.run("sbatch -H --wrap true", check=False).returncode == 0, 10, every=0)
    assert time.monotonic() - began < 2.0
    c.ctld.wait_ready()
    c.port = int(c.ctld.ready["listen"])
    c.ctld.kill()
    began = time.monotonic()
    c.ctld.spawn()
    wait_for(lambda: c.run("sbatch -H --wrap true", check=False).returncode == 0, 10, every=0)
    assert time.monotonic() - began < 2.0


def test_an_agent_is_idle_within_a_second_of_its_start(new_cluster):
    c = new_cluster(nodes=0)
    for name in ("n1", "n2"):
        daemon = c.add_node(name, start=False)
        began = time.monotonic()
        daemon.spawn()
        wait_for(lambda: c.run(f"sinfo -h -n {name} -o %t", check=False).stdout.strip() == "idle", 10)
        assert time.monotonic() - began < 1.0


def test_two_controllers_do_not_share_a_state_directory(cluster):
    c = cluster
    got = subprocess.run([*map(str, [c.ctld.process.args[0]]), f"--config={c.conf_path}", "--listen=127.0.0.1:0", "--state-dir", str(c.state)],
                         capture_output=True, text=True, timeout=20, env={**os.environ, **c.daemon_env})
    assert got.returncode != 0
    assert str(c.state) in got.stderr + got.stdout + c.ctld.log
    c.wait_state(c.batch("true"), "COMPLETED")


@pytest.mark.parametrize("program", ["spurctld", "spurd"])
def test_the_test_clock_is_refused_with_the_real_state(program, tmp_path):
    got = subprocess.run([str(BUILD / "bin" / program), "--test-clock-scale=10", "--listen=127.0.0.1:0"], capture_output=True, text=True, timeout=20,
                         cwd=tmp_path)
    assert got.returncode != 0 and "clock" in (got.stderr + got.stdout).lower()
