"""What a phone is shown, as WML 1.1."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape, quoteattr

from airloom.wap.mail.letters import Letter

#: Type of the decks.
TYPE = "text/vnd.wap.wml; charset=utf-8"

#: Characters of a letter on a card, and letters on the list: more than that few phones take.
_PAGE, _LIST = 700, 9

_HEAD = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE wml PUBLIC "-//WAPFORUM//DTD WML 1.1//EN" "http://www.wapforum.org/DTD/wml_1.1.xml">
"""


def _said(text: str) -> str:
    """Text without variables, and without what XML has no place for."""
    text = "".join(c if c.isprintable() else " " for c in text)
    return escape(text.replace("$", "$$"))


def _value(text: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in text)
    return quoteattr(text.replace("$", "$$"))


def _deck(title: str, inside: str) -> str:
    return f"{_HEAD}<wml><card title={_value(title)}>{inside}</card></wml>\n"


def _link(href: str, text: str) -> str:
    return f"<a href={quoteattr(href)}>{_said(text)}</a>"


def _lines(lines: Iterable[str]) -> str:
    return "<p>" + "<br/>".join(lines) + "</p>"


def menu(fresh: int, letters: int) -> str:
    """The first card."""
    return _deck("Mail", _lines([_link("/inbox", f"Inbox ({fresh} new of {letters})"), _link("/write", "Write")]))


def inbox(letters: list[Letter], begin: int) -> str:
    """A part of the list, from that letter on."""
    shown = letters[begin : begin + _LIST]
    lines = [
        ("" if letter.is_seen else "* ")
        + _link(f"/letter/{quote(letter.name, safe='')}", letter.subject or "(no subject)")
        for letter in shown
    ]
    if begin + _LIST < len(letters):
        lines.append(_link(f"/inbox?from={begin + _LIST}", "older"))
    return _deck("Inbox", _lines(lines or ["(nothing)"]) + _lines([_link("/write", "Write"), _link("/", "Menu")]))


def letter(one: Letter, begin: int) -> str:
    """A part of a letter, from that character on."""
    part = one.text[begin : begin + _PAGE]
    lines = [*([f"From: {_said(one.sender)}", _said(one.subject), _said(one.date)] if begin == 0 else [])]
    lines += [_said(line) for line in part.splitlines()]
    if begin + _PAGE < len(one.text):
        lines.append(_link(f"/letter/{quote(one.name, safe='')}?from={begin + _PAGE}", "more"))
    subject = one.subject if one.subject.lower().startswith("re:") else f"Re: {one.subject}"
    answer = urlencode({"to": one.sender, "subject": subject})
    return _deck("Letter", _lines(lines) + _lines([_link(f"/write?{answer}", "Answer"), _link("/inbox", "Inbox")]))


def write(to: str = "", subject: str = "") -> str:
    """A form; the phone posts it to /send."""
    fields = (("To", "to", to), ("Subject", "subject", subject), ("Text", "text", ""))
    # An input's own value holds only while its variable has none (WAP-191, 11.6.3): the last form's would stay.
    begun = "".join(f'<setvar name="{name}" value={_value(value)}/>' for _, name, value in fields)
    event = f'<onevent type="onenterforward"><refresh>{begun}</refresh></onevent>'
    inputs = [f'{label}: <input name="{name}"/>' for label, name, _ in fields]
    posted = "".join(f'<postfield name="{name}" value="$({name})"/>' for _, name, _ in fields)
    go = f'<go href="/send" method="post" accept-charset="utf-8">{posted}</go>'
    return _deck("Write", event + f'<do type="accept" label="Send">{go}</do>' + _lines(inputs))


def told(title: str, text: str) -> str:
    """Something short, and the way back."""
    return _deck(title, _lines([_said(text), _link("/", "Menu")]))
