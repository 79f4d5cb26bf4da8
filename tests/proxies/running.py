"""Our proxies as people start them, and servers that do what a test tells them."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from airloom.closing import Closing
from tests.cli.shell import serves

# Both ends of thousands of connections are in the process of the tests.
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


class Proxy(NamedTuple):
    """Where it listens."""

    host: str
    port: int
    metrics: str
    process: subprocess.Popen[str]

    @property
    def address(self) -> tuple[str, int]:
        """For `socket.create_connection`."""
        return self.host, self.port

    def number(self, name: str) -> float:
        """One of its numbers for Prometheus, with labels if it has any."""
        import urllib.request

        page = urllib.request.urlopen(self.metrics, timeout=30).read().decode()
        (line,) = [line for line in page.splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[-1])


@contextmanager
def serving(what: str, *words: str) -> Iterator[Proxy]:
    """`airloom serve WHAT` on a port of its own; ended by Ctrl-C."""
    options = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]
    with serves(r"listening on (\S+):(\d+) .*, numbers at (\S+)\n", what, *options, *words) as (found, process):
        yield Proxy(found[1], int(found[2]), found[3], process)


class Server(Closing):
    """Answers each connection by `serve(connection)`, in a thread of its own."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        """Serves at once."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._serve = serve
        self.port: int = self._socket.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._take, daemon=True).start()

    def close(self) -> None:
        """Takes no further connection."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _take(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        # A peer may have had enough.
        with connection, suppress(OSError):
            self._serve(connection)


def connect(address: tuple[str, int]) -> socket.socket:
    """A connection on which nothing waits for ever."""
    return socket.create_connection(address, timeout=30)


def stop(proxy: Proxy) -> None:
    """Tells it to end, and waits until it takes no more connections."""
    proxy.process.send_signal(signal.SIGTERM)
    while True:
        # A connection that came to the backlog when the listener was closed is reset.
        with suppress(ConnectionResetError):
            try:
                connect(proxy.address).close()
            except ConnectionRefusedError:
                break


def receive(connection: socket.socket) -> bytes:
    """Everything up to the end."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def reset(connection: socket.socket) -> None:
    """Ends it so that the peer hears a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
