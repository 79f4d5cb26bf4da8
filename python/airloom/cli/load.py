"""`airloom load`: a real page in a real browser over modelled links."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import print_json, print_table, quoted, say
from airloom.errors import UsageError


def load(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="http://origin/... or, by TLS and HTTP/2, https://origin/...")
    ],
    link: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A bearer or a preset, such as umts-dch or wpt/3g. May be repeated."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="none, split-tcp, http-cache or squid, in the gateway. May be repeated."),
    ] = None,
    site: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]DIR",
            help="The files that the server has (default: a sample page); NAME=DIR: those of a further server NAME.",
        ),
    ] = None,
    delay: Annotated[str, typer.Option(metavar="TIME", help="Between gateway and servers, each way.")] = "20ms",
    loss: Annotated[float, typer.Option(metavar="P", help="Of datagrams there, each way.", min=0, max=1)] = 0.0,
    setting: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=V", help=common.SET_HELP)] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of the links.")] = 1,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long a page may take.")] = 120.0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the results go. Default: a new folder in runs/.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help=common.JSON_HELP)] = False,
) -> None:
    """Loads the page once for each link and proxy; every load is a laboratory of its own, in real time."""
    from airloom.page_load import load_page
    from airloom.page_load.report import name_of, write_report

    folder = out or Path("runs") / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}-load"
    if folder.exists():
        raise UsageError(f"{folder} exists: choose another --out, or move it away")
    overrides = common.overrides(setting or [])
    root, others = _sites(site or [])
    loads = []
    try:
        for of_link in link or ["umts-dch"]:
            for way in proxy or ["none"]:
                place = folder / f"{of_link.replace('/', '-')}-{way}"
                if place.exists():
                    raise UsageError(f"{of_link} with {way} is asked for twice")
                found = load_page(
                    url,
                    of_link,
                    way,
                    place,
                    root=root,
                    others=others,
                    delay=delay,
                    loss=loss,
                    seed=seed,
                    timeout_s=timeout,
                    overrides=overrides,
                )
                loads.append(found)
                took = found.seen["error"] if found.page_s is None else f"{found.page_s:.2f} s"
                say(f"{name_of(found)}: {took}")
    finally:
        if not loads:
            shutil.rmtree(folder, ignore_errors=True)
    write_report(loads, url, folder / "report.html")
    if as_json:
        keys = ("load", "content", "paint", "error")
        print_json(
            [
                {"link": one.link, "proxy": one.way, "page_s": one.page_s, "valid": bool(one.summary.get("valid"))}
                | {key: one.seen.get(key) for key in keys}
                for one in loads
            ]
        )
    else:
        rows = [
            [
                name_of(one),
                "not loaded" if one.page_s is None else f"{one.page_s:.3f}",
                str(len(one.seen.get("requests", []))),
                "valid" if one.summary.get("valid") else "not valid",
            ]
            for one in loads
        ]
        print_table(["load", "page (s)", "requests", "times are"], rows)
    say(f"results in {quoted(folder)}   next: open {quoted(folder / 'report.html')}")


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
