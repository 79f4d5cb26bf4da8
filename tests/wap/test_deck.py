"""What a browser keeps in mind: no gateway, no terminal."""

from __future__ import annotations

import pytest

from airloom.wap.context import Context, Fetch
from airloom.wap.deck import Deck, DeckError
from airloom.wap.variables import Variables, check_format

URL = "http://o/dir/deck.wml"


def deck(cards: str) -> str:
    return f'<?xml version="1.0"?><wml>{cards}</wml>'


def opened(cards: str, url: str = URL) -> Context:
    context = Context()
    assert context.open(url) == Fetch(url.partition("#")[0])
    assert context.fetched(deck(cards)) is None
    return context


def texts(context: Context, *kinds: str) -> list[str]:
    return [" ".join(p.text.split()) for p in context.pieces() if p.kind in (kinds or ("text",)) and p.text.strip()]


def test_cards_follow_each_other_and_back_leads_through_the_history() -> None:
    context = opened(
        '<card id="one" title="One"><p>1 <a href="#two">on</a> <a href="other.wml#x">away</a></p></card>'
        '<card id="two" title="Two"><p>2 <a href="#nowhere">first</a></p></card>'
    )
    assert (context.title, texts(context, "link")) == ("One", ["on", "away"])
    assert context.follow(1) is None
    assert (context.title, context.url) == ("Two", URL + "#two")
    # A name that no card has is the first card.
    assert context.follow(1) is None
    assert context.title == "One"
    assert context.back() is None
    assert context.title == "Two"
    assert context.back() is None
    assert context.follow(2) == Fetch("http://o/dir/other.wml")
    assert context.fetched(deck('<card/><card id="x" title="Other"/>')) is None
    assert (context.title, context.url) == ("Other", "http://o/dir/other.wml#x")
    assert context.back() == Fetch(URL)
    # It did not come: what is shown stays.
    context.failed()
    assert context.title == "Other"
    assert context.reload() == Fetch("http://o/dir/other.wml")


def test_back_asks_as_it_was_asked_before() -> None:
    field = '<postfield name="k" value="1"/>'
    ask = f'<anchor>send<go href="" method="post">{field}</go></anchor>'
    context = opened(f'<card title="Ask"><p>{ask}</p></card>')
    post = Fetch(URL, "POST", b"k=1", "application/x-www-form-urlencoded")
    assert context.follow(1) == post
    result = deck(
        '<card title="Result"><p><a href="#two">two</a></p></card><card id="two"><p><a href="/">o</a></p></card>'
    )
    assert context.fetched(result) is None
    # Within what came by POST nothing is asked for.
    assert context.follow(1) is None
    assert context.back() is None
    assert context.title == "Result"
    assert context.reload() == post
    assert context.fetched(result) is None
    context.follow(1)
    assert context.follow(1) == Fetch("http://o/")
    assert context.fetched(deck("<card/>")) is None
    assert context.back() == post
    assert context.fetched(result) is None
    assert context.back() is None
    assert context.title == "Result"
    # The deck at the same address that asked is another one.
    assert context.back() == Fetch(URL)
    assert context.fetched(deck('<card title="Ask"/>')) is None
    assert (context.title, context.history) == ("Ask", [Fetch(URL)])


def test_the_fragment_of_the_first_address_names_the_card() -> None:
    assert opened('<card id="a" title="A"/><card id="b" title="B"/>', URL + "#b").title == "B"


def test_variables_are_set_all_at_once_and_escaped_in_addresses() -> None:
    context = opened(
        '<card id="a"><p>$(name) $$5 $a$(b)</p><do type="accept" label="set"><refresh><setvar name="name" value="x y"/>'
        '<setvar name="a" value="$(name)!"/></refresh></do><p><a href="next?q=$name">q</a>'
        '<a href="next?q=$(name:noesc)">n</a></p></card>'
    )
    assert texts(context)[0] == "$5"
    assert context.follow(3) is None
    assert context.variables == {"name": "x y", "a": "!"}
    assert texts(context)[0] == "x y $5 !"
    assert context.follow(1) == Fetch("http://o/dir/next?q=x%20y")
    context.failed()
    assert context.follow(2) == Fetch("http://o/dir/next?q=x y")


def test_a_new_context_forgets_everything() -> None:
    context = opened('<card id="a"><p><a href="#b">on</a></p></card><card id="b" newcontext="true" title="$x"/>')
    context._set("x", "1")
    context.follow(1)
    assert (context.title, context.variables, context.history) == ("", {}, [Fetch(URL + "#b")])
    assert context.back() is None
    assert context.url == URL + "#b"


def test_an_address_that_does_not_come_leaves_the_context_as_it_was() -> None:
    context = opened('<card id="a"><p><a href="#b">on</a></p></card><card id="b"/>')
    context._set("x", "1")
    context.follow(1)
    context.open("http://p/")
    context.failed()
    context.open("http://p/")
    with pytest.raises(DeckError):
        context.fetched("<wml>")
    assert (context.url, context.variables) == (URL + "#b", {"x": "1"})
    assert context.back() is None
    assert context.url == URL
    context.open("http://p/")
    assert context.fetched(deck("<card/>")) is None
    assert (context.url, context.variables) == ("http://p/", {})


def test_what_a_go_sends() -> None:
    go = (
        '<do type="accept" label="{m}"><go href="send" method="{m}" sendreferer="true">'
        '<postfield name="k" value="a&amp;$v"/><postfield name="l" value="2"/></go></do>'
    )
    context = opened(f'<card id="a"><p>x</p>{go.format(m="get")}{go.format(m="post")}</card>')
    context._set("v", "ü")
    body = "k=a%26%C3%BC&l=2"
    assert context.follow(1) == Fetch(f"http://o/dir/send?{body}", referer=URL)
    context.failed()
    kind = "application/x-www-form-urlencoded"
    assert context.follow(2) == Fetch("http://o/dir/send", "POST", body.encode(), kind, URL)
    # Variables of a task are set when the deck has come, not before.
    context = opened('<card id="a"><p><anchor>go<go href="n"><setvar name="v" value="1"/></go></anchor></p></card>')
    assert context.follow(1) is not None
    assert context.variables == {}
    context.fetched(deck('<card title="$v"/>'))
    assert context.title == "1"


def test_a_go_may_want_the_deck_from_the_origin() -> None:
    go = '<anchor>new<go href="{}" cache-control="no-cache"/></anchor>'
    context = opened(f'<card id="a"><p>{go.format("n")}{go.format("#a")}</p></card>')
    assert context.follow(1) == Fetch("http://o/dir/n", afresh=True)
    context.failed()
    assert context.follow(2) == Fetch(URL, afresh=True)


def test_events_of_cards_lead_on_and_in_circles_only_so_far() -> None:
    context = opened('<card id="a" onenterforward="#b"/><card id="b" title="B"><onevent type="onenterbackward">'
                     '<go href="#c"/></onevent></card><card id="c" title="C"/>')  # fmt: skip
    assert context.title == "B"
    context.reload()
    assert context.fetched(deck('<card id="b" title="again"/>')) is None
    context = opened('<card id="a"><p><a href="#b">b</a></p></card><card id="b" title="B"><onevent '
                     'type="onenterforward"><prev/></onevent></card>')  # fmt: skip
    context.follow(1)
    assert context.url == URL
    with pytest.raises(DeckError, match="circles"):
        opened('<card id="a" onenterforward="#b"/><card id="b" onenterforward="#a"/>')


def test_timers_run_once_and_tell_their_variable() -> None:
    cards = '<card id="a" ontimer="#b"><timer name="t" value="25"/></card><card id="b" title="B"/>'
    context = opened(cards)
    assert context.timer_s == 2.5
    assert context.variables == {"t": "25"}
    assert context.timer() is None
    assert context.title == "B"
    assert context.timer_s is None
    assert context.back() is None
    assert context.timer_s is None, "it stands at zero"
    template = '<template ontimer="#b"/><card id="a"><timer value="1"/></card><card id="b" title="B"/>'
    context = opened(template)
    context.timer()
    assert context.title == "B"
    assert opened('<card id="a"><timer value="0"/></card>').timer_s is None


@pytest.mark.parametrize("event", ["", '<onevent type="ontimer"><noop/></onevent>'])
def test_a_timer_without_a_name_runs_once_too(event: str) -> None:
    context = opened(f'<card id="a">{event}<timer value="1"/><p>x</p></card>')
    assert context.timer_s == 0.1
    assert context.timer() is None
    assert context.timer_s is None
    # The card is shown again.
    assert context.reload() is not None
    assert context.fetched(deck('<card id="a"><timer value="1"/></card>')) is None
    assert context.timer_s == 0.1


def test_a_timer_whose_card_does_not_come_asks_once() -> None:
    context = opened('<card id="a" ontimer="/gone"><timer value="1"/></card>')
    assert context.timer() is not None
    context.failed()
    assert context.timer_s is None


def test_a_refresh_starts_the_timer_again() -> None:
    refresh = '<onevent type="ontimer"><refresh><setvar name="x" value="1"/></refresh></onevent>'
    context = opened(f'<card id="a">{refresh}<timer value="1"/></card>')
    assert context.timer() is None
    assert (context.timer_s, context.variables["x"]) == (0.1, "1")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0025", 2.5),
        ("9" * 9, 1e7),
        ("9" * 400, 1e7),
        ("9" * 5_000, 1e7),
        ("0" * 5_000, None),
        ("-1", None),
        ("²", None),
    ],
)
def test_a_timer_may_be_any_number(value: str, seconds: float | None) -> None:
    assert opened(f'<card id="a"><timer value="{value}"/></card>').timer_s == seconds


def test_numbers_of_any_length_spoil_no_card() -> None:
    many = "9" * 5_000
    context = opened(
        f'<card id="a"><p><select iname="i" ivalue="{many};2"><option>A</option><option>B</option></select>'
        f'<input name="n" maxlength="{many}"/><input name="m" maxlength="²"/></p></card>'
    )
    assert texts(context, "select") == ["B"]
    context.enter(2, "text")
    context.enter(3, "text")
    assert context.variables == {"i": "2", "n": "text", "m": "text"}


def test_templates_give_buttons_that_cards_may_shadow() -> None:
    context = opened(
        '<template><do type="options" name="up" label="Up"><go href="/"/></do>'
        '<do type="prev" label="Back"><prev/></do></template>'
        '<card id="a"><do type="x" name="up" label="Mine"><go href="#b"/></do><p><a href="#b">b</a></p></card>'
        '<card id="b"><do type="prev"><noop/></do><p>b</p></card>'
    )
    assert texts(context, "button") == ["Mine", "Back"]
    context.follow(1)
    assert texts(context, "button") == ["Up"]
    assert context.follow(1) == Fetch("http://o/")


def test_inputs_have_formats_lengths_and_first_values() -> None:
    context = opened(
        '<card id="a"><p><input name="n" format="NN" title="Number"/><input name="d" value="x" maxlength="3"/>'
        '<input name="p" type="password" value="abc" emptyok="true" format="A*a"/></p></card>'
    )
    assert texts(context, "input") == ["Number:", "x"]
    with pytest.raises(ValueError, match="NN"):
        context.enter(1, "1x")
    context.enter(1, "42")
    with pytest.raises(ValueError, match="at most 3"):
        context.enter(2, "abcd")
    context.enter(3, "")
    context.enter(3, "Abc")
    assert texts(context, "input") == ["Number: 42", "x", "***"]
    assert context.variables == {"n": "42", "d": "x", "p": "Abc"}


def test_variables_that_are_empty_or_against_the_format_are_not_set() -> None:
    context = opened(
        '<card id="a"><p><a href="#b">b</a></p></card><card id="b"><timer name="t" value="25"/><p>'
        '<input name="n" format="NN" value="42"/><input name="m" value="x"/><input name="o" format="NN"/>'
        '<select name="s" iname="i" ivalue="2"><option value="a">A</option><option value="b">B</option></select>'
        "</p></card>"
    )
    for name, value in {"n": "1x", "m": "", "o": "abc", "i": "", "t": ""}.items():
        context._set(name, value)
    assert context.follow(1) is None
    assert context.variables == {"n": "42", "m": "x", "i": "2", "s": "b", "t": "25"}


def test_selections_know_their_values_and_indices() -> None:
    options = '<option value="a">A</option><option value="b" onpick="#b">B</option><option value="c">C</option>'
    context = opened(
        f'<card id="a"><p><select name="one" iname="i" ivalue="3">{options}</select>'
        f'<select name="many" multiple="true" value="a;c">{options}</select></p></card><card id="b" title="B"/>'
    )
    assert texts(context, "select") == ["C", "A, C"]
    assert context.variables == {"one": "c", "i": "3", "many": "a;c"}
    assert context.options(1) == [("A", False), ("B", False), ("C", True)]
    assert context.allows_many(2)
    assert not context.allows_many(1)
    with pytest.raises(ValueError, match="one of them"):
        context.choose(1, [1, 2])
    with pytest.raises(ValueError, match="options are 1 to 3"):
        context.choose(1, [4])
    assert context.choose(2, [1, 3]) is None
    assert context.choose(1, [1]) is None
    assert context.variables["one"] == "a"
    context.choose(1, [2])
    assert (context.title, context.variables["one"], context.variables["i"]) == ("B", "b", "2")


def test_an_option_of_one_choice_is_picked_when_it_is_selected_alone() -> None:
    options = '<option onpick="#b">A</option><option>B</option>'
    cards = '<card id="a" title="A"><p><select name="x" {}>' + options + '</select></p></card><card id="b" title="B"/>'
    context = opened(cards.format(""))
    # It gives way to the other one.
    assert context.choose(1, [2]) is None
    assert context.title == "A"
    context = opened(cards.format(""))
    # It was chosen by itself already.
    assert context.choose(1, [1]) is None
    assert context.title == "B"
    # Of several, each that changes is picked.
    context = opened(cards.format('multiple="true" ivalue="1"'))
    assert context.choose(1, [1]) is None
    assert context.title == "A"
    assert context.choose(1, [2]) is None
    assert context.title == "B"


def test_who_may_lead_to_a_deck() -> None:
    def guarded(access: str) -> Deck:
        return Deck("http://www.o.org/a/deck.wml", deck(f"<head><access {access}/></head><card/>"))

    assert guarded('domain="o.org"').may_be_entered_from("http://x.o.org/anything")
    assert not guarded('domain="o.org"').may_be_entered_from("http://xo.org/")
    assert guarded('path="/b"').may_be_entered_from("http://www.o.org:8080/b/c.wml")
    assert guarded('path="/b"').may_be_entered_from("http://www.o.org/b?x=1/2")
    assert not guarded('path="/b"').may_be_entered_from("http://www.o.org/bc/d.wml")
    context = opened('<card id="a"><p><a href="http://p/closed">x</a></p></card>')
    context.follow(1)
    with pytest.raises(DeckError, match="does not let"):
        context.fetched(deck('<head><access domain="q"/></head><card/>'))
    assert context.url == URL


@pytest.mark.parametrize("document", ["", "<wml>", "<si/>", "<wml></wml>", "plain"])
def test_what_is_no_deck_is_refused(document: str) -> None:
    context = Context()
    context.open(URL)
    with pytest.raises(DeckError):
        context.fetched(document)


@pytest.mark.parametrize(
    ("mask", "good", "bad"),
    [
        ("*N", ["", "123"], ["12a"]),
        ("NNN\\-3N", ["123-", "123-456"], ["12-3", "123-4567"]),
        ("A*a", ["X", "Xyz-"], ["xyz", "X1"]),
        ("*M", ["anything 1", ""], []),
        ("broken5", ["anything"], []),
    ],
)
def test_formats(mask: str, good: list[str], bad: list[str]) -> None:
    for text in good:
        check_format(mask, text)
    for text in bad:
        with pytest.raises(ValueError, match="does not have the form"):
            check_format(mask, text)


def test_expansion() -> None:
    variables = Variables({"a": "1 2", "_b": "x/y"})
    assert variables.expand("$a $(_b) $(a:e) $(a:unesc) $none$$ $") == "1 2 x/y 1%202 1 2 $ $"
    assert variables.expand("$a", "e") == "1%202"
    variables = Variables({"a": "Gr%C3%BC%DFe%20%24%"})
    assert variables.expand("$(a:unesc) $(a:U) $(a:n)") == "Grü�e $% Grü�e $% Gr%C3%BC%DFe%20%24%"
