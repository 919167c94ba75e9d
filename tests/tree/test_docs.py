# SPDX-License-Identifier: Apache-2.0
"""What documents and scripts say about each other is true."""
import pathlib
import re
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]


def tracked(*patterns):
    got = subprocess.run(["git", "-C", str(REPO), "ls-files", "--", *patterns], capture_output=True, text=True)
    if got.returncode != 0:
        pytest.skip("not a git checkout")
    return [REPO / line for line in got.stdout.splitlines() if (REPO / line).exists()]


def test_table_of_parts_is_that_of_check():
    got = subprocess.run([str(REPO / "check"), "parts"], capture_output=True, text=True, check=True).stdout
    want = [tuple(re.split(r"\s+", line, maxsplit=2)) for line in got.splitlines()[1:]]
    text = (REPO / "docs/developer/testing.md").read_text()
    assert [tuple(row) for row in re.findall(r"^\| (\w+) \| (\d+) \| (.*) \|$", text, re.M)] == want
    assert sum(int(minutes) for _, minutes, _ in want) < 45


def test_ci_runs_check_and_nothing_else():
    lines = [line for line in (REPO / ".ci/run").read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) == 1 and lines[0].endswith("exec ./check ci")


@pytest.mark.parametrize("script", ["check", "quickstart", "scripts/deps", ".ci/run"])
def test_shell_scripts_parse(script):
    subprocess.run(["bash", "-n", str(REPO / script)], check=True)


def test_links_between_documents_lead_somewhere():
    lost = []
    for path in tracked("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)\)", path.read_text()):
            if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
                lost.append(f"{path.relative_to(REPO)}: {target}")
    assert not lost


def test_sections_that_links_name_exist():
    lost = []
    for path in tracked("*.md"):
        for target, section in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", path.read_text()):
            there = (path.parent / target if target else path)
            if re.match(r"[a-z]+:", target) or there.suffix != ".md":
                continue
            heads = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", there.read_text(), re.M)]
            if section not in heads:
                lost.append(f"{path.relative_to(REPO)}: {target}#{section}")
    assert not lost


def test_each_document_is_in_the_index():
    index = (REPO / "docs/README.md").read_text()
    pages = [p.relative_to(REPO / "docs") for p in tracked("docs/*.md", "docs/user/*.md", "docs/admin/*.md") if p.parent.name in ("docs", "user", "admin")]
    assert not [str(p) for p in pages if p.name != "README.md" and f"]({p})" not in index]


def test_each_curve_has_its_picture_its_figures_and_a_place():
    curves = {p.stem for p in tracked("docs/curves/*.csv")}
    assert curves == {p.stem for p in tracked("docs/curves/*.svg")}
    page = (REPO / "docs/performance.md").read_text()
    for name in curves:
        assert f"](curves/{name}.svg)" in page and f"](curves/{name}.csv)" in page and f"tests/bench/curve {name}" in page
    drawn = subprocess.run([str(REPO / "tests/bench/curve"), "draw", "--check"], capture_output=True, text=True)
    assert drawn.returncode == 0, drawn.stdout + drawn.stderr


def test_files_that_documents_name_exist():
    lost = []
    for path in tracked("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md"):
        for name in re.findall(r"`((?:src|docs|tools|scripts|tests|proto|examples|systemd)/[\w./-]+[\w/])`", path.read_text()):
            if not (REPO / name).exists():
                lost.append(f"{path.relative_to(REPO)}: {name}")
    assert not lost


def test_documents_that_the_source_names_exist():
    lost = {name for path in tracked("src/*", "include/*", "tools/*", "systemd/*", "scripts/*")
            for name in re.findall(r"\bdocs/[a-z/_-]+\.md", path.read_text(errors="replace")) if not (REPO / name).exists()}
    assert not lost


def test_every_source_file_says_its_licence():
    without = [str(p.relative_to(REPO)) for p in tracked("*.c", "*.h", "*.cc", "*.def", "*.py", "meson.build", "*/meson.build")
               if "SPDX-License-Identifier: Apache-2.0" not in p.read_text(errors="replace")[:300]]
    assert not without


def test_no_path_of_a_developer_machine():
    found = []
    for path in tracked("*"):
        if path.is_file() and not path.is_symlink():
            text = path.read_text(errors="replace")
            if re.search(r"/(?:work|home/\w+|root)/(?:main|shared)\b", text):
                found.append(str(path.relative_to(REPO)))
    assert not found


def test_every_source_folder_has_a_page():
    folders = {p.parent for p in tracked("src/*.c")}
    assert not [str(f.relative_to(REPO)) for f in sorted(folders) if not (f / "README.md").exists()]
