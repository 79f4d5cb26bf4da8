"""Gates of commands behind links."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.shell import airloom
from tests.conftest import needs

pytestmark = [pytest.mark.emulate, pytest.mark.usefixtures("laboratory")]


COMMAND = """\
[gate.{name}]
links = ["wireline"]
runs = {runs}
timeout_s = 20
command = '''{command}'''
rules = [{rules}]
"""


def gate(command: str, rules: str, runs: int = 2, name: str = "it") -> Path:
    path = Path("gates.toml")
    path.write_text(COMMAND.format(name=name, runs=runs, command=command, rules=rules))
    return path


def test_a_command_runs_behind_each_link_with_each_seed_and_says_its_own_numbers() -> None:
    command = (
        "ping -nc 1 10.77.0.1 && "
        'echo "{\\\\"seed\\\\": $AIRLOOM_SEED, \\\\"letters\\\\": ${#AIRLOOM_LINK}}" > "$AIRLOOM_MEASURES"'
    ).replace("\\\\", "\\")
    file = gate(command, '"seed.max == 2", "letters == 8", "packets >= 2", "elapsed_s.mean > 0"')
    code, out, err = airloom("gate", file, "--json", "--out", "results")
    assert code == 0, out + err
    said = {row["rule"]: row["state"] for row in json.loads(out)["rules"]}
    assert said["exit_code == 0"] == "pass"
    assert said["seed.max == 2"] == "pass"
    kept = Path("results/it-wireline-1")
    assert "1 received" in (kept / "output.txt").read_text()
    assert (kept / "run" / "summary.json").is_file()


def test_a_command_that_fails_fails_its_gate() -> None:
    code, out, _ = airloom("gate", gate("exit 7", '"elapsed_s.max < 100"'), "--junit", "j.xml")
    assert code == 1, out
    assert "not so in 2 of 2 runs" in Path("j.xml").read_text()


@pytest.mark.parametrize(("command", "code"), [("exit 255", 255), ("kill -KILL $$", 137)])
def test_no_exit_code_of_a_failure_is_below_that_of_success(command: str, code: int) -> None:
    said, out, _ = airloom("gate", gate(command, f'"exit_code <= 0", "exit_code == {code}"', 1), "--json")
    assert said == 1, out
    assert [row["state"] for row in json.loads(out)["rules"]] == ["fail", "pass"]


def test_too_few_runs_are_unclear_and_strictly_3() -> None:
    file = gate("true", '"elapsed_s.p75 <= 100"')
    assert airloom("gate", file).code == 0
    assert airloom("gate", file, "--strict").code == 3


def test_what_takes_too_long_is_broken_and_nothing_is_left_of_it() -> None:
    path = gate("setsid sleep 8643231 & sleep 8643231", '"elapsed_s.max < 1"', runs=1)
    path.write_text(path.read_text().replace("timeout_s = 20", "timeout_s = 0.5"))
    code, out, _ = airloom("gate", path, "--junit", "j.xml")
    assert code == 4, out
    errors = list(ElementTree.parse("j.xml").getroot().iter("error"))
    assert errors
    assert all("took longer than 0.5 s" in (error.get("message") or "") for error in errors)
    left = [entry for entry in Path("/proc").glob("[0-9]*/cmdline") if b"8643231" in _read(entry)]
    assert not left


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_of_an_endless_log_the_beginning_is_kept() -> None:
    code, out, err = airloom("gate", gate("head -c 5000000 /dev/zero", '"exit_code == 0"', 1), "--out", "results")
    assert code == 0, out + err
    assert Path("results/it-wireline-1/output.txt").stat().st_size == 1 << 20


def test_runs_that_were_not_valid_are_made_again_then_said_and_never_counted() -> None:
    path = gate("ping -nc 3 -i 0.01 10.77.0.1", '"exit_code == 0"', 1)
    # No machine is as fast as that.
    path.write_text(path.read_text().replace("timeout_s", 'retries = 1\nlateness_limit = "1ns"\ntimeout_s'))
    code, out, err = airloom("gate", path, "--out", "results")
    assert code == 4, out + err
    assert "seed 1: not valid, and not counted" in err
    assert Path("results/it-wireline-1-again-1").is_dir()


def test_a_page_is_loaded_in_a_browser() -> None:
    needs("chromium")
    needs("nginx")
    text = '[gate.start]\nlinks = ["wireline"]\nruns = 1\nurl = "https://origin/"\nhttp = "2"\n'
    Path("gates.toml").write_text(
        text + 'rules = ["page_load_s.max < 60", "status == 200", "speed_index_s.max < 60"]\n'
    )
    code, out, err = airloom("gate", "gates.toml", "--out", "results")
    assert code == 0, out + err
    har = json.loads(Path("results/start-wireline-1/load.har").read_text())
    assert {entry["response"]["httpVersion"] for entry in har["log"]["entries"]} == {"HTTP/2.0"}


def test_only_a_page_has_a_version_of_http() -> None:
    path = gate("true", '"exit_code == 0"')
    path.write_text(path.read_text() + 'http = "2"\n')
    code, _, err = airloom("gate", path)
    assert code == 2
    assert "gate it: http is the version by which a page is loaded; a command has none" in err
