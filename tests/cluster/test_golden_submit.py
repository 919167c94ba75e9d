# SPDX-License-Identifier: Apache-2.0
"""sbatch, srun, salloc and scancel beside what Slurm 26.05 printed and returned (tests/golden), on a cluster set up as the recorded one, and on a second one with other names and
sizes. Compared is all but ids, times, pids and host names. What is not run is in tests/golden/left-out, with reasons; test_everything_is_accounted_for counts it."""
import collections
import os
import pathlib
import pwd
import re
import signal
import subprocess
import sys
import time

import pytest

import spurtest
from spurtest import Failed, wait_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import goldenfile  # noqa: E402

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
    "e.sh": '#!/bin/bash\nenv >e.$SLURM_JOB_ID.b\nsrun bash -c "env >e.\\$SLURM_JOB_ID.s\\$SLURM_PROCID"\n',
    "ea.sh": "#!/bin/bash\nenv >e.$SLURM_ARRAY_JOB_ID.$SLURM_ARRAY_TASK_ID\n",
    "traps.sh": '#!/bin/bash\n#SBATCH -J traps -N2 -n2 -o traps.out\ntrap "echo batch USR1" USR1; trap "echo batch TERM" TERM\n'
                'srun bash -c "trap \\"echo task \\$SLURM_PROCID USR1\\" USR1; trap \\"echo task \\$SLURM_PROCID TERM\\" TERM; while :; do sleep 0.2; done" &\n'
                "while :; do sleep 0.2; done\n",
}
# The recorded machines ask for their host's name; here they are all one.
HOSTNAME = f"#!/bin/sh\necho \"${{SLURMD_NODENAME:-{HOST}}}\"\n"
WHOLE = {"TimeLimit": "00:10:00", "Partition": "debug", "NumNodes": "1-1", "NumCPUs": "1", "NumTasks": "1", "CPUs/Task": "1",
         "ReqTRES": "cpu=1,mem=500M,node=1,billing=1", "MinCPUsNode": "1", "MinMemoryCPU": "500M", "OverSubscribe": "NO", "Exclusive": "NO",
         "ReqB:S:C:T": "0:0:*:*", "NtasksPerN:B:S:C": "0:0:*:*"}


class World:
    """A cluster as one of the recorded ones; node names of the recording are mapped to its own."""

    def __init__(self, nodes, conf, scheduler, prefix="n"):
        self.prefix = prefix
        self.c = spurtest.Cluster(nodes=0, conf=conf, scheduler=scheduler, controller="first_job_id = 5000")
        self.bin = self.c.root / "bin"
        self.nodes = nodes
        self.slug, self.state, self.names = None, None, goldenfile.Names()

    def start(self):
        c = self.c
        try:
            c.start_ctld()
            for name, (cpus, memory, extra) in self.nodes.items():
                c.nodes[name] = spurtest.Daemon(c, name, "spurd", lambda n=name, u=cpus, m=memory, x=extra: c._node_arguments(n, u, m, x))
                c.nodes[name].spawn()
            for node in c.nodes.values():
                node.wait_ready()
            c.wait_idle(30)
        except BaseException:
            c.close()
            raise
        self.bin.mkdir()
        (self.bin / "hostname").write_text(HOSTNAME)
        (self.bin / "hostname").chmod(0o755)
        for name, text in FILES.items():
            (c.work / name).write_bytes(text.encode())
            (c.work / name).chmod(0o755)
            if os.geteuid() == 0:
                os.chown(c.work / name, pwd.getpwnam(ALICE).pw_uid, -1)
        return self

    def env(self, user):
        return {**self.c.env, "PATH": f"{self.bin}:{spurtest.BIN}:/usr/local/bin:/usr/bin:/bin", "HOME": str(self.c.work), "USER": user, "LOGNAME": user,
                "SHELL": "/bin/bash", "LANG": "C.UTF-8"}

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
        text = text.replace(HOST, "login")
        return re.sub(rf"\b{re.escape(self.prefix)}(?=\d|\[\d)", "n", text) if self.prefix != "n" else text

    # ---- states ----

    def clean(self):
        self.sh(f"scancel -u {ALICE} -u {BOB or ALICE}; scancel -u {ALICE}; scancel -u {BOB or ALICE}", "root" if os.geteuid() == 0 else "alice")
        wait_for(lambda: not self.c.run("squeue -h -o %i").stdout, 30, "an empty queue", every=0.05)

    def enter(self, block):
        """The state that the block was recorded in; blocks of one state follow each other."""
        slug = block.name.partition(":")[0]
        if (self.slug, self.state) == (slug, block.state):
            return
        lines = SETUPS.get(f"{slug} {block.state}", [])
        if lines[:1] != ["keep"]:
            self.names = goldenfile.Names()
            self.clean()
        self.slug, self.state = slug, block.state
        self.do(lines)

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
                job, states = self.ours(m[1]), set(m[2].split(","))
                wait_for(lambda: set(self.c.run(["squeue", "-h", "-t", "all", "-o", "%T", "-j", job], check=False).stdout.split()) & states, 20,
                         f"job {job} to be {m[2]}: {self.c.run('squeue -t all', check=False).stdout}", every=0.05)
            elif m := re.fullmatch(r"sleep (\S+)", line):
                time.sleep(float(m[1]))
            elif line == "keep":
                pass
            elif line == "clean":
                self.clean()
            else:
                self.sh(self.ours(line), user)


SIX = {**{f"n{i}": (8, 16000, []) for i in range(1, 5)}, "n5": (16, 256000, []), "n6": (32, 64000, [])}


def six_conf(p):
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

[[nodes]]
names = "{p}5"
features = ["bigmem", "zen"]
weight = 10

[[nodes]]
names = "{p}6"
features = ["gpu", "xeon"]
weight = 20
gres = ["gpu:h100:4", "gpu:a100:2"]

[licenses]
matlab = 4
ansys = 2
'''


SIX_SCHEDULER = "def_mem_per_cpu_mb = 500\nkill_wait_secs = 5\ninterval_secs = 1"
ONE_CONF = '\n[[partitions]]\nname = "debug"\ndefault = true\nnodes = "ALL"\n'


def world(kind):
    if kind == "one":
        return World({"n1": (64, 16000, [])}, ONE_CONF, "")
    if kind == "six":
        return World(SIX, six_conf("n"), SIX_SCHEDULER)
    other = {**{f"rack{i}": (8, 15000, []) for i in range(1, 5)}, "rack5": (20, 200000, []), "rack6": (36, 60000, [])}
    return World(other, six_conf("rack"), SIX_SCHEDULER, prefix="rack")


@pytest.fixture(scope="module")
def worlds(request):
    made = {}

    def get(kind):
        if kind not in made:
            made[kind] = world(kind).start()
        return made[kind]

    yield get
    for w in made.values():
        w.c.close()


BLOCKS = goldenfile.all_blocks()
SETUPS = goldenfile.setups()
RULES = goldenfile.left_out()
EVERYTHING = os.environ.get("SPUR_GOLDEN_ALL") == "1"  # for whoever mends the list: run what is left out too
SIZES = re.compile(r"-[nNc] ?\d{2,}|mem|-N ?\d|--gpus|-w|-x|-B|core|socket|mincpus")


def wanted():
    for blocks in BLOCKS.values():
        for block in blocks:
            if EVERYTHING or not goldenfile.why_left_out(block, RULES):
                yield block


def signals_of(note):
    return [(float(s), getattr(signal, name)) for name, s in re.findall(r"(SIG\w+) after ([\d.]+) s", note)]


def run_block(w, block):
    """(exit, out, err)"""
    command = w.ours(block.command)
    signals = signals_of(block.note)
    during = SETUPS.get(f"during {block.name}", [])
    if block.exit == "stopped":
        signals = [(2.0, signal.SIGTERM)]
    if not signals and not during:
        return w.sh(command, block.user)
    p = w.popen("exec " + command if signals and block.exit != "stopped" else command, block.user)
    for i, (delay, signo) in enumerate(signals):
        time.sleep(min(delay, 1.5 if i == 0 else delay) * spurtest.PATIENCE)
        if block.exit == "stopped":
            os.killpg(p.pid, signo)
        else:
            p.send_signal(signo)
    if during:
        time.sleep(1.5 * spurtest.PATIENCE)
        w.do(during)
    try:
        out, err = p.communicate(timeout=40)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        raise Failed(f"{command} doesn't end: {p.communicate()}") from None
    return p.returncode if p.returncode >= 0 else 128 - p.returncode, out, err


def job_differs(w, block, out):
    """What `scontrol show job` says against the recorded `job:` lines."""
    m = re.search(r"Submitted batch job (\d+)", out)
    if not m:
        return f"not submitted: {out}"
    words = " ".join(block.of("job"))
    if m2 := re.match(r"(\w+) \((\w+)\) in (\S+), (\d+) nodes?, (\d+) CPUs?|(\w+) in (\S+) on (\S+), (\d+) CPUs?", words):
        state, reason, part, nodes, cpus = m2[1], m2[2], m2[3], m2[4], m2[5]
        if m2[6]:
            state, reason, part, nodes, cpus = m2[6], "None", m2[7], m2[8], m2[9]
        want = f"{state} {reason} {part} {nodes} {cpus}"
        seen = []

        def reached():
            got = w.c.run(["squeue", "-h", "-t", "all", "-j", m[1], "-o", "%T %r %P " + ("%N" if m2[6] else "%D") + " %C"], check=False).stdout.strip()
            seen[:] = [w.recorded(got)]
            return seen[0] == want

        try:
            wait_for(reached, 4, every=0.1)
        except Failed:
            return f"the job recorded: {want}\nof now:           {seen[0]}"
        fields = dict(re.findall(r"([A-Za-z/:]+)=(\S+)", words.partition(" CPUs")[2]))
    else:
        fields = {**WHOLE, **dict(re.findall(r"([A-Z][A-Za-z/:]*)=(\S+)", words))}
        if "MinMemoryNode" in fields:
            fields.pop("MinMemoryCPU", None)
    got = w.c.job(int(m[1]))
    wrong = []
    for name, value in fields.items():
        if name in ("Account", "QOS", "Priority", "EligibleTime"):
            continue
        seen = w.recorded(got.get(name, "(absent)"))
        if re.sub(r"\d{4}-\d\d-\d\dT[\d:]+", "TIME", seen) != re.sub(r"\d{4}-\d\d-\d\dT[\d:]+", "TIME", value):
            wrong.append(f"{name} recorded {value}, now {seen}")
    return "\n".join(wrong) or None


def check(w, block):
    if block.user == "bob" and not BOB or block.user == "root" and os.geteuid() != 0:
        pytest.skip("needs root, to be several users")
    w.enter(block)
    if block.name.startswith("srun:"):
        w.clean()  # also of what the one before has not quite given back
    w.do(SETUPS.get(block.name, []))
    code, out, err = run_block(w, block)
    wrong = []
    if block.exit != "stopped" and str(code) != block.exit:
        wrong.append(f"exit recorded {block.exit}, now {code}")
    unordered = bool(re.search(r"\b(srun|salloc)\b", block.command)) or block.command.startswith("scancel -u") or "cat traps" in block.command
    if block.of("job"):
        wrong.append(job_differs(w, block, out))
    else:
        wrong.append(goldenfile.compare(block, "out", out, w.recorded, unordered))
    wrong.append(goldenfile.compare(block, "err", err, w.recorded, unordered))
    wrong = [x for x in wrong if x]
    for kind, text in (("out", out), ("err", err)):
        raw = goldenfile.IDS.findall("\n".join(block.of(kind)))
        now = goldenfile.IDS.findall(w.recorded(text.rstrip("\n")))
        if len(raw) == len(now):
            w.names.ours.update((a.strip(), b.strip()) for a, b in zip(raw, now))
    if block.name.startswith(("sbatch-options", "sbatch-runs", "srun", "salloc", "sbatch-files", "environments")) and block.state != 4 and not SETUPS.get(
            f"{w.slug} {block.state}") and "nosh" not in block.command and "--jobid" not in block.command:
        if "sbatch" in block.command:
            w.clean()
    assert not wrong, "\n".join([f"{block.name}: {block.command}", *wrong, *([f"err of now: {err}"] if err else [])])


@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in wanted() if not b.of("env")])
@pytest.mark.slow
def test_as_recorded(worlds, block):
    check(worlds("one" if block.name.startswith("one-node") else "six"), block)


FOLLOW = {"salloc:10", "salloc:11", "scancel:28"}  # the one before asks for a certain size


@pytest.mark.slow
@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in wanted()
                                   if not b.of("env") and b.name not in FOLLOW and not b.name.startswith("one-node") and not SIZES.search(b.command)])
def test_on_another_cluster(worlds, block):
    """Other names and sizes: what the commands do depends on neither. (Those that ask for a certain size are left to the first cluster.)"""
    check(worlds("other"), block)


def refused():
    for blocks in BLOCKS.values():
        for block in blocks:
            why = goldenfile.why_left_out(block, RULES)
            if why and why[1].startswith("refused"):
                yield block


@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in refused()])
def test_what_is_refused_is_refused(worlds, block):
    """The list says so: whoever makes one of these work takes it from there."""
    w = worlds("six")
    w.enter(block)
    code, out, err = run_block(w, block)
    assert re.search("(is|are) not supported yet", err + out), f"{block.command}: exit {code}\n{out}{err}"


def test_everything_is_accounted_for():
    """Each recorded command is run, or in the list with its reason; and the list names nothing that isn't there."""
    used = collections.Counter()
    run = 0
    for blocks in BLOCKS.values():
        for block in blocks:
            why = goldenfile.why_left_out(block, RULES)
            if why:
                used[why[0]] += 1
            elif not block.of("env"):
                run += 1
            else:
                pytest.fail(f"{block.name} has an environment and is not left out")
    idle = [RULES[i][0] for i in range(len(RULES)) if not used[i]]
    assert not idle, f"in tests/golden/left-out, but not recorded: {idle}"
    print(f"{run} recorded commands are run, {sum(used.values())} are left out")
    assert run >= 300
