"""Every token of every version of WML means to Wireshark what it means here."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from airloom._core import wap_compile, wap_decompile
from tests.wireshark import frames

PUBLIC = '<!DOCTYPE wml PUBLIC "-//WAPFORUM//DTD WML 1.{}//EN" "http://www.wapforum.org/DTD/wml.dtd">'

#: What each version added: elements; attributes without and with (the beginning of) a value.
ELEMENTS = {
    1: """a td tr table p postfield anchor access b big br card do em fieldset go head i img input meta noop prev
        onevent optgroup option refresh select small strong template timer u setvar wml""",
    2: "pre",
    3: "",
}
ATTRIBUTES = {
    1: """accept-charset align alt class columns content domain format height href hspace http-equiv id iname ivalue
        label localsrc maxlength name onenterbackward onenterforward onpick ontimer path scheme size src tabindex title
        type value vspace width xml:lang""",
    2: "accesskey enctype",
    3: "",
}
VALUED = {
    1: """align=bottom align=center align=left align=middle align=right align=top
        content=application/vnd.wap.wmlc;charset= emptyok=false emptyok=true forua=false forua=true href=http://
        href=https:// http-equiv=Content-Type http-equiv=Expires method=get method=post mode=nowrap mode=wrap
        multiple=false multiple=true newcontext=false newcontext=true optional=false optional=true ordered=false
        ordered=true sendreferer=false sendreferer=true src=http:// src=https:// type=accept type=delete type=help
        type=onenterbackward type=onenterforward type=onpick type=ontimer type=options type=password type=prev
        type=reset type=text type=vnd.""",
    2: "enctype=application/x-www-form-urlencoded enctype=multipart/form-data",
    3: "xml:space=preserve xml:space=default cache-control=no-cache",
}
#: Parts of values, in all versions.
PARTS = """.com/ .edu/ .net/ .org/ accept bottom clear delete help http:// http://www. https:// https://www. middle
    nowrap onpick onenterbackward onenterforward ontimer options password reset text top unknown wrap www."""

VERSIONS = [1, 2, 3]


def of(table: dict[int, str], versions: Iterable[int]) -> list[str]:
    return [word for version in versions for word in table[version].split()]


def deck(minor: int) -> str:
    """A deck of a version with everything in it that any version has."""
    pairs = [(name, "+") for name in of(ATTRIBUTES, VERSIONS)]
    pairs += [(name, value) for name, _, value in (word.partition("=") for word in of(VALUED, VERSIONS))]
    pairs += [("title", part) for part in PARTS.split()]
    cards = "".join(f'<card {name}="{value}"/>' for name, value in pairs)
    inside = "".join(f"<{name}/>" for name in of(ELEMENTS, VERSIONS) if name not in ("wml", "card"))
    return PUBLIC.format(minor) + f"<wml>{cards}{inside}</wml>"


def tokens(octets: bytes, folder: Path) -> tuple[set[str], set[str]]:
    """What Wireshark takes for tokens and for literals in a deck that answers a request without a session."""
    reply = bytes([1, 0x04, 0x20, 1, 0x94]) + octets
    (folder / "reply.txt").write_text("0000 " + " ".join(f"{octet:02x}" for octet in reply) + "\n")
    made = ["text2pcap", "-q", "-u", "9200,50000", str(folder / "reply.txt"), str(folder / "reply.pcap")]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    said = frames(folder / "reply.pcap", "", "-V")
    assert not any("Malformed" in line for line in said)
    known: set[str] = set()
    literal: set[str] = set()
    for line in said:
        if found := re.search(r"\| +(Known (?:Tag|attr\w+) 0x..|LITERAL\w*) .*\| +(?:<(\S+)|(\S+))", line):
            kind, tag, rest = found.groups()
            (literal if kind.startswith("LITERAL") else known).add(f"<{tag.rstrip('/>')}" if tag else rest)
    return known, literal


@pytest.mark.parametrize("minor", VERSIONS)
def test_every_token_of_a_version_is_written_and_no_later_one(minor: int, tmp_path: Path) -> None:
    octets = wap_compile(deck(minor).encode())[0]
    known, literal = tokens(octets, tmp_path)
    so_far = range(1, minor + 1)
    expected = {f"<{name}" for name in of(ELEMENTS, so_far)} | {f"{name}=" for name in of(ATTRIBUTES, so_far)}
    expected |= {"{}='{}'".format(*pair.split("=", 1)) for pair in of(VALUED, so_far)}
    assert known == expected | {f"'{part}'" for part in PARTS.split()}
    later = range(minor + 1, 4)
    names = of(ELEMENTS, later) + of(ATTRIBUTES, later) + [pair.partition("=")[0] for pair in of(VALUED, later)]
    assert literal == {f"<{name}" for name in names}


@pytest.mark.parametrize("minor", VERSIONS)
def test_a_deck_with_everything_comes_back(minor: int) -> None:
    again = wap_decompile(wap_compile(deck(minor).encode())[0])
    assert f"DTD WML 1.{minor}//EN" in again
    assert ElementTree.canonicalize(again, strip_text=True) == ElementTree.canonicalize(deck(minor))
