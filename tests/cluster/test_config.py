# SPDX-License-Identifier: Apache-2.0
"""spur.conf: what stands in it is taken, what is wrong is told with line, key and what is allowed."""
import re
import socket
import subprocess

import pytest

from spurtest import BIN, NOBODY, wait_for

# As the deployment guide has it.
SEED = """\
cluster_name = "spur-k8s"

[controller]
peers = [
  "spurctld-0.spurctld.spur.svc.cluster.local:6821",
  "spurctld-1.spurctld.spur.svc.cluster.local:6821",
  "spurctld-2.spurctld.spur.svc.cluster.local:6821",
]

[scheduler]
interval_secs = 2
plugin = "backfill"

[[partitions]]
name = "default"
state = "UP"
default = true
"""


def check(tmp_path, text):
    path = tmp_path / "spur.conf"
    path.write_text(text)
    return subprocess.run([str(BIN / "spurctld"), "--check-config", f"--config={path}"], capture_output=True, text=True, timeout=20)


def test_the_file_of_the_guide_as_it_stands(tmp_path):
    got = check(tmp_path, SEED)
    assert got.returncode == 0, got.stderr
    assert got.stderr == ""
    assert check(tmp_path, re.sub(r"peers = \[.*?\]\n", "", SEED, flags=re.S)).stderr == ""


def test_the_file_of_the_guide_with_one_controller_runs(new_cluster):
    c = new_cluster(start=False)
    c.conf_path.write_text(re.sub(r"peers = \[.*?\]\n", "", SEED, flags=re.S))
    c.start()
    job = c.batch("echo $SLURM_CLUSTER_NAME $SLURM_JOB_PARTITION")
    c.wait_state(job, "COMPLETED")
    assert c.output(job) == "spur-k8s default\n"


WRONG = [
    ('cluster_nam = "x"\n', 1, "cluster_nam", "cluster_name"),
    ('cluster_name = "x"\n[scheduler]\ninterval_secs = "two"\n', 3, "scheduler.interval_secs", "an integer from 1 to 3600"),
    ('cluster_name = "x"\n[scheduler]\ninterval_secs = 0\n', 3, "scheduler.interval_secs", "1"),
    ('cluster_name = "x"\n[scheduler]\nplugin = "magic"\n', 3, "scheduler.plugin", "backfill"),
    ('cluster_name = "x"\n[auth]\nmode = "off"\n', 3, "auth.mode", "permissive"),
    ('cluster_name = "x"\n[auth]\nplugin = "munge"\nmode = "permissive"\n', 4, "munge", "requires"),
    ('cluster_name = "x"\n[[partitions]]\nname = "a"\nstate = "SIDEWAYS"\n', 4, "state", "UP"),
    ('cluster_name = "x"\n[[partitions]]\nname = "a"\nmax_time = "soon"\n', 4, "max_time", ""),
    ('cluster_name = "x"\n[[partitions]]\nname = "a"\n[[partitions]]\nname = "a"\n', 5, "name", "already"),
    ('cluster_name = "x"\n[[partitions]]\nname = "a"\ndefault = "yes"\n', 4, "default", "true"),
    ('cluster_name = "x"\n[[partitions]]\nname = "a"\nnodes = "n[1-"\n', 4, "nodes", ""),
    ('cluster_name = "x"\n[nosuch]\na = 1\n', 2, "nosuch", ""),
    ('cluster_name = "x"\n[accounting]\ndatabase_url = "postgres://h/d"\n', 3, "accounting.database_url", "not supported yet"),
    ('cluster_name = "x"\n[controller]\nlisten_addr = "nonsense"\n', 3, "controller.listen_addr", ""),
    ('cluster_name = "x\n', 1, "", ""),
    ('cluster_name = "x"\n[scheduler]\n[scheduler]\n', 3, "scheduler", ""),
]


@pytest.mark.parametrize("text, line, key, allowed", WRONG)
def test_what_is_wrong_is_told_with_line_and_key(tmp_path, text, line, key, allowed):
    got = check(tmp_path, text)
    said = got.stderr + got.stdout
    assert got.returncode != 0
    assert re.search(rf"(line |spur\.conf:){line}\b", said), said
    assert key in said and allowed.lower() in said.lower(), said
    # And the daemon does not start.
    run = subprocess.run([str(BIN / "spurctld"), f"--config={tmp_path}/spur.conf", "--listen=127.0.0.1:0", "--state-dir", str(tmp_path / "s")],
                         capture_output=True, text=True, timeout=20)
    assert run.returncode != 0 and re.search(rf"(line |spur\.conf:){line}\b", run.stderr + run.stdout)


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    got = check(tmp_path, 'cluster_name = "x"\nfrob = 1\n[scheduler]\ninterval_secs = 0\n[auth]\nmode = "x"\n')
    said = got.stderr + got.stdout
    assert got.returncode != 0
    for word in ("frob", "interval_secs", "auth.mode"):
        assert word in said


def test_no_such_file(tmp_path):
    got = subprocess.run([str(BIN / "spurctld"), "--check-config", f"--config={tmp_path}/none"], capture_output=True, text=True, timeout=20)
    assert got.returncode != 0 and "none" in got.stderr


@pytest.mark.parametrize("program", ["spurctld", "spurd"])
@pytest.mark.parametrize("words", [["--frobnicate"], ["--listen"], ["--listen=nonsense"]])
def test_flags_that_are_wrong_are_told(tmp_path, program, words):
    got = subprocess.run([str(BIN / program), "--state-dir", str(tmp_path / "s"), *words], capture_output=True, text=True, timeout=20)
    assert got.returncode != 0 and (words[0] in got.stderr or words[0].partition("=")[2] in got.stderr) and got.stdout == ""


def test_a_secret_is_not_logged(new_cluster):
    c = new_cluster(nodes=0, auth_lines='jwt_key = "0123456789abcdef0123"\n')
    c.run("scontrol token")
    c.run("scontrol reconfigure")
    assert "0123456789abcdef0123" not in c.ctld.log
    got = subprocess.run([str(BIN / "spurctld"), "--check-config", f"--config={c.conf_path}"], capture_output=True, text=True)
    assert "0123456789abcdef0123" not in got.stdout + got.stderr


# ---- live ----


def set_conf(c, text):
    c.conf_path.write_text(text)


def test_reconfigure_takes_the_replicated_part(cluster):
    c = cluster
    set_conf(c, c.conf_text + '\n[[partitions]]\nname = "short"\nmax_time = "10"\n')
    assert "short" not in c.run("sinfo -h -o %P").stdout
    c.run("scontrol reconfigure")
    assert "short" in c.run("sinfo -h -o %P").stdout
    job = c.batch("true", "-p", "short")
    c.wait_state(job, "COMPLETED")
    assert c.job(job)["TimeLimit"] == "00:10:00"


def test_reconfigure_of_a_wrong_file_changes_nothing(cluster):
    c = cluster
    set_conf(c, c.conf_text + '\n[[partitions]]\nname = "short"\nfrob = 1\n')
    got = c.run("scontrol reconfigure", check=False)
    assert got.returncode != 0 and "frob" in got.stderr
    assert "short" not in c.run("sinfo -h -o %P").stdout
    assert c.ctld.running()


def test_a_partition_that_goes_while_a_job_waits_in_it(cluster):
    c = cluster
    set_conf(c, c.conf_text + '\n[[partitions]]\nname = "short"\n')
    c.run("scontrol reconfigure")
    job = c.submit("-p", "short", "--begin=now+1", "--wrap", "true")
    set_conf(c, c.conf_text)
    c.run("scontrol reconfigure")
    wait_for(lambda: c.job(job)["Reason"] not in ("BeginTime", "None"), 20, "a reason")
    assert c.state_of(job) == "PENDING"
    c.ctld.restart()
    assert c.state_of(job) == "PENDING"
    set_conf(c, c.conf_text + '\n[[partitions]]\nname = "short"\n')
    c.run("scontrol reconfigure")
    c.wait_state(job, "COMPLETED")


def test_a_start_offers_the_file_only_when_it_changed(cluster):
    """A restart onto the same file changes nothing; onto a new one it does, and back onto the old one too."""
    c = cluster
    first = c.conf_text
    second = first + '\n[[partitions]]\nname = "short"\n'

    def partitions():
        return c.run("sinfo -h -o %P").stdout.split()

    c.ctld.restart()
    assert partitions() == ["debug*"]
    set_conf(c, second)
    c.ctld.restart()
    assert partitions() == ["debug*", "short"]
    c.ctld.restart()
    assert partitions() == ["debug*", "short"]
    set_conf(c, first)
    c.ctld.restart()
    assert partitions() == ["debug*"]


@pytest.mark.root
def test_what_needs_a_restart_is_told(cluster):
    c = cluster
    set_conf(c, c.conf_text.replace('mode = "required"', 'mode = "permissive"') + '\n[logging]\nformat = "json"\nlevel = "debug"\n')
    got = c.run("scontrol reconfigure")
    told = got.stdout + got.stderr
    assert "[auth] mode changes with the next start" in told and "[logging] format changes with the next start" in told
    assert c.run("squeue", env=c.tcp_env(), check=False).returncode != 0, "the mode is still the one of the start"
    set_conf(c, c.conf_text + '\n[controller]\npeers = ["localhost:6821"]\n')
    told = c.run("scontrol reconfigure")
    assert "[controller] peers changes" in told.stdout + told.stderr and "[auth] mode" not in told.stdout + told.stderr
    set_conf(c, c.conf_text.replace('mode = "required"', 'mode = "permissive"'))
    c.ctld.restart()
    assert c.run("squeue", env=c.tcp_env(), uid=NOBODY, check=False).returncode == 0


def test_nodes_of_a_partition(new_cluster):
    c = new_cluster(nodes=2, conf='\n[[partitions]]\nname = "all"\ndefault = true\n[[partitions]]\nname = "second"\nnodes = "n2"\n')
    job = c.batch("echo $SLURMD_NODENAME", "-p", "second")
    c.wait_state(job, "COMPLETED")
    assert c.output(job) == "n2\n"
    got = c.run(["sbatch", "-p", "second", "-w", "n1", "--wrap", "true"], check=False)
    assert got.returncode != 0 or c.job(int(got.stdout.split()[-1]))["Reason"] != "None"


# ---- where it listens ----


def test_any_address_takes_ipv4(new_cluster):
    c = new_cluster(nodes=0, start=False)
    c.ctld.arguments = lambda: [f"--config={c.conf_path}", "--listen=[::]:0", "--state-dir", c.state]
    c.start()
    with socket.create_connection(("127.0.0.1", c.port), 5):
        pass


def test_the_socket_is_where_the_configuration_says(new_cluster):
    c = new_cluster(nodes=0, start=False)
    where = c.root / "other.sock"
    c.conf_path.write_text(c.conf_text + f'\n[controller]\nsocket = "{where}"\n')
    c.ctld.start()
    assert where.is_socket()
    c.run("squeue", env={"SPUR_CONTROLLER_ADDR": f"unix:{where}"})
    env = c.env
    env.pop("SPUR_CONTROLLER_ADDR")
    assert subprocess.run(["squeue"], env=env, capture_output=True).returncode == 0, "found by spur.conf"


@pytest.mark.parametrize("form", ["http://127.0.0.1:{}", "127.0.0.1:{}", "http://localhost:{}"])
def test_addresses_with_and_without_http(new_cluster, form):
    c = new_cluster(nodes=0, auth="disabled")
    assert c.run("squeue", env={"SPUR_CONTROLLER_ADDR": form.format(c.port)}).returncode == 0
