"""The worker's side of `Processes`: what a process does that makes runs of a sweep.

It is started for every sweep, so it imports as little as there is.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
import threading
from typing import IO

_LENGTH = struct.Struct("<Q")


def send(pipe: IO[bytes], octets: bytes) -> None:
    """Writes a message: its length, then the octets."""
    pipe.write(_LENGTH.pack(len(octets)))
    pipe.write(octets)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes:
    """Reads a message. Raises `EOFError` if the other side ended first."""
    length = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))[0]
    return _exactly(pipe, length)


def _exactly(pipe: IO[bytes], count: int) -> bytes:
    octets = pipe.read(count)
    if len(octets) < count:
        raise EOFError("the other side closed the pipe")
    return octets


def serve() -> None:
    """The worker's side: calls what comes in on stdin and answers on stdout, until stdin closes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a task prints is no answer
    threading.Thread(target=_end_with_the_other_side, daemon=True).start()
    from airloom.sweep.work import NOTHING, work

    # Ready before the first call is there: what is touched for the first time takes longest.
    pickle.loads(pickle.dumps((work, (NOTHING,), {}), protocol=5))
    pickle.dumps((True, work(NOTHING)), protocol=5)
    calls = os.fdopen(0, "rb", closefd=False)  # not `sys.stdin`: a copy of a process has that one's buffer
    while True:
        try:
            call = receive(calls)
        except EOFError:
            os._exit(0)
        try:
            fn, args, kwargs = pickle.loads(call)
            answer = pickle.dumps((True, fn(*args, **kwargs)), protocol=5)
        except Exception as error:
            answer = pickle.dumps((False, error), protocol=5)
        try:
            send(answers, answer)
        except OSError:
            os._exit(0)


def _end_with_the_other_side() -> None:
    """Ends this process once nobody can write to stdin any more, also in the middle of a task: nobody waits for it."""
    poll = select.poll()
    poll.register(0, 0)  # tells of a hang-up alone
    poll.poll()
    os._exit(0)
