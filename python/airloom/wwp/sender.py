"""The sending side."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from airloom.errors import UsageError
from airloom.wwp.dialogue import PIECE, Lines, Offer, TransferError, digest

if TYPE_CHECKING:
    from airloom._core import WwpSession

#: How often a receiver is asked again that is busy with somebody else, or waits for a sender that was interrupted.
_AGAIN_S = 0.1
#: How long the end of a transfer that was good is waited for: nothing depends on it.
_FAREWELL_S = 2.0


@dataclass(frozen=True)
class Sent:
    """A file that has arrived."""

    name: str
    size: int
    sha256: str
    #: Octets that the receiver had before.
    resumed_at: int
    seconds: float
    segments: int
    resent: int


def send(
    path: Path | str,
    host: str,
    port: int,
    *,
    name: str | None = None,
    patience_s: float = 30.0,
    shown: Callable[[int, int], None] | None = None,
) -> Sent:
    """Sends a file to an `airloom wwp receive` and returns when it is there, hash checked.

    A receiver of which nothing is heard for `patience_s` is given up. `shown` is told how much is there of how much.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            before = path.stat()
            offer = Offer(name or path.name, before.st_size, digest(file).hexdigest())
            Offer.of(offer.line())
            began = time.monotonic()
            try:
                session = _session(host, port, patience_s)
            except TimeoutError as error:
                raise TransferError(
                    f"{host}:{port} does not answer. Is `airloom wwp receive` running there?"
                ) from error
            try:
                offset = _converse(Lines(session, patience_s), session, offer, file, shown)
            except (TimeoutError, ConnectionError) as error:
                raise TransferError(f"{error}; the same command again goes on where this ended") from error
            finally:
                session.reset()
            after = path.stat()
            if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                raise TransferError(f"{path} was changed while it was sent; what has arrived is how it was before")
    except OSError as error:
        if isinstance(error, TimeoutError | ConnectionError):
            raise TransferError(str(error)) from error
        raise UsageError(f"{error.filename or path}: {error.strerror or error}") from error
    sent, again = session.segments
    return Sent(offer.name, offer.size, offer.sha256, offset, time.monotonic() - began, sent, again)


def _session(host: str, port: int, patience_s: float) -> WwpSession:
    from airloom._core import WwpSession

    ends = time.monotonic() + patience_s
    while True:
        try:
            return WwpSession.connect(host, port, patience_s)
        except ConnectionRefusedError:
            if time.monotonic() > ends:
                raise
            time.sleep(_AGAIN_S)


def _converse(
    lines: Lines, session: Any, offer: Offer, file: IO[bytes], shown: Callable[[int, int], None] | None
) -> int:
    lines.say(**offer.line())
    answer = lines.answer()
    offset = answer.get("offset")
    if not isinstance(offset, int) or not 0 <= offset <= offer.size:
        raise TransferError(f"the receiver does not take it: {_why(answer)}")
    file.seek(offset)
    at = offset
    while at < offer.size:
        piece = file.read(min(PIECE, offer.size - at))
        if not piece:
            raise TransferError(f"{file.name} became shorter while it was sent")
        if not lines.write(piece):
            break
        at += len(piece)
        if shown:
            shown(max(at - session.unacknowledged, 0), offer.size)
    lines.drain(lambda left: shown(max(at - left, 0), offer.size) if shown else None)
    verdict = lines.answer()
    if verdict.get("good") is not True:
        raise TransferError(f"the receiver says: {_why(verdict)}")
    session.finish()
    if shown:
        shown(offer.size, offer.size)
    # The verdict is what counts: a farewell that gets lost changes nothing.
    with contextlib.suppress(OSError):
        session.is_closed(_FAREWELL_S)
    return offset


def _why(line: dict[str, Any]) -> str:
    why = line.get("error")
    return why[:500] if isinstance(why, str) and why.isprintable() else "no reason was given"
