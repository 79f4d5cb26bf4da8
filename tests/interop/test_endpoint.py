"""Endpoint files: what they say, and what is wrong with them."""

import sys
from pathlib import Path
from typing import Any

import pytest

from airloom._core import DriveError
from airloom.errors import Unsupported, UsageError
from airloom.interop import matrix, runner
from airloom.interop.cases import CASES, MEASUREMENTS
from airloom.interop.endpoint import Endpoint, find, read, shipped
from airloom.interop.runner import FAILED, SUCCEEDED, Outcome, Played, chosen, document
from tests.cli.shell import inside


def written(folder: Path, text: str) -> Endpoint:
    file = folder / "mine.toml"
    file.write_text(text)
    return read(file)


def test_shipped_endpoints_can_be_read() -> None:
    assert {"aioquic", "airloom", "curl_cffi", "quic-go"} <= shipped().keys()
    assert all(find(name).name == name for name in shipped())


def test_the_version_is_that_of_the_module_that_is_here_or_what_the_file_says(tmp_path: Path) -> None:
    role = '[client]\ncommand = ["x"]'
    said = 'version = "7"\n'
    assert written(tmp_path, f'module = "pytest"\n{said}{role}').version == pytest.__version__
    assert written(tmp_path, f'module = "not_here"\n{said}{role}').version == "7"
    assert written(tmp_path, f'module = "not_here.endpoint"\n{said}{role}').version == "7"
    assert written(tmp_path, role).version == ""


def test_places_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    mine = written(
        tmp_path, '[client]\ncommand = ["{cache}/c", "-o{here}", "{requests}", "{python}"]\nenv = { A = "{here}" }'
    )
    assert mine.words("client", ["u1", "u2"]) == [f"{mine.cache}/c", f"-o{tmp_path}", "u1", "u2", sys.executable, "-P"]
    assert mine.variables("client") == {"A": str(tmp_path)}
    assert mine.cache.is_relative_to(tmp_path / "cache")
    assert mine.plays("client")
    assert not mine.plays("server")


def test_it_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    setup = 'setup = [["sh", "-c", "echo $LETTER$NUMBER >> {cache}/made"]]\nmakes = ["{cache}/made"]\n'
    setup += 'setup_env = { LETTER = "x", NUMBER = 1 }\n'
    mine = written(tmp_path, setup + '[client]\ncommand = ["x"]')
    said: list[str] = []
    for _ in range(2):
        mine.prepare(said.append)
    assert (mine.cache / "made").read_text() == "x1\n"
    assert len(said) == 1


def test_what_cannot_be_built_is_said_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    role = '[client]\ncommand = ["x"]'
    mine = written(tmp_path, f'setup = [["sh", "-c", "echo no luck >&2; exit 3"]]\n{role}')
    with pytest.raises(Unsupported, match="failed: no luck"):
        mine.prepare(print)
    assert not mine.cache.exists()
    with pytest.raises(Unsupported, match="no-such-compiler is not installed"):
        written(tmp_path, f'needs = ["no-such-compiler"]\nsetup = [["true"]]\n{role}').prepare(print)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "neither [client] nor [server]"),
        ("x = 1", "unknown key `x`"),
        ("clint = {}", "unknown key `clint` (did you mean `client`?)"),
        ("[client]", "client.command: expected a program"),
        ('[client]\ncommand = "curl"', "client.command: expected a program"),
        ('[client]\ncommand = ["x"]\nname = 1', "[client] has `command`"),
        ('[client]\ncommand = ["x"]\nenv = "A=1"', "client: env is a table, not 'A=1'"),
        ('setup_env = ["A"]\n[client]\ncommand = ["x"]', "setup_env is a table"),
        ('module = ""\n[client]\ncommand = ["x"]', "module: '' is no name of a module"),
        ('name = "../x"\n[client]\ncommand = ["x"]', "cannot be part of a folder's name"),
        ('setup = ["x"]\n[client]\ncommand = ["x"]', "setup: expected commands"),
        ("[", "mine.toml: "),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        written(tmp_path, text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_test_that_does_not_exist_is_guessed() -> None:
    assert [case.name for case in chosen("transfer, handshake")] == ["transfer", "handshake"]
    assert len(chosen(None)) == 22
    with pytest.raises(UsageError, match="no test 'handshak' \\(did you mean handshake"):
        chosen("handshak")


def test_results_have_the_runners_shape_and_a_page(tmp_path: Path) -> None:
    a, b = find("aioquic"), find("quic-go")
    played = [
        Played("aioquic", "quic-go", CASES[0], [Outcome(SUCCEEDED, verdict="valid")]),
        Played("aioquic", "quic-go", CASES[1], [Outcome(FAILED, "<b>files</b> differ")]),
    ]
    # A measurement that fails is in the page's list, too.
    slow = Played("aioquic", "quic-go", MEASUREMENTS[0], [Outcome(FAILED, "not done after 60 s")])
    page = matrix.page(document([*played, slow], [a], [b], tmp_path, (1.0, 2.0)))
    assert "<li>aioquic with quic-go, goodput: not done after 60 s</li>" in page
    found = document(played, [a], [b], tmp_path, (1.0, 2.0))
    assert found["results"] == [
        [
            {
                "abbr": "H",
                "name": "handshake",
                "result": "succeeded",
                "why": "",
                "verdict": "valid",
                "logs": "handshake",
            },
            {
                "abbr": "DC",
                "name": "transfer",
                "result": "failed",
                "why": "<b>files</b> differ",
                "verdict": "",
                "logs": "transfer",
            },
        ]
    ]
    assert found["measurements"] == [[]]
    assert (found["servers"], found["clients"], found["quic_version"]) == (["quic-go"], ["aioquic"], "0x1")
    assert found["tests"]["H"]["name"] == "handshake"
    page = matrix.page(found)
    assert 'class="failed" href="quic-go_aioquic/transfer/"' in page
    assert "<b>files" not in page
    lines = matrix.markdown(found).splitlines()
    assert lines[2].endswith(f" aioquic {a.version}, quic-go 0.65.0; 1970-01-01.")
    assert lines[4:] == [
        "| client → server | aioquic → quic-go |",
        "|---|:-:|",
        "| `handshake` | ✅ |",
        "| `transfer` | ❌ 1 |",
        "",
        "1. <b>files</b> differ",
    ]


def test_a_laboratory_that_breaks_is_one_failure_and_the_other_cases_are_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = written(tmp_path, '[client]\ncommand = ["x"]\n[server]\ncommand = ["y"]\n')
    reasons = iter(["a process of it was killed", ""])

    def play(*words: Any, **_: Any) -> Played:
        if why := next(reasons):
            error = DriveError(why)
            error.exit_code = 4
            raise error
        return Played("mine", "mine", words[2], [Outcome(SUCCEEDED)])

    monkeypatch.setattr(runner, "play", play)
    cases = [case for case in CASES if case.name in ("handshake", "transfer")]
    played = runner.run([one], [one], cases, tmp_path / "out", seed=1, scenario=None, tries=1, say=print, told=print)
    assert [(done.result, done.why) for done in played] == [(FAILED, "a process of it was killed"), (SUCCEEDED, "")]


def test_two_files_of_one_name_are_refused_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('name = "aioquic"\n[client]\ncommand = ["false"]\n[server]\ncommand = ["false"]\n')
    for client, server in (
        ("aioquic,mine.toml", "aioquic"),
        ("aioquic", "aioquic,mine.toml"),
        ("mine.toml", "aioquic"),
    ):
        done = inside("interop", "run", "-c", client, "-s", server, "-t", "handshake", "--out", "out")
        assert done.code == 2
        assert "are both called aioquic" in done.err
    assert not Path("out").exists()
