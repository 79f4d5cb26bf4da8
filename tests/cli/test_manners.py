import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airloom import measures, reference
from airloom.cli import call
from airloom.cli.verbs import VERBS
from tests.cli.shell import airloom, inside

HEAVY = ("matplotlib", "dask", "scipy", "pandas")


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return {name.partition(".")[0] for name in done.stderr.splitlines()}


@pytest.mark.parametrize(
    "words",
    [["--help"], ["--version"], ["list"], ["list", "bearers", "wireline"], ["check", "umts-page"], ["run", "-h"]],
)
def test_what_only_tells_imports_nothing_heavy(words: list[str]) -> None:
    loaded = modules_after(f"from airloom.cli import call\nassert call({words!r}) == 0")
    assert "airloom" in loaded
    assert not loaded & {*HEAVY, "polars", "numpy", "rich"}


def test_a_verb_imports_no_other_verb() -> None:
    script = "from airloom.cli import call; import sys; call(['check', 'umts-page']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    modules = (name for name in done.stdout.split() if name.startswith("airloom.cli."))
    assert {name for name in modules if name.removeprefix("airloom.cli.") in VERBS} == {"airloom.cli.check"}


def test_run_imports_no_plotting(wire: Path) -> None:
    loaded = modules_after(f"from airloom.cli import call\nassert call(['run', {str(wire)!r}]) == 0")
    assert "polars" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "No such command 'frobnicate'; valid: run, sweep"),
        (["run"], "Missing argument"),
        (["run", "--colour", "x"], "No such option: --colour"),
        (["run", "no-such-scenario"], "no scenario 'no-such-scenario'"),
        (["run", "{wire}", "--seed", "many"], "Invalid value for '--seed'"),
        (["run", "{wire}", "--set", "links.wire.rate"], "expected KEY=VALUE"),
        (["run", "{wire}", "--set", "links.wire.rate=-1kbit/s"], "negative"),
        (["run", "{wire}", "--set", "links.wire.loss=1.1"], "between 0 and 1"),
        (["run", "{wire}", "--set", "links.wire.bearer=carrier-pigeon"], "carrier-pigeon"),
        (["run", "{wire}", "--set", "links.wire.colour=red"], "colour"),
        (["list", "birds"], "no kind 'birds'; valid: bearers"),
        (["list", "bearers", "pigeon"], "no 'pigeon' among the bearers; valid: "),
    ],
)
def test_wrong_use_is_one_line_and_code_2_and_writes_nothing(
    arguments: list[str], said: str, wire: Path, tmp_path: Path
) -> None:
    done = inside(*(a.format(wire=wire) for a in arguments))
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert said in done.err
    assert list(tmp_path.iterdir()) == [wire]


def test_scenario_errors_name_file_line_and_choices(wire: Path) -> None:
    wire.write_text(wire.read_text().replace("wireline", "wirelime"))
    done = airloom("check", wire)
    assert done.code == 2
    assert done.err.startswith(f"airloom: {wire}:9:")
    assert "wirelime" in done.err
    assert "valid: " in done.err
    assert "wireline" in done.err


def test_json_is_one_document_and_nothing_else(wire: Path) -> None:
    for arguments in (["run", wire], ["check", wire], ["list"], ["list", "bearers"], ["list", "bearers", "wireline"]):
        done = inside(*arguments, "--json")
        assert done.code == 0
        json.loads(done.out)


def test_the_last_line_says_where_the_files_are_and_what_to_try_next(wire: Path) -> None:
    done = airloom("run", wire)
    last = done.err.splitlines()[-1]
    assert last.startswith("results in runs/")
    assert "next: airloom " in last


def test_quiet_leaves_results_and_errors(wire: Path) -> None:
    quiet = airloom("-q", "run", wire, "--out", wire.parent / "quiet")
    assert quiet.code == 0
    assert quiet.err == ""
    assert "simulated_s" in quiet.out
    assert len(airloom("-q", "run", "no-such-scenario").err.splitlines()) == 1


@pytest.mark.parametrize("words", [["-q", "check", "{}"], ["check", "-q", "{}"], ["check", "{}", "--quiet"]])
def test_options_of_the_program_count_before_and_behind_the_verb(wire: Path, words: list[str]) -> None:
    done = airloom(*(word.format(wire) for word in words))
    assert (done.code, done.err) == (0, "")
    assert "next: airloom run" in airloom("check", wire).err
    assert "reading" in airloom(*(word.format(wire) for word in words), "-v").err


def test_words_for_another_program_are_its_own(wire: Path) -> None:
    assert airloom("python", "-q", "-c", "import sys; print(sys.flags.quiet)").out == "1\n"


def test_the_verbs_stand_under_headings_in_one_column() -> None:
    help = airloom("--help").out
    headings = ["Simulate:", "Real programs:", "Look:", "Check:", "Serve:", "Research:"]
    assert [line for line in help.splitlines() if line in headings] == headings
    verbs = [line for line in help.splitlines() if re.match(r"  [a-z0-9]+ +[A-Z]", line)]
    assert len(verbs) == len(VERBS)
    assert len({re.match(r"  [a-z0-9]+ +", line).end() for line in verbs}) == 1  # type: ignore[union-attr]
    assert max(map(len, help.splitlines())) <= 80


@pytest.mark.parametrize("kind", ["bearers", "transports", "apps", "proxies", "presets", "measures"])
def test_lists_fit_into_80_columns(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], *([name] for name in reference.names(kind))):
        assert call(["list", kind, *words]) == 0
    said = capsys.readouterr()
    assert [line for line in (said.out + said.err).splitlines() if len(line) > 80] == []


def test_what_numbers_and_columns_mean_is_listed() -> None:
    whole = json.loads(inside("list", "measures", "--json").out)
    assert set(whole["measures"]) == set(measures.measures())
    assert {name: list(table["columns"]) for name, table in whole["tables"].items()} == {
        table: [column.name for column in measures.columns(table)] for table in measures.tables()
    }
    # A measure, a key of a summary, a table, a column, and a name that is several of them.
    for name, numbers, tables in (
        ("page_load_s", ["page_load_s"], []),
        ("radio.downlink.rlc_resent", ["rlc_resent"], []),
        ("trace", [], ["trace"]),
        ("q_bytes", [], ["packets"]),
        ("segments", ["segments"], ["flows"]),
    ):
        found = json.loads(inside("list", "measures", name, "--json").out)
        assert (list(found["measures"]), list(found["tables"])) == (numbers, tables)
    said = inside("list", "measures", "resent").out
    assert re.search(r"^resent \(count\) +Units of these that were sent again", said, re.MULTILINE), said
    assert "Given by every run." in said
    done = inside("list", "measures", "page_lod_s")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "did you mean page_load_s?" in done.err


def test_defaults_that_follow_from_a_profile_are_listed() -> None:
    defaults = {key.name: key.default for key in reference.keys("transports", "tcp")}
    assert (defaults["rto_min"], defaults["sack"]) == ('"200ms"', "true")
    assert {key.name: key.default for key in reference.keys("transports", "sctp")}["rto_min"] == '"1s"'


def test_verbose_says_on_stderr_what_is_done_and_written(wire: Path) -> None:
    folder = wire.parent / "verbose"
    plain = airloom("run", wire, "--out", folder, "--json")
    once = airloom("-v", "run", wire, "--out", folder, "--json", "--set", "links.wire.delay=20ms")
    twice = airloom("-vv", "run", wire, "--out", folder, "--json", "--set", "links.wire.delay=20ms")
    json.loads(once.out)
    assert f"reading {wire}" in once.err
    assert "of model time" in once.err
    assert f"wrote {folder / 'summary.json'}" in once.err
    assert "reading" not in plain.err
    assert "set links.wire.delay = 20ms" in twice.err
    assert "set links.wire.delay = 20ms" not in once.err


def test_nothing_is_coloured_and_no_bar_is_drawn_when_nobody_watches(wire: Path) -> None:
    for done in (airloom("run", wire), airloom("nothing"), airloom("list")):
        assert "\x1b" not in done.out + done.err


def test_every_verb_has_help() -> None:
    done = inside("--help")
    for verb in ("check", "run", "emulate", "list", "validate", "doctor"):
        assert verb in done.out
        assert inside(verb, "--help").code == 0


def test_without_arguments_there_is_help() -> None:
    done = airloom()
    assert done.code == 2
    assert "Usage: airloom" in done.out
    assert done.err == ""


def test_completion_scripts_are_there() -> None:
    for shell in ("bash", "zsh", "fish"):
        done = airloom("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
        assert done.code == 0
        assert "airloom" in done.out


def test_doctor_names_the_fix_for_what_is_missing() -> None:
    done = airloom("doctor", "--json", PATH="/nonexistent")
    findings = {f["what"]: f for f in json.loads(done.out)}
    assert {"namespaces", "veth", "packet sockets", "timing", "curl", "nginx", "tshark"} <= set(findings)
    assert all(f["says"] for f in findings.values())


def test_check_has_the_addresses_of_a_group_and_says_where_nothing_runs() -> None:
    for words in (["egprs-page"], ["egprs-page", "--set", "hosts.mobile.count=16"]):
        out = airloom("check", *words).out
        assert re.search(r"^  host mobile x (4|16): http-client \([0-9., ]+\)$", out, re.MULTILINE), out
    Path("untitled.toml").write_text(
        '[hosts]\na = { app = "ping" }\nb = {}\n[links.w]\nbearer = "wireline"\nbetween = ["a", "b"]\n'
    )
    lines = airloom("check", "untitled.toml").out.splitlines()
    assert all(line.strip() for line in lines)
    assert any(line.startswith("  host b: nothing runs here (") for line in lines)


def test_a_file_for_another_command_is_told_by_what_it_is() -> None:
    Path("loss.toml").write_text('scenario = "umts-page"\n')
    Path("gates.toml").write_text('[gate.page]\nscenario = "umts-page"\nrules = ["pages == 1"]\n')
    for verb in ("run", "check"):
        assert airloom(verb, "loss.toml").err.endswith(" no scenario, but a sweep file: airloom sweep loss.toml\n")
        assert airloom(verb, "gates.toml").err.endswith(" no scenario, but a gate file: airloom gate gates.toml\n")
    assert "airloom gate gates.toml" in airloom("sweep", "gates.toml").err
