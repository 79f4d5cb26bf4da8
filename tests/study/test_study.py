"""A study from its files to its report: a made-up one whose truth is known, and the shipped ones."""

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

from airloom import interpreter
from airloom._core import Part
from airloom.errors import UsageError
from airloom.study import document, execute, names, open_study, outcome, rules, text
from airloom.study.data import IN_REAL_TIME
from airloom.study.outcome import Outcome, evaluate
from airloom.sweep.work import Group, Made
from tests.cli.shell import inside
from tests.report.browser import opened
from tests.study.conftest import QuickRun

SCENARIO = """\
title = "A small object over a wire"
path = ["mobile", "wire", "origin"]

[hosts]
mobile = { app = { http-client = { pages = [["/5kB"]] } } }
origin = { app = "http-server" }

[links]
wire = { bearer = "wireline", rate = "1Mbit/s", delay = "20ms", loss = 0.02 }
"""

CLAIMS = """\
[paper]
authors = ["N. Obody", "S. Mall"]
title = "On small objects"
year = 2001
summary = "Objects are fetched. Over a wire. Some are slow."

[[claim]]
id = "X1"
kind = "o"
where = "1"
says = "a slow wire is slower"
order = ">"
assumptions = ["delay"]

[[claim]]
id = "X2"
kind = "v"
where = "2"
says = "the rate"
paper = 1000
unit = "kbit/s"
tolerance = "1%"

[[claim]]
id = "X3"
kind = "o"
where = "3"
says = "two parts"

[[claim.part]]
id = "X3.done"
order = ">"
assumptions = ["delay"]

[[claim.part]]
id = "X3.missing"
order = ">"

[[claim]]
id = "X4"
kind = "s"
where = "4"
says = "nobody looked"

[[claim]]
id = "X5"
kind = "p"
where = "5"
says = "one object"
equals = 1

[[control]]
id = "itself"
kind = "o"
where = "control"
says = "against itself"
equal = [0.999, 1.001]
"""

ASSUMPTIONS = """\
[[assumption]]
id = "delay"
says = "one-way delay"
default = "20 ms"
set = { "links.wire.delay" = "20ms" }
levels = [
    { label = "much, and a fast slow wire", set = { "links.wire.delay" = "20ms", "links.wire.rate" = "10Mbit/s" } },
    { label = "not built" },
]
role = "decisive"
source = "guess"
why = "made up"

[[assumption]]
id = "rate"
says = "the rate"
default = "1 Mbit/s"
role = "calibration"
source = "paper"
why = "made up"
fitted_to = ["X2"]
"""

SWEEP = """\
[core]
scenario = "wire"
seeds = { quick = "1..8", full = "1..12" }
reading_seeds = { quick = "1..8", full = "1..8" }
tables = ["pages"]

[core.vary]
speed = [
    { label = "fast", set = { "links.wire.rate" = "1Mbit/s" } },
    { label = "slow", set = { "links.wire.rate" = "200kbit/s" } },
]
"""

STUDY = """\
from airloom.study import Data, StudyFigure, exact, pair
from airloom.study.rules import Setting


def load(data, speed):
    return data.per_seed("core", "pages", "load_ns", speed=speed) / 1e9


def slower(data):
    return pair(load(data, "slow"), load(data, "fast"), "s")


COMPUTE = {
    "X1": slower,
    "X2": lambda data: exact(1000.0, "kbit/s"),
    "X3.done": slower,
    "X5": lambda data: Setting(int(data.table("core", "pages")["objects"].max())),
    "itself": lambda data: pair(load(data, "fast"), load(data, "fast"), "s"),
}


def times(data):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot(load(data, "fast"), "o")
    return figure


FIGURES = {"times": StudyFigure("Load times", times)}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("study") / "small-objects"
    (place / "scenarios").mkdir(parents=True)
    (place / "expected").mkdir()
    for name, content in {
        "scenarios/wire.toml": SCENARIO,
        "claims.toml": CLAIMS,
        "assumptions.toml": ASSUMPTIONS,
        "sweep.toml": SWEEP,
        "study.py": STUDY,
        "README.md": "# Small objects\n",
    }.items():
        (place / name).write_text(content)
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results") / "quick"


@pytest.fixture(scope="module")
def found(folder: Path, place: Path) -> Outcome:
    study = open_study(folder)
    execute.run(execute.planned(study, "quick"), place, workers=1)
    return evaluate(study, place, "quick")


def test_every_claim_has_a_verdict_and_what_is_not_computed_shows(found: Outcome) -> None:
    verdicts = {name: result.verdict for name, result in found.results.items()}
    assert verdicts == {
        "X1": "holds",
        "X2": "fitted",
        "X3": "not-covered",
        "X3.done": "holds",
        "X3.missing": "not-covered",
        "X4": "not-covered",
        "X5": "holds",
        "itself": "holds",
    }


SECOND_CLOCK = """
[real]
scenario = "wire"
seeds = { full = "1..4" }
real = ["mobile"]
command = ["{python}", "{study}/client.py", "http://origin"]
"""


@pytest.fixture
def with_second_clock(folder: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "second-clock"
    shutil.copytree(folder, copy)
    (copy / "sweep.toml").write_text(SWEEP + SECOND_CLOCK)
    compute = 'value(data.table("real", "runs")["simulated_s"].to_numpy(), "s")'
    text = STUDY.replace('"X5":', f'"X4": lambda data: {compute},\n    "X5":').replace(
        "exact, pair", "exact, pair, value"
    )
    (copy / "study.py").write_text(text)
    (copy / "claims.toml").write_text(CLAIMS.replace('says = "nobody looked"', 'says = "some time"\nat_least = 0.5'))
    return copy


def test_a_claim_by_the_second_clock_is_not_covered_where_there_is_none(
    with_second_clock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = open_study(with_second_clock)
    sweeps = execute.planned(study, "full", real=True)
    assert "real" not in execute.planned(study, "full")
    assert execute.planned(study, "quick", real=True) == {}
    assert sweeps["real"].real_time
    assert sweeps["real"].command == (*interpreter.python(), f"{with_second_clock}/client.py", "http://origin")
    assert sweeps["real"].scenario.real == ("mobile",)
    monkeypatch.setattr(execute, "can_emulate", lambda: False)
    with pytest.raises(UsageError, match="allows no laboratories"):
        execute.check_real_time(study)
    execute.run(execute.planned(study, "full"), tmp_path / "full", workers=1)
    found = evaluate(study, tmp_path / "full", "full").results["X4"]
    assert (found.verdict, found.why) == ("not-covered", IN_REAL_TIME)


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_a_whole_is_judged_without_what_was_not_made_here(folder: Path, tmp_path: Path, depth: str) -> None:
    copy = tmp_path / "with-a-program"
    shutil.copytree(folder, copy)
    compute = '"X3.missing": lambda data: pair(data.program("real")["a"], data.program("real")["b"], "s"),'
    (copy / "study.py").write_text(STUDY.replace('    "X3.done":', f'    {compute}\n    "X3.done":'))
    study = open_study(copy)
    execute.run(execute.planned(study, depth), tmp_path / depth, workers=1)
    found = evaluate(study, tmp_path / depth, depth).results
    assert (found["X3.missing"].verdict, found["X3"].verdict) == ("not-covered", "holds")
    assert found["X3"].why.endswith("; 1 more not made here")
    (tmp_path / depth / "real.json").write_text('{"a": [1, 2, 3], "b": [2, 3, 4]}')
    assert evaluate(study, tmp_path / depth, depth).results["X3"].verdict == "differs"


@pytest.mark.parametrize(("failed", "verdict"), [(1, "holds"), (3, "not-covered")])
def test_runs_in_real_time_that_were_too_late_do_not_count(
    with_second_clock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: int, verdict: str
) -> None:
    def made(group: Group) -> Made:
        # What a machine that is too busy gives for some seeds.
        ((_, seed),) = group.runs
        error = "not valid: packets left too late" if seed <= failed else None
        (job,) = group.jobs
        summary = [("simulated_s", float(seed))]
        part = Part(group.axes, job.point, job.labels, seed, "x", error, summary=summary)
        return Made(part.octets(["runs"]), 1, part.failed, 1, 1)

    study = open_study(with_second_clock)
    (real,) = execute.planned(study, "full", real=True).values()
    execute.run(execute.planned(study, "full"), tmp_path / "full", workers=1)
    monkeypatch.setattr("airloom.sweep.runner.work", made)
    with ThreadPoolExecutor(1) as executor:
        real.run(executor=executor, out=tmp_path / "full" / "real")
    found = evaluate(study, tmp_path / "full", "full").results["X4"]
    assert found.verdict == verdict
    if verdict == "holds":
        assert found.seeds == 3
    else:
        assert found.why == "3 of 4 runs in real time failed: not valid: packets left too late"


def test_what_is_tied_to_a_fitted_claim_is_fitted(folder: Path, tmp_path: Path, place: Path, found: Outcome) -> None:
    assert found.results["X1"].verdict == "holds"
    copy = changed(folder, tmp_path, "claims.toml", 'id = "X1"', 'id = "X1"\ntied_to = ["X3.done"]')
    content = (copy / "claims.toml").read_text()
    (copy / "claims.toml").write_text(content.replace('id = "X3.done"', 'id = "X3.done"\ntied_to = ["X2"]'))
    shutil.copytree(place, tmp_path / "results")
    again = evaluate(open_study(copy), tmp_path / "results", "quick").results
    assert (again["X3.done"].verdict, again["X1"].verdict, again["X5"].verdict) == ("fitted", "fitted", "holds")


def test_a_reading_of_one_seed_is_in_no_map(folder: Path, tmp_path: Path) -> None:
    copy = changed(folder, tmp_path, "sweep.toml", 'reading_seeds = { quick = "1..8"', 'reading_seeds = { quick = "1"')
    study = open_study(copy)
    execute.run(execute.planned(study, "quick"), tmp_path / "quick", workers=1)
    made = evaluate(study, tmp_path / "quick", "quick")
    assert {row.claim for row in made.map} == {"X2", "X5"}
    assert made.null_compared == 5


def test_score_counts_claims_apart_from_parts_and_procedures(found: Outcome, place: Path) -> None:
    assert found.score() == {"fitted": 1, "holds": 1, "not-covered": 2}
    assert found.score(("p",)) == {"holds": 1}
    assert "of 4 claims 2 computed: 1 holds, 1 fitted, 2 not-covered" in text.headline(document.of(found, place))


def test_map_says_which_assumption_turns_a_claim(found: Outcome) -> None:
    (row,) = [row for row in found.map if row.claim == "X1"]
    assert row.verdicts["default"] == "holds"
    assert row.share == 0.5
    (flip,) = row.flips
    assert flip.verdict == "differs"
    assert flip.reading == "delay = much, and a fast slow wire"


def test_default_under_another_name_differs_in_nothing(found: Outcome) -> None:
    assert found.null_differences == ()
    assert found.null_compared == 5


def test_pairing_is_held_against_independent_seeds(found: Outcome) -> None:
    pairings = {p.claim: p for p in found.pairings}
    assert set(pairings) == {"X1", "X3.done", "itself"}
    assert all(p.agrees for p in pairings.values())
    assert pairings["itself"].paired.mean == 0


def test_constants_agree_with_themselves_whatever_half_is_summed(found: Outcome) -> None:
    # Sums of a third, of so many and of half as many, differ in their last digits.
    third = np.full(23, 1 / 3)
    (control,) = outcome._pairings(found.study, {"X1": rules.pair(third, 7 * third, "s")})
    assert control.paired.mean != control.unpaired.mean
    assert control.agrees


def test_readings_at_which_nothing_can_fail_do_not_count() -> None:
    assert outcome.Row("X1", {"a": "given", "b": "holds", "c": "differs"}, ()).share == 0.5
    assert outcome.Row("X1", {"a": "given"}, ()).share is None


def test_json_has_the_promised_shape(found: Outcome, place: Path) -> None:
    said = document.of(found, place)
    assert {"study", "version", "depth", "seeds", "paper", "score", "claims", "tables", "figures"} <= set(said)
    assert said["seeds"] == 8
    assert said["paper"]["name"] == "obody-2001"
    wanted = {"id", "where", "kind", "says", "paper", "ours", "low", "high", "unit", "verdict", "why", "because"}
    assert all(wanted <= set(claim) for claim in said["claims"])
    assert [claim["id"] for claim in said["claims"]] == ["X1", "X2", "X3", "X3.done", "X3.missing", "X4", "X5"]
    json.dumps(said, allow_nan=False)


def test_a_changed_default_is_found_out(folder: Path, found: Outcome, tmp_path: Path) -> None:
    assert found.after_result == ()
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "expected" / "defaults.json").write_text(json.dumps({"delay": "10 ms", "rate": "1 Mbit/s"}))
    assert outcome._after_result(open_study(copy)) == ("delay",)


def changed(folder: Path, tmp_path: Path, name: str, old: str, new: str) -> Path:
    copy = tmp_path / "changed"
    shutil.copytree(folder, copy)
    content = (copy / name).read_text()
    assert old in content
    (copy / name).write_text(content.replace(old, new, 1))
    return copy


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (
            "claims.toml",
            'assumptions = ["delay"]',
            'assumptions = ["dealy"]',
            "rests on 'dealy', which is no assumption",
        ),
        ("assumptions.toml", 'fitted_to = ["X2"]', 'fitted_to = ["X9"]', "fitted to 'X9', which is no claim"),
        ("study.py", '"X1": slower', '"X9": slower', "computes X9, which is no claim"),
        ("study.py", '"X1": slower', '"X4": slower', "nothing about what would be near enough"),
        ("sweep.toml", "tables", "tabels", "unknown key `tabels` (did you mean `tables`?)"),
        ("sweep.toml", 'seeds = { quick = "1..8", full = "1..12" }', 'seeds = "1..8"', "seeds are"),
    ],
)
def test_names_that_do_not_fit_together_are_errors(
    folder: Path, tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    place = changed(folder, tmp_path, name, old, new)
    with pytest.raises(UsageError, match=re.escape(message)):
        len(open_study(place).computations)


def test_running_again_makes_nothing_anew(folder: Path, found: Outcome, tmp_path: Path) -> None:
    study = open_study(folder)
    place = tmp_path / "quick"
    sweeps = execute.planned(study, "quick")
    calls: list[int] = []
    execute.run(sweeps, place, workers=1, progress=calls.append)
    first = (place / "core" / "runs.parquet").read_bytes()
    assert calls[-1] == execute.size(sweeps)
    execute.run(sweeps, place, workers=1)
    assert (place / "core" / "runs.parquet").read_bytes() == first
    assert json.loads((place / "core" / "sessions.json").read_text())[-1]["runs"] == 0


def test_a_study_that_was_not_run_says_how(folder: Path) -> None:
    done = inside("study", "report", folder, "--quick")
    assert done.code == 2
    assert "airloom study run small-objects --quick" in done.err
    unknown = inside("study", "report", "nothing")
    assert unknown.code == 2
    assert "valid: " in unknown.err
    assert len(unknown.err.splitlines()) == 1


def test_shipped_studies_are_listed_with_their_score() -> None:
    done = inside("study", "list", "--json")
    assert [entry["study"] for entry in json.loads(done.out)] == names()
    assert "not run here" in inside("study", "list").out


def test_the_score_of_the_last_run_is_listed() -> None:
    name = names()[0]
    for when, (depth, holds) in enumerate([("quick", 3), ("full", 5)]):
        place = Path("runs") / "studies" / name / depth
        place.mkdir(parents=True)
        score = {"holds": holds, "differs": 1}
        kept = {"depth": depth, "seeds": 7, "score": score, "score_parts": {"holds": 2}, "claims": []}
        (place / "result.json").write_text(json.dumps(kept))
        os.utime(place / "result.json", (when, when))
    (line,) = [line for line in inside("study", "list").out.splitlines() if line.startswith(f"{name} ")]
    assert re.split(r"  +", line)[2:] == ["full", "7", "5 holds, 1 differs", "2 holds"]
    (entry,) = [each for each in json.loads(inside("study", "list", "--json").out) if each["study"] == name]
    assert entry["score"] == {"holds": 5, "differs": 1}
    (place / "result.json").write_text("{")
    broken = inside("study", "list")
    assert broken.code == 2
    (said,) = broken.err.splitlines()
    assert said.startswith(f"airloom: runs/studies/{name}/full/result.json cannot be read: ")


def entries(study: str) -> dict[str, Any]:
    recorded = open_study(study).folder / "expected" / "quick.json"
    kept: dict[str, Any] = json.loads(recorded.read_text())
    return kept


@pytest.mark.parametrize("name", names())
def test_shipped_study_runs_quick_and_turns_no_recorded_verdict_round(
    name: str, quick_run: QuickRun, tmp_path: Path
) -> None:
    said = {claim["id"]: claim["verdict"] for claim in quick_run(name, tmp_path)["claims"]}
    recorded = entries(name)["claims"]
    assert set(said) == set(recorded)
    opposite = {("holds", "differs"), ("differs", "holds")}
    turned = {
        claim: (verdict, said[claim]) for claim, verdict in recorded.items() if (verdict, said[claim]) in opposite
    }
    assert turned == {}
    lost = {claim for claim, verdict in recorded.items() if verdict != "not-covered" and said[claim] == "not-covered"}
    assert lost == set()

    reported = inside("study", "report", name, "--quick", "--out", tmp_path)
    assert reported.code == 0, reported.err
    assert reported.out.splitlines()[0].startswith(f"{name}, quick: of ")
    kept = json.loads((tmp_path / "quick" / "result.json").read_text())
    assert all(control["verdict"] != "differs" for control in kept["controls"])
    assert "to the last digit" in (tmp_path / "quick" / "report.html").read_text()


def test_report_of_a_study_opens_in_a_browser(found: Outcome, place: Path, tmp_path: Path, browser: Browser) -> None:
    from airloom.study.page import build

    made = build(found.study, document.of(found, place), place, tmp_path / "study.html")
    for width, scheme in ((1280, "light"), (390, "dark")):
        with opened(browser, made, width=width, scheme=scheme) as seen:
            page = seen.page
            assert page.locator("h1").inner_text() == "Small objects"
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.locator("figure svg").count() == 1
            assert page.locator("tbody tr").filter(has_text="X4").count() >= 1
    assert (place / "figures" / "times.svg").exists()
    assert (place / "figures" / "times.pdf").exists()
