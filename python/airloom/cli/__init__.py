"""The command line: one file per verb, each a thin call into the Python API."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from airloom import standard_files
from airloom._core import DriveError, ScenarioError, __version__
from airloom.cli import (
    analyze,
    browse,
    check,
    doctor,
    emulate,
    energy,
    load,
    monitor,
    pages,
    python,
    report,
    run,
    serve,
    signals,
    study,
    validate,
    wap,
    wwp,
)
from airloom.cli import list as list_
from airloom.cli import sweep as sweep_
from airloom.cli.terminal import Manners, emit, say_details, say_error
from airloom.errors import AirloomError

app = typer.Typer(
    name="airloom",
    help="A wireless transport laboratory: one network model, virtual time and real time.",
    epilog="First steps: airloom run umts-page; airloom list; airloom doctor",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        emit(f"airloom {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Say nothing but results and errors."),
    verbose: int = typer.Option(
        0, "--verbose", "-v", count=True, show_default=False, help="Say what is done and written; -vv: all of it."
    ),
) -> None:
    """A wireless transport laboratory: one network model, virtual time and real time."""
    Manners.quiet = quiet
    say_details(verbose)


app.command("check", help=check.HELP)(check.check)
app.command("run", help=run.HELP)(run.run)
app.command("sweep", help=sweep_.HELP)(sweep_.sweep)
app.command("emulate", help=emulate.HELP)(emulate.emulate)
app.command("load", help=load.HELP)(load.load)
app.command("browse", help=browse.HELP)(browse.browse)
app.command("report", help=report.HELP)(report.report)
app.command("analyze", help=analyze.HELP)(analyze.analyze)
app.command("energy", help=energy.HELP)(energy.energy)
app.command("monitor", help=monitor.HELP)(monitor.monitor)
app.command("list", help=list_.HELP)(list_.list_)
app.command("validate", help=validate.HELP)(validate.validate)
app.command(
    "python",
    help=python.HELP,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []},
)(python.python)
app.command("doctor", help=doctor.HELP)(doctor.doctor)
app.add_typer(study.app, name="study", help=study.HELP)
app.add_typer(pages.app, name="pages", help=pages.HELP)
app.add_typer(serve.app, name="serve", help=serve.HELP)
app.add_typer(wap.app, name="wap", help=wap.HELP)
app.add_typer(wwp.app, name="wwp", help=wwp.HELP)

# Every error of typer's parser: unknown commands and options, bad values. Named through a public subclass, since
# its own name has moved between releases.
_WrongUse: type[Exception] = typer.BadParameter.__mro__[1]


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs a command line and ends the process with the documented exit code."""
    standard_files.give_missing()
    signals.install()
    try:
        code = call(arguments)
    finally:
        signals.done()
    sys.exit(code)


def call(arguments: list[str] | None = None) -> int:
    """Runs a command line; returns the exit code."""
    try:
        code = app(arguments, prog_name="airloom", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except _WrongUse as error:
        # Without any argument the help was printed, and there is nothing more to say.
        if error.format_message():  # type: ignore[attr-defined]
            say_error(_wrong_use(error))
        return 2
    except DriveError as error:
        say_error(str(error))
        return error.exit_code
    except ScenarioError as error:
        say_error(str(error))
        return 2
    except AirloomError as error:
        say_error(str(error))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        say_error("interrupted, nothing was written")
        return 130
    except BrokenPipeError:
        # The reader of stdout has seen enough.
        sys.stdout = None
        return 0
    except OSError as error:
        say_error(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "))
        return 4


def _wrong_use(error: Exception) -> str:
    """One line: what is wrong, what would be valid, and where to read more."""
    said = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    if context is None:
        return f"{said}; see airloom --help"
    commands = getattr(context.command, "commands", None)
    valid = f"; valid: {', '.join(commands)}" if commands and said.startswith("No such command") else ""
    return f"{said}{valid}; see {context.command_path} --help"
