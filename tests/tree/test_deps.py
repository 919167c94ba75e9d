# SPDX-License-Identifier: Apache-2.0
"""scripts/deps: the backports source is derived from whatever source the machine has."""
import pathlib
import subprocess
import time

import pytest

DEPS = str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "deps")
CODENAME = subprocess.run(["bash", "-c", ". /etc/os-release; echo $VERSION_CODENAME"], capture_output=True, text=True).stdout.strip()


def derive(tmp_path, files):
    (tmp_path / "sources.list.d").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace("CODE", CODENAME))
    return subprocess.run([DEPS, "backports", str(tmp_path)], capture_output=True, text=True)


def test_deb822_keeps_mirror_and_key(tmp_path):
    got = derive(tmp_path, {"sources.list.d/debian.sources": (
        "# a comment\nTypes: deb deb-src\nURIs: http://mirror.example/debian\nSuites: CODE CODE-updates\n"
        "Components: main\n contrib\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n"
        "Types: deb\nURIs: http://mirror.example/debian-security\nSuites: CODE-security\nComponents: main\n")})
    assert got.stdout.splitlines() == [
        "Types: deb", "URIs: http://mirror.example/debian", f"Suites: {CODENAME}-backports", "Components: main",
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg"]


def test_deb822_embedded_key_stays_whole(tmp_path):
    key = "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBFxx\n -----END PGP PUBLIC KEY BLOCK-----"
    got = derive(tmp_path, {"sources.list.d/own.sources": (
        f"Types: deb\nURIs: mirror+file:/etc/apt/mirrors.list\nSuites: CODE\nComponents: main\n{key}\n")})
    assert got.stdout.strip().endswith(key)


def test_deb822_disabled_stanza_is_passed_over(tmp_path):
    got = derive(tmp_path, {"sources.list.d/own.sources": (
        "Enabled: no\nTypes: deb\nURIs: http://old.example/debian\nSuites: CODE\nComponents: main\n\n"
        "Types: deb\nURIs: http://new.example/debian\nSuites: CODE\nComponents: main\n")})
    assert "new.example" in got.stdout and "old.example" not in got.stdout


@pytest.mark.parametrize("line, want", [
    ("deb http://mirror.example/debian CODE main contrib", "deb http://mirror.example/debian CODE-backports main"),
    ("deb [arch=amd64 signed-by=/etc/k.gpg] cdn://m CODE main", "deb [arch=amd64 signed-by=/etc/k.gpg] cdn://m CODE-backports main"),
    ("deb [ trusted=yes ] file:/srv/debian CODE main # mine", "deb [ trusted=yes ] file:/srv/debian CODE-backports main"),
])
def test_one_line_format(tmp_path, line, want):
    got = derive(tmp_path, {"sources.list": f"deb-src http://x CODE main\n# deb http://no CODE main\n{line}\n"})
    assert got.stdout.strip() == want.replace("CODE", CODENAME)


def test_no_source_is_told(tmp_path):
    got = derive(tmp_path, {"sources.list": "deb http://x CODE-security main\n"})
    assert got.returncode != 0 and "found no source" in got.stderr


def test_nothing_to_do_is_quick():
    began = time.monotonic()
    got = subprocess.run([DEPS, "test"], capture_output=True, text=True)
    assert got.returncode == 0 and got.stderr == ""
    assert time.monotonic() - began < 0.3
