# SPDX-License-Identifier: Apache-2.0
"""Task streams: the real spurd and its step daemons against a client and a controller of the test's own."""
import os
import pathlib
import re
import signal
import socket
import threading
import time

import nacl.signing
import pytest

import spurtest
import streamwire as w
from spurtest import alive, wait_for


@pytest.fixture
def world(tmp_path):
    tmp_path.chmod(0o755)
    it = w.World(tmp_path)
    yield it
    it.close()


@pytest.fixture
def job(world):
    return world.job()


def step_daemon(world, job, step=0):
    return world.root / "state" / "runs" / f"{job}.1.{step}"


def daemon_pid(world, job, step=0):
    import stepwire
    return stepwire.read_log(step_daemon(world, job, step) / "log")[0]["pid"]


# ---- one step ----


def test_output_and_exit_code(world, job):
    s = world.run(job, "sh", "-c", "echo out; echo err >&2; exit 3").wait_done()
    assert s.text() == "out\n" and s.text(0, w.ERR) == "err\n"
    assert s.exits == {0: 3 << 8} and s.done["wait_status"] == 3 << 8
    assert s.ended == {(0, w.OUT), (0, w.ERR)}
    assert world.wait_report(job).wait_status == 3 << 8
    wait_for(lambda: not step_daemon(world, job).exists(), what="the step's directory to go")


def test_the_first_line_is_there_at_once(world, job):
    began = time.monotonic()
    s = world.run(job, "sh", "-c", "echo here; sleep 100")
    s.until(lambda: s.text() == "here\n")
    assert time.monotonic() - began < 0.5 * spurtest.PATIENCE
    s.send(w.TERMINATE)
    s.wait_done()


def test_input_goes_to_all_and_ends(world, job):
    s = world.run(job, "cat", n_tasks=3)
    s.until(lambda: hasattr(s, "welcome"))
    assert s.welcome["ranks"] == [0, 1, 2] and s.welcome["window"] > 0
    s.send_data(0, b"hello\n")
    s.send_data(6, b"")
    s.wait_done()
    assert [s.text(t) for t in range(3)] == ["hello\n"] * 3


def test_input_for_one_task(world, job):
    s = world.run(job, "sh", "-c", "cat; echo end", n_tasks=2, std_in="1")
    s.until(lambda: hasattr(s, "welcome"))
    s.send_data(0, b"for one\n", task=1)
    s.send_data(8, b"", task=1)
    s.wait_done()
    assert s.text(0) == "end\n" and s.text(1) == "for one\nend\n"


def test_environment_of_tasks(world, job):
    s = world.run(job, "sh", "-c", "env; echo PID=$$", n_tasks=2, env={"SLURM_PROCID": "77", "OWN": "x"}).wait_done()
    for t in range(2):
        env = dict(line.split("=", 1) for line in s.text(t).splitlines())
        want = {"PROCID": str(t), "LOCALID": str(t), "STEP_ID": "0", "STEPID": "0", "NTASKS": "2", "NPROCS": "2", "STEP_NUM_TASKS": "2",
                "STEP_NUM_NODES": "1", "STEP_NODELIST": "n1", "STEP_TASKS_PER_NODE": "2", "TASKS_PER_NODE": "2", "GTIDS": "0,1", "NODEID": "0",
                "NNODES": "1", "JOB_ID": str(job), "JOB_NODELIST": "n1", "CPUS_ON_NODE": "2", "TASK_PID": env["PID"], "JOB_GROUP": "g",
                "DISTRIBUTION": "block", "LAUNCH_NODE_IPADDR": "127.0.0.1", "UMASK": "0022", "CLUSTER_NAME": "test", "JOB_PARTITION": "debug"}
        for name, value in want.items():
            assert env["SLURM_" + name] == value == env["SPUR_" + name], name
        assert env["OWN"] == "x" and env["SLURMD_NODENAME"] == "n1" and s.text(t).count("SLURM_PROCID=") == 1


def test_command_that_is_not_there(world, job):
    s = world.run(job, "nosuchcmd").wait_done()
    assert s.exits == {0: 2 << 8}
    assert re.fullmatch(r"\[\S+\] error: execve\(\): nosuchcmd: No such file or directory\n", s.text(0, w.ERR))


def test_files_with_patterns(world, job):
    s = world.run(job, "sh", "-c", "echo $SLURM_PROCID; echo e >&2", n_tasks=2, std_out="o.%j.%s.%t.%n.%N", std_err="e.%t").wait_done()
    for t in range(2):
        assert (world.root / f"o.{job}.0.{t}.0.n1").read_text() == f"{t}\n" and (world.root / f"e.{t}").read_text() == "e\n"
    assert not s.out


def test_a_shared_file_has_the_output_of_all(world, job):
    (world.root / "all").write_text("old\n" * 1000)
    world.run(job, "sh", "-c", "for i in 1 2 3; do echo $SLURM_PROCID$i; done", n_tasks=8, std_out="all").wait_done()
    assert sorted((world.root / "all").read_text().split()) == sorted(f"{t}{i}" for t in range(8) for i in (1, 2, 3))


def test_a_file_that_can_not_be_opened(world, job):
    s = world.run(job, "true", std_out="/proc/nodir/x").wait_done()
    assert s.exits == {0: 53} and "could not open output file /proc/nodir/x" in s.texts[0]


def test_multi_prog(world, job):
    s = world.run(job, n_tasks=2, multi_prog=[{"words": ["echo", "a b"]}, {"words": ["printf", "%s.", "c"]}]).wait_done()
    assert s.text(0) == "a b\n" and s.text(1) == "c."


def test_pty(world, job):
    s = world.run(job, "sh", "-c", "tty; stty size; read x; echo got $x; stty size", pty=True, rows=31, columns=77)
    s.until(lambda: "31 77" in s.text())
    assert s.text().startswith("/dev/pts/")
    s.send(w.WINDOW_SIZE, rows=10, columns=20)
    s.send_data(0, b"word\n")
    s.wait_done()
    assert "got word\r\n10 20" in s.text() and s.exits == {0: 0}


def test_signals_reach_all_tasks(world, job):
    s = world.run(job, "bash", "-c", "trap 'echo caught; exit 7' USR1; echo up; while :; do sleep 0.05; done", n_tasks=2)
    s.until(lambda: s.text(0) == s.text(1) == "up\n")
    s.send(w.SIGNAL, signal=signal.SIGUSR1)
    s.wait_done()
    assert s.text(0) == s.text(1) == "up\ncaught\n" and s.exits == {0: 7 << 8, 1: 7 << 8}


def test_kill_on_bad_exit(world, job):
    s = world.run(job, "sh", "-c", "[ $SLURM_PROCID = 1 ] && exit 4; exec sleep 1000", n_tasks=2, kill_on_bad_exit=True).wait_done()
    assert s.exits == {0: 15, 1: 4 << 8} and "CANCELLED" in s.texts[0] and "DUE TO TASK FAILURE" in s.texts[0]


def test_wait_after_the_first_exit(world, job):
    s = world.run(job, "sh", "-c", "[ $SLURM_PROCID = 1 ] && exit 0; exec sleep 1000", n_tasks=2, spec={"wait_secs": 1}).wait_done()
    assert s.exits == {0: 15, 1: 0}


def test_everything_of_a_step_is_ended(world, job):
    s = world.run(job, "bash", "-c", "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!; exit 0").wait_done()
    assert not alive(int(s.text()))


def test_terminate_by_the_controller(world, job):
    a, b = world.run(job, "sleep", "1000"), world.run(job, "sleep", "1000", step=1)
    a.until(lambda: a.pids), b.until(lambda: b.pids)
    world.terminate(job, step=0)
    a.wait_done()
    assert a.exits == {0: 15} and "STEP %d.0 ON n1 CANCELLED" % job in a.texts[0]
    assert alive(b.pids[0])
    world.terminate(job)
    b.wait_done()
    wait_for(lambda: world.reports, what="the job's report")
    assert [r.step_id for r in world.step_reports] == [0, 1]


def test_the_end_of_a_script_ends_its_steps(world):
    os.mkfifo(world.root / "go")
    job = world.job("read x <go; exit 5")
    s = world.run(job, "sh", "-c", "trap 'sleep 0.3; echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    s.until(lambda: s.text() == "up\n")
    (world.root / "go").write_text("x\n")
    s.wait_done()
    assert s.text() == "up\nbye\n"
    wait_for(lambda: world.reports)
    assert world.reports[0].wait_status == 5 << 8 and world.step_reports


def test_suspend_and_resume(world, job):
    s = world.run(job, "sh", "-c", "while :; do echo x; sleep 0.02; done")
    s.until(lambda: len(s.text()) > 4)
    m = w.grpcwire.messages()
    world.call("Suspend", m.SuspendRunRequest(job_id=job, start_no=1, node_name="n1", uid=world.uid), job)

    def stands():
        s.s.settimeout(0.5)
        try:
            while s.take():
                pass
        except TimeoutError:
            return True

    assert stands()
    world.call("Suspend", m.SuspendRunRequest(job_id=job, start_no=1, node_name="n1", uid=world.uid, resume=True), job)
    s.s.settimeout(10 * spurtest.PATIENCE)
    n = len(s.text())
    s.until(lambda: len(s.text()) > n + 4)
    s.send(w.TERMINATE)
    s.wait_done()


def test_signals_of_the_controller(world):
    """For the steps; for the script alone; for both."""
    loop = "trap 'echo caught >>%s' USR1; echo up >>%s; while :; do sleep 0.02; done"
    script, step = world.root / "script", world.root / "step"
    job = world.job(loop % (script, script))
    s = world.run(job, "bash", "-c", loop % (step, step))
    wait_for(lambda: script.exists() and step.exists() and script.read_text() == step.read_text() == "up\n")
    m = w.grpcwire.messages()

    def send(**how):
        world.call("Signal", m.SignalRequest(job_id=job, start_no=1, signal=signal.SIGUSR1, node_name="n1", uid=world.uid, **how), job)

    send()
    wait_for(lambda: step.read_text() == "up\ncaught\n")
    send(batch_only=True)
    wait_for(lambda: script.read_text() == "up\ncaught\n")
    send(step_id=1)
    wait_for(lambda: step.read_text().count("caught") == 2)
    assert script.read_text().count("caught") == 1
    send(full=True)
    wait_for(lambda: step.read_text().count("caught") == 3 and script.read_text().count("caught") == 2)
    s.send(w.TERMINATE)
    s.wait_done()


@pytest.mark.root
def test_a_step_that_needs_too_much_memory(world, job):
    if not os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        pytest.skip("needs the memory controller of version 1")
    step = {"job_id": job, "start_no": 1, "id": 0, "uid": world.uid, "spec": {"n_tasks": 2},
            "nodes": [{"node_id": 1, "name": "n1", "cpus": 2, "n_tasks": 2, "ranks": [0, 1], "mem_mb": 60}]}
    raw, signature = world.ticket(job, step_record=step)
    s = w.Stream(world.port, raw, signature, world.launch_record("bash", "-c", "[ $SLURM_PROCID = 0 ] && exit 0; head -c 200000000 /dev/zero | tail | wc -c; exit 9"))
    s.wait_done()
    assert s.exits[0] == 0 and any("Detected 1 oom_kill event in StepId=%d.0" % job in t for t in s.texts)
    assert world.wait_report(job).out_of_memory


# ---- devices, arrays ----


@pytest.mark.root
def test_devices_of_others_can_not_be_opened(tmp_path):
    if not os.path.exists("/sys/fs/cgroup/devices"):
        pytest.skip("needs the devices controller of version 1")
    tmp_path.chmod(0o755)
    os.mknod(tmp_path / "gpu0", 0o20666, os.makedev(1, 5))  # zero
    os.mknod(tmp_path / "gpu1", 0o20666, os.makedev(1, 7))  # full
    (tmp_path / "gres.conf").write_text(f"# two\nName=gpu Type=a100 File={tmp_path}/gpu[0-1]\nNodeName=other Name=gpu File=/dev/null\n")
    world = w.World(tmp_path, ["--gres-config", str(tmp_path / "gres.conf")])
    try:
        gres = world.registered[0].node.gres
        assert [(g.name, g.type, g.count, list(g.files)) for g in gres] == [("gpu", "a100", 2, [f"{tmp_path}/gpu0", f"{tmp_path}/gpu1"])]
        look = "for i in 0 1; do (: <gpu$i) 2>/dev/null && echo open $i; done; env | grep -E 'VISIBLE|GPU'; echo all"
        job = world.job(f"({look}) >script.out; sleep 100", gpus=[1])
        wait_for(lambda: (tmp_path / "script.out").exists() and "all" in (tmp_path / "script.out").read_text())
        text = (tmp_path / "script.out").read_text()
        assert "open 1" in text and "open 0" not in text
        for line in ("CUDA_VISIBLE_DEVICES=1", "ROCR_VISIBLE_DEVICES=1", "GPU_DEVICE_ORDINAL=1", "SLURM_JOB_GPUS=1", "SLURM_GPUS_ON_NODE=1"):
            assert line in text.splitlines()
        nodes = [{"node_id": 1, "name": "n1", "cpus": 8, "n_tasks": 1, "gres": [{"name": "gpu", "count": 1, "indexes": [1]}]}]
        raw, signature = world.ticket(job, job_nodes=nodes)
        s = w.Stream(world.port, raw, signature, world.launch_record("bash", "-c", look)).wait_done()
        assert "open 1" in s.text() and "open 0" not in s.text() and "SLURM_STEP_GPUS=1" in s.text()
    finally:
        world.close()


def test_an_array_task_knows_itself(world):
    world.job("env | grep ARRAY | sort; sleep 100", array=(50, 5 + 1))
    path = world.root / "slurm-50_5.out"
    wait_for(lambda: path.exists() and "SPUR_ARRAY_TASK_STEP" in path.read_text())
    want = {"JOB_ID": 50, "TASK_ID": 5, "TASK_COUNT": 4, "TASK_MIN": 3, "TASK_MAX": 9, "TASK_STEP": 2}
    got = dict(line.split("=") for line in path.read_text().split())
    assert got == {f"{p}_ARRAY_{k}": str(v) for p in ("SLURM", "SPUR") for k, v in want.items()}


# ---- much, slow, broken ----


def pump(s, total, chunk):
    """Sends `total` bytes as fast as the window lets it, in a thread of its own."""

    def run():
        at, block = 0, bytes(chunk)
        while at < total:
            n = min(len(block), total - at)
            while at + n - s.in_acked > s.welcome["window"]:
                time.sleep(0.0005)
            s.send_data(at, block[:n])
            at += n
        s.send_data(at, b"")

    t = threading.Thread(target=run)
    t.start()
    return t


def test_a_gigabyte_there_and_back(world, job):
    total = 1 << 30
    s = world.run(job, "cat")
    s.until(lambda: hasattr(s, "welcome"))
    block = os.urandom(1 << 16)
    seen = 0
    thread = pump(s, total, block)
    while not s.done:
        s.take()
        got = s.out.get((0, w.OUT), bytearray())
        whole = (len(got) - seen) // len(block) * len(block)
        if whole:
            assert bytes(got[seen % (1 << 62):seen + whole]) == block * (whole // len(block))
            seen += whole
    thread.join()
    assert len(s.out[0, w.OUT]) == total == seen


def rss(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def written(pid):
    return int(re.search(r"wchar: (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text())[1])


def test_a_stopped_reader_costs_no_memory(world, job):
    s = world.run(job, "sh", "-c", "head -c 30000000 /dev/zero", n_tasks=8)
    s.until(lambda: len(s.pids) == 8)
    looks = []

    def nothing_moves():  # nobody reads: each task has filled what there is, and waits
        looks.append([written(pid) for pid in s.pids.values()])
        return len(looks) > 5 and min(looks[-1]) > 0 and looks[-1] == looks[-6]

    wait_for(nothing_moves, 20, "the tasks to be stopped by their pipes", every=0.05)
    assert all(n < 30000000 for n in looks[-1]), looks[-1]
    pid = daemon_pid(world, job)
    assert rss(pid) < 50000 and rss(world.process.pid) < 50000
    s.wait_done()
    assert all(len(s.out[t, w.OUT]) == 30000000 for t in range(8)) and s.exits == dict.fromkeys(range(8), 0)


def test_a_broken_connection_loses_nothing(world, job):
    s = world.run(job, "sh", "-c", "seq 1 200000; cat; echo end")
    for i in range(6):
        s.until(lambda: len(s.out.get((0, w.OUT), b"")) >= 100000 * (i + 1))
        s.close()
        fresh = world.again(s)
        fresh.proof = s.proof
        s = fresh
    s.until(lambda: hasattr(s, "welcome"))
    s.send_data(0, b"said\n")
    s.close()
    fresh = world.again(s)
    fresh.until(lambda: hasattr(fresh, "welcome"))
    fresh.send_data(0, b"said\n")  # perhaps again: what the node has is left out
    fresh.send_data(5, b"")
    fresh.wait_done()
    assert fresh.text() == "".join(f"{i}\n" for i in range(1, 200001)) + "said\nend\n"


def test_a_client_that_comes_back_after_the_end(world, job):
    s = world.run(job, "sh", "-c", "echo one; sleep 0.3; seq 1 1000; exit 6")
    s.until(lambda: s.text() == "one\n")
    s.close()
    assert world.wait_report(job).wait_status == 6 << 8
    s2 = world.again(s)
    s2.wait_done()
    assert s2.text() == "one\n" + "".join(f"{i}\n" for i in range(1, 1001)) and s2.exits == {0: 6 << 8}
    wait_for(lambda: not step_daemon(world, job).exists(), what="the step's directory to go")
    with pytest.raises(w.Refused, match="is not here"):
        world.again(s).take()


def test_spurd_is_killed_in_the_middle(world, job):
    s = world.run(job, "sh", "-c", "seq 1 400000; sleep 0.5; echo end; exit 2", n_tasks=2)
    s.until(lambda: len(s.out.get((0, w.OUT), b"")) > 50000)
    world.kill()
    s.until(lambda: len(s.out[0, w.OUT]) > 1000000)
    world.start()
    assert {(r.job_id, r.step_id) for r in world.registered[-1].runs} == {(job, 0), (job, 1)}
    s.wait_done()
    assert s.text(0) == s.text(1) == "".join(f"{i}\n" for i in range(1, 400001)) + "end\n"
    assert world.wait_report(job).wait_status == 2 << 8


def test_the_end_is_told_to_the_controller_first(world, job):
    world.refuse_steps = True
    began = time.monotonic()
    s = world.run(job, "true").wait_done()
    assert time.monotonic() - began >= 1.0 and s.exits == {0: 0}
    world.refuse_steps = False
    assert world.wait_report(job).wait_status == 0


def test_a_killed_step_daemon(world, job):
    s = world.run(job, "sh", "-c", "echo $$; exec sleep 1000")
    s.until(lambda: s.text())
    os.kill(daemon_pid(world, job), 9)
    r = world.wait_report(job)
    assert r.wait_status == 9 and "step daemon was killed" in r.text
    assert not alive(int(s.text()))


def test_who_looks_on(world, job):
    s = world.run(job, "sh", "-c", "read x; echo $x; read y; echo $y")
    s.until(lambda: hasattr(s, "welcome"))
    raw, signature = world.ticket(job, use=w.ATTACH)
    look = w.Stream(world.port, raw, signature)
    look.until(lambda: hasattr(look, "welcome"))
    look.send(w.TERMINATE)  # the step is not its own
    look.send_data(0, b"theirs\n")
    look.until(lambda: look.text() == "theirs\n")
    s.send_data(0, b"a\n")
    assert s.wait_done().text() == "theirs\na\n"


# ---- who may ----


@pytest.mark.parametrize("change, error", [
    ({"key": nacl.signing.SigningKey.generate()}, "not the controller's"), ({"expires": -5}, "expired"), ({"node_name": "n2"}, "not the controller's for node n1"),
    ({"uid": 12345}, "belongs to user id"), ({"job_id": 99}, "is not here"), ({"use": 9}, "a use that is not known"),
    ({"expires": 100000}, "do the clocks"), ({"use": w.ATTACH}, "is not here"),
])
def test_forged_tickets(world, job, change, error):
    raw, signature = world.ticket(job, **change)
    with pytest.raises(w.Refused, match=error):
        w.Stream(world.port, raw, signature, world.launch_record("true")).take()
    assert not list((world.root / "state" / "runs").glob("*.*.*"))


def test_a_ticket_that_was_changed(world, job):
    raw, signature = world.ticket(job)
    for at in (3, len(raw) // 2, len(raw) - 1):
        with pytest.raises(w.Refused, match="not the controller's"):
            w.Stream(world.port, raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1:], signature, world.launch_record("true")).take()


def test_a_ticket_is_good_for_one_launch(world, job):
    s = world.run(job, "sh", "-c", "echo $$; read x")
    s.until(lambda: s.text())
    twin = w.Stream(world.port, *s.proof, world.launch_record("echo", "second"))  # finds the one that runs
    twin.until(lambda: twin.text() == s.text())
    twin.send_data(0, b"x\n")
    twin.wait_done()
    wait_for(lambda: not step_daemon(world, job).exists())
    with pytest.raises(w.Refused, match="replayed"):
        w.Stream(world.port, *s.proof, world.launch_record("echo", "third")).take()


def test_garbage_on_the_port(world, job):
    for first in (b"", b"G", b"GET / HTTP/1.1\r\n\r\n", b"SPURSTREAM2\n", b"\x16\x03\x01" + b"x" * 500, os.urandom(5000)):
        with socket.create_connection(("127.0.0.1", world.port)) as c:
            c.sendall(first)
            c.shutdown(socket.SHUT_WR)
    for rest in (b"\xff" * 8, b"\0" * 8, b"\x08\0\0\0\x01\x02\0\0" + b"x" * 8, b"\x04\0\0\0\x01\x01\0\0\xff\xff\xff\xff",
                 b"\x04\0\0\0\x02\x01\0\0abcd", os.urandom(4000)):
        with socket.create_connection(("127.0.0.1", world.port)) as c:
            c.settimeout(10)
            c.sendall(w.MAGIC + rest)
            c.shutdown(socket.SHUT_WR)
            while True:
                try:
                    if not c.recv(4096):
                        break
                except ConnectionResetError:
                    break
    assert world.run(job, "echo", "well").wait_done().text() == "well\n"


def test_magic_and_open_in_pieces(world, job):
    raw, signature = world.ticket(job)
    body = w.encode(w.OPEN_R, {"ticket": raw, "signature": signature, "launch": world.launch_record("echo", "slow")})
    c = socket.create_connection(("127.0.0.1", world.port))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in w.MAGIC + len(body).to_bytes(4, "little") + b"\x01\x01\0\0":
        c.sendall(bytes([byte]))
    for at in range(0, len(body), 100):
        c.sendall(body[at:at + 100])
    got = b""
    while b"slow\n" not in got:
        more = c.recv(4096)
        assert more
        got += more


def test_bad_frames_end_the_connection_not_the_step(world, job):
    s = world.run(job, "sh", "-c", "echo up; read x; echo $x")
    s.until(lambda: s.text() == "up\n")
    for frame in (b"\xff" * 8, b"\x02\0\0\0\x01\x04\0\0\xff\xff", b"\x04\0\0\0\x01\x04\0\0\x18\xff\x7f\x00", b"\x06\0\0\0\x01\x05\0\0\x10\x01\x18\xff\xff\x03"):
        s.s.sendall(frame)
        while s.frame():
            pass
        s.close()
        fresh = world.again(s)
        fresh.proof = s.proof
        fresh.until(lambda: hasattr(fresh, "welcome"))
        s = fresh
    s.send_data(0, b"fine\n")
    assert s.wait_done().text() == "up\nfine\n"


# ---- files ----


def send_file(world, job, path, data, size=None, **more):
    raw, signature = world.ticket(job, use=w.COPY)
    s = w.Stream(world.port, raw, signature)
    s.until(lambda: hasattr(s, "welcome"))
    s.send(w.FILE, path=str(path), mode=0o750, size=len(data) if size is None else size, **more)
    for at in range(0, len(data), 1 << 16):
        while at + (1 << 16) - s.in_acked > s.welcome["window"]:
            s.take()
        s.send_data(at, data[at:at + (1 << 16)], task=0)
    s.send_data(len(data), b"", task=0)
    return s.wait_done().done


def test_a_file_arrives(world, job):
    data = os.urandom(5_000_000)
    assert send_file(world, job, world.root / "prog", data, mtime_unix=1000000000) == {"wait_status": 0, "text": None}
    st = (world.root / "prog").stat()
    assert (world.root / "prog").read_bytes() == data and st.st_mode & 0o777 == 0o750 and st.st_mtime == 1000000000
    assert "File exists" in send_file(world, job, world.root / "prog", b"new")["text"]
    assert send_file(world, job, world.root / "prog", b"new", force=True)["wait_status"] == 0
    assert (world.root / "prog").read_bytes() == b"new"
    assert "bytes came" in send_file(world, job, world.root / "half", b"abc", size=5)["text"]
    assert "No such file" in send_file(world, job, world.root / "no" / "dir", b"")["text"]
    assert sorted(p.name for p in world.root.iterdir() if p.name.startswith(("prog", "half"))) == ["prog"]
