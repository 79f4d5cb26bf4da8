"""Units of measures: `page_load_s` is in seconds."""

from __future__ import annotations

import re

from airloom.errors import UsageError
from airloom.measures import ENDINGS, describe

_DURATIONS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def duration_s(text: str) -> float:
    """A duration as scenario files write it.

    >>> duration_s("1500ms"), duration_s("4s")
    (1.5, 4.0)
    """
    found = re.fullmatch(r"([0-9.]+) ?([a-z]+)", text)
    if found is None or found[2] not in _DURATIONS_S:
        raise UsageError(f"{text!r} is not a duration")
    return float(found[1]) * _DURATIONS_S[found[2]]


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
    return words if words == unit else f"{words} ({unit})"


def key_title(key: str) -> str:
    """A key of a scenario for people: its last parts.

    >>> key_title("links.radio.loss.downlink"), key_title("hosts.mobile.transport")
    ('radio loss downlink', 'mobile transport')
    """
    parts = key.split(".")
    return " ".join(parts[1:] if parts[0] in ("links", "hosts", "run") else parts)
