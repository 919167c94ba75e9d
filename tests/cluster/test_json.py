# SPDX-License-Identifier: Apache-2.0
"""--json of the commands has the shape of Slurm's OpenAPI document: names, types, and what must be there; and says what the columns say."""
import json
import pathlib

import jsonschema
import pytest

from spurtest import NOBODY, wait_for

SHAPES = json.loads((pathlib.Path(__file__).resolve().parents[1] / "golden" / "shapes-v0.0.45.json").read_text())["components"]["schemas"]
SHARED = {"cpus": 8, "memory_mb": 16000,
          "conf": '\n[[partitions]]\nname = "debug"\ndefault = true\nmax_time = "1h"\n\n[[partitions]]\nname = "dark"\nnodes = "n2"\nhidden = true\n'
                  '\n[licenses]\nmatlab = 2\n\n[[nodes]]\nnames = "n2"\ngres = ["gpu:a100:2"]\n'}


def strict(schema):
    """The same with no member beyond those that are named. (Slurm's document requires some by a path, such as "nodes/count", which no member has.)"""
    out = {k: {n: strict(p) for n, p in v.items()} if k == "properties" else strict(v) if k == "items" else v for k, v in schema.items()}
    if "required" in out:
        out["required"] = [name for name in out["required"] if "/" not in name]
    return {**out, "additionalProperties": False} if "properties" in out else out


def check(what, name):
    whole = {"components": {"schemas": {k: strict(v) for k, v in SHAPES.items()}}, "$ref": f"#/components/schemas/v0.0.45_{name}"}
    errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in jsonschema.Draft7Validator(whole).iter_errors(what)]
    assert not errors, "\n".join(errors[:20])


def told(c, command, **run):
    return json.loads(c.run(command, **run).stdout)


def number(no_val):
    assert no_val["set"] and not no_val["infinite"]
    return no_val["number"]


@pytest.fixture(scope="module")
def jobs(shared):
    ids = {"runs": shared.batch("srun sleep 300", "-n2", "-J", "runs", "--comment", 'a "b"\t/c', "-L", "matlab:1", name="runs.sh"),
           "gpu": shared.submit("-w", "n2", "--gres=gpu:1", "--wrap", "sleep 300"),
           "waits": shared.submit("-H", "--begin=now+1hour", "-t", "30", "--mem=1G", "-x", "n1", "--wrap", "true"),
           "array": shared.submit("-H", "--array=1-5%2", "--wrap", "true"),
           "failed": shared.submit("--wrap", "exit 3"), "killed": shared.submit("--wrap", "kill -9 $$"),
           "dark": shared.submit("-p", "dark", "-H", "--wrap", "true")}
    shared.wait_state(ids["runs"], "RUNNING")
    shared.wait_state(ids["gpu"], "RUNNING")
    shared.wait_state(ids["failed"], "FAILED")
    shared.wait_state(ids["killed"], "FAILED")
    wait_for(lambda: shared.run("squeue", "-h", "-s", "-j", ids["runs"]).stdout.count("\n") == 2)
    return ids


def test_squeue(shared, jobs):
    doc = told(shared, "squeue --json -t all")
    check(doc, "openapi_job_info_resp")
    by_id = {j["job_id"]: j for j in doc["jobs"]}
    assert set(jobs.values()) <= set(by_id)
    missing = set(SHAPES["v0.0.45_job_info"]["properties"]) - set(by_id[jobs["runs"]])
    assert not missing
    runs, waits = by_id[jobs["runs"]], by_id[jobs["waits"]]
    assert (runs["job_state"], runs["name"], runs["comment"], number(runs["tasks"])) == (["RUNNING"], "runs", 'a "b"\t/c', 2)
    assert runs["job_resources"]["nodes"]["list"] == runs["nodes"] and runs["licenses"] == "matlab:1"
    assert (waits["hold"], number(waits["time_limit"]), number(waits["memory_per_node"]), waits["excluded_nodes"]) == (True, 30, 1024, "n1")
    assert "job_resources" not in waits and waits["batch_host"] == ""
    assert by_id[jobs["array"]]["array_task_string"] == "1-5%2"
    assert by_id[jobs["gpu"]]["gres_detail"] == ["gpu:a100:1"]
    failed, killed = by_id[jobs["failed"]]["exit_code"], by_id[jobs["killed"]]["exit_code"]
    assert (failed["status"], number(failed["return_code"])) == (["ERROR"], 3)
    assert (killed["status"], number(killed["signal"]["id"]), killed["signal"]["name"]) == (["SIGNALED"], 9, "KILL")
    assert [j["job_id"] for j in told(shared, ["squeue", "--json", "-j", str(jobs["waits"])])["jobs"]] == [jobs["waits"]]
    assert told(shared, "squeue --json -n nosuch")["jobs"] == []


def test_sinfo(shared, jobs):
    rows = told(shared, "sinfo --json")["sinfo"]
    for row in rows:
        check(row["partition"], "partition_info")
    nodes = {(row["partition"]["name"], n): row for row in rows for n in row["nodes"]["nodes"]}
    assert set(nodes) == {("debug", "n1"), ("debug", "n2"), ("dark", "n2")}
    n2 = nodes["debug", "n2"]
    assert n2["gres"] == {"total": "gpu:a100:2", "used": "gpu:a100:1"} and n2["node"]["state"] == ["MIXED"]
    assert n2["cpus"]["total"] == 8 and n2["memory"]["maximum"] == 16000
    shared.run(["scontrol", "update", "nodename=n1", "state=drain", 'reason=fan "3"'])
    drained = next(row for row in told(shared, "sinfo --json -p debug -n n1")["sinfo"])
    assert drained["reason"]["description"] == 'fan "3"' and "DRAIN" in drained["node"]["state"]
    shared.run("scontrol update nodename=n1 state=resume")


def test_sdiag(shared, jobs):
    doc = told(shared, "sdiag --json")
    check(doc, "openapi_diag_resp")
    assert not set(SHAPES["v0.0.45_stats_msg"]["properties"]) - set(doc["statistics"])
    assert doc["statistics"]["jobs_submitted"] == len(jobs) and doc["statistics"]["jobs_failed"] == 2
    text = shared.run("sdiag").stdout
    assert f"\nJobs submitted: {len(jobs)}\n" in text and "\n\tLast cycle:   " in text and "State loop longest gap" in text
    assert {r["message_type"] for r in doc["statistics"]["rpcs_by_message_type"]} >= {"Submit", "Jobs", "Nodes"}


def test_sacct(shared, jobs):
    doc = told(shared, ["sacct", "--json", "-a", "-D", "-j", ",".join(str(j) for j in jobs.values())])
    check(doc, "openapi_slurmdbd_jobs_resp")
    by_id = {j["job_id"]: j for j in doc["jobs"]}
    assert set(by_id) == set(jobs.values())
    runs, failed = by_id[jobs["runs"]], by_id[jobs["failed"]]
    assert [s["step"]["id"] for s in runs["steps"]] == [f"{jobs['runs']}.batch", f"{jobs['runs']}.0"] and runs["comment"]["job"] == 'a "b"\t/c'
    assert {t["type"]: t["count"] for t in runs["tres"]["allocated"]}["cpu"] == 2
    assert (failed["state"]["current"], failed["exit_code"]["return_code"]["number"]) == (["FAILED"], 3)
    assert by_id[jobs["waits"]]["nodes"] == "None assigned" and by_id[jobs["waits"]]["time"]["start"] == 0
    assert by_id[jobs["killed"]]["steps"][0]["state"] == ["CANCELLED"]
    assert all(not j["steps"] for j in told(shared, "sacct --json -a -X")["jobs"])


def test_sacct_cuts_times(shared, jobs):
    row = shared.run(["sacct", "-n", "-X", "-P", "-T", "-o", "start,end,elapsed", "-S", "now-1hour", "-E", "now+1hour", "-j", str(jobs["runs"])]).stdout.strip().split("|")
    plain = shared.run(["sacct", "-n", "-X", "-P", "-o", "start,end", "-j", str(jobs["runs"])]).stdout.strip().split("|")
    assert row[0] == plain[0] and plain[1] == "Unknown" and row[1] != "Unknown"


@pytest.mark.parametrize("command", ["squeue", "sinfo", "sdiag", "sacct"])
def test_versions(shared, command):
    assert shared.run(command, "--json=list").stdout == "data_parser/v0.0.45\n"
    assert told(shared, [command, "--json=v0.0.45"])["errors"] == []
    got = shared.run(command, "--json=v0.0.99", check=False)
    assert got.returncode == 1 and "v0.0.99" in got.stderr and not got.stdout
    got = shared.run(command, "--yaml", check=False)
    assert got.returncode == 1 and "--yaml is not supported" in got.stderr


@pytest.mark.root
def test_what_others_see(shared, jobs):
    """As Slurm without PrivateData: all of it, but for scripts and environments; hidden partitions when asked for."""
    own = [j["job_id"] for j in told(shared, "squeue --json")["jobs"]]
    theirs = told(shared, "squeue --json -a", uid=NOBODY)["jobs"]
    assert [j["job_id"] for j in theirs] == own and {j["name"] for j in theirs} >= {"runs"}
    seen = {j["job_id"] for j in told(shared, "squeue --json", uid=NOBODY)["jobs"]}
    assert set(own) - seen == {jobs["dark"]}
    assert shared.run("sinfo -h -o %P", uid=NOBODY).stdout == "debug*\n" and shared.run("sinfo -a -h -o %R", uid=NOBODY).stdout == "debug\ndark\n"
    assert shared.run("sacct -a -X -n -P -o jobid", uid=NOBODY).stdout.split() == shared.run("sacct -a -X -n -P -o jobid").stdout.split()
    assert shared.run("sacct -X -n -P -o jobid", uid=NOBODY).stdout == ""
    got = shared.run("scontrol write batch_script", jobs["runs"], "-", uid=NOBODY, check=False)
    assert got.stderr and "sleep 300" not in got.stdout
    assert "sleep 300" in shared.run("scontrol write batch_script", jobs["runs"], "-").stdout


def test_sprio_names_users_and_second_ids(shared, jobs):
    assert shared.run("sprio -u root").stdout.split()[:4] == ["JOBID", "PARTITION", "USER", "PRIORITY"]
    job = shared.submit("-w", "n1", "--exclusive", "--wrap", "sleep 100")
    sluid = shared.run("squeue", "-h", "-o", "%s", "-j", job).stdout.strip()
    assert len(sluid) == 14 and sluid[0] == "s"
    for name in (job, sluid):
        assert shared.run("sprio", "-h", "-o", "%.6i %.14s", "-j", name).stdout.split() == [str(job), sluid]
    shared.run("scancel", job)


def test_sprio_adds_up(shared, jobs):
    job = shared.submit("-w", "n1", "--exclusive", "--nice=7", "-p", "debug,dark", "--wrap", "sleep 100")
    rows = [line.split() for line in shared.run("sprio", "-h", "-o", "%i %r %Y %A %J %P %N %S", "-j", job).stdout.splitlines()]
    assert [r[1] for r in rows] == ["debug", "dark"]
    for _, _, total, age, size, part, nice, site in rows:
        assert int(total) == max(1, int(age) + int(size) + int(part) - int(nice)) and (nice, site) == ("7", "0")
    assert rows[0][2] == shared.run("squeue", "-h", "-o", "%Q", "-j", job).stdout.strip()
    shared.run("scancel", job)
