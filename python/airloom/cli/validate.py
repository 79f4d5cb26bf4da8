"""`airloom validate`: the model against records of the real thing."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import interruptible, print_json, print_table, quoted, say, steps
from airloom.errors import UsageError

if TYPE_CHECKING:
    from airloom.validate.linux_tcp import Bar

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
    missed = [v.case for v in verdicts if not v.met]
    if as_json:
        print_json({"cases": [{**asdict(v), "error": v.error, "met": v.met} for v in verdicts], "missed": missed})
    else:
        rows = [
            [v.case, b.what, f"{b.theirs:.5g}", f"{b.ours:.5g}", *_errors(b), "met" if b.met else "MISSED"]
            for v in verdicts
            for b in v.bars
        ]
        columns = ["case", "what", "theirs", "ours", "error", "bar", "met?"]
        print_table(columns, rows, right=(2, 3, 4, 5))
    bars = [b.met for v in verdicts for b in v.bars]
    met = f"{sum(bars)} of {len(bars)} bars met, {len(verdicts)} cases in {quoted(folder)}"
    say(f"{met}   next: airloom list transports tcp")
    if missed:
        raise typer.Exit(1)


def _errors(bar: Bar) -> tuple[str, str]:
    if bar.what == "sent again":
        return f"{bar.error:g}", f"{bar.bar:g}"
    return f"{bar.error:.2%}", f"{bar.bar:.1%}"
