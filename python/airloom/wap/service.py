"""Service indication and service loading: what gateways push to phones, as their readers see it."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree import ElementTree


class Indication(NamedTuple):
    """There is something new (WAP-167)."""

    href: str
    action: str
    text: str
    id: str = ""

    def __str__(self) -> str:
        """In one line."""
        return f"service indication ({self.action}): {self.text} <{self.href}>"


class Loading(NamedTuple):
    """Something is to be fetched (WAP-168)."""

    href: str
    action: str

    def __str__(self) -> str:
        """In one line."""
        return f"service loading ({self.action}): <{self.href}>"


def parse(document: str) -> Indication | Loading | None:
    """What a document says; None if it is neither. Defaults are those of the document types."""
    try:
        root = ElementTree.fromstring(document.encode())
    except ElementTree.ParseError:
        return None
    if root.tag == "sl":
        return Loading(root.get("href", ""), root.get("action", "execute-low"))
    indication = root.find("indication") if root.tag == "si" else None
    if indication is None:
        return None
    href, action = indication.get("href", ""), indication.get("action", "signal-medium")
    text = " ".join("".join(indication.itertext()).split())
    return Indication(href, action, text, indication.get("si-id", ""))
