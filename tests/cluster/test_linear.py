# SPDX-License-Identifier: Apache-2.0
"""The check of histories (linear.py) itself: what it must take, and what it must refuse, and whom it then names."""
import json
import pathlib
import random

import pytest

from linear import check

HISTORIES = sorted((pathlib.Path(__file__).parent / "histories").glob("*.json"))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda p: p.stem)
def test_recorded(path):
    told = json.loads(path.read_text())
    verdict = check(told["history"])
    assert (verdict.good, verdict.wrong) == (told["wrong"] is None, told["wrong"]), verdict.text
    assert path.stem.startswith("good" if verdict.good else "bad")


def made(rnd, n_jobs=60, clients=6):
    """A history that is linearizable by construction: each operation takes effect at a moment of its own, and begins before and ends after it."""
    jobs, out, at = {}, [], 0.0
    while len(jobs) < n_jobs or len(out) < 10 * n_jobs:
        at += 1
        op = {"begin": at - rnd.uniform(0, clients), "end": at + rnd.uniform(0, clients)}
        what = rnd.choice(["submit", "cancel", "query", "query", "list"]) if jobs else "submit"
        some = rnd.randrange(1, len(jobs) + 3)
        if what == "submit" and len(jobs) < n_jobs:
            jobs[len(jobs) + 1] = [f"j{len(jobs)}", "PENDING"]
            op |= {"id": len(jobs), "name": jobs[len(jobs)][0]}
        elif what == "cancel":
            op |= {"id": some, "said": "ok" if some in jobs else "none"}
            if some in jobs:
                jobs[some] = [jobs[some][0], "CANCELLED"]
        elif what == "query":
            op |= {"id": some, "said": jobs[some][1] if some in jobs else "none"}
        elif what == "list":
            op |= {"jobs": [[i, *row] for i, row in jobs.items()]}
        else:
            continue
        out.append({"what": what, **op})
    for op in rnd.sample([op for op in out if op["what"] in ("submit", "cancel")], 5):
        op |= {"end": None, "id": None} if op["what"] == "submit" else {"end": None}
    return out


@pytest.mark.parametrize("seed", range(8))
def test_made_by_chance(seed):
    rnd = random.Random(seed)
    history = made(rnd)
    assert check(history).good, check(history).text
    late = max(op["begin"] for op in history) + 100
    gone = rnd.choice([op for op in history if op["what"] == "submit" and op["end"] is not None])
    history.append({"what": "query", "id": gone["id"], "said": "none", "begin": late, "end": late + 1})
    assert check(history).wrong == len(history) - 1
