"""Units of measures: `page_load_s` is in seconds."""

from __future__ import annotations

from airloom.measures import ENDINGS, describe


def unit_of(measure: str) -> str:
    """The unit of a measure, from the catalogue or else from its name; what has no ending is a count.

    >>> unit_of("mobile.goodput_bit_s"), unit_of("rlc_resent"), unit_of("radio.downlink.mcs_mean")
    ('bit/s', 'count', 'MCS')
    """
    return describe(measure).unit


def titled(measure: str) -> str:
    """A measure for people: its words, and its unit in brackets.

    >>> titled("page_load_s")
    'page load (s)'
    """
    unit = unit_of(measure)
    ending = next((e for e, u in ENDINGS if u == unit and measure.endswith(e)), "")
    words = measure.removesuffix(ending).replace("_", " ")
    return f"{words} ({unit})"
