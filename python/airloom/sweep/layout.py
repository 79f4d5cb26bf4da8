"""The folder of a sweep.

```
runs/2026-11-21-umts-page-7f3c02ab91/
  sweep.json        what the sweep is: scenario in full, axes, seeds, version, command; written first
  runs.parquet      one row per run: point, one column per axis, seed, run_id, status, error, and its summary
  pages.parquet     one row per page load of every run; likewise flows, states, congestion, if they were asked for
  rate.parquet      octets received over time, for the least seed of every point
  sessions.json     one entry per time the command ran: when, how long, how much of it inside the simulation
  runs/             whole run folders, only if they were asked for
  parts/            while the sweep is unfinished: folders with the same tables, each of some runs; `under-way`, which
                    runs are made now (a line for each thread: point, seed; elsewhere point, first and last seed), and
                    `ended-N`, the same of sessions whose process was ended, or their workers'
```

All tables begin with `point`, the axes and `seed`, and are sorted by point and seed: however often the sweep was
interrupted, their octets are the same. Everything is written under a temporary name and renamed.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from airloom import places
from airloom._core import Done, Part, write_sweep
from airloom.errors import UsageError
from airloom.json_file import read_json

#: Version of `sweep.json` and of the tables.
SCHEMA = 2

MANIFEST = "sweep.json"

#: How the names of parts end that are not whole yet, and what is beside the parts.
_PARTIAL, _UNDER_WAY, _ENDED = ".partial", "under-way", "ended-"

#: What the person has to see first when a table has more columns than a screen.
LEADING = ("run_id", "status", "error")


def default_place(name: str, identity: str) -> Path:
    """`runs/<date>-<name>-<sweep-id>`; the folder of an earlier day if the same sweep was begun then."""
    begun = sorted(Path("runs").glob(f"*-{glob.escape(name)}-{identity}/{MANIFEST}"))
    return begun[-1].parent if begun else places.default_place(name, identity)


def run_folder(place: Path, point: int, seed: int) -> Path:
    """Where a whole run of the sweep is kept, if it is."""
    return place / "runs" / f"point-{point}-seed-{seed}"


class SweepFolder:
    """A sweep's folder while it is written. One process at a time may have it open."""

    def __init__(self, place: Path) -> None:
        """Names the folder; nothing is made yet."""
        self.place = place

    @contextmanager
    def open(self, manifest: dict[str, Any], *, force: bool = False) -> Iterator[None]:
        """Makes the folder, or goes on with the one of the same sweep; `force`: another result there is replaced."""
        places.take(self.place, manifest["sweep_id"], force=force)
        with places.alone_in(self.place):
            self.tidy()
            if (self.place / "runs.parquet").exists():
                # Its seeds are those of the tables, until these have others.
                manifest = {**manifest, "seeds": read_json(self.place / MANIFEST).get("seeds", manifest["seeds"])}
            # By it the folder is known as ours, before anything else is in it.
            self.write_json(MANIFEST, manifest)
            self.parts.mkdir(exist_ok=True)
            if manifest["folders"] or manifest["clock"] == "real":
                # Here, not by the workers: a run that fails takes the folders it made away again, also from under
                # the run beside it.
                (self.place / "runs").mkdir(exist_ok=True)
            yield

    def write_json(self, name: str, value: object) -> None:
        """Writes a JSON file for people to read too."""
        temporary = self.place / f"{name}.part"
        temporary.write_text(_readable(value), encoding="utf-8")
        temporary.rename(self.place / name)

    @property
    def parts(self) -> Path:
        """Where the results of some runs lie."""
        return self.place / "parts"

    def keep(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Keeps what some runs gave: a part has its name once all of it is there."""
        if not files:
            return
        part = self.parts / os.urandom(16).hex()
        partial = part.with_suffix(_PARTIAL)
        partial.mkdir()
        for name, octets in files:
            path = partial / f"{name}.parquet"
            try:
                path.write_bytes(octets)
            except OSError as error:
                error.filename = str(path)  # `write` does not know it
                shutil.rmtree(partial)
                raise
        partial.rename(part)

    def tidy(self) -> None:
        """Takes away what was not written to its end. Nobody else may be writing."""
        for left in (*self.place.glob("*.part"), *self.parts.glob(f"*{_PARTIAL}")):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)

    def under_way(self, slices: Sequence[str]) -> None:
        """Writes down (`lines`) what is made now, for whoever finds it where nobody is at work; none: takes it away."""
        file = self.parts / _UNDER_WAY
        if not slices:
            file.unlink(missing_ok=True)
            return
        partial = file.with_suffix(_PARTIAL)
        partial.write_text("".join(slices))
        partial.rename(file)

    def ends(self) -> list[set[tuple[int, int]]]:
        """What was under way at each end of a process that made runs."""
        ended = [*self.parts.glob(f"{_ENDED}*")]
        if (now := self.parts / _UNDER_WAY).exists():
            ended.append(now.rename(self.parts / f"{_ENDED}{len(ended) + 1}"))
        return [set(_runs(file.read_text())) for file in ended]

    def done(self) -> Done:
        """The runs that are there and need not be made again."""
        with _damage_said():
            return Done(self._folders())

    def finish(self, names: Sequence[str], rest: Sequence[Part]) -> None:
        """Puts the tables together, with the rows that are only in memory, and drops the parts."""
        folders = self._folders()
        if len(folders) > 1 or rest:
            with _damage_said():
                write_sweep(folders, rest, names, self.place)
        for part in self.parts.iterdir():
            shutil.rmtree(part) if part.is_dir() else part.unlink()

    def _folders(self) -> list[Path]:
        """Where tables are: those that were finished first."""
        return [self.place, *sorted(path for path in self.parts.iterdir() if path.is_dir())]


def lines(runs: Iterable[tuple[int, int]]) -> str:
    """Runs for `SweepFolder.under_way`: a line for those whose seeds follow each other."""
    found = []
    for (point, _), some in groupby(enumerate(runs), lambda each: (each[1][0], each[1][1] - each[0])):
        seeds = [seed for _, (_, seed) in some]
        found.append(f"{point} {seeds[0]} {seeds[-1]}\n")
    return "".join(found)


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """What such lines say. A thread's has one seed; where a later one began first there is a hole before its line."""
    for line in text.replace("\0", " ").splitlines():
        if numbers := [int(word) for word in line.split()]:
            yield from ((numbers[0], seed) for seed in range(numbers[1], numbers[-1] + 1))


@contextmanager
def _damage_said() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        path, why = error.args
        raise UsageError(f"{path} is damaged ({why}): without its folder these runs are made again") from None


def _readable(value: object) -> str:
    """JSON with a line for each entry. (`indent` of the library takes ten times as long, and a line for each seed.)"""
    text = partial(json.dumps, ensure_ascii=False)
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"  {text(key)}: {text(entry)}" for key, entry in value.items()) + "\n}\n"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {text(entry)}" for entry in value) + "\n]\n"
    return text(value) + "\n"
