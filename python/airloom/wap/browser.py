"""A text-mode browser: one screen per card, what can be chosen is numbered.

What is typed comes from a function, and what is shown goes to one: the terminal is the command line's business.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Protocol

from airloom._core import WapError, wap_compile, wap_decompile
from airloom.wap import Headers, Reply
from airloom.wap.context import Context, Fetch, Piece
from airloom.wap.deck import DeckError

#: Columns of a screen.
WIDTH = 72
HELP = "NUMBER follows, opens or fills in; b back, r again, g URL go to, v variables, s source, q quit"


class Gateway(Protocol):
    """What a browser needs of a client."""

    def request(
        self, method: str, url: str, headers: Headers | None, body: bytes | None, content_type: str | None
    ) -> Reply:
        """Asks, and waits for the reply."""


#: Asks the reader for a line: what for, and after how many seconds no longer (then it is None).
Ask = Callable[[str, float | None], str | None]


class Browser:
    """Shows decks and does what the reader says until the reader has enough."""

    def __init__(self, gateway: Gateway, ask: Ask, show: Callable[[str], None]) -> None:
        """Reads with `ask` and writes with `show`."""
        self.context = Context()
        self._gateway = gateway
        self._ask = ask
        self._show = show
        self._source = ""

    def browse(self, url: str) -> int:
        """Begins at `url`; the exit code is 0 if anything could be shown."""
        if not self._fetch(self.context.open(url)) and self.context.deck is None:
            return 1
        while True:
            self._show(screen(self.context))
            said = self._ask("> ", self.context.timer_s)
            if said is None:
                self._do(self.context.timer)
            elif not self._say(said.strip()):
                return 0

    def _say(self, said: str) -> bool:
        """One line of the reader; False if it was the last one."""
        word, _, rest = said.partition(" ")
        match word:
            case "q" | "quit":
                return False
            case "b" | "back":
                self._do(self.context.back)
            case "r":
                self._do(self.context.reload)
            case "g" if rest:
                self._do(lambda: self.context.open(rest if "://" in rest else f"http://{rest}"))
            case "v":
                values = self.context.variables.items()
                self._show("\n".join(f"  {name} = {value}" for name, value in sorted(values)) or "  no variables")
            case "s":
                self._show(self._source)
            case "":
                pass
            case number if number.isascii() and number.isdigit():
                self._do(lambda: self._act(int(number), rest))
            case _:
                self._show(HELP)
        return True

    def _act(self, number: int, rest: str) -> Fetch | None:
        found = self.context.control(number)
        kind = found[0] if found else ""
        if kind == "input":
            text = rest or self._ask("text: ", None) or ""
            self.context.enter(number, text)
            return None
        if kind == "select":
            options = self.context.options(number)
            if not rest:
                lines = [f"  {n} {'*' if on else ' '} {label}" for n, (label, on) in enumerate(options, 1)]
                self._show("\n".join(lines))
                rest = self._ask("options: " if self.context.allows_many(number) else "option: ", None) or ""
            words = rest.replace(",", " ").split()
            if not all(word.isascii() and word.isdigit() for word in words):
                raise ValueError("give the numbers of options")
            return self.context.choose(number, [int(word) for word in words]) if words else None
        return self.context.follow(number)

    def _do(self, what: Callable[[], Fetch | None]) -> None:
        """Does it, and fetches until a card is there; what goes wrong is said."""
        try:
            order = what()
        except ValueError as error:
            self._show(f"! {error}")
            return
        if order is not None:
            self._fetch(order)

    def _fetch(self, order: Fetch | None) -> bool:
        while order is not None:
            asked = order.url
            headers = [("Referer", order.referer)] if order.referer else []
            if order.afresh:
                headers.append(("Cache-Control", "no-cache"))
            try:
                reply = self._gateway.request(order.method, order.url, headers, order.body, order.content_type)
                self._source = document(reply)
                order = self.context.fetched(self._source, led_to(reply))
            except (WapError, ValueError) as error:
                self.context.failed()
                self._show(f"! {asked}: {error}")
                return False
        return True


def document(reply: Reply) -> str:
    """The WML of a reply. Raises ValueError if it has none."""
    media = reply.media
    if media == "text/vnd.wap.wml":
        # There and back: entities are resolved and what is no WML says where.
        return wap_decompile(wap_compile(reply.body, reply.charset, None)[0])
    if media == "application/vnd.wap.wmlc" and reply.body:
        return reply.text()
    if reply.status >= 400:
        raise DeckError(f"status {reply.status}")
    raise DeckError(f"{reply.content_type} is nothing to show")


def led_to(reply: Reply) -> str | None:
    """Where the gateway was led to by redirections. What is relative tells of the content alone (RFC 7231, B)."""
    told = next((value for name, value in reply.headers if name.lower() == "content-location"), "")
    return told.partition("#")[0] if told.lower().startswith(("http://", "https://")) else None


def screen(context: Context) -> str:
    """The shown card, as lines of text."""
    blocks: list[str] = []
    line = ""
    for piece in [*context.pieces(), Piece("paragraph")]:
        if piece.kind in ("paragraph", "break", "button"):
            words = " ".join(line.split())
            blocks.extend(textwrap.wrap(words, WIDTH) if words else [])
            line = ""
            if piece.kind == "paragraph" and blocks and blocks[-1]:
                blocks.append("")
        match piece.kind:
            case "text":
                line += piece.text
            case "emphasis":
                line += f"*{piece.text.strip()}*" if piece.text.strip() else " "
            case "image":
                line += f"[{piece.text or 'image'}]"
            case "link":
                line += f"[{piece.number}]{piece.text or 'link'}"
            case "input":
                line += f"[{piece.number}]<{piece.text}>"
            case "select":
                line += f"[{piece.number}]({piece.text})"
            case "button":
                blocks.append(f"[{piece.number}] {piece.text}")
    title = f"== {context.title or context.url} "
    return "\n".join([title + "=" * max(WIDTH - len(title), 2), *blocks]).rstrip()
