"""The browser's screen, against a gateway that is a table."""

from __future__ import annotations

from typing import Any

import pytest

from airloom._core import wap_compile
from airloom.cli.wap.browse import _Wap
from airloom.wap import Headers, Reply, WapError
from airloom.wap.browser import Browser, document
from tests.wap.test_deck import deck

DECKS = {
    "http://o/": deck(
        '<card id="menu" title="Menu"><p>Hello <b>$name</b><br/><a href="#form">Form</a> '
        '<a href="/gone">Gone</a></p></card>'
        '<card id="form" title="Form"><p>Name: <input name="name" title="Name"/> '
        '<select name="kind"><option value="a">Alpha</option><option value="b">Beta</option></select></p>'
        '<do type="accept" label="Send"><go href="/sent" method="post"><postfield name="n" value="$name"/>'
        '<postfield name="k" value="$kind"/></go></do></card>'
    ),
    "http://o/sent": deck('<card title="Thanks" ontimer="/"><timer value="10"/><p>Thanks, $name</p></card>'),
}


class Table:
    """Compiles what it knows, as gateways do."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes | None]] = []

    def request(
        self, method: str, url: str, headers: Headers | None, body: bytes | None, content_type: str | None
    ) -> Reply:
        self.asked.append((method, url, body))
        if url not in DECKS:
            return Reply(404, "text/plain", [], b"")
        return Reply(200, "application/vnd.wap.wmlc", [], wap_compile(DECKS[url].encode())[0])


def session(*lines: str | None) -> tuple[Table, list[str], int]:
    table, said = Table(), iter(lines)
    shown: list[str] = []

    def ask(prompt: str, seconds: float | None) -> str | None:
        line = next(said)
        assert line is not None or seconds == 1.0
        return line

    code = Browser(table, ask, shown.append).browse("http://o/")
    return table, shown, code


def test_a_session_is_read_screen_by_screen() -> None:
    table, shown, code = session("1", "1 Ann", "2", "2", "3", None, "q")
    assert code == 0
    assert shown[0].splitlines() == ["== Menu " + "=" * 64, "Hello", "[1]Form [2]Gone"]
    assert shown[1].splitlines()[1:] == ["Name: [1]<Name: > [2](Alpha)", "", "[3] Send"]
    assert "[1]<Name: Ann> [2](Alpha)" in shown[2]
    assert shown[3].splitlines() == ["  1 * Alpha", "  2   Beta"]
    assert "[2](Beta)" in shown[4]
    assert shown[5].splitlines() == ["== Thanks " + "=" * 62, "Thanks, Ann"]
    # The timer led back, and the variable is still there.
    assert "Hello *Ann*" in shown[6]
    assert [asked[:2] for asked in table.asked] == [
        ("GET", "http://o/"),
        ("POST", "http://o/sent"),
        ("GET", "http://o/"),
    ]
    assert table.asked[1][2] == b"n=Ann&k=b"


def test_what_goes_wrong_is_said_and_the_card_stays() -> None:
    _, shown, code = session("2", "9", "x", "v", "s", "1", "2 z", "b", "r", "g o/nothing", "q")
    assert code == 0
    assert "! http://o/gone: status 404" in shown
    assert "! there is no 9 on this card" in shown
    assert "! give the numbers of options" in shown
    assert any(text.startswith("NUMBER follows") for text in shown)
    assert "  no variables" in shown
    assert any("<card" in text for text in shown)
    assert "! http://o/nothing: status 404" in shown
    assert shown[-1].startswith("== Menu")


@pytest.mark.parametrize(("told", "asked"), [("http://p/dir/", "http://p/dir/next"), ("/dir/", "http://o/next")])
def test_links_begin_where_the_gateway_was_led_to(told: str, asked: str) -> None:
    class Led(Table):
        def request(
            self, method: str, url: str, headers: Headers | None, body: bytes | None, content_type: str | None
        ) -> Reply:
            self.asked.append((method, url, body))
            octets = wap_compile(deck('<card><p><a href="next">on</a></p></card>').encode())[0]
            return Reply(200, "application/vnd.wap.wmlc", [("Content-Location", told)], octets)

    table, said = Led(), iter(["1", "q"])
    assert Browser(table, lambda *_: next(said), lambda _: None).browse("http://o/") == 0
    assert [url for _, url, _ in table.asked] == ["http://o/", asked]


def test_a_deck_as_text_is_in_the_set_that_its_type_says() -> None:
    octets = deck("<card><p>\u043f\u0440</p></card>").encode("windows-1251")
    assert "\u043f\u0440" in document(Reply(200, "text/vnd.wap.wml; charset=windows-1251", [], octets))


def test_what_is_wanted_afresh_is_asked_for_so() -> None:
    said: list[Headers | None] = []

    class Listening(Table):
        def request(
            self, method: str, url: str, headers: Headers | None, body: bytes | None, content_type: str | None
        ) -> Reply:
            said.append(headers)
            text = deck('<card><p><anchor>new<go href="/" cache-control="no-cache"/></anchor></p></card>')
            return Reply(200, "application/vnd.wap.wmlc", [], wap_compile(text.encode())[0])

    lines = iter(["1", "q"])
    Browser(Listening(), lambda *_: next(lines), lambda _: None).browse("http://o/")
    assert said == [[], [("Cache-Control", "no-cache")]]


def test_nothing_to_show_is_a_failure() -> None:
    shown: list[str] = []
    assert Browser(Table(), lambda *_: "q", shown.append).browse("http://o/none") == 1
    assert shown == ["! http://o/none: status 404"]


def test_where_the_gateway_has_ended_the_session_another_one_is_opened() -> None:
    asked: list[tuple[int, str]] = []
    opened = 0

    class Once:
        """Its session is over after one request."""

        def __init__(self) -> None:
            nonlocal opened
            opened += 1
            self._number, self._is_over = opened, False

        def request(self, method: str, url: str, *_: object) -> Reply:
            asked.append((self._number, method))
            if self._is_over:
                error = WapError("over")
                error.reason = "disconnected"
                raise error
            self._is_over = True
            return Reply(200, "text/plain", [], b"")

        def close(self) -> None: ...

    connect: Any = Once
    with _Wap(connect, 1.0) as wap:
        for _ in range(2):
            assert wap.request("GET", "http://o/", None, None, None).status == 200
        # What may have been carried out is not asked for again.
        with pytest.raises(WapError, match="over"):
            wap.request("POST", "http://o/", None, b"", None)
        assert wap.request("POST", "http://o/", None, b"", None).status == 200
    assert asked == [(1, "GET"), (1, "GET"), (2, "GET"), (2, "POST"), (3, "POST")]
