"""Runs the command line as a shell would."""

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from airloom.cli import call


class Done(NamedTuple):
    code: int
    out: str
    err: str


def airloom(*arguments: str | Path, **environment: str) -> Done:
    """Runs `airloom` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "airloom", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, **environment},
    )
    return Done(done.returncode, done.stdout, done.stderr)


@contextmanager
def serves(says: str, *arguments: str | Path) -> Iterator[tuple[re.Match[str], subprocess.Popen[str]]]:
    """`airloom serve` in a process of its own, since it said this; ended by Ctrl-C."""
    command = [sys.executable, "-m", "airloom", "serve", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            said = process.stdout.readline()
            found = re.fullmatch(says, said)
            assert found, (said, process.stderr and process.stderr.read())
            yield found, process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def inside(*arguments: str | Path) -> Done:
    """Runs `airloom` in this process, which takes as long as what it does: for many commands that do little."""
    # Some write octets.
    written = io.BytesIO()
    out, err = io.TextIOWrapper(written, "utf-8", newline=""), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = call([*map(str, arguments)])
    out.flush()
    return Done(code, written.getvalue().decode(), err.getvalue())
