"""Mail that came: a Maildir, as every delivery program can fill it."""

from __future__ import annotations

import email.policy
import mailbox
import threading
from contextlib import suppress
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from pathlib import Path
from typing import NamedTuple

#: Octets of a letter that are read: a phone shows no more.
_MOST = 200_000


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
        for part in ("tmp", "new", "cur"):  # of a folder that is there they are not made below
            (folder / part).mkdir(parents=True, exist_ok=True)
        self._box = mailbox.Maildir(folder, factory=None)
        self._lock = threading.Lock()

    def all(self) -> list[Letter]:
        """The newest first."""
        with self._lock:
            # Names begin with the second of the delivery.
            return [letter for name in sorted(self._box.keys(), reverse=True) if (letter := self._read(name))]

    def find(self, name: str) -> Letter | None:
        """The letter of that name; it is seen from now on."""
        with self._lock:
            letter = self._read(name)
            if letter and not letter.is_seen:
                self._move(name, seen=True)
            return letter

    def fresh(self) -> list[Letter]:
        """Those that nobody was told of yet."""
        with self._lock:
            found = [(name, self._about(name)) for name in sorted(self._box.keys())]
            names = [name for name, about in found if about and about.get_subdir() == "new"]
            return [letter for name in names if (letter := self._read(name))]

    def told(self, name: str) -> None:
        """Somebody was told of it."""
        with self._lock:
            self._move(name, seen=False)

    def _about(self, name: str) -> mailbox.MaildirMessage | None:
        """Its place and flags; nothing if somebody else took it away meanwhile."""
        try:
            return self._box.get_message(name)
        except (KeyError, FileNotFoundError):
            return None

    def _move(self, name: str, *, seen: bool) -> None:
        message = self._about(name)
        if message is None:
            return
        message.set_subdir("cur")
        if seen:
            message.add_flag("S")
        self._box[name] = message

    def _read(self, name: str) -> Letter | None:
        about = self._about(name)
        try:
            with self._box.get_file(name) as file:
                octets = file.read(_MOST)
        except (KeyError, FileNotFoundError):
            return None
        message = BytesParser(EmailMessage, policy=email.policy.default).parsebytes(octets)
        sender, subject, date = (_header(message, field) for field in ("from", "subject", "date"))
        return Letter(name, sender, subject, date, _text(message), about is not None and "S" in about.get_flags())


def _header(message: EmailMessage, field: str) -> str:
    """A field as people read it; one that cannot be read, as it came."""
    try:
        return str(message.get(field, ""))
    except Exception:  # strangers write it, and the library raises whatever comes up
        raw = next(str(value) for name, value in message.raw_items() if name.lower() == field)
        return " ".join(raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace").split())


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
