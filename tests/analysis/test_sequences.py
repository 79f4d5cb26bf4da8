"""Sequence numbers over time, from tables made by hand."""

import polars as pl

from airloom.analysis import sequences

Row = tuple[int, str, str, str, str, int, int | None, int | None]


def table(rows: list[Row], flow: int = 1) -> pl.DataFrame:
    """Time in s, point, direction, event, protocol, octets, sequence number, acknowledgement; one flow."""
    return pl.DataFrame(
        {
            "t_ns": [r[0] * 10**9 for r in rows],
            "point": [r[1] for r in rows],
            "dir": [r[2] for r in rows],
            "pkt_id": pl.Series(range(1, len(rows) + 1), dtype=pl.UInt64),
            "event": [r[3] for r in rows],
            "flow": pl.Series([flow] * len(rows), dtype=pl.UInt32),
            "proto": [r[4] for r in rows],
            "len": pl.Series([r[5] for r in rows], dtype=pl.UInt32),
            "seq": pl.Series([r[6] for r in rows], dtype=pl.UInt64),
            "ack": pl.Series([r[7] for r in rows], dtype=pl.UInt64),
        }
    )


def test_a_flow_that_was_recorded_where_it_arrives_is_its_data_and_not_its_acknowledgements() -> None:
    rows: list[Row] = [
        (0, "mobile.air.ip", "ul", "tx", "tcp", 100, 7, 2**32 - 1),
        (1, "mobile.air.ip", "dl", "rx", "tcp", 1500, 2**32 - 1, 67),
        (2, "mobile.air.ip", "ul", "tx", "tcp", 40, 67, 1459),
        (3, "mobile.air.ip", "dl", "rx", "tcp", 40, 1459, 67),
    ]
    found = sequences.sequence(sequences.plain(table(rows)), 1)
    assert (found.direction, found.is_receiver) == ("dl", True)
    assert found.data["y"].to_list() == [0.0]
    # Before the data, and after it: the number goes round in between.
    assert found.acks["y"].to_list() == [0.0, 1460.0]


def test_sent_again_is_what_is_not_above_all_before() -> None:
    numbers = [65534, 65535, 0, 65535, 1]
    rows: list[Row] = [(t, "sender.air.ip", "ul", "tx", "wwp", 1050, n, None) for t, n in enumerate(numbers)]
    data = sequences.sequence(table(rows), 1).data
    assert data["y"].to_list() == [0, 1, 2, 1, 3]
    assert data["again"].to_list() == [False, False, False, True, False]


def test_what_options_make_longer_is_no_data() -> None:
    rows: list[Row] = [
        (0, "a.wire.ip", "ul", "tx", "tcp", 60, 0, None),  # SYN
        (1, "a.wire.ip", "ul", "tx", "tcp", 52, 1, 1),
        (2, "a.wire.ip", "ul", "tx", "tcp", 64, 1, 1),  # reports what has arrived
        (3, "a.wire.ip", "ul", "tx", "tcp", 1500, 1, 1),
        (4, "a.wire.ip", "ul", "tx", "tcp", 80, 1449, 1),
        (5, "a.wire.ip", "ul", "tx", "tcp", 72, 1449, 1),  # 20 octets again
        (6, "a.wire.ip", "ul", "tx", "tcp", 1500, 1469, 1),
        (7, "a.wire.ip", "ul", "tx", "tcp", 80, 2917, 1),  # reports what has arrived
    ]
    data = sequences.sequence(table(rows), 1).data
    assert data["t_ns"].to_list() == [second * 10**9 for second in (3, 4, 5, 6)]
    assert data["again"].to_list() == [False, False, True, False]


def test_blocks_are_counted_on_where_a_new_block_flow_begins_at_0() -> None:
    events = [("tx", 0), ("tx", 1), ("drop", 1), ("retx", 1), ("tx", 2), ("tx", 0), ("tx", 1), ("drop", 0), ("retx", 0)]
    rows: list[Row] = [(t, "radio.rlc.dl.tx", "dl", event, "rlc", 22, n, None) for t, (event, n) in enumerate(events)]
    (found,) = sequences.attempts(table(rows), "dl", 1)
    assert found.rows["y"].to_list() == [0, 1, 1, 1, 2, 3, 4, 3, 3]


def test_a_link_that_the_flow_does_not_use_is_not_below_it() -> None:
    own: list[Row] = [(0, "a.wire.ip", "dl", "tx", "tcp", 1500, 0, None)]
    other: list[Row] = [(0, "radio.rlc.dl.tx", "dl", "tx", "rlc", 42, 0, None)]
    both = pl.concat((table(own), table(other, flow=2).with_columns(pkt_id=pl.lit(9, dtype=pl.UInt64))))
    assert sequences.attempts(both, "dl", 1) == []
    assert len(sequences.attempts(both, "dl", 2)) == 1


def test_flows_over_a_radio_link_come_first() -> None:
    wire: list[Row] = [(0, "a.wire.ip", "dl", "tx", "tcp", 1500, 0, None)]
    radio: list[Row] = [
        (0, "a.radio.ip", "dl", "tx", "tcp", 100, 0, None),
        (1, "radio.rlc.dl.tx", "dl", "tx", "rlc", 42, 0, None),
    ]
    assert sequences.flows(pl.concat((table(wire), table(radio, flow=2)))) == [2, 1]
