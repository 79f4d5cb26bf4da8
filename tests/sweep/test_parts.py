"""Parts of a sweep as files: what goes in comes out, and any other octets are refused."""

import struct

import polars as pl
import pytest

from airloom.errors import UsageError
from airloom.sweep import parts, plain
from airloom.sweep.axes import axis
from airloom.sweep.parts import Part

FLOWS = [
    ("run", "<u4", struct.pack("<3I", 0, 0, 1), None, None),
    ("proto", "<u2", struct.pack("<3H", 1, 0, 9), ["udp", "tcp"], b"\1\1\0"),
    ("end", "text", ["done", "ünfinished", "done"], None, None),
    ("srtt_ms", "<f8", struct.pack("<3d", 1.5, 2.5, 0.0), None, b"\1\1\0"),
]


def made(first: int, keys: list[str], tables: dict[str, list[object]]) -> Part:
    done = {
        "outcome": ["complete", "stuck"], "error": [None, None], "took_ns": [1, 2], "run_id": ["a", "b"],
        "rate": [("m.radio.ip", 10, [1, 2]), None], "keys": keys, "tables": tables,
        "values": struct.pack(f"<{2 * len(keys)}d", *range(2 * len(keys))),
    }  # fmt: skip
    return parts.part([(0, first), (0, first + 1), (1, first)], done)


def test_a_part_comes_back_as_it_was() -> None:
    one = made(1, ["x_s"], {"flows": list(FLOWS)})
    back = parts.decode(parts.encode(one))
    assert back.runs == [(0, 1), (0, 2)], "no more runs than the worker made"
    assert back.statuses == ["ok", "failed"]
    assert back.done["values"] == one.done["values"]
    assert back.done["tables"] == one.done["tables"]
    assert parts.decode(parts.encode(parts.lost([(3, 4)], "gone"))).statuses == ["lost"]


def test_parts_with_other_names_and_categories_become_one_table() -> None:
    other = [
        ("run", "<u4", struct.pack("<I", 1), None, None),
        ("proto", "<u2", struct.pack("<H", 0), ["sctp"], None),
        ("end", "text", ["late"], None, None),
        ("srtt_ms", "<f8", struct.pack("<d", 7.0), None, None),
    ]
    all_parts = [made(1, ["x_s", "y"], {"flows": list(FLOWS)}), made(5, ["a", "x_s"], {"flows": list(other)})]
    axes = [axis("loss", [0.5, 1])]
    found = plain.tables(all_parts, axes, [[0.5], [1]])
    runs = found["runs"]
    assert runs.select("point", "loss", "seed", "status").rows() == [
        (0, 0.5, 1, "ok"), (0, 0.5, 2, "failed"), (0, 0.5, 5, "ok"), (0, 0.5, 6, "failed"),
    ]  # fmt: skip
    assert runs.select("a", "x_s", "y").rows() == [(None, 0, 1), (None, 2, 3), (0, 1, None), (2, 3, None)]
    flows = found["flows"].select("seed", "proto", "end", "srtt_ms", plain.SOURCE).rows()
    assert flows == [
        (1, "tcp", "done", 1.5, 0), (1, "udp", "ünfinished", 2.5, 0),
        (2, None, "done", None, 0), (6, "sctp", "late", 7.0, 1),
    ]  # fmt: skip
    assert found["rate"].select("seed", "t_ns", "octets").rows() == [(1, 0, 1), (1, 10, 2), (5, 0, 1), (5, 10, 2)]
    assert found["runs"].schema["point"] == pl.Int64


@pytest.mark.parametrize("octets", [b"", b"{", b"[]\n", b"{}\n", b'{"runs": [[0]]}\n', b"\xff\n"])
def test_what_is_no_part_is_said_to_be_none(octets: bytes) -> None:
    with pytest.raises(UsageError, match=r"^a part cannot be read"):
        parts.decode(octets)
