import json
from pathlib import Path

from tests.cli.shell import inside

DECK = """<?xml version="1.0"?>
<!DOCTYPE wml PUBLIC "-//WAPFORUM//DTD WML 1.1//EN" "http://www.wapforum.org/DTD/wml_1.1.xml">
<wml><card id="a"><p>Hello, <b>world</b>: $(name)</p></card></wml>
"""


def test_a_deck_is_compiled_and_comes_back(tmp_path: Path) -> None:
    deck, encoded, text = tmp_path / "deck.wml", tmp_path / "deck.wbxml", tmp_path / "again.wml"
    deck.write_text(DECK)
    done = inside("wap", "compile", deck, "-o", encoded)
    assert (done.code, done.out) == (0, "")
    octets = encoded.read_bytes()
    # WBXML 1.1, WML 1.1, UTF-8, no string table, <wml>, <card with attributes
    assert octets.startswith(b"\x01\x04\x6a\x00\x7f\xe7")
    assert inside("wap", "decompile", encoded, "-o", text).code == 0
    assert "<p>Hello, <b>world</b>: $(name)</p>" in text.read_text()
    assert inside("wap", "decompile", encoded).out == text.read_text()
    assert inside("wap", "compile", text, "-o", tmp_path / "again.wbxml").code == 0
    assert (tmp_path / "again.wbxml").read_bytes() == octets


def test_versions_and_numbers_on_request(tmp_path: Path) -> None:
    deck, encoded = tmp_path / "deck.wml", tmp_path / "deck.wbxml"
    deck.write_text(DECK.replace("<card", "<card colour='red'"))
    done = inside("wap", "compile", deck, "-o", encoded, "--wbxml", "1.3", "--json")
    said = json.loads(done.out)
    assert encoded.read_bytes()[0] == 3
    assert said["octets_out"] == encoded.stat().st_size
    assert said["octets_in"] == deck.stat().st_size
    assert said["warnings"] == ["line 3, column 6: the attribute `colour` of element `card` has no token"]
    assert "warning" in done.err
    assert inside("wap", "compile", deck, "--wbxml", "2.0").code == 2


def test_what_is_no_document_says_where(tmp_path: Path) -> None:
    deck = tmp_path / "deck.wml"
    deck.write_text("<wml>\n<card>\n</p></wml>")
    done = inside("wap", "compile", deck, "-o", tmp_path / "x")
    assert done.code == 2
    assert "line 3, column 1" in done.err
    assert not (tmp_path / "x").exists()
    noise = tmp_path / "noise"
    noise.write_bytes(b"\xff\x00")
    assert inside("wap", "decompile", noise).code == 2
    assert "is not there" in inside("wap", "decompile", tmp_path / "nothing").err
