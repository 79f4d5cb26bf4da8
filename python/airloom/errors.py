"""What can go wrong, and the exit code that each kind of failure has on the command line."""

from typing import ClassVar


class AirloomError(Exception):
    """Something went wrong; the message says what, and what to do next."""

    exit_code: ClassVar[int] = 4


class UsageError(AirloomError):
    """Wrong use: a name that does not exist, a file that is not there, a folder that is in the way."""

    exit_code = 2


class Unsupported(AirloomError):
    """This machine cannot do it; the message names the fix."""

    exit_code = 3


class LabError(Unsupported):
    """This process may not enter a laboratory; the message names the ways in which it could."""


class RunError(AirloomError):
    """The run broke: its numbers are not valid, and nothing was written."""


class Interrupted(AirloomError):
    """Stopped by Ctrl-C or a signal; nothing was written and nothing is left behind."""

    exit_code = 130


class CannotWrite(AirloomError):
    """The system lets no result be written there; the message says why, and what to do."""


def one_line(error: Exception) -> str:
    """What an error of others says, short enough for a line of ours."""
    return " ".join(str(error).split())[:200]
