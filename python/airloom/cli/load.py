"""`airloom load`: a real page in a real browser over modelled links."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import common, names
from airloom.cli.terminal import (
    interruptible,
    open_hint,
    print_json,
    print_table,
    quoted,
    say,
    say_error,
    steps,
    verdict_follows,
)
from airloom.errors import UsageError
from airloom.places import command

if TYPE_CHECKING:
    from airloom.page_load.measure import Loaded
    from airloom.page_load.outcome import Runs

#: The page was not loaded, or was the page of an error.
_NOT_LOADED = 1
#: With `--strict`: this machine was too slow for the times to be believed.
_NOT_VALID = 3
#: With more loads than this the table has a row for each, else a column.
_COLUMNS = 3


def load(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="http://origin/... (a server that is started; https: by TLS), http://localhost:PORT/... "
            "(a program of this machine), or any other address (the outside world).",
        ),
    ],
    link: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A bearer or a preset, such as umts-dch or wpt/3g. May be repeated.",
            autocompletion=names.links,
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="none, split-tcp, http-cache or squid, in the gateway. May be repeated.",
            autocompletion=names.ways,
        ),
    ] = None,
    http: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERSION",
            help="1.1, 2 or 3 (by QUIC; https, no proxy). Default: what browser and server agree on. May be repeated.",
            autocompletion=names.http_versions,
        ),
    ] = None,
    site: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]DIR",
            help="The files that origin has (default: a sample page); NAME=DIR: those of a further server NAME.",
        ),
    ] = None,
    loopback: Annotated[
        list[str] | None,
        typer.Option(metavar="PORT,..", help="Further TCP ports of this machine's loopback that the page may ask."),
    ] = None,
    outside: Annotated[
        bool, typer.Option("--outside", help="Let a page of origin or of this machine ask the outside world, too.")
    ] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Take certificates that nobody vouches for.")] = False,
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Between gateway and servers, each way. Default: 20ms; 0ms to the outside world.",
        ),
    ] = None,
    loss: Annotated[float, typer.Option(metavar="P", help="Of datagrams there, each way.", min=0, max=1)] = 0.0,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=V", help=common.SET_HELP, autocompletion=names.keys_of_load),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed of the links; of the first run.")] = 1,
    runs: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="So many loads each, with one seed after the other; the median shows."),
    ] = 1,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.001, help="How long a page may take.")] = 120.0,
    allow_status: Annotated[
        list[int] | None,
        typer.Option(metavar="STATUS", min=400, max=599, help="An HTTP error that is no failure. May be repeated."),
    ] = None,
    strict: Annotated[
        str | None,
        typer.Option(
            metavar="BOUND",
            help="The times are valid if the 99th percentile of lateness is at most this, such as 2ms "
            "(`run.lateness_limit`); end with 3 if they are not.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show counts that are zero, too.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the results go. Default: a new folder in runs/.")
    ] = None,
    force: common.Force = False,
    as_json: common.Json = False,
) -> None:
    """Loads the page over each link, by each proxy; every load is a laboratory of its own, in real time.

    Ends with 1 if the page was not loaded or its answer is an HTTP error, else with 3 if the times are not as --strict
    wants them.
    """
    from airloom.page_load import load_page
    from airloom.page_load.folder import LoadFolder
    from airloom.page_load.outcome import complaints, name_of, status_text, together

    overrides = common.overrides(setting or [])
    if strict is not None:
        common.check_bound(strict)
        overrides["run.lateness_limit"] = strict
    root, others = _sites(site or [])
    ports = common.ports(loopback or [])
    wanted: list[tuple[str, str, str | None]] = [
        (of_link, way, version)
        for of_link in link or ["umts-dch"]
        for way in proxy or ["none"]
        for version in http or (None,)
    ]
    if twice := next((pair for pair in wanted if wanted.count(pair) > 1), None):
        raise UsageError(f"{twice[0]} with {twice[1]} is asked for twice")
    folder = LoadFolder(out, url, force=force)
    loads: list[Loaded] = []
    total = len(wanted) * runs

    def left() -> str:
        return f"{len(loads)} of {total} loads are in {quoted(folder.path)}" if loads else "nothing was written"

    try:
        with interruptible(left), steps(f"loading {url}", total) as show:
            show(0)
            for of_link, way, version in wanted:
                for number in range(runs):
                    with folder.place(of_link, way, version, number if runs > 1 else None) as place:
                        found = load_page(
                            url,
                            of_link,
                            way,
                            place,
                            root=root,
                            others=others,
                            loopback=ports,
                            outside=outside,
                            insecure=insecure,
                            delay=delay,
                            loss=loss,
                            seed=seed + number,
                            timeout_s=timeout,
                            overrides=overrides,
                            http=version,
                        )
                    loads.append(found)
                    took = "not loaded" if found.page_s is None else f"{found.page_s:.2f} s, {status_text(found)}"
                    say(f"{name_of(found)}{f', seed {found.seed}' if runs > 1 else ''}: {took}")
                    show(len(loads))
    except BaseException:
        if loads:
            folder.finish(loads, command())
        else:
            folder.remove()
        raise
    report = folder.finish(loads, command())
    groups = together(loads)
    with verdict_follows():
        if as_json:
            from airloom.page_load.outcome import as_json as plain

            print_json([plain(group) for group in groups])
        else:
            _show(groups, everything)
    say(f"results in {quoted(folder.path)}   next: {open_hint(report)}")
    bad = complaints(loads, allow_status or [])
    for sentence in bad:
        say_error(sentence)
    late = [one for one in loads if not one.valid] if strict is not None else []
    for one in late:
        say_error(f"--strict {strict}: {name_of(one)}: times are not valid: {'; '.join(one.reasons)}")
    if bad or late:
        raise typer.Exit(_NOT_LOADED if bad else _NOT_VALID)


def _show(groups: Sequence[Runs], everything: bool) -> None:
    """What is known of the loads: how long, how sure, what it cost."""
    from airloom.page_load.outcome import name_of, rows

    columns = [rows(group, everything=everything) for group in groups]
    names = list(dict.fromkeys(name for column in columns for name in column))
    heads = ["", *(name_of(group.shown) for group in groups)]
    lines = [[name, *(_cell(column.get(name)) for column in columns)] for name in names]
    if len(groups) > _COLUMNS:
        heads, *lines = [list(line) for line in zip(heads, *lines, strict=True)]
    print_table(heads, lines, right=tuple(range(1, len(heads))))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return " to ".join(_cell(end) for end in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _sites(words: list[str]) -> tuple[Path | None, dict[str, Path]]:
    """The files of the first server, and of further ones."""
    root: Path | None = None
    others: dict[str, Path] = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not equals or Path(word).exists():
            if root is not None:
                raise UsageError(
                    f"--site {word}: the files of origin are {root} already; a further server: NAME={word}"
                )
            root = Path(word)
        elif name in others:
            raise UsageError(f"--site {word}: {name} has files already")
        else:
            others[name] = Path(folder)
    return root, others
