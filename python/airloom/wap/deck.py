"""A WML deck: its cards, its template, and whom it lets in."""

from __future__ import annotations

from urllib.parse import urljoin
from xml.etree import ElementTree
from xml.etree.ElementTree import Element


class DeckError(ValueError):
    """A document that is no deck."""


class Deck:
    """A parsed deck and where it came from."""

    def __init__(self, url: str, document: str) -> None:
        """Raises DeckError if `document` is not WML."""
        self.url = url
        try:
            self.root = ElementTree.fromstring(document.encode())
        except ElementTree.ParseError as error:
            raise DeckError(f"not well formed: {error}") from None
        if self.root.tag != "wml":
            raise DeckError(f"a document of type <{self.root.tag}>, not <wml>")
        self.cards = self.root.findall("card")
        if not self.cards:
            raise DeckError("a deck without a card")
        template = self.root.find("template")
        self.template = template if template is not None else Element("template")

    def card(self, name: str) -> Element:
        """The card called `name`; without one, or if there is none, the first."""
        named = (card for card in self.cards if name and card.get("id") == name)
        return next(named, self.cards[0])

    def may_be_entered_from(self, url: str) -> bool:
        """Whether `access` lets other decks lead here (WML 11.3.1)."""
        access = self.root.find("head/access")
        if access is None:
            return True
        theirs, ours = _parts(url), _parts(self.url)
        domain = (access.get("domain") or ours[0]).lower()
        path = urljoin(self.url, access.get("path") or "/")
        in_domain = theirs[0] == domain or theirs[0].endswith("." + domain)
        return in_domain and (_parts(path)[1] == "/" or _begins(theirs[1], _parts(path)[1]))


def _parts(url: str) -> tuple[str, str]:
    """Host without port, and path without query, of an address."""
    _, _, rest = url.partition("?")[0].partition("://")
    authority, slash, path = rest.partition("/")
    return authority.rpartition("@")[2].partition(":")[0].lower(), slash + path or "/"


def _begins(path: str, prefix: str) -> bool:
    """By whole elements: /a/b begins with /a but not with /a/bc's /a/b."""
    elements, wanted = path.split("/"), prefix.rstrip("/").split("/")
    return elements[: len(wanted)] == wanted
