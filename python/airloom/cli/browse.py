"""`airloom browse`: the browser of the simulated network over this machine's TCP."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from airloom.cli import common, daemons
from airloom.cli.terminal import busy, print_json, print_table, say, say_error
from airloom.errors import RunError, UsageError


def browse(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="[URL]...", help="http://HOST/PATH, one after another.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=V", help="A setting of http-client: pipeline=4, page_set=news.json, ..."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Decides what is drawn.", min=0)] = 1,
    nagle: Annotated[bool, typer.Option("--nagle", help="Nagle's rule on its connections.")] = False,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long all of it may take.", min=0)] = 600.0,
    as_json: common.Json = False,
) -> None:
    """Prints a row per page; with --json all of it, objects and summary included."""
    from airloom.browsing import browse as load

    settings = common.overrides(setting or [])
    # The browser hears of signals itself, and says what it has until then; its handler calls the one before it too.
    ended: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: ended.append(number))
    try:
        with busy("loading"):
            found = load(urls, settings, seed=seed, nagle=nagle, timeout_s=timeout)
    except UsageError as error:
        raise UsageError(daemons.explained(str(error), daemons.settings(setting or []))) from None
    if as_json:
        print_json(found._asdict())
    else:
        rows = [
            [
                str(page["page"]),
                page["url"],
                "-" if page["load_s"] is None else f"{page['load_s']:.3f}",
                str(page["objects"]),
                str(page["bytes"]),
                str(page["connections"]),
                str(page["failed"]),
            ]
            for page in found.pages
        ]
        columns = ["page", "url", "loaded (s)", "objects", "octets", "connections", "failed"]
        print_table(columns, rows, right=(0, 2, 3, 4, 5, 6))
    failed = sum(page["failed"] for page in found.pages)
    if ended:
        say_error(f"interrupted: {len(found.pages)} pages were loaded to their end")
        raise typer.Exit(128 + ended[0])
    if not found.done:
        raise RunError(f"not done: {len(found.pages)} pages were loaded to their end")
    say(f"{len(found.pages)} pages, {len(found.objects)} objects, {failed} failed")
    if failed:
        raise typer.Exit(1)
