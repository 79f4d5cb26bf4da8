"""The study `umts-proxies`: its shares of variance, and the reading of rows that were measured in real time."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airloom.errors import UsageError
from airloom.study import NotSwept, open_study
from airloom.study.data import Data
from airloom.study.outcome import evaluate
from tests.cli.shell import airloom


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("umts-proxies")
    done = airloom("study", "run", "umts-proxies", "--quick", "--out", home)
    assert done.code == 0, done.err
    return home / "quick"


def rows(place: Path, shift: float) -> list[list[Any]]:
    """Rows as a measurement would have them: the virtual times, and `shift` of each more."""
    from umts_proxies.loads import MODES, PROXIES, by_page, times
    from umts_proxies.real import visited

    data = Data(place)
    found = []
    for proxy in PROXIES:
        for http in MODES:
            of = by_page(data, times(data, "clocks", proxy=proxy, http=http), "clocks")
            found += [[proxy, http, page, 1, t * (1 + shift)] for page, t in zip(visited(data), of, strict=True)]
    return found


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, "holds"), (0.04, "holds"), (0.2, "differs")])
def test_rows_of_real_time_are_held_against_virtual_time(
    place: Path, tmp_path: Path, shift: float, verdict: str
) -> None:
    study = open_study("umts-proxies")
    assert evaluate(study, place, "quick").results["N13.means"].verdict == "not-covered"
    copy = tmp_path / "quick"
    shutil.copytree(place, copy)
    made = rows(place, shift)
    (copy / "real.json").write_text(json.dumps({"rows": made}))
    found = evaluate(study, copy, "quick").results
    assert found["N13.means"].verdict == verdict
    assert found["N13.ranks"].verdict == "holds"
    alike = {proxy: [row[4] for row in made if row[:2] == [proxy, "keep-alive"]] for proxy in ("TCP", "none")}
    assert found["N18.by-hand"].ours == pytest.approx(np.mean(alike["TCP"]) - np.mean(alike["none"]))


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"rows": []}',
        '{"rows": [["none", "keep-alive", 6, 1, -1.0]]}',
        '{"rows": [["x", "y", 1, 1, 1.0]]}',
    ],
)
def test_what_are_no_rows_is_said_in_one_line(place: Path, tmp_path: Path, text: str) -> None:
    from umts_proxies.real import measured

    copy = tmp_path / "quick"
    shutil.copytree(place, copy)
    with pytest.raises(NotSwept):
        measured(Data(copy))
    (copy / "real.json").write_text(text)
    with pytest.raises(UsageError, match=r"real\.json") as error:
        measured(Data(copy))
    assert "\n" not in str(error.value)


def test_shares_of_variance_are_those_that_were_put_in() -> None:
    open_study("umts-proxies")
    from umts_proxies.observations import explained

    pages = np.exp(np.array([0.0, 1.0, 3.0, 0.5]))
    # Logarithms: 2 a + b, where a and b are -1 or 1: variances 4 and 1.
    made = {(a, b): pages * np.exp(2 * a + b) for a in (-1, 1) for b in (-1, 1)}
    both, single = explained(made)
    assert both == pytest.approx(1.0)
    assert single[0] == pytest.approx(0.8)
    assert single[1] == pytest.approx(0.2)
    # What differs from page to page alone is explained by no factor.
    turned = {(a,): np.exp(a * np.array([1.0, -1.0, 1.0, -1.0])) for a in (-1, 1)}
    assert explained(turned)[0] == pytest.approx(0.0, abs=1e-12)
