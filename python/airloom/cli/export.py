"""`airloom export`: a run in the forms of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common, names
from airloom.cli.terminal import busy, emit, interruptible, print_json, quoted, say
from airloom.errors import CannotWrite, UsageError
from airloom.places import check_file


def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", autocompletion=names.results)],
    qlog: Annotated[
        str | None,
        typer.Option(
            metavar="draft|qvis",
            help="Events of QUIC's connections, and of TCP, SCTP and RLC as far as they were recorded: in the form of "
            "today's draft, or in that of qvis (0.3).",
            autocompletion=lambda: ["draft", "qvis"],
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where they go. Default: qlog-draft or qlog-qvis in RUN.")
    ] = None,
    keylog: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Secrets of its capture, for programs that take SSLKEYLOGFILE."),
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Writes what is asked for and says where it is."""
    from airloom.qlog import export
    from airloom.run import Run

    if qlog is None and keylog is None:
        raise UsageError("say what is wanted: --qlog draft|qvis, --keylog FILE")
    if qlog is None and out is not None:
        raise UsageError("--out: that is where --qlog goes")
    if keylog is not None:
        check_file(keylog)
    run = Run(folder)
    made: list[Path] = []
    if qlog is not None:
        with interruptible(), busy("writing"):
            made = export(run, qlog, out or run.folder / f"qlog-{qlog}")
    if keylog is not None:
        _write_key_log(run.capture, keylog)
        made.append(keylog)
    if as_json:
        print_json({"files": [str(file) for file in made]})
        return
    for file in made:
        emit(str(file))
    if qlog == "qvis":
        say("next: open them in qvis (https://qvis.quictools.info)")


def _write_key_log(capture: Path | None, file: Path) -> None:
    from airloom.key_log import key_log

    if capture is None:
        raise UsageError('this run has no capture: add "pcapng" to `record` in [run] and run again')
    if not (lines := key_log(capture)):
        raise UsageError(f"{quoted(capture)} has no secrets: nothing in it is protected, or not by us")
    try:
        file.write_text(lines, encoding="ascii")
    except OSError as error:
        raise CannotWrite(f"{quoted(file)}: {error.strerror or error}") from None
