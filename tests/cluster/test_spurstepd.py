# SPDX-License-Identifier: Apache-2.0
"""The step daemon itself: the real static program, driven over its own protocol."""
import os
import pathlib
import pwd
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

import pytest

import spurtest
import stepwire as w
from spurtest import alive, wait_for

NOBODY = 65534
# One that other users may execute; the one that runs this may be in root's home.
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
ROOT = os.geteuid() == 0
needs_root = pytest.mark.root
CGROUP = pathlib.Path("/sys/fs/cgroup")


def mount_of(kind):
    """Where the version 2 hierarchy, or that of a version 1 controller, can be written to."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        fields = right.split()
        if kind == "v2" and fields[0] == "cgroup2" or fields[0] == "cgroup" and kind in fields[2].split(","):
            path = pathlib.Path(left.split()[4])
            return path if os.access(path, os.W_OK) else None
    return None


HAVE = {w.V2: ROOT and mount_of("v2"), w.V1: ROOT and mount_of("freezer"), w.PROCESS: True}
KINDS = [pytest.param(kind, id=name, marks=[] if HAVE[kind] else pytest.mark.skip(reason=f"no {name} here"))
         for kind, name in ((w.V2, "v2"), (w.V1, "v1"), (w.PROCESS, "process"))]


@pytest.fixture
def root():
    """A directory that everyone may write to; what carries its name in the environment ends with the test."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="stepd-t-"))
    path.chmod(0o1777)
    yield path
    mark = f"SPUR_TEST_ROOT={path}".encode()
    for _ in range(20):
        left = [pid for pid, cmdline, environ in spurtest.processes()
                if pid != os.getpid() and (mark in environ or str(path).encode() in cmdline)]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not left:
            break
        time.sleep(0.02)
    shutil.rmtree(path, ignore_errors=True)


def groups_of(run):
    """The run's cgroups that are there, in all hierarchies."""
    name = f"{run.node}-{run.job_id}.1"
    return [path for path in (*CGROUP.glob("*/spur"), CGROUP / "spur") if (path / name).exists()]


def finish(run):
    """Starts a run and waits for its result."""
    run.start()
    result = run.wait_result()
    run.wait_gone()
    return result


def words(run):
    return run.output.split()


# ---- what becomes of the script ----


@pytest.mark.parametrize("script,status", [
    ("exit 0", 0), ("exit 3", 3 << 8), ("exit 255", 255 << 8), ("kill -9 $$", 9), ("kill -TERM $$", 15),
    ("ulimit -c unlimited; kill -SEGV $$", 11),
])
def test_exit_is_recorded(root, script, status):
    result = finish(w.Run(root, script))
    assert result["wait_status"] == status
    assert 0 < result["start_ms"] <= result["end_ms"]
    assert not (result["never_started"] or result["out_of_memory"] or result["drain_node"] or result["text"])


def test_usage_is_recorded(root):
    result = finish(w.Run(root, "python3 -c 'x = bytearray(60 << 20)'; for i in {1..200000}; do :; done"))
    assert result["max_rss_kb"] > 60 << 10
    assert result["user_cpu_us"] + result["sys_cpu_us"] > 10000


def test_interpreter_that_is_not_there(root):
    run = w.Run(root, "#!/no/such/shell\n")
    assert finish(run)["wait_status"] == 2 << 8
    assert "] error: execve(): bad interpreter(/no/such/shell): No such file or directory\n" in run.output


def test_script_that_is_none(root):
    run = w.Run(root, "true")
    (run.dir / "slurm_script").write_text("\x01\x02nothing")
    assert finish(run)["wait_status"] == 8 << 8
    assert "Exec format error" in run.output


def test_arguments_and_task_pid(root):
    run = w.Run(root, 'echo "$#:$1:$2" $SLURM_TASK_PID $$')
    run.plan["argv"] += ["one", "two words"]
    (run.dir / "plan").write_bytes(w.encode(w.PLAN, run.plan))
    finish(run)
    assert run.output.startswith("2:one:two words ")
    assert words(run)[-1] == words(run)[-2]


def test_result_is_on_disk_before_it_is_told(root):
    strace = shutil.which("strace")
    if not strace:
        pytest.skip("no strace")
    trace = root / "trace"
    wrapper = root / "traced"
    wrapper.write_text(f"#!/bin/sh\nexec {strace} -f -o {trace} -e trace=write,fdatasync,fsync,execve,sendto,sendmsg {w.step_program()} \"$@\"\n")
    wrapper.chmod(0o755)
    run = w.Run(root, "sleep 0.3; exit 7", program=str(wrapper))
    r, wr = os.pipe()
    child = subprocess.Popen([str(wrapper), "run", str(run.dir)], pass_fds=(3, wr), preexec_fn=lambda: os.dup2(wr, 3))
    os.close(wr)
    with os.fdopen(r) as f:
        assert f.readline().startswith("ok ")
    client = run.client()
    client.send(w.SUBSCRIBE)
    assert client.receive()[0] == w.STATUS_T
    kind, result = client.receive()
    assert (kind, result["wait_status"]) == (w.END, 7 << 8)
    client.send(w.ACK)
    child.wait()
    lines = trace.read_text().splitlines()
    synced = max(i for i, line in enumerate(lines) if "fdatasync(" in line)
    told = max(i for i, line in enumerate(lines) if "sendto(" in line)
    assert synced < told
    started = min(i for i, line in enumerate(lines) if "slurm_script" in line and "execve" in line)
    assert min(i for i, line in enumerate(lines) if "write(" in line and os.uname().sysname and "ok " in line) < started


# ---- nothing lives on ----

LEFTOVERS = """
sleep 1000 & echo $!
setsid sleep 1000 & echo $!
(setsid bash -c 'echo $$; exec sleep 1000' &)
(trap '' TERM HUP INT; setsid bash -c 'trap "" TERM; echo $$; while :; do sleep 1; done' &)
nohup sh -c 'sh -c "sleep 1000 & echo \\$!" &' 2>/dev/null
sleep 0.3
"""


@pytest.mark.parametrize("containment", KINDS)
def test_leftovers_die(root, containment):
    run = w.Run(root, LEFTOVERS, containment=containment)
    assert finish(run)["wait_status"] == 0
    pids = [int(p) for p in words(run)]
    assert len(pids) == 5
    assert not [p for p in pids if alive(p)]


@pytest.mark.parametrize("containment", KINDS)
def test_forking_crowd_dies(root, containment):
    """Processes that fork as fast as they can, each in a session of its own."""
    run = w.Run(root, 'cat >crowd.py <<EOF\nimport os, sys\nopen("ready", "w")\nn = 0\nwhile n < 3000:\n'
                      '    n += 1\n    if os.fork(): os._exit(0)\n    os.setsid()\nEOF\n'
                      f'for i in 1 2 3; do {sys.executable} crowd.py & done\nuntil [ -e ready ]; do sleep 0.01; done\nexit 4',
                containment=containment)
    result = finish(run)
    assert result["wait_status"] == 4 << 8 and not result["drain_node"]
    mark = f"SPUR_RUN_ID={run.plan['run_id']}".encode()
    assert not [pid for pid, _, environ in spurtest.processes() if mark in environ]


@needs_root
@pytest.mark.parametrize("containment", KINDS[:2])
def test_leaving_the_cgroup_does_not_help(root, containment):
    where = mount_of("v2" if containment == w.V2 else "freezer")
    run = w.Run(root, f"setsid bash -c 'echo $$ >{where}/cgroup.procs && echo $$; exec sleep 1000' &\nsleep 0.3", containment=containment)
    finish(run)
    assert len(words(run)) == 1 and not alive(int(words(run)[0]))


@needs_root
def test_what_cant_be_killed_is_told(root):
    """A process in a frozen group of version 1 does not take SIGKILL."""
    freezer = mount_of("freezer")
    if not freezer or not HAVE[w.V2]:
        pytest.skip("needs a version 1 freezer beside version 2")
    group = freezer / f"stepd-test-{os.getpid()}"
    group.mkdir()
    run = w.Run(root, f"setsid sleep 1000 & echo $! | tee {group}/cgroup.procs; echo FROZEN >{group}/freezer.state; sleep 0.1",
                unkillable_ms=300, containment=w.V2)
    try:
        run.start()
        result = run.wait_result()
        assert result["drain_node"] and words(run)[0] in result["text"].split()
        assert result["wait_status"] == 0
    finally:
        (group / "freezer.state").write_text("THAWED")
        wait_for(lambda: not alive(int(words(run)[0])), what="the thawed process to die")
        wait_for(lambda: not group.rmdir() if not (group / "cgroup.procs").read_text() else False, what="the group to go")
        for path in groups_of(run):
            (path / f"{run.node}-{run.job_id}.1" / "batch").rmdir()
            (path / f"{run.node}-{run.job_id}.1").rmdir()


@needs_root
@pytest.mark.parametrize("containment", KINDS)
def test_no_cgroup_is_left(root, containment):
    run = w.Run(root, "mkdir -p /proc/self; true", containment=containment, mem_limit_mb=100)
    finish(run)
    assert not groups_of(run)


@needs_root
def test_a_sweep_removes_groups_that_were_never_noted(root):
    run = w.Run(root, "true")
    made = [path / f"{run.node}-{run.job_id}.1" / "batch" for path in (*CGROUP.glob("*/spur"), CGROUP / "spur") if path.exists()]
    for path in made:
        path.mkdir(parents=True)
    assert run.sweep().returncode == 0 and run.result()["never_started"]
    assert made and not groups_of(run)


# ---- requests ----


@pytest.mark.parametrize("containment", KINDS)
def test_terminate_then_kill(root, containment):
    run = w.Run(root, "trap '' TERM; setsid sleep 1000 & echo there; while :; do sleep 0.1; done", containment=containment)
    run.start()
    run.wait_output("there")
    client, began = run.client(), time.monotonic()
    assert client.ask(w.TERMINATE_T, w.TERMINATE, kill_wait_ms=700, why="DUE TO TIME LIMIT")[0] == w.OK
    assert client.ask(w.TERMINATE_T, w.TERMINATE, kill_wait_ms=600000)[0] == w.OK  # no longer for it
    assert run.wait_result()["wait_status"] == 9
    assert time.monotonic() - began >= 0.65
    assert run.output.count("CANCELLED") == 1
    line = [line for line in run.output.splitlines() if "CANCELLED" in line][0]
    stamp, rest = line.split("] error: ")
    assert rest.startswith(f"*** JOB {run.job_id} ON {run.node} CANCELLED AT 2") and rest.endswith(" DUE TO TIME LIMIT ***")
    assert len(stamp) == len("[2026-12-01T22:37:18.131")


def test_terminate_may_be_shortened(root):
    run = w.Run(root, "trap '' TERM; echo there; while :; do sleep 0.1; done")
    run.start()
    run.wait_output("there")
    client = run.client()
    client.ask(w.TERMINATE_T, w.TERMINATE, kill_wait_ms=600000)
    client.ask(w.TERMINATE_T, w.TERMINATE, kill_wait_ms=0)
    assert run.wait_result()["wait_status"] == 9


def test_terminate_wakes_what_is_stopped(root):
    run = w.Run(root, "trap 'echo got TERM; exit 6' TERM; echo there; kill -STOP $$; while :; do sleep 0.02; done")
    run.start()
    run.wait_output("there")
    client = run.client()
    batch = client.ask(w.GET_STATUS)[1]["batch_pid"]
    wait_for(lambda: pathlib.Path(f"/proc/{batch}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T", what="the stop")
    client.ask(w.TERMINATE_T, w.TERMINATE, kill_wait_ms=20000)
    assert run.wait_result()["wait_status"] == 6 << 8
    assert "got TERM" in run.output
    assert "DUE to SIGNAL Terminated ***" in run.output


@pytest.mark.parametrize("containment", KINDS)
def test_signals(root, containment):
    run = w.Run(root, "trap 'echo batch' USR1\n(trap 'echo child' USR1; echo ready; while :; do sleep 0.05; done) &\n"
                      "wait; while :; do sleep 0.05; done", containment=containment)
    run.start()
    run.wait_output("ready")
    client = run.client()
    assert client.ask(w.SIGNAL_T, w.SIGNAL, signal=signal.SIGUSR1, batch_only=True)[0] == w.OK
    run.wait_output("batch")
    assert "child" not in run.output
    client.ask(w.SIGNAL_T, w.SIGNAL, signal=signal.SIGUSR1)
    run.wait_output("child")
    wait_for(lambda: run.output.count("batch") == 2, what="the second signal")
    assert client.ask(w.SIGNAL_T, w.SIGNAL, signal=77)[0] == w.ERROR_T
    assert client.ask(w.SIGNAL_T, w.SIGNAL, signal=0)[0] == w.ERROR_T
    client.ask(w.TERMINATE_T, w.TERMINATE, kill_wait_ms=0)
    run.wait_result()


def test_status_subscribe_and_acknowledge(root):
    run = w.Run(root, "until [ -e go ]; do sleep 0.02; done; exit 9")
    run.start()
    one, other = run.client(), run.client()
    kind, status = one.ask(w.SUBSCRIBE)
    assert one.ask(w.GET_STATUS)[1]["n_processes"] >= 1
    assert kind == w.STATUS_T and status["job_id"] == run.job_id and status["pid"] == run.pid
    assert (status["min_version"], status["max_version"]) == (1, 1) and status["program"]
    wait_for(lambda: other.ask(w.GET_STATUS)[1]["state"] == w.RUNNING, what="running")
    other.ask(w.SUBSCRIBE)
    (root / "go").touch()
    for client in (one, other):
        kind, result = client.receive()
        assert kind == w.END and result["wait_status"] == 9 << 8
        assert run.result() == result  # on disk before it was told
    assert alive(run.pid)  # nobody has taken it yet
    one.send(w.ACK)
    run.wait_gone()
    assert not (run.dir / "sock").exists()


def test_waits_for_nobody(root):
    """Without a subscriber the result is on disk and the daemon is gone; with one that goes away too."""
    run = w.Run(root, "until [ -e go ]; do sleep 0.02; done")
    run.start()
    client = run.client()
    client.ask(w.SUBSCRIBE)
    client.close()
    (root / "go").touch()
    run.wait_result()
    run.wait_gone()


def test_hold_without_script(root):
    run = w.Run(root)
    run.start()
    client = run.client()
    kind, status = client.ask(w.SUBSCRIBE)
    assert status["state"] == w.RUNNING and status["batch_pid"] == 0
    client.send(w.TERMINATE_T, w.TERMINATE, kill_wait_ms=30000)
    assert {client.receive()[0], client.receive()[0]} == {w.OK, w.END}
    assert run.result()["wait_status"] == 0


# ---- the protocol, by strangers and from the future ----


@pytest.fixture
def idle(root):
    run = w.Run(root, "sleep 1000")
    run.start()
    yield run
    client = run.client()
    client.ask(w.TERMINATE_T, w.TERMINATE, kill_wait_ms=0)
    run.wait_result()


def test_newer_frames_are_refused_politely(idle):
    client = idle.client()
    client.send(w.GET_STATUS, version=2)
    kind, error = client.receive()
    assert kind == w.ERROR_T and error["error"] == 9 and "1 to 1" in error["text"]
    assert client.ask(w.GET_STATUS)[0] == w.STATUS_T  # and the connection goes on


def test_unknown_requests_are_refused(idle):
    client = idle.client()
    assert client.ask(17)[1]["error"] == 18
    client.socket.sendall(struct.pack("<IBBH", 3, 1, w.SIGNAL_T, 0) + b"\xff\xff\xff")
    assert client.receive()[0] == w.ERROR_T
    client.send(w.ACK)  # before the end: of no effect
    assert client.ask(w.GET_STATUS)[0] == w.STATUS_T


@pytest.mark.parametrize("noise", [b"\xff" * 64, b"GET / HTTP/1.1\r\n\r\n", struct.pack("<IBBH", 1 << 30, 1, 1, 0), b"\0" * 64])
def test_noise_is_dropped(idle, noise):
    client = idle.client()
    client.socket.sendall(noise)
    with pytest.raises((EOFError, ConnectionError)):
        while True:
            client.receive()
    assert idle.client().ask(w.GET_STATUS)[0] == w.STATUS_T


def test_frames_in_pieces_and_in_heaps(idle):
    client = idle.client()
    frame = struct.pack("<IBBH", 0, 1, w.GET_STATUS, 0)
    for byte in frame:
        client.socket.sendall(bytes([byte]))
    assert client.receive()[0] == w.STATUS_T
    client.socket.sendall(frame * 300)
    assert all(client.receive()[0] == w.STATUS_T for _ in range(300))


def test_many_clients(idle):
    clients = [idle.client() for _ in range(8)]
    assert all(c.ask(w.GET_STATUS)[0] == w.STATUS_T for c in clients)
    with pytest.raises((EOFError, ConnectionError)):
        idle.client().ask(w.GET_STATUS)
    clients[0].close()
    wait_for(lambda: _answers(idle), what="a free place")


def _answers(run):
    try:
        return run.client().ask(w.GET_STATUS)[0] == w.STATUS_T
    except (EOFError, ConnectionError):
        return False


@needs_root
def test_other_users_are_kept_out(idle):
    assert stat.S_IMODE((idle.dir / "sock").stat().st_mode) == 0o600
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(idle.dir / 'sock')!r})"
    got = subprocess.run([PYTHON, "-c", code], user=NOBODY, group=NOBODY, capture_output=True, text=True)
    assert "PermissionError" in got.stderr
    for name in ("plan", "log"):
        assert stat.S_IMODE((idle.dir / name).stat().st_mode) & 0o077 in (0, 0o044)  # spurd writes them 0600


# ---- life and death of the daemon ----


@needs_root
def test_full_disk_loses_no_exit_code(root):
    """The result waits in the daemon until the disk takes it."""
    small = root / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0711", "tmpfs", str(small)], capture_output=True).returncode:
        pytest.skip("no mounts here")
    try:
        run = w.Run(small, f"cd {root}; echo there; until [ -e go ]; do sleep 0.02; done; exit 7", std_out=str(root / "out"), work_dir=str(root))
        run.start()
        run.wait_output("there")
        with open(small / "filler", "wb", buffering=0) as f:
            for size in (4096, 1):
                try:
                    while True:
                        f.write(b"x" * size)
                except OSError:
                    pass
        with open(run.dir / "log", "ab", buffering=0) as f:  # the page that the log has room in
            pad = 4096 - f.tell() % 4096
            f.write(b"\0" * pad)
        (root / "go").touch()
        client = run.client()
        wait_for(lambda: client.ask(w.GET_STATUS)[1]["state"] == w.ENDED, what="the end")
        assert not run.result() and alive(run.pid)
        kind, _ = client.ask(w.SUBSCRIBE)
        kind, result = client.receive()
        assert (kind, result["wait_status"]) == (w.END, 7 << 8)
        client.close()
        (small / "filler").unlink()
        os.truncate(run.dir / "log", (run.dir / "log").stat().st_size - pad)
        assert run.wait_result()["wait_status"] == 7 << 8
        run.wait_gone()
    finally:
        subprocess.run(["umount", "-l", str(small)])


def test_one_daemon_a_run(root):
    run = w.Run(root, "echo ran; until [ -e go ]; do sleep 0.02; done")
    run.start()
    run.wait_output("ran")
    assert run.start(check=False).startswith("error ")
    (root / "go").touch()
    run.wait_result()
    run.wait_gone()
    assert run.start(check=False).startswith("error ")  # nor another one afterwards
    assert run.output == "ran\n"


def test_signals_meant_for_spurd_do_nothing(root):
    run = w.Run(root, "echo there; until [ -e go ]; do sleep 0.02; done; exit 2")
    run.start()
    run.wait_output("there")
    for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
        os.kill(run.pid, sig)
    assert run.client().ask(w.GET_STATUS)[0] == w.STATUS_T
    assert os.getsid(run.pid) != os.getsid(0)
    (root / "go").touch()
    assert run.wait_result()["wait_status"] == 2 << 8


@pytest.mark.parametrize("containment", KINDS)
def test_sweep_after_a_killed_daemon(root, containment):
    run = w.Run(root, "setsid sleep 1000 & echo $! $$; wait", containment=containment)
    run.start()
    wait_for(lambda: len(words(run)) == 2, what="the script")
    assert run.sweep().returncode == 3  # a daemon lives
    os.kill(run.pid, signal.SIGKILL)
    run.wait_gone()
    wait_for(lambda: not alive(int(words(run)[1])), what="the script to die with its daemon")
    assert run.sweep().returncode == 0
    assert not [p for p in words(run) if alive(int(p))]
    result = run.result()
    assert result["wait_status"] == 9 and "step daemon" in result["text"]
    assert run.sweep().returncode == 0 and run.result() == result  # once
    assert not groups_of(run)


def test_sweep_keeps_the_true_exit_code(root):
    """The daemon died between the script's exit and the end of its leftovers."""
    run = w.Run(root, "true")
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (run.dir / "log").write_bytes(w.log_frame({"kind": 1, "pid": 1, "boot_id": boot, "at_ms": 5, "containment": w.PROCESS}) +
                                  w.log_frame({"kind": 3, "wait_status": 7 << 8, "at_ms": 77}) + b"torn")
    assert run.sweep().returncode == 0
    result = run.result()
    assert (result["wait_status"], result["end_ms"], result["text"]) == (7 << 8, 77, None)


def test_sweep_of_an_earlier_boot(root):
    run = w.Run(root, "true")
    (run.dir / "log").write_bytes(w.log_frame({"kind": 1, "pid": os.getpid(), "boot_id": "x" * 36, "at_ms": 5}))
    assert run.sweep().returncode == 0
    assert run.result()["node_failed"] and run.result()["text"] == "node rebooted"
    assert run.start(check=False).startswith("error ")


def test_sweep_of_what_never_began(root):
    run = w.Run(root, "echo ran")
    assert run.sweep().returncode == 0
    assert run.result()["never_started"]
    assert run.start(check=False).startswith("error ")
    assert run.output == ""


@pytest.mark.parametrize("spoil", [lambda p: p[:-3], lambda p: b"", lambda p: b"\xff" * 40, lambda p: p[2:] + b"\x08\x63"])
def test_plans_that_are_none(root, spoil):
    """Cut off, empty, noise, and one of a version from the future."""
    run = w.Run(root, "echo ran")
    (run.dir / "plan").write_bytes(spoil((run.dir / "plan").read_bytes()))
    assert run.start(check=False).startswith("error ")
    assert run.output == "" and not run.entries()


@needs_root
@pytest.mark.parametrize("kind", ["v2", "freezer", "pids", "memory", "name=systemd"])
def test_the_starters_cgroup_may_be_killed(root, kind):
    """As a service manager does it with spurd's: all in it get SIGKILL."""
    mount = mount_of(kind)
    if not mount:
        pytest.skip(f"no {kind} hierarchy")
    group = mount / f"stepd-starter-{os.getpid()}"
    group.mkdir()
    try:
        run = w.Run(root, "echo there; until [ -e go ]; do sleep 0.02; done; exit 3")
        r, wr = os.pipe()

        def enter():
            (group / "cgroup.procs").write_text("0")
            os.dup2(wr, 3)

        subprocess.Popen([run.program, "run", str(run.dir)], pass_fds=(3, wr), preexec_fn=enter).wait()
        os.close(wr)
        with os.fdopen(r) as f:
            run.pid = int(f.readline().split()[1])
        run.wait_output("there")
        for pid in (group / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        assert _answers(run)
        (root / "go").touch()
        assert run.wait_result()["wait_status"] == 3 << 8
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), what="an empty group")
        group.rmdir()


def test_is_static():
    if "asan" in spurtest.BUILD.name or "tsan" in spurtest.BUILD.name:
        pytest.skip("a sanitizer can't be linked statically")
    elf = pathlib.Path(w.step_program()).read_bytes()
    assert elf[:4] == b"\x7fELF"
    offset, = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    kinds = {struct.unpack_from("<I", elf, offset + i * size)[0] for i in range(count)}
    assert 3 not in kinds  # no interpreter: nothing of the image is loaded


# ---- what the script finds ----


@needs_root
def test_identity(root):
    run = w.Run(root, "id -u; id -g; id -G; umask; pwd; grep -E '^(Cap(Eff|Prm|Inh|Amb)|Sig(Blk|Ign)|NoNewPrivs)' /proc/self/status;"
                      "cat /proc/self/oom_score_adj; ls /proc/$$/fd; ps -o sid=,pgid= -p $$; echo $$",
                uid=NOBODY, gid=65534, groups=[65534, 4, 20], umask=0o027, work_dir="/")
    assert finish(run)["wait_status"] == 0, run.output
    lines = run.output.splitlines()
    assert lines[:2] == ["65534", "65534"]
    assert sorted(lines[2].split(), key=int) == ["4", "20", "65534"]
    assert lines[3:5] == ["0027", "/"]
    status = dict(line.split(":\t") for line in lines if ":\t" in line)
    assert all(int(status[k], 16) == 0 for k in ("CapEff", "CapPrm", "CapInh", "CapAmb", "SigBlk", "SigIgn"))
    assert status["NoNewPrivs"] == "0"
    rest = [line for line in lines[5:] if ":\t" not in line]
    assert rest[0] == "0"
    assert [fd for fd in rest[1:-2] if fd != "255"] == ["0", "1", "2"]  # 255 is bash's own, for its script
    sid, pgid = rest[-2].split()
    assert sid == pgid == rest[-1]
    assert pathlib.Path(run.out).stat().st_uid == NOBODY
    assert stat.S_IMODE(pathlib.Path(run.out).stat().st_mode) == 0o640


@needs_root
def test_no_descriptor_but_three(root):
    leak = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leak, True)
    run = w.Run(root, f"#!{PYTHON}\nimport os\nprint(sorted(os.listdir('/proc/self/fd'), key=int))\n", uid=NOBODY, gid=NOBODY)
    finish(run)
    os.close(leak)
    assert run.output.strip() == "['0', '1', '2', '3']"  # 3: the listing itself


def test_limits(root):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    run = w.Run(root, "ulimit -Sn; ulimit -Hn; ulimit -Sc; ulimit -Ss; ulimit -Su",
                rlimits=[{"name": "NOFILE", "soft": 77}, {"name": "CORE", "soft": 0}, {"name": "STACK", "soft": 1 << 20},
                         {"name": "NPROC", "soft": 5000}, {"name": "NONSENSE", "soft": 1}])
    finish(run)
    assert words(run) == ["77", str(hard), "0", "1024", "5000"]


@needs_root
def test_limit_beyond_what_is_allowed(root):
    """Told in the job's stderr, and the highest that can be had."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    run = w.Run(root, "ulimit -Sn", rlimits=[{"name": "NOFILE", "soft": 1 << 40}])
    finish(run)
    assert f"Can't propagate RLIMIT_NOFILE of {1 << 40} from submit host" in run.output
    assert words(run)[-1] == str(hard)


@needs_root
def test_missing_work_directory(root):
    run = w.Run(root, "pwd", uid=NOBODY, gid=NOBODY, work_dir="/no/such", std_out=f"/no/such/stepd-test-{os.getpid()}.out")
    result = finish(run)
    path = pathlib.Path(f"/tmp/stepd-test-{os.getpid()}.out")
    text = path.read_text()
    path.unlink()
    assert result["wait_status"] == 0
    lines = text.splitlines()
    assert lines[-1] == "/tmp"
    assert lines[0].endswith("] error: couldn't chdir to `/no/such': No such file or directory: going to /tmp instead")


@needs_root
def test_closed_work_directory_names_itself(root):
    closed = root / "closed"
    closed.mkdir(mode=0o700)
    run = w.Run(root, "pwd", uid=NOBODY, gid=NOBODY, work_dir=str(closed), std_out=str(root / "x.out"))
    finish(run)
    assert f"couldn't chdir to `{closed}': Permission denied" in (root / "x.out").read_text()


@needs_root
def test_output_is_opened_as_the_user(root):
    closed = root / "closed"
    closed.mkdir(mode=0o700)
    run = w.Run(root, "true", uid=NOBODY, gid=NOBODY, std_out=str(closed / "x.out"))
    result = finish(run)
    assert result["wait_status"] == 53 and not result["never_started"]
    assert result["text"] == f"could not open output file {closed / 'x.out'}: Permission denied"
    assert not list(closed.iterdir())


def test_output_directories_are_made(root):
    run = w.Run(root, "echo hello", std_out=str(root / "a/b/x.out"))
    assert finish(run)["wait_status"] == 0
    assert (root / "a/b/x.out").read_text() == "hello\n"


def test_truncate_and_append(root):
    out = root / "x.out"
    for append, expected in ((True, "old\nnew\n"), (False, "new\n")):
        out.write_text("old\n")
        finish(w.Run(root, "echo new", std_out=str(out), append=append))
        assert out.read_text() == expected


def test_stderr_and_stdin(root):
    (root / "in").write_text("from a file\n")
    run = w.Run(root, "cat; echo bad >&2", std_in=str(root / "in"), std_err=str(root / "x.err"))
    finish(run)
    assert run.output == "from a file\n" and (root / "x.err").read_text() == "bad\n"
    run = w.Run(root, "echo one; echo two >&2; echo three", std_err=str(root / "same"), std_out=str(root / "same"))
    finish(run)
    assert (root / "same").read_text() == "one\ntwo\nthree\n"
    run = w.Run(root, "cat")
    finish(run)
    assert run.output == ""


def test_missing_input(root):
    run = w.Run(root, "cat", std_in=str(root / "nofile"))
    result = finish(run)
    assert result["wait_status"] == 53 and str(root / "nofile") in result["text"]


def test_output_to_a_pipe_that_nobody_reads_can_be_ended(root):
    """Opening it hangs, in the job's process and not in the daemon's."""
    fifo = root / "fifo"
    os.mkfifo(fifo)
    fifo.chmod(0o666)
    run = w.Run(root, "echo x", std_out=str(fifo))
    run.start()
    client = run.client()
    assert client.ask(w.GET_STATUS)[1]["state"] == w.STARTING
    client.ask(w.TERMINATE_T, w.TERMINATE, kill_wait_ms=1000)
    assert run.wait_result()["wait_status"] == 15


@needs_root
@pytest.mark.parametrize("containment", KINDS)
def test_memory_limit(root, containment):
    if not mount_of("memory") and not (mount_of("v2") and "memory" in (mount_of("v2") / "cgroup.controllers").read_text()):
        pytest.skip("no memory controller")
    run = w.Run(root, f"{sys.executable} -c 'x = bytearray(300 << 20)'; echo went on; exit 0", mem_limit_mb=60, containment=containment)
    result = finish(run)
    if containment == w.PROCESS:
        assert not result["out_of_memory"]  # nothing to limit it with: told by the containment's name
        return
    assert result["out_of_memory"] and result["wait_status"] == 0
    assert "went on" in run.output
    assert f"Detected 1 oom_kill event in StepId={run.job_id}.batch. Some of the step tasks have been OOM Killed." in run.output
    assert not groups_of(run)


# ---- without privilege ----


@needs_root
def test_as_an_ordinary_user(root):
    """The process tree holds the run together; other users' jobs are refused."""
    program = root / "spurstepd"
    shutil.copy(w.step_program(), program)
    program.chmod(0o755)
    for name in ("stepwire.py", "spurtest.py"):  # the checkout may be in a place of root's own
        shutil.copy(pathlib.Path(__file__).with_name(name), root)
    script = f"""
import os, sys
sys.path.insert(0, {str(root)!r})
sys.dont_write_bytecode = True
import stepwire as w
run = w.Run({str(root)!r}, "setsid sleep 1000 & echo $!; id -u; sleep 0.2; exit 3", program={str(program)!r})
run.start()
c = run.client()
print(c.ask(w.SUBSCRIBE)[1]["containment"])
print(c.receive()[1]["wait_status"])
c.send(w.ACK)
pid = run.output.split()[0]
print(os.path.exists("/proc/" + pid) and open("/proc/" + pid + "/stat").read().split()[2] != "Z")
print(run.output.split()[1])
run.plan["uid"] = 1
other = w.Run({str(root)!r}, "echo ran", program={str(program)!r})
other.plan["uid"] = 1
(other.dir / "plan").write_bytes(w.encode(w.PLAN, other.plan))
other.start()
result = other.wait_result()
print(result["never_started"], result["text"])
"""
    got = subprocess.run([PYTHON, "-c", script], user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True,
                         env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, cwd=root)
    lines = got.stdout.splitlines()
    assert lines[:4] == ["process tree", str(3 << 8), "False", str(NOBODY)], got.stderr
    assert lines[4].startswith("1 ") and "not root" in lines[4]


@needs_root
def test_state_directory_that_is_closed_to_the_user(root):
    """The script runs from a copy of the user's own, which goes with the run."""
    closed = root / "closed"
    closed.mkdir(mode=0o700)
    run = w.Run(closed, 'echo $0; ls -ld $0 ${0%/*} | cut -c1-10,23-32; echo "$1"; exit 5', uid=NOBODY, gid=NOBODY, work_dir=str(root),
                std_out=str(root / "out"))
    run.plan["argv"].append("an argument")
    (run.dir / "plan").write_bytes(w.encode(w.PLAN, run.plan))
    assert finish(run)["wait_status"] == 5 << 8
    lines = run.output.splitlines()
    assert lines[0].startswith("/tmp/spur-script-") and lines[0].endswith("/slurm_script")
    assert lines[1].startswith("drwx------") and lines[2].startswith("-rwx------") and lines[3] == "an argument"
    assert not pathlib.Path(lines[0]).parent.exists()


# ---- what an older version wrote ----

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "step"


@needs_root
def test_plan_of_version_1(root):
    run = w.Run(root)
    shutil.copy(GOLDEN / "plan-v1.bin", run.dir / "plan")
    assert finish(run)["wait_status"] == 3 << 8


def test_logs_of_version_1(root):
    run = w.Run(root)
    shutil.copy(GOLDEN / "log-running-v1.bin", run.dir / "log")
    assert run.sweep().returncode == 0 and run.result()["node_failed"]
    before = (GOLDEN / "log-ended-v1.bin").read_bytes()
    (run.dir / "log").write_bytes(before)
    assert run.sweep().returncode == 0
    assert (run.dir / "log").read_bytes() == before
    result = run.result()
    assert (result["wait_status"], result["out_of_memory"], result["text"], result["end_ms"]) == (7 << 8, 1, "as it was", 1796171506000)
