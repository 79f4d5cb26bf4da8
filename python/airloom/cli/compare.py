"""`airloom compare`: what differs between results."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airloom import digest
from airloom.cli import common
from airloom.cli.terminal import emit, print_json, print_table, quoted, say, verdict_follows
from airloom.places import check_file, command, write_whole

if TYPE_CHECKING:
    from airloom.comparison import Comparison

#: Settings that are printed; the page and --json have them all.
_MOST_SETTINGS = 20

#: Tables of connections that are printed, those with most data first.
_MOST_CONNECTIONS = 8

#: Letters of a setting that are printed.
_LONGEST = 40


def compare(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B [C ..]", help="Folders of runs, of sweeps or of loads, or captures; A is the baseline."
        ),
    ],
    measure: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this measure. May be repeated.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Of single hosts, links and directions too, and what is equal.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with tables and pictures.")
    ] = None,
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code", help="End with 1 if anything differs, as diff does; with --measure, if that does."),
    ] = False,
    as_json: common.Json = False,
) -> None:
    """Prints what differs, with intervals where there are seeds, and the first packet that is not the same."""
    from airloom.comparison import compare as comparison

    if html is not None:
        for result in results:
            check_file(html, result)
    found = comparison(*results, measures=measure or ())
    if html is not None:
        from airloom.report.comparison import page_text

        write_whole(html, page_text(found, shlex.join(["airloom", *command()[1:]])))
    with verdict_follows():
        if as_json:
            print_json(found.document())
        else:
            _print(found, measure or [], everything=everything)
    if html is not None:
        say(f"wrote {quoted(html)}   next: xdg-open {quoted(html)}")
    elif not found.is_equal:
        say(f"next: airloom compare {shlex.join(map(str, results))} --html comparison.html")
    asked = found.differences["measure"].is_in(measure) if measure else None
    if exit_code and (not found.is_equal if asked is None else asked.any()):
        raise typer.Exit(1)


def _print(found: Comparison, measures: list[str], *, everything: bool) -> None:
    for letter, name in found.names.items():
        emit(f"{letter}  {name}")
    _print_settings(found)
    for first in found.firsts:
        emit(first.in_words())
    rows = _shown(found, measures, everything=everything)
    columns = [*found.levels, "measure", "unit", "A"]
    for letter in (letter for letter in found.names if letter != "A"):
        columns += [letter, f"{letter} - A"]
    if found.kind == "captures":
        _print_connections(columns[1:], rows, everything=everything)
    elif rows:
        emit()
        print_table(columns, rows, right=tuple(range(len(found.levels) + 2, len(columns))))
    if found.is_equal and not rows:
        emit("nothing differs")
    for note in found.notes:
        say(note)
    if found.kind == "captures":
        return
    if found.levels:
        say("medians over seeds, and the median of the differences under the same seed with its 95 % interval")
    hidden = found.differences.height // max(len(found.names) - 1, 1) - len(rows)
    if hidden > 0 and not everything:
        say(f"{hidden} more that differ, by host, link and direction: --all")


def _print_connections(columns: list[str], rows: list[list[str]], *, everything: bool) -> None:
    """A table for all connections together, and one for each that differs."""
    tables: dict[str, list[list[str]]] = {}
    for connection, *cells in rows:
        tables.setdefault(connection, []).append(cells)
    shown = list(tables.items())[: None if everything else _MOST_CONNECTIONS]
    for connection, lines in shown:
        emit(f"\n{connection}")
        print_table(columns, lines, right=tuple(range(2, len(columns))))
    if more := len(tables) - len(shown):
        say(f"{more} more connections differ: --all")


def _print_settings(found: Comparison) -> None:
    if not found.settings:
        return
    shown = list(found.settings.items())[:_MOST_SETTINGS]
    emit()
    print_table(["setting", *found.names], [[key, *map(_set, values)] for key, values in shown])
    if more := len(found.settings) - len(shown):
        say(f"{more} more settings differ: --json has them")


def _set(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _shown(found: Comparison, measures: list[str], *, everything: bool) -> list[list[str]]:
    """A line for each measure (and point), with all the others beside A."""
    order = found.table["measure"].unique(maintain_order=True).to_list()
    if found.kind == "runs":
        order = digest.order(order)
    # Of sweeps all points of what differs at one; each connection of a capture has a table of its own.
    by = ["measure", *(["connection"] if found.kind == "captures" else [])]
    differing = set(found.differences.select(by).iter_rows())
    lines: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in found.table.iter_rows(named=True):
        name = row["measure"]
        if measures and name not in measures:
            continue
        is_shown = (
            tuple(row[column] for column in by) in differing
            and ("." not in name or found.levels)
            and name not in digest.INNER
        )
        if not (measures or everything or is_shown):
            continue
        lines.setdefault((*(row[level] for level in found.levels), name), {})[row["of"]] = row
    hidden = _repeated(found, lines) if not (everything or measures or found.levels) else set()
    points = list(dict.fromkeys(key[:-1] for key in lines))
    rows = []
    for key in sorted(lines, key=lambda key: (points.index(key[:-1]), order.index(key[-1]))):
        if key[-1] in hidden:
            continue
        some = next(iter(lines[key].values()))
        cells = [*(_level(level) for level in key[:-1]), key[-1], some["unit"], _number(some["first"])]
        for letter in (one for one in found.names if one != "A"):
            its = lines[key].get(letter)
            cells += ["-", "-"] if its is None else [_number(its["value"]), _difference(its)]
        rows.append(cells)
    return rows


def _repeated(found: Comparison, lines: dict[tuple[Any, ...], Any]) -> set[str]:
    """Measures that only repeat others, in all results."""
    keys = [key[-1] for key in lines]
    values = [{key[-1]: next(iter(row.values()))["first"] for key, row in lines.items()}]
    values += [
        {key[-1]: row[letter]["value"] for key, row in lines.items() if letter in row}
        for letter in found.names
        if letter != "A"
    ]
    return set.intersection(*(digest.repetitions(one, [key for key in keys if key in one]) for one in values))


def _level(value: Any) -> str:
    return digest.number(value) if isinstance(value, float) else str(value)


def _number(value: float | None) -> str:
    return "-" if value is None else digest.number(value)


def _difference(row: dict[str, Any]) -> str:
    if row["difference"] is None:
        return "-"
    said = _signed(row["difference"])
    if row["low"] is not None:
        return f"{said} [{_signed(row['low'])}, {_signed(row['high'])}]"
    return f"{said} ({_signed(100 * row['difference'] / row['first'], 2)} %)" if row["first"] else said


def _signed(value: float, digits: int = 4) -> str:
    text = digest.number(value, digits)
    return text if value <= 0 else f"+{text}"
