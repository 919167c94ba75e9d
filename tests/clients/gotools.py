# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/clients/go, built once a checkout where Go and its modules can be had."""
import functools
import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("SPUR_TEST_BUILD", HERE.parents[1] / "build"))


@functools.cache
def build(package):
    """(program, why there is none)"""
    go = shutil.which("go")
    if not go:
        return None, "Go is not installed"
    out = BUILD / "go" / package.rsplit("/", 1)[1]
    built = subprocess.run([go, "build", "-o", out, package], cwd=HERE / "go", capture_output=True, text=True, timeout=280,
                           env={**os.environ, "GOFLAGS": "-buildvcs=false -mod=readonly"})
    if built.returncode and any(word in built.stderr for word in ("dial tcp", "no such host", "connection refused", "i/o timeout", "Forbidden")):
        return None, "Go's modules can't be fetched: " + built.stderr.strip()[-200:]
    assert built.returncode == 0, built.stderr
    return out, None


def program(package):
    out, why = build(package)
    if not out:
        pytest.skip(why)
    return str(out)
