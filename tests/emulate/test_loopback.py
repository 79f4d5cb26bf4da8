"""`--loopback`: programs of this machine's loopback, reached through the link."""

import contextlib
import http.server
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import airloom as al
from airloom.cli.common import ports
from airloom.errors import UsageError
from tests.cli.shell import airloom
from tests.conftest import needs, needs_laboratory
from tests.emulate.rights import User

pytestmark = pytest.mark.emulate

OCTETS = 60_000
CURL = "curl -sS -m 30 -o /dev/null -w '%{http_code} %{size_download} %{time_total}\\n'"


class Page(http.server.BaseHTTPRequestHandler):
    """A page of so many octets; what is posted comes back."""

    def do_GET(self) -> None:
        self._answer(bytes(OCTETS))

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["content-length"])))

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def served(address: str = "127.0.0.1", handler: type[http.server.BaseHTTPRequestHandler] = Page) -> Iterator[int]:
    """The port of a server on one address of loopback."""

    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        daemon_threads = True

    with Server((address, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def closed_port() -> int:
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_a_server_on_loopback_alone_is_reached_through_the_link_and_no_other_port_is(user: User) -> None:
    needs("curl")
    result = user.folder / "result-loopback"
    other = closed_port()
    with served() as port, served() as not_asked:
        words: list[str | Path] = ["--loopback", str(port), "--set", "delay=40ms", "--out", result, "--force"]
        ask = " ; ".join(f"{CURL} http://{where}/" for where in (f"host.airloom:{port}", f"host.airloom:{not_asked}"))
        ask += f" ; curl -sS -m 5 http://127.0.0.1:{port}/ ; curl -sS -m 5 http://host.airloom:{other}/"
        done = user.airloom("emulate", "wireline", *words, "--", "sh", "-c", ask)
    status, size, seconds = done.stdout.splitlines()[0].split()
    # A handshake and at least one more round trip of 80 ms.
    assert (status, int(size), float(seconds) >= 0.16) == ("200", OCTETS, True), done.stderr
    # Neither other ports of the machine, nor its loopback from inside.
    assert done.stdout.splitlines()[1].startswith("000 0 "), done.stdout
    assert done.stderr.count("Couldn't connect") == 3, done.stderr
    rows = al.Run(result).flows.to_dicts()
    flow = next(row for row in rows if row["dst"].endswith(f":{port}") and row["app_bytes_down"])
    assert flow["app_bytes_down"] >= OCTETS


def test_whatever_family_it_has_and_however_much_goes_up(tmp_path: Path) -> None:
    needs_laboratory()
    needs("curl")
    (tmp_path / "up").write_bytes(bytes(range(256)) * 4000)
    with served("::1") as six, served() as four:
        command = (
            f"curl -sS -m 30 --data-binary @up http://host.airloom:{six}/ | cmp - up && "
            f"curl -sS -m 30 -4 --data-binary @up http://host.airloom:{four}/ | cmp - up"
        )
        words = ["--loopback", f"{six},{four}", "--set", "rate=20Mbit/s"]
        done = airloom("emulate", "wireline", *words, "--", "sh", "-c", command)
    assert done.code == 0, done.err


def test_a_port_that_nobody_serves_is_noted_and_reset() -> None:
    needs_laboratory()
    needs("curl")
    port = closed_port()
    # The reset comes a round trip after the connection is open, and curl has seen that by then.
    words = ["--loopback", str(port), "--set", "delay=100ms"]
    done = airloom("emulate", "wireline", *words, "--", "curl", "-sS", f"http://host.airloom:{port}/")
    assert done.code == 56, done.err
    assert f"nothing listens on port {port} of this machine's loopback so far\n" in done.err
    assert "reset by peer" in done.err


def listening(family: int) -> set[str]:
    """Addresses and ports of this machine on which a process or one of its descendants listens."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(") ", 1)[1].split()[1])
    pids = {family}
    while more := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= more
    held = set()
    for link in (link for pid in pids for link in Path(f"/proc/{pid}/fd").glob("*")):
        with contextlib.suppress(OSError):
            held.add(os.readlink(link))
    lines = [line for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    sockets = [line.split() for line in lines]
    return {s[1] for s in sockets if s[3] == "0A" and f"socket:[{s[9]}]" in held}


def test_nothing_listens_on_the_machine_for_it(user: User) -> None:
    needs_laboratory()
    with served() as port:
        words = ["-m", "airloom", "emulate", "wireline", "--loopback", str(port), "--", "sh", "-c", "echo up; cat"]
        with subprocess.Popen(
            [*user.prefix, *words],
            cwd=user.folder,
            env=user.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == b"up\n"
            theirs, ours = listening(process.pid), listening(os.getpid())
            process.communicate(timeout=60)
    assert theirs == set()
    assert ours, "but somebody does who is looked for"


def test_without_the_option_the_machine_has_no_name() -> None:
    needs_laboratory()
    done = airloom("emulate", "wireline", "--", "getent", "hosts", "host.airloom")
    assert done.code == 2, done.out


def test_a_script_reaches_its_own_server_through_the_link(user: User) -> None:
    if user.name == "capable":
        # It may not enter; see tests/emulate/test_rights.py.
        return
    script = user.folder / "own_server.py"
    script.write_text(
        "import http.server, threading, urllib.request, airloom\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "port = server.server_address[1]\n"
        "with airloom.lab('wireline', loopback=[port], overrides={'delay': '10ms'}) as link:\n"
        "    print(urllib.request.urlopen(f'http://host.airloom:{port}/', timeout=30).status, sorted(link.hosts))\n"
    )
    words = ["-m", "airloom", "python", script] if user.name == "plain" else [script]
    done = user.python(*words)
    assert done.stdout == "200 ['machine', 'mobile', 'origin']\n", done.stderr


def test_the_door_is_part_of_the_scenario_as_understood() -> None:
    scenario = al.load("umts-page", loopback=[8000, 3000])
    understood = scenario.understood
    assert understood["hosts"]["machine"]["loopback"] == [8000, 3000]
    assert understood["links"]["to-machine"]["addresses"].keys() >= {"machine"}
    assert json.loads(json.dumps(understood)) == understood
    # One way out is enough for both.
    both = al.load("umts-page", outside=True, loopback=[8000]).understood["hosts"]
    assert "machine" not in both
    assert both["outside"]["loopback"] == [8000]


DOOR = """\
title = "t"
path = ["a", "cable", "b"]
[hosts]
a = {{ real = true }}
b = {{ {b} }}
[links]
cable = "wireline"
"""


def test_a_file_says_it_too_and_the_option_adds_to_it(tmp_path: Path) -> None:
    path = tmp_path / "door.toml"
    path.write_text(DOOR.format(b="real = true, loopback = 8000"))
    assert al.load(path).understood["hosts"]["b"]["loopback"] == [8000]
    assert al.load(path, loopback=[3000, 8000]).understood["hosts"]["b"]["loopback"] == [8000, 3000]


@pytest.mark.parametrize(
    ("b", "message"),
    [
        ("loopback = [0]", "expected an integer from 1 to 65535, found the integer 0"),
        ('loopback = "http"', "expected an integer from 1 to 65535"),
        ("loopback = [80, 80]", "port 80 is here twice"),
        ("count = 2, loopback = 80", "one host leads to this machine, not a group"),
        (f"loopback = {list(range(1, 66))}", "a host leads to at most 64 ports of this machine"),
        ("loopback = 80 }\nc = { loopback = 81", "another host leads to this machine already"),
    ],
)
def test_wrong_files(tmp_path: Path, b: str, message: str) -> None:
    path = tmp_path / "door.toml"
    path.write_text(DOOR.format(b=b))
    with pytest.raises(al.ScenarioError, match=message):
        al.load(path)


def test_a_name_that_is_taken_is_said(tmp_path: Path) -> None:
    path = tmp_path / "door.toml"
    path.write_text(
        DOOR.format(b="}\nmachine = {").replace('"cable", "b"', '"cable", "b", "cable2", "machine"')
        + 'cable2 = "wireline"\n'
    )
    with pytest.raises(al.ScenarioError, match="--loopback 80: a host or link is called `machine` already"):
        al.load(path, loopback=[80])


@pytest.mark.parametrize("word", ["0", "65536", "http", "80,", "-1", "1" * 5000])
def test_ports_are_numbers(word: str) -> None:
    with pytest.raises(UsageError, match="is no port"):
        ports([word])
