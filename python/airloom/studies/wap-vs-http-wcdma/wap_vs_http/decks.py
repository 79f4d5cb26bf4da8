"""The decks of section 4.1: Fig. 3 with more or less text, to the octet as large as wanted."""

from __future__ import annotations

import random
from functools import cache

#: Sizes of 4.1, octets. 4.1 and U05 also speak of 368 Kbytes: the same content, in the measure of its compressed file.
SIZES = (500, 1000, 1400, 20_000, 100_000, 360_000)

XML = '<?xml version="1.0"?>'
DOCTYPE = '<!DOCTYPE wml PUBLIC "-//WAPFORUM//DTD WML 1.1//EN"\n"http://www.wapforum.org/DTD/wml_1.1.xml">'

#: Fig. 3 up to where it says that the rest is omitted.
_BEGIN = f"""{XML}
{DOCTYPE}
<wml>
<card id="card2" ontimer="./auto500-2.wml#card1">
<timer value="50"/>
<p mode="wrap">
"""
_FIRST = """*Test of {size} Octet Contents*<br/>
***deck1***<br/>
WAP is a protocol that is designed for wireless
environment.<br/>
WAP is a protocol to access to the Internet from
cellular phones, PDAs and so on. <br/>
"""
_END = """</p>
</card>
</wml>
"""

#: The frame of the same page in XHTML 1.0, the standard that the paper cites.
_XHTML_BEGIN = f"""{XML}
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN"
"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">
<html xmlns="http://www.w3.org/1999/xhtml">
<head>
<title>deck1</title>
</head>
<body>
<p>
"""
_XHTML_END = """</p>
</body>
</html>
"""

_WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "for",
    "with",
    "as",
    "on",
    "by",
    "this",
    "from",
    "which",
    "at",
    "are",
    "can",
    "be",
    "was",
    "it",
    "has",
    "an",
    "more",
    "data",
    "mobile",
    "phone",
    "network",
    "service",
    "message",
    "content",
    "page",
    "server",
    "client",
    "gateway",
    "radio",
    "signal",
    "packet",
    "protocol",
    "session",
    "header",
    "browser",
    "screen",
    "user",
    "small",
    "large",
    "fast",
    "slow",
    "first",
    "last",
    "every",
    "other",
    "wireless",
    "internet",
    "weather",
    "news",
    "bank",
    "ticket",
    "music",
    "map",
    "time",
    "date",
    "number",
    "address",
    "name",
    "list",
    "letter",
    "mail",
    "call",
    "voice",
    "text",
    "picture",
    "game",
    "station",
    "train",
    "road",
    "city",
    "market",
    "price",
    "today",
    "tomorrow",
]


@cache
def deck(size: int, *, rich: bool = False) -> bytes:
    """A deck of so many octets; `rich` has words in italics and links, and not the text of Fig. 3.

    Sizes below Fig. 3's own begin have less of it. The words are always the same.
    """
    words = random.Random(1999)
    begin, end = _BEGIN, _END
    text = "" if rich else _FIRST.format(size=size)
    lines = [begin]
    left = size - len(begin) - len(end)
    for line in text.splitlines(keepends=True):
        if len(line) <= left:
            lines.append(line)
            left -= len(line)
    while True:
        line = _rich(words) if rich else _prose(words)
        if len(line) > left:
            break
        lines.append(line)
        left -= len(line)
    # The last line is cut so that the size is right.
    closing = "<br/>\n" if left >= len("x<br/>\n") else ""
    filling = "".join(_prose(words).removesuffix("<br/>\n") + " " for _ in range(3))
    lines.append(filling[: left - len(closing)] + closing)
    made = "".join([*lines, end]).encode()
    assert len(made) == size
    return made


def xhtml(size: int) -> bytes:
    """The page of XHTML 1.0 with the same text and the same line breaks as the deck of `size` octets.

    The timer of the deck is left out: XHTML has none.
    """
    text = deck(size).decode()
    inside = text[text.index('<p mode="wrap">\n') + len('<p mode="wrap">\n') : text.index("</p>")]
    return f"{_XHTML_BEGIN}{inside}{_XHTML_END}".encode()


def _prose(words: random.Random) -> str:
    """A line as long as those of Fig. 3 are: 45 to 60 characters."""
    line = words.choice(_WORDS).capitalize()
    wanted = words.randint(45, 60)
    while len(line) < wanted:
        line += " " + words.choice(_WORDS)
    return line + ".<br/>\n"


def _rich(words: random.Random) -> str:
    """A line with three words, one of them a link and one in italics."""
    first, second, third = (words.choice(_WORDS) for _ in range(3))
    return f'<i>{first}</i> <a href="#{second}">{second}</a> {third}<br/>\n'


#: What a client of 1999 might say of itself when it connects: 185 octets with a line each. It takes decks, their
#: pictures and what Table 2 pushes (GIF, text), and no scripts; Windows 98 is from 3.1.
CONNECT_HEADERS = (
    ("Accept", "application/vnd.wap.wmlc"),
    ("Accept", "image/vnd.wap.wbmp"),
    ("Accept", "image/gif"),
    ("Accept", "text/plain"),
    ("Accept-Charset", "utf-8"),
    ("Accept-Language", "ja"),
    ("User-Agent", "WAP1.1 test client (Win98)"),
)


def header_text() -> bytes:
    """The headers as HTTP would send them."""
    return "".join(f"{name}: {value}\r\n" for name, value in CONNECT_HEADERS).encode()
