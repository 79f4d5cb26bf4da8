"""`airloom validate`: the model against records of the real thing."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import interruptible, print_json, print_table, quoted, say, steps
from airloom.errors import UsageError

HELP = "Compare the model with records of real transfers: linux-tcp DIR."

_WHAT = ("linux-tcp",)


def validate(
    what: Annotated[str, typer.Argument(help="What to compare: linux-tcp.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with one JSON file per recorded case.")],
    as_json: Annotated[bool, typer.Option("--json", help=common.JSON_HELP)] = False,
) -> None:
    """Prints theirs, ours and the error per case; exit code 1 if a bar is missed."""
    if what not in _WHAT:
        raise UsageError(f"nothing called {what!r} to validate; valid: {', '.join(_WHAT)}")
    from airloom.validate.linux_tcp import compare, records

    found = records(folder)
    with interruptible(), steps("comparing", len(found)) as done:
        verdicts = compare(found, done)
    missed = [v.case for v in verdicts if v.met is False]
    if as_json:
        print_json({"cases": [{**asdict(v), "error": v.error} for v in verdicts], "missed": missed})
    else:
        rows = [
            [
                v.case,
                f"{v.theirs_s:.3f}",
                "" if v.ours_s is None else f"{v.ours_s:.3f}",
                "" if v.error is None else f"{v.error:+.2%}",
                _count(v.theirs_resent),
                _count(v.ours_resent),
                {None: "", True: "met", False: "MISSED"}[v.met],
                v.note,
            ]
            for v in verdicts
        ]
        columns = ["case", "theirs s", "ours s", "error", "resent theirs", "resent ours", "bar", "note"]
        print_table(columns, rows, right=(1, 2, 3, 4, 5))
    bars = [v for v in verdicts if v.met is not None]
    met = f"{len(bars) - len(missed)} of {len(bars)} bars met, {len(verdicts)} cases in {quoted(folder)}"
    say(f"{met}   next: airloom list transports tcp")
    if missed:
        raise typer.Exit(1)


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
