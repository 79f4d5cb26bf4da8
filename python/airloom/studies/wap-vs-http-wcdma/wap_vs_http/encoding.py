"""Section 4: what the encodings save and what they cost. Times come from `measure_encoding.py`."""

from __future__ import annotations

import gzip
import re
from functools import cache, partial
from typing import Any

import numpy as np

from airloom._core import wap_compile, wap_encode_headers
from airloom.study import Data, Evidence, Numbers, StudyTable, at_default, exact, pair, value
from airloom.study.rules import Setting

from .decks import CONNECT_HEADERS, DOCTYPE, SIZES, XML, deck, header_text
from .http_side import SIZES as PAGES
from .http_side import response

#: The paper's time of a deck of 1400 octets, s.
PAPER_DECK_S = 0.130

#: What the paper says is saved, octets: 1400 to 1117, 185 to 50.
PAPER_DECK_SAVED, PAPER_HEADERS_SAVED = 283, 135

#: Speeds of the paper, bit/s.
SLOW, FAST = 9_600, 384_000


@cache
def encoded(size: int, *, rich: bool = False, string_table: bool = False, version: str | None = None) -> bytes:
    """A deck in WBXML. Without the string table every string stands in place."""
    return wap_compile(deck(size, rich=rich), None, version, string_table=string_table)[0]


@cache
def zipped(size: int, *, rich: bool = False) -> int:
    """Octets of a deck by gzip, with its usual effort."""
    return len(gzip.compress(deck(size, rich=rich), 6, mtime=0))


def _multi_byte(octets: bytes, at: int) -> int:
    """Where a number of seven bits an octet ends."""
    while octets[at] & 0x80:
        at += 1
    return at + 1


def header_octets(octets: bytes) -> int:
    """Octets of version, public identifier and character set of a WBXML document."""
    return _multi_byte(octets, _multi_byte(octets, 1))


def worsens(*, string_table: bool) -> Any:
    """U02: does the encoded share grow with the size?"""

    def compute(_: Data) -> Evidence:
        from scipy import stats

        ratios = [len(encoded(size, string_table=string_table)) / size for size in SIZES]
        return exact(float(stats.spearmanr(SIZES, ratios).statistic), "")

    return at_default(compute)


def gzip_over_wbxml(*sizes: int) -> Any:
    """U03: gzip against WBXML with every string in place."""
    return at_default(lambda _: exact(max(zipped(size) / len(encoded(size)) for size in sizes), ""))


def on_the_air(octets: int, speed: int) -> Any:
    """U07, U10: the paper's arithmetic: how long octets take, ms."""
    return at_default(lambda _: exact(octets * 8 / speed * 1e3, "ms"))


def break_even(octets: int, encoding_s: float) -> Any:
    """U26: the paper's arithmetic: the speed at which the encoding time is what its octets take on the air."""
    return at_default(lambda _: exact(octets * 8 / encoding_s / 1e3, "kbit/s"))


def deck_is_fig_3(_: Data) -> Evidence:
    """U33: the elements of Fig. 3, and nothing but the text between differs from size to size."""
    wanted = ("<card id=", 'ontimer="', '<timer value="50"/>', '<p mode="wrap">', "<br/>")
    texts = [deck(size).decode() for size in SIZES]
    begins = {text[: text.index('<p mode="wrap">')] for text in texts}
    tags = {tag for text in texts for tag in re.findall(r"</?[a-z]+", text)}
    known = {"<wml", "</wml", "<card", "</card", "<timer", "<p", "</p", "<br"}
    return Setting(all(word in text for word in wanted for text in texts) and len(begins) == 1 and tags == known)


def versions_alike(size: int, data: Data) -> Evidence:
    """U30: response times of a deck for clients of WAP 1.1 and of a later version."""
    data.at_default_only()
    later, earlier = (response(data, "versions", size=size, version=version) for version in ("1.3", "1.1"))
    return pair(later, earlier, "s")


# ---- measured ------------------------------------------------------------------------------------------------------


def seconds(data: Data, name: str) -> Numbers:
    """What something took on this machine, one number a batch."""
    return np.asarray(data.program("encoding")["seconds"][name], dtype=np.float64)


def growth(data: Data) -> Evidence:
    """U04: exponent of time over size from 1400 octets on, one number a batch."""
    sizes = [size for size in SIZES if size >= 1400]
    times = np.log([seconds(data, f"prose {size} encode") for size in sizes])
    return value([np.polyfit(np.log(sizes), batch, 1)[0] for batch in times.T], "")


def parsing_share(size: int, data: Data, factor: float = 100) -> Evidence:
    """U05, U27: share of the time that is parsing."""
    share = seconds(data, f"prose {size} parse") / seconds(data, f"prose {size} encode")
    return value(share * factor, "%" if factor == 100 else "")


def largest_ms(data: Data) -> Evidence:
    """U04: 360 Kbytes, parsing included."""
    return value(seconds(data, "prose 360000 encode") * 1e3, "ms")


COMPUTE = {
    "U01.text": at_default(lambda _: exact(len(XML) + len(DOCTYPE), "octets")),
    "U01.encoded": at_default(lambda _: exact(header_octets(encoded(1400)), "octets")),
    "U02.in-place": worsens(string_table=False),
    "U02.table": worsens(string_table=True),
    "U03.large": gzip_over_wbxml(20_000, 100_000, 360_000),
    "U03.small": gzip_over_wbxml(500),
    "U04.growth": growth,
    "U04.time": largest_ms,
    "U05.small": partial(parsing_share, 500),
    "U05.large": partial(parsing_share, 360_000),
    "U06.in-place": at_default(lambda _: exact(len(encoded(1400)), "octets")),
    "U06.table": at_default(lambda _: exact(len(encoded(1400, string_table=True)), "octets")),
    "U07.fast": on_the_air(PAPER_DECK_SAVED, FAST),
    "U07.slow": on_the_air(PAPER_DECK_SAVED, SLOW),
    "U09.size": at_default(lambda _: exact(len(wap_encode_headers(list(CONNECT_HEADERS))), "octets")),
    "U09.text": at_default(lambda _: exact(len(header_text()), "octets")),
    "U09.time": lambda data: value(seconds(data, "headers") * 1e3, "ms"),
    "U10.fast": on_the_air(PAPER_HEADERS_SAVED, FAST),
    "U10.slow": on_the_air(PAPER_HEADERS_SAVED, SLOW),
    "U26.arithmetic": break_even(PAPER_DECK_SAVED, PAPER_DECK_S),
    "U27.small": partial(parsing_share, 500, factor=1),
    "U27.large": partial(parsing_share, 360_000, factor=1),
    **{f"U30.{size}": partial(versions_alike, size) for size in PAGES},
    "U33": at_default(deck_is_fig_3),
}


# ---- tables --------------------------------------------------------------------------------------------------------


def sizes_table(_: Data) -> tuple[list[str], list[list[Any]]]:
    """Fig. 4's bars: sizes by every encoding."""
    rows = []
    for rich in (False, True):
        for size in SIZES:
            plain, table = len(encoded(size, rich=rich)), len(encoded(size, rich=rich, string_table=True))
            zip_ = zipped(size, rich=rich)
            shares = [f"{n} ({n / size:.0%})" for n in (plain, table, zip_)]
            rows.append(["links and italics" if rich else "text", size, *shares])
    return ["deck", "octets", "WBXML, strings in place", "WBXML, string table", "gzip"], rows


def header_table(_: Data) -> tuple[list[str], list[list[Any]]]:
    """The headers of the connect, our choice."""
    rows: list[list[Any]] = []
    for name, text in CONNECT_HEADERS:
        octets = wap_encode_headers([(name, text)])
        rows.append([f"{name}: {text}", len(f"{name}: {text}\r\n"), len(octets), octets.hex(" ")])
    whole = len(wap_encode_headers(list(CONNECT_HEADERS)))
    return ["header", "octets as text", "encoded", "as"], [*rows, ["all", len(header_text()), whole, ""]]


def times_table(data: Data) -> tuple[list[str], list[list[Any]]]:
    """Fig. 4's lines: times on this machine, and the break-even speed."""
    rows = []
    for kind in ("prose", "rich"):
        for size in SIZES:
            took, parse = (float(np.median(seconds(data, f"{kind} {size} {what}"))) for what in ("encode", "parse"))
            saved = size - len(encoded(size, rich=kind == "rich", string_table=True))
            zip_ = float(np.median(seconds(data, f"{kind} {size} gzip")))
            even = saved * 8 / took / 1e6
            rows.append([kind, size, took * 1e6, f"{parse / took:.0%}", zip_ * 1e6, f"{even:.3g} Mbit/s"])
    return ["deck", "octets", "encoding (us)", "of that parsing", "gzip (us)", "encoding pays below"], rows


TABLES = {
    "sizes": StudyTable("4.1: decks of the paper's sizes, encoded", sizes_table),
    "headers": StudyTable(
        "4.2: the headers of a connect, as a client of 1999 might have had them (our choice)", header_table
    ),
    "times": StudyTable(
        "4.1: what encoding takes on this machine (median of 30 batches), and the speed below which it pays",
        times_table,
    ),
}
