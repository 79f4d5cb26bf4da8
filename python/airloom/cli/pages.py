"""`airloom pages`: page sets, made of a model, a HAR file or a folder, and looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import print_json, print_table, quoted, say
from airloom.errors import UsageError

if TYPE_CHECKING:
    from airloom.page_sets import PageSet

app = typer.Typer(no_args_is_help=True)

_Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the page set goes.")]


def _write(pages: PageSet, out: Path) -> None:
    if out.exists():
        raise UsageError(f"{out} exists: choose another --out, or move it away")
    pages.write(out)
    say(f"{len(pages.pages)} pages in {quoted(out)}   next: airloom pages show {quoted(out)}")


@app.command(help="A news site of 2004, made up after published numbers.")
def news(
    out: _Out = Path("news.json"),
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed is another site of the same kind.")] = 2004,
    count: Annotated[int, typer.Option("--pages", metavar="N", min=1, max=10_000, help="How many pages.")] = 135,
) -> None:
    """Writes a made-up set."""
    from airloom import page_sets

    _write(page_sets.news(seed, count), out)


@app.command(help="The pages of a HAR file: what a browser exports of a visit, or airloom load has written.")
def har(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .har file.")],
    out: _Out = Path("pages.json"),
    one_server: Annotated[bool, typer.Option("--one-server", help="All objects at one server.")] = False,
) -> None:
    """Writes the set of a visit."""
    from airloom import page_sets

    _write(page_sets.from_har(file, one_server=one_server), out)


@app.command(help="A page of each .html file in a folder, with the files that it names.")
def folder(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of files.")],
    out: _Out = Path("pages.json"),
) -> None:
    """Writes the set of a folder."""
    from airloom import page_sets

    _write(page_sets.from_folder(directory), out)


def _read(name: Path) -> PageSet:
    from airloom import page_sets

    return page_sets.news() if str(name) == "news-2004" else page_sets.read(name)


_SET = Annotated[Path, typer.Argument(metavar="SET", help="A page set, or news-2004, which is built in.")]


@app.command(help="What is in a page set: pages, objects, sizes, servers.")
def show(name: _SET, as_json: common.Json = False) -> None:
    """Prints a row per page."""
    pages = _read(name)
    found = [
        {"page": n, "name": p.name, "objects": len(p.objects), "octets": p.octets, "servers": p.servers}
        for n, p in enumerate(pages.pages, 1)
    ]
    if as_json:
        print_json({"title": pages.title, "source": pages.source, "servers": pages.servers, "pages": found})
        return
    print_table(list(found[0]), [[str(cell) for cell in row.values()] for row in found])
    say(f"{pages.title}   hosts that a scenario needs: {', '.join(pages.servers) or 'any server'}")


@app.command(help="The files of a page set, a folder for each server, for nginx and other real servers.")
def files(name: _SET, out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR")] = Path("site")) -> None:
    """Writes the files."""
    from airloom import page_sets

    page_sets.to_folder(_read(name), out)
    say(f"results in {quoted(out)}")
