# SPDX-License-Identifier: Apache-2.0
"""The checks of the tree fail on what they are there for."""
import pathlib
import shutil
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
GOOD = "/* SPDX-License-Identifier: Apache-2.0 */\n"


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tools").mkdir()
    shutil.copy(REPO / "tools/layers.txt", tmp_path / "tools")
    for name in ("src/base/err.h", "src/core/model/job.h", "src/core/state/state.h", "src/io/rpc/rpc.h", "include/spur/spur.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    return tmp_path


def check(tree):
    got = subprocess.run([str(REPO / "tools/check-tree"), str(tree)], capture_output=True, text=True)
    return got.returncode, got.stdout


def test_a_good_tree_passes(tree):
    (tree / "src/core/state/apply.c").write_text(GOOD + '#include "core/state/state.h"\n#include "core/model/job.h"\n')
    assert check(tree) == (0, "\n")


@pytest.mark.parametrize("file, text, message", [
    ("src/core/state/a.c", '#include "io/rpc/rpc.h"\n', "src/core/state may not include src/io/rpc/rpc.h"),
    ("src/core/sched/a.c", '#include "core/state/state.h"\n', "src/core/sched may not include src/core/state/state.h"),
    ("src/base/a.c", '#include "core/model/job.h"\n', "src/base may not include"),
    ("src/nowhere/a.c", "", "its folder is not in tools/layers.txt"),
    ("src/io/rpc/a.c", "#include <raft.h>\n", "only src/io/journal src/sim may include raft.h"),
    ("src/io/rpc/a.c", "#include <raft/uv.h>\n", "only src/io/journal src/sim may include raft/uv.h"),
    ("src/core/state/a.c", "# include <uv.h>\n", "only src/io src/spurd/steps src/spurd/stream may include uv.h"),
    ("src/io/rpc/a.c", "#include <sqlite3.h>\n", "src/io/rpc/a.c:2: only src/io/sql may include sqlite3.h (ARCHITECTURE.md, section 4)"),
    ("src/base/a.c", "void f(char *s) {\n    sprintf(s, \"\");\n}\n", "sprintf is banned"),
    ("src/base/util.c", "", "a name that says nothing"),
    ("src/base/common/a.c", "", "src/base/common: a name that says nothing"),
    ("tests/unit/test_helpers.c", "", "a name that says nothing"),
    ("src/base/a.c", "\n" * 1000, "1001 lines; the ceiling is 1000"),
    ("src/base/a.c", "int f(int x) {\n" + "    x++;\n" * 99 + "    return x;\n}\n", "f has 102 lines; the ceiling is 100"),
    ("src/base/a.c", '#include "base/err.h"\n' * 13, "13 own includes; the ceiling is 12"),
])
def test_what_is_wrong_is_told(tree, file, text, message):
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(GOOD + text)
    code, said = check(tree)
    assert code == 1 and message in said, said


@pytest.mark.parametrize("file, text", [
    ("src/base/a.c", "int x;\n"),
    ("tests/a/meson.build", "test('x')\n"),
    ("tools/a", "#!/bin/sh\n"),
    ("tools/a.py", "pass\n"),
])
def test_a_source_without_a_licence_is_told(tree, file, text):
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(text)
    code, said = check(tree)
    assert code == 1 and f"{file}: its first lines don't say SPDX" in said
    (tree / file).write_text(text.replace("\n", "\n# SPDX-License-Identifier: Apache-2.0\n", 1))
    assert check(tree)[0] == 0


def test_names_that_only_contain_such_a_word_are_good(tree):
    for name in ("commons_law.c", "miscount.c", "futile.c"):
        (tree / "src/base" / name).write_text(GOOD)
    assert check(tree)[0] == 0


def test_the_report_gives_figures(tree):
    (tree / "src/base/a.c").write_text(GOOD + "int f(int x) {\n" + "    x++;\n" * 20 + "    return x;\n}\n" + "\n" * 400)
    got = subprocess.run([str(REPO / "tools/check-tree"), "--report", str(tree)], capture_output=True, text=True, check=True)
    rows = {line[:22].strip(): line[22:].split() for line in got.stdout.splitlines()[1:5]}
    assert rows[".c files, lines"] == ["1", "424", "424", "424", "350", "1"]
    assert rows["functions, lines"] == ["1", "23", "23", "23", "15", "1"]
    assert rows[".h files, lines"][:1] == ["5"]


def test_a_cycle_of_headers_is_told(tree):
    (tree / "src/base/a.h").write_text(GOOD + '#include "base/b.h"\n')
    (tree / "src/base/b.h").write_text(GOOD + '#include "base/a.h"\n')
    code, said = check(tree)
    assert code == 1 and "a cycle of headers" in said


def test_a_cycle_of_folders_is_told(tree):
    layers = tree / "tools/layers.txt"
    layers.write_text(layers.read_text().replace("src/core/model:       src/base", "src/core/model:       src/base src/core/state"))
    (tree / "src/core/model/a.c").write_text(GOOD + '#include "core/state/state.h"\n')
    (tree / "src/core/state/a.c").write_text(GOOD + '#include "core/model/job.h"\n')
    code, said = check(tree)
    assert code == 1 and "a cycle of folders" in said


def test_banned_words_in_comments_and_texts_are_no_calls(tree):
    (tree / "src/base/a.c").write_text(GOOD + '/* strcpy(a, b) */\nconst char *f(void) {\n    return "system(x)";\n}\n')
    assert check(tree)[0] == 0


def build(tmp_path, text):
    (tmp_path / "x.c").write_text(text)
    subprocess.run(["gcc", "-fPIC", "-c", "x.c", "-o", "x.o"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rc", "x.a", "x.o"], cwd=tmp_path, check=True)
    return str(tmp_path / "x.a")


def objects(*arguments):
    got = subprocess.run([str(REPO / "tools/check-objects"), *arguments], capture_output=True, text=True)
    return got.returncode, got.stdout


def test_a_clock_in_core_is_told(tmp_path):
    lib = build(tmp_path, "#include <time.h>\nlong f(void) { return time(0); }\n")
    code, said = objects("pure", str(REPO / "tools/pure.txt"), "--", lib)
    assert code == 1 and "calls time" in said
    lib = build(tmp_path, "#include <string.h>\nint f(const char *s) { return memcmp(s, s + 1, strlen(s)); }\n")
    assert objects("pure", str(REPO / "tools/pure.txt"), "--", lib)[0] == 0


def test_an_exported_variable_is_told(tmp_path):
    for text in ("int counter = 1;\n", "int counter;\n", "char *counter[] = {\"a\"};\n", "__thread int counter;\n"):
        code, said = objects("variables", build(tmp_path, text))
        assert code == 1 and "exports the variable counter" in said, text
    for text in ("const int table[] = {1, 2};\n", "const char *const table[] = {\"a\", \"b\"};\n"):
        assert objects("variables", build(tmp_path, text))[0] == 0, text
    assert objects("variables", build(tmp_path, "static int counter = 1;\nint f(void) { return counter++; }\n"))[0] == 0


def test_a_library_too_many_is_told():
    assert objects("links", "/usr/bin/ls", "libselinux", "libpcre2-8") == (0, "\n")
    code, said = objects("links", "/usr/bin/ls", "libselinux")
    assert code == 1 and "libpcre2-8" in said  # which only libselinux asks for
    assert objects("links", "/usr/bin/true") == (0, "\n")


def proto_repo(tmp_path, committed, printed):
    (tmp_path / "proto/spur/v1").mkdir(parents=True)
    path = tmp_path / "proto/spur/v1/spur.proto"
    path.write_text(committed)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    path.write_text(printed)
    gen = tmp_path / "gen"
    gen.write_text(f"#!/bin/sh\ncat {path}\n")
    gen.chmod(0o755)
    got = subprocess.run([str(REPO / "tools/check-proto"), str(gen), str(tmp_path)], capture_output=True, text=True)
    return got.returncode, got.stdout


OLD = "message A {\n  optional uint32 x = 1;\n  optional string y = 2;\n}\n"


@pytest.mark.parametrize("now, problem", [
    (OLD, None),
    (OLD.replace("}", "  optional bool z = 3;\n}"), None),
    ("message A {\n  optional uint32 x = 1;\n}\n", None),
    (OLD.replace("y = 2", "y = 3"), "A.y has tag 2 at HEAD and 3 now"),
    (OLD.replace("uint32 x", "string x"), "A: tag 1 is"),
    ("message A {\n  optional uint32 z = 1;\n  optional string y = 2;\n}\n", "A: tag 1 is"),
])
def test_a_tag_that_means_something_else_is_told(tmp_path, now, problem):
    code, said = proto_repo(tmp_path, OLD, now)
    assert (code == 0) == (problem is None) and (problem or "") in said
