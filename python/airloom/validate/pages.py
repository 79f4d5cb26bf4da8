"""A page in both clocks: by curl from real servers in real time, and by the simulated client and server.

The servers differ in how they write: nginx by itself and Apache write a head and its body together, nginx with
`sendfile` and Python's `http.server` the head first (`head_apart` of the simulated server). Python's speaks HTTP/1.0, a
connection for each object. No packet is lost, so that one time can be held against the other.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from airloom import _core, interpreter
from airloom.errors import RunError, UsageError
from airloom.laboratory import Program
from airloom.programs import path_of
from airloom.reference import addresses
from airloom.run import measure
from airloom.scenario import Scenario
from airloom.validate import pairs

#: How far the medians may be apart.
BAR = 0.002

#: The page of the scenario `umts-page`.
_OBJECTS = ["20kB", "50kB", "40kB", "30kB", "20kB", "15kB", "10kB", "10kB", "5kB"]

_LINKS: dict[str, dict[str, Any]] = {
    # What arrives stands 3 ms behind the grid of the transmission intervals: on it, the tenth of a millisecond that a
    # kernel takes to answer would decide whether an acknowledgement catches an interval or the next one.
    "umts-dch": {
        "bearer": "umts-dch",
        "rate": {"downlink": "384kbit/s", "uplink": "64kbit/s"},
        "radio_delay": "43ms",
    },
    "2M-100ms": {"bearer": "wireline", "rate": "2Mbit/s", "delay": "50ms"},
}

#: What curl needs to be woken, to read and to write, measured on two virtual processors. What a server needs is
#: measured anew before each page (`_ASK`): nginx takes a tenth of a millisecond, Python's `http.server` seven.
_REACTION = "200us"

_NGINX = """\
daemon off; master_process off; pid {folder}/pid; error_log stderr error;
events {{}}
http {{
  access_log off; {more}
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  server {{ listen 80; root "{root}"; }}
}}
"""

_APACHE = """\
ServerRoot {folder}
ServerName origin
PidFile {folder}/pid
DefaultRuntimeDir {folder}
ErrorLog {folder}/errors
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
Listen 80
DocumentRoot {root}
User nobody
"""

_APACHE_MODULES = "/usr/lib/apache2/modules"


@dataclass(frozen=True)
class Server:
    """A real server, and how the simulated one is like it."""

    #: Its program.
    program: str
    #: Its settings, or nothing.
    config: str
    #: Its command behind the program.
    arguments: Sequence[str]
    #: Settings of the simulated server.
    keys: Mapping[str, Any]
    #: Settings of the simulated client.
    client: Mapping[str, Any]


_SERVERS = {
    "nginx": Server("nginx", _NGINX, ["-e", "stderr", "-c", "{folder}/conf"], {}, {}),
    "nginx-sendfile": Server(
        "nginx",
        _NGINX.replace("{more}", "sendfile on;"),
        ["-e", "stderr", "-c", "{folder}/conf"],
        {"head_apart": True},
        {},
    ),
    "apache": Server("apache2", _APACHE, ["-f", "{folder}/conf", "-X"], {}, {}),
    "python": Server(
        "python3",
        "",
        ["-m", "http.server", "80", "--directory", "{root}"],
        {"head_apart": True, "http": "1.0", "keep_alive": False},
        {"http": "1.0"},
    ),
}


@dataclass(frozen=True)
class Cell:
    """One row of the table."""

    name: str
    link: Mapping[str, Any]
    server: Server
    bar: float = BAR


CELLS = [Cell(f"{link}/{name}", keys, server) for link, keys in _LINKS.items() for name, server in _SERVERS.items()]
#: The cells whose names match a pattern (`*` for any text).
chosen = partial(pairs.chosen, CELLS)


def missing(cells: Sequence[Cell]) -> list[str]:
    """The programs that are not installed."""
    wanted = dict.fromkeys(["curl", *(cell.server.program for cell in cells)])
    return [name for name in wanted if _program(name) is None]


@dataclass(frozen=True)
class Page:
    """One load of the page."""

    #: From the first SYN to the last octet at the client, in the model's time.
    seconds: float
    #: When the SYN came to the link, in the model's time.
    began_ns: int
    #: Octets of a request and of an answer's head, by curl's count.
    heads: tuple[int, int] = (0, 0)
    #: From a request to the first octet of its answer, without a link between: the median over the objects.
    answer_s: float = 0.0
    #: Of real time: `valid`, `suspect` or `invalid`.
    verdict: str | None = None


def from_json(said: Mapping[str, Any]) -> Page:
    """The page that `dataclasses.asdict` turned into that."""
    return Page(**{**said, "heads": tuple(said["heads"])})


Verdict = pairs.Verdict[Cell, Page]


def spread(verdict: Verdict) -> float:
    """How far apart the loads in real time are, as a part of their median."""
    seconds = [page.seconds for page in verdict.real]
    return (max(seconds) - min(seconds)) / statistics.median(seconds)


def compare(cells: Sequence[Cell], seeds: Sequence[int], **how: Unpack[pairs.How]) -> list[Verdict]:
    """A verdict for each cell; see `pairs.fill`."""
    if lacks := missing(cells):
        raise UsageError(f"validate pages needs {', '.join(lacks)}: tools/peers test")
    return pairs.compare(cells, seeds, _pair, **how)


def _pair(cell: Cell, seed: int) -> tuple[Page, Page, int]:
    found, repeated = pairs.believed(lambda: in_real_time(cell, seed))
    return found, simulated(cell, seed, found), repeated


def scenario(
    cell: Cell, seed: int, client: Mapping[str, Any], server: Mapping[str, Any], command: Sequence[str] | None
) -> Scenario:
    """The network of a cell; with the command of a server it is for real time."""
    origin: dict[str, Any] = {"app": {"http-server": dict(server)}, "transport": {"tcp": _TCP}}
    if command is not None:
        origin |= {"real": True, "command": list(command)}
    mobile: dict[str, Any] = {"app": {"http-client": dict(client)}, "transport": {"tcp": _TCP}}
    hosts = {"mobile": mobile | {"real": command is not None}, "origin": origin}
    path, links = ["mobile", "link", "origin"], {"link": dict(cell.link)}
    return pairs.scenario(f"{cell.name}, seed {seed}", path, hosts, links, seed, _POINT)


#: curl and the servers switch Nagle's rule off before it could hold the end of an answer back.
_TCP = {"profile": "linux", "nagle": "off"}


def simulated(cell: Cell, seed: int, like: Page) -> Page:
    """The page in virtual time, begun when the real one was and with heads of the same length."""
    request, head = like.heads
    client = {
        "connections": 1,
        "objects": [f"/{name}" for name in _OBJECTS],
        "start": f"{like.began_ns}ns",
        "reaction": _REACTION,
        "request": f"{request}B",
        **cell.server.client,
    }
    server = {"delay": f"{like.answer_s:.6f}s", "response": f"{head}B", **cell.server.keys}
    _, rows = measure(scenario(cell, seed, client, server, None))
    return _page(cell, rows["packets"])


def in_real_time(cell: Cell, seed: int, patience_s: float = 120) -> Page:
    """The page by curl from the real server; `RunError` if it is not there in time."""
    with tempfile.TemporaryDirectory(prefix="airloom-pages-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        planned = scenario(cell, seed, {}, {}, _furnish(cell.server, folder))
        address = addresses(planned.understood, "origin")[0]
        said = "%{size_request} %{size_header} %{response_code}\n"
        words = ["curl", "--silent", "--show-error", "--write-out", said]
        for name in _OBJECTS:
            words += ["--output", "/dev/null", f"http://{address}/{name}"]
        pipes = (subprocess.DEVNULL, subprocess.PIPE, None)
        answer = printed = ""

        def work(lab: _core.Lab) -> None:
            nonlocal answer, printed
            with Program(lab, "origin", interpreter.python("-c", _ASK, *_OBJECTS), pipes, None, True) as asking:
                answer, _ = asking.communicate(timeout=patience_s)
            with Program(lab, "mobile", interpreter.python("-c", _CURL, *words), pipes, None, True) as curl:
                try:
                    printed, _ = curl.communicate(timeout=patience_s)
                except subprocess.TimeoutExpired:
                    raise RunError(f"{cell.name}: not done after {patience_s:g} s") from None

        packets, results = pairs.recorded(planned, work)
    heads = [line.split() for line in printed.splitlines()]
    if [code for *_, code in heads] != ["200"] * len(_OBJECTS):
        raise RunError(f"{cell.name}: curl did not get the page: {printed}")
    request, head = (round(statistics.median(int(row[n]) for row in heads)) for n in (0, 1))
    page = _page(cell, packets, results.verdict)
    return replace(page, heads=(request, head), answer_s=float(answer))


#: How long the server takes to answer, asked in its own host, in seconds: it may have to begin first.
_ASK = (
    pairs.FIRST
    + """\
import socket, statistics, time
def ask(name):
    with socket.create_connection(("127.0.0.1", 80), 10) as connection:
        began = time.perf_counter()
        connection.sendall(f"GET /{name} HTTP/1.0\\r\\nHost: origin\\r\\n\\r\\n".encode())
        connection.recv(1)
        took = time.perf_counter() - began
        while connection.recv(1 << 20):
            pass
    return took
for again in range(200):
    try:
        ask(sys.argv[1])
        break
    except ConnectionError:
        time.sleep(0.05)
print(statistics.median(map(ask, sys.argv[1:])))
"""
)

#: Runs before others, as the programs of the other comparisons do.
_CURL = pairs.FIRST + "os.execvp(sys.argv[1], sys.argv[1:])\n"


def _program(name: str) -> str | None:
    if name == "apache2" and not Path(_APACHE_MODULES).is_dir():
        return None
    return path_of(name)


def _furnish(server: Server, folder: Path) -> list[str]:
    """Writes objects and settings; the server's command."""
    root = folder / "objects"
    root.mkdir()
    for name in set(_OBJECTS):
        (root / name).write_bytes(bytes(int(name.removesuffix("kB")) * 1000))
    words = {"folder": str(folder), "root": str(root), "more": "", "modules": _APACHE_MODULES}
    (folder / "conf").write_text(server.config.format(**words))
    command = [_program(server.program) or server.program, *(word.format(**words) for word in server.arguments)]
    return interpreter.python("-c", _SERVE, *command)


#: The same, and nothing that the server says is shown.
_SERVE = (
    pairs.FIRST + "nothing = os.open('/dev/null', os.O_WRONLY); os.dup2(nothing, 1); os.dup2(nothing, 2)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)

_POINT = "mobile.link.ip"
#: No segment without data is longer.
_LONGEST_HEADERS = 60


def _page(cell: Cell, packets: pl.DataFrame, verdict: str | None = None) -> Page:
    seen = pairs.at(packets, _POINT)
    began = seen.filter(pl.col("event") == "tx")["t_ns"].min()
    ended = seen.filter((pl.col("event") == "rx") & (pl.col("len") > _LONGEST_HEADERS))["t_ns"].max()
    if not isinstance(began, int) or not isinstance(ended, int):
        raise RunError(f"{cell.name}: nothing was fetched")
    return Page((ended - began) / 1e9, began, verdict=verdict)
