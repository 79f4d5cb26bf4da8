"""`airloom replay`: a run again with one setting changed, and the first packet that differs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airloom import digest
from airloom.cli import common, names
from airloom.cli.terminal import emit, interruptible, print_json, print_table, progress, quoted, say
from airloom.errors import UsageError


def replay(
    run: Annotated[Path, typer.Argument(help="The folder of a run in virtual time.")],
    settings: names.Settings = None,
    out: common.Out = None,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Simulates it again with these settings, everything else as it was, and says where the two part."""
    from airloom.replay import replay as again
    from airloom.run import Run

    overrides = common.overrides(settings or [])
    if not overrides:
        raise UsageError("nothing is changed; say what with --set KEY=V")
    original = Run(run)
    with interruptible(), progress(original.manifest["name"]) as report:
        done, found = again(original, overrides, out=out, force=force, progress=report)
    if as_json:
        document = found.document()
        first = document.pop("first_differences")
        print_json({"folder": str(done.folder), "first_difference": first[0] if first else None, **document})
    else:
        rows = [[key, *map(str, values)] for key, values in found.settings.items()]
        print_table(["setting", "A", "B"], rows)
        emit()
        emit(found.first.in_words() if found.first else "no packet differs")
        for note in found.notes:
            say(note)
        emit()
        changed = [row for row in found.differences.to_dicts() if row["first"] is not None and row["value"] is not None]
        shown = [[r["measure"], digest.number(r["first"]), digest.number(r["value"])] for r in changed]
        print_table(["number", "A", "B"], shown, right=(1, 2))
    say(f"results in {quoted(done.folder)}   next: airloom compare {quoted(run)} {quoted(done.folder)}")
