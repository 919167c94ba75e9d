# SPDX-License-Identifier: Apache-2.0
"""Compares what a command shows with the recorded lines of tests/golden/look, column by column: ids, names of users and moments of this run are put back into the recorded ones in
their own width first, what is measured is left out."""
import re

import goldenfile

# What is different at each run, on both sides: (pattern, what stands for it); as wide as it was where it begins with "=".
EACH_RUN = [
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?", "=TIME"),
    (r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\b", "DATE"),
    (r"\(1[67]\d{8}\)", "(UNIX)"),
    (r"(?<![\d:.])\d:\d\d(?![\d:])", "=M:SS"),
    (r"\bRunTime=\S+", "RunTime=T"),
    (r"(?<=[ |])00:00:0\d(?=[ |])", "00:00:0S"),
    (r"\bPriority=[1-9]\d*", "Priority=P"),
    (r"\bs[0-9A-Z]{13}\b", "SLUID"),
    (r"\bAllocNode:Sid=\S+", "AllocNode:Sid=S"),
    (r"\bScheduler=(Main|Backfill)", "Scheduler=S"),
    (r"\b\d+\.\d+\.\d+\.\d+\b *", "ADDR "),
    (r"\b(26\.05\.5|0\.1\.0)\b *", "VER "),
    (r"(?<![\d:])\d+:\d:\d(?![\d:])", "=S:C:T"),
    (r"\b(Sockets|CoresPerSocket|ThreadsPerCore|TmpDisk)=\d+", r"\1=N"),
    (r"\bSrunHost:Pid=(\S+):\d+", r"SrunHost:Pid=\1:P"),
    (r"\b(CPULoad|FreeMem|Version|OS|NodeAddr|Port|BcastAddr)=(Linux .*|\S+)", r"\1=V"),
]
# What only some commands measure.
MEASURED = [
    (r"sdiag", [(r"^(.*:) *\d+$", r"\1 N"), (r'"number": 1\d{9}', '"number": UNIX')]),
    (r"squeue .*%Q", [(r"\|0\.\d{14}\|\d+\|", "|P|P|")]),
    (r"sinfo .*(-Nl|-N -l)", [(r"^((?:\S+ +){6}\d+)( +\d+)", r"\1 DISK")]),
    (r"sinfo .*(port|cores|sockets|disk|%.?[XYZd]|%all)", [(r"(?<=\|)\d+\+?(?= ?\|)", "#"), (r"(?<= )\d+\+? *(?=$| )", "")]),
    (r"sinfo .*(%[eO]|%all|freemem|cpusload)", [(r"\b\d+\.\d\d(-\d+\.\d\d)?\b *", "LOAD "), (r"(?<![\d:])\d{4,6}(-\d{4,6})?\b(?=\||$| ) *", "FREE ")]),
]
SIZES = re.compile(r"%[cmzCdefXYZO]|cpus|memory|node n|S:C:T|-Nl|-N -l|gres|disk|sockets|%\.3N|nodelist:3|r\[1-2\]|printf")


def is_about_sizes(block):
    """Or about the length or look of names."""
    return bool(SIZES.search(block.command))


def wide(match, word):
    return word.ljust(len(match[0]), word[-1])[:len(match[0])]


def leave_out(line, patterns):
    for pattern, stands in patterns:
        line = re.sub(pattern, (lambda m, s=stands: wide(m, s[1:])) if stands.startswith("=") else stands, line)
    return line


def back(text, ours, recorded, left=False):
    """The recorded word for ours, in a column as wide as before; `left`: columns are aligned there."""
    if ours == recorded:
        return text
    more = len(ours) - len(recorded)
    pad = " " * abs(more)
    word = rf"(?<![\w.:/-]){re.escape(ours)}" + (r"(?!\d)" if ours.isdigit() else r"(?!\w)")
    if more >= 0:
        if not left:
            text = re.sub(rf"(?<=  ){word}", pad + recorded, text)
        text = re.sub(rf"{word}(?=  )", recorded + pad, text)
    else:
        text = re.sub(rf"(?<=  ){pad}{word}", recorded, text)
        text = re.sub(rf"{word}{pad}(?=  )", recorded, text)
    return re.sub(word, recorded, text)


ID = re.compile(r"(?<![\w.:/-])( *)(\d+)(?!\d)")


def recorded(w, line, left):
    theirs = {ours: theirs for theirs, ours in w.names.ours.items()}

    def id_back(m):
        was = theirs.get(m[2], m[2])
        room = len(m[1]) + len(m[2]) - len(was)
        return m[1] + was if left or len(m[1]) < 2 or room < 1 else " " * room + was

    line = ID.sub(id_back, line)
    line = re.sub(r"(?<=slurm-)\d+", lambda m: theirs.get(m[0], m[0]), line)
    for ours, name in w.users():  # on the right of its column
        line = re.sub(rf"(?<=  )CANCELLED by {ours}\b", " " * (len(ours) - len(name)) + f"CANCELLED by {name}", line)
    for ours, name in w.users():
        line = back(line, ours, name, left)
    return w.recorded(line)


def is_by_priority(block):
    return block.command.startswith("squeue") and " -S" not in block.command and "-s" not in block.command.split()


def plain(w, text):
    return leave_out(recorded(w, text, True), EACH_RUN).strip()


NOT_THESE = {"Name": "the sentence before the fields", "tres": "recorded 20 characters wide", "associd": "there are no associations yet", "priority": "made of other factors", "prioritylong": "made of other factors",
             "pendingtime": "seconds that it waited, as the machine had time"}


def learn(w, block, out, err):
    """The id of a job that the command submitted."""
    theirs, ours = (re.search(r"job (\d+) queued", text) for text in ("\n".join(block.of("err")), err))
    if theirs and ours:
        w.names.ours[theirs[1]] = ours[1]
    for pattern in (r"Submitted batch job (\d+)", r"^(\d+)$"):
        theirs, ours = (re.search(pattern, text.strip()) for text in ("\n".join(block.of("out")), out))
        if theirs and ours and "sbatch" in block.command:
            w.names.ours[theirs[1]] = ours[1]


TWIN = re.compile(r"(\d+: )?SPUR_\w+=")  # a variable of a job, under its other name


def compare(w, block, kind, got, exact):
    """None, or what differs."""
    skip = [pattern for names, pattern in goldenfile.lines_left_out() if block.name in names]
    want = [line for line in block.of(kind) + block.of(kind + "+") if not any(p.search(line) for p in skip)]
    cut = bool(block.of(kind + "~"))
    rules = EACH_RUN + [r for pattern, rs in MEASURED if re.match(pattern, block.command) for r in rs]
    shown = [recorded(w, line, " -O" in block.command) for line in got.split("\n")]
    if shown and shown[-1] == "":
        shown.pop()
    shown = [line for line in shown if not any(p.search(line) for p in skip) and not TWIN.match(line)]
    a, b = ([leave_out(line, rules) for line in lines] for lines in (want, shown))
    if not exact:
        a, b = ([" ".join(line.split()) for line in lines] for lines in (a, b))
    if is_by_priority(block) or block.command.startswith("cat slurm-"):  # which is made of other factors here
        a, b = sorted(a), sorted(x for x in b if x in a or not cut)
    if block.name.startswith("one:"):  # that recording has no empty line at an end
        a, b = ([line for i, line in enumerate(lines) if line or any(lines[i:])] for lines in (a, b))
    if a == b[:len(a)] and (cut or len(a) == len(b)):
        return None
    return "\n".join([f"{kind} recorded:", *(f"  {x}|" for x in a), f"{kind} of now:", *(f"  {x}|" for x in b[:len(a) + 12])])
