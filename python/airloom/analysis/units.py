"""Units, from the names of measures: `page_load_s` is in seconds."""

from __future__ import annotations

#: Longer endings first: `goodput_bit_s` is not in seconds.
_ENDINGS = (
    ("_kbit_s", "kbit/s"),
    ("_bit_s", "bit/s"),
    ("_bytes", "octets"),
    ("_share", "share"),
    ("_ratio", "ratio"),
    ("_ns", "ns"),
    ("_us", "us"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_j", "J"),
)

_WHOLE = {"bytes": "octets", "octets": "octets", "valid": "0 or 1"}


def unit_of(measure: str) -> str:
    """The unit of a measure; what has no ending is a count.

    >>> unit_of("mobile.goodput_bit_s"), unit_of("rlc_resent")
    ('bit/s', 'count')
    """
    name = measure.rsplit(".", 1)[-1]
    if name in _WHOLE:
        return _WHOLE[name]
    return next((unit for ending, unit in _ENDINGS if name.endswith(ending)), "count")


def titled(measure: str) -> str:
    """A measure for people: its words, and its unit in brackets.

    >>> titled("page_load_s")
    'page load (s)'
    """
    unit = unit_of(measure)
    ending = next((e for e, u in _ENDINGS if u == unit and measure.endswith(e)), "")
    words = measure.removesuffix(ending).replace("_", " ")
    return f"{words} ({unit})"
