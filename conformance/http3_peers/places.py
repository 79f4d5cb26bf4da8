"""Where client and server meet: over loopback, or at the two ends of a link that loses packets."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import airloom

#: Somebody who has not begun to listen after so long has failed.
BEGIN_S = 20
#: What is lost (each way), what comes late enough to be overtaken, on what link.
LOSSY = {
    "rate": "20Mbit/s",
    "delay": "10ms",
    "queue": "100 packets",
    "loss": 0.01,
    "reordering": {"probability": 0.05, "delay": "4ms"},
}


@dataclass(frozen=True)
class Place:
    """Both ends: the address that servers listen at, and how programs are started at each."""

    address: str
    #: `subprocess.Popen`, or a laboratory's.
    near: Callable[..., Any]
    far: Callable[..., Any]

    @contextlib.contextmanager
    def serving(
        self, command: list[str], ready: str | None = None, env: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        """A server for a while: until it says that it is `ready` (what that has in brackets is given), or a moment."""
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        process = self.far(command, stdin=none, stdout=pipe, stderr=none, text=True, env=env)
        try:
            said = ""
            if ready is not None:
                found = re.match(ready, process.stdout.readline())
                assert found, f"{command[0]} did not begin"
                said = found[1]
            else:
                time.sleep(1.5)
                assert process.poll() is None, f"{command[0]} ended with {process.poll()}"
            yield said
        finally:
            process.terminate()
            try:
                process.wait(timeout=BEGIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()

    def run(self, command: list[str], patience_s: float) -> tuple[int, str, str]:
        """A client to its end: exit code, what it printed, what it complained about."""
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        process = self.near(command, stdin=none, stdout=pipe, stderr=pipe, text=True)
        try:
            out, err = process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return -1, "", f"not in {patience_s:g} s"
        return process.returncode, out, err


def loopback() -> Place:
    """This machine."""
    return Place("127.0.0.1", subprocess.Popen, subprocess.Popen)


@contextlib.contextmanager
def lossy() -> Iterator[Place]:
    """A wire that loses one packet in a hundred each way, and delivers one in twenty late."""
    with airloom.link("wireline", seed=1, overrides=LOSSY, enter=False) as link:
        yield Place(link.peer, link.popen, lambda command, **how: link.popen(command, host=link._far, **how))
