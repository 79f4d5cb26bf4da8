"""EGPRS blocks in a capture, read with Wireshark's dissector, which does not know blocks that were cut in two."""

from pathlib import Path

import airloom as al
from tests.wireshark import fields

#: SPB: the first and the second half of a block (TS 44.060, 10.4.8b).
HALVES = ("2", "3")
ROUND = {"hosts.mobile.app.http-client.pages": [["/10kB", "/10kB"]], "run.points": ["radio.*rlc.*"]}


def blocks(capture: Path) -> list[tuple[str, str, bool]]:
    """Of each block: which part it is, its E bit (0: length indicators follow), and is it malformed to tshark?"""
    rows = fields(capture, "gsm_rlcmac.dl.spb", "gsm_rlcmac.ul.spb", "gsm_rlcmac.e", "_ws.malformed")
    return [(down or up, e.split(",")[0], bool(bad)) for down, up, e, bad in rows]


def test_whole_blocks_of_every_type_of_header_are_read_without_a_complaint() -> None:
    # MCS-1 to 4, 5 and 6, 7 to 9 have a header each.
    for scheme in (1, 4, 6, 9):
        run = al.load("egprs-page", {"links.radio.mcs": scheme, "run.record": ["pcapng"], **ROUND}).run()
        assert run.capture is not None
        found = blocks(run.capture)
        assert len(found) > 300
        assert not any(bad or part in HALVES for part, _, bad in found), scheme


def test_of_halves_only_those_of_blocks_with_length_indicators_look_malformed_to_wireshark() -> None:
    keys = {"links.radio.mcs": 6, "links.radio.retransmission_mcs": 3, "links.radio.loss": 0.15}
    run = al.load("egprs-page", {**keys, "run.record": ["pcapng"], **ROUND}).run()
    assert run.capture is not None
    found = blocks(run.capture)
    assert all(part in HALVES and e == "0" for part, e, bad in found if bad)
    for half in HALVES:
        assert sum(part == half and e == "0" for part, e, _ in found) > 20
        # A half is not wrong in itself: where the block has no length indicators nothing is misread.
        assert sum(part == half and e == "1" for part, e, _ in found) > 20
