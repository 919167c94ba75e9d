#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the simulator: found.py SPUR_SIM_BROKEN SPUR_SIM

Each way to break the product is found within 200 seeds, and unbroken the same program finds nothing; a seed lived twice
leaves the same trace, line by line."""
import subprocess
import sys

broken, plain = sys.argv[1:3]


def run(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=500)


for fault in ("disk.no_sync", "apply.swap:40", "tokens.none"):
    got = run(broken, "--seed", "1", "--seeds", "200", "--first", "--fault", fault)
    last = [line for line in got.stdout.splitlines() if "FAILED" in line]
    print(f"{fault}: {last}", flush=True)
    assert got.returncode == 1 and last, f"{fault} was not found: {got.stdout[-500:]}"
got = run(broken, "--seed", "1", "--seeds", "3")
assert got.returncode == 0, got.stdout
for seed in ("7", "291"):
    one, two = (run(plain, "--seed", seed, "--trace").stdout for _ in range(2))
    assert one == two and one.count("\n") > 300, f"seed {seed} is not the same twice"
