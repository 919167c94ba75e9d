# SPDX-License-Identifier: Apache-2.0
"""Clusters set up as the recorded ones (tests/golden): the same nodes, partitions and files, and what makes the states in which the commands were recorded."""
import collections
import grp
import os
import pathlib
import pwd
import re
import signal
import subprocess
import sys
import time

import spurtest
from spurtest import Failed, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import goldenfile  # noqa: E402
import goldenlook  # noqa: E402, F401

ALICE, BOB = ("nobody", "daemon") if os.geteuid() == 0 else (pwd.getpwuid(os.geteuid()).pw_name, None)
HOST = os.uname().nodename
FILES = {
    "j.sh": "#!/bin/bash\n#SBATCH -J demo\nsleep ${1:-300}\n",
    "s.sh": "#!/bin/bash\n#SBATCH -J demo\n#SBATCH -n1\n#SBATCH -t 10\necho hello; sleep 120\n",
    "bad.sh": "echo no shebang\n",
    "two.sh": "#!/bin/bash\n#SBATCH -J two\n#SBATCH -N2\n#SBATCH --ntasks-per-node=2\nsrun -n4 sleep 300\n",
    "fail.sh": "#!/bin/bash\nexit 3\n",
    "crlf.sh": "#!/bin/bash\r\necho hi\r\n",
    "unknown.sh": "#!/bin/bash\n#SBATCH --bogus-option=1\ntrue\n",
    "late.sh": "#!/bin/bash\n#SBATCH -J early\necho hi\n#SBATCH -J late\n",
    "multi.conf": '0 echo zero of %t\n1-2 echo task %t offset %o\n3 bash -c "exit 4"\n',
    "badmulti.conf": "0 echo zero\n",
    "steps.sh": '#!/bin/bash\n#SBATCH -J steps\n#SBATCH -N2\n#SBATCH -n4\nsrun sleep 1\nsrun -n1 -N1 -J bad false\nsrun -n2 -J sig bash -c "kill -9 \\$\\$"\nexit 5\n',
    "e.sh": '#!/bin/bash\nenv >e.$SLURM_JOB_ID.b\nsrun bash -c "env >e.\\$SLURM_JOB_ID.s\\$SLURM_PROCID"\n',
    "ea.sh": "#!/bin/bash\nenv >e.$SLURM_ARRAY_JOB_ID.$SLURM_ARRAY_TASK_ID\n",
    "traps.sh": '#!/bin/bash\n#SBATCH -J traps -N2 -n2 -o traps.out\ntrap "echo batch USR1" USR1; trap "echo batch TERM" TERM\n'
                'srun bash -c "trap \\"echo task \\$SLURM_PROCID USR1\\" USR1; trap \\"echo task \\$SLURM_PROCID TERM\\" TERM; while :; do sleep 0.2; done" &\n'
                "while :; do sleep 0.2; done\n",
}
# Of the set-up with two nodes of GPUs; what its step's tasks have comes apart from what the job has.
TRAIN = {
    "train.sh": "#!/bin/bash\n#SBATCH -J train -N2 -n4 -c2 -p long -t 2:00:00 --gres=gpu:h100:2 --mem=4G -L matlab:1 --comment='first run' -o train-%j.out\n"
                "env >train.batch\nsrun --gres=gpu:h100:1 bash -c 'env >train.task$SLURM_PROCID; sleep 300'\n",
}
# The recorded machines ask for their host's name; here they are all one.
HOSTNAME = f"#!/bin/sh\necho \"${{SLURMD_NODENAME:-{HOST}}}\"\n"
WHOLE = {"TimeLimit": "00:10:00", "Partition": "debug", "NumNodes": "1-1", "NumCPUs": "1", "NumTasks": "1", "CPUs/Task": "1",
         "ReqTRES": "cpu=1,mem=500M,node=1,billing=1", "MinCPUsNode": "1", "MinMemoryCPU": "500M", "OverSubscribe": "NO", "Exclusive": "NO",
         "ReqB:S:C:T": "0:0:*:*", "NtasksPerN:B:S:C": "0:0:*:*"}


class World:
    """A cluster as one of the recorded ones; node names of the recording are mapped to its own."""

    def __init__(self, nodes, conf, scheduler, prefix="n", first_id=5000, env=None, hosts=False, files=None):
        self.prefix, self.more_env, self.hosts, self.files = prefix, env or {}, hosts, {**FILES, **(files or {})}
        self.c = spurtest.Cluster(nodes=0, conf=conf, scheduler=scheduler, controller=f"first_job_id = {first_id}")
        self.c.conf_path.write_text(self.c.conf_path.read_text().replace('"test"', '"peer"', 1))
        self.bin = self.c.root / "bin"
        self.nodes = nodes
        self.slug, self.state, self.names = None, None, goldenfile.Names()

    def start(self):
        c = self.c
        try:
            c.start_ctld()
            for name, (cpus, memory, extra) in self.nodes.items():
                c.nodes[name] = spurtest.Daemon(c, name, "spurd", lambda n=name, u=cpus, m=memory, x=extra: c._node_arguments(n, u, m, x))
                if self.hosts:  # a host name of its own for each
                    c.nodes[name].wrapper = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name]
                c.nodes[name].spawn()
            for node in c.nodes.values():
                node.wait_ready()
            c.wait_idle(30)
            if self.hosts:
                wait_for(lambda: "N/A" not in c.run("sinfo -h -N -o %O").stdout, 60, "every node's load to be known", every=0.2)
        except BaseException:
            c.close()
            raise
        self.bin.mkdir()
        (self.bin / "hostname").write_text(HOSTNAME)
        (self.bin / "hostname").chmod(0o755)
        for name, text in self.files.items():
            (c.work / name).write_bytes(text.encode())
            (c.work / name).chmod(0o755)
            if os.geteuid() == 0:
                os.chown(c.work / name, pwd.getpwnam(ALICE).pw_uid, -1)
        return self

    def env(self, user):
        return {**self.c.env, "PATH": f"{self.bin}:{spurtest.BIN}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.c.work), "USER": user, "LOGNAME": user,
                "SHELL": "/bin/bash", "LANG": "C.UTF-8", **self.more_env.get({ALICE: "alice", BOB: "bob"}.get(user, user), {})}

    def popen(self, command, user="alice", **more):
        name = {"alice": ALICE, "bob": BOB, "root": "root"}[user]
        as_user = {}
        if os.geteuid() == 0 and name != "root":
            who = pwd.getpwnam(name)
            as_user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        return subprocess.Popen(["bash", "-c", command], cwd=self.c.work, env=self.env(name), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True, umask=0o022, **as_user, **more)

    def sh(self, command, user="alice", timeout=40):
        p = self.popen(command, user)
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            raise Failed(f"{command}: no end after {timeout} s: {p.communicate()}") from None
        return p.returncode, out, err

    # ---- recorded words ↔ ours ----

    def ours(self, text):
        text = self.names.command(text).replace("/home/alice", str(self.c.work))
        text = re.sub(r"\balice\b", ALICE, text) if ALICE != "alice" else text
        text = re.sub(r"\bbob\b", BOB or "bob", text)
        text = re.sub(r"\b1001\b", str(pwd.getpwnam(ALICE).pw_uid), text)
        return re.sub(r"(?<![\w\\-])n(?=\d|\[\d)", self.prefix, text) if self.prefix != "n" else text

    def recorded(self, text):
        text = text.replace(str(self.c.work), "/home/alice").replace(f"by {pwd.getpwnam(ALICE).pw_uid}", "by 1001")
        text = re.sub(rf"\b{ALICE}\b", "alice", text)
        text = re.sub(rf"\b{BOB}\b", "bob", text) if BOB else text
        text = re.sub(rf"\b{re.escape(HOST)}\b", "login", text)
        return re.sub(rf"\b{re.escape(self.prefix)}(?=\d|\[\d)", "n", text) if self.prefix != "n" else text

    def id_of(self, recorded):
        return self.names.ours.get(recorded) or self.ours(recorded)

    def users(self):
        """(ours, recorded) names."""
        who = pwd.getpwnam(ALICE)
        if self.slug == "one":
            return []  # its user is root
        return [(ALICE, "alice"), *([(BOB, "bob")] if BOB else []), (str(who.pw_uid), "1001"), (grp.getgrgid(who.pw_gid).gr_name, "alice")]

    # ---- states ----

    def clean(self):
        self.sh(f"scancel -u {ALICE} -u {BOB or ALICE}; scancel -u {ALICE}; scancel -u {BOB or ALICE}", "root" if os.geteuid() == 0 else "alice")
        wait_for(lambda: not self.c.run("squeue -h -o %i").stdout, 30, "an empty queue", every=0.05)

    def enter(self, block):
        """The state that the block was recorded in; blocks of one state follow each other."""
        slug = block.name.partition(":")[0]
        if (self.slug, self.state) == (slug, block.state):
            self.settle()
            return
        if self.slug and self.slug != slug:
            self.sh("scontrol update nodename=ALL state=resume; scontrol reconfigure", "root")
        lines = SETUPS.get(f"{slug} {block.state}", [])
        if lines[:1] != ["keep"]:
            self.names = goldenfile.Names()
            self.clean()
        self.slug, self.state = slug, block.state
        self.do(lines)

    def settle(self):
        """Who typed the commands was slower than most nodes are clean. Some jobs hear no SIGTERM: not for ever."""
        try:
            wait_for(lambda: not self.c.run("squeue -h -t CG -o %i", check=False).stdout, 2, "nodes to be clean")
        except Failed:
            pass

    def do(self, lines):
        for line in lines:
            user = "alice"
            if m := re.match(r"(root|bob) (.*)", line):
                user, line = m[1], m[2]
            if m := re.fullmatch(r"(\d+) = (.*)", line):
                code, out, err = self.sh(self.ours(m[2]), user)
                assert code == 0, f"{line}: {out}{err}"
                self.names.ours[m[1]] = re.findall(r"\d+", out)[-1]
            elif m := re.fullmatch(r"wait (\S+) (\S+)", line):
                job, states = self.id_of(m[1]), set(m[2].split(","))
                wait_for(lambda: set(self.c.run(["squeue", "-h", "-t", "all", "-o", "%T", "-j", job], check=False).stdout.split()) & states, 20,
                         f"job {job} to be {m[2]}: {self.c.run('squeue -t all', check=False).stdout}", every=0.05)
            elif m := re.fullmatch(r"planned (\S+)", line):
                job = self.id_of(m[1])
                wait_for(lambda: self.c.run(["squeue", "-h", "-j", job, "-o", "%Y"]).stdout.strip() not in ("", "(null)"), 20, f"job {m[1]} to have a plan", every=0.05)
            elif m := re.fullmatch(r"sleep (\S+)", line):
                time.sleep(float(m[1]))
            elif line == "keep":
                pass
            elif line == "clean":
                self.clean()
            else:
                self.sh(self.ours(line), user)


SIX = {**{f"n{i}": (8, 16000, []) for i in range(1, 5)}, "n5": (16, 256000, []), "n6": (32, 64000, [])}


def six_conf(p, gres='\ngres = ["gpu:h100:4", "gpu:a100:2"]'):
    return f'''
[[partitions]]
name = "debug"
nodes = "{p}[1-4]"
default = true
max_time = "1:00:00"
default_time = "10"

[[partitions]]
name = "long"
nodes = "{p}[1-6]"

[[partitions]]
name = "gpu"
nodes = "{p}6"
max_time = "1-0"
default_time = "30"

[[nodes]]
names = "{p}[1-4]"
features = ["ib", "zen"]
sockets = 2
cores_per_socket = 4
threads_per_core = 1
tmp_disk_mb = 10000

[[nodes]]
names = "{p}5"
features = ["bigmem", "zen"]
weight = 10
sockets = 2
cores_per_socket = 8
threads_per_core = 1
tmp_disk_mb = 10000

[[nodes]]
names = "{p}6"
features = ["gpu", "xeon"]
weight = 20
sockets = 2
cores_per_socket = 8
threads_per_core = 2
tmp_disk_mb = 10000{gres}

[licenses]
matlab = 4
ansys = 2
'''


SIX_SCHEDULER = "def_mem_per_cpu_mb = 500\nkill_wait_secs = 5\ninterval_secs = 1\nrequeue_delay_secs = 120"
ONE_CONF = '\n[[partitions]]\nname = "debug"\ndefault = true\nnodes = "ALL"\n'
OTHER = {**{f"rack{i}": (8, 15000, []) for i in range(1, 5)}, "rack5": (20, 200000, []), "rack6": (36, 60000, [])}


LAST_GPUS = [("h100", 0, 3), ("a100", 4, 5)]


def give_devices(w, name, kinds):
    """GPUs as an agent finds them, with a file each."""
    folder = w.c.root / "devices" / name
    folder.mkdir(parents=True)
    for i in range(kinds[-1][2] + 1):
        (folder / f"nvidia{i}").touch()
    (folder / "gres.conf").write_text("".join(f"Name=gpu Type={t} File={folder}/nvidia[{a}-{b}]\n" for t, a, b in kinds))
    cpus, memory, _ = w.nodes[name]
    w.nodes[name] = (cpus, memory, ["--gres-config", str(folder / "gres.conf")])


def world(kind, devices=False, **more):
    """one: a node; six: the recorded cluster; gpus: the same, whose fifth node has GPUs too; other: other names and sizes."""
    if kind == "one":
        return World({"n1": (64, 16000, [])}, ONE_CONF, "", **more)
    p = "rack" if kind == "other" else "n"
    conf = six_conf(p, "") if devices else six_conf(p)
    if kind == "gpus":
        more["files"] = TRAIN
    w = World(dict(OTHER if kind == "other" else SIX), conf, SIX_SCHEDULER, prefix=p, **more)
    if devices:
        give_devices(w, p + "6", LAST_GPUS)
    if kind == "gpus":
        give_devices(w, p + "5", [("h100", 0, 1)])
    return w


SETUPS = goldenfile.setups()


def is_environment(block):
    """test_golden_env.py compares it."""
    return block.name.startswith("environments:") and int(block.name.split(":")[1]) <= 27


def account_for(folder, blocks, rules):
    """Each recorded command is run, or in the list with its reason; the list names nothing that isn't there, and doesn't grow. Returns how many are run."""
    used = collections.Counter()
    run = 0
    for block in (b for file in blocks.values() for b in file):
        why = goldenfile.why_left_out(block, rules)
        if why:
            used[why[0]] += 1
        else:
            assert not block.of("env") or is_environment(block), f"{block.name} has an environment and is not left out"
            run += 1
    idle = [rule[0] for i, rule in enumerate(rules) if not used[i]]
    assert not idle, f"in tests/golden/left-out, but not recorded: {idle}"
    out = sum(used.values())
    print(f"{folder}: {run} recorded commands are run, {out} are left out")
    assert out <= goldenfile.at_most(folder), "tests/golden/left-out may only become shorter"
    return run
