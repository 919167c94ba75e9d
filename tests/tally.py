#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what a test runner did: prints "PASSED FAILED SKIPPED" and, on stderr, why what was skipped was skipped.

    tally.py meson testlog.json     a cmocka program counts as the cases it reports
    tally.py junit report.xml
"""
import json
import re
import sys
import xml.etree.ElementTree as ET


def of_meson(path):
    passed = failed = skipped = 0
    for line in open(path, encoding="utf-8"):
        test = json.loads(line)
        said = (test.get("stdout") or "") + (test.get("stderr") or "")
        groups = [int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test\(s\)", said)]
        held = [int(n) for n in re.findall(r"\[  SKIPPED \] (\d+) test\(s\)", said)]
        lost = [int(n) for n in re.findall(r"\[  FAILED  \] (\d+) test\(s\)", said)]
        if test["result"] in ("OK", "EXPECTEDFAIL"):
            passed += sum(groups) or 1
            skipped += sum(held)
        elif test["result"] == "SKIP":
            skipped += 1
            why = said.strip().splitlines()
            print(f"SKIPPED {test['name']}: {why[-1] if why else 'it gave no reason'}", file=sys.stderr)
        else:
            passed += sum(groups)
            failed += sum(lost) or 1
    return passed, failed, skipped


def of_junit(path):
    passed = failed = skipped = 0
    for case in ET.parse(path).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed += 1
        elif "skipped" in kinds:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


if __name__ == "__main__":
    print(*{"meson": of_meson, "junit": of_junit}[sys.argv[1]](sys.argv[2]))
