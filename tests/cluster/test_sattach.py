# SPDX-License-Identifier: Apache-2.0
"""sattach and sbcast."""
import os
import re
import subprocess

import spurtest
from spurtest import wait_for

SHARED = {"cpus": 8}


def test_sattach_shows_what_comes(shared):
    p = subprocess.Popen(["srun", "-n2", "-J", "watched", "bash", "-c", "echo up; while [ ! -e go ]; do sleep 0.05; done; echo $SLURM_PROCID out; exit 3"],
                         env=shared.env, cwd=shared.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline(), p.stdout.readline()
    job = shared.run("squeue -h -n watched -o %i").stdout.strip()
    got = shared.run(["sattach", "--layout", f"{job}.0"])
    assert "2 tasks, 1 nodes (n1)" in got.stdout
    a = subprocess.Popen(["sattach", "-l", "-v", f"{job}.0"], env=shared.env, cwd=shared.work, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"connected to node n1" in a.stderr.readline()
    (shared.work / "go").touch()
    out, err = a.communicate(timeout=30 * spurtest.PATIENCE)
    assert sorted(out.splitlines()) == [b"0: 0 out", b"1: 1 out"], err
    assert p.wait(20) == 3 and a.returncode == 3
    got = shared.run(["sattach", f"{job}.0"], check=False)
    assert got.returncode == 1 and got.stderr.startswith("sattach: error: ")
    assert shared.run(["sattach", "12"], check=False).returncode == 1


def test_a_sattach_that_leaves_ends_nothing(shared):
    p = subprocess.Popen(["srun", "-J", "left", "bash", "-c", "echo up; read; echo end"], env=shared.env, cwd=shared.work,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    job = shared.run("squeue -h -n left -o %i").stdout.strip()
    a = subprocess.Popen(["sattach", "-v", f"{job}.0"], env=shared.env, cwd=shared.work, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"connected to node" in a.stderr.readline()
    a.terminate()
    assert a.wait(20) == 128 + 15
    p.stdin.write(b"\n")
    p.stdin.close()
    assert (p.stdout.read(), p.wait(20)) == (b"end\n", 0)


def test_sbcast(shared):
    source, dest = shared.work / "data", shared.work / "copy"
    source.write_bytes(os.urandom(3 << 20))
    os.chmod(source, 0o750)
    (shared.work / "bc.sh").write_text(f"""
srun --nodes=2 -n2 rm -f {dest}
sbcast data {dest}; echo first $?
cmp data {dest}; echo same $?
sbcast data {dest}; echo again $?
sbcast -f data {dest}; echo forced $?
sbcast nofile /tmp/x; echo nofile $?
sbcast data /nodir/x; echo nodir $?
sbcast data; echo usage $?
""")
    got = shared.run(["salloc", "-Q", "-N1", "-n1", "bash", "bc.sh"], check=False)
    words = dict(line.split() for line in got.stdout.splitlines() if len(line.split()) == 2)
    assert words == {"first": "0", "same": "0", "again": "17", "forced": "0", "nofile": "255", "nodir": "2", "usage": "1"}, got.stderr
    assert "sbcast: error: REQUEST_FILE_BCAST(n1): File exists\n" in got.stderr
    assert "sbcast: error: Can't open `nofile`: No such file or directory\n" in got.stderr
    assert oct(dest.stat().st_mode & 0o777) == "0o750"
    got = shared.run(["sbcast", "data", "/tmp/x"], check=False)
    assert got.returncode == 1 and "Need a job id to run this command." in got.stderr
    got = shared.run(["sbcast", "--send-libs", "data", "/tmp/x"], check=False)
    assert got.returncode == 1 and "is not supported yet" in got.stderr
