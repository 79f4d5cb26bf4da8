"""The files of a study: what may stand there, and what is said about what may not."""

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import UsageError
from airloom.study import assumptions, claims, plan, programs

PAPER: dict[str, Any] = {"authors": ["N. Obody"], "title": "On links", "year": 2001, "summary": "Done. With. Out."}
GOOD: dict[str, Any] = {"id": "X1", "kind": "v", "where": "2", "says": "so", "paper": 3, "unit": "s", "tolerance": 0.1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "x"}, "valid: v, r, o, s, p"),
        ({"tolerance": "a lot"}, "expected a number in the unit, or a share"),
        ({"tolerance": -1}, "not negative"),
        ({"paper": "text"}, "needs a number"),
        ({"order": "<"}, "a claim of kind v: unknown key"),
        ({"where": None}, "no 'where'"),
        ({"verdict": "holds"}, "a claim of kind v: unknown key"),
        ({"runs": 0}, "a number of runs"),
        ({"at_least": "x"}, "at_least is a number"),
        ({"part": [{"id": "Y1", "says": "s"}], "tolerance": None}, "begins with that of its claim"),
        ({"part": [{"id": "X1.a", "says": "s"}]}, "has parts"),
        ({"tied_to": ["X2"]}, "tied to 'X2', which is no other claim"),
        ({"tied_to": ["X1"]}, "tied to 'X1', which is no other claim"),
        ({"tied_to": 1}, "tied_to is a list of texts"),
        ({"part": "X1.a"}, "part is a list of tables"),
    ],
)
def test_a_wrong_claim_is_named_with_what_is_wrong(change: dict[str, Any], message: str) -> None:
    entry = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(UsageError, match=message) as caught:
        claims.parse({"paper": PAPER, "claim": [entry]})
    assert "X1" in str(caught.value) or "Y1" in str(caught.value)


def test_claims_that_are_no_tables_are_named() -> None:
    for table in ({"claim": None}, {"claim": ["X1"]}, {"claim": [GOOD], "control": {}}):
        with pytest.raises(UsageError, match="is a list of tables"):
            claims.parse({"paper": PAPER, **table})


def test_ids_are_there_once() -> None:
    with pytest.raises(UsageError, match="X1 is there twice"):
        claims.parse({"paper": PAPER, "claim": [GOOD, GOOD]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"authors": []}, "authors is a list"),
        ({"authors": "N. Obody"}, "authors is a list"),
        ({"year": "2001"}, "year is a number"),
        ({"title": None}, "no 'title'"),
        ({"summary": None}, "no 'summary'"),
        ({"journal": "x"}, "unknown key `journal`"),
    ],
)
def test_a_wrong_paper_is_named_with_what_is_wrong(change: dict[str, Any], message: str) -> None:
    entry = {key: value for key, value in {**PAPER, **change}.items() if value is not None}
    with pytest.raises(UsageError, match=message):
        claims.parse({"paper": entry, "claim": [GOOD]})


def test_parts_take_over_what_they_do_not_say() -> None:
    whole = {key: value for key, value in GOOD.items() if key not in ("paper", "tolerance", "unit")}
    part = {"id": "X1.a", "paper": 4, "tolerance": "5%"}
    (claim,) = claims.parse({"paper": PAPER, "claim": [{**whole, "assumptions": ["a"], "part": [part]}]}).claims
    (found,) = claim.parts
    assert (found.kind, found.where, found.says, found.assumptions) == ("v", "2", "so", ("a",))
    assert found.band == pytest.approx((3.8, 4.2))


ENTRY: dict[str, Any] = {
    "id": "a",
    "says": "what",
    "default": "one",
    "why": "so",
    "role": "decisive",
    "source": "guess",
    "set": {"k": 1},
    "levels": [{"label": "two", "set": {"k": 2}}, {"label": "later"}],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"role": "other"}, "valid: joint, decisive, level, calibration"),
        ({"source": "me"}, "valid: paper, standard, guess"),
        ({"why": None}, "no 'why'"),
        ({"levels": ["two"]}, "a level is"),
        ({"levels": 2}, "a level is"),
        ({"set": "two"}, "set is a table"),
        ({"fitted_to": 1}, "fitted_to is a list of texts"),
        ({"levels": [{"label": "one"}]}, "there twice"),
        ({"role": "calibration"}, "a calibration names the claims"),
        ({"colour": 1}, "unknown key"),
    ],
)
def test_a_wrong_assumption_is_named_with_what_is_wrong(change: dict[str, Any], message: str) -> None:
    entry = {key: value for key, value in {**ENTRY, **change}.items() if value is not None}
    with pytest.raises(UsageError, match=message):
        assumptions.parse({"assumption": [entry]})


def test_readings_are_the_default_each_level_and_pairs_of_decisive_ones() -> None:
    second = {**ENTRY, "id": "b", "set": {"m": 1}, "levels": [{"label": "x", "set": {"m": 2}}]}
    third = {**second, "id": "c", "role": "level", "levels": [{"label": "y", "set": {"n": 3}}]}
    known = assumptions.parse({"assumption": [ENTRY, second, third]})
    found = {reading.name: reading.settings for reading in assumptions.readings(known)}
    assert found == {
        "default": {"k": 1, "m": 1},
        "default, by another name": {"k": 1, "m": 1},
        "a = two": {"k": 2, "m": 1},
        "b = x": {"k": 1, "m": 2},
        "c = y": {"k": 1, "m": 1, "n": 3},
        "a = two, b = x": {"k": 2, "m": 2},
    }
    quick = [reading.name for reading in assumptions.readings(known, joint=False)]
    assert "a = two, b = x" not in quick


def test_joint_assumptions_are_read_in_all_combinations() -> None:
    levels = {"levels": [{"label": "x", "set": {}}, {"label": "y", "set": {}}]}
    joint = [{**ENTRY, "id": name, "role": "joint", **levels} for name in "abc"]
    known = assumptions.parse({"assumption": [*joint, {**ENTRY, "id": "d"}]})
    changed = [reading.changed for reading in assumptions.readings(known)[2:]]
    of_joint = {of for of in changed if "d" not in dict(of)}
    assert len(of_joint) == 3**3 - 1
    assert len(changed) == len(set(changed)) == 26 + 1 + 6, "and those with the decisive one in pairs"


def test_a_level_may_set_keys_of_one_scenario_alone() -> None:
    level = {"label": "two", "set": {"k": 2}, "only": {"wap": {"w": 5}}}
    entry = {**ENTRY, "only": {"http": {"h": 1}}, "levels": [level, {"label": "three", "only": {"http": {"h": 3}}}]}
    default, _, two, three = assumptions.readings(assumptions.parse({"assumption": [entry]}), joint=False)
    assert default.at("http") == {"k": 1, "h": 1}
    assert default.at("wap") == {"k": 1}
    assert two.at("wap") == {"k": 2, "w": 5}
    assert three.at("http") == {"k": 1, "h": 3}
    assert three.at("wap") == {"k": 1}
    with pytest.raises(UsageError, match="`only` is"):
        assumptions.parse({"assumption": [{**ENTRY, "only": {"wap": 1}}]})


def test_readings_that_set_the_same_in_a_scenario_are_made_once() -> None:
    entry = {**ENTRY, "levels": [{"label": "two", "only": {"http": {"h": 2}}}, {"label": "as it is", "set": {"k": 1}}]}
    known = assumptions.readings(assumptions.parse({"assumption": [entry]}), joint=False)
    in_wap = {name: first.name for name, first in assumptions.distinct(known, "wap").items()}
    assert in_wap == {
        "default": "default",
        "default, by another name": "default, by another name",
        "a = two": "default",
        "a = as it is": "default",
    }
    assert assumptions.distinct(known, "http")["a = two"].name == "a = two"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "a program is"),
        ({"command": ["x"], "colour": 1}, "unknown key `colour`"),
        ({"command": ["x"], "depths": ["half"]}, "valid: quick, full"),
        ({"command": True}, "command is a list of texts"),
        ({"command": ["x"], "limit_s": "soon"}, "limit_s is a number of seconds"),
    ],
)
def test_a_wrong_program_is_named_with_what_is_wrong(entry: dict[str, Any], message: str, tmp_path: Path) -> None:
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in entry.items())
    (tmp_path / "programs.toml").write_text(f"[measure]\n{lines}\n")
    with pytest.raises(UsageError, match=message):
        programs.read(tmp_path / "programs.toml")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("vary = 1", "vary is a table"),
        ("set = []", "set is a table"),
        ("tables = 3", "tables is a list of texts"),
        ("command = 'x'", "command is a list of texts"),
        ("reading_vary = 1", "reading_vary is a table"),
    ],
)
def test_a_wrong_plan_is_named_with_what_is_wrong(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(f'[surf]\nscenario = "umts-page"\nseeds = {{ full = "1..2" }}\n{line}\n')
    with pytest.raises(UsageError, match=rf"\[surf\]: {message}"):
        plan.read(tmp_path / "sweep.toml")


def test_a_program_runs_once_and_its_failure_has_its_last_words(tmp_path: Path) -> None:
    script = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.touch(); print('{\"at\": 1}')"
    program = programs.Program("measure", ("{python}", "-c", script, "{study}/ran"), ("full",), 60)
    programs.run(program, tmp_path, tmp_path / "full")
    assert json.loads((tmp_path / "full" / "measure.json").read_text()) == {"at": 1}
    (tmp_path / "ran").unlink()
    programs.run(program, tmp_path, tmp_path / "full")
    assert not (tmp_path / "ran").exists()
    for script, words in (
        ("raise SystemExit('no lamp')", "no lamp"),
        ("raise SystemExit(' \\n')", "other: failed"),
        ("print('lamp')", "Expecting value"),
    ):
        with pytest.raises(UsageError, match=words):
            programs.run(program._replace(name="other", command=("{python}", "-c", script)), tmp_path, tmp_path)
    assert not list(tmp_path.glob("other*"))


def test_a_program_imports_what_lies_beside_it_and_nothing_from_the_current_folder(tmp_path: Path) -> None:
    study, here = tmp_path / "study", tmp_path / "here"
    for folder, number in ((study, 1), (here, 2)):
        folder.mkdir()
        (folder / "beside.py").write_text(f"NUMBER = {number}\n")
    (study / "measure.py").write_text("import beside\nprint(beside.NUMBER)\n")
    program = programs.Program("measure", ("{python}", "{study}/measure.py"), ("full",), 60)
    with chdir(here):
        programs.run(program, study, tmp_path / "full")
    assert json.loads((tmp_path / "full" / "measure.json").read_text()) == 1


def test_a_program_is_told_its_depth_and_where_the_results_are(tmp_path: Path) -> None:
    script = "import json, sys; print(json.dumps(sys.argv[1:]))"
    program = programs.Program("measure", ("{python}", "-c", script, "--depth={depth}", "{place}/kept"), ("quick",), 60)
    programs.run(program, tmp_path, tmp_path / "here", "quick")
    found = json.loads((tmp_path / "here" / "measure.json").read_text())
    assert found == ["--depth=quick", str(tmp_path / "here" / "kept")]
