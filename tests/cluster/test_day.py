# SPDX-License-Identifier: Apache-2.0
"""A day's work: a user without privileges submits an array of 200 and a summary that depends on it, watches it, cancels part of it, requeues one, runs srun, while the controller is
killed twice and a node once. At the end every output file and every line of sacct is right."""
import os
import re

import pytest

from spurtest import NOBODY, Cluster, wait_for

USER = NOBODY if os.geteuid() == 0 else None
TASKS = 200
CANCELLED = list(range(180, 190))
WITH_STEP = list(range(0, TASKS, 40))
STUCK, FAILS = 7, 42

TASK = """
n=$SLURM_ARRAY_TASK_ID
echo "${SLURM_RESTART_COUNT:-0} $SLURMD_NODENAME" >>begun.$n
echo "task $n of $SLURM_ARRAY_JOB_ID"
if [ $((n % 40)) = 0 ]; then srun -Q -n1 -J part echo "step of task $n"; fi
if [ $n = 7 ] && [ ! -e requeued ]; then while :; do sleep 0.1; done; fi
if [ $n = 42 ]; then exit 3; fi
sleep 0.5
echo $((n * n)) >result-$n.new && mv result-$n.new result-$n
echo "${SLURM_RESTART_COUNT:-0}" >>ran.$n
"""
SUMMARY = "cat result-* | awk '{ s += $1 } END { print s }'"


@pytest.fixture
def day():
    with Cluster(nodes=3, cpus=8, controller="heartbeat_timeout_secs = 5") as c:
        yield c


def rows_of(c, *jobs):
    """{"123_4": (name, state, exit code), "123_4.batch": …}"""
    got = c.run(["sacct", "-n", "-P", "-a", "-o", "JobID,JobName,State,ExitCode", "-j", ",".join(map(str, jobs))])
    out = {}
    for line in got.stdout.splitlines():
        job, *row = line.split("|")
        assert job not in out, f"{job} has two lines:\n{got.stdout}"
        out[job] = tuple(row)
    return out


def restarts_of(c, array):
    """{task: how often it was queued again}"""
    got = c.run(["scontrol", "-o", "show", "job", str(array)]).stdout
    return {int(m[1]): int(m[2]) for m in re.finditer(r"ArrayTaskId=(\d+) .*? Restarts=(\d+) ", got)}


def words(path):
    return [line.split() for line in path.read_text().splitlines()]


def tasks_of(rows, array):
    """The rows task by task: "12_[180-189]" stands for ten."""
    out = {}
    for name, row in rows.items():
        m = re.fullmatch(rf"{array}_(?:(\d+)|\[([\d,-]+)(?:%\d+)?\])", name)
        assert m, name
        for part in (m[1] or m[2]).split(","):
            lo, _, hi = part.partition("-")
            for n in range(int(lo), int(hi or lo) + 1):
                assert n not in out, f"task {n} has two lines"
                out[n] = row
    return out


def again(c, *argv, **run):
    """As a person does whose command met a dead controller."""
    return wait_for(lambda: (got := c.run(list(map(str, argv)), check=False, uid=USER, **run)).returncode == 0 and got, 30, f"{argv}")


@pytest.mark.slow
def test_a_days_work(day):
    c = day
    array = c.batch(TASK, f"--array=0-{TASKS - 1}%12", "-o", "task-%A_%a.out", "-J", "work", "-t", "5", name="task.sh", uid=USER)
    summary = c.batch(SUMMARY, "-d", f"afterany:{array}", "-o", "summary.out", "-J", "summary", name="sum.sh", uid=USER)
    assert c.state_of(summary) == "PENDING"

    def shown():
        return c.run(["squeue", "-h", "-r", "-t", "all", "-j", str(array), "-o", "%i %T"], check=False).stdout

    # it is watched; part of it is cancelled before it began
    wait_for(lambda: f"{array}_7 RUNNING" in shown(), 20)
    assert f"{array}_{TASKS - 1} PENDING" in shown()
    again(c, "scancel", f"{array}_[{CANCELLED[0]}-{CANCELLED[-1]}]")
    assert c.run(["squeue", "-h", "-j", str(summary), "-o", "%r"]).stdout.strip() == "Dependency"

    # the controller dies
    c.ctld.restart()

    # an interactive srun beside it
    got = again(c, "srun", "-n2", "-l", "sh", "-c", "echo hello from $SLURM_PROCID")
    assert sorted(got.stdout.splitlines()) == ["0: hello from 0", "1: hello from 1"]

    # task 7 is stuck: its owner mends what it waited for, and queues it again
    (c.work / "requeued").touch()
    again(c, "scontrol", "requeue", f"{array}_7")
    wait_for(lambda: re.search(r"Restarts=1 ", c.run(["scontrol", "show", "job", f"{array}_7"], check=False).stdout), 20)

    # a node goes down hard, with all that runs there; what ran there is queued again
    node = next(n for n in c.nodes.values() if n is not c.node)
    lost = wait_for(lambda: c.run(["squeue", "-h", "-t", "R", "-w", node.name, "-o", "%i"], check=False).stdout.split(), 20)
    for pid, cmdline in c.ours():
        if str(c.root / node.name).encode() in cmdline and pid != node.pid:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
    node.kill()
    wait_for(lambda: re.search(rf"^{node.name} down", c.run("sinfo -h -N -o '%N %t'", check=False).stdout, re.M), 60, f"{node.name} to be down")
    c.ctld.restart()
    node.start()

    # and it all comes to its end
    wait_for(lambda: c.state_of(summary) == "COMPLETED", 120, "the summary to be done", every=0.2)
    check_tasks(c, array, node.name, lost)
    want = sum(n * n for n in range(TASKS) if n != FAILS and n not in CANCELLED)
    assert (c.work / "summary.out").read_text() == f"{want}\n"
    assert rows_of(c, summary) == {str(summary): ("summary", "COMPLETED", "0:0"), f"{summary}.batch": ("batch", "COMPLETED", "0:0")}
    rows = c.run(["sacct", "-n", "-P", "-a", "-o", "JobName,State,ExitCode", "--name", "sh"]).stdout
    assert rows == "sh|COMPLETED|0:0\nsh|COMPLETED|0:0\n"  # the job of srun, and its step
    assert not c.run("squeue -h").stdout


def check_tasks(c, array, gone, lost):
    """Rows and files of the array, whose tasks on the node `gone` began anew."""
    rows = rows_of(c, array)
    tasks = tasks_of({k: v for k, v in rows.items() if "." not in k}, array)
    parts = {k: v for k, v in rows.items() if "." in k}
    # what was cancelled out of the waiting array is as if it had not been submitted
    assert sorted(tasks) == [n for n in range(TASKS) if n not in CANCELLED], f"lost {gone} with {lost}"
    restarts = restarts_of(c, array)
    for n in CANCELLED:
        assert not any((c.work / name).exists() for name in (f"task-{array}_{n}.out", f"begun.{n}", f"result-{n}"))
    for n, row in sorted(tasks.items()):
        end = ("FAILED", "3:0") if n == FAILS else ("COMPLETED", "0:0")
        assert row == ("work", *end), f"task {n}: {row}"
        text, begun, ran = c.work / f"task-{array}_{n}.out", c.work / f"begun.{n}", c.work / f"ran.{n}"
        assert parts.pop(f"{array}_{n}.batch") == ("batch", *end)
        said = f"task {n} of {array}\n"
        if n in WITH_STEP:
            assert parts.pop(f"{array}_{n}.0") == ("part", "COMPLETED", "0:0")
            said += f"step of task {n}\n"
        assert text.read_text() == said, f"task {n}: {text.read_text()}"
        # as often as it was queued again and once more, for no other reason than it had
        runs = words(begun)
        assert [int(count) for count, _ in runs] == list(range(restarts[n] + 1)), f"task {n} of {restarts[n]} restarts: {runs}"
        by_hand = n == STUCK
        assert sum(where != gone for _, where in runs[:-1]) <= by_hand, f"task {n} was not on {gone}: {runs}"
        assert restarts[n] >= by_hand and restarts[n] <= 1 + by_hand, f"task {n}: {restarts[n]} restarts"
        if n != FAILS:
            assert (c.work / f"result-{n}").read_text() == f"{n * n}\n"
            assert words(ran)[-1] == [str(restarts[n])] and len(words(ran)) <= len(runs), f"task {n}: {words(ran)}"
    assert not parts, f"rows of nothing: {parts}"
    # what was there when its node went had not ended
    again = {f"{array}_{n}" for n, count in restarts.items() if count > (n == STUCK)}
    assert again, f"nothing of {lost} began anew"
