"""`airloom report`: a result folder as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common, names
from airloom.cli.terminal import busy, emit, interruptible, open_hint, print_json, say


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a run or of a sweep.", autocompletion=names.results)
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it. Default: report.html in the folder.")
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Writes the report and says where it is."""
    from airloom.report import build, page

    with interruptible(), busy("reading"):
        made = build(folder, out)
    if as_json:
        print_json({"report": str(made), "octets": made.stat().st_size})
        return
    emit(str(made))
    say(f"{page.size(made.stat().st_size)}, needs no network   next: {open_hint(made)}")
