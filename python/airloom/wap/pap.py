"""Pushes from the side of whoever has something to say: PAP over HTTP (WAP-247) to a gateway.

initiator = Initiator("http://127.0.0.1:9206/")
answer = initiator.push("127.0.0.5", Indication("http://mail/", "signal-high", "New mail").document(), INDICATION_TYPE)
print(answer.code, answer.words)
"""

from __future__ import annotations

import http.client
import ipaddress
import secrets
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from airloom.errors import AirloomError

Method = Literal["unconfirmed", "confirmed", "preferconfirmed"]

#: Codes of answers that say that all is well: done, and accepted for processing.
OK, ACCEPTED = 1000, 1001

#: Octets of an answer that are read: a message of PAP has a few hundred.
_MOST = 1 << 20

_HEAD = (
    '<?xml version="1.0"?>\n<!DOCTYPE pap PUBLIC "-//WAPFORUM//DTD PAP 1.0//EN"'
    ' "http://www.wapforum.org/DTD/pap_1.0.dtd">\n'
)


class PapError(AirloomError):
    """The gateway cannot be reached, or what it said is no PAP."""


class Answer(NamedTuple):
    """What a gateway answered: `code` is 1000 (done) or 1001 (accepted) if all is well."""

    push_id: str
    code: int
    words: str

    @property
    def is_taken(self) -> bool:
        """Was it done, or will it be?"""
        return self.code in (OK, ACCEPTED)


class Status(NamedTuple):
    """What became of a push.

    `state` is pending, delivered, undeliverable, expired, aborted, timeout, cancelled or unknown.
    """

    push_id: str
    state: str
    code: int
    words: str


def address(client: str) -> str:
    """An address of IP as PAP has it. Raises ValueError for what is none.

    >>> address("127.0.0.5")
    'WAPPUSH=127.0.0.5/TYPE=IPv4@airloom'
    """
    kind = "IPv4" if ipaddress.ip_address(client).version == 4 else "IPv6"
    return f"WAPPUSH={client}/TYPE={kind}@airloom"


def new_id() -> str:
    """A name for a push that no other has."""
    return f"{secrets.token_hex(8)}@airloom"


def notification(document: bytes) -> Status:
    """What a gateway tells of the end of a push (`ppg-notify-requested-to`). Raises PapError."""
    return _status(_inside(document), "resultnotification-message")


class Initiator:
    """Submits pushes to a gateway, asks for them and takes them back. Failures are `PapError`s."""

    def __init__(self, url: str, time_s: float = 30.0) -> None:
        """`url` is where the gateway takes pushes: its `--push`. Raises ValueError if it is no address over HTTP."""
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not http://HOST:PORT/")
        self.url = url
        self.time_s = time_s

    def push(
        self,
        client: str,
        content: str | bytes,
        content_type: str,
        *,
        push_id: str | None = None,
        method: Method = "unconfirmed",
        headers: list[tuple[str, str]] | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        notify: str | None = None,
    ) -> Answer:
        """Pushes `content` to the client at an address of IP.

        `headers` go with it, such as X-Wap-Application-Id. It is sent not before `after` and no longer at `before`; the
        end is told to the address `notify` over HTTP.
        """
        message = ElementTree.Element("push-message", {"push-id": push_id or new_id()})
        for name, moment in (("deliver-after-timestamp", after), ("deliver-before-timestamp", before)):
            if moment is not None:
                message.set(name, moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        if notify is not None:
            message.set("ppg-notify-requested-to", notify)
        ElementTree.SubElement(message, "address", {"address-value": address(client)})
        ElementTree.SubElement(message, "quality-of-service", {"delivery-method": method})
        body = content.encode() if isinstance(content, str) else content
        if isinstance(content, str) and "charset" not in content_type:
            content_type += "; charset=utf-8"
        entity = [("Content-Type", content_type), *(headers or [])]
        boundary = _boundary(body)
        parts = (([("Content-Type", "application/xml")], _document(message)), (entity, body))
        sent = b"".join(_part(boundary, fields, part) for fields, part in parts) + f"--{boundary}--\r\n".encode()
        kind = f'multipart/related; boundary={boundary}; type="application/xml"'
        return _answer(self._ask(sent, kind), "push-response", "response-result")

    def cancel(self, push_id: str) -> Answer:
        """Takes a push back."""
        return _answer(self._query("cancel-message", push_id), "cancel-response", "cancel-result")

    def status(self, push_id: str) -> Status:
        """What became of a push."""
        response = self._query("statusquery-message", push_id)
        if response.tag != "statusquery-response" or (result := response.find("statusquery-result")) is None:
            raise PapError(f"the gateway answered with {response.tag!r}")
        result.set("push-id", response.get("push-id", ""))
        return _status(result, "statusquery-result")

    def _query(self, what: str, push_id: str) -> ElementTree.Element:
        return self._ask(_document(ElementTree.Element(what, {"push-id": push_id})), "application/xml")

    def _ask(self, body: bytes, content_type: str) -> ElementTree.Element:
        try:
            request = urllib.request.Request(self.url, body, {"Content-Type": content_type})
            with urllib.request.urlopen(request, timeout=self.time_s) as response:
                said = response.read(_MOST)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(_MOST)
            if "xml" not in error.headers.get("Content-Type", ""):
                raise PapError(f"{self.url} answered {error.code} {error.reason}") from None
        except http.client.HTTPException:
            raise PapError(f"what {self.url} answered is no HTTP") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", error)
            raise PapError(f"no answer from {self.url}: {getattr(why, 'strerror', None) or why}") from None
        try:
            message = _inside(said)
        except PapError:
            raise PapError(f"what {self.url} answered is no PAP") from None
        if message.tag == "badmessage-response":
            raise PapError(f"the gateway did not understand: {message.get('code')} {message.get('desc')}")
        return message


def _document(message: ElementTree.Element) -> bytes:
    pap = ElementTree.Element("pap")
    pap.append(message)
    return _HEAD.encode() + ElementTree.tostring(pap)


def _part(boundary: str, fields: list[tuple[str, str]], body: bytes) -> bytes:
    lines = [f"--{boundary}"]
    for name, value in fields:
        if any(c in "\r\n" for c in name + value):
            raise ValueError(f"{name!r}: a header is one line")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode() + body + b"\r\n"


def _boundary(body: bytes) -> str:
    while (boundary := secrets.token_hex(12)).encode() in body:
        pass
    return boundary


def _inside(document: bytes) -> ElementTree.Element:
    try:
        (message,) = ElementTree.fromstring(document)
    except (ElementTree.ParseError, ValueError):
        raise PapError("what came is no PAP") from None
    return message


def _code(element: ElementTree.Element) -> tuple[int, str]:
    code = element.get("code", "")
    if not (code.isascii() and code.isdigit()):
        raise PapError(f"there is no code in {element.tag!r}")
    return int(code), element.get("desc", "")


def _answer(response: ElementTree.Element, tag: str, inside: str) -> Answer:
    if response.tag != tag or (result := response.find(inside)) is None:
        raise PapError(f"the gateway answered with {response.tag!r}")
    return Answer(response.get("push-id", ""), *_code(result))


def _status(element: ElementTree.Element, tag: str) -> Status:
    if element.tag != tag:
        raise PapError(f"{element.tag!r} is no {tag!r}")
    return Status(element.get("push-id", ""), element.get("message-state", "unknown"), *_code(element))
