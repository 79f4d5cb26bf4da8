"""`airloom python`: a Python script that may enter laboratories."""

from __future__ import annotations

from typing import Annotated

import typer


def python(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT [ARGS]", help="As for python itself: a script, -m MODULE, -c.")
    ] = None,
) -> None:
    """Enters a user namespace where that is needed, and becomes Python."""
    from airloom.reexec import become

    become(arguments or [])
