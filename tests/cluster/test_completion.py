# SPDX-License-Identifier: Apache-2.0
"""Completion of bash, zsh and fish, played in the shells themselves where they are there; and that help, completion and manual pages know each
option of each command, which they can't forget since they are made from one table."""
import re
import shutil
import subprocess

import pytest

import spurtest

SHARED = {"conf": '[[partitions]]\nname = "debug"\ndefault = true\n\n[[partitions]]\nname = "deep"\n'}
LINKS = re.findall(r"^COMMAND\(\w+, +(\w+)", (spurtest.REPO / "src/spur/commands.def").read_text(), re.M)

BASH = """
source <(spur completion bash)
COMP_WORDS=({words})
COMP_CWORD=$(({n} - 1))
_spur
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# A shell in a terminal of its own is given the line and two tabs, says what the line is then, and ends.
ZSH = r"""
zmodload zsh/zpty
zpty z zsh -f
zpty -w z 'PROMPT= ; fpath=({directory} $fpath); autoload -U compinit; compinit -u -d {directory}/dump; zstyle ":completion:*" list-prompt ""; LISTMAX=1000; setopt no_beep no_list_ambiguous no_auto_menu bash_auto_list; stty columns 60 rows 400; show() {{ print -r -- "<$BUFFER>" }}; zle -N show; bindkey "^Xp" show; print rea""dy'
zpty -r z out '*ready*'
zpty -w -n z '{line}'$'\t\t'
sleep 1
zpty -w -n z $'\x18p\x15print do""ne\n'
zpty -r z out '*done*'
print -r -- $out
"""


def names(c):
    """Every way to call a command → its option names, as --help says them."""
    got = {}
    verbs = re.findall(r"^  (\w+) ", c.run("spur help").stdout, re.M)
    for command in [[link] for link in LINKS] + [["spur", verb] for verb in verbs]:
        page = c.run([*command, "--help"]).stdout
        got[" ".join(command)] = set(re.findall(r"^ .{0,6}--([A-Za-z][A-Za-z-]*)", page, re.M))
    return got


def bash(c, line):
    words = line.split(" ")
    quoted = " ".join("'" + w + "'" for w in words)
    return c.run(["bash", "--norc", "-c", BASH.format(words=quoted, n=len(words))]).stdout.split()


def fish(c, line):
    c.run(["bash", "-c", f"spur completion fish > {c.work}/spur.fish"])
    got = c.run(["fish", "--no-config", "-c", f"source {c.work}/spur.fish; complete -C '{line}'"]).stdout
    return [line.split("\t")[0] for line in got.splitlines()]


def zsh(c, line):
    c.run(["bash", "-c", f"spur completion zsh > {c.work}/_spur"])
    got = c.run(["zsh", "-f", "-c", ZSH.format(directory=c.work, line=line)]).stdout
    return set(re.findall(r"[^\s\x1b\[\]<>=]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", got)))


SHELLS = {"bash": bash, "fish": fish, "zsh": zsh}
LINES = {
    "sbatch --parti": "--partition", "spur submit --parti": "--partition", "squeue --me": "--me", "spur cancel --interac": "--interactive",
    "srun --open-mode=": "append", "sbatch --partition=de": "deep", "sbatch -p d": "debug", "sinfo -n n": "n1", "scancel -w n": "n2", "scancel -t PEN": "PENDING",
    "spur nod": "nodes", "scontrol requeueh": "requeuehold", "scontrol show part": "partitions",
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("shell", SHELLS)
def test_completes(shared, shell, line):
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    got = {word.rstrip("=").removeprefix("--partition=").removeprefix("--open-mode=") for word in SHELLS[shell](shared, line)}
    assert LINES[line] in got


def test_jobs_and_lists(shared):
    job = shared.submit("-H", "--wrap", "true")
    assert str(job) in bash(shared, "scancel ") and str(job) in bash(shared, "squeue -j ")
    assert set(bash(shared, "squeue -p debug,")) == {"debug,debug", "debug,deep"}
    assert "jobid" in bash(shared, "squeue -O ") and "%i" in bash(shared, "squeue -o ") and "nodelist" in bash(shared, "sinfo -O ")
    shared.run(["scancel", str(job)])
    assert str(job) not in bash(shared, "scancel ")


def test_no_controller(shared):
    """Nobody waits for a controller that isn't there."""
    got = shared.run(["spur", "completion", "--values", "nodes"], env={"SPUR_CONTROLLER_ADDR": "127.0.0.1:1"}, timeout=5, check=False)
    assert (got.returncode, got.stdout, got.stderr) == (0, "", "")


def test_every_option_everywhere(shared):
    scripts = {shell: shared.run(["spur", "completion", shell]).stdout for shell in SHELLS}
    known = names(shared)
    assert len(known) > 20 and all(len(options) > 2 for options in known.values())
    for command, options in known.items():
        assert options <= {o.strip("-=") for o in bash(shared, f"{command} --")}, command
    for link in LINKS:
        rows = set(re.findall(rf"^complete -c {link} .*?-l ([A-Za-z-]+)", scripts["fish"], re.M))
        assert known[link] == rows
        case = re.search(rf"^    (?:\w+\|)?{link}(?:\|\w+)*\)\n(.*?)^        ;;", scripts["zsh"], re.M | re.S)[1]
        assert known[link] == set(re.findall(r"^ +'--([A-Za-z-]+)", case, re.M))
        page = (spurtest.BUILD / "docs" / "man" / f"{link}.1").read_text().split(".SS \"Options of Slurm that")[0]
        assert known[link] == {o.replace("\\-", "-") for o in re.findall(r"^\\fB(?:\\-.\\fR, \\fB)?\\-\\-([A-Za-z\\-]+)\\fR", page, re.M)}


def pages():
    return sorted((spurtest.BUILD / "docs" / "man").glob("*.1"))


def test_there_is_a_page_for_each(shared):
    verbs = set(re.findall(r"^  (\w+) +(?:\((\w+)\))?", shared.run("spur help").stdout, re.M))
    assert {p.name for p in pages()} == {"spur.1"} | {f"{slurm}.1" if slurm else f"spur-{verb}.1" for verb, slurm in verbs}


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.name)
def test_page_is_clean(page):
    """mandoc where it is there, else groff: no warning; and man shows it."""
    if shutil.which("mandoc"):
        got = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
    else:
        got = subprocess.run(["groff", "-ww", "-man", "-z", page], capture_output=True, text=True)
    assert (got.returncode, got.stdout, got.stderr) == (0, "", "")
    if shutil.which("man"):
        shown = subprocess.run(["man", "-l", "--warnings=w", page], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MANWIDTH": "100"})
        assert shown.returncode == 0 and shown.stderr == ""
        assert "NAME" in shown.stdout and "OPTIONS" in shown.stdout or page.name == "spur.1"
