"""`airloom validate`: the model against records of the real thing, and against this machine's kernel."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from airloom.cli import common, names
from airloom.cli.terminal import interruptible, print_json, print_table, quoted, say, steps, verdict_follows
from airloom.errors import UsageError

if TYPE_CHECKING:
    from airloom.validate.linux_tcp import Bar, Record
    from airloom.validate.pairs import C, R, Verdict


T = TypeVar("T")

#: Bars of comparisons of both clocks are made for the median of so many seeds; of fewer nothing is judged by them.
_SEEDS = 10


class _Asked(NamedTuple):
    """What was typed."""

    what: str
    folder: Path | None
    only: str
    seeds: int
    jobs: int
    out: Path | None
    force: bool
    as_json: bool


def validate(
    what: Annotated[
        str,
        typer.Argument(
            help=f"What to compare: {', '.join(names.COMPARISONS[:-1])} or {names.COMPARISONS[-1]}.",
            autocompletion=names.comparisons,
        ),
    ],
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder with one JSON file per recorded case.")
    ] = None,
    only: Annotated[str, typer.Option("--only", metavar="NAME", help="Cases of this name, * for any text.")] = "*",
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Both clocks: so many seeds, from 1. Fewer than 10 are not judged.")
    ] = _SEEDS,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Measurements that go on at once.")] = 4,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The result folder. Default: a new one under runs/, or one that was not finished."
        ),
    ] = None,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Prints theirs, ours and the error per case; exit code 1 if a bar is missed.

    linux-tcp compares the simulated TCP with recorded transfers of Linux, linux-lab this machine's TCP through the
    emulated wire with the same records, both-clocks this machine's TCP in real time with the simulated one,
    wap-both-clocks and h3-both-clocks a daemon and its client on the command line with the simulated ones (WAP, and
    HTTP/3), pages curl with nginx, Apache and Python's server in real time with the simulated client and server,
    http-shapes what our HTTP proxy and Squid (if it is installed) do with messages that two parsers may understand
    differently, and interop-sim the delay and the rate that programs find on the interop runner's network with the
    words that it was made of.
    What was measured is kept as it comes: the same command goes on with it.
    """
    made_by = (_linux_tcp, _linux_lab, _both_clocks, _by_daemons, _by_daemons, _pages, _http_shapes, _interop_sim)
    kinds: dict[str, Callable[[_Asked], list[str]]] = dict(zip(names.COMPARISONS, made_by, strict=True))
    if what not in kinds:
        raise UsageError(f"nothing called {what!r} to validate; valid: {', '.join(kinds)}")
    if kinds[what](_Asked(what, folder, only, seeds, jobs, out, force, as_json)):
        raise typer.Exit(1)


@contextmanager
def _measuring(
    asked: _Asked,
    inputs: Mapping[str, object],
    total: int,
    to_json: Callable[[T], object],
    from_json: Callable[[Any], T],
) -> Iterator[dict[str, Any]]:
    """Where the measurements are kept, how far they are, and how many go on at once: arguments of `compare`."""
    from airloom.validate.kept import open_kept

    with open_kept(asked.what, inputs, asked.out, to_json, from_json, force=asked.force) as kept:

        def left() -> str:
            made = f"{len(kept.found)} of {total} measurements are kept in {quoted(kept.place)}"
            return f"{made}: the same command goes on with them"

        with interruptible(left), steps(asked.what, total) as done:
            if kept.found:
                say(f"{len(kept.found)} of {total} measurements were there already, in {quoted(kept.place)}")
            yield {"jobs": asked.jobs, "kept": kept, "progress": done}


def _records(asked: _Asked) -> list[Record]:
    from airloom.validate.linux_tcp import records

    if asked.folder is None:
        raise UsageError(f"validate {asked.what}: which folder holds the records? airloom validate {asked.what} DIR")
    found = [record for record in records(asked.folder) if fnmatch(str(record.case["id"]), asked.only)]
    if not found:
        raise UsageError(f"{asked.folder}: no case is called {asked.only!r}")
    return found


def _recorded(found: Sequence[Record]) -> dict[str, object]:
    """What a comparison with records follows from."""
    said = {str(r.case["id"]): json.dumps([r.case, r.runs, r.median_run], sort_keys=True) for r in found}
    return {"cases": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in said.items()}}


def _linux_tcp(asked: _Asked) -> list[str]:
    from airloom.validate import linux_tcp

    found = _records(asked)
    with _measuring(asked, _recorded(found), len(found), asdict, linux_tcp.from_json) as how:
        verdicts = linux_tcp.compare(found, **how)
    missed = [v.case for v in verdicts if not v.met]
    cases = [{**asdict(v), "error": v.error, "met": v.met} for v in verdicts]
    rows = [
        [v.case, b.what, f"{b.theirs:.5g}", f"{b.ours:.5g}", *_errors(b), _met(b.met)] for v in verdicts for b in v.bars
    ]
    columns = ["case", "what", "theirs", "ours", "error", "bar", "met?"]
    _print(asked, {"cases": cases, "missed": missed}, columns, rows, (2, 3, 4, 5))
    bars = [b.met for v in verdicts for b in v.bars]
    say(f"{sum(bars)} of {len(bars)} bars met, {len(verdicts)} cases")
    say(f"results in {quoted(how['kept'].place)}   next: airloom list transports tcp")
    return missed


def _linux_lab(asked: _Asked) -> list[str]:
    from airloom.validate import linux_lab, transfer

    found = linux_lab.suitable(_records(asked))
    with _measuring(asked, _recorded(found), len(found), transfer.to_json, transfer.from_json) as how:
        verdicts = linux_lab.compare(found, **how)
    missed = [v.case for v in verdicts if not v.met]
    cases = [
        {
            "case": v.case,
            "recorded_s": v.recorded_s,
            "recorded_least_s": v.least_s,
            "recorded_largest_s": v.largest_s,
            "ours_s": v.ours.seconds,
            "error": v.error,
            "bar": linux_lab.BAR,
            "recorded_resent": v.recorded_resent,
            "ours_resent": v.ours.resent,
            "verdict": v.ours.verdict,
            "verdict_reasons": v.ours.reasons,
            "met": v.met,
        }
        for v in verdicts
    ]
    rows = [
        [
            v.case,
            f"{v.recorded_s:.3f}",
            f"{v.ours.seconds:.3f}",
            f"{v.error:+.2%}",
            f"{v.recorded_resent:g}",
            f"{v.ours.resent}",
            v.ours.verdict or "",
            _met(v.met),
        ]
        for v in verdicts
    ]
    columns = ["case", "recorded s", "ours s", "error", "resent", "ours", "verdict", "met?"]
    _print(asked, {"cases": cases, "missed": missed}, columns, rows, (1, 2, 3, 4, 5))
    met = len(verdicts) - len(missed)
    say(f"{met} of {len(verdicts)} cases within {linux_lab.BAR:.0%}")
    say(f"results in {quoted(how['kept'].place)}   next: airloom doctor")
    return missed


def _both_clocks(asked: _Asked) -> list[str]:
    from airloom.validate import both_clocks, pairs, transfer

    def more(v: Any) -> dict[str, object]:
        return {
            "decisions": v.decided[0],
            "decided_differently": v.decided[1],
            "real_resent": [t.resent for t in v.real],
            "simulated_resent": [t.resent for t in v.simulated],
            "real_repeats": v.repeats,
            "where_reality_repeats": v.where_reality_repeats,
        }

    columns: dict[str, Callable[[Any], str]] = {
        "real again": lambda v: f"{min(v.repeats):+.2%} .. {max(v.repeats):+.2%}",
        f"within {both_clocks.CLOSE:.0%} where real is": lambda v: "{1} of {0}".format(*v.where_reality_repeats),
        "decided differently": lambda v: f"{v.decided[1]} of {v.decided[0]}",
    }
    to_json = partial(pairs.to_json, one=transfer.to_json)
    return _in_pairs(asked, both_clocks, transfer.from_json, more, columns, to_json)


def _by_daemons(asked: _Asked) -> list[str]:
    """By a daemon and its client."""
    from airloom.validate import h3_both_clocks, pairs, wap_both_clocks

    def more(v: Any) -> dict[str, object]:
        return {"packets": [f.packets for f in v.real], "simulated_packets": [f.packets for f in v.simulated]}

    kind = h3_both_clocks if asked.what.startswith("h3") else wap_both_clocks
    return _in_pairs(asked, kind, lambda said: pairs.Fetch(**said), more)


def _pages(asked: _Asked) -> list[str]:
    from airloom.validate import pages

    columns = {"real spread": lambda v: f"{pages.spread(v):.2%}"}
    return _in_pairs(asked, pages, pages.from_json, lambda v: {"real_spread": pages.spread(v)}, columns)


def _in_pairs(
    asked: _Asked,
    kind: Any,
    one: Callable[[Any], R],
    more: Callable[[Any], dict[str, object]],
    columns: Mapping[str, Callable[[Any], str]] | None = None,
    to_json: Callable[[Any], object] | None = None,
) -> list[str]:
    """Compares the module's cells; `one` reads a run. `more` and `columns` are what is told of a verdict besides."""
    from airloom.validate import pairs

    cells, seeds = kind.chosen(_no_records(asked)), range(1, asked.seeds + 1)
    from_json = partial(pairs.from_json, one=one)
    # What was measured follows from these.
    inputs = {"cells": [cell.name for cell in cells], "seeds": asked.seeds, "kernel": os.uname().release}
    with _measuring(asked, inputs, len(cells) * len(seeds), to_json or pairs.to_json, from_json) as how:
        verdicts = kind.compare(cells, seeds, **how)
    told = {name: [of(v) for v in verdicts] for name, of in (columns or {}).items()}
    return _print_pairs(verdicts, asked, {v.cell.name: more(v) for v in verdicts}, told, how["kept"].place)


def _http_shapes(asked: _Asked) -> list[str]:
    from airloom.programs import path_of
    from airloom.validate import http_shapes
    from airloom.validate.http_shapes import proxies

    shapes = http_shapes.chosen(_no_records(asked))
    program = path_of("squid")
    with ExitStack() as stack, interruptible(), steps("asking", len(shapes)) as done:
        ports = {"airloom": stack.enter_context(proxies.ours())}
        if program is not None:
            ports["squid"] = stack.enter_context(proxies.squid(program))
        found = http_shapes.judge_all(shapes, ports, done)
    missed = [one.name for one in found if one.seen["airloom"].fault]
    seen = [{**one._asdict(), "seen": {name: s._asdict() for name, s in one.seen.items()}} for one in found]
    columns = ["what", "shape", "source", *(word for name in ports for word in (f"{name}: heard", "passed on"))]
    rows = [[one.kind, one.name, one.source, *(word for s in one.seen.values() for word in s.words)] for one in found]
    _print(asked, {"shapes": seen, "missed": missed}, columns, rows)
    for name in ports:
        safe = sum(not one.seen[name].fault for one in found)
        say(f"{name}: safe with {safe} of {len(found)} shapes")
    if program is None:
        say("squid is not installed: nothing to compare with")
    return missed


def _interop_sim(asked: _Asked) -> list[str]:
    from airloom.validate import interop_sim

    networks = interop_sim.chosen(_no_records(asked))
    with interruptible("nothing is kept"), steps(asked.what, len(networks)) as done:
        found = interop_sim.compare(networks, done)
    missed = [f"{row.network}: {row.what}" for row in found if not row.met]
    figures = [{**row._asdict(), "error": row.error, "bar": interop_sim.BAR, "met": row.met} for row in found]
    rows = [
        [r.network, r.what, _figure(r.asked), _figure(r.found), f"{r.error:+.3%}", r.verdict, _met(r.met)]
        for r in found
    ]
    columns = ["network", "what", "asked", "found", "error", "verdict", "met?"]
    _print(asked, {"figures": figures, "missed": missed}, columns, rows, (2, 3, 4))
    say(f"{len(found) - len(missed)} of {len(found)} figures within {interop_sim.BAR:.1%}   next: airloom interop list")
    return missed


def _print(
    asked: _Asked, document: object, columns: list[str], rows: list[list[str]], right: tuple[int, ...] = ()
) -> None:
    """What was found, as it was asked for."""
    with verdict_follows():
        if asked.as_json:
            print_json(document)
        else:
            print_table(columns, rows, right=right)


def _figure(value: float) -> str:
    """Seconds, or bit/s."""
    return f"{value * 1000:.3f} ms" if value < 1000 else f"{value / 1000:.1f} kbit/s"


def _no_records(asked: _Asked) -> str:
    """Which cells are wanted, where no folder of records is."""
    if asked.folder is not None:
        where = quoted(asked.folder)
        raise UsageError(f"validate {asked.what} compares with this machine, not with records in {where}")
    return asked.only


def _print_pairs(
    verdicts: Sequence[Verdict[C, R]],
    asked: _Asked,
    more: Mapping[str, Mapping[str, object]],
    columns: Mapping[str, Sequence[str]],
    place: Path,
) -> list[str]:
    """Prints pairs of runs, with `more` about a cell in JSON and further `columns` in the table; the cells missed."""
    is_judged = asked.seeds >= _SEEDS
    missed = [v.cell.name for v in verdicts if is_judged and not v.met]
    found = [
        {
            "cell": v.cell.name,
            "real_s": v.real_s,
            "simulated_s": v.simulated_s,
            "error": v.error,
            "bar": v.cell.bar,
            "errors": v.errors,
            **more[v.cell.name],
            "verdicts": [run.verdict for run in v.real],
            "repeated": v.repeated,
            "met": v.met if is_judged else None,
        }
        for v in verdicts
    ]
    table = {
        "cell": [v.cell.name for v in verdicts],
        "real s": [f"{v.real_s:.3f}" for v in verdicts],
        "simulated s": [f"{v.simulated_s:.3f}" for v in verdicts],
        "error": [f"{v.error:+.2%}" for v in verdicts],
        "bar": [f"{v.cell.bar:.1%}" for v in verdicts],
        "seed by seed": [f"{min(v.errors):+.2%} .. {max(v.errors):+.2%}" for v in verdicts],
        **columns,
        "late": [str(v.invalid) for v in verdicts],
        "met?": [_met(v.met) if is_judged else "not judged" for v in verdicts],
    }
    right = tuple(n for n, name in enumerate(table) if name not in ("cell", "seed by seed", "real again", "met?"))
    document = {"cells": found, "judged": is_judged, "missed": missed}
    _print(asked, document, list(table), [list(row) for row in zip(*table.values(), strict=True)], right)
    met, again = len(verdicts) - len(missed), sum(v.repeated for v in verdicts)
    each = "1 seed" if asked.seeds == 1 else f"{asked.seeds} seeds"
    judged = f"{met} of {len(verdicts)} cells met, {each} each"
    if not is_judged:
        judged = f"{each} each, not judged: the bars are for the median of {_SEEDS}, single seeds may be farther off"
    say(f"{judged}; {again} late runs made again")
    say(f"results in {quoted(place)}   next: airloom doctor")
    return missed


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


def _errors(bar: Bar) -> tuple[str, str]:
    if bar.what == "sent again":
        return f"{bar.error:g}", f"{bar.bar:g}"
    return f"{bar.error:.2%}", f"{bar.bar:.1%}"
