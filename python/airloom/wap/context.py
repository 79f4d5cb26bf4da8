"""What a WML browser keeps in mind while somebody reads: the shown card, variables, history, and what events lead to.

Nothing here fetches, waits or prints. `Context` is told what the reader does (`follow`, `choose`, `enter`, `back`,
`timer`) and answers with what has to be fetched (`Fetch`), or with None once the next card is there to be shown.
Source: WML 1.1 to 1.3 (WAP-191, WAP-238), sections 8 (context), 9 (navigation), 10 (variables), 11.5 to 11.8 (cards,
controls, timers).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urldefrag, urljoin
from xml.etree.ElementTree import Element

from airloom.wap import forms
from airloom.wap.deck import Deck, DeckError
from airloom.wap.variables import Variables, check_format

#: Cards that `back` remembers; older ones are forgotten.
MOST_HISTORY = 100
#: A timer that is set to more tenths of a second, some 116 days, has as many.
MOST_TENTHS = 10**8
#: Tasks that one thing the reader did may set off by events of cards, before the browser believes it is led in circles.
MOST_STEPS = 20


class Fetch(NamedTuple):
    """Something has to be fetched before the next card can be shown."""

    url: str
    method: str = "GET"
    body: bytes | None = None
    content_type: str | None = None
    #: Address of the deck that asks, if it wants that said.
    referer: str | None = None
    #: Not from what somebody keeps.
    afresh: bool = False


class Piece(NamedTuple):
    """A run of text in a card: `kind` is text, emphasis, break, paragraph, image, link, input, select or button."""

    kind: str
    text: str = ""
    #: For what can be chosen: its number on the card, from 1.
    number: int = 0


class Context:
    """The browser's memory. `fetched` gives it what was fetched; properties tell what is to be shown."""

    def __init__(self) -> None:
        self._variables = Variables()
        self.deck: Deck | None = None
        self._card: Element | None = None
        #: How each deck was asked for, its address with the card's name; the shown one last.
        self.history: list[Fetch] = []
        #: What the reader can act on: kind and element.
        self._controls: list[tuple[str, Element]] = []
        self._pending: _Pending | None = None
        self._steps = 0
        #: The card's timer has run out since the card was shown, or refreshed.
        self._timer_is_over = False

    # What is shown

    @property
    def url(self) -> str:
        """Address of the shown card."""
        return self.history[-1].url if self.history else ""

    @property
    def variables(self) -> dict[str, str]:
        """A copy of all values."""
        return dict(self._variables.values)

    @property
    def title(self) -> str:
        """Of the shown card."""
        return self._expand(self._card.get("title", "")) if self._card is not None else ""

    @property
    def timer_s(self) -> float | None:
        """After how long `timer` is to be called, if the card has a timer that runs."""
        timer = self._card.find("timer") if self._card is not None else None
        if timer is None or self._timer_is_over:
            return None
        value = self._variables.values.get(timer.get("name", "")) or self._expand(timer.get("value", "0"))
        # Tenths of a second; nothing else than a number above 0 starts it (WML 11.7).
        return tenths / 10 if (tenths := _number(value, MOST_TENTHS)) else None

    def pieces(self) -> list[Piece]:
        """The shown card, to be laid out; numbers name what `follow`, `enter` and `choose` act on."""
        self._controls = []
        if self._card is None:
            return []
        pieces = [piece for child in self._card for piece in self._render(child)]
        pieces.extend(self._buttons())
        return pieces

    def control(self, number: int) -> tuple[str, Element] | None:
        """Kind and element of what has this number: link, input, select or button."""
        return self._controls[number - 1] if 1 <= number <= len(self._controls) else None

    def options(self, number: int) -> list[tuple[str, bool]]:
        """Labels of a selection, and whether each is chosen."""
        select = self._element(number, "select")
        chosen = self._chosen(select)
        return [(self._label(option), n + 1 in chosen) for n, option in enumerate(select.iter("option"))]

    def allows_many(self, number: int) -> bool:
        """May several of a selection's options be chosen?"""
        return self._element(number, "select").get("multiple") == "true"

    # What the reader does

    def open(self, url: str) -> Fetch:
        """Goes to an address that the reader typed: a context of its own begins when it has come."""
        self._steps = 0
        self._pending = _Pending("forward", Fetch(urljoin("http://", url)), False, is_typed=True)
        return _whole(self._pending.asked)

    def follow(self, number: int) -> Fetch | None:
        """Follows a link or presses a button."""
        self._steps = 0
        kind, element = self._control(number)
        if kind == "link":
            if element.tag == "a":
                return self._go(self._expand(element.get("href", ""), "e"))
            return self._perform(element)
        if kind == "button":
            return self._perform(element)
        raise DeckError(f"{number} is neither a link nor a button")

    def enter(self, number: int, text: str) -> None:
        """Puts text into an input. Raises ValueError if its format does not allow that."""
        element = self._element(number, "input")
        if text or element.get("emptyok") != "true":
            check_format(element.get("format", "*M"), text)
        longest = _number(element.get("maxlength", ""), len(text))
        if longest is not None and len(text) > longest:
            raise ValueError(f"at most {longest} characters")
        self._set(element.get("name", ""), text)

    def choose(self, number: int, numbers: list[int]) -> Fetch | None:
        """Chooses options of a selection, by their numbers from 1; what `onpick` says is done."""
        self._steps = 0
        select = self._element(number, "select")
        options = list(select.iter("option"))
        if any(not 1 <= n <= len(options) for n in numbers) or (len(numbers) > 1 and not self.allows_many(number)):
            raise ValueError(f"options are 1 to {len(options)}" + ("" if len(numbers) < 2 else ", one of them"))
        before = self._chosen(select)
        values = [self._expand(options[n - 1].get("value", "")) for n in sorted(set(numbers))]
        self._set(select.get("name", ""), ";".join(v for v in values if v))
        self._set(select.get("iname", ""), ";".join(str(n) for n in sorted(set(numbers))) or "0")
        # Of one choice only what is selected has an event, also if it was before (WML 1.3); of several what changes.
        changed = [n for n in numbers if n not in before] + [n for n in before if n not in numbers]
        for n in changed if self.allows_many(number) else numbers:
            option = options[n - 1]
            if (task := _event(option, "onpick")) is not None:
                return self._perform(task)
            if href := option.get("onpick"):
                return self._go(self._expand(href, "e"))
        return None

    def reload(self) -> Fetch | None:
        """Fetches the shown deck again; variables and history stay."""
        if not self.history:
            return None
        self._pending = _Pending("again", self.history[-1], False)
        return _whole(self._pending.asked)

    def back(self) -> Fetch | None:
        """The `prev` task: the card before this one."""
        self._steps = 0
        return self._prev()

    def timer(self) -> Fetch | None:
        """The card's time is over."""
        self._steps = 0
        self._timer_is_over = True
        timer = self._card.find("timer") if self._card is not None else None
        if timer is not None:
            # It stands at zero now: coming back to the card does not start it again (WML 11.7).
            self._set(timer.get("name", ""), "0")
        return self._fire("ontimer")

    def fetched(self, document: str, url: str | None = None) -> Fetch | None:
        """What was asked for has come, in the end from `url`. Raises DeckError if it cannot be shown."""
        pending, self._pending = self._pending, None
        if pending is None:
            return None
        deck = Deck(url or _whole(pending.asked).url, document)
        if pending.is_led and self.deck and not deck.may_be_entered_from(self.deck.url):
            raise DeckError("this deck does not let others lead to it")
        if pending.is_typed:
            self._variables.values.clear()
            self.history.clear()
        if pending.direction == "backward":
            self.history.pop()
        self._assign(pending.assigns)
        # Where it was led to, the deck is there for whoever asks.
        asked = Fetch(url) if url else pending.asked
        return self._show(deck, urldefrag(pending.asked.url)[1], pending.direction, asked)

    def failed(self) -> None:
        """What was asked for has not come: the shown card stays."""
        self._pending = None

    # Cards

    def _show(self, deck: Deck, name: str, direction: str, asked: Fetch) -> Fetch | None:
        card = deck.card(name)
        if card.get("newcontext") == "true" and direction == "forward":
            self._variables.values.clear()
            self.history.clear()
        address = deck.url + (f"#{name}" if name else "")
        if direction == "forward":
            self.history = [*self.history, asked._replace(url=address)][-MOST_HISTORY:]
        self.deck, self._card = deck, card
        self._timer_is_over = False
        self._set_defaults()
        event = {"forward": "onenterforward", "backward": "onenterbackward"}.get(direction)
        task = self._fire(event) if event else None
        # An event led on: there is nothing to lay out.
        if task is None:
            self.pieces()
        return task

    def _set_defaults(self) -> None:
        """Inputs, selections and timers say what their variables are, if nobody has said it yet (WML 11.6.3, 11.7)."""
        assert self._card is not None
        values = self._variables.values
        timer = self._card.find("timer")
        if timer is not None and not values.get(name := timer.get("name", "")):
            self._set(name, self._expand(timer.get("value", "0")))
        for element in self._card.iter("input"):
            name, mask = element.get("name", ""), element.get("format", "*M")
            if (held := values.get(name)) and not _conforms(held, mask):
                del values[name]
            # What is empty is not set (WML 10.3).
            value = self._expand(element.get("value", ""))
            if value and not values.get(name) and _conforms(value, mask):
                self._set(name, value)
        for select in self._card.iter("select"):
            options = list(select.iter("option"))
            chosen = sorted(self._chosen(select))
            self._set(select.get("iname", ""), ";".join(map(str, chosen)) or "0")
            if chosen:
                said = (self._expand(options[n - 1].get("value", "")) for n in chosen)
                self._set(select.get("name", ""), ";".join(value for value in said if value))

    def _chosen(self, select: Element) -> set[int]:
        """Numbers of the chosen options: by iname, ivalue, name, value in this order (WML 11.6.2.1)."""
        options = list(select.iter("option"))
        many = select.get("multiple") == "true"
        values = self._variables.values

        def by_number(text: str) -> list[int]:
            numbers = (_number(n, len(options) + 1) for n in text.split(";"))
            return [n for n in numbers if n is not None and 1 <= n <= len(options)]

        def by_value(text: str) -> list[int]:
            wanted = [part for part in (text.split(";") if many else [text]) if part]
            every = enumerate(options, 1)
            return [n for n, option in every if self._expand(option.get("value", "")) in wanted]

        found: list[int] = []
        # What is empty is not set (WML 10.3).
        if held := values.get(select.get("iname", "")):
            found = by_number(held)
        elif select.get("ivalue"):
            found = by_number(self._expand(select.get("ivalue", "")))
        if not found and (held := values.get(select.get("name", ""))):
            found = by_value(held)
        if not found and select.get("value"):
            found = by_value(self._expand(select.get("value", "")))
        if not many:
            # One is always chosen.
            return {found[0] if found else 1} if options else set()
        return set(found)

    # Tasks

    def _fire(self, event: str) -> Fetch | None:
        """Does what the card, or the template, says about an event."""
        assert self._card is not None
        assert self.deck is not None
        for place in (self._card, self.deck.template):
            if (task := _event(place, event)) is not None:
                return self._perform(task)
            if href := place.get(event):
                return self._go(self._expand(href, "e"))
        return None

    def _perform(self, holder: Element) -> Fetch | None:
        """The task in a `do`, an `onevent` or an `anchor`."""
        for task in holder:
            match task.tag:
                case "go":
                    return self._go_by(task)
                case "prev":
                    return self._prev(self._assignments(task))
                case "refresh":
                    self._assign(self._assignments(task))
                    self._timer_is_over = False
                    self._set_defaults()
                    self.pieces()
                    return None
                case "noop":
                    return None
        return None

    def _assignments(self, task: Element) -> list[tuple[str, str]]:
        """What a task's `setvar`s say, with the values of now (WML 9.4: all at once)."""
        said = ((v.get("name", ""), v.get("value", "")) for v in task.findall("setvar"))
        return [(self._expand(name), self._expand(value)) for name, value in said]

    def _assign(self, assigns: list[tuple[str, str]]) -> None:
        for name, value in assigns:
            self._set(name, value)

    def _go_by(self, task: Element) -> Fetch | None:
        href = self._expand(task.get("href", ""), "e")
        fields = [
            (self._expand(f.get("name", "")), self._expand(f.get("value", ""))) for f in task.findall("postfield")
        ]
        assigns = self._assignments(task)
        method = task.get("method", "get").lower()
        sends, accepted = task.get("sendreferer") == "true", task.get("accept-charset", "")
        afresh = task.get("cache-control") == "no-cache"
        if method == "post":
            body, kind = forms.body(fields, task.get("enctype", forms.URLENCODED), accepted)
            return self._go(href, assigns, "POST", body, kind, sends, afresh)
        if fields:
            base, _, fragment = href.partition("#")
            query = forms.query(fields, accepted)
            href = base + ("&" if "?" in base else "?") + query + (f"#{fragment}" if fragment else "")
        return self._go(href, assigns, sends_referer=sends, afresh=afresh)

    def _go(
        self,
        href: str,
        assigns: list[tuple[str, str]] | None = None,
        method: str = "GET",
        body: bytes | None = None,
        content_type: str | None = None,
        sends_referer: bool = False,
        afresh: bool = False,
    ) -> Fetch | None:
        self._step()
        deck = self.deck
        assert deck is not None
        url = urljoin(deck.url, href)
        base, name = urldefrag(url)
        # Within the deck nothing is fetched (WML 9.5.1), unless something is to be sent, or the deck is wanted anew.
        is_within = base == urldefrag(deck.url)[0] and ("#" in href or not href)
        if is_within and method == "GET" and not afresh:
            self._assign(assigns or [])
            return self._show(deck, name, "forward", self.history[-1])
        self._pending = _Pending("forward", Fetch(url, method, body, content_type), True, assigns or [])
        return Fetch(base, method, body, content_type, deck.url if sends_referer else None, afresh)

    def _prev(self, assigns: list[tuple[str, str]] | None = None) -> Fetch | None:
        self._step()
        if len(self.history) < 2:
            return None
        asked = self.history[-2]
        if self.deck is not None and _whole(asked) == _whole(self.history[-1]):
            self.history.pop()
            self._assign(assigns or [])
            return self._show(self.deck, urldefrag(asked.url)[1], "backward", asked)
        self._pending = _Pending("backward", asked, False, assigns or [])
        return _whole(asked)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise DeckError("the cards lead in circles")

    # Words

    def _set(self, name: str, value: str) -> None:
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            self._variables.values[name] = value

    def _expand(self, text: str, convert: str | None = None) -> str:
        return self._variables.expand(text, convert)

    def _text(self, element: Element) -> str:
        return " ".join(self._expand("".join(element.itertext())).split())

    def _label(self, option: Element) -> str:
        return self._text(option) or self._expand(option.get("title", ""))

    # Layout

    def _number(self, kind: str, element: Element) -> int:
        self._controls.append((kind, element))
        return len(self._controls)

    def _words(self, text: str | None, kind: str = "text") -> Iterator[Piece]:
        if text:
            yield Piece(kind, self._expand(text))

    def _render(self, element: Element, kind: str = "text") -> Iterator[Piece]:
        match element.tag:
            case "p" | "pre" | "fieldset" | "table" | "tr":
                yield Piece("paragraph")
                if title := element.get("title"):
                    yield Piece("emphasis", self._expand(title))
                    yield Piece("break")
                yield from self._inside(element, kind)
                yield Piece("paragraph")
            case "td":
                yield from self._inside(element, kind)
                yield Piece("text", "  ")
            case "br":
                yield Piece("break")
            case "img":
                yield Piece("image", self._expand(element.get("alt", "")))
            case "a" | "anchor":
                label = self._text(element) or self._expand(element.get("title", "")) or _alternatives(element)
                yield Piece("link", label, self._number("link", element))
            case "input":
                name, title = element.get("name", ""), self._expand(element.get("title", ""))
                value = self._variables.values.get(name, "")
                shown = "*" * len(value) if element.get("type") == "password" else value
                label = f"{title}: {shown}" if title else shown
                yield Piece("input", label, self._number("input", element))
            case "select":
                number = self._number("select", element)
                chosen = self._chosen(element)
                labels = [self._label(o) for n, o in enumerate(element.iter("option"), 1) if n in chosen]
                yield Piece("select", ", ".join(labels), number)
            case "em" | "strong" | "b" | "i" | "u" | "big" | "small":
                yield from self._inside(element, "emphasis")
            case "do" | "onevent" | "timer" | "option" | "optgroup" | "go" | "prev" | "refresh" | "noop":
                return
            case _:
                yield from self._inside(element, kind)

    def _inside(self, element: Element, kind: str) -> Iterator[Piece]:
        yield from self._words(element.text, kind)
        for child in element:
            yield from self._render(child, kind)
            yield from self._words(child.tail, kind)

    def _buttons(self) -> Iterator[Piece]:
        """`do` elements of the card, and of the template where the card has none of the name (WML 9.9)."""
        assert self._card is not None
        assert self.deck is not None
        own = list(self._card.iter("do"))
        names = {_name(do) for do in own}
        inherited = [do for do in self.deck.template.iter("do") if _name(do) not in names]
        for do in own + inherited:
            # A task that does nothing takes a button away.
            if do.find("noop") is None:
                label = self._expand(do.get("label", "")) or do.get("type", "?")
                yield Piece("button", label, self._number("button", do))

    def _control(self, number: int) -> tuple[str, Element]:
        found = self.control(number)
        if found is None:
            raise DeckError(f"there is no {number} on this card")
        return found

    def _element(self, number: int, kind: str) -> Element:
        found, element = self._control(number)
        if found != kind:
            raise DeckError(f"{number} is no {kind}")
        return element


@dataclass
class _Pending:
    """What is to happen when the deck has come."""

    direction: str
    #: Its address with the card's name.
    asked: Fetch
    #: Another deck led here: access control applies.
    is_led: bool
    assigns: list[tuple[str, str]] = field(default_factory=list)
    #: The reader typed the address: nothing of before is known to what comes.
    is_typed: bool = False


def _whole(asked: Fetch) -> Fetch:
    """The same without a card's name."""
    return asked._replace(url=urldefrag(asked.url)[0])


def _event(place: Element, event: str) -> Element | None:
    named = (e for e in place.findall("onevent") if e.get("type", "").lower() == event)
    return next(named, None)


def _conforms(text: str, mask: str) -> bool:
    try:
        check_format(mask, text)
    except ValueError:
        return False
    return True


def _number(text: str, most: int) -> int | None:
    """What a deck has where a number belongs: `most` if it is more, None if it is none."""
    if not (text.isascii() and text.isdigit()):
        return None
    # More than 4,300 digits Python reads only if told to.
    digits = text.lstrip("0") or "0"
    return most if len(digits) > len(str(most)) else min(int(digits), most)


def _name(do: Element) -> str:
    return do.get("name") or do.get("type") or ""


def _alternatives(element: Element) -> str:
    return " ".join(image.get("alt", "") for image in element.iter("img")).strip()
