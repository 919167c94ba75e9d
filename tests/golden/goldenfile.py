# SPDX-License-Identifier: Apache-2.0
"""Reads tests/golden/{submit,look}/*.golden (format: tests/golden/convert), tests/golden/setups* and tests/golden/left-out, and compares what a command said
with what is recorded: all but ids, times, pids and host names."""
import collections
import dataclasses
import fnmatch
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Block:
    name: str
    state: int
    command: str
    user: str = "alice"
    note: str = ""
    exit: str = "0"
    lines: list = dataclasses.field(default_factory=list)  # (kind, text)

    def of(self, kind):
        return [text for k, text in self.lines if k == kind]


def read(path):
    state, block, blocks = 0, None, []
    for line in path.read_text().splitlines():
        key, _, text = line.partition(": ")
        if line.startswith("state: "):
            state = int(text)
        elif line.startswith("$ "):
            block = Block(f"{path.stem}:{len(blocks) + 1}", state, line[2:])
            blocks.append(block)
        elif not block or line.startswith("#"):
            continue
        elif line.startswith("> ") or line == ">":
            block.command += "\n" + line[2:]
        elif key in ("as", "note", "exit"):
            setattr(block, "user" if key == "as" else key, text)
        elif re.match(r"(out|err|job|env)[:+~]", line):
            kind, mark = line[:3], line[3]
            block.lines.append((kind if mark == ":" else kind + mark, line[5:]))
    return blocks


def all_blocks(folder):
    return {path.stem: read(path) for path in sorted((HERE / folder).glob("*.golden"))}


def rules():
    for line in (HERE / "left-out").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            what, _, reason = line.rpartition(" | ")
            assert what and reason, f"left-out: {line}"
            yield what.strip(), reason.strip()


def left_out(folder):
    """[(NAMES, reason)] of the folder's files, in the order of the list."""
    files = {path.stem for path in (HERE / folder).glob("*.golden")}
    return [(what, reason) for what, reason in rules() if what.partition(":")[0] in files]


def lines_left_out():
    """[(names, pattern)] of "lines NAMES /PATTERN/ | reason": recorded lines that are not looked for."""
    out = []
    for what, _ in rules():
        if m := re.fullmatch(r"lines (\S+) /(.+)/", what):
            out.append((expand(m[1]), re.compile(m[2])))
    return out


def at_most(folder):
    m = re.search(rf"^# at most: .*\b{folder} (\d+)", (HERE / "left-out").read_text(), re.M)
    return int(m[1])


def why_left_out(block, rules):
    """(number of the rule, reason), or None."""
    for i, (what, reason) in enumerate(rules):
        if any(fnmatch.fnmatchcase(block.name, p) for p in expand(what)):
            return i, reason
    return None


def expand(what):
    """srun:1-3,7 → srun:1, srun:2, …"""
    if ":" not in what:
        return [what + ":*"]
    file, _, numbers = what.partition(":")
    out = []
    for part in numbers.split(","):
        lo, dash, hi = part.partition("-")
        out += [f"{file}:{n}" for n in range(int(lo), int(hi) + 1)] if dash else [f"{file}:{part}"]
    return out


def setups():
    """{"scancel 1" or "scancel:12": [line]}: what makes a state, and what is done before a block.

    "NAME = command" keeps what the command printed as the recorded id NAME; "wait NAME STATE"; other lines are commands; "root command": by root."""
    out, here = collections.defaultdict(list), None
    for line in [line for path in sorted(HERE.glob("setups*")) for line in path.read_text().splitlines()]:
        if m := re.fullmatch(r"\[(.+)\]", line):
            here = m[1]
            out[here] = []
        elif line.strip() and not line.startswith("#"):
            out[here].append(line)
    return out


class Names:
    """Recorded ids and the ones of now."""

    ID = re.compile(r"(?<![\w.:/=%-])(\d{2,8})(?=[_.+]\d|[_.+]\[|\.(?:batch|extern)|\b)(?![:%.]\d)")

    def __init__(self):
        self.ours = {}

    def command(self, text):
        return re.sub(r"(?<![\w.])(\d{2,8})(?=\b|_)", lambda m: self.ours.get(m[1], m[1]), text)

    def known(self, text):
        """The recorded line with today's ids."""
        return re.sub(r"(?<!\d)(\d{2,8})(?!\d)", lambda m: self.ours.get(m[1], m[1]), text)


# What is different at each run, as (pattern, what stands for it).
VOLATILE = [
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?", "TIME"),
    (r"/\S+/slurm_script\b", "SCRIPT"),
    (r"/dev/pts/\d+", "/dev/pts/N"),
    (r"^(User defined signal \d|Terminated) +sleep [\d.]+$", r"\1"),  # how much bash says of it depends on its version
    (r" +$", ""),
]

ID_PLACES = [r"(?<=batch job )\d+", r"(?<=allocation )\d+", r"(?<=JobId=)\d+", r"(?<=StepId=)\d+(?=\.)", r"(?<=STEP )\d+(?=\.)", r"(?<=JOB )\d+",
             r"(?<=job id )\d+(?=\b|_)", r"(?<=[jJ]ob )\d+(?=:? |$|\b)", r"(?<=Terminating job )\d+", r"(?<=job_id=)\d+", r"^\d{2,8}(?=$| |_|\.batch|\.\d)",
             r"(?<=slurm-)\d+(?=_|\.)", r"(?<=out-)\d+(?=-)", r"^ +\d{2,8}(?= |\.|_)", r"(?<=SLURM_JOB_ID=)\d+", r"(?<=SLURM_JOBID=)\d+", r"(?<=SLURM_ARRAY_JOB_ID=)\d+",
             r"(?<=afterok:)\d+", r"(?<=afterany:)\d+", r"(?<=afternotok:)\d+", r"(?<=aftercorr:)\d+", r"(?<=after:)\d+", r"(?<=e)\d{2,8}(?=\.0\.txt)",
             r"(?<=o-nm-)\d+-\d+", r"(?<=-)\d{5}(?=-4\.out)", r"(?<=a-)\d+(?=_)", r"(?<=0007-)\d+"]
IDS = re.compile("|".join(ID_PLACES))


def plain(line, translate):
    for pattern, stands in VOLATILE:
        line = re.sub(pattern, stands, line)
    line = translate(line)
    line = re.sub(r"(\S+:) task (\d+): (?!running)", r"\1 tasks \2: ", line)
    line = IDS.sub("ID", line)
    return re.sub(r" {2,}", " ", line).strip()  # columns are as wide as names and ids are long


def spread(lines):
    """"n1: tasks 0-2: Killed" as three lines: how tasks are put together depends on who was first."""
    out = []
    for line in lines:
        m = re.match(r"(srun: error: \S+: )tasks ([\d,-]+)(: .*)$", line)
        if not m:
            out.append(line)
            continue
        for part in m[2].split(","):
            lo, _, hi = part.partition("-")
            out += [f"{m[1]}tasks {n}{m[3]}" for n in range(int(lo), int(hi or lo) + 1)]
    return out


def lines_match(want, got, cut):
    """want may hold --OPTION and VALUE for any; cut: got may go on."""
    if len(got) < len(want) or (len(got) > len(want) and not cut):
        return False
    for a, b in zip(want, got):
        if a != b:
            pattern = re.escape(a).replace(r"\-\-OPTION", r"--[\w-]+").replace("VALUE", r"[^\"]*")
            if ("OPTION" not in a and "VALUE" not in a) or not re.fullmatch(pattern, b):
                return False
    return True


def compare(block, kind, got, translate, unordered=False):
    """None, or what differs."""
    want = block.of(kind)
    cut = bool(block.of(kind + "~"))
    no_newline = block.of(kind + "+")
    want = want + no_newline
    shown = got.split("\n")
    if shown and shown[-1] == "":
        shown.pop()
    a = spread([plain(line, lambda x: x) for line in want])
    b = spread([plain(line, translate) for line in shown])
    if "traps.out" in block.command:  # bash tells of a signal only where it met a command
        a, b = ([line for line in lines if not line.startswith("User defined")] for lines in (a, b))
    if unordered:  # each node's daemon says it; whose line srun shows first is a matter of time
        a, b = first_of_each(a), first_of_each(b)
    if waits_only(a) != waits_only(b):  # whether it had to wait a moment is a matter of time
        a, b = without_waits(a), without_waits(b)
    if unordered:
        a, b = sorted(a), sorted(b)
    if lines_match(a, b, cut):
        return None
    return "\n".join([f"{kind} recorded:", *(f"  {x}" for x in a), f"{kind} of now:", *(f"  {x}" for x in b)])


ENDS = re.compile(r"(\[TIME\] error: \*\*\* STEP ID\.\d+ ON) \S+ (CANCELLED .*)")


def first_of_each(lines):
    out = []
    for line in lines:
        line = ENDS.sub(r"\1 NODE \2", line)
        if "ON NODE CANCELLED" not in line or line not in out:
            out.append(line)
    return out


WAITS = re.compile(r"(srun|salloc): (job ID queued and waiting for resources|job ID has been allocated resources|Pending job allocation ID)")


def waits_only(lines):
    return any(WAITS.fullmatch(x) and "allocated" in x for x in lines)


def without_waits(lines):
    return [x for x in lines if not WAITS.fullmatch(x)]
