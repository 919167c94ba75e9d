# SPDX-License-Identifier: Apache-2.0
"""spur node: AMD Spur's verbs about nodes; and how a node leaves."""
import signal

import pytest

from spurtest import PATIENCE, alive, wait_for

AMD = '\n[compat]\nflavor = "amd"\n'


def there(c):
    return set(c.run("sinfo -h -N -o %N").stdout.split())


def state(c, node):
    return c.run(f"sinfo -h -N -n {node} -o %t").stdout.strip()


def test_drain_and_resume(new_cluster):
    c = new_cluster(nodes=2)
    c.run("spur node drain n1 --reason 'new disk'")
    assert state(c, "n1") == "drain" and state(c, "n2") == "idle" and "new disk" in c.run("sinfo -R").stdout
    job = c.batch("echo $SLURMD_NODENAME", "-N1")
    c.wait_state(job, "COMPLETED")
    assert c.output(job).split() == ["n2"]
    c.run("spur node resume n1")
    assert state(c, "n1") == "idle"
    c.run("spur node drain ALL")
    assert state(c, "n1") == state(c, "n2") == "drain"


def test_a_removed_agent_stays_out_until_it_is_started_anew(new_cluster):
    c = new_cluster(nodes=2)
    c.run("spur node remove n1")
    assert there(c) == {"n2"}
    wait_for(lambda: "was removed from the cluster" in c.nodes["n1"].log, 15, "n1 to be told")
    c.ctld.restart()
    wait_for(lambda: state(c, "n2") == "idle", what="n2")
    assert there(c) == {"n2"}, "the removal is in the log"
    c.nodes["n2"].restart(signal.SIGTERM)
    assert there(c) == {"n2"}
    c.nodes["n1"].restart()
    wait_for(lambda: there(c) == {"n1", "n2"}, what="n1 to be back")
    c.wait_state(c.batch("true", "-w", "n1"), "COMPLETED")


def test_running_jobs_are_in_the_way(new_cluster):
    c = new_cluster(nodes=2)
    job = c.batch("echo $$ > pid; sleep 1000", "-w", "n1")
    c.wait_state(job, "RUNNING")
    pid = int(wait_for(lambda: (c.work / "pid").exists() and (c.work / "pid").read_text().strip(), what="the script"))
    got = c.run("spur node remove n1", check=False)
    assert got.returncode == 1 and "n1 has running jobs" in got.stderr and there(c) == {"n1", "n2"}
    assert c.run("scontrol delete nodename=n1", check=False).returncode == 1
    c.run("spur node remove n1 --force --reason broken")
    assert there(c) == {"n2"}
    assert c.wait_over(job) == "NODE_FAIL"
    wait_for(lambda: not alive(pid), 20, "the agent to end what it has")
    c.ctld.restart()
    assert c.state_of(job) == "NODE_FAIL"


def test_force_with_a_job_on_two_nodes_gives_all_back(new_cluster):
    c = new_cluster(nodes=2)
    job = c.batch("sleep 1000", "-N2", "--exclusive")
    c.wait_state(job, "RUNNING")
    c.run("spur node remove n2 --force")
    assert c.wait_over(job) == "NODE_FAIL"
    wait_for(lambda: state(c, "n1") == "idle", 20, "n1 to be free")
    c.wait_state(c.batch("true", "--exclusive"), "COMPLETED")


@pytest.mark.parametrize("flavor, gone", [("", False), (AMD, True)])
def test_an_agent_that_ends_on_sigterm(new_cluster, flavor, gone):
    c = new_cluster(nodes=2, conf=flavor)
    assert c.nodes["n2"].stop() < 2 * PATIENCE
    if gone:
        wait_for(lambda: there(c) == {"n1"}, what="n2 to be gone")
        c.nodes["n2"].start()
        wait_for(lambda: state(c, "n2") == "idle", what="n2 to be back at once")
    else:
        assert there(c) == {"n1", "n2"}


def test_with_jobs_it_stays_and_they_go_on(new_cluster):
    c = new_cluster(nodes=1, conf=AMD)
    job = c.batch("sleep 2; echo done")
    c.wait_state(job, "RUNNING")
    c.nodes["n1"].stop()
    assert there(c) == {"n1"}
    c.nodes["n1"].start()
    c.wait_state(job, "COMPLETED")
    assert c.output(job) == "done\n"


def test_a_dead_controller_holds_no_agent_up(new_cluster):
    c = new_cluster(nodes=1, conf=AMD)
    c.ctld.kill()
    assert c.nodes["n1"].stop() < 2 * PATIENCE


@pytest.mark.parametrize("words, said", [
    ([], "say what to do"), (["dance"], "say what to do"), (["drain"], "say which nodes"), (["drain", "n1", "n2"], "say which nodes"),
    (["resume", "n1", "--force"], "--force is for remove"), (["label", "n1", "a=b", "--reason", "x"], "--reason for drain and remove"),
    (["remove", "nowhere"], "Invalid node name"), (["drain", "n["], "hostlist"),
])
def test_wrong_words_are_refused(new_cluster, words, said):
    c = new_cluster(nodes=1)
    got = c.run(["spur", "node", *words], check=False)
    assert got.returncode == 1 and said.lower() in got.stderr.lower() and state(c, "n1") == "idle"


def test_an_agent_that_is_started_anew_at_once_is_another(new_cluster):
    """Within the second in which its node was removed; for ever refused it would be, as the same agent."""
    c = new_cluster(nodes=2)
    for _ in range(3):
        c.run("spur node remove n2 --force --reason again")
        c.nodes["n2"].restart()
        c.wait_idle()
