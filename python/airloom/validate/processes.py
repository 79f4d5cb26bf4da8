"""Worker processes that can be ended at once, as an executor.

What goes on in a laboratory cannot be stopped from outside; a process can, and its laboratory ends with it. The
standard library's pool waits for what is under way, and imports the main script again.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from airloom import interpreter, standard_files
from airloom.errors import RunError

_LENGTH = struct.Struct("<Q")


class Processes(ThreadPoolExecutor):
    """A thread for each process, which starts with a task and is replaced with one if it died."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        standard_files.open_missing()  # before pipes get their numbers
        self._own = threading.local()
        self._all: list[subprocess.Popen[bytes]] = []
        self._killed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Has a process call `fn`, which must be importable there."""
        return super().submit(self._call, pickle.dumps((fn, args, kwargs), protocol=5))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes after their tasks; with `cancel_futures`, at once."""
        if cancel_futures:
            self._killed = True
            for process in self._all:
                process.kill()
        super().shutdown(wait, cancel_futures=cancel_futures)
        for process in self._all if wait else ():
            _end(process)

    def _call(self, call: bytes) -> Any:
        process: subprocess.Popen[bytes] | None = getattr(self._own, "process", None)
        if process is None or process.poll() is not None:
            process = self._own.process = self._spawn()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, call)
            is_good, value = pickle.loads(_receive(process.stdout))
        except (EOFError, OSError):
            raise RunError(f"a worker process ended with exit code {_end(process)}") from None
        if is_good:
            return value
        raise value

    def _spawn(self) -> subprocess.Popen[bytes]:
        package = str(Path(__file__).parent.parent.parent)
        code = f"import sys; sys.path.insert(0, {package!r}); from airloom.validate.processes import serve; serve()"
        pipe = subprocess.PIPE
        process = subprocess.Popen(interpreter.python("-c", code), stdin=pipe, stdout=pipe, start_new_session=True)
        self._all.append(process)
        if self._killed:
            process.kill()
        return process


def _end(process: subprocess.Popen[bytes]) -> int:
    """Closes its pipes, which ends it; its exit code."""
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:  # something was left to be written, and nobody reads it
            pass
    return process.wait()


def serve() -> None:
    """The other side: calls what comes in on stdin and answers on stdout, until stdin closes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a task prints is no answer
    threading.Thread(target=_end_with_the_other_side, daemon=True).start()
    calls = os.fdopen(0, "rb", closefd=False)
    while True:
        try:
            fn, args, kwargs = pickle.loads(_receive(calls))
            answer = pickle.dumps((True, fn(*args, **kwargs)), protocol=5)
        except EOFError:
            os._exit(0)
        except Exception as error:
            answer = pickle.dumps((False, error), protocol=5)
        _send(answers, answer)


def _end_with_the_other_side() -> None:
    """Ends this process once nobody can write to stdin any more, also in the middle of a task: nobody waits for it."""
    poll = select.poll()
    poll.register(0, 0)  # tells of a hang-up alone
    poll.poll()
    os._exit(0)


def _send(pipe: IO[bytes], octets: bytes) -> None:
    pipe.write(_LENGTH.pack(len(octets)) + octets)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    """Raises `EOFError` if the other side ended first."""
    head = pipe.read(_LENGTH.size)
    octets = pipe.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
    if not octets:
        raise EOFError
    return octets
