# SPDX-License-Identifier: Apache-2.0
"""No option and no variable of the commands that look is without effect: for each there is a run whose answer is another than without it. The options are those of --help,
so that a new one without a case fails here."""
import re

import pytest

from spurtest import NOBODY, wait_for

SHARED = {"cpus": 8, "conf": '\n[[partitions]]\nname = "debug"\ndefault = true\n\n[[partitions]]\nname = "long"\nnodes = "n2"\nmax_time = "2h"\n'
                             '\n[[partitions]]\nname = "dark"\nnodes = "n2"\nhidden = true\n\n[licenses]\nmatlab = 4\n'}
PLAIN = {"help", "usage", "version"}  # not part of an answer; test_golden.py has them


@pytest.fixture(scope="module")
def jobs(shared):
    ids = {"one": shared.batch("srun sleep 300", "-J", "one", "-A", "ml", "-q", "high", "-L", "matlab:1", "-w", "n1", "-o", "x-%j.out", name="one.sh"),
           "array": shared.submit("-H", "-J", "two", "--array=1-3", "--mem=2048", "-t", "7", "--wrap", "true"),
           "both": shared.submit("-J", "three", "-p", "debug,long", "--begin=now+1hour", "--wrap", "true"),
           "dark": shared.submit("-H", "-J", "dark", "-p", "dark", "--wrap", "true"),
           "ended": shared.submit("-J", "ended", "-w", "n2", "--wrap", "exit 2")}
    shared.wait_state(ids["one"], "RUNNING")
    shared.wait_state(ids["ended"], "FAILED")
    wait_for(lambda: shared.run("squeue", "-h", "-s").stdout.count("\n") == 2)
    shared.run("scontrol update nodename=n2 state=drain reason=fan")
    shared.run("chmod 777 .")
    return ids


# option: (words before it, words of it); None: as root is asked elsewhere
SQUEUE = {
    "Format": ("", "-O jobid:30"), "account": ("", "-A nosuch"), "all": ("as:nobody", "-a"), "array": ("", "-r"), "array-unique": ("", "--array-unique"), "clusters": ("", "-M all"),
    "expand-patterns": ("-O stdout:90 -n one", "--expand-patterns"), "format": ("", "-o %j"), "helpformat": ("", "--helpformat"), "iterate": (None, ""),
    "jobs": ("", "-j {one}"), "json": ("", "--json"), "licenses": ("", "-L matlab"), "long": ("", "-l"), "me": ("as:nobody -a", "--me"), "name": ("", "-n one"),
    "noconvert": ("-o %m", "--noconvert"), "nodelist": ("", "-w n1"), "noheader": ("", "-h"), "notme": ("", "--notme"), "only-job-state": ("", "--only-job-state"), "partition": ("", "-p long"),
    "priority": ("", "-P"), "qos": ("", "-q high"), "reservation": ("", "-R none"), "sort": ("-o %i", "-S -i"), "stale": (None, ""), "start": ("", "--start"), "states": ("", "-t all"),
    "steps": ("", "-s"), "user": ("", "-u nobody"),
}
SINFO = {
    "Format": ("", "-O nodelist:30"), "Node": ("", "-N"), "all": ("as:nobody", "-a"), "clusters": ("", "-M test"), "dead": ("", "-d"), "exact": (None, ""), "format": ("", "-o %P"), "future": (None, ""),
    "helpformat": ("", "--helpformat"), "iterate": (None, ""), "json": ("", "--json"), "list-reasons": ("", "-R"), "long": ("", "-l"), "nodes": ("", "-n n1"),
    "noheader": ("", "-h"), "partition": ("", "-p long"), "responding": (None, ""), "sort": ("-o %P", "-S -P"), "stale": (None, ""), "states": ("", "-t drain"), "summarize": ("", "-s"),
}
SPRIO = {"cluster": (None, ""), "stale": (None, ""), "format": ("", "-o %i"), "helpformat": ("", "--helpformat"), "jobs": ("", "-j 9999"), "long": ("", "-l"), "noheader": ("", "-h"), "norm": ("", "-n"),
         "partition": ("", "-p long"), "sort": ("-o %r", "-S -r"), "user": ("", "-u nobody"), "weights": ("", "-w")}
SDIAG = {"all": (None, ""), "cluster": (None, ""), "json": ("", "--json"), "reset": ("", "-r"), "sort-by-id": (None, ""), "sort-by-time": (None, ""), "sort-by-time2": (None, "")}
SACCT = {
    "accounts": ("-a", "-A ml"), "allocations": ("-a", "-X"), "allusers": ("as:nobody", "-a"), "array": ("-a -X", "--array"), "brief": ("-a", "-b"), "long": ("-a", "-l"), "clusters": (None, ""),
    "constraints": ("-a", "-C ib"), "gid": ("-a", "-g nogroup"), "ncpus": ("-a", "-i 5-9"), "nnodes": ("-a", "-I 3"), "reason": ("-a", "-R JobHeldUser"),
    "timelimit-min": ("-a", "-k 7"), "timelimit-max": ("-a -k 5", "-K 9"),
    "delimiter": ("-a -P", "--delimiter=;"), "duplicates": (None, ""), "endtime": ("-a -s F -S now-1hour", "-E now+1hour"), "format": ("-a", "-o jobname"),
    "helpformat": ("-a", "-e"), "jobs": ("-a", "-j {one}"), "json": ("-a", "--json"), "name": ("-a", "--name=one"),
    "noconvert": ("-a -X -o reqmem", "--noconvert"), "nodelist": ("-a", "-N n1"), "noheader": ("-a", "-n"), "parsable": ("-a", "-p"), "parsable2": ("-a", "-P"),
    "partition": ("-a -X", "-r long"), "qos": ("-a", "-q high"), "stale": (None, ""), "starttime": ("-a", "-S now+1hour"), "state": ("-a -S now-1hour -E now+1hour", "-s F"),
    "truncate": ("-a -X -o end -S now-1hour -E now", "-T"), "units": ("-a -X -o reqmem", "--units=K"), "user": ("-a", "-u nobody"),
}
CASES = {"squeue": SQUEUE, "sinfo": SINFO, "sprio": SPRIO, "sdiag": SDIAG, "sacct": SACCT}


@pytest.mark.parametrize("command", CASES)
def test_every_option_has_a_case(shared, command):
    names = set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", shared.run(command, "--help").stdout, re.M))
    assert names - PLAIN == set(CASES[command])


@pytest.mark.root
@pytest.mark.parametrize("command, option", [(c, o) for c, cases in CASES.items() for o, (before, _) in cases.items() if before is not None])
def test_option(shared, jobs, command, option):
    before, words = CASES[command][option]
    who = {"uid": NOBODY} if "as:nobody" in before else {}
    base = [command, *before.replace("as:nobody", "").split()]
    with_it = shared.run([*base, *words.format(**jobs).split()], **who)
    without = shared.run(base, **who)
    assert with_it.stdout != without.stdout and not with_it.stderr.strip().replace("Possible data_parser plugins:", "")


@pytest.mark.parametrize("command, variable, value", [
    ("squeue", "SQUEUE_FORMAT", "%j"), ("squeue", "SQUEUE_FORMAT2", "name"), ("squeue", "SQUEUE_STATES", "PD"), ("squeue", "SQUEUE_USERS", "nobody"),
    ("squeue", "SQUEUE_PARTITION", "long"), ("squeue", "SQUEUE_NAMES", "one"), ("squeue", "SQUEUE_ACCOUNT", "ml"), ("squeue", "SQUEUE_QOS", "high"),
    ("squeue", "SQUEUE_LICENSES", "matlab"), ("squeue", "SQUEUE_ARRAY", "1"), ("squeue", "SQUEUE_PRIORITY", "1"), ("squeue", "SQUEUE_CLUSTERS", "all"), ("sinfo", "SINFO_CLUSTERS", "test"), ("squeue -o %i", "SQUEUE_SORT", "-i"),
    ("sinfo", "SINFO_FORMAT", "%P"), ("sinfo", "SINFO_PARTITION", "long"), ("sinfo -o %P", "SINFO_SORT", "-P"), ("sacct -a", "SACCT_FORMAT", "jobname"),
    ("sprio", "SPRIO_FORMAT", "%i"), ("sprio", "SPRIO_PARTITION", "long"),
])
def test_variable(shared, jobs, command, variable, value):
    got = shared.run(command, env={variable: value})
    assert got.stdout != shared.run(command).stdout and not got.stderr
    name = command.split()[0]
    spur = variable.replace(name.upper(), f"SPUR_{name.upper()}", 1)
    assert shared.run(command, env={spur: value}).stdout == shared.run(command).stdout  # no such name


def test_sinfo_again_and_again(shared):
    got = shared.run("timeout -s INT 1.5 sinfo -h -i 1", check=False).stdout
    assert got.count("debug*") >= 2 and got.count("\n\n") == 2


def test_exact_tells_sizes_apart(new_cluster):
    c = new_cluster(nodes=1)
    c.add_node("n2", cpus=8)
    assert c.run("sinfo -h -o '%D %c'").stdout == "2 4+\n"
    assert c.run("sinfo -h -e -o '%D %c' -S c").stdout == "1 4\n1 8\n"


def test_squeues_names_are_those_of_the_files(shared, jobs):
    assert shared.run("squeue", "-h", "-j", jobs["one"], "--expand-patterns", "-O", "stdout:200").stdout.strip() == f"{shared.work}/x-{jobs['one']}.out"
    rows = shared.run("squeue -h -P -t PD -n three -o %P").stdout.split()
    assert sorted(rows) == ["debug", "long"]


def test_sdiag_sorts(shared, jobs):
    def order(*options, column):
        text = shared.run("sdiag", *options).stdout.split("by message type\n")[1].split("\n\n")[0]
        rows = [(int(m[1]), int(m[2]), int(m[3]), int(m[4])) for m in re.finditer(r"\( *(\d+)\) count:(\d+) +ave_time:(\d+) +total_time:(\d+)", text)]
        assert len(rows) > 3
        return [r[column] for r in rows]

    for options, column in (([], 1), (["-t"], 3), (["-T"], 2)):
        got = order(*options, column=column)
        assert got == sorted(got, reverse=True), options
    got = order("-i", column=0)
    assert got == sorted(got)


def test_only_the_state(shared, jobs):
    """Ids and states, and of all other columns what a job has that asked for nothing."""
    c = shared
    for flags in ([], ["-t", "all"], ["-r"]):
        plain, bare = (sorted(c.run(["squeue", "-h", *flags, *more, "-o", "%i=%T=%A=%F=%K"]).stdout.split()) for more in ([], ["--only-job-state"]))
        assert bare == plain and bare
    names = [word for word in c.run("squeue --helpformat").stdout.split()]
    every = c.run(["squeue", "-t", "all", "--only-job-state", "-O", ",".join(f"{n}:30" for n in names)]).stdout
    assert len(every.splitlines()) == len(c.run("squeue -t all").stdout.splitlines())
    assert "one.sh" not in every and "matlab" not in every and "RUNNING" in every
    assert c.run(f"squeue -h --only-job-state -o '%i %P %j %u' -j {jobs['one']}").stdout.split()[0] == str(jobs["one"])
    assert c.run("squeue --only-job-state --json").stdout.startswith("{")
