"""The compiled half of airloom."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__version__: str

class ScenarioError(ValueError):
    """A scenario that cannot be used."""

    file: str
    line: int | None
    column: int | None
    key: str
    message: str
    choices: list[str]

class DriveError(Exception):
    """A run that could not be carried out."""

    exit_code: int

class Column:
    """A column of a table: a numpy array or a list of texts, or indices into `names`."""

    name: str
    values: Any
    names: list[str] | None
    valid: Any | None

class Results:
    """What a run gave."""

    outcome: str
    why: str | None
    summary: dict[str, float]
    tables: dict[str, list[Column]]
    exit_code: int | None
    valid: bool
    verdict: str | None
    verdict_reasons: list[str]
    grades: dict[str, str]
    priority: str | None
    processors: str | None

class Scenario:
    """A scenario as understood."""

    title: str
    seed: int
    understood: str
    notes: list[str]

    def __new__(
        cls,
        text: bytes,
        name: str,
        settings: list[tuple[str, str]] = ...,
        real: list[str] = ...,
        outside: bool = False,
        loopback: list[int] = ...,
    ) -> Scenario: ...
    @staticmethod
    def for_bearer(
        bearer: str, settings: list[tuple[str, str]], outside: bool = False, loopback: list[int] = ...
    ) -> Scenario: ...
    def with_seed(self, seed: int) -> Scenario: ...
    def run_id(self, clock: str) -> str: ...
    def simulate(self, folder: Path | None = None, progress: Callable[[int], None] | None = None) -> Results: ...
    def emulate(
        self,
        command: list[str] | None,
        folder: Path,
        metadata: list[tuple[str, str]],
        progress: Callable[[int], None] | None = None,
        meter: Callable[[int, int, int, int, int, int, str | None], None] | None = None,
        ready: Callable[[Control], None] | None = None,
    ) -> Results: ...

class Control:
    """Changes the links of a run that goes on."""

    timeline: str
    replay: str

    def change(self, target: str, set: str, keep: bool = True) -> int: ...
    def look(
        self,
    ) -> tuple[
        int,
        list[tuple[str, str, bool, tuple[tuple[int, int, int], tuple[int, int, int]] | None, list[tuple[str, bool]]]],
    ]: ...
    def stop(self) -> None: ...

class Lab:
    """A run in real time in a thread of its own."""

    hosts: list[str]
    control: Control

    def __new__(
        cls,
        scenario: Scenario,
        folder: Path | None = None,
        metadata: list[tuple[str, str]] = ...,
        lan: str | None = None,
    ) -> Lab: ...
    def start(
        self, host: str, words: list[str], variables: list[tuple[bytes, bytes]], standard: tuple[int, int, int]
    ) -> Program: ...
    def socket(self, host: str, is_stream: bool, is_v6: bool) -> int: ...
    def enter(self, host: str) -> Outside: ...
    def stop(self) -> Results: ...

class Closed:
    """An interface by which nothing comes in but to laboratories, as long as this is there."""

    def __new__(cls, interface: str) -> Closed: ...
    def open(self) -> None: ...

class Forwarding:
    """Real sockets at both ends of a simulated path, in a thread of its own."""

    control: Control
    addresses: list[str]

    def __new__(
        cls, scenario: Scenario, near: str, far: str, address: str, forwards: list[tuple[bool, str, str]]
    ) -> Forwarding: ...
    def stop(self) -> Results: ...

class Program:
    """A program in a laboratory."""

    def wait(self, milliseconds: int) -> int | None: ...
    def signal(self, number: int) -> None: ...
    def close(self) -> None: ...

class Outside:
    """Where a thread was before it entered a host."""

    def leave(self) -> None: ...

class NameTaken(ValueError):
    """An axis of a sweep is called as something that runs measure."""

class WapError(DriveError):
    """A WAP exchange that failed."""

    reason: str

class WapClient:
    """A client of a WAP gateway."""

    gateway: str
    server_headers: list[tuple[str, str]]
    agreed: dict[str, int] | None
    counters: dict[str, int]
    def __init__(
        self,
        host: str,
        port: int,
        *,
        connectionless: bool = False,
        headers: list[tuple[str, str]] = ...,
        time_s: float = 30.0,
        first: int = 1,
        client_sdu: int = 358_400,
        server_sdu: int = 358_400,
        maximum_group: int | None = None,
        group_packets: int | None = None,
        acknowledging: str = "user",
        local: str | None = None,
    ) -> None: ...
    def request(
        self,
        method: str,
        url: str,
        headers: list[tuple[str, str]] = ...,
        body: bytes | None = None,
        content_type: str | None = None,
        time_s: float = 60.0,
    ) -> tuple[int, str, list[tuple[str, str]], bytes]: ...
    def push(self, time_s: float) -> tuple[str, str, list[tuple[str, str]], bytes] | None: ...
    def suspend(self) -> None: ...
    def resume(self, elsewhere: bool = False) -> None: ...
    def close(self) -> None: ...

class WapListener:
    """An open port for pushes without a session."""

    address: str
    def __init__(self, host: str, port: int) -> None: ...
    def next(self, time_s: float = ...) -> tuple[str, str, list[tuple[str, str]], bytes] | None: ...

def analyze_capture(path: Path, shortest_stall_s: float | None, rows: int) -> tuple[str, list[Column]]: ...
def analyze_qlog(path: Path, rows: int) -> tuple[str, list[Column]]: ...
def lan_addresses() -> list[str]: ...
def rights() -> tuple[str, bool]: ...
def enter_user_namespace() -> None: ...
def registry(kind: str) -> list[tuple[str, str]]: ...
def capabilities() -> list[tuple[str, str | None]]: ...
def wap_compile(
    text: bytes, charset: str | None = None, version: str | None = None, *, string_table: bool = True
) -> tuple[bytes, list[str]]: ...
def wap_decompile(octets: bytes) -> str: ...
def wap_parse(text: bytes) -> None: ...
def wap_encode_headers(headers: list[tuple[str, str]]) -> bytes: ...
def wap_initiation(octets: bytes) -> tuple[int, list[str], list[str]]: ...
def make_runs(
    points: Sequence[tuple[int, Sequence[str | float], Scenario]],
    runs: Iterable[tuple[int, int]],
    axes: Sequence[str],
    tables: Sequence[str],
    rate_seed: int | None,
    workers: int,
    parts: Path | None = None,
    look: Callable[[int, int, int], None] | None = None,
    otherwise: Callable[[int, int, int], tuple[Part, int]] | None = None,
) -> Part: ...
def write_sweep(folders: Sequence[Path], rest: Sequence[Part], names: Sequence[str], place: Path) -> None: ...
def browse(settings: list[tuple[str, str]], seed: int, nagle: bool, timeout_s: float) -> str: ...
def serve_proxy(
    proxy: str,
    asked: Mapping[str, object],
    ready: Callable[[str, str | None], None],
    log: Callable[[str], None] | None = None,
) -> None: ...
def serve_h3(
    listen: str,
    folder: Path,
    certificate: tuple[Path, Path] | None,
    fields: list[tuple[str, str]],
    clients: list[str],
    connections: int,
    grace_s: float,
    ready: Callable[[str], None],
    log: Callable[[str], None] | None = None,
) -> None: ...
def h3_get(
    to: str,
    host: str,
    authority: str,
    wanted: list[tuple[str, Path | None]],
    trust: Path | None,
    insecure: bool,
    patience_s: float,
) -> list[tuple[int, int, float, float]]: ...
def serve_hq(
    listen: str,
    folder: Path,
    certificate: tuple[Path, Path],
    clients: list[str],
    ready: Callable[[str], None],
    *,
    retry: bool = False,
    chacha20: bool = False,
    early: bool = False,
) -> None: ...
def hq_get(
    to: str,
    host: str,
    visits: list[list[tuple[str, Path]]],
    patience_s: float,
    *,
    chacha20: bool = False,
    early: bool = False,
    new_keys: bool = False,
) -> None: ...
def serve_wap_gateway(
    session: str,
    connectionless: str | None,
    metrics: str | None,
    push: str | None,
    names: list[str],
    allowed: list[str],
    settings: list[tuple[str, str]],
    grace_s: float,
    ready: Callable[[str, str | None, str | None, str | None], None],
    log: Callable[[str], None] | None = None,
) -> None: ...

class Done:
    """The runs in some folders but for those that were lost: pairs of point and seed."""

    failed: int
    def __init__(self, folders: Sequence[Path]) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, run: tuple[int, int]) -> bool: ...

class Part:
    """What some runs gave, as far as it is in memory."""

    runs: int
    failed: int
    simulating_ns: int
    def __init__(
        self,
        axes: Sequence[str],
        point: int,
        labels: Sequence[str | float],
        seed: int,
        run_id: str,
        error: str | None = None,
        is_lost: bool = False,
        summary: Sequence[tuple[str, float]] = (),
        tables: Sequence[tuple[str, Sequence[Column]]] = (),
    ) -> None: ...
    def octets(self, names: Sequence[str]) -> list[tuple[str, bytes]]: ...

class WwpSession:
    """A connection of WWP over UDP."""

    peer: str
    unacknowledged: int
    segments: tuple[int, int]
    @staticmethod
    def connect(host: str, port: int, patience_s: float) -> WwpSession: ...
    def write(self, octets: bytes, wait_s: float) -> int: ...
    def read(self, most: int, wait_s: float) -> bytes | None: ...
    def finish(self) -> None: ...
    def is_closed(self, wait_s: float) -> bool: ...
    def reset(self) -> None: ...

class WwpListener:
    """Takes connections of WWP on a UDP port, one at a time."""

    address: str
    def __init__(self, host: str, port: int) -> None: ...
    def accept(self, wait_s: float, patience_s: float) -> WwpSession | None: ...
