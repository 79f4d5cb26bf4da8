"""What forms send."""

from __future__ import annotations

from email import message_from_bytes

import pytest

from airloom.wap import forms
from airloom.wap.context import Context
from tests.wap.test_deck import deck

FIELDS = [("name", "Grüße & mehr"), ('a"b', "two\r\nlines")]


def test_fields_are_one_line() -> None:
    assert forms.body(FIELDS[:1]) == (b"name=Gr%C3%BC%C3%9Fe+%26+mehr", "application/x-www-form-urlencoded")
    latin = "application/x-www-form-urlencoded; charset=iso-8859-1"
    assert forms.body(FIELDS[:1], accepted="us-ascii, iso-8859-1 utf-8") == (b"name=Gr%FC%DFe+%26+mehr", latin)
    assert forms.query([("a", "ü"), ("b", "")]) == "a=%C3%BC&b="
    # Neither a set that is not known nor one that is too small.
    assert forms.query([("a", "ü")], "x-none us-ascii") == "a=%C3%BC"


def test_fields_are_parts() -> None:
    body, kind = forms.body([*FIELDS, ("mark", "airloom-0")], "multipart/form-data")
    message = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    parts = message.get_payload()
    assert isinstance(parts, list)
    values = [part.get_payload(decode=True) for part in parts]  # type: ignore[union-attr]
    assert values == ["Grüße & mehr".encode(), b"two\r\nlines", b"airloom-0"]
    names = [part.get_param("name", header="content-disposition") for part in parts]  # type: ignore[union-attr]
    assert names == ["name", "a%22b", "mark"]


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-32", "iso-8859-1"])
def test_only_values_of_parts_are_in_another_character_set(charset: str) -> None:
    # Two characters of UTF-16 are octets of a boundary.
    fields = [("name", "Grüße"), ("mark", b"-airloom-0".decode("utf-16-le") if charset == "utf-16-le" else "")]
    body, kind = forms.body(fields, "multipart/form-data", charset)
    message = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    parts = message.get_payload()
    assert isinstance(parts, list)
    values = [part.get_payload(decode=True).decode(part.get_content_charset()) for part in parts]  # type: ignore
    assert values == [value for _, value in fields]
    assert body.count(kind.partition("=")[2].encode()) == 3


@pytest.mark.parametrize(
    ("go", "method", "url", "body"),
    [
        ('method="post" href="/f"', "POST", "http://o/f", b"n=%C3%BC"),
        ('method="post" href="/f" accept-charset="iso-8859-1"', "POST", "http://o/f", b"n=%FC"),
        ('href="/f?a=b#card"', "GET", "http://o/f?a=b&n=%C3%BC", None),
    ],
)
def test_a_task_sends_its_postfields(go: str, method: str, url: str, body: bytes | None) -> None:
    context = Context()
    context.open("http://o/")
    button = f'<do type="accept"><go {go}><postfield name="n" value="$v"/></go></do>'
    context.fetched(
        deck(
            f'<card><onevent type="onenterforward"><refresh><setvar name="v" value="ü"/></refresh></onevent>'
            f"{button}<p>x</p></card>"
        )
    )
    (number,) = [piece.number for piece in context.pieces() if piece.kind == "button"]
    fetch = context.follow(number)
    assert fetch is not None
    assert (fetch.method, fetch.url, fetch.body) == (method, url, body)
