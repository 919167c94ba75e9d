#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what a test runner did: prints "PASSED FAILED SKIPPED" and, on stderr, why what was skipped was skipped.

    tally.py meson testlog.json     a cmocka program counts as the cases it reports
    tally.py junit report.xml
    tally.py option BUILD NAME      the value of a build directory's option
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


def option(build, name):
    with open(f"{build}/meson-info/intro-buildoptions.json", encoding="utf-8") as f:
        return [o["value"] for o in json.load(f) if o["name"] == name]


if __name__ == "__main__":
    if sys.argv[1] == "option":
        print(*option(*sys.argv[2:]))
        sys.exit()
    print(*{"meson": of_meson, "junit": of_junit}[sys.argv[1]](sys.argv[2]))
