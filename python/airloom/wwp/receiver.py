"""The receiving side."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from airloom.errors import UsageError
from airloom.wwp.dialogue import PIECE, Lines, Offer, TransferError, digest, open_partial, partial

#: How long the sender's farewell is waited for.
_FAREWELL_S = 5.0
#: While a file is hashed or goes to a slow disk, the sender hears of it every so many seconds.
_BUSY_S = 2.0


#: The largest file that is taken unless more is allowed.
MOST_OCTETS = 4_000_000_000
#: Octets a second below which a sender holds up the others for nothing: 1 kbit/s.
SLOWEST = 125


class _Pace:
    """Sees to it that a transfer goes on: a drop now and then is no transfer."""

    def __init__(self, patience_s: float, at: int) -> None:
        self._patience_s = patience_s
        self._since, self._at = time.monotonic(), at

    def check(self, at: int) -> None:
        passed = time.monotonic() - self._since
        if passed < self._patience_s:
            return
        if at - self._at < SLOWEST * passed:
            raise TransferError(f"less than {SLOWEST} octets a second for {passed:.0f} s")
        self._since, self._at = time.monotonic(), at


class _Busy:
    """Tells the sender now and then that something takes long, if it `knows` such lines: an older one does not."""

    def __init__(self, lines: Lines, knows: bool, patience_s: float) -> None:
        self._lines, self._knows = lines, knows
        self.every_s = min(_BUSY_S, patience_s / 4)
        self._since = time.monotonic()

    def tell(self, _octets: int = 0) -> None:
        if self._knows and time.monotonic() - self._since >= self.every_s:
            self._lines.say(busy=True)
            self._since = time.monotonic()


@dataclass(frozen=True)
class Received:
    """A file that is there, hash checked."""

    path: Path
    size: int
    sha256: str
    #: Octets that were there before.
    resumed_at: int
    peer: str


class Receiver:
    """Takes files into a folder, one after another.

    A file has a name of its own until its hash is right; what was interrupted goes on where it ended.
    """

    def __init__(
        self,
        folder: Path | str = ".",
        host: str = "127.0.0.1",
        port: int = 9900,
        *,
        patience_s: float = 30.0,
        most_octets: int = MOST_OCTETS,
    ) -> None:
        """Listens on a UDP port, and takes files of up to `most_octets`.

        A sender of which nothing is heard for `patience_s`, or less than `SLOWEST` octets a second, is given up.
        """
        from airloom._core import WwpListener

        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise UsageError(f"{self.folder} is no folder. Make it, or name another by --into")
        try:
            self._listener = WwpListener(host, port)
        except OSError as error:
            raise UsageError(f"{host}:{port}: {error.strerror or error}") from error
        self.address = self._listener.address
        self._patience_s = patience_s
        self._most_octets = most_octets

    def receive(self, wait_s: float = 1.0, shown: Callable[[int, int], None] | None = None) -> Received | None:
        """The next file; nothing if no sender came within `wait_s`. A transfer that fails raises `TransferError`."""
        session = self._listener.accept(wait_s, self._patience_s)
        if session is None:
            return None
        lines = Lines(session, self._patience_s)
        try:
            return self._converse(lines, session, shown)
        except (TimeoutError, ConnectionError) as error:
            raise TransferError(f"{session.peer}: {error}; what has arrived is kept for the next attempt") from error
        except TransferError as error:
            _tell(lines, session, str(error))
            raise TransferError(f"{session.peer}: {error}") from error
        except OSError as error:
            why = error.strerror or str(error)
            _tell(lines, session, why)
            raise TransferError(f"{session.peer}: {why}; what has arrived is kept for the next attempt") from error
        finally:
            session.reset()

    def _converse(self, lines: Lines, session: Any, shown: Callable[[int, int], None] | None) -> Received:
        said = lines.line()
        offer = Offer.of(said)
        busy = _Busy(lines, said.get("busy") is True, self._patience_s)
        if offer.size > self._most_octets:
            raise TransferError(f"{offer.name} has {offer.size} octets; at most {self._most_octets} are taken here")
        final = self.folder / offer.name
        if final.exists():
            if final.is_file() and _is(final, offer, busy):
                lines.say(offset=offer.size)
                return self._close(lines, session, final, offer, offer.size)
            raise TransferError(f"{offer.name} is there already, and is another file")
        part = partial(self.folder, offer)
        with open_partial(part) as file:
            sha = digest(file, busy.tell)
            offset = file.tell()
            if offset > offer.size:
                # Not ours: nothing that long was ever said.
                file.truncate(0)
                sha, offset = digest(file), 0
            lines.say(offset=offset)
            at = offset
            pace = _Pace(self._patience_s, at)
            while at < offer.size:
                piece = lines.read(min(PIECE, offer.size - at))
                if not piece:
                    raise TransferError(f"the sender ended after {at} of {offer.size} octets")
                file.write(piece)
                sha.update(piece)
                at += len(piece)
                pace.check(at)
                if shown:
                    shown(at, offer.size)
            file.flush()
            _sync(file, busy)
        if sha.hexdigest() != offer.sha256:
            part.unlink()
            raise TransferError(
                "what arrived is not the file that was hashed: it was changed while it was sent, or damaged"
            )
        _name(part, final)
        return self._close(lines, session, final, offer, offset)

    def _close(self, lines: Lines, session: Any, final: Path, offer: Offer, offset: int) -> Received:
        # The file is there: a farewell that gets lost changes nothing.
        with contextlib.suppress(OSError, TransferError):
            lines.say(good=True)
            session.finish()
            session.is_closed(_FAREWELL_S)
        return Received(final, offer.size, offer.sha256, offset, session.peer)


def _is(path: Path, offer: Offer, busy: _Busy) -> bool:
    with path.open("rb") as file:
        return path.stat().st_size == offer.size and digest(file, busy.tell).hexdigest() == offer.sha256


def _sync(file: IO[bytes], busy: _Busy) -> None:
    """`os.fsync`, which waits for all that the system holds of the file."""
    with ThreadPoolExecutor(1) as pool:
        synced = pool.submit(os.fsync, file.fileno())
        while not wait([synced], busy.every_s).done:
            busy.tell()
        synced.result()


def _name(part: Path, final: Path) -> None:
    """Gives a complete file its name, and takes no other file's."""
    try:
        os.link(part, final)
    except OSError as error:
        # It is there, or this is a file system without hard links.
        if os.path.lexists(final):
            raise TransferError(f"{final.name} has appeared meanwhile, and is another file") from error
        part.rename(final)
    else:
        part.unlink()


def _tell(lines: Lines, session: Any, why: str) -> None:
    """Lets the sender know, if it still listens."""
    with contextlib.suppress(OSError, TransferError):
        lines.say(error=why[:400])
        session.finish()
        session.is_closed(_FAREWELL_S)
