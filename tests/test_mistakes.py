"""A table of mistakes: what is typed, the exit code, and the one line that says what is wrong and what to do."""

import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from airloom.cli import call

WIRE = """\
path = ["mobile", "wire", "origin"]
[hosts]
mobile = {}
origin = {}
[links]
wire = { bearer = "wireline", rate = "1Mbit/s", delay = "10ms" }
"""

#: Words (`{busy}` is an address at which somebody listens), code, line.
MISTAKES: list[tuple[str, int, str]] = [
    # Settings and addresses of daemons, as those of scenarios.
    (
        "serve http-cache --set capcity=1MB",
        2,
        "--set capcity=1MB: unknown key `capcity` (did you mean `capacity`?); valid: mode, ports, name, ",
    ),
    ("serve wap-gateway --set wtp.retry_bsae=4s", 2, "--set wtp.retry_bsae=4s: wtp: unknown key `retry_bsae` (did"),
    ("serve http-cache --set capacity=lots", 2, "--set capacity=lots: `lots` is not a number with a unit"),
    ("serve split-tcp --to 127.0.0.1:80 --set idel=1s", 2, "--set idel=1s: unknown key `idel` (did you mean `idle`?)"),
    ("browse http://x/ --set objcts=3", 2, "--set objcts=3: unknown key `objcts` (did you mean `objects`?)"),
    ("serve http-cache --listen nonsense", 2, "--listen nonsense: expected ADDRESS:PORT, such as 127.0.0.1:8080"),
    ("serve http-cache --listen :3128", 2, "--listen :3128: expected ADDRESS:PORT, such as 127.0.0.1:3128"),
    ("serve wap-gateway --metrics 9000", 2, "--metrics 9000: expected ADDRESS:PORT, such as 127.0.0.1:9000"),
    ("serve wap-gateway --push localhost:99999", 2, "--push localhost:99999: expected ADDRESS:PORT"),
    ("serve split-tcp --to 10.0.0.1:80 --listen ::1:80", 2, "--listen ::1:80: expected ADDRESS:PORT"),
    ("serve http-cache --listen {busy}", 4, "cannot listen on {busy}: Address already in use"),
    # Places for results.
    (
        "run umts-page --out /proc/nope",
        4,
        "cannot create /proc/nope/: no such file or directory; choose another place with --out",
    ),
    (
        "sweep umts-page --seeds 1 --out /proc/nope",
        4,
        "cannot create /proc/nope/: no such file or directory; choose another place with --out",
    ),
    ("run umts-page --out mine", 2, "mine exists and is not a result folder: choose another --out, or move it away"),
    ("run umts-page --force --out mine", 2, "mine exists and is not a result folder: choose another --out"),
    # Names.
    ("runn", 2, "No such command 'runn'. Did you mean 'run'?"),
    ("run umts-page --sed 1", 2, "No such option: --sed"),
    ("list transport", 2, "no kind 'transport'; valid: bearers, transports, "),
]


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Daemons take signals to themselves: afterwards they are as they were."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("words", "code", "line"), MISTAKES, ids=[words for words, *_ in MISTAKES])
def test_a_mistake_is_one_line_with_what_to_do(
    words: str, code: int, line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        busy = "{}:{}".format(*server.getsockname())
        assert call(words.format(busy=busy).split()) == code
    said = capsys.readouterr()
    assert said.out == ""
    (found,) = said.err.splitlines()
    assert found.startswith(f"airloom: {line.format(busy=busy)}"), found
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_key_by_its_old_name_is_read_and_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    from airloom import scenario

    scenario._say_once.cache_clear()
    old, new = "hosts.*.transport.tcp.min_rto=3s", "hosts.*.transport.tcp.rto_min=3s"
    assert call(["check", "umts-page", "--json", "--set", old]) == 0
    first = capsys.readouterr()
    assert first.err == "airloom: `min_rto` is called `rto_min` now\n"
    assert '"rto_min": "3s"' in first.out
    assert call(["check", "umts-page", "--json", "--set", old]) == 0
    assert capsys.readouterr().err == ""
    assert call(["check", "umts-page", "--json", "--set", new]) == 0
    assert capsys.readouterr() == (first.out, "")


def test_a_scenario_in_which_nothing_happens_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wire.toml").write_text(WIRE)
    for verb in ("check", "run"):
        assert call([verb, "wire.toml"]) == 0
        assert "warning: no host of wire has an application (`app`), so nothing happens" in capsys.readouterr().err
    Path("real.toml").write_text(WIRE.replace("mobile = {}", "mobile = { real = true }"))
    assert call(["check", "real.toml"]) == 0
    assert "there is airloom emulate real.toml" in capsys.readouterr().err
    assert call(["check", "umts-page"]) == 0
    assert "warning" not in capsys.readouterr().err


def test_what_the_log_says_has_the_time_of_day(capsys: pytest.CaptureFixture[str]) -> None:
    from airloom.cli import daemons

    assert call(["-v", "check", "umts-page"]) == 0
    assert re.search(r"^\d\d:\d\d:\d\d\.\d{3} airloom: reading ", capsys.readouterr().err, re.MULTILINE)
    daemons.log_line('{"status":200}')
    line = capsys.readouterr().err
    assert re.fullmatch(r'\{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","status":200\}\n', line)
