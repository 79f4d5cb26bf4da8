"""Parts of a sweep as files: what goes in comes out, and any other octets are refused."""

import random
import struct
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest

import airloom as al
from airloom._core import Series, sweep_tables
from airloom.errors import UsageError
from airloom.sweep import kept, parts
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
        "values": [struct.pack("<2d", n, n + len(keys)) for n in range(len(keys))],
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
    found = tables([parts.encode(part) for part in all_parts])
    runs = found["runs"]
    assert runs.columns == ["point", "loss", "seed", "run_id", "status", "error", "a", "x_s", "y"]
    assert runs.select("point", "loss", "seed", "run_id", "status").rows() == [
        (0, 0.5, 1, "a", "ok"), (0, 0.5, 2, "b", "failed"), (0, 0.5, 5, "a", "ok"), (0, 0.5, 6, "b", "failed"),
    ]  # fmt: skip
    assert runs["error"].to_list() == [None, "nothing more could happen, and not everything was done"] * 2
    assert runs.select("a", "x_s", "y").rows() == [(None, 0, 1), (None, 2, 3), (0, 1, None), (2, 3, None)]
    flows = found["flows"].select("seed", "proto", "end", "srtt_ms").rows()
    assert flows == [
        (1, "tcp", "done", 1.5), (1, "udp", "ünfinished", 2.5), (2, None, "done", None), (6, "sctp", "late", 7.0),
    ]  # fmt: skip
    assert found["rate"].select("seed", "t_ns", "octets").rows() == [(1, 0, 1), (1, 10, 2), (5, 0, 1), (5, 10, 2)]
    assert found["rate"]["seen_at"].to_list() == ["m.radio.ip"] * 4
    assert runs.schema["point"] == pl.Int64
    assert runs.schema["seed"] == pl.UInt64


def tables(octets: list[bytes], names: tuple[str, ...] = ("runs", "flows", "rate")) -> dict[str, pl.DataFrame]:
    """The tables that the compiled module writes, as another program reads them."""
    files = files_of(octets, names)
    return {name: pl.read_parquet(BytesIO(file)) for name, file in files.items()}


def files_of(octets: list[bytes], names: tuple[str, ...]) -> dict[str, bytes]:
    made = sweep_tables(octets, [("loss", [0.5, 1.0])], names)
    return {name: made.octets(name) for name in made.names()}


KINDS: list[tuple[str, str, pl.DataType]] = [
    ("<i8", "q", pl.Int64()), ("<u8", "Q", pl.UInt64()), ("<u4", "I", pl.UInt32()), ("<u2", "H", pl.UInt16()),
    ("u1", "B", pl.UInt8()), ("<f8", "d", pl.Float64()),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "sign", "dtype"), KINDS)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_every_kind_of_number_is_read_as_it_was_written(kind: str, sign: str, dtype: pl.DataType, count: int) -> None:
    chance = random.Random(count)
    bits = 8 * struct.calcsize(f"<{sign}")
    largest = 2 ** (bits - 1) - 1 if sign == "q" else 2**bits - 1

    def drawn() -> float:
        return chance.uniform(-1e300, 1e300) if sign == "d" else chance.randint(0, largest)

    few = [drawn() for _ in range(3)]
    columns = {
        "different": [drawn() for _ in range(count)],
        "few": [chance.choice(few) for _ in range(count)],
        "one": [few[0]] * count,
        "in_runs": sorted(chance.choice(few) for _ in range(count)),
        "largest": [largest if sign != "d" else -0.0] * count,
    }
    is_there = [chance.random() < 0.7 for _ in range(count)]
    plain: list[object] = [("run", "<u4", bytes(4 * count), None, None)]
    plain += [(name, kind, struct.pack(f"<{count}{sign}", *values), None, None) for name, values in columns.items()]
    plain += [
        (f"some_{name}", kind, struct.pack(f"<{count}{sign}", *values), None, bytes(is_there))
        for name, values in columns.items()
    ]
    rows = tables([parts.encode(made(1, [], {"other": plain}))], ("other",))["other"]
    for name, values in columns.items():
        assert rows.schema[name] == dtype
        assert rows[name].to_list() == values
        assert rows[f"some_{name}"].to_list() == [v if t else None for v, t in zip(values, is_there, strict=True)]


def test_texts_are_read_as_they_were_written() -> None:
    chance = random.Random(1)
    texts = ["", "a", "ä\n\0", "x" * 5000, *(f"{n}" for n in range(3000))]
    for count in (1, 9, 4000):
        drawn = [chance.choice(texts) for _ in range(count)]
        few = [chance.choice(texts[:4]) for _ in range(count)]
        plain: list[object] = [("run", "<u4", bytes(4 * count), None, None)]
        plain += [("different", "text", drawn, None, None), ("few", "text", few, None, None)]
        rows = tables([parts.encode(made(1, [], {"other": plain}))], ("other",))["other"]
        assert rows["different"].to_list() == drawn
        assert rows["few"].to_list() == few


def test_finished_tables_taken_up_as_parts_give_the_same_octets(tmp_path: Path) -> None:
    kinds = [
        (f"k{n}", kind, struct.pack(f"<3{sign}", 1, 2, 3), None, b"\1\0\1" if n % 2 else None)
        for n, (kind, sign, _) in enumerate(KINDS)
    ]
    octets = [parts.encode(made(1, ["x_s", "y"], {"flows": [*FLOWS, *kinds]}))]
    octets.append(parts.encode(parts.lost([(1, 4)], "gone")))
    names = ("runs", "flows", "rate")
    files = files_of(octets, names)
    for name, file in files.items():
        (tmp_path / f"{name}.parquet").write_bytes(file)
    again = kept.as_parts(tmp_path, names[1:], ["loss"])
    assert files_of(again, names) == files


def test_columns_that_lie_in_the_same_place_are_read_as_columns_of_their_own() -> None:
    values = [1.0, float("nan"), 3.0]
    one = made(1, ["again", "one", "other"], {})
    head = parts.encode(one)[:-48].replace(b"[[0,16],[16,16],[32,16]]", b"[[0,16],[0,16],[16,16]]")
    both = head + struct.pack("<4d", *values[:2], *values[1:])
    rows = tables([both, parts.encode(made(5, ["one"], {}))], ("runs",))["runs"]
    nothing = [None, None]
    assert rows["again"].to_list() == [1.0, None, *nothing]
    assert rows["one"].to_list() == [1.0, None, 0.0, 1.0]
    assert rows["other"].to_list() == [None, 3.0, *nothing]


def test_a_part_in_a_file_is_the_part_that_is_sent(tmp_path: Path) -> None:
    scenario = al.load("umts-page")
    series = Series(["pages", "flows"], 60.0)
    assert series.simulate(0, scenario._core, [1, 2], 1)
    assert series.simulate(0, scenario._core, [3], 1)
    done = series.part()
    parts.keep(str(tmp_path), done.write)
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == done.octets()
    sent, kept_here = (sweep_tables([source], [], ["runs", "rate"]) for source in (done.octets(), path))
    assert sent.names() == kept_here.names() == ["rate", "runs"]
    kept_here.write([(name, str(tmp_path / name)) for name in ("runs", "rate")])
    for name in sent.names():
        assert (tmp_path / name).read_bytes() == kept_here.octets(name) == sent.octets(name)
    back = parts.decode(done.octets())
    assert back.names == done.names()
    assert back.runs == [(0, 1), (0, 2), (0, 3)]
    with pytest.raises(OSError, match="No such file or directory") as error:
        sweep_tables([done.octets(), tmp_path / "none"], [], ["runs"])
    assert error.value.filename == tmp_path / "none"


def test_a_table_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    table = sweep_tables([parts.encode(made(1, ["x_s"], {}))], [], ["runs"])
    path = str(tmp_path / "none" / "runs.parquet")
    with pytest.raises(FileNotFoundError, match="No such file or directory") as error:
        table.write([("runs", path)])
    assert str(error.value.filename) == path
    with pytest.raises(OSError, match="No space left on device"):
        table.write([("runs", "/dev/full")])
    with pytest.raises(KeyError, match="flows"):
        table.octets("flows")


def test_what_could_not_be_written_leaves_no_file(tmp_path: Path) -> None:
    def half(path: str) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device") as error:
        parts.keep(str(tmp_path), half)
    assert error.value.filename.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_cannot_become_rows_is_named() -> None:
    good = parts.encode(made(1, ["x_s"], {}))
    with pytest.raises(ValueError, match="its summaries have not the length of its runs") as found:
        sweep_tables([good, good.replace(b'"values":[[0,16]]', b'"values":[[0,12]]')], [], [])
    assert found.value.args[0] == 1


@pytest.mark.parametrize("octets", [b"", b"{", b"[]\n", b"{}\n", b'{"runs": [[0]]}\n', b"\xff\n", b"[" * 100_000])
def test_what_is_no_part_is_said_to_be_none(octets: bytes) -> None:
    with pytest.raises(UsageError, match=r"^a part cannot be read"):
        parts.decode(octets)
