# SPDX-License-Identifier: Apache-2.0
"""sattach and sbcast."""
import os
import re
import subprocess

import pytest
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


def test_what_is_typed_at_sattach_reaches_the_tasks(shared):
    p = subprocess.Popen(["srun", "-n2", "-J", "typed", "bash", "-c", "echo up; while read line; do echo got $line; done; echo last $line"], env=shared.env,
                         cwd=shared.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline(), p.stdout.readline()
    job = shared.run("squeue -h -n typed -o %i").stdout.strip()
    with subprocess.Popen(["sattach", f"{job}.0"], env=shared.env, cwd=shared.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as a:
        for who, word in ((p, b"one"), (a, b"two"), (p, b"three"), (a, b"four")):
            who.stdin.write(word + b"\n")
            who.stdin.flush()
            assert [p.stdout.readline(), p.stdout.readline()] == [b"got " + word + b"\n"] * 2
        out, err = a.communicate(b"the end", timeout=30 * spurtest.PATIENCE)  # no line, and srun's own input is open still
        assert a.returncode == 0 and out.splitlines()[-2:] == [b"last the end"] * 2, (out, err)
    assert p.stdout.read().splitlines() == [b"last the end"] * 2 and p.wait(20) == 0


@pytest.mark.sanitize
def test_much_input_from_both_sides(shared):
    """More than a window of each: all of it comes, and srun's is acknowledged in its own counting."""
    size = 3 << 20
    p = subprocess.Popen(["srun", "-J", "much", "bash", "-c", f"echo up; head -c {2 * size} | tr -d 'b' | wc -c"], env=shared.env, cwd=shared.work,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    job = shared.run("squeue -h -n much -o %i").stdout.strip()
    a = subprocess.Popen(["sattach", f"{job}.0"], env=shared.env, cwd=shared.work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(48):
        a.stdin.write(b"a" * (size // 48))
        a.stdin.flush()
        p.stdin.write(b"b" * (size // 48))
        p.stdin.flush()
    assert int(p.stdout.read()) == size and p.wait(20) == 0
    assert a.wait(20) == 0


@pytest.mark.parametrize("size", [0, 1, 65536, 5 << 20])
@pytest.mark.parametrize("fill", ["random", "zeros"])
def test_sbcast_compressed(shared, size, fill):
    source, dest = shared.work / "plain", shared.work / "unpacked"
    source.write_bytes(os.urandom(size) if fill == "random" else bytes(size))
    for how in ("-C", "--compress=lz4", "--compress=LZ4", "--compress=none"):
        shared.run(["salloc", "-Q", "-N1", "-n1", "sbcast", "-f", how, "plain", str(dest)])
        assert dest.read_bytes() == source.read_bytes()
        dest.unlink()
    got = shared.run(["salloc", "-Q", "-N1", "-n1", "sbcast", "-f", "plain", str(dest)], env={**shared.env, "SBCAST_COMPRESS": "zlib"})
    assert "sbcast: error: Compression type 'zlib' unknown, disabling compression support.\n" in got.stderr
    assert dest.read_bytes() == source.read_bytes()


def test_sbcast_sends_less_when_it_compresses(shared):
    (shared.work / "zeros").write_bytes(bytes(5 << 20))
    sent = {}
    for how in ("none", "lz4"):
        trace, dest = shared.work / f"trace.{how}", shared.work / f"zeros.{how}"
        shared.run(["salloc", "-Q", "-N1", "-n1", "env", "ASAN_OPTIONS=detect_leaks=0", "strace", "-f", "-o", trace, "-e", "trace=write,writev,sendto,sendmsg", "sbcast", f"--compress={how}",
                    "zeros", dest])
        sent[how] = sum(int(n) for n in re.findall(r" = (\d+)$", trace.read_text(), re.M))
    assert sent["none"] > 5 << 20
    assert sent["lz4"] < 200_000


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
