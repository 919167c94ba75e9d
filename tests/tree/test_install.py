# SPDX-License-Identifier: Apache-2.0
"""What `ninja install` puts where, and that it is a whole installation."""
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("SPUR_TEST_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))
COMMANDS = re.findall(r"^COMMAND\(\w+, +(\w+),", (pathlib.Path(__file__).resolve().parents[2] / "src/spur/commands.def").read_text(), re.M)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    dest = tmp_path_factory.mktemp("dest")
    subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir", str(dest)], check=True, capture_output=True)
    return dest / "usr/local"


def test_programs_and_links(installed):
    names = {p.name for p in (installed / "bin").iterdir()}
    assert names - {"spurstepd"} == {"spurctld", "spurd", "spur", *COMMANDS}  # spurd carries a spurstepd of its own
    assert COMMANDS and all(os.readlink(installed / "bin" / name) == "spur" for name in COMMANDS)
    for name in ("spurctld", "spurd", "spur"):
        got = subprocess.run([str(installed / "bin" / name), "--version"], capture_output=True, text=True, env={"PATH": "/nonexistent"})
        assert got.returncode == 0 and re.search(r"\d+\.\d+\.\d+", got.stdout)


def test_the_links_of_the_build_directory_are_the_same():
    assert {p.name for p in (BUILD / "bin").iterdir()} == {"spurctld", "spurd", "spur", *COMMANDS}


def test_the_agents_unit_leaves_running_steps_alone(installed):
    unit = (installed / "lib/systemd/system/spurd.service").read_text()
    assert "KillMode=process\n" in unit and "Delegate=yes\n" in unit
    assert "ExecStart=/usr/local/bin/spurd " in unit
    assert "ExecStart=/usr/local/bin/spurctld " in (installed / "lib/systemd/system/spurctld.service").read_text()
