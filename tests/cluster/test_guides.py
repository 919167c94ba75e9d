# SPDX-License-Identifier: Apache-2.0
"""Every command of the guides runs, page by page and in the page's order, and prints what the page shows."""
import atexit
import contextlib
import pathlib
import re
import shutil
import tempfile

import pytest

import guide

REPO = guide.REPO
PAGES = sorted([*(REPO / "docs/user").glob("*.md"), *(REPO / "docs/admin").glob("*.md")])

# The cluster that a page is played on: two nodes of four CPUs, unless it is here.
DEVICES = pathlib.Path(tempfile.mkdtemp(prefix="spur-gpus-"))
atexit.register(shutil.rmtree, DEVICES, ignore_errors=True)
for i in range(2):
    (DEVICES / f"gpu{i}").touch()
GPUS = ["--gres", "gpu:a100:2", "--gres-files", f"{DEVICES}/gpu[0-1]"]
CLUSTERS = {
    "admin/install.md": {"nodes": 0, "start": False, "admission": "token"},
    "admin/high-availability.md": {"nodes": 0, "members": 3, "start": False, "auth_lines": 'jwt_key = "a-key-that-all-the-controllers-of-this-page-have"'},
    "user/gpus.md": {"node_args": GPUS, "conf": """
[licenses]
matlab = 2

[[nodes]]
names = "n1"
features = ["zen", "ib"]

[[nodes]]
names = "n2"
features = ["zen"]

[[partitions]]
name = "debug"
default = true
"""},
}

# Blocks that say why they can't be run here. The number may only become smaller.
NOT_RUN_AT_MOST = 2


def name_of(page):
    return str(page.relative_to(REPO / "docs"))


def closing(c):
    try:
        yield c
    finally:
        c.close()


@contextlib.contextmanager
def cluster_of(page):
    how = {"nodes": 2, "cpus": 4, "memory_mb": 8000, **CLUSTERS.get(name_of(page), {})}
    start = how.pop("start", True)
    if "members" in how:
        c = guide.HACluster(**how)
        yield from closing(c)
        return
    c = guide.cluster(**how)
    try:
        if start:
            c.start()
        else:  # the page does it
            for i in range(2):
                c.add_node(f"n{i + 1}", start=False)
        yield c
    finally:
        c.close()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_is_true(page):
    if not [b for b in guide.blocks(page) if b.kind == "console" and not b.info]:
        return
    with cluster_of(page) as c:
        player = (guide.HAPlayer if isinstance(c, guide.HACluster) else guide.Player)(c)
        try:
            player.play(page)
        finally:
            player.close()


def test_every_block_is_of_a_kind_that_is_played():
    wrong, left_out = [], 0
    for page in PAGES:
        for block in guide.blocks(page):
            where = f"{name_of(page)}:{block.line}"
            if block.kind == "console" and block.info:
                left_out += 1
                if not re.match(r"not run: .{10,}", block.info):
                    wrong.append(f"{where}: say `not run: WHY`")
            elif block.kind == "console":
                block.steps()
            elif block.kind not in ("sh", "toml", "text") or not block.info:
                wrong.append(f"{where}: a block is console, or a file: sh, toml, text with its name")
        if bare := [n for n, line in outside(page) if re.match(r" {4}\S", line)]:
            wrong.append(f"{name_of(page)}: indented blocks are not played; lines {bare}")
    assert not wrong
    assert left_out <= NOT_RUN_AT_MOST


def outside(page):
    """Lines that are in no block."""
    inside = False
    for n, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield n, line


def test_a_page_that_lies_is_found(tmp_path):
    """The player itself: output that differs, a command that fails, an id that is another job's."""
    page = REPO / "docs/user/lies.md"

    def play(text):
        class Page(type(tmp_path)):
            def relative_to(self, *_):
                return page.name
        path = tmp_path / "lies.md"
        path.write_text(f"```console\n{text}```\n")
        player = guide.Player(c)
        try:
            player.play(Page(path))
        finally:
            player.close()

    with guide.cluster(nodes=1) as c:
        play("$ echo one two\none   two\n$ sbatch -H --wrap true\nSubmitted batch job 101\n$ squeue -h -j 101 -o '%i %r'\n101 JobHeldUser\n")
        for lie in ("$ echo one\ntwo\n", "$ false\n", "$ echo error\nsbatch: error: no\n", "$ echo\nx\n",
                    "$ sbatch -H --wrap true\nSubmitted batch job 101\n$ sbatch -H --wrap true\nSubmitted batch job 101\n"):
            with pytest.raises(guide.spurtest.Failed):
                play(lie)
