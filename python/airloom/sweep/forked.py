"""A worker as a copy of this process: there at once, with everything imported.

Only where this process has one thread: a copy has that one alone, and locks that another one held stay locked in it
(fork(2), POSIX.1 rationale). Elsewhere a worker is a new interpreter, which takes some hundredths of a second.
"""

from __future__ import annotations

import gc
import os
import signal
import traceback
from typing import IO, NoReturn

import airloom.sweep.work  # noqa: F401  # what a worker needs: its copies have it already
from airloom.sweep.worker import serve


class Forked:
    """As much of `subprocess.Popen` as `Processes` needs."""

    def __init__(self, keep: int) -> None:
        """Makes the copy; it serves until its pipe closes and never comes back from here. It has descriptor `keep`."""
        calls, ours = os.pipe()
        theirs, answers = os.pipe()
        self.stdin: IO[bytes] = os.fdopen(ours, "wb")
        self.stdout: IO[bytes] = os.fdopen(theirs, "rb")
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _be_a_worker(calls, answers, keep)
        finally:
            os.close(calls)
            os.close(answers)
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, `-N` after signal N; `None` while it runs."""
        return self._look(os.WNOHANG)

    def wait(self) -> int:
        """Waits for the end; its exit code."""
        code = self._look(0)
        assert code is not None
        return code

    def kill(self) -> None:
        """Ends it at once, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _look(self, how: int) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # the program we are part of has no interest in its children (SIGCHLD)
                self._code = 255
            else:
                if pid:
                    self._code = os.waitstatus_to_exitcode(status)
        return self._code


def copies(count: int, keep: int) -> list[Forked]:
    """So many copies that have descriptor `keep`.

    Their garbage collectors leave alone what is there now: a page that is written to is copied.
    """
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        gc.freeze()
    try:
        return [Forked(keep) for _ in range(count)]
    finally:
        if is_ours:
            gc.unfreeze()


def can_fork() -> bool:
    """Has this process one thread only, those that Python does not know of included?"""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _be_a_worker(calls: int, answers: int, keep: int) -> NoReturn:
    try:
        os.setsid()
        # As in a new process, which has no handlers yet.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(calls, 0)
        os.dup2(answers, 1)
        # Also those of other workers: as long as one copy is open, nobody sees that this process has ended.
        os.closerange(3, keep)
        os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
        serve()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
