# SPDX-License-Identifier: Apache-2.0
"""The node agent's outside: flags, files, life. What it does for the controller is in tests/unit/spurd/test_agent.c, with
forged and repeated calls; here it works with the real one."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import time

import pytest

import spurtest
from spurtest import BIN, Cluster, alive, wait_for

NOBODY = 65534
needs_root = pytest.mark.root


def spurd(*arguments, env=None, timeout=20):
    return subprocess.run([str(BIN / "spurd"), *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})})


# ---- flags ----


def test_version_and_help():
    assert spurd("--version").stdout == "spur 0.1.0\n" == spurd("-V").stdout
    got = spurd("--help")
    assert got.returncode == 0 and got.stderr == ""
    for flag in ("--controller", "--listen", "--hostname", "--address", "--state-dir", "--token", "--controller-key", "--config",
                 "--gres", "--gres-files", "--gres-config", "--cpus", "--memory-mb", "--features", "--containment", "--log-level", "--log-format", "--log-file",
                 "--ready-file", "--ready-fd", "--foreground", "--test-clock-scale", "--test-faults"):
        assert flag in got.stdout


@pytest.mark.parametrize("arguments, said", [
    (["--bogus"], "unrecognized option '--bogus'"),
    (["--cpus"], "requires an argument"),
    (["stray"], "unexpected argument 'stray'"),
    (["--cpus=0"], "--cpus takes a number from 1 to 65536, not '0'"),
    (["--cpus=two"], "not 'two'"),
    (["--memory-mb=-1"], "not '-1'"),
    (["--log-level=loud"], "--log-level takes error, warn, info or debug"),
    (["--log-format=xml"], "--log-format takes text or json"),
    (["--containment=docker"], "--containment takes auto"),
    (["--gres-files=/dev/null"], "--gres-files goes with --gres"),
    (["-N", "a/b"], "'a/b' is no name for a node"),
    (["-N", ""], "is no name for a node"),
    (["--test-clock-scale=10"], "needs a --state-dir of its own"),
])
def test_wrong_flags_are_2(arguments, said):
    got = spurd(*arguments)
    assert got.returncode == 2 and said in got.stderr and got.stdout == ""


def test_bad_configuration(tmp_path):
    conf = tmp_path / "spur.conf"
    conf.write_text('cluster_name = "test"\n[logging]\nlevle = "debug"\nformat = 5\n')
    got = spurd("-f", conf, "--state-dir", tmp_path / "s")
    assert got.returncode == 1 and "levle" in got.stderr and "format" in got.stderr and str(conf) in got.stderr
    got = spurd("-f", tmp_path / "nofile", "--state-dir", tmp_path / "s")
    assert got.returncode == 1 and "nofile" in got.stderr


def test_bad_key_files(tmp_path):
    key = tmp_path / "controller.pub"
    key.write_text("nonsense\n")
    got = spurd("--controller-key", key, "--state-dir", tmp_path / "s")
    assert got.returncode == 1 and "holds no public key" in got.stderr
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "node.key").write_text("00" * 32 + "\n")
    (tmp_path / "t" / "node.key").chmod(0o644)
    got = spurd("--state-dir", tmp_path / "t")
    assert got.returncode == 1 and "node.key" in got.stderr


# ---- life ----


def test_registers_within_a_second(new_cluster):
    c = new_cluster(nodes=0)
    began = time.monotonic()
    node = c.add_node("n1")
    assert time.monotonic() - began < 1.0 * spurtest.PATIENCE
    assert node.ready == {"listen": node.ready["listen"], "pid": str(node.pid), "node": "n1"}
    c.wait_idle(1.0)


def test_ready_fd_and_log_settings(new_cluster):
    c = new_cluster(nodes=0)
    token = (c.state / "join.token").read_text().strip()
    conf = c.root / "node.conf"
    conf.write_text(f'cluster_name = "test"\n[logging]\nlevel = "debug"\nformat = "json"\nfile = "{c.root}/spurd.log"\n')
    r, w = os.pipe()
    p = subprocess.Popen([str(BIN / "spurd"), f"--controller=127.0.0.1:{c.port}", "--listen=127.0.0.1:0", "-N", "n7", "--state-dir",
                          str(c.root / "n7"), "--ready-fd", str(w), "-f", str(conf), "-D"], pass_fds=(w,),
                         env={**os.environ, **c.daemon_env, "SPUR_JOIN_TOKEN": token})
    os.close(w)
    with os.fdopen(r) as f:
        text = f.read()  # to the end: the descriptor is closed afterwards
    assert "node=n7\n" in text and f"pid={p.pid}\n" in text
    p.terminate()
    assert p.wait(10) == 0
    log = (c.root / "spurd.log").read_text()
    assert all(line.startswith('{"time":') for line in log.splitlines()) and "registered as node n7" in log
    assert str(conf) not in log


def test_two_agents_can_not_share_a_directory(cluster):
    got = spurd(f"--controller=127.0.0.1:{cluster.port}", "--listen=127.0.0.1:0", "--state-dir", cluster.root / "n1")
    assert got.returncode == 1 and "another spurd uses" in got.stderr


def test_port_in_use(cluster):
    got = spurd(f"--controller=127.0.0.1:{cluster.port}", f"--listen=127.0.0.1:{cluster.port}", "--state-dir", cluster.root / "other")
    assert got.returncode == 1 and str(cluster.port) in got.stderr


def test_wildcard_address_registers_one_that_leads_here(new_cluster):
    c = new_cluster(nodes=0)
    c.add_node("n1", extra=["--listen", "[::]:0"])
    c.wait_idle()
    assert "127.0.0.1" in c.run("scontrol -o show node n1").stdout or "NodeAddr=" in c.run("scontrol -o show node n1").stdout
    job = c.batch("echo ran")
    c.wait_state(job, "COMPLETED")


def test_given_sizes_features_and_address(new_cluster):
    c = new_cluster(nodes=0)
    c.add_node("n1", cpus=3, memory_mb=1234, extra=["--features", "ib,a100", "--address", "127.0.0.1"])
    c.wait_idle()
    shown = c.run("scontrol -o show node n1").stdout
    assert "CPUTot=3" in shown and "RealMemory=1234" in shown and "ib,a100" in shown


def test_controllers_key_from_a_file(new_cluster):
    c = new_cluster(nodes=0)
    c.add_node("n1", extra=["--controller-key", c.state / "controller.pub"])
    c.wait_idle()
    assert not (c.root / "n1" / "controller.pub").exists()
    job = c.batch("true")
    c.wait_state(job, "COMPLETED")
    wrong = c.root / "wrong.pub"
    wrong.write_text("ab" * 32 + "\n")
    c.add_node("n2", extra=["--controller-key", wrong], start=False).spawn()
    wait_for(lambda: "another key" in c.nodes["n2"].log, what="the refusal in the log")
    assert not c.nodes["n2"].ready_path.exists()


def test_stops_within_two_seconds_and_leaves_steps_alone(cluster):
    job = cluster.batch("echo there; until [ -e go ]; do sleep 0.05; done; exit 5")
    cluster.wait_state(job, "RUNNING")
    wait_for(lambda: "there" in cluster.output(job), what="the job's output")
    cluster.ctld.kill()
    assert cluster.node.stop() < 2.0
    steps = [pid for pid, cmdline in cluster.ours() if b"spurstepd" in cmdline]
    assert len(steps) == 1
    (cluster.work / "go").touch()
    wait_for(lambda: not alive(steps[0]), what="the step daemon to end by itself")
    cluster.start_ctld()
    cluster.node.start()
    cluster.wait_state(job, "FAILED")
    assert cluster.sacct(job, "State,ExitCode") == {"State": "FAILED", "ExitCode": "5:0"}


@needs_root
def test_the_whole_cgroup_may_be_killed(new_cluster):
    """As a service manager restarts the agent, whatever it asks of the unit."""
    mount = next((pathlib.Path(line.split()[4]) for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                  if " - cgroup2 " in line), None)
    if not mount or not (mount / "cgroup.procs").exists() or not os.access(mount / "cgroup.procs", os.W_OK):
        pytest.skip("no version 2 hierarchy")
    c = new_cluster()
    group = mount / f"spurd-test-{os.getpid()}"
    group.mkdir()
    try:
        c.node.stop()
        c.node.spawn(preexec_fn=lambda: (group / "cgroup.procs").write_text("0")).wait_ready()
        job = c.batch("echo there; until [ -e go ]; do sleep 0.05; done; exit 6")
        c.wait_state(job, "RUNNING")
        wait_for(lambda: "there" in c.output(job), what="the job's output")
        assert str(c.node.pid) in (group / "cgroup.procs").read_text().split()
        for pid in (group / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        c.node.process.wait(10)
        c.node.start()
        (c.work / "go").touch()
        c.wait_state(job, "FAILED")
        assert c.sacct(job, "State,ExitCode")["ExitCode"] == "6:0"
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), what="an empty group")
        group.rmdir()


@pytest.mark.parametrize("kind", ["auto", "cgroup-v2", "cgroup-v1", "process"])
def test_each_containment(new_cluster, kind):
    c = new_cluster(nodes=0)
    c.add_node("n1", extra=["--containment", kind])
    c.wait_idle()
    job = c.batch("setsid sleep 1000 & echo $!; (setsid sleep 1000 & echo $!) & sleep 0.2; exit 4")
    state = c.wait_over(job)
    if state == "FAILED" and c.sacct(job, "ExitCode")["ExitCode"] != "4:0" and kind.startswith("cgroup"):
        pytest.skip(f"no {kind} here")
    pids = [int(p) for p in c.output(job).split()]
    assert len(pids) == 2 and not [p for p in pids if alive(p)]


@needs_root
def test_agent_of_an_ordinary_user(new_cluster):
    """Runs that user's jobs and refuses others', with the reason."""
    c = new_cluster(nodes=0, auth="permissive")
    token = (c.state / "join.token").read_text().strip() if (c.state / "join.token").exists() else ""
    home = c.root / "user"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    program = c.root / "spurd"
    shutil.copy(BIN / "spurd", program)
    program.chmod(0o755)
    ready = home / "ready"
    with open(c.root / "user.log", "wb") as log:
        p = subprocess.Popen([str(program), f"--controller=127.0.0.1:{c.port}", "--listen=127.0.0.1:0", "-N", "u1", "--state-dir",
                              str(home / "state"), "--ready-file", str(ready)], user=NOBODY, group=NOBODY, extra_groups=[],
                             stdout=log, stderr=log, env={**os.environ, **c.daemon_env, "SPUR_JOIN_TOKEN": token})
    try:
        wait_for(ready.exists, what=f"the agent: {(c.root / 'user.log').read_text()}")
        job = c.batch("id -u", uid=NOBODY)
        c.wait_state(job, "COMPLETED")
        assert c.output(job) == f"{NOBODY}\n"
        other = c.batch("id -u")
        wait_for(lambda: "not root and runs jobs of user id" in (c.root / "user.log").read_text(), what="the refusal in the log")
        assert c.state_of(other) != "COMPLETED"
        assert not (c.work / f"slurm-{other}.out").exists()
    finally:
        p.terminate()
        assert p.wait(10) == 0


def test_controller_whose_name_is_not_known_yet(tmp_path):
    """As where both start together on Kubernetes: it waits, says so once, and can be stopped."""
    log = tmp_path / "log"
    with open(log, "wb") as f:
        p = subprocess.Popen([str(BIN / "spurd"), "--controller=http://spurctld.invalid:6817", "--listen=[::]:0", "--state-dir",
                              str(tmp_path / "s")], stdout=f, stderr=f)
    try:
        wait_for(lambda: "nothing is known of http://spurctld.invalid:6817 yet" in log.read_text(), 30, "the warning")
    finally:
        began = time.monotonic()
        p.terminate()
        assert p.wait(10) == 0
    assert time.monotonic() - began < 2.0 * spurtest.PATIENCE
