"""`airloom wap compile` and `airloom wap decompile`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from airloom._core import wap_compile, wap_decompile
from airloom.cli import common
from airloom.cli.terminal import emit_octets, print_json, quoted, say, say_error
from airloom.errors import UsageError
from airloom.places import check_file

_VERSIONS = ("1.1", "1.2", "1.3")

In = Annotated[Path, typer.Argument(metavar="IN", help="The document; - is standard input.")]
Out = Annotated[Path | None, typer.Option("-o", "--out", metavar="OUT", help="Where to; without it, standard output.")]


def compile_(
    source: In,
    out: Out = None,
    charset: Annotated[str | None, typer.Option(help="Character set, if not the one that the document says.")] = None,
    wbxml: Annotated[str | None, typer.Option(metavar="VERSION", help="Version of WBXML: 1.1, 1.2 or 1.3.")] = None,
    as_json: common.Json = False,
) -> None:
    """WML, SI, SL or CO to WBXML. What is odd about the document is said with its line and column."""
    if wbxml is not None and wbxml not in _VERSIONS:
        raise UsageError(f"no WBXML version {wbxml!r}; valid: {', '.join(_VERSIONS)}")
    text = _read(source, out)
    try:
        octets, warnings = wap_compile(text, charset, wbxml)
    except ValueError as error:
        raise UsageError(f"{quoted(source)}: {error}") from None
    for warning in warnings:
        say_error(f"warning: {quoted(source)}: {warning}")
    if out is None and not as_json:
        sys.stdout.buffer.write(octets)
        return
    if out is not None:
        out.write_bytes(octets)
    if as_json:
        print_json({"octets_in": len(text), "octets_out": len(octets), "warnings": warnings})
    else:
        say(f"{len(text)} octets -> {len(octets)}   next: airloom wap decompile {quoted(out or '-')}")


def _read(source: Path, out: Path | None) -> bytes:
    if out is not None:
        check_file(out, source)
    return common.read(source)


def decompile(source: In, out: Out = None) -> None:
    """WBXML to readable text."""
    try:
        text = wap_decompile(_read(source, out))
    except ValueError as error:
        raise UsageError(f"{quoted(source)}: {error}") from None
    if out is None:
        emit_octets(text.encode())
    else:
        out.write_text(text, encoding="utf-8")
