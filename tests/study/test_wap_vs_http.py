"""What the study `wap-vs-http-wcdma` reads from records of real programs."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import polars as pl
import pytest

from airloom.study.folder import open_study

SECOND = 1_000_000_000


class Seen(NamedTuple):
    """A packet where the mobile meets the radio: when in seconds, which way, how long, its sequence number."""

    t: float
    dir: str
    len: int
    seq: int


def responses(*packets: Seen) -> list[float]:
    """The response times of these packets, s."""
    common = {"point": "mobile.radio.ip", "proto": "tcp", "flow": 1}
    rows = [
        {**common, **seen._asdict(), "t_ns": round(seen.t * SECOND), "event": "rx" if seen.dir == "dl" else "tx"}
        for seen in packets
    ]
    run: Any = SimpleNamespace(packets=pl.DataFrame(rows).drop("t"))
    read = open_study("wap-vs-http-wcdma").module.http_side.real_responses
    return [took / SECOND for took in read(run)]


#: The connection, and the first object that warms it up: asked for at 5 s, there at 6 s.
OPENED = (Seen(0.0, "ul", 60, 0), Seen(0.2, "dl", 60, 0), Seen(0.3, "ul", 150, 1))
FIRST = (Seen(5.0, "ul", 150, 99), Seen(5.5, "dl", 1500, 1), Seen(6.0, "dl", 900, 1449))


def test_a_response_lasts_from_its_request_to_its_last_octets() -> None:
    second = (Seen(11.0, "ul", 150, 197), Seen(11.5, "dl", 1500, 2297))
    assert responses(*OPENED, *FIRST, *second) == pytest.approx([1.0, 0.5])


def test_a_request_sent_again_and_acknowledgements_begin_no_response() -> None:
    again = (Seen(5.2, "ul", 150, 99), Seen(6.1, "ul", 52, 197), Seen(10.8, "ul", 52, 197))
    assert responses(*OPENED, *sorted(FIRST + again)) == pytest.approx([1.0])


def test_what_the_server_repeats_into_the_pause_counts_neither_as_octets_nor_against_the_next_request() -> None:
    repeated = (Seen(9.9, "dl", 900, 1449), Seen(9.9, "ul", 64, 197))
    second = (Seen(11.0, "ul", 150, 197), Seen(11.5, "dl", 1500, 2297))
    assert responses(*OPENED, *FIRST, *repeated, *second) == pytest.approx([1.0, 0.5])


def test_a_hole_filled_late_counts() -> None:
    lost_first = (Seen(5.0, "ul", 150, 99), Seen(5.5, "dl", 900, 1449), Seen(6.4, "dl", 1500, 1))
    assert responses(*OPENED, *lost_first) == pytest.approx([1.4])
