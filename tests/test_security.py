"""SECURITY.md names tests: each of them is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_test_that_a_promise_names_is_there() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "SECURITY.md").read_text().splitlines()
        if line.startswith("| ") and line.count("|") == 4 and not line.startswith(("| **", "| Promise"))
    ]
    assert len(rows) > 30
    for promise, _limit, tests in rows:
        named = re.findall(r"`([\w./-]+)::(\w+)`", tests)
        assert named, f"no test: {promise}"
        for file, test in named:
            text = (ROOT / file).read_text()
            assert re.search(rf"\b(def|fn) {test}\b", text), f"{file} has no {test}"
