"""Where results go, and what may take the place of what: one rule for everything that writes a result folder.

What comes out the same each time (virtual time) has the same place each time. What was measured in real time never
comes again, and gets a place of its own. A folder that was asked for may be absent, empty, or hold the same results
(of the same scenario, seed and version, or whatever else they follow from); other results in it are replaced only by
`force`, and what is no result of ours is left alone.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple

from airloom.errors import CannotWrite, UsageError
from airloom.json_file import read_json

#: The file that says what a result folder is, by what it is then called, and its key for the identity.
_MANIFESTS = {
    "run.json": ("run", "run_id"),
    "sweep.json": ("sweep", "sweep_id"),
    "validation.json": ("comparison", "validation_id"),
    "study.json": ("study", "study"),
    "loads.json": ("load", "load_id"),
}

#: What may lie in a folder that was begun and has no manifest yet, which is the first thing written.
_BEGUN = re.compile(r"\.lock|sweep\.json\.part|\.validation\.json\.\d+\.part")


class Held(NamedTuple):
    """What a folder holds."""

    #: `run`, `sweep` and so on.
    kind: str
    name: str
    #: What it follows from, as a few digits.
    identity: str

    def __str__(self) -> str:
        """For people: `another sweep (umts-page, 7f3c02ab91)`."""
        return f"another {self.kind} ({', '.join(filter(None, (self.name, self.identity)))})"


def command() -> list[str]:
    """The words of the command line, as a file of ours can say them: octets that are no UTF-8 are replaced."""
    return [os.fsencode(word).decode(errors="replace") for word in sys.argv]


def default_place(name: str, identity: str) -> Path:
    """`runs/<date>-<name>-<identity>` in the current folder, for what comes out the same each time."""
    return Path("runs") / f"{datetime.now(UTC):%Y-%m-%d}-{name}-{identity}"


def new_place(name: str, identity: str) -> Path:
    """`runs/<date>T<time>-<name>-<identity>`, numbered where that is taken, for what was measured in real time."""
    first = Path("runs") / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}-{name}-{identity}"
    return next(place for place in numbered(first) if not os.path.lexists(place))


def numbered(place: Path) -> Iterator[Path]:
    """The place, and the same with `-2`, `-3` and so on behind it."""
    yield place
    for number in count(2):
        yield place.with_name(f"{place.name}-{number}")


def held(place: Path) -> Held | None:
    """What result of ours a folder holds, if it holds one."""
    for manifest, (kind, key) in _MANIFESTS.items():
        path = place / manifest
        if path.is_file():
            with suppress(UsageError):
                said = read_json(path)
                if isinstance(said, dict) and isinstance(said.get(key), str):
                    return Held(kind, str(said.get("name", "")), said[key])
    return None


def check(place: Path, identity: str, *, force: bool = False) -> None:
    """Raises `UsageError` if results that follow from `identity` may not be written to `place`."""
    try:
        str(place.absolute()).encode()
    except UnicodeEncodeError:
        # No library would read tables there.
        raise UsageError(f"{place.absolute()} is no UTF-8: choose another --out") from None
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise UsageError(f"{place} exists and is not a folder: choose another --out")
    found = held(place)
    if found is None:
        if not all(_BEGUN.fullmatch(path.name) for path in _entries(place)):
            raise UsageError(f"{place} exists and is not a result folder: choose another --out, or move it away")
        return
    if found.identity == identity:
        return
    if not force:
        raise UsageError(f"{place} holds {found}: choose another --out, or replace it with --force")
    if (place / ".lock").exists():
        with alone_in(place):
            pass


def take(place: Path, identity: str, *, force: bool = False) -> None:
    """Makes `place` a folder for results that follow from `identity`, if it may be (`check`); others in it are gone."""
    check(place, identity, force=force)
    found = held(place) if place.is_dir() else None
    with creating(place):
        if found is not None and found.identity != identity:
            with alone_in(place):
                shutil.rmtree(place)
        place.mkdir(parents=True, exist_ok=True)


@contextmanager
def alone_in(place: Path) -> Iterator[None]:
    """Holds a folder that several commands may go on with; refused while another process has it."""
    with creating(place):
        lock = (place / ".lock").open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{place}: another process is at work there; wait for it, or end it") from None
        yield


@contextmanager
def creating(place: Path) -> Iterator[None]:
    """What the system refuses while a result folder is made is one sentence, with what to do."""
    try:
        yield
    except OSError as error:
        made = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else place
        # Nobody knows of the hidden folder that it is written into.
        shown = place if made.name.startswith(".") or made == place else made
        why = error.strerror or str(error)
        raise CannotWrite(
            f"cannot create {shown}/: {why[:1].lower()}{why[1:]}; choose another place with --out"
        ) from None


def write_whole(path: Path, text: str) -> None:
    """Writes a text file, which has its name once all of it is there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise CannotWrite(f"{path}: {error.strerror}") from None
        raise


def check_file(path: Path, source: Path | str | None = None) -> None:
    """Raises `UsageError` if a file that is asked for is the `source` of what it shall hold, or a part of a result."""
    if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
        raise UsageError(f"{path} is what is read: choose another place for what is written")
    is_part = path.suffix == ".parquet" or path.name in (*_MANIFESTS, "summary.json", "trace.pcapng", "sessions.json")
    if is_part and held(path.parent):
        raise UsageError(f"{path} belongs to the result in {path.parent}: choose another name")


def give_back(made: Iterable[Path]) -> None:
    """Under sudo, files belong to the user who called it."""
    if os.geteuid() == 0 and (uid := os.environ.get("SUDO_UID", "")).isdecimal():
        gid = os.environ.get("SUDO_GID", "")
        for each in made:
            os.chown(each, int(uid), int(gid) if gid.isdecimal() else -1, follow_symlinks=False)


def _entries(place: Path) -> list[Path]:
    with creating(place):
        return list(place.iterdir())
