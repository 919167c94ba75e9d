# SPDX-License-Identifier: Apache-2.0
"""Every key of spur.conf, from the table of docs/configuration.md: what is live is changed and its effect seen, what needs a
restart is named. A key that is in the table and not here fails the last tests."""
import os
import pathlib
import re
import signal
import subprocess

import pytest

import stepwire
from grpcwire import Peer, messages
from spurtest import BIN, REPO, Cluster, wait_for

KEY = "a key for tests that is long enough"
OTHER_KEY = "another key for tests, long enough"


def documented():
    """{(section, key): "restart" or "reconfigure"}"""
    section, keys = "", {}
    for line in (REPO / "docs/configuration.md").read_text().splitlines():
        if head := re.match(r"## \[+(\w+)\]+", line):
            section = head.group(1)
        elif row := re.match(r"\| `(\w+)` \|.*\| (restart|reconfigure) \|", line):
            keys[section, row.group(1)] = row.group(2)
    return keys


class Site:
    """A cluster whose spur.conf is written from a table of keys."""

    def __init__(self):
        self.base = {
            "": {"cluster_name": '"test"'},
            "auth": {"mode": '"required"', "jwt_key": f'"{KEY}"'},
            "partitions": {"name": '"debug"', "default": "true"},
            "nodes": {"names": '"n1"'},
        }
        self.c = Cluster(nodes=0)
        self.write()
        self.c.start()
        self.c.add_node("n1")
        self.c.wait_idle()

    def write(self, *changes):
        table = {section: dict(keys) for section, keys in self.base.items()}
        for section, key, value in changes:
            table.setdefault(section, {})[key] = value
        text = ""
        for section, keys in table.items():
            text += {"": ""}.get(section, f"\n[[{section}]]\n" if section in ("partitions", "nodes") else f"\n[{section}]\n")
            text += "".join(f"{key} = {value}\n" for key, value in keys.items())
            if section == "partitions":  # a second one that nobody changes
                text += '\n[[partitions]]\nname = "other"\n'
        self.c.conf_path.write_text(text)

    def apply(self, *changes):
        self.write(*changes)
        got = self.c.run("scontrol reconfigure")
        return got.stdout + got.stderr

    # ---- what probes look at ----

    def takes(self, *arguments, **run):
        """Whether a submission is taken; the job doesn't stay."""
        got = self.c.run(["sbatch", "-H", "--parsable", *arguments, "--wrap", "true"], check=False, **run)
        if got.returncode == 0:
            self.c.run(["scancel", got.stdout.strip().split("_")[0]])
        return got.returncode == 0

    def held(self, *arguments):
        """scontrol show job of one that is held, and gone at once."""
        job = self.c.submit("-H", *arguments, "--wrap", "true")
        facts = self.c.job(job)
        self.c.run(["scancel", str(job)])
        return facts

    def waiting(self, *arguments):
        """The same of one that waits for a date."""
        job = self.c.submit("--begin=now+1hour", *arguments, "--wrap", "true")
        facts = self.c.job(job)
        self.c.run(["scancel", str(job)])
        return facts

    def shows(self, key, value):
        return re.search(rf"^{key} *= {re.escape(value)}$", self.c.run("scontrol show config").stdout, re.M) is not None

    def partition(self):
        return self.c.run("scontrol -o show partition debug").stdout

    def node(self):
        return self.c.run("scontrol -o show node n1").stdout


@pytest.fixture(scope="module")
def site():
    s = Site()
    yield s
    s.c.close()


# ---- probes that take some lines: true only with the new value ----


def falls_silent(s):
    """The agent is stopped: is its node down long before 90 s have passed?"""
    node = s.c.node
    os.kill(node.pid, signal.SIGSTOP)
    try:
        wait_for(lambda: s.c.run("sinfo -h -o %t").stdout.startswith("down"), 20)
    finally:
        os.kill(node.pid, signal.SIGCONT)
    wait_for(lambda: s.c.run("sinfo -h -o %T -p debug").stdout.split() == ["idle"], 20, "the node to be back")
    return True


def fails_to_launch(s):
    """Where the agent keeps its runs there is something else for a while."""
    runs = pathlib.Path(next(a for a in map(str, s.c.node.arguments()) if a.startswith("/") and "n1" in a)) / "runs"
    aside = runs.with_name("runs-aside")
    runs.rename(aside)
    runs.write_text("")
    job = s.c.submit("--wrap", "true")
    try:
        wait_for(lambda: "launch_failed" in s.c.job(job)["Reason"].lower() or "held" in s.c.job(job)["Reason"].lower(), 20, "the job to be held")
    finally:
        runs.unlink()
        aside.rename(runs)
        s.c.run(["scancel", str(job)])
    return True


def is_forgotten(s):
    job = s.c.submit("-H", "--wrap", "true")
    s.c.run(["scancel", str(job)])
    return wait_for(lambda: s.c.run(["scontrol", "show", "job", str(job)], check=False).returncode != 0, 20)


def ends_soon(s):
    """A job that does not hear SIGTERM."""
    job = s.c.batch("trap '' TERM; echo up > up; while :; do sleep 0.1; done")
    wait_for((s.c.work / "up").exists)
    (s.c.work / "up").unlink()
    s.c.run(["scancel", str(job)])
    s.c.wait_over(job, timeout=20)
    return wait_for(lambda: s.c.run("squeue -h").stdout == "", 20)


def gives_up_after(s):
    """What the agent is told of a job and of a step."""
    job = s.c.batch("srun sleep 100 & echo up > up; wait")
    runs = s.c.root / "n1" / "runs"

    def told():
        plans = list(runs.glob(f"{job}.*/plan"))
        return len(plans) == 2 and [stepwire.decode(stepwire.PLAN, p.read_bytes())["unkillable_ms"] for p in plans]

    plans = wait_for(told, 20)
    s.c.run(["scancel", str(job)])
    return plans == [77000, 77000] and s.shows("UnkillableStepTimeout", "77 sec")


def is_full(s):
    m = messages()
    with Peer(f"unix:{s.c.socket}") as peer:
        code, _ = peer.refused("Controller", "Submit", m.SubmitRequest(token=os.urandom(16), spec=m.JobSpec(hold=True, work_dir="/tmp"), script=b"#!/bin/sh\n"))
    return code == "RESOURCE_EXHAUSTED"


def may_have_one_step(s):
    got = s.c.run(["salloc", "-n1", "sh", "-c", "srun true; srun true"], check=False)
    return got.returncode != 0


def ends_unattended(s):
    p = subprocess.Popen(["salloc", "-n1", "sleep", "1000"], env=s.c.env, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: s.c.run("squeue -h -t R").stdout)
    os.killpg(p.pid, signal.SIGKILL)
    p.communicate()
    return wait_for(lambda: s.c.run("squeue -h").stdout == "", 20)


def writes_snapshots(s):
    """With the least threshold, some hundred entries are enough."""
    def files():
        return {p.name: p.stat().st_mtime_ns for p in s.c.state.rglob("*") if "snapshot" in str(p.relative_to(s.c.state))}

    before = files()
    job = s.c.submit("-H", "--wrap", "true")
    for i in range(150):
        s.c.run(["scontrol", "update", f"JobId={job}", f"Comment={i}"])
        if i > 70 and files() != before:
            break
    s.c.run(["scancel", str(job)])
    return files() != before


def old_token_fails(s):
    return s.c.run("squeue", env=s.c.tcp_env(s.token), check=False).returncode != 0


def old_token_works(s):
    return not old_token_fails(s)


def nobody_may_steer(s):
    job = s.c.submit("-H", "--wrap", "true")
    got = s.c.run(["scancel", str(job)], uid=65534, check=False)
    s.c.run(["scancel", str(job)])
    return got.returncode == 0


def admits_nobody(s):
    node = s.c.add_node("n8", start=False)
    with_token = node.arguments
    secret = (s.c.state / "join.token").read_text().strip()
    node.arguments = lambda: [a for a in with_token() if a not in ("--token", secret)]
    node.spawn()
    try:
        return wait_for(lambda: "token" in node.log, what="the agent to be told that it needs a token") and "n8" not in s.c.run("sinfo -h -N -o %N").stdout
    finally:
        node.kill()
        del s.c.nodes["n8"]


def labelled(s):
    """Does the partition get the node with the label, and lose it?"""
    s.c.run("spur node label n1 a=b")
    got = " Nodes=n1" in s.partition()
    s.c.run("spur node label n1 a-")
    return got and " Nodes=n1" not in s.partition()


def logs_more(s):
    before = len(s.c.ctld.log)
    s.c.wait_state(s.c.submit("--wrap", "true"), "COMPLETED")
    return re.search(r"\bdebug\b", s.c.ctld.log[before:]) is not None


def waits_for(s, reason, *arguments):
    job = s.c.submit(*arguments, "--wrap", "true")
    return wait_for(lambda: s.c.job(job)["Reason"] == reason, what=f"the job to wait for {reason}")


def starts_later(s):
    job = s.c.submit("--wrap", "sleep 100")
    s.c.wait_state(job, "RUNNING")
    s.c.run(f"scontrol requeue {job}")
    wait_for(lambda: s.c.job(job)["JobState"] == "PENDING" or int(s.c.job(job)["Restarts"]) == 1, what="the job to be queued again")
    got = wait_for(lambda: s.c.job(job)["Reason"] == "BeginTime" or s.c.job(job)["JobState"] == "RUNNING", what="the job to wait or run")
    late = s.c.job(job)["JobState"] == "PENDING"
    s.c.run(f"scancel {job}")
    return got and late


# (section, key): (new value, probe[, further changes that it needs])
LIVE = {
    ("", "cluster_name"): ('"else"', lambda s: s.c.run("srun printenv SLURM_CLUSTER_NAME").stdout == "else\n"),
    ("", "licenses"): ("{ lic = 2 }", lambda s: s.takes("-L", "lic:1")),
    ("controller", "snapshot_entries"): ("64", writes_snapshots),
    ("controller", "first_job_id"): ("5000", lambda s: int(s.held()["JobId"]) >= 5000),
    ("controller", "max_job_id"): ("5003", lambda s: min(int(s.held()["JobId"]) for _ in range(6)) == 4000, ("controller", "first_job_id", "4000")),
    ("controller", "heartbeat_timeout_secs"): ("1", falls_silent),
    ("controller", "max_batch_requeue"): ("1", fails_to_launch),
    ("controller", "max_launch_backoff_secs"): ("1", lambda s: s.shows("controller.max_launch_backoff_secs", "1 sec")),
    ("controller", "terminal_job_retention_secs"): ("1", is_forgotten),
    ("scheduler", "interval_secs"): ("3", lambda s: s.shows("scheduler.interval_secs", "3 sec")),
    ("scheduler", "max_jobs_per_cycle"): ("77", lambda s: s.shows("scheduler.max_jobs_per_cycle", "77")),
    ("scheduler", "default_time_limit_minutes"): ("7", lambda s: s.held()["TimeLimit"] == "00:07:00"),
    ("scheduler", "enforce_part_limits"): ('"ALL"', lambda s: not s.takes("-N2", "-t", "100"), ("partitions", "max_time", '"5"')),
    ("scheduler", "kill_wait_secs"): ("1", ends_soon),
    ("scheduler", "complete_wait_secs"): ("77", gives_up_after),
    ("scheduler", "requeue_delay_secs"): ("77", starts_later),
    ("scheduler", "launch_timeout_secs"): ("31", lambda s: s.shows("BatchStartTimeout", "31 sec")),
    ("scheduler", "weight_age"): ("77", lambda s: s.shows("PriorityWeightAge", "77")),
    ("scheduler", "weight_job_size"): ("100000000", lambda s: int(s.waiting("-n4")["Priority"]) > 1000000),
    ("scheduler", "weight_partition"): ("900000", lambda s: int(s.waiting()["Priority"]) > 500000),
    ("scheduler", "max_age_secs"): ("77", lambda s: s.shows("PriorityMaxAge", "00:01:17")),
    ("scheduler", "def_mem_per_cpu_mb"): ("10", lambda s: s.held().get("MinMemoryCPU") == "10M"),
    ("scheduler", "max_jobs"): ("1", is_full),
    ("scheduler", "max_script_bytes"): ("1024", lambda s: s.c.run("sbatch -H", input="#!/bin/sh\n" + "#" * 2000, check=False).returncode != 0),
    ("scheduler", "max_env_bytes"): ("1024", lambda s: not s.takes("--export=ALL", env={"LONG": "x" * 4000})),
    ("scheduler", "max_array_size"): ("5", lambda s: not s.takes("-a", "0-9")),
    ("scheduler", "job_requeue"): ("false", lambda s: s.held()["Requeue"] == "0"),
    ("scheduler", "max_requeues"): ("77", lambda s: s.shows("MaxBatchRequeue", "77")),
    ("scheduler", "max_steps"): ("1", may_have_one_step),
    ("scheduler", "attend_secs"): ("5", ends_unattended),
    ("scheduler", "batch_starts"): ("77", lambda s: s.shows("scheduler.batch_starts", "77")),
    ("auth", "jwt_key"): (f'"{OTHER_KEY}"', old_token_fails),
    ("auth", "jwt_key_old"): (f'"{KEY}"', old_token_works, ("auth", "jwt_key", f'"{OTHER_KEY}"')),
    ("auth", "admins"): ('["nobody"]', nobody_may_steer),
    ("admission", "mode"): ('"token"', admits_nobody),
    ("logging", "level"): ('"debug"', logs_more),
    ("compat", "flavor"): ('"amd"', lambda s: s.shows("KillWait", "5 sec")),
    ("partitions", "name"): ('"new"', lambda s: "new" in s.c.run("sinfo -h -o %R").stdout.split()),
    ("partitions", "default"): ("false", lambda s: not s.takes()),
    ("partitions", "state"): ('"DRAIN"', lambda s: not s.takes()),
    ("partitions", "nodes"): ('"n7"', lambda s: " Nodes=n1" not in s.partition()),
    ("partitions", "selector"): ('{ a = "b" }', labelled, ("partitions", "nodes", '"n7"')),
    ("partitions", "max_time"): ('"5"', lambda s: s.held()["TimeLimit"] == "00:05:00"),
    ("partitions", "default_time"): ('"6"', lambda s: s.held()["TimeLimit"] == "00:06:00"),
    ("partitions", "max_nodes"): ("3", lambda s: "MaxNodes=3" in s.partition()),
    ("partitions", "min_nodes"): ("2", lambda s: "MinNodes=2" in s.partition()),
    ("partitions", "priority_tier"): ("9", lambda s: "PriorityTier=9" in s.partition()),
    ("partitions", "priority_job_factor"): ("9", lambda s: "PriorityJobFactor=9" in s.partition()),
    ("partitions", "over_subscribe"): ('"FORCE:3"', lambda s: "OverSubscribe=FORCE:3" in s.partition()),
    ("partitions", "exclusive_user"): ("true", lambda s: "Exclusive=USER" in s.partition()),
    ("partitions", "max_cpus_per_node"): ("2", lambda s: "MaxCPUsPerNode=2" in s.partition()),
    ("partitions", "allow_groups"): ('["games"]', lambda s: not s.takes(uid=65534, gid=65534)),
    ("partitions", "allow_accounts"): ('["physics"]', lambda s: waits_for(s, "InvalidAccount", "-A", "chemistry")),
    ("partitions", "root_only"): ("true", lambda s: not s.takes(uid=65534, gid=65534)),
    ("partitions", "hidden"): ("true", lambda s: "debug" not in s.c.run("sinfo -h -o %R", uid=65534).stdout.split()),
    ("nodes", "names"): ('"n1,n9"', lambda s: s.node().count("NodeName=n1") == 1 and "Features=odd" not in s.node()),
    ("nodes", "features"): ('"odd"', lambda s: s.takes("-C", "odd")),
    ("nodes", "gres"): ('"gpu:2"', lambda s: "Gres=gpu:2" in s.node()),
    ("nodes", "weight"): ("7", lambda s: "Weight=7" in s.node()),
    ("nodes", "cpus"): ("2", lambda s: "CPUTot=2" in s.node()),
    ("nodes", "memory_mb"): ("777", lambda s: "RealMemory=777" in s.node()),
    ("nodes", "sockets"): ("3", lambda s: "Sockets=3" in s.node()),
    ("nodes", "cores_per_socket"): ("5", lambda s: "CoresPerSocket=5" in s.node()),
    ("nodes", "threads_per_core"): ("2", lambda s: "ThreadsPerCore=2" in s.node()),
    ("nodes", "tmp_disk_mb"): ("77", lambda s: "TmpDisk=77" in s.node()),
    ("nodes", "address"): ('"127.0.0.1"', lambda s: "NodeAddr=127.0.0.1" in s.node()),
    ("nodes", "selector"): ('{ a = "b" }', lambda s: "Weight=7" in s.node() if s.c.run("spur node label n1 a=b") else False,
                            ("nodes", "names", '"n77"'), ("nodes", "weight", "7")),
}

# Keys whose effect is a test of its own: where it is.
ELSEWHERE = {
    ("scheduler", "plugin"): "test_a_choice_of_one_is_checked",
    ("auth", "jwt_key_file"): "test_a_key_file_is_read_again",
    ("auth", "jwt_key_old_file"): "test_an_old_key_s_file_is_read_too",
    ("auth", "munge_socket"): "test_munge_is_taken_in_every_mode_that_asks",
    ("tls", "mode"): "test_the_mode_changes_under_way",
    ("tls", "cert_file"): "test_a_certificate_is_renewed_under_a_running_cluster",
    ("tls", "key_file"): "test_a_certificate_is_renewed_under_a_running_cluster",
    ("tls", "ca_file"): "test_what_is_not_believed",
    ("tls", "verify"): "test_what_is_not_believed",
}

RESTART = {
    ("controller", "listen_addr"): '"127.0.0.1:1"',
    ("controller", "rest_addr"): '"127.0.0.1:1"',
    ("controller", "raft_listen_addr"): '"127.0.0.1:1"',
    ("controller", "hosts"): '["elsewhere"]',
    ("controller", "peers"): '["localhost:6821"]',
    ("controller", "node_id"): "1",
    ("controller", "state_dir"): '"/nowhere"',
    ("controller", "socket"): '"/nowhere/socket"',
    ("auth", "plugin"): '"munge"',
    ("auth", "mode"): '"permissive"',
    ("logging", "format"): '"json"',
    ("logging", "file"): '"/dev/null"',
    ("network", "agent_port"): "6819",
}


@pytest.mark.parametrize("section, key", LIVE, ids=lambda x: x or "top")
def test_live(site, section, key):
    value, probe, *more = LIVE[section, key]
    site.token = site.c.run("scontrol token").stdout.strip().split("=", 1)[1]
    site.apply(*more)
    try:
        told = site.apply(*more, (section, key, value))
        assert "next start" not in told
        assert probe(site)
    finally:
        site.apply()
        site.c.run("scancel -u root", check=False)


@pytest.mark.parametrize("section, key", RESTART, ids=str)
def test_restart(site, section, key):
    told = site.apply((section, key, RESTART[section, key]))
    try:
        assert f"[{section}] {key} changes with the next start" in told
    finally:
        assert "next start" not in site.apply()


def test_every_key_is_here():
    keys = documented()
    live = {k for k, when in keys.items() if when == "reconfigure"}
    assert len(live) > 50
    assert {*LIVE, *ELSEWHERE} == live
    assert set(RESTART) == set(keys) - live


def test_what_is_elsewhere_is_there():
    tests = "".join(p.read_text() for p in pathlib.Path(__file__).parent.glob("test_*.py"))
    for name in ELSEWHERE.values():
        assert f"def {name}" in tests, name


@pytest.mark.root
def test_the_agents_port(tmp_path):
    """[network] agent_port: where an agent listens that is told nothing else. In a network of its own, where any port is free."""
    conf = tmp_path / "spur.conf"

    def port(text, *more):
        conf.write_text('cluster_name = "test"\n' + text)
        with Cluster(nodes=0) as c:
            agent = c.add_node("n1", start=False)
            listens = {True: [], False: ["--listen=127.0.0.1:6819"]}[not more]
            arguments = [a for a in agent.arguments() if not str(a).startswith("--listen")] + [f"--config={conf}", *listens]
            agent.arguments = lambda: arguments
            agent.wrapper = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
            agent.spawn()
            return int(wait_for(lambda: re.search(r"listening on port (\d+)", agent.log)).group(1))

    assert port("") == 6818
    assert port("[network]\nagent_port = 7001\n") == 7001
    assert port("[network]\nagent_port = 7001\n", "given") == 6819


def test_a_choice_of_one_is_checked(tmp_path):
    path = tmp_path / "spur.conf"
    path.write_text('cluster_name = "x"\n[scheduler]\nplugin = "builtin"\n')
    got = subprocess.run([str(BIN / "spurctld"), "--check-config", f"--config={path}"], capture_output=True, text=True)
    assert got.returncode != 0 and "backfill" in got.stderr
