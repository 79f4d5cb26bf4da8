"""`airloom wwp send` and `airloom wwp receive`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import common
from airloom.cli.terminal import interruptible, print_json, quoted, say, say_error, steps
from airloom.errors import UsageError

app = typer.Typer(no_args_is_help=True)

Patience = Annotated[
    float, typer.Option("--patience", metavar="SECONDS", min=0.1, max=86_400, help="Give a silent peer up after that.")
]


def _progress(stack: ExitStack) -> Callable[[int, int], None]:
    """A bar that is there from the first octets on, when it is known how many there will be."""
    show: list[Callable[[int], None]] = []

    def shown(done: int, total: int) -> None:
        if not show:
            show.append(stack.enter_context(steps("receiving", total)))
        show[0](done)

    return shown


@app.command("send")
def send(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to send.")],
    to: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where `airloom wwp receive` listens.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="What it is called there.")] = None,
    patience: Patience = 30.0,
    as_json: common.Json = False,
) -> int:
    """Send a file to an `airloom wwp receive`; what was interrupted goes on where it ended."""
    from airloom import wwp

    host, port = common.place("wwp send", to)
    if not file.is_file():
        raise UsageError(f"{quoted(file)} is no file")
    kept = "what was sent is kept there: the same command goes on with it"
    with interruptible(kept), steps(f"sending {file.name}", file.stat().st_size) as show:
        show(0)
        sent = wwp.send(file, host, port, name=name, patience_s=patience, shown=lambda done, _: show(done))
    if as_json:
        print_json(vars(sent))
    else:
        rate = 8e-6 * (sent.size - sent.resumed_at) / max(sent.seconds, 1e-9)
        resumed = f", resumed at {sent.resumed_at}" if sent.resumed_at else ""
        say(f"{sent.name}: {sent.size} B in {sent.seconds:.1f} s ({rate:.1f} Mbit/s){resumed}, sha256 {sent.sha256}")
    return 0


@app.command("receive")
def receive(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The UDP port to listen on; 0.0.0.0:9900 for all the world.")
    ] = "127.0.0.1:9900",
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="Where files go; has to be said.")] = None,
    most_octets: Annotated[
        int, typer.Option(metavar="N", min=0, help="The largest file that is taken.")
    ] = 4_000_000_000,
    once: Annotated[bool, typer.Option("--once", help="End after one file, or the first failure.")] = False,
    patience: Patience = 30.0,
    as_json: common.Json = False,
) -> int:
    """Take files into a folder; a file has its name when its hash is right."""
    from airloom import wwp
    from airloom.wwp.dialogue import TransferError

    host, port = common.place("--listen", listen)
    if into is None:
        raise UsageError("say where files go: --into DIR (--into . for this folder)")
    # What else has that name is refused in a moment.
    with suppress(FileExistsError):
        into.mkdir(parents=True, exist_ok=True)
    receiver = wwp.Receiver(into, host, port, patience_s=patience, most_octets=most_octets)
    with interruptible("what has arrived is kept, and a part of a file is gone on with"):
        say(f"listening on {receiver.address}")
        while True:
            try:
                with ExitStack() as stack:
                    got = receiver.receive(shown=_progress(stack))
            except TransferError as error:
                if once:
                    raise
                say_error(str(error))
                continue
            if got is None:
                continue
            if as_json:
                print_json(vars(got) | {"path": str(got.path)})
            else:
                resumed = f", resumed at {got.resumed_at}" if got.resumed_at else ""
                say(f"{quoted(got.path)}: {got.size} B from {got.peer}{resumed}, sha256 {got.sha256}")
            if once:
                return 0
