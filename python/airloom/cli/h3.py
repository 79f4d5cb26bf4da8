"""`airloom h3 get` and `airloom serve h3`: files over HTTP/3, on real sockets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common, daemons
from airloom.cli.terminal import busy, emit, interruptible, print_json, say
from airloom.errors import UsageError

#: A field's name is a token, and its value is of printable octets (RFC 9110, 5.1 and 5.5).
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([!-~](?:[ -~\t]*[!-~])?)[ \t]*")
#: Those of a connection (RFC 9114, 4.2), and what the server says of its files and of itself.
_NOT_TOLD = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
        *("content-length", "content-type", "date", "server"),
    }
)

app = typer.Typer(no_args_is_help=True)


@app.command("get")
def get(
    urls: Annotated[list[str], typer.Argument(metavar="URL..", help="What to fetch: https://HOST:PORT/PATH.")],
    out: Annotated[
        list[Path] | None,
        typer.Option("-o", "--out", metavar="FILE", help="Where it goes. May be repeated, in the order of the URLs."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where all of them go, by the last name of their paths.")
    ] = None,
    ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Believe servers with a certificate of this file, or signed by one (PEM)."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Believe any server. On loopback that needs not be said.")
    ] = False,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, max=86_400, help="Give a silent server up after that.")
    ] = 30.0,
    as_json: common.Json = False,
) -> int:
    """Fetch files over HTTP/3, all of one server side by side over one connection."""
    from airloom import http3

    if (into is not None) == bool(out):
        raise UsageError("say where it goes: -o FILE for each URL, or --into DIR")
    files = [into / _name(url) for url in urls] if into is not None else list(out or [])
    if len(files) != len(urls):
        raise UsageError(f"{len(urls)} addresses, and -o {len(files)} times: say it for each")
    if len(set(files)) != len(files):
        raise UsageError("two of them would have one name")
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
    with interruptible("files that are not whole stay as they are"), busy("fetching"):
        got = http3.get(urls, files, trust=ca, insecure=insecure, patience_s=patience)
    if as_json:
        print_json([vars(one) | {"file": str(one.file)} for one in got])
    else:
        for one in got:
            times = f"first after {one.first_s:.3f} s, whole {one.rest_s:.3f} s later"
            say(f"{one.status} {one.url}: {one.octets} B, {times}")
    return 0 if all(200 <= one.status < 300 for one in got) else 1


def _name(url: str) -> str:
    path = re.split("[?#]", url, maxsplit=1)[0].partition("://")[2].partition("/")[2]
    name = path.rstrip("/").rpartition("/")[2]
    return name if name not in ("", ".", "..") else "index.html"


def _field(line: str) -> tuple[str, str]:
    """A line of a header as name and value: one that HTTP/3 lets pass, and that we do not say ourselves."""
    found = _FIELD.fullmatch(line)
    if found is None:
        raise UsageError(f"--header {line}: expected NAME: VALUE")
    if (name := found[1].lower()) in _NOT_TOLD:
        raise UsageError(f"--header {line}: {name} is not for you to say")
    return name, found[2]


def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Whose files are served.")],
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where clients come to (UDP).")] = "127.0.0.1:4433",
    cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificates (PEM). One is made for this run without it.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Their key (PEM).")] = None,
    allow_client: daemons.Clients = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="'NAME: VALUE'", help="What every answer says besides. May be repeated."),
    ] = None,
    connections: Annotated[
        int, typer.Option(metavar="N", min=1, max=10_000, help="Connections beyond this number are refused.")
    ] = 256,
    log: daemons.Log = True,
    grace: daemons.Grace = 5.0,
) -> None:
    """The files of a folder over HTTP/3. Ends by Ctrl-C or SIGTERM.

    It listens on loopback unless told otherwise. Paths and links that lead out of the folder are not served.
    """
    from airloom._core import serve_h3

    if (cert is None) != (key is None):
        raise UsageError("--cert and --key belong together")
    if not folder.is_dir():
        raise UsageError(f"{folder}: is no folder")
    place = daemons.address("--listen", listen) or ""
    fields = [_field(line) for line in header or []]

    def ready(at: str) -> None:
        emit(f"listening on {at}")
        say(f"stop with Ctrl-C   next: airloom h3 get https://{at}/FILE -o FILE")

    def run() -> None:
        write = daemons.log_line if log else None
        certificate = (cert, key) if cert is not None and key is not None else None
        serve_h3(place, folder, certificate, fields, allow_client or [], connections, grace, ready, write)

    daemons.run(run, [])
