# SPDX-License-Identifier: Apache-2.0
"""A real cluster in a temporary directory, for black-box tests.

    with Cluster(nodes=2) as c:
        job = c.batch("echo hello")
        c.wait_state(job, "COMPLETED")

Daemons listen on free loopback ports and tell them by a ready file. Every process that is started here carries
SPUR_TEST_ROOT in its environment or the root in its arguments, so that cleaning up ends those and no others.
Tests wait for conditions (wait_for), never for durations.
"""
import atexit
import os
import pathlib
import pwd
import random
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SPUR_TEST_BUILD", REPO / "build"))


def programs(build):
    """Where the commands of a build are. Tests play other users: in a checkout of root's own those can't reach the build
    directory, so the programs are copied to a place where they can."""
    there = build / "bin"
    if os.geteuid() != 0 or all(p.stat().st_mode & 0o001 for p in [build, *build.parents] if p.exists()) or not there.exists():
        return there
    copy = pathlib.Path(tempfile.mkdtemp(prefix="spur-bin-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    for path in there.iterdir():
        target = os.readlink(path)
        if "/" in target:
            shutil.copy2(path, copy / path.name)
        else:
            os.symlink(target, copy / path.name)
    return copy


BIN = programs(BUILD)

# Sanitized daemons are slower; so is a machine that does other work.
SANITIZED = re.search("asan|tsan", BUILD.name) is not None
PATIENCE = float(os.environ.get("SPUR_TEST_PATIENCE", "3" if SANITIZED else "1"))

OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE"}


class Failed(AssertionError):
    pass


def wait_for(condition, timeout=10.0, what=None, every=0.01):
    """Calls until the answer is true, and returns it."""
    end = time.monotonic() + timeout * PATIENCE
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise Failed(f"waited {timeout * PATIENCE:.0f} s in vain: {what or condition}")
        time.sleep(every)


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def processes():
    """(pid, arguments, environment) of all that can be read."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            cmdline = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()
            environ = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:  # it has just ended, or is not ours to look at
            continue
        yield int(entry), cmdline, environ


def kill_one(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def kill_group(pid):
    """Of one that leads a session of its own, as all daemons do."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        kill_one(pid)


open_clusters = set()  # those not closed yet


@atexit.register
def close_clusters():
    for cluster in list(open_clusters):
        cluster.close()


class Daemon:
    """One spurctld or spurd: its arguments, its log, the process of now."""

    def __init__(self, cluster, name, program, arguments):
        self.cluster, self.name, self.program = cluster, name, program
        self.arguments = arguments  # a function: they may change from start to start
        self.log_path = cluster.root / f"{name}.log"
        self.ready_path = cluster.root / f"{name}.ready"
        self.wrapper = []  # put in front, as strace
        self.bin = None  # where the program is, when not in BIN: another version's
        self.process = None
        self.ready = {}

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def spawn(self, **popen):
        """Starts it and does not wait."""
        self.ready_path.unlink(missing_ok=True)
        argv = [*self.wrapper, str((self.bin or self.cluster.bin) / self.program), *map(str, self.arguments()), "--ready-file", str(self.ready_path)]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.cluster.root,
                                            env={**os.environ, **self.cluster.daemon_env}, start_new_session=True, **popen)
        return self

    def wait_ready(self, timeout=10.0):
        def is_ready():
            if self.process.poll() is not None:
                raise Failed(f"{self.name} ended with {self.process.returncode}:\n{self.log[-3000:]}")
            return self.ready_path.exists() and self.ready_path.read_text().endswith("\n")

        wait_for(is_ready, timeout, f"{self.name} to be ready; its log:\n{self.log[-3000:]}", every=0.003)
        self.ready = dict(line.split("=", 1) for line in self.ready_path.read_text().splitlines() if "=" in line)
        return self

    def start(self, timeout=10.0):
        return self.spawn().wait_ready(timeout)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self, sig=signal.SIGKILL, timeout=10.0):
        """Sends the signal and waits for the end; the seconds that it took."""
        began = time.monotonic()
        if self.running():
            self.process.send_signal(sig)
            try:
                self.process.wait(timeout * PATIENCE)
            except subprocess.TimeoutExpired:
                raise Failed(f"{self.name} does not end on signal {sig}:\n{self.log[-3000:]}") from None
        return time.monotonic() - began

    def stop(self, timeout=10.0):
        return self.kill(signal.SIGTERM, timeout)

    def restart(self, sig=signal.SIGKILL, timeout=10.0):
        self.kill(sig, timeout)
        return self.start(timeout)


class Cluster:
    """One controller and some agents.

    conf: text put into spur.conf after what is always there; auth: [auth] mode, or None; auth_lines: more of that table;
    scale: --test-clock-scale of all daemons; node_args, ctld_args: further arguments of every agent, of the
    controller."""

    def __init__(self, nodes=1, conf="", auth="required", auth_lines="", cpus=4, memory_mb=4000, scale=None, node_args=(), admission=None,
                 scheduler="", controller="", ctld_args=()):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="spur-t-"))
        os.chmod(self.root, 0o755)
        self.work = self.root / "work"
        self.work.mkdir()
        os.chmod(self.work, 0o1777)
        self.state = self.root / "ctld"
        self.conf_path = self.root / "spur.conf"
        self.scale = scale
        self.bin = BIN  # of daemons and commands; of another version in test_upgrade.py
        self.cpus, self.memory_mb = cpus, memory_mb
        self.node_args, self.ctld_args = list(node_args), list(ctld_args)
        self.port = 0
        self.daemon_env = {"SPUR_TEST_ROOT": str(self.root), "TZ": os.environ.get("TZ", "UTC")}
        mode = f'mode = "{auth}"\n' if auth else ""
        self.conf_text = f'cluster_name = "test"\n\n[auth]\n{mode}{auth_lines}\n'
        if admission:
            self.conf_text += f'\n[admission]\nmode = "{admission}"\n'
        if scheduler:
            self.conf_text += f"\n[scheduler]\n{scheduler}\n"
        if controller:
            self.conf_text += f"\n[controller]\n{controller}\n"
        if "[[partitions]]" not in conf:
            self.conf_text += '\n[[partitions]]\nname = "debug"\ndefault = true\n'
        self.conf_text += conf
        self.conf_path.write_text(self.conf_text)
        self.ctld = Daemon(self, "ctld", "spurctld", self._ctld_arguments)
        self.nodes = {}
        self.wanted = nodes
        open_clusters.add(self)

    # ---- life ----

    def _scale_arguments(self):
        return [f"--test-clock-scale={self.scale}"] if self.scale else []

    def _ctld_arguments(self):
        return [f"--config={self.conf_path}", f"--listen=127.0.0.1:{self.port}", "--state-dir", self.state,
                *self._scale_arguments(), *self.ctld_args]

    def _node_arguments(self, name, cpus, memory_mb, extra):
        token = self.state / "join.token"
        return [f"--controller=http://127.0.0.1:{self.port}", f"--listen=127.0.0.1:0", "-N", name, "--state-dir",
                self.root / name, "--cpus", cpus, "--memory-mb", memory_mb,
                *(["--token", token.read_text().strip()] if token.exists() else []), *self._scale_arguments(), *extra]

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        self.close()

    def start(self):
        try:
            self.start_ctld()
            for i in range(self.wanted):
                self.add_node(f"n{i + 1}", start=False).spawn()
            for node in self.nodes.values():
                node.wait_ready()
            self.wait_idle()
        except BaseException:
            self.close()
            raise
        return self

    def start_ctld(self, timeout=10.0):
        self.ctld.start(timeout)
        self.port = int(self.ctld.ready["listen"])
        return self.ctld

    def add_node(self, name, cpus=None, memory_mb=None, extra=(), start=True):
        cpus, memory_mb, extra = cpus or self.cpus, memory_mb or self.memory_mb, [*self.node_args, *extra]
        self.nodes[name] = Daemon(self, name, "spurd", lambda: self._node_arguments(name, cpus, memory_mb, extra))
        if start:
            self.nodes[name].start()
        return self.nodes[name]

    @property
    def node(self):
        return next(iter(self.nodes.values()))

    def wait_idle(self, timeout=10.0):
        """Until every agent's node is there and takes work."""
        def there():
            got = self.run("sinfo -h -N -o '%N %t'", check=False)
            states = dict(line.split() for line in got.stdout.splitlines() if len(line.split()) == 2)
            return all(states.get(name, "").strip("*") in ("idle", "mix", "alloc") for name in self.nodes)

        wait_for(there, timeout, "nodes to be idle", every=0.03)

    def ours(self):
        """Processes of this cluster: daemons, step daemons, jobs, commands."""
        root = str(self.root).encode()  # in SPUR_TEST_ROOT, and in a job's SLURM_SUBMIT_DIR
        return [(pid, cmdline) for pid, cmdline, environ in processes()
                if pid != os.getpid() and (root in environ or root in cmdline)]

    @property
    def daemons(self):
        return [*self.nodes.values(), self.ctld]

    def close(self):
        """May be called more than once. What was started here and can't be ended is an error: nothing outlives its test unseen."""
        for daemon in self.daemons:
            if daemon.running():
                kill_group(daemon.pid)
        end = time.monotonic() + 5 * PATIENCE
        while True:  # what is killed may have forked just before
            left = self.ours()
            for pid, _ in left:
                kill_one(pid)
            for daemon in self.daemons:
                daemon.running()  # reaps it
            if not left:
                break
            if time.monotonic() > end:
                raise Failed(f"these can't be ended: {left}")
            time.sleep(0.02)
        open_clusters.discard(self)
        if not os.environ.get("SPUR_TEST_KEEP"):
            shutil.rmtree(self.root, ignore_errors=True)

    def logs(self, n=60):
        out = []
        for daemon in [self.ctld, *self.nodes.values()]:
            out.append(f"---- {daemon.name} ----\n" + "\n".join(daemon.log.splitlines()[-n:]))
        return "\n".join(out)

    # ---- commands ----

    @property
    def socket(self):
        return self.state / "spurctld.sock"

    @property
    def env(self):
        """Of a command: over the local socket, where the kernel says who we are."""
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SPUR_", "SBATCH_", "SQUEUE_"))}
        return {**keep, "PATH": f"{self.bin}:{keep.get('PATH', '/usr/bin:/bin')}", "SPUR_CONTROLLER_ADDR": f"unix:{self.socket}",
                "SPUR_CONF": str(self.conf_path), "SPUR_TEST_ROOT": str(self.root), "TZ": self.daemon_env["TZ"]}

    def tcp_env(self, jwt=None):
        env = {**self.env, "SPUR_CONTROLLER_ADDR": f"http://127.0.0.1:{self.port}"}
        if jwt:
            env["SPUR_JWT"] = jwt
        return env

    def run(self, command, *more, check=True, input=None, env=None, uid=None, gid=None, cwd=None, timeout=60.0, umask=None):
        argv = shlex.split(command) if isinstance(command, str) else list(command)
        argv += [str(m) for m in more]
        user = {} if uid is None else {"user": uid, "group": uid if gid is None else gid, "extra_groups": []}
        if umask is not None:
            user["umask"] = umask
        got = subprocess.run(argv, input=input, stdin=subprocess.DEVNULL if input is None else None, capture_output=True,
                             text=True, errors="replace", env={**self.env, **(env or {})}, cwd=cwd or self.work,
                             timeout=timeout * PATIENCE, **user)
        if check and got.returncode != 0:
            raise Failed(f"{shlex.join(argv)} returned {got.returncode}\n{got.stdout}{got.stderr}")
        return got

    def script(self, body, name=None, shebang="#!/bin/bash"):
        path = self.work / (name or f"s{random.getrandbits(40):x}.sh")
        path.write_text(f"{shebang}\n{body}\n")
        os.chmod(path, 0o755)
        return path

    def batch(self, body, *options, name=None, **run):
        """Submits a script, returns the job id."""
        return self.submit(*options, self.script(body, name), **run)

    def submit(self, *arguments, **run):
        return int(self.run(["sbatch", "--parsable", *map(str, arguments)], **run).stdout.strip().split(";")[0])

    # ---- what became of it ----

    def job(self, job_id, check=True):
        """{"JobState": "RUNNING", …} of scontrol show job."""
        got = self.run(["scontrol", "-o", "show", "job", str(job_id)], check=check)
        if got.returncode != 0:
            return None
        return parse_pairs(got.stdout)

    def state_of(self, job_id):
        got = self.run(["squeue", "-h", "-t", "all", "-o", "%T", "-j", str(job_id)], check=False)
        if got.returncode == 0 and got.stdout.strip():
            return got.stdout.strip()
        row = self.sacct(job_id, "State")
        return row["State"].split()[0] if row else None

    def wait_state(self, job_id, *states, timeout=20.0):
        states = set(states) or OVER
        seen = []

        def reached():
            state = self.state_of(job_id)
            seen[:] = [state]
            if state in states:
                return state
            if state in OVER and not states & OVER - {state}:
                raise Failed(f"job {job_id} is {state}, not {states}:\n{self.job(job_id, check=False)}")
            return None

        try:
            return wait_for(reached, timeout, f"job {job_id} to be {'/'.join(sorted(states))}", every=0.03)
        except Failed as e:
            raise Failed(f"{e}; it is {seen}\n{self.job(job_id, check=False)}") from None

    def wait_over(self, job_id, timeout=20.0):
        return self.wait_state(job_id, timeout=timeout)

    def sacct(self, job_id, fields="JobID,State,ExitCode", env=None):
        """The job's own row (not its steps'), or None."""
        got = self.run(["sacct", "-X", "-n", "-P", "-o", fields, "-j", str(job_id)], env=env)
        rows = [dict(zip(fields.split(","), line.split("|"))) for line in got.stdout.splitlines()]
        assert len(rows) <= 1, got.stdout
        return rows[0] if rows else None

    def output(self, job_id, pattern="slurm-{}.out"):
        return (self.work / pattern.format(job_id)).read_text()

    def queue(self, *options):
        """{id: state} of squeue."""
        got = self.run(["squeue", "-h", "-o", "%i %T", *options])
        return {int(i): s for i, s in (line.split() for line in got.stdout.splitlines())}


def parse_pairs(line):
    """Values may hold blanks; a key is a word of letters before "="."""
    keys = list(re.finditer(r"(?:^|\s)([A-Za-z][\w/:&]*)=", line))
    out = {}
    for here, following in zip(keys, [*keys[1:], None]):
        out.setdefault(here[1], line[here.end():following.start() if following else None].strip())
    return out


class SubmitLoop(threading.Thread):
    """Submits without pause until stopped; keeps the ids that were acknowledged. A failure is counted and not an
    error: the controller may be away. What is submitted makes a file runs/ID, and says so when it was there already."""

    BODY = "mkdir runs/$SLURM_JOB_ID || echo $SLURM_JOB_ID >> runs.twice"

    def __init__(self, cluster, *options, pause=0.0):
        super().__init__(daemon=True)
        self.cluster, self.options, self.pause = cluster, options, pause
        self.acknowledged, self.failures, self.messages = [], 0, set()
        self.stopping = threading.Event()
        (cluster.work / "runs").mkdir(exist_ok=True)
        os.chmod(cluster.work / "runs", 0o1777)
        self.path = cluster.script(self.BODY)

    def run(self):
        while not self.stopping.wait(self.pause):
            got = self.cluster.run(["sbatch", "--parsable", "-o", "/dev/null", *self.options, str(self.path)], check=False)
            if got.returncode == 0:
                self.acknowledged.append(int(got.stdout))
            else:
                self.failures += 1
                self.messages.add(got.stderr.strip())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopping.set()
        self.join(120)
        assert not self.is_alive(), "a submit hangs"
        return self.acknowledged

    def twice(self):
        path = self.cluster.work / "runs.twice"
        return path.read_text().split() if path.exists() else []


def user_of(uid):
    return pwd.getpwuid(uid).pw_name


NOBODY = pwd.getpwnam("nobody").pw_uid
