"""`airloom export --qlog`: the events of a run in files, one for each vantage point."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airloom import places
from airloom.errors import CannotWrite, UsageError
from airloom.qlog import dialects

if TYPE_CHECKING:
    from airloom.run import Run

#: What a file can be written as: the draft's form of today, or what qvis reads.
DIALECTS = ("draft", "qvis")

_BEGIN, _END = "\x1e", "\n"  # of a record (RFC 7464)


def export(run: Run, dialect: str, place: Path) -> list[Path]:
    """Writes the events of a run into the folder `place`; the files, QUIC's connections first.

    Files of QUIC are called as programs call theirs that are told `QLOGDIR`: `<original destination connection
    id>_<client|server>.sqlog`; those of TCP, SCTP and RLC by flow and observation point. Files of these names in
    `place` are replaced. Raises `UsageError` if the run recorded nothing of the kind.
    """
    from airloom.qlog import layers

    if there := places.held(place):
        # Its own files have the same names; those of another run would be taken for that one's.
        raise UsageError(f"{place} holds {there}: choose another --out")
    if dialect not in DIALECTS:
        raise UsageError(f"no form of qlog called {dialect!r}; valid: {', '.join(DIALECTS)}")
    made = []
    for source in run.qlogs:
        records = _records(source)
        made.append(_write(place / source.name, dialect, next(records, {}), records))
    title = f"{run.manifest.get('name', '')}, seed {run.manifest.get('seed')}"
    for trace in layers.traces(run):
        made.append(_write(place / f"{trace.name}.sqlog", dialect, trace.header(title), trace.events))
    if not made:
        raise UsageError(
            f'{run.folder} has no events of QUIC, TCP, SCTP or RLC: add "qlog" to `record` in [run], and run again'
        )
    return made


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file that a run wrote."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                record = json.loads(line.lstrip(_BEGIN))
            except ValueError:
                raise UsageError(f"{path}: not as it was written by a run") from None
            if not isinstance(record, dict):
                raise UsageError(f"{path}: not as it was written by a run")
            yield record


def _write(path: Path, dialect: str, header: dict[str, Any], events: Iterable[dict[str, Any]]) -> Path:
    """A file, under a temporary name until it is whole."""
    temporary = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as out:
            _put(out, header if dialect == "draft" else dialects.header(header))
            for event in events:
                if (written := event if dialect == "draft" else dialects.event(event)) is not None:
                    _put(out, written)
        temporary.rename(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise CannotWrite(f"{path}: {error.strerror or error}") from None
    return path


def _put(out: Any, record: dict[str, Any]) -> None:
    out.write(f"{_BEGIN}{json.dumps(record, separators=(',', ':'), ensure_ascii=False)}{_END}")
