"""Lines of JSON over a session, and what both sides know of a file."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from airloom.errors import RunError

if TYPE_CHECKING:
    from airloom._core import WwpSession

#: Longest line that is read.
LINE = 4096
#: Octets of a file that are read or written at a time.
PIECE = 1 << 18
#: While there is no room for more, it is looked for a word of the other side every so many seconds.
_LOOK_S = 0.2
#: Longest file name that file systems take, with room for what a partial one has in addition.
_NAME = 200


class TransferError(RunError):
    """A transfer did not succeed; the message says why and what to do."""


@dataclass(frozen=True)
class Offer:
    """A file as its sender describes it."""

    name: str
    size: int
    sha256: str

    def line(self) -> dict[str, object]:
        """As it is sent. Who says `busy` understands such lines: see `Lines.answer`."""
        return {"name": self.name, "size": self.size, "sha256": self.sha256, "busy": True}

    @staticmethod
    def of(line: dict[str, Any]) -> Offer:
        """From what a stranger says."""
        name, size, sha256 = line.get("name"), line.get("size"), line.get("sha256")
        if not isinstance(name, str) or not _is_name(name):
            raise TransferError(
                "the sender's name of the file cannot be used: no folder, no dot or dash first (--name gives another)"
            )
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 62:
            raise TransferError("the sender's size of the file cannot be used")
        if not isinstance(sha256, str) or not re.fullmatch("[0-9a-f]{64}", sha256):
            raise TransferError("the sender's hash of the file cannot be used")
        return Offer(name, size, sha256)


def _is_name(name: str) -> bool:
    """A dot begins what a shell or `ssh` may read by itself, a dash what a program takes for an option."""
    plain = not name.startswith((".", "-")) and not set(name) & {"/", "\\", "\0"} and name.isprintable()
    return bool(name) and plain and len(name.encode(errors="replace")) <= _NAME


class Lines:
    """What comes over a session, as lines first and octets then."""

    def __init__(self, session: WwpSession, patience_s: float) -> None:
        """Waits for each line and each piece at most for `patience_s`."""
        self._session = session
        self._patience_s = patience_s
        self._early = b""

    def read(self, most: int, wait_s: float | None = None) -> bytes | None:
        """The next octets; empty where the peer has finished, nothing where none came within `wait_s`."""
        if self._early:
            piece, self._early = self._early[:most], self._early[most:]
            return piece
        return self._session.read(most, self._patience_s if wait_s is None else wait_s)

    def line(self) -> dict[str, Any]:
        """The next line, all of it within one patience, however small its pieces are."""
        line = b""
        ends = time.monotonic() + self._patience_s
        while b"\n" not in line:
            piece = self.read(LINE)
            if not piece or len(line) > LINE or time.monotonic() > ends:
                raise TransferError("the other side has not said what it should; is it `airloom wwp`?")
            line += piece
        line, _, self._early = line.partition(b"\n")
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise TransferError("the other side has not said what it should; is it `airloom wwp`?")
        return said

    def answer(self) -> dict[str, Any]:
        """The next line that says more than that the other side is at work."""
        while (said := self.line()).get("busy") is True:
            pass
        return said

    def say(self, **said: object) -> None:
        """Sends a line, whatever has come meanwhile: who gives up has octets before it that it no longer reads."""
        self._write(json.dumps(said).encode() + b"\n", lambda: False)

    def write(self, octets: bytes) -> bool:
        """Sends octets; stops where the other side has something to say. Were all of them sent?"""
        return self._write(octets, self._has_come)

    def _write(self, octets: bytes, stops: Callable[[], bool]) -> bool:
        view = memoryview(octets)
        ends = time.monotonic() + self._patience_s
        while view:
            if stops():
                return False
            taken = self._session.write(bytes(view), _LOOK_S)
            if taken:
                ends = time.monotonic() + self._patience_s
            elif time.monotonic() > ends:
                raise TransferError(f"the other side has taken nothing for {self._patience_s:g} s")
            view = view[taken:]
        return True

    def drain(self, shown: Callable[[int], None]) -> None:
        """Waits until the other side has a word, or has taken what was written; `shown` is told how much is left.

        On a slow link that is long: patience is for a peer that takes nothing more.
        """
        left = self._session.unacknowledged
        ends = time.monotonic() + self._patience_s
        while left and not self._early and time.monotonic() < ends:
            piece = self._session.read(LINE, _LOOK_S)
            if piece is not None:
                # Without octets: the other side has finished, and says no more.
                self._early = piece
                return
            if self._session.unacknowledged < left:
                left = self._session.unacknowledged
                ends = time.monotonic() + self._patience_s
                shown(left)

    def _has_come(self) -> bool:
        if not self._early:
            self._early = self._session.read(LINE, 0.0) or b""
        return bool(self._early)


def digest(file: IO[bytes], shown: Callable[[int], None] | None = None) -> Any:
    """The hash of what is left of an open file, to go on with."""
    sha = hashlib.sha256()
    while piece := file.read(PIECE):
        sha.update(piece)
        if shown:
            shown(len(piece))
    return sha


def partial(folder: Path, offer: Offer) -> Path:
    """The name of a file that is not complete: another one for other octets."""
    return folder / f".{offer.name}.{offer.sha256[:16]}.part"


def open_partial(path: Path) -> IO[bytes]:
    """Opens it to read and go on writing. Its name can be foretold: what is not a file of ours alone is not touched."""
    try:
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise TransferError(f"{path.name} is there already, and is no file of ours") from None
        raise
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
        os.close(opened)
        raise TransferError(f"{path.name} is there already, and is no file of ours")
    return os.fdopen(opened, "r+b")
