"""`airloom validate`: the model against records of the real thing, and against this machine's kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import interruptible, print_json, print_table, quoted, say, steps
from airloom.errors import UsageError

if TYPE_CHECKING:
    from airloom.validate.linux_tcp import Bar, Record
    from airloom.validate.pairs import C, R, Verdict


def validate(
    what: Annotated[
        str,
        typer.Argument(
            help="What to compare: linux-tcp, linux-lab, both-clocks, wap-both-clocks, pages or http-shapes."
        ),
    ],
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder with one JSON file per recorded case.")
    ] = None,
    only: Annotated[str, typer.Option("--only", metavar="NAME", help="Cases of this name, * for any text.")] = "*",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Both clocks: so many seeds, from 1.")] = 10,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Transfers in real time that go on at once.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help=common.JSON_HELP)] = False,
) -> None:
    """Prints theirs, ours and the error per case; exit code 1 if a bar is missed.

    linux-tcp compares the simulated TCP with recorded transfers of Linux, linux-lab this machine's TCP through the
    emulated wire with the same records, both-clocks this machine's TCP in real time with the simulated one,
    wap-both-clocks the gateway's daemon and the client on the command line with the simulated ones, pages curl with
    nginx, Apache and Python's server in real time with the simulated client and server, and http-shapes
    what our HTTP proxy and Squid (if it is installed) do with messages that two parsers may understand differently.
    """
    kinds: dict[str, Callable[[], list[str]]] = {
        "linux-tcp": lambda: _linux_tcp(_records(what, folder, only), as_json),
        "linux-lab": lambda: _linux_lab(_records(what, folder, only), jobs, as_json),
        "both-clocks": lambda: _both_clocks(folder, only, seeds, jobs, as_json),
        "wap-both-clocks": lambda: _wap_both_clocks(folder, only, seeds, jobs, as_json),
        "pages": lambda: _pages(folder, only, seeds, jobs, as_json),
        "http-shapes": lambda: _http_shapes(folder, only, as_json),
    }
    if what not in kinds:
        raise UsageError(f"nothing called {what!r} to validate; valid: {', '.join(kinds)}")
    if kinds[what]():
        raise typer.Exit(1)


def _records(what: str, folder: Path | None, only: str) -> list[Record]:
    from airloom.validate.linux_tcp import records

    if folder is None:
        raise UsageError(f"validate {what}: which folder holds the records? airloom validate {what} DIR")
    found = [record for record in records(folder) if fnmatch(str(record.case["id"]), only)]
    if not found:
        raise UsageError(f"{folder}: no case is called {only!r}")
    return found


def _linux_tcp(found: list[Record], as_json: bool) -> list[str]:
    from airloom.validate.linux_tcp import compare

    with interruptible(), steps("comparing", len(found)) as done:
        verdicts = compare(found, done)
    missed = [v.case for v in verdicts if not v.met]
    if as_json:
        print_json({"cases": [{**asdict(v), "error": v.error, "met": v.met} for v in verdicts], "missed": missed})
    else:
        rows = [
            [v.case, b.what, f"{b.theirs:.5g}", f"{b.ours:.5g}", *_errors(b), _met(b.met)]
            for v in verdicts
            for b in v.bars
        ]
        columns = ["case", "what", "theirs", "ours", "error", "bar", "met?"]
        print_table(columns, rows, right=(2, 3, 4, 5))
    bars = [b.met for v in verdicts for b in v.bars]
    say(f"{sum(bars)} of {len(bars)} bars met, {len(verdicts)} cases   next: airloom list transports tcp")
    return missed


def _linux_lab(found: list[Record], jobs: int, as_json: bool) -> list[str]:
    from airloom.validate import linux_lab

    with interruptible(), steps("transferring", len(linux_lab.suitable(found))) as done:
        verdicts = linux_lab.compare(found, jobs, done)
    missed = [v.case for v in verdicts if not v.met]
    if as_json:
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
        print_json({"cases": cases, "missed": missed})
    else:
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
        print_table(columns, rows, right=(1, 2, 3, 4, 5))
    met = len(verdicts) - len(missed)
    say(f"{met} of {len(verdicts)} cases within {linux_lab.BAR:.0%}   next: airloom doctor")
    return missed


def _both_clocks(folder: Path | None, only: str, seeds: int, jobs: int, as_json: bool) -> list[str]:
    from airloom.validate import both_clocks

    _no_records("both-clocks", folder)
    cells = both_clocks.chosen(only)
    with interruptible(), steps("transferring", len(cells) * seeds) as done:
        verdicts = both_clocks.compare(cells, range(1, seeds + 1), jobs, done)
    more = {
        v.cell.name: {
            "decisions": v.decided[0],
            "decided_differently": v.decided[1],
            "real_resent": [t.resent for t in v.real],
            "simulated_resent": [t.resent for t in v.simulated],
            "real_repeats": v.repeats,
            "where_reality_repeats": v.where_reality_repeats,
        }
        for v in verdicts
    }
    close = f"{both_clocks.CLOSE:.0%}"
    columns = {
        "real again": [f"{min(v.repeats):+.2%} .. {max(v.repeats):+.2%}" for v in verdicts],
        f"within {close} where real is": ["{1} of {0}".format(*v.where_reality_repeats) for v in verdicts],
        "decided differently": [f"{v.decided[1]} of {v.decided[0]}" for v in verdicts],
    }
    return _print_pairs(verdicts, seeds, more, columns, as_json)


def _wap_both_clocks(folder: Path | None, only: str, seeds: int, jobs: int, as_json: bool) -> list[str]:
    from airloom.validate import wap_both_clocks

    _no_records("wap-both-clocks", folder)
    cells = wap_both_clocks.chosen(only)
    with interruptible(), steps("fetching", len(cells) * seeds) as done:
        verdicts = wap_both_clocks.compare(cells, range(1, seeds + 1), jobs, done)
    more = {
        v.cell.name: {
            "packets": [f.packets for f in v.real],
            "simulated_packets": [f.packets for f in v.simulated],
        }
        for v in verdicts
    }
    return _print_pairs(verdicts, seeds, more, {}, as_json)


def _pages(folder: Path | None, only: str, seeds: int, jobs: int, as_json: bool) -> list[str]:
    from airloom.validate import pages

    _no_records("pages", folder)
    cells = pages.chosen(only)
    with interruptible(), steps("loading", len(cells) * seeds) as done:
        verdicts = pages.compare(cells, range(1, seeds + 1), jobs, done)
    more = {v.cell.name: {"real_spread": pages.spread(v)} for v in verdicts}
    columns = {"real spread": [f"{pages.spread(v):.2%}" for v in verdicts]}
    return _print_pairs(verdicts, seeds, more, columns, as_json)


def _http_shapes(folder: Path | None, only: str, as_json: bool) -> list[str]:
    from airloom.page_load.squid import squid_program
    from airloom.validate import http_shapes
    from airloom.validate.http_shapes import proxies

    _no_records("http-shapes", folder)
    shapes = http_shapes.chosen(only)
    program = squid_program()
    with ExitStack() as stack, interruptible(), steps("asking", len(shapes)) as done:
        ports = {"airloom": stack.enter_context(proxies.ours())}
        if program is not None:
            ports["squid"] = stack.enter_context(proxies.squid(program))
        found = http_shapes.judge_all(shapes, ports, done)
    missed = [one.name for one in found if one.seen["airloom"].fault]
    if as_json:
        seen = [{**one._asdict(), "seen": {name: s._asdict() for name, s in one.seen.items()}} for one in found]
        print_json({"shapes": seen, "missed": missed})
    else:
        columns = [word for name in ports for word in (f"{name}: heard", "passed on")]
        rows = [
            [one.kind, one.name, one.source, *(word for seen in one.seen.values() for word in seen.words)]
            for one in found
        ]
        print_table(["what", "shape", "source", *columns], rows, right=())
    for name in ports:
        safe = sum(not one.seen[name].fault for one in found)
        say(f"{name}: safe with {safe} of {len(found)} shapes")
    if program is None:
        say("squid is not installed: nothing to compare with")
    return missed


def _no_records(what: str, folder: Path | None) -> None:
    if folder is not None:
        raise UsageError(f"validate {what} compares with this machine, not with records in {quoted(folder)}")


def _print_pairs(
    verdicts: Sequence[Verdict[C, R]],
    seeds: int,
    more: Mapping[str, Mapping[str, object]],
    columns: Mapping[str, Sequence[str]],
    as_json: bool,
) -> list[str]:
    """Prints pairs of runs, with `more` about a cell in JSON and further `columns` in the table; the cells missed."""
    missed = [v.cell.name for v in verdicts if not v.met]
    if as_json:
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
                "met": v.met,
            }
            for v in verdicts
        ]
        print_json({"cells": found, "missed": missed})
    else:
        table = {
            "cell": [v.cell.name for v in verdicts],
            "real s": [f"{v.real_s:.3f}" for v in verdicts],
            "simulated s": [f"{v.simulated_s:.3f}" for v in verdicts],
            "error": [f"{v.error:+.2%}" for v in verdicts],
            "bar": [f"{v.cell.bar:.1%}" for v in verdicts],
            "seed by seed": [f"{min(v.errors):+.2%} .. {max(v.errors):+.2%}" for v in verdicts],
            **columns,
            "late": [str(v.invalid) for v in verdicts],
            "met?": [_met(v.met) for v in verdicts],
        }
        right = [n for n, name in enumerate(table) if name not in ("cell", "seed by seed", "real again", "met?")]
        print_table(list(table), [list(row) for row in zip(*table.values(), strict=True)], right=tuple(right))
    met, again = len(verdicts) - len(missed), sum(v.repeated for v in verdicts)
    say(f"{met} of {len(verdicts)} cells met, {seeds} seeds each, {again} late runs made again   next: airloom doctor")
    return missed


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


def _errors(bar: Bar) -> tuple[str, str]:
    if bar.what == "sent again":
        return f"{bar.error:g}", f"{bar.bar:g}"
    return f"{bar.error:.2%}", f"{bar.bar:.1%}"
