"""The command line: one file per verb, each a thin call into the Python API."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from airloom import standard_files
from airloom._core import DriveError, ScenarioError, __version__
from airloom.cli import signals
from airloom.cli.terminal import Manners, emit, give_up_stdout, say_details, say_error, verdict_follows
from airloom.cli.verbs import Verbs
from airloom.errors import AirloomError

app = typer.Typer(
    name="airloom",
    cls=Verbs,
    help="A wireless transport laboratory: one network model, virtual time and real time.",
    epilog="First steps: airloom run umts-page; airloom list; airloom doctor",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        emit(f"airloom {__version__}")
        raise typer.Exit


@app.callback()
def _airloom(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Say nothing but results and errors."),
    verbose: int = typer.Option(
        0, "--verbose", "-v", count=True, show_default=False, help="Say what is done and written; -vv: all of it."
    ),
) -> None:
    """A wireless transport laboratory: one network model, virtual time and real time."""
    Manners.quiet = quiet
    say_details(verbose)


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
        with verdict_follows():
            pass
        return code if isinstance(code, int) else 0
    except _WrongUse as error:
        # Where a command is missing that is the help itself.
        if type(error).__name__ == "NoArgsIsHelpError":
            emit(error.format_message())  # type: ignore[attr-defined]
        else:
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
    except UnicodeEncodeError as error:
        # A file's name, or a value: scenarios and results are texts.
        say_error(f"{error.object} is no UTF-8")
        return 2
    except (KeyboardInterrupt, typer.Abort):
        say_error("interrupted, nothing was written")
        return 130
    except SystemExit as ended:
        # A signal: what it leaves is said where that is known.
        for note in getattr(ended, "__notes__", ()):
            say_error(note)
        raise
    except BrokenPipeError:
        # The reader of stdout has seen enough.
        give_up_stdout()
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
