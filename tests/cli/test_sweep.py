"""`airloom sweep` as a person types it; but for the first test within this process, which is quicker."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import airloom as al
from airloom.cli import call
from tests.cli.shell import Done, airloom, inside
from tests.sweep.conftest import FETCH


@pytest.fixture
def fetch_file(tmp_path: Path) -> Path:
    path = tmp_path / "fetch.toml"
    path.write_text(FETCH)
    return path


def here(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Done:
    """Runs a command line in this process."""
    code = call([*map(str, arguments)])
    said = capsys.readouterr()
    return Done(code, said.out, said.err)


def test_a_row_per_point_and_the_last_line_says_where_and_what_next(fetch_file: Path) -> None:
    done = inside("sweep", fetch_file, "--vary", "links.wire.loss=0,0.1", "--seeds", "1..5", "--out", "s")
    assert done.code == 0, done.err
    title, *rows = done.out.splitlines()
    assert title.split("  ")[0] == "loss"
    assert "page load (s) (median, 95 % CI)" in title
    assert [row.split()[0] for row in rows] == ["0", "0.1"]
    assert "[" in rows[1]
    *_, spent, last = done.err.splitlines()
    assert spent.startswith("simulated 10 runs in ")
    assert last == "results in s   next: airloom report s"
    again = inside("sweep", fetch_file, "--vary", "links.wire.loss=0,0.1", "--seeds", "1..5", "--out", "s")
    assert again.out == done.out
    assert again.err.splitlines()[0] == "all 10 runs were there already"


def test_json_is_one_document(fetch_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = here(capsys, "sweep", fetch_file, "--vary", "links.wire.loss=0,0.1", "--seeds", "1..6", "--json")
    found = json.loads(done.out)
    assert [point["levels"] for point in found["points"]] == [{"links.wire.loss": 0.0}, {"links.wire.loss": 0.1}]
    assert all(p["medians"]["page_load_s"]["low"] <= p["medians"]["page_load_s"]["value"] for p in found["points"])
    assert found["runs"] == 12
    assert found["failed"] == 0


def test_a_sweep_file_says_everything_and_options_replace_what_it_says(
    fetch_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("loss.toml").write_text(
        f"""\
scenario = "{fetch_file.name}"
seeds = "1..3"
out = "from-file"
set = {{ "links.wire.delay" = "10ms" }}

[vary]
"links.wire.loss" = [0, 0.1]
"hosts.origin.transport" = [
    {{ label = "NewReno", tcp = {{ congestion = "newreno" }} }},
    {{ label = "Reno", tcp = {{ congestion = "reno" }} }},
]
"""
    )
    done = here(capsys, "sweep", "loss.toml", "--json", "--seeds", "1..2", "--vary", "links.wire.loss=0.2")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["folder"] == "from-file"
    assert [list(point["levels"].values()) for point in found["points"]] == [[0.2, "NewReno"], [0.2, "Reno"]]
    assert found["runs"] == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--vary", "links.wire.lossy=1"], "unknown key `lossy`"),
        (["--vary", "links.wire.loss="], "expected KEY=A,B,C"),
        (["--vary", "links.wire.loss"], "expected KEY=A,B,C"),
        (["--seeds", "9..1"], "run backwards"),
        (["--seeds", "many"], "'many' are no seeds"),
        (["--until-ci", "200%"], "expected a share"),
        (["--table", "packets"], "valid: pages, objects, flows, states, congestion"),
        (["--on", "ssh://there"], "expected dask://HOST:PORT or scheduler-file:PATH"),
        (["--on", "scheduler-file:gone.json"], "there is no file gone.json"),
        (["--", "curl", "http://origin/"], "a command runs in real time only: add --emulate"),
    ],
)
def test_wrong_use_is_one_line_and_leaves_nothing(
    fetch_file: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = here(capsys, "sweep", fetch_file, *arguments)
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("airloom: ")
    assert said in line
    assert [p.name for p in Path().iterdir()] == [fetch_file.name]


def test_an_unknown_measure_is_said_with_close_ones_and_the_runs_are_kept(
    fetch_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", str(fetch_file), "--seeds", "1..3", "--out", "s"]
    done = here(capsys, *words, "--measure", "page_load")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert line.startswith("airloom: no run of this sweep measures 'page_load'; close to it: page_load_s, ")
    assert line.endswith("; all runs are kept in s")
    assert here(capsys, *words).err.splitlines()[0] == "all 3 runs were there already"


def test_a_wrong_key_of_a_sweep_file_is_said_with_the_valid_ones(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.toml").write_text('scenario = "umts-page"\nseed = 3\n')
    done = here(capsys, "sweep", "wrong.toml")
    assert done.code == 2
    assert done.err.startswith("airloom: wrong.toml, a sweep file: unknown key `seed` (did you mean `seeds`?); valid: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('scenario = "gone"', "no scenario 'gone': "),
        ('seeds = [1, "x"]', "a seed is a whole number, not 'x'"),
        ("seeds = true", "bad.toml: `seeds` is a text or a whole number or a list, not True"),
        ("workers = 0", "workers are 1 or more, not 0"),
        ("set = 3", "bad.toml: `set` is a table, not 3"),
        ('vary."links.radio.loss.downlink" = []', "bad.toml: vary: links.radio.loss.downlink has no values"),
        ('[vary]\nseed = [{ label = "a", set = {} }]', "bad.toml: vary: an axis cannot be called 'seed': "),
        ("vary.x = 3", "bad.toml: `vary.x` is a list of values"),
    ],
)
def test_what_is_wrong_in_a_sweep_file_is_one_line(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    head = "" if text.startswith("scenario") else 'scenario = "umts-page"\n'
    Path("bad.toml").write_text(head + text + "\n")
    done = here(capsys, "sweep", "bad.toml")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"airloom: {said}")
    assert [p.name for p in Path().iterdir()] == ["bad.toml"]


@pytest.mark.parametrize("text", ["{", "[]", "3", "{}"])
def test_a_folder_whose_manifest_is_none_is_left_alone(
    fetch_file: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s").mkdir()
    Path("s/sweep.json").write_text(text)
    for words in (["sweep", fetch_file, "--seeds", "1", "--out", "s"], ["report", "s"]):
        done = here(capsys, *words)
        assert (done.code, done.out) == (2, "")
        assert len(done.err.splitlines()) == 1
    assert [p.name for p in Path("s").iterdir()] == ["sweep.json"]


def test_failed_runs_are_told_and_make_the_exit_code(fetch_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", str(fetch_file), "--vary", "run.limit=30ms,1h", "--seeds", "1..4"]
    done = here(capsys, *arguments)
    assert done.code == 4
    assert "4 of 8 runs failed:" in done.err
    assert "not done within run.limit: run.limit=30ms, seed 1; " in done.err
    assert here(capsys, *arguments, "--max-failures", "4").code == 0
    stopped = here(capsys, *arguments, "--max-failures", "3", "--out", "fresh")
    assert stopped.code == 4
    assert "more than --max-failures 3: stopped" in stopped.err


def test_sparklines_are_ascii_where_the_terminal_is(fetch_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = airloom("sweep", fetch_file, "--seeds", "1", PYTHONIOENCODING="ascii")
    assert done.code == 0
    assert done.out.isascii()


def test_seeds_are_taken_until_the_mean_is_known_well_enough(
    fetch_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = here(capsys, "sweep", fetch_file, "--until-ci", "15%", "--json")
    assert done.code == 0, done.err
    seeds = json.loads(done.out)["points"][0]["seeds"]
    assert 30 < seeds < 2000
    import airloom as al

    found = al.SweepResults(json.loads(done.out)["folder"]).mean("page_load_s").row(0, named=True)
    assert (found["high"] - found["low"]) / 2 <= 0.15 * found["mean"]
    fewer = al.SweepResults(json.loads(done.out)["folder"]).runs.head(30)["page_load_s"]
    assert 1.96 * float(fewer.std()) / 30**0.5 > 0.15 * float(fewer.mean())  # type: ignore[arg-type]


def test_seeds_that_were_not_enough_are_said(fetch_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = here(capsys, "sweep", fetch_file, "--until-ci", "0.1%", "--seeds", "1..5")
    assert done.code == 0
    assert "with all these seeds an interval is still wider than 0.001 of its mean" in done.err
    assert "still wider" not in here(capsys, "sweep", fetch_file, "--until-ci", "90%", "--seeds", "1..30").err


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_without_standard_files_a_sweep_is_made_all_the_same(fetch_file: Path, closed: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m airloom sweep {fetch_file} --seeds 1..5 --out s {closed}"
    done = subprocess.run(["sh", "-c", command], check=False)
    assert done.returncode == 0
    assert al.SweepResults("s").runs.height == 5


def test_the_response_is_drawn_for_each_axis_that_varies(fetch_file: Path) -> None:
    axes = ("--vary", "links.wire.loss=0,0.05", "--vary", "links.wire.delay=20ms")
    done = inside("sweep", fetch_file, *axes, "--seeds", "1..3", "--out", "s", "--plot")
    assert done.code == 0, done.err
    assert [path.name for path in Path("s").glob("*.svg")] == ["response-links.wire.loss.svg"]
    assert "wrote s/response-links.wire.loss.svg" in done.err
    plain = inside("sweep", fetch_file, "--seeds", "1", "--out", "t", "--plot")
    assert (plain.code, "nothing to draw: nothing was varied" in plain.err) == (0, True)
