"""What the fuzz targets in Python do with arbitrary octets: an answer, or an error of ours, and nothing else."""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from airloom._core import DriveError, ScenarioError
from airloom.control import Condition, Passed
from airloom.control.desk import Desk
from airloom.control.page import TOKEN, _Handler
from airloom.errors import AirloomError
from airloom.gateway import dhcp
from airloom.page_sets import from_har
from airloom.page_sets.page_set import read as read_page_set
from airloom.run import Run
from airloom.study import assumptions, claims, paper, plan, programs
from airloom.sweep import axes, file
from airloom.wwp.dialogue import Lines, Offer, TransferError
from airloom.wwp.receiver import Receiver
from trees import Octets, json_of, tree

T = TypeVar("T")
Target = Callable[[bytes], None]

#: One folder for all files of a process, which removes it, or whoever ends it by force.
FOLDER = Path(tempfile.mkdtemp(prefix="airloom-fuzz-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def _file(name: str, octets: bytes) -> Path:
    path = FOLDER / name
    path.write_bytes(octets)
    return path


def _read(reads: Callable[..., T], *given: Any) -> T | None:
    """What it read; nothing where it raised an error of ours."""
    try:
        return reads(*given)
    except AirloomError:
        return None


def _is_printable(error: Exception) -> None:
    assert str(error).isprintable(), repr(str(error))


class Session:
    """The other end of a session of WWP: says these octets in pieces, and takes everything."""

    peer = "peer"
    unacknowledged = 0

    def __init__(self, octets: bytes, piece: int) -> None:
        self._left = octets
        self._piece = piece
        self.said = b""

    def read(self, most: int, _wait_s: float) -> bytes:
        piece, self._left = self._left[: min(most, self._piece)], self._left[min(most, self._piece) :]
        return piece

    def write(self, octets: bytes, _wait_s: float) -> int:
        self.said += octets
        return len(octets)

    def finish(self) -> None: ...

    def reset(self) -> None: ...

    def is_closed(self, _wait_s: float) -> bool:
        return True


_WWP = (
    "name", "size", "sha256", "busy", "a", "b", "../a", ".a", "-a", "a/b", "a\n", "a" * 201, "0" * 64, "error",
)  # fmt: skip


def _offer(octets: Octets, content: bytes) -> bytes:
    """A line that offers this content; or one in which something else is said of it."""
    said = Offer(("a", "b")[octets.next() % 2], len(content), hashlib.sha256(content).hexdigest()).line()
    other = tree(octets, _WWP)
    if isinstance(other, dict):
        said.update(other)
    return json.dumps(said).encode() + b"\n"


def wwp_lines(octets: bytes) -> None:
    """Lines of the dialogue of WWP, and the description of a file in them: as they are, or offers."""
    heard = Octets(octets)
    piece, said = 1 + heard.next(), octets[1:]
    if said[:1] not in (b"{", b"["):
        said = b"".join(_offer(heard, heard.piece()) for _ in range(1 + heard.next() % 4))
    lines = Lines(Session(said, piece), 30.0)  # type: ignore[arg-type]
    try:
        while True:
            offer = Offer.of(lines.line())
            assert (FOLDER / offer.name).parent == FOLDER
            assert Offer.of(offer.line()) == offer
    except TransferError as error:
        _is_printable(error)


def wwp_receiver(octets: bytes) -> None:
    """A receiver of files: nothing is written but in its folder, no more than was allowed, and what is taken is right.

    Senders come one after the other, each with an offer of the same content and a part of it: so partial files grow.
    """
    folder = FOLDER / "received"
    folder.mkdir(exist_ok=True)
    receiver = Receiver.__new__(Receiver)
    receiver.folder, receiver._patience_s, receiver._most_octets = folder, 30.0, 10_000
    heard = Octets(octets)
    piece, said = 1 + heard.next(), [octets[1:]]
    if octets[1:2] not in (b"{", b"["):
        content = heard.piece() * (1 + heard.next())
        said = [
            _offer(heard, content) + content[heard.next() : len(content) - heard.next()]
            for _ in range(1 + heard.next() % 4)
        ]
    for each in said:
        _receive(receiver, Session(each, piece))
    found = list(folder.iterdir())
    assert len(found) <= len(said)
    for path in found:
        assert path.stat().st_size <= 10_000
        path.unlink()


def _receive(receiver: Receiver, session: Session) -> None:
    receiver._listener = _Listener(session)  # type: ignore[assignment]
    try:
        # How long a disk takes is not what is looked at.
        with mock.patch("airloom.wwp.receiver._sync"):
            received = receiver.receive()
        assert received is not None
        assert received.path.parent == receiver.folder
        content = received.path.read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (received.size, received.sha256)
    except TransferError as error:
        _is_printable(error)
    for line in session.said.splitlines():
        assert isinstance(json.loads(line), dict)


class _Listener:
    def __init__(self, session: Session) -> None:
        self._session = session

    def accept(self, _wait_s: float, _patience_s: float) -> Session:
        return self._session


_HAR = (
    "log", "entries", "pages", "id", "title", "pageref", "startedDateTime", "request", "url", "response", "status",
    "content", "mimeType", "size", "bodySize", "_initiator", "http://a/", "http://b/x.html?y", "https://[::1]:x/",
    "200", "204", "text/html", "p1", "-1", "12",
)  # fmt: skip


def har(octets: bytes) -> None:
    """A HAR file; the pages it becomes are a page set that can be read."""
    path = _file("a.har", json_of(octets, _HAR))
    for one_server in (False, True):
        found = _read(lambda one=one_server: from_har(path, one_server=one))
        if found is not None:
            found.write(FOLDER / "b.json")
            assert read_page_set(FOLDER / "b.json") == found


_PAGE_SET = (
    "format", "airloom page set 1", "title", "source", "pages", "name", "objects", "path", "size", "server", "after",
    "changes", "/", "1kB", "1.5 MB", "45B", "www", "1e9B",
)  # fmt: skip


def page_set(octets: bytes) -> None:
    """A page set; what is read is written and read again as the same."""
    found = _read(read_page_set, _file("a.json", json_of(octets, _PAGE_SET)))
    if found is not None:
        found.write(FOLDER / "b.json")
        assert read_page_set(FOLDER / "b.json") == found


_STUDY = (
    "paper", "claim", "control", "assumption", "id", "kind", "where", "says", "unit", "runs", "assumptions", "note",
    "part", "statistic", "ours", "tied_to", "because", "tolerance", "at_least", "at_most", "order", "equal", "size",
    "between", "equals", "authors", "title", "year", "summary", "default", "levels", "level", "label", "set", "only",
    "fitted_to", "published", "v", "r", "o", "s", "p", "given", "5%", "<", ">", "X1", "X1.a", "N. Obody", "A. B. C.",
    "default", "reading", "question", "choices", "sweep", "program", "scenario", "vary", "seeds", "1..20", "smoke",
    "full", "command", "real_time", "tables", "measure", "seconds", "needs",
)  # fmt: skip


def study(octets: bytes) -> None:
    """The files of a study, as TOML or as what TOML gives."""
    table = _table(octets)
    if table is not None:
        _read(claims.parse, table)
        _read(assumptions.parse, table)
        _read(paper.parse, table.get("paper"), "claims.toml")
    path = _file("a.toml", octets)
    for reads in (claims.read, assumptions.read, plan.read, programs.read):
        _read(reads, path)


def study_plan(octets: bytes) -> None:
    """What a study runs: the tables of its sweeps and programs."""
    table = tree(Octets(octets), _STUDY)
    _read(plan._plan, "name", table, "sweep.toml")
    _read(programs._program, "name", table, "programs.toml")


def _table(octets: bytes) -> dict[str, Any] | None:
    """What TOML gives: of TOML, or what the octets stand for."""
    try:
        found = tomllib.loads(octets.decode()) if octets[:1] in (b"[", b"#") else tree(Octets(octets), _STUDY)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def sweep_file(octets: bytes) -> None:
    """A sweep in a file, and what stands behind `--vary` and `--seeds`."""
    path = _file("a.toml", octets)
    if file.is_sweep_file(str(path)):
        _read(file._read, path)
    for line in octets.decode(errors="replace").splitlines():
        _read(axes.seeds, line)
        option = _read(axes.from_option, line)
        if option is not None:
            _read(axes.axes, dict([option]))


_RUN = (
    "status", "ok", "run_id", "name", "seed", "clock", "virtual", "scenario", "hosts", "app", "run", "record",
    "verdict", "verdict_reasons", "simulated_s", "transport",
)  # fmt: skip


def run_folder(octets: bytes) -> None:
    """`run.json` and `summary.json` of a run folder, behind each other with a NUL between."""
    manifest, _, summary = octets.partition(b"\0")
    _file("run.json", json_of(manifest, _RUN))
    _file("summary.json", json_of(summary, _RUN))
    run = _read(Run, FOLDER)
    if run is not None:
        for reads in (lambda: run.summary, lambda: run.verdict, lambda: run.verdict_reasons):
            _read(reads)


class _Control:
    """A run that takes any change of its only link."""

    def look(self) -> tuple[float, list[Condition]]:
        return 1.0, [Condition("radio", "up", True, Passed(1, 0, 2), None)]

    def set(self, target: str, changes: object) -> float:
        if target != "radio":
            raise ScenarioError("there is no such link")
        if not isinstance(changes, Mapping):
            raise DriveError("the run is over")
        json.dumps(changes, allow_nan=False)
        return 2.0


def dhcp_message(octets: bytes) -> None:
    """Messages of DHCP, one after the other: each is answered or not, and an answer can be read back."""
    leases = dhcp.Leases(_ROUTER)
    for number, part in enumerate(octets.split(b"NEXT")[:64]):
        request = dhcp.parse(part)
        answer = request and leases.answer(request, float(number))
        if request and answer:
            said = dhcp.emit(request, answer, leases.router)
            assert said[:1] + said[4:8] == b"\x02" + part[4:8]
            assert len(said) == 300
            assert answer.address is None or answer.address in _ROUTER.network
        assert request is None or request.host_name is not None


_ROUTER = IPv4Interface("10.78.0.1/24")


class _Server:
    names = frozenset({"127.0.0.1:1", "localhost:1"})
    token = "token"
    presets = None

    def __init__(self) -> None:
        self.desk = Desk(_Control())  # type: ignore[arg-type]


class _Connection:
    """Requests that came, and what was answered."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self.answered = io.BytesIO()

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self._octets)

    def sendall(self, octets: bytes) -> None:
        self.answered.write(octets)

    def settimeout(self, _time_s: float) -> None: ...

    def setsockopt(self, *_: object) -> None: ...


def control_page(octets: bytes) -> None:
    """Requests to the control page; `@` in front of a line stands for what one must say to be let in."""
    octets = octets.replace(b"\n@", f"\nHost: localhost:1\r\n{TOKEN}: token".encode())
    connection = _Connection(octets)
    _Handler(connection, ("127.0.0.1", 2), _Server())  # type: ignore[arg-type]
    answered = connection.answered.getvalue()
    if b"Traceback" in answered or b" 500 " in answered[:20]:
        raise AssertionError(answered)


TARGETS: dict[str, Target] = {
    each.__name__: each
    for each in (
        wwp_lines,
        wwp_receiver,
        har,
        page_set,
        study,
        study_plan,
        sweep_file,
        run_folder,
        control_page,
        dhcp_message,
    )
}
