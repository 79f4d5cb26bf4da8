"""The full runs that ship: current with today's claims, shown without a run, and made into pages."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from airloom import interpreter
from airloom.errors import UsageError
from airloom.study import document, execute, names, open_study, outcome, replication, shipping, text
from airloom.study.data import IN_REAL_TIME
from tests.cli.shell import inside
from tests.study.test_study import changed, folder

__all__ = ["folder"]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def taken(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose full run ships with it."""
    home = tmp_path_factory.mktemp("taken")
    copy = home / "small-objects"
    shutil.copytree(folder, copy)
    study = open_study(copy)
    execute.run(execute.planned(study, "full"), home / "full", workers=1)
    shipping.take(study, home / "full")
    return copy


def test_a_run_that_ships_is_shown_where_nothing_was_run(taken: Path) -> None:
    done = inside("study", "report", taken)
    assert done.code == 0, done.err
    assert done.out.startswith("small-objects, full: of 4 claims 2 computed: 1 holds, 1 fitted, 2 not-covered")
    assert "the full run that ships" in done.err
    assert Path("runs/studies/small-objects/shipped/report.html").is_file()
    figure = inside("study", "report", taken, "--figure", "times", "--png")
    assert Path(figure.out.strip()).read_bytes().startswith(b"\x89PNG")
    drawn = json.loads(inside("study", "report", taken, "--figure", "times", "--json").out)
    assert drawn == {"figure": "times", "file": figure.out.strip()}
    claim = json.loads(inside("study", "report", taken, "--claim", "X3", "--json").out)
    assert [(row["id"], row["verdict"]) for row in claim] == [
        ("X3", "not-covered"),
        ("X3.done", "holds"),
        ("X3.missing", "not-covered"),
    ]
    assert json.loads(inside("study", "report", taken, "--json").out)["depth"] == "full"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--figure", "fig-9"], "no figure 'fig-9' in small-objects, full; valid: times"),
        (["--table", "1"], "no table '1' in small-objects, full; valid: none"),
        (["--claim", "Z9"], "no claim 'Z9' in small-objects; valid: X1, X2"),
        (["--png"], "--png and --pdf go with --figure"),
        (["--figure", "times", "--pdf"], "it has PNG files only"),
        (["--quick"], "airloom study run small-objects --quick"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(taken: Path, words: list[str], says: str) -> None:
    done = inside("study", "report", taken, *words)
    assert done.code == 2
    assert says in done.err
    assert len(done.err.splitlines()) <= 2


def test_a_page_has_claims_figures_and_what_the_run_took(taken: Path) -> None:
    page = replication.markdown(shipping.current(open_study(taken)), "studies/small-objects")
    assert page.startswith("# Small objects\n\nN. Obody, S. Mall: On small objects (2001).")
    assert "**Of 4 claims: 1 holds, 1 fitted, 2 not-covered.**" in page
    assert "![Load times](studies/small-objects/shipped/times.png)" in page
    # Two levels with twelve seeds; and each of the three readings with eight.
    assert "From the full run: 72 simulated runs" in page
    assert "- **X2** *fitted* the rate. Paper: 1000 kbit/s. Ours: 1000 kbit/s." in page


def test_other_claims_than_those_that_were_judged_are_found_out(taken: Path, tmp_path: Path) -> None:
    words = changed(taken, tmp_path / "words", "claims.toml", "a slow wire is slower", "slow wires are slower")
    content = (words / "claims.toml").read_text()
    content = content.replace("against itself", "a wire against itself").replace("year = 2001", "year = 2002")
    (words / "claims.toml").write_text(content)
    found = shipping.current(open_study(words))
    assert [found["claims"][0][key] for key in ("says", "paper")] == ["slow wires are slower"] * 2
    assert [found["controls"][0][key] for key in ("says", "paper")] == ["a wire against itself"] * 2
    assert found["paper"]["citation"].endswith("(2002)")
    for name, (old, new) in {"order": ('order = ">"', 'order = "<"'), "tolerance": ('"1%"', '"2%"')}.items():
        other = changed(taken, tmp_path / name, "claims.toml", old, new)
        with pytest.raises(UsageError, match="judged by other claims or defaults"):
            shipping.current(open_study(other))


def test_a_deviation_without_a_reason_does_not_ship(folder: Path, tmp_path: Path) -> None:
    wrong = changed(folder, tmp_path, "claims.toml", 'order = ">"', 'order = "<"')
    study = open_study(wrong)
    execute.run(execute.planned(study, "full"), tmp_path / "full", workers=1)
    with pytest.raises(UsageError, match="X1 deviate, and no `because` says why"):
        shipping.take(study, tmp_path / "full")
    content = (wrong / "claims.toml").read_text()
    (wrong / "claims.toml").write_text(
        content.replace('order = "<"', 'order = "<"\nbecause = "Wires are like that."', 1)
    )
    found = shipping.take(open_study(wrong), tmp_path / "full")
    assert "**X1** *differs*: a slow wire is slower (1)" in replication.markdown(found, "x")
    assert "Wires are like that." in replication.markdown(found, "x")


def test_a_run_that_may_not_ship_leaves_the_one_that_does_whole(
    taken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(folder: Path) -> dict[str, bytes]:
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    made = taken.parent / "full"
    wrong = changed(taken, tmp_path, "claims.toml", 'order = ">"', 'order = "<"')
    before = held(wrong)
    with pytest.raises(UsageError, match="no `because` says why"):
        shipping.take(open_study(wrong), made)
    assert held(wrong) == before
    same = tmp_path / "small-objects"
    shutil.copytree(taken, same)
    before = held(same)
    with monkeypatch.context() as patched:
        patched.setattr(shipping, "_save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shipping.take(open_study(same), made)
    assert held(same) == before
    (same / "shipped" / "gone.png").touch()
    shipping.take(open_study(same), made)
    assert held(same) == before


def test_a_full_run_that_contradicts_the_one_that_ships_is_told(taken: Path, tmp_path: Path) -> None:
    study, made = open_study(taken), taken.parent / "full"
    found = document.of(outcome.evaluate(study, made, "full"), made)
    document.save(found, made / document.NAME)
    assert shipping.turned(study, made) == {}
    turns = {"X1": "differs", "X2": "differs", "X4": "holds"}
    for row in found["claims"]:
        row["verdict"] = {**turns, "X3.done": "unclear"}.get(row["id"], row["verdict"])
    document.save(found, tmp_path / document.NAME)
    words = [str(ROOT / "tools" / "replications.py"), "--same", str(taken), str(tmp_path)]
    done = subprocess.run(interpreter.python(*words), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line.partition(": ")[2] for line in done.stderr.splitlines()] == [
        "X1 is differs, in the run that ships holds",
        "X2 is differs, in the run that ships fitted",
        "X4 is holds, in the run that ships not-covered",
    ]
    document.save({**found, "depth": "quick"}, tmp_path / document.NAME)
    with pytest.raises(UsageError, match="has a quick run"):
        shipping.turned(study, tmp_path)


def test_what_waits_for_real_time_in_the_run_that_ships_is_not_contradicted_by_it(taken: Path, tmp_path: Path) -> None:
    study = open_study(shutil.copytree(taken, tmp_path / "small-objects"))
    ships = study.folder / "shipped" / document.NAME
    found = document.read(ships)
    for row in found["claims"]:
        row["why"] = IN_REAL_TIME if row["id"] == "X3.missing" else row["why"]
    document.save(found, ships)
    for row in found["claims"]:
        row["verdict"] = "differs" if row["id"] in ("X3", "X3.missing") else row["verdict"]
    document.save(found, tmp_path / document.NAME)
    assert shipping.turned(study, tmp_path) == {}
    row = next(row for row in found["claims"] if row["id"] == "X3.done")
    row["verdict"] = "not-covered"
    document.save(found, tmp_path / document.NAME)
    assert shipping.turned(study, tmp_path) == {"X3.done": ("holds", "not-covered")}


def test_another_reading_stands_beside_the_default(folder: Path) -> None:
    done = inside("study", "run", folder, "--quick", "--reading", "delay=fast slow")
    assert done.code == 0, done.err
    assert "delay: 'much, and a fast slow wire' in place of '20 ms', in wire" in done.err
    (first,) = [line.split() for line in done.out.splitlines() if line.startswith("X1")]
    assert first[1:3] == ["differs", "holds"]
    again = inside("study", "run", folder, "--quick", "--set", "links.wire.delay=90ms", "--json")
    rows = {row["id"]: row for row in json.loads(again.out)["claims"]}
    assert rows["X1"]["verdict"] == "holds"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--reading", "dealy=x"], "no assumption 'dealy' in small-objects; valid: delay, rate"),
        (["--reading", "delay=x"], "'x' is no level of delay; valid, by words of it: \"much, and a fast slow wire\""),
        (["--reading", "delay=not built"], "is no level of delay"),
        (["--set", "links.wire.dealy=1s"], "no scenario of small-objects takes it: --set links.wire.dealy=1s"),
        (["--set", "links.wire.delay=1s", "--real"], "without --reading and --set"),
        (["--real"], "small-objects has nothing in real time"),
    ],
)
def test_wrong_readings_and_settings_are_said_with_what_there_is(folder: Path, words: list[str], says: str) -> None:
    done = inside("study", "run", folder, "--quick", *words)
    assert done.code == 2
    assert says in done.err


def test_a_copy_is_a_study_of_its_own(tmp_path: Path) -> None:
    done = inside("study", "copy", "tsaoussidis", tmp_path / "mine")
    assert done.code == 0, done.err
    assert open_study(tmp_path / "mine").claims == open_study("wave-and-wait").claims
    assert not (tmp_path / "mine" / "shipped").exists()
    assert inside("study", "copy", "tsaoussidis", tmp_path / "mine").code == 2


def test_studies_go_by_their_authors() -> None:
    assert [open_study(name).name for name in ("ueno", "afif-2006", "tsaoussidis")] == [
        "wap-vs-http-wcdma",
        "sctp-http-egprs",
        "wave-and-wait",
    ]
    listed = inside("study", "list").out
    assert "wave-and-wait, or tsaoussidis: V. Tsaoussidis, A. Lahanas, H. Badr (2000): Wave & Wait Protocol" in listed


def test_what_a_full_run_takes_is_told_from_the_one_that_ships(taken: Path) -> None:
    shipped = document.shipped(open_study(taken))
    assert shipped is not None
    assert shipped["cost"]["runs"] == 72
    shipped["cost"]["core_s"] = 7200.0
    assert execute.expected(shipped, 72, 2) == ", about 60 min on 2 cores"
    assert execute.expected(shipped, 1, 1) == ", about 2 min on 1 core"
    assert execute.expected(None, 1, 1) == ""


def test_the_pages_of_the_repository_are_those_of_the_runs_that_ship_and_of_today_s_claims() -> None:
    tool = ROOT / "tools" / "replications.py"
    done = subprocess.run(interpreter.python(str(tool), "--check"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", names())
def test_every_shipped_run_has_its_pictures_and_the_paper_s_figures_first(name: str) -> None:
    shipped = shipping.current(open_study(name))
    keys = [entry["key"] for entry in shipped["figures"]]
    folder = open_study(name).folder / "shipped"
    assert {f"{key}.png" for key in keys} == {file.name for file in folder.glob("*.png")}
    of_paper = [key.startswith("fig-") for key in keys]
    assert of_paper == sorted(of_paper, reverse=True)
    assert shipped["depth"] == "full"


#: How the page of a study says verdicts.
SAID = {
    "holds": r"hold\b(?! as| because)",
    "fitted": "hold (?:as|because)",
    "differs": "differ",
    "unclear": "(?:is|are) unclear",
    "not-covered": "(?:is|are) not covered",
}


@pytest.mark.parametrize("name", names())
def test_the_page_of_a_study_has_the_counts_of_the_run_that_ships(name: str) -> None:
    study = open_study(name)
    found = document.shipped(study)
    assert found is not None
    page = " ".join((study.folder / "README.md").read_text(encoding="utf-8").split())
    assert set(re.findall(r"([\d,]+) (?:simulated )?runs,", page)) == {f"{found['cost']['runs']:,}"}
    ((claims, verdicts),) = re.findall(r"[Oo]f (\d+) claims ([^.;]+)", page)
    assert int(claims) == sum(found["score"].values())
    counts = {verdict: re.findall(rf"(\d+) {words}", verdicts) for verdict, words in SAID.items()}
    assert {verdict: count for verdict, count in counts.items() if count} == {
        verdict: [str(count)] for verdict, count in found["score"].items()
    }


@pytest.mark.parametrize("name", names())
def test_it_is_said_why_more_deviations_are_listed_than_the_score_has(name: str) -> None:
    found = document.shipped(open_study(name))
    assert found is not None
    said = text.on_deviations(found)
    lines = text.deviations(found)
    assert said.startswith(f"{len(lines)} listed (") if lines else said == ""
    of_score = sum(found["score"].get(verdict, 0) for verdict in ("differs", "unclear", "compatible"))
    if len(lines) > of_score:
        assert "parts of" in said
        assert said.endswith("the score counts a claim once")
