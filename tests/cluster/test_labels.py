# SPDX-License-Identifier: Apache-2.0
"""Labels of nodes, and the partitions and additions that select by them. What the planner makes of a membership is in tests/property."""
import re

import pytest

from spurtest import wait_for

CONF = """
[[partitions]]
name = "all"
default = true
nodes = "ALL"
[[partitions]]
name = "gpu"
selector = {gpu = "mi300x"}
[[partitions]]
name = "both"
selector = {gpu = "mi300x", rack = "r1"}
[[partitions]]
name = "mixed"
nodes = "n3"
[partitions.selector]
gpu = "mi300x"
[[nodes]]
selector = {rack = "r1"}
features = ["near"]
weight = 7
"""


def members(c, partition):
    return set(c.run(f"sinfo -h -N -o %N -p {partition}").stdout.split())


def labels(c, node):
    got = re.search(r"Labels=(\S+)", c.run("scontrol show node", node).stdout)
    return got[1] if got else None


@pytest.fixture
def cluster(new_cluster):
    c = new_cluster(nodes=0, conf=CONF)
    c.add_node("n1", extra=["--label", "gpu=mi300x", "--label", "rack=r1"])
    c.add_node("n2", extra=["--label", "rack=r0", "--label=rack=r2"])
    c.add_node("n3")
    c.wait_idle()
    return c


def test_what_an_agent_says_selects(cluster):
    c = cluster
    assert (labels(c, "n1"), labels(c, "n2"), labels(c, "n3")) == ("gpu=mi300x,rack=r1", "rack=r2", None)
    assert members(c, "all") == {"n1", "n2", "n3"} and members(c, "gpu") == {"n1"} and members(c, "both") == {"n1"}
    assert members(c, "mixed") == {"n1", "n3"}
    assert re.search(r"\bNodes=n\[1,3\]\n", c.run("scontrol show partition mixed").stdout)
    assert "TotalNodes=1 " in c.run("scontrol show partition gpu").stdout
    assert c.run("sinfo -h -N -n n1 -p all -o '%f %w'").stdout.split() == ["near", "7"]
    assert c.run("sinfo -h -N -n n2 -p all -o '%f %w'").stdout.split() == ["(null)", "1"]
    ran = c.batch("hostname -s; echo $SLURMD_NODENAME", "-p", "gpu")
    c.wait_state(ran, "COMPLETED")
    assert c.output(ran).split()[-1] == "n1"


def test_an_administrators_labels(cluster):
    c = cluster
    running = c.batch("sleep 100", "-p", "gpu")
    c.wait_state(running, "RUNNING")
    c.run("spur node label n[2-3] gpu=mi300x zone/x=")
    assert labels(c, "n2") == "gpu=mi300x,rack=r2,zone/x=" and members(c, "gpu") == {"n1", "n2", "n3"}
    assert members(c, "both") == {"n1"}
    script = c.script("true")
    assert "not available" in c.run("sbatch -p both -w n2", script, check=False).stderr
    c.run("spur node label n2 rack=r1")
    c.wait_state(c.submit("-p", "both", "-w", "n2", script), "COMPLETED")
    c.run("spur node label n1 gpu-")
    assert members(c, "gpu") == {"n2", "n3"} and members(c, "both") == {"n2"} and labels(c, "n1") == "rack=r1"
    assert c.state_of(running) == "RUNNING", "what runs is not disturbed"
    c.run("spur node label ALL rack=r3")
    assert {labels(c, n).split(",")[-1 if n == "n1" else 1] for n in ("n1", "n2", "n3")} == {"rack=r3"}


def test_they_outlive_every_restart(cluster):
    c = cluster
    c.run("spur node label n1 gpu- tier=a")
    c.run("spur node label n3 gpu=mi300x")
    for who in (c.ctld, c.nodes["n1"], c.nodes["n3"], c.ctld):
        who.restart()
        wait_for(lambda: c.run("sinfo -h -o %D -t idle -p all", check=False).stdout.split() == ["3"], what="all nodes")
        assert labels(c, "n1") == "rack=r1,tier=a" and members(c, "gpu") == {"n3"}
    c.run("scontrol reconfigure")
    assert labels(c, "n1") == "rack=r1,tier=a", "no file says them, so none takes them away"
    for node, more in (("n1", ["--label", "gpu=other"]), ("n2", [])):
        before = c.nodes[node].arguments
        c.nodes[node].arguments = lambda before=before, more=more: [*(a for a in before() if not re.search("label|gpu=|rack=", str(a))), *more]
    c.nodes["n1"].restart()
    c.nodes["n2"].restart()
    wait_for(lambda: labels(c, "n2") is None, what="n2 without labels")
    wait_for(lambda: labels(c, "n1") == "tier=a", what="n1 as the administrator wants it")


def test_the_environment_says_labels_too(new_cluster):
    c = new_cluster(nodes=0)
    c.daemon_env["SPUR_NODE_LABELS"] = "a=1,b=2"
    c.add_node("n1")
    c.add_node("n2", extra=["--label", "c=3"])
    assert labels(c, "n1") == "a=1,b=2" and labels(c, "n2") == "c=3"


@pytest.mark.parametrize("words, said", [
    (["n1", "gpu"], "gpu is neither KEY=VALUE nor KEY-"),
    (["n1", "=x"], '"" is no key of a label'),
    (["n1", "a=b c"], '"b c" is no value of a label'),
    (["n1", "a b=c"], '"a b" is no key of a label'),
    (["n1"], "say labels"),
    (["nowhere", "a=b"], "Invalid node name specified"),
])
def test_wrong_labels_are_refused(cluster, words, said):
    got = cluster.run(["spur", "node", "label", *words], check=False)
    assert got.returncode == 1 and said in got.stderr and labels(cluster, "n3") is None


@pytest.mark.root
def test_only_administrators_label(cluster):
    got = cluster.run("spur node label n3 a=b", uid=65534, check=False)
    assert got.returncode == 1 and "Invalid user id" in got.stderr and labels(cluster, "n3") is None


@pytest.mark.parametrize("text, said", [
    ('[[partitions]]\nname = "p"\nselector = {"a b" = "c"}\n', "partitions.selector: this table is not allowed"),
    ('[[partitions]]\nname = "p"\nselector = "a=b"\n', 'partitions.selector: "a=b" is not allowed; must be a table'),
    ('[[nodes]]\nfeatures = ["x"]\n', "nodes.names: is missing, and so is nodes.selector"),
    ('[[nodes]]\nselector = {a = "b"}\naddress = "10.0.0.1"\n', "nodes.address: is for one node, not for those of a selector"),
])
def test_wrong_selectors_are_refused(cluster, tmp_path, text, said):
    conf = tmp_path / "spur.conf"
    conf.write_text('cluster_name = "x"\n' + text)
    got = cluster.run(["spurctld", "--check-config", "--config", str(conf)], check=False)
    assert got.returncode != 0 and said in got.stderr + got.stdout
