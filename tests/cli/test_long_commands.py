"""Every command that may take long shows how far it is, and ends soon and cleanly when it is told to."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

import airloom as al
from airloom.cli.verbs import VERBS
from tests.conftest import needs, needs_laboratory, until

DATA = Path(__file__).parent.parent / "data" / "linux_tcp"

#: Until something is shown, and until the end after a signal: generous, for machines that do other things too.
PATIENCE_S, END_S = 90, 30

LONG = """\
title = "A transfer without an end"
path = ["mobile", "wire", "origin"]
[hosts]
mobile = { app = { bulk = { size = "100GB" } }, real = true }
origin = { app = "bulk-server" }
[links]
wire = { bearer = "wireline", rate = "100Mbit/s", delay = "1ms", queue = "30 packets" }
[run]
record = []
limit = "1000000h"
"""

GATES = """\
[gate.simulated]
scenario = "umts-page"
runs = 100000
rules = ["page_load_s.mean <= 10"]
[gate.measured]
links = ["wireline"]
command = "sleep 1000"
rules = ["exit_code == 0"]
"""


#: An endpoint that listens, and does nothing else.
IDLE = """\
[client]
command = ["sleep", "1000"]
[server]
command = ["{python}", "-c", "import socket, time; s = socket.socket(type=2); s.bind(('', 443)); time.sleep(1000)"]
"""


class Command(NamedTuple):
    """A row of the table."""

    words: list[str]
    #: What shows that it is at work.
    shows: str
    #: What is said of what is left.
    says: str
    #: What it leaves in the folder, besides what the test put there.
    leaves: str = ""
    is_emulation: bool = False
    peers: tuple[str, ...] = ()


#: Sockets at which nobody answers.
SILENT_TCP, SILENT_UDP = "{tcp}", "{udp}"

COMMANDS = {
    "run": Command(["run", "long.toml"], "of model time", "nothing was written"),
    "sweep": Command(
        ["sweep", "short.toml", "--seeds", "1..1000000", "--out", "s"],
        r"\d+/1000000 runs, .*left",
        r"\d+ of 1000000 runs are kept, the same command goes on with them",
        leaves="s",
    ),
    "study": Command(
        ["study", "run", "umts-proxies"], r"umts-proxies .*\d+/\d+", r"runs are kept, the same command", leaves="runs"
    ),
    "emulate": Command(
        ["emulate", "long.toml", "--", "sh", "-c", "echo at work >&2; sleep 1000"],
        "at work",
        "nothing was written",
        is_emulation=True,
    ),
    "gate": Command(["gate", "gates.toml", "--only", "simulated"], r"measuring .*/100000", "no verdict was written"),
    "gate, a command": Command(
        ["gate", "gates.toml", "--only", "measured", "--out", "g"],
        "measuring .*0/10",
        "no verdict was written; results of what was measured are in g",
        leaves="g",
        is_emulation=True,
    ),
    "validate both-clocks": Command(
        ["validate", "both-clocks", "--only", "384k-300ms/1MB", "--out", "v"],
        "both-clocks .*0/10",
        r"\d+ of 10 measurements are kept in v: the same command goes on with them",
        leaves="v",
        is_emulation=True,
    ),
    "validate linux-tcp": Command(
        ["validate", "linux-tcp", "records", "--out", "v", "--jobs", "1"],
        r"linux-tcp .*\d+/200",
        r"\d+ of 200 measurements are kept in v",
        leaves="v",
    ),
    "validate interop-sim": Command(
        ["validate", "interop-sim"], "interop-sim .*0/2", "nothing is kept", is_emulation=True
    ),
    "load": Command(
        ["load", "http://origin/", "--link", "wpt/3g"],
        "loading .*0/1",
        "nothing was written",
        is_emulation=True,
        peers=("chromium", "nginx"),
    ),
    # By then the browser is there, and waits for an answer.
    "load, silent server": Command(
        ["load", f"http://{SILENT_TCP}/"],
        "loading .*0/1 0:00:0[6-9]",
        "nothing was written",
        is_emulation=True,
        peers=("chromium",),
    ),
    "doctor": Command(["doctor"], "measuring .*/3", "nothing is left", is_emulation=True),
    "browse": Command(["browse", f"http://{SILENT_TCP}/"], "loading", "0 pages were loaded to their end"),
    "wap get": Command(["wap", "get", "http://x/", "--gateway", SILENT_UDP], "asking", "nothing was written"),
    "h3 get": Command(
        ["h3", "get", f"https://{SILENT_UDP}/x", "-o", "x", "--patience", "1000"],
        "fetching",
        "files that are not whole stay as they are",
    ),
    "wwp send": Command(
        ["wwp", "send", "long.toml", SILENT_UDP, "--patience", "1000"], "sending", "the same command goes on with it"
    ),
    "wwp receive": Command(
        ["wwp", "receive", "--into", ".", "--listen", "127.0.0.1:0"], "listening on", "what has arrived is kept"
    ),
    "interop": Command(
        ["interop", "run", "-c", "idle.toml", "-s", "idle.toml", "-t", "handshake", "--out", "i"],
        "interop.*0/1",
        "what is done is in i",
        leaves="i",
        is_emulation=True,
        peers=("openssl",),
    ),
    "replay": Command(["replay", "done", "--set", "run.seed=2"], "of model time", "nothing was written"),
    "shrink": Command(
        ["shrink", "short.toml", "--", "sh", "-c", "exec sleep 1000"], "shrinking.*0/1000", "nothing was written"
    ),
    "analyze": Command(["analyze", "fifo"], "reading fifo", "nothing was written"),
}

#: Verbs that take moments; those that become another program; those that serve until they are told to end, which is how
#: they end well; those with tests of their own.
QUICK = {"check", "list", "pages", "energy", "export", "monitor", "report", "compare", "plot", "show"}
OTHERS = {"python", "serve", "gateway"}


def test_every_verb_is_in_the_table() -> None:
    assert VERBS.keys() <= {re.split("[ ,]", name)[0] for name in COMMANDS} | QUICK | OTHERS


@pytest.fixture
def silent() -> Iterator[dict[str, str]]:
    """Addresses at which connections and datagrams are taken, and nobody answers."""
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        yield {name: "{}:{}".format(*s.getsockname()) for name, s in (("tcp", tcp), ("udp", udp))}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the commands need."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    (place / "long.toml").write_text(LONG)
    (place / "gates.toml").write_text(GATES)
    (place / "short.toml").write_text(LONG.replace("100GB", "20kB").replace("real = true", ""))
    (place / "idle.toml").write_text(IDLE)
    (place / "done").mkdir()
    facts = {"status": "ok", "clock": "virtual", "name": "long", "seed": 1, "version": "another"}
    manifest = {**facts, "scenario": al.load("long.toml").understood}
    (place / "done" / "run.json").write_text(json.dumps(manifest))
    record = json.loads(next(DATA.glob("2M_100ms_1-*.json")).read_text())
    (place / "records").mkdir()
    for number in range(200):
        record["case"]["id"] = f"case-{number:03}"
        (place / "records" / f"{number:03}.json").write_text(json.dumps(record))
    os.mkfifo(place / "fifo")
    return place


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files, with a short name: a browser has a socket in its own (at most 107 letters)."""
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


@pytest.mark.emulate
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_that_it_works_and_a_signal_ends_it(
    name: str, number: int, code: int, folder: Path, silent: dict[str, str], temporary: Path
) -> None:
    command = COMMANDS[name]
    if command.is_emulation:
        needs_laboratory()
    for peer in command.peers:
        needs(peer)
    before = {path.name for path in folder.iterdir()}
    words = [word.format(**silent) for word in command.words]
    ours, theirs = pty.openpty()
    mark = f"airloom-long-{os.getpid()}-{time.monotonic_ns()}"
    environment = {**os.environ, "TMPDIR": str(temporary), "MARK": mark, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-m", "airloom", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    said = ""
    try:
        said = _read(ours, lambda text: re.search(command.shows, text) is not None, PATIENCE_S)
        assert re.search(command.shows, said), said
        process.send_signal(number)
        process.wait(END_S)
        said += _read(ours, lambda _: False, 1)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert process.returncode == code, said
    assert re.search(command.says, said.replace("\r\n", "\n")), said
    assert "Traceback" not in said
    assert {path.name for path in folder.iterdir()} - before <= {command.leaves}
    assert not [path for path in folder.rglob(".*.partial")]
    # What the kernel clears away may take a moment.
    until(lambda: not list(temporary.iterdir()) and not _processes(mark), END_S)


def _read(terminal: int, enough: Callable[[str], bool], patience_s: float) -> str:
    """What comes until it is enough, the other side is closed, or patience ends; without what only moves the cursor."""
    octets, end = b"", time.monotonic() + patience_s
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                came = os.read(terminal, 65536)
            except OSError:
                break
            octets += came
            if not came or enough(_plain(octets)):
                break
    return _plain(octets)


def _plain(octets: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", octets.decode(errors="replace"))


def _processes(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and entry.name != str(os.getpid()):
            with suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes():
                    found.append(entry.name)
    return found


def test_where_stderr_is_no_terminal_there_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from airloom.cli import terminal

    monkeypatch.setattr(terminal, "_EVERY_S", 0.01)
    with terminal.steps("comparing", 4) as done:
        done(0)
        done(1)
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all(re.fullmatch(r"airloom: comparing: [01]/4(, 0:00 left)?, 0:00 so far", line) for line in lines), lines
    with terminal.busy("reading"):
        time.sleep(0.1)
    assert capsys.readouterr().err.splitlines()[0] == "airloom: reading: 0:00 so far"


def test_quiet_shows_no_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from airloom.cli import terminal

    monkeypatch.setattr(terminal, "_EVERY_S", 0.01)
    monkeypatch.setattr(terminal.Manners, "quiet", True)
    with terminal.steps("comparing", 4) as done, terminal.busy("reading"):
        done(1)
        time.sleep(0.1)
    assert capsys.readouterr().err == ""
