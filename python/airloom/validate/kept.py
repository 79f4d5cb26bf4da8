"""The folder of a comparison: what it is, and each measurement as soon as it was made.

```
runs/2026-11-24T141503-both-clocks-7f3c02ab91/
  validation.json   what was compared: cells, seeds, version, command; whether it came to its end
  measured.jsonl    a line for each measurement: its name, and what was measured
```

The same comparison goes on with the last one that was not finished.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from airloom import places
from airloom._core import __version__
from airloom.errors import UsageError
from airloom.json_file import read_json

T = TypeVar("T")

MANIFEST = "validation.json"
_MEASURED = "measured.jsonl"


class Kept(Generic[T]):
    """What was measured so far; `to_json` and `from_json` turn it into plain data and back."""

    def __init__(self, place: Path, to_json: Callable[[T], Any], from_json: Callable[[Any], T]) -> None:
        """Use `open_kept`."""
        self.place = place
        self._to_json = to_json
        #: By name.
        self.found: dict[str, T] = {}
        path = place / _MEASURED
        octets = path.read_bytes() if path.exists() else b""
        # A line that was not written to its end is none.
        whole, _, rest = octets.rpartition(b"\n")
        if rest:
            path.write_bytes(whole + b"\n" if whole else b"")
        for line in whole.splitlines():
            try:
                name, said = json.loads(line)
                self.found[name] = from_json(said)
            except (ValueError, TypeError, KeyError) as error:
                raise UsageError(f"{path} is damaged ({error}): move {place} away") from None

    def keep(self, name: str, measured: T) -> None:
        """Writes a measurement down."""
        with (self.place / _MEASURED).open("a", encoding="utf-8") as file:
            file.write(json.dumps([name, self._to_json(measured)]) + "\n")
        self.found[name] = measured


@contextmanager
def open_kept(
    what: str,
    inputs: Mapping[str, Any],
    out: Path | None,
    to_json: Callable[[T], Any],
    from_json: Callable[[Any], T],
    *,
    force: bool = False,
) -> Iterator[Kept[T]]:
    """The folder of the comparison `what` that follows from `inputs`.

    It is `out`, or that of one that was not finished, or a new one. It is finished where the block comes to its end.
    """
    said = json.dumps([what, inputs, __version__], sort_keys=True, default=str)
    identity = hashlib.sha256(said.encode()).hexdigest()[:10]
    place = out or _unfinished(what, identity) or places.new_place(what, identity)
    places.take(place, identity, force=force)
    manifest = {
        "schema": 1,
        "validation_id": identity,
        "name": what,
        **inputs,
        "version": __version__,
        "command": sys.argv,
        "start_utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    with places.alone_in(place):
        _write(place, {**manifest, "status": "unfinished"})
        yield Kept(place, to_json, from_json)
        _write(place, {**manifest, "status": "ok"})


def _unfinished(what: str, identity: str) -> Path | None:
    """The last folder of this comparison, if it did not come to its end."""
    found = sorted(Path("runs").glob(f"*-{what}-{identity}*/{MANIFEST}"))
    return next((path.parent for path in reversed(found) if read_json(path).get("status") == "unfinished"), None)


def _write(place: Path, manifest: Mapping[str, Any]) -> None:
    places.write_whole(place / MANIFEST, json.dumps(manifest, indent=2, default=str) + "\n")
