# SPDX-License-Identifier: Apache-2.0
"""tests/golden/cases: each case from the field has a test that is there, or a reason why it waits; and those that wait become fewer."""
import collections
import functools
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]
TABLE = TESTS / "golden" / "cases"


def wanted(text):
    """The ids of "all: SUB 1-12, …"."""
    for group, first, last in re.findall(r"([\w.]+) (\d+)-(\d+)", re.search(r"^# all: (.*)$", text, re.M)[1]):
        for n in range(int(first), int(last) + 1):
            yield f"11.{n}" if group == "11." else f"{group}-{n:02}"


def lines(text):
    for line in text.splitlines():
        if line and not line.startswith("#"):
            case, sep, what = line.partition(" | ")
            assert sep and what.strip(), f"{TABLE}: {line}"
            yield case, what


@functools.cache
def names(path):
    text = (TESTS / path).read_text()
    pattern = r"^def (test_\w+)\(" if path.endswith(".py") else r"^static void (\w+)\(void \*\*state"
    return set(re.findall(pattern, text, re.M)), text


def missing(what):
    path = None
    for word in what.split():
        where, name = word.split("::")
        path = where or path
        found, text = names(path)
        is_run = path.endswith(".py") or re.search(rf"\b(?:cmocka_unit_test\w*|TEST)\({name}\b", text)
        if name not in found or not is_run:
            yield f"{path}::{name}"


def judge(text):
    """What is wrong with a table, and how many of its lines wait."""
    cases, wrong, waiting = collections.OrderedDict(), [], 0
    for case, what in lines(text):
        cases.setdefault(case, []).append(what)
        if what.startswith("not yet: "):
            waiting += 1
        else:
            wrong += [f"{case}: there is no {name}" for name in missing(what)]
    want = list(wanted(text))
    wrong += [f"{case} has no line" for case in want if case not in cases] + [f"{case} is no case" for case in cases if case not in want]
    most = int(re.search(r"^# at most: (\d+)$", text, re.M)[1])
    if waiting != most:
        wrong.append(f"{waiting} lines wait, the table says {most}")
    return wrong


def test_each_case_has_its_tests():
    assert judge(TABLE.read_text()) == []


def test_what_is_wrong_is_seen():
    head = "# all: A 1-2, 11. 1-1\n# at most: 1\n"
    well = head + "A-01 | tree/test_cases.py::test_what_is_wrong_is_seen ::test_each_case_has_its_tests\nA-02 | not yet: x\n11.1 | unit/core_state/test_steer.c::clocks_stand_still\n"
    assert judge(well) == []
    for old, new in (("A-02 | not yet: x\n", ""), ("::test_each", "::test_no"), ("clocks_stand", "clocks_run"), ("at most: 1", "at most: 2"), ("11.1 |", "11.2 |")):
        assert judge(well.replace(old, new)), (old, new)
