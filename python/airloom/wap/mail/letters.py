"""Mail that came: a Maildir, as every delivery program can fill it."""

from __future__ import annotations

import email.policy
import threading
from contextlib import suppress
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.utils import parseaddr
from itertools import islice
from pathlib import Path
from typing import NamedTuple

#: Octets of a letter that are read: a phone shows no more.
_MOST = 200_000
#: Characters of a subject, of a date and of a sender: a list of them has to fit into a phone. Of an address (RFC 5321).
_LINE, _ADDRESS = 80, 254
#: New letters that are read at a time: others who ask wait meanwhile.
_AT_ONCE = 20


class Letter(NamedTuple):
    """One of them, as a phone shows it."""

    name: str
    sender: str
    subject: str
    date: str
    text: str
    is_seen: bool


class Letters:
    """The letters in a Maildir, which is made if it is not there. May be used by several threads."""

    def __init__(self, folder: Path) -> None:
        """In this folder. Raises OSError if it cannot be one."""
        for part in ("tmp", "new", "cur"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._told: set[str] = set()
        self._lock = threading.Lock()

    def all(self) -> list[Letter]:
        """The newest first."""
        with self._lock:
            # Names begin with the second of the delivery.
            files = sorted(self._files().items(), reverse=True)
            return [letter for _, file in files if (letter := _read(file))]

    def find(self, name: str) -> Letter | None:
        """The letter of that name; it is seen from now on."""
        with self._lock:
            file = self._files().get(name)
            letter = _read(file) if file else None
            if file and letter and not letter.is_seen:
                self._move(file, seen=True)
            return letter

    def fresh(self) -> list[Letter]:
        """Those that nobody was told of yet, the oldest first, some at a time."""
        with self._lock:
            files = sorted(self._files().items())
            new = [file for name, file in files if file.parent.name == "new" and name not in self._told]
            return list(islice(filter(None, map(_read, new)), _AT_ONCE))

    def told(self, name: str) -> None:
        """Somebody was told of it."""
        with self._lock:
            # Also where it cannot be moved: nobody is told twice.
            self._told.add(name)
            if file := self._files().get(name):
                self._move(file, seen=False)

    def _files(self) -> dict[str, Path]:
        """The file of each letter by the letter's name, which is the file's up to a colon; flags stand behind that."""
        # One that somebody moves meanwhile goes from `new` to `cur`.
        parts = [self._folder / part for part in ("new", "cur")]
        return {file.name.partition(":")[0]: file for part in parts for file in part.iterdir() if not file.is_dir()}

    def _move(self, file: Path, *, seen: bool) -> None:
        """Puts it among those that somebody was told of. Its octets stay as they came."""
        name, _, info = file.name.partition(":")
        info = info or "2,"
        if seen and info.startswith("2,"):
            info = "2," + "".join(sorted({*info[2:], "S"}))
        with suppress(OSError):  # somebody else took it away, or nobody may write here
            file.rename(self._folder / "cur" / f"{name}:{info}")


def _read(file: Path) -> Letter | None:
    """A letter; nothing if somebody else took it away meanwhile, or it may not be read."""
    try:
        with file.open("rb") as opened:
            octets = opened.read(_MOST)
    except OSError:
        return None
    message = EmailMessage()
    with suppress(Exception):  # strangers write it, and the library raises whatever comes up
        message = BytesParser(EmailMessage, policy=email.policy.default).parsebytes(octets)
    sender, subject, date = (_header(message, field) for field in ("from", "subject", "date"))
    name, _, info = file.name.partition(":")
    is_seen = info.startswith("2,") and "S" in info
    return Letter(name, _short(sender), subject[:_LINE], date[:_LINE], _text(message), is_seen)


def _header(message: EmailMessage, field: str) -> str:
    """A field as people read it; one that cannot be read, as it came."""
    try:
        return str(message.get(field, ""))
    except Exception:  # as above
        raw = next(str(value) for name, value in message.raw_items() if name.lower() == field)
        return " ".join(raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace").split())


def _short(sender: str) -> str:
    """A sender that can be answered: a long one is its address alone, and nothing if that is too long."""
    if len(sender) <= _LINE:
        return sender
    with suppress(Exception):  # as above
        address = parseaddr(sender)[1]
        return address if len(address) <= _ADDRESS else ""
    return ""


def _text(message: EmailMessage) -> str:
    """The first part that is plain text."""
    part: MIMEPart | None = message
    with suppress(Exception):  # as above
        part = message.get_body(("plain",))
        return "" if part is None else str(part.get_content())
    with suppress(Exception):
        # A character set that nobody knows.
        payload = part.get_payload(decode=True) if part else None
        return payload.decode("latin-1") if isinstance(payload, bytes) else ""
    return ""
