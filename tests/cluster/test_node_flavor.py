# SPDX-License-Identifier: Apache-2.0
"""AMD Spur's ways of running on nodes and of letting them in, beside Slurm's: arrays with job ids from the beginning, scripts on each node, tokens."""
import re

import pytest

from spurtest import NOBODY, wait_for

AMD = '\n[compat]\nflavor = "amd"\n'
ENV = {"SPUR_COMPAT": "amd"}


def rows(c, *options):
    """{id: state} as AMD Spur's users see it."""
    got = c.run(["squeue", "-h", "-t", "all", "-o", "%i %t", *options], env=ENV).stdout
    return {int(i): s for i, s in (line.split() for line in got.splitlines())}


@pytest.fixture
def amd(new_cluster):
    return new_cluster(nodes=2, conf=AMD)


# ---- arrays ----


def test_tasks_have_the_ids_behind_their_arrays(amd):
    c = amd
    p = c.submit("-a", "3,5-6", "-H", c.script("echo $SLURM_JOB_ID $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID > task.$SLURM_ARRAY_TASK_ID"))
    assert rows(c) == {p + 1: "PD", p + 2: "PD", p + 3: "PD"}
    other = c.batch("true")
    assert other == p + 4, "nobody else gets them"
    c.ctld.restart()
    c.run("scontrol release", p)
    wait_for(lambda: {s for i, s in rows(c).items() if i > p} == {"CD"}, 20, "all to end")
    for k, task in enumerate((3, 5, 6)):
        assert (c.work / f"task.{task}").read_text().split() == [str(p + 1 + k), str(p), str(task)]
        assert c.job(p + 1 + k)["ArrayTaskId"] == str(task)
    shown = c.run("scontrol show job", p, env=ENV).stdout
    assert all(f"JobId={p + k} " in shown for k in (1, 2, 3))
    assert c.batch("true") == p + 5, "and none is lost"


def test_steering_by_either_id(amd):
    c = amd
    p = c.submit("-a", "0-3", "--wrap", "sleep 1000")
    wait_for(lambda: all(rows(c).get(p + k) == "R" for k in (1, 2, 3, 4)), 20, "all to run")
    c.run("scancel", p + 2)
    wait_for(lambda: rows(c)[p + 2] == "CA", 20, "the second")
    c.run("scontrol requeue", p)
    wait_for(lambda: c.job(p + 4)["Restarts"] == "1" and rows(c)[p + 4] == "R", 20, "the others to run again")
    c.ctld.restart()
    wait_for(lambda: rows(c) and {rows(c)[p + k] for k in (1, 3, 4)} == {"R"}, 20, "the same after a restart")
    c.run("scancel", f"{p}_3")
    wait_for(lambda: rows(c)[p + 4] == "CA", 20, "the last")
    c.run("scancel", p)
    wait_for(lambda: {rows(c)[p + k] for k in (1, 2, 3, 4)} == {"CA"}, 20, "all")


def test_what_waits_for_an_array(amd):
    c = amd
    good = c.submit("-a", "0-2", c.script("sleep 0.3"))
    bad = c.submit("-a", "0-2", c.script("test $SLURM_ARRAY_TASK_ID = 0"))
    after = {(p, kind): c.submit("-d", f"{kind}:{p}", c.script("true")) for p in (good, bad) for kind in ("afterok", "afterany", "afternotok")}
    for which in ((good, "afterok"), (good, "afterany"), (bad, "afterany"), (bad, "afternotok")):
        c.wait_state(after[which], "COMPLETED")
    for which in ((good, "afternotok"), (bad, "afterok")):
        wait_for(lambda: c.job(after[which])["Reason"] == "DependencyNeverSatisfied", 20, "its reason")


def test_a_wait_for_an_array_is_for_all_of_it(amd):
    c = amd
    got = c.run(["sbatch", "-W", "-a", "0-1", str(c.script("sleep 1; touch done.$SLURM_ARRAY_TASK_ID"))], env=ENV)
    assert got.returncode == 0 and (c.work / "done.0").exists() and (c.work / "done.1").exists()


def test_they_leave_with_their_array(new_cluster):
    c = new_cluster(nodes=1, conf=AMD, controller="terminal_job_retention_secs = 1")
    p = c.submit("-a", "0-1", c.script("true"))
    wait_for(lambda: c.run("scontrol show job", p, check=False).returncode != 0, 30, "all to leave")
    assert "COMPLETED" in c.run(f"sacct -n -X -P -o State -j {p}").stdout


# ---- scripts on each node ----

BODY = "mkdir -p out; (env | grep -E '^(RANK|WORLD_SIZE|MASTER_|SPUR_NODE_RANK|SPUR_PROCID|OMP_NUM|SPUR_PEER)' ; echo AT=$SLURMD_NODENAME) > out/$SLURMD_NODENAME"


def values(path):
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_each_node_runs_the_script(amd):
    c = amd
    job = c.batch(BODY, "-N2", "-c2", "-o", "/dev/null")
    c.wait_state(job, "COMPLETED")
    for rank, node in enumerate(("n1", "n2")):
        got = values(c.work / "out" / node)
        assert got == {"RANK": str(rank), "SPUR_NODE_RANK": str(rank), "SPUR_PROCID": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": "29500", "OMP_NUM_THREADS": "2", "SPUR_PEER_NODES": "n1,n2", "AT": node}


def test_each_script_has_a_file_by_the_number_of_its_node(amd):
    c = amd
    job = c.batch("echo $RANK at $SLURMD_NODENAME", "-N2", "-o", "x%n.out")
    c.wait_state(job, "COMPLETED")
    assert [(c.work / f"x{i}.out").read_text() for i in (0, 1)] == ["0 at n1\n", "1 at n2\n"]


def test_all_must_end_well(amd):
    c = amd
    job = c.batch("[ $RANK = 0 ] && exit 0; while [ ! -e go ]; do sleep 0.05; done; exit $(cat go)", "-N2", "-o", "/dev/null")
    c.wait_state(job, "RUNNING")
    wait_for(lambda: "its script is over" in c.nodes["n1"].log, 20, "the first script to end")
    assert c.state_of(job) == "RUNNING"
    (c.work / "go").write_text("3")
    c.wait_state(job, "FAILED")
    again = c.batch("[ $RANK = 1 ] && exit 5; sleep 1000", "-N2", "-o", "/dev/null")
    c.wait_state(again, "FAILED")
    wait_for(lambda: c.run("sinfo -h -o %t").stdout.split() == ["idle"], 20, "all to be idle")


def test_a_restart_in_the_middle(amd):
    c = amd
    job = c.batch("while [ ! -e go ]; do sleep 0.05; done; echo x >> ends", "-N2", "-o", "/dev/null")
    c.wait_state(job, "RUNNING")
    c.nodes["n2"].restart()
    c.ctld.restart()
    c.nodes["n1"].restart()
    (c.work / "go").touch()
    c.wait_state(job, "COMPLETED")
    assert (c.work / "ends").read_text() == "x\nx\n"


def test_slurms_way_is_the_first_node_alone(new_cluster):
    c = new_cluster(nodes=2)
    job = c.batch(BODY, "-N2", "-o", "/dev/null")
    c.wait_state(job, "COMPLETED")
    assert [p.name for p in (c.work / "out").iterdir()] == ["n1"] and "RANK" not in values(c.work / "out" / "n1")


# ---- who may join ----


def test_a_short_key_is_warned_of(new_cluster):
    c = new_cluster(nodes=0, auth="permissive", auth_lines='jwt_key = "e2e-test-key"\n', conf=AMD)
    assert "jwt_key has 12 bytes" in c.ctld.log
    jwt = c.run("scontrol token").stdout.split("=", 1)[1].strip()
    assert c.run("sinfo", env={**c.tcp_env(), "SPUR_AUTH_TOKEN": jwt}).returncode == 0
    assert c.run("sinfo", env={**c.tcp_env(), "SPUR_AUTH_TOKEN": jwt[:-2] + "xx"}, check=False).returncode == 1
    conf = c.conf_path.read_text().replace(AMD, "")
    c.conf_path.write_text(conf)
    got = c.run("spurctld --check-config --config", c.conf_path, check=False)
    c.ctld.kill()
    c.ctld.spawn()
    assert c.ctld.process.wait(20) != 0 and "at least 16 are needed" in c.ctld.log + got.stderr


@pytest.mark.root
@pytest.mark.parametrize("conf, auth, allowed", [(AMD, "permissive", True), ("", "permissive", False), (AMD, "required", False)])
def test_tokens_for_nodes_without_a_proof(new_cluster, conf, auth, allowed):
    c = new_cluster(nodes=0, auth=auth, auth_lines='jwt_key = "0123456789abcdef0123456789"\n', admission="token", conf=conf)
    got = c.run("spur token create", uid=NOBODY, env=c.tcp_env(), check=False)
    assert (got.returncode == 0) == allowed, got.stderr
    if allowed:
        assert re.fullmatch(r"[0-9a-f]{6}\.[0-9a-f]{64}\n", got.stdout)
        assert got.stdout[:6] in c.run("spur token list", uid=NOBODY, env=c.tcp_env()).stdout
    assert (c.run("spur token list", env=c.tcp_env(), check=False).returncode == 0) == allowed, "an administrator's name is no proof either"


def test_steps_from_one_nodes_script_outlive_anothers(amd):
    """The nodes stay the job's until the last script has ended, however it got there."""
    c = amd
    body = "[ $RANK = 1 ] && exit 0; while [ ! -e go ]; do sleep 0.05; done; srun -n2 bash -c 'echo $SLURMD_NODENAME $SLURM_PROCID' > tasks"
    for restart in (False, True):
        (c.work / "go").unlink(missing_ok=True)
        job = c.batch(body, "-N2", "-n2", "-o", "/dev/null")
        wait_for(lambda: c.nodes["n2"].log.count("its script is over") == (2 if restart else 1), 20, "the second script to end")
        if restart:
            c.nodes["n2"].restart()
            c.ctld.restart()
        c.wait_state(job, "RUNNING")
        assert c.run("sinfo -h -N -n n2 -o %t").stdout.strip() == "mix"
        (c.work / "go").touch()
        c.wait_state(job, "COMPLETED")
        assert sorted((c.work / "tasks").read_text().splitlines()) == ["n1 0", "n2 1"]
    wait_for(lambda: c.run("sinfo -h -o %t").stdout.split() == ["idle"], 20, "all to be idle")


@pytest.mark.parametrize("conf, option, state", [("", None, "PENDING"), (AMD, None, "NODE_FAIL"), (AMD, "--requeue", "PENDING")])
def test_a_job_that_lost_its_node(new_cluster, conf, option, state):
    c = new_cluster(nodes=1, conf=conf)
    job = c.batch("sleep 1000", *([option] if option else []))
    c.wait_state(job, "RUNNING")
    c.run("scontrol update nodename=n1 state=down reason=gone")
    c.wait_state(job, state)


def test_a_kind_of_dependency_that_is_gone(new_cluster):
    c = new_cluster(nodes=0)
    said = [c.run("sbatch -d expand:1 --wrap true", check=False, env=env) for env in ({}, ENV)]
    assert [s.returncode for s in said] == [1, 1]
    assert "Requested operation not supported" in said[0].stderr and said[1].stderr == said[0].stderr.replace("\n", " (dependency)\n")
