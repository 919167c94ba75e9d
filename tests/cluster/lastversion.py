# SPDX-License-Identifier: Apache-2.0
"""The programs of the last version: of the newest tag, or, while there is none, of one fixed commit. Built once, from
git archive, in build/upgrade/COMMIT; made anew when the commit is another."""
import fcntl
import os
import shutil
import subprocess

import pytest

import spurtest
from spurtest import BUILD, REPO

FIRST = "bdfb02c"  # the oldest with several controllers


def git(*words, **how):
    return subprocess.run(["git", "-C", str(REPO), *words], capture_output=True, **how)


def commit():
    """What the last version was, in full. Skips where that can't be known."""
    if not shutil.which("git"):
        pytest.skip("there is no git")
    tag = git("describe", "--tags", "--abbrev=0", text=True)
    name = tag.stdout.strip() if tag.returncode == 0 else FIRST
    got = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", text=True)
    if got.returncode != 0:
        shallow = git("rev-parse", "--is-shallow-repository", text=True).stdout.strip()
        assert shallow != "false", f"this is a whole clone, and {name} is not in it"
        pytest.skip(f"this checkout does not have {name}: {got.stderr.strip() or 'a shallow clone, or no repository'}")
    return got.stdout.strip()


def run(argv, log, **how):
    got = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **how)
    if got.returncode != 0:
        raise AssertionError(f"{argv} returned {got.returncode}; see {log.name}")


def programs():
    """The directory of its commands."""
    which = commit()
    top = BUILD / "upgrade"
    top.mkdir(exist_ok=True)
    with open(top / "lock", "w") as lock, open(top / "build.log", "ab") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        here = top / which[:12]
        if not (here / "done").exists():
            shutil.rmtree(here, ignore_errors=True)
            (here / "src").mkdir(parents=True)
            tar = git("archive", which)
            if tar.returncode != 0:
                pytest.skip(f"this checkout can't give {which}: {tar.stderr.decode().strip()}")
            subprocess.run(["tar", "-x", "-C", here / "src"], input=tar.stdout, check=True)
            compiler = {} if "CC" in os.environ or not shutil.which("ccache") else {"CC": "ccache gcc"}
            run(["meson", "setup", here / "build", here / "src"], log, env={**os.environ, **compiler})
            run(["ninja", "-C", here / "build", *(f"src/{name}/{name}" for name in ("spurctld", "spurd", "spur"))], log)
            (here / "done").touch()
        for other in top.iterdir():
            if other.is_dir() and other != here:
                shutil.rmtree(other)
    return spurtest.programs(here / "build")
