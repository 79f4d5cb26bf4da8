"""The gateway's daemon on this machine's loopback, for the programs of the study."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from airloom import interpreter


@contextmanager
def gateway(*words: str) -> Iterator[tuple[subprocess.Popen[str], int, list[str]]]:
    """The daemon until the block ends, the port for sessions, and the words in which it says where it listens."""
    usual = ["--listen", "127.0.0.1:0", "--connectionless", "off", "--no-log", "--allow-origin", "127.0.0.1"]
    command = interpreter.airloom("serve", "wap-gateway", *usual, *words)
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert daemon.stdout is not None
    try:
        said = daemon.stdout.readline().split()
        yield daemon, int(said[2].rstrip(",").rpartition(":")[2]), said
    finally:
        daemon.terminate()
        daemon.wait()
