"""Service indication and service loading: what gateways push to phones, as their readers see it."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

#: Types of the documents.
INDICATION_TYPE, LOADING_TYPE = "text/vnd.wap.si", "text/vnd.wap.sl"

#: How urgent an indication may be, and what can be done with what is to be loaded.
INDICATION_ACTIONS = ("signal-none", "signal-low", "signal-medium", "signal-high", "delete")
LOADING_ACTIONS = ("execute-low", "execute-high", "cache")


class Indication(NamedTuple):
    """There is something new (WAP-167)."""

    href: str
    action: str
    text: str
    id: str = ""

    def document(self) -> str:
        """As it is given to a gateway."""
        attributes = f"href={quoteattr(self.href)} action={quoteattr(self.action)}"
        attributes += f" si-id={quoteattr(self.id)}" if self.id else ""
        head = _head("si", "SI")
        return f"{head}<si><indication {attributes}>{escape(self.text)}</indication></si>\n"

    def __str__(self) -> str:
        return f"service indication ({self.action}): {self.text} <{self.href}>"


class Loading(NamedTuple):
    """Something is to be fetched (WAP-168)."""

    href: str
    action: str

    def document(self) -> str:
        """As it is given to a gateway."""
        return f"{_head('sl', 'SL')}<sl href={quoteattr(self.href)} action={quoteattr(self.action)}/>\n"

    def __str__(self) -> str:
        return f"service loading ({self.action}): <{self.href}>"


def _head(root: str, name: str) -> str:
    public = f"-//WAPFORUM//DTD {name} 1.0//EN"
    return f'<?xml version="1.0"?>\n<!DOCTYPE {root} PUBLIC "{public}" "http://www.wapforum.org/DTD/{root}.dtd">\n'


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
