# SPDX-License-Identifier: Apache-2.0
"""scontrol beside jobs: partitions, nodes' notes, what it shows, --json, processes, scripts, the prompt."""
import json
import os
import re

import pytest

from spurtest import NOBODY, wait_for

SHARED = {"conf": '\n[licenses]\nmatlab = 4\nansys = 2\n\n[[partitions]]\nname = "debug"\ndefault = true\nmax_time = "1:00:00"\n'
                  '\n[[partitions]]\nname = "secret"\nhidden = true\n', "auth_lines": 'admins = ["boss"]\n'}


def said(c, command, **run):
    got = c.run(command, check=False, **run)
    return got.returncode, got.stdout, got.stderr


def record(c, *words):
    return dict(w.split("=", 1) for w in c.run(["scontrol", "-o", "show", *words]).stdout.split() if "=" in w)


def document(c, command, key):
    got = json.loads(c.run(["scontrol", "--json", *command.split()]).stdout)
    assert got["meta"]["command"] == ["scontrol", "--json", *command.split()]
    assert got["errors"] == [] and got["warnings"] == []
    return got[key]


def test_partitions_are_made_changed_and_removed(shared):
    c = shared
    assert said(c, "scontrol create partitionname=px nodes=n1", uid=NOBODY) == (1, "", "Error creating the partition: Invalid user id\n")
    assert said(c, "scontrol create partitionname=px nodes=n1 maxtime=30 allowaccounts=ml") == (0, "", "")
    assert said(c, "scontrol create partitionname=px nodes=n1") == (1, "", "Error creating the partition: Invalid partition name specified\n")
    px = record(c, "part", "px")
    assert (px["Nodes"], px["MaxTime"], px["AllowAccounts"], px["State"], px["Default"]) == ("n1", "00:30:00", "ml", "UP", "NO")
    c.run("scontrol update partitionname=px maxtime=2-0 maxnodes=1 state=inactive allowaccounts=all")
    assert said(c, ["sbatch", "-p", "px", "--wrap", "true"]) == \
        (1, "", "sbatch: error: Batch job submission failed: Required partition not available (inactive or drain)\n")
    assert said(c, "scontrol update partitionname=px state=bogus") == \
        (1, "", "scontrol: error: Invalid input: state=bogus\nscontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE\n")
    c.run("scontrol update partitionname=px state=down")
    job = c.submit("-p", "px", "--wrap", "true")
    wait_for(lambda: c.job(job)["Reason"] == "PartitionDown", 10)
    c.run("scontrol update partitionname=px nodes=n[1-2] default=yes oversubscribe=force:2 exclusiveuser=yes")
    px = record(c, "part", "px")
    assert (px["Nodes"], px["Default"], px["OverSubscribe"], px["Exclusive"]) == ("n[1-2]", "YES", "FORCE:2", "USER")
    assert record(c, "part", "debug")["Default"] == "NO"
    c.run("scontrol update partitionname=debug default=yes")
    assert said(c, "scontrol delete partitionname=px") == (1, "", "delete_partition partitionname=px: Partition is in use\n")
    c.run("scontrol update partitionname=px state=up")
    c.wait_state(job, "COMPLETED")
    assert said(c, "scontrol delete partitionname=px") == (0, "", "")
    assert said(c, "scontrol delete partitionname=px") == (1, "", "delete_partition partitionname=px: Invalid partition name specified\n")
    assert said(c, "scontrol delete partitionname=debug", uid=NOBODY) == (1, "", "delete_partition partitionname=debug: Invalid user id\n")
    assert said(c, "scontrol update partitionname=debug") == (1, "", "scontrol: error: No changes specified\n")
    assert said(c, "scontrol update partitionname=debug state=down", uid=NOBODY) == (1, "", "slurm_update error: Invalid user id\n")
    code, _, err = said(c, "scontrol update partitionname=debug gracetime=9")
    assert code == 1 and "GraceTime is not supported yet" in err


def test_what_is_made_by_hand_lasts_until_the_next_configuration(cluster):
    c = cluster
    c.run("scontrol create partitionname=px maxtime=7")
    c.run("scontrol update partitionname=debug maxtime=9")
    c.run(["scontrol", "update", "nodename=n1", "comment=lent out", "extra=x", "instanceid=i-1", "weight=7"])
    c.ctld.restart()
    c.wait_idle()
    assert record(c, "part", "px")["MaxTime"] == "00:07:00" and record(c, "part", "debug")["MaxTime"] == "00:09:00"
    text = c.run("scontrol show node n1").stdout
    assert "   Comment=lent out\n   Extra=x\n   InstanceId=i-1 InstanceType=(null)\n" in text and "Weight=7" in text
    code, out, err = said(c, "scontrol reconfigure")
    assert (code, out) == (0, "")
    assert sorted(err.splitlines()) == ["scontrol: node n1: what was changed by hand is dropped",
                                        "scontrol: partition debug: what was changed by hand is dropped",
                                        "scontrol: partition px is dropped: it was made by hand"]
    assert said(c, "scontrol show part px") == (1, "Partition px not found\n", "")
    assert record(c, "part", "debug")["MaxTime"] == "UNLIMITED"
    assert "Comment=" not in c.run("scontrol show node n1").stdout
    assert said(c, "scontrol -Q reconfigure") == (0, "", "")


def test_instance_ids_are_one_for_all_or_one_each(shared):
    c = shared
    c.run("scontrol update nodename=n[1-2] instanceid=a,b instancetype=big")
    got = {n["name"]: (n["instance_id"], n["instance_type"]) for n in document(c, "show nodes", "nodes")}
    assert got == {"n1": ("a", "big"), "n2": ("b", "big")}
    code, _, err = said(c, "scontrol update nodename=n[1-2] instanceid=a,b,c")
    assert code == 1 and err.startswith("slurm_update error: ")
    c.run("scontrol update nodename=n[1-2] instanceid= instancetype=")
    assert {(n["instance_id"], n["instance_type"]) for n in document(c, "show nodes", "nodes")} == {("", "")}


def test_hidden_partitions(shared):
    c = shared
    names = lambda *o: {line.split()[0] for line in c.run(["scontrol", "-o", *o, "show", "part"]).stdout.splitlines()}
    assert names() == {"PartitionName=debug"}
    assert names("-a") == {"PartitionName=debug", "PartitionName=secret"}
    assert names("-a", "--hide") == {"PartitionName=debug"}


def test_licenses_and_what_jobs_have_of_them(shared):
    c = shared
    job = c.submit("-L", "matlab:3", "--wrap", "sleep 100")
    c.wait_state(job, "RUNNING")
    assert c.run("scontrol show licenses").stdout == ("LicenseName=ansys\n    Total=2 Used=0 Free=2 Reserved=0 Remote=no\n"
                                                      "LicenseName=matlab\n    Total=4 Used=3 Free=1 Reserved=0 Remote=no\n")
    assert c.run("scontrol -o show lic ansys").stdout == "LicenseName=ansys Total=2 Used=0 Free=2 Reserved=0 Remote=no\n"
    assert said(c, "scontrol show lic nolic") == (1, "", 'scontrol: error: query "nolic" matched zero licenses.\n')
    assert [(x["LicenseName"], x["Total"], x["Used"], x["Free"]) for x in document(c, "show licenses", "licenses")] == \
        [("ansys", 2, 0, 2), ("matlab", 4, 3, 1)]
    c.run(["scancel", str(job)])


def test_json_has_what_the_texts_say(shared):
    c = shared
    job = c.submit("-N2", "-J", "jay", "--wrap", "srun sleep 100")
    c.wait_state(job, "RUNNING")
    wait_for(lambda: len(document(c, f"show steps {job}", "steps")) == 2, 10)
    steps = document(c, f"show steps {job}", "steps")
    assert sorted(s["step"]["id"] for s in steps) == [f"{job}.0", f"{job}.batch"]
    assert [s["state"] for s in steps] == [["RUNNING"]] * 2
    one, = document(c, f"show job {job}", "jobs")
    assert (one["job_id"], one["name"], one["job_state"], one["nodes"]) == (job, "jay", ["RUNNING"], "n[1-2]")
    nodes = {n["name"]: n for n in document(c, "show nodes", "nodes")}
    assert nodes["n1"]["state"] == ["MIXED"] and nodes["n1"]["partitions"] == ["debug", "secret"] and nodes["n1"]["alloc_cpus"] == 1
    parts = {p["name"]: p for p in document(c, "-a show partitions", "partitions")}
    assert parts["debug"]["maximums"]["time"] == {"set": True, "infinite": False, "number": 60}
    assert parts["debug"]["partition"]["state"] == ["UP"] and parts["secret"]["flags"] == ["HIDDEN"]
    assert document(c, "ping", "pings")[0]["responding"] is True
    assert document(c, "show reservations", "reservations") == []
    c.run(["scancel", str(job)])


def test_details_of_a_job(shared):
    c = shared
    job = c.submit("-N2", "-n4", "--mem=100", "--wrap", "srun -n1 false; sleep 100")
    c.wait_state(job, "RUNNING")
    wait_for(lambda: "DerivedExitCode=1:0" in c.run(["scontrol", "-d", "show", "job", str(job)]).stdout, 10)
    text = c.run(["scontrol", "-d", "show", "job", str(job)]).stdout
    assert f"JobId={job} JobName=wrap\n   SLUID=s" in text
    assert "   JOB_GRES=(null)\n     Nodes=" in text and " CPUs=" in text and " Mem=100 GRES=" in text
    assert "SLUID=" not in c.run(["scontrol", "show", "job", str(job)]).stdout
    c.run(["scancel", str(job)])


def test_the_configuration(shared):
    c = shared
    lines = c.run("scontrol show config").stdout.splitlines()
    assert lines[0].startswith("Configuration data as of 2")
    rows = dict(map(str.strip, line.split("=", 1)) for line in lines[1:] if "=" in line)
    assert rows["ClusterName"] == "test" and rows["Licenses"] == "ansys:2,matlab:4" and rows["MinJobAge"] == "300 sec"
    assert rows["SlurmctldHost[0]"] and rows["SlurmctldPort"] == str(c.port) and rows["SLURM_VERSION"].startswith("26.05")
    assert lines[-1].endswith(" is UP")


def test_a_script_is_for_its_owner(shared):
    c = shared
    job = c.submit("-H", c.script("echo of mine"), uid=NOBODY)
    assert c.run(["scontrol", "write", "batch_script", str(job), "-"], uid=NOBODY).stdout == "#!/bin/bash\necho of mine\n"
    assert c.run(["scontrol", "write", "batch_script", str(job), "-"]).stdout == "#!/bin/bash\necho of mine\n"
    assert said(c, ["scontrol", "write", "batch_script", str(job), "-"], uid=NOBODY + 1) == (0, "", "job script retrieval failed: Invalid user id\n")
    got = c.run(["scontrol", "write", "batch_script", str(job)])
    assert got.stdout == f"batch script written to slurm-{job}.sh\n" and os.access(c.work / f"slurm-{job}.sh", os.X_OK)
    assert said(c, "scontrol write batch_script 99999 -")[2] == "job script retrieval failed: Invalid job id specified\n"
    assert "not supported" in said(c, "scontrol write config")[2]
    c.run(["scancel", str(job)])


@pytest.mark.root
def test_processes_of_a_job(shared):
    c = shared
    job = c.submit("-w", "n2", "-n2", "--wrap", "echo $$ > pid; srun -n2 sleep 100")
    c.wait_state(job, "RUNNING")
    table = lambda *words: [line.split() for line in c.run(["scontrol", "listpids", *words], check=False).stdout.splitlines()[1:]]
    wait_for(lambda: len([r for r in table(f"{job}.0", "n2") if r[3] != "-"]) == 2, 10)
    assert sorted(r[2:] for r in table(f"{job}.0", "n2") if r[3] != "-") == [["0", "0", "0"], ["0", "1", "1"]]
    pid = (c.work / "pid").read_text().strip()
    assert [pid, str(job), "batch", "0", "0"] in table(f"{job}.batch", "n2")
    assert c.run(["scontrol", "pidinfo", pid]).stdout.startswith(f"Slurm JobId={job} ends at ")
    assert said(c, f"scontrol listpids {job}.7") == (1, "", f"StepId={job}.7 does not exist on node (null).\n")
    assert said(c, "scontrol listpids 9999999 n2") == (1, "", "JobId=9999999 does not exist on node n2.\n")
    assert said(c, "scontrol pidinfo 1") == (1, "", "slurm_pid2jobid error: Invalid job id specified\n")
    c.run(["scancel", str(job)])


def test_the_prompt(shared):
    code, out, err = said(shared, "scontrol", input='show part nopart\nbogus\nshow lic "ansys"\nquit\nnever\n')
    assert code == 1 and err == "invalid keyword: bogus\n"
    assert out.startswith("scontrol: show part nopart\nPartition nopart not found\nscontrol: bogus\nscontrol: show lic")
    assert "LicenseName=ansys" in out and out.endswith("scontrol: quit\n")
    assert said(shared, "scontrol", input="show lic ansys\n!!\nexit\n")[1].count("LicenseName=ansys") == 2


def test_jobs_by_name_and_user(shared):
    c = shared
    job = c.submit("-H", "-J", "named", "--wrap", "true")
    other = c.submit("-H", "-J", "named", "--wrap", "true", uid=NOBODY)
    assert said(c, f"scontrol update jobname=named userid={NOBODY + 1} comment=x") == (1, "", "scontrol: error: No jobs with name 'named'\n")
    c.run(f"scontrol update jobname=named userid={NOBODY} comment=mine")
    assert c.job(other)["Comment"] == "mine" and "Comment" not in c.job(job)
    c.run(["scancel", "-n", "named"])


def test_a_job_keeps_the_priority_that_it_began_with(shared):
    job = shared.submit("--wrap", "sleep 100")
    shared.wait_state(job, "RUNNING")
    assert shared.job(job)["Priority"] == "1000"  # weight_partition, and no time waited
    shared.run(["scancel", str(job)])


def test_small_words(shared):
    c = shared
    assert c.run("scontrol show daemons").stdout == "slurmctld slurmd\n"
    assert c.run("scontrol errnumstr 2017").stdout == "Invalid job id specified\n"
    assert c.run("scontrol getaddrs n[1-2]").stdout == \
        f"n1: 127.0.0.1:{c.nodes['n1'].ready['listen']}\nn2: 127.0.0.1:{c.nodes['n2'].ready['listen']}\n"
    wait_for(lambda: c.run("scontrol completing").stdout == "", 10)  # those of the tests before end
    assert said(c, "scontrol setdebug bogus") == (1, "", "invalid debug level: bogus\n")
    assert said(c, "scontrol setdebug info", uid=NOBODY) == (1, "", "slurm_set_debug_level error: Invalid user id\n")
    c.run("scontrol setdebug debug")
    assert re.search(r"^SlurmctldDebug *= debug$", c.run("scontrol show config").stdout, re.M)
    assert c.run("scontrol setdebug info").stdout == ""
    assert "asked" in c.run("scontrol -v ping").stderr and c.run("scontrol ping").stderr == ""
    for words in ("reboot n1", "power down n1", "cluster x", "takeover", "create reservation x", "show assoc_mgr", "show federation", "show topology"):
        code, _, err = said(c, f"scontrol {words}")
        assert code == 1 and "not supported" in err, words
