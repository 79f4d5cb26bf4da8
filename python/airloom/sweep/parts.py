"""What a group of runs gave, as a file: plain data and octets, written and read without a table library.

A file is a line of JSON, then blobs. In the JSON a blob is the pair of its place and its length. The compiled module
writes such files, too, and makes the tables of them (`crates/record/src/sweep`).
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from airloom.errors import UsageError

#: What is said of a file that is none.
CANNOT = "a part cannot be read"

#: How the names of files end that are not written yet.
PARTIAL = ".partial"

#: Lists with an entry per run.
_LISTS = ("outcome", "error", "run_id", "rate")


class Part(NamedTuple):
    """Runs and what they gave.

    `done` is plain data: the lists `outcome`, `error`, `run_id` and `rate` with an entry per run (an outcome is `None`
    where there is an error, a rate is `None` or the triple of a point, the nanoseconds of a span and the octets in each
    span); `keys` and `values`, the names in the summaries and for each the 64-bit floating point numbers of all runs
    (not a number where a run has none), or one number that all runs have; and `tables`, for each a list of (name, kind,
    values, names, valid): kind is a numpy type, values are octets; or `text` with a list of texts; `names` are the
    texts that values count, `valid` an octet per row, or `None`. Numbers are little endian.
    """

    #: (point, seed) of each run.
    runs: list[tuple[int, int]]
    done: dict[str, Any]
    #: Did they end with their worker, so that there is nothing but an error?
    is_lost: bool = False

    @property
    def names(self) -> set[str]:
        """Everything that these runs measure: columns of the tables."""
        columns = (column[0] for columns in self.done["tables"].values() for column in columns)
        return {*self.done["keys"], *columns}

    @property
    def statuses(self) -> list[str]:
        """`ok`, `failed` or `lost` for each run."""
        good = [
            error is None and outcome == "complete"
            for error, outcome in zip(self.done["error"], self.done["outcome"], strict=True)
        ]
        return ["lost" if self.is_lost else "ok" if is_good else "failed" for is_good in good]


def part(runs: Sequence[tuple[int, int]], done: Mapping[str, Any]) -> Part:
    """What the first of these runs gave, as many as there are outcomes."""
    count = len(done["outcome"])
    kept = {name: list(done[name]) for name in _LISTS}
    return Part(list(runs[:count]), {**kept, "keys": done["keys"], "values": done["values"], "tables": done["tables"]})


def summaries(found: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """`keys` and `values` of the summaries of some runs."""
    keys = sorted({key for summary in found for key in summary})
    missing = float("nan")
    values = [struct.pack(f"<{len(found)}d", *(summary.get(key, missing) for summary in found)) for key in keys]
    return {"keys": keys, "values": values}


def lost(runs: Sequence[tuple[int, int]], why: str) -> Part:
    """Runs that took their worker with them."""
    nothing = {name: [None] * len(runs) for name in _LISTS}
    done = {**nothing, "error": [why] * len(runs), "run_id": [""] * len(runs), "keys": [], "values": [], "tables": {}}
    return Part(list(runs), done, is_lost=True)


def encode(one: Part) -> bytes:
    """The octets of a file."""
    blobs: list[bytes] = []
    length = 0

    def blob(octets: bytes | None) -> list[int] | None:
        nonlocal length
        if octets is None:
            return None
        blobs.append(octets)
        length += len(octets)
        return [length - len(octets), len(octets)]

    tables = {
        name: [
            [title, kind, values if kind == "text" else blob(values), names, blob(valid)]
            for title, kind, values, names, valid in columns
        ]
        for name, columns in one.done["tables"].items()
    }
    head = {
        "runs": one.runs,
        "lost": one.is_lost,
        **{name: one.done[name] for name in _LISTS},
        "keys": one.done["keys"],
        "values": [blob(values) for values in one.done["values"]],
        "tables": tables,
    }
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()
    return b"".join((text, b"\n", *blobs))


def keep(folder: str, write: Callable[[str], object]) -> None:
    """Keeps a part in a folder: `write` makes a file, which gets its name once everything in it is written."""
    path = os.path.join(folder, os.urandom(16).hex())
    partial = f"{path}{PARTIAL}"
    try:
        write(partial)
    except OSError as error:
        error.filename = partial  # `write` does not know it
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise
    os.rename(partial, path)


def decode(octets: bytes) -> Part:
    """The part in a file. Raises `UsageError` if there is none."""
    text, _, rest = octets.partition(b"\n")
    try:
        return _decoded(json.loads(text), rest)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise UsageError(f"{CANNOT} ({type(error).__name__}): {error}") from None


def _decoded(head: Any, rest: bytes) -> Part:

    def blob(place: list[int] | None) -> bytes | None:
        return None if place is None else rest[place[0] : place[0] + place[1]]

    tables = {
        name: [
            (title, kind, values if kind == "text" else blob(values), names, blob(valid))
            for title, kind, values, names, valid in columns
        ]
        for name, columns in head["tables"].items()
    }
    done = {name: head[name] for name in _LISTS}
    done |= {"keys": head["keys"], "values": [blob(place) for place in head["values"]], "tables": tables}
    return Part([(point, seed) for point, seed in head["runs"]], done, head["lost"])
